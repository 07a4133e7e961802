#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Choosing primitives in the real daemon: measured at the first load, kept, made anew on request without losing a frame."""
import glob
import json
import os
import struct

import kept_files
import pyclient
from daemon import Daemon, VarlinkError, check, equal, main
from page_reader import Page

EPS = {"kernels": {"measure_ms": 400}, "eps": [{"name": "left", "cpus": "0"}, {"name": "right", "cpus": "0"}]}


def kept_file(d):
    files = glob.glob(os.path.join(d.state_dir, "choice-*.v2.json"))
    equal(len(files), 1, files)
    return files[0]


def primitives(d):
    return [u["primitives"] for u in d.call("Units")["units"]]


def loaded(d):
    return d.call("History")["events"][-1]["detail"]


def is_measured_once_and_kept():
    with Daemon(config=EPS) as d:
        check("primitives measured" in loaded(d), loaded(d))
        first = primitives(d)
        for unit in first:
            equal(sorted(unit), ["left", "right"])
            equal(unit["left"], unit["right"], "the same core has two choices")
        with open(kept_file(d), encoding="utf-8") as f:
            state = json.load(f)
        equal(list(state["kinds"]), ["left"], "equal kinds are kept once")
        cost = d.call("Costs")["problem"]
        check(cost, "costs are known before a frame was served")
        with Daemon(config=EPS, state_dir=d.state_dir) as again:
            check("primitives measured" not in loaded(again), loaded(again))
            equal(primitives(again), first)


