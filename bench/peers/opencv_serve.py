#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One frame of a model on OpenCV's dnn, one thread, per line on stdin; prints its milliseconds.

usage: opencv_serve.py MODEL.onnx INPUT.f32
"""
import json
import sys
import time

import cv2
import numpy as np

model, path = sys.argv[1:3]
shape = json.load(open(path.replace('.input.f32', '.json')))['input']
cv2.setNumThreads(1)
net = cv2.dnn.readNetFromONNX(model)
x = np.fromfile(path, np.float32).reshape(shape)


def frame():
    start = time.perf_counter()
    net.setInput(x)
    net.forward()
    return (time.perf_counter() - start) * 1e3


for _ in range(3):
    frame()
print('ready', flush=True)
for _ in sys.stdin:
    print(f'{frame():.4f}', flush=True)
