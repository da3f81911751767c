#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, then builds and runs every C test: with the address and undefined behaviour
# sanitizers, then as released.
set -u -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

usage() {
	cat <<'EOF'
usage: tests/run.sh [--quick] [--tsan] [--integration] [--help]

Without an option: every C test with the asan preset, then with the release preset.

  --quick         the release preset only, and no browser is installed
  --tsan          the thread sanitizer's preset too
  --integration   also everything in tests/integration/ that is executable
  --help          show this help

The last line is "N passed, N failed" over all. The status is 0 only if tests ran and none failed.
DRIVEREC_JOBS sets how many compile and test at a time (default: all processors).
EOF
}

presets=(asan release)
quick=no
tsan=no
integration=no
for option in "$@"; do
	case $option in
	--quick)
		presets=(release)
		quick=yes
		;;
	--tsan) tsan=yes ;;
	--integration) integration=yes ;;
	--help)
		usage
		exit 0
		;;
	*)
		printf "tests/run.sh: '%s' is unknown; see --help\n" "$option" >&2
		exit 2
		;;
	esac
done
[ "$tsan" = yes ] && presets+=(tsan)

jobs=${DRIVEREC_JOBS:-$(nproc)}
passed=0
failed=0
skipped=0

# A number from an attribute of the first element of a JUnit file.
junit() {
	sed -n "s/.*[[:space:]]$2=\"\\([0-9]*\\)\".*/\\1/p" "$1" | head -n 1
}

count_junit() {
	local all bad off
	all=$(junit "$1" tests)
	bad=$(junit "$1" failures)
	off=$(junit "$1" disabled)
	local not_run
	not_run=$(junit "$1" skipped)
	if [ "${all:-0}" -eq 0 ]; then
		failed=$((failed + 1))
		printf 'tests/run.sh: no test ran\n' >&2
		return
	fi
	skipped=$((skipped + ${not_run:-0} + ${off:-0}))
	failed=$((failed + ${bad:-0}))
	passed=$((passed + all - ${bad:-0} - ${not_run:-0} - ${off:-0}))
}

run_preset() {
	local preset=$1 report
	report=$root/build/$preset/tests.xml
	printf '== %s\n' "$preset"
	if ! cmake --preset "$preset" >"build/$preset.log" 2>&1 ||
		! cmake --build --preset "$preset" --parallel "$jobs" >>"build/$preset.log" 2>&1; then
		grep -A 12 '^FAILED' "build/$preset.log" | head -n 60 >&2 || tail -n 40 "build/$preset.log" >&2
		printf 'tests/run.sh: preset %s does not build; all of it: build/%s.log\n' "$preset" "$preset" >&2
		failed=$((failed + 1))
		return
	fi
	rm -f "$report"
	ctest --preset "$preset" --parallel "$jobs" --output-junit "$report"
	if [ ! -s "$report" ]; then
		printf 'tests/run.sh: preset %s: no test ran\n' "$preset" >&2
		failed=$((failed + 1))
		return
	fi
	count_junit "$report"
}

run_integration() {
	local test count=0
	for test in tests/integration/*; do
		if [ ! -f "$test" ] || [ ! -x "$test" ]; then
			continue
		fi
		count=$((count + 1))
		printf '== %s\n' "$test"
		if "$test"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
	if [ "$count" -eq 0 ]; then
		printf 'tests/run.sh: there is no integration test\n' >&2
		failed=$((failed + 1))
	fi
}

packages_install "${DRIVEREC_BUILD_PACKAGES[@]}" "${DRIVEREC_TEST_PACKAGES[@]}" || exit 1
if [ "$quick" = no ] && ! packages_install "${DRIVEREC_BROWSER_PACKAGES[@]}"; then
	printf 'tests/run.sh: no browser: what needs one is skipped\n' >&2
fi
if ! mkdir -p build || ! [ -w build ]; then
	printf 'tests/run.sh: %s cannot be written: remove it, or run this as its owner\n' "$root/build" >&2
	exit 1
fi
for preset in "${presets[@]}"; do
	run_preset "$preset"
done
[ "$integration" = yes ] && run_integration

[ "$skipped" -gt 0 ] && printf '%d skipped\n' "$skipped"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
