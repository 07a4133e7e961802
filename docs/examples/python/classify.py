#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the best classes of every picture in a folder.

usage: classify.py FOLDER [MODEL]

Needs python3-piped and python3-pil. Pillow decodes in this process, while the daemon computes the pictures before.
"""
import pathlib
import sys

import numpy as np
from PIL import Image, ImageOps

import piped

ENDS = {".jpg", ".jpeg", ".png", ".ppm", ".pgm"}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    paths = sorted(p for p in pathlib.Path(sys.argv[1]).iterdir() if p.suffix.lower() in ENDS)
    with piped.connect() as p:
        # The daemon resizes; thumbnail() only keeps very large photographs from being sent.
        with p.stream(sys.argv[2] if len(sys.argv) > 2 else None, pixfmt="rgb24", size=(1024, 1024)) as s:
            def pictures():
                for path in paths:
                    with Image.open(path) as picture:
                        picture.thumbnail((1024, 1024))
                        yield np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))

            for path, a in zip(paths, s.infer(pictures())):
                if not a.ok:
                    print("%s: %s" % (path.name, a.reason))
                    continue
                for t in a.top(3):
                    print("%s: %5.1f %%  %s" % (path.name, 100 * t.probability, t.label or "class %d" % t.index))


if __name__ == "__main__":
    main()
