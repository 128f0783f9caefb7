#!/usr/bin/env bash
# version.sh [TAG]: prints version=1.2.3 if every file names the same version, and TAG (v1.2.3) as well if it is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
named() { # FILE SED-EXPRESSION: every version that the expression prints, at least one
  local found all
  all=$(sed -n "$2" "$1")
  for found in ${all:-nothing}; do
    [ "$found" = "$version" ] || { echo "$1 says $found, Cargo.toml $version" >&2; exit 1; }
  done
}
named Cargo.toml 's/^daegi-.* version = "\([^"]*\)".*/\1/p'
named Cargo.lock '/^name = "daegi/{n;s/^version = "\(.*\)"/\1/p}'
named infra/helm/daegi/Chart.yaml 's/^\(version\|appVersion\): *"\{0,1\}\([^"]*\)"\{0,1\}$/\2/p'
named infra/k8s/kustomization.yaml 's/.*newTag: \([^ ]*\) }/\1/p'
named infra/k8s/daegi.yaml 's/.*image: daegi-[a-z]*://p; s/.*app.kubernetes.io\/version: "\(.*\)"/\1/p; s/.*helm.sh\/chart: daegi-//p'
named docs/OPERATIONS.md 's#.*registry.example.com/daegi-[a-z]*:\([^ ]*\).*#\1#p'
for text in README.md README.ko.md docs/UPGRADING.md; do
  named $text 's/.*IMAGE_TAG=\([0-9.]*\).*/\1/p'
done
for package in sdk/js web/wait web/console web/test; do
  named $package/package.json 's/^  "version": "\(.*\)",$/\1/p'
done
named package-lock.json '/^    "\(sdk\|web\)\//,/^    }/s/^      "version": "\(.*\)",$/\1/p'
named sdk/java/pom.xml '/<artifactId>daegi-sdk</{n;s#.*<version>\(.*\)</version>#\1#p}'
named sdk/python/pyproject.toml 's/^version = "\(.*\)"$/\1/p'
if [[ ${1:-} =~ ^v[0-9] ]] && [ "$1" != "v$version" ]; then
  echo "the tag is $1, Cargo.toml says $version" >&2
  exit 1
fi
echo "version=$version"
