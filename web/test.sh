#!/usr/bin/env bash
# Tests the browser client, the waiting page and the console, without and with a real browser.
# Uses the daegi that cargo has built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ ! -d node_modules ]; then
  echo "NODE IS MISSING: the waiting page, the console and the browser client were not tested."
  [ "${CI:-}" != true ]
  exit
fi
npm test --silent
npm run --silent browser
