#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The power goes at any write: the daemon starts from whatever the disk then holds, and serves.

A daemon does everything that makes it keep something, on a recorded folder. From the record come states that a disk may
hold after a loss of power (power_cut.py). In each of them every kept file must be whole, the old one or the new one; from
some the real daemon starts, and must answer a frame rightly without calling any file damaged. --long starts from many.
"""
import os
import random
import re
import shutil
import sys
import tempfile

import kept_files
import power_cut
import pyclient
from daemon import DIGITS, Daemon, check, equal, main
from example_pictures import folder

SEED = int(os.environ.get("PIPED_TEST_SEED", "1"))
CONFIG = {"kernels": {"measure_ms": 0}, "eps": [{"name": "left", "cpus": "0"}, {"name": "right", "cpus": "0"}],
          "models": [{"name": "digits", "path": DIGITS}]}
LONG = "--long" in sys.argv
STARTS = 400 if LONG else 6
IMAGES = 100000 if LONG else 3000


def skip_under_a_sanitizer():
    if os.environ.get("PIPED_TEST_SANITIZER"):
        print("skip: the recorder cannot be loaded before a sanitizer")
        sys.exit(77)


def answer(d):
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, model="digits", inline=True)
        r = s.infer(b"\0" * (s.input_bytes // 2) + b"\0\0\x80\x3f" * (s.input_bytes // 8))
        equal(r.status, "ok")
        return r.output


class Recorded:
    """What a daemon did to its state folder. `answers`: all that it gave to one frame meanwhile."""

    def __init__(self):
        self.temp = tempfile.mkdtemp(prefix="piped-record-")
        self.answers = []
        log = os.path.join(self.temp, "log")
        state = os.path.join(self.temp, "state")
        os.mkdir(state)
        for turn in "ab":  # the second finds what the first kept, and replaces it
            with Daemon(config=CONFIG, state_dir=state, env=power_cut.environment(state, log)) as d:
                self.work(d, turn)
        self.ops = power_cut.read(log)
        shutil.rmtree(self.temp)

    def work(self, d, turn):
        examples = folder(d, count=8)
        self.answers.append(answer(d))
        d.pipectl("models", "load", "second", DIGITS, "--save")
        d.pipectl("models", "load", "third" + turn, DIGITS, "--save")
        d.pipectl("plan", "set", "--model", "digits", "0-0@left|1-%d@right" % (len(d.call("Units")["units"]) - 1))
        self.answers.append(answer(d))
        d.pipectl("quantize", "--model", "digits", "--calibrate", examples, "--bound", "0")
        self.answers.append(answer(d))
        d.call("Profile", {"ms": 1})
        d.pipectl("plan", "auto", "--model", "digits")
        d.pipectl("models", "unload", "second", "--save")
        d.pipectl("quantize", "--model", "digits", "--off")
        d.pipectl("optimise", "--model", "digits", "--ms", "20")
        self.answers.append(answer(d))


def kept_of(recorded):
    """{name: contents} of the kept files; the folder also has drafts, and scratch files of a profile."""
    return {name: contents for name, contents in power_cut.versions(recorded.ops).items()
            if re.match(r"(model|choice|calibration|models)[-.].*json$", name)}


def every_state_of_the_disk_is_whole():
    """Files hold the old content or the new one at whatever operation the power goes."""
    recorded = RECORDED.get()
    rng = random.Random(SEED)
    kept = kept_of(recorded)
    equal({name.split("-")[0].split(".")[0] for name in kept}, {"model", "choice", "calibration", "models"}, list(kept))
    for name, contents in kept.items():
        check(all(kept_files.is_sealed(c) for c in contents if c is not None), name, "has no checksum")
    seen = set()
    for at, image in power_cut.images(recorded.ops, rng, IMAGES):
        equal(power_cut.torn(image, kept), [], "seed %d, after %s" % (SEED, recorded.ops[at - 1] if at else "nothing"))
        seen.add(tuple(sorted((name, hash(data)) for name, data in image.items())))
    print("seed %d: %d operations, %d states, %d of them different" % (SEED, len(recorded.ops), IMAGES, len(seen)))


def without_a_sync_they_would_not_be():
    """The states above are hard enough: without any one kind of sync of a file, some are torn."""
    recorded = RECORDED.get()
    ops = [op for op in recorded.ops if op.kind != "sync"]
    kept = kept_of(recorded)
    found = sum(bool(power_cut.torn(image, kept)) for _, image in power_cut.images(ops, random.Random(SEED), 300))
    check(found > 30, "only", found, "of 300 states are torn")


def the_daemon_starts_from_each():
    recorded = RECORDED.get()
    rng = random.Random(SEED + 1)
    for at, image in power_cut.images(recorded.ops, rng, STARTS):
        state = power_cut.lay(image)
        what = "seed %d, after %s" % (SEED, recorded.ops[at - 1] if at else "nothing")
        with Daemon(config=dict(CONFIG, kernels={"measure_ms": 20}), state_dir=state) as d:
            check(any(near(answer(d), a) for a in recorded.answers), what, "it answers otherwise")
            equal(d.status()["state"], "serving", what)
            check("damaged" not in d.log() and "cannot" not in d.log(), what, d.log())
        shutil.rmtree(state)


def near(a, b):
    """Other primitives round otherwise."""
    x, y = (memoryview(v).cast("f").tolist() for v in (a, b))
    return max(abs(p - q) for p, q in zip(x, y)) <= 1e-3 * max(abs(v) for v in y)


def a_slow_disk_holds_up_nobody():
    """While a sync does not return, frames and calls are answered; a call that keeps something waits for it."""
    temp = tempfile.mkdtemp(prefix="piped-record-")
    hold = os.path.join(temp, "hold")
    state = os.path.join(temp, "state")
    os.mkdir(state)
    env = power_cut.environment(state, os.path.join(temp, "log"), hold)
    with Daemon(config=CONFIG, state_dir=state, env=env) as d, d.connect() as v:
        wanted = answer(d)
        with open(hold, "w", encoding="utf-8"):
            pass
        last = len(d.call("Units")["units"]) - 1
        d.pipectl("plan", "set", "--model", "digits", "0-0@left|1-%d@right" % last)
        v.send("io.piped.Load", {"name": "kept", "path": DIGITS, "save": True})
        d.call("SetPlan", {"model": "digits", "plan": "0-%d@left" % last})
        for _ in range(20):
            equal(answer(d), wanted)
        written = [n for n in os.listdir(state) if n != "state.lock"]
        equal(written, [n for n in written if n.endswith(".new")], "the disk was not held")
        d.pipectl("status")
        os.unlink(hold)
        equal(v.receive()["model"]["name"], "kept")
        equal([m["name"] for m in kept_files.read(os.path.join(state, "models.v2.json"))["models"]], ["kept"])
    kept = [n for n in os.listdir(state) if n.startswith("model-")]
    check(kept, os.listdir(state))
    plans = [s["plan"] for n in kept for s in kept_files.read(os.path.join(state, n))["states"] if n.endswith("-digits.v3.json")]
    equal(plans, ["0-%d@left" % last], "the last of two writes is not the one that is there")
    shutil.rmtree(temp)


class Once:
    def __init__(self):
        self.value = None

    def get(self):
        self.value = self.value or Recorded()
        return self.value


RECORDED = Once()

if __name__ == "__main__":
    skip_under_a_sanitizer()
    main([every_state_of_the_disk_is_whole, without_a_sync_they_would_not_be, the_daemon_starts_from_each,
          a_slow_disk_holds_up_nobody], [a for a in sys.argv[1:] if a != "--long"])
