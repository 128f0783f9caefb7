#!/usr/bin/env bash
# Checks the chart and its manifests, compose, the Dockerfile, the alerts and the docs, without a cluster and without Docker.
# Uses the binaries that cargo has built: ports, variables and defaults are compared with their --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:$PWD/target/ship/bin
passed=0

have() { # command, what it tests
  command -v "$1" >/dev/null && return
  echo "${1^^} IS MISSING: $2 not tested."
  [ "${CI:-}" != true ] || exit 1
  return 1
}

if have go "chart, manifests, compose and docs are"; then
  BINARIES=$(realpath "${CARGO_TARGET_DIR:-target}/debug")
  export BINARIES
  log=$(mktemp)
  (cd infra/tests && go test -count=1 -v ./... >"$log") || { grep -v '^=== RUN' "$log"; rm -f "$log"; exit 1; }
  grep 'IS MISSING' "$log" || true
  passed=$((passed + $(grep -c '^--- PASS' "$log")))
  rm -f "$log"
fi
if have hadolint "the Dockerfile is"; then
  hadolint infra/docker/Dockerfile
  passed=$((passed + 1))
fi
if have actionlint "the workflows are"; then
  actionlint
  passed=$((passed + 1))
fi
infra/cluster/dry-run.sh
if have promtool "the alerts are"; then
  promtool check rules infra/helm/daegi/files/alerts.yml
  promtool test rules infra/prometheus/alerts.test.yml
  passed=$((passed + 2))
fi
echo "test result: ok. $passed passed; 0 failed; 0 ignored"
