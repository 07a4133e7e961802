#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Searches on live frames while a competing program slows a core: how good, how many trials, how much it disturbs.

usage: tuner_live.py [--build DIR] [--network NAME,...] [--algorithm NAME,...] [--factor F] [--measure-ms MS]
                     [--frames N] [--seconds S] [--start PLAN] [--json]

Each algorithm gets a daemon of its own that knows nothing and serves two even stages (--start: another plan, with N for
the last unit, H and I for the two in the middle, or "daemon" for its own first one). Core 0 is "fast"; core 1, slowed F
times by tests/system/slow_core, is "slow"; a client streams all the while. What is found is judged by the client: frames
answered in S seconds under the plan that serves at the end, against those of the plan that exhaustive found. "during" is
the throughput while tuning relative to that before. Needs root for the real-time priority, and two cores.
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PERIOD_US = 4000


def arguments():
    p = argparse.ArgumentParser(description="live searches against a slowed core")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--network", default="squeezenet1_1,mobilenet_v1")
    p.add_argument("--algorithm", help="default: every search that pipesim lists, after exhaustive")
    p.add_argument("--factor", type=float, default=3.0)
    p.add_argument("--measure-ms", type=int, default=2000)
    p.add_argument("--frames", type=int, default=24)
    p.add_argument("--seconds", type=float, default=5.0)
    p.add_argument("--start", default="0-H@fast|I-N@slow")
    p.add_argument("--json", action="store_true")
    return p.parse_args()


def algorithms(build):
    """All searches; first the one that finds the plan by which the others are judged."""
    done = subprocess.run([os.path.join(build, "tuner", "pipesim"), "list", "--json"], capture_output=True, text=True, check=True)
    names = [a["name"] for a in json.loads(done.stdout)["algorithms"]]
    return sorted(names, key=lambda name: name != "exhaustive")


def answered(d):
    return d.status()["models"][0]["frames"]["answered"]


def rate(d, seconds):
    """Frames a second that the client got."""
    first, start = answered(d), time.monotonic()
    time.sleep(seconds)
    return (answered(d) - first) / (time.monotonic() - start)


def run(options, Daemon, network, algorithm):
    config = {"planner": {"frames": options.frames, "measure_ms": options.measure_ms, "tune_s": 1200},
              "eps": [{"name": "fast", "cpus": "0"}, {"name": "slow", "cpus": "1"}]}
    path = os.path.join(ROOT, "model", "networks", network + ".json")
    with Daemon(models={network: path}, config=config) as d:
        last = d.status()["models"][0]["units"] - 1
        if options.start != "daemon":
            plan = options.start.replace("N", str(last)).replace("H", str(last // 2)).replace("I", str(last // 2 + 1))
            d.call("SetPlan", {"plan": plan})
        client = subprocess.Popen([os.path.join(options.build, "apps", "pipectl", "pipectl"), "--socket", d.control_path, "bench",
                                   "--seconds", "3600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, PIPED_RUNTIME_DIR=d.runtime_dir))
        try:
            while answered(d) < 10:
                time.sleep(0.05)
            before = rate(d, options.seconds)
            first, start = answered(d), time.monotonic()
            with d.connect() as v:
                v.sock.settimeout(1300)
                event = v.call("io.piped.Retune", {"algorithm": algorithm, "seed": 1})["event"]
            took = time.monotonic() - start
            during = (answered(d) - first) / took
            time.sleep(0.5)
            after = rate(d, options.seconds)
            frames = d.status()["models"][0]["frames"]
        finally:
            client.kill()
            client.wait()
    searched = [t for t in event["trials"] if t["role"] == "search"]
    return {"network": network, "algorithm": algorithm, "outcome": event["outcome"], "plan": event["plan_after"],
            "fps_before": before, "fps_after": after, "fps_during": during, "during": during / before,
            "trials": event["trial_count"], "stopped": sum(t["stopped"] for t in searched),
            "shapes": sum(t["role"] == "shapes" for t in event["trials"]), "tuning_s": took,
            "failed": frames["failed"] + frames["dropped"]}


def main():
    options = arguments()
    os.environ.setdefault("PIPED_BUILD", options.build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
    from daemon import Daemon  # reads PIPED_BUILD
    searches = options.algorithm.split(",") if options.algorithm else algorithms(options.build)
    results = []
    busy = int(PERIOD_US * (1 - 1 / options.factor))
    thief = None
    if options.factor > 1:
        thief = subprocess.Popen([os.path.join(options.build, "tests", "system", "slow_core"), "1", str(busy),
                                  str(PERIOD_US), "7200"], stdout=subprocess.PIPE, text=True)
        thief.stdout.readline()
    try:
        for network in options.network.split(","):
            best = None
            if not options.json:
                print("%s, core 1 slowed %.1fx\n%-22s %8s %6s %7s %7s %7s %8s  %s" % (
                    network, options.factor, "algorithm", "of best", "trials", "stopped", "shapes", "during", "tuning_s",
                    "plan"))
            for algorithm in searches:
                r = run(options, Daemon, network, algorithm)
                best = r["fps_after"] if algorithm == "exhaustive" else best
                r["of_best"] = r["fps_after"] / best if best else None
                results.append(r)
                if not options.json:
                    print("%-22s %8s %6d %7d %7d %7.2f %8.1f  %s (%s, %.2f of before)" % (
                        algorithm, "%.3f" % r["of_best"] if best else "-", r["trials"], r["stopped"], r["shapes"],
                        r["during"], r["tuning_s"], r["plan"], r["outcome"], r["fps_after"] / r["fps_before"]),
                        flush=True)
    finally:
        if thief:
            thief.kill()
            thief.wait()
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
