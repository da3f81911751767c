#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# straggler.sh DRIVEREC: the handed trace of a job with one slow worker, through replay with the defaults: it is named
# within ten steps, and no other track, in words and as JSON. Without the worker nobody is.
set -eu -o pipefail
driverec=$1
data=${DRIVEREC_TEST_DATA:-$(cd "$(dirname "$0")/../.." && pwd)/../shared/data}
trace=$data/traces/straggler_worker_44steps.trace.json.gz
if [ ! -e "$trace" ] || ! command -v python3 > /dev/null || [ -e /etc/driverec/config.json ]; then
	echo "skipped: needs the handed data, python3 and no configuration of this machine"
	exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME=$folder
unset DRIVEREC_CONFIG XDG_CONFIG_HOME

"$driverec" replay "$trace" > "$folder/words"
grep -q 'straggler: pid 0 tid 0 worked' "$folder/words"
"$driverec" replay --json "$trace" > "$folder/json"
python3 - "$trace" "$folder/without.json" "$folder/json" << 'END'
import gzip, json, sys
events = json.load(gzip.open(sys.argv[1]))
rows = [json.loads(line) for line in open(sys.argv[3])]
named = [row for row in rows if row.get("trigger") == "straggler"]
assert [row["track"] for row in named] == ["pid 0 tid 0"], named
steps = sorted({event["args"]["step"] for event in events if event["ph"] == "X"})
assert steps.index(named[0]["step"]) < 10, named
assert named[0]["sample"] == steps.index(named[0]["step"]), named
begin = min(event["ts"] for event in events if event["ph"] == "X" and event["tid"] == 0
            and event["args"]["step"] == steps[3])
assert abs(int(named[0]["t0_ns"]) - begin * 1000) < 2, named
others = [event for event in events if (event.get("pid"), event.get("tid")) != (0, 0)]
json.dump(others, open(sys.argv[2], "w"))
END
"$driverec" replay --json "$folder/without.json" > "$folder/none"
if grep -q straggler "$folder/none"; then
	cat "$folder/none"
	exit 1
fi
