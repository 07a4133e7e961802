#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files in corpus/picture: one small picture of each kind that its readers tell apart.

usage: make_pictures.py FOLDER      (needs python3-pil and python3-numpy; the files are kept, so that the tests do not)
"""
import os
import random
import sys

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "ipc"))
import picture_files as files  # noqa: E402  pylint: disable=wrong-import-position


def main():
    rng = random.Random(1)
    y, x = np.mgrid[0:32, 0:24]
    image = Image.fromarray(np.stack((x * 10, y * 7, (x * y) % 256), -1).astype(np.uint8))
    how = {"quality": 30}
    strips = [files.jpeg(image.crop((0, at, 24, at + 16)), **how) for at in (0, 16)]
    made = {
        "plain.jpg": files.jpeg(image, **how), "grey.jpg": files.jpeg(image.convert("L"), **how),
        "cmyk.jpg": files.jpeg(image.convert("CMYK"), **how), "progressive.jpg": files.jpeg(image, progressive=True, **how),
        "planes.jpg": files.scans([files.jpeg(p, **how) for p in image.split()]),
        "stray.jpg": files.restarted(files.jpeg(image, **how), strips, b"\x12\0"),
        "exif.jpg": files.with_exif(files.jpeg(image, **how), files.exif(7, ">", entries=3)),
        "rgb.png": files.png(9, 7, files.RGB, 8, rng), "wide.png": files.png(5, 4, files.RGBA, 16, rng, True),
        "palette.png": files.put_chunk(files.png(17, 6, files.PALETTE, 4, rng, True), b"IDAT",
                                       files.chunk(b"tRNS", bytes(range(0, 255, 17)))),
        "bits.png": files.png(19, 5, files.GREY, 1, rng, after=files.chunk(b"eXIf", files.exif(6))),
        "grey_alpha.png": files.png(6, 5, files.GREY_ALPHA, 8, rng, before=files.chunk(b"gAMA", b"\0\1\x86\xa0")),
        "two.ppm": b"P6 # two\n2 2\n255\n" + bytes(12) + b"P5\n3 1 255\n" + bytes(3),
    }
    for name, data in made.items():
        with open(os.path.join(sys.argv[1], name), "wb") as f:
            f.write(data)


main()
