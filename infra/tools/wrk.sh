#!/usr/bin/env bash
# Makes sure that wrk is there: the bench lets it make the load.
set -euo pipefail

if command -v wrk >/dev/null; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "wrk is missing: installing it from the system's packages"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends wrk >/dev/null
else
  echo "wrk is missing: install it (apt install wrk, brew install wrk) and run again" >&2
  exit 69
fi
