# SPDX-License-Identifier: Apache-2.0
"""torchvision's networks for classes and segments. The small forms have few blocks and channels."""
from functools import partial

import torchvision
from torch import nn
from torchvision.models import (convnext, densenet, efficientnet, maxvit, mobilenetv3, regnet, resnet, segmentation,
                                shufflenetv2, swin_transformer, vision_transformer)
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.segmentation.deeplabv3 import ASPP, DeepLabV3
from torchvision.models.segmentation.fcn import FCN, FCNHead
from torchvision.models.segmentation.lraspp import LRASPP

from zoo.blocks import Network

ZOO = torchvision.models
CLASSES = 10


def small_resnet(**options):
    net = resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1], num_classes=CLASSES, **options)
    net.layer3 = net.layer4 = nn.Identity()
    net.fc = nn.Linear(512, CLASSES)
    return net


def small_convnext():
    block = convnext.CNBlockConfig
    return convnext.ConvNeXt([block(16, 24, 1), block(24, 32, 2), block(32, None, 1)], num_classes=CLASSES)


def small_swin(version):
    options = {} if version == 1 else {'block': swin_transformer.SwinTransformerBlockV2,
                                       'downsample_layer': swin_transformer.PatchMergingV2}
    return swin_transformer.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=CLASSES, **options)


def small_vit():
    return vision_transformer.VisionTransformer(64, 16, 2, 2, 32, 64, num_classes=CLASSES)


def small_efficientnet(arch):
    if arch == 'b0':
        block = partial(efficientnet.MBConvConfig, width_mult=0.25, depth_mult=0.5)
        setting = [block(1, 3, 1, 32, 16, 1), block(6, 3, 2, 16, 24, 2), block(6, 5, 2, 24, 40, 2),
                   block(6, 3, 2, 40, 80, 2), block(6, 5, 1, 80, 112, 1)]
    else:
        setting = [efficientnet.FusedMBConvConfig(1, 3, 1, 8, 8, 1), efficientnet.FusedMBConvConfig(4, 3, 2, 8, 16, 2),
                   efficientnet.MBConvConfig(4, 3, 2, 16, 24, 2), efficientnet.MBConvConfig(6, 3, 2, 24, 32, 1)]
    return efficientnet.EfficientNet(setting, 0.2, num_classes=CLASSES, last_channel=64)


def small_regnet(squeeze):
    ratio = 0.25 if squeeze else None
    params = regnet.BlockParams.from_init_params(depth=6, w_0=16, w_a=12.0, w_m=2.0, group_width=8, se_ratio=ratio)
    return regnet.RegNet(params, num_classes=CLASSES)


def small_maxvit():
    return maxvit.MaxVit((64, 64), 16, 4, [16, 32], [1, 2], 8, 0.1, num_classes=CLASSES)


def small_densenet():
    return densenet.DenseNet(8, (2, 3, 2), 16, num_classes=CLASSES)


def small_mobile_trunk():
    setting, last = mobilenetv3._mobilenet_v3_conf('mobilenet_v3_large', width_mult=0.25, dilated=True)
    return ZOO.MobileNetV3(setting, last).features


def small_segmenter(kind):
    trunk = small_mobile_trunk()
    stages = [0] + [i for i, b in enumerate(trunk) if getattr(b, '_is_cn', False)] + [len(trunk) - 1]
    low, high = stages[-4], stages[-1]
    if kind == 'lraspp':
        layers = IntermediateLayerGetter(trunk, {str(low): 'low', str(high): 'high'})
        return Segmenter(LRASPP(layers, trunk[low].out_channels, trunk[high].out_channels, 4, 32))
    layers = IntermediateLayerGetter(trunk, {str(high): 'out'})
    if kind == 'fcn':
        return Segmenter(FCN(layers, FCNHead(trunk[high].out_channels, 4)))
    head = nn.Sequential(ASPP(trunk[high].out_channels, [2, 4, 6], 24), nn.Conv2d(24, 4, 1))
    return Segmenter(DeepLabV3(layers, head))


class Segmenter(nn.Module):
    """A segmentation network of torchvision as its main answer alone."""
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)['out']


def segmenter(name):
    return Segmenter(getattr(segmentation, name)(weights=None, weights_backbone=None))


