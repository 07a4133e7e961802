#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Segments of a model as models of their own: the real daemon serves them, and a chain of them gives the whole model's
answers, bit for bit."""
import hashlib
import os
import random
import shutil
import tempfile

import pyclient as pc
import tiny_onnx
from daemon import DIGITS, Daemon, VarlinkError, check, equal, main, run_piped

LEAF = 1 << 20


def infer(daemon, model, data, inline=False, pixfmt=pc.TENSOR):
    """One frame. Return: the answer's bytes; an input in client memory must be as it was."""
    with pc.Connection(daemon.frames_path) as connection:
        stream = pc.Stream(connection, 1, model, pixfmt=pixfmt, inline=inline)
        equal(stream.in_size, len(data), "bytes of a frame of " + model)
        result = stream.infer(data)
        equal(result.status, "ok", result.text)
        if not inline:
            equal(bytes(stream.memory[:len(data)]), data, "the input of " + model)
        stream.close()
        return bytes(result.output)


# ---- help ----

def floats(count, seed):
    draw = random.Random(seed)
    return b"".join(tiny_onnx.array.array("f", [draw.uniform(-1, 1)]).tobytes() for _ in range(count))


def load(d, name, path):
    return d.pipectl("models", "load", name, path)


def unload(d, name):
    d.pipectl("models", "unload", name)


def model(d, name):
    return next(m for m in d.call("io.piped.Models")["models"] if m["name"] == name)


def refused(call, words):
    try:
        call()
    except VarlinkError as e:
        check(words in str(e), "the reason is", e)
        return
    check(False, "nothing was refused where the reason is", words)


def write_model(folder):
    """Two weights of 4 MiB in different units."""
    path = os.path.join(folder, "two.onnx")
    tiny_onnx.write(path, [("conv", 16, 3), ("relu",), ("linear", 256), ("relu",), ("linear", 4096), ("relu",),
                           ("linear", 10)], channels=3, size=16)
    return path


# ---- cases ----

def chains():
    with Daemon(models={"digits": DIGITS}) as d:
        whole = model(d, "digits")
        check("segment" not in whole, whole)
        count = whole["units"]
        for inline in (False, True):
            data = floats(16 * 16, 1 + inline)
            wanted = infer(d, "digits", data, inline)
            for cut in range(1, count):
                names = "digits#0-%d" % (cut - 1), "digits#%d-%d" % (cut, count - 1)
                for name in names:
                    load(d, name, DIGITS)
                head, tail = model(d, names[0]), model(d, names[1])
                equal(head["segment"]["back"], tail["segment"]["front"], "the border's hash")
                equal(head["outputs"], tail["inputs"], "the border's tensors")
                equal((head["hash"], tail["hash"]), (whole["hash"], whole["hash"]))
                check(head["weight_bytes"] < whole["weight_bytes"], head["weight_bytes"])
                check(not head["labels"], head["labels"])
                equal(tail["labels"], whole["labels"])
                border = infer(d, names[0], data, inline)
                equal(infer(d, names[1], border, inline), wanted, "cut before %d" % cut)
                for name in names:
                    unload(d, name)


def pixels():
    image = random.Random(3).randbytes(16 * 16)
    with Daemon(models={"digits": DIGITS, "digits#0-2": DIGITS, "digits#3-7": DIGITS, "digits#8-11": DIGITS}) as d:
        equal(d.status()["models"][2]["segment"]["first_unit"], 3)
        wanted = infer(d, "digits", image, pixfmt=pc.GRAY8)
        border = infer(d, "digits#0-2", image, pixfmt=pc.GRAY8)
        equal(infer(d, "digits#8-11", infer(d, "digits#3-7", border)), wanted)
        for cut in range(1, 12):
            names = "digits#0-%d" % (cut - 1), "digits#%d-11" % cut
            for name in names:
                if name not in d.models:
                    load(d, name, DIGITS)
            equal(infer(d, names[1], infer(d, names[0], image, pixfmt=pc.GRAY8)), wanted, cut)
            for name in names:
                if name not in d.models:
                    unload(d, name)
        with pc.Connection(d.frames_path) as c:
            try:
                pc.Stream(c, model="digits#3-7", pixfmt=pc.GRAY8)
                check(False, "a border took pixels")
            except pc.Refused as e:
                check("not an image" in e.text, e.text)


