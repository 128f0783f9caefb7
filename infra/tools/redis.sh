#!/usr/bin/env bash
# Installs redis-server if it is missing: the test suites run it as a child process.
set -euo pipefail

if command -v redis-server >/dev/null; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "redis-server is missing: installing it from the system's packages"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server >/dev/null
  redis-server --version
elif [ "${CI:-}" = true ]; then
  echo "redis-server is missing and cannot be installed here" >&2
  exit 1
else
  echo "REDIS-SERVER IS MISSING: the suites that need it are skipped. Install it (apt install redis-server, brew install redis) and run again."
fi
