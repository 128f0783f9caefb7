#!/usr/bin/env bash
# Installs what the tests of the Python guard need into a virtual environment below target/: the versions of requirements-test.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
home=target/sdk-python
wanted=sdk/python/requirements-test.txt

missing() { # what, how to get it
  if [ "${CI:-}" = true ]; then
    echo "$1 is missing and cannot be installed here" >&2
    exit 1
  fi
  echo "${1^^} IS MISSING: the tests of the Python guard are skipped. $2 and run again."
  exit 0
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || missing "python 3.10" "Install it"
# The copy of the list is written last; skip the install while it equals the list.
if ! cmp -s "$wanted" "$home/.installed"; then
  echo "packages for the tests of the Python guard are missing: fetching them"
  python3 -m venv --clear "$home" || missing "python's venv" "Install it (apt install python3-venv)"
  "$home/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" || missing "packages of $wanted" "Connect to a package index"
  cp "$wanted" "$home/.installed"
fi
