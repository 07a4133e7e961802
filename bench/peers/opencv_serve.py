#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A model on OpenCV's dnn, for a script that runs it in turns with other programs.

usage: opencv_serve.py MODEL.onnx INPUT.f32 [THREADS]

Prints "ready", then for every line on stdin runs one frame and prints its milliseconds or, when the line is a number of
seconds, frame after frame for so long and prints {"frames": [[start_ns, end_ns], ...]} on CLOCK_MONOTONIC.
"""
import json
import sys
import time

import cv2
import numpy as np


def main():
    model, path = sys.argv[1:3]
    with open(path.replace('.input.f32', '.json'), encoding='utf-8') as f:
        shape = json.load(f)['input']
    cv2.setNumThreads(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    net = cv2.dnn.readNetFromONNX(model)
    x = np.fromfile(path, np.float32).reshape(shape)
    outputs = net.getUnconnectedOutLayersNames()

    def frame():
        net.setInput(x)
        net.forward(outputs)

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


main()
