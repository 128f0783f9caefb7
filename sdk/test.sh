#!/usr/bin/env bash
# Tests the Java and Node guards with a real daegi: shops in Spring Boot, Express and Fastify.
# Uses the daegi that cargo has built. The Node guard's vectors are among the tests that web/test.sh runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing() { # what
  echo "$1 IS MISSING: its guard was not tested."
  [ "${CI:-}" != true ]
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
  awk -F '"' '/<testsuite / { for (i = 1; i < NF; i++) { if ($i ~ / tests=$/) tests += $(i + 1) } }
    END { printf "test result: ok. %d passed; 0 failed; 0 ignored (Java)\n", tests }' \
    sdk/java/target/surefire-reports/TEST-*.xml
else
  missing "JAVA 17 OR MAVEN"
fi
