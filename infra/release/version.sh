#!/usr/bin/env bash
# version.sh [TAG]: prints version=1.2.3 if every file names the same version, and TAG (v1.2.3) as well if it is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
named() { # FILE SED-EXPRESSION
  local found
  for found in $(sed -n "$2" "$1"); do
    [ "$found" = "$version" ] || { echo "$1 says $found, Cargo.toml $version" >&2; exit 1; }
  done
}
named infra/helm/daegi/Chart.yaml 's/^\(version\|appVersion\): *"\{0,1\}\([^"]*\)"\{0,1\}$/\2/p'
named infra/k8s/kustomization.yaml 's/.*newTag: \([^ ]*\) }/\1/p'
named infra/k8s/daegi.yaml 's#.*image: daegi-[a-z]*:##p'
if [[ ${1:-} =~ ^v[0-9] ]] && [ "$1" != "v$version" ]; then
  echo "the tag is $1, Cargo.toml says $version" >&2
  exit 1
fi
echo "version=$version"
