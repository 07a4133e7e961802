#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torchvision's networks as torch's exporters write them, with torch's answers.

usage: exporters_make.py OUT NAME...      exporters_make.py --list
For every network: NAME.WAY.onnx for each way in which it can be exported, NAME.inK.pb and NAME.outK.pb; then NAME.done,
which says of each way "exported" or why torch does not export it. Weights are seeded, pictures are small. The ways:

    script          torch.onnx.export(), torch's default up to 2.8
    script_plain    the same without folding of constants
    dynamo          torch.onnx.export(dynamo=True); needs torch 2.6 or later, and onnxscript
    dynamo_optimised  and its optimiser

sweep.py ... folder compares what piped makes of them. Any torch may write the folder; it need not be this machine's.
"""
import os
import sys
import warnings
import zlib
from unittest import mock

os.environ.setdefault('OMP_NUM_THREADS', '1')
warnings.filterwarnings('ignore')

import torch
import torchvision
from torch import nn
from torchvision.models import detection
from torchvision.models.video import mvit

from sweep_make import answers_of, frame, save, seed_weights

WEIGHTLESS = {'weights': None}
BACKBONELESS = {'weights': None, 'weights_backbone': None}
TOO_LARGE = ('regnet_y_128gf', 'vit_h_14')  # over 2 GiB: nothing that their smaller kin do not have


class Detector(nn.Module):
    """What a detector finds in the first picture."""
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return tuple(self.net([x[i] for i in range(len(x))])[0].values())


class Segmenter(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)['out']


class Flow(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        return self.net(x, y, num_flow_updates=3)[-1]


def detector(name):
    sizes = {} if name.startswith('ssd') else {'min_size': 96, 'max_size': 128}
    few = {'detections_per_img': 8, 'topk_candidates': 20}
    if 'rcnn' in name:
        few = {'box_detections_per_img': 8, 'rpn_pre_nms_top_n_test': 30, 'rpn_post_nms_top_n_test': 20}
    net = Detector(getattr(detection, name)(num_classes=3, **BACKBONELESS, **sizes, **few))
    for part, module in net.named_modules():
        if part.endswith(('cls_logits', 'bbox_pred', 'bbox_reg', 'cls_score')) or '.module_list.' in part:
            for last in [m for m in module.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]:
                last.calm = 0.02
    return net, {'ssd300_vgg16': (3, 300, 300), 'ssdlite320_mobilenet_v3_large': (3, 320, 320)}.get(name, (3, 96, 128))


def classifier(name):
    options, size = dict(WEIGHTLESS), 64
    if name.startswith('vit'):
        size = 4 * int(name.rsplit('_', 1)[1])
        options['image_size'] = size
    elif name.startswith(('alexnet', 'vgg', 'maxvit')):
        size = 224
    elif name.startswith('inception'):
        size = 96
    if name in ('googlenet', 'inception_v3'):
        options['init_weights'] = False
    return torchvision.models.get_model(name, **options), (3, size, size)


def video(name):
    size = (3, 16, 224, 224) if name.startswith('s3d') else (3, 8, 64, 64)
    full = mvit._mvit  # its builders fix the size
    with mock.patch.object(mvit, '_mvit', lambda **given: full(
            **{**given, 'temporal_size': size[1], 'spatial_size': size[2:]})):
        return torchvision.models.get_model(name, **WEIGHTLESS), size


def spread(net, head, inputs):
    """Gives the head's outputs a deviation of 3; else scores are alike, and which of them are left is a matter of ties."""
    def scale(conv, _, out):
        conv.weight.data *= 3 / out.std()
        conv.bias.data.zero_()
    hooks = [m.register_forward_hook(scale) for m in head.modules() if isinstance(m, nn.Conv2d)]
    answers_of(net, inputs)
    for hook in hooks:
        hook.remove()


def build(name):
    """Return: the network with seeded weights, its inputs."""
    seed = zlib.crc32(name.encode())
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    where = torchvision.models.get_model_builder(name).__module__
    if '.optical_flow' in where:
        net = Flow(torchvision.models.get_model(name, **WEIGHTLESS)).eval()
        return net, (frame((3, 128, 128), generator), frame((3, 128, 128), generator))
    if '.segmentation' in where:
        net, size = Segmenter(torchvision.models.get_model(name, **BACKBONELESS)), (3, 64, 96)
    elif '.detection' in where:
        net, size = detector(name)
    else:
        net, size = (video if '.video' in where else classifier)(name)
    net.eval()
    for module in net.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 1e-9  # as in sweep_make.py
        if name.startswith('efficientnet_v2') and getattr(module, 'use_res_connect', False):
            # its forty blocks would make rounding errors as large as the answers, in torch too
            [m for m in module.modules() if isinstance(m, nn.BatchNorm2d)][-1].calm = 0.2
    seed_weights(net, size, generator)
    inputs = frame(size, generator)
    if name == 'ssd300_vgg16':
        spread(net, net.net.head, inputs)
    return net, (inputs,)


def by_script(net, inputs, base):
    for way, fold in (('script', True), ('script_plain', False)):  # with gradients, as people call it
        torch.onnx.export(net, inputs, '%s.%s.onnx' % (base, way), do_constant_folding=fold)
        yield way


def by_dynamo(net, inputs, base):
    with torch.no_grad():
        program = torch.onnx.export(net, inputs, dynamo=True, optimize=False, verbose=False)
    program.save('%s.dynamo.onnx' % base)
    yield 'dynamo'
    program.optimize()
    program.save('%s.dynamo_optimised.onnx' % base)
    yield 'dynamo_optimised'


def write(name, out):
    base = os.path.join(out, name)
    net, inputs = build(name)
    with torch.no_grad():
        answers = net(*inputs) if len(inputs) > 1 else answers_of(net, inputs[0])
    save(base, 'in', inputs, raw=False)
    save(base, 'out', answers if isinstance(answers, (list, tuple)) else [answers], raw=False)
    said = []
    for exporter in (by_script, by_dynamo):
        try:
            for way in exporter(net, inputs, base):
                said.append('%s: exported' % way)
        except Exception as e:  # pylint: disable=broad-except
            text = ' '.join(str(e.__cause__ or e).split()) or 'no reason'
            said.append('%s: %s: %s' % (exporter.__name__, type(e).__name__, text[:300]))
    with open(base + '.done', 'w') as f:
        f.write('\n'.join(said) + '\n')
    print('%s: %s' % (name, '; '.join(said)), flush=True)


def main():
    if sys.argv[1] == '--list':
        print('\n'.join(n for n in torchvision.models.list_models()
                        if not n.startswith('quantized_') and n not in TOO_LARGE))
        return
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:]:
        write(name, sys.argv[1])


if __name__ == '__main__':
    main()
