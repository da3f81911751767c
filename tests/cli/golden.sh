#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# golden.sh DRIVEREC CASE: runs CASE.cmd in an empty folder and compares status, stdout and stderr with
# CASE.expected. A line of CASE.cmd is a shell command; `driverec` is the one under test, $CASES the folder of
# the cases. Times, ids and folders are masked. UPDATE_GOLDEN=1 writes CASE.expected instead.
set -u -o pipefail
export LC_ALL=C TZ=UTC

driverec_path=$(realpath "$1")
CASES=$(cd "$(dirname "$2")" && pwd)
case_path=$CASES/$(basename "$2")
export CASES
if [ -e /etc/driverec/config.json ]; then
	printf 'skipped: /etc/driverec/config.json would be read\n'
	exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# No configuration, store or ring of whoever runs the tests.
export HOME=$folder/home DRIVEREC_RUN_DIR=$folder/run
unset DRIVEREC_CONFIG XDG_STATE_HOME XDG_CONFIG_HOME
mkdir -p "$HOME" "$folder/work" "$DRIVEREC_RUN_DIR"

driverec() {
	"$driverec_path" "$@"
}

mask() {
	sed -E \
		-e "s|$folder|<folder>|g" \
		-e "s|$CASES|<cases>|g" \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?( UTC|Z)?/<time>/g' \
		-e 's/[0-9]{8}T[0-9]{6}(\.[0-9]+)?Z/<time>/g' \
		-e 's/[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)? \([0-9]{2}:[0-9]{2}:[0-9]{2} [A-Z]+\)/<time>/g' \
		-e 's/\b[0-9]{19}\b/<ns>/g' \
		-e 's/\b[0-9a-f]{16}\b/<id>/g' \
		-e 's/driverec [0-9]+\.[0-9]+\.[0-9]+/driverec <version>/g'
}

run_all() {
	local line status
	cd "$folder/work" || exit 1
	while IFS= read -r line || [ -n "$line" ]; do
		[ -z "$line" ] && continue
		printf '$ %s\n' "$line"
		eval "$line" >"$folder/out" 2>"$folder/err" </dev/null
		status=$?
		cat "$folder/out"
		sed 's/^/! /' "$folder/err"
		[ "$status" -eq 0 ] || printf '? %d\n' "$status"
	done <"$case_path.cmd"
}

run_all | mask >"$folder/got"
if [ "${UPDATE_GOLDEN:-}" = 1 ]; then
	cp "$folder/got" "$case_path.expected"
	exit 0
fi
if [ ! -s "$folder/got" ]; then
	printf '%s: nothing was run\n' "$case_path.cmd" >&2
	exit 1
fi
diff -u "$case_path.expected" "$folder/got"
