#!/usr/bin/env bash
# make compose-test: the real docker-compose.yml in real containers, and what it promises. People join and order through the proxy
# while every member of the fleet, Redis and Kafka are killed, stopped and replaced.
#   BINARIES=dir   uses these release binaries; otherwise cargo builds them
#   FULL=1         builds the whole Dockerfile
# Starts its own engine where none runs. Nothing of it is left at the end but the cache (infra/containers/env.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=infra/containers/env.sh
. infra/containers/env.sh
# shellcheck source=infra/containers/engine.sh
. infra/containers/engine.sh
export COMPOSE_PROJECT_NAME=daegi-test COMPOSE_FILE=docker-compose.yml:infra/compose/override.yml COMPOSE_PATH_SEPARATOR=:
PUBLIC=http://127.0.0.1:8080 INTERNAL=http://127.0.0.1:8081 ORDERS=http://127.0.0.1:8090
token=admin-token-for-trying-out
FLEET=(api-1 api-2 scheduler-1 scheduler-2 consumer)

cleanup() {
  local code=$?
  docker compose down --volumes --timeout 20 >/dev/null 2>&1 || true
  stop_engine || code=1
  exit $code
}
trap cleanup EXIT
compose() { docker compose --progress quiet "$@"; }
container() { echo "$COMPOSE_PROJECT_NAME-$1-1"; }
state() { docker inspect -f "$1" "$(container "$2")" 2>/dev/null; }
healthy() { [ "$(state '{{.State.Health.Status}}' "$1")" = healthy ]; }
# kill_hard SERVICE: kills its process from outside. `docker kill` would count as a wish of the operator, after which Docker does
# not restart it.
kill_hard() { kill -9 "$(state '{{.State.Pid}}' "$1")"; }
restarted() { [ "$(state '{{.RestartCount}}' "$1")" -ge "$2" ] && [ "$(state '{{.State.Running}}' "$1")" = true ]; }
code() { curl -s -m 5 -o /dev/null -w '%{http_code}' "$@" || true; }
answers() { local want=$1; shift; [[ $(code "$@") =~ ^$want$ ]]; }
admin() { curl -sf -m 5 -H "authorization: Bearer $token" "$@"; }
# during NAME CHANGE…: people wait in a line of their own while CHANGE is done. PEOPLE has further options.
during() {
  local name=$1; shift
  people "$name" --item crowd --people 150 --rate 60 --poll 0.3 --stay 12 ${PEOPLE:-} & local pid=$!
  sleep 3
  "$@" || fail "$name: the change failed"
  if wait $pid; then pass "$name: $(summary "$name")"; else fail "$name: $(summary "$name")"; fi
}
# Every request succeeds if the change is announced (a stop); one that dies with its pod may fail, but no ticket is lost.
during_announced() { PEOPLE="--strict ${PEOPLE:-}" during "$@"; }

start_engine
need_compose
need python3 python3
infra/containers/base-images.sh
infra/containers/service-images.sh
docker compose down --volumes --timeout 5 >/dev/null 2>&1 || true

# --- Up: ready when it says so ----------------------------------------------------------------------------------------
began=$SECONDS
if compose up -d --no-build --wait --wait-timeout 120; then pass "up, everything healthy: $((SECONDS - began)) s"; else fail "up"; compose ps -a; compose logs --tail 5; exit 1; fi
check "an order without a pass right after up is refused for that, not with 503" answers 4.. -X POST "$ORDERS/orders" -H 'content-type: application/json' -d '{"itemId":"concert"}'
check "health checks start no JVM" bash -c '! docker inspect -f "{{.Config.Healthcheck}}" "$1" | grep -q "\.sh\b"' - "$(container kafka)"
ports() { docker image inspect -f '{{range $port, $_ := .Config.ExposedPorts}}{{$port}} {{end}}' "$1"; }
check "images expose what they serve" test "$(ports daegi-api)|$(ports daegi-scheduler)|$(ports daegi-consumer)" = "8080/tcp 8081/tcp |8081/tcp |8081/tcp "

# --- Confined, as the kernel sees it -----------------------------------------------------------------------------------
for service in api-1 scheduler-1 consumer product-service order-service; do
  pid=$(state '{{.State.Pid}}' "$service")
  seen=$(awk '/^(Uid|CapEff|NoNewPrivs|Seccomp):/ {printf "%s%s ", $1, $2}' "/proc/$pid/status")$(awk '$5 == "/" {print $6}' "/proc/$pid/mountinfo" | cut -d, -f1)
  check "$service: no root, no capability, seccomp, read-only root" test "$seen" = "Uid:65532 CapEff:0000000000000000 NoNewPrivs:1 Seccomp:2 ro"
