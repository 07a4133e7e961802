#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The four governor settings of Pipe-search's table 1, emulated on two cores, and the best plan of VGG-16 under each.

usage: governors.py --search N [--algorithm NAME,...] [--tune-s S]   searches under setting N (1 to 4)
       governors.py --matrix N [--rounds R] [--seconds S]            frames/s under N of what was found under all four
       governors.py --adapt [N,N,...] [--seconds S]                  from setting to setting while the daemon adapts
       governors.py --report [--plot FILE.svg]                       what was measured so far, as a table
       common: [--build DIR] [--model FILE.onnx] [--results FILE.json]

Core 0 is the Denver cluster and core 1 the A57 cluster. "Performance" is 2035 MHz and "powersave" 345 MHz: a core in
powersave is held by tests/system/slow_core, a program of real-time priority, for so much of every 4 ms that the rest is
345/2035 of it. A daemon serves the model on both, a client streams as fast as it is answered. A search begins from two
stages of equally many units. Each call adds to the file of results; run "--search" for all four settings, then
"--matrix" for all four, then "--report". Needs root for the real-time priority, and two cores.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PERIOD_US = 4000
MHZ = {"performance": 2035, "powersave": 345}
SETTINGS = {1: ("performance", "performance"), 2: ("performance", "powersave"),  # (A57, Denver), as in table 1
            3: ("powersave", "performance"), 4: ("powersave", "powersave")}
PAPER = {1: ([6, 5, 10], 1.22), 2: ([5, 16], 0.36), 3: ([9, 12], 0.21), 4: ([7, 4, 10], 0.17)}  # table 6
VGG16_LAYERS = (1, 2, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1)  # a unit and the pooling that is fused into it
DEALT = 8  # frames in flight: a team six times slower than the other needs as many, for answers are in order
PIPED = 3  # two stages of one team each need no more, and what is in flight has to drain before a trial
FIRST = 3  # of the pipelines that the measured times of units rank first are run


def factors(setting):
    """How many times slower core 0 (Denver) and core 1 (A57) are."""
    a57, denver = SETTINGS[setting]
    return tuple(MHZ["performance"] / MHZ[g] for g in (denver, a57))


def in_flight(setting):
    denver, a57 = factors(setting)
    return DEALT if denver != a57 else PIPED + 1


def stages(plan):
    """[(first unit, last unit, teams)] of a plan's text."""
    parts = [stage.split("@") for stage in plan.split("|")]
    return [(*(int(n) for n in (units + "-" + units).split("-")[:2]), teams) for units, teams in parts]


def layers(plan):
    """Layers in each stage as the paper counts them (poolings are layers), if it is a plan of VGG-16."""
    if stages(plan)[-1][1] + 1 != len(VGG16_LAYERS):
        return [last - first + 1 for first, last, _ in stages(plan)]
    return [sum(VGG16_LAYERS[first:last + 1]) for first, last, _ in stages(plan)]


def is_pipeline(plan):
    """Each stage one team: what the paper's search looks at."""
    return not any(c in teams for _, _, teams in stages(plan) for c in "+*")


def predicted(costs):
    """{plan: bottleneck ms} of all pipelines of two stages, by the measured times of units."""
    denver, a57 = (costs[name]["1"] for name in ("denver", "a57"))
    last = len(denver) - 1
    plans = {}
    for cut in range(last):
        for names, (head, tail) in ((("denver", "a57"), (denver, a57)), (("a57", "denver"), (a57, denver))):
            plan = "%s@%s|%s@%s" % (span(0, cut), names[0], span(cut + 1, last), names[1])
            plans[plan] = max(sum(head[:cut + 1]), sum(tail[cut + 1:])) / 1e6
    return plans


def span(first, last):
    return "%d-%d" % (first, last)


class Slowed:
    """Both cores as slow as a setting says, as long as the block lasts; setting None: free."""

    def __init__(self, options):
        self.program = os.path.join(options.build, "tests", "system", "slow_core")
        self.programs = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.set(None)

    def set(self, setting):
        for p in self.programs:
            p.kill()
            p.wait()
        self.programs = []
        for core, factor in enumerate(factors(setting) if setting else ()):
            if factor > 1:
                busy = round(PERIOD_US * (1 - 1 / factor))
                p = subprocess.Popen([self.program, str(core), str(busy), str(PERIOD_US), "3600"], text=True,
                                     stdout=subprocess.PIPE)
                p.stdout.readline()
                self.programs.append(p)


