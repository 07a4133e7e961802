# SPDX-License-Identifier: Apache-2.0
"""Rewrites a graph of opset 17 to a later one, as the exporters of its time write it.

What changed its form is brought to the new one (axes and counts that became inputs, Resize and Pad with axes). What
became one operator is made one: Mish (18), Gelu (20), GroupNormalization (21), Attention (23), Swish (24).
"""
import math

import numpy as np
from onnx import helper, numpy_helper

IR_VERSIONS = {11: 6, 13: 7, 17: 8, 18: 8, 20: 9, 22: 10, 23: 11, 24: 12}
REDUCTIONS = {'ReduceMax', 'ReduceMin', 'ReduceMean', 'ReduceProd', 'ReduceL1', 'ReduceL2', 'ReduceLogSum',
              'ReduceLogSumExp', 'ReduceSumSquare'}
GRID_MODES = {b'bilinear': 'linear', b'bicubic': 'cubic'}


class Graph:
    """A graph of onnx with its values found by name. Nodes that nobody reads go at finish()."""
    def __init__(self, model):
        self.model, self.graph = model, model.graph
        self.made = 0
        self.index()

    def index(self):
        self.maker, self.readers = {}, {}
        self.constants = {t.name: t for t in self.graph.initializer}
        for node in self.graph.node:
            for name in node.output:
                self.maker[name] = node
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
            if node.op_type == 'Constant' and node.attribute[0].name == 'value':
                self.constants[node.output[0]] = node.attribute[0].t
        self.outputs = {o.name for o in self.graph.output}

    def constant(self, name):
        """Return: the constant's value, or None."""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def scalar(self, name):
        value = self.constant(name)
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def add_constant(self, value):
        self.made += 1
        name = 'sweep_%d' % self.made
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def from_op(self, name, kind):
        """Return: the node of this kind that makes the value for one reader alone, or None."""
        node = self.maker.get(name)
        alone = len(self.readers.get(name, ())) == 1 and name not in self.outputs
        return node if node is not None and node.op_type == kind and alone else None

    def replace(self, last, kind, inputs, **attributes):
        """@last becomes another operator; finish() removes what only it needed."""
        last.op_type = kind
        del last.input[:], last.attribute[:]
        last.input.extend(inputs)
        last.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())

    def finish(self):
        """Removes what no output needs."""
        wanted, todo = set(), [o.name for o in self.graph.output]
        while todo:
            name = todo.pop()
            if name in wanted:
                continue
            wanted.add(name)
            if name in self.maker:
                todo += self.maker[name].input
        keep = [n for n in self.graph.node if any(name in wanted for name in n.output)]
        weights = [t for t in self.graph.initializer if t.name in wanted]
        if len(keep) < len(self.graph.node):
            keep = [copy_of(n) for n in keep]
            del self.graph.node[:]
            self.graph.node.extend(keep)
        if len(weights) < len(self.graph.initializer):
            for tensor in [t for t in self.graph.initializer if t.name not in wanted]:
                self.graph.initializer.remove(tensor)
        self.index()


def copy_of(message):
    other_one = type(message)()
    other_one.CopyFrom(message)
    return other_one


def attribute(node, name, default=None):
    found = [a for a in node.attribute if a.name == name]
    return helper.get_attribute_value(found[0]) if found else default


def drop(node, name):
    for a in [a for a in node.attribute if a.name == name]:
        node.attribute.remove(a)


def other(node, name):
    """Return: the input of a node of two that is not @name."""
    return node.input[1] if node.input[0] == name else node.input[0]


def near(value, wanted):
    return value is not None and abs(value - wanted) < 1e-5 * abs(wanted)


def scaled(g, name, kinds=('Mul', 'Div')):
    """Return: (the value, the factor) where @name is a value times a constant made for one reader, else None."""
    for kind in kinds:
        node = g.from_op(name, kind)
        if node is None:
            continue
        for i in ((1,) if kind == 'Div' else (1, 0)):
            factor = g.scalar(node.input[i])
            if factor is not None:
                return node.input[1 - i], (1 / factor if kind == 'Div' else factor)
    return None


def to_18(g):
    for node in list(g.graph.node):
        if node.op_type in REDUCTIONS:
            axes = attribute(node, 'axes')
            drop(node, 'axes')
            if axes:
                node.input.append(g.add_constant(np.array(axes, np.int64)))
        elif node.op_type == 'Split' and (len(node.input) == 1 or len(set(g.constant(node.input[1]).tolist())) == 1):
            del node.input[1:]
            node.attribute.append(helper.make_attribute('num_outputs', len(node.output)))
        elif node.op_type == 'Resize':
            resize_axes(g, node)
        elif node.op_type == 'Pad':
            pad_axes(g, node)
    for node in list(g.graph.node):
        tanh = node.op_type == 'Mul' and (g.from_op(node.input[1], 'Tanh') or g.from_op(node.input[0], 'Tanh'))
        soft = tanh and g.from_op(tanh.input[0], 'Softplus')
        if soft and other(node, tanh.output[0]) == soft.input[0]:
            g.replace(node, 'Mish', [soft.input[0]])


