#!/usr/bin/env bash
# Applies each mutant to a copy of the sources, runs it under faults, and fails unless the checker finds a violation.
# Usage: run.sh [NAME...]   (all patches beside this script, if none is named)
# SEED, SECONDS_OF_FAULTS and PEOPLE set the run. By default only the mutant that needs it has total data losses, because the
# checker accepts more around a data loss.
set -euo pipefail
cd "$(dirname "$0")/../../.."
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/chaos-mutants
names=("$@")
if [ ${#names[@]} = 0 ]; then
  for patch in tools/chaos/mutants/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi

# A separate target directory, because cargo would reuse mutated binaries in the usual one. It starts with a copy of the
# built dependencies.
if [ ! -d "$work/target" ] && [ -d "$target/debug/deps" ]; then
  mkdir -p "$work/target/debug"
  cp -al "$target"/debug/{deps,build,.fingerprint} "$work/target/debug/"
  find "$work/target/debug" -mindepth 2 -maxdepth 2 -name '*daegi*' -exec rm -rf {} +
fi

missed=0
for name in "${names[@]}"; do
  # The same directory every time, so that only patched files are rebuilt.
  mkdir -p "$work/src" "$work/$name"
  git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$work/src"
  # Unpacked files have the times of the originals; files that an earlier patch changed must be touched.
  (cd "$work/src" && sed -n 's|^+++ b/||p' "$root"/tools/chaos/mutants/*.patch | xargs touch)
  (cd "$work/src" && GIT_CEILING_DIRECTORIES=$work git apply "$root/tools/chaos/mutants/$name.patch")
  (cd "$work/src" && CARGO_TARGET_DIR=$work/target cargo build --quiet --locked \
    -p daegi-api -p daegi-scheduler -p daegi-consumer -p daegi-chaos)
  cp "$work/target"/debug/daegi-{api,scheduler,consumer,chaos} "$work/$name/"
  echo "=== $name"
  seconds=49
  if [ "$name" = no-new-base ]; then seconds=60; fi
  if "$work/$name/daegi-chaos" run --seed "${SEED:-2}" --seconds "${SECONDS_OF_FAULTS:-$seconds}" \
    --people "${PEOPLE:-1500}" --out "$work/$name"; then
    echo "!!! $name was not detected"
    missed=1
  fi
done
exit $missed
