#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Models as exporters write them: a look before serving, open shapes, bytes in NHWC, and what stays after a restart.

usage: test_inspect.py [CASE]...
"""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

import kept_files
import tiny_onnx as onnx
from daemon import DIGITS, PIPECTL, PIPED, Daemon, VarlinkError, check, equal, main

F32, U8, I64, F16 = 1, 2, 7, 10


def folder():
    return tempfile.mkdtemp(prefix="piped-test-")


def value(name, kind, dims):
    """A graph input or output; a text is an open dimension's name."""
    shape = b"".join(onnx.piece(1, onnx.piece(2, d) if isinstance(d, str) else onnx.number(1, d)) for d in dims)
    return onnx.piece(1, name) + onnx.piece(2, onnx.piece(1, onnx.number(1, kind) + onnx.piece(2, shape)))


def write(path, nodes, inputs, outputs, tensors=(), opset=13, notes=()):
    graph = (b"".join(onnx.piece(1, n) for n in nodes) + onnx.piece(2, "g") +
             b"".join(onnx.piece(5, t) for t in tensors) + b"".join(onnx.piece(11, i) for i in inputs) +
             b"".join(onnx.piece(12, o) for o in outputs))
    with open(path, "wb") as f:
        f.write(onnx.number(1, 8) + onnx.piece(2, "tester") + onnx.piece(7, graph) +
                onnx.piece(8, onnx.number(2, opset)) +
                b"".join(onnx.piece(14, onnx.piece(1, key) + onnx.piece(2, text)) for key, text in notes))


def write_open(path):
    """images [batch, 3, height, width] -> 3x3 convolution to 4 channels -> y."""
    weights = onnx.Weights(1).tensor("w", (4, 3, 3, 3), 27)
    conv = onnx.node("Conv", ["images", "w"], "y", kernel_shape=[3, 3], pads=[1] * 4)
    write(path, [conv], [value("images", F32, ["batch", 3, "height", "width"])],
          [value("y", F32, ["batch", 4, "height", "width"])], [weights])


def write_bytes(path):
    """Sums of the channels of a picture [1, 6, 8, 3] in bytes, as tf2onnx writes them."""
    write(path, [onnx.node("Cast", ["x"], "f", to=F32), onnx.node("Transpose", ["f"], "t", perm=[0, 3, 1, 2]),
                 onnx.node("ReduceSum", ["t", "axes"], "y", keepdims=0)],
          [value("x", U8, [1, 6, 8, 3])], [value("y", F32, [1, 3])],
          [onnx.number(1, 2) + onnx.number(2, 7) + onnx.piece(8, "axes") +
           onnx.piece(9, b"".join(v.to_bytes(8, "little") for v in (2, 3)))])


def inspect(*args, expect=0):
    """pipectl models inspect, where no daemon is. Returns its output, JSON parsed."""
    env = {**os.environ, "PIPED_RUNTIME_DIR": "/nonexistent"}
    done = subprocess.run([PIPECTL, "models", "inspect", *args], env=env, capture_output=True, text=True, check=False)
    equal(done.returncode, expect, done.stdout + done.stderr)
    return (json.loads(done.stdout) if "--json" in args else done.stdout), done.stderr


def refused(d, *args, expect=1):
    """What pipectl says when it fails."""
    done = subprocess.run([PIPECTL, "--socket", d.control_path, *args], capture_output=True, text=True, check=False,
                          env={**os.environ, "PIPED_RUNTIME_DIR": d.runtime_dir})
    equal(done.returncode, expect, done.stdout + done.stderr)
    return done.stdout + done.stderr


def shapes_of(d):
    return {m["name"]: m["input"]["shape"] for m in d.call("Models")["models"]}


