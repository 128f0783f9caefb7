#!/usr/bin/env bash
# apt.sh COMMAND PACKAGE WHAT: installs a missing command from the system's packages if possible.
# WHAT names the skipped tests; with CI=true a missing command is a failure.
set -euo pipefail
command=$1 package=$2 what=$3

if command -v "$command" >/dev/null || [ -x "/usr/sbin/$command" ]; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "$command is missing: installing it from the system's packages"
  apt-get update -qq
  # In runlevel 1 installed services are not started.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
elif [ "${CI:-}" = true ]; then
  echo "$command is missing and cannot be installed here" >&2
  exit 1
else
  echo "${command^^} IS MISSING: $what. Install it (apt install $package) and run again."
fi
