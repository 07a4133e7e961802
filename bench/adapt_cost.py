#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What adapting costs or gains: frames answered with adapt on, over those with it off, under slowdowns of cores.

usage: adapt_cost.py [--build DIR] [--cpus A,B] [--networks A,...] [--plans own,stages] [--factors F,...]
                     [--durations S,...] [--cores one,both] [--rounds N] [--limit SECONDS] [--seconds SCALE] [--best]
                     [--json FILE] [--markdown FILE]
       adapt_cost.py --quiet SECONDS [--networks A,...] ...
       adapt_cost.py --report FILE...

A cell is a network, its first plan, a factor, a duration and which cores are slowed: the second of --cpus, or both.
tests/system/slow_core takes 1 - 1/F of a core in periods of 4 ms. Every round has the slowdown with adapt on and with it
off; the next round begins with the other one. One daemon serves both, since two differ by several percent; where the first
half changed the plan, the second half has a daemon of its own, which begins with the same plan and learned costs. A client
streams as fast as it is answered. Frames are counted from the onset on, for ten seconds or for six more than the slowdown
lasts; "forever" lasts for 30 s and does not end. --seconds scales all times. Every cell has its first round before any has
its second; no round begins after --limit.

  --plans own      the plan that the daemon finds on free cores
  --plans stages   two stages as equal as they can be, one on each core
  --best           also finds the best plan under the slowdown by exhaustive trial, and says which share of its frames
                   the adapting daemon makes from 5 s after the onset on, in cells that last that long
  --quiet          changes of plan in so many seconds without any slowdown

By default a subset that takes ten minutes. All cells: --networks all --plans own,stages --cores one,both
--factors 1.2,1.5,2,3,5 --durations 1,4,15,60,forever. Prints a table in Markdown; --json keeps every round, and --report
prints the table of one or several such files. Under it stands what rounds without any change or turns differ by: with adapt
on nothing else happens there than watching, so their spread is that of the machine. What lost turns cost does not need the other
half: the frames answered while they lasted, for those that the serving plan makes at the pace of its own turns. Needs root for
the real-time priority of slow_core, a build folder and two cores; no other program should run.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from adapt_cost_figures import FOREVER, changes, counted_s, lasts_s, markdown, seconds_text, turns_cost_s, whole
from machine import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETWORKS = ("alexnet", "googlenet", "mobilenet_v1", "resnet50", "resnet101", "squeezenet1_0", "squeezenet1_1", "vgg16", "yolov3")
PERIOD_US = 4000
CALM_S = 2       # watched before the onset
SOON_S = 5       # in which a better plan has to serve
LIMIT_S = 120    # of a wait for anything


def arguments(argv=None):
    def listed(of=str, among=None):
        def read(text):
            values = list(among) if among and text == "all" else [of(v) for v in text.split(",")]
            if among and not set(values) <= set(among):
                raise argparse.ArgumentTypeError("%s: known are %s" % (text, ", ".join(map(str, among))))
            return values
        return read

    p = argparse.ArgumentParser(description="what adapting costs or gains")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--cpus", type=listed(int), default=[0, 1])
    p.add_argument("--networks", type=listed(str, NETWORKS), default=["squeezenet1_1", "mobilenet_v1"])
    p.add_argument("--plans", type=listed(str, ("own", "stages")), default=["own"])
    p.add_argument("--factors", type=listed(float), default=[1.5, 3.0])
    p.add_argument("--durations", type=listed(lambda s: s if s == FOREVER else float(s)), default=[1.0, 8.0])
    p.add_argument("--cores", type=listed(str, ("one", "both")), default=["one"])
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--best", action="store_true")
    p.add_argument("--quiet", type=float)
    p.add_argument("--limit", type=float, default=math.inf)
    p.add_argument("--report", nargs="+")
    p.add_argument("--json")
    p.add_argument("--markdown")
    return p.parse_args(argv)


