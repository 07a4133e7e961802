#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Quantising in the real daemon: calibrated by examples that the client sends, judged by others, kept, and off again."""
import json
import os
import random
import socket
import struct
import subprocess
import array
import fcntl

import kept_files
import pyclient
from daemon import DIGITS, PIPECTL, SHARED, Daemon, VarlinkError, check, equal, main
from example_pictures import folder, picture
from page_reader import Page


def clear(path):
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))


def put(path, name, data):
    with open(os.path.join(path, name), "wb") as f:
        f.write(data)


def served(d):
    """What the daemon says of its model."""
    return d.call("Models")["models"][0]


def answers(d, path):
    raw = os.path.join(d.temp, "raw.f32")
    out = []
    for name in sorted(os.listdir(path)):
        d.pipectl("infer", "--raw", raw, os.path.join(path, name))
        values = array.array("f")
        with open(raw, "rb") as f:
            values.frombytes(f.read())
        out.append(values)
    return out


def near(a, b):
    for x, y in zip(a, b):
        most = max(abs(v) for v in x)
        check(max(abs(p - q) for p, q in zip(x, y)) <= 0.25 * most, list(x), list(y))


def is_quantised_kept_and_off_again():
    with Daemon() as d:
        path = folder(d)
        plain = served(d)
        equal(plain["integers"], 0)
        before = answers(d, path)
        with pyclient.Connection(d.frames_path) as c:
            s = pyclient.Stream(c, inline=True)
            equal(s.infer(b"\0" * s.input_bytes).status, "ok")
            q = d.pipectl("quantize", "digits", "--calibrate", path, "--bound", "90")
            equal(s.infer(b"\0" * s.input_bytes).status, "ok", "the client lost its model")
        equal((q["serves"], q["calibrated"], q["judged"], q["held_out"], q["left_out"]), (True, 12, 12, True, 0))
        check(q["agreement"] >= 0.9 and 0 <= q["error_mean"] <= q["error_most"] < 0.2, q)
        check(0 < q["integers"] <= q["products"], q)
        equal((q["f32_ms"], q["int8_ms"]), (None, None), "nothing was to be measured")
        whole = served(d)
        equal(whole["integers"], q["integers"])
        event = d.pipectl("history")[-1]
        equal((event["cause"], event["outcome"]), ("quantise", "serving"))
        check("%d operators on integers" % q["integers"] in event["detail"], event)
        check(whole["hash"] != plain["hash"], "the quantised model is the model")
        quantised = answers(d, path)
        check(quantised != before, "it computes as before")
        near(before, quantised)
        d.stop()
        with Daemon(state_dir=d.state_dir) as again:
            equal(served(again)["hash"], whole["hash"], "a restart forgot it")
            equal(answers(again, path), quantised)
            equal(again.pipectl("quantize", "digits", "--off", as_json=False), "digits is served from its file, not quantised\n")
            equal(served(again)["hash"], plain["hash"])
            equal(answers(again, path), before)
            event = again.pipectl("history")[-1]
            equal(event["cause"], "quantise")
            check("integers" not in event["detail"], event)
        with Daemon(state_dir=d.state_dir) as third:
            equal(served(third)["hash"], plain["hash"], "a restart forgot that it is off")


def speed_and_ways_of_finding_ranges():
    with Daemon() as d:
        path = folder(d)
        for more in (["--kl"], ["--min-max", "--symmetric"], ["--kl", "--symmetric"]):
            q = d.pipectl("quantize", "--calibrate", path, "--bound", "0", *more)
            equal((q["serves"], q["method"]), (True, "kl" if "--kl" in more else "min-max"))
        q = d.pipectl("quantize", "--calibrate", path, "--bound", "0", "--ms", "100", expect=None)
        check(q["f32_ms"] > 0 and q["int8_ms"] > 0, q)
        equal(q["serves"], q["integers"] > 0 and q["int8_ms"] < q["f32_ms"], q)
        check(all(k["why"] == "slower" for k in q["kept"]), q["kept"])


def operators_stay_f32():
    with Daemon() as d:
        path = folder(d)
        names = [u["name"] for u in d.call("Units")["units"]]
        q = d.pipectl("quantize", "--calibrate", path, "--bound", "0", "--keep", names[0])
        equal(q["kept"], [{"op": names[0], "why": "asked"}])
        equal(q["integers"], q["products"] - 1)
        d.pipectl("quantize", "--calibrate", path, "--keep", "nobody", expect=1)
        equal(served(d)["integers"], q["integers"], "what was refused changed something")
        most = [a for n in names[:-1] for a in ("--keep", n)]
        few = d.pipectl("quantize", "--calibrate", path, *most)
        check(1 <= few["integers"] <= few["products"] - len(names) + 1, few)
        r = d.pipectl("quantize", "--calibrate", path, *most, "--keep", names[-1], expect=1)
        equal((r["serves"], r["why"]), (False, "every operator stays f32"))