def inspect_tells_what_a_file_is():
    text, _ = inspect(DIGITS)
    for words in ("operator set 12", "image  f32  [1, 1, 16, 16]", "12 units", "served      yes"):
        check(words in text, words, text)
    j, _ = inspect(DIGITS, "--json")
    equal((j["can_be_served"], j["compiled"]["units"], j["reasons"], j["sidecar"]["exists"]), (True, 12, [], True))
    path = os.path.join(folder(), "m.onnx")
    write(path, [onnx.node("Bogus", ["x"], "a"), onnx.node("Relu", ["a"], "b"), onnx.node("Wrong", ["b"], "y")],
          [value("x", F32, [1, 4])], [value("y", F32, [1, 4])])
    j, _ = inspect(path, "--json", expect=1)
    equal([(r["kind"], r["op"], r["node"]) for r in j["reasons"]],
          [("operator", "Bogus", "a"), ("operator", "Wrong", "y")])
    check("operator Bogus is not supported" in j["reasons"][0]["why"] and j["reason_count"] == 2, j)
    equal((j["can_be_served"], j["producer"], j["compiled"]), (False, "tester", None))
    text, _ = inspect(path, expect=1)
    check(", by tester\n" in text and "unsupported Bogus: node a\n" in text and "unsupported Wrong: node y\n" in text, text)
    write(path, [onnx.node("Relu", ["x", "x"], "a"), onnx.node("Transpose", ["x"], "b", perm=[0, 2]),
                 onnx.node("Bogus", ["x"], "c"), onnx.node("Sum", ["a", "b", "c"], "y")],
          [value("x", F32, ["batch", 4])], [value("y", F32, [1, 4])])
    j, _ = inspect(path, "--json", expect=1)
    equal([(r["kind"], r["node"]) for r in j["reasons"]], [("operator", "c"), ("node", "b")])
    text, _ = inspect(path, expect=1)
    check("refused     node b (Transpose): " in text and "unsupported Bogus: node c\n" in text, text)
    with open(path, "wb") as f:
        f.write(b"\xff\xd8\xff\xe0 JFIF")
    _, error = inspect(path, expect=1)
    check("this is a JPEG picture; it is not an ONNX model" in error, error)


def inspect_tells_of_halves():
    path = os.path.join(folder(), "half.onnx")
    write(path, [onnx.node("Relu", ["x"], "y"), onnx.node("Relu", ["n"], "k")],
          [value("x", F16, [1, 4]), value("n", F32, [2])], [value("y", F16, [1, 4]), value("k", F32, [2])])
    text, _ = inspect(path)
    check(text.count("  f32  [1, 4]  float16 in the file; clients may use f16\n") == 2, text)
    j, _ = inspect(path, "--json")
    equal([(i["dtype"], i["stored"]) for i in j["inputs"] + j["outputs"]], [("f32", "float16"), ("f32", None)] * 2)


def the_file_tells_its_classes():
    """From the metadata to the draft, and from there to the client."""
    temp = folder()
    path, picture = os.path.join(temp, "m.onnx"), os.path.join(temp, "red.ppm")
    write(path, [onnx.node("ReduceMax", ["x"], "y", axes=[2, 3], keepdims=0)],
          [value("x", F32, [1, 3, 8, 8])], [value("y", F32, [1, 3])],
          notes=[("author", "Ultralytics"), ("task", "classify"), ("names", "{0: 'red', 1: 'green', 2: \"navy's\"}")])
    text, _ = inspect(path)
    check('"labels": [\n        "red",' in text and "as for classifiers of Ultralytics" in text, text)
    j, _ = inspect(path, "--json", "--write-sidecar")
    equal(j["sidecar"]["draft"]["labels"], ["red", "green", "navy's"])
    check("pad" not in j["sidecar"]["draft"]["preprocess"], "bars without a letterbox")
    with open(picture, "wb") as f:
        f.write(b"P6 8 8 255\n" + bytes([10, 20, 250] * 64))
    with Daemon(models={"m": path}) as d:
        equal(d.call("Models")["models"][0]["labels"], ["red", "green", "navy's"])
        text = d.pipectl("infer", picture, as_json=False)
        check("navy's" in text, text)


