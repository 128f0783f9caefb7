#!/usr/bin/env bash
# images.sh VERSION ARCH: builds the images of docker-compose.yml and the all-in-one for this machine's architecture, with SBOM and provenance.
# With PUBLISH=true they are pushed to REGISTRY as NAME:VERSION-ARCH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$1 arch=$2

while read -r target image service; do
  output=(--output type=cacheonly)
  if [ "${PUBLISH:-}" = true ]; then output=(--sbom=true --provenance=mode=max --push); fi
  docker buildx build -f infra/docker/Dockerfile --platform "linux/$arch" --target "$target" --build-arg SERVICE="$service" \
    --label org.opencontainers.image.version="$version" --label org.opencontainers.image.revision="$(git rev-parse HEAD)" \
    --label org.opencontainers.image.licenses=Apache-2.0 -t "${REGISTRY:?}/$image:$version-$arch" "${output[@]}" .
done <<'L'
service daegi-api daegi-api
worker daegi-scheduler daegi-scheduler
worker daegi-consumer daegi-consumer
example daegi-product-service product-service
example daegi-order-service order-service
all-in-one daegi
L
