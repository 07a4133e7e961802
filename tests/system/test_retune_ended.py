#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Searches on live frames that are cancelled, ended by their time, by an unload or a stop, left by their caller, or
disturbed by whatever else is asked for; and state files that are absurd or cannot be written.

usage: test_retune_ended.py [CASE]...
"""
import itertools
import os
import random
import shutil
import tempfile
from signal import SIGHUP, SIGTERM

import kept_files
from daemon import DIGITS, HEARTBEAT, Daemon, VarlinkError, check, ended, equal, main
from searches import ALGORITHMS, FOREVER, QUICK, SHARE, SLOWDOWN, Client, fails, good_event, serving


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
        d.wait_state("serving")
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
    config = {"planner": {"frames": 10000, "measure_ms": 450, "tune_s": 3}}
    with Daemon(config=config) as d:
        event = d.call("Retune", {"algorithm": "exhaustive", "objective": "latency"})["event"]
        serving(d)
        equal(event["outcome"], "deadline")
        good_event(d, event, ("deadline",))
        check(event["trial_count"] >= 1, event)


def unloaded_meanwhile():
    with Daemon(models={"a": DIGITS, "b": DIGITS}, config=FOREVER) as d, d.connect() as v:
        v.send("io.piped.Retune", {"model": "b"})
        d.wait_state("tuning")
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
            d.wait_state("tuning")
            d.signal(SIGTERM)
            try:
                v.receive()
            except (VarlinkError, EOFError) as e:
                check(isinstance(e, EOFError) or e.error == "io.piped.Busy", e)
            client.stop.set()
            client.join()  # its last frames may find the daemon gone
            equal(d.wait_exit(), 0)


def a_caller_that_leaves():
    """It waits no longer; the search goes on without it and ends as any other."""
    with Daemon(config={"planner": {"frames": 10000, "measure_ms": 300}}) as d:
        for parameters in ({"algorithm": "exhaustive", "trials": 3}, {"trials": 2}):
            v = d.connect()
            v.send("io.piped.Retune", parameters)
            d.wait_state("tuning")
            v.close()
            d.wait_state("serving")
            event = d.call("History", {"limit": 1})["events"][0]
            good_event(d, event)
            check(1 <= event["trial_count"] <= parameters["trials"], event)


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
                ended(event)
                equal(event["lost"], 0)
                equal(d.call("GetPlan", {"model": model})["plan"], event["plan_after"])
        client.end()
        serving(d)


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
                ask("Profile", {"ms": 1})
            if len(waiting) > 4:
                answered(waiting.pop(0))
        for v in waiting:
            answered(v)
        d.wait_state("serving")
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
    good = kept_files.read(path)
    kinds = good["states"][0]["costs"]
    for ns, handoff in list(itertools.product((1e15, 1e-3, 1e308, -1.0, 0.0), (0.0, 1e10, 1e308)))[::SHARE]:
        state = dict(good["states"][0], handoff_ns=handoff, costs={
            kind: {str(w): [[ns if (u + w) % 3 else 5e4, 0.01] for u in range(len(rows["1"]))]
                   for w in range(1, 3)} for kind, rows in kinds.items()})
        kept_files.write(path, dict(good, states=[state]))
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
    with Daemon(config=QUICK, state_dir=temp, env=HEARTBEAT) as d:
        d.call("Retune", {"trials": 1})
        name = d.wait_until(lambda: [f for f in os.listdir(temp) if f.startswith("model-") and f.endswith(".json")])[0]
        os.mkdir(os.path.join(temp, name + ".new"))  # nothing can be written there
        event = d.call("Retune", {"trials": 1})["event"]
        good_event(d, event)
        check(d.wait_until(lambda: "cannot keep" in d.log()), d.log())
        os.rmdir(os.path.join(temp, name + ".new"))
        os.symlink("/dev/full", os.path.join(temp, name + ".new"))  # a draft is a file of its own, whatever lies there
        before = os.path.getsize(os.path.join(temp, name))
        good_event(d, d.call("Retune", {"trials": 1})["event"])
        check(d.wait_until(lambda: not os.path.islink(os.path.join(temp, name + ".new"))), os.listdir(temp))
        check(os.path.isfile(os.path.join(temp, name)) and not os.path.islink(os.path.join(temp, name)))
        check(os.path.getsize(os.path.join(temp, name)) > before / 2)
    shutil.rmtree(temp)


if __name__ == "__main__":
    main([without_waiting, cancelled_in_the_middle, ended_by_its_time, unloaded_meanwhile, stopped_meanwhile,
          a_caller_that_leaves, two_models_at_once, whatever_comes_meanwhile, what_was_kept_may_be_absurd,
          state_that_cannot_be_kept])
