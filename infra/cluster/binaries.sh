#!/usr/bin/env bash
# binaries.sh [NAME…]: builds Kubernetes, CoreDNS, helm and metrics-server from their Go modules into the cache, those that are not
# there yet. About 25 minutes on two cores, 700 MB; then nothing.
# The module k8s.io/kubernetes comes without its staging directory, whose parts are modules of their own: every local replace
# of its go.mod becomes the published version of the same release, v1.X.Y -> v0.X.Y.
# 1.34 is the last minor release whose kubelet accepts cgroup v1 without a flag.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=infra/containers/env.sh
. infra/containers/env.sh
readonly KUBERNETES=v1.34.4 HELM=v3.19.5 COREDNS=v1.13.2 METRICS_SERVER=v0.9.0
readonly PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
export GOFLAGS="-buildvcs=false ${GOFLAGS:-}" GOWORK=off CGO_ENABLED=0

# source_of MODULE VERSION DIRECTORY [COMMAND…]: a copy of the module that can be edited. COMMAND runs in it once.
source_of() {
  local module=$1 version=$2 to=$SRC/$3; shift 3
  [ -d "$to" ] && return
  local from
  from=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  rm -rf "$to.part"; cp -r "$from" "$to.part"; chmod -R u+w "$to.part"
  [ $# = 0 ] || (cd "$to.part" && "$@")
  mv "$to.part" "$to"
}
# build DIRECTORY LDFLAGS PACKAGE…
build() {
  local dir=$SRC/$1 flags=$2; shift 2
  (cd "$dir" && go build -mod=mod -trimpath -ldflags "-s -w $flags" -o "$BIN/" "$@")
}

publish_staging() {
  rm -rf vendor staging go.work go.work.sum
  sed -i -E "s#^(\s*)(k8s.io/[a-z-]+) => ./staging/src/.*#\1\2 => \2 v0.${KUBERNETES#v1.}#" go.mod
  go mod edit -print >/dev/null
}
# With the libraries of the Kubernetes that was built, nearly every package is in Go's build cache.
pin_to_kubernetes() {
  local pin args=()
  for pin in $(cd "$SRC/kubernetes" && go mod edit -json | python3 -c '
import json, sys
module = json.load(sys.stdin)
versions = {r["Path"]: r["Version"] for r in module["Require"]}
versions.update({r["Old"]["Path"]: r["New"]["Version"] for r in module.get("Replace") or []})
print("\n".join(f"{path}@{version}" for path, version in sorted(versions.items())))'); do
    args+=(-replace "${pin%@*}=$pin")
  done
  go mod edit "${args[@]}"
}
prepare_helm() {
  pin_to_kubernetes
  # The field has another name in the pflag of Kubernetes 1.34.
  sed -i s/ParseErrorsAllowlist/ParseErrorsWhitelist/ cmd/helm/root.go
}
# Only the plugins that a cluster needs: the full list brings the SDKs of three clouds.
prepare_coredns() {
  pin_to_kubernetes
  local plugins="errors log health ready cache kubernetes loadbalance" plugin
  { echo 'package plugin'; echo 'import ('; for plugin in $plugins; do echo "_ \"github.com/coredns/coredns/plugin/$plugin\""; done; echo ')'; } >core/plugin/zplugin.go
  { echo 'package dnsserver'; echo 'var Directives = []string{'; for plugin in $plugins; do echo "\"$plugin\","; done; echo '}'; } >core/dnsserver/zdirectives.go
}

minor=$(cut -d. -f2 <<<"$KUBERNETES")
[ $# -gt 0 ] || set -- "${PROGRAMS[@]}" helm coredns metrics-server
for name in "$@"; do
  [ -x "$BIN/$name" ] && continue
  say "building $name from its Go module"
  case $name in
    helm)
      source_of helm.sh/helm/v3 "$HELM" helm prepare_helm
      # Without these `helm template` assumes Kubernetes 1.20.
      v=helm.sh/helm/v3/pkg/chartutil.k8sVersion
      build helm "-X ${v}Major=1 -X ${v}Minor=$minor" ./cmd/helm ;;
    coredns)
      source_of github.com/coredns/coredns "$COREDNS" coredns prepare_coredns
      build coredns "" . ;;
    metrics-server)
      # Does not compile with the libraries of 1.34, so it keeps its own.
      source_of sigs.k8s.io/metrics-server "$METRICS_SERVER" metrics-server
      build metrics-server "" ./cmd/metrics-server ;;
    *)
      source_of k8s.io/kubernetes "$KUBERNETES" kubernetes publish_staging
      flags=
      for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=$KUBERNETES -X $package.gitMajor=1 -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
      done
      build kubernetes "$flags" "./cmd/$name" ;;
  esac
done
