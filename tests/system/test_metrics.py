#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the metrics count, under random load: every sum agrees to the last frame and the last nanosecond with what the
clients were told."""
import bisect
import collections
import random
import struct
import threading

import pyclient
from daemon import DIGITS, Daemon, check, equal, main
from metrics_text import Metrics

SEED = random.randrange(1 << 30)
POLICIES = ("block", "latest", "reject")
# what a client is told, and the reason that is counted
REASONS = (("no credit left", "no_credit"), ("the input has ", "invalid"), ("in_bytes is ", "invalid"),
           ("the pipeline is full", "pipeline_full"), ("a newer frame took its place", "newer_frame"),
           ("the deadline cannot be met", "deadline_not_feasible"),
           ("the deadline passed while the frame waited", "deadline_waiting"),
           ("the deadline passed between two stages", "deadline_computing"), ("cancelled", "cancelled"),
           ("the model was unloaded", "model_unloaded"))


def scrape(d):
    return Metrics(d.call("Metrics")["text"])


def reason_of(text):
    return next((reason for words, reason in REASONS if text.startswith(words)), "unknown: " + text)


class Load(threading.Thread):
    """Sends frames that are good, late, wrong, cancelled or too many, and keeps what it was told of each."""

    def __init__(self, d, number, frames):
        super().__init__()
        self.path, self.number, self.frames = d.frames_path, number, frames
        self.rng = random.Random(SEED + number)
        self.results, self.error = [], None
        self.policy = number % 3

    def one(self, c, s, data):
        kind = self.rng.choice(("good", "good", "good", "late", "wrong", "cancel"))
        changes = {}
        if kind == "late":
            changes["deadline_ns"] = pyclient.now_ns() + self.rng.randrange(1, 2000000)
        elif kind == "wrong":
            changes["in_bytes"] = len(data) - 4
            data = data[4:]
        number = s.submit(data, **changes)
        if kind == "cancel":
            c.send(pyclient.CANCEL, stream=s.number, frame=number)

    def run(self):
        try:
            with pyclient.Connection(self.path) as c:
                s = pyclient.Stream(c, 1, "a", policy=self.policy, inline=True, credits=6)
                data = struct.pack("<%df" % (s.input_bytes // 4), *([0.5] * (s.input_bytes // 4)))
                waiting = 0
                for _ in range(self.frames):
                    self.one(c, s, data)
                    waiting += 1
                    while waiting >= s.credits + (self.rng.random() < 0.05):
                        self.results.append(s.result())
                        waiting -= 1
                self.results += [s.result() for _ in range(waiting)]
                s.close()
        except Exception as e:  # told by the main thread
            self.error = e


def loaded(d, clients, frames, meanwhile=lambda: None):
    """Return: [(policy, result)] of all frames; meanwhile() is called until the clients are done."""
    loads = [Load(d, i, frames) for i in range(clients)]
    for t in loads:
        t.start()
    while any(t.is_alive() for t in loads):
        meanwhile()
    for t in loads:
        t.join()
        if t.error:
            raise t.error
    return [(POLICIES[t.policy], r) for t in loads for r in t.results]


def agrees(m, told):
    """The metrics of model a, with what clients were told."""
    done = [r for _, r in told if r.status == "ok"]
    check(done and len(done) < len(told), "%d of %d frames were computed" % (len(done), len(told)))
    equal(m.by("piped_frames_answered_total", "status", model="a"), dict(collections.Counter(r.status for _, r in told)))
    equal(m.by("piped_frames_policy_total", "policy", "status", model="a"),
          dict(collections.Counter((p, r.status) for p, r in told)))
    equal(m.by("piped_frames_refused_total", "reason", model="a"),
          dict(collections.Counter(reason_of(r.text) for _, r in told if r.status != "ok")))
    for name, times in (("queue", [r.queue_ns for r in done]), ("compute", [r.service_ns for r in done]),
                        ("latency", [r.queue_ns + r.service_ns for r in done])):
        name = "piped_frame_%s_seconds" % name
        times.sort()
        equal(m.one(name + "_count", model="a"), len(done), name)
        equal(m.nanoseconds(name, model="a"), sum(times), name)
        buckets = m.buckets(name, model="a")
        equal([n for _, n in buckets], [bisect.bisect_right(times, bound) for bound, _ in buckets], name)
    equal(m.one("piped_latency_seconds_count", model="a"), len(done))
    equal(m.total("piped_frames_in_flight", model="a"), 0)


def sums_agree_over_switches_and_reloads():
    print("seed", SEED)
    with Daemon(models={"a": DIGITS}) as d, d.connect() as v:
        status = d.status()
        units, ep = status["models"][0]["units"], status["eps"][0]["name"]
        plans = ["0-%d@%s" % (units - 1, ep), "0-%d@%s*2" % (units - 1, ep),
                 "0-2@%s|3-%d@%s" % (ep, units - 1, ep), "0-1@%s*2|2-4@%s|5-%d@%s" % (ep, ep, units - 1, ep)]
        rng = random.Random(SEED)
        did = collections.Counter()

        def change():
            if rng.random() < 0.2:
                d.write_config({"spin_us": rng.randrange(50)})
                v.call("io.piped.Reload")
                did["reload"] += 1
            else:
                v.call("io.piped.SetPlan", {"plan": rng.choice(plans)})
                did["switch"] += 1

        told = loaded(d, 6, 400, change)
        v.call("io.piped.SetPlan", {"plan": plans[0]})  # all teams of earlier plans are gone when it answers
        m = scrape(d)
        agrees(m, told)
        equal(m.by("piped_plan_events_total", "cause", "outcome", model="a"),
              {("start", "serving"): 1, ("request", "switched"): did["switch"] + 1})
        equal(m.by("piped_reloads_total", "outcome"), {"done": did["reload"]} if did["reload"] else {})
        equal(m.one("piped_plan_epoch", model="a"), did["switch"] + 2)
        computed = {value for _, value in m.rows("piped_unit_seconds_count", model="a")}
        equal(len(m.rows("piped_unit_seconds_count", model="a")), units)
        done = sum(r.status == "ok" for _, r in told)
        check(min(computed) >= done and max(computed) <= m.one("piped_frames_admitted_total", model="a"), computed, done)
        check(all(value > 0 for _, value in m.rows("piped_unit_seconds_sum", model="a")), m.text)


def units_count_every_frame():
    """Over plans, and never less than before."""
    with Daemon(models={"a": DIGITS}) as d:
        status = d.status()
        units, ep = status["models"][0]["units"], status["eps"][0]["name"]
        least = 0
        with pyclient.Connection(d.frames_path) as c:
            s = pyclient.Stream(c, 1, "a", inline=True)
            for i, plan in enumerate(["0-%d@%s" % (units - 1, ep), "0-2@%s|3-%d@%s" % (ep, units - 1, ep)] * 3):
                for _ in range(4):
                    s.infer(b"\0" * s.input_bytes)
                d.call("SetPlan", {"plan": plan})
                m = scrape(d)
                equal({value for _, value in m.rows("piped_unit_seconds_count", model="a")}, {4 * (i + 1)})
                took = m.total("piped_unit_seconds_sum", model="a")
                check(took > least, took, least)
                least = took


def a_swapped_model_counts_anew():
    with Daemon(models={"a": DIGITS}) as d:
        told = loaded(d, 3, 60)
        agrees(scrape(d), told)
        d.call("Load", {"name": "b", "path": DIGITS})
        d.call("Unload", {"name": "a"})
        m = scrape(d)
        equal(m.rows("piped_frame_latency_seconds_count", model="a"), [])
        equal(m.one("piped_frame_latency_seconds_count", model="b"), 0)
        d.call("Load", {"name": "a", "path": DIGITS})
        told = loaded(d, 3, 60)
        agrees(scrape(d), told)


def refused_clients_are_counted():
    with Daemon(config={"limits": {"connections": 1, "kept_connections": 1}}) as d:
        with pyclient.Connection(d.frames_path) as c, pyclient.Connection(d.frames_path):
            told = []
            pyclient.Stream(c, 1, inline=True)
            for number, model in ((2, "nobody"), (2, "nobody"), (1, "")):
                try:
                    pyclient.Stream(c, number, model, inline=True)
                except pyclient.Refused as e:
                    told.append(e.status)
            refused = 0
            for _ in range(4):
                try:
                    with pyclient.Connection(d.frames_path):
                        pass
                except pyclient.Closed:
                    refused += 1
            m = scrape(d)
        equal((refused, m.by("piped_connections_refused_total", "reason")), (4, {"limit": 4}))
        equal(len(told), 3)
        equal(m.by("piped_streams_refused_total", "status"), dict(collections.Counter(told)))


def trials_are_counted():
    with Daemon(config={"planner": {"frames": 4, "measure_ms": 50}}) as d:
        event = d.pipectl("retune", "--algorithm", "exhaustive", "--trials", "3")
        m = scrape(d)
        name = d.status()["models"][0]["name"]
        equal(m.by("piped_plan_events_total", "cause", "outcome", model=name),
              {("start", "serving"): 1, ("request", event["outcome"]): 1})
        listed = event["trials"]
        counted = m.by("piped_trials_total", "outcome", model=name)
        check(0 < sum(counted.values()) <= len(listed), counted, listed)
        check(m.one("piped_trial_seconds_total", model=name) > 0)


def large_images_are_timed():
    """What is shrunk beside the pipeline has its own histogram, within the queue's."""
    with Daemon(config={"limits": {"slice_mpixels": 1}}) as d, pyclient.Connection(d.frames_path) as c:
        small = pyclient.Stream(c, 1, pixfmt=pyclient.GRAY8, inline=True)
        small.infer(bytes(small.in_size))
        large = pyclient.Stream(c, 2, pixfmt=pyclient.GRAY8, image=(1400, 1000))
        for _ in range(3):
            equal(large.infer(bytes(large.in_size)).status, "ok")
        m = scrape(d)
        name = d.status()["models"][0]["name"]
        equal(m.one("piped_frame_preparing_seconds_count", model=name), 3)
        equal(m.one("piped_frame_latency_seconds_count", model=name), 4)
        took = m.nanoseconds("piped_frame_preparing_seconds", model=name)
        check(0 < took <= m.nanoseconds("piped_frame_queue_seconds", model=name), took)


