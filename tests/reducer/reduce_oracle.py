#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `driverec reduce` writes against a reading that shares no line with it: oracle.py of the handed data.

usage: reduce_oracle.py DRIVEREC DATA_FOLDER

Every handed Chrome trace is reduced to the default bins, to 100 bins and to a tenth of its events. Each track's busy
time, first start, last end and longest span must come out the same, to the picosecond. Exit 77: no data.

One exception is arithmetic: where a track is dense with short spans, few of them can be as busy as all were only if one
is longer. Away from the default bins such a track may have a merged span that is longer than its longest one, which
must still be in the file.
"""
import glob
import importlib.util
import os
import subprocess
import sys
import tempfile

WAYS = (["--bins", "3840"], ["--bins", "100"], ["--target-events", "10%"])
SAME = ("first_ps", "last_ps", "busy_ps", "longest")


def load_oracle(data):
    spec = importlib.util.spec_from_file_location("oracle", os.path.join(data, "oracle.py"))
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    return oracle


def is_dense(track, small):
    """Whether it takes many spans of its longest one's length to be as busy as the track is."""
    if track["longest"]["dur_ps"] == 0:
        return False
    least = track["busy_ps"] / track["longest"]["dur_ps"]
    return small or (least > 64 and least > track["spans"] / 20)


def exact_spans(oracle, path):
    """The spans that are not merged ones: track, length, name."""
    root = oracle.load(path)
    return {(f'{e.get("pid")}/{e.get("tid")}', oracle.picoseconds(e["dur"]), e.get("name"))
            for e in (root if isinstance(root, list) else root["traceEvents"])
            if e.get("ph") == "X" and e.get("cat") != "driverec.merged"}


def differences(raw, reduced, exact, small):
    for track, expected in raw["tracks"].items():
        found = reduced["tracks"].get(track)
        if found is None:
            yield f"{track} is missing"
            continue
        for key in SAME:
            longest = expected["longest"]
            if (key == "longest" and (track, longest["dur_ps"], longest["name"]) in exact
                    and is_dense(expected, small)):
                continue
            if expected[key] != found[key]:
                yield f"{track} {key}: {expected[key]} became {found[key]}"
    for track in reduced["tracks"].keys() - raw["tracks"].keys():
        yield f"{track} is new"


def main():
    driverec, data = sys.argv[1:3]
    if not os.path.exists(os.path.join(data, "oracle.py")):
        print("skipped: no handed data")
        return 77
    oracle, failed = load_oracle(data), 0
    with tempfile.TemporaryDirectory(prefix="driverec-oracle-") as folder:
        for path in sorted(glob.glob(os.path.join(data, "traces", "*trace.json.gz"))):
            raw = oracle.read(path)
            for way in WAYS:
                reduced_path = os.path.join(folder, "reduced.json.gz")
                subprocess.run([driverec, "reduce", path, "-o", reduced_path, "--force", *way], check=True,
                               stdout=subprocess.DEVNULL)
                reduced = oracle.read(reduced_path)
                exact = exact_spans(oracle, reduced_path) if way != WAYS[0] else set()
                small = way[0] == "--target-events" and raw["events"] <= 20000
                found = list(differences(raw, reduced, exact, small))
                failed += len(found)
                print(os.path.basename(path), *way, f"{raw['events']} -> {reduced['events']} events,",
                      f"{len(raw['tracks'])} tracks,", f"{len(found)} differences")
                for line in found[:5]:
                    print("  ", line)
                if raw["events"] > 20000 and way[0] == "--target-events" and reduced["events"] * 10 > raw["events"]:
                    print("   over the target")
                    failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
