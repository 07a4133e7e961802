# SPDX-License-Identifier: Apache-2.0
"""The networks that bench/models.py writes: torchvision's, and those that it lacks."""
import torch
import torchvision
from torch import nn
from torch.nn import functional


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


def silu(inputs, outputs, kernel=1, stride=1):
    return conv_bn(inputs, outputs, kernel, stride, act=nn.SiLU())


class Bottleneck(nn.Module):
    def __init__(self, channels, add):
        super().__init__()
        self.body = nn.Sequential(silu(channels, channels), silu(channels, channels, 3))
        self.add = add

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


class CrossStage(nn.Module):
    """YOLOv5's C3: half of the channels pass bottlenecks, half pass by."""
    def __init__(self, inputs, outputs, repeats, add=True):
        super().__init__()
        half = outputs // 2
        self.through = nn.Sequential(silu(inputs, half),
                                     *[Bottleneck(half, add) for _ in range(repeats)])
        self.past = silu(inputs, half)
        self.join = silu(outputs, outputs)

    def forward(self, x):
        return self.join(torch.cat([self.through(x), self.past(x)], 1))


class PyramidPool(nn.Module):
    """YOLOv5's SPPF: three max pools of 5x5, one behind the other."""
    def __init__(self, channels):
        super().__init__()
        self.squeeze = silu(channels, channels // 2)
        self.join = silu(2 * channels, channels)

    def forward(self, x):
        maps = [self.squeeze(x)]
        for _ in range(3):
            maps.append(functional.max_pool2d(maps[-1], 5, 1, 2))
        return self.join(torch.cat(maps, 1))


class YoloV5n(nn.Module):
    """YOLOv5 release 6, depth 0.33, width 0.25: raw head maps, 80 classes."""
    def __init__(self):
        super().__init__()
        stem = nn.Sequential(nn.Conv2d(3, 16, 6, 2, 2, bias=False), nn.BatchNorm2d(16), nn.SiLU())
        self.trunk = nn.ModuleList([
            nn.Sequential(stem, silu(16, 32, 3, 2), CrossStage(32, 32, 1), silu(32, 64, 3, 2),
                          CrossStage(64, 64, 2)),
            nn.Sequential(silu(64, 128, 3, 2), CrossStage(128, 128, 3)),
            nn.Sequential(silu(128, 256, 3, 2), CrossStage(256, 256, 1), PyramidPool(256),
                          silu(256, 128))])
        self.lift = nn.Sequential(CrossStage(256, 128, 1, False), silu(128, 64))
        self.fine = CrossStage(128, 64, 1, False)
        self.down = nn.ModuleList([silu(64, 64, 3, 2), silu(128, 128, 3, 2)])
        self.middle = CrossStage(128, 128, 1, False)
        self.coarse = CrossStage(256, 256, 1, False)
        self.heads = nn.ModuleList([nn.Conv2d(c, 255, 1) for c in (64, 128, 256)])

    def forward(self, x):
        fine = self.trunk[0](x)
        middle = self.trunk[1](fine)
        coarse = self.trunk[2](middle)
        up = functional.interpolate(coarse, scale_factor=2, mode='nearest')
        middle = self.lift(torch.cat([up, middle], 1))
        up = functional.interpolate(middle, scale_factor=2, mode='nearest')
        fine = self.fine(torch.cat([up, fine], 1))
        middle = self.middle(torch.cat([self.down[0](fine), middle], 1))
        coarse = self.coarse(torch.cat([self.down[1](middle), coarse], 1))
        return tuple(head(y) for head, y in zip(self.heads, (fine, middle, coarse)))


class UNet(nn.Module):
    """Ronneberger et al. 2015 with padding, batch norm and half the channels; two classes."""
    WIDTHS = [32, 64, 128, 256, 512]

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(self.double(a, b)
                                  for a, b in zip([3] + self.WIDTHS, self.WIDTHS))
        pairs = list(zip(self.WIDTHS[::-1], self.WIDTHS[-2::-1]))
        self.lift = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(self.double(a, b) for a, b in pairs)
        self.head = nn.Conv2d(self.WIDTHS[0], 2, 1)

    @staticmethod
    def double(inputs, outputs):
        return nn.Sequential(conv_bn(inputs, outputs, 3), conv_bn(outputs, outputs, 3))

    def forward(self, x):
        taps = []
        for level in self.down:
            x = level(functional.max_pool2d(x, 2) if taps else x)
            taps.append(x)
        for lift, up, tap in zip(self.lift, self.up, taps[-2::-1]):
            x = up(torch.cat([tap, lift(x)], 1))
        return self.head(x)


class Segmenter(nn.Module):
    """A segmentation network of torchvision as its main answer alone."""
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)['out']


