#!/usr/bin/env bash
# Installs Chromium if it is missing: the waiting page and the console are tested in a real browser.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "chromium is missing: installing it from the system's packages"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
  chromium --version
elif [ "${CI:-}" = true ]; then
  echo "chromium is missing and cannot be installed here" >&2
  exit 1
else
  echo "CHROMIUM IS MISSING: the browser tests are skipped. Install it (apt install chromium, brew install chromium) and run again."
fi
