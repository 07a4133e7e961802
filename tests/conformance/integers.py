# SPDX-License-Identifier: Apache-2.0
"""Operators on integers of every width, at the ends of their ranges.

The right values are computed with Python's integers, which do not overflow, and wrapped. Every operator comes three
times: with all its inputs as data, with all but the first as constants, and with all as constants.
"""
import collections
import os
import random

TYPES = {"UINT8": (8, False), "INT8": (8, True), "UINT16": (16, False), "INT16": (16, True),
         "INT32": (32, True), "INT64": (64, True)}
UNSIGNED = ("UINT8", "UINT16")
SIGNED = ("INT8", "INT16", "INT32", "INT64")
COUNT = 96

Operator = collections.namedtuple("Operator", "name function types inputs attrs to", defaults=(2, {}, None))


def limits(name):
    bits, signed = TYPES[name]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def wrap(value, name):
    bits, signed = TYPES[name]
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def truncated(a, b):
    """As C divides."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def sign(a):
    return (a > 0) - (a < 0)


ALL = tuple(TYPES)
OPERATORS = [
    Operator("Add", lambda a, b: a + b, ALL),
    Operator("Sub", lambda a, b: a - b, ALL),
    Operator("Mul", lambda a, b: a * b, ALL),
    Operator("Div", truncated, ALL),
    Operator("Mod", lambda a, b: a - a // b * b, ALL),
    Operator("Mod", lambda a, b: a - truncated(a, b) * b, ALL, attrs={"fmod": 1}),
    Operator("Max", max, ALL),
    Operator("Min", min, ALL),
    Operator("Equal", lambda a, b: a == b, ALL, to="BOOL"),
    Operator("Less", lambda a, b: a < b, ALL, to="BOOL"),
    Operator("GreaterOrEqual", lambda a, b: a >= b, ALL, to="BOOL"),
    Operator("BitwiseAnd", lambda a, b: a & b, ALL),
    Operator("BitwiseOr", lambda a, b: a | b, ALL),
    Operator("BitwiseXor", lambda a, b: a ^ b, ALL),
    Operator("BitwiseNot", lambda a: ~a, ALL, 1),
    Operator("Abs", abs, ALL, 1),
    Operator("Neg", lambda a: -a, SIGNED, 1),
    Operator("Relu", lambda a: max(a, 0), SIGNED, 1),
    Operator("Sign", sign, ALL, 1),
    Operator("Identity", lambda a: a, ALL, 1),
    Operator("BitShift", lambda a, b: a << b % 8, UNSIGNED, attrs={"direction": "LEFT"}),
    Operator("BitShift", lambda a, b: a >> b % 8, UNSIGNED, attrs={"direction": "RIGHT"}),
] + [Operator("Cast", lambda a: a, ALL, 1, to=to) for to in TYPES]


def values_of(op, dtype, generator):
    """One list for each input."""
    low, high = limits(dtype)
    ends = [low, low + 1, high, high - 1, 0, 1, min(2, high), max(-1, low)]
    lists = [[generator.choice(ends) if generator.random() < 0.5 else generator.randint(low, high)
              for _ in range(COUNT)] for _ in range(op.inputs)]
    if op.name in ("Div", "Mod"):
        lists[1] = [b or 1 for b in lists[1]]
    if op.name == "BitShift":
        lists[1] = [b % 8 for b in lists[1]]
    return lists


def write_case(onnx, folder, op, dtype, constants):
    """Writes the model and its data. Return: (model, inputs, outputs)"""
    generator = random.Random(f"{op.name} {dtype} {op.to} {op.attrs}")
    lists = values_of(op, dtype, generator)
    given = onnx.TensorProto.DataType.Value(dtype)
    to = onnx.TensorProto.DataType.Value(op.to or dtype)
    right = [op.function(*each) for each in zip(*lists)]
    right = right if op.to == "BOOL" else [wrap(v, op.to or dtype) for v in right]
    names = [f"x{i}" for i in range(op.inputs)]
    tensors = [onnx.helper.make_tensor(n, given, [COUNT], v) for n, v in zip(names, lists)]
    result = onnx.helper.make_tensor("y", to, [COUNT], right)
    attrs = {"to": to} if op.name == "Cast" else op.attrs
    nodes = [onnx.helper.make_node(op.name, names, ["t"], **attrs),
             onnx.helper.make_node("Identity", ["t"], ["y"])]
    keep = {"none": op.inputs, "others": 1, "all": 0}[constants]
    graph = onnx.helper.make_graph(
        nodes, "integers", [onnx.helper.make_tensor_value_info(n, given, [COUNT]) for n in names[:keep]],
        [onnx.helper.make_tensor_value_info("y", to, [COUNT])], tensors[keep:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    model.ir_version = 8
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, "model.onnx")]
    onnx.save(model, paths[0])
    for name, tensor in [(f"input_{i}.pb", t) for i, t in enumerate(tensors[:keep])] + [("output_0.pb", result)]:
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "wb") as f:
            f.write(tensor.SerializeToString())
    return paths[0], paths[1:-1], paths[-1:]


def cases(onnx, top):
    """Yields (name, operator, type, files)."""
    for number, op in enumerate(OPERATORS):
        for dtype in op.types:
            for constants in ("none", "others", "all") if op.inputs > 1 else ("none", "all"):
                name = f"{op.name.lower()}{number}_{dtype.lower()}_{constants}"
                yield name, op.name, dtype, write_case(onnx, os.path.join(top, name), op, dtype, constants)
