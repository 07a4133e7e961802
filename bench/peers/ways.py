# SPDX-License-Identifier: Apache-2.0
"""The ways to serve a network that bench/peers compares: which programs each consists of, how they are run for a slice of
time, and what a slice showed.

A program prints "ready" when it is loaded and warm; for a line with a number of seconds it computes frame after frame so
long and prints {"frames": [[begin_ns, end_ns], ...]}; for the line "go" it computes one and prints its milliseconds. A second
number is how many frames each run takes.
"""
import json
import os
import re
import select
import subprocess
import sys

from names import BEFORE, batch_of

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BATCHES = (2, 4, 8)
HANG_S = 120
PERIOD_US = 4000  # of slow_core
ADAPT_S = 12.0  # under load before anything counts, where plans may follow


def note(text):
    print(f'peers: {text}', file=sys.stderr, flush=True)


def reason(text):
    """Return: the line of what a program printed at its end that says why; OpenCV's last ones are empty or '>'."""
    lines = [line.strip('> ') for line in text.split('\n') if any(c.isalpha() for c in line)]
    return next((line for line in reversed(lines) if 'error' in line.lower()), lines[-1] if lines else '')


class Program:
    """One process; cpus: where it may run, as taskset takes it. It is asked nothing before wait()."""

    def __init__(self, command, cpus):
        self.cpus = cpus
        self.process = subprocess.Popen(['taskset', '-c', cpus] + command, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def read(self):
        """The next line; there is only one for what the program was told."""
        if not select.select([self.process.stdout], [], [], HANG_S)[0]:
            self.process.kill()
            raise RuntimeError(f'it says nothing for {HANG_S} s')
        return self.process.stdout.readline()

    def wait(self):
        line = self.read().strip()
        if line != 'ready':
            why = reason(self.process.stderr.read())
            self.process.wait()
            raise RuntimeError(why or 'it printed ' + line)

    def tell(self, line):
        self.process.stdin.write(f'{line}\n')
        self.process.stdin.flush()

    def hear(self):
        line = self.read()
        if not line:
            raise RuntimeError('it ended: ' + reason(self.process.stderr.read()))
        return json.loads(line)

    def stop(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Way:
    """Programs that share the frames of one stream: each takes the next one when it is free. They load at the same time, each
    on its own cores."""

    def __init__(self, name, commands):
        """commands: [(command, cpus)]"""
        self.name = name
        self.programs = []
        try:
            for command, cpus in commands:
                self.programs.append(Program(command, cpus))
            for p in self.programs:
                p.wait()
        except BaseException:
            self.stop()
            raise

    def program_on(self, cpu):
        """The program that has this core for itself, or None."""
        return next((p for p in self.programs if p.cpus == str(cpu)), None)

    def frame_ms(self, cpu):
        program = self.program_on(cpu)
        program.tell('go')
        return program.hear()

    def slice(self, seconds):
        """[(begin_ns, end_ns)] of every frame, in the order in which they began."""
        batch = batch_of(self.name)
        for p in self.programs:
            p.tell(seconds if batch == 1 else f'{seconds} {batch}')
        return sorted(tuple(f) for p in self.programs for f in p.hear()['frames'] for _ in range(batch))

    def at_once(self):
        """Frames that each of its programs answers at once."""
        return batch_of(self.name)

    def lead(self):
        """Frames at the head of a slice that belong to its start."""
        return 2 * self.at_once()

    def stop(self):
        for p in self.programs:
            p.stop()


class Shared(Way):
    """One of the ways that have the same programs: these end with the last of the ways that were started."""

    def __init__(self, name, kept, commands):
        """kept: what the ways have in common, an empty dictionary at first."""
        if not kept.get('users'):
            super().__init__(name, commands)
            kept.update(programs=self.programs, users=0)
        self.name, self.programs, self.kept = name, kept['programs'], kept
        kept['users'] += 1

    def stop(self):
        if getattr(self, 'kept', None):
            self.kept['users'] -= 1
            if self.kept['users']:
                return
        super().stop()


def stop_daemon(daemon):
    """Ends a daemon of tests/system, if it runs."""
    if daemon.process:
        try:
            daemon.stop()
        finally:
            daemon.cleanup()


class Piped(Way):
    """The daemon, with a client that streams through shared memory."""

    def __init__(self, name, options, model, inputs, config=None, build=None):
        """build: whose daemon; the client is always that of options.build."""
        os.environ['PIPED_BUILD'] = options.build
        sys.path.insert(0, os.path.join(ROOT, 'tests', 'system'))
        from daemon import Daemon  # reads PIPED_BUILD
        # as it is installed: the daemon of a test neither adapts nor measures its kernels
        self.daemon = Daemon(models={'net': model}, config={
            'adapt': {}, 'kernels': {'measure_ms': options.measure_ms}, **(config or {})},
            exe=os.path.join(build or options.build, 'daemon', 'piped'))
        self.programs = []
        try:
            self.daemon.start()
            os.environ['PIPED_RUNTIME_DIR'] = self.daemon.runtime_dir
            command = [os.path.join(options.build, 'bench', 'stream_bench'), '--in-flight', str(options.in_flight)]
            super().__init__(name, [(command + (['--input', inputs] if inputs else []), ALL)])
        except BaseException:
            self.daemon.kill()
            self.daemon.cleanup()
            raise
        self.slice(0.5)

    def retune(self, algorithm='exact'):
        """A search by synthetic frames; returns the plan it ended with."""
        with self.daemon.connect() as v:
            v.sock.settimeout(200)
            return v.call('io.piped.Retune', {'algorithm': algorithm, 'seed': 1})['event']['plan_after']

    def at_once(self):
        return plan_at_once(self.plan())

    def lead(self):
        return max(4, 2 * self.at_once())

    def plan(self):
        return self.daemon.status()['models'][0]['plan']

    def stop(self):
        super().stop()
        stop_daemon(self.daemon)


class Slowed:
    """A competing program on one core, at a real-time priority, that leaves 1/factor of it."""

    def __init__(self, build, cpu, factor):
        busy = round(PERIOD_US * (1 - 1 / factor))
        self.process = subprocess.Popen([os.path.join(build, 'tests', 'system', 'slow_core'), str(cpu), str(busy),
                                         str(PERIOD_US), '3600'], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()


CPUS = sorted(os.sched_getaffinity(0))[:2]
ALL = ','.join(str(c) for c in CPUS)


def two(command):
    """One program a core."""
    return [(command, str(c)) for c in CPUS]


def serve_py(name):
    return ['/usr/bin/python3', os.path.join(HERE, name + '_serve.py')]


def peers_ways(options, model, inputs):
    """{name: function that starts it} of the peers that are there and can read the network."""
    every = {}
    if options.ort:
        ort = ['node', os.path.join(HERE, 'ort_serve.js'), options.ort, model, inputs]
        every['ort-queue'] = lambda: Way('ort-queue', two(ort + ['1']))
        every['ort-sessions'] = lambda: Way('ort-sessions', [(ort + ['1', '2'], ALL)])
        every['ort-threads'] = lambda: Way('ort-threads', [(ort + ['2'], ALL)])
        for way, commands in (('ort-queue', two(ort + ['1', '1', 'batched'])),
                              ('ort-threads', [(ort + ['2', '1', 'batched'], ALL)])):
            kept = {}
            for n in BATCHES:
                name = f'{way}@{n}'
                every[name] = lambda name=name, kept=kept, commands=commands: Shared(name, kept, commands)
    others = [('opencv', serve_py('opencv') + [model, inputs])] if options.opencv else []
    script = model.replace('.onnx', '.pt')
    if options.torch and os.path.exists(script):
        others.append(('torch', serve_py('torch') + [script, inputs]))
    for kind, command in others:
        every[kind + '-queue'] = lambda kind=kind, command=command: Way(kind + '-queue', two(command + ['1']))
        every[kind + '-threads'] = lambda kind=kind, command=command: Way(kind + '-threads', [(command + ['2'], ALL)])
    return every


def kernels(build, options, model):
    """The command of a program with the kernels of a build."""
    return [os.path.join(build, 'bench', 'net_bench'), model, '--measure', str(options.measure_ms), '--serve']


def before_ways(options, model, inputs):
    """{name: function that starts it} of an older build."""
    build = options.before
    return {} if not build else {
        'piped' + BEFORE: lambda: Piped('piped' + BEFORE, options, model, inputs, build=build),
        'kernels' + BEFORE: lambda: Way('kernels' + BEFORE, two(kernels(build, options, model)))}


def ways(options, model, inputs, names=None):
    """{name: function that starts it}, in the order in which they are to be shown. names: only these."""
    net = kernels(options.build, options, model)
    adapt = {'adapt': {'enabled': True}}
    places = {'eps': [{'name': 'core0', 'cpus': str(CPUS[0])}, {'name': 'core1', 'cpus': str(CPUS[-1])}], **adapt}
    every = {
        'piped': lambda: Piped('piped', options, model, inputs),
        'piped-adapting': lambda: Piped('piped-adapting', options, model, inputs, adapt),
        'piped-places': lambda: Piped('piped-places', options, model, inputs, places),
        'kernels': lambda: Way('kernels', two(net)),
        'kernels-team': lambda: Way('kernels-team', [(net + ['--width', '2'], ALL)]),
    }
    every.update(before_ways(options, model, inputs))
    if inputs:
        every.update(peers_ways(options, model, inputs))
    return {n: every[n] for n in (names or every) if n in every}


def in_order(frames):
    """[(begin, end)] with the end at which a frame can be given out: when all before it have ended as well."""
    out, latest = [], 0
    for begin, end in sorted(frames):
        latest = max(latest, end)
        out.append((begin, latest))
    return out


def plan_at_once(plan):
    """Frames that the teams of a plan's largest stage answer at once: 8 for 0-15@big*2/4."""
    groups = [re.search(r"(?:\*(\d+))?(?:/(\d+))?$", group) for stage in plan.split('|') for group in stage.split('+')]
    return max(int(g[1] or 1) * int(g[2]) if g[2] else 1 for g in groups)


def rate(frames, seconds, lead):
    """Frames a second of a slice in its steady part: from the end of the first `lead` frames to the last that ended before
    the slice did (afterwards some programs stand still). None: too few frames, or these take less than a quarter of the
    slice, as where a team gives all answers of a batch at once."""
    ends = sorted(end for _, end in frames)
    if not ends:
        return None
    limit = min(begin for begin, _ in frames) + seconds * 1e9
    within = [e for e in ends if e <= limit]
    if len(within) < lead + 2 or within[-1] - within[lead - 1] < seconds / 4 * 1e9:
        return None
    return (len(within) - lead) / (within[-1] - within[lead - 1]) * 1e9
