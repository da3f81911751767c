#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_daemon.py DRIVEREC JOB [--rounds N] [--seed N]: a daemon among hostile rings that change while it reads
them, and files that are none. It goes on, what it writes is well-formed, and the window of the good ring beside them
is complete. JOB is recorder_test_daemon, which runs as a job where TEST_JOB says so."""
import argparse
import fcntl
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from hostile_ring import STATE, Ring  # noqa: E402

RINGS, SECONDS, PAGE = 30, 3, 4096
CONFIG = '{ "window": {"pre": "1 s", "pre_min": "100 ms", "post": "300 ms"}, "collect": {"stall": []}, "series": ["*"] }'


class Round:
    def __init__(self, options, seed):
        self.options, self.seed, self.rng = options, seed, random.Random(seed)
        self.run = tempfile.mkdtemp(prefix="driverec-test-", dir="/dev/shm")
        self.folder = tempfile.mkdtemp()
        self.store, self.config = self.folder + "/store", self.folder + "/config.json"
        os.mkdir(self.run + "/rings")
        with open(self.config, "w", encoding="ascii") as file:
            file.write(CONFIG)
        self.env = dict(os.environ, DRIVEREC_RUN_DIR=self.run, HOME=self.folder)
        self.env.pop("DRIVEREC_CONFIG", None)
        self.held = []

    def fail(self, text):
        with open(self.folder + "/log", "rb") as file:
            sys.stdout.write(file.read()[-5000:].decode("latin1"))
        sys.exit(f"hostile_daemon: seed {self.seed}: {text}")

    def ask(self, *words):
        done = subprocess.run([self.options.driverec, *words, "--config", self.config, "--store", self.store],
                              env=self.env, capture_output=True, timeout=60, check=False)
        self.plain(" ".join(words), done.stdout)
        return done

    def plain(self, what, data):
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            self.fail(f"{what}: {error}")
        if any((c < " " and c not in "\t\n") or "\x7f" <= c < "\xa0" for c in text):
            self.fail(f"{what}: has control characters")
        return text

    def ring(self):
        ring = Ring(self.rng, time.monotonic_ns(), time.time_ns(), clock=self.rng.choice([1, 2, 3, 3, 3, 4]))
        ring.spoil(self.rng.choice([0, 0, 1, 1, 2, 4]))
        name = f"{self.run}/rings/h{len(self.held)}.{self.rng.getrandbits(64):016x}.ring"
        fd = os.open(name + ".new", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, ring.bytes)
        fcntl.lockf(fd, fcntl.LOCK_EX, 1, 0)
        os.rename(name + ".new", name)
        self.held.append((name, fd, ring))

    def no_rings(self):
        rings = self.run + "/rings/"
        os.symlink("/etc/passwd", rings + "link.0000000000000001.ring")
        os.mkfifo(rings + "fifo.0000000000000001.ring")
        os.mkdir(rings + "folder.0000000000000001.ring")
        os.link(self.held[0][0], rings + "second.0000000000000001.ring")
        with open(rings + "huge.0000000000000001.ring", "wb") as file:
            file.truncate(4 << 30)

    def change(self):
        name, fd, ring = self.rng.choice(self.held)
        way, rarely = self.rng.randrange(9), self.rng.random() < .05
        if way < 4:
            before = bytes(ring.bytes)
            ring.spoil(self.rng.choice([1, 8]))
            for at in range(0, len(before), PAGE):
                if before[at:at + PAGE] != ring.bytes[at:at + PAGE]:
                    os.pwrite(fd, ring.bytes[at:at + PAGE], at)
        elif way == 4:
            os.pwrite(fd, struct.pack("<Q", self.rng.choice([0, 5, 6, 2**64 - 1])), ring.at[STATE] + 128)
        elif way == 5 and rarely:
            os.ftruncate(fd, self.rng.randrange(len(ring.bytes) + (1 << 20)))
        elif way == 6 and rarely and os.path.exists(name):
            os.rename(name, self.rng.choice(self.held)[0])
        elif way == 7 and rarely and os.path.exists(name):
            os.unlink(name)
        elif way == 8 and rarely:
            self.ring()

    def torment(self, daemon):
        until, asked = time.monotonic() + SECONDS, False
        while time.monotonic() < until:
            if daemon.poll() is not None:
                self.fail(f"the daemon ended with {daemon.returncode}")
            for _ in range(20):
                self.change()
            time.sleep(.02)
            if not asked and until - time.monotonic() < SECONDS / 2:
                asked = True
                if self.ask("trigger", "--reason", "\x1b[31m\nevil", "--wait", "0s").returncode != 0:
                    self.fail("no incident could be asked for")
                self.ask("status")
                json.loads(self.ask("status", "--json").stdout)
        time.sleep(1)

    def check(self, pid):
        seen = 0
        for folder in os.listdir(self.store + "/incidents"):
            for name in ("report.md", "manifest.json"):
                with open(f"{self.store}/incidents/{folder}/{name}", "rb") as file:
                    text = self.plain(folder + "/" + name, file.read())
            for ring in json.loads(text)["rings"]:
                if int(ring["pid"]) == pid:
                    seen += 1
                    if "-manual-" in folder and not all(window["complete"] for window in ring["windows"]):
                        self.fail(f"{folder}: the good ring is not complete")
        if not seen:
            self.fail("no incident has the good ring")
        self.ask("incidents")

    def play(self):
        with open(self.folder + "/log", "wb") as log:
            job = subprocess.Popen([self.options.job], env=dict(self.env, TEST_JOB="runs"))
            time.sleep(.5)
            for _ in range(RINGS):
                self.ring()
            self.no_rings()
            daemon = subprocess.Popen([self.options.driverec, "run", "--config", self.config, "--store", self.store],
                                      env=self.env, stderr=log, stdout=log)
            try:
                self.torment(daemon)
                daemon.terminate()
                if daemon.wait(60) != 0:
                    self.fail(f"the daemon ended with {daemon.returncode}")
                self.check(job.pid)
            finally:
                daemon.kill()
                job.kill()
                job.wait()
                for _, fd, _ in self.held:
                    os.close(fd)
        with open(self.folder + "/log", "rb") as file:
            self.plain("the log", file.read())
        shutil.rmtree(self.run)
        shutil.rmtree(self.folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driverec")
    parser.add_argument("job")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.rounds):
        Round(options, seed).play()
        print(f"ok seed {seed}", flush=True)


main()
