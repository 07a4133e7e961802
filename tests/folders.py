# SPDX-License-Identifier: Apache-2.0
"""Build folders: sets them up, compiles, runs meson's tests in them; a part of tests/runner.py.

Meson runs the tests. Each part of a run has logs of its own, meson-logs/tests-run-PART in its folder: .txt has what the
tests said, .json one object a test, .log what meson said.
"""
import difflib
import glob
import json
import os
import re
import shutil
import subprocess
import time

from counts import TAIL_LINES

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NEAR_NAMES = 5
SLOWEST = 5


class Stop(Exception):
    """The run cannot go on; the text says why."""


def say(text):
    print("== %s" % text, flush=True)


def run(command, log=None, env=None, timeout=None):
    """Return: exit code. Output goes to `log`, or through."""
    out = open(log, "ab") if log else None
    try:
        return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                              env=dict(os.environ, **(env or {})), timeout=timeout, check=False).returncode
    finally:
        if out:
            out.close()


def running():
    """Return: command lines of what this run's commands have started: the tests, while meson runs them."""
    def read(pid, name):
        try:
            with open("/proc/%s/%s" % (pid, name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:  # it has ended, or this kernel does not list children
            return ""

    def children(pid):
        return read(pid, "task/%s/children" % pid).split()
    return "\n".join(read(test, "cmdline").replace("\0", " ") for command in children(os.getpid())
                     for test in children(command))


def tail(path, lines=TAIL_LINES):
    with open(path, encoding="utf-8", errors="replace") as f:
        return "".join(f.readlines()[-lines:])


def introspect(folder, what="--tests"):
    out = subprocess.run(["meson", "introspect", folder, what], cwd=ROOT, capture_output=True, text=True,
                         check=True).stdout
    return json.loads(out)


def targets(folder, wanted):
    """Return: names for ninja of the targets for which wanted(target) is true."""
    return [os.path.relpath(path, os.path.join(ROOT, folder)) for t in introspect(folder, "--targets") if wanted(t)
            for path in t["filename"]]


def installed(folder):
    """Return: names for ninja of what is installed."""
    return targets(folder, lambda t: t["installed"])


def needed_by(folder, names):
    """Return: names for ninja of what the tests of these names depend on."""
    needed = {target for t in introspect(folder) if t["name"] in names for target in t["depends"]}
    return targets(folder, lambda t: t["id"] in needed)


def needed_by_chosen(folder, chosen, only=()):
    """Return: names for ninja of what the tests that these arguments choose depend on, or those that `only` names."""
    out = subprocess.run(["meson", "test", "-C", folder, "--no-rebuild", *chosen, "--list"], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    names = {line.split(" / ", 1)[1] for line in out.splitlines() if " / " in line}
    return needed_by(folder, names & set(only) or names)


def build(folder, options, jobs, env=None, only=None):
    """Sets up where needed and builds everything, or what only(folder) names; says what failed. `env` is for the first
    setup: CC, for example."""
    start = time.monotonic()
    if shutil.which("ld.gold"):  # links a test in half the time; there are hundreds
        env = {"CC_LD": os.environ.get("CC_LD", "gold"), **(env or {})}
    os.makedirs(os.path.join(ROOT, folder), exist_ok=True)
    log = os.path.join(ROOT, folder, "tests-run-build.log")
    open(log, "wb").close()
    if not os.path.exists(os.path.join(ROOT, folder, "build.ninja")):
        if run(["meson", "setup", folder, *options], log, env):
            raise Stop("meson setup %s failed:\n%s" % (folder, tail(log)))
    elif options and run(["meson", "configure", folder, *options], log):
        raise Stop("meson configure %s failed:\n%s" % (folder, tail(log)))

    def ninja():
        if only and run(["ninja", "-C", folder, "build.ninja"], log):  # what there is may have changed
            return 1
        return run(["ninja", "-C", folder, *(["-j", str(jobs)] if jobs else []),
                    *(only(folder) if only else [])], log)

    if ninja():
        # A folder of another meson or of moved sources: once more from scratch.
        if b"ninja: build stopped" in open(log, "rb").read() or run(["meson", "setup", "--wipe", folder, *options],
                                                                   log, env) or ninja():
            if not os.path.exists(log):  # it is wiped, too
                log = os.path.join(ROOT, folder, "meson-logs", "meson-log.txt")
            raise Stop("building %s failed:\n%s" % (folder, tail(log)))
    say("%s built in %.0f s" % (folder, time.monotonic() - start))


def suites_of(test):
    """Names without the project's prefix."""
    return {s.split(":", 1)[-1] for s in test["suite"]}


def need_names(wanted, known, what):
    """Stops at a name of `wanted` that `known` lacks, with those that are near."""
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), NEAR_NAMES, 0.5)
            near += sorted(k for k in known if name and name in k and k not in near)[:NEAR_NAMES]
            raise Stop("there is no %s \"%s\"; %s" % (
                what, name, "near it: %s" % ", ".join(near) if near else "tests/run --list shows all"))


def logs_of(folder, where):
    """Return: path of the logs of one part of a run, without their endings."""
    return os.path.join(ROOT, folder, "meson-logs", "tests-run-" + re.sub(r"\W+", "-", where))


def records_of(path):
    """What meson wrote about its run; None without it."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def slowest(records):
    """What to shorten first, if many tests ran."""
    if len(records) < SLOWEST * 4:
        return ""
    records = sorted(records, key=lambda r: -r["duration"])[:SLOWEST]
    return "; slowest: " + ", ".join("%s %.0f s" % (r["name"].split(" / ")[-1], r["duration"]) for r in records)


def at_once():
    """Return: how many tests run beside each other: one more than cores, as one of them mostly waits."""
    return len(os.sched_getaffinity(0)) + 1


def test(folder, where, totals, arguments, env, needed=(), suites=()):
    """Runs meson test with `arguments` and counts into `totals`. Tests of the names `needed` and of each of `suites`
    have to be among those that ran."""
    start = time.monotonic()
    logs = logs_of(folder, where)
    log = logs + ".log"
    for path in glob.glob(glob.escape(logs) + ".*"):
        os.unlink(path)
    # meson appends the name of a setup by itself
    base = os.path.basename(logs)[:-len("-" + where) if "--setup" in arguments else None]
    # time limits only end what hangs: other programs may leave a test a third of the machine
    patience = [] if {"--setup", "--timeout-multiplier"} & set(arguments) else ["--timeout-multiplier", "3"]
    code = run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", "--logbase", base,
                "--num-processes", str(at_once()), *patience, *arguments], log, env)
    records = records_of(logs + ".json")
    before = (totals.passed, totals.failed, totals.skipped)
    if records is None:
        if "No suitable tests" not in tail(log) and "No tests defined" not in tail(log):
            raise Stop("meson test in %s failed:\n%s" % (folder, tail(log)))
        totals.fail(where, "meson test", "no test ran: %s" % " ".join(arguments))
        records = []
    for record in records:
        totals.add(where, record)
    # "project:suite+suite / name"
    ran = {r["name"].split(" / ")[-1] for r in records}
    for name in needed:
        if name not in ran:
            totals.fail(where, name, "the test \"%s\" did not run" % name)
    ran = set().union(*(r["name"].split(" / ")[0].split(":", 1)[-1].split("+") for r in records))
    for suite in suites:
        if suite not in ran:
            totals.fail(where, suite, "no test of the suite \"%s\" ran" % suite)
    if code and totals.failed == before[1]:
        totals.fail(where, "meson test", tail(log))
    failed = totals.failed - before[1]
    say("%s: %d tests, %d cases passed, %d failed, %d skipped in %.0f s%s%s" % (
        where, len(records), totals.passed - before[0], failed, totals.skipped - before[2], time.monotonic() - start,
        slowest(records), "; logs: %s.txt" % os.path.relpath(logs, ROOT) if failed else ""))
