# SPDX-License-Identifier: Apache-2.0
"""The ways of one network measured against each other, within the seconds that the run has for it.

Each way is started and gives one slice that shows how fast it is. A peer's ways that are far behind its best one end there, and
their figures are those of that slice; all others go on in rounds. The time that is left says how many rounds.
"""
import os
import statistics
import time

import budget
from names import BEFORE, batch_of, is_peer, kind_of
from table import percentile
from ways import ADAPT_S, CPUS, Slowed, in_order, note, rate, ways

THROUGHPUT = ['piped', 'kernels', 'ort-queue', 'ort-sessions', 'ort-threads', 'ort-queue@2', 'ort-queue@4', 'ort-queue@8',
              'ort-threads@2', 'ort-threads@4', 'ort-threads@8', 'opencv-queue', 'opencv-threads', 'torch-queue',
              'torch-threads']
QUICK = ['piped', 'kernels', 'ort-queue', 'ort-threads', 'ort-queue@4', 'opencv-queue', 'torch-queue']
SLOWED = ['piped', 'piped-adapting', 'piped-places', 'ort-queue', 'ort-sessions', 'ort-threads']
FAILURES = (RuntimeError, OSError, ValueError, AssertionError)  # of a program that ended, hung or printed something else
LATENCY = {'kernels': 'piped', 'kernels' + BEFORE: 'piped' + BEFORE, 'ort-queue': 'ort', 'opencv-queue': 'opencv',
           'torch-queue': 'torch'}


def median(values):
    values = [v for v in values if v]
    return round(statistics.median(values), 3) if values else None


class Run:
    """The ways of one network while they run. A block: at its end all of them are stopped."""

    def __init__(self, options, model, inputs, end):
        self.options, self.model, self.end = options, model, end
        self.share_s = end - time.monotonic()
        self.known = ways(options, model, inputs)
        self.running, self.first, self.seconds = [], {}, {}
        self.skipped = []  # names of ways for which there was no time

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for way in self.running:
            way.stop()

    def left_s(self):
        return self.end - time.monotonic()

    def start(self, name):
        """Return: the way, or None with a message."""
        try:
            way = self.known[name]()
        except FAILURES as e:
            note(f'{name} on {os.path.basename(self.model)}: {e}')
            return None
        self.running.append(way)
        return way

    def drop(self, way, why=None):
        if why:
            note(f'{way.name} on {os.path.basename(self.model)}: {why}')
        self.running.remove(way)
        way.stop()

    def try_slice(self, way):
        """The way's first slice, as frames; None: it failed."""
        fps = self.first.get(way.name.partition('@')[0], (None, []))[0]
        seconds = budget.slice_s(self.options.slice, fps, way.at_once(), len(way.programs)) if fps else self.options.slice
        try:
            taken = way.slice(seconds)
            fps = rate(taken, seconds, way.lead())
            while not fps and seconds < budget.SLICE_MAX_S:
                seconds = budget.longer(seconds)
                taken = way.slice(seconds)
                fps = rate(taken, seconds, way.lead())
        except FAILURES as e:
            self.drop(way, e)
            return
        self.first[way.name] = fps, taken
        self.seconds[way.name] = budget.slice_s(self.options.slice, fps, way.at_once(), len(way.programs))

    def try_ways(self, names, keep=()):
        """Starts those of the ways that are known, peer by peer, and ends those that are far behind; not those of `keep`."""
        for kind in dict.fromkeys(kind_of(n) for n in names):
            mine = [n for n in names if kind_of(n) == kind and n in self.known]
            for name in mine:
                plain = self.first.get(name.partition('@')[0])
                if batch_of(name) > 1 and not (plain and budget.batch_fits(plain[0], batch_of(name), 2)):
                    continue
                if not budget.may_start(name, self.share_s, self.left_s()):
                    self.skipped.append(name)
                    continue
                way = self.start(name)
                if way:
                    self.try_slice(way)
            stay = budget.contenders({n: self.first[n][0] for n in mine if n in self.first})
            for way in [w for w in self.running if w.name in mine and w.name not in stay and w.name not in keep]:
                self.drop(way)

    def in_turns(self, running, rounds, turn):
        """turn(way) of everybody in each round; whoever comes first after the others finds colder caches, so it rotates. A way that
        fails has no results."""
        running = list(running)
        results = {w.name: [] for w in running}
        for i in range(rounds):
            if i >= budget.ROUNDS_LEAST and self.left_s() < 0:
                break
            for way in [running[(i + k) % len(running)] for k in range(len(running))]:
                try:
                    results[way.name].append(turn(way))
                except FAILURES as e:
                    del results[way.name]
                    self.first.pop(way.name, None)
                    running.remove(way)
                    self.drop(way, e)
        return results

    def contends(self, way):
        return way.name in budget.contenders({n: f[0] for n, f in self.first.items() if kind_of(n) == kind_of(way.name)})

    def throughput(self, names, time_s, running):
        """Rounds of slices of those that run: {way: its figures}, with those of ways that have ended already."""
        rounds = budget.rounds(time_s, [self.seconds[w.name] for w in running], self.options.rounds)
        taken = self.in_turns(running, rounds, lambda w: w.slice(self.seconds[w.name]))
        out = {}
        for name in names:
            if taken.get(name):
                way = next(w for w in running if w.name == name)
                out[name] = summary(taken[name], self.seconds[name], way.lead())
                if hasattr(way, 'plan'):
                    out[name]['plan'] = way.plan()
            elif name in self.first:
                out[name] = {**summary([self.first[name][1]], self.seconds[name], 2 * batch_of(name)), 'fps': [],
                             'median_fps': round(self.first[name][0], 3) if self.first[name][0] else None, 'first_slice': True}
        return out

    def latency(self, time_s):
        """Frames one by one on one core."""
        cpu = self.options.cpu
        running = [w for w in self.running if w.name in LATENCY and w.program_on(cpu)]
        warm = self.in_turns(running, 1, lambda w: w.frame_ms(cpu))
        running = [w for w in running if w.name in warm]
        frames = budget.latency_frames(time_s, [ms[0] for ms in warm.values()], self.options.frames)
        taken = self.in_turns(running, frames, lambda w: w.frame_ms(cpu))
        return {LATENCY[name]: {'median_ms': round(statistics.median(ms), 3), 'p10_ms': round(percentile(sorted(ms), 0.1), 3),
                                'p90_ms': round(percentile(sorted(ms), 0.9), 3), 'ms': [round(v, 3) for v in ms]}
                for name, ms in taken.items()}


