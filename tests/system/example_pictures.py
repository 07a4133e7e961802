# SPDX-License-Identifier: Apache-2.0
"""Pictures as the digits network knows them: what a model is quantised by, and what is inferred."""
import os
import random

SIDE = 28


def picture(rng):
    """A grey picture with a stroke or two, as a P5 pixmap."""
    pixels = bytearray(rng.randrange(8) for _ in range(SIDE * SIDE))
    for _ in range(rng.randrange(1, 4)):
        x, y, down = rng.randrange(6, 20), rng.randrange(4, 12), rng.random() < 0.5
        for i in range(rng.randrange(8, 15)):
            for thick in range(3):
                at = (min(y + i, 27) * SIDE + x + thick) if down else ((y + thick) * SIDE + min(x - 4 + i, 27))
                pixels[at] = 255 - rng.randrange(30)
    return b"P5\n%d %d\n255\n" % (SIDE, SIDE) + bytes(pixels)


def folder(d, count=24, seed=5):
    path = os.path.join(d.temp, "pictures")
    os.makedirs(path, exist_ok=True)
    print("seed", seed)
    rng = random.Random(seed)
    for i in range(count):
        with open(os.path.join(path, "%03d.pgm" % i), "wb") as f:
            f.write(picture(rng))
    return path
