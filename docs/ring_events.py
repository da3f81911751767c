#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the events of a ring (.ring) or window (.drec), a line each: slot, life, kind, name, start, dur."""
import struct
import sys

KINDS = ("", "span", "instant", "counter", "flow_begin", "flow_step", "flow_end", "begin", "end", "async_begin",
         "async_instant", "async_end", "mark", "meta", "other", "loss")


def events(data):
    if data[:8] != b"DRVREC\r\n" or struct.unpack_from("<H", data, 8)[0] != 1:
        raise ValueError("no ring or window file of version 1")
    n_sections, = struct.unpack_from("<I", data, 40)
    n_chunks, chunk_bytes = struct.unpack_from("<II", data, 128)
    at = {}  # section type -> (offset, bytes)
    for i in range(n_sections):
        kind, _, offset, size = struct.unpack_from("<IIQQ", data, 512 + 32 * i)
        at[kind] = (offset, size)

    def name(ident):
        _, size, offset = struct.unpack_from("<IIQ", data, at[7][0] + 16 * ident)
        begin = at[8][0] + offset
        return data[begin:begin + (size & 0x7fffffff)].decode(errors="replace") if ident and size >> 31 else ""

    chunks = []
    for i in range(n_chunks):
        commit, slot, life, number = struct.unpack_from("<QIIQ", data, at[4][0] + 64 * i)
        if commit & 0xffffffff:
            chunks.append((slot, life, number, commit >> 32 & 0xffff, commit & 0xffffffff, i))
    for slot, life, _, lap, size, i in sorted(chunks):
        pos = at[9][0] + i * chunk_bytes
        end = pos + min(size, chunk_bytes)
        while end - pos >= 32:
            words, kind, flags, own_lap, _, ident, _, start, dur = struct.unpack_from("<HBBHHIIQQ", data, pos)
            if words < 4 or 8 * words > end - pos or own_lap != lap or not 0 < kind < len(KINDS):
                break
            text = name(ident)
            if flags & 8:  # an inline name, after picoseconds and id where there are any
                place = pos + 32 + 8 * (flags >> 1 & 1) + 8 * (flags >> 2 & 1)
                length, = struct.unpack_from("<I", data, place)
                text = data[place + 4:place + 4 + length].decode(errors="replace")
            yield slot, life, KINDS[kind], text, start, dur
            pos += 8 * words


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        for event in events(file.read()):
            print(*event, sep="\t")
