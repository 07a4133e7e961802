#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every failure in piped-link, in turn, while frames of the daemon beside it go to another board and back.

usage: test_link_faults.py SOURCE_ROOT LINK PIPECTL [--all] [--seed N] [--only SCENARIO] [--kind KIND]

The daemon answers every frame, right and in order, whatever fails in piped-link, and keeps no descriptors. piped-link
may end, by itself and with a reason; the test starts it again, as its service manager would, and the link comes back.
Without --all a seeded sample of n is tried.
"""
import argparse
import os
import random
import re
import sys
import time
from signal import SIGABRT, SIGSEGV

ROOT, LINK, PIPECTL = sys.argv[1:4]
for folder in ("lint", "system", "boards"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import pyclient as pc  # noqa: E402  (the folders are known only now)
from cases import Failure, check  # noqa: E402
from daemon import VarlinkError  # noqa: E402
from hop_boards import LIMIT_S, Boards  # noqa: E402
from faults import (ARMED, ARMED_FROM_MAIN, COUNT, FREED_IS_SEEN, FROM, LASTING, LIBRARY, NOT_ARMED, ONCE,  # noqa: E402
                    ONE_SHOT, Faults, fds_of, name_of)
from tally import Tally  # noqa: E402
from wait import until  # noqa: E402

SAMPLE_S = 7.0  # of the quick run
ROUTES = ("0-5@here|6-11@b2", "0-2@here|3-11@b2")
HEAD, OTHER = "head", "b2"
FRAMES = 4
LOSSES = 8  # in a row, in the long run; a route that is tried again ever later would not come back within LIMIT_S
# Who asserts where memory or descriptors lack: docs/reliability.md.
ASSERTS = ("libzmq.so", "libpgm", "libstdc++.so", "libsodium.so")
LIBZMQ_SAYS = re.compile(r"\(\S*src/\w+\.[ch]pp:\d+\)$")  # zmq_assert() and its kind; nothing of ours is C++


class Linked(Boards):
    """Two boards. The head's daemon sends its model's frames to both; each link has the faults library."""

    def __init__(self):
        super().__init__(PIPECTL, LINK, OTHER, boards=ROUTES[0], link_args=("--unused-s", "0"))
        self.planned = ROUTES[0]
        self.faults = {n: Faults(self.path(n)) for n in self.names}
        self.link_env = {n: dict(os.environ, LD_PRELOAD=LIBRARY, PIPED_FAULTS=f.path, **FREED_IS_SEEN)
                         for n, f in self.faults.items()}

    def open(self):
        """Serves; notes the right answers, and what everybody has open."""
        self.head = self.daemons[HEAD]
        self.stream = pc.Stream(pc.Connection(self.head.frames_path, timeout=LIMIT_S), model="digits", credits=FRAMES)
        draw = random.Random(7)
        self.inputs = [pc.struct.pack("<%df" % (self.stream.in_size // 4), *(draw.random() for _ in range(
            self.stream.in_size // 4))) for _ in range(FRAMES)]
        self.wanted = [self.stream.infer(i).output for i in self.inputs]
        self.serve_again()
        for scenario in SCENARIOS:  # all has been used once
            scenario(self, HEAD)
        self.serve_again()
        self.settled = {n: fds_of(d.process.pid) for n, d in self.daemons.items()}

    def send(self):
        """Frames of the daemon: each has its answer, whoever computes it."""
        numbers = [self.stream.submit(i) for i in self.inputs]
        for number, wanted in zip(numbers, self.wanted):
            r = self.stream.result()
            check(r.frame == number, "answer", r.frame, "came, not", number)
            check(r.status == "ok" and r.output == wanted, "frame", number, r.status, r.text or "wrong")

    def route(self):
        return next(m for m in self.head.status()["models"] if m["name"] == "digits")["route"]

    def until(self, good, unless=lambda: False):
        """Until the route is good(), or unless()."""
        until(lambda: unless() or good(self.route()), "the route as it should be:", self.route, limit_s=LIMIT_S,
              pause=lambda left_s: self.send())

    def plan(self, text, unless):
        """Sets a route, which is refused as long as a board is away. Return: its number; None: unless()."""
        number, refused = None, None

        def done():
            nonlocal number, refused
            if unless():
                return True
            try:
                number = self.head.call("SetPlan", {"plan": text})["epoch"]
                self.planned = text
            except VarlinkError as e:
                refused = e
            return number
        until(done, "a route:", lambda: refused, limit_s=LIMIT_S, pause=lambda left_s: self.send())
        return number

    def kill_link(self, name):
        """Until the head's daemon knows."""
        self.links[name].kill()
        self.until(lambda r: not serves(r))

    def ended(self, name):
        return self.links[name].process.poll() is not None

    def over(self, name):
        """A call has failed, or there is nobody whose calls could fail."""
        return self.faults[name].control.failed > 0 or self.ended(name)

    def serve_again(self, unless=lambda: False):
        """Frames go over both boards, or unless()."""
        if self.planned != ROUTES[0]:
            self.plan(ROUTES[0], unless)
        before = self.route()
        self.until(lambda r: serves(r) and r["route"] == ROUTES[0] and (
            r["number"] != before["number"] or r["sent"] > before["sent"] + FRAMES), unless)

    def verify(self):
        """After serve_again(): nothing is left open in the daemons."""
        left = {}
        for _ in range(200):
            left = {n: fds_of(d.process.pid) - self.settled[n] for n, d in self.daemons.items()}
            if not any(left.values()):
                return
            for d in self.daemons.values():
                d.call("Status")
        raise Failure("the daemons keep descriptors: %s" % left)


