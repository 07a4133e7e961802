#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Chains of segments of real networks equal the whole, bit for bit, at every cut (segment_check.c).

usage: segments.py SEGMENT_CHECK NETWORKS_DIR DEFAULT_MODEL
Two described networks (four with PIPED_TEST_LONG=1) and the model that the daemon serves by default; trained ones from
../shared/real beside the project (or $PIPED_SHARED/real), quantised ones among them, where they are.
"""
import concurrent.futures
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get('PIPED_SHARED', os.path.join(os.path.dirname(ROOT), 'shared'))
NAMES = ['mobilenet_v1', 'squeezenet1_1'] + (['resnet50', 'googlenet'] if os.environ.get('PIPED_TEST_LONG') else [])


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end='', flush=True)
    if done.returncode != 0:
        print('FAIL %s: exit %d' % (command[-1], done.returncode), flush=True)
    return done.returncode == 0


def main():
    check, networks, default = sys.argv[1:4]
    real = sorted(glob.glob(os.path.join(SHARED, 'real', 'models', '*.onnx')))
    if not real:
        print('no trained networks in %s: only described ones' % SHARED)
    files = [os.path.join(networks, name + '.json') for name in NAMES] + [default] + real
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return 0 if all(list(pool.map(lambda f: run([check, f]), files))) else 1


if __name__ == '__main__':
    sys.exit(main())