def summary(taken, seconds, lead):
    delays = sorted((end - begin) / 1e6 for frames in taken for begin, end in in_order(frames))
    fps = [rate(frames, seconds, lead) for frames in taken]
    # an answer less is no failure of the round: it has to stay in step with the others
    return {'fps': [round(f, 3) if f else None for f in fps], 'median_fps': median(fps), 'frames': len(delays),
            'p50_ms': round(percentile(delays, 0.5), 3), 'p99_ms': round(percentile(delays, 0.99), 3)}


def two_cores(options, model, inputs, what, end):
    """Throughput, latency or both, as `what` says: {what: {way: figures}}; "skipped": ways for which there was no time."""
    names = options.ways or (QUICK if options.quick else THROUGHPUT)
    asked_latency = [n for n in LATENCY if not options.ways or n in options.ways]
    out = {}
    with Run(options, model, inputs, end) as run:
        if 'throughput' in what:
            run.try_ways(names, keep=asked_latency if 'latency' in what else ())
            part = budget.LATENCY_SHARE if 'latency' in what else 0
            running = [w for w in run.running if run.contends(w)]
            out['throughput'] = run.throughput(names, run.left_s() * (1 - part), running)
        if 'latency' in what:
            started = {w.name for w in run.running}
            for name in asked_latency:
                if name in run.known and name not in started:
                    run.start(name)
            out['latency'] = run.latency(run.left_s())
        out['skipped'] = run.skipped
    return out


def slowed(options, model, inputs, end):
    """One core slowed by a competing program."""
    names = options.ways or SLOWED
    with Run(options, model, inputs, end) as run:
        for name in names:
            if name in run.known:
                run.start(name)
        with Slowed(options.build, CPUS[-1], options.factor):
            for way in list(run.running):
                if way.name == 'piped-places':
                    way.retune()
                elif way.name == 'piped-adapting':
                    way.slice(ADAPT_S)
                run.try_slice(way)
            return {'slowed': run.throughput([w.name for w in run.running], run.left_s(), run.running)}


def complete(rows, ways_asked=None):
    """Whether piped was measured and, unless no peer was asked for, one of them."""
    wanted = ways_asked or ['piped', 'ort-queue']
    daemon = any(w.startswith('piped') for w in rows) or not any(w.startswith('piped') for w in wanted)
    peer = any(is_peer(w) for w in rows) or not any(is_peer(w) for w in wanted)
    return bool(rows) and daemon and peer
