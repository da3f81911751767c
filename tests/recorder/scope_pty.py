#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scope_pty.py DRIVEREC: the live picture in a terminal of our own, while a demo job runs.

Presses keys, resizes, stops and goes on, and checks each time that the terminal gets back what it had, however the
command ends. The screen is followed by the few codes that are used; any other is a failure.
"""
import fcntl
import glob
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

DRIVEREC = os.path.abspath(sys.argv[1])
WAIT_S = 60
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
failures = []


def check(what, fine):
    print(("ok     " if fine else "FAILED ") + what, flush=True)
    if not fine:
        failures.append(what)


class Terminal:
    """A pseudo-terminal with driverec scope in it."""

    def __init__(self, arguments, width=100, height=32, **environment):
        self.output = b""
        self.alternate = False
        self.rest = b""
        self.frames = []
        self.master, self.slave = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(self.slave)
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG")}
        env.update({"TERM": "xterm", "LC_ALL": "C.UTF-8"}, **environment)
        self.child = subprocess.Popen([DRIVEREC, "scope", *arguments], stdin=self.slave, stdout=self.slave,
                                      stderr=subprocess.PIPE, env=env, start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, width, height):
        self.width, self.height = width, height
        self.screen = [""] * 400
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def follow(self, data):
        """The rows of the screen; scope writes whole lines, each from its begin."""
        self.output += data
        self.frames.append(time.monotonic())
        self.rest += data
        # Whole lines end with "blank the rest"; what is behind the last one waits for more.
        while True:
            found = re.match(rb"(?:\x1b\[\?(?:1049|25|7)[hl]|\x1b\[0m|\x1b\[2J)", self.rest)
            if found:
                if found.group() == ENTER:
                    self.alternate = True
                elif found.group() == LEAVE:
                    self.alternate = False
                elif found.group() == b"\x1b[2J":
                    self.screen = [""] * 400
                self.rest = self.rest[found.end():]
                continue
            found = re.match(rb"\x1b\[(\d+);1H(.*?)\x1b\[K", self.rest, re.S)
            if not found:
                return
            text = re.sub(rb"\x1b\[0(?:;\d+)?m", b"", found.group(2))
            if re.search(rb"[\x00-\x1f\x7f]", text):
                raise SystemExit("a line with a control character: %r" % text)
            self.screen[int(found.group(1)) - 1] = text.decode()
            self.rest = self.rest[found.end():]

    def read(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.follow(os.read(self.master, 1 << 16))
                except OSError:
                    return

    def until(self, condition, seconds=WAIT_S):
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            self.read(0.05)
        return bool(condition())

    def shows(self, pattern):
        return re.search(pattern, "\n".join(self.screen[:self.height]))

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        """The exit status once it has ended, and what is left of its output."""
        end = time.monotonic() + WAIT_S
        while self.child.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read(0.2)
        errors = self.child.stderr.read().decode() if self.child.poll() is not None else ""
        return self.child.poll(), errors

    def restored(self):
        return (not self.alternate and termios.tcgetattr(self.slave) == self.before
                and self.output.rstrip().endswith(LEAVE) and b"\x1b[?25h" in self.output and b"\x1b[?7h" in self.output)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.master)
        os.close(self.slave)


def find_run_dir(store, before):
    """The demo has a run directory of its own: the new one whose daemon has our store."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            name = open(os.path.join(store, "id")).read().strip()
        except OSError:
            name = ""
        for folder in set(glob.glob("/dev/shm/driverec-demo-*") + glob.glob("/tmp/driverec-demo-*")) - before:
            if name and glob.glob(os.path.join(folder, "daemons", name + "*.sock")):
                return folder
        time.sleep(0.05)
    return None


