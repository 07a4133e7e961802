#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the embedded default network on scikit-learn's handwritten digits and writes it as ONNX.

usage: train_digits.py [OUT_DIR]      (needs Debian's python3-torch, python3-sklearn, python3-onnx)

The 1,797 images (8 x 8, 17 grey levels) are split once, by class, into three quarters for training
and one quarter held out. The network sees 16 x 16 pixels: the images are enlarged bilinearly, as
the daemon does with whatever size a client sends. Seeded; the same but for rounding every time.

  digits.onnx           opset 12; convolutions, depthwise, residual add, concat, batch norm nodes
  digits.sidecar.json   preprocessing and labels
  heldout.pgm           the held-out images, one P5 image after the other in one file
  heldout.labels        their classes, one a line
"""
import json
import os
import sys

import numpy as np
import onnx
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional

DEFAULT_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "model", "default")
SEED = 7
SIZE = 16
EPOCHS = 40


def conv(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = conv(channels, channels, 3)
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
                                    nn.BatchNorm2d(channels))

    def forward(self, x):
        return functional.relu(x + self.second(self.first(x)))


class Branches(nn.Module):
    def __init__(self, inputs, half):
        super().__init__()
        self.squeeze = conv(inputs, half, 1)
        self.narrow = conv(half, half, 1)
        self.wide = conv(half, half, 3)

    def forward(self, x):
        x = self.squeeze(x)
        return torch.cat([self.narrow(x), self.wide(x)], 1)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            conv(1, 24, 3),
            conv(24, 24, 3, groups=24), conv(24, 48, 1),
            nn.MaxPool2d(2),
            Residual(48),
            conv(48, 48, 3, stride=2, groups=48), conv(48, 64, 1),
            Branches(64, 32),
            conv(64, 96, 3))
        self.classify = nn.Linear(96, 10)

    def forward(self, x):
        x = functional.adaptive_avg_pool2d(self.body(x), 1)
        return functional.softmax(self.classify(torch.flatten(x, 1)), 1)

    def logits(self, x):
        x = functional.adaptive_avg_pool2d(self.body(x), 1)
        return self.classify(torch.flatten(x, 1))


def enlarge(pixels):
    return functional.interpolate(pixels, size=(SIZE, SIZE), mode='bilinear', align_corners=False)


def shifted(batch, generator):
    """The images moved by up to one pixel of the enlarged picture, a little brighter or darker."""
    dx, dy = (int(v) for v in torch.randint(-1, 2, (2,), generator=generator))
    gain = 0.9 + 0.2 * torch.rand(len(batch), 1, 1, 1, generator=generator)
    return torch.roll(batch, (dy, dx), (2, 3)) * gain


def train(images, classes):
    generator = torch.Generator().manual_seed(SEED)
    net = Digits()
    optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
    steps = EPOCHS * (len(images) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(images), generator=generator)
        for start in range(0, len(images) - 63, 64):
            pick = order[start:start + 64]
            logits = net.logits(shifted(images[pick], generator))
            loss = functional.cross_entropy(logits, classes[pick], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return net.eval()


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_DIR
    torch.manual_seed(SEED)
    digits = load_digits()
    pixels = np.minimum(digits.images * 16, 255).astype(np.uint8)
    train_x, held_x, train_y, held_y = train_test_split(
        pixels, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target)
    as_input = lambda x: enlarge(torch.from_numpy(x).float()[:, None] / 255)
    net = train(as_input(train_x), torch.from_numpy(train_y))
    with torch.no_grad():
        right = (net(as_input(held_x)).argmax(1).numpy() == held_y).sum()
    print('held out: %d of %d right (%.2f %%)' % (right, len(held_y), 100 * right / len(held_y)))

    path = os.path.join(out, 'digits.onnx')
    torch.onnx.export(net, as_input(held_x[:1]), path, opset_version=12,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=['image'], output_names=['probability'])
    onnx.checker.check_model(onnx.load(path))
    with open(os.path.join(out, 'digits.sidecar.json'), 'w') as f:
        labels = [str(d) for d in range(10)]
        json.dump({'preprocess': {'mean': [0], 'std': [255]}, 'labels': labels}, f, indent=2)
        f.write('\n')
    with open(os.path.join(out, 'heldout.pgm'), 'wb') as f:
        for image in held_x:
            f.write(b'P5\n8 8\n255\n' + image.tobytes())
    with open(os.path.join(out, 'heldout.labels'), 'w') as f:
        f.writelines('%d\n' % y for y in held_y)


if __name__ == '__main__':
    main()
