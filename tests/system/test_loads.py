#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Models that used to load for ever, or under a name or from a file that nobody reaches: each is served with the right
answer, or refused with its reason, by `models inspect` as by a load.

usage: test_loads.py [CASE]...
"""
import json
import os
import signal
import struct
import subprocess

import tiny_onnx as onnx
from daemon import DIGITS, HEARTBEAT, PIPECTL, Daemon, VarlinkError, check, equal, main, run_piped, until

F32, I64 = 1, 7
MEASURES = {"kernels": {"measure_ms": 100}}  # as an installed daemon does


def value(name, kind, dims):
    return onnx.piece(1, name) + onnx.piece(2, onnx.piece(1, onnx.number(1, kind) + onnx.piece(
        2, b"".join(onnx.piece(1, onnx.number(1, d)) for d in dims))))


def int64s(name, values):
    return (onnx.number(1, len(values)) + onnx.number(2, I64) + onnx.piece(8, name) +
            onnx.piece(9, struct.pack("<%dq" % len(values), *values)))


def outside(name, dims, location):
    """A tensor whose values are in another file."""
    return (b"".join(onnx.number(1, d) for d in dims) + onnx.number(2, F32) + onnx.piece(8, name) +
            onnx.piece(13, onnx.piece(1, "location") + onnx.piece(2, location)) + onnx.number(14, 1))


def write(path, nodes, inputs, outputs, tensors=()):
    graph = (b"".join(onnx.piece(1, n) for n in nodes) + onnx.piece(2, "g") +
             b"".join(onnx.piece(5, t) for t in tensors) + b"".join(onnx.piece(11, i) for i in inputs) +
             b"".join(onnx.piece(12, o) for o in outputs))
    with open(path, "wb") as f:
        f.write(onnx.number(1, 8) + onnx.piece(7, graph) + onnx.piece(8, onnx.number(2, 13)))
    return path


def two_outputs(kind, inputs, outputs, **attributes):
    return (b"".join(onnx.piece(1, i) for i in inputs) + b"".join(onnx.piece(2, o) for o in outputs) +
            onnx.piece(4, kind) + b"".join(onnx.piece(5, onnx.attribute(k, v)) for k, v in attributes.items()))


def inspect(path, expect=0):
    done = subprocess.run([PIPECTL, "--json", "models", "inspect", path], capture_output=True, text=True, check=False)
    equal(done.returncode, expect, done.stdout + done.stderr)
    return json.loads(done.stdout)


def refusal(d, name, path, **more):
    try:
        d.call("Load", {"name": name, "path": path, **more})
    except VarlinkError as e:
        return e.parameters["why"]
    check(False, name, "was loaded from", path)


# ---- nothing to compute ----

def outputs_without_elements_are_served():
    with Daemon({"digits": DIGITS}, config=MEASURES) as d:
        x = value("x", F32, [4, 3])
        models = {
            "slice": ([onnx.node("Slice", ["x", "at", "at"], "y")], [int64s("at", [2])], [("y", [0, 3])]),
            "last": ([onnx.node("Slice", ["x", "from", "to"], "y")],
                     [int64s("from", [4]), int64s("to", [(1 << 63) - 1])], [("y", [0, 3])]),
            "split": ([two_outputs("Split", ["x", "parts"], ["y", "z"], axis=0)], [int64s("parts", [0, 4])],
                      [("y", [0, 3]), ("z", [4, 3])]),
            "gather": ([onnx.node("Gather", ["x", "none"], "y", axis=0)], [int64s("none", [])], [("y", [0, 3])]),
            "chain": ([onnx.node("Slice", ["x", "at", "at"], "s"), onnx.node("Relu", ["s"], "r"),
                       onnx.node("Concat", ["r", "x"], "y", axis=0)], [int64s("at", [1])], [("y", [4, 3])]),
        }
        frame = os.path.join(d.temp, "x.f32")
        with open(frame, "wb") as f:
            f.write(struct.pack("<12f", *range(12)))
        for name, (nodes, tensors, outputs) in models.items():
            path = write(os.path.join(d.temp, name + ".onnx"), nodes, [x],
                         [value(n, F32, dims) for n, dims in outputs], tensors)
            inspect(path)
            d.call("Load", {"name": name, "path": path})
            raw = os.path.join(d.temp, name + ".raw")
            answer = d.pipectl("infer", "--model", name, "--raw", raw, frame)[0]
            equal([o["shape"] for o in answer["outputs"]], [dims for _, dims in outputs], name)
            with open(raw, "rb") as f:
                equal(f.read(), struct.pack("<12f", *range(12)) if outputs[-1][1][0] else b"", name)
            for inline in ([], ["--inline"]):
                got = d.pipectl("bench", "--model", name, "--frames", "20", "--verify", *inline)
                equal((got["answered"], got["wrong"]), (20, 0), name)
            d.call("Unload", {"name": name})


def inputs_without_elements_are_refused():
    with Daemon({"digits": DIGITS}) as d:
        for dims in ([0, 3], [2, 0, 4]):
            path = write(os.path.join(d.temp, "empty.onnx"), [onnx.node("Relu", ["x"], "y")], [value("x", F32, dims)],
                         [value("y", F32, dims)])
            why = "input x has no elements: a frame of it would be empty"
            check(why in inspect(path, expect=1)["why"], inspect(path, expect=1))
            check(why in refusal(d, "m", path), "load says otherwise")


# ---- names ----

def names_that_no_client_reaches_are_refused():
    with Daemon({"digits": DIGITS}) as d:
        for name in (".", "..", "a/b", "a%2fb", "a\tb", "a\x1b[31m", "-m", "", "a b", "\u202eb", "..#0-1"):
            check("not a model name" in refusal(d, name, DIGITS), name)
            if name and "/" not in name:
                done = run_piped("--check-config", "--model", "%s=%s" % (name, DIGITS))
                check(done.returncode == 78 and "not a model name" in done.stderr, name, done.stderr)
        for name in ("...", "..a", "a.", ".a"):
            d.call("Load", {"name": name, "path": DIGITS})
        equal(len(d.call("Models")["models"]), 5)
        d.write_config({"models": [{"name": "..", "path": DIGITS}]})
        done = run_piped("--check-config", "--config", d.config_path)
        check(done.returncode == 78 and "not a model name" in done.stderr, done.stderr)


def names_of_data_files_mean_a_path_below():
    with Daemon({"digits": DIGITS}, env=HEARTBEAT) as d:
        os.makedirs(os.path.join(d.temp, "sub", "deep"))
        for name in ("w.bin", "sub/w.bin"):
            with open(os.path.join(d.temp, name), "wb") as f:
                f.write(struct.pack("<2f", 1, 2))

        def model(location):
            return write(os.path.join(d.temp, "m.onnx"), [onnx.node("Add", ["x", "w"], "y")], [value("x", F32, [2])],
                         [value("y", F32, [2])], [outside("w", [2], location)])

        frame = os.path.join(d.temp, "x.f32")
        with open(frame, "wb") as f:
            f.write(struct.pack("<2f", 10, 20))
        raw = os.path.join(d.temp, "raw")
        for location in ("w.bin", "./w.bin", ".//w.bin", "sub/../w.bin", "gone/../w.bin", "sub//w.bin", "./sub/./w.bin",
                         "sub/deep/../w.bin"):
            path = model(location)
            inspect(path)
            for load in (lambda p=path: d.pipectl("models", "load", "m", p, as_json=False),
                         lambda p=path: d.call("Load", {"name": "m", "path": p})):
                load()
                d.pipectl("infer", "--model", "m", "--raw", raw, frame)
                with open(raw, "rb") as f:
                    equal(f.read(), struct.pack("<2f", 11, 22), location)
                d.call("Unload", {"name": "m"})
        for location in ("../w.bin", "sub/../../w.bin", os.path.join(d.temp, "w.bin"), ".", "./", "sub/.."):
            path = model(location)
            check("below the model's folder" in inspect(path, expect=1)["why"], location, inspect(path, expect=1))
            check("below the model's folder" in refusal(d, "m", path), location)


def a_text_is_no_model():
    with Daemon({"digits": DIGITS}) as d:
        path = os.path.join(d.temp, "m.onnx")
        for text in (b"hi\n", "h\u00e9llo\nw\u00f6rld".encode(), b"input: x\noutput: y\n"):
            with open(path, "wb") as f:
                f.write(text)
            why = "this is a text file; it is not an ONNX model, which is protobuf"
            check(why in inspect(path, expect=1)["why"] and why in refusal(d, "m", path), text)
        with open(path, "wb") as f:
            f.write(b"\xff\xfe\xfd" * 20)
        why = "not an ONNX file, or a damaged one: broken or truncated field tag at byte 0, where a field of a model"
        check(why in refusal(d, "m", path), refusal(d, "m", path))


# ---- loads that take minutes ----

SLOW = {"kernels": {"measure_ms": 60000}}  # a few primitives of each layer take that


def write_slow(folder):
    """Convolutions of different shapes, each of some seconds with all its primitives."""
    path = os.path.join(folder, "slow.onnx")
    onnx.write(path, [("conv", 240 + 16 * i, 3) for i in range(12)], channels=240, size=64)
    return path


class Loading(Daemon):
    """A daemon that serves digits, and a client that waits for a slow model."""

    def __init__(self):
        super().__init__({"digits": DIGITS}, config=SLOW, env=HEARTBEAT)

    def begin(self):
        client = self.connect()
        client.send("io.piped.Load", {"name": "slow", "path": write_slow(self.temp)})
        for _ in range(3):  # by the last one, the loop has seen what came before the first
            self.call("Status")
        return client


def answer(client):
    try:
        client.receive()
    except VarlinkError as e:
        return e.parameters["why"]
    check(False, "it was loaded")


def who_leaves_calls_a_load_off():
    with Loading() as d:
        d.begin().close()
        check(d.wait_until(lambda: "cannot serve model slow" in d.log()), d.log())
        check("its client has gone" in d.log(), d.log())
        d.call("Load", {"name": "slow", "path": DIGITS})


def unload_calls_a_load_off():
    with Loading() as d:
        for _ in range(5):  # more than there are work threads
            client = d.begin()
            d.call("Unload", {"name": "slow"})
            equal(answer(client), "the model was unloaded while it was loaded")
            client.close()
        d.call("Load", {"name": "slow", "path": DIGITS})


def a_reload_calls_a_load_off():
    with Loading() as d:
        client = d.begin()
        d.call("Reload")
        equal(answer(client), "a reload called it off; load it again")
        client.close()
        # one reload takes the place of another
        d.write_config(dict(SLOW, models=[{"name": "slow", "path": write_slow(d.temp)}]))
        first = d.connect()
        d.drain_notify()
        first.send("io.piped.Reload")
        d.wait_notify(lambda m: "RELOADING" in m)
        d.call("Status")  # the configuration has been read by then
        d.write_config(SLOW)
        d.call("Reload")
        check("another reload took its place" in reason(first), "the first reload")
        first.close()
        equal([m["name"] for m in d.call("Models")["models"]], ["digits"])


def reason(client):
    try:
        client.receive()
    except VarlinkError as e:
        return str(e.parameters)
    return "it succeeded"


def a_stop_calls_a_load_off():
    with Loading() as d:
        client = d.begin()
        d.signal(signal.SIGTERM)
        equal(answer(client), "the daemon is stopping")
        d.wait_exit()
        client.close()


def a_stop_during_the_first_load():
    for number in (signal.SIGTERM, signal.SIGINT):
        d = Daemon(config=SLOW)
        try:
            d.models = {"slow": write_slow(d.temp)}
            d.start(wait=False)
            until(lambda: os.listdir(d.state_dir) or d.process.poll() is not None, "the first load")  # taken just before it
            check(d.process.poll() is None, d.log())
            d.signal(number)
            d.wait_exit()
            check("READY=1" not in str(d.messages), d.messages)
        finally:
            d.cleanup()


if __name__ == "__main__":
    main([outputs_without_elements_are_served, inputs_without_elements_are_refused,
          names_that_no_client_reaches_are_refused, names_of_data_files_mean_a_path_below, a_text_is_no_model,
          who_leaves_calls_a_load_off, unload_calls_a_load_off, a_reload_calls_a_load_off, a_stop_calls_a_load_off,
          a_stop_during_the_first_load])
