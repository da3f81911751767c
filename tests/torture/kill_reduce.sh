#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill_reduce.sh DRIVEREC_POINTS DATA: kills `driverec reduce` at every named point (recorder/reduce/point.h), in place
# and with an output of its own. The file is then, byte for byte, the original or the verified result, and the next run
# finishes and leaves nothing else behind. For gzipped and plain Chrome traces and for XPlane files.
# And spoils what was written before it is verified: nothing is put in place.
set -u
export LC_ALL=C
driverec=$1
data=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
points=$(sed -n '/^ \* Points:/,/^ \*\//p' "$root/recorder/reduce/point.h" | sed 's/^ \* Points://; s/^ \*\/*//')
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
unset DRIVEREC_KILL_AT DRIVEREC_KILL_AFTER DRIVEREC_STOP_AT
[ "$(wc -w <<<"$points")" -ge 9 ] || { printf 'kill_reduce: no points in point.h\n'; exit 1; }

fail() {
	printf 'kill_reduce: %s, killed at %s: %s\n' "$kind" "$point" "$*"
	ls -lA "$work"
	cat "$folder/log"
	exit 1
}

# What a run left beside the file: nothing may be.
litter() {
	find "$work" -mindepth 1 ! -name "$(basename "$1")" ! -name "${2:-}" | grep .
}

reduce() {
	"$driverec" reduce --settle 0 --bins 100 "$@" >"$folder/log" 2>&1
}

make_chrome() {
	awk 'BEGIN {
		print "{\"traceEvents\":[";
		for (i = 0; i < 20000; i++)
			printf "{\"ph\":\"X\",\"name\":\"op %d\",\"cat\":\"c\",\"pid\":1,\"tid\":%d,\"ts\":%d.125,\"dur\":%d.5},\n",
				i % 7, i % 3, i, i % 500 == 0 ? 100 : 0;
		print "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"main\"}}]}";
	}'
}

# kill_in_place KIND ORIGINAL: both are files of one name.
kill_in_place() {
	kind=$1
	local original=$2 file status
	work=$folder/$kind
	mkdir "$work"
	file=$work/$(basename "$original")
	point='(not killed)'
	cp "$original" "$file"
	reduce --in-place "$file" || fail "does not reduce"
	cp "$file" "$folder/result"
	cmp -s "$original" "$folder/result" && fail "the result is the original"
	litter "$file" && fail "litter"
	for point in $points; do
		cp "$original" "$file"
		chmod 640 "$file"
		touch -d '2024-01-02 03:04:05.678' "$file"
		(DRIVEREC_KILL_AT=$point reduce --in-place "$file") 2>/dev/null
		status=$?
		[ $status = 137 ] || fail "ended with $status"
		case $point in
		after_rename | folder_synced | lock_removed) cmp "$file" "$folder/result" || fail "is not the result" ;;
		*) cmp "$file" "$original" || fail "is not the original" ;;
		esac
		[ "$(stat -c '%a %Y' "$file")" = "640 $(date -d '2024-01-02 03:04:05.678' +%s)" ] ||
			fail "mode or time: $(stat -c '%a %y' "$file")"
		reduce --in-place "$file" || fail "the next run failed"
		cmp "$file" "$folder/result" || fail "the next run's result differs"
		litter "$file" && fail "litter after the next run"
		printf 'ok %s %s\n' "$kind" "$point"
	done
}

# The same with an output beside it.
kill_beside() {
	kind=beside
	local original=$1 file out status
	work=$folder/$kind
	mkdir "$work"
	file=$work/$(basename "$original")
	out=$work/out.json.gz
	point='(not killed)'
	cp "$original" "$file"
	reduce "$file" -o "$out" || fail "does not reduce"
	cp "$out" "$folder/result"
	for point in $points; do
		rm "$out"
		(DRIVEREC_KILL_AT=$point reduce "$file" -o "$out") 2>/dev/null
		status=$?
		[ $status = 137 ] || fail "ended with $status"
		cmp "$file" "$original" || fail "the input was touched"
		if [ -e "$out" ]; then
			cmp "$out" "$folder/result" || fail "the output is not the result"
		fi
		reduce --force "$file" -o "$out" || fail "the next run failed"
		cmp "$out" "$folder/result" || fail "the next run's result differs"
		litter "$file" out.json.gz && fail "litter after the next run"
		printf 'ok %s %s\n' "$kind" "$point"
	done
}

# spoil FILE OPTION...: what is written of it is altered before it is verified. The status is 3, and nothing is left.
spoil() {
	local file=$1 original=$folder/plain.json pid tmp
	shift
	cp "$original" "$file"
	DRIVEREC_STOP_AT=fsynced "$driverec" reduce --settle 0 --bins 100 "$file" "$@" >"$folder/log" 2>&1 &
	pid=$!
	until [ "$(sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null)" = T ]; do
		kill -0 $pid 2>/dev/null || fail "ended before it stopped"
		sleep 0.01
	done
	tmp=$(find "$work" -name '.*' -type f -size +20k)
	grep -q '"dur":100.5' "$tmp" || fail "no such span in what was written"
	sed 's/"dur":100.5/"dur":100.6/' "$tmp" >"$folder/altered" && cat "$folder/altered" >"$tmp"
	kill -CONT $pid
	wait $pid
	[ $? = 3 ] || fail "status is not 3"
	grep -q 'verification found .* differences' "$folder/log" || fail "does not say so"
	grep -q 'M3 1/0 .*at .* us: the longest span of a bin in row 0' "$folder/log" || fail "does not say where"
	grep -q 'nothing was put in place; please report it' "$folder/log" || fail "does not say what to do"
	cmp "$file" "$original" || fail "the input was touched"
	litter "$file" && fail "litter"
	printf 'ok %s %s\n' "$kind" "$*"
}

spoil_results() {
	kind=spoilt
	point=fsynced
	work=$folder/$kind
	mkdir "$work"
	spoil "$work/trace.json" --in-place
	spoil "$work/trace.json" -o "$work/out.json"
	spoil "$work/trace.json" -o "$work/out.json" --verify
}

make_chrome >"$folder/plain.json"
gzip -nc "$folder/plain.json" >"$folder/packed.json.gz"
kill_in_place gzip "$folder/packed.json.gz"
kill_in_place plain "$folder/plain.json"
kill_beside "$folder/packed.json.gz"
spoil_results
if [ -r "$data/traces/mi300_jax_conv.xplane.pb" ]; then
	kill_in_place xplane "$data/traces/mi300_jax_conv.xplane.pb"
else
	printf 'skipped xplane: %s is not there\n' "$data/traces/mi300_jax_conv.xplane.pb"
fi
