#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares piped's network on one core with ONNX Runtime and OpenCV, interleaved.

usage: peers.py [--models DIR] [--rounds N] [--cpu C] [--build DIR] [--json] [NAME|FILE.onnx...]

Every program is loaded at once, pinned to the same core, and runs one frame at a time in turns, so
that whatever the machine does meanwhile hits all alike. Printed are medians, the spread (10th to
90th percentile) and the ratio to piped: the median of the ratios of the same round. ONNX Runtime
comes from the npm package onnxruntime-node, installed on first use into
$XDG_CACHE_HOME/piped-bench; a peer that is not there is left out with a message. Networks are
written by bench/models.py.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ORT_VERSION = '1'


def note(text):
    print(f'peers: {text}', file=sys.stderr)


def ort_dir():
    """Folder with onnxruntime-node installed, or None with a message."""
    cache = os.path.join(os.environ.get('XDG_CACHE_HOME', os.path.expanduser('~/.cache')),
                         'piped-bench', 'onnxruntime')
    if os.path.isdir(os.path.join(cache, 'node_modules', 'onnxruntime-node')):
        return cache
    if not shutil.which('npm') or not shutil.which('node'):
        note('no ONNX Runtime: npm and node are not installed')
        return None
    os.makedirs(cache, exist_ok=True)
    note(f'installing onnxruntime-node into {cache}')
    done = subprocess.run(['npm', 'install', '--no-fund', '--no-audit', '--prefix', cache,
                           f'onnxruntime-node@{ORT_VERSION}'], capture_output=True, text=True,
                          env=dict(os.environ, ONNXRUNTIME_NODE_INSTALL_CUDA='skip'), timeout=600,
                          check=False)
    if done.returncode != 0:
        note('no ONNX Runtime: npm install failed: ' + done.stderr.strip().split('\n')[-1])
        return None
    return cache


def has_opencv():
    if subprocess.run(['/usr/bin/python3', '-c', 'import cv2'], capture_output=True,
                      check=False).returncode:
        note('no OpenCV: python3-opencv is not installed')
        return False
    return True


class Program:
    """A program that runs a frame for every line it is given."""

    def __init__(self, name, command, cpu):
        self.name = name
        self.times = []
        self.process = subprocess.Popen(['taskset', '-c', str(cpu)] + command, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE,
                                        env=dict(os.environ, OMP_NUM_THREADS='1'))
        line = self.process.stdout.readline().strip()
        if line != 'ready':
            why = self.process.stderr.read().strip().split('\n')[-1]
            raise RuntimeError(f'{name} did not start: {why}')

    def frame(self):
        self.process.stdin.write('go\n')
        self.process.stdin.flush()
        self.times.append(float(self.process.stdout.readline()))

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


def commands(args, model, ort):
    inputs = model.replace('.onnx', '.input.f32')
    yield 'piped', [os.path.join(args.build, 'bench', 'net_bench'), model, '--serve']
    if ort:
        yield 'onnxruntime', ['node', os.path.join(HERE, 'ort_serve.js'), ort, model, inputs]
    if args.opencv:
        yield 'opencv', ['/usr/bin/python3', os.path.join(HERE, 'opencv_serve.py'), model, inputs]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def compare(args, model, ort):
    programs = []
    for name, command in commands(args, model, ort):
        try:
            programs.append(Program(name, command, args.cpu))
        except (RuntimeError, OSError) as e:
            note(str(e))
            if name == 'piped':
                return None
    for i in range(args.rounds):
        # whoever comes first after the others finds colder caches: take turns
        for k in range(len(programs)):
            programs[(i + k) % len(programs)].frame()
    for p in programs:
        p.stop()
    ours = programs[0].times
    return {'model': os.path.basename(model), 'rounds': args.rounds, 'programs': [
        {'name': p.name, 'median_ms': round(statistics.median(p.times), 3),
         'p10_ms': round(percentile(p.times, 0.1), 3),
         'p90_ms': round(percentile(p.times, 0.9), 3),
         'piped_is': round(statistics.median([a / b for a, b in zip(ours, p.times)]), 3)}
        for p in programs]}


def cpu_name():
    for line in open('/proc/cpuinfo'):
        if line.startswith(('model name', 'Model')):
            return line.split(':', 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--models', default=os.path.join(ROOT, 'models'))
    parser.add_argument('--rounds', type=int, default=25)
    parser.add_argument('--cpu', type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--json', action='store_true')
    parser.add_argument('names', nargs='*', default=['resnet50'])
    args = parser.parse_args()
    ort = ort_dir()
    args.opencv = has_opencv()
    results = []
    for name in args.names:
        model = name if name.endswith('.onnx') else os.path.join(args.models, name + '.onnx')
        if not os.path.exists(model):
            note(f'{model} is not there: bench/models.py writes it')
            continue
        result = compare(args, model, ort)
        if result:
            results.append(result)
    machine = {'cpu': cpu_name(), 'cores': os.cpu_count(), 'load': os.getloadavg()[0]}
    if args.json:
        print(json.dumps({'machine': machine, 'results': results}))
    else:
        print(f'{machine["cpu"]}, {machine["cores"]} cores, one used, load {machine["load"]:.1f}')
        for r in results:
            print(f'{r["model"]} ({r["rounds"]} rounds)')
            for p in r['programs']:
                print(f'  {p["name"]:<12} {p["median_ms"]:9.2f} ms  ({p["p10_ms"]:.2f} .. '
                      f'{p["p90_ms"]:.2f})   piped takes {p["piped_is"]:.2f} of its time')
    return 0 if results else 77


if __name__ == '__main__':
    sys.exit(main())
