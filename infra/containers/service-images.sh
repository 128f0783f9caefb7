#!/usr/bin/env bash
# service-images.sh [TAG]: the project's images, under the names that compose and the chart use.
# By default the final stages of the Dockerfile, with the binaries of BINARIES or of a release build here: seconds.
# FULL=1 builds the whole Dockerfile instead: half an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=infra/containers/env.sh
. infra/containers/env.sh
tag=${1:-$(sed -n 's/^appVersion: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' infra/helm/daegi/Chart.yaml)}
# The legacy builder needs no plugin. It runs stages in order, and a full build needs the host's way to the registries.
export DOCKER_BUILDKIT=0

context=$PWD options=(--network host -f infra/docker/Dockerfile)
if [ -z "${FULL:-}" ]; then
  context=$(mktemp -d); trap 'rm -rf "$context"' EXIT
  if [ -n "${BINARIES:-}" ]; then
    mkdir "$context/out"
    for binary in daegi-api daegi-scheduler daegi-consumer product-service order-service; do cp "$BINARIES/$binary" "$context/out/"; done
  else
    infra/docker/build.sh "$context/out"
  fi
  cp LICENSE Cargo.lock "$context/"
  # The Dockerfile from its first final stage to the last of the fleet, with the binaries as its stage `build`.
  { printf 'FROM scratch AS build\nCOPY out /out\n'; sed -n '/ AS base$/,/^# Last, so/p' infra/docker/Dockerfile; } >"$context/Dockerfile"
  options=()
fi
while read -r target service image; do
  docker build -q "${options[@]}" --target "$target" --build-arg SERVICE="$service" -t "$image" -t "$image:$tag" "$context" >/dev/null 2>&1 || { echo "$image cannot be built" >&2; exit 1; }
done <<'L'
service daegi-api daegi-api
worker daegi-scheduler daegi-scheduler
worker daegi-consumer daegi-consumer
example product-service daegi-product-service
example order-service daegi-order-service
L
if [ -n "${FULL:-}" ]; then origin="the whole Dockerfile"; else origin=${BINARIES:-a release build}; fi
say "images of the project: tag $tag, from $origin"
