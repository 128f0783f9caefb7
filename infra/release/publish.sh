#!/usr/bin/env bash
# publish.sh VERSION: joins the images of both architectures under one name, signs them, and pushes and signs the chart.
# To verify: cosign verify IMAGE --certificate-oidc-issuer https://token.actions.githubusercontent.com
#   --certificate-identity-regexp '^https://github.com/OWNER/REPOSITORY/.github/workflows/release.yml@refs/tags/v'
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$1

for image in daegi-api daegi-scheduler daegi-consumer daegi-product-service daegi-order-service daegi; do
  name=${REGISTRY:?}/$image
  docker buildx imagetools create -t "$name:$version" "$name:$version-amd64" "$name:$version-arm64"
  digest=$(docker buildx imagetools inspect "$name:$version" --format '{{.Manifest.Digest}}')
  cosign sign --yes "$name@$digest"
done
helm package infra/helm/daegi --destination dist
digest=$(helm push "dist/daegi-$version.tgz" "oci://$REGISTRY/charts" 2>&1 | tee /dev/stderr | sed -n 's/^Digest: //p')
cosign sign --yes "$REGISTRY/charts/daegi@$digest"
