#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One of two equal cores is slowed: their place is split while that lasts, and joined again.

usage: test_split.py [CASE]...; PIPED_TEST_LONG: also what takes longest
"""
import functools
import signal

from adapting import Ahead, Machine, begin_with, by_measurement, crowded, good_record, kept
from daemon import VarlinkError, check, equal, main, only_long
from test_adapt_load import Thief, no_thief

WHOLE, PARTS = [("big", [0, 1])], [("big", [0]), ("big.1", [1])]
ADAPT = {"cooldown_s": 1, "probe_s": 5}
# Two stages of which the second one's core is slowed: plans on the parts are better, and show it.
STAGES = "0-12@big|13-25@big"
BUSY_US = 2800  # of 4000: enough is left on a machine that is busy besides


def places(m):
    return [(e["name"], e["cpus"]) for e in m.d.status()["eps"]]


def told(m, *words, after=0):
    """The newest event whose detail has one of these texts, with an id above @after."""
    return m.wait(words, lambda: next((e for e in reversed(m.history())
                                       if e["id"] > after and any(w in e["detail"] for w in words)), None))


def slower(event):
    """Turns have shown that the plan of the whole is slower than that on the parts."""
    high = (event.get("turns") or {}).get("high")
    return high is not None and high < 1


def split(m):
    m.wait("parts", lambda: places(m) == PARTS)
    return told(m, "core 1: ")


def not_joined(m, after):
    """Waits until the place is joined, or turns show that the plan of the whole is slower. Return: then other programs of
    this machine are in the way; None: it is joined, and turns have not shown it to be slower."""
    event = m.wait("one place", lambda: next((
        e for e in m.history() if e["id"] > after and
        ("joined again" in e["detail"] or ("stays split" in e["detail"] and slower(e)))), None))
    if "stays split" in event["detail"]:
        return "other programs slow a core as well"
    check(not slower(event), event)
    return None


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
        if event["turns"]["verdict"] == "ended" and crowded():
            return "other programs slow the other core as well"
        equal((event["cause"], event["lost"], event["turns"]["verdict"]), ("contention", 0, "better"))
        check(event["turns"]["low"] > 1 and event["turns"]["pairs"] >= 3, event["turns"])
        equal([(t["role"], t["kept"]) for t in event["trials"]], [("turns", False), ("turns", True)])
        check("times slower than its siblings; EP big is split" in event["detail"], event)
        equal(event["decision"]["events"], ["parts"])
        good_record(event)
        why = m.wait("a reason", lambda: [e["why"] for e in m.d.status()["eps"] if e["name"] == "big.1"])
        equal(why, ["split off big: core 1 is slower than its siblings"])
        m.frames(40)
    why = not_joined(m, m.last_id())
    if why:
        return why
    m.wait("one place", lambda: places(m) == WHOLE)
    event = told(m, "joined again")
    equal((event["cause"], event["lost"]), ("contention", 0))
    check("big." not in event["plan_after"], event["plan_after"])
    m.frames(20)
    m.end()
    check(not any("big." in s["eps"] + s["plan"] for s in kept(m)), kept(m))
    m.begin()
    m.frames(5)
    return None


@on_equal_cores
def a_core_that_seems_free_for_a_moment_stays_split_off(m):
    """What slows the core pauses until the plan kept for the whole place takes turns, and goes on: the turns show it."""
    with Thief(1, BUSY_US) as thief:
        split(m)
        m.wait("the plan on the parts", lambda: m.model()["adapt"]["state"] == "watching")
        parts = m.model()["plan"]
        thief.process.send_signal(signal.SIGSTOP)
        m.wait("turns", lambda: m.model()["plan"] != parts)
        last = m.last_id()
        thief.process.send_signal(signal.SIGCONT)
        event = told(m, "stays split", "joined again", after=last)
        if "joined again" in event["detail"]:
            check(not slower(event), event)
            return "beside other programs, turns show nothing"
        last = m.last_id()
        equal((event["cause"], event["outcome"], event["lost"]), ("contention", "kept", 0))
        check(event["turns"]["verdict"] != "better", event["turns"])
        equal((places(m), m.model()["plan"]), (PARTS, parts))
    return not_joined(m, last)


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
    main([a_slowed_core_is_split_off_and_joined_again, a_plan_of_the_user_joins_it, switched_off_it_is_joined,
          *only_long(a_core_that_seems_free_for_a_moment_stays_split_off, a_plan_of_the_user_moves_to_the_parts_and_back,
                     a_slowed_core_goes_and_returns)])
