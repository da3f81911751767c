#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds every handed Chrome trace through a ring of the daemon, exports the ring and holds the result against the
original: `driverec inspect` against the independent oracle.py, and every event's args byte for byte.

usage: feed_and_export.py DRIVEREC DATA_FOLDER     exit 77: the data is not there
"""
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile


def args_of(text):
    """Every event's args as written, in a canonical order: they are the longest texts of a trace."""
    decoder = json.JSONDecoder()
    root = json.loads(text)
    events = root if isinstance(root, list) else root["traceEvents"]
    at = text.index("[") if isinstance(root, list) else text.index("[", text.index('"traceEvents"'))
    found = []
    for _ in events:
        at = text.index("{", at)
        _, end = decoder.raw_decode(text, at)
        found.append(member_of(decoder, text, at, end))
        at = end
    return sorted(found)


def member_of(decoder, text, at, end):
    """The text of the object's own member "args", or an empty one."""
    at += 1
    while at < end:
        at = text.index('"', at)
        key, at = decoder.raw_decode(text, at)
        at = text.index(":", at) + 1
        while text[at] in " \t\r\n":
            at += 1
        _, after = decoder.raw_decode(text, at)
        if key == "args":
            return text[at:after]
        at = after
        while at < end and text[at] in " \t\r\n":
            at += 1
        if text[at] == "}":
            return ""
        at += 1
    return ""


def read(path):
    with gzip.open(path, "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(*command, "\n", done.stdout, done.stderr)
    return done


def check(driverec, oracle, path, folder):
    """What is wrong with the trace after its way through a ring, or None."""
    run_dir, store, out = (os.path.join(folder, name) for name in ("run", "store", "out.json.gz"))
    os.mkdir(run_dir)
    if run(driverec, "run", "--run-dir", run_dir, "--store", store, "--feed", path).returncode != 0:
        return "feeding failed"
    rings = glob.glob(os.path.join(run_dir, "rings", "*.ring"))
    if len(rings) != 1:
        return f"{len(rings)} rings are left, not one"
    exported = run(driverec, "export", rings[0], "-o", out)
    if exported.returncode != 0 or exported.stderr:
        return "export failed: " + exported.stderr
    ours = json.loads(run(driverec, "inspect", "--json", out).stdout)
    theirs = json.loads(subprocess.run([sys.executable, oracle, path], capture_output=True, check=True).stdout)
    ours["file"] = theirs["file"]
    if ours != theirs:
        return "other figures than the oracle's: " + ", ".join(k for k in theirs if ours.get(k) != theirs[k])
    if args_of(read(path)) != args_of(read(out)):
        return "other args"
    return None


def main(driverec, data):
    oracle = os.path.join(data, "oracle.py")
    paths = sorted(glob.glob(os.path.join(data, "traces", "*.trace.json.gz")))
    if not os.path.exists(oracle) or not paths:
        print("skipped: no handed data")
        return 77
    failed = 0
    for path in paths:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            wrong = check(driverec, oracle, path, folder)
        print(os.path.basename(path), wrong or "came back")
        failed += wrong is not None
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        no_trace = os.path.join(data, "traces", "not_chrome_rocprof.json.gz")
        os.mkdir(os.path.join(folder, "run"))
        refused = subprocess.run([driverec, "run", "--run-dir", os.path.join(folder, "run"), "--store",
                                  os.path.join(folder, "store"), "--feed", no_trace], capture_output=True, text=True)
        good = refused.returncode == 1 and "rocprofiler" in refused.stderr
        print(os.path.basename(no_trace), "refused" if good else "NOT REFUSED: " + refused.stderr)
        failed += not good
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], os.environ.get("DRIVEREC_TEST_DATA") or sys.argv[2]))
