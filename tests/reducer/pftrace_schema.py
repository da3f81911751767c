#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Perfetto trace by a table of its documented fields, and holds it against the trace it was made from.

usage: pftrace_schema.py FILE [--json]              walks it; says what is on its tracks
       pftrace_schema.py DRIVEREC DATA_FOLDER       exports every handed Chrome trace and compares

Fails on a field that is not in the table or has another wire type, on an end without a begin, on an end that is not
the innermost one's, on a time that goes back, and on a number of a name or track that nothing says. Python's own
library alone.     exit 77: the data is not there
"""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

VARINT, FIXED64, BYTES = 0, 1, 2
# message: {field: (name, wire type, message of its content)}
SCHEMA = {
    "Trace": {1: ("packet", BYTES, "TracePacket")},
    "TracePacket": {
        6: ("clock_snapshot", BYTES, "ClockSnapshot"), 8: ("timestamp", VARINT, None),
        10: ("trusted_packet_sequence_id", VARINT, None), 11: ("track_event", BYTES, "TrackEvent"),
        12: ("interned_data", BYTES, "InternedData"), 13: ("sequence_flags", VARINT, None),
        60: ("track_descriptor", BYTES, "TrackDescriptor"), 87: ("first_packet_on_sequence", VARINT, None)},
    "ClockSnapshot": {1: ("clocks", BYTES, "Clock"), 2: ("primary_trace_clock", VARINT, None)},
    "Clock": {1: ("clock_id", VARINT, None), 2: ("timestamp", VARINT, None)},
    "TrackDescriptor": {
        1: ("uuid", VARINT, None), 2: ("name", BYTES, str), 3: ("process", BYTES, "ProcessDescriptor"),
        4: ("thread", BYTES, "ThreadDescriptor"), 5: ("parent_uuid", VARINT, None),
        8: ("counter", BYTES, "CounterDescriptor"), 11: ("child_ordering", VARINT, None),
        12: ("sibling_order_rank", VARINT, None), 14: ("description", BYTES, str)},
    "ProcessDescriptor": {1: ("pid", VARINT, None), 6: ("process_name", BYTES, str), 8: ("process_labels", BYTES, str)},
    "ThreadDescriptor": {1: ("pid", VARINT, None), 2: ("tid", VARINT, None), 5: ("thread_name", BYTES, str)},
    "CounterDescriptor": {},
    "TrackEvent": {
        3: ("category_iids", VARINT, None), 4: ("debug_annotations", BYTES, "DebugAnnotation"), 9: ("type", VARINT, None),
        10: ("name_iid", VARINT, None), 11: ("track_uuid", VARINT, None), 22: ("categories", BYTES, str),
        23: ("name", BYTES, str), 30: ("counter_value", VARINT, None), 44: ("double_counter_value", FIXED64, float),
        47: ("flow_ids", FIXED64, int), 48: ("terminating_flow_ids", FIXED64, int)},
    "DebugAnnotation": {
        1: ("name_iid", VARINT, None), 2: ("bool_value", VARINT, None), 3: ("uint_value", VARINT, None),
        4: ("int_value", VARINT, None), 5: ("double_value", FIXED64, float), 6: ("string_value", BYTES, str),
        10: ("name", BYTES, str), 11: ("dict_entries", BYTES, "DebugAnnotation"),
        12: ("array_values", BYTES, "DebugAnnotation")},
    "InternedData": {1: ("event_categories", BYTES, "Entry"), 2: ("event_names", BYTES, "Entry"),
                     3: ("debug_annotation_names", BYTES, "Entry")},
    "Entry": {1: ("iid", VARINT, None), 2: ("text", BYTES, str)},
}
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


class Wrong(Exception):
    pass


def varint(data, at, end):
    value = shift = 0
    while True:
        if at == end or shift > 63:
            raise Wrong("a varint is cut off or too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data, at, end, message):
    """Yields (name, value) of one message; values that are messages are (begin, end)."""
    table = SCHEMA[message]
    while at < end:
        tag, at = varint(data, at, end)
        known = table.get(tag >> 3)
        if not known:
            raise Wrong(f"{message} has no field {tag >> 3}")
        name, wire, of = known
        if tag & 7 != wire:
            raise Wrong(f"{message}.{name} is of wire type {tag & 7}")
        if wire == VARINT:
            value, at = varint(data, at, end)
        elif wire == FIXED64:
            if end - at < 8:
                raise Wrong(f"{message}.{name} is cut off")
            value = struct.unpack_from("<d" if of is float else "<Q", data, at)[0]
            at += 8
        else:
            size, at = varint(data, at, end)
            if size > end - at:
                raise Wrong(f"{message}.{name} is longer than what it is in")
            value = data[at:at + size].decode("utf-8") if of is str else (at, at + size)
            at += size
        yield name, value


def annotation(data, span, names):
    """(name, value) of a debug annotation; values as Python has them."""
    name, value, entries, items = None, None, None, None
    for key, got in fields(data, *span, "DebugAnnotation"):
        if key == "name_iid":
            name = names["debug_annotation_names"][got]
        elif key == "name":
            name = got
        elif key == "int_value":
            value = signed(got)
        elif key == "bool_value":
            value = bool(got)
        elif key == "dict_entries":
            entries = entries if entries is not None else {}
            entry, inner = annotation(data, got, names)
            entries[entry] = inner
        elif key == "array_values":
            items = items if items is not None else []
            items.append(annotation(data, got, names)[1])
        else:
            value = got
    if (value is not None) + (entries is not None) + (items is not None) != 1:
        raise Wrong("an annotation has no value, or two")
    return name, entries if entries is not None else items if items is not None else value


class Reading:
    """A whole file, walked once."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.names = {"event_categories": {}, "event_names": {}, "debug_annotation_names": {}}
        self.tracks, self.stacks, self.last = {}, defaultdict(list), defaultdict(int)
        self.spans, self.instants, self.samples = [], [], []
        self.flows = defaultdict(list)
        self.clocks, self.sequence, self.any_time = {}, None, 0
        for name, span in fields(self.data, 0, len(self.data), "Trace"):
            self.packet(span)
        self.open = [(track, *one) for track, stack in self.stacks.items() for one in stack]
        for flow, ends in self.flows.items():
            if len(ends) < 2 or all(last for _, last in ends):
                raise Wrong(f"flow {flow:x} has one end only")

    def packet(self, span):
        got = dict(fields(self.data, *span, "TracePacket"))
        if not got.get("trusted_packet_sequence_id"):
            raise Wrong("a packet without a sequence id")
        if self.sequence is None:
            self.sequence = got["trusted_packet_sequence_id"]
            if got.get("sequence_flags") != 1 or not got.get("first_packet_on_sequence"):
                raise Wrong("the first packet does not begin the sequence")
        elif got["trusted_packet_sequence_id"] != self.sequence:
            raise Wrong("another sequence")
        if "clock_snapshot" in got:
            for name, value in fields(self.data, *got["clock_snapshot"], "ClockSnapshot"):
                if name == "clocks":
                    clock = dict(fields(self.data, *value, "Clock"))
                    self.clocks[clock["clock_id"]] = clock["timestamp"]
        if "interned_data" in got:
            for kind, value in fields(self.data, *got["interned_data"], "InternedData"):
                entry = dict(fields(self.data, *value, "Entry"))
                if entry["iid"] in self.names[kind] or entry["iid"] == 0:
                    raise Wrong(f"{kind} {entry['iid']} is said twice")
                self.names[kind][entry["iid"]] = entry.get("text", "")
        if "track_descriptor" in got:
            self.descriptor(got["track_descriptor"])
        if "track_event" in got:
            if got.get("sequence_flags") != 2:
                raise Wrong("an event that does not say that it needs the names")
            self.event(got["track_event"], got["timestamp"])

    def descriptor(self, span):
        track = dict(fields(self.data, *span, "TrackDescriptor"))
        for part, message in (("process", "ProcessDescriptor"), ("thread", "ThreadDescriptor")):
            if part in track:
                track[part] = dict(fields(self.data, *track[part], message))
        if track["uuid"] in self.tracks or track["uuid"] == 0:
            raise Wrong("a track is said twice")
        if "parent_uuid" in track and track["parent_uuid"] not in self.tracks:
            raise Wrong("a track's parent comes after it")
        self.tracks[track["uuid"]] = track

    def event(self, span, time):
        got, notes, categories, flows = {}, {}, [], []
        for name, value in fields(self.data, *span, "TrackEvent"):
            if name == "debug_annotations":
                key, inner = annotation(self.data, value, self.names)
                notes[key] = inner
            elif name in ("category_iids", "categories"):
                categories.append(self.names["event_categories"][value] if name == "category_iids" else value)
            elif name in ("flow_ids", "terminating_flow_ids"):
                flows.append((value, name == "terminating_flow_ids"))
            else:
                got[name] = value
        track, kind = got["track_uuid"], got["type"]
        if track not in self.tracks:
            raise Wrong("an event on a track that nothing says")
        name = self.names["event_names"][got["name_iid"]] if "name_iid" in got else got.get("name")
        if time < self.last[track] or time < self.any_time:
            raise Wrong("a time goes back")
        self.last[track] = self.any_time = time
        if (kind == COUNTER) != ("counter" in self.tracks[track]):
            raise Wrong("a counter's track and its samples are of different kinds")
        stack = self.stacks[track]
        if flows and kind != BEGIN:
            raise Wrong("a flow that is on no span")
        for flow, last in flows:
            self.flows[flow].append((name, last))
        if kind == BEGIN:
            stack.append((time, name, categories, notes))
            if len(stack) > 512:
                raise Wrong("deeper than 512")
        elif kind == END:
            if not stack:
                raise Wrong("an end without a begin")
            begin, name, categories, more = stack.pop()
            self.spans.append((track, begin, time, name, categories, {**more, **notes}))
        elif kind == INSTANT:
            self.instants.append((track, time, name, categories, notes))
        elif kind == COUNTER:
            value = got.get("double_counter_value")
            self.samples.append((track, time, signed(got["counter_value"]) if value is None else value))
        else:
            raise Wrong(f"an event of type {kind}")

    def place(self, uuid):
        """The track of the trace it was made from, as far as that can be told: (group, track)."""
        track = self.tracks[uuid]
        if "thread" in track:
            return str(track["thread"]["pid"]), str(track["thread"]["tid"])
        parent = self.tracks.get(track.get("parent_uuid"), {})
        if "thread" in parent:
            return self.place(track["parent_uuid"])
        if "process" in parent:
            return str(parent["process"]["pid"]), track.get("name")
        return parent.get("name"), track.get("name")


