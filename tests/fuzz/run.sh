#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzzers and runs them, with the address and undefined behaviour sanitizers.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
build=build/fuzz
# Which corpus a target begins with, where it is not of its own name.
declare -A corpus=([writer]=chrome [export]=chrome [reduce]=chrome [input_zlib]=input)

usage() {
	cat <<'END'
usage: tests/fuzz/run.sh TARGET|all SECONDS

Prints one line a target: executions a second, coverage (edges and features of libFuzzer), and the finding, whose
input is in build/fuzz/findings/. New inputs are kept in build/fuzz/found/TARGET, where the next run goes on.
Status 1 if there was a finding.
END
}

if [ $# -ne 2 ] || ! [[ $2 =~ ^[0-9]+$ ]]; then
	usage >&2
	exit 2
fi
seconds=$2

cmake --preset fuzz >/dev/null || exit 1
if [ "$1" = all ]; then
	mapfile -t targets < <(ninja -C "$build" -t targets all | sed -n 's,^fuzz/fuzz_\([a-z_]*\): .*,\1,p' | sort)
else
	targets=("$1")
fi
ninja -C "$build" "${targets[@]/#/fuzz_}" >"$build/fuzz-build.log" || {
	tail -n 30 "$build/fuzz-build.log" >&2
	exit 1
}

# A number behind a word in the last progress line: "#123 DONE cov: 45 ft: 67 … exec/s: 89".
progress() {
	grep -a '^#[0-9]' "$1" | tail -n 1 | sed -n "s,.*$2: \([0-9]*\).*,\1,p"
}

run() {
	local target=$1 log=$build/findings/$1.log before dictionary=() status
	mkdir -p "$build/found/$target" "$build/findings"
	before=$(find "$build/findings" -name "$target-*" | sort)
	local of=${corpus[$target]:-$target}
	[ "$of" = json ] && of=chrome
	[ -f "tests/fuzz/$of.dict" ] && dictionary=("-dict=tests/fuzz/$of.dict")
	"$build/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$build/findings/$target-" "${dictionary[@]}" "$build/found/$target" \
		"tests/fuzz/corpus/${corpus[$target]:-$target}" >"$log" 2>&1
	status=$?
	local finding='no finding'
	if [ $status -ne 0 ]; then
		finding=$(grep -a -m 1 -E 'does not hold|ERROR: |runtime error' "$log" | cut -c 1-120)
		finding="FOUND: $finding ($(comm -13 <(printf '%s\n' "$before") \
			<(find "$build/findings" -name "$target-*" | sort) | head -n 1))"
	fi
	printf '%-12s %6s s  %6s exec/s  %9s runs  cov %6s  ft %6s  %s\n' "$target" "$seconds" \
		"$(progress "$log" exec/s)" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
		"$(progress "$log" cov)" "$(progress "$log" ft)" "$finding"
	return $((status != 0))
}

failed=0
for target in "${targets[@]}"; do
	run "$target" || failed=1
done
exit $failed
