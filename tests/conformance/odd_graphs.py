# SPDX-License-Identifier: Apache-2.0
"""Small graphs that nobody exports on purpose: sizes of 0, a batch of 0, and numbers at the ends of the line.

    generate(onnx, folder, seed, count) -> [(name, operators, model, inputs, outputs)]

ONNX's rules, in NumPy, are the oracle: each step is computed in double and rounded to f32, as the operator's text
says. The same seed makes the same graphs.
"""
import importlib
import os
import random

import numpy as np

F32 = np.float32
ENDS = [0.0, -0.0, 1e30, -1e30, 3.4e38, -3.4e38, 1.2e-38, 1e-45, -1e-45, np.inf, -np.inf, np.nan, 88.0, -88.0, 104.0, -104.0,
        1.0, -1.0, 0.5, -2.5, 16777216.0, 2e27, -2e28]
OPSET, IR = 13, 8


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


ELEMENTS = {
    "Relu": lambda x: np.where(x < 0, 0.0, x), "Neg": np.negative, "Abs": np.abs, "Sigmoid": sigmoid, "Tanh": np.tanh,
    "Exp": np.exp, "Softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), "Sqrt": np.sqrt,
    "Reciprocal": lambda x: 1 / x, "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Log": np.log,
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x), "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x), "Softsign": lambda x: x / (1 + np.abs(x)),
    "Identity": lambda x: x, "Sign": np.sign,
}
PAIRS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum, "Min": np.minimum}
REDUCTIONS = {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceMean": np.mean, "ReduceL1":
              lambda x, **k: np.sum(np.abs(x), **k)}


class Graph:
    """A graph that grows by one node at a time, with the value of each tensor beside it."""

    def __init__(self, onnx, rng):
        self.onnx, self.rng, self.nodes, self.weights, self.inputs, self.made = onnx, rng, [], [], [], 0

    def size(self):
        return self.rng.choice([0, 0, 1, 2, 3, 5, 8, 16])

    def data(self, shape):
        """Ends and ordinary numbers; at times only ordinary ones, so that sums say something."""
        count = int(np.prod(shape, dtype=np.int64))
        ends = self.rng.random() < 0.6
        values = [self.rng.choice(ENDS) if ends and self.rng.random() < 0.5 else self.rng.uniform(-3, 3)
                  for _ in range(count)]
        return np.array(values, F32).reshape(shape)

    def input(self, shape):
        name = "x%d" % len(self.inputs)
        self.inputs.append((name, self.data(shape)))
        return self.inputs[-1]

    def constant(self, value):
        name = "c%d" % len(self.weights)
        self.weights.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind, inputs, value, **attributes):
        """Return: the new tensor; the value is rounded to f32 if it is a float."""
        name = "t%d" % self.made
        self.made += 1
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], name="n%d" % self.made, **attributes))
        value = np.asarray(value)
        return name, value.astype(F32) if value.dtype.kind == "f" else value


# Each takes a graph and one of its tensors (name, value), and adds a node that reads it. None: it does not fit.

def element(g, x):
    kind = g.rng.choice(sorted(ELEMENTS))
    more = {"alpha": 1.0} if kind == "Elu" else {"alpha": 0.01} if kind == "LeakyRelu" else {}
    return g.add(kind, [x[0]], ELEMENTS[kind](x[1].astype(float)), **more)


def widened(g, x, shape):
    return g.add("Expand", [x[0], g.constant(np.array(shape, np.int64))], np.broadcast_to(x[1], shape))


def pair(g, x):
    kind = g.rng.choice(sorted(PAIRS))
    shape = [d if g.rng.random() < 0.7 else 1 for d in x[1].shape][g.rng.randrange(x[1].ndim + 1):]
    other = g.data(shape)
    name = g.constant(other) if g.rng.random() < 0.5 else None
    if name is None:
        g.inputs.append(("x%d" % len(g.inputs), other))
        name = g.inputs[-1][0]
    if x[1].ndim and g.rng.random() < 0.3:
        name, other = widened(g, (name, other), x[1].shape)
    if x[1].ndim and g.rng.random() < 0.3:
        x = widened(g, x, [g.rng.choice([4, 8]) if d == 1 else d for d in x[1].shape])
    return g.add(kind, [x[0], name], PAIRS[kind](x[1].astype(float), other.astype(float)))