class Thief:
    """Competing programs on the slowed cores."""

    def __init__(self, options, cores, factor):
        self.commands = [[os.path.join(options.build, "tests", "system", "slow_core"), str(cpu),
                          str(int(PERIOD_US * (1 - 1 / factor))), str(PERIOD_US), "3600"]
                         for cpu in (options.cpus if cores == "both" else options.cpus[1:2])]
        self.processes = []

    def begin(self):
        self.processes = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in self.commands]
        for p in self.processes:
            if p.stdout.readline() != "ready\n":
                raise RuntimeError("slow_core did not begin: " + " ".join(self.commands[0]))

    def end(self):
        for p in self.processes:
            p.kill()
            p.wait()
            p.stdout.close()
        self.processes = []


class Sampler(threading.Thread):
    """Looks at a daemon ten times a second, from the begin to the end of a with statement."""

    def __init__(self, run):
        super().__init__()
        self.run_of, self.samples, self.ended = run, [], threading.Event()

    def __enter__(self):
        self.start()
        return self.samples

    def __exit__(self, kind, value, trace):
        self.ended.set()
        self.join()

    def run(self):
        while True:
            m = self.run_of.model()
            self.samples.append((time.monotonic(), m["frames"]["answered"], m["adapt"]["state"]))
            if self.ended.wait(0.1):
                return


