#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Other programs on a team's core: the times of its units stay what they are without them, wherever they are read.

Only shares of a frame are compared, never times, so that other programs beside the test change nothing.
"""
import contextlib
import os
import subprocess
import sys

from adapting import LAST, NETWORK
from daemon import Failure, check, equal, main
from doctor_rig import doctor, load, on_tree
from test_trace import Recording
from trace_file import check_trace

BUSY = "import signal; signal.alarm(600); print('ready', flush=True)\nwhile True: pass"
FRAMES = 50  # of a measurement
ONE, TEAM = "0-%d@big" % LAST, "0-%d@bigx2" % LAST


@contextlib.contextmanager
def busy(cpus, count):
    """Programs that compute on these cores until the block is left."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            p = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True,
                                                     preexec_fn=lambda: os.sched_setaffinity(0, cpus)))
            stack.callback(p.kill)
            equal(p.stdout.readline(), "ready\n")
        yield


def stage(d):
    return d.status()["models"][0]["stages"][0]


def begin_anew(d, plan):
    """Clocks begin with a plan."""
    for plan in ("0-0@big|1-%d@big" % LAST, plan):
        d.call("SetPlan", {"plan": plan})
    check(d.wait_until(lambda: d.pipectl("units")[0]["count"] >= FRAMES), "no frames")


def shares(d, key="time_ms"):
    times = [u[key] for u in d.pipectl("units")]
    return [t / sum(times) for t in times]


def frame_ms(d):
    return sum(u["time_ms"] for u in d.pipectl("units"))


def unlike(d, plan):
    """Fails if what is read beside busy programs differs from what was read without them."""
    begin_anew(d, plan)
    quiet = shares(d)
    if plan == TEAM and stage(d)["service_ms"] > 2 * frame_ms(d):
        return "other programs take these cores: with ours beside them, a team would hardly ever have both"
    with busy(stage(d)["cpus"][-1:], 3):
        begin_anew(d, plan)
        check(d.wait_until(lambda: stage(d)["service_ms"] > 2 * frame_ms(d)), "nothing was taken", stage(d), frame_ms(d))
        for _ in range(5):
            worst = max(max(shares(d)), max(shares(d, "ewma_ms")))
            check(worst < 2 * max(quiet), "a unit is blamed", worst, max(quiet))
        for unit, (before, now) in enumerate(zip(quiet, shares(d))):
            check(now < 2 * before + 0.02 and before < 2 * now + 0.02, "unit", unit, before, now)
        cpu_ms = stage(d)["cpu_s"] * 1e3 / d.pipectl("units")[0]["count"]
        check(frame_ms(d) < 1.3 * cpu_ms, "units take more than the team's CPU time", frame_ms(d), cpu_ms)
        now = d.pipectl("plan", "explain")["now"]["bottleneck_ms"]
        check(now < 1.5 * frame_ms(d), "the table has learned what others took", now, frame_ms(d), stage(d))
        findings = {f["name"]: f["share"] for f in doctor(d, seconds="2")["findings"]}
        for other in ("heavy-units", "slow-stage"):
            check(findings["shared-cores"] > findings.get(other, 0), findings)
    return None


def timed_without_others(plan):
    """A virtual machine that stands still within a unit blames that unit, once; a clock that counts others does so always."""
    with on_tree(("net", NETWORK), config={"adapt": {"enabled": False}}) as (d, _):
        d.call("SetPlan", {"plan": plan})
        with load(d):
            for left in reversed(range(3)):
                try:
                    return unlike(d, plan)
                except Failure as e:
                    check(left, e)
    return None


def units_are_timed_without_others():
    return timed_without_others(ONE)


def units_of_a_team_are_timed_without_others():
    """While the worker has lost its core, the leader spins."""
    with open("/proc/thread-self/schedstat", encoding="ascii") as f:
        if f.read().split()[0] == "0":
            return "this kernel keeps no schedstat"
    if len(os.sched_getaffinity(0)) < 2:
        return "one CPU"
    return timed_without_others(TEAM)


def a_trace_shows_others():
    with on_tree(("net", NETWORK), config={"adapt": {"enabled": False}}) as (d, _):
        d.call("SetPlan", {"plan": ONE})
        with busy(stage(d)["cpus"], 1), load(d):
            r = Recording(d, "t.json")
            before = d.status()["models"][0]["frames"]["answered"]
            check(d.wait_until(lambda: d.status()["models"][0]["frames"]["answered"] > before + FRAMES), "no frames")
            trace, _ = r.stop()
        check_trace(trace, ["net"])
        taken = [s for team in trace.teams("net") for s in team.slices if s.name == "other tasks"]
        check(taken, "no time was taken")


if __name__ == "__main__":
    main([units_are_timed_without_others, units_of_a_team_are_timed_without_others, a_trace_shows_others])
