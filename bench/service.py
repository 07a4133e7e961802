#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of the service around the computing: round trip beyond compute, and an idle daemon.

usage: service.py [--build DIR] [--model FILE] [--runs N] [--idle SECONDS]

Starts the daemon of the build with one model (models/mobilenet_v2.onnx by default, see models.py), measures the round
trip of 224x224 images through shared memory in several runs, then watches the daemon's CPU clock while a client is
connected and silent. Prints one JSON object with medians and spread, and the machine.
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


def cpu_seconds(pid):
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def schedule_ns(pid):
    """CPU time of all threads from the scheduler, finer than clock ticks."""
    total = 0
    for task in os.listdir('/proc/%d/task' % pid):
        try:
            with open('/proc/%d/task/%s/schedstat' % (pid, task)) as f:
                total += int(f.read().split()[0])
        except OSError:
            return None
    return total


def spread(values):
    return {'median': round(statistics.median(values), 2), 'min': round(min(values), 2),
            'max': round(max(values), 2), 'runs': len(values)}


def idle_share(pid, seconds):
    ticks, fine, start = cpu_seconds(pid), schedule_ns(pid), time.monotonic()
    time.sleep(seconds)
    wall = time.monotonic() - start
    if fine is not None:
        return (schedule_ns(pid) - fine) / 1e9 / wall
    return (cpu_seconds(pid) - ticks) / wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--model', default=os.path.join(ROOT, 'models', 'mobilenet_v2.onnx'))
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--idle', type=float, default=10)
    args = parser.parse_args()
    if not os.path.exists(args.model):
        print('skipped: no %s; bench/models.py makes it' % args.model)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PIPED_RUNTIME_DIR=folder)
        daemon = subprocess.Popen([os.path.join(args.build, 'daemon', 'piped'), '--model',
                                   'net=' + args.model, '--runtime-dir', folder, '--state-dir',
                                   folder], stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(os.path.join(folder, 'frames.sock')):
                if daemon.poll() is not None:
                    sys.exit('service.py: the daemon ended with %d' % daemon.returncode)
                time.sleep(0.05)
            client = os.path.join(args.build, 'bench', 'roundtrip')
            trips = [json.loads(subprocess.run([client, '--frames', '500'], env=env, check=True,
                                               stdout=subprocess.PIPE).stdout)
                     for _ in range(args.runs)]
            silent = subprocess.Popen([client, '--frames', '1', '--hold', str(int(args.idle) + 5)],
                                      env=env, stdout=subprocess.PIPE)
            silent.stdout.readline()
            time.sleep(1)
            idle = idle_share(daemon.pid, args.idle)
            silent.terminate()
            silent.wait()
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(timeout=30)
    print(json.dumps({
        'machine': machine(), 'model': os.path.basename(args.model),
        'beyond_us_p50': spread([t['beyond_us']['p50'] for t in trips]),
        'beyond_us_p99': spread([t['beyond_us']['p99'] for t in trips]),
        'there_us_p50': spread([t['there_us']['p50'] for t in trips]),
        'queue_us_p50': spread([t['queue_us']['p50'] for t in trips]),
        'back_us_p50': spread([t['back_us']['p50'] for t in trips]),
        'service_us_p50': spread([t['service_us']['p50'] for t in trips]),
        'awake_beyond_us_p50': spread([t['awake']['beyond_us']['p50'] for t in trips]),
        'awake_beyond_us_p99': spread([t['awake']['beyond_us']['p99'] for t in trips]),
        'awake_there_us_p50': spread([t['awake']['there_us']['p50'] for t in trips]),
        'awake_queue_us_p50': spread([t['awake']['queue_us']['p50'] for t in trips]),
        'awake_back_us_p50': spread([t['awake']['back_us']['p50'] for t in trips]),
        'idle_share_of_a_core': round(idle, 5)}, indent=2))
    return 0


if __name__ == '__main__':
    sys.exit(main())
