#!/usr/bin/env bash
# Installs Node 20 and the packages of package-lock.json if they are missing: they build and test the waiting page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v npm >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "node is missing: installing it from the system's packages"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
fi
if ! command -v npm >/dev/null; then
  if [ "${CI:-}" = true ]; then
    echo "node is missing and cannot be installed here" >&2
    exit 1
  fi
  echo "NODE IS MISSING: the tests of the waiting page and the browser client are skipped. Install Node 20 or newer and run again."
  exit 0
fi
# npm records what it installed; skip the install while that equals the lock file.
if ! cmp -s package-lock.json node_modules/.daegi-lock; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.daegi-lock
fi
