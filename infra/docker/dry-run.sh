#!/usr/bin/env bash
# Runs the commands of the Dockerfile's stages without Docker: the same files, in clean directories, one after the other.
# PROFILE=dev builds faster. CARGO_TARGET_DIR is not used, so that the build has only the files of its layers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CARGO_TARGET_DIR
export PROFILE=${PROFILE:-dist}

echo "skeleton: COPY . ."
mkdir "$work/all" "$work/src"
# The files that .dockerignore allows, without tests.
git ls-files Cargo.toml Cargo.lock LICENSE crates examples services tools infra/docker web \
  | grep -v '/tests/' | tar -c -T - | tar -x -C "$work/all"
echo "skeleton: RUN infra/docker/cargo-skeleton.sh"
"$work/all/infra/docker/cargo-skeleton.sh" "$work/skeleton"

echo "build: COPY --from=skeleton, RUN infra/docker/build.sh"
cp -r "$work/skeleton/." "$work/src"
(cd "$work/src" && infra/docker/build.sh)
echo "build: COPY . ., RUN touch and infra/docker/build.sh /out"
cp -r "$work/all/." "$work/src"
(cd "$work/src" && find crates services examples -name '*.rs' -exec touch {} + && infra/docker/build.sh "$work/out" && infra/docker/build.sh "$work/out" daegi)

# Distroless has glibc, libgcc and libm, and nothing else to link with.
for binary in "$work"/out/*; do
  strange=$(ldd "$binary" | grep -vE 'linux-vdso|libc\.so|libm\.so|libgcc_s|libpthread|libdl|librt|ld-linux' || true)
  [ -z "$strange" ] || { echo "$(basename "$binary") needs what the image lacks: $strange" >&2; exit 1; }
  # Started as in the image, with an empty environment.
  env -i "$binary" --version
done