def inspect_drafts_a_sidecar():
    path = os.path.join(folder(), "open.onnx")
    sidecar = path.replace(".onnx", ".sidecar.json")
    write_open(path)
    j, _ = inspect(path, "--json")
    equal(j["inputs"][0]["shape"], ["batch", 3, "height", "width"])
    equal(j["example"], "images=1x3x640x640")
    draft = j["sidecar"]["draft"]
    equal(draft["shapes"], {"images": [1, 3, 640, 640]})
    equal((draft["preprocess"]["fit"], draft["preprocess"]["pad"]), ("letterbox", 114))
    check(not os.path.exists(sidecar), "written without being asked")
    text, _ = inspect(path)
    check("none; would be " in text and "--write-sidecar writes it" in text, text)
    text, _ = inspect(path, "--write-sidecar")
    check("would be" not in text and "--write-sidecar" not in text, text)
    with open(sidecar, encoding="utf-8") as f:
        equal(json.load(f)["preprocess"], j["sidecar"]["draft"]["preprocess"])
    text, _ = inspect(path)
    check("\nguessed " not in text and "\nno output " in text, "not what the sidecar states, but what it lacks", text)
    with open(sidecar, "w", encoding="utf-8") as f:
        f.write("{\"shapes\": {\"height\": 24, \"width\": 32}}")
    text, error = inspect(path, "--write-sidecar", expect=1)
    check("\nguessed " in text and "--force replaces it" in error, text, error)
    j, _ = inspect(path, "--json")
    equal((j["example"], j["sidecar"]["exists"]), (None, True))
    j, _ = inspect(path, "--json", "--shape", "height=48", "--shape", "width=16")
    equal(j["example"], None)
    with open(sidecar, "w", encoding="utf-8") as f:
        json.dump({"shapes": {"height": 24, "width": 32}, "output": {"decode": "mask"}}, f)
    text, _ = inspect(path)
    check("\nguessed " in text and "\nno output " not in text, "not what the sidecar states, but what it lacks", text)
    inspect(path, "--write-sidecar", "--force")
    with open(sidecar, encoding="utf-8") as f:
        check("A draft" in f.read(), "not replaced")
    usage = subprocess.run([PIPED, "--json"], capture_output=True, text=True, check=False)
    check(usage.returncode == 2 and "--inspect" in usage.stderr, usage.stderr)


def sizes_that_are_given_stay():
    """In the example, and as the reason why a network cannot be served."""
    path = os.path.join(folder(), "a:b=1.onnx")
    write_open(path)
    for given, example, drafted in ((["height=100"], "height=100,images=1x3x100x640", [1, 3, 100, 640]),
                                    (["batch=4"], "batch=4,images=4x3x640x640", [4, 3, 640, 640]),
                                    (["height=8", "width=16", "batch=2"], None, [2, 3, 8, 16])):
        j, _ = inspect(path, "--json", *(a for g in given for a in ("--shape", g)))
        equal((j["example"], j["sidecar"]["draft"]["shapes"]), (example, {"images": drafted}))
    text, _ = inspect(path, "--shape", "images=1x3x20000x20000", expect=1)
    check("served      no: " in text and "is larger than" in text and "given twice" not in text, text)
    with open(path.replace(".onnx", ".sidecar.json"), "w", encoding="utf-8") as f:
        f.write("{\"shapes\": {\"height\": 24}}")
    equal(inspect(path, "--json")[0]["example"], "images=1x3x24x640")
    for bad in ("480x640", "images=1,3,480,640", "images=1X3X480X640", "x=0x4", "M=0", "M=", "M=1e3", "M=99999999999",
                "x=1x-4", "x=1x1x1x1x1x1x1x1x1", "=4"):
        _, error = inspect(path, "--shape", "width=2", "--shape", bad, expect=2)
        check("--shape needs INPUT=1x3x480x640" in error and "not '%s'" % bad in error, error)


def labels_are_one_for_each_class():
    path = os.path.join(folder(), "digits.onnx")
    sidecar = path.replace(".onnx", ".sidecar.json")
    shutil.copy(DIGITS, path)
    words = "the sidecar has %d labels, and output %s has 10 classes; give a label for each class"
    name = inspect(DIGITS, "--json")[0]["outputs"][0]["name"]
    for count in (2, 9, 10, 11):
        for output in ({}, {"output": {"decode": "classes"}}):
            with open(sidecar, "w", encoding="utf-8") as f:
                json.dump({"labels": ["l%d" % i for i in range(count)], **output}, f)
            equal([words % (count, name) in w for w in inspect(path, "--json")[0]["warnings"]], [True] * (count != 10))
            equal("warning     " + words % (count, name) in inspect(path)[0], count != 10)
    with open(sidecar, "w", encoding="utf-8") as f:
        f.write("{\"labels_file\": \"l.txt\"}")
    for text, words_or_not in ((b"\xef\xbb\xbfa\nb\n", words % (2, name)), (b"a\0b\n", "or has a NUL byte")):
        with open(os.path.join(os.path.dirname(path), "l.txt"), "wb") as f:
            f.write(text)
        check(words_or_not in "".join(inspect(path, expect=int(b"\0" in text))), text)
    with open(sidecar, "w", encoding="utf-8") as f:
        json.dump({"labels": ["l"] * 11}, f)
    with Daemon(models={"m": path}) as d:
        warning = d.call("Models")["models"][0]["warnings"][0]
        check(words % (11, name) in warning, warning)
        check(warning in d.log(), d.log())


