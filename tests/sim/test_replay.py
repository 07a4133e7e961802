#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipesim adapt and replay: what is recorded is decided the same again, what was tampered with is found.

usage: test_replay.py PIPESIM SOURCE_ROOT
"""
import json
import os
import re
import subprocess
import sys
import tempfile

PIPESIM, ROOT = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))
from cases import check, main  # noqa: E402

TEMP = tempfile.TemporaryDirectory()
RECORDS = os.path.join(TEMP.name, "records.json")


def run(*args):
    return subprocess.run([PIPESIM, *args], capture_output=True, text=True, timeout=120, check=False)


def written(records):
    path = os.path.join(TEMP.name, "changed.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(records, f)
    return path


def records():
    with open(RECORDS, encoding="utf-8") as f:
        return json.load(f)


def adapt_records_decisions_and_says_figures():
    done = run("adapt", "--scenario", "contention", "--runs", "2", "--records", RECORDS, "--json")
    check(done.returncode == 0, done.stderr)
    line = json.loads(done.stdout)[0]
    check(line["runs"] == 2 and line["changed"] == 1 and line["cause_named"] == 1, line)
    again = run("adapt", "--scenario", "contention", "--runs", "2", "--json")
    check(again.stdout == done.stdout, "the same seed gave another answer")
    check(any(r["decision"]["decided"]["replan"] for r in records()), "no re-plan was recorded")


def replay_decides_the_same():
    done = run("replay", "--json", RECORDS)
    check(done.returncode == 0, done.stdout + done.stderr)
    check(all(r["same"] for r in json.loads(done.stdout)), done.stdout)
    check(len(json.loads(done.stdout)) == len(records()), "decisions are missing")
    check("0 differ" in run("replay", RECORDS).stdout, "the table does not say so")


def every_scenario_is_decided_the_same_again():
    """What a decision is made from is in the record, whatever was noticed."""
    path = os.path.join(TEMP.name, "all.json")
    done = run("adapt", "--runs", "1", "--hours", "1", "--records", path)
    check(done.returncode == 0, done.stderr)
    anew = json.loads(run("replay", "--json", path).stdout)
    check(len(anew) > 20, len(anew), "decisions")
    check(all(r["same"] for r in anew), [r for r in anew if not r["same"]])


def with_a_search_every_change_runs_one():
    for algorithm in ("shisha", "pipe-search", "pipe-it", "annealing"):
        path = os.path.join(TEMP.name, "searches.json")
        done = run("adapt", "--scenario", "governor", "--runs", "2", "--algorithm", algorithm, "--records", path, "--json")
        check(done.returncode == 0, done.stderr)
        line = json.loads(done.stdout)[0]
        check(round(line["searches_per_hour"] * line["hours"]) >= 4, algorithm, line)  # when it begins and when it ends
        with open(path, encoding="utf-8") as f:
            check(any(r["decision"]["search"] for r in json.load(f)), "no search was recorded")
        check(run("replay", path).returncode == 0, algorithm)
    check(run("adapt", "--algorithm", "none").returncode == 2, "an unknown search is wrong usage")


def keys_of(value):
    """The keys of an object and of what is in it; factors by EP have its name."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return set(value if isinstance(value, dict) else ()).union(*map(keys_of, inner))


def keys_are_documented():
    with open(os.path.join(ROOT, "tuner", "pipesim.1.scd"), encoding="utf-8") as f:
        page = f.read().split("\n# RECORDED DECISIONS\n")[1].split("\n# ")[0]
    keys = set()
    for r in records():
        keys |= keys_of({k: v for k, v in r["decision"].items() if k not in ("problem", "slow")})
    check(len(keys) > 30, keys)
    check(keys <= set(re.findall(r"\b_(\w+?)_\b", page)), "keys that pipesim(1) lacks:",
          keys - set(re.findall(r"\b_(\w+?)_\b", page)))


def replay_finds_what_differs():
    changed = records()
    replan = next(r for r in changed if r["decision"]["decided"]["replan"])
    replan["decision"]["gain_min"] = 5
    done = run("replay", written(changed))
    check(done.returncode == 1 and "DIFFERS" in done.stdout and "1 differ" in done.stdout, done.stdout + done.stderr)


def events_without_a_decision_are_passed_over():
    changed = [{"id": 7, "cause": "start"}] + records()[:1]
    check(run("replay", written(changed)).returncode == 0, "an event without a decision was not passed over")
    done = run("replay", written(changed[:1]))
    check(done.returncode == 1 and "no recorded decision" in done.stderr, done.stderr)


def bad_records_are_refused():
    for way in ("beta", "slow", "now", "teams", "plan", "decided", "problem", "events", "gain_urgent"):
        for value in (None, [], {}, "x", 1e300, [{}], ["x"]):
            changed = records()[:1]
            if changed[0]["decision"][way] == value or (way, value) == ("teams", []):
                continue
            changed[0]["decision"][way] = value
            done = run("replay", written(changed))
            check(done.returncode in (0, 1), "%s = %r: exit code %d" % (way, value, done.returncode))
            if way not in ("events",):
                check(done.returncode == 1 and done.stderr, "%s = %r was taken" % (way, value))
    check(run("replay").returncode == 2, "no file is wrong usage")
    check(run("replay", os.path.join(TEMP.name, "none")).returncode == 1, "a missing file")
    check(run("adapt", "--scenario", "none").returncode == 2, "an unknown scenario is wrong usage")


main((adapt_records_decisions_and_says_figures, replay_decides_the_same,
      every_scenario_is_decided_the_same_again, with_a_search_every_change_runs_one, keys_are_documented, replay_finds_what_differs,
      events_without_a_decision_are_passed_over, bad_records_are_refused))
