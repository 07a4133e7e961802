#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How soon and how well plans follow a core that gets slower: a real slowdown under a real load.

usage: adapt_live.py [--build DIR] [--network NAME,...] [--factor F] [--quota] [--calm S] [--slow S] [--after S]
                     [--plot FILE.svg] [--json]

Core 0 is "fast"; core 1 is "slow": tests/system/slow_core takes 1 - 1/F of it from the onset on, or, with --quota, a
cgroup's quota (version 1 or 2, where it can be written) takes that share from every thread of the daemon. Three daemons
in turn, each with a client that streams as fast as it is answered:
  static   serves two balanced stages, by hand, all the time: what the slowdown costs without adapting
  best     retunes by exhaustive under the slowdown: the best that there is
  adapting begins with the same two stages as the plan that it kept itself, notices, and changes
Reported: from the onset to the first change of plan; frames a second under the slowdown of all three; what the history
says; frames lost or out of order by the client's count. Needs root for the real-time priority, and two cores.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PERIOD_US = 4000
CAUSES = ("contention", "throughput", "frequency", "thermal", "governor")


def arguments():
    p = argparse.ArgumentParser(description="plans that follow a slowed core")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--network", default="squeezenet1_1")
    p.add_argument("--factor", type=float, default=3.0)
    p.add_argument("--quota", action="store_true")
    p.add_argument("--calm", type=float, default=8.0)
    p.add_argument("--slow", type=float, default=15.0)
    p.add_argument("--after", type=float, default=15.0)
    p.add_argument("--plot")
    p.add_argument("--json", action="store_true")
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
    """A cgroup of version 1 whose quota is for the thread on core 1 alone; its period is as short as is allowed."""
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
    """A daemon with a client; samples of what was answered, every 50 ms."""

    def __init__(self, options, Daemon, network, adapt, state_dir=None):
        self.options, self.samples = options, []
        self.d = Daemon(models={network: os.path.join(ROOT, "model", "networks", network + ".json")},
                        config={"eps": [{"name": "fast", "cpus": "0"}, {"name": "slow", "cpus": "1"}],
                                "adapt": {"enabled": adapt}, "planner": {"tune_s": 600}}, state_dir=state_dir)

    def __enter__(self):
        self.d.start()
        self.client = subprocess.Popen(
            [os.path.join(self.options.build, "ipc", "pipectl"), "--socket", self.d.control_path, "--json", "bench",
             "--seconds", "3600"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(os.environ, PIPED_RUNTIME_DIR=self.d.runtime_dir))
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
            time.sleep(0.05)

    def fps(self, begin, end):
        inside = [s for s in self.samples if begin <= s[0] <= end]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]) if len(inside) > 1 else None

    def lost(self):
        frames = self.model()["frames"]
        return frames["failed"] + frames["dropped"]


def own_plan(folder):
    """What was kept as a user's plan becomes one of the daemon's own."""
    for name in os.listdir(folder):
        if name.startswith("model-"):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace('"algorithm":"manual"', '"algorithm":"exact"'))


def measure_static(options, Daemon, network, slowdown, state_dir):
    with Run(options, Daemon, network, False, state_dir) as r:
        r.d.call("Retune", {"algorithm": "exact"})
        plan = r.two_stages()
        r.d.call("SetPlan", {"plan": plan})
        r.watch(options.calm)
        free = r.fps(r.samples[0][0] + 1, r.samples[-1][0])
        slowdown.begin(r.d.process.pid)
        try:
            start = time.monotonic()
            r.watch(options.slow, slowdown)
            slow = r.fps(start + 2, time.monotonic())
        finally:
            slowdown.end()
        r.d.call("SetPlan", {"plan": plan})
        r.watch(3)  # what was learned of the slowed core is learned anew
    own_plan(state_dir)
    return {"plan": plan, "fps_free": free, "fps_slow": slow}


