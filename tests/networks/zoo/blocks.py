# SPDX-License-Identifier: Apache-2.0
"""What several networks are made of."""
import dataclasses
import typing

import torch
from torch import nn


# A module's attribute calm is a factor on its seeded weights: before an exponential or a softmax, for scores without
# ties. Its attribute fixed has the weights themselves.


@dataclasses.dataclass
class Network:
    """small and full make the module; the sizes are of its input without the batch."""
    small: typing.Callable
    small_size: tuple
    full: typing.Callable = None  # None: the small one is the real one
    full_size: tuple = None
    open: str = 'size'  # what may be open: 'size' (batch, height and width), 'batch', or 'none'
    outputs: tuple = ('output',)
    opsets: tuple = (11, 13, 17)  # that torch can write
    rows: bool = False  # how many rows the answer has depends on the data


def conv_bn(inputs, outputs, kernel=1, stride=1, groups=1, act=nn.ReLU, dilation=1):
    each = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    pad = tuple(dilation * (k // 2) for k in each)
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, pad, dilation, groups, bias=False),
                         nn.BatchNorm2d(outputs), act() if act else nn.Identity())


def silu(inputs, outputs, kernel=1, stride=1, groups=1, act=nn.SiLU):
    return conv_bn(inputs, outputs, kernel, stride, groups, act)


def separable(inputs, outputs, kernel=3, stride=1, act=nn.ReLU):
    return nn.Sequential(conv_bn(inputs, inputs, kernel, stride, inputs, act), conv_bn(inputs, outputs, act=act))


def even(x, by=8):
    """Channels as width multipliers make them."""
    return max(by, int(x + by / 2) // by * by)


class SqueezeExcite(nn.Module):
    def __init__(self, channels, ratio=4, act=nn.ReLU, gate=nn.Sigmoid):
        super().__init__()
        self.body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, max(channels // ratio, 4), 1), act(),
                                  nn.Conv2d(max(channels // ratio, 4), channels, 1), gate())

    def forward(self, x):
        return x * self.body(x)


class LayerScale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        return x * self.scale


class Classifier(nn.Module):
    """A trunk, its mean, and classes."""
    def __init__(self, trunk, channels, classes):
        super().__init__()
        self.trunk = trunk
        self.classify = nn.Linear(channels, classes)

    def forward(self, x):
        return self.classify(torch.flatten(nn.functional.adaptive_avg_pool2d(self.trunk(x), 1), 1))


def attend(q, k, v, scale):
    """[N][heads][tokens][channels] each."""
    return torch.softmax(q @ k.transpose(-2, -1) * scale, -1) @ v