def bad_names():
    with Daemon(models={"digits": DIGITS}) as d:
        for name in ("digits#", "digits#3", "digits#3-", "digits#-3", "digits#5-3", "digits#03-4", "#1-2",
                     "digits#1-2#3-4", "digits#1-2 ", "digits#+1-2", "digits#0-99999999999999999999",
                     "d" * 60 + "#1-2"):
            refused(lambda: d.call("io.piped.Load", {"name": name, "path": DIGITS}), "not a model name")
        refused(lambda: d.call("io.piped.Load", {"name": "digits#3-99", "path": DIGITS}), "has units 0-11")
        load(d, "digits#3-4", DIGITS)
        refused(lambda: d.call("io.piped.Load", {"name": "digits#3-4", "path": DIGITS}), "loaded already")
        refused(lambda: d.call("io.piped.Quantise", {"model": "digits#3-4", "off": True}), "quantise the whole model")
    done = run_piped("--check-config", "--model", "digits#5-3=" + DIGITS)
    equal(done.returncode, 78, done.stderr)
    check("is not a model name" in done.stderr, done.stderr)


def state():
    """What is learned is kept for the segment."""
    config = {"kernels": {"measure_ms": 20}}
    with Daemon(models={"digits#3-6": DIGITS}, config=config) as d:
        identity = model(d, "digits#3-6")["hash"] + "#3-6"
        infer(d, "digits#3-6", bytes(model(d, "digits#3-6")["input"]["bytes"]))
        d.stop()
        files = os.listdir(d.state_dir)
        check("choice-%s-digits#3-6.v2.json" % identity in files, files)
        d.start()
        equal(d.status()["models"][0]["units"], 4)


def leaf_list(data):
    return len(data).to_bytes(8, "little") + b"".join(
        hashlib.blake2b(data[i:i + LEAF], digest_size=32).digest() for i in range(0, len(data), LEAF))


def sparse():
    """A file of which only the leaves that a segment needs are there; the others are zeros."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    try:
        path = write_model(temp)
        with open(path, "rb") as f:
            data = f.read()
        leaves = (len(data) + LEAF - 1) // LEAF
        # the weight of the second product, between two that are needed for structure
        with Daemon(models={"two": path, "two#0-1": path, "two#2-3": path}) as d:
            x = floats(3 * 16 * 16, 7)
            whole, border = infer(d, "two", x), infer(d, "two#0-1", x)
            equal(infer(d, "two#2-3", border), whole)
            identity = model(d, "two")["hash"]
            equal(hashlib.blake2b(leaf_list(data), digest_size=32).hexdigest(), identity)
            holes = [i for i in range(leaves) if 5 * LEAF <= i * LEAF < 7 * LEAF]
            partial, present = bytearray(data), [True] * leaves
            for i in holes:
                partial[i * LEAF:(i + 1) * LEAF] = bytes(LEAF)
                present[i] = False
            bitmap = sum(1 << i for i in range(leaves) if present[i]).to_bytes((leaves + 7) // 8, "little")
            other = os.path.join(temp, "part.onnx")
            with open(other, "wb") as f:
                f.write(partial)
            with open(other + ".leaves", "wb") as f:
                f.write(leaf_list(data) + bitmap)
            load(d, "part#0-1", other)
            equal(model(d, "part#0-1")["hash"], identity)
            equal(infer(d, "part#0-1", x), border)
            refused(lambda: d.call("io.piped.Load", {"name": "part#1-2", "path": other}), "is not there")
            refused(lambda: d.call("io.piped.Load", {"name": "part", "path": other}), "lacks parts")
            partial[100] ^= 1
            with open(other, "wb") as f:
                f.write(partial)
            refused(lambda: d.call("io.piped.Load", {"name": "bad#0-1", "path": other}), "leaf 0")
            with open(other + ".leaves", "wb") as f:
                f.write(leaf_list(data))
            refused(lambda: d.call("io.piped.Load", {"name": "bad#0-1", "path": other}), "not a leaf list")
    finally:
        shutil.rmtree(temp)


if __name__ == "__main__":
    main([chains, pixels, bad_names, state, sparse])
