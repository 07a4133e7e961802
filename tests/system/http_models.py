# SPDX-License-Identifier: Apache-2.0
"""Small models and pictures for the tests of piped-http."""
import base64
import os
import random
import struct
import zlib

from tiny_onnx import node, number, piece, value

I64 = 7

# 24x20, grey, a bright bar
JPEG = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19i
Z2hnPk1xeXBkeFxlZ2P/wAALCAAUABgBAREA/8QAFwABAQEBAAAAAAAAAAAAAAAABgcCA//EACEQAAIABgEFAAAAAAAAAAAAAAAC
AQMFERKxZAQGByZj/9oACAEBAAA/AAOJRqw1/HEteN0+0JzidMR5VWv2Ei8eRtQHibsNKlH0pIfCTtQXY//Z
""")


def typed(name, shape, kind):
    """As value(), of another type than f32."""
    dims = b"".join(piece(1, number(1, d)) for d in shape)
    return piece(1, name) + piece(2, piece(1, number(1, kind) + piece(2, dims)))


def write(path, nodes, inputs, outputs):
    graph = (b"".join(piece(1, n) for n in nodes) + piece(2, "small") + b"".join(piece(11, i) for i in inputs) +
             b"".join(piece(12, o) for o in outputs))
    with open(path, "wb") as f:
        f.write(number(1, 8) + piece(7, graph) + piece(8, number(2, 13)))
    return path


def two_inputs(folder):
    """sum = a + a (f32), twice = b + b (i64)."""
    return write(os.path.join(folder, "two.onnx"), [node("Add", ["a", "a"], "sum"), node("Add", ["b", "b"], "twice")],
                 [value("a", [2, 2]), typed("b", [2], I64)], [value("sum", [2, 2]), typed("twice", [2], I64)])


def long_names(folder, count=70):
    """Outputs whose names differ in the last byte, and more, not ASCII. Return: its path, its names"""
    x, outputs = "x" * count, ["n" * count + "a", "n" * count + "b", "\u00e4" * count]
    path = write(os.path.join(folder, "long.onnx"), [node(kind, [x], y) for kind, y in zip(("Relu", "Neg", "Abs"), outputs)],
                 [value(x, [4])], [value(y, [4]) for y in outputs])
    return path, [x] + outputs


def counted_rows(folder):
    """where: the places of x that are not 0, as many as there are."""
    return write(os.path.join(folder, "rows.onnx"), [node("Relu", ["x"], "y"), node("NonZero", ["y"], "where")],
                 [value("x", [4])], [typed("where", [1, 4], I64)])


def png(width, height, channels, seed, orientation=0):
    """orientation: of EXIF, behind the picture"""
    r = random.Random(seed)
    return png_of(width, height, channels, bytes(r.randrange(256) for _ in range(width * channels * height)), orientation)


def png_of(width, height, channels, pixels, orientation=0):
    row = width * channels
    rows = b"".join(b"\0" + pixels[at:at + row] for at in range(0, len(pixels), row))

    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    exif = part(b"eXIf", b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)) if orientation else b""
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + exif + part(b"IEND", b"")
