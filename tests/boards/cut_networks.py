# SPDX-License-Identifier: Apache-2.0
"""Descriptions of networks to cut (docs/netdesc.md)."""
import json
import os

# expansion, channels, repeats, stride. Source: M. Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks",
# table 2.
MOBILENET_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
SMALL = ((1, 16, 1, 1), (4, 24, 2, 2), (4, 32, 1, 2))


def conv(name, out, kernel, stride=1, act="relu6"):
    return {"op": "conv", "name": name, "out": out, "kernel": kernel, "stride": stride, "pad": kernel // 2, "bn": True,
            "act": act}


def inverted_residuals(blocks, first, last, classes):
    """Return: layers."""
    layers, channels, before = [conv("first", first, 3, 2)], first, "first"
    for b, (expansion, out, repeats, stride) in enumerate(blocks):
        for r in range(repeats):
            name = "b%d_%d" % (b, r)
            if expansion > 1:
                layers.append(conv(name + "_wide", channels * expansion, 1))
            layers.append({"op": "dwconv", "name": name + "_deep", "kernel": 3, "stride": stride if r == 0 else 1, "pad": 1,
                           "bn": True, "act": "relu6"})
            layers.append(conv(name + "_narrow", out, 1, act="none"))
            if r > 0:
                layers.append({"op": "add", "name": name, "in": [before, name + "_narrow"]})
            channels, before = out, layers[-1]["name"]
    return layers + [conv("last", last, 1), {"op": "globalavgpool"}, {"op": "fc", "out": classes}]


def write(folder, name, size, layers):
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"name": name, "seed": 1, "input": {"shape": [3, size, size]}, "layers": layers}, f)
    return path


def write_mobilenet_v2(folder):
    """Return: its path."""
    return write(folder, "mobilenet_v2", 224, inverted_residuals(MOBILENET_V2, 32, 1280, 1000))


def write_small(folder):
    """A MobileNetV2 of four blocks for small pictures. Return: its path."""
    return write(folder, "small", 64, inverted_residuals(SMALL, 16, 64, 10))
