# SPDX-License-Identifier: Apache-2.0
"""What the Python programs of bench/peers do with the lines that ways.py sends them."""
import json
import sys
import time

import numpy as np


def read_input(path):
    """The frame of NAME.input.f32 in the shape that NAME.json says."""
    with open(path.replace('.input.f32', '.json'), encoding='utf-8') as f:
        shape = json.load(f)['input']
    return np.fromfile(path, np.float32).reshape(shape)


def serve(frame):
    """Warms up and prints "ready". Then each line of stdin runs frame() once and prints its milliseconds or, if the line is
    a number of seconds, runs it again and again for so long and prints {"frames": [[start_ns, end_ns], ...]} on
    CLOCK_MONOTONIC."""
    for _ in range(3):
        frame()
    print('ready', flush=True)
    for line in sys.stdin:
        seconds = float(line) if line.strip() != 'go' else 0
        start, frames = time.monotonic_ns(), []
        if seconds == 0:
            frame()
            print(f'{(time.monotonic_ns() - start) / 1e6:.4f}', flush=True)
            continue
        end = start + int(seconds * 1e9)
        while start < end:
            frame()
            done = time.monotonic_ns()
            frames.append([start, done])
            start = done
        print(json.dumps({'frames': frames}), flush=True)
