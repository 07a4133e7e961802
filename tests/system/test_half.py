#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Streams whose f32 tensors travel as f16: the bits of the same stream in f32, and what is refused.

The rounding is Python's (struct, 'e'), which the project has no part in.
"""
import os
import random
import struct
import tempfile

import pyclient as pc
import tiny_onnx as onnx
from daemon import Daemon, check, equal, main
from frames_client import answered, refused

SIDE = 25  # 3 x 25 x 25 elements: no multiple of a vector
LAYERS = [("conv", 8, 3), ("relu",), ("pool",), ("linear", 19)]  # outputs: whole vectors and some more
INF = float("inf")


def to_f16(values):
    """Bytes: to nearest even, and infinity beyond."""
    out = b""
    for v in values:
        try:
            out += struct.pack("<e", v)
        except OverflowError:
            out += struct.pack("<e", INF if v > 0 else -INF)
    return out


def floats(data, code="f"):
    return struct.unpack("<%d%s" % (len(data) // struct.calcsize(code), code), data)


def to_f32(halves):
    """The floats that these halves are, exactly."""
    return struct.pack("<%df" % (len(halves) // 2), *floats(halves, "e"))


def noise(count, seed, most=2.0):
    rng = random.Random(seed)
    return to_f16([rng.uniform(-most, most) * 2.0 ** rng.randrange(-26, 1) for _ in range(count)])


def write_mixed(path):
    """y = x + 16 of 5 floats, k = 2 n of 3 i64, z = max(x, 0): both types, of odd sizes."""
    def value(name, shape, kind):
        dims = b"".join(onnx.piece(1, onnx.number(1, d)) for d in shape)
        return onnx.piece(1, name) + onnx.piece(2, onnx.piece(1, onnx.number(1, kind) + onnx.piece(2, dims)))

    one = (onnx.number(1, 1) + onnx.number(2, 1) + onnx.piece(8, "sixteen") + onnx.piece(9, struct.pack("<f", 16)))
    nodes = [onnx.node("Add", ["x", "sixteen"], "y"), onnx.node("Add", ["n", "n"], "k"), onnx.node("Relu", ["x"], "z")]
    graph = (b"".join(onnx.piece(1, n) for n in nodes) + onnx.piece(2, "mixed") + onnx.piece(5, one) +
             onnx.piece(11, value("x", [5], 1)) + onnx.piece(11, value("n", [3], 7)) +
             onnx.piece(12, value("y", [5], 1)) + onnx.piece(12, value("k", [3], 7)) + onnx.piece(12, value("z", [5], 1)))
    with open(path, "wb") as f:
        f.write(onnx.number(1, 8) + onnx.piece(7, graph) + onnx.piece(8, onnx.number(2, 13)))


def write_bytes(path):
    """An image of bytes: u8 in, i64 out."""
    def value(name, kind):
        dims = b"".join(onnx.piece(1, onnx.number(1, d)) for d in (1, 1, 4, 4))
        return onnx.piece(1, name) + onnx.piece(2, onnx.piece(1, onnx.number(1, kind) + onnx.piece(2, dims)))

    to = onnx.piece(1, "x") + onnx.piece(2, "y") + onnx.piece(3, "y") + onnx.piece(4, "Cast") + onnx.piece(
        5, onnx.attribute("to", 7))
    graph = onnx.piece(1, to) + onnx.piece(2, "bytes") + onnx.piece(11, value("x", 2)) + onnx.piece(12, value("y", 7))
    with open(path, "wb") as f:
        f.write(onnx.number(1, 8) + onnx.piece(7, graph) + onnx.piece(8, onnx.number(2, 13)))


class Served:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        paths = {name: os.path.join(self.folder.name, name + ".onnx") for name in ("net", "mixed", "bytes")}
        onnx.write(paths["net"], LAYERS, channels=3, size=SIDE)
        write_mixed(paths["mixed"])
        write_bytes(paths["bytes"])
        self.d = Daemon(models=paths)

    def __enter__(self):
        self.d.__enter__()
        return self

    def __exit__(self, *exc):
        self.folder.cleanup()
        return self.d.__exit__(*exc)

    def connect(self, **options):
        return pc.Connection(self.d.frames_path, **dict(dict(features=pc.FEATURE_F16), **options))


def half_inputs_give_the_bits_of_rounded_floats():
    with Served() as t, t.connect() as c:
        equal(c.features, pc.FEATURE_F16)
        whole = pc.Stream(c, 1, "net")
        for number, inline in ((2, False), (3, True)):
            half = pc.Stream(c, number, "net", inline=inline, input_dtype=pc.F16)
            equal([i.dtype for i in half.inputs + half.outputs], ["<f2", "<f4"])
            equal((half.input_bytes * 2, half.output_bytes), (whole.input_bytes, whole.output_bytes))
            equal(half.inputs[0].shape, whole.inputs[0].shape)
            for seed in range(5):
                data = noise(half.input_bytes // 2, seed)
                a, b = half.infer(data), whole.infer(to_f32(data))
                answered(a, "ok")
                equal(a.output, b.output, "seed %d" % seed)
            numbers = [half.submit(noise(half.input_bytes // 2, n)) for n in range(half.credits)]
            for n, frame in enumerate(numbers):  # in flight at once: no frame's floats are another's
                r = half.result()
                equal((r.frame, r.output), (frame, whole.infer(to_f32(noise(half.input_bytes // 2, n))).output))


def half_outputs_are_rounded():
    with Served() as t, t.connect() as c:
        whole = pc.Stream(c, 1, "net")
        count = whole.input_bytes // 4
        for number, inline, dtype in ((2, False, 0), (3, True, pc.F32), (4, False, pc.F16), (5, True, pc.F16)):
            half = pc.Stream(c, number, "net", inline=inline, input_dtype=dtype, output_dtype=pc.F16)
            equal([o.dtype for o in half.outputs], ["<f2"])
            equal(half.output_bytes * 2, whole.output_bytes)
            for seed, most in ((1, 1.0), (2, 1e-4), (3, 60000.0)):
                data = noise(count, seed, most)
                wanted = whole.infer(to_f32(data)).output
                got = half.infer(data if dtype == pc.F16 else to_f32(data)).output
                equal(got, to_f16(floats(wanted)), "most %g" % most)
        s = pc.Stream(c, 6, "mixed", output_dtype=pc.F16)
        out = s.infer(struct.pack("<5f", 65503.99, 65504.0, 1e30, -65536.0, -65535.9).ljust(64, b"\0") + bytes(24)).output
        equal(floats(out[:10], "e"), (65504.0, INF, INF, -INF, -65504.0), "from 65520 on")
        out = s.infer(struct.pack("<5f", 2033, 2035, -2065, -2067, 2034.01).ljust(64, b"\0") + bytes(24)).output
        equal(floats(out[:10], "e"), (2048.0, 2052.0, -2048.0, -2052.0, 2050.0), "halfway, to even")


def pictures_have_half_outputs():
    with Served() as t, t.connect() as c:
        picture = random.Random(3).randbytes(3 * SIDE * SIDE)
        for inline in (False, True):
            whole = pc.Stream(c, 1, "net", pc.RGB24, inline=inline)
            half = pc.Stream(c, 2, "net", pc.RGB24, inline=inline, output_dtype=pc.F16)
            equal(half.infer(picture).output, to_f16(floats(whole.infer(picture).output)))
            whole.close()
            half.close()


def other_types_stay_as_they_are():
    x, n = to_f16([1.5, -2.25, 65504.0, 2.0 ** -24, -0.0]), struct.pack("<3q", 1, -(1 << 40), 7)
    with Served() as t, t.connect() as c:
        for number, inline in ((1, False), (2, True)):
            s = pc.Stream(c, number, "mixed", inline=inline, input_dtype=pc.F16, output_dtype=pc.F16)
            equal([(i.dtype, i.offset, i.bytes) for i in s.inputs], [("<f2", 0, 10), ("<i8", 64, 24)])
            equal([(o.dtype, o.offset, o.bytes) for o in s.outputs], [("<f2", 0, 10), ("<i8", 64, 24), ("<f2", 128, 10)])
            equal((s.input_bytes, s.output_bytes), (88, 138))
            out = s.infer(x.ljust(64, b"\xff") + n).output
            equal(out[:10], to_f16([v + 16 for v in floats(x, "e")]))
            equal(floats(out[64:88], "q"), (2, -(1 << 41), 14))
            equal(out[128:], to_f16([max(v, 0.0) for v in floats(x, "e")]))
            if inline:
                equal(out[10:64] + out[88:128], bytes(94), "what lies between tensors")


def every_half_is_taken():
    """All 65536 patterns, NaN among them, come as they are; a NaN stays one."""
    patterns = list(range(0, 1 << 16))
    with Served() as t, t.connect() as c:
        s = pc.Stream(c, 1, "mixed", input_dtype=pc.F16)
        tail = bytes(24)
        for at in list(range(0, 1 << 16, 997)) + list(range(0x7bf0, 0x7c10)) + list(range(0xfbf0, 0xfc10)):
            data = struct.pack("<5H", *(patterns[(at + k) % (1 << 16)] for k in range(5)))
            got = floats(s.infer(data.ljust(64, b"\0") + tail).output[:20])
            for h, y in zip(floats(data, "e"), got):
                want = floats(struct.pack("<f", h + 16))[0]
                check(y == want or (y != y and h != h), hex(at), h, y)


def wrong_sizes_are_answered():
    with Served() as t, t.connect() as c:
        for number, inline in ((1, False), (2, True)):
            s = pc.Stream(c, number, "net", inline=inline, input_dtype=pc.F16, output_dtype=pc.F16)
            for wrong in (0, 1, s.input_bytes - 1, s.input_bytes + 1, s.input_bytes * 2):
                data = bytes(wrong if inline else 0)
                answered(s.infer(data, in_bytes=wrong), "invalid_argument")
            if not inline:
                answered(s.infer(b"", out_bytes=s.output_bytes - 1), "invalid_argument", "the model writes")
                answered(s.infer(b"", in_offset=2), "invalid_argument", "multiples of 64")
            answered(s.infer(noise(s.input_bytes // 2, 1)), "ok")


def what_cannot_travel_is_refused():
    with Served() as t, t.connect() as c:
        for dtype in (2, 3, 4, 5, 6, 8, 0xffffffff):
            refused(lambda d=dtype: pc.Stream(c, 1, "net", input_dtype=d), "unsupported", "input_dtype")
            refused(lambda d=dtype: pc.Stream(c, 1, "net", output_dtype=d), "unsupported", "output_dtype")
        refused(lambda: pc.Stream(c, 1, "net", pc.RGB24, input_dtype=pc.F16), "invalid_argument", "pixfmt 0")
        refused(lambda: pc.Stream(c, 1, "bytes", input_dtype=pc.F16), "unsupported", "no f32 input")
        refused(lambda: pc.Stream(c, 1, "bytes", output_dtype=pc.F16), "unsupported", "no f32 output")
        refused(lambda: pc.Stream(c, 1, "bytes", pc.GRAY8, input_dtype=pc.F16), "invalid_argument")
        pc.Stream(c, 1, "net", input_dtype=pc.F32, output_dtype=pc.F32).close()


def older_clients_go_on():
    """To a client without the feature the fields are reserved: whatever it sends there changes nothing."""
    with Served() as t:
        for features in (0, pc.FEATURE_DESCRIBED, 0xfffffffe):
            with t.connect(features=features) as c:
                equal(c.features, features & pc.FEATURE_DESCRIBED)
                for dtype in (0, pc.F16, 99):
                    s = pc.Stream(c, 1, "net", input_dtype=dtype, output_dtype=dtype)
                    equal([i.dtype for i in s.inputs + s.outputs], ["<f4", "<f4"])
                    answered(s.infer(bytes(s.input_bytes)), "ok")
                    s.close()
        with t.connect(features=0xffffffff) as c:
            equal(c.features, pc.FEATURE_F16 | pc.FEATURE_DESCRIBED, "what only the client knows")


def floats_count_against_the_memory_of_a_connection():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "large.onnx")
        onnx.write(path, [("pool",), ("pool",)], channels=3, size=320)
        config = {"models": [{"name": "large", "path": path}], "limits": {"inline_mib": 1}}
        with Daemon(config=config) as d, pc.Connection(d.frames_path, features=pc.FEATURE_F16) as c:
            answered(pc.Stream(c, 1, slots=1).infer(bytes(3 * 320 * 320 * 4)), "ok")
            s = pc.Stream(c, 2, slots=1, input_dtype=pc.F16)
            answered(s.infer(bytes(s.input_bytes)), "resource_exhausted", "f16")
            s = pc.Stream(c, 3, slots=1, output_dtype=pc.F16)  # outputs have room
            answered(s.infer(bytes(s.input_bytes)), "ok")


def pipectl_sends_files_of_halves():
    with Served() as t:
        data = b"".join(noise(3 * SIDE * SIDE, seed) for seed in range(3))
        raw = {}
        for name, content in (("a.f16", data), ("a.f32", to_f32(data))):
            path = os.path.join(t.folder.name, name)
            with open(path, "wb") as f:
                f.write(content)
            raw[name] = path + ".out"
            answers = t.d.pipectl("infer", "--model", "net", "--raw", raw[name], path)
            equal(len(answers), 3)
        with open(raw["a.f16"], "rb") as a, open(raw["a.f32"], "rb") as b:
            equal(a.read(), b.read())
        both = t.d.pipectl("infer", "--model", "net", *(os.path.join(t.folder.name, n) for n in ("a.f16", "a.f32")))
        equal([a["top"] for a in both[:3]], [a["top"] for a in both[3:]])


if __name__ == "__main__":
    main([half_inputs_give_the_bits_of_rounded_floats, half_outputs_are_rounded, pictures_have_half_outputs,
          other_types_stay_as_they_are, every_half_is_taken, wrong_sizes_are_answered, what_cannot_travel_is_refused,
          older_clients_go_on, floats_count_against_the_memory_of_a_connection, pipectl_sends_files_of_halves])
