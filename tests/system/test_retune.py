#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Searches on live frames: every algorithm ends and serves, idle and under traffic, no frame is lost, doubled,
reordered or wrong meanwhile; asked for nonsense.

usage: test_retune.py [CASE]...
"""
import json
import os
import subprocess
import threading

import pyclient
from daemon import BUILD, Daemon, VarlinkError, check, equal, main, until
from searches import ALGORITHMS, QUICK, SHARE, SYNTH, Client, fails, good_event, serving


def every_algorithm_ends_idle():
    with Daemon(config=QUICK) as d:
        for name in ALGORITHMS[::SHARE]:
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
        for name in ALGORITHMS[SHARE // 2::SHARE]:
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
    if os.environ.get("PIPED_TEST_SANITIZER") == "tsan":
        return "a frame of this network takes seconds under ThreadSanitizer; the other cases run there"
    with Daemon(models={"synth": SYNTH}, config=QUICK) as d:
        result = {}
        t = threading.Thread(target=lambda: result.update(d.pipectl("bench", "--seconds", "3", "--verify")))
        t.start()
        until(lambda: d.status()["models"][0]["frames"]["answered"] or not t.is_alive(), "a frame of bench")
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
        good_event(d, d.call("Retune", {"algorithm": "nsga2", "encoding": "ne", "stages": 1, "trials": 3})["event"])


def auto_keeps_what_a_retune_found():
    """A plan that the costs predict to be better, but that the retune measured as clearly worse, is not taken."""
    with Daemon(config=QUICK) as d:
        event = d.call("Retune", {"algorithm": "random", "seed": 3, "trials": 12})["event"]
        complete = {t["plan"]: t["bottleneck_ms"] for t in event["trials"] if not t["failed"] and not t["stopped"]}
        for plan in sorted(complete, key=complete.get)[::-1][:3]:
            d.call("SetPlan", {"plan": plan})
            auto = d.call("AutoPlan")["plan"]
            equal(d.call("GetPlan")["plan"], auto)
            check(complete.get(auto, 0) <= 1.25 * complete[event["plan_after"]], auto, event)


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
            if SHARE > 1 and seen >= 3:
                break
            event = d.call("Retune", {"algorithm": "random", "trials": 2, "seed": seed})["event"]
            good_event(d, event)
            trials = event["trials"]
            again = [t for t in trials if t["role"] == "again"]
            if event["outcome"] == "kept":
                equal(again, [])
            if not again:
                check(event["outcome"] == "kept" or event["fps_after"] > 1.1 * (event["fps_before"] or 0), event)
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
        until(lambda: client.answered >= 50 or client.error, "50 frames")
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
        check(shapes in (["0-%d@%s" % (units - 1, teams)] for teams in ("b+a", "a+b")), shapes)  # as the cores' speeds are
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
                           {"encoding": "dna"}, {"stages": 17},
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
        until(lambda: sent[0] >= 5, "five frames")
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
          one_after_the_other, objectives, auto_keeps_what_a_retune_found, least_patience,
          same_seed_same_first_question, one_unit, one_core, small_gains_are_compared_again, explained_without_frames,
          two_kinds, nonsense_is_refused, low_load_is_not_taken_for_the_plan, a_slow_core_is_noticed])
