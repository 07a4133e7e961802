#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The machine changes under a plan: governors, limits, heat, cores that go and come, another program, or nothing at all.

usage: test_adapt.py [CASE]...

What the machine says is a tree of files below --sysfs-root that the cases rewrite; threads run on real cores. A client
streams all the while and checks every answer. Where a case is about files, detectors are set so high that the machine's
own noise is no cause of anything.
"""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time

import pyclient
from daemon import BUILD, LIMIT_S, ROOT, Daemon, check, equal, main

PIPESIM = os.path.join(BUILD, "tuner", "pipesim")
NETWORK = os.path.join(ROOT, "model", "networks", "squeezenet1_1.json")
EPS = [{"name": "a", "cpus": "0"}, {"name": "b", "cpus": "1"}]
DEAF = {"sustain_millisigma": 1000000, "noise_permille": 1000, "cooldown_s": 0, "probe_s": 0, "verify_percent": 1000}
TOP, LOW = 2000000, 600000


class Tree:
    """Two cores with a policy each, a thermal zone and its cooling device."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "sysfs")
        self.put("sys/devices/system/cpu/online", "0-1")
        self.put("proc/self/status", "Name:\tpiped\nCpus_allowed_list:\t0-1")
        for cpu in range(2):
            self.put("sys/devices/system/cpu/cpu%d/cpu_capacity" % cpu, "1024")
            self.put("sys/devices/system/cpu/cpu%d/topology/core_id" % cpu, str(cpu))
            self.policy(cpu, "related_cpus", cpu)
            self.policy(cpu, "scaling_governor", "performance")
            for name, khz in (("cpuinfo_max_freq", TOP), ("cpuinfo_min_freq", LOW), ("scaling_max_freq", TOP),
                              ("scaling_min_freq", LOW), ("scaling_cur_freq", TOP)):
                self.policy(cpu, name, khz)
        zone = "sys/class/thermal/thermal_zone0/"
        for name, value in (("type", "cpu"), ("temp", 45000), ("trip_point_0_type", "passive"),
                            ("trip_point_0_temp", 80000)):
            self.put(zone + name, value)
        for name, value in (("type", "cpufreq-cpu1"), ("cur_state", 0), ("max_state", 3)):
            self.put("sys/class/thermal/cooling_device0/" + name, value)

    def put(self, path, value):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write("%s\n" % value)
        os.rename(path + ".new", path)

    def policy(self, number, name, value):
        self.put("sys/devices/system/cpu/cpufreq/policy%d/%s" % (number, name), value)


