#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every failure, in turn: call number n of a kind fails in the daemon, for each n that a scenario reaches.

usage: test_faults.py [--all] [--seed N] [--only SCENARIO] [--kind KIND]

As SQLite tests it: one call fails, or it and all later ones; n grows until the scenario ends with no call failed. The
daemon may refuse what the failure hits, by an error that says so. It does not end, hang, keep descriptors, or give a
wrong answer, and of one failed call one client notices at most. Without --all a seeded sample of n is tried.
"""
import argparse
import os
import random
import re
import select
import subprocess
import sys
import tempfile
import time
from signal import SIGABRT, SIGSEGV

from faults import (ARMED_FROM_MAIN, COUNT, FROM, LASTING, LIBRARY, ONCE, ONE_SHOT, FaultyDaemon, name_of)
import scenarios
from daemon import DIGITS, SANITIZER_WORDS, Failure, check, equal, until
from scenarios import TOLD
from tally import Tally

QUICK = {"frames": 3, "measure_ms": 5}  # of a search
SAMPLE_S = 30.0  # of the quick run
ENDING_S = 1.0   # how long a crashed daemon may take to end
SAMPLES = 3      # of n for each scenario, fault and mode of it
FOLDER = tempfile.TemporaryDirectory(prefix="piped-faults-")
EXTRA = os.path.join(FOLDER.name, "extra.onnx")


def prepare(d, scenario):
    if hasattr(scenario, "before"):
        scenario.before(d)


class Serving:
    """A daemon that serves, and a client beside whose answers have to stay right."""

    def __init__(self):
        self.d = FaultyDaemon(models={"digits": DIGITS}, config={"planner": QUICK}).start()
        self.d.extra = EXTRA
        self.d.wanted, self.d.replies = {}, {}
        self.open_neighbour()
        for seed in range(3):
            self.d.wanted[seed] = self.neighbour.infer(scenarios.picture(seed)).output
        status = self.d.status()
        ep = status["eps"][0]["name"]
        last = status["models"][0]["units"] - 1
        self.d.plans = ["0-%d@%sx1" % (last, ep), "0-0@%sx1|1-%d@%sx1" % (ep, last, ep)]
        scenarios.tidy(self.d)
        for scenario in scenarios.SERVING:
            prepare(self.d, scenario)
            scenario(self.d)
        scenarios.tidy(self.d)
        self.settled = self.d.fds()

    def open_neighbour(self):
        self.neighbour = scenarios.stream(self.d)

    def attempt(self, scenario, fault, nth, mode):
        """Runs the scenario once. Return: whether a call failed."""
        prepare(self.d, scenario)
        self.d.faults.arm(fault, nth, mode)
        hurt, why = 0, []
        try:
            number = self.neighbour.submit(scenarios.picture(2))
        except TOLD:
            number = None
        try:
            scenario(self.d)
        except TOLD as e:
            hurt += 1
            why.append(repr(e))
        try:
            check(number is not None, "the neighbour cannot send")
            r = self.neighbour.result()
            equal(r.frame, number)
            scenarios.right(self.d, r, 2)
            self.neighbour.c.ping()
        except TOLD as e:
            hurt += 1
            why.append(repr(e))
            scenarios.end(self.neighbour)
            self.neighbour = None
        _, failed = self.d.faults.disarm()
        check(failed or not hurt, "a client was hurt, and nothing failed:", why)
        check(mode == FROM or hurt < 2, "one failure hurt two clients")
        if not self.neighbour:
            self.open_neighbour()
        return failed > 0

    def verify(self):
        scenarios.tidy(self.d)
        def left():
            return self.d.fds() - self.settled
        until(lambda: not left(), "an end of descriptors that were left open:", left,
              pause=lambda left_s: self.d.call("Status"))  # a round of its loop, in which it closes what clients left

    def end(self):
        scenarios.end(self.neighbour)
        self.d.stop()
        self.d.cleanup()

    def exit_code(self):
        """Return: None: it goes on. A daemon that crashes refuses clients a little before it has ended."""
        try:
            return self.d.process and self.d.process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        code = self.exit_code()
        log = self.d.log()
        self.d.kill()
        self.d.cleanup()
        return code, log


def try_serving(state, tally, scenario, fault, nth, mode):
    """Return: the daemon to go on with, and whether a call failed."""
    what = "%s: %s%s n=%d" % (scenario.__name__, name_of(fault), " and all later" if mode == FROM else "", nth)
    state = state or Serving()
    try:
        failed = state.attempt(scenario, fault, nth, mode)
        if failed:
            tally.note(scenario.__name__, fault)
            state.verify()
        return state, failed
    except Exception as e:
        state.d.faults.disarm()
        where = state.d.faults.where()
        code, log = state.kill()
        tally.note(scenario.__name__, fault)
        tally.fail(what, where, "%s %s exit %s\n%s" % (type(e).__name__, e, code, log[-600:]))
        return None, True


def is_ready(d):
    return any(m.get("READY") == "1" for m in d.messages)


def serving_or_ended(d):
    """Waits until it says that it serves. The service manager is told as soon as there is a descriptor for that."""
    def news(left_s):
        check(d.process.poll() is None, "it ended")
        if select.select([d.notify], [], [], 0.02)[0]:
            d.read_notify()
    until(lambda: is_ready(d) or re.search("serves [0-9]+ model", d.log()), "that it serves or ends", pause=news)


def try_start(tally, fault, nth, mode):
    """The daemon starts with a failure: it serves, or ends with a reason. Return: whether a call failed."""
    what = "start: %s%s n=%d" % (name_of(fault), " and all later" if mode == FROM else "", nth)
    d = FaultyDaemon(models={"digits": DIGITS, "extra": EXTRA}, expect_exit=None)
    d.faults.arm(fault, nth, mode, ARMED_FROM_MAIN)
    try:
        d.start(wait=False)
        try:
            serving_or_ended(d)
            failed = d.faults.disarm()[1]
            if not is_ready(d):
                d.wait_notify(lambda m: m.get("READY") == "1", scenarios.LIMIT_S)
            scenarios.ask(d, ("Status", {}))
            d.stop()
        except Failure:
            check(d.process and d.process.poll() is not None, "it neither serves nor ends")
            failed = d.faults.disarm()[1]
            code = d.process.returncode
            crashed = crashes_at_start(code, d.faults.where())
            check(code in (1, 78) or crashed, "exit code", code)
            check(failed, "it ended, and nothing failed")
            check(d.log().strip() or crashed, "it ended without a word")
        for word in SANITIZER_WORDS:
            check(word not in d.log(), "a sanitizer spoke")
        tally.note("start", fault)
        return failed > 0
    except Exception as e:
        d.faults.disarm()
        tally.note("start", fault)
        tally.fail(what, d.faults.where(), "%s %s\n%s" % (type(e).__name__, e, d.log()[-600:]))
        return True
    finally:
        d.cleanup()


def crashes_at_start(code, where):
    """Libraries that end the process where they cannot make what they begin with: docs/reliability.md."""
    in_libc = all(frame.startswith("libc.so") for frame in where[:4])  # the user database, getpwnam()
    return (code == -SIGABRT and (where[0].startswith("libuv") or in_libc)) or (code == -SIGSEGV and in_libc)


def count_start(fault):
    d = FaultyDaemon(models={"digits": DIGITS, "extra": EXTRA})
    d.faults.arm(fault, 1, COUNT, ARMED_FROM_MAIN)
    with d:
        return d.faults.disarm()[0]


def modes():
    return [(f, ONCE) for f in ONE_SHOT] + [(f, FROM) for f in LASTING]


def say_through(scenario, fault, mode, nth):
    print("%s: %s%s: every n up to %d" % (scenario, name_of(fault), " lasting" if mode else "", nth - 1), flush=True)


def run_all(args, tally):
    state = None
    for scenario in scenarios.SERVING:
        for fault, mode in modes():
            if skipped(args, scenario.__name__, fault):
                continue
            nth, failed = 0, True
            while failed:
                nth += 1
                state, failed = try_serving(state, tally, scenario, fault, nth, mode)
            say_through(scenario.__name__, fault, mode, nth)
    if state:
        state.end()
    for fault, mode in modes():
        if skipped(args, "start", fault):
            continue
        nth, failed = 0, True
        while failed:
            nth += 1
            failed = try_start(tally, fault, nth, mode)
        say_through("start", fault, mode, nth)


def skipped(args, scenario, fault):
    return (args.only and args.only != scenario) or (args.kind and args.kind != fault.kind)


def run_sample(args, tally):
    """A seeded sample, until the time is over; the order is random too, so that every run is another part."""
    rng = random.Random(args.seed)
    end = time.monotonic() + SAMPLE_S
    state, todo, counts = None, [], {}
    for fault, mode in modes():
        todo += [(s, fault, mode) for s in scenarios.SERVING for _ in range(1 if s == scenarios.profile else SAMPLES)]
        todo.append((None, fault, mode))
    rng.shuffle(todo)
    for scenario, fault, mode in todo:
        if time.monotonic() > end:
            break
        if skipped(args, scenario.__name__ if scenario else "start", fault):
            continue
        key = (scenario, fault.kind)
        if scenario:
            state = state or Serving()
            if key not in counts:
                state.attempt(scenario, fault, 1, COUNT)
                counts[key] = state.d.faults.control.calls
            if counts[key]:
                state, _ = try_serving(state, tally, scenario, fault, rng.randint(1, counts[key]), mode)
        else:
            if key not in counts:
                counts[key] = count_start(fault)
            if counts[key]:
                try_start(tally, fault, rng.randint(1, counts[key]), mode)
    if state:
        state.end()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--seed", type=int, default=int(os.environ.get("PIPED_TEST_SEED", random.randrange(1 << 30))))
    p.add_argument("--only")
    p.add_argument("--kind")
    args = p.parse_args()
    if os.environ.get("PIPED_TEST_SANITIZER"):
        print("skipped: the allocator of a sanitizer cannot be replaced")
        sys.exit(77)
    check(os.path.exists(LIBRARY), "not built:", LIBRARY)
    scenarios.write_model(EXTRA)
    print("seed %d" % args.seed, flush=True)
    tally = Tally()
    (run_all if args.all else run_sample)(args, tally)
    sys.exit(tally.report())


if __name__ == "__main__":
    main()
