#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a network is served, and what memory the daemon takes then.

usage: start.py [--build DIR] [--runs N] [--frames N] [NETWORK|FILE...]

Starts the daemon of the build with one network of models/ (see models.py; all that are there by default) and an empty
state folder: its primitives are measured. Then starts it N times again with what was kept: time from the start of the
process to READY=1, and to the end of a client that had its first frame answered. After more frames, memory: resident,
weights, arenas, and the bound of 1.15 times the weights + arenas + 20 MB. Prints one JSON object a network.
"""
import argparse
import json
import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20
LIMIT_S = 120


class Served:
    """A daemon until its block ends; .ready_s: how long it took."""

    def __init__(self, build, path, folder, more=()):
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = os.path.join(folder, 'notify.sock')
        if os.path.exists(name):
            os.unlink(name)
        self.notify.bind(name)
        self.client = [os.path.join(build, 'apps', 'pipectl', 'pipectl'), '--socket', os.path.join(folder, 'control.sock'),
                       '--json']
        self.env = dict(os.environ, NOTIFY_SOCKET=name, PIPED_RUNTIME_DIR=folder)
        self.start = time.monotonic()
        self.process = subprocess.Popen([os.path.join(build, 'daemon', 'piped'), '--model', 'net=' + path, '--runtime-dir',
                                         folder, '--state-dir', folder, *more], env=self.env, stderr=subprocess.DEVNULL)
        while b'READY=1' not in self.message():
            pass
        self.ready_s = time.monotonic() - self.start

    def message(self):
        if not select.select([self.notify], [], [], LIMIT_S)[0]:
            self.process.kill()
            sys.exit('start.py: the daemon did not become ready')
        return self.notify.recv(8192)

    def ask(self, *args):
        r = subprocess.run(self.client + list(args), env=self.env, stdout=subprocess.PIPE, check=True)
        return json.loads(r.stdout)

    def frames(self, count):
        return self.ask('bench', '--frames', str(count))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=LIMIT_S)
        self.notify.close()


def spread(values):
    return {'median': round(statistics.median(values), 3), 'min': round(min(values), 3), 'max': round(max(values), 3)}


def megabytes(count):
    return round(count / MIB, 1)


def network(args, path):
    ready, first = [], []
    with tempfile.TemporaryDirectory() as folder:
        with Served(args.build, path, folder) as s:
            cold_s = s.ready_s
            s.frames(args.frames)
            cold = s.ask('status')['memory']
        for _ in range(args.runs):
            with Served(args.build, path, folder) as s:
                ready.append(s.ready_s)
                s.frames(1)
                first.append(time.monotonic() - s.start)
                s.frames(args.frames)
                warm = s.ask('status')['memory']
    bound = 1.15 * warm['weight_bytes'] + warm['arena_bytes'] + 20 * MIB
    return {'network': os.path.basename(path), 'first_load_s': round(cold_s, 2), 'ready_s': spread(ready),
            'first_frame_s': spread(first), 'weights_mb': megabytes(warm['weight_bytes']),
            'packed_mb': megabytes(warm['packed_bytes']), 'arenas_mb': megabytes(warm['arena_bytes']),
            'resident_mb': megabytes(warm['resident_bytes']), 'after_measuring_mb': megabytes(cold['resident_bytes']),
            'bound_mb': megabytes(bound)}


def networks_of(names):
    """Yields the path of each: a file, or a network of models/; without names of all that are there."""
    models = os.path.join(ROOT, 'models')
    there = os.listdir(models) if os.path.isdir(models) else []
    names = names or sorted(n for n in there if n.endswith('.onnx'))
    if not names:
        print('skipped: no networks; bench/models.py makes them')
    for name in names:
        yield name if os.path.exists(name) else os.path.join(models, name if name.endswith('.onnx') else name + '.onnx')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--frames', type=int, default=20)
    parser.add_argument('networks', nargs='*')
    args = parser.parse_args()
    for path in networks_of(args.networks):
        print(json.dumps(network(args, path)), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