class Client(threading.Thread):
    """Streams until told to stop and checks order and content of every answer."""

    def __init__(self, d):
        super().__init__()
        self.d, self.stop, self.answered, self.error = d, threading.Event(), 0, None
        self.start()

    def run(self):
        try:
            with pyclient.Connection(self.d.frames_path, timeout=LIMIT_S) as c:
                s = pyclient.Stream(c, 1, self.d.status()["models"][0]["name"])
                frame = struct.pack("<f", 0.25) * (s.input_bytes // 4)
                wanted = s.infer(frame).output
                sent = []
                while not self.stop.is_set() or sent:
                    while len(sent) < s.credits and not self.stop.is_set():
                        sent.append(s.submit(frame))
                    r = s.result()
                    equal((r.frame, r.status), (sent.pop(0), "ok"), r.text)
                    check(r.output == wanted, "a wrong answer in epoch", r.epoch)
                    self.answered += 1
                s.close()
        except Exception as e:  # told by end()
            self.error = e

    def end(self):
        self.stop.set()
        self.join()
        if self.error:
            raise self.error
        check(self.answered > 0, "nothing was answered")


class Machine:
    """A daemon on a tree, with a client, watched until its plan is."""

    def __init__(self, adapt=None, eps=True, plan=None, network=NETWORK, planner=None, sensors=None):
        config = {"adapt": {"enabled": True, **(DEAF if adapt is None else adapt)}}
        if sensors:
            config["sensors"] = sensors
        if eps:
            config["eps"] = EPS
        if planner:
            config["planner"] = planner
        if plan:
            config["models"] = [{"name": "m", "path": network, "plan": plan}]
        self.d = Daemon(models=None if plan else {"m": network}, config=config)
        self.tree = Tree(self.d.temp)
        self.d.args = ["--sysfs-root", self.tree.root]

    def __enter__(self):
        self.d.start()
        self.client = Client(self.d)
        return self

    def __exit__(self, kind, value, trace):
        try:
            self.client.stop.set()
            self.client.join()
            if kind is None:
                self.client.end()
                status = self.model()
                equal((status["frames"]["failed"], status["frames"]["dropped"]), (0, 0))
        finally:
            self.d.__exit__(kind, value, trace)

    def end(self):
        self.client.end()
        self.d.stop()

    def begin(self):
        """The daemon again, on the same tree and state, with another client."""
        self.d.start()
        self.client = Client(self.d)

    def model(self):
        return self.d.status()["models"][0]

    def history(self):
        return self.d.call("History")["events"]

    def wait(self, what, wanted):
        end = time.monotonic() + LIMIT_S
        while True:
            found = wanted()
            if found:
                return found
            if self.client.error:
                raise self.client.error
            check(time.monotonic() < end, "waited in vain for", what, json.dumps(self.model()["adapt"]),
                  [{k: e[k] for k in ("cause", "outcome", "detail")} for e in self.history()], self.d.log())
            time.sleep(0.02)

    def watched(self):
        self.wait("watching", lambda: self.model()["adapt"]["state"] == "watching")

    def event(self, cause, after=0):
        """The newest event of @cause with an id above @after."""
        return self.wait(cause, lambda: next((e for e in reversed(self.history())
                                              if e["cause"] == cause and e["id"] > after), None))

    def decided(self, cause, after=0):
        """The same, of those that a decision was made for: on a slow machine the change is told before it."""
        return self.wait("a decision, " + cause, lambda: next((e for e in reversed(self.history()) if "decision" in e and
                                                               e["cause"] == cause and e["id"] > after), None))

    def last_id(self):
        return self.history()[-1]["id"]

    def frames(self, count):
        answered = self.client.answered
        self.wait("frames", lambda: self.client.answered >= answered + count)


def good_record(event):
    """What a decision was made from, complete enough to make it again."""
    r = event["decision"]
    equal(len(r["beta"]), len(r["problem"]["units"]))
    equal(r["decided"]["cause"], event["cause"])
    check(event["detail"], event)
    if os.path.exists(PIPESIM):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump([event], f)
            f.flush()
            got = subprocess.run([PIPESIM, "replay", f.name], capture_output=True, text=True, check=False)
            equal(got.returncode, 0, got.stdout + got.stderr)


def governor():
    with Machine() as m:
        m.watched()
        before = m.last_id()
        m.tree.policy(1, "scaling_governor", "powersave")
        m.tree.policy(1, "scaling_cur_freq", LOW)
        event = m.decided("governor", before)
        good_record(event)
        check(event["detail"].startswith("b runs at 600 MHz"), event)
        check(event["outcome"] in ("switched", "kept"), event)
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
        m.wait("what was not told", lambda: "more before it" in m.history()[-1]["detail"])
        check(len(m.history()) < changes / 2, m.history())


def kept(m, change=None):
    """The states in the file of what was learned, after change(states) of a daemon that is not there."""
    for name in os.listdir(m.d.state_dir):
        if name.startswith("model-") and name.endswith(".json"):
            path = os.path.join(m.d.state_dir, name)
            with open(path, encoding="utf-8") as f:
                root = json.load(f)
            if change:
                root["states"] = change(root["states"])
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(root, f)
            return root["states"]
    return []


def a_known_state_returns():
    """A plan is kept for each limit and returns with it, also after a restart. No other plan gains enough here, and the two
    that are kept differ in name only: what is seen is that they return."""
    top, low = "0-25@a+b", "0-25@b+a"
    with Machine(adapt={**DEAF, "gain_percent": 1000}) as m:
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
        before = 0
        for khz, plan in ((LOW, low), (TOP, top), (LOW, low)):
            m.tree.policy(1, "scaling_max_freq", khz)
            event = m.decided("frequency", before)
            equal([event[k] for k in ("outcome", "plan_after", "algorithm")], ["switched", plan, "saved"], event["detail"])
            check("the plan kept for this state of the machine returns" in event["detail"], event["detail"])
            before = event["id"]
            m.frames(20)
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
        check(event["algorithm"] == "shisha" or event["outcome"] == "kept", event["algorithm"], event["outcome"])
        equal(event["decision"]["decided"]["cause"], "governor")
        m.frames(20)


SLOW_CORE = os.path.join(BUILD, "tests", "system", "slow_core")


def no_thief():
    """Why no core can be taken here; None: one can."""
    able = os.path.exists(SLOW_CORE) and os.cpu_count() >= 2 and os.geteuid() == 0
    return None if able else "no slow_core, no root or one core"


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


def another_program():
    """Most of a core taken: it is noticed and decided on, and again when it ends. A plan that deals its frames by speed may
    be the best one in both cases, so a change of plan is not asked for."""
    if no_thief():
        return no_thief()
    with Machine(adapt={"cooldown_s": 1, "probe_s": 5}) as m:
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


def begin_with(m, plan):
    """The daemon anew, with a plan that was kept for the state of the machine it finds."""
    m.watched()
    m.wait("a state", lambda: kept(m))
    m.end()
    kept(m, lambda states: [{**s, "plan": plan} for s in states])
    m.begin()
    equal((m.model()["plan"], m.model()["algorithm"]), (plan, "saved"))
    m.watched()


def online(m, cpus):
    """The event of the change to these cores."""
    before = m.last_id()
    m.tree.put("sys/devices/system/cpu/online", cpus)
    return m.event("hotplug", before)


def slowed(event, place):
    """The factor that the decision about other cores found known of a place."""
    check("decision" in event, event["detail"])
    return max(event["decision"]["slow"][place])


def a_core_goes_and_returns_beside_another_program():
    """What is known of the core that another program takes most of is known on each set of cores that it is in, however
    soon they follow each other."""
    if no_thief():
        return no_thief()
    with Machine(adapt={"cooldown_s": 1, "probe_s": 0, "verify_percent": 100, "gain_percent": 15}) as m:
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


def a_core_that_returns_slow_is_left_again():
    """The plan kept for both cores returns with the second one, is measured, and taken back."""
    if no_thief():
        return no_thief()
    with Machine(adapt={**DEAF, "verify_percent": 10, "window_ms": 400, "settle_windows": 4}) as m:
        begin_with(m, "0-12@a|13-25@b")
        online(m, "0")
        m.watched()
        with Thief(1, 3500):
            event = online(m, "0-1")
            check("the plan kept for these cores returns" in event["detail"], event["detail"])
            taken = m.wait("the way back", lambda: next((e for e in m.history() if e["id"] == event["id"] and
                                                         e["outcome"] == "rolled back"), None))
            equal((taken["plan_before"], taken["plan_after"], m.model()["plan"]), ("0-25@a", "0-25@a", "0-25@a"))
            equal(taken["lost"], 0)
            m.frames(20)
    return None


def the_plan_of_before_a_quota_returns():
    """The quota is one of files, and a program does what it would do. As above the plans differ in name only."""
    if no_thief():
        return no_thief()
    free, limited = "0-25@a+b", "0-25@b+a"
    with Machine(adapt={"cooldown_s": 0, "probe_s": 0, "verify_percent": 100, "gain_percent": 1000}) as m:
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
        with Thief(1, 3300):
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


if __name__ == "__main__":
    main([governor, frequency, heat, a_core_goes_and_returns, the_cpuset_shrinks, a_plan_of_the_user_stays,
          a_change_before_anything_is_watched, noise_does_not_fill_the_history, a_known_state_returns, a_quota_is_part_of_a_state,
          keys_hold_after_a_reload, nothing_happens, every_sensor_vanishes, switched_off, a_search_where_one_is_wanted,
          another_program, a_core_goes_and_returns_beside_another_program, a_core_that_returns_slow_is_left_again,
          the_plan_of_before_a_quota_returns])
