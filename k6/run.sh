#!/usr/bin/env bash
# Starts daegi, runs a k6 script against it and stops both. After a failure it keeps the logs and prints their ends.
#   k6/run.sh SCRIPT [one|fleet] [k6 options…]
# one (default): the all-in-one binary, no server needed. fleet: two api pods and two schedulers on their own Redis.
set -euo pipefail

script=$1 shape=${2:-one}
shift $(($# < 2 ? $# : 2))
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${CARGO_TARGET_DIR:-$root/target}/release
k6=$("$root/infra/tools/k6.sh")
logs=$(mktemp -d)
pids=()

stop() {
  local code=$?
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  if [ "$code" = 0 ]; then
    rm -rf "$logs"
  else
    tail -n 20 "$logs"/*.log >&2 || true
    echo "logs: $logs" >&2
  fi
}
trap stop EXIT

# A port that is free now; the process that binds it reports a conflict.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start() { # name, command…
  local name=$1
  shift
  "$@" >"$logs/$name.log" 2>&1 &
  pids+=($!)
}

ready() { # name, internal address
  for _ in $(seq 300); do
    if curl -fs "http://$2/readyz" >/dev/null; then return; fi
    kill -0 "${pids[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  echo "$1 is not ready" >&2
  exit 1
}

member() { # name, binary
  local public internal
  public=127.0.0.1:$(free_port) internal=127.0.0.1:$(free_port)
  start "$1" "$bin/$2" --public-addr "$public" --internal-addr "$internal"
  ready "$1" "$internal"
  eval "$1_public=$public $1_internal=$internal"
}

DAEGI_ADMIN_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export DAEGI_ADMIN_TOKEN DAEGI_LOG=warn

if [ "$script" = bots.js ]; then
  # The script names the addresses of its users. Few bits, so that k6 solves the challenges of all users.
  export DAEGI_TRUSTED_PROXIES=127.0.0.0/8 DAEGI_CHALLENGE_BITS=8 DAEGI_SOURCE_JOINS=50:500
fi

case $shape in
  one)
    member room daegi
    public=http://$room_public internal=http://$room_internal admin=$internal
    ;;
  fleet)
    "$root/infra/tools/redis.sh"
    port=$(free_port)
    start redis redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$logs"
    DAEGI_TICKET_SECRETS=1:$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
    DAEGI_PASS_KEY=$(openssl genpkey -algorithm ed25519)
    export DAEGI_STORE=redis://127.0.0.1:$port DAEGI_TICKET_SECRETS DAEGI_PASS_KEY
    member leader daegi-scheduler
    member standby daegi-scheduler
    member pod1 daegi-api
    member pod2 daegi-api
    public=http://$pod1_public,http://$pod2_public internal=http://$pod1_internal admin=http://$standby_internal
    ;;
  *)
    echo "usage: k6/run.sh SCRIPT [one|fleet] [k6 options…]" >&2
    exit 64
    ;;
esac

"$k6" run --quiet -e DAEGI_ADMIN_TOKEN="$DAEGI_ADMIN_TOKEN" -e DAEGI_PUBLIC="$public" -e DAEGI_INTERNAL="$internal" \
  -e DAEGI_ADMIN="$admin" "$@" "$root/k6/$script"
