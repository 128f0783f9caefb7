#!/usr/bin/env bash
# make cluster-test: the chart and the images in a real Kubernetes, and what they promise.
#   BINARIES=dir           uses these release binaries; otherwise cargo builds them. FULL=1 builds the whole Dockerfile
#   PREVIOUS=ref           the version to upgrade from: the latest tag, or the commit before this one
#   PREVIOUS_BINARIES=dir  its binaries; otherwise cargo builds them, once
#   KIND=name              uses this kind cluster instead of one of its own (the workflow does)
#   FIGURE=file            where the picture of the autoscaler goes; in the cache by default
#   KEEP=1                 leaves the cluster up
# The cluster has one node in a network namespace of its own. It has no network plugin that enforces NetworkPolicies: the API
# server accepts them and infra/tests tests what they mean.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=infra/containers/env.sh
. infra/containers/env.sh
# shellcheck source=infra/containers/engine.sh
. infra/containers/engine.sh
# shellcheck source=infra/cluster/cluster.sh
. infra/cluster/cluster.sh
CHART=infra/helm/daegi
TAG=$(sed -n 's/^appVersion: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' $CHART/Chart.yaml)
work=$(mktemp -d)
FIGURE=${FIGURE:-$CACHE/log/spike.svg}

cleanup() {
  local code=$?
  [ -z "${k6_pid:-}" ] || kill "$k6_pid" "${sampler:-$k6_pid}" 2>/dev/null || true
  if [ -n "${KIND:-}" ]; then k delete ns daegi deps --wait=false >/dev/null 2>&1 || true
  elif [ -z "${KEEP:-}" ]; then stop_cluster; fi
  stop_engine || code=1
  rm -rf "$work" /tmp/daegi-cluster-test-redis
  exit $code
}
trap cleanup EXIT

if [ -n "${KIND:-}" ]; then
  export KUBECONFIG=${HOME}/.kube/config
  node=$(docker inspect -f '{{.State.Pid}}' "$KIND-control-plane")
  # The load runs in the node's network, where addresses of Services lead somewhere.
  inside() { sudo --preserve-env=PATH nsenter -t "$node" --net "$@"; }
  k() { kubectl "$@"; }
  h() { helm "$@"; }
  import_images() { kind load docker-image --name "$KIND" "$@"; }
  start_cluster() { :; }
fi

# --- What runs ----------------------------------------------------------------------------------------------------------
start_engine
need_compose
need python3 python3
[ -n "${KIND:-}" ] || infra/cluster/binaries.sh
infra/containers/base-images.sh
infra/containers/service-images.sh "$TAG"
REDIS_IMAGE=$(image_of ^redis) KAFKA_IMAGE=$(image_of ^apache/kafka)
K6=$(infra/tools/k6.sh)

previous=${PREVIOUS:-$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || git rev-parse HEAD^)}
previous_id=$(git rev-parse --short=10 "$previous^{commit}")
git archive "$previous_id" $CHART | tar -x -C "$work"
if [ -z "${PREVIOUS_BINARIES:-}" ]; then
  PREVIOUS_BINARIES=$CACHE/previous/$previous_id
  if [ ! -x "$PREVIOUS_BINARIES/daegi-api" ]; then
    say "building the previous version, $previous_id"
    mkdir -p "$work/previous"; git archive "$previous_id" | tar -x -C "$work/previous"
    (cd "$work/previous" && CARGO_TARGET_DIR=$CACHE/previous/target infra/docker/build.sh "$PREVIOUS_BINARIES")
  fi
fi
BINARIES=$PREVIOUS_BINARIES FULL='' infra/containers/service-images.sh previous
BINARIES=${BINARIES:-} infra/containers/service-images.sh "$TAG"

began=$SECONDS
start_cluster
import_images "$REDIS_IMAGE" "$KAFKA_IMAGE" daegi-{api,scheduler,consumer,product-service,order-service}:"$TAG" daegi-{api,scheduler,consumer}:previous
pass "cluster: Kubernetes $(k version -o json | python3 -c 'import json,sys; print(json.load(sys.stdin)["serverVersion"]["gitVersion"])'), up in $((SECONDS - began)) s"

