#!/usr/bin/env bash
# Runs schemathesis against every route of a running daegi with valid and invalid input: no 5xx, and no response that contradicts
# the OpenAPI documents. `make fuzz` builds daegi first; EXAMPLES=n generates more cases, SEED=n repeats a run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly VERSION=4.32.5 home=$PWD/target/schemathesis
readonly daegi=${DAEGI_BIN:-${CARGO_TARGET_DIR:-target}/debug/daegi}
readonly public=127.0.0.1:${FUZZ_PORT:-18080} internal=127.0.0.1:$((${FUZZ_PORT:-18080} + 1))
export FUZZ_ADMIN_TOKEN=admin-token-of-the-fuzz-run

if ! "$home/bin/schemathesis" --version 2>/dev/null | grep -qF "$VERSION"; then
  echo "schemathesis is missing: fetching it" >&2
  { python3 -m venv "$home" && "$home/bin/pip" install --quiet "schemathesis==$VERSION"; } >&2 || {
    echo "schemathesis could not be fetched: Python 3.10 or newer with venv is needed" >&2
    exit 69
  }
fi

env -u DAEGI_BIN "$daegi" --public-addr "$public" --internal-addr "$internal" --admin-token "$FUZZ_ADMIN_TOKEN" \
  --kafka off --log warn --tick-ms 100 >/dev/null &
pid=$!
scratch=$(mktemp -d)
trap 'kill "$pid" && wait "$pid"; rm -rf "$scratch"' EXIT
curl -fsS --retry 60 --retry-all-errors --retry-delay 1 -o /dev/null "http://$internal/readyz" 2>/dev/null

curl -fsS -H "authorization: Bearer $FUZZ_ADMIN_TOKEN" -o "$scratch/admin.json" "http://$internal/internal/admin/v1/openapi.json"
# The id of the initial item, which random input would not contain.
{ cat infra/fuzz/schemathesis.toml && printf '\n[parameters]\n"path.itemId" = "demo"\n'; } >"$scratch/demo.toml"

failed=0
try() { # what, configuration, document, address, further options
  echo "== $1"
  "$home/bin/schemathesis" --config-file "$2" run "$3" --url "http://$4" --max-examples "${EXAMPLES:-50}" \
    ${SEED:+--seed "$SEED"} "${@:5}" || failed=1
}

try "people, any item" infra/fuzz/schemathesis.toml "http://$public/openapi.json" "$public" --include-tag public
try "people, an item that is there" "$scratch/demo.toml" "http://$public/openapi.json" "$public" --include-tag public
try "services" infra/fuzz/schemathesis.toml "http://$public/openapi.json" "$internal" --include-tag internal
try "operators" infra/fuzz/schemathesis.toml "$scratch/admin.json" "$internal/internal/admin/v1"
kill -0 "$pid"
exit "$failed"
