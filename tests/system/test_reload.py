#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reloading: by signal and by call, under clients, with models that changed, that went and that are bad.

usage: test_reload.py [CASE]...
"""
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import tempfile

import pyclient
from daemon import DIGITS, Daemon, Failure, VarlinkError, check, equal, main


def data(stream, value=1.0):
    return struct.pack("<f", value) * (stream.input_bytes // 4)


def reload_by_signal():
    with Daemon() as d:
        d.write_config({"models": [{"name": "second", "path": DIGITS}]})
        d.signal(signal.SIGHUP)
        m = d.wait_notify(lambda m: m.get("RELOADING") == "1")
        check(int(m["MONOTONIC_USEC"]) > 0, "RELOADING comes with MONOTONIC_USEC in one message")
        d.wait_notify(lambda m: m.get("READY") == "1")
        equal([m["name"] for m in d.call("Models")["models"]], ["second"])
        d.write_config("{ \"limits\": { \"credits\": 0 } }")
        d.signal(signal.SIGHUP)
        d.wait_notify(lambda m: m.get("RELOADING") == "1")
        d.wait_notify(lambda m: m.get("READY") == "1")
        check(":1: limits.credits: 0 is outside 1..256" in d.log(), d.log())
        equal([m["name"] for m in d.call("Models")["models"]], ["second"], "a failed reload changed something")


def reload_with_a_full_notify_socket():
    """Nobody reads there: the loop goes on, and what is said once comes later, in order."""
    with Daemon() as d, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        d.wait_notify(lambda m: "STATUS" in m)
        other.setblocking(False)
        other.connect(d.notify_path)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.send(b"FULL=1")
        began = len(d.messages)
        d.call("Reload")
        d.wait_notify(lambda m: m.get("READY") == "1")
        said = [m for m in d.messages[began:] if "FULL" not in m and "STATUS" not in m]
        equal([list(m)[0] for m in said], ["RELOADING", "READY"])
        check("is lost" not in d.log(), d.log())


def reload_changes_models_under_clients():
    """A model whose file changed is replaced without its clients noticing; one that is no longer named goes."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    path = os.path.join(temp, "m.onnx")
    shutil.copy(DIGITS, path)
    sidecar = os.path.splitext(DIGITS)[0] + ".sidecar.json"
    shutil.copy(sidecar, os.path.join(temp, "m.sidecar.json"))
    both = {"models": [{"name": "a", "path": path}, {"name": "b", "path": DIGITS}]}
    with Daemon(config=both) as d, pyclient.Connection(d.frames_path) as c:
        a, b = pyclient.Stream(c, 1, "a"), pyclient.Stream(c, 2, "b", inline=True)
        first = a.infer(data(a)).output
        equal(b.infer(data(b)).status, "ok")
        shutil.copy(DIGITS, path + ".new")
        os.rename(path + ".new", path)
        d.write_config({"models": [{"name": "a", "path": path}]})
        d.call("Reload")
        equal([m["name"] for m in d.call("Models")["models"]], ["a"])
        r = a.infer(data(a))
        equal((r.status, r.output), ("ok", first), "the stream did not go over to the new model")
        equal(b.infer(data(b)).status, "unavailable")
        check(any(e[1] == 3 and e[0] == 2 for e in c.events), "UNLOADING was not sent", c.events)
        d.write_config({"models": [{"name": "a", "path": path}, {"name": "bad", "path": "/nonexistent.onnx"}]})
        try:
            d.call("Reload")
            raise Failure("a reload with a bad model went through")
        except VarlinkError as e:
            equal(e.error, "io.piped.ReloadFailed")
            check("nonexistent" in e.parameters["why"], e.parameters)
        equal(a.infer(data(a)).output, first)
        a.free()
    shutil.rmtree(temp)


