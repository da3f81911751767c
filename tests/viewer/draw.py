#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a trace and its reduction in headless Chromium, side by side.

usage: draw.py DRIVEREC DATA_FOLDER [EVENTS]

A handed trace is repeated to EVENTS events (default 200,000; 2,000,000 is what docs/performance.md quotes) and
reduced to as many bins as the picture is wide. Both are drawn by draw.html; every pixel column of every thread
must be equally busy in both. Exit 77: no Chromium or no data.
"""
import functools
import gzip
import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from decimal import Decimal

TRACE = "v100_nccl_abs_time.pt.trace.json.gz"
WIDTH = 3840
TIMEOUT_S = 300


def tile(source, path, wanted):
    """Repeats the spans of a trace in time, exactly: times are integers of picoseconds."""
    with gzip.open(source, "rt") as f:
        root = json.load(f, parse_float=Decimal)
    events = [e for e in root["traceEvents"] if e["ph"] in "XM"]
    spans = [e for e in events if e["ph"] == "X"]
    first = min(e["ts"] for e in spans)
    length = max(e["ts"] + e["dur"] for e in spans) - first
    copies = max(1, wanted // len(events))
    with open(path, "w") as out:
        out.write('{"traceEvents":[\n')
        rows = [json.dumps(e, default=float) for e in events if e["ph"] == "M"]
        for copy in range(copies):
            for e in spans:
                moved = e["ts"] - first + copy * (length + 1)
                rows.append('{"ph":"X","name":%s,"cat":%s,"pid":%s,"tid":%s,"ts":%s,"dur":%s}' % (
                    json.dumps(e["name"]), json.dumps(e.get("cat", "")), json.dumps(e["pid"]),
                    json.dumps(e["tid"]), moved, e["dur"]))
        out.write(",\n".join(rows))
        out.write("\n]}\n")
    return copies * (length + 1)


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder, and takes what the page posts."""

    def __init__(self, folder):
        self.found = queue.Queue()
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=folder))


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.server.found.put(json.loads(body))


def draw(chromium, server, folder, name, length):
    query = urllib.parse.urlencode({"file": name, "from": 0, "length": length})
    browser = subprocess.Popen(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--remote-debugging-port=0", f"--user-data-dir={folder}/profile-{name}",
         f"http://127.0.0.1:{server.server_port}/draw.html?{query}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return server.found.get(timeout=TIMEOUT_S)
    except queue.Empty:
        return {"error": f"no picture after {TIMEOUT_S} s"}
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()


def say(name, size, found):
    if "error" in found:
        print(f"{name}: {size / 1e6:.1f} MB: {found['error']}")
        return
    print(f"{name}: {size / 1e6:.1f} MB, {found['events']:,} events, {found['tracks']} threads: "
          f"parsed in {found['parse_ms']:.0f} ms, drawn in {found['draw_ms']:.0f} ms")


def worst(raw, reduced):
    """The greatest difference of a column's busy share, in thousandths, and where."""
    found = (0, "")
    for track, columns in raw["busy"].items():
        for at, (a, b) in enumerate(zip(columns, reduced["busy"].get(track, [0] * WIDTH))):
            found = max(found, (abs(a - b), f"{track} column {at}"))
    return found


def main():
    driverec, data = sys.argv[1:3]
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 200_000
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    source = os.path.join(data, "traces", TRACE)
    if not chromium or not os.path.exists(source):
        print("skipped: there is no", "Chromium" if not chromium else source)
        return 77
    folder = tempfile.mkdtemp(prefix="driverec-draw-")
    try:
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "draw.html"), folder)
        raw, small = os.path.join(folder, "raw.json"), os.path.join(folder, "small.json")
        length = tile(source, raw, wanted)
        subprocess.run([driverec, "reduce", raw, "-o", small, "--bins", str(WIDTH)], check=True)
        server = Server(folder)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = [draw(chromium, server, folder, name, length) for name in ("raw.json", "small.json")]
        server.shutdown()
        say("raw", os.path.getsize(raw), found[0])
        say("reduced", os.path.getsize(small), found[1])
        if "error" in found[1]:
            return 1
        if "error" in found[0]:
            return 1 if wanted <= 200_000 else 0
        most, where = worst(*found)
        print(f"greatest difference of a column's busy share: {most / 10:.1f} % ({where or 'nowhere'})")
        # The picture's columns and the bins differ by rounding: a bin is whole nanoseconds, a column is not.
        return 0 if most <= 20 and found[1]["spans"] * 2 < found[0]["spans"] else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
