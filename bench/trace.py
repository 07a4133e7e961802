#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `pipectl trace` costs while it records: runs with and without it, alternately, on one daemon.

usage: trace.py [--build DIR] [--model FILE] [--runs N] [--frames N] [--rate FPS]

Each pair is a run without and a run with a trace, in alternating order, of the same frames. Prints one JSON object: the
ratios with/without of frames/s and of the daemon's CPU time per frame (medians and quartiles of the pairs), the CPU time
of pipectl trace per frame, bytes per frame of the file, and the machine. Where other programs use the cores, CPU time
says more than frames/s.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from machine import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def schedule_ns(pid):
    """CPU time of all threads so far, from the scheduler."""
    total = 0
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/schedstat' % (pid, task), encoding='ascii') as f:
            total += int(f.read().split()[0])
    return total


def quartiles(values, digits):
    low, middle, high = statistics.quantiles(values, n=4)
    return {'median': round(middle, digits), 'quartiles': [round(low, digits), round(high, digits)], 'runs': len(values)}


class Runs:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.env = dict(os.environ, PIPED_RUNTIME_DIR=folder)
        self.pipectl = os.path.join(args.build, 'apps', 'pipectl', 'pipectl')
        self.daemon = None

    def start(self):
        config = os.path.join(self.folder, 'piped.json')
        with open(config, 'w', encoding='ascii') as f:
            json.dump({'adapt': {'enabled': False}}, f)
        # no logs of a plan that changes: it must not change between the runs
        self.daemon = subprocess.Popen([os.path.join(self.args.build, 'daemon', 'piped'), '--config', config, '--model',
                                        'net=' + self.args.model, '--runtime-dir', self.folder, '--state-dir', self.folder],
                                       stderr=subprocess.DEVNULL)
        while not os.path.exists(os.path.join(self.folder, 'frames.sock')):
            if self.daemon.poll() is not None:
                sys.exit('trace.py: the daemon ended with %d' % self.daemon.returncode)
            time.sleep(0.05)

    def bench(self):
        """Return: (frames/s, CPU ns of the daemon per frame)."""
        rate = ['--rate', str(self.args.rate)] if self.args.rate else []
        before = schedule_ns(self.daemon.pid)
        out = subprocess.run([self.pipectl, '--json', 'bench', '--frames', str(self.args.frames), *rate], env=self.env,
                             check=True, stdout=subprocess.PIPE).stdout
        return json.loads(out)['fps'], (schedule_ns(self.daemon.pid) - before) / self.args.frames

    def traced(self):
        """Return: the same, CPU ns of pipectl per frame, bytes of the file per frame."""
        path = os.path.join(self.folder, 'trace')
        with subprocess.Popen([self.pipectl, '--json', 'trace', '--seconds', '3600', '-o', path], env=self.env,
                              stdout=subprocess.PIPE) as p:
            while not os.path.exists(path):
                time.sleep(0.01)
            result = self.bench()
            own = schedule_ns(p.pid)
            p.send_signal(signal.SIGINT)
            summary = json.loads(p.communicate()[0])
        os.unlink(path)
        if summary['lost']['records']:
            print('trace.py: records were lost', summary, file=sys.stderr)
        return (*result, own / self.args.frames, summary['bytes'] / self.args.frames)

    def all(self):
        pairs = []
        self.bench()
        for i in range(self.args.runs):
            first = self.traced() if i % 2 else None
            plain = self.bench()
            pairs.append((plain, first or self.traced()))
        return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--model', default=os.path.join(ROOT, 'model', 'default', 'digits.onnx'))
    parser.add_argument('--runs', type=int, default=20)
    parser.add_argument('--frames', type=int, default=2000)
    parser.add_argument('--rate', type=float, default=0)
    args = parser.parse_args()
    if args.runs < 2:
        parser.error('--runs must be 2 or more')
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(args, folder)
        runs.start()
        try:
            pairs = runs.all()
        finally:
            runs.daemon.send_signal(signal.SIGTERM)
            runs.daemon.wait(timeout=30)
    print(json.dumps({
        'machine': machine(), 'model': os.path.basename(args.model), 'frames': args.frames,
        'fps_without': quartiles([p[0] for p, _ in pairs], 1),
        'fps_ratio': quartiles([t[0] / p[0] for p, t in pairs], 4),
        'cpu_us_without': quartiles([p[1] / 1e3 for p, _ in pairs], 2),
        'cpu_ratio': quartiles([t[1] / p[1] for p, t in pairs], 4),
        'pipectl_us_per_frame': quartiles([t[2] / 1e3 for _, t in pairs], 2),
        'file_bytes_per_frame': quartiles([t[3] for _, t in pairs], 1)}, indent=2))
    return 0


if __name__ == '__main__':
    sys.exit(main())
