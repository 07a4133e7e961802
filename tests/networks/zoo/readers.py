# SPDX-License-Identifier: Apache-2.0
"""Networks that read text, hear words, find faces and bodies, and make images."""
import torch
from torch import nn
from torch.nn import functional

from zoo.blocks import Network, SqueezeExcite, attend, conv_bn, even, separable


class CRNN(nn.Module):
    """Shi et al. 2015: convolutions, two bidirectional recurrent layers, a class for each column."""
    def __init__(self, width, hidden, classes, kind=nn.LSTM):
        super().__init__()
        w = width
        self.features = nn.Sequential(
            nn.Conv2d(1, w, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(w, 2 * w, 3, 1, 1), nn.ReLU(),
            nn.MaxPool2d(2, 2), conv_bn(2 * w, 4 * w, 3), nn.Conv2d(4 * w, 4 * w, 3, 1, 1), nn.ReLU(),
            nn.MaxPool2d((2, 2), (2, 1), (0, 1)), conv_bn(4 * w, 8 * w, 3),
            nn.MaxPool2d((2, 2), (2, 1), (0, 1)), nn.Conv2d(8 * w, 8 * w, 2), nn.ReLU())
        self.read = nn.ModuleList([kind(8 * w, hidden, bidirectional=True), kind(hidden, hidden, bidirectional=True)])
        self.embed = nn.ModuleList([nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, classes)])

    def forward(self, x):
        x = self.features(x).squeeze(2).permute(2, 0, 1)
        for read, embed in zip(self.read, self.embed):
            x = embed(read(x)[0])
        return x


class LCBlock(nn.Module):
    """PP-LCNet: depthwise and 1x1, hard swish, squeeze and excite."""
    def __init__(self, inputs, outputs, kernel, stride, squeeze):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(inputs, inputs, kernel, stride, inputs, nn.Hardswish),
            SqueezeExcite(inputs, gate=nn.Hardsigmoid) if squeeze else nn.Identity(),
            conv_bn(inputs, outputs, 1, act=nn.Hardswish))

    def forward(self, x):
        return self.body(x)


class LCNet(nn.Module):
    def __init__(self, width, strides):
        super().__init__()
        channels = [even(c * width) for c in (16, 32, 64, 128, 256, 512)]
        self.stem = conv_bn(3, channels[0], 3, 2, act=nn.Hardswish)
        self.stages = nn.ModuleList()
        for i, stride in enumerate(strides):
            kernel, squeeze = (5 if i > 2 else 3), i == 4
            self.stages.append(nn.Sequential(LCBlock(channels[i], channels[i + 1], kernel, stride, squeeze),
                                             LCBlock(channels[i + 1], channels[i + 1], kernel, 1, squeeze)))
        self.channels = channels

    def forward(self, x):
        x = self.stem(x)
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps


