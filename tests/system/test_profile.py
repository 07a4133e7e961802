#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A profile of the cores by the real daemon: fits exist, are kept and used again, and end with the daemon."""
import json
import os

import kept_files
import pyclient
from daemon import DIGITS, HEARTBEAT, Daemon, VarlinkError, check, equal, main

EPS = {"eps": [{"name": "left", "cpus": "0"}, {"name": "right", "cpus": "0-1" if (os.cpu_count() or 1) > 1 else "0"}]}
WIDTHS = {"left": 1, "right": min(os.cpu_count() or 1, 2)}
BENCHES = 57  # layers of the chain
LAYERS = ("conv", "plain", "conv3x3", "fc", "depthwise")


def kept(d):
    with open(os.path.join(d.state_dir, "calibration.json"), encoding="utf-8") as f:
        return json.load(f)


def refused(d, error, parameters=None, method="Profile"):
    try:
        d.call(method, parameters)
    except VarlinkError as e:
        equal(e.error, error)
        return e.parameters
    return check(False, "went through")


def fits_are_made_and_kept():
    with Daemon(config=EPS) as d:
        kinds = d.call("Profile", {"ms": 1})["kinds"]
        equal([(k["name"], k["benches"]) for k in kinds], [(n, BENCHES * w) for n, w in WIDTHS.items()])
        for k in kinds:
            check(0 <= k["error_conv"] < 1, k)  # loose: a busy machine disturbs two frames easily
            check(all(k["error_" + layer] >= 0 for layer in LAYERS), k)
            equal(k["error_multi"] is None, WIDTHS[k["name"]] == 1, k)
        state = kept(d)
        equal([(k["name"], k["cpus"], k["known"]) for k in state["kinds"]],
              [(e["name"], e["cpus"], True) for e in EPS["eps"]])
        for k in state["kinds"]:
            for layer in LAYERS:
                equal((len(k[layer]["one"]), len(k[layer].get("wide", []))), (8, 0 if WIDTHS[k["name"]] == 1 else 4))
        equal([n for n in os.listdir(d.state_dir) if n.startswith("calibration-")], [], "the chain was left behind")
        equal(d.status()["state"], "serving")


def its_progress_is_told():
    """Every second, to whoever subscribed: widths of teams that are measured."""
    with Daemon(config=EPS) as d, d.connect() as events, d.connect() as v:
        events.send("io.piped.Subscribe", more=True)
        v.send("io.piped.Profile", {"ms": 600000})
        told = events.receive()["event"]
        while told["event"] != "progress" or told["doing"] != "measuring widths of teams":
            told = events.receive()["event"]
        check(told["model"] == "" and told["of"] == sum(WIDTHS.values()) and 0 <= told["done"] < told["of"], told)


def frames_are_served_meanwhile():
    with Daemon(config=EPS) as d, pyclient.Connection(d.frames_path) as c, d.connect() as v:
        s = pyclient.Stream(c, inline=True)
        frame = b"\0" * s.input_bytes
        wanted = s.infer(frame).output
        v.send("io.piped.Profile", {"ms": 1})
        d.wait_state("tuning")
        for _ in range(50):
            r = s.infer(frame)
            equal((r.status, r.output), ("ok", wanted))
        check(len(v.receive()["kinds"]) == 2)


def one_at_a_time():
    with Daemon(config=EPS) as d, d.connect() as v:
        v.send("io.piped.Profile", {"ms": 600000})
        d.wait_state("tuning")
        check("profiling" in refused(d, "io.piped.Busy")["why"])
        check("profiling is in progress" in refused(d, "io.piped.Busy", method="Retune")["why"])
        for ms in (0, -1, 600001):
            equal(refused(d, "org.varlink.service.InvalidParameter", {"ms": ms}), {"parameter": "ms"})
        d.stop()
        try:
            check(False, v.receive())
        except VarlinkError as e:
            equal(e.error, "io.piped.Busy")
        check(not os.path.exists(os.path.join(d.state_dir, "calibration.json")))
        equal([n for n in os.listdir(d.state_dir) if n.startswith("calibration-")], [])