def clip(g, x):
    return g.add("Clip", [x[0], g.constant(F32(-1)), g.constant(F32(2))], np.minimum(np.maximum(x[1], -1), 2))


def transpose(g, x):
    perm = list(range(x[1].ndim))
    g.rng.shuffle(perm)
    return g.add("Transpose", [x[0]], x[1].transpose(perm), perm=perm) if perm else None


def reshape(g, x):
    return g.add("Reshape", [x[0], g.constant(np.array([x[1].size, 1], np.int64))], x[1].reshape(x[1].size, 1), allowzero=0) \
        if x[1].size else None


def flatten(g, x):
    axis = g.rng.randrange(x[1].ndim + 1)
    left = int(np.prod(x[1].shape[:axis], dtype=np.int64))
    right = int(np.prod(x[1].shape[axis:], dtype=np.int64))
    return g.add("Flatten", [x[0]], x[1].reshape(left, right), axis=axis)


def cut(g, x):
    if x[1].ndim == 0:
        return None
    axis = g.rng.randrange(x[1].ndim)
    a, b = sorted(g.rng.randrange(x[1].shape[axis] + 1) for _ in range(2))
    at = [slice(None)] * x[1].ndim
    at[axis] = slice(a, b)
    end = (1 << 63) - 1 if b == x[1].shape[axis] and g.rng.random() < 0.5 else b
    return g.add("Slice", [x[0]] + [g.constant(np.array([v], np.int64)) for v in (a, end, axis)], x[1][tuple(at)])


def join(g, x):
    if x[1].ndim == 0:
        return None
    axis = g.rng.randrange(x[1].ndim)
    shape = list(x[1].shape)
    shape[axis] = g.rng.choice([0, 1, 2])
    other = g.data(shape)
    return g.add("Concat", [x[0], g.constant(other)], np.concatenate([x[1], other], axis), axis=axis)


def pick(g, x):
    axis = g.rng.randrange(x[1].ndim) if x[1].ndim else 0
    if x[1].ndim == 0 or x[1].shape[axis] == 0:
        return None
    at = np.array([g.rng.randrange(x[1].shape[axis]) for _ in range(g.rng.randrange(4))], np.int64)
    return g.add("Gather", [x[0], g.constant(at)], np.take(x[1], at, axis), axis=axis)


def spread(g, x):
    shape = [g.rng.choice([0, 2, 3]) if d == 1 else d for d in x[1].shape]
    return widened(g, x, shape) if shape else None


def repeat(g, x):
    times = [g.rng.choice([0, 1, 2]) for _ in x[1].shape]
    return g.add("Tile", [x[0], g.constant(np.array(times, np.int64))], np.tile(x[1], times)) if times else None


def reduce(g, x):
    kind = g.rng.choice(sorted(REDUCTIONS))
    if x[1].ndim == 0:
        return None
    axis = g.rng.randrange(x[1].ndim)
    if x[1].shape[axis] == 0 and kind != "ReduceSum":
        return None  # not defined before opset 20
    if kind not in ("ReduceMax", "ReduceMin") and not np.all(np.abs(x[1]) < 100):
        return None  # the order of a sum decides what overflows
    if np.any(np.isnan(x[1])):
        return None  # the largest with NaN is not defined
    keep = g.rng.choice([0, 1])
    value = REDUCTIONS[kind](x[1].astype(float), axis=axis, keepdims=bool(keep))
    if kind == "ReduceSum":
        return g.add(kind, [x[0], g.constant(np.array([axis], np.int64))], value, keepdims=keep)
    return g.add(kind, [x[0]], value, axes=[axis], keepdims=keep)


