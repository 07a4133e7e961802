# SPDX-License-Identifier: Apache-2.0
"""Detectors of one stage as Ultralytics and others export them: YOLOv5, v8, v10, 11, YOLOX, NanoDet."""
import torch
import torchvision
from torch import nn
from torch.nn import functional

from zoo.blocks import Network, conv_bn, silu


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, add=True, ratio=1.0):
        super().__init__()
        inner = int(outputs * ratio)
        self.body = nn.Sequential(silu(inputs, inner, 3), silu(inner, outputs, 3))
        self.add = add and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


class C3(nn.Module):
    """YOLOv5's: half of the channels pass bottlenecks, half pass by."""
    def __init__(self, inputs, outputs, repeats=1, add=True, kernel=1):
        super().__init__()
        half = outputs // 2
        block = lambda: nn.Sequential(silu(half, half, kernel), silu(half, half, 3))  # noqa: E731
        self.blocks = nn.ModuleList(block() for _ in range(repeats))
        self.into, self.past, self.join = silu(inputs, half), silu(inputs, half), silu(2 * half, outputs)
        self.add = add

    def forward(self, x):
        y = self.into(x)
        for block in self.blocks:
            y = y + block(y) if self.add else block(y)
        return self.join(torch.cat([y, self.past(x)], 1))


class C2f(nn.Module):
    """YOLOv8's: every bottleneck's answer is kept. With deep (YOLO11's C3k2) each is a C3 of 3x3."""
    def __init__(self, inputs, outputs, repeats=1, add=False, deep=False, ratio=0.5):
        super().__init__()
        self.half = int(outputs * ratio)
        self.into = silu(inputs, 2 * self.half)
        make = (lambda: C3(self.half, self.half, 2, add, 3)) if deep else (
            lambda: Bottleneck(self.half, self.half, add))
        self.blocks = nn.ModuleList(make() for _ in range(repeats))
        self.join = silu((2 + repeats) * self.half, outputs)

    def forward(self, x):
        y = list(self.into(x).chunk(2, 1))
        for block in self.blocks:
            y.append(block(y[-1]))
        return self.join(torch.cat(y, 1))


