#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Searches on live frames: every algorithm ends and serves, idle and under traffic, no frame is lost, doubled,
reordered or wrong meanwhile; cancelled, ended by its time, by an unload and by a stop; asked for nonsense.

usage: test_retune.py [CASE]...
"""
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import threading
from signal import SIGHUP, SIGTERM

import pyclient
from daemon import BUILD, DIGITS, Daemon, VarlinkError, check, equal, main

SYNTH = os.path.join(os.path.dirname(DIGITS), "..", "networks", "synth1.json")
ALGORITHMS = ["exact", "shisha", "pipe-search", "pipe-search-database", "pipe-it", "exhaustive", "random",
              "hill-climbing", "hill-climbing-seeded", "annealing", "annealing-seeded"]
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
    check(event["outcome"] in outcomes, event)
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
    check(event["fps_before"] > 0 and event["fps_after"] > 0 and event["fps_during"] > 0, event)


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


def every_algorithm_ends_idle():
    with Daemon(config=QUICK) as d:
        for name in ALGORITHMS:
            event = d.call("Retune", {"algorithm": name, "seed": 3})["event"]
            serving(d)
            equal((event["algorithm"], event["cause"], event["objective"]), (name, "request", "throughput"))
            check("synthetic" in event["detail"], event["detail"])
            good_event(d, event)
            check(event["trial_count"] >= 1, event)
        frames = d.status()["models"][0]["frames"]
        equal((frames["admitted"], frames["answered"]), (0, 0), "synthetic frames were counted")


def every_algorithm_ends_under_traffic():
    """Two clients, one with few frames in flight; plans change all the while."""
    with Daemon(config=QUICK) as d:
        clients = [Client(d), Client(d, 1)]
        for name in ALGORITHMS:
            event = d.call("Retune", {"algorithm": name, "trials": 8})["event"]
            serving(d)
            good_event(d, event)
            check("traffic" in event["detail"], event["detail"])
            check(event["trial_count"] <= 8, event)
        for c in clients:
            c.end()
        check(any(len(c.epochs) > 1 for c in clients), "no plan was changed")
        frames = d.status()["models"][0]["frames"]
        equal((frames["dropped"], frames["failed"]), (0, 0))
        equal(frames["answered"], sum(c.answered + 5 for c in clients))


def network_description_under_bench():
    """A larger network, pipectl bench as the client."""
    with Daemon(models={"synth": SYNTH}, config=QUICK) as d:
        result = {}
        t = threading.Thread(target=lambda: result.update(d.pipectl("bench", "--seconds", "3", "--verify")))
        t.start()
        while d.status()["models"][0]["frames"]["answered"] == 0 and t.is_alive():
            pass
        for name in ("exact", "shisha"):
            good_event(d, d.call("Retune", {"algorithm": name, "trials": 4})["event"])
        t.join()
        check(result.get("answered", 0) == result.get("sent") > 0, result)
        equal([result[k] for k in ("lost", "reordered", "duplicated", "wrong", "errors")], [0, 0, 0, 0, {}])


def one_after_the_other():
    """A retune that follows at once is never told that the one before is still under way."""
    with Daemon(config=QUICK) as d, d.connect() as v:
        for _ in range(20):
            v.send("io.piped.Retune", {"trials": 1})
            v.send("io.piped.Status")
            v.receive()
            equal(v.receive()["status"]["state"], "serving")


def without_waiting():
    with Daemon(config=FOREVER) as d, d.connect() as v:
        v.send("io.piped.Subscribe", more=True)
        v.receive()
        equal(d.call("Retune", {"wait": False}), {"event": None})
        equal(v.receive()["event"], {"event": "retune", "model": "digits", "algorithm": "exact"})
        equal(d.status()["state"], "tuning")
        fails(d, "Busy", "Retune")
        fails(d, "Busy", "Retune", {"wait": False})
        fails(d, "Busy", "SetPlan", {"plan": d.call("GetPlan")["plan"]})
        equal(d.call("CancelRetune"), {"cancelled": True})
        while d.status()["state"] == "tuning":
            pass
        event = d.call("History", {"limit": 1})["events"][0]
        equal((event["outcome"], event["plan_after"]), ("cancelled", event["plan_before"]))
        equal(d.call("CancelRetune"), {"cancelled": False})
        equal(d.call("CancelRetune", {"model": "digits"}), {"cancelled": False})
        fails(d, "NotFound", "CancelRetune", {"model": "x"})


def cancelled_in_the_middle():
    """Whatever it tries at that moment, the plan before serves again and the waiting caller is told so."""
    config = {"planner": {"frames": 10000, "measure_ms": 30}}
    with Daemon(config=config) as d:
        client = Client(d)
        before = d.call("GetPlan")["plan"]
        for name in ("exhaustive", "exact"):
            with d.connect() as v:
                epoch = d.status()["models"][0]["epoch"]
                v.send("io.piped.Retune", {"algorithm": name})
                for _ in range(10000):
                    if name == "exact" or d.status()["models"][0]["epoch"] > epoch + 2:
                        break
                cancelled = d.call("CancelRetune")["cancelled"]
                event = v.receive()["event"]
                serving(d)
                if cancelled:
                    equal((event["outcome"], event["plan_after"]), ("cancelled", event["plan_before"]))
                    equal(event["plan_after"], before)
                equal(d.call("GetPlan")["plan"], event["plan_after"])
                if name == "exhaustive":
                    check(cancelled and event["trial_count"] >= 1, event)
        client.end()


def ended_by_its_time():
    """For latency no trial is stopped early, so that there are more of them than time."""
    config = {"planner": {"frames": 10000, "measure_ms": 150, "tune_s": 1}}
    with Daemon(config=config) as d:
        event = d.call("Retune", {"algorithm": "exhaustive", "objective": "latency"})["event"]
        serving(d)
        equal(event["outcome"], "deadline")
        good_event(d, event, ("deadline",))
        check(event["trial_count"] >= 1, event)


def unloaded_meanwhile():
    with Daemon(models={"a": DIGITS, "b": DIGITS}, config=FOREVER) as d, d.connect() as v:
        v.send("io.piped.Retune", {"model": "b"})
        while d.status()["state"] != "tuning":
            pass
        equal(d.call("Unload", {"name": "b"}), {})
        try:
            raise AssertionError(v.receive())
        except VarlinkError as e:
            equal(e.error, "io.piped.Busy")
        event = d.call("History", {"limit": 1})["events"][0]
        equal((event["model"], event["outcome"]), ("b", "cancelled"))
        check("unloaded" in event["detail"], event)
        equal([m["name"] for m in d.status()["models"]], ["a"])
        equal(d.status()["state"], "serving")


def stopped_meanwhile():
    """SIGTERM in the middle of a search: a clean end, and the plan before is what was kept."""
    for name in ("exact", "exhaustive", "pipe-search-database"):
        d = Daemon(config={"planner": {"frames": 10000, "measure_ms": 3000}})
        with d, d.connect() as v:
            client = Client(d)
            v.send("io.piped.Retune", {"algorithm": name})
            while d.status()["state"] != "tuning":
                pass
            d.signal(SIGTERM)
            try:
                v.receive()
            except (VarlinkError, EOFError) as e:
                check(isinstance(e, EOFError) or e.error == "io.piped.Busy", e)
            client.stop.set()
            client.join()  # its last frames may find the daemon gone
            equal(d.wait_exit(), 0)


def two_models_at_once():
    """Each has a search of its own, and each its answer; meanwhile both serve."""
    with Daemon(models={"a": DIGITS, "b": DIGITS}, config=QUICK) as d, d.connect() as v, d.connect() as w:
        client = Client(d)
        for name in ("exhaustive", "exact", "pipe-search-database"):
            v.send("io.piped.Retune", {"model": "a", "algorithm": name, "trials": 4})
            w.send("io.piped.Retune", {"model": "b", "algorithm": name, "trials": 4})
            for connection, model in ((w, "b"), (v, "a")):
                event = connection.receive()["event"]
                equal((event["model"], event["algorithm"]), (model, name))
                check(event["outcome"] in ("switched", "kept", "reverted"), event)
                equal(event["lost"], 0)
                equal(d.call("GetPlan", {"model": model})["plan"], event["plan_after"])
        client.end()
        serving(d)


def a_caller_that_leaves():
    """It waits no longer; the search goes on without it and ends as any other."""
    with Daemon(config={"planner": {"frames": 10000, "measure_ms": 300}}) as d:
        for parameters in ({"algorithm": "exhaustive", "trials": 3}, {"trials": 2}):
            v = d.connect()
            v.send("io.piped.Retune", parameters)
            while d.status()["state"] != "tuning":
                pass
            v.close()
            while d.status()["state"] == "tuning":
                pass
            event = d.call("History", {"limit": 1})["events"][0]
            good_event(d, event)
            check(1 <= event["trial_count"] <= parameters["trials"], event)


def whatever_comes_meanwhile():
    """Searches, and at any of their steps what else can be asked for; the daemon stays whole and serves."""
    seed = int(os.environ.get("PIPED_TEST_SEED", "20260811"))
    print("seed", seed)
    chance = random.Random(seed)
    config = {"planner": {"frames": 6, "measure_ms": int(20 * SLOWDOWN), "tune_s": 60}}
    with Daemon(models={"digits": DIGITS, "b": DIGITS}, config=config) as d:
        client = Client(d, 8)
        plans = ["0-11@%s" % d.status()["eps"][0]["name"], d.call("GetPlan")["plan"]]
        waiting = []

        def wait_for_steps():
            for _ in range(chance.randrange(30)):
                d.status()

        def ask(method, parameters=None):
            try:
                d.call(method, parameters)
            except VarlinkError as e:
                check(e.error.split(".")[-1] in ("Busy", "NotFound"), method, e)

        def answered(v):
            try:
                equal(list(v.receive()), ["event"])
            except VarlinkError as e:
                equal(e.error, "io.piped.Busy")
            v.close()

        for _ in range(40):
            v = d.connect()
            v.send("io.piped.Retune", {"model": chance.choice(["digits", "b"]), "algorithm": chance.choice(ALGORITHMS),
                                       "objective": chance.choice(["throughput", "latency"]), "trials": 3})
            waiting.append(v)
            wait_for_steps()
            what = chance.randrange(9)
            if what == 0:
                ask("Unload", {"name": "b"})
                d.call("Load", {"name": "b", "path": DIGITS})
            elif what == 1:
                ask("CancelRetune", {"model": chance.choice(["digits", "b"])})
            elif what == 2:
                waiting.pop(chance.randrange(len(waiting))).close()
            elif what == 3:
                ask("SetPlan", {"plan": chance.choice(plans)})
            elif what == 4:
                ask("AutoPlan")
            elif what == 5:
                check(d.call("PlanExplain")["explanation"]["plan"])
            elif what == 6:
                d.signal(SIGHUP)
                d.wait_notify(lambda m: m.get("READY") == "1")
            elif what == 7:
                check(d.call("Costs")["problem"]["units"] and d.call("PlanFront")["front"])
            else:
                ask("Calibrate", {"ms": 1})
            if len(waiting) > 4:
                answered(waiting.pop(0))
        for v in waiting:
            answered(v)
        while d.status()["state"] == "tuning":
            pass
        client.end()
        for event in d.call("History")["events"]:
            equal(event["lost"], 0, event)
        good_event(d, d.call("Retune", {"model": "digits", "trials": 1})["event"])


def what_was_kept_may_be_absurd():
    """Figures that are allowed but cannot be: the search measures, and ends with a plan that serves."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    with Daemon(config=QUICK, state_dir=temp) as d:
        d.call("Retune", {"trials": 1})
    path = os.path.join(temp, [f for f in os.listdir(temp) if f.startswith("model-")][0])
    with open(path, encoding="utf-8") as f:
        good = json.load(f)
    kinds = good["states"][0]["costs"]
    for ns in (1e15, 1e-3, 1e308, -1.0, 0.0):
        for handoff in (0.0, 1e10, 1e308):
            state = dict(good["states"][0], handoff_ns=handoff, costs={
                kind: {str(w): [[ns if (u + w) % 3 else 5e4, 0.01] for u in range(len(rows["1"]))]
                       for w in range(1, 3)} for kind, rows in kinds.items()})
            with open(path, "w", encoding="utf-8") as f:
                json.dump(dict(good, states=[state]), f)
            with Daemon(config=QUICK, state_dir=temp) as d:
                check(d.call("PlanFront")["front"] and d.call("PlanExplain")["explanation"])
                for name in ("exact", "pipe-it", "shisha"):
                    event = d.call("Retune", {"algorithm": name})["event"]
                    good_event(d, event)
                    check(event["trial_count"] <= 20 or name != "exact", event)
    shutil.rmtree(temp)


