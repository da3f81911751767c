#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a bare Debian 12 or 13: installs what is missing, builds, and shows driverec catching two anomalies.
set -eu -o pipefail

case ${1:-} in
"") ;;
--help)
	cat <<'EOF'
usage: deploy/quickstart.sh

Installs what is missing (apt-get, as root or with sudo), builds the release preset, runs "driverec demo"
and prints the incidents that it made.
EOF
	exit 0
	;;
*)
	printf "deploy/quickstart.sh: '%s' is unknown; see --help\n" "$1" >&2
	exit 2
	;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

packages_install "${DRIVEREC_BUILD_PACKAGES[@]}"

if ! mkdir -p build/quickstart || ! [ -w build ] || ! [ -w build/quickstart ]; then
	printf 'deploy/quickstart.sh: %s cannot be written: remove it, or run this as its owner\n' "$root/build" >&2
	exit 1
fi
printf 'building (log: build/quickstart.log)\n'
if ! { cmake --preset release -DBUILD_TESTING=OFF -B build/quickstart &&
	cmake --build build/quickstart --parallel "${DRIVEREC_JOBS:-$(nproc)}"; } >build/quickstart.log 2>&1; then
	tail -n 30 build/quickstart.log >&2
	printf 'deploy/quickstart.sh: the build failed; all of it: build/quickstart.log\n' >&2
	exit 1
fi
driverec=build/quickstart/bin/driverec
demo=$root/build/quickstart/demo

rm -rf "$demo"
printf 'running a simulated training job with one latency spike and one stall\n\n'
status=0
"$driverec" demo --dir "$demo" || status=$?

printf '\n'
first=
for folder in "$demo"/incidents/*/; do
	[ -f "$folder/manifest.json" ] || continue
	printf 'incident  %s\n' "${folder%/}"
	first=${first:-${folder%/}}
done
if [ "$status" -ne 0 ] || [ -z "$first" ]; then
	printf 'deploy/quickstart.sh: the demo did not catch both anomalies (exit status %d)\n' "$status" >&2
	exit 1
fi
cat <<EOF

next:
  $driverec show $first
  $driverec export $first -o incident.json.gz
  $driverec run -- YOUR-COMMAND
  $driverec --help
EOF
