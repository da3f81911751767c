#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill_daemon.sh DRIVEREC_POINTS JOB: kills the daemon at every named point of an incident's life, starts it again,
# and looks that the incident is there afterwards, whole and once. The points are those of incidents/point.h; JOB
# is recorder_test_daemon, which runs as a job where TEST_JOB says so.
set -u
export LC_ALL=C
driverec=$1
job_path=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
points=$(sed -n '/^ \* Points:/,/^ \*\//p' "$root/recorder/incidents/point.h" | sed 's/^ \* Points://; s/^ \*\/*//')
folder=$(mktemp -d) || exit 1
run=$(mktemp -d /dev/shm/driverec-kill-XXXXXX) || exit 1
daemon=
job=
cleanup() {
	[ -n "$daemon" ] && kill -KILL "$daemon" 2>/dev/null
	[ -n "$job" ] && kill -KILL "$job" 2>/dev/null
	rm -rf "$folder" "$run"
}
trap cleanup EXIT
export DRIVEREC_RUN_DIR=$run HOME=$folder
unset DRIVEREC_CONFIG XDG_STATE_HOME DRIVEREC_KILL_AT DRIVEREC_KILL_AFTER

mkdir -p "$run/rings"
printf '{ "window": { "pre": "1 s", "pre_min": "100 ms", "post": "300 ms" }, "collect": { "stall": [] }, "series": [] }' \
	>"$folder/config.json"

# So much that the daemon drains its ring while the incident is open.
TEST_JOB=chats DRIVEREC_RING_SIZE=1048576 "$job_path" &
job=$!

start() {
	"$driverec" run --config "$folder/config.json" --store "$1" 2>>"$folder/log" &
	daemon=$!
	for _ in $(seq 200); do
		"$driverec" status --config "$folder/config.json" --store "$1" >/dev/null 2>&1 && return 0
		kill -0 "$daemon" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

ids() {
	find "$1/incidents" -mindepth 1 -maxdepth 1 -type d ! -name '.*' -name '*-manual-*' 2>/dev/null | wc -l
}

fail() {
	printf 'kill_daemon: %s: %s\n' "$point" "$*"
	tail -20 "$folder/log"
	exit 1
}

missed=0
for point in $points; do
	store=$folder/$point
	export DRIVEREC_KILL_AT=$point
	start "$store" || { unset DRIVEREC_KILL_AT; fail "the daemon did not start"; }
	victim=$daemon
	unset DRIVEREC_KILL_AT
	# A ring, before the incident: its pin is the first record of it.
	for _ in $(seq 100); do
		"$driverec" status --config "$folder/config.json" --store "$store" --json 2>/dev/null | grep -q '"alive":	1' && break
		sleep 0.05
	done
	"$driverec" trigger --config "$folder/config.json" --store "$store" --reason "$point" --wait 0s \
		>>"$folder/log" 2>&1
	killed=0
	for _ in $(seq 60); do
		kill -0 "$victim" 2>/dev/null || { killed=1; break; }
		sleep 0.05
	done
	[ $killed = 1 ] || missed=$((missed + 1))
	kill -KILL "$victim" 2>/dev/null
	wait "$victim" 2>/dev/null
	start "$store" || fail "the daemon did not start again"
	for _ in $(seq 200); do
		[ "$(ids "$store")" -ge 1 ] && [ -z "$(ls "$store/pending")" ] && break
		sleep 0.05
	done
	[ -z "$(ls "$store/pending")" ] || fail "the incident is not finished"
	[ "$(ids "$store")" = 1 ] || fail "$(ids "$store") incidents instead of one"
	find "$store/incidents" -name '.tmp-*' | grep -q . && fail "a hidden folder was left"
	kill -TERM "$daemon"
	wait "$daemon" || fail "the second daemon failed"
	daemon=
	printf 'ok %s%s\n' "$point" "$([ $killed = 1 ] || printf ' (not on this way)')"
done
# Points that only other incidents pass (early copies, revisions) are those of tests/recorder.
[ "$missed" -le 2 ] || fail "$missed points were never reached"
