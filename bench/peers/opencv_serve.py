#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A model on OpenCV's dnn, for a script that runs it in turns with other programs (serve.py says how).

usage: opencv_serve.py MODEL.onnx INPUT.f32 [THREADS]
"""
import sys

import cv2

from serve import read_input, serve


def main():
    model, path = sys.argv[1:3]
    cv2.setNumThreads(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    net = cv2.dnn.readNetFromONNX(model)
    x = read_input(path)
    outputs = net.getUnconnectedOutLayersNames()

    def frame():
        net.setInput(x)
        net.forward(outputs)

    serve(frame)


main()