def softmax(g, x):
    if x[1].ndim == 0:
        return None
    axis = g.rng.randrange(x[1].ndim)
    if x[1].shape[axis] == 0:
        return g.add("Softmax", [x[0]], x[1], axis=axis)
    v = x[1].astype(float)
    e = np.exp(v - np.max(v, axis=axis, keepdims=True))
    return g.add("Softmax", [x[0]], e / np.sum(e, axis=axis, keepdims=True), axis=axis)


def product(g, x):
    if x[1].ndim < 2:
        return None
    if not np.all(np.abs(x[1]) < 100):
        return None  # the order of a sum decides what overflows
    w = np.array([[g.rng.uniform(-1, 1) for _ in range(4)] for _ in range(x[1].shape[-1])], F32)
    w = w.reshape(x[1].shape[-1], 4)
    return g.add("MatMul", [x[0], g.constant(w)], x[1].astype(float) @ w.astype(float))


def pool(g, x):
    if x[1].ndim != 4 or min(x[1].shape[2:]) < 2 or np.any(np.isnan(x[1])):
        return None
    v = np.stack([x[1][:, :, i:x[1].shape[2] - 1 + i, j:x[1].shape[3] - 1 + j] for i in (0, 1) for j in (0, 1)])
    return g.add("MaxPool", [x[0]], np.max(v, axis=0), kernel_shape=[2, 2])


def whole_pool(g, x):
    if x[1].ndim != 4 or x[1].shape[2] * x[1].shape[3] == 0 or not np.all(np.abs(x[1]) < 100):
        return None
    return g.add("GlobalAveragePool", [x[0]], np.mean(x[1].astype(float), axis=(2, 3), keepdims=True))


def convolution(g, x):
    if x[1].ndim != 4 or x[1].shape[1] == 0 or min(x[1].shape[2:]) == 0 or not np.all(np.abs(x[1]) < 100):
        return None
    w = np.array([[g.rng.uniform(-1, 1) for _ in range(x[1].shape[1])] for _ in range(4)], F32)
    value = np.einsum("nchw,oc->nohw", x[1].astype(float), w.astype(float))
    return g.add("Conv", [x[0], g.constant(w.reshape(4, -1, 1, 1))], value, kernel_shape=[1, 1])


STEPS = [element, element, element, pair, pair, clip, transpose, reshape, flatten, cut, join, pick, spread, repeat, reduce,
         softmax, product, pool, whole_pool, convolution]


def build(onnx, rng):
    g = Graph(onnx, rng)
    x = g.input([g.size() for _ in range(rng.choice([1, 2, 2, 3, 4, 4]))])
    steps = rng.randrange(1, 5)
    while steps:
        y = rng.choice(STEPS)(g, x)
        if y is not None and y[1].size < 20000 and y[1].ndim <= 6:
            x, steps = y, steps - 1
    return g, x


def save(onnx, folder, g, y):
    tensor = onnx.TensorProto
    values = [onnx.helper.make_tensor_value_info(n, tensor.FLOAT, v.shape) for n, v in g.inputs]
    out = onnx.helper.make_tensor_value_info(y[0], tensor.FLOAT, y[1].shape)
    graph = onnx.helper.make_graph(g.nodes, "odd", values, [out], g.weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    model.ir_version = IR
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    files = []
    for kind, tensors in (("input", g.inputs), ("output", [y])):
        files.append([])
        for i, (name, value) in enumerate(tensors):
            files[-1].append(os.path.join(folder, "%s_%d.pb" % (kind, i)))
            with open(files[-1][-1], "wb") as f:
                f.write(onnx.numpy_helper.from_array(np.array(value, order="C"), name).SerializeToString())
    return os.path.join(folder, "model.onnx"), files[0], files[1]


def generate(onnx, folder, seed, count):
    importlib.import_module("onnx.numpy_helper")
    cases = []
    with np.errstate(all="ignore"):
        for i in range(count):
            g, y = build(onnx, random.Random("%d %d" % (seed, i)))
            model, inputs, outputs = save(onnx, os.path.join(folder, "%d-%d" % (seed, i)), g, y)
            cases.append(("odd/%d-%d" % (seed, i), {n.op_type for n in g.nodes}, model, inputs, outputs))
    return cases
