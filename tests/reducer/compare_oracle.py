#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `driverec inspect --json` against the independent oracle.py on every handed Chrome trace.

usage: compare_oracle.py DRIVEREC DATA_FOLDER     exit 77: the data is not there
"""
import glob
import json
import os
import subprocess
import sys


def main(driverec, data):
    oracle = os.path.join(data, "oracle.py")
    if not os.path.exists(oracle):
        print("skipped: no handed data")
        return 77
    failed = 0
    paths = sorted(glob.glob(os.path.join(data, "traces", "*.json.gz")))
    for path in paths:
        name = os.path.basename(path)
        ours = subprocess.run([driverec, "inspect", "--json", path], capture_output=True, text=True)
        if name.startswith("not_chrome"):
            good = ours.returncode == 1 and "rocprofiler" in ours.stderr and not ours.stdout
        else:
            theirs = subprocess.run([sys.executable, oracle, path], capture_output=True, text=True, check=True)
            good = ours.returncode == 0 and json.loads(ours.stdout) == json.loads(theirs.stdout)
        print(name, "agrees" if good else "DIFFERS", ours.stderr.strip())
        failed += not good
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], os.environ.get("DRIVEREC_TEST_DATA") or sys.argv[2]))
