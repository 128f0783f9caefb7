#!/usr/bin/env bash
# Tests the guards with a real daegi: shops in Express, Fastify, Spring Boot, net/http, chi, FastAPI and Django; and the client for Java.
# Uses the daegi that cargo has built. The Node guard's vectors are among the tests that web/test.sh runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:$PWD/target/ship/bin
log=$(mktemp)
trap 'rm -f "$log"' EXIT

missing() { # what
  echo "$1 IS MISSING: its guard was not tested."
  [ "${CI:-}" != true ]
}

passed() { # language, number of tests
  echo "test result: ok. $2 passed; 0 failed; 0 ignored ($1)"
}

if [ -d node_modules ]; then
  npm run --silent e2e --workspace sdk/js
else
  missing NODE
fi
if command -v mvn >/dev/null && javac --release 17 -version >/dev/null 2>&1; then
  # Offline once all artifacts are cached: all versions are fixed.
  rm -rf sdk/java/target/surefire-reports
  mvn -B -ntp --quiet -f sdk/java/pom.xml test
  passed Java "$(awk -F '"' '/<testsuite / { for (i = 1; i < NF; i++) { if ($i ~ / tests=$/) tests += $(i + 1) } } END { print tests }' \
    sdk/java/target/surefire-reports/TEST-*.xml)"
else
  missing "JAVA 17 OR MAVEN"
fi
if command -v go >/dev/null; then
  for module in sdk/go sdk/go/e2e; do
    (cd $module && go vet ./... && go test -count=1 -v ./...) >>"$log" || { grep -v '^=== RUN' "$log"; exit 1; }
  done
  passed Go "$(grep -c -- '^ *--- PASS' "$log")"
else
  missing GO
fi
if [ -e target/sdk-python/.installed ]; then
  python=$PWD/target/sdk-python/bin
  (cd sdk/python && "$python/mypy" && "$python/pytest" -q) >"$log" || { cat "$log"; exit 1; }
  passed Python "$(sed -n 's/^\([0-9]*\) passed in .*/\1/p' "$log")"
else
  missing "PYTHON 3.10"
fi
