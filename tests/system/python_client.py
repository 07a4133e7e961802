# SPDX-License-Identifier: Apache-2.0
"""The package piped of the build folder, with the libpiped beside it, and what its tests share.

Import `piped` from here: it is None where it is not built or cannot be loaded, and then main() skips.
"""
import ctypes
import importlib.util
import os
import struct
import sys

import tiny_onnx as onnx
from daemon import BUILD, DIGITS, ROOT, Daemon, check
from daemon import main as run_cases

PACKAGE = os.path.join(BUILD, "ipc", "python")
LIBRARY = os.path.join(BUILD, "ipc", "libpiped.so.0")
LONG = bool(os.environ.get("PIPED_TEST_LONG"))
HELDOUT = os.path.join(ROOT, "model", "default", "heldout.pgm")
SIDE = 16  # of the pictures there
EACH = 75


def why_not():
    """Return: why these tests cannot run here, or None."""
    if os.environ.get("PIPED_TEST_SANITIZER"):
        return "Python cannot load a library with a sanitizer; the tests of libpiped run with it"
    if not os.path.exists(os.path.join(PACKAGE, "piped", "_libpiped.py")):
        return "the Python client is not built; python3-cffi was not there"
    missing = [name for name in ("numpy", "_cffi_backend") if importlib.util.find_spec(name) is None]
    return "this Python has no %s" % ", ".join(missing) if missing else None


piped = np = None
if why_not() is None:
    import numpy as np
    sys.path.insert(0, PACKAGE)
    ctypes.CDLL(LIBRARY)  # the loader knows it by its name from now on
    import piped


def main(listed):
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(77)
    run_cases(listed)


def environment(daemon):
    """For programs that use the package."""
    return dict(os.environ, PYTHONPATH=PACKAGE, LD_LIBRARY_PATH=os.path.dirname(LIBRARY),
                PIPED_RUNTIME_DIR=daemon.runtime_dir)


def heldout(count):
    """Return: pictures of handwritten digits."""
    with open(HELDOUT, "rb") as f:
        data = f.read()
    at = EACH - 64
    return [np.frombuffer(data[i * EACH + at:(i + 1) * EACH], np.uint8).reshape(8, 8) for i in range(count)]


def noise(shape, seed):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def value(name, kind, dims):
    shape = b"".join(onnx.piece(1, onnx.piece(2, d) if isinstance(d, str) else onnx.number(1, d)) for d in dims)
    return onnx.piece(1, name) + onnx.piece(2, onnx.piece(1, onnx.number(1, kind) + onnx.piece(2, shape)))


def write(path, nodes, inputs, outputs, tensors=()):
    graph = (b"".join(onnx.piece(1, n) for n in nodes) + onnx.piece(2, "g") +
             b"".join(onnx.piece(5, t) for t in tensors) + b"".join(onnx.piece(11, i) for i in inputs) +
             b"".join(onnx.piece(12, o) for o in outputs))
    with open(path, "wb") as f:
        f.write(onnx.number(1, 8) + onnx.piece(7, graph) + onnx.piece(8, onnx.number(2, 13)))


def constant(name, kind, data, count=1):
    return onnx.number(1, count) + onnx.number(2, kind) + onnx.piece(8, name) + onnx.piece(9, data)


def write_mixed(path):
    """y = x + 16 of 5 floats, k = 2 n of 3 i64."""
    write(path, [onnx.node("Add", ["x", "sixteen"], "y"), onnx.node("Add", ["n", "n"], "k")],
          [value("x", 1, [5]), value("n", 7, [3])], [value("y", 1, [5]), value("k", 7, [3])],
          [constant("sixteen", 1, struct.pack("<f", 16))])


def write_boxes(path):
    """Which of 6 boxes stay: a number of rows that depends on the scores."""
    write(path, [onnx.node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], "kept")],
          [value("boxes", 1, [1, 6, 4]), value("scores", 1, [1, 1, 6])], [value("kept", 7, ["n", 3])],
          [constant("most", 7, struct.pack("<q", 6)), constant("iou", 1, struct.pack("<f", 0.5)),
           constant("least", 1, struct.pack("<f", 0.25))])


class Served(Daemon):
    """A daemon with the digits as "digits", a small network on colours as "colour", and more: {name: writer}."""

    def __init__(self, more=None, **options):
        super().__init__(**options)
        self.models = {"digits": DIGITS, "colour": os.path.join(self.temp, "colour.onnx")}
        onnx.write(self.models["colour"], [("conv", 8, 3), ("relu",), ("pool",), ("linear", 10)], channels=3, size=20)
        for name, writer in (more or {}).items():
            self.models[name] = os.path.join(self.temp, name + ".onnx")
            writer(self.models[name])

    def client(self, **options):
        return piped.connect(self.frames_path, **options)

    def path(self, name):
        return os.path.join(self.temp, name)


def raises(kind, words, call, *args, **more):
    """The exception, which has these words."""
    try:
        call(*args, **more)
    except kind as e:
        check(words in str(e), "not", repr(words), "in", repr(str(e)))
        return e
    raise AssertionError("no %s" % kind.__name__)
