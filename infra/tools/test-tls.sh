#!/usr/bin/env bash
# The suites of the store over TLS with the documented ACL, on Redis and on Valkey, and without TLS on Valkey; then the suites of Kafka with
# each login on a real broker. The latter build librdkafka with the OpenSSL of the system, or with one built from source where its headers
# are not installed.
#   test-tls.sh [redis|kafka]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

redis() {
  local valkey
  valkey=$(infra/tools/valkey.sh)
  DAEGI_TEST_REDIS=tls cargo test --locked -p daegi-store --test it
  if [ -n "$valkey" ]; then
    "$valkey" --version
    DAEGI_TEST_REDIS_SERVER=$valkey cargo test --locked -p daegi-store --test it
    DAEGI_TEST_REDIS=tls DAEGI_TEST_REDIS_SERVER=$valkey cargo test --locked -p daegi-store --test it
  fi
}

kafka() {
  local login
  if [ -e /usr/include/openssl/ssl.h ] && command -v pkg-config >/dev/null; then
    export OPENSSL_NO_VENDOR=1
  fi
  for login in scram mutual plain oauthbearer; do
    echo "kafka: $login"
    DAEGI_TEST_KAFKA=$login cargo test --locked -p daegi-kafka --features tls
  done
}

case ${1:-all} in
  redis) redis ;;
  kafka) kafka ;;
  all) redis && kafka ;;
  *) echo "usage: test-tls.sh [redis|kafka]" >&2 && exit 64 ;;
esac
