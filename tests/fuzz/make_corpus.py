#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the corpora: small cuts of the handed traces, byte for byte, and packed and made-up files.

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


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
