# SPDX-License-Identifier: Apache-2.0
"""Writes small ONNX files without any library: a chain of operators with seeded weights.

    write(path, [("conv", 64, 3), ("relu",), ("depthwise", 3), ("pool",), ("linear", 1000)], channels=3, size=56)

beside="weights.bin" puts the weights into that file, as external data. Field numbers are those of onnx.proto; the
encoding is protobuf's (varints, and length-delimited pieces).
"""
import array
import os
import random


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def piece(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    if isinstance(value, int):
        return piece(1, name) + number(3, value) + number(20, 2)
    return piece(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def node(kind, inputs, output, **attributes):
    return (b"".join(piece(1, i) for i in inputs) + piece(2, output) + piece(3, output) + piece(4, kind) +
            b"".join(piece(5, attribute(k, v)) for k, v in attributes.items()))


def value(name, shape):
    dims = b"".join(piece(1, number(1, d)) for d in shape)
    return piece(1, name) + piece(2, piece(1, number(1, 1) + piece(2, dims)))


class Weights:
    """Seeded values, about as large as keeps activations from growing; one block of them, over and over. `beside`: the
    name of a file for them beside the model, whose bytes are in `data` afterwards."""

    def __init__(self, seed, beside=None):
        self.beside, self.data = beside, bytearray()
        r = random.Random(seed)
        self.block = [r.uniform(-1, 1) for _ in range(4099)]

    def tensor(self, name, shape, fan_in):
        count, scale = 1, (3.0 / fan_in) ** 0.5
        for d in shape:
            count *= d
        block = array.array("f", [v * scale for v in self.block]).tobytes()
        data = (block * (count * 4 // len(block) + 1))[:count * 4]
        head = b"".join(number(1, d) for d in shape) + number(2, 1) + piece(8, name)
        if not self.beside:
            return head + piece(9, data)
        where = {"location": self.beside, "offset": str(len(self.data)), "length": str(len(data))}
        self.data += data
        return head + b"".join(piece(13, piece(1, k) + piece(2, v)) for k, v in where.items()) + number(14, 1)


def write(path, layers, channels=3, size=56, seed=1, beside=None):
    weights, nodes, tensors = Weights(seed, beside), [], []
    at, c, h = "input", channels, size

    def weight(shape, fan_in):
        tensors.append(weights.tensor("w%d" % len(tensors), shape, fan_in))
        return "w%d" % (len(tensors) - 1)

    for i, (kind, *args) in enumerate(layers):
        out = "output" if i + 1 == len(layers) else "v%d" % i
        if kind == "conv":
            outputs, k = args
            nodes.append(node("Conv", [at, weight((outputs, c, k, k), c * k * k)], out, kernel_shape=[k, k],
                              pads=[k // 2] * 4))
            c = outputs
        elif kind == "depthwise":
            k = args[0]
            nodes.append(node("Conv", [at, weight((c, 1, k, k), k * k)], out, kernel_shape=[k, k], pads=[k // 2] * 4,
                              group=c))
        elif kind == "relu":
            nodes.append(node("Relu", [at], out))
        elif kind == "pool":
            nodes.append(node("MaxPool", [at], out, kernel_shape=[2, 2], strides=[2, 2]))
            h //= 2
        elif kind == "linear":
            flat = "flat%d" % i
            nodes.append(node("Flatten", [at], flat))
            nodes.append(node("Gemm", [flat, weight((args[0], c * h * h), c * h * h)], out, transB=1))
            c, h = args[0], 1
        at = out
    shape = (1, c) if layers[-1][0] == "linear" else (1, c, h, h)
    graph = (b"".join(piece(1, n) for n in nodes) + piece(2, "tiny") + b"".join(piece(5, t) for t in tensors) +
             piece(11, value("input", (1, channels, size, size))) + piece(12, value("output", shape)))
    with open(path, "wb") as f:
        f.write(number(1, 8) + piece(7, graph) + piece(8, number(2, 13)))
    if beside:
        file = os.path.join(os.path.dirname(path), beside)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as f:
            f.write(weights.data)


BOXES = 2048


def write_boxes(path, convs=6, channels=48):
    """Convolutions, and beside them boxes of which overlapping ones are dropped: what that takes depends on how many there
    are. Input: BOXES rows of two corners and a score; see boxes()."""
    weights, tensors = Weights(1), []
    nodes, at, c = [], "square", BOXES * 5 // 1024

    def integers(name, values):
        data = array.array("q", values).tobytes()
        tensors.append(number(1, len(values)) + number(2, 7) + piece(8, name) + piece(9, data))
        return name

    def floats(name, values):
        tensors.append(number(1, len(values)) + number(2, 1) + piece(8, name) + piece(9, array.array("f", values).tobytes()))
        return name

    nodes.append(node("Reshape", ["input", integers("shape", [1, c, 32, 32])], at))
    for i in range(convs):
        tensors.append(weights.tensor("w%d" % i, (channels, c, 3, 3), c * 9))
        nodes.append(node("Conv", [at, "w%d" % i], "conv%d" % i, kernel_shape=[3, 3], pads=[1] * 4))
        at, c = "output" if i + 1 == convs else "relu%d" % i, channels
        nodes.append(node("Relu", ["conv%d" % i], at))
    axis = integers("axis", [2])
    nodes += [node("Slice", ["input", integers("0", [0]), integers("4", [4]), axis], "corners"),
              node("Slice", ["input", "4", integers("5", [5]), axis], "column"),
              node("Transpose", ["column"], "scores", perm=[0, 2, 1]),
              node("NonMaxSuppression", ["corners", "scores", integers("most", [BOXES]), floats("overlap", [0.5]),
                                         floats("score", [0.5])], "rows")]
    rows = piece(1, "rows") + piece(2, piece(1, number(1, 7) + piece(2, piece(1, piece(2, "found")) + piece(1, number(1, 3)))))
    graph = (b"".join(piece(1, n) for n in nodes) + piece(2, "boxes") + b"".join(piece(5, t) for t in tensors) +
             piece(11, value("input", (1, BOXES, 5))) + piece(12, value("output", (1, channels, 32, 32))) + piece(12, rows))
    with open(path, "wb") as f:
        f.write(number(1, 8) + piece(7, graph) + piece(8, number(2, 13)))


def boxes(count):
    """A frame for it with so many boxes that do not overlap."""
    frame = array.array("f", bytes(4 * 5 * BOXES))
    for i in range(count):
        frame[5 * i:5 * i + 5] = array.array("f", (0, 2 * i, 1, 2 * i + 1, 1))
    return frame.tobytes()