# --- Helpers ------------------------------------------------------------------------------------------------------------
address() { k -n "$1" get svc "$2" -o jsonpath='{.spec.clusterIP}'; }
load() { local name=$1; shift; inside python3 infra/containers/people.py --base "http://$API_IP" "$@" >"$CACHE/log/people-$name.json"; }
judge() { if [ "$2" = 0 ]; then pass "$1: $(summary "$1")"; else fail "$1: $(summary "$1")"; python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["failures"])' "$CACHE/log/people-$1.json"; fi; }
# during NAME OPTIONS CHANGE…: people join, wait and poll before, during and after CHANGE.
during() {
  local name=$1 options=$2 code=0 began; shift 2
  touch "$work/changing"; rm -f "$work/joined"
  # shellcheck disable=SC2086
  load "$name" --item crowd --people 200 --rate 8 --poll 0.5 --deadline 240 --while "$work/changing" --joined "$work/joined" $options & local pid=$!
  within 60 test -e "$work/joined" || fail "$name: not enough people joined"
  began=$SECONDS
  "$@" >/dev/null || fail "$name: the change failed"
  # A rollout is complete when the new pods are ready; the old ones drain after that.
  within 90 no_pod_ends || fail "$name: an old pod does not end"
  say "      $name took $((SECONDS - began)) s"
  rm "$work/changing"
  wait $pid || code=$?
  judge "$name" $code
}
no_pod_ends() { [ -z "$(k get pods -A -o jsonpath='{.items[*].metadata.deletionTimestamp}')" ]; }
rolled_out() { local role; for role in "${@:-api scheduler consumer}"; do for role in $role; do k -n daegi rollout status "deploy/daegi-$role" --timeout=120s >/dev/null || return; done; done; }
restart() { k -n daegi rollout restart "${@/#/deploy/daegi-}" >/dev/null && rolled_out "$@"; }
install_values=(-n daegi -f infra/cluster/values.yaml --set "store.url=redis://redis.deps:6379,kafka=kafka.deps:9092" --wait --timeout 180s)
ready_api() { k -n daegi get deploy daegi-api -o jsonpath='{.status.readyReplicas}'; }
left_behind() { k -n daegi get all,configmap,secret,serviceaccount,ingress,poddisruptionbudget,horizontalpodautoscaler,networkpolicy,endpointslice -l app.kubernetes.io/instance=daegi -o name 2>/dev/null; }
nothing_left() { [ -z "$(left_behind)" ]; }
admin() { inside curl -sf -m 5 -o /dev/null -H "authorization: Bearer $(k -n daegi get secret daegi -o jsonpath='{.data.admin-token}' | base64 -d)" "$@"; }
open_lines() {
  API_IP=$(address daegi daegi-api) ADMIN_IP=$(address daegi daegi-scheduler-internal)
  # kube-proxy knows a new pod a moment after it is ready.
  within 30 admin "http://$ADMIN_IP:8081/internal/admin/v1/overview" || { fail "the admin API does not answer"; return; }
  admin -X POST -H 'content-type: application/json' -d '{"itemName":"crowd","remainCount":1000000,"waitingQueueEnabled":true}' "http://$ADMIN_IP:8081/internal/admin/v1/waiting-item/crowd/manually" || true
  admin -X PUT "http://$ADMIN_IP:8081/internal/admin/v1/waiting-queue/token-count-to-move?tokenCountToMove=${1:-30}"
}

# --- Redis, Kafka, a namespace that enforces the restricted standard, a Secret --------------------------------------------
for namespace in deps daegi; do k create ns $namespace >/dev/null; done
k label ns daegi pod-security.kubernetes.io/enforce=restricted >/dev/null
sed "s#REDIS_IMAGE#$REDIS_IMAGE#; s#KAFKA_IMAGE#$KAFKA_IMAGE#; s#:TAG#:$TAG#" infra/cluster/deps.yaml | k -n deps apply -f - >/dev/null
k -n deps rollout status deploy/redis deploy/kafka --timeout=120s >/dev/null
k -n deps exec -i deploy/kafka -- bash -s kafka.deps:9092 <infra/docker/topics.sh >/dev/null 2>&1
k -n daegi create secret generic daegi --from-literal=ticket-secrets="1:$(openssl rand -hex 32)" \
  --from-literal=pass-key="$(openssl genpkey -algorithm ed25519)" --from-literal=admin-token="$(openssl rand -hex 16)" >/dev/null