done

# --- People ------------------------------------------------------------------------------------------------------------
if people first --people 60 --rate 30 --orders "$ORDERS" --strict; then pass "join and order: $(summary first)"; else fail "join and order: $(summary first)"; fi
check "the console is served" answers 200 "$INTERNAL/admin/"
check "the admin API needs its token" answers 401 "$INTERNAL/internal/admin/v1/overview"
admin -o /dev/null -X POST -H 'content-type: application/json' -d '{"itemName":"crowd","remainCount":1000000,"waitingQueueEnabled":true}' "$INTERNAL/internal/admin/v1/waiting-item/crowd/manually"
admin -o /dev/null -X PUT "$INTERNAL/internal/admin/v1/waiting-queue/token-count-to-move?tokenCountToMove=30"

# --- Every member of the fleet: stopped, replaced, killed ------------------------------------------------------------------
for service in api-1 scheduler-2 consumer; do
  during_announced "$service stopped" compose restart "$service"
  check "$service ended by itself, not by SIGKILL" test "$(docker events --since 60s --until 0s --filter "container=$(container "$service")" --filter event=die --format '{{.Actor.Attributes.exitCode}}' | tail -1)" = 0
done
recreate() { compose up -d --no-build --no-deps --force-recreate "$@"; }
for service in api-1 api-2 scheduler-1 scheduler-2; do
  recreate "$service"; within 30 healthy "$service" || fail "$service: not healthy after it was replaced"
done
check "people are served after every api was replaced (new addresses)" within 5 answers 200 "$PUBLIC/.well-known/jwks.json"
check "the console is served after every scheduler was replaced" within 5 answers 200 "$INTERNAL/admin/"
during_announced "api-2 replaced" recreate api-2
for service in "${FLEET[@]}"; do
  during "$service killed" kill_hard "$service"
  check "$service: restarted by Docker" within 20 restarted "$service" 1
done

# --- What the fleet needs: killed ------------------------------------------------------------------------------------------
for service in redis kafka proxy prometheus; do
  during "$service killed" kill_hard "$service"
  check "$service: restarted by Docker" within 20 restarted "$service" 1
done
for service in "${FLEET[@]}" redis kafka order-service; do within 60 healthy "$service" || fail "$service: not healthy after Redis and Kafka were killed"; done
if people after --item crowd --people 30 --rate 30 --strict; then pass "people after that: $(summary after)"; else fail "people after that: $(summary after)"; fi

# --- Secrets: as docs/OPERATIONS.md says, the new one is known everywhere before it signs ------------------------------------
old=1:6461656769206973206f70656e20736f757263652e2e2e2e new=2:$(openssl rand -hex 32)
roll_out() {
  local service
  export DAEGI_TICKET_SECRETS=$1
  for service in "${FLEET[@]}"; do recreate "$service" && within 30 healthy "$service" || return 1; done
}
rotate() { roll_out "$old,$new" && roll_out "$new,$old"; }
PEOPLE="--people 60 --stay 45 --deadline 150" during_announced "ticket secrets rotated" rotate
token=$(openssl rand -hex 16)
export DAEGI_ADMIN_TOKEN=$token
compose up -d --no-build --wait --wait-timeout 60
check "the new admin token is accepted" within 5 answers 200 -H "authorization: Bearer $token" "$INTERNAL/internal/admin/v1/overview"
check "the old one is not" answers 401 -H "authorization: Bearer admin-token-for-trying-out" "$INTERNAL/internal/admin/v1/overview"

# --- Down and up: volumes keep tickets ----------------------------------------------------------------------------------------
admin -o /dev/null -X PUT "$INTERNAL/internal/admin/v1/waiting-queue/token-count-to-move?tokenCountToMove=0"
ticket=$(curl -sf -X POST -H 'user-id: over-night' "$PUBLIC/api/v1/item/crowd/waiting-queue" | python3 -c 'import json,sys; print(json.load(sys.stdin)["token"])')
compose down --timeout 20
compose up -d --no-build --wait --wait-timeout 120
check "a ticket survives down and up" within 10 answers 200 "$PUBLIC/api/v1/item/crowd/waiting-queue/$ticket"

restarts=$(for service in "${FLEET[@]}"; do state '{{.RestartCount}}' "$service"; done | paste -sd+ | bc)
check "no container restarted since" test "$restarts" = 0
say "compose-test: $failures failures"
[ "$failures" = 0 ]