class Served:
    """The daemon with a client that streams."""

    def __init__(self, options, adapt=False, seconds=None, in_flight=DEALT, frames=None):
        from daemon import Daemon  # reads PIPED_BUILD
        self.options = options
        self.d = Daemon(models={"net": options.model},
                        config={"eps": [{"name": "denver", "cpus": "0"}, {"name": "a57", "cpus": "1"}],
                                "adapt": {"enabled": adapt}, "frames_in_flight": in_flight,
                                "planner": {"alpha": options.alpha, "frames": frames or options.frames,
                                            "measure_ms": options.measure_ms, "tune_s": seconds or 600}})

    def __enter__(self):
        self.d.start()
        self.client = subprocess.Popen(
            [os.path.join(self.options.build, "apps", "pipectl", "pipectl"), "--socket", self.d.control_path, "bench", "--seconds",
             "3600", "--in-flight", str(2 * DEALT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, PIPED_RUNTIME_DIR=self.d.runtime_dir))
        return self

    def __exit__(self, kind, value, trace):
        self.client.terminate()
        self.client.wait()
        self.d.__exit__(kind, value, trace)

    def model(self):
        return self.d.status()["models"][0]

    def answers(self, until):
        """[(time, answered)] at every change of the count, until until(list) is true."""
        seen = []
        while not until(seen):
            n = self.model()["frames"]["answered"]
            if not seen or seen[-1][1] != n:
                seen.append((time.monotonic(), n))
            time.sleep(0.01)
        return seen

    def retune(self, algorithm):
        with self.d.connect() as v:
            v.sock.settimeout(700)
            return v.call("io.piped.Retune", {"algorithm": algorithm, "seed": 1})["event"]

    def rate(self, plan, seconds):
        """Frames a second under the plan, from answer to answer."""
        self.d.call("SetPlan", {"plan": plan})
        before = self.model()["in_flight"]  # of the plan before, most of them
        first = self.answers(lambda s: len(s) > 1 and s[-1][1] - s[0][1] > before)[-1]
        seen = self.answers(lambda s: len(s) > 3 and s[-1][0] - first[0] >= seconds)
        return (seen[-1][1] - first[1]) / (seen[-1][0] - first[0])


def search(options, results, slowed):
    slowed.set(options.search)
    found = results.setdefault("settings", {}).setdefault(str(options.search), {"searches": {}})
    for algorithm in options.algorithm.split(","):
        exact = algorithm == "exact"
        # what is dealt to unequal cores comes out in bursts: a few frames say little
        with Served(options, seconds=options.tune_s, in_flight=in_flight(options.search) if exact else PIPED,
                    frames=4 * options.frames if exact else None) as s:
            last = s.model()["units"] - 1
            s.d.call("SetPlan", {"plan": "%s@denver|%s@a57" % (span(0, last // 2), span(last // 2 + 1, last))})
            s.answers(lambda seen: len(seen) > 3)
            start = time.monotonic()
            event = s.retune(algorithm)
            took = time.monotonic() - start
            found["searches"][algorithm] = outcome(event, took)
            print("setting %d, %-12s %s (%s, %d trials, %.0f s)" % (
                options.search, algorithm, event["plan_after"], event["outcome"], event["trial_count"], took), flush=True)
            if exact:
                found["pipelines"] = first_pipelines(s, options.seconds)
        save(options, results)


def outcome(event, took):
    trials = [t for t in event["trials"] if t["role"] == "search" and not t["failed"]]
    return {"plan": event["plan_after"], "outcome": event["outcome"], "seconds": round(took, 1),
            "trials": event["trial_count"], "tried": {t["plan"]: round(t["bottleneck_ms"], 6) for t in trials}}


def first_pipelines(s, seconds):
    """[[plan, ms by the measured times of units, frames a second]] of those that have the least such times."""
    costs = s.d.call("Costs")["problem"]["costs"]
    plans = sorted(predicted(costs).items(), key=lambda p: p[1])[:FIRST]
    measured = [[plan, round(ms, 6), round(s.rate(plan, seconds), 3)] for plan, ms in plans]
    for plan, ms, fps in measured:
        print("  %7.1f ms expected, %6.3f fps  %s" % (ms, fps, plan), flush=True)
    return measured


def save(options, results):
    with open(options.results, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)


def best_pipeline(found):
    """The fastest pipeline that was run under one setting: by the matrix where there is one."""
    if found.get("fps"):
        return max((p for p in found["fps"] if is_pipeline(p)), key=lambda p: statistics.median(found["fps"][p]))
    return max(found["pipelines"], key=lambda p: p[2])[0]


def candidates(results):
    """The pipeline that is best under each setting as far as searches told, then what exact chose."""
    settings = [results["settings"][n] for n in sorted(results["settings"])]
    plans = []
    for s in settings:
        fps = {plan: rate for plan, _, rate in s["pipelines"]}
        for algorithm in s["searches"].values():
            fps.update({p: 1e3 / ms for p, ms in algorithm["tried"].items() if is_pipeline(p) and p not in fps})
        plans.append(max(fps, key=fps.get))
    plans += [s["searches"]["exact"]["plan"] for s in settings]
    return list(dict.fromkeys(plans))


def matrix(options, results, slowed):
    slowed.set(options.matrix)
    found = results["settings"][str(options.matrix)]
    plans = candidates(results)
    found["fps"] = {p: [] for p in plans}
    with Served(options, in_flight=in_flight(options.matrix)) as s:
        for i in range(options.rounds):
            for plan in plans if i % 2 == 0 else reversed(plans):
                found["fps"][plan].append(round(s.rate(plan, options.seconds), 3))
                save(options, results)
                print("setting %d  %7.3f fps  %s" % (options.matrix, found["fps"][plan][-1], plan), flush=True)


def adapt(options, results, slowed):
    order = [int(n) for n in options.adapt.split(",")]
    run = {"order": order, "seconds": options.seconds, "changes": [], "fps": []}
    slowed.set(order[0])
    with Served(options, adapt=True) as s:
        s.answers(lambda seen: len(seen) > 3)
        s.retune("exact")
        plan = s.model()["plan"]
        for setting in order:
            slowed.set(setting)
            start, counts = time.monotonic(), []
            while time.monotonic() - start < options.seconds:
                m = s.model()
                counts.append((time.monotonic(), m["frames"]["answered"]))
                if m["plan"] != plan:
                    plan = m["plan"]
                    run["changes"].append({"setting": setting, "after_s": round(time.monotonic() - start, 2), "plan": plan})
                time.sleep(0.05)
            half = [c for c in counts if c[0] - start >= options.seconds / 2]
            run["fps"].append([setting, plan, round((half[-1][1] - half[0][1]) / (half[-1][0] - half[0][0]), 3)])
            print("setting %d: %s, %.2f fps in the second half" % tuple(run["fps"][-1]), flush=True)
        frames = s.model()["frames"]
        run["lost"] = frames["failed"] + frames["dropped"]
        run["history"] = [{k: e[k] for k in ("at", "cause", "detail", "outcome", "plan_after")}
                          for e in s.d.call("History")["events"]]
    results["adapt"] = run


def median_fps(results, setting, plan):
    """From the matrix; without it what the client got when the pipeline was run, or what a trial of a search told."""
    found = results["settings"][str(setting)]
    values = found.get("fps", {}).get(plan) or [p[2] for p in found["pipelines"] if p[0] == plan] or [
        1e3 / s["tried"][plan] for s in found["searches"].values() if plan in s["tried"]]
    return statistics.median(values) if values else None


def report(results):
    """The lines of the two tables, in Markdown."""
    known = sorted(int(n) for n in results["settings"])
    home = {n: best_pipeline(results["settings"][str(n)]) for n in known}
    out = ["| setting | A57, Denver | paper: layers, frames/s | best pipeline here | layers | frames/s | `exact` | frames/s |",
           "| --- | --- | --- | --- | --- | ---: | --- | ---: |"]
    for n in known:
        exact = results["settings"][str(n)]["searches"].get("exact", {}).get("plan")
        fps = [median_fps(results, n, p) for p in (home[n], exact)]
        out.append("| %d | %s, %s | %s, %.2f | `%s` | %s | %s | `%s` | %s |" % (
            n, *SETTINGS[n], *PAPER[n], home[n].replace("|", "\\|"), layers(home[n]), number(fps[0]),
            (exact or "-").replace("|", "\\|"), number(fps[1])))
    plans = candidates(results)
    out += ["", "| plan | " + " | ".join("setting %d" % n for n in known) + " |", "| --- |" + " ---: |" * len(known)]
    for plan in plans:
        cells = []
        for n in known:
            best = max((median_fps(results, n, p) or 0 for p in plans if is_pipeline(p)), default=0)
            fps = median_fps(results, n, plan)
            cells.append(number(fps) if fps is None or fps < best or not is_pipeline(plan) else "**%s**" % number(fps))
        out.append("| `%s` | %s |" % (plan.replace("|", "\\|"), " | ".join(cells)))
    return out


def number(value):
    return "-" if value is None else "%.2f" % value


def plot(results, path):
    """A group of bars for each setting: every plan's frames a second over those of the best pipeline there."""
    known = sorted(int(n) for n in results["settings"])
    plans = candidates(results)
    colours = itertools.cycle(("#36c", "#c63", "#393", "#849", "#888", "#bbb"))
    paint = {p: next(colours) for p in plans}
    width, height, left, bottom, top = 760, 330, 40, 54, 26 + 15 * len(plans)
    group = (width - left - 10) / len(known)
    bar = group * 0.8 / len(plans)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">' % (
        width, height), '<rect width="100%" height="100%" fill="white"/>',
        '<text x="%d" y="15">frames/s of each plan under each setting, relative to the best pipeline there</text>' % left]
    for i, plan in enumerate(plans):
        out.append('<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>' % (
            left, 22 + 15 * i, paint[plan], left + 15, 31 + 15 * i, plan))
    rates = {(n, p): median_fps(results, n, p) or 0 for n in known for p in plans}
    best = {n: max(rates[n, p] for p in plans if is_pipeline(p)) or 1 for n in known}
    most = max(1.1, *(rates[n, p] / best[n] for n in known for p in plans))

    def y(share):
        return height - bottom - share / most * (height - bottom - top)

    for i in range(6):
        if i / 5 <= most:
            out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.1f'
                       '</text>' % (left, width - 10, y(i / 5), y(i / 5), left - 4, y(i / 5) + 4, i / 5))
    for k, n in enumerate(known):
        for i, plan in enumerate(plans):
            x, share = left + k * group + group * 0.1 + i * bar, rates[n, plan] / best[n]
            if not rates[n, plan]:  # was not run there
                continue
            out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/><text x="%.1f" y="%.1f" '
                       'text-anchor="middle" font-size="9">%.2f</text>' % (
                           x, y(share), bar * 0.92, height - bottom - y(share), paint[plan], x + bar / 2, y(share) - 3,
                           rates[n, plan]))
        for line, words in enumerate(("setting %d" % n, "A57 %s," % SETTINGS[n][0], "Denver %s" % SETTINGS[n][1])):
            out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (
                left + (k + 0.5) * group, height - bottom + 14 * (line + 1), words))
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out + ["</svg>"]) + "\n")


