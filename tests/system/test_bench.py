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

sys.path.insert(0, os.path.join(ROOT, "bench"))
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


main([governor_settings_are_those_of_the_paper,
      plans_are_read, pipelines_are_predicted, trials_of_microseconds_keep_their_times, results_become_a_table,
      a_small_network_goes_through, starts_are_timed, starts_beside_a_load_are_compared])
