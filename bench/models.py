#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the networks that tests and benches use as ONNX, with torch's answers beside them.

usage: models.py [--out DIR] [--torchscript] [NAME...]
(needs Debian's python3-torch, python3-torchvision, python3-onnx)

For every network: NAME.onnx (batch norm kept as nodes), NAME.input.f32 and NAME.output.f32 (all
outputs one after the other, row-major), NAME.json (shapes). Weights are seeded and He-scaled, batch
norm statistics are taken from seeded frames and then moved, so that folding them is really tested.
--torchscript writes NAME.pt, too: the traced module for bench/peers.
A network whose files are there is skipped; DIR defaults to models/ beside the project's bench/
(about 1.8 GB for all of them).
"""
import argparse
import json
import math
import os
import sys
import warnings

os.environ.setdefault('OMP_NUM_THREADS', '2')
warnings.filterwarnings('ignore')

import numpy as np
import onnx
import torch
import torchvision
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

from networks import NETWORKS

SEED = 42


def frame(size, generator, count=1):
    """Seeded structure at several scales and noise, in the range of normalised photographs. size: as in NETWORKS."""
    channels, *sides = size if isinstance(size, tuple) else (3, size, size)
    x = 0.3 * torch.randn(count, channels, *sides, generator=generator)
    for cells, gain in ((3, 0.9), (11, 0.6), (43, 0.4)):
        noise = torch.randn(count, channels, cells, cells, generator=generator)
        x += gain * functional.interpolate(noise, size=tuple(sides), mode='bilinear', align_corners=False)
    return x.clamp(-2.1, 2.6).contiguous()


def seed_weights(net, generator, size=224):
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            deviation = math.sqrt(2 / module.weight[0].numel())
            module.weight.data.normal_(0, deviation, generator=generator)
            if module.bias is not None:
                module.bias.data.normal_(0, 0.1, generator=generator)
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
        shape = norm.weight.shape
        norm.weight.data = 0.7 + 0.6 * torch.rand(shape, generator=generator)
        norm.bias.data = 0.2 * torch.randn(shape, generator=generator)
    if norms:
        net.train()
        for module in net.modules():
            if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
                module.eval()
        with torch.no_grad():
            net(frame(size, generator, 4))
        for norm in norms:
            shape = norm.weight.shape
            shift = torch.randn(shape, generator=generator)
            norm.running_mean += 0.2 * norm.running_var.sqrt() * shift
            norm.running_var *= 0.7 + 0.6 * torch.rand(shape, generator=generator)
    return net.eval()


def plain_pads(path):
    """torch writes a constant Pad's amounts as a subgraph; put the plain constant there."""
    model = onnx.load(path)
    graph = model.graph
    constants = {t.name for t in graph.initializer}
    constants |= {node.output[0] for node in graph.node if node.op_type == 'Constant'}
    for node in graph.node:
        if node.op_type == 'Pad' and node.input[1] not in constants:
            name = node.name + '_pads'
            amounts = np.array([0, 0, 0, 0, 0, 0, 1, 1])
            graph.initializer.append(numpy_helper.from_array(amounts, name))
            node.input[1] = name
            del node.input[2:]
    while True:
        used = {name for node in graph.node for name in node.input}
        used |= {output.name for output in graph.output}
        dead = [node for node in graph.node if not any(name in used for name in node.output)]
        if not dead:
            break
        for node in dead:
            graph.node.remove(node)
    onnx.save(model, path)


def module(name):
    """The network with its weights, and its input frame."""
    make, size = NETWORKS[name]
    index = list(NETWORKS).index(name)
    torch.manual_seed(SEED + index)
    generator = torch.Generator().manual_seed(SEED + index)
    net = seed_weights(make(), generator, size if isinstance(size, tuple) else 224)
    return net, frame(size, generator)


def write_script(net, x, path):
    """The traced module as a file."""
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(net, x), path + '.part')
    os.rename(path + '.part', path)


def write(net, x, name, out):
    with torch.no_grad():
        y = net(x)
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    path = os.path.join(out, name)
    names = ['output'] if len(y) == 1 else ['output%d' % k for k in range(len(y))]
    torch.onnx.export(net, x, path + '.part', opset_version=11, do_constant_folding=True,
                      training=torch.onnx.TrainingMode.PRESERVE, input_names=['input'],
                      output_names=names)
    plain_pads(path + '.part')
    x.numpy().tofile(path + '.input.f32')
    np.concatenate([t.numpy().ravel() for t in y]).tofile(path + '.output.f32')
    with open(path + '.json', 'w') as f:
        json.dump({'input': list(x.shape), 'outputs': [list(t.shape) for t in y]}, f)
    os.rename(path + '.part', path + '.onnx')
    print('%-20s outputs %s, largest %.3g' % (name, [list(t.shape) for t in y],
                                              max(t.abs().max() for t in y)), flush=True)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', default=os.path.join(os.path.dirname(here), 'models'))
    parser.add_argument('--torchscript', action='store_true')
    parser.add_argument('names', nargs='*', metavar='NAME', help=', '.join(NETWORKS))
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in NETWORKS]
    if unknown:
        sys.exit('models.py: no network %s; known: %s' % (', '.join(unknown), ', '.join(NETWORKS)))
    os.makedirs(args.out, exist_ok=True)
    for name in args.names or NETWORKS:
        path = os.path.join(args.out, name)
        wanted = [end for end in ('.onnx', '.pt') if (end == '.onnx' or args.torchscript) and
                  not os.path.exists(path + end)]
        if wanted:
            net, x = module(name)
        if '.onnx' in wanted:
            write(net, x, name, args.out)
        if '.pt' in wanted:
            write_script(net, x, path + '.pt')


if __name__ == '__main__':
    main()