def while_it_runs(store, run_dir):
    place = ["--store", store, "--run-dir", run_dir]
    t = Terminal(place + ["--span", "10s"])
    check("it draws", t.until(lambda: t.shows(r"driverec scope .*alive")))
    check("and says that it is live", t.until(lambda: t.shows(r" live$|live\n")))
    check("the terminal is in its other screen, without echo",
          t.alternate and not termios.tcgetattr(t.slave)[3] & (termios.ECHO | termios.ICANON))
    check("a track of the job is there", t.until(lambda: t.shows(r"rank0 driverec +.*\d+ %")))
    check("step times are there", t.until(lambda: t.shows("[\u2581-\u2588]{3}\n(.*\n)*incidents")))
    check("the limits are learned", t.until(lambda: t.shows(r"usually .*critical from")))
    status = json.loads(subprocess.run([DRIVEREC, "status", "--json", *place], capture_output=True, check=True).stdout)
    ring = status["rings"][0]
    check("the status has the same limits",
          0 < int(ring["step_median_ns"]) < int(ring["step_ceiling_ns"]) <= int(ring["step_warn_ns"])
          <= int(ring["step_critical_ns"]))

    seen = json.loads(subprocess.run([DRIVEREC, "scope", "--json", *place], capture_output=True, check=True).stdout)
    check("the picture is hardly older than a second (%s ns)" % (int(seen["now_ns"]) - int(seen["picture_ns"])),
          seen["live"] and int(seen["now_ns"]) - int(seen["picture_ns"]) < 4e9)

    t.resize(60, 20)
    check("it is drawn anew in another size", t.until(lambda: t.shows(r"(?m)^q quit  \? help")))
    t.resize(30, 8)
    check("one too small is said", t.until(lambda: t.shows("30x8 is too small")))
    t.resize(100, 32)
    check("and one that is large enough drawn", t.until(lambda: t.shows("space pause")))

    t.press(b"?")
    check("? helps", t.until(lambda: t.shows("back and on in time")))
    t.press(b"?")
    check("and no more", t.until(lambda: not t.shows("back and on in time") and t.shows("incidents")))
    column = lambda: (m := t.shows(r"one column is (.*?)  ")) and m.group(1)
    was = column()
    t.press(b"-")
    check("- zooms out", t.until(lambda: column() and column() != was))
    t.press(b"+")
    check("+ zooms in", t.until(lambda: column() == was))
    t.press(b"\x1b[D")
    check("the left arrow goes back", t.until(lambda: t.shows("live, scrolled")))
    t.press(b"n")
    check("n comes back", t.until(lambda: not t.shows("live, scrolled")))
    t.press(b" ")
    check("space pauses", t.until(lambda: t.shows("paused")))
    t.read(0.3)
    t.frames.clear()
    t.read(1.5)
    check("nothing is drawn while paused", not t.frames)
    t.press(b" ")
    check("and goes on", t.until(lambda: not t.shows("paused")))
    check("an incident is marked", t.until(lambda: t.shows("(?m)^incidents.*\u25b2") and t.shows("[0-9a-f]{4} late")))
    check("the bad step lies beneath the good one", t.until(lambda: t.shows(r"good +\S+.*\n.* bad ")))
    t.press(b"xl\x1b[15~hzz" * 50)
    t.frames.clear()
    t.read(2)
    check("many keys make four frames a second", len(t.frames) <= 10)

    t.child.send_signal(signal.SIGTSTP)
    check("Ctrl-Z gives the terminal back", t.until(lambda: not t.alternate) and t.restored())
    os.kill(t.child.pid, signal.SIGCONT)
    check("and going on takes it again", t.until(lambda: t.alternate and t.shows("incidents")))
    t.press(b"q")
    status, errors = t.end()
    check("q ends it with 0 and says nothing: %s %s" % (status, errors), status == 0 and not errors)
    check("the terminal is as it was", t.restored())
    t.close()


def how_it_ends(store):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT, signal.SIGSEGV):
        t = Terminal(["--store", store])
        check("it draws what a daemon has left", t.until(lambda: t.shows("not live: no daemon is running")))
        t.child.send_signal(number)
        status, _ = t.end()
        # Under the address sanitizer a fault ends with its report instead.
        check("%s ends it (%s)" % (number.name, status), status == -number or (number == signal.SIGSEGV and status))
        check("and the terminal is as it was", t.restored())
        t.close()
    t = Terminal(["--store", store])
    t.until(lambda: t.shows("not live"))
    for i in range(200):
        # Nobody reads: the terminal is full before long.
        t.resize(500 + i % 2, 190)
        time.sleep(0.02)
    t.child.send_signal(signal.SIGTERM)
    try:
        status = t.child.wait(10)
    except subprocess.TimeoutExpired:
        status = None
    check("SIGTERM ends it in front of a terminal that takes nothing (%s)" % status, status == -signal.SIGTERM)
    check("whose modes are as they were", termios.tcgetattr(t.slave) == t.before)
    t.close()
    t = Terminal(["--store", store])
    t.until(lambda: t.shows("not live"))
    os.close(t.slave)
    os.close(t.master)
    status = t.child.wait(WAIT_S)
    check("a terminal that goes away ends it (%s)" % status, status in (0, -signal.SIGHUP))


def how_it_looks(store):
    t = Terminal(["--store", store], NO_COLOR="1")
    check("NO_COLOR", t.until(lambda: t.shows("incidents")) and not re.search(rb"\x1b\[0;\d", t.output))
    t.press(b"q")
    t.end()
    t.close()
    t = Terminal(["--store", store], LC_ALL="C")
    t.until(lambda: t.shows("incidents"))
    check("a locale without UTF-8", max(t.output) < 0x80)
    t.press(b"q")
    t.end()
    t.close()
    t = Terminal(["--store", store], TERM="dumb")
    status, _ = t.end()
    check("a dumb terminal gets one frame", status == 0 and b"\x1b" not in t.output and b"incidents" in t.output)
    t.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "demo")
        before = set(glob.glob("/dev/shm/driverec-demo-*") + glob.glob("/tmp/driverec-demo-*"))
        demo = subprocess.Popen([DRIVEREC, "demo", "--dir", store], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            run_dir = find_run_dir(store, before)
            check("a demo job runs", run_dir is not None)
            while_it_runs(store, run_dir)
        finally:
            # Whether it caught both is the demo's own test.
            print(demo.communicate(timeout=2 * WAIT_S)[0].decode(), end="")
        how_it_ends(store)
        how_it_looks(store)
    print("%d failed" % len(failures))
    return 1 if failures else 0


sys.exit(main())