def union(spans):
    total, reach = 0, None
    for start, end in sorted(spans):
        if reach is None or start > reach:
            total += end - start
            reach = end
        elif end > reach:
            total += end - reach
            reach = end
    return total


def nanoseconds(ps):
    """Rounded as the writer rounds."""
    return (ps + 500) // 1000


def compare(reading, oracle, path):
    """The Chrome file by oracle.py's reading of it against the Perfetto one."""
    wrong = []
    events = oracle.load(path)
    events = events if isinstance(events, list) else events["traceEvents"]
    theirs, names, notes = defaultdict(list), Counter(), Counter()
    base = oracle.read(path)["base_ns"]
    base = int(base) if base else 0
    for event in events:
        if event.get("ph") != "X" or event.get("ts") is None or event.get("dur") is None:
            continue
        start = oracle.picoseconds(event["ts"])
        end = start + oracle.picoseconds(event["dur"])
        theirs[str(event.get("pid")), str(event.get("tid"))].append(
            (nanoseconds(start) + base, nanoseconds(end) + base))
        names[event["name"]] += 1
        notes[tuple(sorted(event.get("args", {})))] += 1
    ours, our_names, our_notes = defaultdict(list), Counter(), Counter()
    for track, start, end, name, _, more in reading.spans:
        ours[reading.place(track)].append((start, end))
        our_names[name] += 1
        our_notes[tuple(sorted(more))] += 1
    if reading.open:
        wrong.append(f"{len(reading.open)} spans do not end")
    # Tracks by what is on them, since a thread may have a name in place of its number.
    left, right = (Counter(str((len(s), min(s)[0], max(e for _, e in s), union(s), sorted(s)[len(s) // 2]))
                           for s in tracks.values()) for tracks in (theirs, ours))
    if left != right:
        wrong.append(f"tracks differ: {sorted((left - right))[:2]} but {sorted((right - left))[:2]}")
    if names != our_names:
        wrong.append(f"names differ: {list((names - our_names).items())[:2]}, {list((our_names - names).items())[:2]}")
    if notes != our_notes:
        wrong.append(f"args differ: {list((notes - our_notes).items())[:2]}, {list((our_notes - notes).items())[:2]}")
    if base and reading.clocks.get(1) != reading.clocks.get(6):
        wrong.append("no clock says that times are Unix time")
    return wrong


def compare_all(driverec, data):
    if not os.path.exists(os.path.join(data, "oracle.py")):
        print("skipped: no handed data")
        return 77
    sys.path.insert(0, data)
    sys.dont_write_bytecode = True
    import oracle
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(glob.glob(os.path.join(data, "traces", "*.json.gz"))):
            name = os.path.basename(path)
            if name.startswith("not_chrome"):
                continue
            out = os.path.join(folder, "out.pftrace")
            done = subprocess.run([driverec, "export", path, "-o", out], capture_output=True, text=True)
            wrong = [done.stderr.strip()] if done.returncode else []
            if not wrong:
                try:
                    reading = Reading(out)
                    wrong = compare(reading, oracle, path)
                    print(name, len(reading.spans), "spans", len(reading.flows), "flows", len(reading.tracks), "tracks",
                          "agrees" if not wrong else "DIFFERS")
                except Wrong as error:
                    wrong = [str(error)]
            for line in wrong:
                print(name, line)
            failed += bool(wrong)
    return 1 if failed else 0


def main(argv):
    if len(argv) == 2 and not argv[1].startswith("-"):
        try:
            reading = Reading(argv[1])
        except Wrong as error:
            print(f"{argv[1]}: {error}")
            return 1
        print(len(reading.spans), "spans", len(reading.instants), "instants", len(reading.samples), "samples",
              len(reading.flows), "flows", len(reading.open), "open", len(reading.tracks), "tracks")
        return 0
    if len(argv) == 3 and argv[2] == "--json":
        reading = Reading(argv[1])
        names = {uuid: "/".join(str(part) for part in reading.place(uuid)) for uuid in reading.tracks}
        print(json.dumps({
            "spans": [[names[t], *rest] for t, *rest in reading.spans],
            "open": [[names[t], *rest] for t, *rest in reading.open],
            "instants": [[names[t], *rest] for t, *rest in reading.instants],
            "samples": [[names[t], *rest] for t, *rest in reading.samples],
            "flows": sorted(sorted(ends) for ends in reading.flows.values()),
            "clocks": reading.clocks,
        }, sort_keys=True))
        return 0
    if len(argv) == 3:
        return compare_all(argv[1], os.environ.get("DRIVEREC_TEST_DATA") or argv[2])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
