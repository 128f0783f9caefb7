#!/usr/bin/env bash
# cargo-skeleton.sh DIR: copies every manifest into DIR, with empty sources, so that cargo can build all dependencies and nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=${1:?where to?}
mkdir -p "$out"
cp --parents Cargo.toml Cargo.lock infra/docker/build.sh "$out"
for manifest in $(find crates examples services tools -name Cargo.toml | sort); do
  cp --parents "$manifest" "$out"
  crate=$(dirname "$manifest")
  for source in "$crate"/src/{lib,main}.rs "$crate"/src/bin/*.rs; do
    [ -e "$source" ] || continue
    mkdir -p "$out/$(dirname "$source")"
    echo 'fn main() {}' >"$out/$source"
    if [ "${source##*/}" = lib.rs ]; then : >"$out/$source"; fi
  done
done
