#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the detector of digits that comes with piped, and writes it as ONNX.

usage: train_detector.py [OUT_DIR]      (needs Debian's python3-torch, python3-sklearn, python3-onnx, python3-pil,
                                         fonts-dejavu-core, fonts-liberation; on a GPU if there is one)

The pictures are drawn by camera_digits.py, a new one for each step, so none is seen twice. The network has no
anchors: each cell of two grids (8 and 16 pixels) says how probable each digit is there, and gives one box. At the
end the held-out pictures are judged. Seeded; the same but for rounding every time. It takes a quarter of an hour on
two cores (AMD EPYC, 0.25 s a step and 0.14 s to draw for it), two minutes with a GPU; detector.onnx is from a GPU.

  detector.onnx           opset 12; output [1, 4 + 10, 1500]: cx, cy, w, h in pixels, a probability a digit
  detector.sidecar.json   preprocessing, labels, how boxes are decoded
  desk.jpg, wall.jpg      two of the held-out pictures, of those in which every digit is found
  pictures.json           what is in them
"""
import json
import multiprocessing
import os
import sys
import time

import numpy as np
import onnx
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

from camera_digits import HEIGHT, SEED, WIDTH, CameraDigits

DEFAULT_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "model", "default")
CLASSES = 10
STRIDES = 8, 16
BORDER = 44  # pixels: larger digits belong to the coarse grid
BATCH, STEPS = 16, 3600
RATE = 4e-3
HELD_OUT = 500
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SCORE, IOU = 0.4, 0.45  # of the sidecar; chosen on pictures for training
SAMPLES = {"desk.jpg": 219, "wall.jpg": 10}  # numbers of held-out pictures


def conv(inputs, outputs, kernel=3, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(conv(channels, channels // 2, 1), conv(channels // 2, channels))

    def forward(self, x):
        return x + self.body(x)


class Head(nn.Module):
    """Of each cell the logits of the classes, and a box as numbers that decode() understands."""

    def __init__(self, channels):
        super().__init__()
        self.body = conv(channels, channels, 1)
        self.out = nn.Conv2d(channels, 4 + CLASSES, 1)
        nn.init.constant_(self.out.bias[4:], -5.0)

    def forward(self, x):
        return torch.flatten(self.out(self.body(x)), 2)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine = nn.Sequential(conv(3, 12, 3, 2), conv(12, 24, 3, 2), conv(24, 40, 3, 2),
                                  Residual(40), Residual(40))
        self.coarse = nn.Sequential(conv(40, 64, 3, 2), Residual(64), Residual(64))
        self.lateral = conv(64, 40, 1)
        self.merge = Residual(40)
        self.heads = nn.ModuleList([Head(40), Head(64)])
        grids = [np.stack(np.meshgrid(np.arange(WIDTH // s), np.arange(HEIGHT // s)), 0).reshape(2, -1)
                 for s in STRIDES]
        centres = np.concatenate([(g + 0.5) * s for g, s in zip(grids, STRIDES)], 1)
        strides = np.concatenate([np.full(g.shape[1], s) for g, s in zip(grids, STRIDES)])
        self.register_buffer("centres", torch.tensor(centres, dtype=torch.float32)[None])
        self.register_buffer("strides", torch.tensor(strides, dtype=torch.float32)[None, None])

    def raw(self, x):
        fine = self.fine(x)
        coarse = self.coarse(fine)
        up = functional.interpolate(self.lateral(coarse), scale_factor=2, mode="nearest")
        return torch.cat([self.heads[0](self.merge(fine + up)), self.heads[1](coarse)], 2)

    def decode(self, raw):
        """Return: cx, cy, w, h in pixels, [N][4][cells]."""
        centre = self.centres + raw[:, :2] * self.strides
        size = torch.exp(raw[:, 2:4]) * 2 * self.strides
        return torch.cat([centre, size], 1)

    def forward(self, x):
        raw = self.raw(x)
        return torch.cat([self.decode(raw), torch.sigmoid(raw[:, 4:])], 1)


def targets(net, classes, boxes):
    """Which cells shall find which digit: those near its centre, in the grid of its size.
    Return: the digit's place in the list for each cell, -1: none."""
    cells = net.centres[0].T.cpu().numpy()
    strides = net.strides[0, 0].cpu().numpy()
    owner = np.full(len(cells), -1, np.int64)
    nearest = np.full(len(cells), np.inf, np.float32)
    for k in range(len(classes)):
        x1, y1, x2, y2 = boxes[k]
        centre, size = np.array([(x1 + x2) / 2, (y1 + y2) / 2]), max(x2 - x1, y2 - y1)
        far = np.abs(cells - centre).max(1)
        mine = (far <= np.maximum(0.8 * strides, 0.15 * size)) & (strides == STRIDES[int(size > BORDER)])
        mine &= (far < nearest)
        owner[mine], nearest[mine] = k, far[mine]
    return owner


