#!/usr/bin/env bash
# build.sh [DIR [PACKAGE]]: builds what runs in containers, and puts the binaries into DIR. PACKAGE is `daegi` for the
# all-in-one; without it, the binaries of the fleet and of the example services.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# With TLS to Kafka. OpenSSL is built from its source where the system has no headers of it.
if [ -e /usr/include/openssl/ssl.h ] && command -v pkg-config >/dev/null; then
  export OPENSSL_NO_VENDOR=1
fi
if [ "${2:-}" = daegi ]; then
  packages=(daegi) binaries=(daegi) features=daegi/kafka-tls
else
  packages=(daegi-api daegi-scheduler daegi-consumer daegi-storefront)
  binaries=(daegi-api daegi-scheduler daegi-consumer product-service order-service)
  features=daegi-scheduler/kafka-tls,daegi-consumer/kafka-tls
fi
profile=${PROFILE:-dist}
cargo build --locked --profile "$profile" "${packages[@]/#/-p}" --features "$features"
[ $# -gt 0 ] || exit 0
mkdir -p "$1"
# What cargo calls the folder of the profile "dev".
built=${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}
for binary in "${binaries[@]}"; do
  cp "$built/$binary" "$1"
done
