#!/usr/bin/env bash
# Asks a real API server whether it would accept every rendered manifest, with each set of values: a server-side dry run. About 10 s.
# Needs what `make cluster-test` has built once. Without it one loud line is printed and `make test` goes on, also with CI=true, because
# building it takes longer than all tests together. REQUIRED=1 makes that a failure: the workflow has a job for it, which caches the binaries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=infra/containers/env.sh
. infra/containers/env.sh
# shellcheck source=infra/cluster/cluster.sh
. infra/cluster/cluster.sh

skip() { # REASON [REMEDY]
  echo "$1: no API server has seen the manifests.${2:+ $2}"
  exit "$((${REQUIRED:-0} > 0))"
}
for program in kube-apiserver kubectl helm; do
  [ -x "$BIN/$program" ] || skip "${program^^} IS NOT CACHED" "\`make cluster-test\` or infra/cluster/binaries.sh $program builds it."
done
[ "$(id -u)" = 0 ] || skip "NOT ROOT"
[ ! -e "/run/netns/$NETNS" ] || skip "A CLUSTER TEST IS RUNNING"

rendered=$(mktemp -d)
trap 'rm -rf "$rendered"; stop_cluster' EXIT
start_apiserver
# What belongs to the Prometheus operator is unknown to a bare API server; infra/tests decodes it with the operator's types.
without_operator() { awk 'BEGIN {RS = "---\n"; ORS = ""} !/apiVersion: monitoring.coreos.com/ {print "---\n" $0}'; }
cp infra/k8s/daegi.yaml "$rendered/manifests.yaml"
"$BIN/kubectl" kustomize infra/k8s >"$rendered/kustomization.yaml"
for values in minimal full; do
  "$BIN/helm" template daegi infra/helm/daegi -f "infra/helm/daegi/ci/$values.yaml" >"$rendered/$values.yaml"
done
"$BIN/helm" template "$(printf 'a%.0s' $(seq 53))" infra/helm/daegi >"$rendered/longest-name.yaml"
k create namespace daegi >/dev/null
for file in "$rendered"/*.yaml; do
  name=$(basename "$file" .yaml)
  objects=$(without_operator <"$file" | k apply --dry-run=server -f - 2>&1) || { echo "$name: the API server refuses it: $objects" >&2; exit 1; }
  echo "$name: the API server accepts $(grep -c 'server dry run' <<<"$objects") objects"
done
