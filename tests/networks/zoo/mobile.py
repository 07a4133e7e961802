# SPDX-License-Identifier: Apache-2.0
"""Trunks made for phones: MobileNetV4, MobileOne, RepVGG, FastViT, EfficientViT."""
import torch
from torch import nn

from zoo.blocks import Classifier, LayerScale, Network, SqueezeExcite, attend, conv_bn


class Inverted(nn.Module):
    """MobileNetV4's universal inverted bottleneck: two depthwise places, either may be empty (0)."""
    def __init__(self, inputs, outputs, first, second, stride=1, grow=4):
        super().__init__()
        inner = inputs * grow
        begin = [conv_bn(inputs, inputs, first, 1 if second else stride, inputs, None)] if first else []
        middle = [conv_bn(inner, inner, second, stride, inner)] if second else []
        self.body = nn.Sequential(*begin, conv_bn(inputs, inner), *middle, conv_bn(inner, outputs, act=None))
        self.scale = LayerScale(outputs)
        self.add = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.scale(self.body(x)) if self.add else self.body(x)


class MultiQuery(nn.Module):
    """MobileNetV4's attention: one key and one value for all heads, of a smaller map."""
    def __init__(self, channels, heads, each):
        super().__init__()
        self.heads, self.each = heads, each
        self.query = nn.Conv2d(channels, heads * each, 1, bias=False)
        small = lambda: nn.Sequential(conv_bn(channels, channels, 3, 2, channels, None),  # noqa: E731
                                      nn.Conv2d(channels, each, 1, bias=False))
        self.key, self.value = small(), small()
        self.project = nn.Conv2d(heads * each, channels, 1, bias=False)
        self.scale = LayerScale(channels)

    def forward(self, x):
        n, _, h, w = x.shape
        q = self.query(x).reshape(n, self.heads, self.each, h * w).transpose(2, 3)
        k, v = self.key(x).flatten(2).unsqueeze(1), self.value(x).flatten(2).transpose(1, 2).unsqueeze(1)
        y = torch.softmax(q * self.each ** -0.5 @ k, -1) @ v
        y = y.transpose(2, 3).reshape(n, self.heads * self.each, h, w)
        return x + self.scale(self.project(y))