class SPPF(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.into, self.join = silu(channels, channels // 2), silu(2 * channels, channels)

    def forward(self, x):
        maps = [self.into(x)]
        for _ in range(3):
            maps.append(functional.max_pool2d(maps[-1], 5, 1, 2))
        return self.join(torch.cat(maps, 1))


class Attention(nn.Module):
    """YOLOv10's and 11's: keys of half the size, and a depthwise convolution of the values as position."""
    def __init__(self, channels, heads):
        super().__init__()
        self.heads, self.each = heads, channels // heads
        self.key = self.each // 2
        self.qkv = silu(channels, channels + 2 * self.key * heads, act=None)
        self.project = silu(channels, channels, act=None)
        self.position = silu(channels, channels, 3, 1, channels, None)

    def forward(self, x):
        n, c, h, w = x.shape
        qkv = self.qkv(x).view(n, self.heads, self.key * 2 + self.each, h * w)
        q, k, v = qkv.split([self.key, self.key, self.each], 2)
        weights = (q.transpose(-2, -1) @ k * self.key ** -0.5).softmax(-1)
        y = (v @ weights.transpose(-2, -1)).view(n, c, h, w) + self.position(v.reshape(n, c, h, w))
        return self.project(y)


class C2PSA(nn.Module):
    """YOLO11's attention block; YOLOv10's PSA is the same with one repeat."""
    def __init__(self, channels, heads, repeats=1):
        super().__init__()
        half = channels // 2
        self.half = half
        self.into, self.join = silu(channels, channels), silu(channels, channels)
        self.attend = nn.ModuleList(Attention(half, heads) for _ in range(repeats))
        self.feed = nn.ModuleList(nn.Sequential(silu(half, 2 * half), silu(2 * half, half, act=None))
                                  for _ in range(repeats))

    def forward(self, x):
        a, b = self.into(x).split((self.half, self.half), 1)
        for attention, feed in zip(self.attend, self.feed):
            b = b + attention(b)
            b = b + feed(b)
        return self.join(torch.cat([a, b], 1))


class Down(nn.Module):
    """YOLOv10's SCDown: 1x1, then a depthwise step."""
    def __init__(self, inputs, outputs):
        super().__init__()
        self.body = nn.Sequential(silu(inputs, outputs), silu(outputs, outputs, 3, 2, outputs, None))

    def forward(self, x):
        return self.body(x)


def anchors(maps, strides):
    """Middles of all cells, in cells, and their strides: [2][cells], [1][cells]."""
    points, steps = [], []
    for m, stride in zip(maps, strides):
        h, w = m.shape[2], m.shape[3]
        y = torch.arange(h, dtype=torch.float32) + 0.5
        x = torch.arange(w, dtype=torch.float32) + 0.5
        y, x = y.view(-1, 1).expand(h, w), x.view(1, -1).expand(h, w)
        points.append(torch.stack((x, y), -1).view(-1, 2))
        steps.append(torch.full((1, 1), float(stride)).expand(h * w, 1))
    return torch.cat(points).transpose(0, 1), torch.cat(steps).transpose(0, 1)


class Detect(nn.Module):
    """YOLOv8's head: a distribution for each side of a box, and classes; [N][4 + classes][cells]."""
    BINS = 16

    def __init__(self, channels, classes, light=False):
        super().__init__()
        inner, wide = max(16, channels[0] // 4, self.BINS * 4), max(channels[0], min(classes, 100))
        self.box = nn.ModuleList(nn.Sequential(silu(c, inner, 3), silu(inner, inner, 3),
                                               nn.Conv2d(inner, 4 * self.BINS, 1)) for c in channels)
        pair = lambda a, b: nn.Sequential(silu(a, a, 3, 1, a), silu(a, b)) if light else silu(a, b, 3)  # noqa: E731
        self.classify = nn.ModuleList(nn.Sequential(pair(c, wide), pair(wide, wide), nn.Conv2d(wide, classes, 1))
                                      for c in channels)
        for branch in (*self.box, *self.classify):
            branch[-1].calm = 0.3
        self.bins = nn.Conv2d(self.BINS, 1, 1, bias=False)
        self.bins.fixed = torch.arange(self.BINS, dtype=torch.float32).view(1, self.BINS, 1, 1)
        self.classes = classes

    def forward(self, maps):
        n = maps[0].shape[0]
        both = [torch.cat([box(m), classify(m)], 1) for box, classify, m in zip(self.box, self.classify, maps)]
        points, steps = anchors(maps, (8, 16, 32))
        box, score = torch.cat([b.view(n, 4 * self.BINS + self.classes, -1) for b in both], 2).split(
            (4 * self.BINS, self.classes), 1)
        sides = self.bins(box.view(n, 4, self.BINS, -1).transpose(2, 1).softmax(1)).view(n, 4, -1)
        first, second = sides.chunk(2, 1)
        first, second = points.unsqueeze(0) - first, points.unsqueeze(0) + second
        box = torch.cat(((first + second) / 2, second - first), 1) * steps
        return torch.cat((box, score.sigmoid()), 1)


class Detect5(nn.Module):
    """YOLOv5's head: three anchors a cell, [N][boxes][5 + classes]."""
    ANCHORS = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]

    def __init__(self, channels, classes):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(c, 3 * (5 + classes), 1) for c in channels)
        for conv in self.convs:
            conv.calm = 0.3
        self.values = 5 + classes

    def forward(self, maps):
        out = []
        for conv, m, sizes, stride in zip(self.convs, maps, self.ANCHORS, (8, 16, 32)):
            n, _, h, w = m.shape
            y = conv(m).view(n, 3, self.values, h, w).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
            rows, cols = torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32)
            grid = torch.stack((cols.view(1, w).expand(h, w), rows.view(h, 1).expand(h, w)), 2)
            grid = grid.expand(1, 3, h, w, 2) - 0.5
            xy, wh, rest = y.split((2, 2, self.values - 4), 4)
            wh = (wh * 2) ** 2 * torch.tensor(sizes, dtype=torch.float32).view(1, 3, 1, 1, 2)
            out.append(torch.cat(((xy * 2 + grid) * stride, wh, rest), 4).view(n, -1, self.values))
        return torch.cat(out, 1)


