#!/usr/bin/env bash
# packages.sh COMMAND PACKAGE WHAT: makes sure that a command is there, from the system's packages where that is possible.
# WHAT says which tests are left out without it; with CI=true its absence is a failure.
set -euo pipefail
command=$1 package=$2 what=$3

if command -v "$command" >/dev/null || [ -x "/usr/sbin/$command" ]; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "$command is missing: installing it from the system's packages"
  apt-get update -qq
  # In runlevel 1 nothing that is installed starts by itself.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
elif [ "${CI:-}" = true ]; then
  echo "$command is missing and cannot be installed here" >&2
  exit 1
else
  echo "${command^^} IS MISSING: $what. Install it (apt install $package) and run again."
fi
