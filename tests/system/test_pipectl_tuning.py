#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl's commands about plans and searches: what they print on 80 columns, their JSON, their exit codes."""
import json
import os
import re
import signal
import subprocess
import sys

import pipectl_run
from daemon import DIGITS, PIPECTL, ROOT, check, equal
from pipectl_run import bad, good_json, run, run_all
from surroundings import needs
from terminal import Terminal

EPS = [{"name": "left", "cpus": "0"}, {"name": "right", "cpus": "1" if (os.cpu_count() or 1) > 1 else "0", "speed": 0.9}]
CONFIG = {"eps": EPS, "planner": {"frames": 8, "measure_ms": 300}}
NET = os.path.join(ROOT, "model", "networks", "squeezenet1_1.json")
WIPE = b"\r\x1b[K"


def good(*args):
    """Text for people: no line passes 80 columns or ends in a space."""
    said = pipectl_run.good(*args)
    for line in said.splitlines():
        check(len(line) <= 80, "a line of %d columns:" % len(line), line)
        equal(line, line.rstrip())
    return said


def has(text, *words):
    for word in words:
        check(word in text, repr(word), "is not in\n" + text)


def test_retune_says_what_it_tried():
    event = good_json("retune", "--algorithm", "exhaustive", "--trials", "3")
    equal((event["algorithm"], event["cause"]), ("exhaustive", "request"))
    check(event["trial_count"] <= 3, event)
    text = good("retune", "--algorithm", "shisha", "--alpha", "1", "--heuristic", "1", "--seed", "7")
    has(text, "digits: ", "shisha", "before", "after", "frames/s", "measured ms", "serves now")
    event = good_json("history", "--limit", "1")[0]
    has(text.replace("\n", "").replace(" ", ""), event["plan_before"], event["plan_after"])
    equal(len(re.findall(r"^ +[\d-]+\* ", text, re.M)), sum(t["kept"] for t in event["trials"]), text)
    has(good("plan", "show"), event["plan_after"])


@needs("pseudo-terminals")
def test_progress_is_one_line_on_a_terminal():
    command = [PIPECTL, "--socket", pipectl_run.DAEMON.control_path, "retune", "--model", "net", "--algorithm", "exhaustive",
               "--trials", "3"]
    with Terminal(command, columns=40) as t:
        equal(t.wait_end(), 0)
        lines = t.bytes.split(WIPE)
        check(len(lines) > 3, t.bytes)
        for line in lines[1:-1]:
            check(line.startswith(b"net: tried 0-") and b"\n" not in line and len(line) < 40, line)
        check(lines[-1].startswith(b"net: "), "the line stays before the result", t.bytes)
    equal(run("retune", "--model", "net", "--algorithm", "exhaustive", "--trials", "2").stderr, "", "in a pipe")


def test_goals_reach_the_search():
    event = good_json("retune", "--objective", "latency", "--fps", "0.5", "--trials", "2")
    equal(event["objective"], "latency")
    event = good_json("retune", "--objective", "power", "--fps", "1", "--latency", "60000", "--trials", "2")
    equal(event["objective"], "power")
    equal(event["algorithm"], "exact")


def test_retune_without_waiting_and_its_end():
    equal(good_json("retune", "--cancel"), {"cancelled": False})
    has(good("retune", "--cancel"), "no search is running")
    equal(good_json("retune", "--model", "net", "--no-wait", "--algorithm", "random", "--trials", "1000"), None)
    equal(good_json("status")["state"], "tuning")
    bad(1, ["Busy"], "retune", "--model", "net")
    bad(1, ["Busy", "retune"], "profile")
    equal(good_json("retune", "--cancel", "--model", "net"), {"cancelled": True})
    pipectl_run.DAEMON.wait_state("serving")
    equal(good_json("history", "--model", "net")[-1]["outcome"], "cancelled")