def state_that_cannot_be_kept():
    """Said once, and the search's end is what it would have been."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    with Daemon(config=QUICK, state_dir=temp) as d:
        d.call("Retune", {"trials": 1})
        name = [f for f in os.listdir(temp) if f.startswith("model-")][0]
        os.mkdir(os.path.join(temp, name + ".new"))  # nothing can be written there
        event = d.call("Retune", {"trials": 1})["event"]
        good_event(d, event)
        check("could not be kept" in d.log(), d.log())
        os.rmdir(os.path.join(temp, name + ".new"))
        os.symlink("/dev/full", os.path.join(temp, name + ".new"))
        before = os.path.getsize(os.path.join(temp, name))
        good_event(d, d.call("Retune", {"trials": 1})["event"])
        check(os.path.isfile(os.path.join(temp, name)) and not os.path.islink(os.path.join(temp, name)))
        check(os.path.getsize(os.path.join(temp, name)) > before / 2, "a full disk left half a file")
    shutil.rmtree(temp)


def objectives():
    with Daemon(config=QUICK) as d:
        units = d.status()["models"][0]["units"]
        event = d.call("Retune", {"objective": "latency"})["event"]
        equal(event["objective"], "latency")
        good_event(d, event)
        fails(d, "org.varlink.service.InvalidParameter", "Retune", {"objective": "power"})
        event = d.call("Retune", {"objective": "power", "fps": 1})["event"]
        equal(event["objective"], "power")
        good_event(d, event)
        equal(units, d.status()["models"][0]["units"])
        good_event(d, d.call("Retune", {"latency_ms": 1000, "fps": 2.5})["event"])
        good_event(d, d.call("Retune", {"algorithm": "shisha", "objective": "latency", "heuristic": 5})["event"])


def least_patience():
    with Daemon(config=QUICK) as d:
        for name in ("shisha", "random", "hill-climbing", "annealing"):
            event = d.call("Retune", {"algorithm": name, "alpha": 1, "seed": 7})["event"]
            good_event(d, event)
            once = d.call("Retune", {"algorithm": name, "trials": 1})["event"]
            equal(once["trial_count"], 1)


def same_seed_same_first_question():
    with Daemon(config=QUICK) as d:
        plan = d.call("GetPlan")["plan"]
        asked = []
        for _ in range(2):
            d.call("SetPlan", {"plan": plan})
            event = d.call("Retune", {"algorithm": "random", "seed": 11, "trials": 1})["event"]
            asked.append([t["plan"] for t in event["trials"] if t["role"] == "search"])
        equal(asked[0], asked[1])


def one_unit():
    """Nothing to cut: every search ends with the obvious plan."""
    with open(SYNTH, encoding="utf-8") as f:
        network = json.load(f)
    network["layers"] = network["layers"][:1]
    d = Daemon(config=QUICK)
    path = os.path.join(d.temp, "one.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(network, f)
    d.models = {"one": path}
    with d:
        equal(d.status()["models"][0]["units"], 1)
        for name in ALGORITHMS:
            try:
                good_event(d, d.call("Retune", {"algorithm": name, "trials": 6})["event"], ("switched", "kept", "reverted",
                                                                                           "failed"))
            except VarlinkError as e:
                raise AssertionError("%s: %s" % (name, e)) from e
            serving(d)


def one_core():
    with Daemon(config=dict(QUICK, eps=[{"name": "only", "cpus": "0"}])) as d:
        for name in ALGORITHMS:
            event = d.call("Retune", {"algorithm": name, "trials": 6})["event"]
            good_event(d, event, ("switched", "kept", "reverted", "failed"))
            serving(d)


def small_gains_are_compared_again():
    """A first figure that is seconds old decides nothing: the pair at the end does, and it is what the event tells."""
    with Daemon(config=QUICK) as d:
        seen = 0
        for seed in range(40):
            event = d.call("Retune", {"algorithm": "random", "trials": 2, "seed": seed})["event"]
            good_event(d, event)
            trials = event["trials"]
            again = [t for t in trials if t["role"] == "again"]
            if event["outcome"] == "kept":
                equal(again, [])
            if not again:
                check(event["outcome"] == "kept" or event["fps_after"] > 1.1 * event["fps_before"], event)
                continue
            seen += 1
            before = again[0]
            equal([before["plan"], trials[0]["plan"]], [event["plan_before"]] * 2)
            check(abs(event["fps_before"] * before["bottleneck_ms"] - 1000) < 1e-6, event)
            check(len(again) <= 2 and trials[-len(again):] == again, trials)
            rival = again[1] if len(again) == 2 else trials[-2]
            check(rival["plan"] != event["plan_before"], event)
            if event["outcome"] == "switched":
                equal(event["plan_after"], rival["plan"])
                check(abs(event["fps_after"] * rival["bottleneck_ms"] - 1000) < 1e-6, event)
            else:
                check(event["outcome"] == "reverted" and rival["bottleneck_ms"] > 1.02 * before["bottleneck_ms"], event)
        check(seen > 0, "nothing was ever near")


def explained_without_frames():
    """Right after a retune nobody uses the model: the figures are the retune's, and say so."""
    with Daemon(config=QUICK) as d:
        went_back = 0
        for seed in range(12):
            event = d.call("Retune", {"algorithm": "random", "trials": 3, "seed": seed})["event"]
            e = d.call("PlanExplain")["explanation"]
            equal(e["plan"], event["plan_after"])
            check(e["measured"]["fps"] and all(s["measured_ms"] > 0 for s in e["stages"]), e)
            if event["trials"][-1]["plan"] != event["plan_after"]:  # switched back to, and idle since
                went_back += 1
                check(e["measured_at"] and abs(e["measured"]["fps"] / event["fps_after"] - 1) < 1e-6, e, event)
            if e["measured_at"]:
                check(e["measured_at"] <= event["at"], e["measured_at"], event["at"])
        check(went_back > 0, "no search ended elsewhere")
        client = Client(d)
        while client.answered < 50 and not client.error:
            pass
        equal(d.call("PlanExplain")["explanation"]["measured_at"], None)
        client.end()


