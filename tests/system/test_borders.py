#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Borders between boards in fewer bytes: judged by examples in the real daemon, kept, in routes and status, and off again.

usage: test_borders.py [CASE]...
"""
import array
import fcntl
import json
import os
import random
import shutil
import socket

import kept_files
import pyclient as pc
from daemon import DIGITS, Daemon, VarlinkError, check, equal, main
from fake_link import FakeLink
from test_elsewhere_auto import Planned

UP = {"b2": True}
LAST = 11  # unit of the model


class Spread:
    """A daemon whose model goes over boards, and its piped-link."""

    def __init__(self, boards="0-5@here|6-%d@b2" % LAST, state_dir=None):
        self.d = Daemon(state_dir=state_dir)
        self.model = os.path.join(self.d.temp, "model.onnx")
        shutil.copy(DIGITS, self.model)
        shutil.copy(DIGITS.replace(".onnx", ".sidecar.json"), self.model.replace(".onnx", ".sidecar.json"))
        self.d.write_config({"models": [{"name": "digits", "path": self.model, "boards": boards},
                                        {"name": "worker", "path": DIGITS}],
                             "boards": {"frames_socket": os.path.join(self.d.runtime_dir, "link.sock")}})

    def __enter__(self):
        self.d.__enter__()
        self.link = FakeLink(self.d, "worker").start()
        return self

    def __exit__(self, *exc):
        if exc[0] is None:
            self.link.die()
        return self.d.__exit__(*exc)

    def route(self):
        return next(m for m in self.d.status()["models"] if m["name"] == "digits")["route"]

    def wanted(self, other_than=None):
        """The route that piped-link is told. Return: its number, and how its hops send."""
        r = self.link.wait_route("digits", other_than=other_than)
        self.link.report(UP, ready=[r])
        return r["number"], [h["encoding"] for h in r["hops"]]


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)


def folder(d, frames):
    path = os.path.join(d.temp, "examples")
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path)
    for i, f in enumerate(frames):
        put(os.path.join(path, "%03d.f32" % i), f.tobytes())
    return path


def frame(rng):
    return array.array("f", [rng.random() for _ in range(256)])


def close_calls(d, count):
    """Inputs on the border between two classes: as near as floats come."""
    rng = random.Random(3)
    with pc.Connection(d.frames_path) as c:
        s = pc.Stream(c, model="worker")

        def top(x):
            y = array.array("f", s.infer(x.tobytes()).output)
            return y.index(max(y))

        found = []
        while len(found) < count:
            a, b = frame(rng), array.array("f", [v * rng.random() for v in frame(rng)])
            if top(a) == top(b):
                continue
            of = top(a)
            for _ in range(22):
                middle = array.array("f", [(x + y) / 2 for x, y in zip(a, b)])
                a, b = (middle, b) if top(middle) == of else (a, middle)
            found.append(a)
    return found


def is_judged_kept_and_off_again():
    with Spread() as t:
        rng = random.Random(1)
        path = folder(t.d, [frame(rng) for _ in range(12)])
        t.link.report(UP)
        first, encodings = t.wanted()
        equal(encodings, ["f32", "f32"])
        equal(t.route()["borders"], None)
        v = t.d.pipectl("borders", "digits", "--calibrate", path)
        equal((v["encoding"], v["serves"], v["allowed"], v["judged"], v["left_out"], v["bound"]),
              ("f16", "f16", True, 12, 0, 0.98))
        check(v["agreement"] >= 0.98 and 0 < v["error_mean"] <= v["error_most"] < 0.05, v)
        second, encodings = t.wanted(other_than=first)
        equal(encodings, ["f16", "f32"], "the answer is never encoded")
        shown = t.route()["borders"]
        check(all(shown[k] == v[k] or abs(shown[k] - v[k]) < 1e-9 for k in shown), shown, v)
        text = t.d.pipectl("status", as_json=False)
        check("borders go as f16: with f16 100.00 % of 12 examples agree (required: 98.00)" in text, text)
        v = t.d.pipectl("borders", "--model", "digits", "--calibrate", path, "--encoding", "i8", "--bound", "0")
        equal((v["encoding"], v["serves"], v["bound"]), ("i8", "i8", 0))
        third, encodings = t.wanted(other_than=second)
        equal(encodings, ["i8", "f32"])
        kept = os.path.join(t.d.state_dir, "borders-digits.v2.json")
        check(os.path.exists(kept), os.listdir(t.d.state_dir))
        with Spread(state_dir=t.d.state_dir) as again:
            again.link.report(UP)
            equal(again.wanted()[1], ["i8", "f32"], "a restart forgot it")
            equal(again.route()["borders"]["judged"], 12)
        equal(t.d.pipectl("borders", "--off", as_json=False), "borders of digits go between boards as they are\n")
        equal(t.wanted(other_than=third)[1], ["f32", "f32"])
        equal(t.route()["borders"], None)
        check(not os.path.exists(kept), "the file is still there")
        t.d.pipectl("borders", "--off")


def a_verdict_counts_for_its_file_alone():
    with Spread() as t:
        rng = random.Random(1)
        t.d.pipectl("borders", "--calibrate", folder(t.d, [frame(rng)]), "--bound", "0")
        t.link.report(UP)
        first, encodings = t.wanted()
        equal(encodings, ["f16", "f32"])
        with open(t.model, "rb") as f:
            good = f.read()
        put(t.model, good + b"\x32\x00")  # the same model, another file
        try:
            t.d.pipectl("borders", "--calibrate", folder(t.d, [frame(rng)]), expect=1)
            equal(t.route()["borders"]["judged"], 1, "a file that is not served was judged")
            t.d.call("Reload")
            equal(t.route()["borders"], None)
            t.link.report(UP)
            equal(t.wanted(other_than=first)[1], ["f32", "f32"])
            check("borders go between boards as they are: the stored verdict is for a different file" in t.d.log(), t.d.log())
        finally:
            put(t.model, good)
        t.d.call("Reload")
        t.link.report(UP)
        equal(t.route()["borders"]["encoding"], "f16", "it is the judged file again")


def too_few_that_agree_change_nothing():
    with Spread() as t:
        easy = [frame(random.Random(i)) for i in range(4)]
        t.link.report(UP)
        hard = close_calls(t.d, 12)
        path = folder(t.d, hard)
        v = t.d.pipectl("borders", "--calibrate", path, "--encoding", "i8", "--bound", "100", expect=1)
        check(not v["allowed"] and v["agreement"] < 1 and v["serves"] == "f32", v)
        first, encodings = t.wanted()
        equal(encodings, ["f32", "f32"])
        text = t.d.pipectl("status", as_json=False)
        check("borders go as f32: with i8 " in text, text)
        t.d.pipectl("borders", "--calibrate", folder(t.d, easy))
        second, encodings = t.wanted(other_than=first)
        equal(encodings, ["f16", "f32"])
        path = folder(t.d, hard)
        v = t.d.pipectl("borders", "--calibrate", path, "--encoding", "i8", "--bound", "100", expect=1)
        equal((v["encoding"], v["allowed"], v["serves"]), ("i8", False, "f16"), "that i8 is refused says nothing of f16")
        equal(t.route()["borders"]["encoding"], "f16")
        t.d.pipectl("borders", "--calibrate", path, "--encoding", "i8", "--bound", "0")
        third, encodings = t.wanted(other_than=second)
        equal(encodings, ["i8", "f32"])
        t.d.pipectl("borders", "--calibrate", path, "--encoding", "i8", "--bound", "100", expect=1)
        equal(t.wanted(other_than=third)[1], ["f32", "f32"], "i8 itself is refused now")


class Tight(Planned):
    """Boards that cannot hold the whole model."""

    def __init__(self, memory):
        super().__init__(boards=("b2",))
        self.memory = memory

    def board(self, name):
        return dict(super().board(name), memory_bytes=self.memory)


def planned_routes_send_so_too():
    def sends(route):
        return {h["encoding"] for h in route["hops"][:-1]}, route["hops"][-1]["encoding"]

    memory, first = 1e6, None
    while not first:
        with Tight(memory) as t:
            route = t.until(lambda r: r["hops"] or "fits in the memory" in t.shown()["why"], "an answer")
            if not route["hops"]:
                memory *= 1.15
                continue
            check(len(route["hops"]) > 1, "each holds the whole model with", memory, route)
            first = route["number"]
            equal(sends(route), ({"f32"}, "f32"))
            t.ready(route)
            t.d.pipectl("borders", "digits", "--calibrate", folder(t.d, [frame(random.Random(1))]), "--bound", "0")
            route = t.until(lambda r: r["number"] != first, "another route")
            equal(sends(route), ({"f16"}, "f32"))
            t.ready(route)
            t.d.pipectl("borders", "digits", "--off")
            equal(sends(t.until(lambda r: r["number"] != route["number"], "one more")), ({"f32"}, "f32"))


def kept_files_may_be_anything():
    with Spread() as t:
        t.d.pipectl("borders", "--calibrate", folder(t.d, [frame(random.Random(1))]), "--bound", "0")
        kept = os.path.join(t.d.state_dir, "borders-digits.v2.json")
        good = kept_files.read(kept)
        for bad in (b"", b"{", b"[]", *(dict(good, **change) for change in (
                {"encoding": "f8"}, {"encoding": 1}, {"agreement": 2}, {"agreement": None}, {"bound": -1}, {"judged": -1},
                {"judged": 1 << 40}, {"model": "x"}, {"model": "0" * 64}, {"version": 9}))):
            kept_files.write(kept, bad)
            with Spread(state_dir=t.d.state_dir) as again:
                equal(again.route()["borders"], None, bad)
                check("borders go between boards as they are" in again.d.log(), again.d.log())


def memfd(data):
    fd = os.memfd_create("examples", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def send(v, parameters, data=None):
    fds = [memfd(data)] if data else []
    socket.send_fds(v.sock, [json.dumps({"method": "io.piped.JudgeBorders", "parameters": parameters}).encode() + b"\0"], fds)
    for fd in fds:
        os.close(fd)


def bad_calls_are_refused():
    def refused(error, text, parameters, data=None):
        with t.d.connect() as v:
            send(v, parameters, data)
            try:
                check(False, parameters, "went through", v.receive())
            except VarlinkError as e:
                equal(e.error.split(".")[-1], error, e.parameters)
                check(text in str(e.parameters), e.parameters)

    with Spread() as t:
        data = frame(random.Random(1)).tobytes()
        one = [{"name": "a.f32", "bytes": len(data)}]
        for encoding in ("f32", "f8", ""):
            refused("InvalidParameter", "encoding", {"examples": one, "encoding": encoding}, data)
        refused("InvalidParameter", "agreement", {"examples": one, "agreement": 1.5}, data)
        refused("NotFound", "nobody", {"model": "nobody", "examples": one}, data)
        refused("Unsupported", "no file descriptor", {"examples": one})
        refused("Unsupported", "fewer bytes", {"examples": one + one}, data)
        refused("Unsupported", "4 bytes", {"examples": [{"name": "a.f32", "bytes": 4}]}, b"abcd")
        t.d.call("Load", {"name": "part#0-5", "path": DIGITS})
        refused("Unsupported", "segment", {"model": "part#0-5", "examples": one}, data)
        t.d.pipectl("quantize", "worker", "--calibrate", folder(t.d, [frame(random.Random(i)) for i in range(4)]), "--bound",
                    "0")
        refused("Unsupported", "quantised", {"model": "worker", "examples": one}, data)
        for wrong in ([], ["--off", "--calibrate", t.d.temp], ["--off", "--encoding", "i8"], ["--calibrate", t.d.temp, "--bound",
                                                                                              "101"]):
            t.d.pipectl("borders", *wrong, expect=2)
        equal(t.route()["borders"], None)


def the_loop_goes_on_and_one_runs_at_a_time():
    data = frame(random.Random(1)).tobytes()
    count = 2000
    with Spread() as t:
        while True:
            with t.d.connect() as first, t.d.connect() as second:
                send(first, {"examples": count * [{"name": "a.f32", "bytes": len(data)}]}, count * data)
                t.d.status()
                send(second, {"examples": [{"name": "a.f32", "bytes": len(data)}]}, data)
                got = []
                for v in (first, second):
                    try:
                        got.append(v.receive()["verdict"]["judged"])
                    except VarlinkError as e:
                        got.append(e.error)
            if "io.piped.Busy" in got:
                check(1 in got or count in got, got)
                break
            check(count < 16000, "never two at a time", got)
            count *= 2


def ends_with_the_daemon():
    data = frame(random.Random(1)).tobytes()
    with Spread() as t, t.d.connect() as v:
        send(v, {"examples": 8000 * [{"name": "a.f32", "bytes": len(data)}]}, 8000 * data)
        t.d.status()


LISTED = [is_judged_kept_and_off_again, a_verdict_counts_for_its_file_alone, too_few_that_agree_change_nothing,
          planned_routes_send_so_too, kept_files_may_be_anything, bad_calls_are_refused,
          the_loop_goes_on_and_one_runs_at_a_time, ends_with_the_daemon]

if __name__ == "__main__":
    main(LISTED)