def test_interrupt_ends_the_search():
    command = [PIPECTL, "--socket", pipectl_run.DAEMON.control_path, "--json", "retune", "--model", "net", "--algorithm", "random",
               "--trials", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        pipectl_run.DAEMON.wait_state("tuning")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
    has(err, "ending the search")
    equal(json.loads(out)["outcome"], "cancelled")
    equal(p.returncode, 0)
    equal(good_json("status")["state"], "serving")


def test_plan_front():
    front = good_json("plan", "front")
    check(front, "no plan at all")
    for p in front:
        check({"plan", "fps", "bottleneck_ms", "latency_ms"} <= set(p), p)
    for a, b in zip(front, front[1:]):
        check(a["fps"] >= b["fps"] and a["latency_ms"] >= b["latency_ms"], a, b)
    equal(len(good_json("plan", "front", "--max", "1")), 1)
    text = good("plan", "front", "--model", "net")
    has(text, "frames/s", "latency ms", "0-")
    bad(2, ["--max"], "plan", "front", "--max", "0")
    bad(2, ["--max"], "plan", "show", "--max", "3")


def test_plan_explain():
    run("bench", "--frames", "50")
    e = good_json("plan", "explain")
    check({"plan", "algorithm", "objective", "predicted", "now", "measured", "stages", "runners_up", "bound_fps", "cores",
           "table"} <= set(e), e)
    equal(e["plan"], good_json("plan", "show")["plan"])
    equal(sum(s["bottleneck"] for s in e["stages"]), 1)
    check(0 < e["now"]["fps"] <= 1.001 * e["bound_fps"], e)
    equal([c["ep"] for c in e["cores"]], [ep["name"] for ep in EPS])
    check(abs(sum(c["limits"] for c in e["cores"]) - 1) < 1e-6, e["cores"])
    text = good("plan", "explain")
    check("of what these cores could ever do" in " ".join(text.split()), text)
    has(text, "Plan  " + e["plan"], "Chosen by", "by costs now", "measured", "bound", "(bottleneck)", "Cores:",
        "left: ")
    check("Chosen by" in text and " UTC, when " in " ".join(text.split()), text)
    check("when chosen" not in text, "a past prediction beside the bound", text)
    now, then = e["now"]["fps"], (e["predicted"] or {}).get("fps")
    if then and abs(then / now - 1) > 0.006:
        has(" ".join(text.split()), "When it was chosen, the costs known then promised %.1f frames/s." % then)
    check(len(text.splitlines()) <= 40, "more than a screen:\n" + text)


def chosen(by):
    """What `plan explain` prints, and its date, which is that of the history's event."""
    explained = good_json("plan", "explain")
    said = explained["chosen"]
    equal((said["by"], said["cause"]), (by, "request"))
    events = [e for e in good_json("history") if e["at"] == said["at"] and e["model"] == "digits"]
    equal([(e["cause"], e["detail"], e["plan_after"]) for e in events], [("request", said["detail"], explained["plan"])])
    return " ".join(good("plan", "explain").split()), said["at"][:10] + " " + said["at"][11:19] + " UTC"


def test_plan_explain_says_since_when():
    units = good_json("status")["models"][0]["units"]
    plan = "0-%d@right" % (units - 1)
    good("plan", "set", plan.replace("right", "left"))  # a search may have found the other one before
    good("plan", "set", plan)
    text, at = chosen("hand")
    has(text, "Set by hand; the objective is", "It serves since %s, when it was set by hand (cause request)." % at)
    said = good_json("plan", "explain")["chosen"]
    good("retune", "--trials", "2")  # it may find a better plan
    if good_json("plan", "show")["plan"] == plan:
        equal(good_json("plan", "explain")["chosen"], said, "kept")
    else:
        has(chosen("retune")[0], "when a retune chose it")
    good("plan", "set", plan.replace("right", "left"))
    good("plan", "auto")
    has(chosen("request")[0], "when a client asked for the best plan")


def test_plan_mapping():
    path = os.path.join(pipectl_run.DAEMON.temp, "mapping.json")
    last = good_json("status")["models"][0]["units"] - 1
    plan = "0-2@left|3-%d@right" % last
    good("plan", "set", plan)
    has(good("plan", "export", path), path, plan)
    with open(path, encoding="utf-8") as f:
        mapping = json.load(f)
    equal([(k, len(v)) for k, v in mapping.items()], [("host_cpu0", 3), ("host_cpu1", last - 2)])
    good("plan", "auto")
    has(good("plan", "import", path), "serving by " + plan)
    equal(good_json("plan", "show")["plan"], plan)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"host_cpu0": mapping["host_cpu0"]}, f)
    bad(1, ["is not mapped"], "plan", "import", path)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"a_cpu0": mapping["host_cpu0"], "b_cpu1": mapping["host_cpu1"]}, f)
    bad(1, ["several devices", '"auto"'], "plan", "import", path)
    equal(good_json("plan", "show")["plan"], plan)
    good("plan", "auto")


