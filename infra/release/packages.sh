#!/usr/bin/env bash
# packages.sh KIND…: builds the packages that services depend on into dist/; with PUBLISH=true also publishes them. Each KIND is one of
#   crates   daegi-guard, and daegi-domain, which it needs       CARGO_REGISTRY_TOKEN
#   npm      the client and the guard of sdk/js                  NODE_AUTH_TOKEN
#   jar      the guard of sdk/java, to the URL MAVEN_REPOSITORY  credentials of the server `daegi` in Maven's settings
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p dist

for kind in "$@"; do
  case $kind in
    crates)
      # Verifying compiles each package as it will be downloaded.
      cargo package --locked -p daegi-domain -p daegi-guard
      cp "${CARGO_TARGET_DIR:-target}"/package/daegi-{domain,guard}-*.crate dist/
      [ "${PUBLISH:-}" != true ] || cargo publish --locked -p daegi-domain -p daegi-guard ;;
    npm)
      npm ci --silent
      npm run --silent build --workspace sdk/js
      npm pack --silent --workspace sdk/js --pack-destination dist
      [ "${PUBLISH:-}" != true ] || npm publish --workspace sdk/js --provenance --access public ;;
    jar)
      goal=package options=()
      if [ "${PUBLISH:-}" = true ]; then goal=deploy options=("-DaltDeploymentRepository=daegi::${MAVEN_REPOSITORY:?}"); fi
      mvn -q -B -f sdk/java/pom.xml -DskipTests "${options[@]}" "$goal"
      cp sdk/java/target/daegi-guard-*.jar dist/ ;;
    *) echo "packages.sh knows crates, npm and jar, not $kind" >&2; exit 64 ;;
  esac
done