def two_kinds():
    """Shapes that nothing is known of are run first, and then never again."""
    if os.cpu_count() < 2:
        return "one core"
    config = dict(QUICK, eps=[{"name": "a", "cpus": "0"}, {"name": "b", "cpus": "1", "speed": 0.5}])
    with Daemon(config=config) as d:
        units = d.status()["models"][0]["units"]
        d.call("SetPlan", {"plan": "0-%d@a" % (units - 1)})
        event = d.call("Retune")["event"]
        good_event(d, event)
        shapes = [t["plan"] for t in event["trials"] if t["role"] == "shapes"]
        equal(shapes, ["0-%d@b+a" % (units - 1)])
        event = d.call("Retune")["event"]
        good_event(d, event)
        equal([t for t in event["trials"] if t["role"] == "shapes"], [])
        event = d.call("Retune", {"algorithm": "shisha"})["event"]
        equal([t for t in event["trials"] if t["role"] == "shapes"], [])


def nonsense_is_refused():
    with Daemon(config=QUICK) as d:
        invalid = "org.varlink.service.InvalidParameter"
        why = fails(d, "Unsupported", "Retune", {"algorithm": "wishful"})["why"]
        check(all(a in why for a in ALGORITHMS), why)
        why = fails(d, "Unsupported", "Retune", {"objective": "beauty"})["why"]
        check("latency" in why and "power" in why, why)
        for parameters in ({"fps": -1}, {"fps": 1e300}, {"latency_ms": -0.5}, {"alpha": -1}, {"heuristic": 7},
                           {"trials": -1}, {"seed": -3}, {"alpha": 10**12}, {"trials": 10**18},
                           {"fps": "x"}, {"wait": 1}, {"alpha": 1.5}, {"other": 1}):
            got = fails(d, invalid, "Retune", parameters)
            equal(got, {"parameter": list(parameters)[0]})
        fails(d, "NotFound", "Retune", {"model": "x"})
        serving(d)
        equal(len(d.call("History")["events"]), 1, "a refusal left an event")


