# SPDX-License-Identifier: Apache-2.0
"""Reads what `pipectl trace` wrote, independently of its code: Perfetto's messages by their published field numbers.
check_trace() holds for every trace."""
import collections
import struct

from cases import Failure, check

Slice = collections.namedtuple("Slice", "name begin end depth args flows parent")
Instant = collections.namedtuple("Instant", "name at args")


class Track:
    def __init__(self, name, group=""):
        self.name = name
        self.group = group
        self.slices = []  # in order of their ends
        self.instants = []
        self.values = []  # (ns, number) of a counter
        self.open = []
        self.parts = None
        self.last_ns = 0

    def begin(self, name, at, args, flows):
        check(at >= self.last_ns, "time runs backwards on", self.name, at, self.last_ns)
        self.last_ns = at
        self.open.append((name, at, args, list(flows)))

    def end(self, at):
        check(self.open, "an end without a begin on", self.name)
        check(at >= self.last_ns, "time runs backwards on", self.name, at, self.last_ns)
        self.last_ns = at
        name, begin, args, flows = self.open.pop()
        self.slices.append(Slice(name, begin, at, len(self.open), args, flows, self.open[-1][:2] if self.open else None))


class Trace:
    def __init__(self, tracks):
        for t in tracks:
            check(not t.open, "slices that never end on", t.name, t.open)
            t.slices.sort(key=lambda s: (s.begin, s.depth))
        self.tracks = tracks

    def teams(self, model):
        return [t for t in self.tracks if t.group == "model " + model and t.name.startswith("epoch ")]

    def streams(self):
        """Lanes of one stream have one name."""
        found = collections.defaultdict(list)
        for t in self.tracks:
            if t.group == "clients":
                found[t.name] += [s for s in t.slices if s.depth == 0]
        return {name: sorted(s, key=lambda s: s.args["frame"]) for name, s in found.items()}

    def lanes(self):
        return [t for t in self.tracks if t.group == "clients"]

    def instants(self, model=None):
        return [i for t in self.tracks for i in t.instants if model is None or t.group == "model " + model]

    def counters(self, group):
        return {t.name: t.values for t in self.tracks if t.group == group and t.values}


# ---- the file ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """A message's fields: {number: [values]}; values are numbers or bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif key & 7 == 2:
            length, at = varint(data, at)
            check(at + length <= len(data), "a message is longer than what holds it")
            value, at = bytes(data[at:at + length]), at + length
        else:
            raise Failure("wire type %d" % (key & 7))
        found[key >> 3].append(value)
    return found


def one(message, number, default=None):
    return message[number][-1] if number in message else default


def as_double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


class Sequence:
    def __init__(self):
        self.clocks = {}  # id -> [now, incremental]
        self.default_clock = self.default_track = None
        self.event_names, self.arg_names = {}, {}


class PerfettoReader:
    def __init__(self, data):
        self.described, self.tracks, self.sequences = {}, {}, collections.defaultdict(Sequence)
        self.primary = None
        for packet in fields(memoryview(data)).pop(1):
            self.packet(fields(packet))

    def packet(self, p):
        s = self.sequences[one(p, 10)]
        if 6 in p:
            snapshot = fields(one(p, 6))
            self.primary = one(snapshot, 2, self.primary)
            for clock in map(fields, snapshot[1]):
                if one(clock, 1) >= 64:
                    s.clocks[one(clock, 1)] = [one(clock, 2), one(clock, 3, 0)]
        if one(p, 13, 0) & 1:  # incremental state cleared
            s.event_names, s.arg_names = {}, {}
        if 59 in p:
            defaults = fields(one(p, 59))
            s.default_clock = one(defaults, 58)
            s.default_track = one(fields(one(defaults, 11)), 11)
        if 60 in p:
            t = fields(one(p, 60))
            self.described[one(t, 1)] = t
        if 12 in p:
            interned = fields(one(p, 12))
            for number, names in ((2, s.event_names), (3, s.arg_names)):
                for entry in map(fields, interned[number]):
                    names[one(entry, 1)] = one(entry, 2).decode()
        if 11 in p:
            check(self.primary == 3, "the primary clock is not the monotonic one")
            self.event(s, one(p, 8), fields(one(p, 11)))

    def time(self, s, stamp):
        if s.default_clock < 64:
            check(s.default_clock == 3, "clock", s.default_clock)
            return stamp
        clock = s.clocks[s.default_clock]
        clock[0] = clock[0] + stamp if clock[1] else stamp
        return clock[0]

    def track(self, uuid):
        if uuid not in self.tracks:
            described = self.described[uuid]
            parent = self.described[one(described, 5)]
            self.tracks[uuid] = Track(one(described, 2).decode(), one(parent, 2, b"").decode())
        return self.tracks[uuid]

    def args(self, s, e):
        found = {}
        for a in map(fields, e[4]):
            value = one(a, 6).decode() if 6 in a else as_double(one(a, 5)) if 5 in a else one(a, 3)
            found[s.arg_names[one(a, 1)]] = value
        return found

    def event(self, s, stamp, e):
        at, track = self.time(s, stamp), self.track(one(e, 11, s.default_track))
        name = s.event_names[one(e, 10)] if 10 in e else None
        kind = one(e, 9)
        if kind == 1:
            track.begin(name, at, self.args(s, e), e[47] + e[48])
        elif kind == 2:
            track.end(at)
        elif kind == 3:
            track.instants.append(Instant(name, at, self.args(s, e)))
        else:
            track.values.append((at, as_double(one(e, 44))))


