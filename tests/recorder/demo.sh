#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# driverec demo in a folder of its own, then its incidents through replay: the same trigger at the same t0.
set -eu
if ! command -v python3 >/dev/null; then
	echo "skipped: no python3"
	exit 77
fi
driverec=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$driverec" demo --dir "$folder/store"
"$driverec" incidents --store "$folder/store" --json > "$folder/list"
python3 - "$driverec" "$folder" << 'END'
import glob, json, subprocess, sys

driverec, folder = sys.argv[1:]
text = open(folder + "/list").read()
try:
    listed = json.loads(text)
except ValueError:
    listed = [json.loads(line) for line in text.splitlines()]
incidents = listed["incidents"] if isinstance(listed, dict) else listed
assert len(incidents) >= 2, incidents
for incident in incidents:
    if incident["step"] not in (60, 100):
        continue  # this machine was late
    # By its id, by its folder, by the folder of its window files, and by each of them.
    for what in incident["id"], incident["folder"], incident["folder"] + "/raw", *glob.glob(incident["folder"] + "/raw/*.drec"):
        out = subprocess.run([driverec, "replay", "--json", "--store", folder + "/store", what],
                             stdout=subprocess.PIPE, check=True).stdout.decode()
        firings = [json.loads(line) for line in out.splitlines()]
        firings = [f for f in firings if f.get("gate") == "passed"]
        # A busy machine has spikes of its own besides: what is asked for is this one, once.
        mine = [f for f in firings if f["trigger"] == incident["trigger"]
                and abs(int(f["t0_ns"]) - int(incident["t0_ns"])) < 100000]
        assert len(mine) == 1, (incident["trigger"], incident["t0_ns"], what, firings)
        print(incident["trigger"], what.rpartition("/")[2], "replayed, and", len(firings) - 1, "others")
END