def what_is_no_choice_is_measured_anew():
    with Daemon(config=EPS) as d:
        path = kept_file(d)
        with open(path, "rb") as f:
            good = f.read()
        d.stop()
        state, wrong_row, negative = (json.loads(good) for _ in range(3))
        wrong_row["kinds"]["left"][0][0] = "conv__nobody"
        negative["kinds"]["left"][0][2] = -1
        senseless = "not a saved choice of primitives; measuring"
        for content, said in [(t, "is damaged: it does not end in a checksum; kept as") for t in (
                b"", b"{", b"[]", b"\0" * 100, good[:len(good) // 2])] + [
                (good.replace(b"conv", b"gonv"), "is damaged: its checksum is wrong; kept as"),
                (dict(state, identity="0" * 64), "it is of another model; kept as"),
                (dict(state, version=9), "another version than 2: measuring"),
                (dict(state, kinds=3), senseless), (wrong_row, senseless), (negative, senseless)]:
            kept_files.write(path, content)
            with Daemon(config=EPS, state_dir=d.state_dir) as again:
                check("primitives measured" in loaded(again), (content[:60] if isinstance(content, bytes) else content))
                check(said in again.log(), (said, again.log()))
            equal(kept_files.read(path)["version"], 2, "it was not kept anew")


def optimising_loses_nothing():
    with Daemon(config=EPS) as d, pyclient.Connection(d.frames_path) as c, d.connect() as v:
        s = pyclient.Stream(c, inline=True)
        frame = b"\0" * s.input_bytes
        wanted = s.infer(frame).output
        v.send("io.piped.Optimise", {"ms": 300})
        for _ in range(200):
            r = s.infer(frame)
            equal(r.status, "ok")
            equal(len(r.output), len(wanted))
        choice = v.receive()["choice"]
        equal((choice["algorithm"], choice["objective"], choice["front"]), ("dijkstra", "latency", []))
        equal([k["ep"] for k in choice["kinds"]], ["left", "right"])
        check(all(k["ms"] > 0 and k["states"] > 0 for k in choice["kinds"]), choice)
        equal(s.infer(frame).status, "ok")
        equal(len(d.call("Models")["models"]), 1)


def searches_bounds_and_the_front():
    with Daemon(config=EPS) as d:
        for algorithm in ["dijkstra", "a-star", "q-learning", "ds+", "ds", "rs"]:
            choice = d.call("Optimise", {"ms": 20, "algorithm": algorithm, "episodes": 50, "seed": 3})["choice"]
            equal(choice["algorithm"], algorithm)
        before = primitives(d)
        front = d.call("Optimise", {"ms": 50, "pareto": True})["choice"]["front"]
        check(len(front) > 0)
        for a, b in zip(front, front[1:]):
            check(a["ms"] < b["ms"] and a["packed_bytes"] > b["packed_bytes"], front)
        equal(primitives(d), before, "asking changed something")
        small = d.call("Optimise", {"ms": 50, "objective": "memory"})["choice"]
        check(small["kinds"][0]["packed_bytes"] <= front[-1]["packed_bytes"], (small, front))
        chosen = primitives(d)
        d.stop()
        with Daemon(config=EPS, state_dir=d.state_dir) as again: # what was asked for holds
            equal((primitives(again), "objective" in again.log()), (chosen, False))


def the_front_is_drawn():
    with Daemon(config=EPS) as d:
        path = os.path.join(d.temp, "front.html")
        front = d.pipectl("optimise", "--ms", "50", "--page", path)["front"]
        page = Page(path)
        page.needs_nothing()
        (series,) = page.charts["choices"]["series"]
        check(series["steps"], series)
        equal([p[:2] for p in series["points"]], [[e["ms"], e["packed_bytes"] / 1e6] for e in front])
        equal(series["points"][0][2], "%.3f ms, %.2f MB" % (front[0]["ms"], front[0]["packed_bytes"] / 1e6))


def a_calibration_set_bounds_the_rounding():
    with Daemon(config=EPS) as d:
        size = d.call("Models")["models"][0]["input"]["bytes"]
        folder = os.path.join(d.temp, "frames")
        os.mkdir(folder)

        def calibrate(*more, **how):
            return d.pipectl("optimise", "--ms", "50", "--calibrate", folder, *more, **how)

        calibrate(expect=1)
        with open(os.path.join(folder, "short.f32"), "wb") as f:
            f.write(b"1234")
        calibrate(expect=1)
        for i in range(8):
            with open(os.path.join(folder, f"{i}.f32"), "wb") as f:
                f.write(struct.pack("<f", i / 8) * (size // 4))
        with open(os.path.join(folder, "picture.pgm"), "wb") as f:
            f.write(b"P5 4 4 255\n" + bytes(range(16)))
        choice = calibrate("--agreement", "1.0")
        equal(choice["agreement"], 1.0)
        check("1 examples skipped; short.f32: 4 bytes" in choice["note"], choice["note"])
        equal(d.status()["state"], "serving")


def refuses_what_cannot_be():
    def refused(error, parameters, words=""):
        try:
            d.call("Optimise", parameters)
        except VarlinkError as e:
            equal(e.error, error)
            check(words in str(e.parameters), e.parameters)
            return
        check(False, f"{parameters} went through")

    invalid = "org.varlink.service.InvalidParameter"
    with Daemon(config=EPS) as d:
        refused("io.piped.NotFound", {"model": "nobody"})
        refused(invalid, {"algorithm": "genetic"})
        refused(invalid, {"objective": "beauty"})
        refused(invalid, {"ms": 0})
        refused(invalid, {"packed_mib": -1.0})
        refused(invalid, {"episodes": 0})
        refused("io.piped.LoadFailed", {"ms": 20, "packed_mib": 0.001}, "no choice packs its weights into so little memory")
        with d.connect() as v, d.connect() as w:
            v.send("io.piped.Optimise", {"ms": 400})
            w.send("io.piped.Optimise", {"ms": 20})
            answers = []
            for each in (v, w):
                try:
                    answers.append(each.receive())
                except VarlinkError as e:
                    answers.append((e.error, e.parameters["why"]))
            check(("io.piped.Busy", "model digits is being optimised; ask again when that has ended") in answers, answers)
        equal(d.status()["state"], "serving")


def ends_with_the_daemon():
    with Daemon(config=EPS) as d, d.connect() as v:
        v.send("io.piped.Optimise", {"ms": 600000})
        d.status()


if __name__ == "__main__":
    main([is_measured_once_and_kept, what_is_no_choice_is_measured_anew, optimising_loses_nothing,
          searches_bounds_and_the_front, the_front_is_drawn, a_calibration_set_bounds_the_rounding, refuses_what_cannot_be,
          ends_with_the_daemon])
