#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the corpora: small cuts of the handed traces, byte for byte, and packed and made-up files,
and programs of calls and events.

usage: make_corpus.py TRACES_FOLDER CORPUS_FOLDER

A cut keeps what stands before and after the events (long members left out) and, of the events, the first ones of
each phase and category.
"""
import glob
import gzip
import json
import os
import subprocess
import sys

EVENT_MAX, MEMBER_MAX, EACH, CUT_MAX = 700, 300, 2, 5000
SPACE = " \t\r\n,"


def values(text, at):
    """Yields (begin, end, value) of the values of the array whose `[` is before `at`; then where it ends."""
    decoder = json.JSONDecoder(strict=False)
    while True:
        while text[at] in SPACE:
            at += 1
        if text[at] == "]":
            return
        value, end = decoder.raw_decode(text, at)
        yield at, end, value
        at = end


def members(text, at):
    """Yields (key, value's begin, end) of the object whose `{` is before `at`."""
    decoder = json.JSONDecoder(strict=False)
    while True:
        while text[at] in SPACE:
            at += 1
        if text[at] == "}":
            return
        key, at = decoder.raw_decode(text, at)
        while text[at] in SPACE + ":":
            at += 1
        _, end = decoder.raw_decode(text, at)
        yield key, at, end
        at = end


def cut_events(text, at):
    seen, kept, used = {}, [], 0
    for begin, end, event in values(text, at):
        kind = (event.get("ph"), event.get("cat"), event.get("name") if event.get("ph") == "M" else "",
                type(event.get("tid")).__name__, "Collective name" in event.get("args", {}))
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= EACH and end - begin <= EVENT_MAX and used < CUT_MAX:
            kept.append(text[begin:end])
            used += end - begin
    return ",\n".join(kept)


def cut(text):
    first = len(text) - len(text.lstrip())
    if text[first] == "[":
        return "[" + cut_events(text, first + 1) + "]\n"
    parts = []
    for key, begin, end in members(text, first + 1):
        if key == "traceEvents":
            parts.append('"traceEvents": [' + cut_events(text, begin + 1) + "]")
        elif end - begin <= MEMBER_MAX:
            parts.append(json.dumps(key) + ": " + text[begin:end])
    return "{" + ",\n".join(parts) + "}\n"


def fields(data):
    """Yields (field number, wire type, begin of the value, begin and end of the field) of a protobuf message."""
    at = 0
    while at < len(data):
        begin = at
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value = at
            _, at = varint(data, at)
        elif wire == 2:
            size, value = varint(data, at)
            at = value + size
        else:
            value = at
            at += 8 if wire == 1 else 4
        yield key >> 3, wire, value, begin, at


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def message(number, data):
    def number_of(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out + bytes([value]))
    return number_of(number << 3 | 2) + number_of(len(data)) + data


def cut_repeated(data, most, cuts):
    """The message with at most `most[n]` fields n of at most EVENT_MAX bytes, each cut by cuts[n]."""
    out, seen = b"", {}
    for number, wire, value, begin, end in fields(data):
        if number in cuts:
            part = message(number, cuts[number](data[value:end]))
        else:
            part = data[begin:end]
        seen[number] = seen.get(number, 0) + 1
        if seen[number] <= most.get(number, 1 << 30) and (number in cuts or len(part) <= EVENT_MAX):
            out += part
    return out


def cut_xspace(data):
    """Some planes, of each some lines, events and names; names that no event uses any more stay as they are."""
    line = lambda data: cut_repeated(data, {4: 3}, {})
    plane = lambda data: cut_repeated(data, {3: 2, 4: 12, 5: 24}, {3: line})
    return cut_repeated(data, {1: 6}, {1: plane})


def put(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def zstd(data):
    return subprocess.run(["zstd", "-q", "-19", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def gz(data):
    return gzip.compress(data, 9, mtime=0)


STEP, PHASE, SPAN, COUNTER, TRACK, BUSY = range(6)
NAMES = ["step", "load", "load@eval", "phase:eval", "phase:eval/inner", "power", "duty_cycle", "queue", "busy"]
NOW, TRAIN, EVAL = b"\0", b"\0", bytes([164])


def length(ns):
    """A length as fuzz_triggers.c reads it: how far a byte is shifted, and the byte."""
    shift = max(0, ns.bit_length() - 8)
    return bytes([shift, ns >> shift])


def key(role, name, source=0, job=True):
    return bytes([role + 6 * NAMES.index(name), source % 5 | (0x20 if job else 0)])


def burst(what, count, ns, phase=TRAIN, spread=1, odd=255, value=100, opens=True):
    return b"\2" + what + bytes([count - 1, spread | (0x80 if opens else 0), odd]) + length(ns) + phase + bytes([value])


def opened(what, phase=TRAIN):
    return b"\4" + what + NOW + b"\0" + phase


def tick(ns, count=16):
    return b"\14\1" + length(ns) + bytes([count - 1])


def programs():
    """Programs of calls for fuzz_triggers.c: what jobs do, and what they should not."""
    step, load, power = key(STEP, "step"), key(SPAN, "load"), key(COUNTER, "power")
    restart, settled, back = b"\16", b"\13", b"\14\0" + length(3600 * 10**9)
    steady = b"\0" + burst(step, 40, 10**9)
    yield "spikes", steady + burst(step, 20, 10**9, odd=7, opens=False) + restart + burst(step, 20, 10**9, odd=11, opens=False)
    yield "shift", steady + burst(step, 40, 10**9) + restart + burst(step, 30, 1200 * 10**6) + restart
    yield "stall", steady + opened(step) + tick(10**9) + restart + tick(10**10) + burst(step, 3, 10**9)
    yield "again", steady + b"\12" + NOW * 2 + opened(step) + tick(10**10) + restart + tick(10**11)
    phase = key(PHASE, "phase:eval")
    yield "phases", steady + opened(phase) + burst(step, 5, 10**9, EVAL) + restart + burst(phase, 1, 10**10) + tick(10**9)
    spans = b"".join(opened(load) + burst(step, 1, 10**9) + burst(load, 2, 10**8, opens=False) for _ in range(12))
    yield "spans", steady + spans + restart + opened(load) + tick(10**10) + spans
    track = b"".join(b"\6" + key(TRACK, "load") + NOW + tick(3 * 10**8, 1) for _ in range(24))
    yield "track", steady + track + restart + tick(10**9) + track
    idle = b"".join(burst(step, 1, 10**9) + b"\0" + power + NOW + b"\0\0\0\0" + bytes([value]) for value in [100] * 20 + [3] * 20)
    yield "idle", b"\0" + idle + restart + idle
    peers = b"".join(b"\0" + key(BUSY, "busy", rank) + NOW + length((2 if rank == 3 else 1) * 10**8)
                     + bytes([0 if rank == 0 else 150]) + TRAIN + b"\0" for rank in range(5)) + tick(10**8, 1)
    yield "peers", b"\0" + peers * 9 + restart + peers * 9
    rules = b"".join(b"\15\xff" + bytes([rule]) for rule in range(7))
    yield "rules", b"\1\3\20" + rules + burst(load, 20, 10**9, odd=3) + restart + b"\15\xff\3" + burst(load, 9, 10**9)
    yield "clock", steady + back + burst(step, 9, 10**9, odd=4) + restart + back + opened(step) + tick(10**10) + back
    storm = b"".join(b"\10" + bytes([hand, source]) + NOW * 2 for hand in (0, 1) for source in range(5))
    yield "storm", steady + storm * 4 + restart + settled + storm + b"\11\0" + b"\11\1"
    for number, at in enumerate(range(0, 6000, 600)):
        changes = b"".join((at + 77 * i).to_bytes(3, "little") + bytes([255 - 85 * i]) for i in range(4))
        yield f"damaged{number}", steady + opened(step) + b"\17\3" + changes + tick(10**10) + burst(step, 9, 10**9)


SPANS, MARKS, COUNTERS = 0, 2, 3
STEP_BEGIN, STEP_END, PHASE_BEGIN, PHASE_END = range(4)
TEXTS = ["step", "load", "next", "ProfilerStep", "ProfilerStep8", "eval_step", "save", "nccl", "matmul", "power", "duty",
         "train", "eval", "checkpoint"]


def fed(kind, name, track=0, value=100, mark=0):
    """An event as fuzz_series.c reads it, without its times."""
    which = next(byte for byte in range(256) if byte % 5 == kind and byte // 8 % 5 == mark)
    return bytes([which, TEXTS.index(name) + 1, track, value])


def events(what, count, ns, source=0, how=63):
    return b"\3" + bytes([0x40 | source]) + what + bytes([count - 1, how]) + length(ns)


def stack(*opened, source=0):
    """(what, name, ns ago): 0 a span, 1 a step, 2 a phase."""
    told = b"".join(bytes([what, TEXTS.index(name) + 1, 128]) + length(ago) + b"\x96" for what, name, ago in opened)
    return b"\5" + bytes([0x40 | source, len(opened)]) + told


def feeds():
    """Programs of events for fuzz_series.c."""
    restart, second = b"\12", b"\7" + length(10**9)
    step = fed(MARKS, "train", mark=STEP_END)
    steady = events(step, 40, 10**9)
    yield "marks", steady + restart + events(step, 20, 10**9, how=5) + stack((1, "train", 0)) + second + b"\17" + restart + second + b"\2"
    yield "spans", steady + events(fed(SPANS, "load"), 30, 10**8) + stack((1, "train", 10**9), (0, "load", 10**8)) + restart + second + b"\17"
    yield "profiler", events(fed(SPANS, "ProfilerStep"), 40, 10**9) + restart + events(fed(SPANS, "ProfilerStep8"), 20, 10**9, how=7)
    phase = fed(MARKS, "eval", mark=PHASE_BEGIN), fed(MARKS, "eval", mark=PHASE_END)
    yield "phases", steady + events(phase[0], 1, 10**9) + second + b"\4" + restart + events(phase[1], 1, 10**10) + events(step, 9, 10**9)
    yield "unmarked", steady + stack((0, "save", 10**9)) + second + b"\17" + restart + stack() + events(fed(SPANS, "save"), 9, 10**10)
    yield "counters", b"".join(events(step, 1, 10**9) + events(fed(COUNTERS, "power", value=value), 1, 10**6)
                               for value in [100] * 20 + [3] * 15) + restart
    ranks = b"".join(events(fed(SPANS, "matmul"), 1, 10**8 * (1 + (rank == 2)), rank)
                     + events(fed(MARKS, "train", mark=STEP_END), 1, 10**8, rank) for rank in range(4))
    yield "ranks", ranks * 12 + restart + ranks * 12
    streams = events(fed(SPANS, "matmul", 6), 2, 10**8) + events(fed(SPANS, "nccl", 7), 2, 10**8) + events(step, 1, 10**9)
    yield "streams", streams * 10 + restart + streams * 10
    yield "ends", steady + b"\11\x40" + steady + restart + b"\11\x40"
    for number, at in enumerate(range(0, 240, 24)):
        changes = b"".join(bytes([at + 9 * i, 0, 255 - 85 * i]) for i in range(4))
        yield f"damaged{number}", steady + stack((1, "train", 10**9), (0, "load", 1)) + b"\13\3" + changes + steady + second + b"\17"


def main(traces, corpus):
    chrome, packed = os.path.join(corpus, "chrome"), os.path.join(corpus, "input")
    for path in sorted(glob.glob(os.path.join(traces, "*.json.gz"))):
        name = os.path.basename(path).replace(".json.gz", ".json")
        with gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(8 << 20) if name.startswith("not_chrome") else file.read()
        put(chrome, name, text[:600] if name.startswith("not_chrome") else cut(text))
    whole = open(os.path.join(chrome, "mi250_train.pt.trace.json"), "rb").read()
    half = len(whole) // 2
    put(packed, "plain.json", whole)
    put(packed, "one.gz", gz(whole))
    put(packed, "named.gz", b"\x1f\x8b\x08\x1c\0\0\0\0\2\3\5\0ab\1\0xa.json\0remark\0" + gz(whole)[10:])
    put(packed, "stored.gz", gzip.compress(whole[:2000], 0, mtime=0))
    put(packed, "several.gz", gz(whole[:half]) + gz(b"") + gz(whole[half:half + 1]) + gz(whole[half + 1:]))
    put(packed, "padded.gz", gz(whole[:900]) + bytes(700))
    put(packed, "garbage_behind.gz", gz(whole[:900]) + b"garbage")
    put(packed, "wrong_crc.gz", gz(whole[:900])[:-8] + b"\1\2\3\4" + gz(whole[:900])[-4:])
    put(packed, "one.zst", zstd(whole))
    put(packed, "several.zst", zstd(whole[:half]) + zstd(b"") + zstd(whole[half:]))
    put(packed, "skippable.zst", zstd(whole[:900]) + b"\x50\x2a\x4d\x18\4\0\0\0skip" + zstd(whole[900:1200]))
    put(packed, "garbage_behind.zst", zstd(whole[:900]) + b"garbage")
    put(packed, "bomb.gz", gz(bytes(200 << 10)))
    put(packed, "empty", b"")
    for path in sorted(glob.glob(os.path.join(traces, "*.xplane.pb"))):
        with open(path, "rb") as file:
            space = cut_xspace(file.read())
        put(os.path.join(corpus, "xplane"), os.path.basename(path), space)
        put(os.path.join(corpus, "xplane"), os.path.basename(path) + ".small", cut_repeated(space, {1: 2}, {}))
    drec = os.path.join(corpus, "drec")
    for how, name in enumerate(["job_ring", "fed_ring", "job_window", "fed_window"]):
        put(drec, name, bytes([how]))
        put(drec, name + "_cut", bytes([how | 4]) + (70000 * how + 4000).to_bytes(4, "little"))
        changes = b"".join(at.to_bytes(4, "little") + b"\1\xff\xff" for at in range(0, 4096, 256))
        put(drec, name + "_header", bytes([how]) + changes)
    for name, program in programs():
        put(os.path.join(corpus, "triggers"), name, program)
    for name, program in feeds():
        put(os.path.join(corpus, "series"), name, program)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
