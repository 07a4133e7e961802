#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The exported networks of tests/networks beside ONNX Runtime: one core, one frame at a time, interleaved.

usage: exported.py [--build DIR] [--models DIR] [--rounds N] [--measure-ms MS] [--no-install] [NAME...]

Without names: all that have a full form. A network is written by tests/networks/sweep_make.py (it needs torch), at
operator set 17, or else 13. Each round is a frame of either program; printed are medians, the ratio of the same round
with its quartiles, and the geometric mean.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from machine import machine  # noqa: E402
from prepare import ort_dir  # noqa: E402
from ways import CPUS, Way, note  # noqa: E402

MAKE = os.path.join(ROOT, 'tests', 'networks', 'sweep_make.py')
BUDGET_S = 20.0


def write(name, folder):
    """Path of the network's file, written if it is not there."""
    if not os.path.exists(os.path.join(folder, name + '.done')):
        subprocess.run(['/usr/bin/python3', MAKE, folder, 'full', name], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    for opset in (13, 17):
        path = os.path.join(folder, f'{name}.{opset}.onnx')
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f'{name}: it was not written')


def write_input(path, folder, name):
    """The frame as ONNX Runtime's program reads it. Return: its path."""
    import onnx
    from onnx import numpy_helper
    with open(os.path.join(folder, name + '.in0.pb'), 'rb') as f:
        x = numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
    to = path.replace('.onnx', '.input.f32')
    x.astype('float32').tofile(to)
    with open(path.replace('.onnx', '.json'), 'w', encoding='utf-8') as f:
        json.dump({'input': list(x.shape)}, f)
    return to


def compare(options, path, inputs):
    """Medians and ratios of interleaved frames."""
    core, cpu = CPUS[0], str(CPUS[0])
    ours = Way('piped', [([os.path.join(options.build, 'bench', 'net_bench'), path, '--measure', str(options.measure_ms),
                           '--serve'], cpu)])
    try:
        theirs = Way('ort', [(['node', os.path.join(HERE, 'ort_serve.js'), options.ort, path, inputs, '1'], cpu)])
    except RuntimeError:
        ours.stop()
        raise
    a, b = [], []
    try:
        for way in (ours, theirs):
            way.frame_ms(core)
        while len(a) < options.rounds and sum(a) + sum(b) < BUDGET_S * 1e3 or len(a) < 5:
            a.append(ours.frame_ms(core))
            b.append(theirs.frame_ms(core))
    finally:
        ours.stop()
        theirs.stop()
    ratios = sorted(y / x for x, y in zip(a, b))
    quartiles = statistics.quantiles(ratios, n=4)
    return {'piped_ms': statistics.median(a), 'ort_ms': statistics.median(b), 'ratio': statistics.median(ratios),
            'low': quartiles[0], 'high': quartiles[2], 'frames': len(a)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='*')
    p.add_argument('--build', default=os.path.join(ROOT, 'build'))
    p.add_argument('--models', default=os.path.join(os.path.expanduser('~/.cache'), 'piped-bench', 'exported'))
    p.add_argument('--rounds', type=int, default=60)
    p.add_argument('--measure-ms', type=int, default=3000)
    p.add_argument('--no-install', action='store_true')
    options = p.parse_args()
    options.ort = ort_dir(not options.no_install)
    if not options.ort:
        return 1
    os.makedirs(options.models, exist_ok=True)
    names = options.names or subprocess.run(['/usr/bin/python3', MAKE, '--list', 'full'], check=True, text=True,
                                            capture_output=True).stdout.split()
    print(json.dumps({'machine': machine()}), flush=True)
    ratios = []
    for name in names:
        try:
            path = write(name, options.models)
            r = compare(options, path, write_input(path, options.models, name))
        except (RuntimeError, OSError, subprocess.SubprocessError) as e:
            note(f'{name}: {e}')
            continue
        ratios.append(r['ratio'])
        print(f"{name:20} piped {r['piped_ms']:8.2f} ms   ONNX Runtime {r['ort_ms']:8.2f} ms   {r['ratio']:.2f} x "
              f"({r['low']:.2f} to {r['high']:.2f}, {r['frames']} frames)", flush=True)
    if ratios:
        print(f'geometric mean of {len(ratios)}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, '
              f'least {min(ratios):.2f}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
