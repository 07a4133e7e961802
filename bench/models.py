#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the networks that tests and benches use as ONNX, with torch's answers beside them.

usage: models.py [--out DIR] [NAME...]
(needs Debian's python3-torch, python3-torchvision, python3-onnx)

For every network: NAME.onnx (batch norm kept as nodes), NAME.input.f32 and NAME.output.f32 (all
outputs one after the other, row-major), NAME.json (shapes). Weights are seeded and He-scaled, batch
norm statistics are taken from seeded frames and then moved, so that folding them is really tested.
A network whose files are there is skipped; DIR defaults to models/ beside the project's bench/
(about 1.3 GB for all of them).
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

SEED = 42


def conv_bn(inputs, outputs, kernel, stride=1, groups=1, act=None):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs), act or nn.ReLU())


class MobileNetV1(nn.Module):
    """Howard et al. 2017, table 1."""
    BLOCKS = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1),
              (256, 512, 2), *[(512, 512, 1)] * 5, (512, 1024, 2), (1024, 1024, 1)]

    def __init__(self):
        super().__init__()
        layers = [conv_bn(3, 32, 3, 2)]
        for inputs, outputs, stride in self.BLOCKS:
            layers += [conv_bn(inputs, inputs, 3, stride, groups=inputs),
                       conv_bn(inputs, outputs, 1)]
        self.features = nn.Sequential(*layers)
        self.classify = nn.Linear(1024, 1000)

    def forward(self, x):
        x = functional.adaptive_avg_pool2d(self.features(x), 1)
        return self.classify(torch.flatten(x, 1))


def leaky(inputs, outputs, kernel, stride=1):
    return conv_bn(inputs, outputs, kernel, stride, act=nn.LeakyReLU(0.1))


class DarknetResidual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(leaky(channels, channels // 2, 1),
                                  leaky(channels // 2, channels, 3))

    def forward(self, x):
        return x + self.body(x)


class YoloV3(nn.Module):
    """Redmon and Farhadi 2018: Darknet-53 and three heads; raw head maps, 80 classes."""
    def __init__(self):
        super().__init__()
        self.stem = leaky(3, 32, 3)
        self.levels = nn.ModuleList()
        channels = 32
        for repeats in (1, 2, 8, 8, 4):
            blocks = [leaky(channels, 2 * channels, 3, 2)]
            channels *= 2
            blocks += [DarknetResidual(channels) for _ in range(repeats)]
            self.levels.append(nn.Sequential(*blocks))
        self.necks = nn.ModuleList([self.neck(1024, 512), self.neck(768, 256), self.neck(384, 128)])
        self.heads = nn.ModuleList([self.head(512), self.head(256), self.head(128)])
        self.lifts = nn.ModuleList([leaky(512, 256, 1), leaky(256, 128, 1)])

    @staticmethod
    def neck(inputs, channels):
        return nn.Sequential(leaky(inputs, channels, 1), leaky(channels, 2 * channels, 3),
                             leaky(2 * channels, channels, 1), leaky(channels, 2 * channels, 3),
                             leaky(2 * channels, channels, 1))

    @staticmethod
    def head(channels):
        return nn.Sequential(leaky(channels, 2 * channels, 3), nn.Conv2d(2 * channels, 255, 1))

    def forward(self, x):
        taps, outputs = [], []
        x = self.stem(x)
        for level in self.levels:
            x = level(x)
            taps.append(x)
        for scale in range(3):
            if scale:
                x = functional.interpolate(self.lifts[scale - 1](x), scale_factor=2, mode='nearest')
                x = torch.cat([x, taps[4 - scale]], 1)
            x = self.necks[scale](x)
            outputs.append(self.heads[scale](x))
        return tuple(outputs)


class YoloV3Tiny(nn.Module):
    """The small sibling: two heads; the last pooling has stride 1 and pads on one side."""
    def __init__(self):
        super().__init__()
        widths = [3, 16, 32, 64, 128, 256, 512, 1024]
        self.trunk = nn.ModuleList(leaky(a, b, 3) for a, b in zip(widths, widths[1:]))
        self.squeeze = leaky(1024, 256, 1)
        self.coarse = nn.Sequential(leaky(256, 512, 3), nn.Conv2d(512, 255, 1))
        self.lift = leaky(256, 128, 1)
        self.fine = nn.Sequential(leaky(384, 256, 3), nn.Conv2d(256, 255, 1))

    def forward(self, x):
        for layer in self.trunk[:4]:
            x = functional.max_pool2d(layer(x), 2, 2)
        tap = self.trunk[4](x)
        x = self.trunk[5](functional.max_pool2d(tap, 2, 2))
        x = functional.max_pool2d(functional.pad(x, (0, 1, 0, 1)), 2, 1)
        x = self.squeeze(self.trunk[6](x))
        lifted = functional.interpolate(self.lift(x), scale_factor=2, mode='nearest')
        return self.coarse(x), self.fine(torch.cat([lifted, tap], 1))


ZOO = torchvision.models
NETWORKS = {
    'mobilenet_v2': (lambda: ZOO.mobilenet_v2(weights=None), 224),
    'squeezenet1_1': (lambda: ZOO.squeezenet1_1(weights=None), 224),
    'resnet50': (lambda: ZOO.resnet50(weights=None), 224),
    'googlenet': (lambda: ZOO.googlenet(weights=None, aux_logits=False, transform_input=False,
                                        init_weights=False), 224),
    'mobilenet_v1': (MobileNetV1, 224),
    'mobilenet_v3_small': (lambda: ZOO.mobilenet_v3_small(weights=None), 224),
    'yolov3_tiny': (YoloV3Tiny, 416),
    'alexnet': (lambda: ZOO.alexnet(weights=None), 224),
    'yolov3': (YoloV3, 416),
    'vgg16': (lambda: ZOO.vgg16(weights=None), 224),
}


def frame(size, generator, count=1):
    """Seeded structure at several scales and noise, in the range of normalised photographs."""
    x = 0.3 * torch.randn(count, 3, size, size, generator=generator)
    for cells, gain in ((3, 0.9), (11, 0.6), (43, 0.4)):
        noise = torch.randn(count, 3, cells, cells, generator=generator)
        x += gain * functional.interpolate(noise, size=(size, size), mode='bilinear',
                                           align_corners=False)
    return x.clamp(-2.1, 2.6).contiguous()


def seed_weights(net, generator):
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
            if isinstance(module, nn.Dropout):
                module.eval()
        with torch.no_grad():
            net(frame(224, generator, 4))
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


def write(name, out):
    make, size = NETWORKS[name]
    index = sorted(NETWORKS).index(name)
    torch.manual_seed(SEED + index)
    generator = torch.Generator().manual_seed(SEED + index)
    net = seed_weights(make(), generator)
    x = frame(size, generator)
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
    parser.add_argument('names', nargs='*', metavar='NAME', help=', '.join(NETWORKS))
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in NETWORKS]
    if unknown:
        sys.exit('models.py: no network %s; known: %s' % (', '.join(unknown), ', '.join(NETWORKS)))
    os.makedirs(args.out, exist_ok=True)
    for name in args.names or NETWORKS:
        if not os.path.exists(os.path.join(args.out, name + '.onnx')):
            write(name, args.out)


if __name__ == '__main__':
    main()
