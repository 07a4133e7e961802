#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the scripts of bench/ count and print, and one of them run on a small network.

usage: test_bench.py [CASE]...
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

from daemon import BUILD, DIGITS, LIMIT_S, ROOT, check, equal, main
from test_adapt_load import no_thief

sys.path.insert(0, os.path.join(ROOT, "bench"))
import adapt_cost  # noqa: E402
import adapt_cost_figures as figures  # noqa: E402
import governors  # noqa: E402


def governor_settings_are_those_of_the_paper():
    equal([tuple(round(f, 2) for f in governors.factors(n)) for n in (1, 2, 3, 4)],
          [(1, 1), (5.9, 1), (1, 5.9), (5.9, 5.9)], "Denver, A57")
    equal(sum(governors.VGG16_LAYERS), 21, "layers of VGG-16 as the paper counts them")
    for plan, _ in governors.PAPER.values():
        equal(sum(plan), 21, plan)


def plans_are_read():
    equal(governors.stages("0@denver|1-15@a57"), [(0, 0, "denver"), (1, 15, "a57")])
    equal(governors.layers("0-3@denver|4-15@a57"), [6, 15])
    equal(governors.layers("0-15@denver+a57"), [21])
    equal(governors.layers("0-3@denver|4-8@a57"), [4, 5], "another network's units")
    check(governors.is_pipeline("0-3@denver|4-15@a57"))
    check(not governors.is_pipeline("0-15@denver+a57") and not governors.is_pipeline("0-15@denver*2"))


def pipelines_are_predicted():
    costs = {"denver": {"1": [1e6, 2e6, 3e6]}, "a57": {"1": [6e6, 12e6, 18e6]}}
    equal(governors.predicted(costs), {"0-0@denver|1-2@a57": 30, "0-0@a57|1-2@denver": 6, "0-1@denver|2-2@a57": 18,
                                       "0-1@a57|2-2@denver": 18})


def trials_of_microseconds_keep_their_times():
    trial = {"plan": "0-15@denver|16-16@a57", "role": "search", "failed": False, "bottleneck_ms": 0.004}
    found = governors.outcome({"plan_after": trial["plan"], "outcome": "kept", "trial_count": 1, "trials": [trial]}, 1)
    equal(found["tried"], {trial["plan"]: 0.004})
    results = {"settings": {"1": {"searches": {"exact": found}, "pipelines": []}}}
    equal(governors.candidates(results), [trial["plan"]])
    equal(governors.median_fps(results, 1, trial["plan"]), 250000)


RESULTS = {"settings": {
    "1": {"searches": {"exact": {"plan": "0-15@denver+a57", "tried": {"0-15@denver+a57": 100.0}},
                       "pipe-search": {"plan": "0-5@denver|6-15@a57", "tried": {"0-5@denver|6-15@a57": 125.0}}},
          "pipelines": [["0-4@denver|5-15@a57", 120.0, 7.0]],
          "fps": {"0-5@denver|6-15@a57": [8.0, 9.0, 7.0], "0-12@a57|13-15@denver": [2.0], "0-15@denver+a57": [9.5]}},
    "2": {"searches": {"exact": {"plan": "0-15@denver+a57", "tried": {"0-5@denver|6-15@a57": 400.0}}},
          "pipelines": [["0-12@a57|13-15@denver", 200.0, 4.5], ["0-13@a57|14-15@denver", 210.0, 4.0]]}}}


def results_become_a_table():
    pipe, other, dealt = "0-5@denver|6-15@a57", "0-12@a57|13-15@denver", "0-15@denver+a57"
    equal(governors.candidates(RESULTS), [pipe, other, dealt])
    equal(governors.best_pipeline(RESULTS["settings"]["1"]), pipe)
    equal(governors.best_pipeline(RESULTS["settings"]["2"]), other)
    text = governors.report(RESULTS)
    check("| 1 | performance, performance | [6, 5, 10], 1.22 | `0-5@denver\\|6-15@a57` | [8, 13] | 8.00 |" in text[2], text[2])
    check("| `0-5@denver\\|6-15@a57` | **8.00** | 2.50 |" in text, text)
    check("| `0-12@a57\\|13-15@denver` | 2.00 | **4.50** |" in text, text)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plot.svg")
        governors.plot(RESULTS, path)
        bars = xml.dom.minidom.parse(path).getElementsByTagName("rect")
        equal(len(bars), 1 + 3 + 5, "background, legend, bars of what was run")


