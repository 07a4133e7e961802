# SPDX-License-Identifier: Apache-2.0
"""Figures of bench/adapt_cost.py: what happened in its rounds, and the table."""
import math
import re
import statistics

FOREVER = "forever"
LEAST_S, MORE_S, FOREVER_S = 10, 6, 30
LEAST = 0.99     # on over off, as asked for


def lasts_s(duration):
    return FOREVER_S if duration == FOREVER else duration


def counted_s(duration):
    """For how long frames are counted from the onset on."""
    return FOREVER_S if duration == FOREVER else max(LEAST_S, duration + MORE_S)


def whole(plan):
    """The plan as it is when no EP is split: "0-5@a|6-9@a.1" is "0-5@a|6-9@a", and "a+a.1" is "a*2"."""
    def teams(text):
        counts = {}
        for team in text.split("+"):
            m = re.fullmatch(r"([^*/]+?)(\.\d+)?((?:x\d+)?)(?:\*(\d+))?((?:/\d+)?)", team)
            kind = m.group(1) + m.group(3) + m.group(5)
            counts[kind] = counts.get(kind, 0) + int(m.group(4) or 1)
        return "+".join(k if n == 1 else "%s*%d" % (k, n) for k, n in sorted(counts.items()))

    return "|".join("%s@%s" % (s.split("@")[0], teams(s.split("@")[1])) for s in plan.split("|"))


def changes(events):
    """Return: (plans that came to stay, plans that took turns and did not)."""
    stayed = sum(e["outcome"] == "switched" and bool(e["plan_before"]) and whole(e["plan_before"]) != whole(e["plan_after"])
                 for e in events)
    return stayed, sum(e.get("turns", {}).get("verdict") not in (None, "better") for e in events)


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def mean_known(values):
    known = [v for v in values if v is not None]
    return statistics.mean(known) if known else None


def turns_share(cell, r):
    """The share of the counted time that lost turns cost in the round; None: not known."""
    costs = [t["cost_s"] for t in r["on"]["turns"] if t["turns"]["verdict"] != "better"]
    return None if None in costs else sum(costs) / counted_s(cell["duration"])


def figures(cell):
    """Median and spread over the rounds of a cell."""
    rounds = cell["rounds"]
    found = {"ratio": spread([r["on"]["fps"] / r["off"]["fps"] for r in rounds]),
             "off_fps": statistics.median(r["off"]["fps"] for r in rounds),
             "changes": statistics.mean(r["on"]["changes"] for r in rounds),
             "lost_turns": statistics.mean(r["on"]["lost_turns"] for r in rounds),
             "turns_cost": mean_known(turns_share(cell, r) for r in rounds),
             "lost": sum(r[arm]["lost"] for r in rounds for arm in ("on", "off"))}
    late = [r["on"]["late_fps"] for r in rounds if r["on"].get("late_fps")]
    if cell.get("best") and late:
        found["best_share"] = statistics.median(late) / cell["best"]["fps"]
        found["best_gain"] = cell["best"]["fps"] / cell["best"]["first_fps"]
    return found


def by_events(cells):
    """The ratios of all rounds, by what happened in them with adapt on."""
    found = {"without changes or turns": [], "with lost turns alone": [], "with changes": []}
    for r in (r for c in cells for r in c["rounds"]):
        name = "with changes" if r["on"]["changes"] else "with lost turns alone" if r["on"]["lost_turns"] else \
            "without changes or turns"
        found[name].append(r["on"]["fps"] / r["off"]["fps"])
    return found


def noise(cells):
    """By which the logarithm of one round's ratio differs where adapt did nothing: a standard deviation; None: unknown."""
    idle = by_events(cells)["without changes or turns"]
    return statistics.stdev(map(math.log, idle)) if len(idle) > 3 else None


