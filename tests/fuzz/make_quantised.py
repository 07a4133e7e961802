#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes corpus/quantised: small quantised graphs, and the same with one thing wrong.

    make_quantised.py FOLDER

Needs python3-onnx; the files are kept, so that the tests do not."""
import os
import sys

import numpy as np
from onnx import TensorProto as T, helper, numpy_helper

RANDOM = np.random.RandomState(7)


class Graph:
    def __init__(self):
        self.nodes, self.constants, self.count = [], [], 0

    def const(self, value, dtype):
        self.count += 1
        name = "c%d" % self.count
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        self.count += 1
        names = ["v%d" % self.count + "abc"[i] for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def quantise(self, x, scale, zero, dtype=np.uint8):
        return self.op("QuantizeLinear", x, self.const(scale, np.float32), self.const(zero, dtype))

    def dequantise(self, x, scale, zero, dtype=np.uint8, **attributes):
        return self.op("DequantizeLinear", x, self.const(scale, np.float32), self.const(zero, dtype), **attributes)

    def qdq(self, x, scale, zero, dtype=np.uint8):
        return self.dequantise(self.quantise(x, scale, zero, dtype), scale, zero, dtype)

    def bytes(self, shape, dtype=np.int8):
        low, high = (-127, 128) if dtype == np.int8 else (0, 256)
        return self.const(RANDOM.randint(low, high, shape), dtype)

    def weights(self, shape):
        """Per output channel, dequantised."""
        scale = np.linspace(0.01, 0.02, shape[0])
        return self.dequantise(self.bytes(shape), scale, np.zeros(shape[0]), np.int8, axis=0)

    def bias(self, n):
        return self.dequantise(self.const(RANDOM.randint(-500, 500, n), np.int32), np.full(n, 5e-4), np.zeros(n),
                               np.int32, axis=0)

    def write(self, path, shape, out, kind=T.FLOAT):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, shape)],
                                  [helper.make_tensor_value_info(out, kind, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        with open(path, "wb") as f:
            f.write(model.SerializeToString())


def residual():
    """Convolutions, a sum and pools between QuantizeLinear and DequantizeLinear."""
    g = Graph()
    x = g.qdq("x", 0.02, 128)
    a = g.op("Conv", x, g.weights((4, 3, 3, 3)), g.bias(4), pads=[1, 1, 1, 1])
    a = g.qdq(g.op("Relu", a), 0.03, 0)
    b = g.op("Conv", a, g.weights((4, 1, 3, 3)), group=4, pads=[1, 1, 1, 1])
    c = g.qdq(g.op("Add", a, g.qdq(b, 0.04, 3)), 0.05, 7)
    p = g.qdq(g.op("MaxPool", c, kernel_shape=[2, 2], strides=[2, 2]), 0.05, 7)
    q = g.qdq(g.op("AveragePool", c, kernel_shape=[2, 2], strides=[2, 2]), 0.05, 7)
    r = g.qdq(g.op("GlobalAveragePool", g.op("Concat", p, q, axis=1)), 0.02, 1)
    return g, g.op("Gemm", g.op("Flatten", r), g.weights((5, 8)), g.bias(5), transB=1)


def symmetric():
    """The same on i8 without a zero point, LeakyRelu and Clip, and a result in bytes."""
    g = Graph()
    a = g.op("Conv", g.qdq("x", 0.02, 0, np.int8), g.weights((6, 3, 1, 1)), strides=[2, 2])
    a = g.qdq(g.op("LeakyRelu", a, alpha=0.1), 0.02, 0, np.int8)
    a = g.op("Clip", g.op("Conv", a, g.weights((6, 3, 3, 3)), group=2, dilations=[1, 1], auto_pad="SAME_UPPER"),
             g.const(0, np.float32), g.const(6, np.float32))
    return g, g.op("DequantizeLinear", g.op("QuantizeLinear", a, g.const(0.025, np.float32)),
                   g.const(0.025, np.float32))


def linear(scale=0.02, zero=128, weight_scale=None, weight_zero=None, bias=np.int32, channels=4, computed=False):
    """QLinearConv and QLinearMatMul."""
    g = Graph()
    s, z = g.const(scale, np.float32), g.const(zero, np.uint8)
    x = g.op("QuantizeLinear", "x", s, z)
    if computed:
        z = g.op("DynamicQuantizeLinear", "x", outputs=3)[2]
    scales = g.const(np.full(channels, 0.01) if weight_scale is None else weight_scale, np.float32)
    zeros = g.const(np.full(channels, 100) if weight_zero is None else weight_zero, np.uint8)
    y = g.const(0.1, np.float32), g.const(20, np.uint8)
    a = g.op("QLinearConv", x, s, z, g.bytes((4, 3, 3, 3), np.uint8), scales, zeros, *y,
             g.const(RANDOM.randint(-99, 99, 4), bias), strides=[2, 1])
    b = g.op("QLinearMatMul", a, *y, g.bytes((6, 5)), g.const(0.02, np.float32), g.const(0, np.int8), *y)
    return g, g.op("DequantizeLinear", b, *y)


def dynamic():
    """DynamicQuantizeLinear before ConvInteger and MatMulInteger."""
    g = Graph()
    x, scale, zero = g.op("DynamicQuantizeLinear", "x", outputs=3)
    a = g.op("ConvInteger", x, g.bytes((4, 3, 3, 3), np.uint8), zero, g.const(7, np.uint8), pads=[1, 0, 1, 0])
    b = g.op("Mul", g.op("Cast", a, to=T.FLOAT), g.op("Mul", scale, g.const(0.01, np.float32)))
    y, scale, zero = g.op("DynamicQuantizeLinear", g.op("Relu", b), outputs=3)
    c = g.op("MatMulInteger", y, g.bytes((6, 3)), zero)
    return g, g.op("Mul", g.op("Cast", c, to=T.FLOAT), scale)


def tensor(name, change):
    """residual() with constant @name changed."""
    g, out = residual()
    t = next(t for t in g.constants if t.name == name)
    t.CopyFrom(change(t))
    return g, out


def first(kind, change):
    """residual() with its first node of @kind changed."""
    g, out = residual()
    change(next(n for n in g.nodes if n.op_type == kind))
    return g, out


def array(value, dtype):
    return lambda t: numpy_helper.from_array(np.array(value, dtype), t.name)


def cut(t):
    t.raw_data = t.raw_data[:-5]
    return t


def used(op_type, which):
    """Name of input @which of residual()'s first node of that type that has a constant there."""
    g, _ = residual()
    names = {t.name for t in g.constants}
    return next(n.input[which] for n in g.nodes
                if n.op_type == op_type and len(n.input) > which and n.input[which] in names)