def open_shapes_are_settled_everywhere():
    """By the command line, the configuration and Load; one file at several sizes."""
    path = os.path.join(folder(), "open.onnx")
    write_open(path)
    config = {"models": [{"name": "b", "path": path, "shapes": {"height": 16, "width": 24}},
                         {"name": "c", "path": path, "shapes": "images=1x3x8x40"}]}
    with Daemon(models={"a": path + ":images=1x3x24x32"}, config=config) as d:
        equal(shapes_of(d), {"a": [1, 3, 24, 32], "b": [1, 3, 16, 24], "c": [1, 3, 8, 40]})
        d.pipectl("models", "load", "d", path, "--shape", "height=40", "--shape", "width=8")
        equal(shapes_of(d)["d"], [1, 3, 40, 8])
        error = refused(d, "models", "load", "e", path)
        check("open dimensions: height, width" in error, error)
        error = refused(d, "models", "load", "e", path, "--shape", "hight=40")
        check("no open dimension of that name" in error, error)
        refused(d, "models", "load", "e", path, "--shape", "height", expect=2)
        try:
            d.call("Load", {"name": "e", "path": path, "shapes": {"height": -1}})
            check(False, "a negative size was taken")
        except VarlinkError as e:
            check("must be a size" in e.parameters["why"], e)
        config["models"][0]["shapes"]["height"] = 32
        d.write_config(config)
        d.call("Reload")
        equal(shapes_of(d)["b"], [1, 3, 32, 24])
        config["models"][0]["shapes"] = "height"
        d.write_config(config)
        try:
            d.call("Reload")
            check(False, "a bad shape was taken")
        except VarlinkError as e:
            check("models[0].shapes: 'height' is not a shape" in e.parameters["why"], e)


def sizes_of_one_file_share_weights():
    """The second size adds little memory, and either may go first. Both are given one primitive."""
    config = {"adapt": {"enabled": False}, "kernels": {"measure_ms": 0}}
    path = os.path.join(folder(), "wide.onnx")
    layers = ((3, 512), (512, 512), (512, 512), (512, 4))
    weights = onnx.Weights(1)
    nodes = [onnx.node("Conv", ["images" if i == 0 else "v%d" % i, "w%d" % i], "y" if i == 3 else "v%d" % (i + 1),
                       kernel_shape=[3, 3], pads=[1] * 4) for i in range(4)]
    write(path, nodes, [value("images", F32, ["batch", 3, "height", "width"])],
          [value("y", F32, ["batch", 4, "height", "width"])],
          [weights.tensor("w%d" % i, (o, c, 3, 3), c * 9) for i, (c, o) in enumerate(layers)])
    sizes = {"a": (8, 8), "b": (12, 16)}

    def serve(d, *names):
        models = [{"name": n, "path": path, "kernels": "igemm", "shapes": dict(zip(("height", "width"), sizes[n]))}
                  for n in names]
        d.write_config({**config, "models": [{"name": "digits", "path": DIGITS}] + models})
        d.call("Reload")

    def answer(d, name):
        frame = os.path.join(os.path.dirname(path), name + ".f32")
        with open(frame, "wb") as f:
            f.write(struct.pack("<f", 0.5) * 3 * sizes[name][0] * sizes[name][1])
        d.pipectl("infer", "--model", name, "--raw", frame + ".out", frame)
        with open(frame + ".out", "rb") as f:
            return f.read()

    for first, second in ("ab", "ba"):
        with Daemon(config=config) as d:
            without = d.status()["memory"]["packed_bytes"]
            serve(d, second)
            alone, packed = answer(d, second), d.status()["memory"]["packed_bytes"] - without
            check(packed > 16 << 20, packed)
            serve(d, first)
            before = anonymous_bytes(d)
            serve(d, first, second)
            grown, both = anonymous_bytes(d) - before, d.status()["memory"]["packed_bytes"] - without
            check(both < 1.1 * packed, both, packed)
            check("PIPED_TEST_SANITIZER" in os.environ or grown < packed / 2, grown, packed)
            check(answer(d, second) == alone, "another answer beside the other")
            serve(d, second)
            check(answer(d, second) == alone, "another answer after the other")
            equal(d.status()["memory"]["packed_bytes"] - without, packed)
            print("  %.1f MB packed, %.1f for both; the second added %.1f" % (packed / 1e6, both / 1e6, grown / 1e6))