# --- What the API server says to names and values ---------------------------------------------------------------------------
longest() { h install "$(printf 'a%.0s' $(seq 53))" $CHART "${install_values[@]}" --wait=false --dry-run=server >/dev/null; }
check "a release whose name has 53 characters is accepted" longest
refused() { ! h install other $CHART -n daegi --dry-run=server --set secrets.create=true,secrets.adminToken=x,secrets.ticketSecrets=1:00112233445566778899aabbccddeeff,secrets.passKey=-----BEGIN >/dev/null 2>&1; }
check "an admin token of one character is refused" refused

# --- Installed -----------------------------------------------------------------------------------------------------------------
began=$SECONDS
if h install daegi $CHART "${install_values[@]}" >/dev/null; then pass "installed and ready in $((SECONDS - began)) s, namespace enforces restricted"; else fail "install"; k -n daegi get pods,events; exit 1; fi
check "the first install starts as many api pods as the autoscaler keeps" test "$(ready_api)" -ge 2
open_lines
ORDERS_IP=$(address deps order-service)
k -n deps rollout status deploy/order-service deploy/product-service --timeout=60s >/dev/null
code=0; load "join and order" --orders "http://$ORDERS_IP:8090" --people 50 --rate 20 --strict || code=$?
judge "join and order" $code
h uninstall daegi -n daegi --wait >/dev/null
check "uninstall leaves nothing" within 60 nothing_left

# --- Upgraded from the previous chart and images, with people in the line ---------------------------------------------------------
if h install daegi "$work/$CHART" "${install_values[@]}" --set image.tag=previous >/dev/null; then pass "the previous version ($previous_id) runs"; else fail "the previous version"; fi
open_lines 2
upgrade() { h upgrade daegi $CHART "${install_values[@]}" >/dev/null; }
during "upgrade" --strict upgrade
check "all pods run the new images" bash -c '[ "$(sort -u <<<"$1" | grep -c previous)" = 0 ]' - "$(k -n daegi get pods -o jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}')"
open_lines

# --- Every role restarted under load; the clients do not look whether a connection was closed ------------------------------------
for role in api scheduler consumer; do during "restart of $role" "--strict --careless" restart $role; done

# --- The disruption budget --------------------------------------------------------------------------------------------------------
evict() { k create --raw "/api/v1/namespaces/daegi/pods/$1/eviction" -f - >/dev/null 2>&1 <<<"{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"$1\",\"namespace\":\"daegi\"}}"; }
read -r one two _ <<<"$(k -n daegi get pods -l app.kubernetes.io/component=scheduler -o jsonpath='{.items[*].metadata.name}')"
budget() { evict "$one" && ! evict "$two"; }
check "one scheduler can be evicted, not both" budget
rolled_out

# --- Redis deleted: requests fail for a moment, no ticket is lost ----------------------------------------------------------------------
delete_redis() { k -n deps delete pod -l app=redis >/dev/null && k -n deps rollout status deploy/redis --timeout=60s >/dev/null; }
during "Redis deleted" "" delete_redis

# --- Secrets rotated by the commands of docs/OPERATIONS.md ------------------------------------------------------------------------------
commands() { awk -v has="$1" '/^```sh$/ {block=""; inside=1; next} /^```$/ {if (inside && index(block, has)) {printf "%s", block; exit} inside=0} inside {block = block $0 "\n"}' docs/OPERATIONS.md; }
rotate() (
  kubectl() { k -n daegi "$@"; }
  eval "$(commands 'now() {')"
  eval "$(commands 'NEW=2:$(openssl' | sed '/# 3\./d')"
)
during "ticket secrets rotated" --strict rotate
check "new tickets are signed with the new secret" bash -c '[[ $1 == 2:*,1:* ]]' - "$(k -n daegi get secret daegi -o jsonpath='{.data.ticket-secrets}' | base64 -d)"

# --- Nothing died on the way -------------------------------------------------------------------------------------------------------
restarts=$(k -n daegi get pods -o jsonpath='{range .items[*]}{.status.containerStatuses[0].restartCount}{"\n"}{end}' | awk '{sum += $1} END {print sum + 0}')
check "no container was restarted" test "$restarts" = 0
h uninstall daegi -n daegi --wait >/dev/null
check "uninstall leaves nothing" within 60 nothing_left

