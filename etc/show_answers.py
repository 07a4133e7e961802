# SPDX-License-Identifier: Apache-2.0
"""Shows a few answers of `pipectl --json infer --expect`, with their pictures, and the accuracy."""
import json
import sys

SHOWN = 6
SHADES = " .:-=+*#%@"


def pictures(path, count):
    """The first pictures of an 8-bit PGM file, each as rows of characters, two a pixel."""
    with open(path, "rb") as f:
        data = f.read()
    for _ in range(count):
        magic, size, depth, data = data.split(b"\n", 3)
        width, height = map(int, size.split())
        if magic != b"P5" or depth != b"255" or len(data) < width * height:
            raise ValueError("%s is no 8-bit PGM file" % path)
        yield ["".join(2 * SHADES[p * len(SHADES) // 256] for p in data[y * width:(y + 1) * width])
               for y in range(height)]
        data = data[width * height:]


def main(path):
    with open(path, encoding="utf-8") as f:
        answers = json.load(f)
    shown = answers["results"][:SHOWN]
    for row in zip(*pictures(shown[0]["file"], len(shown))):
        print("  ".join(row))
    print("  ".join(("answer %s" % a["top"][0]["label"]).ljust(16) for a in shown))
    print("  ".join(("%.1f %% sure" % (100 * a["top"][0]["probability"])).ljust(16) for a in shown))
    wrong = [a for a in answers["results"] if a["top"][0]["class"] != a["expected"]]
    print("\n%d of %d held-out images right: accuracy %.2f %%" % (
        answers["correct"], answers["count"], 100 * answers["accuracy"]))
    for a in wrong[:3]:
        print("  wrong: said %s, was %s" % (a["top"][0]["label"], a["expected"]))
    return 0 if answers["count"] else 1


sys.exit(main(sys.argv[1]))