def resize_axes(g, node):
    """The image's two axes alone, where the scales or sizes are constants."""
    node.attribute.append(helper.make_attribute('antialias', 0))
    last = [i for i in (2, 3) if len(node.input) > i and node.input[i]]
    amounts = g.constant(node.input[last[0]]) if len(last) == 1 else None
    if amounts is not None and amounts.size == 4:
        node.attribute.append(helper.make_attribute('axes', [2, 3]))
        node.input[last[0]] = g.add_constant(amounts[2:])
        node.input[1] = ''


def pad_axes(g, node):
    pads = g.constant(node.input[1])
    if pads is None or pads.size != 8 or pads[[0, 1, 4, 5]].any():
        return
    node.input[1] = g.add_constant(pads[[2, 3, 6, 7]])
    while len(node.input) < 3:
        node.input.append('')
    node.input.append(g.add_constant(np.array([2, -1], np.int64)))


def to_20(g):
    for node in list(g.graph.node):
        if node.op_type == 'GridSample':
            mode = attribute(node, 'mode', b'bilinear')
            drop(node, 'mode')
            node.attribute.append(helper.make_attribute('mode', GRID_MODES.get(mode, mode)))
        elif node.op_type == 'Erf':
            gelu(g, node)


def gelu(g, erf):
    """x / sqrt 2 -> Erf -> + 1 -> times x -> / 2"""
    inner = scaled(g, erf.input[0])
    steps, name = [], erf.output[0]
    for kind in ('Add', 'Mul', 'Mul'):
        readers = g.readers.get(name, [])
        if len(readers) != 1 or readers[0].op_type != kind:
            return
        steps.append(readers[0])
        name = readers[0].output[0]
    if (inner and near(inner[1], math.sqrt(0.5)) and near(g.scalar(other(steps[0], erf.output[0])), 1)
            and other(steps[1], steps[0].output[0]) == inner[0]
            and near(g.scalar(other(steps[2], steps[1].output[0])), 0.5)):
        g.replace(steps[2], 'Gelu', [inner[0]])


def to_21(g):
    """Reshape to groups -> InstanceNormalization -> Reshape back -> times scale -> plus bias"""
    for node in list(g.graph.node):
        norm = node.op_type == 'Add' and g.from_op(node.input[0], 'Mul')
        back = norm and g.from_op(norm.input[0], 'Reshape')
        inner = back and g.from_op(back.input[0], 'InstanceNormalization')
        into = inner and g.from_op(inner.input[0], 'Reshape')
        scale, bias = g.constant(norm.input[1]) if into else None, g.constant(node.input[1]) if into else None
        if scale is not None and bias is not None:
            groups = int(g.constant(inner.input[1]).size)
            g.replace(node, 'GroupNormalization', [into.input[0], g.add_constant(scale.reshape(-1)),
                                                   g.add_constant(bias.reshape(-1))],
                      num_groups=groups, epsilon=float(attribute(inner, 'epsilon', 1e-5)))


def to_23(g):
    """softmax(q k' * scale + mask) v of four dimensions; the scale may be on q."""
    for last in list(g.graph.node):
        soft = last.op_type == 'MatMul' and g.from_op(last.input[0], 'Softmax')
        if not soft or attribute(soft, 'axis', -1) not in (-1, 3):
            continue
        name, mask, scale = soft.input[0], [], 1.0
        add = g.from_op(name, 'Add')
        if add:
            i = 0 if g.from_op(add.input[0], 'MatMul') or scaled(g, add.input[0]) else 1
            name, mask = add.input[i], [add.input[1 - i]]
        name, scale = scaled(g, name) or (name, scale)
        product = g.from_op(name, 'MatMul')
        key = product and g.from_op(product.input[1], 'Transpose')
        if key and list(attribute(key, 'perm')) == [0, 1, 3, 2]:
            query, more = scaled(g, product.input[0]) or (product.input[0], 1.0)
            g.replace(last, 'Attention', [query, key.input[0], last.input[1], *mask], scale=scale * more)


def to_24(g):
    for node in list(g.graph.node):
        for i in (0, 1):
            gate = node.op_type == 'Mul' and g.from_op(node.input[i], 'Sigmoid')
            if gate and node.input[1 - i] == gate.input[0]:
                g.replace(node, 'Swish', [gate.input[0]])
                break


STEPS = ((18, to_18), (20, to_20), (21, to_21), (23, to_23), (24, to_24))


def rewrite(model, opset):
    """Brings @model, of opset 17, to @opset in place."""
    g = Graph(model)
    for since, step in STEPS:
        if since <= opset:
            step(g)
            g.finish()
    for entry in model.opset_import:
        if entry.domain in ('', 'ai.onnx'):
            entry.version = opset
    model.ir_version = IR_VERSIONS[opset]
    return model
