#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One of two equal cores is slowed: their place is split while that lasts, and joined again.

usage: test_split.py [CASE]...
"""
import functools

from adapting import Ahead, Machine, begin_with, by_measurement, good_record, kept
from daemon import VarlinkError, check, equal, main
from test_adapt_load import Thief, no_thief

WHOLE, PARTS = [("big", [0, 1])], [("big", [0]), ("big.1", [1])]
ADAPT = {"cooldown_s": 1, "probe_s": 5}
# Two stages of which the second one's core is slowed: plans on the parts are better, and show it.
STAGES = "0-12@big|13-25@big"
BUSY_US = 2800  # of 4000: enough is left on a machine that is busy besides


def places(m):
    return [(e["name"], e["cpus"]) for e in m.d.status()["eps"]]


def told(m, words):
    """The newest event whose detail has these words."""
    return m.wait(words, lambda: next((e for e in reversed(m.history()) if words in e["detail"]), None))


def split(m):
    m.wait("parts", lambda: places(m) == PARTS)
    return told(m, "core 1: ")


def on_equal_cores(case):
    """Gives the case a watched machine of two equal cores; skips where none can be slowed."""
    @by_measurement
    @functools.wraps(case)
    def run():
        if no_thief():
            return no_thief()
        with Ahead(), Machine(adapt=ADAPT, eps=False) as m:
            begin_with(m, STAGES)
            return case(m)
    return run


@on_equal_cores
def a_slowed_core_is_split_off_and_joined_again(m):
    """The client of adapting.py checks meanwhile that every frame is answered once, in order and bit by bit the same."""
    equal(places(m), WHOLE)
    with Thief(1, BUSY_US):
        event = split(m)
        equal((event["cause"], event["lost"], event["turns"]["verdict"]), ("contention", 0, "better"))
        check(event["turns"]["low"] > 1 and event["turns"]["pairs"] >= 3, event["turns"])
        equal([(t["role"], t["kept"]) for t in event["trials"]], [("turns", False), ("turns", True)])
        check("times slower than its siblings; EP big is split" in event["detail"], event)
        equal(event["decision"]["events"], ["parts"])
        good_record(event)
        why = m.wait("a reason", lambda: [e["why"] for e in m.d.status()["eps"] if e["name"] == "big.1"])
        equal(why, ["split off big: core 1 is slower than its siblings"])
        m.frames(40)
    m.wait("one place", lambda: places(m) == WHOLE)
    event = told(m, "joined again")
    equal((event["cause"], event["lost"]), ("contention", 0))
    check("big." not in event["plan_after"], event["plan_after"])
    m.frames(20)
    m.end()
    check(not any("big." in s["eps"] + s["plan"] for s in kept(m)), kept(m))
    m.begin()
    m.frames(5)


@on_equal_cores
def a_plan_of_the_user_joins_it(m):
    """It names places as they are when whole. One that is possible on the parts serves at once; another has to wait."""
    with Thief(1, BUSY_US):
        split(m)
        last = m.model()["units"] - 1
        wide, pair = "0-%d@bigx2" % last, "0-%d@big*2" % last
        try:
            m.d.call("SetPlan", {"plan": wide})
            check(False, "a plan of a team with a core in either part was set")
        except VarlinkError as e:
            equal(e.error, "io.piped.Busy")
            check("joined now" in e.parameters["why"], e.parameters)
        told(m, "a user's plan needs it")
        m.wait("a plan of the user", lambda: set_plan(m, wide))
        equal((places(m), m.model()["plan"], m.model()["algorithm"]), (WHOLE, wide, "manual"))
        m.frames(20)
    m.d.call("SetPlan", {"plan": pair})
    equal((places(m), m.model()["plan"]), (WHOLE, pair))
    with Thief(1, BUSY_US):
        m.frames(50)
        equal((places(m), m.model()["plan"]), (WHOLE, pair))


def set_plan(m, plan):
    try:
        m.d.call("SetPlan", {"plan": plan})
    except VarlinkError as e:
        equal(e.error, "io.piped.Busy")  # it is not joined yet
        return False
    return True


@on_equal_cores
def a_plan_of_the_user_moves_to_the_parts_and_back(m):
    with Thief(1, BUSY_US):
        split(m)
        pair = "0-%d@big*2" % (m.model()["units"] - 1)
        m.d.call("SetPlan", {"plan": pair})
        told(m, "the plan is a user's")
        equal((places(m), m.model()["plan"], m.model()["algorithm"]), (WHOLE, pair, "manual"))
        m.frames(20)


@on_equal_cores
def a_slowed_core_goes_and_returns(m):
    with Thief(1, BUSY_US):
        split(m)
        before = m.last_id()
        m.tree.put("sys/devices/system/cpu/online", "0")
        m.event("hotplug", before)
        equal(places(m), [("big", [0])])
        m.frames(10)
        before = m.last_id()
        m.tree.put("sys/devices/system/cpu/online", "0-1")
        m.event("hotplug", before)
        m.frames(10)
    m.wait("both cores in one place", lambda: places(m) == WHOLE)
    m.frames(20)


@on_equal_cores
def switched_off_it_is_joined(m):
    with Thief(1, BUSY_US):
        split(m)
        m.d.write_config({"adapt": {"enabled": False}})
        m.d.call("Reload")
        m.wait("both cores in one place", lambda: places(m) == WHOLE)
        check("big.1" not in m.model()["plan"], m.model()["plan"])
        m.frames(20)


if __name__ == "__main__":
    main([a_slowed_core_is_split_off_and_joined_again, a_plan_of_the_user_joins_it,
          a_plan_of_the_user_moves_to_the_parts_and_back, a_slowed_core_goes_and_returns, switched_off_it_is_joined])
