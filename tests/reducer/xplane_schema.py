#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a written XSpace against what XProf asks of one, with a reading of its own.

usage: xplane_schema.py FILE [drawn]     exit 1: something is wrong, and said
drawn: every plane that has events is one that the trace viewer draws
"""
import re
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from xplane_oracle import fields, signed

DRAWN = re.compile(r"/host:CPU|/device:(TPU|GPU|CUSTOM):")
KNOWN = {"space": {1, 2, 3, 4}, "plane": {1, 2, 3, 4, 5, 6}, "line": {1, 2, 3, 4, 9, 10, 11}, "event": {1, 2, 3, 4, 5},
         "stat": {1, 2, 3, 4, 5, 6, 7, 8}, "event metadata": {1, 2, 3, 4, 5, 6}, "stat metadata": {1, 2, 3}}
wrong = []


def say(*what):
    wrong.append(" ".join(str(w) for w in what))


def parse(kind, data):
    found = {}
    for number, value in fields(data):
        if number not in KNOWN[kind] and number < 900:  # those are unknown on purpose
            say("field", number, "in a", kind)
        found.setdefault(number, []).append(value)
    return found


def names(entries, kind):
    found = {}
    for entry in entries:
        entry = dict(fields(entry))
        value = parse(kind, entry[2])
        if entry[1] in found or value[1][0] != entry[1]:
            say(kind, "id", entry[1], "is not unique")
        found[entry[1]] = value
    return found


def check_stats(stats, known):
    for stat in stats:
        stat = parse("stat", stat)
        if stat[1][0] not in known:
            say("a stat of unknown id", stat[1][0])
        if 7 in stat and stat[7][0] not in known:
            say("a reference to unknown id", stat[7][0])


def check_nesting(line, spans):
    open_ends = []
    for start, length in sorted(spans, key=lambda s: (s[0], -s[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and open_ends[-1] < start + length:
            say("line", line, "overlaps at", start)
            return
        open_ends.append(start + length)


def check_line(line, events_known, stats_known):
    line = parse("line", line)
    name = line.get(2, [b""])[0].decode()
    timestamp = signed(line.get(3, [0])[0])
    spans = []
    for event in line.get(4, []):
        event = parse("event", event)
        if event[1][0] not in events_known:
            say("an event of unknown id", event[1][0])
        check_stats(event.get(4, []), stats_known)
        if 5 in event:
            continue
        start = timestamp * 1000 + signed(event[2][0])
        if not -1 << 63 <= start < 1 << 63:
            say("a time beyond 63 bits of ps in line", name)
        spans.append((start, signed(event.get(3, [0])[0])))
        numbers = [s for s in (parse("stat", s) for s in event.get(4, [])) if {2, 3, 4} & set(s)]
        if name == "_counters_" and len(numbers) != 1:
            say("a counter sample of", len(numbers), "numbers")
    check_nesting(name, spans)
    return signed(line.get(1, [0])[0]), len(spans)


def check_plane(plane, drawn):
    plane = parse("plane", plane)
    name = plane.get(2, [b""])[0].decode()
    events, stats = names(plane.get(4, []), "event metadata"), names(plane.get(5, []), "stat metadata")
    for metadata in events.values():
        check_stats(metadata.get(5, []), stats)
    check_stats(plane.get(6, []), stats)
    ids = [check_line(line, events, stats) for line in plane.get(3, [])]
    if len({line for line, _ in ids}) != len(ids):
        say("plane", name, "has a line id twice")
    if drawn and any(n for _, n in ids) and not DRAWN.match(name):
        say("plane", name, "is not drawn")
    return name, {value.get(2, [b""])[0].decode(errors="replace") for value in stats.values()}


def main(path, drawn):
    with open(path, "rb") as file:
        space = parse("space", file.read())
    planes = [check_plane(plane, drawn) for plane in space.get(1, [])]
    custom = [name for name, _ in planes if name.startswith("/device:CUSTOM:")]
    if len(set(custom)) != len(custom):
        say("two planes of one name")
    if 4 not in space:
        say("no hostname")
    reduced = any(name == "driverec.reduced" for name, _ in planes)
    for name, stats in planes:
        if DRAWN.match(name) and reduced and "group_id" not in stats:
            say("plane", name, "has no group_id")
    for what in wrong[:20]:
        print(what)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], len(sys.argv) == 3))
