#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""With another algorithm than exact, every lasting change of the machine runs that search on live frames.

The kinds of change by the searches, each on the frames of a client that checks every answer. No gain is ever enough for exact.

usage: test_adapt_search.py [CASE]...; PIPED_TEST_LONG: each search at the beginning and at the end of a change
"""
import os

import tiny_onnx
from adapting import DEAF, EPS, LOW, TOP, Client, Machine, by_measurement, good_record
from daemon import HEARTBEAT, Daemon, check, ended, equal, main
from searches import SLOWDOWN
from test_adapt_load import Thief, no_thief

ALGORITHMS = ("shisha", "pipe-search", "pipe-it", "annealing")
# every search but exact, and exhaustive and pipe-search-database, which try the same plans as others; Shisha by each heuristic
MATRIX = tuple(("shisha", h) for h in range(1, 7)) + tuple(
    (a, 0) for a in ("pipe-search", "pipe-it", "annealing", "annealing-seeded", "random", "hill-climbing",
                     "hill-climbing-seeded", "nsga2"))
PLANNER = {"frames": 3, "measure_ms": int(30 * SLOWDOWN), "alpha": 2}
QUICK = {"gain_percent": 1000, "cooldown_s": 0, "per_hour": 100000, "window_ms": 50, "settle_windows": 4}
FILES = {**DEAF, **QUICK}  # what is about files does not hear the machine's own noise
CLOCKS = {**QUICK, "probe_s": 1}
FELT = ("contention", "throughput")  # on a busy machine either may be the first to be sure
FELT_FROM = 4  # these kinds of change
QUIET_WINDOWS = 20  # spreads are known from 16 on
SHIFTS_MAX = 6  # until a cause that may be one of two is the one
ENDED = ("switched", "rolled back", "kept", "reverted")


class Searching(Machine):
    """A machine whose changes start searches. Frames of its network take longer if they have many boxes in them."""
    frames_sent = (tiny_onnx.boxes(0), tiny_onnx.boxes(tiny_onnx.BOXES))

    def __init__(self, adapt, eps=True):
        super().__init__(adapt=adapt, eps=eps, planner={**PLANNER, "algorithm": ALGORITHMS[0]}, sensors={"interval_ms": 50})
        self.adapt = adapt
        path = os.path.join(self.d.temp, "boxes.onnx")
        tiny_onnx.write_boxes(path)
        self.d.models = {"m": path}

    def by(self, algorithm, heuristic=0, **adapt):
        """This algorithm from now on, and these keys."""
        self.d.write_config({"eps": EPS, "sensors": {"interval_ms": 50},
                             "planner": {**PLANNER, "algorithm": algorithm, "heuristic": heuristic},
                             "adapt": {"enabled": True, **self.adapt, **adapt}})
        self.d.call("Reload")

    def quiet(self):
        """Waits until the spread of what is measured is known."""
        windows = self.model()["adapt"]["windows"]
        self.wait("windows", lambda: self.model()["adapt"]["windows"] > windows + QUIET_WINDOWS)

    def searched(self, cause, algorithm, after, said=""):
        """The event of the search, once its plan is verified or taken back. @said: in its detail."""
        causes = (cause,) if isinstance(cause, str) else cause
        found = self.wait("%s by %s" % (cause, algorithm), lambda: next(
            (e for e in self.history() if e["id"] > after and e["cause"] in causes and e["algorithm"] == algorithm and
             e["trials"] and said in e["detail"]), None))
        self.watched()
        event = next(e for e in self.history() if e["id"] == found["id"])
        check(event["outcome"] in ENDED, event)
        check(any(t["role"] == "search" for t in event["trials"]), event["trials"])
        equal(event["lost"], 0)
        if event["outcome"] == "switched":
            check(event["fps_after"] > 0 and event["plan_before"] != event["plan_after"], event)
        equal(sum(t["kept"] for t in event["trials"]), 1, event)
        check(event["decision"]["search"], event["decision"])
        good_record(event)
        return event

    def shift(self, cause, algorithm, change, **keys):
        """What a change of the machine leads to."""
        self.by(algorithm, **keys)
        self.watched()
        if cause == FELT:
            self.quiet()
        before = self.last_id()
        change()
        event = self.searched(cause, algorithm, before)
        self.frames(5)
        return event


def searches(kind):
    """For the kind of change of this number: four of the matrix, in turn, and two where the change has to be felt, which
    takes seconds. PIPED_TEST_LONG: all of it, and once more, so that who came at the beginning of a change comes at its end."""
    if os.environ.get("PIPED_TEST_LONG"):
        return MATRIX + MATRIX[1:] + MATRIX[:1]
    return [MATRIX[(4 * kind + i) % len(MATRIX)] for i in range(4 if kind < FELT_FROM else 2)]


def to_and_fro(m, kind, cause, there, back, named=None):
    """There and back by one search and the next, and on until one was for the cause `named`."""
    chosen, seen = searches(kind), set()
    for i in range(max(len(chosen), SHIFTS_MAX)):
        if i >= len(chosen) and (not named or named in seen):
            return
        algorithm, heuristic = chosen[i % len(chosen)]
        seen.add(m.shift(cause, algorithm, back if i % 2 else there, heuristic=heuristic)["cause"])
    check(not named or named in seen, seen)


def governors_limits_and_heat():
    """A limit on another core than the governor, whose change of late would explain it."""
    with Searching(FILES) as m:
        def governor(name, khz):
            m.tree.policy(1, "scaling_governor", name)
            m.tree.policy(1, "scaling_cur_freq", khz)

        def limit(core, khz):
            m.tree.policy(core, "scaling_max_freq", khz)
            m.tree.policy(core, "scaling_cur_freq", khz)

        def heat(mdegc, state, khz):
            m.tree.put("sys/class/thermal/thermal_zone0/temp", mdegc)
            m.tree.put("sys/class/thermal/cooling_device0/cur_state", state)
            limit(1, khz)

        to_and_fro(m, 0, "governor", lambda: governor("powersave", LOW), lambda: governor("performance", TOP))
        to_and_fro(m, 1, "frequency", lambda: limit(0, LOW), lambda: limit(0, TOP))
        to_and_fro(m, 2, "thermal", lambda: heat(86000, 2, LOW), lambda: heat(60000, 0, TOP))


def cores_go_and_come():
    """The plan moves at once; the search begins from there."""
    with Searching(FILES) as m:
        def online(cpus):
            m.tree.put("sys/devices/system/cpu/online", cpus)

        for i, (algorithm, heuristic) in enumerate(searches(3)):
            event = m.shift("hotplug", algorithm, lambda i=i: online("0-1" if i % 2 else "0"), heuristic=heuristic)
            check("other cores" in event["detail"], event["detail"])


@by_measurement
def another_program():
    if no_thief():
        return no_thief()
    with Searching(CLOCKS) as m:
        thieves = []

        def come():
            thieves.append(Thief(1, 3400).__enter__())

        def go():
            thieves.pop().__exit__(None, None, None)

        try:
            to_and_fro(m, 4, FELT, come, go, "contention")
        finally:
            while thieves:
                go()
    return None


@by_measurement
def another_program_on_one_of_equal_cores():
    """Their EP is split, whatever exact says, and joined again; the search runs on the parts."""
    if no_thief():
        return no_thief()
    with Searching(CLOCKS, eps=False) as m:
        m.watched()
        m.quiet()
        before = m.last_id()
        with Thief(1, 2400):
            m.searched(FELT, "shisha", before, "an EP is split")
    return None


@by_measurement
def heavier_frames():
    """What a unit takes depends on what is in the frame; no program and no clock is the reason. On a busy machine a team
    may wait as well meanwhile."""
    with Searching(CLOCKS) as m:
        to_and_fro(m, 5, FELT, lambda: m.client.send(1), lambda: m.client.send(0))


def what_the_ration_holds_back_is_run_later():
    with Searching({**FILES, "per_hour": 1}) as m:
        m.shift("frequency", "shisha", lambda: m.tree.policy(1, "scaling_max_freq", LOW))
        before = m.last_id()
        m.tree.policy(1, "scaling_governor", "powersave")
        m.tree.policy(1, "scaling_cur_freq", LOW // 2)
        m.wait("a decision that waits", lambda: m.model()["adapt"]["held"] == "budget")
        m.frames(20)
        check(not [e for e in m.history() if e["id"] > before and e["trials"]], m.history())
        m.by("pipe-search", per_hour=100000)
        m.searched("governor", "pipe-search", before)


def a_change_that_nothing_watched():
    """It came before the first frames: the search runs on them. One that went again is no reason for one."""
    m = Searching(FILES)
    m.d.start()
    try:
        m.tree.policy(1, "scaling_governor", "powersave")
        event = m.d.wait_until(lambda: next((e for e in m.history() if e["cause"] == "governor"), None))
        equal(event["outcome"], "kept")
        m.client = Client(m.d, m.frames_sent)
        event = m.searched("governor", "shisha", event["id"])
        check("since the last search" in event["detail"], event["detail"])
        before = m.last_id()
        m.tree.policy(1, "scaling_governor", "performance")
        m.wait("a sample", lambda: m.d.status()["sensors"]["policies"][1]["governor"] == "performance")
        m.tree.policy(1, "scaling_governor", "powersave")
        m.event("governor", before)
        m.frames(100)
        check(not [e for e in m.history() if e["id"] > before and e["trials"]], m.history())
        m.end()
    finally:
        m.d.__exit__(None, None, None)


def a_plan_of_the_user_stays():
    with Searching(FILES) as m:
        m.d.call("SetPlan", {"plan": "0-%d@b" % (m.model()["units"] - 1)})
        m.frames(30)
        m.tree.policy(1, "scaling_max_freq", LOW)
        m.event("frequency")
        m.frames(60)
        equal([(e["cause"], e["outcome"]) for e in m.history()],
              [("start", "serving"), ("request", "switched"), ("frequency", "kept")])


def at_the_start():
    """The seed of the search serves; the search runs on the first frames. A saved plan needs none."""
    for algorithm in ALGORITHMS:
        d = Daemon(config={"eps": EPS, "planner": {**PLANNER, "algorithm": algorithm, "start": "algorithm"}}, env=HEARTBEAT)
        with d:
            first = d.call("History")["events"]
            equal([(e["cause"], e["outcome"], e["algorithm"]) for e in first], [("start", "serving", algorithm)])
            client = Client(d)
            event = d.wait_until(lambda: next((e for e in d.call("History")["events"] if e["trials"]), None))
            client.end()
            equal((event["cause"], event["algorithm"], event["lost"]), ("start", algorithm, 0))
            equal(event["plan_before"], first[0]["plan_after"])
            ended(event)
            plan = d.call("GetPlan")["plan"]
            equal(event["plan_after"], plan)
            if algorithm == ALGORITHMS[0]:
                d.stop()
                d.start()
                equal([(e["algorithm"], e["plan_after"]) for e in d.call("History")["events"]], [("saved", plan)])
    with Daemon(config={"eps": EPS, "planner": {**PLANNER, "algorithm": "shisha"}}) as d:
        equal(d.call("History")["events"][0]["algorithm"], "exact")


if __name__ == "__main__":
    main([governors_limits_and_heat, cores_go_and_come, another_program,
          another_program_on_one_of_equal_cores, heavier_frames,
          what_the_ration_holds_back_is_run_later, a_change_that_nothing_watched, a_plan_of_the_user_stays, at_the_start])
