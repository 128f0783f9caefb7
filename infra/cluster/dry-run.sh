#!/usr/bin/env bash
# Asks a real API server whether it would accept every rendered manifest, with each set of values: a server-side dry run. About 10 s.
# Needs what `make cluster-test` has built once; without it one loud line is printed and nothing fails, also with CI=true, because
# building it takes longer than all tests together.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=infra/containers/env.sh
. infra/containers/env.sh
# shellcheck source=infra/cluster/cluster.sh
. infra/cluster/cluster.sh

for program in kube-apiserver kubectl helm; do
  [ -x "$BIN/$program" ] && continue
  echo "${program^^} IS NOT CACHED: no API server has seen the manifests. \`make cluster-test\` or infra/cluster/binaries.sh ${program} builds it."
  exit
done
[ "$(id -u)" = 0 ] || { echo "NOT ROOT: no API server has seen the manifests."; exit; }
if [ -e "/run/netns/$NETNS" ]; then echo "A CLUSTER TEST IS RUNNING: no API server has seen the manifests."; exit; fi

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
