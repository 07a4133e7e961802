#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Searches on live frames while a competing program slows a core: how good, how many trials, how much it disturbs.

usage: tuner_live.py [--build DIR] [--network NAME,...] [--algorithm NAME,...] [--factor F] [--measure-ms MS]
                     [--frames N] [--seconds S] [--start PLAN] [--json]
       tuner_live.py --shift KIND,... --results FILE [the same]

Each algorithm gets a daemon of its own that knows nothing and serves two even stages (--start: another plan, with N for
the last unit, H and I for the two in the middle, or "daemon" for its own first one). Core 0 is "fast"; core 1, slowed F
times by tests/system/slow_core, is "slow"; a client streams all the while. What is found is judged by the client: frames
answered in S seconds under the plan that serves at the end, against those of the plan that exhaustive found. "during" is
the throughput while tuning relative to that before. Needs root for the real-time priority, and two cores.

With --shift nobody asks: planner.algorithm is the search, shisha:2 is Shisha by heuristic 2, two even stages serve as the
daemon's own plan, and then the machine shifts. Kinds:
  governor    core 1's governor becomes powersave, its clock falls F times
  frequency   core 1's highest frequency is lowered F times
  load        another program takes core 1, so that it is F times slower
  hotplug     core 1, which was offline, comes
Governor and frequency are files of a tree that the daemon reads in place of sysfs, while the same program makes the core as
slow as they say. What the search ends with takes turns with the plan that exhaustive found under the same shift, S seconds
each. "to it" is the time from the shift until that plan served for good. Each cell is added to FILE; --report prints it.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PERIOD_US = 4000


def arguments():
    p = argparse.ArgumentParser(description="live searches against a slowed core")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--network", help="names in model/networks, or files; default: squeezenet1_1, and without --shift mobilenet_v1")
    p.add_argument("--algorithm", help="default: every search that pipesim lists, after exhaustive")
    p.add_argument("--factor", type=float, default=3.0)
    p.add_argument("--measure-ms", type=int, default=2000)
    p.add_argument("--frames", type=int, default=24)
    p.add_argument("--seconds", type=float, default=5.0)
    p.add_argument("--start", default="0-H@fast|I-N@slow")
    p.add_argument("--json", action="store_true")
    p.add_argument("--shift")
    p.add_argument("--results")
    p.add_argument("--report", action="store_true")
    options = p.parse_args()
    options.network = options.network or ("squeezenet1_1" if options.shift else "squeezenet1_1,mobilenet_v1")
    return options


def algorithms(build):
    """All searches; first the one that finds the plan by which the others are judged."""
    done = subprocess.run([os.path.join(build, "tuner", "pipesim"), "list", "--json"], capture_output=True, text=True, check=True)
    names = [a["name"] for a in json.loads(done.stdout)["algorithms"]]
    return sorted(names, key=lambda name: name != "exhaustive")


def model_of(network):
    """Of a name in model/networks, or a file's path."""
    path = network if os.sep in network else os.path.join(ROOT, "model", "networks", network + ".json")
    return {os.path.splitext(os.path.basename(path))[0]: path}


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
    with Daemon(models=model_of(network), config=config) as d:
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


# ---- shifts ----

SEARCHES = ["shisha:%d" % h for h in range(1, 7)] + ["pipe-search", "pipe-it", "nsga2", "random", "hill-climbing",
                                                     "hill-climbing-seeded", "annealing", "annealing-seeded"]
SETTLES_S = 180  # a search, and the turns of its plan


