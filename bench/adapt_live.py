#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How soon and how well plans follow a core that gets slower: a real slowdown under a real load.

usage: adapt_live.py --results FILE [--build DIR] [--network NAME] [--factor F] [--quota] [--find] [--rounds N]
                     [--calm S] [--slow S] [--after S] [--rate FPS] [--plot FILE.svg]
       adapt_live.py --results FILE --report

Core 0 is "fast"; core 1 is "slow": tests/system/slow_core takes 1 - 1/F of it from the onset on, or, with --quota, a
cgroup's quota (version 1, where it can be written) leaves 1/F to the daemon's threads that are pinned to core 1.
--find comes first, once: by the costs that it measures, two stages as equal as they can be, and the plan that a search
by exhaustive finds under the slowdown. Every round then has two daemons in turn, each with a client that streams as
fast as it is answered; every other round begins with the second:
  fixed     two stages, free; then under the slowdown: two stages, exhaustive's plan, and both once more
  adapting  begins with the two stages as the plan that it kept itself; the slowdown comes, stays for --slow s and goes
With --rate the client is a camera: so many frames a second and no more.
What a round gave is added to FILE, so that several calls make one measurement. --report prints medians and spreads.
Needs root for the real-time priority or the cgroup, and two cores.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PERIOD_US = 4000
MOST_SHARES = 262144
SHORT_S = 2.5   # of a plan that serves all the time
SETTLE_S = 0.5  # left out of it


def arguments():
    p = argparse.ArgumentParser(description="plans that follow a slowed core")
    p.add_argument("--results", required=True)
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--network", default="squeezenet1_1")
    p.add_argument("--factor", type=float, default=3.0)
    p.add_argument("--quota", action="store_true")
    p.add_argument("--find", action="store_true")
    p.add_argument("--report", action="store_true")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--calm", type=float, default=3.0)
    p.add_argument("--slow", type=float, default=7.0)
    p.add_argument("--after", type=float, default=8.0)
    p.add_argument("--rate", type=float)
    p.add_argument("--plot")
    return p.parse_args()


class Thief:
    """A competing program on core 1 at a real-time priority."""

    def __init__(self, options):
        self.command = [os.path.join(options.build, "tests", "system", "slow_core"), "1",
                        str(int(PERIOD_US * (1 - 1 / options.factor))), str(PERIOD_US), "3600"]

    def begin(self, pid):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def end(self):
        self.process.kill()
        self.process.wait()


class Quota:
    """A cgroup of version 1 whose quota is for what the daemon runs on core 1; its period is as short as that of Thief."""
    BASE = "/sys/fs/cgroup/cpu"

    def __init__(self, options):
        self.factor = options.factor
        self.folder = os.path.join(self.BASE, "piped-bench-%d" % os.getpid())

    def write(self, name, value):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as f:
            f.write("%s\n" % value)

    def threads(self, pid):
        """Those that are pinned to core 1 now; a new plan has new ones."""
        for tid in os.listdir("/proc/%d/task" % pid):
            try:
                if os.sched_getaffinity(int(tid)) == {1}:
                    yield tid
            except ProcessLookupError:
                pass

    def begin(self, pid):
        os.makedirs(self.folder, exist_ok=True)
        self.write("cpu.cfs_period_us", PERIOD_US)
        self.write("cpu.cfs_quota_us", int(PERIOD_US / self.factor))
        self.write("cpu.shares", MOST_SHARES)  # so that nothing but the quota takes from it
        self.pid = pid
        self.follow()

    def follow(self):
        for tid in self.threads(self.pid):
            try:
                self.write("tasks", tid)
            except OSError:
                pass

    def end(self):
        with open(os.path.join(self.folder, "tasks"), encoding="ascii") as f:
            for tid in f.read().split():
                try:
                    with open(os.path.join(self.BASE, "tasks"), "w", encoding="ascii") as to:
                        to.write(tid)
                except OSError:
                    pass
        os.rmdir(self.folder)


class Run:
    """A daemon with a client; samples of what was answered, every 20 ms."""

    def __init__(self, options, Daemon, network, adapt, state_dir=None):
        self.options, self.samples = options, []
        self.d = Daemon(models={network: os.path.join(ROOT, "model", "networks", network + ".json")},
                        config={"eps": [{"name": "fast", "cpus": "0"}, {"name": "slow", "cpus": "1"}],
                                "adapt": {"enabled": adapt}, "planner": {"tune_s": 600}}, state_dir=state_dir)

    def __enter__(self):
        self.d.start()
        self.client = subprocess.Popen(
            [os.path.join(self.options.build, "apps", "pipectl", "pipectl"), "--socket", self.d.control_path, "--json", "bench",
             "--seconds", "3600", *(["--rate", str(self.options.rate)] if self.options.rate else [])],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, PIPED_RUNTIME_DIR=self.d.runtime_dir))
        while self.model()["frames"]["answered"] < 10:
            time.sleep(0.05)
        return self

    def __exit__(self, kind, value, trace):
        self.client.terminate()
        self.client.communicate()
        self.d.__exit__(kind, value, trace)

    def model(self):
        return self.d.status()["models"][0]

    def two_stages(self):
        """The two stages of which the slower one is fastest, both cores free and equal: by the costs that were measured."""
        costs = self.d.call("Costs")["problem"]["costs"]["fast"]["1"]
        last = len(costs) - 1
        cut = min(range(last), key=lambda i: max(sum(costs[:i + 1]), sum(costs[i + 1:])))
        return "0-%d@fast|%d-%d@slow" % (cut, cut + 1, last)

    def watch(self, seconds, slowdown=None, until=None):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and until()):
            m = self.model()
            self.samples.append((time.monotonic(), m["frames"]["answered"], m["plan"]))
            if slowdown is not None and hasattr(slowdown, "follow"):
                slowdown.follow()
            time.sleep(0.02)

    def fps(self, begin, end):
        inside = [s for s in self.samples if begin <= s[0] <= end]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]) if len(inside) > 1 else None

    def lost(self):
        frames = self.model()["frames"]
        return frames["failed"] + frames["dropped"]


