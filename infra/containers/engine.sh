# . engine.sh: a Docker engine. Uses the one that runs (DOCKER_HOST or the default socket); otherwise installs Debian's and
# starts it with a data root of its own, and stop_engine ends it. Needs env.sh.
# That engine leaves the network of the machine alone: no docker0, no iptables rule, no forwarding. Networks of compose are bridges that
# `down` removes, containers of one network need no forwarding, and published ports go through Docker's own proxy.
engine_pid=
start_engine() {
  need docker docker.io
  if docker version >/dev/null 2>&1; then
    say "engine: the one that runs here, $(docker version -f '{{.Server.Version}}')"
  else
    need dockerd docker.io
    need iptables iptables
    local run=$CACHE/engine
    mkdir -p "$run"
    export DOCKER_HOST=unix://$run/docker.sock
    if ! docker version >/dev/null 2>&1; then
      network_before=$(docker_network)
      dockerd --data-root "$CACHE/docker" --exec-root "$run/exec" --pidfile "$run/docker.pid" --host "$DOCKER_HOST" \
        --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false >"$CACHE/log/dockerd.log" 2>&1 </dev/null &
      engine_pid=$!
      within 60 docker version || { tail "$CACHE/log/dockerd.log" >&2; exit 69; }
    fi
    say "engine: started for this test, $(docker version -f '{{.Server.Version}}'), data in $CACHE/docker"
  fi
}
# Fails if an interface or a rule is left that was not there before.
stop_engine() {
  [ -n "$engine_pid" ] || return 0
  kill "$engine_pid" && wait "$engine_pid" 2>/dev/null || true
  engine_pid=
  local after
  after=$(docker_network)
  [ "$after" = "$network_before" ] || { fail "the engine left in the network of this machine: $(diff <(echo "$network_before") <(echo "$after") || true)"; return 1; }
}
# Interfaces and packet filter rules that an engine makes.
docker_network() { { ip -o link | awk -F': ' '{print $2}'; iptables-save; } 2>/dev/null | grep -E 'docker|DOCKER|br-' || true; }

# `docker compose`. Where the plugin is missing it is built from its Go module, in a copy of its directory: a module with
# replace directives cannot be installed.
need_compose() {
  docker compose version >/dev/null 2>&1 && return
  local version=v2.40.3 dir
  if [ ! -x "$BIN/docker-compose" ]; then
    say "docker compose is missing: building $version from its Go module"
    dir=$(go mod download -json "github.com/docker/compose/v2@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    rm -rf "$SRC/docker-compose"; cp -r "$dir" "$SRC/docker-compose"; chmod -R u+w "$SRC/docker-compose"
    (cd "$SRC/docker-compose" && CGO_ENABLED=0 go build -buildvcs=false -mod=mod -trimpath \
      -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$version" -o "$BIN/docker-compose" ./cmd)
  fi
  # A configuration of its own, so that the user's is not touched.
  export DOCKER_CONFIG=$CACHE/docker-config
  mkdir -p "$DOCKER_CONFIG/cli-plugins"
  ln -sf "$BIN/docker-compose" "$DOCKER_CONFIG/cli-plugins/"
}
