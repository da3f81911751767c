# SPDX-License-Identifier: Apache-2.0
"""A small ring, made by hand after docs/ring-format.md, and ways to spoil it. hostile_daemon.py uses it."""
import random
import struct

PAGE = 4096
EXTREMES = [0, 1, 2, 7, 255, 4095, 4096, 65535, 65536, 2**24 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
            2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
NAMES = [b"load", b"\x1b[2J\x1b[31mred", b"two\nlines\r\x00 and more", b"\x9b31m\xff\xfe\xc0\x80", b"a|b|c `x` <b>",
         "\u202egnp.exe \u2066\u200f".encode(), b"\x7f" * 40, b"-o/etc/passwd", b"$(id);`id`|id", b"{pid} {name} %s%n",
         b"", b"x" * 3000, "\u0085\u009b".encode(), b"\xed\xa0\x80 surrogate"]
STATE, PINS, ORDER, CHUNKS, SLOTS, ANCHORS, DICT_INDEX, DICT, DATA = range(1, 10)


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return bytes.fromhex(file.read().strip().replace("-", ""))


class Ring:
    """What a producer with one thread would have written: steps, spans, counters and one open span."""

    def __init__(self, rng, now_ns, real_ns, n_chunks=64, chunk_bytes=8192, n_slots=4, clock=3):
        self.rng = rng
        ids, dict_bytes, anchors = 64, 65536, 16
        sizes = [(STATE, PAGE), (PINS, 128 * 4), (ORDER, 8 * n_chunks), (CHUNKS, 64 * n_chunks),
                 (SLOTS, 1024 * n_slots), (ANCHORS, 64 * anchors), (DICT_INDEX, 16 * ids), (DICT, dict_bytes),
                 (DATA, n_chunks * chunk_bytes)]
        self.at, at = {}, PAGE
        for kind, size in sizes:
            self.at[kind] = at
            at += (size + PAGE - 1) // PAGE * PAGE
        self.bytes = bytearray(at)
        self.chunk_bytes, self.n_chunks, self.ids = chunk_bytes, n_chunks, ids
        self.id = bytes(rng.randrange(256) for _ in range(16))
        header = struct.pack("<8sHHIQQQII16s16sQQQIIqqIIIIIII", b"DRVREC\r\n", 1, 0, PAGE, 0, 0, at, len(sizes), 1,
                             self.id, boot_id(), 1, 1, 1, rng.choice([0, 1, 2, 2**32 - 1]), clock, now_ns - 10**9,
                             real_ns - 10**9, n_chunks, chunk_bytes, n_slots, 4, ids, anchors, 0)
        self.bytes[:len(header)] = header
        for offset in (192, 256, 320):
            self.put(offset, rng.choice(NAMES)[:63])
        for i, (kind, size) in enumerate(sizes):
            self.put(512 + 32 * i, struct.pack("<IIQQII", kind, 0, self.at[kind], size, 0, 0))
        self.fill(now_ns, real_ns)

    def put(self, offset, data):
        self.bytes[offset:offset + len(data)] = data

    def text(self, number, kind, data, offset):
        self.put(self.at[DICT] + offset, data)
        self.put(self.at[DICT_INDEX] + 16 * number, struct.pack("<IIQ", kind, len(data) | 1 << 31, offset))
        return offset + len(data)

    def event(self, kind, category, name, start, value, more=b"", flags=0, depth=1):
        words = (32 + len(more)) // 8
        return struct.pack("<HBBHHII", words, kind, flags, 1, category, name, 1 | depth << 24) + \
            struct.pack("<QQ", start % 2**64, value % 2**64) + more

    def fill(self, now_ns, real_ns):
        rng, offset = self.rng, 0
        group, name = rng.choice(NAMES)[:200], rng.choice(NAMES)[:200]
        offset = self.text(1, 3, struct.pack("<IIII", 1, len(group), len(name), 7) + group + name, offset)
        for i in range(2, 2 + len(NAMES)):
            offset = self.text(i, 1, NAMES[i - 2], offset)
        offset = self.text(40, 4, struct.pack("<I", 1) + rng.choice(NAMES)[:200], offset)
        self.put(self.at[ANCHORS], struct.pack("<QQqqqI", 1, now_ns - 10**9, now_ns - 10**9, real_ns - 10**9, 0, 0))
        self.put(self.at[ANCHORS] + 64, struct.pack("<QQqqqI", 2, now_ns, now_ns, real_ns, 0, 0))
        events, total = b"", 0
        for step in range(20):
            start = now_ns - 10**9 + step * 40 * 10**6
            number = struct.pack("<Q", step)
            some = rng.randrange(2, 2 + len(NAMES))
            inline = rng.choice(NAMES)[:500]
            inline = struct.pack("<I", len(inline)) + inline
            inline += b"\0" * (-len(inline) % 8)
            for one in (self.event(12, 1, 0, start, 0, number, 4), self.event(1, 0, some, start, 10**7),
                        self.event(3, 0, some, start, struct.unpack("<Q", struct.pack("<d", rng.choice(
                            [1.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324])))[0]),
                        self.event(1, 0, 0, start, 10**6, inline, 8),
                        self.event(12, 2, 0, start, 39 * 10**6, number, 4)):
                events += one
                total += 1
        self.put(self.at[DATA], events)
        self.put(self.at[CHUNKS], struct.pack("<QIIQQQQQII", 1 << 32 | len(events), 0, 1, 0, 0, 0, now_ns, 0, 0, 0))
        self.put(self.at[ORDER], struct.pack("<Q", 3 << 62 | 1 << 12))
        for i in range(1, self.n_chunks):
            self.put(self.at[ORDER] + 8 * i, struct.pack("<Q", (i + 1) << 12 | i))
        self.put(self.at[STATE], struct.pack("<Q", self.n_chunks + 1))
        self.put(self.at[STATE] + 192, struct.pack("<Q", 1))
        self.put(self.at[STATE] + 256, struct.pack("<QQ", self.ids, 0))
        self.put(self.at[STATE] + 320, struct.pack("<Q", offset))
        self.put(self.at[STATE] + 384, struct.pack("<QQ", 2**63, 2))
        self.put(self.at[SLOTS], struct.pack("<QQIIII", 1 << 32 | 1, 3 << 32 | 2, 0, 7, 1, 0))
        self.put(self.at[SLOTS] + 128, struct.pack("<QII", now_ns, 2, 1 | 1 << 24))
        self.put(self.at[SLOTS] + 144, struct.pack("<QII", now_ns, rng.randrange(2, 2 + len(NAMES)), 1))

    def spoil(self, times):
        """Writes extremes where numbers are, random bytes elsewhere."""
        rng = self.rng
        for _ in range(times):
            place = rng.choice(["header", "section", STATE, ORDER, CHUNKS, SLOTS, ANCHORS, DICT_INDEX, DATA, "boot",
                                "anywhere"])
            value = struct.pack("<Q", rng.choice(EXTREMES) if rng.random() < .8 else rng.getrandbits(64))
            if place == "header":
                self.put(rng.choice([8, 12, 16, 32, 40, 44, 80, 88, 104, 108, 112, 120, 128, 132, 136, 140, 144, 148]),
                         value[:rng.choice([2, 4, 8])])
            elif place == "section":
                self.put(512 + 8 * rng.randrange(4 * 9), value)
            elif place == "boot":
                self.put(64, value)
            elif place == "anywhere":
                self.put(rng.randrange(len(self.bytes) - 8), value)
            else:
                span = {STATE: 1024, ORDER: 128, CHUNKS: 192, SLOTS: 192, ANCHORS: 192, DICT_INDEX: 320,
                        DATA: 4096}[place]
                step = rng.choice([4, 8])
                self.put(self.at[place] + step * rng.randrange(span // step), value[:step])
