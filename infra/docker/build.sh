#!/usr/bin/env bash
# build.sh [DIR]: builds what runs in containers, and puts the binaries into DIR.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

profile=${PROFILE:-release}
cargo build --locked --profile "$profile" -p daegi -p daegi-api -p daegi-scheduler -p daegi-consumer -p daegi-neighbours
[ $# -gt 0 ] || exit 0
mkdir -p "$1"
# What cargo calls the folder of the profile "dev".
built=${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}
for binary in daegi daegi-api daegi-scheduler daegi-consumer product-service order-service; do
  cp "$built/$binary" "$1"
done
