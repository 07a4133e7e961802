#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a load during the first measuring of primitives leaves a worse choice than a quiet machine.

usage: busy_start.py [--build DIR] [--busy N] [--settle-s S] [--rate FPS] [--rounds N] [--seconds S] [--rest-s S]
                     [--measure-ms N] [--keep DIR] [NETWORK|FILE...]

For each network of models/ (see models.py; all that are there by default) the daemon of the build starts twice with an
empty state folder: on the machine as it is, then beside N busy processes (two a core by default), which compute and
copy memory until the model serves. After each start it measures again what is unsure, at most for --settle-s, idle or
with a client that sends --rate frames a second. Then the choices serve in turns, each in a daemon of its own that
changes nothing any more and does not spin:

  quiet        of the start on the machine as it is, settled
  quiet_again  the same once more: what the machine adds
  busy_first   of the start beside the load, when it served first
  busy         the same, settled

As many frames in flight as the plan needs, on the plan that the daemon chooses by these primitives; then one frame on
one core. Prints one JSON object a network: ms is what a client sees of a frame, cpu_ms what the daemon's threads ran
for it, which others that take cores do not change. A ratio is that of a frame's times in the same round, above 1 where
the frame takes longer than with quiet; medians with minimum and maximum.
"""
import argparse
import contextlib
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from machine import machine
from start import Served, networks_of

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEADY = {'adapt': {'enabled': False}, 'spin_us': 0}
STEP_S = 0.25
SWAP_S = 3  # the longest time from a kept choice to the model that serves by it
LOAD = '''
import os, sys
block = bytearray(1 << 23)
while os.getppid() == int(sys.argv[1]):
    bytes(block)
    sum(range(50000))
'''


@contextlib.contextmanager
def busy_processes(count):
    processes = [subprocess.Popen([sys.executable, '-c', LOAD, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for p in processes:
            p.kill()
            p.wait()


@contextlib.contextmanager
def frames_at(rate, client, env):
    if not rate:
        yield
        return
    with subprocess.Popen(client + ['bench', '--seconds', '3600', '--rate', str(rate)], env=env,
                          stdout=subprocess.DEVNULL) as p:
        try:
            yield
        finally:
            p.terminate()


def configured(folder, content):
    path = os.path.join(folder, 'piped.json')
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(content, f)
    return ['--config', path]


def choice_file(folder):
    return glob.glob(os.path.join(folder, 'choice-*.json'))[0]


def choice(folder):
    with open(choice_file(folder), encoding='utf-8') as f:
        return json.load(f)


def chosen(content):
    """Return: (own, fused) of every operator of every kind of cores."""
    return [tuple(op[:2]) for ops in content['kinds'].values() for op in ops]


def differing(a, b):
    return sum(x != y for x, y in zip(chosen(a), chosen(b)))


def settle(served, folder, limit_s):
    """Waits until nothing is unsure. Return: how often it measured, changed, and when it changed last."""
    begun, measured, swaps, last_s, sure_s = time.monotonic(), 0, 0, 0, None
    before = choice(folder)
    while True:
        time.sleep(STEP_S)
        passed_s = time.monotonic() - begun
        now = choice(folder)
        measured += now != before
        before = now
        count = sum(e['cause'] == 'measured' for e in served.ask('history'))
        if count > swaps:
            swaps, last_s = count, passed_s
        if now['doubt'] > 0:
            sure_s = None
        elif sure_s is None:
            sure_s = passed_s
        if passed_s > limit_s or (sure_s is not None and passed_s > sure_s + SWAP_S):
            return {'measured_again': measured, 'changes': swaps, 'last_change_s': round(last_s, 1),
                    'sure_s': None if sure_s is None else round(sure_s, 1)}


def start(args, path, busy, keep):
    """Starts without a choice. @keep: folders for the first and the settled one. Return: what happened."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as load:
        load.enter_context(busy_processes(busy))
        config = configured(folder, {'kernels': {'measure_ms': args.measure_ms}} if args.measure_ms else {})
        with Served(args.build, path, folder, config) as s:
            load.close()
            shutil.copy(choice_file(folder), keep[0])
            first = choice(folder)
            with frames_at(args.rate, s.client, s.env):
                found = settle(s, folder, args.settle_s)
            shutil.copy(choice_file(folder), keep[1])
            last = choice(folder)
        return {'ready_s': round(s.ready_s, 1), 'doubt_first': round(first['doubt'], 4), 'doubt': round(last['doubt'], 4),
                **found}


