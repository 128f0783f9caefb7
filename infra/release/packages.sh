#!/usr/bin/env bash
# packages.sh KIND…: builds the packages that services depend on into dist/; with PUBLISH=true also publishes them. Each KIND is one of
#   crates   daegi-guard, and daegi-domain, which it needs       CARGO_REGISTRY_TOKEN
#   npm      the client and the guard of sdk/js                  NODE_AUTH_TOKEN
#   jar      the guard and the client of sdk/java, to the URL    credentials of the server `daegi` in Maven's settings
#            MAVEN_REPOSITORY
#   wheel    the guard of sdk/python, to the URL                 TWINE_USERNAME, TWINE_PASSWORD
#            TWINE_REPOSITORY_URL
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
      cp sdk/java/target/daegi-sdk-*.jar dist/ ;;
    wheel)
      python3 -m venv --clear target/wheel
      target/wheel/bin/pip wheel --quiet --no-deps --wheel-dir dist ./sdk/python
      if [ "${PUBLISH:-}" = true ]; then
        target/wheel/bin/pip install --quiet twine==6.2.0
        target/wheel/bin/twine upload --repository-url "${TWINE_REPOSITORY_URL:?}" dist/daegi_guard-*.whl
      fi ;;
    *) echo "packages.sh knows crates, npm, jar and wheel, not $kind" >&2; exit 64 ;;
  esac
done