def iou_of_pairs(a, b):
    """Generalised IoU and IoU of boxes [N][4] as cx, cy, w, h."""
    a1, a2, b1, b2 = a[:, :2] - a[:, 2:] / 2, a[:, :2] + a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2
    inside = (torch.minimum(a2, b2) - torch.maximum(a1, b1)).clamp(min=0).prod(1)
    both = a[:, 2:].prod(1) + b[:, 2:].prod(1) - inside
    around = (torch.maximum(a2, b2) - torch.minimum(a1, b1)).prod(1)
    iou = inside / both
    return iou - (around - both) / around, iou


def loss_of(net, images, owners, classes, boxes):
    """Quality focal loss of the classes, generalised IoU of the boxes."""
    raw = net.raw(images)
    sample, cell = (owners >= 0).nonzero(as_tuple=True)
    wanted = torch.zeros_like(raw[:, 4:])
    box_loss = raw.sum() * 0
    if len(sample):
        flat = owners[sample, cell]
        found = net.decode(raw).permute(0, 2, 1)[sample, cell]
        giou, iou = iou_of_pairs(found, boxes[flat])
        box_loss = (1 - giou).sum()
        wanted[sample, classes[flat], cell] = iou.detach().clamp(min=0.3)
    logits = raw[:, 4:]
    weight = (wanted - torch.sigmoid(logits)).abs() ** 2
    class_loss = (functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none") * weight.detach()).sum()
    return (2 * class_loss + 1.5 * box_loss) / max(1, len(sample))


def as_batch(net, drawn):
    """Pictures of the generator as tensors; digits of all pictures are numbered through."""
    images = torch.from_numpy(np.stack([d[0] for d in drawn])).to(net.strides.device).permute(0, 3, 1, 2).float() / 255
    owners, first = [], 0
    for _, classes, boxes in drawn:
        owner = targets(net, classes, boxes)
        owners.append(np.where(owner >= 0, owner + first, -1))
        first += len(classes)
    classes = torch.from_numpy(np.concatenate([d[1] for d in drawn]))
    corners = torch.from_numpy(np.concatenate([d[2] for d in drawn]))
    boxes = torch.cat([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]], 1)
    return [t.to(net.strides.device) for t in (images, torch.from_numpy(np.stack(owners)), classes, boxes)]


PICTURES = [CameraDigits(held_out) for held_out in (False, True)]


def draw_for_training(number):
    return PICTURES[0].draw(number)


def draw_held_out(number):
    return PICTURES[1].draw(number)


