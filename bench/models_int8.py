#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises networks of bench/models.py into ONNX files that every engine reads: QuantizeLinear and DequantizeLinear around
the operators (opset 13), activations u8 with a zero point, weights i8 per output channel, batch norms folded.

usage: models_int8.py [--models DIR] [--build DIR] [--examples N] [NAME...]
(needs Debian's python3-onnx, and bench/quantise_bench, which finds the ranges)

Writes NAME_int8.onnx beside NAME.onnx, with a NAME_int8.input.f32 and .json like the network's own. Ranges are those of N
seeded frames and of the network's input frame. Operators whose values have no range stay f32."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

for alias, kind in (('float', float), ('bool', bool), ('int', int), ('object', object)):
    if alias not in np.__dict__:  # onnx 1.12 uses names that numpy 1.24 dropped
        setattr(np, alias, kind)
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETWORKS = ['resnet50', 'mobilenet_v1', 'mobilenet_v2', 'squeezenet1_1', 'alexnet', 'googlenet', 'vgg16']
MOVES = ('Concat', 'MaxPool', 'Flatten', 'Reshape')  # what goes in and what comes out have one range
SEED = 7


def frame(random, shape):
    """Structure at several scales and noise, in the range of normalised photographs."""
    size = shape[-1]
    x = 0.3 * random.standard_normal(shape)
    for cells, gain in ((3, 0.9), (11, 0.6), (43, 0.4)):
        grid, at = random.standard_normal(shape[:2] + [cells, cells]), np.linspace(0, cells - 1, size)
        low = np.minimum(at.astype(np.int64), cells - 2)
        share = at - low
        rows = grid[:, :, low] * (1 - share)[:, None] + grid[:, :, low + 1] * share[:, None]
        x += gain * (rows[..., low] * (1 - share) + rows[..., low + 1] * share)
    return x.clip(-2.1, 2.6).astype(np.float32)


def ranges(options, path):
    """{tensor: (low, high)} by bench/quantise_bench."""
    with open(path + '.json', encoding='utf-8') as f:
        shape = json.load(f)['input']
    with tempfile.TemporaryDirectory() as folder:
        random = np.random.default_rng(SEED)
        examples = os.path.join(folder, 'examples')
        os.mkdir(examples)
        # every second one, in order of name, calibrates: the network's own input is the first
        shutil.copy(path + '.input.f32', os.path.join(examples, '000.f32'))
        for i in range(1, 2 * options.examples + 1):
            frame(random, shape).tofile(os.path.join(examples, f'{i:03}.f32'))
        out = os.path.join(folder, 'ranges.json')
        subprocess.run([os.path.join(options.build, 'bench', 'quantise_bench'), path + '.onnx', examples,
                        '--ms', '0', '--bound', '0',
                        '--min-max', '--write', out], check=True, stdout=subprocess.DEVNULL)
        with open(out, encoding='utf-8') as f:
            return {name: tuple(r) for name, r in json.load(f)['ranges'].items()}


class Writer:
    def __init__(self, model, found):
        self.graph = model.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        for n in self.graph.node:
            if n.op_type == 'Constant':
                self.constants[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
        self.readers = {}
        for n in self.graph.node:
            for name in n.input:
                self.readers.setdefault(name, []).append(n)
        self.outputs = {o.name for o in self.graph.output}
        self.nodes, self.kept = [], {}
        self.real = {}  # tensor of the f32 network: its f32 name in the new one
        self.params = self.share(found)

    def only_reader(self, name, kinds):
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self.outputs and readers[0].op_type in kinds else None

    def share(self, found):
        """{tensor: (scale, zero)}, one for those that values only move between."""
        leader = {}

        def find(name):
            while leader.get(name, name) != name:
                name = leader[name]
            return name

        for n in self.graph.node:
            if n.op_type in MOVES:
                for name in n.input:
                    if name not in self.constants:
                        leader[find(name)] = find(n.output[0])
        whole = {}
        for name, (low, high) in found.items():
            a, b = whole.get(find(name), (0, 0))
            whole[find(name)] = min(a, low), max(b, high)
        names = {name for n in self.graph.node for name in list(n.input) + list(n.output)}
        out = {}
        for name in names:
            if find(name) in whole and name not in self.constants:
                low, high = whole[find(name)]
                scale = np.float32((high - low) / 255 or 1)
                out[name] = scale, np.uint8(np.clip(np.rint(-low / scale), 0, 255))
        return out

    def constant(self, name, value):
        self.kept[name] = numpy_helper.from_array(np.asarray(value, order='C'), name)
        return name

    def add(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], output + '/' + kind, **attributes))
        return output

    def store(self, name, real):
        """The value @name, which is @real in f32, as integers and back."""
        if name not in self.params or self.last(name):
            self.real[name] = self.add('Identity', [real], name) if name in self.outputs and name != real else real
            return
        scale, zero = self.params[name]
        both = [self.constant(name + '/scale', scale), self.constant(name + '/zero', zero)]
        self.add('QuantizeLinear', [real] + both, name + '/q')
        self.real[name] = self.add('DequantizeLinear', [name + '/q'] + both, name + '/dq')

    def last(self, name):
        """What becomes the network's answer without another operator stays f32: bytes would make ties."""
        if name in self.outputs:
            return True
        reader = self.only_reader(name, ('Flatten', 'Reshape'))
        return reader is not None and self.last(reader.output[0])

    def product(self, n):
        """A convolution or Gemm with what follows it: batch norm, and an activation that saturation does."""
        w, name = self.constants[n.input[1]].astype(np.float64), n.output[0]
        attributes = {a.name: helper.get_attribute_value(a) for a in n.attribute}
        if n.op_type == 'Gemm' and not attributes.pop('transB', 0):
            w = w.T
        if n.op_type == 'Gemm':
            attributes = {'transB': 1}
        bias = self.constants[n.input[2]].astype(np.float64) if len(n.input) > 2 else np.zeros(len(w))
        norm = self.only_reader(name, ('BatchNormalization',))
        if norm:
            gain, shift, mean, variance = (self.constants[i].astype(np.float64) for i in norm.input[1:5])
            epsilon = next((a.f for a in norm.attribute if a.name == 'epsilon'), 1e-5)
            gain = gain / np.sqrt(variance + epsilon)
            w, bias = w * gain.reshape([-1] + [1] * (w.ndim - 1)), shift + (bias - mean) * gain
            name = norm.output[0]
        scale = (np.abs(w).reshape(len(w), -1).max(1) / 127).astype(np.float32)
        scale[scale == 0] = 1
        q = np.rint(w / scale.reshape([-1] + [1] * (w.ndim - 1))).clip(-127, 127).astype(np.int8)
        both = [self.constant(name + '/w_scale', scale), self.constant(name + '/w_zero', np.zeros(len(w), np.int8))]
        inputs = [self.real[n.input[0]],
                  self.add('DequantizeLinear', [self.constant(name + '/w', q)] + both, name + '/w_dq', axis=0)]
        unit = (scale * self.params[n.input[0]][0]).astype(np.float32)
        whole = np.rint(bias / unit).clip(-2**31, 2**31 - 1).astype(np.int32)
        both = [self.constant(name + '/b_scale', unit), self.constant(name + '/b_zero', np.zeros(len(w), np.int32))]
        inputs.append(self.add('DequantizeLinear', [self.constant(name + '/b', whole)] + both, name + '/b_dq', axis=0))
        return name, self.add(n.op_type, inputs, name if self.last(name) else name + '/real', **attributes)

    def activation(self, name, real):
        """Relu and Clip behind @name: where 0 is the lowest byte, saturation is all of them."""
        act = self.only_reader(name, ('Relu', 'Clip'))
        if not act:
            return name, real
        to = act.output[0]
        if to not in self.params or self.params[to][1] != 0 or self.last(to):
            constants = [self.constant(i, self.constants[i]) for i in act.input[1:]]
            real = self.add(act.op_type, [real] + constants, to if self.last(to) else to + '/real')
        return to, real

    def run(self):
        done = set()
        for i in self.graph.input:
            if i.name not in self.constants:
                self.store(i.name, i.name)
        for n in self.graph.node:
            if n.op_type == 'Constant' or n.output[0] in done or (n.op_type in ('BatchNormalization', 'Relu', 'Clip') and
                                                                  n.input[0] not in self.real):
                continue  # it went into what stands before it
            if n.op_type in ('Conv', 'Gemm') and n.input[0] in self.params:
                name, real = self.product(n)
            else:
                inputs = [self.constant(i, self.constants[i]) if i in self.constants else self.real[i] for i in n.input]
                name = n.output[0]
                copy = onnx.NodeProto()
                copy.CopyFrom(n)
                del copy.input[:], copy.output[:]
                copy.input.extend(inputs)
                real = name if self.last(name) else name + '/real'
                copy.output.append(real)
                self.nodes.append(copy)
            if n.op_type in ('Conv', 'Gemm', 'Add'):
                name, real = self.activation(name, real)
            done.add(name)
            self.store(name, real)
        graph = helper.make_graph(self.nodes, self.graph.name,
                                  [i for i in self.graph.input if i.name not in self.constants], list(self.graph.output),
                                  list(self.kept.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)


def write(options, name):
    path = os.path.join(options.models, name)
    model = Writer(onnx.load(path + '.onnx'), ranges(options, path)).run()
    onnx.checker.check_model(model)
    onnx.save(model, path + '_int8.part')
    for end in ('.input.f32', '.json'):
        shutil.copy(path + end, path + '_int8' + end)
    os.rename(path + '_int8.part', path + '_int8.onnx')
    print(f'{path}_int8.onnx: {len(model.graph.node)} nodes', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--models', default=os.path.join(ROOT, 'models'))
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--examples', type=int, default=4)
    parser.add_argument('names', nargs='*', metavar='NAME', help=', '.join(NETWORKS))
    options = parser.parse_args()
    for name in options.names or NETWORKS:
        if not os.path.exists(os.path.join(options.models, name + '.onnx')):
            sys.exit(f'models_int8.py: no {name}.onnx in {options.models}: bench/models.py writes it')
        if not os.path.exists(os.path.join(options.models, name + '_int8.onnx')):
            write(options, name)


if __name__ == '__main__':
    main()