def serves(r):
    return r["serving"] and r["phase"] == "ready"


def frames(b, _):
    b.send()


def route(b, name):
    """Another route, and the first one again: segments are loaded, opened, closed and unloaded on both boards."""
    for text in (ROUTES[1], ROUTES[0]):
        number = b.plan(text, lambda: b.over(name))
        b.until(lambda r, n=number: serves(r) and r["number"] == n, lambda: b.over(name))
        b.send()


def join(b, name):
    """The other link is killed and comes back."""
    other = OTHER if name == HEAD else HEAD
    b.kill_link(other)
    b.start_link(other)
    b.until(serves, lambda: b.over(name))


def start(b, name):
    """The link itself starts."""
    armed = b.faults[name].control.armed != NOT_ARMED
    b.faults[name].control.armed = NOT_ARMED
    b.kill_link(name)
    b.faults[name].control.armed = ARMED_FROM_MAIN if armed else NOT_ARMED
    b.start_link(name, wait=False)
    b.until(serves, lambda: b.over(name))


SCENARIOS = (frames, route, join, start)


def excused(b, name, code):
    """Return: why this end of a link is wrong; None: docs/reliability.md has it."""
    where, said = b.faults[name].where(), b.links[name].lines
    if code in (-SIGABRT, -SIGSEGV) and all(w.startswith("libc.so") for w in where[:4]):
        return None  # the user database
    if code == -SIGABRT:  # the call that ended it may be a later one than the first, which is in where
        libzmq = said and LIBZMQ_SAYS.search(said[-1])
        return None if libzmq or any(w.startswith(ASSERTS) for w in where[:3]) else "it aborted"
    if code != 1:
        return "exit code %d" % code
    return None if any(line.startswith("piped-link: ") for line in b.links[name].lines) else "it ended without a word"


def attempt(b, scenario, name, fault, nth, mode):
    """Return: whether a call failed."""
    faults = b.faults[name]
    faults.arm(fault, nth, mode, ARMED)
    scenario(b, name)
    b.send()
    failed = faults.disarm()[1]
    if failed:
        b.serve_again(lambda: b.ended(name))
    if b.ended(name):
        code = b.links[name].process.wait()
        check(failed, "piped-link ended with", code, "and nothing failed")
        why = excused(b, name, code)
        check(not why, why)
        b.links[name].kill()
        b.start_link(name)
        b.serve_again()
    if failed:
        b.verify()
    return failed > 0