def a_small_network_goes_through():
    """Setting 1 slows nothing and needs no right to a real-time priority."""
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results.json")
        for step in (["--search", "1", "--alpha", "2", "--measure-ms", "100"], ["--matrix", "1", "--rounds", "1"], ["--report"]):
            r = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "governors.py"), "--build", BUILD, "--model", DIGITS,
                                "--results", results, "--seconds", "0.1"] + step, capture_output=True, text=True,
                               timeout=LIMIT_S, check=False)
            equal(r.returncode, 0, r.stdout + r.stderr)
        with open(results, encoding="utf-8") as f:
            found = json.load(f)["settings"]["1"]
    equal(sorted(found["searches"]), ["exact", "pipe-search"])
    check(governors.is_pipeline(found["searches"]["pipe-search"]["plan"]), found)
    equal(len(found["pipelines"]), governors.FIRST)
    check(found["fps"] and all(len(v) == 1 and v[0] > 0 for v in found["fps"].values()), found)
    check("| 1 | performance, performance |" in r.stdout, r.stdout)


def starts_are_timed():
    r = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "start.py"), "--build", BUILD, "--runs", "2", "--frames", "3",
                        DIGITS], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    equal(r.returncode, 0, r.stdout + r.stderr)
    found = json.loads(r.stdout)
    equal(found["network"], "digits.onnx")
    check(0 < found["ready_s"]["min"] <= found["ready_s"]["median"] <= found["first_frame_s"]["median"], found)
    check(found["resident_mb"] > found["weights_mb"] and found["bound_mb"] >= 20, found)


def starts_beside_a_load_are_compared():
    r = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "busy_start.py"), "--build", BUILD, "--busy", "1",
                        "--settle-s", "0.5", "--rate", "20", "--rounds", "2", "--seconds", "0.1", "--measure-ms", "20", DIGITS],
                       capture_output=True, text=True, timeout=2 * LIMIT_S, check=False)
    equal(r.returncode, 0, r.stdout + r.stderr)
    found = json.loads(r.stdout)
    equal((found["network"], found["busy_processes"], found["rate"]), ("digits.onnx", 1, 20))
    equal(sorted(found["differ_from_quiet"]), ["busy", "busy_first", "quiet_first"])
    for start in found["starts"].values():
        check(0 <= start["doubt"] <= 1 and start["changes"] <= start["measured_again"], start)
    equal(sorted(found["plans"]), ["busy", "busy_first", "quiet", "quiet_again"])
    for what in ("one_frame", "many_frames"):
        for clock in ("ms", "cpu_ms"):
            times, ratios = found[what][clock], found[what][clock + "_ratio"]
            equal(sorted(times), sorted(found["plans"]))
            equal(sorted(ratios), ["busy", "busy_first", "quiet_again"])
            check(all(0 < v["min"] <= v["median"] <= v["max"] for v in [*times.values(), *ratios.values()]), found)


