#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Images whose pixels the first layer reads as they are: the bits that the normalised values give.

The values are computed here, each step rounded to f32, and sent as a tensor; then the image is: as bytes of the connection
and in a slot of a pool, for one core, a team, and two stages.
"""
import json
import os
import random
import struct
import sys
import tempfile

import pyclient as pc
import tiny_onnx
from daemon import Daemon, check, equal, main

LAYERS = [("conv", 16, 3), ("relu",), ("pool",), ("conv", 32, 3), ("relu",), ("pool",), ("linear", 10)]
SIDE = 50
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def planes(pixels, channels):
    """[C][H][W] of bytes given pixel by pixel, normalised."""
    out = []
    for c in range(channels):
        mean, std = f32(MEAN[c]), f32(STD[c])
        table = [f32(f32(p - mean) / std) for p in range(256)]
        out += [table[p] for p in pixels[c::channels]]
    return struct.pack("<%df" % len(out), *out)


def swapped(pixels):
    out = bytearray(pixels)
    out[0::3], out[2::3] = pixels[2::3], pixels[0::3]
    return bytes(out)


def noise(count, seed):
    return random.Random(seed).randbytes(count)


def write_model(folder, channels):
    path = os.path.join(folder, "gray.onnx" if channels == 1 else "colour.onnx")
    tiny_onnx.write(path, LAYERS, channels=channels, size=SIDE)
    with open(path.replace(".onnx", ".sidecar.json"), "w", encoding="utf-8") as f:
        json.dump({"preprocess": {"mean": MEAN[:channels], "std": STD[:channels]}}, f)
    return path


def plans(status):
    """One core, all of them as a team, two stages by two cuts."""
    last, ep = status["models"][0]["units"] - 1, status["eps"][0]
    cores = len(ep["cpus"])
    yield "0-%d@%s" % (last, ep["name"])
    if cores > 1:
        yield "0-%d@%sx%d" % (last, ep["name"], cores)
    for cut in (0, last - 1):
        yield "0-%d@%s|%d-%d@%s" % (cut, ep["name"], cut + 1, last, ep["name"])


def infer(d, data, inline, **options):
    with pc.Connection(d.frames_path) as c:
        r = pc.Stream(c, inline=inline, **options).infer(data)
        equal(r.status, "ok", r.text)
        return r.output


def colours_are_read_as_they_are():
    pixels = noise(SIDE * SIDE * 3, 1)
    with tempfile.TemporaryDirectory() as folder:
        with Daemon(models={"colour": write_model(folder, 3)}) as d:
            for plan in plans(d.status()):
                d.call("SetPlan", {"plan": plan})
                for inline in (True, False):
                    wanted = infer(d, planes(pixels, 3), inline)
                    equal(infer(d, pixels, inline, pixfmt=pc.RGB24), wanted, "R, G, B")
                    equal(infer(d, swapped(pixels), inline, pixfmt=pc.BGR24), wanted, "B, G, R")
                    check(infer(d, swapped(pixels), inline, pixfmt=pc.RGB24) != wanted, "any image gives this answer")


def gray_is_read_as_it_is():
    pixels = noise(SIDE * SIDE, 2)
    with tempfile.TemporaryDirectory() as folder:
        with Daemon(models={"gray": write_model(folder, 1)}) as d:
            equal(infer(d, pixels, True, pixfmt=pc.GRAY8), infer(d, planes(pixels, 1), True), "luma")


def other_formats_and_sizes_are_converted():
    """Neutral chroma and luma of limited range are greys; two of each pixel make the same picture, enlarged."""
    grey = noise(SIDE * SIDE // 4, 3)
    rows = [grey[i:i + SIDE // 2] for i in range(0, len(grey), SIDE // 2)]
    luma = b"".join(bytes(16 + p * 219 // 255 for p in row for _ in (0, 1)) * 2 for row in rows)
    yuyv = b"".join(bytes((y, 128)) for y in luma)
    rgb = b"".join(bytes([max(0, min(255, (298 * (y - 16) + 128) >> 8))]) * 3 for y in luma)
    with tempfile.TemporaryDirectory() as folder:
        with Daemon(models={"colour": write_model(folder, 3)}) as d:
            wanted = infer(d, planes(rgb, 3), True)
            equal(infer(d, luma + b"\x80" * (SIDE * SIDE // 2), True, pixfmt=pc.NV12), wanted, "NV12")
            equal(infer(d, yuyv, True, pixfmt=pc.YUYV), wanted, "YUYV")
            flat = bytes((90, 40, 200)) * (SIDE * SIDE)
            wanted = infer(d, planes(flat, 3), True)
            other = infer(d, flat * 2, True, pixfmt=pc.RGB24, image=(2 * SIDE, SIDE))
            x, y = (struct.unpack("<10f", v) for v in (wanted, other))
            check(max(abs(a - b) for a, b in zip(x, y)) <= 1e-5 * max(map(abs, x)), "one colour at another size")


if __name__ == "__main__":
    sys.exit(main([colours_are_read_as_they_are, gray_is_read_as_it_is, other_formats_and_sizes_are_converted]))