def arguments(argv=None):
    p = argparse.ArgumentParser(description="Pipe-search's governor settings on two cores")
    p.add_argument("--search", type=int, choices=SETTINGS)
    p.add_argument("--matrix", type=int, choices=SETTINGS)
    p.add_argument("--adapt", nargs="?", const="1,3,1")
    p.add_argument("--report", action="store_true")
    p.add_argument("--plot")
    p.add_argument("--algorithm", default="exact,pipe-search")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--model", default=os.path.join(ROOT, "models", "vgg16.onnx"))
    p.add_argument("--results", default="governors.json")
    p.add_argument("--alpha", type=int, default=4)
    p.add_argument("--frames", type=int, default=3)
    p.add_argument("--measure-ms", type=int, default=2500)
    p.add_argument("--tune-s", type=int, default=100)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=6)
    options = p.parse_args(argv)
    if not (options.search or options.matrix or options.adapt or options.report):
        p.error("one of --search, --matrix, --adapt, --report")
    return options


def main():
    options = arguments()
    os.environ["PIPED_BUILD"] = options.build
    sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
    results = {}
    if os.path.exists(options.results):
        with open(options.results, encoding="utf-8") as f:
            results = json.load(f)
    with Slowed(options) as slowed:
        for chosen, what in ((options.search, search), (options.matrix, matrix), (options.adapt, adapt)):
            if chosen:
                what(options, results, slowed)
                save(options, results)
    if options.report:
        print("\n".join(report(results)))
        if options.plot:
            plot(results, options.plot)


if __name__ == "__main__":
    main()