class Run:
    """The boards that are there now, and what became of the attempts."""

    def __init__(self):
        self.b, self.tally = None, Tally()

    def boards(self):
        if not self.b:
            b = Linked()
            b.__enter__()
            self.b = b
            b.open()
        return self.b

    def end(self, failed=False):
        b, self.b = self.b, None
        if b:
            b.__exit__(Failure if failed else None, None, None)

    def count(self, scenario, name, fault):
        b = self.boards()
        attempt(b, scenario, name, fault, 1, COUNT)
        return b.faults[name].control.calls

    def attempt(self, scenario, name, fault, nth, mode):
        """Return: whether a call failed."""
        title = "%s of %s" % (scenario.__name__, name)
        b = self.boards()
        try:
            failed = attempt(b, scenario, name, fault, nth, mode)
        except Exception as e:
            faults = b.faults[name]
            faults.disarm()
            what = "%s: %s%s n=%d" % (title, name_of(fault), " and all later" if mode == FROM else "", nth)
            said = "\n".join(b.links[name].lines[-8:])
            self.tally.note(title, fault)
            self.tally.fail(what, faults.where(), "%s %s\n%s" % (type(e).__name__, e, said))
            self.end(failed=True)
            return True
        if failed:
            self.tally.note(title, fault)
        return failed


def modes():
    return [(f, ONCE) for f in ONE_SHOT] + [(f, FROM) for f in LASTING]


def combinations(args):
    return [(s, n, f, m) for s in SCENARIOS for n in (HEAD, OTHER) for f, m in modes()
            if args.only in (None, s.__name__) and args.kind in (None, f.kind)]


def lose_in_a_row(run):
    """However often a board is lost, its route comes back."""
    b = run.boards()
    for _ in range(LOSSES):
        join(b, HEAD)
    b.serve_again()
    run.tally.note("%d losses in a row" % LOSSES, ONE_SHOT[0])


def run_all(args, run):
    if not args.kind and args.only in (None, "join"):
        lose_in_a_row(run)
    for scenario, name, fault, mode in combinations(args):
        nth = 1
        while run.attempt(scenario, name, fault, nth, mode):
            nth += 1
        print("%s of %s: %s%s: every n up to %d" % (scenario.__name__, name, name_of(fault), " lasting" if mode else "",
                                                    nth - 1), flush=True)


def run_sample(args, run):
    rng = random.Random(args.seed)
    todo, counts = combinations(args), {}
    rng.shuffle(todo)
    end = time.monotonic() + SAMPLE_S
    for scenario, name, fault, mode in todo:
        if time.monotonic() > end:
            break
        key = (scenario, name, fault.kind)
        if key not in counts:
            counts[key] = run.count(scenario, name, fault)
        if counts[key]:
            run.attempt(scenario, name, fault, rng.randint(1, counts[key]), mode)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--all", action="store_true")
    p.add_argument("--seed", type=int, default=int(os.environ.get("PIPED_TEST_SEED", random.randrange(1 << 30))))
    p.add_argument("--only")
    p.add_argument("--kind")
    args = p.parse_args(sys.argv[4:])
    if os.environ.get("PIPED_TEST_SANITIZER"):
        print("skipped: the allocator of a sanitizer cannot be replaced")
        sys.exit(77)
    check(os.path.exists(LIBRARY), "not built:", LIBRARY)
    print("seed %d" % args.seed, flush=True)
    run = Run()
    try:
        (run_all if args.all else run_sample)(args, run)
    finally:
        run.end()
    sys.exit(run.tally.report())


if __name__ == "__main__":
    main()
