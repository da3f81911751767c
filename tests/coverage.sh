#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Line coverage of the readers by the reducer's tests and the replayed corpora.
set -u -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
least=${COVERAGE_LEAST:-90}
build=build/coverage
# Objects whose gcno files count: the library's, and input*.c built once more with zlib.
readers='chrome|chrome_batch|chrome_blocks|chrome_event|chrome_fast|json|json_text|json_valid|decimal|input|input_seek|slices|drec_read|proto|xplane|xplane_file|xplane_map|xplane_names|xplane_parse|xplane_sniff|xplane_space|xplane_stats|xplane_value'

usage() {
	cat <<'END'
usage: tests/coverage.sh [--no-build] [--lines FILE]

Builds the coverage preset, runs the tests labelled reducer and fuzz, and prints the share of lines that ran, one
reader a line. Status 1 if one of them is below 90 % ($COVERAGE_LEAST) or a test failed.

  --no-build    take the counters of the last run
  --lines FILE  also print the lines of FILE (xplane_parse.c) that did not run
END
}

run=yes
lines=
while [ $# -gt 0 ]; do
	case $1 in
	--no-build) run=no ;;
	--lines) lines=${2:?}; shift ;;
	--help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done

failed=0
if [ "$run" = yes ]; then
	if ! cmake --preset coverage >/dev/null || ! cmake --build --preset coverage >build/coverage.log; then
		tail -n 40 build/coverage.log >&2
		exit 1
	fi
	find "$build" -name '*.gcda' -delete
	ctest --preset coverage -L 'reducer|fuzz' --output-log "$build/tests.log" --quiet
	failed=$?
	tail -n 3 "$build/tests.log"
fi

# "FILE LINE COUNT" of every line that could run, the highest count of all objects of a source.
counts() {
	find "$build" -name '*.gcno' -print | grep -E "/($readers)\.c\.gcno$" | while IFS= read -r notes; do
		gcov --stdout "$notes" 2>/dev/null
	done | awk '
		$0 ~ /^ *-: *0:Source:/ { sub(/^[^S]*Source:/, ""); n = split($0, part, "/"); file = part[n]
			ours = index($0, "reducer/src/") > 0; next }
		ours && match($0, /^ *[^:]+: *[0-9]+:/) {
			split($0, field, ":"); count = field[1]; line = field[2]
			gsub(/[ *]/, "", count); gsub(/ /, "", line)
			if (count == "-") next
			ran = count ~ /^[0-9]/ ? count + 0 : 0
			key = file " " line
			if (!(key in most) || most[key] < ran) most[key] = ran
		}
		END { for (key in most) print key, most[key] }'
}

counts | sort -k1,1 -k2,2n >"$build/lines.txt"
if [ -n "$lines" ]; then
	awk -v file="$lines" '$1 == file && $3 == 0 { print $2 }' "$build/lines.txt" | while IFS= read -r line; do
		printf '%s:%d: %s\n' "$lines" "$line" "$(sed -n "${line}p" "reducer/src/$lines")"
	done
fi
awk -v least="$least" -v readers="^($readers)\\.c$" '
	$1 ~ readers { all[$1]++; ran[$1] += $3 > 0 }
	END {
		for (file in all) {
			share = 100 * ran[file] / all[file]
			printf "%-18s %5.1f %%  %4d of %4d lines%s\n", file, share, ran[file], all[file],
				share < least ? "  BELOW " least " %" : "" | "sort"
			bad += share < least; sum_all += all[file]; sum_ran += ran[file]
		}
		close("sort")
		if (sum_all == 0) { print "nothing was measured"; exit 1 }
		printf "%-18s %5.1f %%  %4d of %4d lines\n", "all readers", 100 * sum_ran / sum_all, sum_ran, sum_all
		exit bad > 0
	}' "$build/lines.txt" || failed=1
exit $((failed != 0))