def calm_blocks(net):
    """What a block adds is small beside what passes by, as in a trained network: rounding does not grow from block to block."""
    for module in net.modules():
        if isinstance(module, resnet.Bottleneck):
            module.bn3.calm = 0.3
    return net


def zoo(name, **options):
    return getattr(ZOO, name)(weights=None, **options)


PLAIN = {'transform_input': False, 'aux_logits': False, 'init_weights': False}
IMAGE = (3, 224, 224)
SMALL = (3, 64, 64)
NETWORKS = {
    'resnet': Network(small_resnet, SMALL, lambda: zoo('resnet18'), IMAGE),
    'resnext': Network(lambda: small_resnet(groups=32, width_per_group=4), SMALL,
                       lambda: zoo('resnext50_32x4d'), IMAGE),
    'wide_resnet': Network(lambda: small_resnet(width_per_group=96), SMALL, lambda: zoo('wide_resnet50_2'), IMAGE),
    'convnext': Network(small_convnext, SMALL, lambda: zoo('convnext_tiny'), IMAGE),
    'swin': Network(lambda: small_swin(1), SMALL, lambda: zoo('swin_t'), IMAGE, open='batch'),
    'swin_v2': Network(lambda: small_swin(2), SMALL, lambda: zoo('swin_v2_t'), (3, 256, 256), open='batch'),
    'vit': Network(small_vit, SMALL, lambda: zoo('vit_b_32'), IMAGE, open='batch'),
    'maxvit': Network(small_maxvit, SMALL, lambda: zoo('maxvit_t'), IMAGE, open='batch', opsets=(13, 13, 17)),
    'efficientnet_b0': Network(lambda: small_efficientnet('b0'), SMALL, lambda: zoo('efficientnet_b0'), IMAGE),
    'efficientnet_v2': Network(lambda: small_efficientnet('v2'), SMALL, lambda: zoo('efficientnet_v2_s'), IMAGE),
    'regnet_x': Network(lambda: small_regnet(False), SMALL, lambda: zoo('regnet_x_400mf'), IMAGE),
    'regnet_y': Network(lambda: small_regnet(True), SMALL, lambda: zoo('regnet_y_400mf'), IMAGE),
    'densenet': Network(small_densenet, SMALL, lambda: zoo('densenet121'), IMAGE),
    'mnasnet': Network(lambda: ZOO.MNASNet(0.25, CLASSES), SMALL, lambda: zoo('mnasnet1_0'), IMAGE),
    'mobilenet_v2': Network(lambda: zoo('mobilenet_v2', width_mult=0.25, num_classes=CLASSES), SMALL,
                            lambda: zoo('mobilenet_v2'), IMAGE),
    'mobilenet_v3': Network(lambda: zoo('mobilenet_v3_small', width_mult=0.25, num_classes=CLASSES), SMALL,
                            lambda: zoo('mobilenet_v3_large'), IMAGE),
    'shufflenet_v2': Network(lambda: shufflenetv2.ShuffleNetV2([1, 2, 1], [8, 16, 32, 64, 64], CLASSES), SMALL,
                             lambda: zoo('shufflenet_v2_x1_0'), IMAGE),
    'squeezenet': Network(lambda: zoo('squeezenet1_1', num_classes=CLASSES), SMALL,
                          lambda: zoo('squeezenet1_0'), IMAGE),
    'googlenet': Network(None, None, lambda: zoo('googlenet', **PLAIN), IMAGE),
    'inception_v3': Network(None, None, lambda: zoo('inception_v3', **PLAIN), (3, 299, 299)),
    'alexnet': Network(None, None, lambda: zoo('alexnet'), IMAGE, open='batch'),
    'vgg11_bn': Network(None, None, lambda: zoo('vgg11_bn'), IMAGE, open='batch'),
    'deeplabv3': Network(lambda: small_segmenter('deeplab'), SMALL,
                         lambda: segmenter('deeplabv3_mobilenet_v3_large'), (3, 320, 320)),
    'deeplabv3_resnet50': Network(None, None, lambda: calm_blocks(segmenter('deeplabv3_resnet50')), (3, 256, 256)),
    'lraspp': Network(lambda: small_segmenter('lraspp'), SMALL,
                      lambda: segmenter('lraspp_mobilenet_v3_large'), (3, 320, 320)),
    'fcn': Network(lambda: small_segmenter('fcn'), SMALL, lambda: segmenter('fcn_resnet50'), (3, 256, 256)),
}