class Run:
    """A daemon with a client that streams."""

    def __init__(self, options, Daemon, network, adapt, state=None, eps=None):
        self.options = options
        cpus = ",".join(map(str, options.cpus))
        self.config = {"eps": eps or [{"name": "core", "cpus": cpus}], "adapt": {"enabled": adapt}, "planner": {"tune_s": 600}}
        self.d = Daemon(models={network: os.path.join(ROOT, "model", "networks", network + ".json")}, config=self.config,
                        state_dir=state)

    def __enter__(self):
        self.d.start()
        self.client = subprocess.Popen(
            [os.path.join(self.options.build, "apps", "pipectl", "pipectl"), "--socket", self.d.control_path, "--json", "bench",
             "--seconds", "86400"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, PIPED_RUNTIME_DIR=self.d.runtime_dir))
        try:
            self.until(lambda: self.model()["frames"]["answered"] >= 10)
        except BaseException:
            self.__exit__(RuntimeError, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        self.client.terminate()
        self.client.wait()
        self.d.__exit__(kind, value, trace)

    def adapt(self, enabled):
        if enabled != self.config["adapt"]["enabled"]:
            self.config["adapt"] = {"enabled": enabled}
            self.d.write_config(self.config)
            self.d.call("Reload")

    def model(self):
        return self.d.status()["models"][0]

    def history(self):
        return self.d.call("History")["events"]

    def until(self, wanted):
        end = time.monotonic() + LIMIT_S
        while not wanted():
            if time.monotonic() > end:
                raise RuntimeError("waited in vain; the daemon says:\n" + self.d.log())
            time.sleep(0.05)

    def frames(self):
        return time.monotonic(), self.model()["frames"]["answered"]

    def fps(self, seconds):
        begin = self.frames()
        time.sleep(seconds)
        end = self.frames()
        return (end[1] - begin[1]) / (end[0] - begin[0])


def keep_plan(folder, plan):
    """The daemon that begins there begins with @plan, as one of its own."""
    import kept_files  # of tests/system, found by main()
    for name in os.listdir(folder):
        if name.startswith("model-"):
            path = os.path.join(folder, name)
            root = kept_files.read(path)
            root["states"] = [{**s, "plan": plan} for s in root["states"]]
            kept_files.write(path, root)


def two_stages(run):
    costs = run.d.call("Costs")["problem"]["costs"]["core"]["1"]
    last = len(costs) - 1
    cut = min(range(last), key=lambda i: max(sum(costs[:i + 1]), sum(costs[i + 1:])))
    return "0-%d@core|%d-%d@core" % (cut, cut + 1, last)


def prepare(options, Daemon, network, which, folder):
    """What every run of these cells begins with, in @folder. Return: the plan."""
    os.makedirs(folder)
    with Run(options, Daemon, network, False, folder) as r:
        time.sleep(6 * options.seconds)
        plan = two_stages(r) if which == "stages" else r.model()["plan"]
    keep_plan(folder, plan)
    return plan


def sleep_until(at):
    time.sleep(max(at - time.monotonic(), 0))


def slowed(options, cell, r, adapt):
    """Frames a second of a running daemon from the onset on."""
    scale = options.seconds
    thief = Thief(options, cell["cores"], cell["factor"])
    if adapt:
        r.until(lambda: r.model()["adapt"]["state"] == "watching")
    time.sleep(CALM_S * scale)
    known = {e["id"] for e in r.history()}
    first, before = r.model()["plan"], r.model()["frames"]
    # with adapt on, a plan that its measured costs refute may be solved again before the onset
    if not adapt and whole(first) != whole(cell["plan"]):
        raise RuntimeError("the daemon serves %s, not %s" % (first, cell["plan"]))
    with Sampler(r) as samples:
        try:
            thief.begin()
            begin = r.frames()
            late = None
            if lasts_s(cell["duration"]) > SOON_S:
                sleep_until(begin[0] + SOON_S * scale)
                late = r.frames()
            sleep_until(begin[0] + lasts_s(cell["duration"]) * scale)
            last = r.frames()
        finally:
            thief.end()
        sleep_until(begin[0] + counted_s(cell["duration"]) * scale)
        end = r.frames()
    events = [e for e in r.history() if e["id"] not in known]
    stayed, lost_turns = changes(events)
    frames = r.model()["frames"]
    turns = [e for e in events if e.get("turns")]
    costs = turns_cost_s(samples, turns)
    return {"plan": first, "fps": (end[1] - begin[1]) / (end[0] - begin[0]), "changes": stayed, "lost_turns": lost_turns,
            "late_fps": (last[1] - late[1]) / (last[0] - late[0]) if late and last[0] > late[0] else None,
            "lost": sum(frames[k] - before[k] for k in ("failed", "dropped")),
            "turns": [{"cost_s": cost, **{k: e[k] for k in ("plan_before", "plan_after", "predicted_gain", "duration_ms", "trials",
                                                            "turns")}} for cost, e in zip(costs, turns)]}


def one_round(options, Daemon, cell, state, arms):
    """Return: {arm: what slowed() found}."""
    found = {}
    while len(found) < len(arms):
        with tempfile.TemporaryDirectory(prefix="piped-bench-") as folder:
            copy = os.path.join(folder, "state")
            shutil.copytree(state, copy)
            with Run(options, Daemon, cell["network"], arms[len(found)] == "on", copy) as r:
                while len(found) < len(arms) and (not found or r.model()["plan"] == cell["plan"]):
                    arm = arms[len(found)]
                    r.adapt(arm == "on")
                    found[arm] = slowed(options, cell, r, arm == "on")
    return found


def best_plan(options, Daemon, cell):
    """The best plan under the slowdown by exhaustive trial, and frames a second of it and of the first plan, twice in turns."""
    eps = [{"name": "first", "cpus": str(options.cpus[0])}, {"name": "second", "cpus": str(options.cpus[1])}]
    thief = Thief(options, cell["cores"], cell["factor"])
    with Run(options, Daemon, cell["network"], False, eps=eps) as r:
        last = r.model()["units"] - 1
        start = "|".join("%s@%s" % (s.split("@")[0], ("first", "second")[i]) for i, s in enumerate(cell["plan"].split("|"))) \
            if "|" in cell["plan"] else "0-%d@first+second" % last
        thief.begin()
        try:
            with r.d.connect() as v:
                v.sock.settimeout(3600)
                found = v.call("io.piped.Retune", {"algorithm": "exhaustive", "seed": 1})["event"]["plan_after"]
            fps = {start: [], found: []}
            for plan in (start, found, found, start):
                if plan != r.model()["plan"]:
                    r.d.call("SetPlan", {"plan": plan})
                time.sleep(options.seconds)
                fps[plan].append(r.fps(3 * options.seconds))
        finally:
            thief.end()
    return {"plan": found, "fps": statistics.mean(fps[found]), "first_fps": statistics.mean(fps[start])}


def cells_of(options, Daemon, folder):
    """All cells, each with the folder that its runs begin with."""
    found = []
    for network in options.networks:
        for which in options.plans:
            state = os.path.join(folder, network + "-" + which)
            plan = prepare(options, Daemon, network, which, state)
            for cores in options.cores:
                for factor in options.factors:
                    found += [({"network": network, "plan": plan, "cores": cores, "factor": factor, "duration": d,
                                "rounds": []}, state) for d in options.durations]
    return found


def measure(options, Daemon, folder, results, save):
    """The rounds of all cells, until --limit."""
    end = time.monotonic() + options.limit
    best = {}  # of network, plan, cores and factor
    cells = cells_of(options, Daemon, folder)
    for i in range(options.rounds):
        arms = ("on", "off") if i % 2 == 0 else ("off", "on")
        for cell, state in cells:
            if time.monotonic() > end:
                return
            r = one_round(options, Daemon, cell, state, arms)
            if not cell["rounds"]:
                results["cells"].append(cell)
                if options.best and lasts_s(cell["duration"]) > SOON_S:
                    kind = tuple(cell[k] for k in ("network", "plan", "cores", "factor"))
                    best[kind] = cell["best"] = best.get(kind) or best_plan(options, Daemon, cell)
            cell["rounds"].append(r)
            save()
            print("%s %s %s core(s) %g times %s: %.3f, %d changes, %d lost turns" % (
                cell["network"], cell["plan"], cell["cores"], cell["factor"], seconds_text(cell["duration"]),
                r["on"]["fps"] / r["off"]["fps"], r["on"]["changes"], r["on"]["lost_turns"]), file=sys.stderr, flush=True)


def measure_quiet(options, Daemon, network, results):
    with Run(options, Daemon, network, True) as r:
        r.until(lambda: r.model()["adapt"]["state"] == "watching")
        begin, known = time.monotonic(), {e["id"] for e in r.history()}
        time.sleep(options.quiet)
        events = [e for e in r.history() if e["id"] not in known]
        stayed, lost_turns = changes(events)
        for e in events:
            print(e["at"], e["cause"], e["detail"], file=sys.stderr, flush=True)
        results["quiet"].append({"network": network, "plan": r.model()["plan"], "seconds": time.monotonic() - begin,
                                 "changes": stayed, "lost_turns": lost_turns})


def joined(paths):
    """The results of several files as those of one; the same cell of two files is one."""
    parts = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            parts.append(json.load(f))
    cells = {}
    for c in (c for p in parts for c in p["cells"]):
        key = tuple(c[k] for k in ("network", "plan", "cores", "factor", "duration"))
        cells.setdefault(key, {**c, "rounds": []})["rounds"] += c["rounds"]
    return {**parts[0], "cells": list(cells.values()), "quiet": [q for p in parts for q in p["quiet"]]}


def main():
    options = arguments()
    if options.report:
        print(markdown(joined(options.report)))
        return
    os.environ["PIPED_BUILD"] = options.build
    sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
    from daemon import Daemon  # reads PIPED_BUILD
    results = {"machine": machine(), "command": " ".join(sys.argv[1:]), "cpus": options.cpus, "cells": [], "quiet": []}

    def save():
        if options.json:
            with open(options.json, "w", encoding="utf-8") as f:
                json.dump(results, f)

    with tempfile.TemporaryDirectory(prefix="piped-bench-") as folder:
        if options.quiet:
            for network in options.networks:
                measure_quiet(options, Daemon, network, results)
                save()
        else:
            measure(options, Daemon, folder, results, save)
    text = markdown(results)
    print(text)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write(text + "\n")


if __name__ == "__main__":
    main()