def main(folder):
    weights = next(t.name for t in residual()[0].constants if len(t.dims) == 4)
    scales = "c%d" % (int(weights[1:]) + 1)
    zeros = "c%d" % (int(weights[1:]) + 2)
    graphs = {
        "qdq": residual(), "qdq-symmetric": symmetric(), "qlinear": linear(), "dynamic": dynamic(),
        "bad-scale-zero": tensor(used("QuantizeLinear", 1), array(0, np.float32)),
        "bad-scale-negative": tensor(used("QuantizeLinear", 1), array(-1, np.float32)),
        "bad-scale-nan": tensor(used("DequantizeLinear", 1), array(np.nan, np.float32)),
        "bad-scale-huge": tensor(scales, array([3e38] * 4, np.float32)),
        "bad-scale-short": tensor(scales, array([0.01] * 3, np.float32)),
        "bad-scale-long": tensor(scales, array([0.01] * 5, np.float32)),
        "bad-scale-matrix": tensor(scales, array([[0.01] * 2] * 2, np.float32)),
        "bad-scale-type": tensor(scales, array([1] * 4, np.int32)),
        "bad-zero-type": tensor(zeros, array([0] * 4, np.uint8)),
        "bad-zero-float": tensor(used("QuantizeLinear", 2), array(0, np.float32)),
        "bad-zero-none": first("DequantizeLinear", lambda n: n.input.pop()),
        "bad-zero-empty": tensor(zeros, array([], np.int8)),
        "bad-weights-cut": tensor(weights, cut),
        "bad-weights-float": tensor(weights, array(np.ones((4, 3, 3, 3)), np.float32)),
        "bad-axis": first("DequantizeLinear", lambda n: n.attribute.append(helper.make_attribute("axis", 9))),
        "bad-group": first("Conv", lambda n: n.attribute.append(helper.make_attribute("group", 3))),
        "bad-linear-scales": linear(weight_scale=[0.01] * 2), "bad-linear-zeros": linear(weight_zero=[[1], [2]]),
        "bad-linear-bias": linear(bias=np.float32), "bad-linear-zero": linear(zero=[1, 2]),
        "bad-linear-scale": linear(scale=np.inf), "linear-computed": linear(computed=True),
    }
    os.makedirs(folder, exist_ok=True)
    for name, (g, out) in graphs.items():
        g.write(os.path.join(folder, name + ".onnx"), [1, 3, 8, 8], out)


if __name__ == "__main__":
    main(sys.argv[1])