def own_plan(folder):
    """What was kept as a user's plan becomes one of the daemon's own."""
    import kept_files  # of tests/system, found by main()
    for name in os.listdir(folder):
        if name.startswith("model-"):
            path = os.path.join(folder, name)
            text = json.dumps(kept_files.read(path), separators=(",", ":"))
            kept_files.write(path, json.loads(text.replace('"algorithm":"manual"', '"algorithm":"exact"')))


def find(options, Daemon, slowdown):
    """The two stages, kept in a folder beside the results, and the best plan under the slowdown."""
    state = options.results + ".state"
    shutil.rmtree(state, ignore_errors=True)
    os.mkdir(state)
    with Run(options, Daemon, options.network, False, state) as r:
        r.d.call("Retune", {"algorithm": "exact"})
        two = r.two_stages()
        r.d.call("SetPlan", {"plan": two})
        r.watch(options.calm)
    own_plan(state)
    with Run(options, Daemon, options.network, False) as r:
        slowdown.begin(r.d.process.pid)
        try:
            with r.d.connect() as v:
                v.sock.settimeout(700)
                best = v.call("io.piped.Retune", {"algorithm": "exhaustive", "seed": 1})["event"]["plan_after"]
        finally:
            slowdown.end()
    return {"network": options.network, "factor": options.factor, "quota": options.quota, "two": two, "best": best,
            "rounds": []}


def measure_fixed(options, Daemon, slowdown, two, best):
    def serve(r, plan, follow=None):
        r.d.call("SetPlan", {"plan": plan})
        start = time.monotonic()
        r.watch(SHORT_S, follow)
        return r.fps(start + SETTLE_S, time.monotonic())

    with Run(options, Daemon, options.network, False) as r:
        result = {"free": serve(r, two)}
        slowdown.begin(r.d.process.pid)
        try:
            fps = [serve(r, plan, slowdown) for plan in (two, best, two, best)]
        finally:
            slowdown.end()
    return dict(result, two=(fps[0] + fps[2]) / 2, best=(fps[1] + fps[3]) / 2)


def measure_adapting(options, Daemon, slowdown):
    with tempfile.TemporaryDirectory(prefix="piped-bench-") as folder:
        state = os.path.join(folder, "state")
        shutil.copytree(options.results + ".state", state)
        with Run(options, Daemon, options.network, True, state) as r:
            r.watch(60, until=lambda: r.model()["adapt"]["state"] == "watching")
            r.watch(options.calm)
            events = [e["id"] for e in r.d.call("History")["events"]]
            plan = r.model()["plan"]
            onset = time.monotonic()
            slowdown.begin(r.d.process.pid)
            try:
                r.watch(options.slow, slowdown)
            finally:
                slowdown.end()
            end = time.monotonic()
            r.watch(options.after)
            every = r.d.call("History")["events"]
            lost = r.lost()
    history = [e for e in every if e["id"] not in events]
    calm = [e for e in every if e["id"] in events and e["cause"] != "start"]
    changed = next((t for t, _, p in r.samples if onset < t < end and p != plan), None)
    other = [t for t, _, p in r.samples if t > end and p != plan]
    for e in every:
        e.pop("decision", None)
        e.pop("trials", None)
    return {"plan": next((p for t, _, p in reversed(r.samples) if t < end), None),
            "fps_free": r.fps(r.samples[0][0], onset),
            "fps_slow": r.fps((changed or onset) + 2 * SETTLE_S, end),
            "fps_after": r.fps(r.samples[-1][0] - options.after / 3, r.samples[-1][0]),
            "changed_s": changed - onset if changed else None,
            "back_s": None if r.samples[-1][2] != plan else max(other, default=end) - end,
            "switches": sum(e["outcome"] in ("switched", "rolled back") for e in history),
            "calm": calm, "lost": lost, "history": history}, {"onset": onset, "end": end, "samples": r.samples}


