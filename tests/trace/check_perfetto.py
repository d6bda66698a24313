#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the perfetto sink writes, read by a decoder that knows protobuf's encoding and the numbers of
Perfetto's fields (https://perfetto.dev/docs/reference/trace-packet-proto), and nothing of ours."""
import sys
from collections import Counter, defaultdict

from script import EVENTS, PROCESS, STEP, check, check_flat, check_full, feed, feed_file
from checks import status

# number: (name, type); a type is a table of its own, or says how the number or bytes are meant
CLOCK = {1: ("clock_id", "uint"), 2: ("timestamp", "uint")}
STRING = {1: ("iid", "uint"), 2: ("name", "text")}
TRACK = {1: ("uuid", "uint"), 2: ("name", "text"), 5: ("parent_uuid", "uint"), 8: ("counter", {}),
         3: ("process", {1: ("pid", "uint"), 6: ("process_name", "text")}),
         4: ("thread", {1: ("pid", "uint"), 2: ("tid", "uint"), 5: ("thread_name", "text")})}
EVENT = {3: ("category_iids", "uint"), 9: ("type", "uint"), 10: ("name_iid", "uint"), 11: ("track_uuid", "uint"),
         4: ("debug_annotations", {1: ("name_iid", "uint"), 3: ("uint_value", "uint"), 4: ("int_value", "uint")}),
         30: ("counter_value", "uint"), 47: ("flow_ids", "fixed"), 48: ("terminating_flow_ids", "fixed")}
PACKET = {6: ("clock_snapshot", {1: ("clocks", CLOCK), 2: ("primary_trace_clock", "uint")}),
          8: ("timestamp", "uint"), 10: ("sequence", "uint"), 11: ("track_event", EVENT),
          12: ("interned_data", {1: ("event_categories", STRING), 2: ("event_names", STRING),
                                 3: ("debug_annotation_names", STRING)}),
          13: ("sequence_flags", "uint"), 59: ("defaults", {58: ("timestamp_clock_id", "uint")}),
          60: ("track_descriptor", TRACK)}
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def decode(data, table):
    """A message as a dictionary of lists. An unknown field or a torn message raises an exception."""
    message, at = defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        name, kind = table[tag >> 3]
        if tag & 7 == 0:
            value, at = varint(data, at)
            assert kind == "uint", name
        elif tag & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
            assert kind == "fixed", name
        else:
            assert tag & 7 == 2, name
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, f"{name} is torn"
            value = value.decode("utf-8") if kind == "text" else decode(value, kind)
        message[name].append(value)
    return message


class Trace:
    """Packets with names in place of numbers, slices put together."""

    def __init__(self, data):
        self.tracks, self.names = {}, defaultdict(dict)
        self.slices, self.instants, self.counters, self.flows = defaultdict(list), [], [], []
        self.ticks = []  # instants and their tracks
        self.kinds, self.cut = Counter(), 0
        packets = decode(data, {1: ("packet", PACKET)})["packet"]
        stacks = defaultdict(list)
        for i, packet in enumerate(packets):
            check(packet["sequence"] == [1] and packet["sequence_flags"] == [3 if i == 0 else 2], f"{i}: {packet}")
            for table, strings in (packet["interned_data"] or [{}])[0].items():
                self.names[table].update({s["iid"][0]: s["name"][0] for s in strings})
            for track in packet["track_descriptor"]:
                old = self.tracks.get(track["uuid"][0], {})
                check(all(p in self.tracks for p in track["parent_uuid"]), f"no parent: {track}")
                self.tracks[track["uuid"][0]] = {**old, **track}
            for event in packet["track_event"]:
                self.take(event, packet["timestamp"][0], stacks)
        check(not any(stacks.values()), f"these do not end: {stacks}")
        self.first = packets[0] if packets else {}

    def take(self, event, time, stacks):
        uuid, kind = event["track_uuid"][0], event["type"][0]
        check(uuid in self.tracks, f"a track that is not described: {event}")
        name = self.names["event_names"][event["name_iid"][0]] if event["name_iid"] else None
        notes = {self.names["debug_annotation_names"][a["name_iid"][0]]: a["uint_value"][0] if a["uint_value"] else
                 a["int_value"][0] - 2**64
                 for a in event["debug_annotations"]}
        category = [self.names["event_categories"][c] for c in event["category_iids"]]
        self.kinds[kind] += 1
        self.cut += "cut" in notes
        self.flows += [("out", f, uuid, time) for f in event["flow_ids"]]
        self.flows += [("in", f, uuid, time) for f in event["terminating_flow_ids"]]
        if kind == BEGIN:
            stacks[uuid].append((name, time, notes, category))
        elif kind == END:
            check(stacks[uuid], f"an end without a beginning at {time}")
            begun = stacks[uuid].pop()
            check(begun[1] <= time, f"{begun} ends at {time}")
            self.slices[uuid].append((begun[0], begun[1], time))
        elif kind == INSTANT:
            self.instants.append((name, time, notes, category))
            self.ticks.append((name, time, uuid))
        else:
            self.counters.append((self.tracks[uuid]["name"][0], time, event["counter_value"][0]))

    def thread(self, tid):
        return next(u for u, t in self.tracks.items() if t.get("thread") and t["thread"][0]["tid"] == [tid])

    def child(self, tid, name):
        return next(u for u, t in self.tracks.items()
                    if t.get("parent_uuid") == [self.thread(tid)] and t.get("name") == [name])


