#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Another program takes most of a core: it is noticed, decided on and remembered, also when cores go and come.

usage: test_adapt_load.py [CASE]...; PIPED_TEST_LONG: also what takes half a minute
"""
import os
import subprocess

from adapting import DEAF, Ahead, Machine, begin_with, by_measurement, good_record, kept
from daemon import BUILD, check, equal, main, only_long
from surroundings import lacking

SLOW_CORE = os.path.join(BUILD, "tests", "system", "slow_core")


def no_thief():
    """Why no core can be taken here; None: one can."""
    there = os.path.exists(SLOW_CORE)
    return lacking("real-time priority", "second core") if there else "slow_core is not built"


class Thief:
    """Another program of real-time priority that takes most of a core until the block is left or stop() is called."""

    def __init__(self, cpu, busy_us):
        self.process = subprocess.Popen([SLOW_CORE, str(cpu), str(busy_us), "4000", "600"], stdout=subprocess.PIPE,
                                        text=True)

    def __enter__(self):
        equal(self.process.stdout.readline(), "ready\n")
        return self

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, kind, value, trace):
        self.stop()
        self.process.stdout.close()


def felt(event):
    return event["cause"] in ("contention", "throughput")


def noticed(m, after):
    """Decisions made, once there are more than @after and the newest is about what was measured."""
    a = m.model()["adapt"]
    return a["decisions"] > after and felt(a["last"]) and a["decisions"]


@by_measurement
def another_program():
    """Most of a core taken: it is noticed and decided on, and again when it ends. A plan that deals its frames by speed may
    be the best one in both cases, so a change of plan is not asked for."""
    if no_thief():
        return no_thief()
    with Ahead(), Machine(adapt={"cooldown_s": 1, "probe_s": 5}) as m:
        m.watched()
        before = m.model()["adapt"]["decisions"]
        with Thief(1, 3400):
            slowed = m.wait("a decision", lambda: noticed(m, before))
        m.wait("another decision", lambda: noticed(m, slowed))
        for event in m.history():
            if felt(event):
                good_record(event)
        m.frames(20)
    return None


def online(m, cpus):
    """The event of the change to these cores."""
    before = m.last_id()
    m.tree.put("sys/devices/system/cpu/online", cpus)
    return m.event("hotplug", before)


def slowed(event, place):
    """The factor that the decision about other cores found known of a place."""
    check("decision" in event, event["detail"])
    return max(event["decision"]["slow"][place])


@by_measurement
def a_core_goes_and_returns_beside_another_program():
    """What is known of the core that another program takes most of is known on each set of cores that it is in, however
    soon they follow each other."""
    if no_thief():
        return no_thief()
    with Ahead(), Machine(adapt={"cooldown_s": 1, "probe_s": 0, "verify_percent": 100, "gain_percent": 15}) as m:
        begin_with(m, "0-12@a|13-25@b")
        before = m.last_id()
        with Thief(1, 3500) as thief:
            m.wait("another plan", lambda: [e for e in m.history() if e["id"] > before and felt(e) and
                                            e["outcome"] != "kept"])
            events = [online(m, "1"), online(m, "0-1")]  # at once: nothing was measured on one core
            m.watched()
            events.append(online(m, "1"))
            m.watched()
            check(m.model()["adapt"]["corrected"], m.model()["adapt"])
            events.append(online(m, "0-1"))
            for event in events:
                check(slowed(event, "b") > 2, event["id"], event["detail"], slowed(event, "b"))
                check("kept for these cores" not in event["detail"], event["detail"])
                good_record(event)
            online(m, "1")
            m.watched()
            count = m.model()["adapt"]["decisions"]
            thief.stop()
            m.wait("a decision", lambda: noticed(m, count))
        online(m, "0-1")
        m.frames(20)
    return None


@by_measurement
def a_core_that_returns_slow_is_left_again():
    """The plan kept for both cores is tried when the second one returns, is worse, and stays away."""
    if no_thief():
        return no_thief()
    with Ahead(), Machine(adapt=DEAF) as m:
        begin_with(m, "0-12@a|13-25@b")
        online(m, "0")
        m.watched()
        with Thief(1, 3500):
            event = online(m, "0-1")
            check("the plan kept for these cores returns" in event["detail"], event["detail"])
            equal((event["outcome"], event["turns"]["verdict"]), ("kept", "worse"))
            check(event["turns"]["ratio"] < 1, event["turns"])
            equal((event["plan_before"], event["plan_after"], m.model()["plan"]), ("0-25@a", "0-25@a", "0-25@a"))
            equal(event["lost"], 0)
            m.frames(20)
    return None


@by_measurement
def the_plan_of_before_a_quota_returns():
    """The quota is one of files, and a program does what it would do. The plan without the quota uses both cores."""
    if no_thief():
        return no_thief()
    free, limited = "0-25@a+b", "0-25@a"
    with Ahead(), Machine(adapt={"cooldown_s": 0, "probe_s": 0, "verify_percent": 100, "gain_percent": 1000}) as m:
        def quota(text, cpus):
            m.tree.put("sys/fs/cgroup/piped/cpu.max", text)
            m.wait("the quota", lambda: (m.d.status()["sensors"]["cgroup"] or {}).get("quota_cpus") == cpus)

        m.tree.put("proc/self/cgroup", "0::/piped")
        m.tree.put("sys/fs/cgroup/cgroup.controllers", "cpu cpuset")
        quota("max 100000", "none")
        m.watched()
        m.wait("a state", lambda: kept(m))
        quota("60000 100000", 0.6)
        m.wait("a state with it", lambda: kept(m) and kept(m)[0]["limits"].endswith(";quota:0.6"))
        m.end()
        kept(m, lambda states: [{**s, "plan": limited if "quota" in s["limits"] else free} for s in states])
        m.begin()
        equal((m.model()["plan"], m.model()["algorithm"]), (limited, "saved"))
        m.watched()
        before = m.model()["adapt"]["decisions"]
        with Thief(0, 3300):
            m.wait("a decision", lambda: noticed(m, before) and m.model()["adapt"]["corrected"])
            equal(m.model()["plan"], limited)
            last = m.last_id()
            quota("max 100000", "none")
        event = m.wait("the plan of before", lambda: next((e for e in m.history() if e["id"] > last and felt(e) and
                                                           e["outcome"] == "switched"), None))
        equal((event["plan_before"], event["plan_after"], event["algorithm"]), (limited, free, "saved"))
        check("the plan kept for this state of the machine returns" in event["detail"], event["detail"])
        m.frames(20)
    return None


@by_measurement
def a_team_of_both_cores_gives_way_to_two():
    """Where other programs run on both, its cores are hardly ever there at once; a team of each serves many times as fast."""
    if no_thief():
        return no_thief()
    with Ahead(), Machine(adapt={"cooldown_s": 1, "probe_s": 5}, eps=False, planner={"objective": "latency"}) as m:
        m.wait("a team of both", lambda: "x2" in m.model()["plan"])
        m.watched()
        with Thief(0, 2800), Thief(1, 2800):
            m.wait("teams of one", lambda: "x2" not in m.model()["plan"])
            m.frames(20)
    return None


if __name__ == "__main__":
    main([another_program, a_team_of_both_cores_gives_way_to_two, a_core_that_returns_slow_is_left_again,
          the_plan_of_before_a_quota_returns,
          *only_long(a_core_goes_and_returns_beside_another_program)])