class OcrDetect(nn.Module):
    """PP-OCRv4's finder of text: LCNet, a pyramid with squeezed residuals, DB's map of probabilities."""
    def __init__(self, width, inner):
        super().__init__()
        self.trunk = LCNet(width, (1, 2, 2, 2, 2))
        taps = self.trunk.channels[2:]
        self.lateral = nn.ModuleList(nn.Conv2d(c, inner, 1, bias=False) for c in taps)
        self.smooth = nn.ModuleList(nn.Conv2d(inner, inner // 4, 3, 1, 1, bias=False) for _ in taps)
        self.squeeze = nn.ModuleList(SqueezeExcite(inner, gate=nn.Hardsigmoid) for _ in taps)
        self.head = nn.Sequential(conv_bn(inner, inner // 4, 3),
                                  nn.ConvTranspose2d(inner // 4, inner // 4, 2, 2), nn.BatchNorm2d(inner // 4),
                                  nn.ReLU(), nn.ConvTranspose2d(inner // 4, 1, 2, 2), nn.Sigmoid())

    def forward(self, x):
        maps = [lateral(m) for lateral, m in zip(self.lateral, self.trunk(x)[1:])]
        maps = [m + squeeze(m) for m, squeeze in zip(maps, self.squeeze)]
        for i in (2, 1, 0):
            maps[i] = maps[i] + functional.interpolate(maps[i + 1], size=maps[i].shape[2:], mode='nearest')
        out = [smooth(m) for smooth, m in zip(self.smooth, maps)]
        size = out[0].shape[2:]
        out = [out[0]] + [functional.interpolate(m, size=size, mode='nearest') for m in out[1:]]
        return self.head(torch.cat(out[::-1], 1))


class Mixer(nn.Module):
    """SVTR's block over all columns: attention and a small perceptron, normalised before."""
    def __init__(self, channels, heads):
        super().__init__()
        self.heads, self.each = heads, channels // heads
        self.norm = nn.ModuleList([nn.LayerNorm(channels), nn.LayerNorm(channels)])
        self.qkv = nn.Linear(channels, 3 * channels)
        self.project = nn.Linear(channels, channels)
        self.perceptron = nn.Sequential(nn.Linear(channels, 2 * channels), nn.SiLU(), nn.Linear(2 * channels, channels))

    def forward(self, x):
        n, t, c = x.shape
        qkv = self.qkv(self.norm[0](x)).reshape(n, t, 3, self.heads, self.each).permute(2, 0, 3, 1, 4)
        y = attend(qkv[0], qkv[1], qkv[2], self.each ** -0.5)
        x = x + self.project(y.transpose(1, 2).reshape(n, t, c))
        return x + self.perceptron(self.norm[1](x))


class OcrRead(nn.Module):
    """PP-OCRv4's reader of a line: LCNet to a height of one, SVTR blocks, CTC classes."""
    def __init__(self, width, mixed, classes):
        super().__init__()
        self.trunk = LCNet(width, ((2, 1), (1, 2), (2, 1), (2, 1), (1, 1)))
        last = self.trunk.channels[-1]
        self.into = nn.Sequential(conv_bn(last, last // 8, (1, 3), act=nn.SiLU),
                                  conv_bn(last // 8, mixed, act=nn.SiLU))
        self.mix = nn.Sequential(Mixer(mixed, 4), Mixer(mixed, 4), nn.LayerNorm(mixed))
        self.back = conv_bn(mixed, last, act=nn.SiLU)
        self.join = conv_bn(2 * last, mixed, 3, act=nn.SiLU)
        self.classify = nn.Linear(mixed, classes)

    def forward(self, x):
        tap = functional.avg_pool2d(self.trunk(x)[-1], (3, 2))
        x = self.into(tap)
        n, c, h, w = x.shape
        x = self.mix(x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(n, c, h, w)
        x = self.join(torch.cat([tap, self.back(x)], 1))
        return torch.softmax(self.classify(x.squeeze(2).transpose(1, 2)), 2)


class KeywordDsCnn(nn.Module):
    """Zhang et al. 2017: 49 frames of 10 coefficients, four separable blocks, 12 words."""
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(*[separable(width, width) for _ in range(4)])
        self.classify = nn.Linear(width, 12)

    def forward(self, x):
        return torch.softmax(self.classify(self.blocks(self.stem(x)).mean((2, 3))), 1)


class KeywordCrnn(nn.Module):
    """Arik et al. 2017: one convolution, two bidirectional GRU layers, dense layers."""
    def __init__(self, filters, hidden):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, filters, (20, 5), (8, 2)), nn.ReLU())
        self.listen = nn.GRU(filters * 18, hidden, 2, batch_first=True, bidirectional=True)
        self.classify = nn.Sequential(nn.Linear(2 * hidden, 64), nn.ReLU(), nn.Linear(64, 12))

    def forward(self, x):
        x, _ = self.listen(self.stem(x).permute(0, 2, 1, 3).flatten(2))
        return self.classify(x[:, -1])


class Wake(nn.Module):
    """A wake word's last part: one LSTM over frames of features, its last state."""
    def __init__(self, hidden):
        super().__init__()
        self.listen = nn.LSTM(40, hidden, 1, batch_first=True)
        self.plain = nn.RNN(hidden, hidden, 1, batch_first=True)
        self.classify = nn.Linear(hidden, 2)

    def forward(self, x):
        x, _ = self.listen(x)
        _, last = self.plain(x)
        return torch.log_softmax(self.classify(last[0]), 1)


class BlazeBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.stride, self.more = stride, outputs - inputs
        self.body = nn.Sequential(nn.Conv2d(inputs, inputs, 3, stride, 0 if stride == 2 else 1, groups=inputs),
                                  nn.Conv2d(inputs, outputs, 1))
        self.body[1].calm = 0.4

    def forward(self, x):
        past = x
        if self.stride == 2:
            x = functional.pad(x, (0, 2, 0, 2))
            past = functional.max_pool2d(past, 2, 2)
        if self.more:
            past = functional.pad(past, (0, 0, 0, 0, 0, self.more))
        return functional.relu(self.body(x) + past)


class BlazeFace(nn.Module):
    """Bazarevsky et al. 2019, front camera: boxes with six points, and scores, of 896 anchors."""
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 5, 2)
        self.fine = nn.Sequential(BlazeBlock(24, 24), BlazeBlock(24, 28), BlazeBlock(28, 32, 2), BlazeBlock(32, 36),
                                  BlazeBlock(36, 42), BlazeBlock(42, 48, 2), BlazeBlock(48, 56), BlazeBlock(56, 64),
                                  BlazeBlock(64, 72), BlazeBlock(72, 80), BlazeBlock(80, 88))
        self.coarse = nn.Sequential(BlazeBlock(88, 96, 2), *[BlazeBlock(96, 96) for _ in range(4)])
        self.score = nn.ModuleList([nn.Conv2d(88, 2, 1), nn.Conv2d(96, 6, 1)])
        self.box = nn.ModuleList([nn.Conv2d(88, 32, 1), nn.Conv2d(96, 96, 1)])

    def forward(self, x):
        fine = self.fine(functional.relu(self.stem(functional.pad(x, (1, 2, 1, 2)))))
        maps = (fine, self.coarse(fine))
        n = x.shape[0]
        scores = torch.cat([s(m).permute(0, 2, 3, 1).reshape(n, -1, 1) for s, m in zip(self.score, maps)], 1)
        boxes = torch.cat([b(m).permute(0, 2, 3, 1).reshape(n, -1, 16) for b, m in zip(self.box, maps)], 1)
        return boxes, torch.sigmoid(scores.clamp(-100, 100))


class MoveNet(nn.Module):
    """A MoveNet-like head: the centre nearest to the middle, points regressed there, refined by heat maps."""
    JOINTS = 17

    def __init__(self, width):
        super().__init__()
        w = width
        self.down = nn.ModuleList([nn.Sequential(conv_bn(3, w, 3, 2, act=nn.ReLU6), separable(w, w, 3, 2)),
                                   separable(w, 2 * w, 3, 2), separable(2 * w, 4 * w, 3, 2)])
        self.lateral = nn.ModuleList(nn.Conv2d(c, w, 1) for c in (w, 2 * w, 4 * w))
        self.heads = nn.ModuleList(nn.Sequential(separable(w, w), nn.Conv2d(w, c, 1))
                                   for c in (1, self.JOINTS, 2 * self.JOINTS, 2 * self.JOINTS))

    def forward(self, x):
        maps = []
        for level in self.down:
            x = level(x)
            maps.append(x)
        maps = [lateral(m) for lateral, m in zip(self.lateral, maps)]
        for i in (1, 0):
            size = maps[i].shape[2:]
            maps[i] = maps[i] + functional.interpolate(maps[i + 1], size=size, mode='bilinear', align_corners=False)
        centre, heat, offset, shift = [head(maps[0]) for head in self.heads]
        n, _, h, w = heat.shape
        rows = torch.arange(h, dtype=torch.float32).reshape(1, h, 1)
        cols = torch.arange(w, dtype=torch.float32).reshape(1, 1, w)
        middle = 1.0 / (1.8 + torch.sqrt((rows - h / 2) ** 2 + (cols - w / 2) ** 2))
        best = torch.argmax((torch.sigmoid(centre)[:, 0] * middle).reshape(n, -1), 1)
        row, col = torch.div(best, w, rounding_mode='floor'), best % w
        at = best.reshape(n, 1, 1).expand(n, 2 * self.JOINTS, 1)
        points = torch.gather(offset.flatten(2), 2, at).reshape(n, self.JOINTS, 2)
        y = points[:, :, 0].reshape(n, self.JOINTS, 1, 1) + row.reshape(n, 1, 1, 1).float()
        z = points[:, :, 1].reshape(n, self.JOINTS, 1, 1) + col.reshape(n, 1, 1, 1).float()
        away = torch.sqrt((rows.unsqueeze(1) - y) ** 2 + (cols.unsqueeze(1) - z) ** 2) + 1.8
        scores = (torch.sigmoid(heat) / away).flatten(2)
        peak = torch.argmax(scores, 2, keepdim=True)
        score = torch.gather(torch.sigmoid(heat).flatten(2), 2, peak)
        dy = torch.gather(shift[:, :self.JOINTS].flatten(2), 2, peak)
        dx = torch.gather(shift[:, self.JOINTS:].flatten(2), 2, peak)
        py = (torch.div(peak, w, rounding_mode='floor').float() + dy) / h
        px = ((peak % w).float() + dx) / w
        return torch.cat([py, px, score], 2)


class UNet(nn.Module):
    """Ronneberger et al. 2015 with padding and batch norm; the way up doubles by interpolation."""
    def __init__(self, widths):
        super().__init__()
        double = lambda a, b: nn.Sequential(conv_bn(a, b, 3), conv_bn(b, b, 3))  # noqa: E731
        self.down = nn.ModuleList(double(a, b) for a, b in zip([3] + widths, widths))
        self.up = nn.ModuleList(double(a + b, b) for a, b in zip(widths[::-1], widths[-2::-1]))
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        taps = []
        for level in self.down:
            x = level(functional.max_pool2d(x, 2) if taps else x)
            taps.append(x)
        for up, tap in zip(self.up, taps[-2::-1]):
            x = functional.interpolate(x, scale_factor=2, mode='bilinear', align_corners=True)
            rest = [tap.shape[2] - x.shape[2], tap.shape[3] - x.shape[3]]
            x = functional.pad(x, [rest[1] // 2, rest[1] - rest[1] // 2, rest[0] // 2, rest[0] - rest[0] // 2])
            x = up(torch.cat([tap, x], 1))
        return self.head(x)


class Espcn(nn.Module):
    """Shi et al. 2016: three convolutions and a shuffle of pixels."""
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 5, 1, 2), nn.Tanh(), nn.Conv2d(width, width // 2, 3, 1, 1),
                                  nn.Tanh(), nn.Conv2d(width // 2, 9, 3, 1, 1), nn.PixelShuffle(3))

    def forward(self, x):
        return self.body(x)


SMALL = (3, 64, 64)
NETWORKS = {
    'crnn': Network(lambda: CRNN(4, 12, 11), (1, 32, 64), lambda: CRNN(64, 256, 37), (1, 32, 100), open='batch'),
    'ocr_detect': Network(lambda: OcrDetect(0.25, 16), SMALL, lambda: OcrDetect(1, 96), (3, 320, 320)),
    'ocr_read': Network(lambda: OcrRead(0.25, 16, 20), (3, 48, 64), lambda: OcrRead(1, 120, 6625), (3, 48, 320),
                        open='batch'),
    'keyword_dscnn': Network(lambda: KeywordDsCnn(64), (1, 49, 10), open='batch'),
    'keyword_crnn': Network(lambda: KeywordCrnn(8, 16), (1, 101, 40), lambda: KeywordCrnn(32, 64), (1, 101, 40),
                            open='batch'),
    'wake': Network(lambda: Wake(16), (49, 40), lambda: Wake(128), (98, 40), open='batch'),
    'blazeface': Network(BlazeFace, (3, 128, 128), open='batch', outputs=('boxes', 'scores')),
    'movenet': Network(lambda: MoveNet(8), SMALL, lambda: MoveNet(24), (3, 192, 192), open='batch'),
    'unet': Network(lambda: UNet([8, 12, 16]), (3, 50, 64), lambda: UNet([32, 64, 128, 256, 512]), (3, 256, 256)),
    'espcn': Network(lambda: Espcn(16), (1, 24, 32), lambda: Espcn(64), (1, 224, 224)),
}
