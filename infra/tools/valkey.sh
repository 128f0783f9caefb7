#!/usr/bin/env bash
# Prints the path of a valkey-server with TLS. If none is installed, Debian's backports have one, which is unpacked into target/ship and
# not installed. With CI=true a missing valkey-server is a failure; otherwise nothing is printed, and a line on stderr says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if command -v valkey-server; then
  exit 0
fi
to=$PWD/target/ship/valkey
server=$to/usr/bin/valkey-server

fetch() {
  local dir keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get >/dev/null && [ -r "$keyring" ] || return 1
  dir=$(mktemp -d)
  mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$to"
  echo "deb [signed-by=$keyring] http://deb.debian.org/debian bookworm-backports main" >"$dir/sources.list"
  apt() {
    apt-get -qq -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$dir/lists" \
      -o Dir::Cache="$dir" -o Dir::Cache::Archives="$dir/archives" -o Debug::NoLocking=true -o APT::Sandbox::User="$(id -un)" "$@"
  }
  # valkey-tools has the program; valkey-server has a link to it.
  (cd "$dir" && apt update && apt download valkey-tools valkey-server) >&2 &&
    for package in "$dir"/*.deb; do dpkg -x "$package" "$to"; done
  rm -rf "$dir"
}

if ! [ -x "$server" ]; then
  fetch || rm -rf "$to"
fi
if [ -x "$server" ] && "$server" --version >/dev/null; then
  echo "$server"
elif [ "${CI:-}" = true ]; then
  echo "valkey-server is missing and cannot be fetched here" >&2
  exit 1
else
  echo "VALKEY-SERVER IS MISSING: nothing is tested with Valkey. Install it and run again." >&2
fi
