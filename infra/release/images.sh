#!/usr/bin/env bash
# images.sh VERSION ARCH: builds the images of the fleet and the all-in-one for this machine's architecture, with SBOM and provenance.
# With PUBLISH=true they are pushed to REGISTRY as NAME:VERSION-ARCH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$1 arch=$2

while read -r target image; do
  output=(--output type=cacheonly)
  if [ "${PUBLISH:-}" = true ]; then output=(--sbom=true --provenance=mode=max --push); fi
  docker buildx build -f infra/docker/Dockerfile --platform "linux/$arch" --target "$target" --build-arg SERVICE="$image" \
    --label org.opencontainers.image.version="$version" --label org.opencontainers.image.revision="$(git rev-parse HEAD)" \
    --label org.opencontainers.image.licenses=Apache-2.0 -t "${REGISTRY:?}/$image:$version-$arch" "${output[@]}" .
done <<'L'
service daegi-api
worker daegi-scheduler
worker daegi-consumer
all-in-one daegi
L