def anonymous_bytes(d):
    with open("/proc/%d/status" % d.process.pid, encoding="utf-8") as f:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", f.read(), re.M).group(1)) << 10


def bytes_take_pictures_but_no_floats():
    temp = folder()
    path, picture, floats = (os.path.join(temp, n) for n in ("bytes.onnx", "p.ppm", "x.f32"))
    write_bytes(path)
    with open(picture, "wb") as f:
        f.write(b"P6\n8 6\n255\n" + bytes((1, 2, 250)) * 48)
    with open(floats, "wb") as f:
        f.write(bytes(4 * 6 * 8 * 3))
    with Daemon(models={"bytes": path}) as d:
        model = d.call("Models")["models"][0]
        equal((model["input"]["dtype"], model["preprocess"]["layout"], model["preprocess"]["width"]), ("u8", "nhwc", 8))
        equal(model["warnings"], [])
        raw = os.path.join(temp, "raw")
        d.pipectl("infer", "--raw", raw, picture)
        with open(raw, "rb") as f:
            equal(f.read(), b"".join(onnx.array.array("f", [v * 48.0]).tobytes() for v in (1, 2, 250)))
        text = refused(d, "infer", floats)
        check("it holds floats, and the model's input x takes u8" in text, text)
        d.pipectl("bench", "--frames", "8", "--pixfmt", "rgb24")


def pictures_without_preprocessing_are_warned_about():
    temp = folder()
    path = os.path.join(temp, "m.onnx")
    onnx.write(path, [("conv", 4, 3), ("relu",)], size=32)
    with Daemon(models={"m": path}) as d:
        check("no sidecar says how pixels become them" in d.log(), d.log())
        check("warning: m: its input is a picture" in d.pipectl("models", as_json=False), "not in pipectl models")
        os.symlink(path, os.path.join(temp, "link.onnx"))
        with open(os.path.join(temp, "m.sidecar.json"), "w", encoding="utf-8") as f:
            f.write("{\"preprocess\": {\"scale\": 0.5}}")
        loaded = d.pipectl("models", "load", "linked", os.path.join(temp, "link.onnx"))
        equal((loaded["warnings"], loaded["preprocess"]["known"]), ([], True))


def what_differs_from_the_file_is_said():
    temp = folder()
    path = os.path.join(temp, "m.onnx")
    write(path, [onnx.node("Relu", ["x"], "y"), onnx.node("Neg", ["x"], "z")], [value("x", F32, [1, 1, 5, 4])],
          [value("y", F32, [1, 1, 5, 6]), value("z", F32, ["n", 1, 5, 4])])
    j, _ = inspect("--json", path)
    equal([(o["name"], o["shape"], o["declared"]) for o in j["outputs"]],
          [("y", [1, 1, 5, 4], "[1, 1, 5, 6]"), ("z", ["n", 1, 5, 4], None)])
    text, _ = inspect(path)
    check("f32  [1, 1, 5, 4]  but the file declares [1, 1, 5, 6]" in text, text)
    said = "output y is f32 [1, 1, 5, 4], and the file declares f32 [1, 1, 5, 6]"
    with Daemon(models={"m": path}) as d:
        check(said in d.log(), d.log())
        for model in (d.call("Models")["models"][0], d.status()["models"][0]):
            equal((model["warnings"], model["warning_kinds"]), ([said], ["declared"]))


