#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The planner chooses how many frames a team takes at once. What that gains is given by the kept file, so nothing here
depends on how fast anything is.

usage: test_batches.py [CASE]...
"""
import contextlib
import os
import random
import struct
import sys
import tempfile

import kept_files
import pyclient
import tiny_onnx
from daemon import Daemon, check, equal, main

GAINS = [0.6, 0.45, 0.44]  # a frame of 2, 4 and 8; 8 gain too little over 4
EPS = {"eps": [{"name": "one", "cpus": [0]}]}


@contextlib.contextmanager
def network():
    """A small network whose fully connected layer has most of the weights: 256 inputs for each of 512 outputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wide.onnx")
        tiny_onnx.write(path, [("conv", 16, 3), ("pool",), ("linear", 512), ("relu",), ("linear", 8)], size=8)
        yield path


def config(path, kernels=None, **planner):
    model = dict({"name": "wide", "path": path}, **({"kernels": kernels} if kernels else {}))
    return dict(EPS, models=[model], kernels={"measure_ms": 50}, adapt={"enabled": False}, planner=planner)


def kept(d, kind):
    return [os.path.join(d.state_dir, n) for n in os.listdir(d.state_dir) if n.startswith(kind + "-")]


def product(path):
    """The primitive that multiplies several rows at once on this CPU: which one is best is measured elsewhere."""
    with Daemon(models={}, config=config(path, kernels="igemm,__ref")) as d:
        names = {p for u in d.call("Units")["units"] for p in u["primitives"]["one"] if p.startswith("gemm_f32_igemm")}
    check(len(names) == 1, names)
    return names.pop()


def set_gains(d, name, gains):
    """The stopped daemon d finds that the large product, run by primitive `name`, takes nearly all of the time and gains
    so much; it has no plan yet. gains: None: the file is of an older version."""
    (path,) = kept(d, "choice")
    root = kept_files.read(path)
    for ops in root["kinds"].values():
        products = [op for op in ops if op[0].startswith("gemm_")]
        equal(len(products), 2, ops)
        for op in ops:
            op[:] = [op[0], None if op in products else op[1], 1e3]
        products[0][:] = [name, None, 20e6] + ([gains] if gains else [])
    root["doubt"] = 0
    kept_files.write(path, root)
    for path in kept(d, "model"):
        os.remove(path)


def restart(d, name, gains):
    """With these gains of the product in its files."""
    d.stop()
    set_gains(d, name, gains)
    d.start()


def plan(d):
    return d.pipectl("plan", "show")["plan"]


def answers(d, inputs, at_once):
    """The answers to the inputs, at_once of them in flight."""
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, 1, "wide", inline=True)
        check(s.credits >= at_once, s.credits)
        outputs = []
        for start in range(0, len(inputs), at_once):
            sent = [s.submit(x) for x in inputs[start:start + at_once]]
            for number in sent:
                r = s.result()
                equal((r.frame, r.status), (number, "ok"), r.text)
                outputs.append(struct.unpack("<%df" % (len(r.output) // 4), r.output))
        return outputs


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-4 * max(1, abs(x)) for x, y in zip(a, b))


def a_batch_is_chosen_and_serves():
    with network() as path, Daemon(models={}, config=config(path)) as d:
        name = product(path)
        restart(d, name, GAINS)
        check(plan(d).endswith("@one/4"), plan(d))
        units = [u for u in d.call("Units")["units"] if u["at_once"]]
        equal(len(units), 1)
        check(all(abs(a - b) < 0.02 for a, b in zip(units[0]["at_once"]["one"], GAINS)), units[0]["at_once"])
        table = d.call("Costs")["problem"]
        equal([g is not None for g in table["at_once"]["one"]].count(True), 1)

        stage = d.status()["models"][0]["stages"][0]
        equal((stage["batch"], stage["frames_at_once"]), (4, None))
        rng = random.Random(20260601)
        inputs = [struct.pack("<192f", *(rng.uniform(-1, 1) for _ in range(192))) for _ in range(64)]
        alone = answers(d, inputs, 1)
        equal(d.status()["models"][0]["stages"][0]["frames_at_once"], 1)
        together = answers(d, inputs, 8)
        check(d.status()["models"][0]["stages"][0]["frames_at_once"] > 1)
        check(all(near(a, b) for a, b in zip(alone, together)), "several frames at once give other answers")

        # what serves was planned: its prediction has the batch, and it is what "auto" gives again
        e = d.pipectl("plan", "explain")
        check(e["predicted"]["latency_ms"] > 3.9 * e["predicted"]["bottleneck_ms"], e["predicted"])
        d.call("SetPlan", {"plan": plan(d)[:-2]})
        check("/" not in plan(d), plan(d))
        d.call("AutoPlan")
        check("@one/" in plan(d), plan(d))


def small_gains_and_latency_keep_single_frames():
    with network() as path, Daemon(models={}, config=config(path)) as d:
        name = product(path)
        restart(d, name, [0.99, 0.97, 0.96])
        check("/" not in plan(d), plan(d))
        restart(d, name, GAINS)
        check(plan(d).endswith("/4"), plan(d))
        # 36 ms; two take 24 ms, one takes 20
        for latency_ms, end in ((40, "@one/4"), (30, "@one/2"), (22, "@one"), (5, "@one")):
            with Daemon(models={}, config=config(path, latency_ms=latency_ms)) as bounded:
                restart(bounded, name, GAINS)
                check(plan(bounded).endswith(end), latency_ms, plan(bounded))


def files_of_older_versions_are_completed():
    with network() as path, Daemon(models={}, config=config(path)) as d:
        name = product(path)
        restart(d, name, None)
        check("primitives measured" not in d.call("History")["events"][-1]["detail"], "it chose anew")
        (path,) = kept(d, "choice")
        known = [op[3] for ops in kept_files.read(path)["kinds"].values() for op in ops if len(op) > 3]
        check(len(known) == 1 and all(f > 0 for f in known[0]), known)


if __name__ == "__main__":
    main([a_batch_is_chosen_and_serves, small_gains_and_latency_keep_single_frames, files_of_older_versions_are_completed],
         sys.argv[1:])