class Yolo(nn.Module):
    """Trunk, pyramid up and down, head; version says of which blocks."""
    def __init__(self, version, width, repeats, classes, head):
        super().__init__()
        c = [max(8, int(v * width)) for v in (64, 128, 256, 512, 1024)]
        r = repeats
        if version == 5:
            block, first = (lambda a, b, k, add=True: C3(a, b, k, add)), silu(3, c[0], 6, 2)
            first[0].padding = (2, 2)
        elif version == 11:
            block, first = (lambda a, b, k, add=True: C2f(a, b, k, True, a >= c[3])), silu(3, c[0], 3, 2)
        else:
            block, first = (lambda a, b, k, add=True: C2f(a, b, k, add)), silu(3, c[0], 3, 2)
        down = Down if version == 10 else lambda a, b: silu(a, b, 3, 2)
        heads = max(1, c[4] // 128)
        last = [C2PSA(c[4], heads, r)] if version in (10, 11) else []
        self.trunk = nn.ModuleList([
            nn.Sequential(first, silu(c[0], c[1], 3, 2), block(c[1], c[1], r), silu(c[1], c[2], 3, 2),
                          block(c[2], c[2], 2 * r)),
            nn.Sequential(down(c[2], c[3]), block(c[3], c[3], 2 * r)),
            nn.Sequential(down(c[3], c[4]), block(c[4], c[4], r), SPPF(c[4]), *last)])
        self.up = nn.ModuleList([block(c[4] + c[3], c[3], r, False), block(c[3] + c[2], c[2], r, False)])
        self.down = nn.ModuleList([silu(c[2], c[2], 3, 2), down(c[3], c[3])])
        self.back = nn.ModuleList([block(c[2] + c[3], c[3], r, False), block(c[3] + c[4], c[4], r, False)])
        self.head = head(c[2:], classes)

    def forward(self, x):
        fine = self.trunk[0](x)
        middle = self.trunk[1](fine)
        coarse = self.trunk[2](middle)
        double = lambda y: functional.interpolate(y, scale_factor=2, mode='nearest')  # noqa: E731
        middle = self.up[0](torch.cat([double(coarse), middle], 1))
        fine = self.up[1](torch.cat([double(middle), fine], 1))
        middle = self.back[0](torch.cat([self.down[0](fine), middle], 1))
        coarse = self.back[1](torch.cat([self.down[1](middle), coarse], 1))
        return self.head([fine, middle, coarse])


class EndToEnd(nn.Module):
    """YOLOv10's answer without suppression: the best boxes by score, [N][count][6]."""
    def __init__(self, net, count):
        super().__init__()
        self.net, self.count = net, count

    def forward(self, x):
        boxes, scores = self.net(x).transpose(1, 2).split((4, self.net.head.classes), 2)
        best = scores.amax(2).topk(self.count, 1)[1].unsqueeze(2)
        boxes = torch.gather(boxes, 1, best.expand(-1, -1, 4))
        scores = torch.gather(scores, 1, best.expand(-1, -1, self.net.head.classes))
        scores, index = scores.flatten(1).topk(self.count, 1)
        row, label = torch.div(index, self.net.head.classes, rounding_mode='floor'), index % self.net.head.classes
        boxes = torch.gather(boxes, 1, row.unsqueeze(2).expand(-1, -1, 4))
        return torch.cat([boxes, scores.unsqueeze(2), label.unsqueeze(2).float()], 2)


class Suppressed(nn.Module):
    """NonMaxSuppression in the graph, classes told apart by an offset; [boxes][6] of the first image, the best of many:
    far down, neighbours have all but the same score, and rounding decides."""
    def __init__(self, net, offset=640):
        super().__init__()
        self.net, self.offset = net, offset
        self.most = 20 if net.head.classes > 3 else None

    def forward(self, x):
        y = self.net(x)[0].transpose(0, 1)
        score, label = y[:, 4:].max(1)
        half = y[:, 2:4] / 2
        boxes = torch.cat([y[:, :2] - half, y[:, :2] + half], 1)
        label = label.float()
        keep = torchvision.ops.nms(boxes + (label * self.offset).unsqueeze(1), score, 0.45)
        keep = keep[:self.most] if self.most else keep
        return torch.cat([boxes[keep], score[keep].unsqueeze(1), label[keep].unsqueeze(1)], 1)


class YoloX(nn.Module):
    """Ge et al. 2021: a stem of slices, heads that tell box, object and class apart, boxes in pixels."""
    def __init__(self, width, repeats, classes):
        super().__init__()
        body = Yolo(5, width, repeats, classes, lambda channels, count: nn.Identity())
        self.body, self.classes = body, classes
        stem = body.trunk[0]
        stem[0] = silu(12, stem[0][0].out_channels, 3)
        channels = [body.up[1].join[0].out_channels, body.back[0].join[0].out_channels,
                    body.back[1].join[0].out_channels]
        wide = max(8, int(256 * width))
        two = lambda: nn.Sequential(silu(wide, wide, 3), silu(wide, wide, 3))  # noqa: E731
        self.into = nn.ModuleList(silu(c, wide) for c in channels)
        self.branch = nn.ModuleList(nn.ModuleList([two(), two()]) for _ in channels)
        self.outs = nn.ModuleList(nn.ModuleList(nn.Conv2d(wide, k, 1) for k in (4, 1, classes)) for _ in channels)
        for outs in self.outs:
            outs[0].calm = 0.05

    def forward(self, x):
        x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
        maps = self.body(x)
        out = []
        points, steps = anchors(maps, (8, 16, 32))
        for m, into, (classify, place), (box, thing, kind) in zip(maps, self.into, self.branch, self.outs):
            m = into(m)
            a, b = classify(m), place(m)
            out.append(torch.cat([box(b), thing(b).sigmoid(), kind(a).sigmoid()], 1).flatten(2))
        y = torch.cat(out, 2).permute(0, 2, 1)
        points, steps = (points - 0.5).transpose(0, 1), steps.transpose(0, 1)
        return torch.cat([(y[..., :2] + points) * steps, torch.exp(y[..., 2:4]) * steps, y[..., 4:]], 2)


class Shuffle(nn.Module):
    """ShuffleNetV2's unit; it halves where inputs and outputs differ."""
    def __init__(self, inputs, outputs):
        super().__init__()
        half, step, act = outputs // 2, inputs != outputs, lambda: nn.LeakyReLU(0.1)
        self.step = step
        self.main = nn.Sequential(conv_bn(inputs if step else half, half, act=act),
                                  conv_bn(half, half, 3, 2 if step else 1, half, None), conv_bn(half, half, act=act))
        self.side = nn.Sequential(conv_bn(inputs, inputs, 3, 2, inputs, None),
                                  conv_bn(inputs, half, act=act)) if step else None

    def forward(self, x):
        if self.step:
            y = torch.cat([self.side(x), self.main(x)], 1)
        else:
            a, b = x.chunk(2, 1)
            y = torch.cat([a, self.main(b)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class NanoDet(nn.Module):
    """NanoDet-plus: ShuffleNetV2, a light pyramid, one head of scores and distances, [N][cells][classes + 4 bins]."""
    BINS = 8

    def __init__(self, width, inner, classes):
        super().__init__()
        act = lambda: nn.LeakyReLU(0.1)  # noqa: E731
        c = [24, *(width * k for k in (1, 2, 4))]
        self.stem = nn.Sequential(conv_bn(3, 24, 3, 2, act=act), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.ModuleList(nn.Sequential(Shuffle(a, b), Shuffle(b, b)) for a, b in zip(c, c[1:]))
        self.reduce = nn.ModuleList(conv_bn(k, inner, act=act) for k in c[1:])
        join = lambda: nn.Sequential(conv_bn(2 * inner, 2 * inner, 5, 1, 2 * inner, act),  # noqa: E731
                                     conv_bn(2 * inner, inner, act=act))
        self.up, self.back = nn.ModuleList([join(), join()]), nn.ModuleList([join(), join()])
        self.down = nn.ModuleList(conv_bn(inner, inner, 5, 2, inner, act) for _ in range(2))
        self.heads = nn.ModuleList(nn.Sequential(
            nn.Conv2d(inner, inner, 5, 1, 2, groups=inner), nn.GroupNorm(4, inner), act(),
            nn.Conv2d(inner, classes + 4 * self.BINS, 1)) for _ in range(3))
        self.classes = classes
        self.register_buffer('bins', torch.arange(self.BINS, dtype=torch.float32))

    def forward(self, x):
        maps, x = [], self.stem(x)
        for stage, reduce in zip(self.stages, self.reduce):
            x = stage(x)
            maps.append(reduce(x))
        for i in (1, 0):
            size = maps[i].shape[2:]
            up = functional.interpolate(maps[i + 1], size=size, mode='bilinear', align_corners=False)
            maps[i] = self.up[i](torch.cat([up, maps[i]], 1))
        for i in (0, 1):
            maps[i + 1] = self.back[i](torch.cat([self.down[i](maps[i]), maps[i + 1]], 1))
        y = torch.cat([head(m).flatten(2) for head, m in zip(self.heads, maps)], 2).permute(0, 2, 1)
        scores, sides = y.split((self.classes, 4 * self.BINS), 2)
        sides = sides.reshape(y.shape[0], -1, 4, self.BINS).softmax(3) @ self.bins
        return torch.cat([scores.sigmoid(), sides], 2)


SMALL, FULL = (3, 64, 64), (3, 320, 320)


def two(make, small=SMALL, full=FULL, **options):
    return Network(lambda: make(0.0625, 1, 3), small, lambda: make(0.25, 1, 80), full, **options)


NETWORKS = {
    'yolov5': two(lambda w, r, k: Yolo(5, w, r, k, Detect5)),
    'yolov8': two(lambda w, r, k: Yolo(8, w, r, k, Detect)),
    'yolov8_nms': two(lambda w, r, k: Suppressed(Yolo(8, w, r, k, Detect)), open='none', rows=True),
    'yolov10': two(lambda w, r, k: EndToEnd(Yolo(10, w, r, k, lambda c, n: Detect(c, n, True)), 30),
                   open='none'),
    'yolo11': two(lambda w, r, k: Yolo(11, w, r, k, lambda c, n: Detect(c, n, True))),
    'yolo11_nms': two(lambda w, r, k: Suppressed(Yolo(11, w, r, k, lambda c, n: Detect(c, n, True))), open='none',
                      rows=True),
    'yolox': two(YoloX),
    'nanodet': Network(lambda: NanoDet(16, 16, 3), (3, 64, 64), lambda: NanoDet(116, 96, 80), (3, 320, 320)),
}
