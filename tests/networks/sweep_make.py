#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the networks of zoo/ as ONNX files of several opsets, with torch's answers.

usage: sweep_make.py OUT small|full NAME...
For every network: NAME.N.onnx for each opset N, NAME.inK.pb and NAME.outK.pb. Weights are seeded; batch norms have
statistics of seeded frames that were then moved. Of the files that torch writes, the one of opset 13 has its batch
norms folded and a fixed shape, the others have their norms as nodes and an open batch and size (where the network can
have one); a sidecar then gives the size. Later opsets are rewritten from 17 (opsets.py); their weights are in one file,
NAME.data, as newer exporters write them. Where the size is open, the file of opset 17 is there once more as NAME.0.onnx
with NAME.0.inK.pb and NAME.0.outK.pb, of another size.
"""
import copy
import json
import math
import os
import shutil
import sys
import warnings
import zlib
from unittest import mock

os.environ.setdefault('OMP_NUM_THREADS', '1')
warnings.filterwarnings('ignore')

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional
from torchvision.models.swin_transformer import ShiftedWindowAttentionV2

import opsets
from zoo import NETWORKS
from zoo.mobile import fold

REWRITTEN = (18, 20, 22, 24)
EXTERNAL_BYTES = 1024
NORMS = (nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)


def frame(size, generator, count=1):
    """Seeded structure at several scales and noise, in the range of normalised photographs."""
    x = 0.3 * torch.randn(count, *size, generator=generator)
    for cells, gain in ((3, 0.9), (11, 0.6)) if len(size) == 3 else ():
        noise = torch.randn(count, size[0], cells, cells, generator=generator)
        x += gain * functional.interpolate(noise, size=size[1:], mode='bilinear', align_corners=False)
    return x.clamp(-2.1, 2.6).contiguous()


def uniform(shape, generator):
    return 0.7 + 0.6 * torch.rand(shape, generator=generator)


def seed_weights(net, size, generator):
    normal = lambda t, deviation: t.data.normal_(0, deviation, generator=generator)  # noqa: E731
    for name, value in net.named_parameters():
        if name.endswith(('.scale', 'layer_scale')):
            value.data = 0.5 * uniform(value.shape, generator)
        elif name.endswith(('token', 'pos_embedding', 'bias_table', '.bias')) or '.' not in name:
            normal(value, 0.2)
    for module in net.modules():
        if hasattr(module, 'fixed'):
            module.weight.data = module.fixed
        elif isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            gain = 1 if isinstance(module, nn.Linear) else 2
            normal(module.weight, getattr(module, 'calm', 1) * math.sqrt(gain / module.weight[0].numel()))
            if module.bias is not None:
                normal(module.bias, 0.1)
        elif isinstance(module, NORMS) and module.weight is not None:
            module.weight.data = getattr(module, 'calm', 1) * uniform(module.weight.shape, generator)
            normal(module.bias, 0.2)
    for module in net.modules():
        if isinstance(module, ShiftedWindowAttentionV2):
            # it zeroes this part in place in each frame, which torch cannot export: here it is zero already
            third = module.qkv.bias.numel() // 3
            module.qkv.bias.data[third:2 * third] = 0
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
        norm.train()
    with torch.no_grad():
        for _ in range(2 if norms else 0):
            net(frame(size, generator, 16 if size[-1] < 100 else 4))
    for norm in norms:
        shift = torch.randn(norm.running_mean.shape, generator=generator)
        norm.running_mean += 0.2 * norm.running_var.sqrt() * shift
        norm.running_var *= uniform(norm.running_var.shape, generator)
    return net.eval()


def settle(net, size, generator):
    """Gives each norm the statistics of what it sees in use, spoilt a little. Those of training, which come from
    normalised batches, let small differences grow with each of a hundred layers."""
    def see(norm, inputs):
        x = inputs[0]
        deviation = x.var((0, 2, 3), unbiased=False).clamp(min=0.1).sqrt()
        shift = torch.randn(deviation.shape, generator=generator)
        norm.running_mean = x.mean((0, 2, 3)) + 0.2 * deviation * shift
        norm.running_var = deviation.square() * uniform(deviation.shape, generator)

    hooks = [m.register_forward_pre_hook(see) for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    with torch.no_grad():
        net(frame(size, generator, 16))
    for hook in hooks:
        hook.remove()


def answers_of(net, x):
    """Return: what the network answers, a list of tensors."""
    with torch.no_grad():
        y = net(x)
    return list(y) if isinstance(y, (tuple, list)) else [y]


def make(name, full):
    """Return: the seeded network, its input, its answers."""
    entry = NETWORKS[name]
    size = entry.full_size if full else entry.small_size
    # a folded form has the weights of its trained one
    seed = zlib.crc32(name.replace('_folded', '').encode())
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    net = (entry.full if full else entry.small)()
    net.eval()
    for module in net.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 1e-9  # not used outside training, but it keeps torch from an operator that ONNX lacks
    net = seed_weights(net, size, generator)
    if full:
        settle(net, size, generator)
    x = frame(size, generator)
    if full and not entry.rows and not name.endswith('_folded'):
        # in double: over a hundred layers, torch's own rounding would take much of the tolerance
        return net, x, [y.float() for y in answers_of(copy.deepcopy(net).double(), x.double())]
    answers = answers_of(net, x)
    if name.endswith('_folded'):
        with torch.no_grad():
            net = fold(copy.deepcopy(net))
        worst = float((answers_of(net, x)[0] - answers[0]).abs().max() / answers[0].abs().max())
        if not worst < 1e-4:
            sys.exit('%s: the folded form differs by %g' % (name, worst))
    return net, x, answers


def open_axes(entry, shape):
    if entry.open == 'none':
        return None
    axes = {0: 'batch'}
    if entry.open == 'size' and len(shape) == 4:
        axes.update({2: 'height', 3: 'width'})
    return {'input': axes}


def has_open_size(axes):
    return bool(axes) and 2 in axes['input']


def write_sidecar(path, x):
    with open(path.replace('.onnx', '.sidecar.json'), 'w') as f:
        json.dump({'preprocess': {'size': list(x.shape[2:])}}, f)


def other_size(net, x, base, last):
    """The same file at another size."""
    generator = torch.Generator().manual_seed(1)
    x = frame((x.shape[1], x.shape[2] + 32, x.shape[3]), generator)
    os.link(last + '.onnx', base + '.0.onnx')
    write_sidecar(base + '.0.onnx', x)
    save(base + '.0', 'in', [x])
    save(base + '.0', 'out', answers_of(net, x))


def export(net, x, path, entry, opset):
    plain = opset == 13
    axes = None if plain else open_axes(entry, x.shape)
    mode = torch.onnx.TrainingMode.EVAL if plain else torch.onnx.TrainingMode.PRESERVE
    with torch.no_grad(), mock.patch.object(torch.Tensor, 'zero_', lambda t: t):
        torch.onnx.export(net, x, path, opset_version=opset, training=mode, input_names=['input'],
                          output_names=list(entry.outputs), dynamic_axes=axes)
    if has_open_size(axes):
        write_sidecar(path, x)


def save(base, kind, values, raw=True):
    """As tensors of ONNX, and all one after the other as they are in memory."""
    arrays = [np.ascontiguousarray(v.numpy()) for v in values]
    for i, array in enumerate(arrays):
        with open('%s.%s%d.pb' % (base, kind, i), 'wb') as f:
            f.write(numpy_helper.from_array(array).SerializeToString())
    if raw:
        with open('%s.%sput.raw' % (base, kind), 'wb') as f:
            f.write(b''.join(a.tobytes() for a in arrays))


def torch_opsets(name, full):
    """Torch is slow to write: a small form is written at 17, and at 11 or at 13."""
    known = NETWORKS[name].opsets
    return known if full else sorted({known[-1], known[sum(name.encode()) % 2]})


def write_weights(model, path):
    """Writes the larger weights. Return: name -> (offset, bytes)"""
    places = {}
    with open(path, 'wb') as f:
        for tensor in model.graph.initializer:
            if len(tensor.raw_data) >= EXTERNAL_BYTES:
                f.write(bytes(-f.tell() % 64))
                places[tensor.name] = (f.tell(), f.write(tensor.raw_data))
    return places


def refer(model, places, location):
    for tensor in model.graph.initializer:
        if tensor.name in places:
            tensor.ClearField('raw_data')
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in zip(('location', 'offset', 'length'), (location, *places[tensor.name])):
                tensor.external_data.add(key=key, value=str(value))


def write(name, out, full):
    entry = NETWORKS[name]
    net, x, answers = make(name, full)
    base = os.path.join(out, name)
    for opset in torch_opsets(name, full):
        export(net, x, '%s.%d.onnx' % (base, opset), entry, opset)
    last = '%s.%d' % (base, entry.opsets[-1])
    places = write_weights(onnx.load(last + '.onnx'), base + '.data')
    for opset in REWRITTEN:
        model = opsets.rewrite(onnx.load(last + '.onnx'), opset)
        refer(model, places, name + '.data')
        onnx.save(model, '%s.%d.onnx' % (base, opset))
        if os.path.exists(last + '.sidecar.json'):
            shutil.copy(last + '.sidecar.json', '%s.%d.sidecar.json' % (base, opset))
    save(base, 'in', [x])
    save(base, 'out', answers, raw=not entry.rows)
    if has_open_size(open_axes(entry, x.shape)):
        other_size(net, x, base, last)
    largest = max([float(y.abs().max()) for y in answers if y.numel()] or [0])
    if not math.isfinite(largest):
        sys.exit('%s: the answers are not finite' % name)
    print('%-20s %s, largest %.3g' % (name, [list(y.shape) for y in answers], largest), flush=True)
    with open(base + '.done', 'w'):
        pass


def main():
    out, form = sys.argv[1:3]
    if out == '--list':
        print(' '.join(n for n, e in NETWORKS.items() if (e.small if form == 'small' else e.full)))
        return
    os.makedirs(out, exist_ok=True)
    for name in sys.argv[3:]:
        write(name, out, form == 'full')


if __name__ == '__main__':
    main()