def plot(path, network, factor, a):
    """Frames a second over time, with the slowdown shaded and the changes of plan marked."""
    width, height, left, bottom, step = 760, 260, 46, 34, 0.5
    first, last = a["samples"][0][0], a["samples"][-1][0]
    points, at = [], first
    while at + step <= last:
        inside = [s for s in a["samples"] if at <= s[0] <= at + step]
        if len(inside) > 1:
            points.append((at + step / 2, (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])))
        at += step
    top = max(p[1] for p in points) * 1.15

    def x(t):
        return left + (t - first) / (last - first) * (width - left - 10)

    def y(f):
        return height - bottom - f / top * (height - bottom - 24)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">' % (
        width, height), '<rect width="100%" height="100%" fill="white"/>',
        '<rect x="%.1f" y="24" width="%.1f" height="%d" fill="#f3e3d3"/>' % (
            x(a["onset"]), x(a["end"]) - x(a["onset"]), height - bottom - 24),
        '<text x="%d" y="15">%s: core 1 takes %.1f times as long in the shaded part; lines are changes of plan</text>' % (
            left, network, factor)]
    for i in range(5):
        f = top * i / 5
        out.append('<text x="%d" y="%.1f" text-anchor="end">%.0f</text><line x1="%d" x2="%d" y1="%.1f" y2="%.1f" '
                   'stroke="#ddd"/>' % (left - 5, y(f) + 4, f, left, width - 10, y(f), y(f)))
    for t in range(0, int(last - first), 5):
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (x(first + t), height - bottom + 15, t))
    out.append('<text x="%d" y="%d">seconds</text><text x="4" y="15">fps</text>' % (width - 60, height - 4))
    plan = a["samples"][0][2]
    for t, _, p in a["samples"]:
        if p != plan:
            plan = p
            out.append('<line x1="%.1f" x2="%.1f" y1="24" y2="%d" stroke="#27c"/><text x="%.1f" y="%d" fill="#27c">%s'
                       '</text>' % (x(t), x(t), height - bottom, x(t) + 3, height - bottom - 6, p))
    out.append('<polyline fill="none" stroke="#333" stroke-width="1.5" points="%s"/></svg>' % " ".join(
        "%.1f,%.1f" % (x(t), y(f)) for t, f in points))
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def figures(result):
    """For each round: name to figure; None where it never came to it."""
    for r in result["rounds"]:
        a, f = r["adapting"], r["fixed"]
        yield {"fps free, two stages": f["free"], "fps slowed, two stages": f["two"], "fps slowed, exhaustive's": f["best"],
               "fps slowed, adapting": a["fps_slow"], "fps after, adapting": a["fps_after"],
               "to the change, s": a["changed_s"], "to the plan of before, s": a["back_s"],
               "adapting / exhaustive's": a["fps_slow"] / f["best"], "adapting / two stages": a["fps_slow"] / f["two"],
               "after / before, adapting": a["fps_after"] / a["fps_free"], "changes of plan": a["switches"],
               "frames lost": a["lost"]}


def report(result):
    rounds = list(figures(result))
    print("%s, core 1 %.1fx slower (%s), %d rounds; two stages %s, exhaustive's %s" % (
        result["network"], result["factor"], "quota" if result["quota"] else "program", len(rounds), result["two"],
        result["best"]))
    for name in rounds[0] if rounds else ():
        known = sorted(r[name] for r in rounds if r[name] is not None)
        print("  %-26s %s" % (name, "median %8.2f, %.2f to %.2f%s" % (
            statistics.median(known), known[0], known[-1],
            "" if len(known) == len(rounds) else ", never in %d" % (len(rounds) - len(known))) if known else "never"))


def one_round(options, Daemon, slowdown, result):
    got, samples = {}, None
    for arm in ("fixed", "adapting") if len(result["rounds"]) % 2 == 0 else ("adapting", "fixed"):
        if arm == "fixed":
            got[arm] = measure_fixed(options, Daemon, slowdown, result["two"], result["best"])
        else:
            got[arm], samples = measure_adapting(options, Daemon, slowdown)
    for name, list_of in (("calm", got["adapting"]["calm"]), ("then", got["adapting"]["history"])):
        for e in list_of:
            print("    %s %s %-11s %-11s %s" % (name, e["at"][11:23], e["cause"], e["outcome"], e["detail"]), flush=True)
    if options.plot:
        plot(options.plot, options.network, options.factor, samples)
    return got


def main():
    options = arguments()
    os.environ["PIPED_BUILD"] = options.build
    sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
    from daemon import Daemon  # reads PIPED_BUILD
    slowdown = (Quota if options.quota else Thief)(options)
    if options.find:
        result = find(options, Daemon, slowdown)
    else:
        with open(options.results, encoding="utf-8") as f:
            result = json.load(f)
        options.network, options.factor = result["network"], result["factor"]
        slowdown = (Quota if result["quota"] else Thief)(options)
    for _ in range(0 if options.find or options.report else options.rounds):
        result["rounds"].append(one_round(options, Daemon, slowdown, result))
        with open(options.results, "w", encoding="utf-8") as f:
            json.dump(result, f)
    if options.find:
        with open(options.results, "w", encoding="utf-8") as f:
            json.dump(result, f)
    report(result)


if __name__ == "__main__":
    main()