def cpu_ns(pid):
    """What all threads of a process have run."""
    total = 0
    for task in os.listdir('/proc/%d/task' % pid):
        with contextlib.suppress(OSError), open('/proc/%d/task/%s/schedstat' % (pid, task), encoding='ascii') as f:
            total += int(f.read().split()[0])
    return total


class Turn:
    """A daemon that serves by one kept choice until the block ends."""

    def __init__(self, args, path, kept):
        self.args, self.path, self.kept = args, path, kept

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        shutil.copy(choice_file(self.kept), folder)
        self.served = self.stack.enter_context(Served(self.args.build, self.path, folder, configured(folder, STEADY)))
        self.model = self.served.ask('status')['models'][0]
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def to_one_core(self):
        self.served.ask('plan', 'set', '0-%d@%s' % (self.model['units'] - 1, self.served.ask('status')['eps'][0]['name']))

    def one_frame(self):
        """Return: ms of a frame: the client's wait, what the daemon's threads ran."""
        return self.bench(lambda r: r['latency_ms']['p50'], '--in-flight', '1')

    def many_frames(self):
        """Return: the same, the time between two answers for the wait."""
        return self.bench(lambda r: 1e3 / r['fps'])

    def bench(self, wall_ms, *more):
        before = cpu_ns(self.served.process.pid)
        r = self.served.ask('bench', '--seconds', str(self.args.seconds), *more)
        return wall_ms(r), (cpu_ns(self.served.process.pid) - before) / r['answered'] / 1e6


def take_turns(args, turns, measure):
    """@turns: {name: Turn}, 'quiet' among them. Return: times and ratios to quiet."""
    rounds = []
    for i in range(args.rounds):
        rounds.append({name: measure(turns[name]) for name in (reversed(turns) if i % 2 else turns)})
        time.sleep(args.rest_s)
    result = {}
    for at, what in enumerate(('ms', 'cpu_ms')):
        result[what] = {name: spread([r[name][at] for r in rounds]) for name in turns}
        result[what + '_ratio'] = {name: spread([r[name][at] / r['quiet'][at] for r in rounds])
                                   for name in turns if name != 'quiet'}
    return result


def compare(args, path, kept):
    with contextlib.ExitStack() as stack:
        turns = {name: stack.enter_context(Turn(args, path, folder)) for name, folder in kept.items()}
        many = take_turns(args, turns, Turn.many_frames)
        for t in turns.values():
            t.to_one_core()
        return {'plans': {name: t.model['plan'] for name, t in turns.items()}, 'many_frames': many,
                'one_frame': take_turns(args, turns, Turn.one_frame)}


def spread(values):
    return {'median': round(statistics.median(values), 3), 'min': round(min(values), 3), 'max': round(max(values), 3)}


def network(args, path):
    with contextlib.ExitStack() as stack:
        base = args.keep or stack.enter_context(tempfile.TemporaryDirectory())
        kept = {name: os.path.join(base, os.path.basename(path), name)
                for name in ('quiet_first', 'quiet', 'busy_first', 'busy')}
        for folder in kept.values():
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        starts = {name: start(args, path, busy, (kept[name + '_first'], kept[name]))
                  for name, busy in (('quiet', 0), ('busy', args.busy))}
        quiet = choice(kept['quiet'])
        differ = {name: differing(choice(kept[name]), quiet) for name in ('quiet_first', 'busy_first', 'busy')}
        turns = {'quiet': kept['quiet'], 'quiet_again': kept['quiet'], 'busy_first': kept['busy_first'], 'busy': kept['busy']}
        return {'network': os.path.basename(path), 'machine': machine(), 'busy_processes': args.busy, 'rate': args.rate,
                'rounds': args.rounds, 'operators': len(chosen(quiet)), 'differ_from_quiet': differ, 'starts': starts,
                **compare(args, path, turns)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--busy', type=int, default=2 * os.cpu_count(), help='processes beside the second start')
    parser.add_argument('--settle-s', type=float, default=60, help='the longest time for measuring again')
    parser.add_argument('--rate', type=float, default=0, help='frames a second meanwhile; 0: idle')
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--seconds', type=float, default=0.5, help='of a turn')
    parser.add_argument('--rest-s', type=float, default=0, help='after each round')
    parser.add_argument('--measure-ms', type=int, help='kernels.measure_ms')
    parser.add_argument('--keep', help='folder where the choices stay')
    parser.add_argument('networks', nargs='*')
    args = parser.parse_args()
    for path in networks_of(args.networks):
        print(json.dumps(network(args, path)), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