def mobilenet_v4(c, hybrid, classes):
    attention = [MultiQuery(c[3], 4, c[3] // 4)] if hybrid else []
    return Classifier(nn.Sequential(
        conv_bn(3, c[0], 3, 2), conv_bn(c[0], c[1], 3, 2), conv_bn(c[1], c[1]), conv_bn(c[1], c[2], 3, 2),
        conv_bn(c[2], c[2]), Inverted(c[2], c[3], 5, 5, 2, 3), Inverted(c[3], c[3], 0, 3, 1, 2),
        Inverted(c[3], c[3], 3, 0), Inverted(c[3], c[3], 0, 0), *attention, Inverted(c[3], c[4], 3, 3, 2, 6),
        Inverted(c[4], c[4], 5, 5), Inverted(c[4], c[4], 0, 5), conv_bn(c[4], 4 * c[4])), 4 * c[4], classes)


def fold_one(conv, norm, size, channels):
    """A convolution (or None: identity) and its norm as weights of @size x @size and a bias."""
    if conv is None:
        each = channels // norm.fold_groups
        weight = torch.zeros(channels, each, size, size)
        for i in range(channels):
            weight[i, i % each, size // 2, size // 2] = 1
    else:
        pad = (size - conv.kernel_size[0]) // 2
        weight = nn.functional.pad(conv.weight, [pad] * 4)
    gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return weight * gain.reshape(-1, 1, 1, 1), norm.bias - norm.running_mean * gain


class Branches(nn.Module):
    """Sums of convolutions that fold into one: RepVGG, MobileOne and FastViT in training."""
    def __init__(self, inputs, outputs, kernel, stride=1, groups=1, copies=1, act=nn.ReLU, squeeze=False, point=True,
                 add=True):
        super().__init__()
        self.options = (inputs, outputs, kernel, stride, kernel // 2, 1, groups)
        self.convs = nn.ModuleList(nn.Sequential(nn.Conv2d(*self.options, bias=False), nn.BatchNorm2d(outputs))
                                   for _ in range(copies))
        if point and kernel > 1:
            self.convs.append(nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, 0, 1, groups, bias=False),
                                            nn.BatchNorm2d(outputs)))
        self.norm = nn.BatchNorm2d(inputs) if add and inputs == outputs and stride == 1 else None
        self.squeeze = SqueezeExcite(outputs) if squeeze else nn.Identity()
        self.act, self.folded = act() if act else nn.Identity(), None

    def forward(self, x):
        if self.folded is not None:
            return self.act(self.squeeze(self.folded(x)))
        y = self.norm(x) if self.norm is not None else 0
        for conv in self.convs:
            y = conv(x) + y
        return self.act(self.squeeze(y))

    def fold(self):
        size, channels = self.options[2], self.options[1]
        parts = [fold_one(c[0], c[1], size, channels) for c in self.convs]
        if self.norm is not None:
            self.norm.fold_groups = self.options[6]
            parts.append(fold_one(None, self.norm, size, channels))
        self.folded = nn.Conv2d(*self.options)
        self.folded.weight.data = sum(p[0] for p in parts).detach()
        self.folded.bias.data = sum(p[1] for p in parts).detach()
        self.convs = self.norm = None


def fold(net):
    """The form that is deployed, in place."""
    for module in list(net.modules()):
        if isinstance(module, Branches):
            module.fold()
    return net


def repvgg(widths, repeats, classes):
    layers, before = [], 3
    for width, count in zip(widths, repeats):
        layers += [Branches(before, width, 3, 2), *[Branches(width, width, 3) for _ in range(count - 1)]]
        before = width
    return Classifier(nn.Sequential(*layers), before, classes)


def mobileone(widths, repeats, classes):
    layers, before = [Branches(3, widths[0], 3, 2)], widths[0]
    for i, (width, count) in enumerate(zip(widths, repeats)):
        last = i == len(widths) - 1
        for k in range(count):
            layers += [Branches(before, before, 3, 1 if k else 2, before, 2, squeeze=last),
                       Branches(before, width, 1, copies=2, squeeze=last)]
            before = width
    return Classifier(nn.Sequential(*layers), before, classes)


class Feed(nn.Module):
    """FastViT's: a depthwise 7x7, two 1x1 with GELU between."""
    def __init__(self, channels, grow):
        super().__init__()
        self.body = nn.Sequential(conv_bn(channels, channels, 7, 1, channels, None),
                                  nn.Conv2d(channels, grow * channels, 1), nn.GELU(),
                                  nn.Conv2d(grow * channels, channels, 1))
        self.scale = LayerScale(channels)

    def forward(self, x):
        return x + self.scale(self.body(x))


class RepMixer(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.mix = Branches(channels, channels, 3, 1, channels, act=None)
        self.scale = LayerScale(channels)

    def forward(self, x):
        return x + self.scale(self.mix(x) - self.norm(x))


class SelfAttention(nn.Module):
    def __init__(self, channels, each):
        super().__init__()
        self.each = each
        self.norm = nn.BatchNorm2d(channels)
        self.position = nn.Conv2d(channels, channels, 7, 1, 3, groups=channels)
        self.qkv, self.project = nn.Linear(channels, 3 * channels, bias=False), nn.Linear(channels, channels)
        self.scale = LayerScale(channels)

    def forward(self, x):
        x = x + self.position(x)
        n, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(y).reshape(n, h * w, 3, c // self.each, self.each).permute(2, 0, 3, 1, 4).unbind(0)
        y = attend(q, k, v, self.each ** -0.5).transpose(1, 2).reshape(n, h * w, c)
        return x + self.scale(self.project(y).transpose(1, 2).reshape(n, c, h, w))


def fastvit(widths, repeats, each, classes):
    gelu = {'act': nn.GELU}
    layers, before = [Branches(3, widths[0], 3, 2, **gelu), Branches(widths[0], widths[0], 3, 2, widths[0], **gelu),
                      Branches(widths[0], widths[0], 1, **gelu)], widths[0]
    for i, (width, count) in enumerate(zip(widths, repeats)):
        if i:
            layers += [Branches(before, before, 7, 2, before, add=False), nn.Conv2d(before, width, 1)]
        last = i == len(widths) - 1
        for _ in range(count):
            layers += [SelfAttention(width, each) if last else RepMixer(width), Feed(width, 3)]
        before = width
    layers.append(Branches(before, 2 * before, 3, 1, before, squeeze=True, **gelu))
    return Classifier(nn.Sequential(*layers), 2 * before, classes)


class LinearAttention(nn.Module):
    """EfficientViT (Cai et al. 2023): attention by ReLU, linear in the pixels, at two scales."""
    def __init__(self, channels, each=8):
        super().__init__()
        self.each = each
        self.qkv = nn.Conv2d(channels, 3 * channels, 1, bias=False)
        self.wider = nn.Sequential(nn.Conv2d(3 * channels, 3 * channels, 5, 1, 2, groups=3 * channels, bias=False),
                                   nn.Conv2d(3 * channels, 3 * channels, 1, groups=3 * channels // each, bias=False))
        self.project = conv_bn(2 * channels, channels, act=None)

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.qkv(x)
        y = torch.cat([y, self.wider(y)], 1).reshape(n, -1, 3 * self.each, h * w)
        q, k, v = y[:, :, :self.each], y[:, :, self.each:2 * self.each], y[:, :, 2 * self.each:]
        q, k = torch.relu(q), torch.relu(k)
        v = nn.functional.pad(v, (0, 0, 0, 1), mode='constant', value=1)
        y = v @ k.transpose(-1, -2) @ q
        y = y[:, :, :-1] / (y[:, :, -1:] + 1e-5)
        return x + self.project(y.reshape(n, -1, h, w))


class MBConv(nn.Module):
    def __init__(self, inputs, outputs, stride=1, grow=4):
        super().__init__()
        inner, act = inputs * grow, nn.Hardswish
        self.body = nn.Sequential(conv_bn(inputs, inner, act=act), conv_bn(inner, inner, 3, stride, inner, act),
                                  conv_bn(inner, outputs, act=None))
        self.add = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


class Cascade(nn.Module):
    """EfficientViT (Liu et al. 2023): each head reads its part and the answer of the head before it."""
    def __init__(self, channels, heads, key, tokens):
        super().__init__()
        self.heads, self.key, self.each = heads, key, channels // heads
        self.qkv = nn.ModuleList(conv_bn(self.each, 2 * key + self.each, act=None) for _ in range(heads))
        self.local = nn.ModuleList(conv_bn(key, key, 5, 1, key, None) for _ in range(heads))
        self.project = nn.Sequential(nn.ReLU(), conv_bn(channels, channels, act=None))
        self.bias = nn.Parameter(torch.zeros(heads, tokens * tokens))
        grid = torch.stack(torch.meshgrid(torch.arange(tokens), torch.arange(tokens), indexing='ij')).flatten(1)
        away = (grid[:, :, None] - grid[:, None]).abs()
        self.register_buffer('index', away[0] * tokens + away[1])

    def forward(self, x):
        n, _, h, w = x.shape
        parts, outs = x.chunk(self.heads, 1), []
        y = parts[0]
        for i in range(self.heads):
            y = y + parts[i] if i else y
            q, k, v = self.qkv[i](y).split([self.key, self.key, self.each], 1)
            q, k, v = self.local[i](q).flatten(2), k.flatten(2), v.flatten(2)
            weights = (q.transpose(-2, -1) @ k * self.key ** -0.5 + self.bias[i][self.index]).softmax(-1)
            y = (v @ weights.transpose(-2, -1)).view(n, self.each, h, w)
            outs.append(y)
        return x + self.project(torch.cat(outs, 1))


def efficientvit(widths, attend_each, classes):
    layers, act = [conv_bn(3, widths[0], 3, 2, act=nn.Hardswish)], nn.Hardswish
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers.append(MBConv(a, b, 2))
        if i >= 2:
            layers += [LinearAttention(b, attend_each), MBConv(b, b)]
    return Classifier(nn.Sequential(*layers, conv_bn(widths[-1], 4 * widths[-1], act=act)), 4 * widths[-1], classes)


def efficientvit_m(widths, heads, tokens, classes):
    first = widths[0]
    layers = [conv_bn(3, first // 8, 3, 2), conv_bn(first // 8, first // 4, 3, 2),
              conv_bn(first // 4, first // 2, 3, 2), conv_bn(first // 2, first, 3, 2, act=None)]
    for i, (width, count) in enumerate(zip(widths, heads)):
        if i:
            layers.append(MBConv(widths[i - 1], width, 2))
        layers += [conv_bn(width, width, 3, 1, width, None), Cascade(width, count, 16, tokens[i])]
    return Classifier(nn.Sequential(*layers), widths[-1], classes)


SMALL, IMAGE = (3, 64, 64), (3, 224, 224)


def two(make, small, full, **options):
    return Network(lambda: make(*small, 10), SMALL, lambda: make(*full, 1000), IMAGE, **options)


NETWORKS = {
    'mobilenet_v4': two(mobilenet_v4, ([8, 8, 16, 16, 24], False), ([32, 32, 64, 96, 128], False)),
    'mobilenet_v4_hybrid': two(mobilenet_v4, ([8, 8, 16, 16, 24], True), ([32, 48, 80, 160, 256], True)),
    'mobileone': two(mobileone, ([8, 12, 16], [1, 2, 1]), ([64, 128, 256, 1024], [2, 8, 10, 1])),
    'mobileone_folded': two(mobileone, ([8, 12, 16], [1, 2, 1]), ([64, 128, 256, 1024], [2, 8, 10, 1])),
    'repvgg': two(repvgg, ([8, 12, 16, 24], [1, 2, 2, 1]), ([48, 48, 96, 192, 1280], [1, 2, 4, 14, 1])),
    'repvgg_folded': two(repvgg, ([8, 12, 16, 24], [1, 2, 2, 1]), ([48, 48, 96, 192, 1280], [1, 2, 4, 14, 1])),
    'fastvit': two(fastvit, ([8, 16, 24], [1, 1, 1], 8), ([48, 96, 192, 384], [2, 2, 4, 2], 32)),
    'fastvit_folded': two(fastvit, ([8, 16, 24], [1, 1, 1], 8), ([48, 96, 192, 384], [2, 2, 4, 2], 32)),
    'efficientvit': two(efficientvit, ([8, 8, 16, 16, 24], 8), ([16, 32, 64, 128, 256], 16)),
    'efficientvit_m': two(efficientvit_m, ([64, 96], [4, 3], [4, 2]), ([128, 192, 224], [4, 3, 2], [14, 7, 4]),
                          open='batch'),
}
