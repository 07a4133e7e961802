# SPDX-License-Identifier: Apache-2.0
"""Configurations that a start refuses, and some that it takes though they look odd.

A case is (text of the file, words of the refusal). What a text names by a relative path stands in the file's folder,
where make_files() puts it.
"""
import json
import os

import tiny_onnx
from daemon import DIGITS

DIGIT_MODEL = {"name": "a", "path": DIGITS}
BIG = "big.onnx"  # a frame's activations take more than 1 MiB


def text(config=None, model=None, **keys):
    """A configuration's text. `model`: keys of a model in place of DIGIT_MODEL's."""
    config = dict(config or {}, **keys)
    if model is not None:
        config["models"] = [dict(DIGIT_MODEL, **model)]
    return json.dumps(config)


def nested(key, value):
    """The text of {"a": {"b": value}} for "a.b"."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return json.dumps(value)


def places(*cpus, **more):
    return text(eps=[dict({"name": "p%d" % i, "cpus": c}, **more) for i, c in enumerate(cpus)])


SYNTAX = [
    ("{\n  // comment\n  \"spin_us\": -1\n}", "c.json:3: spin_us: -1 is outside"),
    ("{\n\n  \"nonsense\": 1 }", "c.json:3: nonsense: unknown key"),
    ("{ \"limits\": { # comment\n \"streams\": \"x\" } }", "c.json:2: limits.streams: must be a whole number"),
    ("{ \"models\": [\n {\"name\": \"a\"} ] }", "c.json:2: models[0].path: is missing"),
    ("{ \"models\": [ {\"name\": \"a/b\",\n \"path\": \"x\"} ] }", "models[0].name: \"a/b\" is not a model name"),
    ("{\n \"models\": [ {\"name\": \"a\", \"path\": \"missing.onnx\"} ] }", "c.json:2: models[a].path: "),
    ("{ \"pin\": 1 }", "c.json:1: pin: must be true or false"),
    ("{ \"log_level\": \"loud\" }", "log_level: must be one of error|"),
    ("{\n  \"spin_us\": 1,\n}", "c.json:3: "),
    ("{ \"spin_us\": 1, \"spin_us\": 2 }", "duplicate"),
    ("[]", "must be an object"),
    ("{ \"eps\": [ { \"name\": \"a\", \"cpus\": \"0-\" } ] }", "eps[0].cpus: \"0-\" is not a list of cores"),
    ("{ \"models\": [ {\"name\": \"a\", \"path\": \"%s\",\n \"plan\": \"0-99@none\"} ] }" % DIGITS, "models[a].plan: "),
    ("{", "c.json:1: "), ("{}}", "c.json:1: "), ("\0", "c.json:1: "),
    ("{ \"limits\": { \"credits\": 0 } }", "limits.credits: 0 is outside 1..256"),
    ("{ \"adapt.enabled\": false,\n \"adapt\": {\"enabled\": true} }", "adapt.enabled: is given twice in this file"),
    ("{ \"adapt\": {\"enabled\": true}, \"adapt.enabled\": true }", "adapt.enabled: is given twice in this file"),
    ("\ufeff{\n \"nonsense\": 1 }", "c.json:2: nonsense: unknown key"),
]
KEYS = [(nested(key, value), key + ": ") for key, value in (
    ("spin_us", 1.5), ("spin_us", None), ("spin_us", 1 << 62), ("pin", "true"), ("limits", 1), ("planner", []),
    ("socket_mode", "0999"), ("socket_mode", ""), ("socket_mode", "1777"), ("socket_mode", 660),
    ("socket_group", "no-such-group-here"), ("socket_group", "x" * 64), ("socket_group", 1),
    ("admin_group", "x" * 64), ("default_model", "x" * 64), ("gpio.chip", "x" * 64), ("gpio.button", -2),
    ("gpio.button", 65536), ("boards.frames_socket", "/" + "x" * 107), ("planner.algorithm", "no such"),
    ("planner.algorithm", ""), ("planner.objective", "speed"), ("planner.objective", "power"),
    ("limits.user_weights", "1000=2,1000=3"), ("limits.user_weights", "1000=2,1001=1,1000=2"))]
CORES = [(places(cpus), "eps[0].cpus: ") for cpus in (
    "0-99999", "256", "0-256", "", "-1", "0,0", "1-0", "0-", ",", "0,", "x", "0 ", "0x1", "18446744073709551616", "255", "0,255",
    [256], [0, 0], [-1], [65536], [0.5], [], [[0]], 0, None)] + [
        (places("0-255", "0-255"), "eps[1].cpus: "),
        (places(*["0"] * 17), "eps: must be a list of at most 16"),
        (places("0", speed=0), "eps[0].speed: "), (places("0", speed=1.1), "eps[0].speed: "),
        (places("0", speed="1"), "eps[0].speed: "), (places("0", watts=-1), "eps[0].watts: "),
        (places("0", watts=10001), "eps[0].watts: "),
        (text(eps=[{"name": "a", "cpus": "0"}] * 2), "eps[1].name: \"a\" is listed twice"),
        (text(eps=[{"name": "a b", "cpus": "0"}]), "eps[0].name: "),
        (text(eps=[{"name": "a"}]), "eps[0].cpus: is missing"), (text(eps={}), "eps: "), (text(eps=[1]), "eps[0]: ")]
MODELS = [(text(model=change), key) for change, key in (
    ({"path": "missing.onnx"}, "models[a].path: "), ({"path": "."}, "models[a].path: "),
    ({"path": "empty.onnx"}, "models[a].path: "), ({"path": "half.onnx"}, "models[a].path: "),
    ({"path": "noise.onnx"}, "models[a].path: "), ({"path": "fifo.onnx"}, "models[a].path: "),
    ({"path": ""}, "models[0].path: "),
    ({"path": "x" * 4096}, "models[0].path: "), ({"plan": "0-99@none"}, "models[a].plan: "),
    ({"plan": "0-99999@p0"}, "models[a].plan: "), ({"plan": "|"}, "models[a].plan: "),
    ({"plan": 1}, "models[0].plan: "),
    ({"calibration": "missing.json"}, "models[a].calibration: "),
    ({"calibration": "empty.onnx"}, "models[a].calibration: "),
    ({"calibration": "noise.onnx"}, "models[a].calibration: "), ({"shapes": "x"}, "models[0].shapes: "),
    ({"shapes": {"nothing": 4}}, "models[a].path: "), ({"boards": "0-1"}, "models[0].boards: "),
    ({"rate": -1}, "models[0].rate: "), ({"rate": 1e9}, "models[0].rate: "), ({"weight": 0}, "models[0].weight: "),
    ({"class": 8}, "models[0].class: "), ({"class": 0.5}, "models[0].class: "), ({"max_share": 0}, "models[0].max_share: "),
    ({"deadline_ms": 5}, "models[0].deadline_ms: "), ({"rate": "9"}, "models[0].rate: "),
    ({"latest": 1}, "models[0].latest: "), ({"name": "x" * 64}, "models[0].name: "), ({"name": ""}, "models[0].name: "),
    ({"name": "a#9-8"}, "models[0].name: "),
    ({"name": "a#0-9999"}, "models[a#0-9999].path: "), ({"more": 1}, "models[0].more: "))] + [
        (text(models=[DIGIT_MODEL] * 2), "models[1].name: \"a\" is listed twice"),
        (text(models=[dict(DIGIT_MODEL, name="m%d" % i) for i in range(17)]), "limits.models: 16"),
        (text(models={}), "models: must be a list"), (text(models=[1]), "models[0]: "),
        (text(model={"plan": "0-11@p1"}, eps=[{"name": "p0", "cpus": "0"}]), "models[a].plan: "),
        (text(model={"path": BIG}, limits={"model_arena_mib": 1}), "models[a].path: ")]
BAD = SYNTAX + KEYS + CORES + MODELS

# Bad only as a change: (text that is served, text that the next start refuses, words).
CHANGES = [
    (text(model={"path": BIG}), text(model={"path": BIG}, limits={"model_arena_mib": 1}), "models[a].path: "),
    (text(model={"plan": "PLAN@p0"}, eps=[{"name": "p0", "cpus": "0"}]),
     text(model={"plan": "PLAN@p0"}, eps=[{"name": "p1", "cpus": "0"}]), "models[a].plan: "),
]
# Not what one expects to be good, but a start serves with it: each has its place at run time.
ODD = [
    text(default_model="nobody"), text(admin_group="no-such-group-here"), text(gpio={"chip": "no such chip", "led": 3}),
    text(gpio={"chip": "x", "led": 3, "button": 3}), text(boards={"frames_socket": ""}),
    text(boards={"frames_socket": "x"}),
    places("0", "0"), places([0]), "", "// nothing", "\ufeff{}", "\ufeff// nothing", "{}", text(eps=[]), text(models=[]),
    text(model={"kernels": "no such"}), text(model={"latest": True, "boards": "auto"}),
    text(model={"boards": "0-3@here|4-11@nobody"}), text(planner={"objective": "power", "fps": 1}),
    text(planner={"stages_max": 1}, model={}), text(socket_mode="0"), text(log_level="error"),
]


def make_files(folder):
    with open(DIGITS, "rb") as f:
        whole = f.read()
    for name, content in (("empty.onnx", b""), ("half.onnx", whole[:len(whole) // 2]),
                          ("noise.onnx", bytes(range(256)) * 64)):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    os.mkfifo(os.path.join(folder, "fifo.onnx"))
    tiny_onnx.write(os.path.join(folder, BIG), [("conv", 16, 3), ("relu",)], channels=3, size=224)