def read_perfetto(path):
    with open(path, "rb") as f:
        return Trace(list(PerfettoReader(f.read()).tracks.values()))


# ---- what holds for every trace ----

def check_nesting(track):
    """Slices lie within those that they began in, and beside their siblings."""
    ends = []
    for s in track.slices:
        check(s.begin <= s.end, "a slice ends before it begins", s)
        del ends[s.depth:]
        if s.depth:
            check(len(ends) == s.depth and s.end <= ends[-1], "a slice is longer than its parent", track.name, s)
        ends.append(s.end)
    last = collections.defaultdict(int)
    for s in track.slices:
        check(s.begin >= last[s.depth], "slices overlap on", track.name, s)
        last[s.depth] = s.end


def parts_of(track, frame):
    """The slices right below an outermost one."""
    if track.parts is None:
        track.parts = collections.defaultdict(list)
        for s in track.slices:
            if s.depth == 1:
                track.parts[s.parent].append(s)
    return track.parts[frame.name, frame.begin]


def units_of(track, frame):
    """The slices of a team's frame that are units, not what other tasks took of its core."""
    return [p for p in parts_of(track, frame) if p.name != "other tasks"]


def check_team(track):
    """Units, and what other tasks took, follow one another without gaps or ends over, in the order of the units' numbers, and
    fill their frame."""
    frames = [s for s in track.slices if s.depth == 0 and s.name == "frame"]
    wanted = None
    for frame in frames:
        parts = parts_of(track, frame)
        numbers = [int(u.name.split()[0]) for u in units_of(track, frame)]
        wanted = wanted or numbers
        check(numbers and numbers == wanted == list(range(numbers[0], numbers[0] + len(numbers))),
              "units out of order on", track.name, numbers, wanted)
        check(parts[0].begin == frame.begin and parts[-1].end == frame.end, "units do not fill their frame", frame)
        check(all(a.end == b.begin for a, b in zip(parts, parts[1:])), "a gap between units", frame)
    return frames


def check_trace(trace, models):
    """Return: {model: {flow: its frames on teams, by time}}, after everything was checked that one trace tells."""
    flows = {}
    for track in trace.tracks:
        check_nesting(track)
        check(all(a[0] <= b[0] for a, b in zip(track.values, track.values[1:])), "values out of order on", track.name)
    for model in models:
        flows[model] = collections.defaultdict(list)
        for team in trace.teams(model):
            for frame in check_team(team):
                check(frame.args["model"] == model, "a frame of another model", frame)
                flows[model][frame.flows[0]].append((frame.begin, frame.end, team, frame))
        for stages in flows[model].values():
            stages.sort(key=lambda s: s[0])
            check(all(a[1] <= b[0] for a, b in zip(stages, stages[1:])), "two stages hold one frame", stages)
            first = [parts_of(s[2], s[3])[0].name for s in stages]
            check(len({s[3].args["number"] for s in stages}) == 1 == len({s[3].args["epoch"] for s in stages}),
                  "a flow of several frames", first)
            check(sorted(first, key=lambda n: int(n.split()[0])) == first, "stages out of order", first)
    return flows
