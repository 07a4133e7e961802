#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the machine's files say changes under a plan: governors, limits, heat, cores that go and come, or nothing at all.

usage: test_adapt.py [CASE]...
"""
import shutil

import pyclient
from adapting import DEAF, EPS, LAST, LOW, TOP, Ahead, Machine, begin_with, by_measurement, good_record, kept
from daemon import check, ended, equal, main


def governor():
    with Machine() as m:
        m.watched()
        before = m.last_id()
        m.tree.policy(1, "scaling_governor", "powersave")
        m.tree.policy(1, "scaling_cur_freq", LOW)
        event = m.decided("governor", before)
        good_record(event)
        check(event["detail"].startswith("b runs at 600 MHz"), event)
        ended(event, "kept")  # its frames go to whichever of both teams is free, so b takes fewer by itself
        equal(event["plan_after"], "0-%d@a+b" % LAST)
        m.frames(20)
        before = m.last_id()
        m.tree.policy(1, "scaling_governor", "performance")
        m.tree.policy(1, "scaling_cur_freq", TOP)
        good_record(m.decided("governor", before))
        m.frames(20)


def frequency():
    with Machine() as m:
        m.watched()
        before = m.last_id()
        m.tree.policy(1, "scaling_max_freq", LOW)
        event = m.decided("frequency", before)
        good_record(event)
        m.frames(20)
        m.tree.policy(1, "scaling_max_freq", TOP)
        good_record(m.decided("frequency", event["id"]))
        m.frames(20)


def heat():
    with Machine() as m:
        m.watched()
        before = m.last_id()
        m.tree.put("sys/class/thermal/thermal_zone0/temp", 86000)
        m.tree.put("sys/class/thermal/cooling_device0/cur_state", 2)
        m.tree.policy(1, "scaling_max_freq", LOW)
        m.tree.policy(1, "scaling_cur_freq", LOW)
        event = m.decided("thermal", before)
        good_record(event)
        m.frames(20)
        m.tree.put("sys/class/thermal/thermal_zone0/temp", 60000)
        m.tree.put("sys/class/thermal/cooling_device0/cur_state", 0)
        m.tree.policy(1, "scaling_max_freq", TOP)
        m.tree.policy(1, "scaling_cur_freq", TOP)
        m.decided("thermal", event["id"])
        m.frames(20)


def a_core_goes_and_returns():
    for eps in (True, False):
        with Machine(eps=eps) as m:
            m.frames(30)
            before = m.last_id()
            m.tree.put("sys/devices/system/cpu/online", "0")
            event = m.event("hotplug", before)
            check("core 1 went" in event["detail"], event)
            status = m.d.status()
            equal([e["cpus"] for e in status["eps"]], [[0]])
            check(all(s["cpus"] == [0] for s in status["models"][0]["stages"]), status["models"][0]["stages"])
            m.frames(20)
            before = m.last_id()
            m.tree.put("sys/devices/system/cpu/online", "0-1")
            event = m.event("hotplug", before)
            check("core 1 came back" in event["detail"], event)
            cpus = sorted(c for e in m.d.status()["eps"] for c in e["cpus"])
            equal(cpus, [0, 1])
            m.frames(20)


def the_cpuset_shrinks():
    with Machine() as m:
        m.frames(30)
        before = m.last_id()
        m.tree.put("proc/self/status", "Name:\tpiped\nCpus_allowed_list:\t1")
        m.event("cpuset", before)
        equal([e["name"] for e in m.d.status()["eps"]], ["b"])
        m.frames(20)
        before = m.last_id()
        m.tree.put("proc/self/status", "Name:\tpiped\nCpus_allowed_list:\t0-1")
        m.event("cpuset", before)
        m.frames(20)


def a_plan_of_the_user_stays():
    """Left alone when frequencies change and when other cores go; planned when its own cores are gone."""
    with Machine(plan="0-25@a") as m:
        m.frames(30)
        equal(m.model()["adapt"]["state"], "pinned")
        m.tree.policy(0, "scaling_governor", "powersave")
        m.tree.policy(0, "scaling_cur_freq", LOW)
        m.tree.put("sys/devices/system/cpu/online", "0")
        event = m.event("hotplug")
        equal((event["outcome"], event["plan_after"], m.model()["algorithm"]), ("kept", "0-25@a", "config"))
        check([e["cause"] for e in m.history() if e["cause"] != "governor"] == ["start", "hotplug"], m.history())
        told = m.event("governor")
        equal((told["outcome"], told["detail"]),
              ("kept", "core 0: governor powersave instead of performance; the plan is the user's"))
        m.tree.put("sys/devices/system/cpu/online", "1")
        event = m.event("hotplug", event["id"])
        check("@b" in event["plan_after"] and "user's plan" in event["detail"], event)
        m.frames(20)
    with Machine() as m:
        m.d.call("SetPlan", {"plan": "0-25@b"})
        m.frames(30)
        m.tree.policy(1, "scaling_max_freq", LOW)
        m.tree.policy(1, "scaling_cur_freq", LOW)
        m.event("frequency")
        m.frames(60)
        equal([(e["cause"], e["outcome"]) for e in m.history()],
              [("start", "serving"), ("request", "switched"), ("frequency", "kept")])


def a_change_before_anything_is_watched():
    """It is told, each change with the right cause."""
    with Machine() as m:
        m.tree.policy(1, "scaling_governor", "powersave")
        event = m.event("governor")
        check("governor powersave instead of performance" in event["detail"], event)
        m.tree.policy(0, "scaling_max_freq", 1500000)
        m.event("frequency", event["id"])
        m.tree.put("sys/class/thermal/cooling_device0/cur_state", 1)
        m.tree.policy(1, "scaling_max_freq", 1500000)
        m.event("thermal", event["id"])
        m.frames(60)
        equal(sorted({e["cause"] for e in m.history()}), ["frequency", "governor", "start", "thermal"])


def noise_does_not_fill_the_history():
    """A limit that goes to and fro all the time is told a few times, and how often it was not."""
    changes = 60
    with Machine(adapt={**DEAF, "window_ms": 50}, plan="0-25@a", sensors={"interval_ms": 50}) as m:
        m.frames(1)
        for i in range(changes):
            khz = (LOW, TOP - 400000)[i % 2]
            m.tree.policy(1, "scaling_max_freq", khz)
            m.wait("a sample", lambda: m.d.status()["sensors"]["policies"][1]["limit_khz"] == khz)
        m.wait("what was not told", lambda: any(" not reported" in e["detail"] for e in m.history()))
        check(len(m.history()) < changes / 2, m.history())


@by_measurement
def a_known_state_returns():
    """A plan is kept for each limit and tried with it, also after a restart. No other plan gains enough here; that of the
    lower limit uses both cores, so it is better whatever the files say."""
    top, low = "0-25@a", "0-25@a+b"
    with Ahead(), Machine(adapt={**DEAF, "gain_percent": 1000}) as m:
        m.watched()
        first = m.wait("a state", lambda: kept(m))[0]
        m.tree.policy(1, "scaling_max_freq", LOW)
        m.event("frequency")
        second = m.wait("another state", lambda: len(kept(m)) == 2 and kept(m)[0])
        equal((second["eps"], second["governors"]), (first["eps"], first["governors"]))
        check(first["limits"] != second["limits"], first["limits"])
        m.tree.policy(1, "scaling_max_freq", TOP)
        m.end()

        plans = {first["limits"]: top, second["limits"]: low}
        kept(m, lambda states: [{**s, "plan": plans[s["limits"]]} for s in states])
        m.begin()
        equal((m.model()["plan"], m.model()["algorithm"]), (top, "saved"))
        m.watched()
        m.tree.policy(1, "scaling_max_freq", LOW)
        event = m.decided("frequency")
        equal([event[k] for k in ("outcome", "plan_after", "algorithm")], ["switched", low, "saved"], event["detail"])
        check("the plan kept for this state of the machine returns" in event["detail"], event["detail"])
        equal((event["turns"]["verdict"], event["lost"]), ("better", 0))
        m.frames(20)
        m.tree.policy(1, "scaling_max_freq", TOP)  # that of one core does not return: it lost
        event = m.decided("frequency", event["id"])
        equal((event["outcome"], m.model()["plan"]), ("kept", low), event["detail"])
        m.tree.policy(1, "scaling_max_freq", LOW)
        m.end()

        m.begin()  # under the lower limit
        equal((m.model()["plan"], m.model()["algorithm"]), (low, "saved"))
        m.frames(5)
        m.end()

        # as states were kept when limits were no part of them
        kept(m, lambda states: [{k: v for k, v in s.items() if k != "limits"} for s in states if s["plan"] == low])
        m.tree.policy(1, "scaling_max_freq", TOP)
        m.begin()
        equal((m.model()["plan"], m.model()["algorithm"]), (low, "saved"))
        m.frames(20)


@by_measurement
def a_plan_that_loses_stays_away():
    """Files say that core 1 hardly runs, which is wrong: a plan without it is proposed. It serves a few turns, and is
    left alone from then on."""
    halves, crawl = "0-12@a|13-25@b", 20000
    with Ahead(), Machine() as m:
        begin_with(m, halves)
        before = m.last_id()
        m.tree.policy(1, "scaling_max_freq", crawl)
        m.tree.policy(1, "scaling_cur_freq", crawl)
        event = m.decided("frequency", before)
        good_record(event)
        equal((event["outcome"], event["plan_after"], m.model()["plan"]), ("kept", halves, halves), event["detail"])
        turns = event["turns"]
        # "ended": other programs left more of the machine to the previous plan in its turn than before
        check(turns["verdict"] == "ended" or turns["verdict"] == "worse" and turns["pairs"] >= 2, turns)
        equal(event["lost"], 0)
        check("so the previous plan stays" in event["detail"] or turns["pairs"] == 0 and "so it stays" in event["detail"],
              event["detail"])
        equal([(t["role"], t["kept"]) for t in event["trials"]], [("turns", True), ("turns", False)])
        equal((m.model()["adapt"]["last"], m.model()["adapt"]["held"]), ({"cause": "frequency", "outcome": "kept"}, "lost"))
        windows = m.model()["adapt"]["windows"]
        m.wait("windows", lambda: m.model()["adapt"]["windows"] > windows + 25)
        equal([e["id"] for e in m.history() if "turns" in e], [event["id"]])


def a_plan_that_its_costs_refute_is_solved_again():
    """One core of two, kept from a load beside other programs, say. The costs that are measured promise nearly twice as many
    frames of both, so that plan takes turns. Whether it is better is for the turns to say: other programs may use core 1."""
    with Ahead(), Machine() as m:
        begin_with(m, "0-25@a")
        event = m.decided("measured")
        equal((event["plan_before"], event["lost"], event["decision"]["events"]), ("0-25@a", 0, ["costs"]))
        equal(event["outcome"], "switched" if event["turns"]["verdict"] == "better" else "kept")
        check(event["predicted_gain"] > 0.25 and "b" in event["trials"][1]["plan"], event)
        check("costs were measured since the plan was chosen" in event["detail"], event["detail"])
        good_record(event)


def a_quota_is_part_of_a_state():
    with Machine() as m:
        m.tree.put("proc/self/cgroup", "0::/piped")
        m.tree.put("sys/fs/cgroup/cgroup.controllers", "cpu cpuset")
        m.tree.put("sys/fs/cgroup/piped/cpu.max", "150000 100000")
        m.wait("the quota", lambda: (m.d.status()["sensors"]["cgroup"] or {}).get("quota_cpus") == 1.5)
        m.wait("a state with it", lambda: kept(m) and kept(m)[0]["limits"].endswith(";quota:1.5"))
        m.frames(5)


def keys_hold_after_a_reload():
    """For models that are there already, and what was measured of them stays."""
    with Machine(adapt={**DEAF, "cooldown_s": 3600}) as m:
        m.watched()
        equal(m.model()["adapt"]["cooldown_s"], 3600.0)
        m.d.write_config({"eps": EPS, "adapt": {"enabled": True, **DEAF, "cooldown_s": 7}})
        m.d.call("Reload")
        equal(m.model()["adapt"]["cooldown_s"], 7.0)
        equal(m.model()["adapt"]["state"], "watching")
        m.frames(5)


def nothing_happens():
    """Frequencies and temperatures that move a little are no reason for anything."""
    with Machine() as m:
        m.watched()
        plan, events = m.model()["plan"], len(m.history())
        for i in range(30):
            m.tree.policy(i % 2, "scaling_cur_freq", TOP - 20000 * (i % 3))
            m.tree.put("sys/class/thermal/thermal_zone0/temp", 45000 + 1000 * i)
            m.frames(4)
        equal((m.model()["plan"], len(m.history())), (plan, events))


def frames_of_a_time_of_rest_teach_no_costs():
    """A frame now and then finds caches that hold something else: what it takes replaces no cost that was measured."""
    def window():
        seen = m.model()["adapt"]["windows"]
        m.wait("two windows", lambda: m.model()["adapt"]["windows"] >= seen + 2)

    with Machine() as m:
        m.watched()
        m.client.end()
        window()
        before = m.d.call("Costs")["problem"]["costs"]
        with pyclient.Connection(m.d.frames_path) as c:
            s = pyclient.Stream(c, 1, "m")
            for _ in range(6):
                equal(s.infer(bytes(s.input_bytes)).status, "ok")
                window()
        equal(m.d.call("Costs")["problem"]["costs"], before)


def every_sensor_vanishes():
    with Machine() as m:
        m.watched()
        events = len(m.history())
        shutil.rmtree(m.tree.root)
        m.frames(60)
        equal(len(m.history()), events)
        m.tree.put("sys/devices/system/cpu/online", "garbage \x01 0-9999999999")
        m.tree.put("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "0")
        m.tree.put("sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq", "9" * 5000)
        m.frames(60)
        equal(len(m.history()), events)
        equal(m.d.status()["state"], "serving")


def switched_off():
    with Machine(adapt={"enabled": False}) as m:
        m.frames(60)
        m.tree.policy(1, "scaling_governor", "powersave")
        m.tree.policy(1, "scaling_cur_freq", LOW)
        m.tree.put("sys/devices/system/cpu/online", "0")
        m.frames(60)
        equal([e["cause"] for e in m.history()], ["start"])
        equal(m.model()["adapt"]["state"], "off")


def a_search_where_one_is_wanted():
    with Machine(planner={"algorithm": "shisha", "frames": 4, "measure_ms": 100}) as m:
        m.watched()
        before = m.last_id()
        m.tree.policy(1, "scaling_governor", "powersave")
        m.tree.policy(1, "scaling_cur_freq", LOW)
        event = m.decided("governor", before)
        equal((event["algorithm"], event["decision"]["decided"]["cause"]), ("shisha", "governor"))
        check([t for t in event["trials"] if t["role"] == "search"], event)
        m.frames(20)


if __name__ == "__main__":
    main([governor, frequency, heat, a_core_goes_and_returns, the_cpuset_shrinks, a_plan_of_the_user_stays,
          a_change_before_anything_is_watched, noise_does_not_fill_the_history, a_known_state_returns,
          a_plan_that_loses_stays_away, a_plan_that_its_costs_refute_is_solved_again, a_quota_is_part_of_a_state,
          keys_hold_after_a_reload, nothing_happens, frames_of_a_time_of_rest_teach_no_costs, every_sensor_vanishes,
          switched_off, a_search_where_one_is_wanted])