def relu(path, dtype, shape, names="xy"):
    """Writes an ONNX model of one Relu. names: a letter for its input, one for its output."""
    def field(number, value):
        if isinstance(value, int):
            return bytes([number << 3, value])
        return bytes([number << 3 | 2, len(value)]) + value

    def value_info(name):
        dims = b"".join(field(1, field(1, n)) for n in shape)
        return field(1, name) + field(2, field(1, field(1, dtype) + field(2, dims)))

    x, y = (name.encode() for name in names)
    node = field(1, x) + field(2, y) + field(4, b"Relu")
    graph = field(1, node) + field(2, b"g") + field(11, value_info(x)) + field(12, value_info(y))
    with open(path + ".new", "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(2, 14)))
    os.rename(path + ".new", path)


def reload_tells_clients_of_another_shape():
    """As many bytes are not enough: a client whose tensors mean something else now is told to open anew. What went by
    another name may be another thing, as where two inputs changed places."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    path = os.path.join(temp, "m.onnx")
    relu(path, 1, (2, 8))
    with Daemon(config={"models": [{"name": "a", "path": path}]}) as d, pyclient.Connection(d.frames_path) as c:
        for dtype, shape, names, status in ((1, (2, 8), "xy", "ok"), (1, (8, 2), "xy", "unavailable"),
                                            (6, (8, 2), "xy", "unavailable"), (6, (8, 2), "xz", "unavailable"),
                                            (6, (8, 2), "wz", "unavailable"), (6, (8, 2), "wz", "ok")):
            s = pyclient.Stream(c, 1, "a")
            equal(s.infer(data(s)).status, "ok")
            relu(path, dtype, shape, names)
            d.call("Reload")
            equal(s.infer(data(s)).status, status)
            s.close()
    shutil.rmtree(temp)


def unload_waits_for_frames_of_the_model_before():
    """Frames that the replaced model still computes are answered, even if the new one is unloaded meanwhile."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    path = os.path.join(temp, "m.onnx")
    shutil.copy(DIGITS, path)
    slow = {"models": [{"name": "a", "path": path, "kernels": "__ref"}, {"name": "b", "path": DIGITS}]}
    with Daemon(config=slow) as d, pyclient.Connection(d.frames_path) as c:
        for _ in range(10):
            s = pyclient.Stream(c, 1, "a", credits=3, inline=True)
            for _ in range(3):
                s.submit(data(s))
            c.ping()
            shutil.copy(DIGITS, path + ".new")
            os.rename(path + ".new", path)
            d.call("Reload")
            d.call("Unload", {"name": "a"})
            for number in range(1, 4):
                r = s.result()
                equal((r.frame, r.status), (number, "ok"), r.text)
            equal(s.infer(data(s)).status, "unavailable")
            s.close()
            d.call("Reload")
            while select.select([d.notify], [], [], 0)[0]:
                d.read_notify()
    shutil.rmtree(temp)


def reload_sets_a_plan_that_a_retune_held_back():
    """A plan that could not be set during a retune is not taken for set: the next reload sets it."""
    model = {"name": "a", "path": DIGITS}
    config = {"models": [model], "planner": {"frames": 10000, "measure_ms": 600}}
    with Daemon(config=config) as d, d.connect() as v:
        plan = "0-%d@%s" % (d.status()["models"][0]["units"] - 1, d.status()["eps"][0]["name"])
        v.send("io.piped.Retune")
        d.wait_state("tuning")
        d.write_config(dict(config, models=[dict(model, plan=plan)]))
        d.call("Reload")
        check("reload again" in d.log(), d.log())
        v.receive()
        d.wait_state("serving")
        d.call("SetPlan", {"plan": "0-1@{0}|2-{1}@{0}".format(plan.split("@")[1], plan.split("-")[1].split("@")[0])})
        d.call("Reload")
        equal(d.call("GetPlan")["plan"], plan)


def reload_sees_sidecars_and_names_what_waits():
    """New labels beside an unchanged model count as a change; keys that a reload cannot apply are named."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    path = os.path.join(temp, "m.onnx")
    shutil.copy(DIGITS, path)
    config = {"models": [{"name": "a", "path": path}]}

    def labels():
        return d.call("Models")["models"][0]["labels"]

    with Daemon(config=config) as d:
        equal(labels(), [])
        with open(os.path.join(temp, "m.sidecar.json"), "w", encoding="utf-8") as f:
            json.dump({"labels": ["n%d" % i for i in range(10)]}, f)
        d.write_config(dict(config, spin_us=7, eps=[{"name": "x", "cpus": "0"}]))
        d.call("Reload")
        equal(labels()[3], "n3")
        for key in ("spin_us", "eps"):
            check(key + " takes effect at the next start" in d.log(), d.log())
        check("drain_ms takes" not in d.log(), d.log())
    shutil.rmtree(temp)


def reload_sees_the_files_that_a_sidecar_names():
    """Labels and an alphabet in files of their own count, too."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    path = os.path.join(temp, "m.onnx")
    relu(path, 1, (2, 3))

    def put(name, text):
        with open(os.path.join(temp, name + ".new"), "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(os.path.join(temp, name + ".new"), os.path.join(temp, name))

    def described():
        with pyclient.Connection(d.frames_path, features=pyclient.FEATURE_DESCRIBED) as c:
            c.send(pyclient.OPEN, pyclient.open_payload("a"), stream=1)
            said = json.loads(c.expect(pyclient.DESCRIBED)[1])
            return said["labels"], said["output"]["alphabet"]

    put("labels.txt", "one\ntwo\n")
    put("letters.txt", "a\nb\n")
    put("m.sidecar.json", json.dumps({"labels_file": "labels.txt",
                                      "output": {"decode": "ctc", "alphabet_file": "letters.txt"}}))
    with Daemon(config={"models": [{"name": "a", "path": path}]}) as d:
        equal(described(), (["one", "two"], ["a", "b"]))
        put("labels.txt", "uno\ndue\n")
        d.call("Reload")
        equal(described(), (["uno", "due"], ["a", "b"]))
        put("letters.txt", "c\nd\n")
        d.call("Reload")
        equal(described(), (["uno", "due"], ["c", "d"]))
        loaded = d.log().count("model a from ")
        d.call("Reload")
        equal(d.log().count("model a from "), loaded, "it was loaded again, and nothing had changed")
    shutil.rmtree(temp)


if __name__ == "__main__":
    main([reload_by_signal, reload_with_a_full_notify_socket, reload_changes_models_under_clients,
          reload_tells_clients_of_another_shape, unload_waits_for_frames_of_the_model_before,
          reload_sets_a_plan_that_a_retune_held_back, reload_sees_sidecars_and_names_what_waits,
          reload_sees_the_files_that_a_sidecar_names])