def check_script():
    data, _ = feed_file("perfetto", "script")
    trace = Trace(data)
    check(sum(trace.kinds.values()) - trace.cut == EVENTS, f"{trace.kinds}, {trace.cut} were cut")
    check(trace.first["clock_snapshot"][0]["primary_trace_clock"] == [3], f"{trace.first}")
    threads = {t["thread"][0]["tid"][0]: t["thread"][0] for t in trace.tracks.values() if t.get("thread")}
    processes = {t["process"][0]["pid"][0]: t["process"][0] for t in trace.tracks.values() if t.get("process")}
    check(processes[100]["process_name"] == [PROCESS] and processes[200]["process_name"] == ["child"], f"{processes}")
    check(threads[100]["thread_name"] == ["main"] and threads[200]["pid"] == [200], f"{threads}")
    check(threads[101]["thread_name"] == ["bad \ufffd byte,\nline"], f"{threads}")

    check(sorted(trace.slices[trace.thread(100)]) == sorted([
        ('work: five "5"', 1100, 1600), (STEP, 1200, 1600), ("work", 1250, 1300), ("task: six", 1480, 1510),
        (STEP, 1600, 1700)]), f"{trace.slices[trace.thread(100)]}")
    states = sorted(trace.slices[trace.child(100, "state")])
    check(states == [("running", 1000, 1900), ("waits for a lock", 1750, 1800)], f"{states}")
    check(trace.slices[trace.child(100, "state (sub-state)")] == [("waits for a lock", 1950, 1960)], "sub-states")
    check(trace.slices[trace.child(101, "state")] == [("running", 900, 1650)], "a state that does not end")
    alone = [u for u, t in trace.tracks.items() if t.get("name") == ["causal"]]
    check(trace.slices[alone[0]] == [("experiment", 600, 1980)], f"{trace.slices}")
    check(trace.counters == [("memory", 1400, 4096), ("memory", 1450, 8192)], f"{trace.counters}")
    flows = [f for f in trace.flows if f[2] != trace.thread(200)]
    check([f[0] for f in flows] == ["in", "out"] and flows[0][1] == flows[1][1] != 0, f"{trace.flows}")
    check(len({f[1] for f in trace.flows}) == 2, f"two flows have one id: {trace.flows}")
    instants = {i[0]: i for i in trace.instants}
    check(instants["hit"] == ("hit", 1350, {"value": 1000}, ["default"]), f"{instants}")
    check(instants["selection: main"][1] == 1350 and instants["key-4000"][1] == 1970, f"{instants}")
    check([i[2] for i in trace.instants if i[0] == STEP] == [{"value": 2**64 - 1}, {"value": 4, "flags": 2}], "values")
    check(instants["work (end)"][3] == ["user"], f"{instants}")
    below = Trace(feed_file("perfetto", "negative")[0])
    check([i[2]["value"] for i in below.instants] == [-3, 3, 0, -2**63], f"{below.instants}")


def main():
    _, _, said = feed("perfetto=/dev/null", "script", expect=None)
    if "is not in this build" in said:
        print("SKIP: built without protobuf-c")
        return 77
    check_script()
    check_flat("perfetto")
    check_full("perfetto")
    data, (_, _, said) = feed_file("perfetto", "many", "100000", limit=100, expect=3)
    there = 0
    for packet in decode(data, {1: ("packet", PACKET)})["packet"]:
        there += len(packet["track_event"])
    check(f"{100000 - there} events are missing" in said and there > 500, f"{there}: {said}")
    return status()


if __name__ == "__main__":
    sys.exit(main())
