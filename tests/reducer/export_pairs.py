#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every handed trace through each pair of formats and back, held against the original by oracle.py.

A .drec gives everything back. An XPlane gives every span and instant back where and when it was, and the rest is
what `driverec export --json` said it leaves out. Perfetto's format is only written (pftrace_schema.py reads it); made
of a .drec it says what the one made of the trace says.

usage: export_pairs.py DRIVEREC DATA_FOLDER     exit 77: the data is not there
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import pftrace_schema


class Driverec:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def export(self, source, name):
        """Writes it; returns the path and what was left out, by what it is."""
        out = os.path.join(self.folder, name)
        done = subprocess.run([self.path, "export", "--json", source, "-o", out], capture_output=True, text=True)
        if done.returncode or done.stderr:
            raise SystemExit(f"export {source} -o {name}: {done.returncode} {done.stderr}")
        said = json.loads(done.stdout)
        if os.path.getsize(out) != said["bytes"] and said["format"] != "drec":
            raise SystemExit(f"{name}: {said['bytes']} bytes were said")
        return out, {one["what"]: one["count"] for one in said["left_out"]}


def absolute(reading):
    """Tracks with times of the base added, and names as texts (they may be absent)."""
    base = int(reading["base_ns"] or 0) * 1000
    return {track: {**t, "first_ps": t["first_ps"] + base, "last_ps": t["last_ps"] + base}
            for track, t in reading["tracks"].items()}


def perfetto(path):
    """What a Perfetto trace says, without the numbers it has for names and tracks."""
    reading = pftrace_schema.Reading(path)
    lists = (reading.spans, reading.open, reading.instants, reading.samples)
    return [sorted(repr((reading.place(track), *rest)) for track, *rest in one) for one in lists] + [
        sorted(sorted(ends) for ends in reading.flows.values()), reading.clocks]


def differences(a, b):
    return [f"{track}: {a.get(track)} is not {b.get(track)}"
            for track in sorted(set(a) | set(b)) if a.get(track) != b.get(track)]


def chrome_trace(driverec, oracle, path):
    raw, wrong = oracle.read(path), []
    drec, left = driverec.export(path, "a.drec")
    if left:
        wrong.append(f".drec leaves out {left}")
    back = oracle.read(driverec.export(drec, "a.json.gz")[0])
    if back != raw:
        wrong.append(f"through .drec: {differences(raw['tracks'], back['tracks'])[:2] or (raw['kinds'], back['kinds'])}")
    direct, through = driverec.export(path, "b.pftrace")[0], driverec.export(drec, "c.pftrace")[0]
    if perfetto(direct) != perfetto(through):
        wrong.append("Perfetto traces of the trace and of its .drec differ")
    xplane, left = driverec.export(path, "d.xplane.pb")
    back = oracle.read(driverec.export(xplane, "e.json.gz")[0])
    wrong += [f"through XPlane: {line}" for line in differences(absolute(raw), absolute(back))[:2]]
    for kind in ("X", "i", "C"):
        if raw["kinds"].get(kind, 0) != back["kinds"].get(kind, 0):
            wrong.append(f"through XPlane: {raw['kinds']} became {back['kinds']}, left out {left}")
    gone = sum(raw["kinds"].get(kind, 0) - back["kinds"].get(kind, 0) for kind in "stf")
    if gone != sum(count for what, count in left.items() if "flow" in what):
        wrong.append(f"through XPlane: {gone} flow ends are gone, and it says {left}")
    # A .drec of the XPlane file says what the file says.
    drec = driverec.export(xplane, "f.drec")[0]
    through = oracle.read(driverec.export(drec, "g.json.gz")[0])
    if through != back:
        wrong.append("a .drec of the XPlane file differs from it")
    return wrong


def xplane_file(driverec, oracle, path):
    """XPlane to Chrome to XPlane, and through a .drec: the same planes, lines, events, stats, to the byte of JSON."""
    wrong = []
    first, left = driverec.export(path, "a.json")
    if left:
        wrong.append(f"Chrome leaves out {left}")
    again = driverec.export(driverec.export(first, "b.xplane.pb")[0], "c.json")[0]
    drec = driverec.export(driverec.export(path, "d.drec")[0], "e.json")[0]
    for name, other in (("Chrome", again), ("a .drec", drec)):
        if oracle.read(first) != oracle.read(other):
            wrong.append(f"through {name}: {differences(oracle.read(first)['tracks'], oracle.read(other)['tracks'])[:2]}")
        one, two = (sorted(json.dumps(event, sort_keys=True) for event in oracle.load(p)["traceEvents"])
                    for p in (first, other))
        if one != two:
            wrong.append(f"through {name}: {next((a, b) for a, b in zip(one, two) if a != b)}")
    driverec.export(path, "f.pftrace")
    return wrong


def main(path, data):
    if not os.path.exists(os.path.join(data, "oracle.py")):
        print("skipped: no handed data")
        return 77
    sys.path.insert(0, data)
    sys.dont_write_bytecode = True
    import oracle
    failed = checked = 0
    for trace in sorted(glob.glob(os.path.join(data, "traces", "*"))):
        name = os.path.basename(trace)
        if name.startswith("not_chrome"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            check = xplane_file if name.endswith(".xplane.pb") else chrome_trace
            wrong = check(Driverec(path, folder), oracle, trace)
        print(name, "DIFFERS" if wrong else "agrees", flush=True)
        for line in wrong:
            print("   ", line)
        failed += bool(wrong)
        checked += 1
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], os.environ.get("DRIVEREC_TEST_DATA") or sys.argv[2]))
