#!/usr/bin/env bash
# Installs what a real Kafka broker needs: a JDK, Maven, and the jars, fetched before concurrent tests need them.
set -euo pipefail

readonly MISSING=69
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

code=0
words=$("$here/broker.sh" --fetch 2>&1) || code=$?
if [ "$code" = 0 ]; then
  exit 0
elif [ "$code" != "$MISSING" ]; then
  echo "$words" >&2
  exit "$code"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "Java or Maven are missing: installing them from the system's packages"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jdk-headless maven >/dev/null
  "$here/broker.sh" --fetch
elif [ "${CI:-}" = true ]; then
  echo "$words, and it cannot be installed here" >&2
  exit 1
else
  echo "$words. The suites that need a real broker are skipped; the embedded one is still tested."
fi
