# SPDX-License-Identifier: Apache-2.0
"""Searches on live frames: how they are asked for, what their event has to say, and a client that checks every answer."""
import os
import re
import struct
import threading

import pyclient
from daemon import DIGITS, VarlinkError, check, ended, equal

SYNTH = os.path.join(os.path.dirname(DIGITS), "..", "networks", "synth1.json")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tuner/search/search_table.h"), encoding="utf-8") as table:
    ALGORITHMS = re.findall(r'(?:FIRST|NEXT)\(\w+, "([\w-]+)"', table.read())
# as t_share() of tests/harness.h
SHARE = max(int(os.environ.get("PIPED_TEST_SHARE") or 1), 1)
SLOWDOWN = float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
QUICK = {"planner": {"frames": 3, "measure_ms": int(30 * SLOWDOWN)}}
FOREVER = {"planner": {"frames": 10000, "measure_ms": 600000}}
TRIAL_KEYS = {"plan", "role", "bottleneck_ms", "frames", "kept", "predicted_ms", "latency_ms", "ci", "stopped", "failed",
              "spent_ms"}
EVENT_KEYS = {"id", "at", "cause", "detail", "algorithm", "trials", "plan_before", "plan_after", "fps_before",
              "fps_after", "fps_during", "predicted_gain", "duration_ms", "lost", "outcome", "objective", "trial_count"}


def fails(d, error, method, parameters=None):
    try:
        got = d.call(method, parameters)
    except VarlinkError as e:
        equal(e.error, error if "." in error else "io.piped." + error)
        return e.parameters
    raise AssertionError("%s %s was answered with %s" % (method, parameters, got))


def serving(d):
    """The answer of a retune and its end are one moment."""
    status = d.status()
    equal(status["state"], "serving")
    check(not status["models"][0]["tuning"], status["models"][0])


def good_event(d, event, outcomes=("switched", "kept", "reverted")):
    check(EVENT_KEYS <= set(event), EVENT_KEYS - set(event))
    ended(event, *outcomes)
    equal(event["lost"], 0)
    equal(d.call("GetPlan")["plan"], event["plan_after"])
    equal(d.call("History", {"limit": 1})["events"], [event])
    for t in event["trials"]:
        check(TRIAL_KEYS <= set(t), TRIAL_KEYS - set(t))
        check(t["failed"] or (t["bottleneck_ms"] > 0 and t["frames"] > 0 and t["spent_ms"] >= 0), t)
        check(t["role"] in ("before", "shapes", "search", "again"), t)
    searched = [t for t in event["trials"] if t["role"] == "search"]
    equal(len(searched), min(event["trial_count"], 256 - len(event["trials"]) + len(searched)))
    kept = [t["plan"] for t in event["trials"] if t["kept"]]
    equal(kept, [event["plan_after"]])
    for when in ("before", "after"):
        unseen = [t for t in event["trials"] if t["plan"] == event["plan_" + when] and t["failed"]]
        check((event["fps_" + when] or 0) > 0 or unseen, event)  # a busy machine may give a trial no frame in its time
    check(event["fps_during"] > 0, event)


class Client(threading.Thread):
    """Streams until told to stop; every answer is checked: in order, none twice, and right."""

    def __init__(self, d, credits_=64):
        super().__init__()
        self.path = d.frames_path
        self.credits = credits_
        self.stop = threading.Event()
        self.started = threading.Event()
        self.answered = 0
        self.epochs = set()
        self.error = None
        self.start()
        self.started.wait()

    def run(self):
        try:
            with pyclient.Connection(self.path) as c:
                s = pyclient.Stream(c, inline=True, credits=self.credits)
                frames = [struct.pack("<f", 0.1 * i) * (s.input_bytes // 4) for i in range(5)]
                wanted = [s.infer(f).output for f in frames]
                self.started.set()
                sent = []
                while not self.stop.is_set() or sent:
                    while len(sent) < min(s.credits, self.credits) and not self.stop.is_set():
                        which = self.answered % len(frames)
                        sent.append((s.submit(frames[which]), which))
                    r = s.result()
                    number, which = sent.pop(0)
                    equal((r.frame, r.status), (number, "ok"), r.text)
                    check(r.output == wanted[which], "frame", number, "of epoch", r.epoch, "has a wrong answer")
                    self.answered += 1
                    self.epochs.add(r.epoch)
                s.close()
        except Exception as e:  # told by end()
            self.error = e
            self.started.set()

    def end(self):
        self.stop.set()
        self.join()
        if self.error:
            raise self.error
        check(self.answered > 0)
