#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several models of which one has a rate are planned together, again whenever they, their wishes or the machine change.

usage: test_together.py [CASE]...; PIPED_TEST_LONG: also what takes half a minute
"""
import threading

import pyclient
from adapting import DEAF, EPS, NETWORK, TOP, Ahead, Client, Machine, by_measurement
from daemon import DIGITS, HEARTBEAT, Daemon, check, equal, main, only_long
from test_adapt_load import Thief, no_thief
from test_split import BUSY_US, PARTS, WHOLE, places

QUIET = {**DEAF, "cooldown_s": 0}


def models(**wishes):
    """Two models, the first of which has a client."""
    return [{"name": "m", "path": NETWORK, **wishes}, {"name": "other", "path": DIGITS}]


class Several(Machine):
    def __init__(self, adapt=None, eps=True, **wishes):
        super().__init__(adapt=QUIET if adapt is None else adapt, eps=eps, models=models(**wishes))

    def by(self):
        return {m["name"]: m["algorithm"] for m in self.d.status()["models"]}

    def plans(self):
        return {m["name"]: m["plan"] for m in self.d.status()["models"]}

    def all_by(self, algorithm, *names):
        names = names or ("m", "other")
        self.wait(algorithm, lambda: all(self.by().get(n) == algorithm for n in names))

    def told(self, *words):
        """The newest event of cause "models" whose detail has all these words."""
        return self.wait(words, lambda: next((e for e in reversed(self.history()) if e["cause"] == "models" and
                                              all(w in e["detail"] for w in words)), None))

    def mixed(self, wanted):
        """Waits until the plan for all models is as @wanted(its models by name) says."""
        return self.wait("a mix", lambda: (x := self.d.status()["mix"]) and
                         wanted({m["model"]: m for m in x["models"]}) and x)


def a_rate_plans_all_models_together():
    with Several() as m:
        m.watched()
        equal(m.by()["other"], "exact")
        m.d.pipectl("models", "set", "m", "--rate", "20")
        m.all_by("mix")
        event = m.told("models state their rates", "one plan for 2 models", "of what these cores could ever do")
        equal((event["outcome"], event["lost"], event["algorithm"]), ("switched", 0, "mix"))
        equal(m.mixed(lambda x: x["m"]["wished"] == 20)["refused"], None)
        m.frames(30)
        m.watched()
        m.d.pipectl("models", "set", "m", "--rate", "30")
        m.mixed(lambda x: x["m"]["wished"] == 30)
        m.d.pipectl("models", "set", "m", "--rate", "0")
        m.all_by("exact")
        equal(m.d.status()["mix"], None)
        m.frames(10)


def one_model_with_a_deadline():
    """It alone is promised something, too; and beside another as before."""
    with Several(rate=20) as m:
        m.d.pipectl("models", "unload", "other")
        m.all_by("exact", "m")
        before = m.plans()["m"]
        m.d.pipectl("models", "set", "m", "--deadline", "2000")
        m.all_by("mix", "m")
        if m.plans()["m"] != before:  # else nothing changed that history would tell
            m.told("m states its deadline", "one plan for 1 model gives")
        row = m.mixed(lambda x: x["m"]["bound_ms"])["models"][0]
        check(0 < row["bound_ms"] <= 2000, row)
        m.frames(30)
        m.d.pipectl("models", "set", "m", "--deadline", "0")
        m.all_by("exact", "m")
        m.frames(10)


def models_come_and_go():
    """The only other one goes, and one comes again; meanwhile and later no frame is lost."""
    with Several(rate=20) as m:
        m.all_by("mix")
        m.d.pipectl("models", "unload", "other")
        m.all_by("exact", "m")
        for name in ("x", "y", "z"):
            m.d.pipectl("models", "load", name, DIGITS)
        m.mixed(lambda x: set(x) == {"m", "x", "y", "z"})
        for name in ("x", "y", "z"):
            m.d.pipectl("models", "unload", name)
        m.all_by("exact", "m")
        m.frames(10)


def a_user_s_plan_stays():
    with Several(rate=20) as m:
        m.all_by("mix")
        m.d.pipectl("plan", "--model", "other", "set", "0-11@b")
        equal(m.by()["other"], "manual")
        m.mixed(lambda x: x["other"]["plan"] == "0-11@b")
        equal(m.plans()["other"], "0-11@b")
        m.d.pipectl("plan", "--model", "other", "auto")
        m.all_by("mix")
        m.frames(10)


def a_core_goes_and_returns():
    with Several(rate=20) as m:
        m.all_by("mix")
        m.tree.put("sys/devices/system/cpu/online", "0")
        m.event("hotplug")
        m.wait("plans on one core", lambda: all("@b" not in p for p in m.plans().values()))
        m.all_by("mix")
        m.frames(10)
        m.tree.put("sys/devices/system/cpu/online", "0-1")
        m.wait("both cores", lambda: len(m.d.status()["eps"]) == 2)
        m.all_by("mix")
        m.wait("a mix of both", lambda: len((m.d.status()["mix"] or {"cores": []})["cores"]) == 2)
        m.frames(10)


def a_slower_clock_moves_the_work():
    """Core b at a third of its clock: the watch of a model asks, and the plan for all gives it less to do."""
    with Several(adapt={**QUIET, "gain_percent": 0}, rate=10) as m:
        m.all_by("mix")
        m.watched()
        m.tree.policy(1, "scaling_max_freq", TOP // 3)
        m.tree.policy(1, "scaling_cur_freq", TOP // 3)
        m.event("frequency")
        equal(m.wait("a decision", lambda: m.model()["adapt"].get("held")), "together")
        m.all_by("mix")
        m.frames(10)


def restarted_it_plans_anew():
    """What is kept of a model alone is no part of a plan for all."""
    with Several(rate=20) as m:
        m.all_by("mix")
        m.frames(30)
        m.end()
        m.d.write_config({"adapt": {"enabled": False}, "eps": EPS, "models": models()})
        m.begin()
        check("mix" not in m.by().values(), m.by())
        m.frames(5)


def who_sends_too_many_holds_up_nobody():
    """A model with deadlines always has more frames in flight than its rate gives time for; another has its part of the core."""
    config = {"eps": [{"name": "one", "cpus": "0"}], "models": [
        {"name": "many", "path": NETWORK, "plan": "0-25@one", "rate": 100, "deadline_ms": 1000},
        {"name": "few", "path": DIGITS, "plan": "0-11@one"}]}
    with Daemon(config=config, env=HEARTBEAT) as d, pyclient.Connection(d.frames_path) as c:
        many = pyclient.Stream(c, model="many", credits=8)
        stop, answered = threading.Event(), [0]

        def send():
            while not stop.is_set():
                equal(many.result().status, "ok")
                many.submit(bytes(many.input_bytes))
                answered[0] += 1

        for _ in range(many.credits):
            many.submit(bytes(many.input_bytes))
        sender = threading.Thread(target=send)
        sender.start()
        try:
            d.wait_until(lambda: answered[0] >= 200)  # a second's worth and more is given
            with pyclient.Connection(d.frames_path) as e:
                few = pyclient.Stream(e, model="few", inline=True)
                for _ in range(30):
                    equal(few.infer(bytes(few.input_bytes)).status, "ok")
        finally:
            stop.set()
            sender.join()
        for _ in range(many.credits):
            equal(many.result().status, "ok")


@by_measurement
def a_slowed_core_is_split_off():
    """Two models, both with frames: the slowed core becomes a place of its own, and joins again."""
    if no_thief():
        return no_thief()
    with Ahead(), Several(adapt={"cooldown_s": 1, "probe_s": 5}, eps=False, rate=30, deadline_ms=150) as m:
        other = Client(m.d, model="other")
        try:
            m.all_by("mix")
            m.watched()
            with Thief(1, BUSY_US):
                m.wait("parts", lambda: places(m) == PARTS)
                m.frames(20)
            m.wait("one place", lambda: places(m) == WHOLE)
            m.frames(20)
        finally:
            other.end()
    return None


@by_measurement
def frames_do_not_stay_on_a_slowed_core():
    """One model, with a deadline that is two and a half times what a frame takes: on the slowed core it takes more."""
    if no_thief():
        return no_thief()
    with Ahead(), Several(adapt={"cooldown_s": 1, "probe_s": 5}, eps=False, rate=1, deadline_ms=10000) as m:
        m.d.pipectl("models", "unload", "other")
        m.all_by("mix", "m")
        m.watched()
        ms = sum(u["time_ms"] for u in m.d.call("Units", {"model": "m"})["units"])
        m.d.pipectl("models", "set", "m", "--rate", "%g" % (1000 / ms), "--deadline", "%g" % (2.5 * ms))
        with Thief(1, BUSY_US):
            m.wait("stages", lambda: "|" in m.plans()["m"] and places(m) == PARTS)
            m.frames(20)
            m.client.end()
            m.d.pipectl("optimise", "--ms", "50", "m")  # replaces the model: what is known of the core stays
            event = m.told("m came")
            check("|" in event["plan_after"], event)
            m.client = Client(m.d, m.frames_sent)
        m.wait("one place", lambda: places(m) == WHOLE)
        m.frames(20)
    return None


@by_measurement
def what_others_take_is_planned_with():
    """Another program takes half of each core, of which no watch takes notice: that is no cost, but no time for frames
    either. More is wished than any plan gives."""
    if no_thief():
        return no_thief()
    with Several(rate=100000) as m:
        def most():
            return m.d.pipectl("plan", "mix")["bound"]

        m.all_by("mix")
        m.watched()
        m.frames(200)
        before = most()
        with Thief(0, 2000), Thief(1, 2000):
            m.wait("a lower bound", lambda: most() < 0.75 * before)
        m.wait("the bound again", lambda: most() > 0.75 * before)
    return None


def many_loads_beside_frames():
    """Models come and go a hundred times while frames of another stream; each change plans all anew or is overtaken."""
    with Several(rate=20) as m:
        m.all_by("mix")
        for i in range(100):
            m.d.pipectl("models", "load", "n%d" % i, DIGITS, "--rate", "5")
            if i % 3:
                m.d.pipectl("models", "unload", "n%d" % (i - 1), expect=None)
            with pyclient.Connection(m.d.frames_path) as c:
                s = pyclient.Stream(c, model="n%d" % i, inline=True)
                equal(s.infer(bytes(s.input_bytes)).status, "ok")
            m.d.pipectl("models", "unload", "n%d" % i)
        m.frames(10)


if __name__ == "__main__":
    main([a_rate_plans_all_models_together, one_model_with_a_deadline, models_come_and_go, a_user_s_plan_stays,
          a_core_goes_and_returns, a_slower_clock_moves_the_work, restarted_it_plans_anew,
          who_sends_too_many_holds_up_nobody, what_others_take_is_planned_with,
          *only_long(a_slowed_core_is_split_off, frames_do_not_stay_on_a_slowed_core, many_loads_beside_frames)])
