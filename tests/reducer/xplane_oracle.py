#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent reading of an XSpace: one line for each line of each plane that has events.

usage: xplane_oracle.py FILE
prints plane name, line name, events, first start, last end, sum of durations (all in ps), tab separated
"""
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            length = {1: 8, 5: 4}[wire]
            value, at = data[at:at + length], at + length
        yield tag >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def events_of(line, timestamp_ns):
    for number, value in fields(line):
        if number == 4:
            event = dict(fields(value))
            if 5 not in event:
                yield timestamp_ns * 1000 + signed(event.get(2, 0)), signed(event.get(3, 0))


def main(path):
    with open(path, "rb") as file:
        space = file.read()
    for number, plane in fields(space):
        if number != 1:
            continue
        plane_name = dict(f for f in fields(plane) if f[0] == 2).get(2, b"").decode()
        for number, line in fields(plane):
            if number != 3:
                continue
            head = dict(f for f in fields(line) if f[0] != 4)
            events = list(events_of(line, signed(head.get(3, 0))))
            if events:
                print(plane_name, head.get(2, b"").decode(), len(events), min(start for start, _ in events),
                      max(start + length for start, length in events), sum(length for _, length in events), sep="\t")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