def test_costs():
    problem = good_json("costs")
    equal([k["name"] for k in problem["kinds"]], ["left", "right"])
    units = len(problem["units"])
    for k in problem["kinds"]:
        equal([len(row) for row in problem["costs"][k["name"]].values()], [units] * k["cores"])
    text = good("costs")
    has(text, "left", "right", "all units", "~ predicted")
    equal(len(re.findall(r"^ *\d+  ", text, re.M)), units)
    good("costs", "--model", "net")


def test_profile():
    kinds = good_json("profile", "--ms", "1")
    equal([k["name"] for k in kinds], ["left", "right"])
    text = good("profile", "--ms", "1")
    has(text, "left", "right", "benchmarks", "%")
    for ms in ("0", "x", "600001"):
        bad(2, ["--ms"], "profile", "--ms", ms)


def test_history():
    events = good_json("history")
    text = good("history")
    has(text, "when, UTC", "start", "request", events[-1]["outcome"])
    equal(len(re.findall(r"^ *\d+  \d\d-\d\d ", text, re.M)), len(events))
    tried = [e for e in events if e["model"] == "digits" and e["trials"]][-1]
    text = good("history", "--trials")
    has(text.replace("\n", "").replace(" ", ""), tried["detail"].replace(" ", ""), tried["trials"][0]["plan"])
    equal(len(re.findall(r"^    [*-] ", text, re.M)), sum(len(e["trials"]) for e in events))
    equal({e["model"] for e in good_json("history", "--model", "net")}, {"net"})
    bad(1, ["NotFound", "nope"], "history", "--model", "nope")
    bad(1, ["NotFound", "nope"], "--json", "history", "--model", "nope")
    bad(2, ["--limit"], "history", "--limit", "0")


def test_wrong_usage():
    for option, value in (("--fps", "x"), ("--fps", "-1"), ("--latency", "nan"), ("--alpha", "0"), ("--alpha", "1.5"),
                          ("--heuristic", "7"), ("--trials", ""), ("--seed", "-1"), ("--seed", "1e300")):
        bad(2, [option, "usage"], "retune", option, value)
    bad(2, ["usage"], "retune", "--cancel", "--fps", "3")
    bad(2, ["usage"], "retune", "now")
    bad(2, ["usage"], "retune", "--alpha")
    bad(2, ["usage"], "plan", "guess")
    bad(2, ["usage"], "costs", "more")
    bad(1, ["--objective power needs --fps F"], "retune", "--objective", "power")
    for args in (["retune", "--encoding", "x"], ["optimise", "--algorithm", "dijk"], ["optimise", "--objective", "speed"],
                 ["retune", "--algorithm", "nope"], ["retune", "--objective", "nope"],
                 ["retune", "--algorithm", "shisa"]):
        bad(2, ["--%s needs one of " % args[1][2:], "not '%s'" % args[2]], *args)
    for command in (["retune"], ["retune", "--cancel"], ["plan", "front"], ["plan", "explain"], ["costs"], ["history"]):
        bad(1, ["NotFound", "nope"], *command, "--model", "nope")
    r = subprocess.run([PIPECTL, "--socket", pipectl_run.DAEMON.control_path + ".not", "plan", "explain"], capture_output=True,
                       text=True, timeout=60, check=False)
    equal(r.returncode, 3)


if __name__ == "__main__":
    sys.exit(run_all([test_retune_says_what_it_tried, test_progress_is_one_line_on_a_terminal, test_goals_reach_the_search,
                      test_retune_without_waiting_and_its_end, test_interrupt_ends_the_search, test_plan_front,
                      test_plan_explain, test_plan_explain_says_since_when, test_plan_mapping, test_costs, test_profile,
                      test_history, test_wrong_usage],
                     models={"digits": DIGITS, "net": NET}, config=CONFIG))