# --- The autoscaler, and which pods take the load: a new release, because the load above may have added pods ------------------------------
h install daegi $CHART "${install_values[@]}" >/dev/null || fail "installed again"
open_lines
has_figures() { k -n daegi get hpa daegi-api -o jsonpath='{.status.currentMetrics[0].resource.current.averageUtilization}' | grep -q .; }
within 120 has_figures || fail "the autoscaler has no figures"
check "2 api pods before the rush" test "$(ready_api)" = 2
polls() { # of each api pod so far
  k -n daegi get pods -l app.kubernetes.io/component=api --field-selector=status.phase=Running -o jsonpath='{range .items[*]}{.metadata.name} {.status.podIP}{"\n"}{end}' |
    while read -r pod address; do echo "$pod $(inside curl -s -m 5 "http://$address:8081/metrics" | awk '/^daegi_api_polls_total/ {sum += $2} END {print sum + 0}')"; done
}
# Samples for the picture: time, ready pods, CPU in percent of the request, and the polls of each pod so far.
( while sleep 5; do
    printf '%s %s %s %s\n' "$(date +%s)" "$(ready_api)" "$(k -n daegi get hpa daegi-api -o jsonpath='{.status.currentMetrics[0].resource.current.averageUtilization}')" "$(polls | paste -sd ' ')"
  done ) >"$CACHE/log/samples.txt" 2>/dev/null & sampler=$!
inside "$K6" run --quiet --summary-export "$CACHE/log/k6.json" -e BASE="http://$API_IP" -e VUS=300 -e SECONDS=210 --out "csv=$CACHE/log/k6.csv" infra/cluster/spike.js >"$CACHE/log/k6.log" 2>&1 & k6_pid=$!
six() { [ "$(ready_api)" = 6 ]; }
began=$SECONDS
check "the autoscaler adds pods until there are 6" within 120 six
say "      6 pods after $((SECONDS - began)) s"
# Six pods, and in the last 10 s each took at least a tenth of the polls.
balanced() {
  polls >"$work/before"; sleep 10; polls >"$work/after"
  shares=$(join <(sort "$work/before") <(sort "$work/after") | awk '{delta[$1] = $3 - $2; all += $3 - $2} END {for (pod in delta) if (all) printf "%.0f ", 100 * delta[pod] / all}')
  awk -v shares="$shares" 'BEGIN {n = split(shares, share); for (i in share) if (share[i] < 10) exit 1; exit n != 6}'
}
began=$SECONDS
code=0; within 60 balanced || code=$?
check "within 60 s every pod takes at least 10 % of the polls: ${shares}% after $((SECONDS - began)) s" test $code = 0
code=0; wait $k6_pid || code=$?
kill $sampler 2>/dev/null || true
check "no request of the rush failed: $(python3 -c 'import json,sys; m=json.load(open(sys.argv[1]))["metrics"]; d=m["http_req_duration"]; print(int(m["http_reqs"]["count"]), "requests, p95", round(d["p(95)"],1), "ms, p99", round(d["p(99)"],1), "ms")' "$CACHE/log/k6.json" 2>/dev/null)" test $code = 0
check "picture of the rush: $FIGURE" python3 infra/cluster/figure.py "$CACHE/log/k6.csv" "$CACHE/log/samples.txt" "$FIGURE"
h uninstall daegi -n daegi --wait >/dev/null
check "uninstall leaves nothing" within 60 nothing_left

# --- Without helm: kubectl apply -k, with the addresses and resources of this cluster ---------------------------------------------------------
mkdir "$work/k8s"
sed "s#registry.example.com/##; s#newTag: .*}#newTag: $TAG }#; s#redis://redis:6379#redis://redis.deps:6379#; s#kafka=kafka:9092#kafka=kafka.deps:9092#" infra/k8s/kustomization.yaml >"$work/k8s/kustomization.yaml"
cp infra/k8s/daegi.yaml "$work/k8s/"
cat >>"$work/k8s/kustomization.yaml" <<'Y'

patches:
  - target: { kind: Deployment }
    patch: '[{"op": "replace", "path": "/spec/template/spec/containers/0/resources", "value": {"requests": {"cpu": "40m"}}}]'
Y
apply() { k apply -k "$work/k8s" >/dev/null && rolled_out; }
check "kubectl apply -k: ready" apply
open_lines
code=0; load "people without helm" --item crowd --people 30 --rate 30 --strict || code=$?
judge "people without helm" $code
k delete -k "$work/k8s" --wait >/dev/null
check "kubectl delete -k leaves nothing" within 60 nothing_left
say "cluster-test: $failures failures"
[ "$failures" = 0 ]