def low_load_is_not_taken_for_the_plan():
    """A client that sends a frame now and then: figures are those of the plan, not of the client."""
    with Daemon(config=QUICK) as d, pyclient.Connection(d.frames_path) as c:
        alone = d.call("Retune", {"algorithm": "shisha", "trials": 1})["event"]["fps_before"]
        s = pyclient.Stream(c, inline=True, credits=1)
        frame = b"\0" * s.input_bytes
        stop = threading.Event()
        sent = [0]

        def trickle():
            while not stop.wait(0.002):
                equal(s.infer(frame).status, "ok")
                sent[0] += 1

        t = threading.Thread(target=trickle)
        t.start()
        while sent[0] < 5:
            pass
        event = d.call("Retune", {"algorithm": "shisha", "trials": 1})["event"]
        stop.set()
        t.join()
        good_event(d, event)
        # ten times below would be the pace of the client: 500 frames a second
        check(event["fps_before"] > alone / 8 or event["fps_before"] > 1500, alone, event)


def a_slow_core_is_noticed():
    """With a core slowed by a competing program the search still ends and what serves was measured no worse."""
    exe = os.path.join(BUILD, "tests", "system", "slow_core")
    if not os.path.exists(exe) or os.cpu_count() < 2:
        return "no slow_core or one core"
    config = dict(QUICK, eps=[{"name": "a", "cpus": "0"}, {"name": "b", "cpus": "1"}])
    with Daemon(config=config) as d:
        thief = subprocess.Popen([exe, "1", "1333", "2000", "30"], stdout=subprocess.PIPE, text=True)
        try:
            equal(thief.stdout.readline(), "ready\n")
            client = Client(d)
            event = d.call("Retune")["event"]
            client.end()
            good_event(d, event)
            if event["outcome"] != "kept":
                check(event["outcome"] == "reverted" or event["fps_after"] >= 0.96 * event["fps_before"], event)
        finally:
            thief.kill()
            thief.wait()


if __name__ == "__main__":
    main([every_algorithm_ends_idle, every_algorithm_ends_under_traffic, network_description_under_bench,
          one_after_the_other, without_waiting, cancelled_in_the_middle, ended_by_its_time, unloaded_meanwhile,
          stopped_meanwhile, objectives, least_patience, same_seed_same_first_question, one_unit, one_core, two_kinds,
          small_gains_are_compared_again, explained_without_frames,
          two_models_at_once, a_caller_that_leaves, whatever_comes_meanwhile, what_was_kept_may_be_absurd,
          state_that_cannot_be_kept,
          nonsense_is_refused, low_load_is_not_taken_for_the_plan, a_slow_core_is_noticed])
