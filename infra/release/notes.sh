#!/usr/bin/env bash
# notes.sh VERSION: the section of CHANGELOG.md about this version; without one there is no release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

notes=$(awk -v heading="## [$1]" '/^## / {found = index($0, heading) == 1} found' CHANGELOG.md)
[ -n "$notes" ] || { echo "CHANGELOG.md has no section about $1" >&2; exit 1; }
echo "$notes"