def the_bound_keeps_what_costs_most():
    """A set that is calibrated far too small: quantising all of it cannot agree."""
    with Daemon() as d:
        path = folder(d)
        size = served(d)["input"]["bytes"]
        clear(path)
        rng = random.Random(9)
        for i in range(16):
            scale = 0.02 if i % 2 == 0 else 1
            put(path, "%02d.f32" % i, struct.pack("<%df" % (size // 4), *(rng.random() * scale for _ in range(size // 4))))
        bad = d.pipectl("quantize", "--calibrate", path, "--bound", "0")
        good = d.pipectl("quantize", "--calibrate", path, "--bound", "100", expect=None)
        check(bad["error_mean"] > 0.1, bad)
        if good["serves"]:
            equal(good["agreement"], 1.0)
            check(good["integers"] < bad["integers"] or bad["agreement"] == 1.0, good)
            check(all(k["why"] == "accuracy" for k in good["kept"]), good)
        else:
            check("within the bound" in good["why"] or "every operator stays f32" in good["why"], good)


def no_worse(a, b):
    return a["ms"] <= b["ms"] and a["packed_bytes"] + a["frame_bytes"] <= b["packed_bytes"] + b["frame_bytes"] and \
        a["agreement"] >= b["agreement"] and a["error"] <= b["error"]


def one_front_of_time_accuracy_and_memory():
    """Listing changes nothing; a choice of it serves, also after a restart, until it is turned off."""
    with Daemon() as d:
        path, page = folder(d), os.path.join(d.temp, "front.html")
        plain = served(d)
        q = d.pipectl("optimise", "--front", "--calibrate", path, "--ms", "80", "--page", page)
        front = q["front"]
        equal((q["serves"], q["taken"], served(d)["hash"]), (False, None, plain["hash"]))
        check(len(front) > 1 and any(p["integers"] == 0 for p in front) and any(p["integers"] for p in front), front)
        equal([p["ms"] for p in front], sorted(p["ms"] for p in front))
        check(not any(no_worse(a, b) for a in front for b in front if a is not b), front)
        exact = max(front, key=lambda p: (p["integers"] == 0 and p["inexact"] == 0, -p["error"]))
        equal((exact["agreement"], exact["error"]), (1, 0))
        equal(sorted(Page(page).charts), ["accuracy", "memory"])
        text = d.pipectl("optimise", "--at-most-lost", "100%", "--calibrate", path, "--ms", "80", as_json=False)
        check("  * serves now" in text and text.count("\n* ") == 1, text)
        now = served(d)
        equal(d.pipectl("history")[-1]["cause"], "quantise")
        d.stop()
        with Daemon(state_dir=d.state_dir) as again:
            equal((served(again)["hash"], served(again)["integers"]), (now["hash"], now["integers"]))
            few = again.pipectl("optimise", "--at-most-lost", "0", "--algorithm", "q-learning", "--calibrate", path,
                                "--ms", "80")
            taken = few["front"][few["taken"]]
            equal((taken["agreement"], taken["expected"]), (1, 1))
            equal(served(again)["integers"], taken["integers"])
            check(all(k["why"] == "front" for k in few["kept"]), few["kept"])
            again.pipectl("quantize", "digits", "--off")
            equal(served(again)["hash"], plain["hash"])


def fronts_need_examples():
    with Daemon() as d:
        for wrong in (["--front"], ["--at-most-lost", "1"], ["--calibrate", folder(d), "--at-most-lost", "1 %"],
                      ["--calibrate", folder(d), "--at-most-lost", "-1"]):
            d.pipectl("optimise", *wrong, expect=2)
        with d.connect() as c:
            for wrong in ({"at_most_lost": 1.5}, {"algorithm": "best"}):
                try:
                    c.call("io.piped.Quantise", {"examples": [], **wrong})
                except VarlinkError as e:
                    equal(e.error, "org.varlink.service.InvalidParameter")


def one_example_does_both():
    with Daemon() as d:
        path = folder(d, count=1)
        text = d.pipectl("quantize", "--calibrate", path, "--bound", "0", as_json=False)
        check("calibrated and judged on the same example" in text, text)


def examples_that_do_not_fit_are_said():
    def failing(*args):
        r = subprocess.run([PIPECTL, "--socket", d.control_path, "quantize", *args], capture_output=True, text=True,
                           check=False)
        equal(r.returncode, 1, r.stdout + r.stderr)
        return r.stderr

    with Daemon() as d:
        path = folder(d, count=0)
        size = served(d)["input"]["bytes"]
        check("no picture" in failing("--calibrate", path))
        check("No such file" in failing("--calibrate", path + "-none"))
        put(path, "short.f32", b"\0" * (size - 4))
        check("%d bytes where the model's input has %d" % (size - 4, size) in failing("--calibrate", path))
        put(path, "nan.f32", struct.pack("<f", float("nan")) * (size // 4))
        clear(path)
        for name, value in (("nan", float("nan")), ("infinity", float("inf"))):
            put(path, name + ".f32", struct.pack("<f", value) * (size // 4))
        check("NaN or infinity" in failing("--calibrate", path))
        clear(path)
        put(path, "text.jpg", b"no picture at all")
        check("skipping %s: " % os.path.join(path, "text.jpg") in failing("--calibrate", path))
        folder(d, count=4)
        os.symlink("nowhere", os.path.join(path, "broken.ppm"))
        put(path, "infinity.f32", struct.pack("<f", float("inf")) * (size // 4))
        text = d.pipectl("quantize", "--calibrate", path, "--bound", "0", as_json=False)
        check("1 left out; infinity.f32" in text, text)
        clear(path)
        for i in range(4):
            put(path, "%d.f32" % i, b"\0" * size)  # every range but of the biases is nothing
        q = d.pipectl("quantize", "--calibrate", path, "--bound", "0")
        check(q["serves"] and q["zeros"] > 0, q)
        equal(d.status()["state"], "serving")


def kept_files_may_be_anything():
    with Daemon() as d:
        path = folder(d)
        kept = os.path.join(d.state_dir, "calibration-digits.v2.json")
        d.pipectl("quantize", "--calibrate", path, "--bound", "0")
        with open(kept, "rb") as f:
            good = f.read()
        d.stop()
        for content, why in ((b"", "checksum"), (b"{", "checksum"), (b"[]", "checksum"), (good[:len(good) // 2], "checksum"),
                             ({"version": 2, "ranges": {"x": [2, 1]}}, "not a calibration"),
                             (dict(json.loads(good), model="0" * 64), "of another model")):
            kept_files.write(kept, content)
            with Daemon(state_dir=d.state_dir) as again:
                equal(served(again)["integers"], 0, content[:40] if isinstance(content, bytes) else content)
                check("not quantised as before" in again.log() and why in again.log(), again.log())


def a_configured_calibration_serves():
    with Daemon() as d:
        path = folder(d)
        ranges = os.path.join(d.temp, "ranges.json")
        q = d.pipectl("quantize", "--calibrate", path, "--bound", "0", "--write", ranges)
        model = {"name": "digits", "path": DIGITS, "calibration": ranges}
        with Daemon(config={"models": [{"name": "digits", "path": DIGITS}]}) as c:
            equal(served(c)["integers"], 0)
            c.write_config({"models": [model]})
            c.pipectl("reload")
            equal(served(c)["integers"], q["integers"])
            equal(served(c)["calibration"], ranges)
            first = served(c)["hash"]
            c.pipectl("reload")
            equal(served(c)["hash"], first)
            c.pipectl("quantize", "--off", expect=1)
            c.pipectl("quantize", "--calibrate", path, expect=1)
            d.pipectl("quantize", "--calibrate", path, "--bound", "0", "--symmetric", "--write", ranges)
            c.pipectl("reload")
            check(served(c)["hash"] != first, "a changed file was not read again")
            with open(ranges, "w", encoding="utf-8") as f:
                f.write("{")
            c.pipectl("reload", expect=1)
            check(served(c)["integers"] > 0, "a reload that failed changed something")
            c.write_config({"models": [{"name": "digits", "path": DIGITS}]})
            c.pipectl("reload")
            equal(served(c)["integers"], 0)
            c.write_config({"models": [dict(model, calibration="/nonexistent")]})
            r = subprocess.run([c.exe, "--check-config", "--config", c.config_path], capture_output=True, text=True, check=False)
            equal(r.returncode, 78, r.stderr)
            check("calibration" in r.stderr, r.stderr)


def memfd(data, seals=True):
    fd = os.memfd_create("examples", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def calls_are_checked():
    def ask(parameters, *fds):
        with d.connect() as v:
            message = json.dumps({"method": "io.piped.Quantise", "parameters": parameters}).encode() + b"\0"
            socket.send_fds(v.sock, [message], list(fds))
            for fd in fds:
                os.close(fd)
            return v.receive()["quantised"]

    def refused(error, text, parameters, *fds):
        try:
            ask(parameters, *fds)
        except VarlinkError as e:
            equal(e.error.split(".")[-1], error, e.parameters)
            check(text in str(e.parameters), e.parameters)
            return
        check(False, parameters, "went through")

    with Daemon() as d:
        data = picture(random.Random(1))
        one = [{"name": "a", "bytes": len(data)}]
        refused("Unsupported", "no file descriptor", {"examples": one})
        refused("Unsupported", "sealed", {"examples": one}, memfd(data, seals=False))
        refused("Unsupported", "sealed", {"examples": one}, os.open(DIGITS, os.O_RDONLY))
        refused("Unsupported", "sealed", {"examples": one}, os.pipe()[0])
        refused("Unsupported", "no bytes", {"examples": one}, memfd(b""))
        refused("Unsupported", "fewer bytes than it says", {"examples": [{"name": "a", "bytes": len(data) + 1}]}, memfd(data))
        refused("Unsupported", "fewer bytes than it says", {"examples": [{"name": "a", "bytes": -1}]}, memfd(data))
        refused("Unsupported", "fewer bytes than it says", {"examples": [7]}, memfd(data))
        refused("Unsupported", "no examples", {"examples": []}, memfd(data))
        refused("InvalidParameter", "method", {"examples": one, "method": "luck"}, memfd(data))
        refused("InvalidParameter", "agreement", {"examples": one, "agreement": 2.0}, memfd(data))
        refused("InvalidParameter", "ms", {"examples": one, "ms": -1}, memfd(data))
        refused("InvalidParameter", "keep", {"examples": one, "keep": [1]}, memfd(data))
        refused("NotFound", "nobody", {"model": "nobody", "off": True})
        fds = [memfd(data) for _ in range(5)]  # the last one counts; none is left open
        check(ask({"examples": one, "agreement": 0.0}, *fds)["serves"])
        open_fds = os.listdir("/proc/%d/fd" % d.process.pid)
        for _ in range(8):
            refused("NotFound", "nobody", {"model": "nobody", "off": True}, memfd(data))
        d.status()
        check(len(os.listdir("/proc/%d/fd" % d.process.pid)) <= len(open_fds) + 1, "descriptors are left open")
        d.pipectl("quantize", expect=2)
        d.pipectl("quantize", "--off", "--calibrate", d.temp, expect=2)
        d.pipectl("quantize", "--calibrate", d.temp, "--bound", "101", expect=2)


def ends_with_the_daemon():
    data = picture(random.Random(1))
    with Daemon() as d, d.connect() as v:
        fd = memfd(2 * data)
        call = {"examples": 2 * [{"name": "a", "bytes": len(data)}], "ms": 600000}
        socket.send_fds(v.sock, [json.dumps({"method": "io.piped.Quantise", "parameters": call}).encode() + b"\0"], [fd])
        os.close(fd)
        d.status()


def photographs_keep_their_classes():
    """Networks that others trained; the pictures are in the shared folder. MobileNet needs a part of its work in f32; its
    speed is not measured, so that its answer is the same everywhere."""
    real = os.path.join(SHARED, "real")
    if "PIPED_TEST_SANITIZER" in os.environ:
        return "a minute of the same code, whose figures the plain build checks"
    if not os.path.isdir(real):
        return "there is no %s" % real
    with open(os.path.join(real, "preproc.tsv"), encoding="utf-8") as f:
        keys, *lines = [line.rstrip("\n").split("\t") for line in f]
    table = {row[0]: dict(zip(keys, row)) for row in lines}
    with Daemon() as d:
        for name, part, *options in (("squeezenet1_1", 3 / 4), ("resnet8_cifar10_fp32", 3 / 4),
                                     ("mobilenet_v1_0.25_128_fp32", 1 / 3, "--ms", "0")):
            row = table[name]
            path = os.path.join(d.temp, name)
            os.symlink(os.path.join(real, "models", name + ".onnx"), path + ".onnx")
            with open(path + ".sidecar.json", "w", encoding="utf-8") as f:
                json.dump({"preprocess": {"mean": [float(v) for v in row["mean_in_channel_order"].split(",")],
                                          "std": float(row["divide_by"]), "colour": row["channels"].lower()}}, f)
            d.call("Load", {"name": name, "path": path + ".onnx"})
            q = d.pipectl("quantize", name, "--calibrate", os.path.join(real, "images"), *options)
            equal((q["serves"], q["calibrated"], q["judged"], q["left_out"]), (True, 8, 7, 0), q)
            check(q["agreement"] >= 0.98 and q["integers"] >= q["products"] * part, q)


if __name__ == "__main__":
    main([is_quantised_kept_and_off_again, speed_and_ways_of_finding_ranges, operators_stay_f32,
          the_bound_keeps_what_costs_most, one_front_of_time_accuracy_and_memory,
          fronts_need_examples, one_example_does_both, examples_that_do_not_fit_are_said,
          kept_files_may_be_anything, a_configured_calibration_serves, calls_are_checked,
          ends_with_the_daemon, photographs_keep_their_classes])