def many_models_fit_into_one_answer():
    """Details are left out, the rest stays."""
    def of(count):
        with Daemon(models={"model%d" % i: DIGITS for i in range(count)}, config={"limits": {"models": 64}}) as d:
            return Metrics(d.pipectl("metrics", as_json=False))

    few, many = of(16), of(64)
    equal((few.one("piped_metrics_left_out"), len(few.rows("piped_unit_seconds_count"))), (0, 16 * 12))
    check(many.one("piped_metrics_left_out") >= 1 and not many.rows("piped_unit_seconds_count"), many.text[:1000])
    for name in ("piped_frames_admitted_total", "piped_latency_seconds_count", "piped_plan_epoch"):
        equal(len(many.rows(name)), 64, name)


def a_restart_shows():
    with Daemon() as d:
        first = scrape(d).one("piped_start_time_seconds")
        equal(scrape(d).one("piped_start_time_seconds"), first)
        d.stop()
        d.start()
        check(scrape(d).one("piped_start_time_seconds") > first)


if __name__ == "__main__":
    main([sums_agree_over_switches_and_reloads, units_count_every_frame, a_swapped_model_counts_anew,
          refused_clients_are_counted, trials_are_counted, large_images_are_timed,
          many_models_fit_into_one_answer, a_restart_shows])