def names_counts_and_types_of_the_file_are_compared():
    """A name of an input's dimension is its size; a counted dimension is served as its bound."""
    path = os.path.join(folder(), "m.onnx")
    write(path, [onnx.node("Concat", ["x", "x"], "two", axis=0), onnx.node("NonZero", ["x"], "where"),
                 onnx.node("Cast", ["x"], "whole", to=I64), onnx.node("Neg", ["x"], "same")],
          [value("x", F32, ["n", 5, 4])],
          [value("two", F32, ["n", 5, 4]), value("where", I64, [3, 7]), value("whole", F32, ["n", 5, 4]),
           value("same", F32, ["n", "m", 4])])
    j, _ = inspect("--json", path)
    equal([(o["name"], o["dtype"], o["shape"], o["declared"]) for o in j["outputs"]],
          [("two", "f32", [2, 5, 4], "[1, 5, 4]"), ("where", "i64", [3, 20], "[3, 7]"),
           ("whole", "i64", [1, 5, 4], "f32 [1, 5, 4]"), ("same", "f32", ["n", "m", 4], None)])
    with Daemon(models={"m": path}) as d:
        equal(d.call("Models")["models"][0]["warnings"],
              ["output two is f32 [2, 5, 4], and the file declares f32 [1, 5, 4]; "
               "output where is at most i64 [3, 20], and the file declares i64 [3, 7]; "
               "output whole is i64 [1, 5, 4], and the file declares f32 [1, 5, 4]"])


def saved_models_stay():
    """After a restart and a reload; a configured one is its file's."""
    temp = folder()
    path = os.path.join(temp, "open.onnx")
    write_open(path)
    config = {"models": [{"name": "first", "path": DIGITS}]}
    with Daemon(config=config) as d:
        d.pipectl("models", "load", "kept", path, "--shape", "images=1x3x16x16", "--save")
        d.pipectl("models", "load", "gone", DIGITS)
        d.call("Reload")
        equal(set(shapes_of(d)), {"first", "kept", "gone"})
        error = refused(d, "models", "unload", "first", "--save")
        check("model first is configured: remove it from" in error, error)
        saved = os.path.join(d.state_dir, "models.v2.json")
        shutil.copy(saved, temp)
        state = d.state_dir
        copy = os.path.join(temp, "state")
        shutil.copytree(state, copy)
    with Daemon(config=config, state_dir=copy) as d:
        equal(shapes_of(d), {"first": [1, 1, 16, 16], "kept": [1, 3, 16, 16]})
        d.pipectl("models", "unload", "kept")  # for now
        d.call("Reload")
        equal(set(shapes_of(d)), {"first", "kept"})
        d.pipectl("models", "unload", "kept", "--save")
        d.call("Reload")
        equal(set(shapes_of(d)), {"first"})
        error = refused(d, "models", "unload", "kept", "--save")
        check("no model of that name is saved" in error, error)
    os.unlink(path)
    shutil.copy(os.path.join(temp, "models.v2.json"), copy)
    with Daemon(config=config, state_dir=copy) as d:  # its file is gone
        check("cannot serve model kept" in d.log() and "unload kept --save" in d.log(), d.log())
        d.pipectl("models", "unload", "kept", "--save")
    kept_files.write(os.path.join(copy, "models.v2.json"), {"version": 2, "models": 7})
    with Daemon(config=config, state_dir=copy) as d:
        check("the list of saved models cannot be used: it holds something else" in d.log(), d.log())
        equal(set(shapes_of(d)), {"first"})


def pads_are_one_for_each_channel():
    temp = folder()
    try:
        path, sidecar = os.path.join(temp, "net.onnx"), os.path.join(temp, "net.sidecar.json")
        onnx.write(path, [("conv", 8, 3), ("relu",), ("pool",), ("linear", 10)], size=16)
        channels = inspect("--json", path)[0]["inputs"][0]["shape"][1]
        for pad in (7, [7], [7] * channels, [7] * (channels + 1), [7] * (channels % 3 + 2)):
            with open(sidecar, "w", encoding="utf-8") as f:
                json.dump({"preprocess": {"fit": "letterbox", "pad": pad}}, f)
            refused_one = isinstance(pad, list) and len(pad) not in (1, channels)
            said = inspect(path, expect=int(refused_one))[0]
            check(not refused_one or "key 'pad': it lists %d values, and input " % len(pad) in said, said)
    finally:
        shutil.rmtree(temp)


if __name__ == "__main__":
    main([inspect_tells_what_a_file_is, inspect_tells_of_halves, the_file_tells_its_classes, inspect_drafts_a_sidecar,
          sizes_that_are_given_stay, labels_are_one_for_each_class, open_shapes_are_settled_everywhere,
          sizes_of_one_file_share_weights, bytes_take_pictures_but_no_floats, pictures_without_preprocessing_are_warned_about,
          what_differs_from_the_file_is_said, names_counts_and_types_of_the_file_are_compared, saved_models_stay,
          pads_are_one_for_each_channel])
