#!/usr/bin/env bash
# Plants each bug in a copy of the sources, runs it under faults, and fails unless the verdict is red.
# Usage: run.sh [NAME...]   (all patches beside this script, if none is named)
# SEED, SECONDS_OF_FAULTS and PEOPLE change what is run. Without more, Redis loses everything only for
# the bug that needs it: around a loss much is forgiven.
set -euo pipefail
cd "$(dirname "$0")/../../.."
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/chaos-mutants
names=("$@")
if [ ${#names[@]} = 0 ]; then
  for patch in tools/chaos/mutants/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi

# A target directory of its own: cargo would take planted binaries in the usual one for the healthy
# ones. It begins with the dependencies that are built already.
if [ ! -d "$work/target" ] && [ -d "$target/debug/deps" ]; then
  mkdir -p "$work/target/debug"
  cp -al "$target"/debug/{deps,build,.fingerprint} "$work/target/debug/"
  find "$work/target/debug" -mindepth 2 -maxdepth 2 -name '*daegi*' -exec rm -rf {} +
fi

missed=0
for name in "${names[@]}"; do
  # The same directory every time, so that only what a patch touches is built again.
  mkdir -p "$work/src" "$work/$name"
  git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$work/src"
  # Unpacked files are as old as the originals; what a patch has changed before must look changed again.
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
    echo "!!! $name was not found"
    missed=1
  fi
done
exit $missed