class Thief:
    """Makes core 1 as much slower as the options say."""

    def __init__(self, options):
        self.options, self.process = options, None

    def begin(self):
        busy = int(PERIOD_US * (1 - 1 / self.options.factor))
        self.process = subprocess.Popen([os.path.join(self.options.build, "tests", "system", "slow_core"), "1", str(busy),
                                         str(PERIOD_US), "7200"], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Shifting:
    """A daemon on a tree of files, its client, and the shift to come. @adapting: it acts on that by this search."""

    def __init__(self, options, Daemon, Tree, network, kind, adapting=None, state=None):
        name, _, heuristic = (adapting or "exact").partition(":")
        self.options, self.kind, self.thief = options, kind, Thief(options)
        self.d = Daemon(models=model_of(network), state_dir=state, config={
            "eps": [{"name": "fast", "cpus": "0"}, {"name": "slow", "cpus": "1"}], "sensors": {"interval_ms": 200},
            "adapt": {"enabled": bool(adapting)},
            "planner": {"frames": options.frames, "measure_ms": options.measure_ms, "tune_s": 600, "algorithm": name,
                        "heuristic": int(heuristic or 0)}})
        self.tree = Tree(self.d.temp)
        self.d.args = ["--sysfs-root", self.tree.root]
        if kind == "hotplug":
            self.tree.put("sys/devices/system/cpu/online", "0")

    def __enter__(self):
        self.d.start()
        self.client = subprocess.Popen(
            [os.path.join(self.options.build, "apps", "pipectl", "pipectl"), "--socket", self.d.control_path, "bench",
             "--seconds", "3600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, PIPED_RUNTIME_DIR=self.d.runtime_dir))
        while answered(self.d) < 10:
            time.sleep(0.05)
        return self

    def __exit__(self, *exc):
        self.thief.end()
        self.client.kill()
        self.client.wait()
        self.d.__exit__(*exc)

    def model(self):
        return self.d.status()["models"][0]

    def shift(self):
        khz = int(self.tree.top / self.options.factor)
        if self.kind == "hotplug":
            self.tree.put("sys/devices/system/cpu/online", "0-1")
            return
        if self.kind == "governor":
            self.tree.policy(1, "scaling_governor", "powersave")
        if self.kind == "frequency":
            self.tree.policy(1, "scaling_max_freq", khz)
        if self.kind != "load":
            self.tree.policy(1, "scaling_cur_freq", khz)
        self.thief.begin()

    def serve(self, plan):
        self.d.call("SetPlan", {"plan": plan})
        time.sleep(0.5)
        return rate(self.d, self.options.seconds)


def begin_with_two_stages(options, Daemon, Tree, network, state):
    """Keeps two even stages in the folder, as a plan of the daemon's own."""
    import kept_files  # of tests/system, found by main()
    with Shifting(options, Daemon, Tree, network, "load", state=state) as s:
        last = s.model()["units"] - 1
        s.d.call("SetPlan", {"plan": "0-%d@fast|%d-%d@slow" % (last // 2, last // 2 + 1, last)})
        time.sleep(1)
    for name in os.listdir(state):
        if name.startswith("model-"):
            path = os.path.join(state, name)
            text = json.dumps(kept_files.read(path), separators=(",", ":"))
            kept_files.write(path, json.loads(text.replace('"algorithm":"manual"', '"algorithm":"exact"')))


def exhaustive_plan(options, Daemon, Tree, network, kind):
    """The best pipeline of all; the plan of before, whole frames on both cores, is none."""
    with Shifting(options, Daemon, Tree, network, kind) as s:
        s.shift()
        if kind == "hotplug":
            while len(s.d.status()["eps"]) < 2:
                time.sleep(0.1)
        with s.d.connect() as v:
            v.sock.settimeout(700)
            event = v.call("io.piped.Retune", {"algorithm": "exhaustive", "seed": 1})["event"]
    return min((t["bottleneck_ms"], t["plan"]) for t in event["trials"]
               if t["role"] == "search" and not t["failed"] and not t["stopped"])[1]


def cell(options, Daemon, Tree, network, kind, algorithm, best, state):
    """What one search makes of one shift."""
    with tempfile.TemporaryDirectory(prefix="piped-bench-") as folder:
        own = os.path.join(folder, "state")
        if kind == "hotplug":
            os.mkdir(own)
        else:
            shutil.copytree(state, own)
        with Shifting(options, Daemon, Tree, network, kind, algorithm, own) as s:
            while s.model()["adapt"]["state"] != "watching":
                time.sleep(0.1)
            time.sleep(1)
            before = {e["id"] for e in s.d.call("History")["events"]}
            plans, began, event = [], time.monotonic(), None
            s.shift()
            while time.monotonic() - began < SETTLES_S:
                m = s.model()
                plans.append((time.monotonic() - began, m["plan"]))
                event = event or next((e for e in s.d.call("History")["events"] if e["id"] not in before and
                                       e["algorithm"] == algorithm.split(":")[0] and
                                       (algorithm == "exact" or any(t["role"] == "search" for t in e["trials"]))), None)
                if event and m["adapt"]["state"] == "watching":
                    break
                time.sleep(0.05)
            plan = plans[-1][1]
            changed = next((t for (t, _), (_, p) in zip(plans[1:][::-1], plans[:-1][::-1]) if p != plan), 0.0)
            fps = [s.serve(p) for p in (plan, best, plan, best)]
            frames = s.model()["frames"]
    return {"network": network, "shift": kind, "algorithm": algorithm, "plan": plan, "best": best,
            "to_it_s": changed, "of_best": (fps[0] + fps[2]) / (fps[1] + fps[3]), "fps": fps,
            "trials": event.get("trial_count", 0) if event else 0, "cause": event["cause"] if event else None,
            "lost": frames["failed"] + frames["dropped"]}


def shifts(options, Daemon, Tree):
    cells = []
    if os.path.exists(options.results):
        with open(options.results, encoding="utf-8") as f:
            cells = json.load(f)
    for network in options.network.split(",") if not options.report else ():
        with tempfile.TemporaryDirectory(prefix="piped-bench-") as folder:
            state = os.path.join(folder, "state")
            os.mkdir(state)
            begin_with_two_stages(options, Daemon, Tree, network, state)
            for kind in options.shift.split(","):
                best = exhaustive_plan(options, Daemon, Tree, network, kind)
                for algorithm in options.algorithm.split(",") if options.algorithm else SEARCHES:
                    cells.append(cell(options, Daemon, Tree, network, kind, algorithm, best, state))
                    with open(options.results, "w", encoding="utf-8") as f:
                        json.dump(cells, f, indent=1)
                    c = cells[-1]
                    print("%-9s %-20s %5.3f of %s, after %5.1f s and %3d trials: %s" % (
                        kind, algorithm, c["of_best"], best, c["to_it_s"], c["trials"], c["plan"]), flush=True)
    return cells


def report_shifts(cells):
    """Of each search and kind of shift: seconds to its plan and trials, if that is within 5 % of exhaustive's."""
    kinds = [k for k in ("governor", "frequency", "load", "hotplug") if any(c["shift"] == k for c in cells)]
    print("| search | " + " | ".join(kinds) + " |\n| --- |" + " --- |" * len(kinds))
    for algorithm in dict.fromkeys(c["algorithm"] for c in cells):
        row = []
        for kind in kinds:
            of = [c for c in cells if c["shift"] == kind and c["algorithm"] == algorithm]
            row.append("; ".join("%s%.1f s, %d, %.2f" % ("" if c["of_best"] >= 0.95 else "not: ", c["to_it_s"], c["trials"],
                                                         c["of_best"]) for c in of))
        print("| `%s` | %s |" % (algorithm, " | ".join(row)))
    print("frames lost: %d of all cells" % sum(c["lost"] for c in cells))


def main():
    options = arguments()
    os.environ.setdefault("PIPED_BUILD", options.build)
    sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
    from daemon import Daemon  # reads PIPED_BUILD
    if options.results:
        import adapting
        adapting.Tree.top = adapting.TOP
        report_shifts(shifts(options, Daemon, adapting.Tree))
        return
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