def a_client_that_leaves_does_not_end_it():
    with Daemon(config=EPS, env=HEARTBEAT) as d, d.connect() as events:
        events.send("io.piped.Subscribe", more=True)
        events.receive()
        with d.connect() as v:
            v.send("io.piped.Profile", {"ms": 1})
            equal(events.receive()["event"]["event"], "calibration")
        check(d.wait_until(lambda: os.path.exists(os.path.join(d.state_dir, "calibration.json"))), d.log())
        equal(len(kept(d)["kinds"]), 2)


def stopped_while_it_compiles():
    with Daemon(config=EPS) as d, d.connect() as v:
        v.send("io.piped.Profile", {"ms": 1})
        d.stop()
        try:
            v.receive()
        except (VarlinkError, EOFError, ConnectionResetError):
            pass


def the_next_start_uses_it():
    """What one daemon found, the next one predicts by; costs of a model appear that it never ran."""
    with Daemon(config=EPS) as d:
        d.call("Profile", {"ms": 1})
        state = kept(d)
        d.stop()
        for k in state["kinds"]:  # figures that no measurement gives: 3 s for every unit
            k.update({layer: {"one": [0, 0, 0, 0, 0, 0, 0, 3e9], "error": 0, "error_wide": 0} for layer in LAYERS})
        kept_files.write(os.path.join(d.state_dir, "calibration.json"), state)
        with Daemon(config=EPS, state_dir=d.state_dir) as again:
            costs = again.call("Costs")["problem"]["costs"]
            check(any(ns == 3e9 for ns in costs["left"]["1"]), costs["left"]["1"])
            equal(costs["left"]["1"], costs["right"]["1"])


def hostile_files_count_as_none():
    with Daemon(config=EPS) as d:
        d.call("Profile", {"ms": 1})
        good = kept(d)
        path = os.path.join(d.state_dir, "calibration.json")
        d.stop()
        text = json.dumps(good)
        others = [dict(good, version=9), dict(good, piped="0"), dict(good, kinds=good["kinds"][:1]), dict(good, kinds=7),
                  dict(good, kinds=[7, None]), dict(good, kinds=[dict(k, conv={"one": [1] * 7}, fc="x") for k in good["kinds"]]),
                  dict(good, kinds=[dict(k, conv=[1] * 8, fc={"one": {}}) for k in good["kinds"]]),
                  dict(good, kinds=[dict(k, conv={"one": [1e300] * 8}, fc={"one": [None] * 8}) for k in good["kinds"]]),
                  dict(good, kinds=[dict(k, cpus="7") for k in good["kinds"]])]
        for bad in [b"", b"\0" * 99, text[:-9].encode(), b"[]", b"[" * 100000] + others:
            kept_files.write(path, bad)
            with Daemon(config=EPS, state_dir=d.state_dir) as again:
                equal(again.status()["state"], "serving")
                check(all(ns is None or ns < 1e15 for ns in again.call("Costs")["problem"]["costs"]["left"]["1"]))
        os.unlink(path)
        os.mkdir(path)
        with Daemon(config=EPS, state_dir=d.state_dir) as again:
            again.call("Profile", {"ms": 1})  # fits, though it cannot be kept
            check("cannot keep" in again.log())


def several_models_and_a_retune():
    with Daemon(config=dict(EPS, planner={"frames": 10000, "measure_ms": 60000}), models={"a": DIGITS}) as d:
        with d.connect() as v:
            v.send("io.piped.Retune", {"model": "a"})
            d.wait_state("tuning")
            check("retune" in refused(d, "io.piped.Busy")["why"])


if __name__ == "__main__":
    main([fits_are_made_and_kept, its_progress_is_told, frames_are_served_meanwhile,
          one_at_a_time, a_client_that_leaves_does_not_end_it, stopped_while_it_compiles, the_next_start_uses_it,
          hostile_files_count_as_none, several_models_and_a_retune])
