#!/usr/bin/env bash
# Checks what is shipped: crates with cargo-deny (deny.toml), npm packages with `npm audit`. Licences and sources are checked offline.
# A finding is a failure. A database that cannot be reached is reported in one line and is no failure, because a network problem is not a finding.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failed=0

missing() { # tool, what is not checked, how to get it
  echo "$1 IS MISSING: $2 were not checked. $3"
  [ "${CI:-}" != true ] || failed=1
}

if cargo deny --version >/dev/null 2>&1; then
  cargo deny --log-level warn check licenses sources bans || failed=1
  # Fetching fails only without a network; checking the fetched database fails only on a finding.
  if cargo deny --log-level error fetch db; then
    cargo deny --log-level warn check --disable-fetch advisories || failed=1
  else
    echo "ADVISORY DATABASE UNREACHABLE: crates were not checked for known vulnerabilities."
  fi
else
  missing "CARGO-DENY" "crates" "cargo install cargo-deny --locked"
fi

if command -v npm >/dev/null; then
  report=$(npm audit --omit=dev --json 2>/dev/null)
  case $report in
    *'"vulnerabilities"'*)
      # With findings npm exits with 1; the readable report says which.
      npm audit --omit=dev --loglevel=error || failed=1
      ;;
    *) echo "NPM AUDIT ENDPOINT UNREACHABLE: npm packages were not checked for known vulnerabilities." ;;
  esac
else
  missing NODE "npm packages" "Install Node 20 or newer."
fi
exit $failed