def turns_cost_s(samples, events):
    """Seconds that each turns of @events cost: those they lasted, less what the serving plan takes for the frames answered
    meanwhile. @samples: (time, frames answered, state)."""
    spans, begin = [], None
    for before, now in zip(samples, samples[1:]):
        if now[2] == "verifying" and begin is None:
            begin = before
        elif now[2] != "verifying" and begin is not None:
            spans.append((now[0] - begin[0], now[1] - begin[1]))
            begin = None
    if len(spans) != len(events):
        return [None] * len(events)  # one began before the first sample, or was too short for any
    paces = [e["trials"][0]["bottleneck_ms"] for e in events]  # None: they ended before the serving plan had a turn
    return [None if pace is None else seconds - frames * pace / 1e3 for (seconds, frames), pace in zip(spans, paces)]


def lost_turns_cost(cells):
    """What lost turns cost of the counted time, each round that has any, as far as it is known."""
    costs = (turns_share(c, r) for c in cells for r in c["rounds"])
    return [c for c in costs if c]


def surely_low(cell, sigma):
    """The median is below LEAST by more than medians of so many rounds differ by (95 %, one side)."""
    error = 1.64 * 1.25 * sigma / math.sqrt(len(cell["rounds"]))
    return math.log(figures(cell)["ratio"]["median"] / LEAST) < -error


def pooled(ratios):
    """Geometric mean, its 95 % interval and the spread."""
    if len(ratios) < 2:
        return "%d" % len(ratios)
    logs = [math.log(r) for r in ratios]
    mean, half = statistics.mean(logs), 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    return "%d, on / off %.3f (95 %%: %.3f to %.3f; rounds: %.3f to %.3f)" % (
        len(ratios), math.exp(mean), math.exp(mean - half), math.exp(mean + half), min(ratios), max(ratios))


def seconds_text(duration):
    return duration if duration == FOREVER else "%g s" % duration


def code(plan):
    """In a cell of a table."""
    return "`%s`" % plan.replace("|", "\\|")


def markdown(results):
    m = results["machine"]
    out = ["- Machine: %s, cores %s of %d, kernel %s, load %.2f at the start" % (
        m["cpu"], ",".join(map(str, results["cpus"])), m["cores"], m["kernel"], m["load"]),
        "- Command: `bench/adapt_cost.py %s`" % results["command"], ""]
    if results["cells"]:
        out += ["| network, first plan | slowed | for | on / off | least to most | changes | lost turns | they cost | of the best "
                "plan |",
                "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for c in results["cells"]:
        f = figures(c)
        share = "%.2f (gains %.0f %%)" % (f["best_share"], 100 * (f["best_gain"] - 1)) if "best_share" in f else "-"
        cost = "-" if f["turns_cost"] is None else "%.1f %%" % (100 * f["turns_cost"])
        out.append("| %s %s | %s core%s %g times | %s | %.3f | %.3f to %.3f | %.1f | %.1f | %s | %s |" % (
            c["network"], code(c["plan"]), c["cores"], "s" if c["cores"] == "both" else "", c["factor"],
            seconds_text(c["duration"]),
            f["ratio"]["median"], f["ratio"]["min"], f["ratio"]["max"], f["changes"], f["lost_turns"],
            cost, share))
    if results["quiet"]:
        out += ["| network, plan | seconds | changes of plan | lost turns |", "| --- | --- | --- | --- |"]
    for q in results["quiet"]:
        out.append("| %s %s | %.0f | %d | %d |" % (q["network"], code(q["plan"]), q["seconds"], q["changes"],
                                                   q["lost_turns"]))
    if results["cells"]:
        cells, sigma = results["cells"], noise(results["cells"])
        low = sum(figures(c)["ratio"]["median"] < LEAST for c in cells)
        sure = "" if sigma is None else ", %d by more than the machine's noise of %.1f %% a round explains" % (
            sum(surely_low(c, sigma) for c in cells), 100 * sigma)
        out += ["", "%d of %d cells are below %g%s; frames lost: %d" % (
            low, len(cells), LEAST, sure, sum(figures(c)["lost"] for c in cells))]
        out += ["Rounds %s: %s" % (name, pooled(chosen)) for name, chosen in by_events(cells).items()]
        costs = lost_turns_cost(cells)
        if costs:
            out += ["Lost turns in %d rounds cost %.2f %% of the frames (median; %.2f to %.2f)" % (
                len(costs), 100 * statistics.median(costs), 100 * min(costs), 100 * max(costs))]
    return "\n".join(out)