def measure_best(options, Daemon, network, slowdown):
    with Run(options, Daemon, network, False) as r:
        slowdown.begin(r.d.process.pid)
        try:
            with r.d.connect() as v:
                v.sock.settimeout(700)
                event = v.call("io.piped.Retune", {"algorithm": "exhaustive", "seed": 1})["event"]
            start = time.monotonic()
            r.watch(options.slow, slowdown)
            slow = r.fps(start + 1, time.monotonic())
        finally:
            slowdown.end()
    return {"plan": event["plan_after"], "fps_slow": slow}


def measure_adapting(options, Daemon, network, slowdown, state_dir):
    with Run(options, Daemon, network, True, state_dir) as r:
        r.watch(60, until=lambda: r.model()["adapt"]["state"] == "watching")
        r.watch(options.calm)
        events = [e["id"] for e in r.d.call("History")["events"]]
        onset = time.monotonic()
        slowdown.begin(r.d.process.pid)
        plan = r.model()["plan"]
        try:
            r.watch(options.slow, slowdown)
        finally:
            slowdown.end()
        end = time.monotonic()
        r.watch(options.after)
        history = [e for e in r.d.call("History")["events"] if e["id"] not in events]
        lost = r.lost()
    changed = [t for t, _, p in r.samples if t > onset and p != plan]
    settled = r.fps(onset + options.slow / 2, end)
    for e in history:
        e.pop("decision", None)
    return {"plan_before": plan, "plan": next((p for t, _, p in reversed(r.samples) if t < end), None),
            "fps_free": r.fps(r.samples[0][0], onset), "fps_slow": settled,
            "noticed_s": changed[0] - onset if changed and changed[0] < end else None,
            "back_s": next((t - end for t, _, p in r.samples if t > end and p == plan), None),
            "fps_after": r.fps(r.samples[-1][0] - options.after / 3, r.samples[-1][0]),
            "lost": lost, "history": history, "onset": onset, "end": end, "samples": r.samples}


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


def main():
    options = arguments()
    os.environ["PIPED_BUILD"] = options.build
    sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
    from daemon import Daemon  # reads PIPED_BUILD
    results = []
    for network in options.network.split(","):
        slowdown = (Quota if options.quota else Thief)(options)
        with tempfile.TemporaryDirectory(prefix="piped-bench-") as state_dir:
            static = measure_static(options, Daemon, network, slowdown, state_dir)
            adapting = measure_adapting(options, Daemon, network, slowdown, state_dir)
        best = measure_best(options, Daemon, network, slowdown)
        if options.plot:
            plot(options.plot, network, options.factor, adapting)
        result = {"network": network, "factor": options.factor, "quota": options.quota, "static": static, "best": best,
                  "adapting": {k: v for k, v in adapting.items() if k not in ("samples", "onset", "end")}}
        results.append(result)
        if not options.json:
            print("%s, core 1 %.1fx slower (%s)" % (network, options.factor, "quota" if options.quota else "program"))
            print("  two stages    %s: %.1f fps free, %.1f slowed" % (static["plan"], static["fps_free"], static["fps_slow"]))
            print("  exhaustive    %s: %.1f fps slowed" % (best["plan"], best["fps_slow"]))
            print("  adapting      %s, then %s: %.1f fps free, %.1f slowed, %s after" % (
                adapting["plan_before"], adapting["plan"], adapting["fps_free"], adapting["fps_slow"],
                "%.1f" % adapting["fps_after"] if adapting["fps_after"] else "-"))
            print("  changed after %s s, back after %s s; %.2f of the best, %.2f of two stages; %d lost" % (
                *("%.2f" % t if t is not None else "-" for t in (adapting["noticed_s"], adapting["back_s"])),
                adapting["fps_slow"] / best["fps_slow"], adapting["fps_slow"] / static["fps_slow"], adapting["lost"]))
            for e in adapting["history"]:
                print("    %s %-11s %-11s %s" % (e["at"][11:23], e["cause"], e["outcome"], e["detail"]), flush=True)
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
