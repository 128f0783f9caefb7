# . env.sh: what the scripts of compose-test and cluster-test share. Sourced from the root of the project.
# Engine, base images, built programs and Go's sources are kept in CACHE between runs; delete it to start from nothing.
# Its variable is not called DAEGI_…: daegi refuses variables of that prefix that it does not know.
CACHE=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/daegi/cluster}
BIN=$CACHE/bin
SRC=$CACHE/src
mkdir -p "$BIN" "$SRC" "$CACHE/log"
export PATH=$BIN:$PATH:/usr/sbin:/sbin

failures=0
begun=$SECONDS
say() { printf '%4d s  %s\n' "$((SECONDS - begun))" "$*"; }
pass() { say "ok    $*"; }
fail() { say "FAIL  $*"; failures=$((failures + 1)); }
# check TEXT COMMAND…: one line about how it went.
check() {
  local text=$1; shift
  if "$@"; then pass "$text"; else fail "$text"; fi
}
# within SECONDS COMMAND…: repeats it until it succeeds.
within() {
  local until=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.5
  done
}
# need COMMAND PACKAGE: from the system's packages, if this user may install them.
need() {
  command -v "$1" >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "$1 is missing: installing $2"
    [ -n "${apt_updated:-}" ] || { apt-get update -qq; apt_updated=yes; }
    # In runlevel 1 nothing that is installed starts by itself.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
  else
    echo "$1 is missing: install $2" >&2
    exit 69
  fi
}
# image_of PATTERN: the name of an image of docker-compose.yml. Reads to the end: compose fails if its reader stops early.
image_of() { docker compose config --images | awk -v pattern="$1" '$0 ~ pattern && !found++'; }
# people NAME [OPTION…]: runs the load of people.py and keeps its report. Prints a summary of it.
people() {
  local name=$1; shift
  python3 infra/containers/people.py "$@" >"$CACHE/log/people-$name.json"
}
summary() {
  python3 - "$CACHE/log/people-$1.json" <<'P'
import json, sys
r = json.load(open(sys.argv[1]))
print(f"{r['people']} people, {r['requests']} requests, errors {r['errors'] or 'none'}, {r['fate']}, p99 {r['p99_ms']} ms")
P
}