def costs_of_adapting_are_counted():
    equal(figures.whole("0-25@big+big.1"), "0-25@big*2")
    equal(figures.whole("0-3@big.1|4-9@bigx2*3/4+big"), "0-3@big|4-9@big+bigx2/4*3")
    equal(figures.whole("0-25@a+a.10+b"), "0-25@a*2+b")
    equal([figures.counted_s(d) for d in (1, 4, 15, "forever")], [10, 10, 21, 30])

    def event(before, after, outcome, verdict=None):
        turns = {"turns": {"verdict": verdict}} if verdict else {}
        return {"plan_before": before, "plan_after": after, "outcome": outcome, **turns}

    equal(figures.changes([event(None, "0-9@a", "serving"), event("0-9@a*2", "0-4@a|5-9@a.1", "switched", "better"),
                              event("0-9@a.1+a", "0-9@a*2", "switched"), event("0-9@a", "0-9@a", "kept", "worse"),
                              event("0-9@a", "0-9@a", "kept")]), (1, 1))
    rounds = [{"on": {"fps": on, "changes": 1, "lost_turns": i, "late_fps": late, "lost": 0, "turns": []},
               "off": {"fps": 100, "lost": 0}}
              for i, (on, late) in enumerate(((98, 60), (101, 90), (120, 95)))]
    cell = {"network": "n", "plan": "0-9@core*2", "cores": "one", "factor": 1.5, "duration": 15, "rounds": rounds,
            "best": {"plan": "p", "fps": 100, "first_fps": 80}}
    found = figures.figures(cell)
    equal((found["ratio"], found["changes"], found["lost_turns"], found["best_share"], found["best_gain"], found["lost"]),
          ({"median": 1.01, "min": 0.98, "max": 1.2}, 1, 1, 0.9, 1.25, 0))
    machine = {"cpu": "C", "cores": 2, "kernel": "6", "load": 0.5}
    text = figures.markdown({"machine": machine, "cpus": [0, 1], "command": "--best",
                                "cells": [cell, {**cell, "duration": "forever", "rounds": rounds[:1], "best": None}], "quiet": []})
    check("| n `0-9@core*2` | one core 1.5 times | 15 s | 1.010 | 0.980 to 1.200 | 1.0 | 1.0 | 0.0 % | 0.90 (gains 25 %) |" in text,
          text)
    check("| forever | 0.980 | 0.980 to 0.980 | 1.0 | 0.0 | 0.0 % | - |" in text and "1 of 2 cells are below 0.99" in text, text)
    idle = [{"on": {**r["on"], "fps": fps, "changes": 0, "lost_turns": 0}, "off": r["off"]}
            for r, fps in zip(rounds + rounds[:1], (98, 101, 99, 102))]
    cells = [{**cell, "rounds": idle}, {**cell, "rounds": [dict(r, on=dict(r["on"], fps=97)) for r in rounds]},
             {**cell, "rounds": [dict(r, on=dict(r["on"], fps=90)) for r in rounds]}]
    check(0.01 < figures.noise(cells) < 0.02 and figures.noise(cells[1:]) is None, figures.noise(cells))
    equal([figures.surely_low(c, figures.noise(cells)) for c in cells], [False, False, True])
    # 3 s in which 90 frames were answered, 25 ms each by the serving plan: 2.25 s
    samples = [(0, 0, "watching"), (1, 50, "watching"), (1.5, 60, "verifying"), (3, 100, "verifying"), (4, 140, "watching")]
    trials = [{"bottleneck_ms": 25}, {"bottleneck_ms": 50}]
    equal(figures.turns_cost_s(samples, [{"trials": trials}]), [0.75])
    equal(figures.turns_cost_s(samples[:4], [{"trials": trials}]), [None])
    equal(figures.turns_cost_s(samples, [{"trials": [{"bottleneck_ms": None}]}]), [None])
    lost = {"turns": {"verdict": "worse"}, "cost_s": 0.75}
    cells = [{"duration": 15, "rounds": [{"on": {"turns": [lost, lost, {"turns": {"verdict": "better"}, "cost_s": 1}]}},
                                         {"on": {"turns": [{**lost, "cost_s": None}]}}, {"on": {"turns": []}}]}]
    equal(figures.lost_turns_cost(cells), [1.5 / 21])
    costly = dict(rounds[0], on=dict(rounds[0]["on"], turns=[lost]))
    equal(figures.figures({**cell, "rounds": [costly, rounds[1]]})["turns_cost"], 0.75 / 21 / 2)
    equal(adapt_cost.arguments(["--networks", "all"]).networks, list(adapt_cost.NETWORKS))


def adapting_on_and_off_take_turns():
    """A run of a tenth of the time: that it runs, not what it shows."""
    if no_thief():
        return no_thief()
    with tempfile.TemporaryDirectory(prefix="piped-test-") as folder:
        results = os.path.join(folder, "results.json")
        r = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "adapt_cost.py"), "--build", BUILD, "--networks",
                            "squeezenet1_1", "--factors", "2", "--durations", "1", "--rounds", "1", "--seconds", "0.1", "--json",
                            results], capture_output=True, text=True, timeout=2 * LIMIT_S, check=False)
        equal(r.returncode, 0, r.stdout + r.stderr)
        with open(results, encoding="utf-8") as f:
            cell = json.load(f)["cells"][0]
    equal((cell["network"], cell["factor"], cell["duration"], len(cell["rounds"])), ("squeezenet1_1", 2.0, 1.0, 1))
    check(all(cell["rounds"][0][arm]["fps"] > 0 and cell["rounds"][0][arm]["lost"] == 0 for arm in ("on", "off")), cell)
    check("| squeezenet1_1 `" in r.stdout, r.stdout)
    return None


main([governor_settings_are_those_of_the_paper,
      plans_are_read, pipelines_are_predicted, trials_of_microseconds_keep_their_times, results_become_a_table,
      a_small_network_goes_through, starts_are_timed, starts_beside_a_load_are_compared,
      costs_of_adapting_are_counted, adapting_on_and_off_take_turns])