class TextDetector(nn.Module):
    """Liao et al. 2020 (DBNet) on MobileNetV3-small: four taps meet at a quarter of the size; the map of probabilities."""
    TAPS = {1: 16, 3: 24, 8: 48, 12: 576}  # layer of the trunk: its channels

    def __init__(self):
        super().__init__()
        self.trunk = torchvision.models.mobilenet_v3_small(weights=None).features
        self.inner = nn.ModuleList(nn.Conv2d(channels, 96, 1) for channels in self.TAPS.values())
        self.outer = nn.ModuleList(nn.Conv2d(96, 24, 3, padding=1) for _ in self.TAPS)
        self.head = nn.Sequential(conv_bn(96, 24, 3), nn.ConvTranspose2d(24, 24, 2, 2), nn.BatchNorm2d(24), nn.ReLU(),
                                  nn.ConvTranspose2d(24, 1, 2, 2), nn.Sigmoid())

    def forward(self, x):
        taps, maps, above = [], [], None
        for i, layer in enumerate(self.trunk):
            x = layer(x)
            if i in self.TAPS:
                taps.append(x)
        for k in (3, 2, 1, 0):
            x = self.inner[k](taps[k])
            if above is not None:
                x = x + functional.interpolate(above, scale_factor=2, mode='nearest')
            above = x
            x = self.outer[k](x)
            maps.append(functional.interpolate(x, scale_factor=2 ** k, mode='nearest') if k else x)
        return self.head(torch.cat(maps, 1))


class TextReader(nn.Module):
    """Shi et al. 2016 (CRNN), small: convolutions, one LSTM in both directions, scores of 97 characters at 32 places."""
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            conv_bn(1, 32, 3), nn.MaxPool2d(2), conv_bn(32, 64, 3), nn.MaxPool2d(2), conv_bn(64, 128, 3), conv_bn(128, 128, 3),
            nn.MaxPool2d((2, 1)), conv_bn(128, 256, 3), nn.MaxPool2d((2, 1)), nn.Conv2d(256, 256, (2, 1)), nn.ReLU())
        self.read = nn.LSTM(256, 128, bidirectional=True, batch_first=True)
        self.classify = nn.Linear(256, 97)

    def forward(self, x):
        x = self.trunk(x).squeeze(2).transpose(1, 2)
        return self.classify(self.read(x)[0])


class WakeWord(nn.Module):
    """Zhang et al. 2017 (DS-CNN, small): 49 frames of 10 MFCC, 12 words."""
    def __init__(self):
        super().__init__()
        blocks = [layer for _ in range(4) for layer in (conv_bn(64, 64, 3, groups=64), conv_bn(64, 64, 1))]
        self.features = nn.Sequential(nn.Conv2d(1, 64, (10, 4), 2, (4, 1), bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks)
        self.classify = nn.Linear(64, 12)

    def forward(self, x):
        return self.classify(torch.flatten(functional.adaptive_avg_pool2d(self.features(x), 1), 1))


ZOO = torchvision.models
SEGMENTATION = ZOO.segmentation
# The second of each: the side of a picture of three channels, or channels, height and width. A network's seed is its place in
# this list: new ones go to the end.
NETWORKS = {
    'alexnet': (lambda: ZOO.alexnet(weights=None), 224),
    'googlenet': (lambda: ZOO.googlenet(weights=None, aux_logits=False, transform_input=False,
                                        init_weights=False), 224),
    'mobilenet_v1': (MobileNetV1, 224),
    'mobilenet_v2': (lambda: ZOO.mobilenet_v2(weights=None), 224),
    'mobilenet_v3_small': (lambda: ZOO.mobilenet_v3_small(weights=None), 224),
    'resnet50': (lambda: ZOO.resnet50(weights=None), 224),
    'squeezenet1_1': (lambda: ZOO.squeezenet1_1(weights=None), 224),
    'vgg16': (lambda: ZOO.vgg16(weights=None), 224),
    'yolov3': (YoloV3, 416),
    'yolov3_tiny': (YoloV3Tiny, 416),
    'resnet18': (lambda: ZOO.resnet18(weights=None), 224),
    'resnext50': (lambda: ZOO.resnext50_32x4d(weights=None), 224),
    'regnet_x_400mf': (lambda: ZOO.regnet_x_400mf(weights=None), 224),
    'shufflenet_v2': (lambda: ZOO.shufflenet_v2_x1_0(weights=None), 224),
    'efficientnet_b0': (lambda: ZOO.efficientnet_b0(weights=None), 224),
    'densenet121': (lambda: ZOO.densenet121(weights=None), 224),
    'inception_v3': (lambda: ZOO.inception_v3(weights=None, aux_logits=False,
                                              transform_input=False, init_weights=False), 299),
    'yolov5n': (YoloV5n, 640),
    'unet': (UNet, 256),
    'deeplabv3': (lambda: Segmenter(SEGMENTATION.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None)), 320),
    'mobilenet_v3_large': (lambda: ZOO.mobilenet_v3_large(weights=None), 224),
    'lraspp': (lambda: Segmenter(SEGMENTATION.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)), 320),
    'text_detector': (TextDetector, 320),
    'text_reader': (TextReader, (1, 32, 128)),
    'wake_word': (WakeWord, (1, 49, 10)),
}