def train(pool):
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the other cores draw; a second thread would wait for them
    net = Detector().to(DEVICE)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS, pct_start=0.15)
    drawn = pool.imap(draw_for_training, range(STEPS * BATCH), chunksize=BATCH)
    begun, mean = time.time(), 0.0
    for step in range(STEPS):
        loss = loss_of(net, *as_batch(net, [next(drawn) for _ in range(BATCH)]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        mean += 0.05 * (loss.item() - mean)
        if step % 100 == 99:
            print("step %4d of %d: loss %.3f, %.0f s" % (step + 1, STEPS, mean, time.time() - begun), flush=True)
    return net.cpu().eval()


# ---- judging ----

def overlap(box, others):
    """IoU of a box with others, as x1, y1, x2, y2."""
    inside = np.clip(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0, None).prod(1)
    area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
    return inside / (area(box) + area(others) - inside)


def decoded(answer, score):
    """What libpiped makes of an answer [14][1500]: rows of class, score, x1, y1, x2, y2, the best first."""
    classes, scores = answer[4:].argmax(0), answer[4:].max(0)
    corners = np.concatenate([answer[:2] - answer[2:4] / 2, answer[:2] + answer[2:4] / 2]).T
    kept = []
    for k in np.argsort(-scores, kind="stable"):
        if scores[k] < score:
            break
        if not kept or overlap(corners[k], corners[kept]).max() <= IOU:
            kept.append(k)
    return [(int(classes[k]), float(scores[k]), corners[k]) for k in kept]


def matches(found, classes, boxes):
    """For each found object whether it is a digit that is there and was not found before (IoU of 0.5 or more)."""
    free, right = np.ones(len(classes), bool), []
    for label, _, box in found:
        fits = np.where(free & (classes == label), overlap(box, boxes), 0) if len(classes) else np.zeros(1)
        right.append(fits.max() >= 0.5)
        if right[-1]:
            free[fits.argmax()] = False
    return right


def average_precision(scores, right, there):
    order = np.argsort(-np.array(scores), kind="stable")
    hits = np.cumsum(np.array(right)[order])
    precision = np.maximum.accumulate((hits / np.arange(1, len(hits) + 1))[::-1])[::-1]
    recall = hits / there
    return float(np.sum(np.diff(np.concatenate([[0], recall])) * precision))


def judge(answers, drawn):
    """Prints mean average precision at IoU 0.5, and precision and recall at the sidecar's score."""
    rows = {c: ([], []) for c in range(CLASSES)}
    there = np.bincount(np.concatenate([d[1] for d in drawn]), minlength=CLASSES)
    right_count = found_count = 0
    for answer, (_, classes, boxes) in zip(answers, drawn):
        found = decoded(answer, 0.02)
        for (label, score, _), right in zip(found, matches(found, classes, boxes)):
            rows[label][0].append(score)
            rows[label][1].append(right)
        found = decoded(answer, SCORE)
        right_count += sum(matches(found, classes, boxes))
        found_count += len(found)
    each = [average_precision(*rows[c], there[c]) for c in range(CLASSES)]
    print("held out: %d pictures, %d digits; mean average precision at IoU 0.5: %.3f (each: %s)" % (
        len(drawn), there.sum(), np.mean(each), " ".join("%.2f" % v for v in each)))
    print("at score %.2f: precision %.3f, recall %.3f" % (SCORE, right_count / max(1, found_count), right_count / there.sum()))


# ---- writing ----

def write_model(net, out):
    path = os.path.join(out, "detector.onnx")
    torch.onnx.export(net, torch.zeros(1, 3, HEIGHT, WIDTH), path, opset_version=12, input_names=["image"],
                      output_names=["boxes"])
    onnx.checker.check_model(onnx.load(path))
    with open(os.path.join(out, "detector.sidecar.json"), "w", encoding="utf-8") as f:
        json.dump({"preprocess": {"mean": 0, "std": 255, "fit": "letterbox", "pad": 114},
                   "labels": [str(d) for d in range(CLASSES)],
                   "output": {"decode": "yolo", "score": SCORE, "iou": IOU, "across": True}}, f, indent=2)
        f.write("\n")
    print("%s: %d bytes, %d weights" % (path, os.path.getsize(path), sum(p.numel() for p in net.parameters())))


def write_pictures(out):
    truth = {}
    for name, number in SAMPLES.items():
        image, classes, boxes = draw_held_out(number)
        Image.fromarray(image).save(os.path.join(out, name), quality=92)
        truth[name] = [{"label": str(c), "x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}
                       for c, (x1, y1, x2, y2) in zip(classes, boxes.tolist())]
    with open(os.path.join(out, "pictures.json"), "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join("  %s: [\n    %s\n  ]" % (json.dumps(name), ",\n    ".join(map(json.dumps, found)))
                                  for name, found in truth.items()) + "\n}\n")


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_DIR
    with multiprocessing.Pool(max(1, os.cpu_count() - 1)) as pool:
        net = train(pool)
        drawn = pool.map(draw_held_out, range(HELD_OUT))
    with torch.no_grad():
        answers = [net(as_batch(net, [d])[0])[0].numpy() for d in drawn]
    judge(answers, drawn)
    write_model(net, out)
    write_pictures(out)


if __name__ == "__main__":
    main()
