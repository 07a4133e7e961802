# SPDX-License-Identifier: Apache-2.0
"""Clients of a frames socket, and what they expect of its answers: that of one real daemon, or of piped-link.

PIPED_FRONT names tests/boards/front_node, if it is piped-link's. Cases for both sockets use stream(), content() and same().
A case in beside_neighbour() runs while another client streams: that one's frames must all be answered, right, in
order, before and after.
"""
import functools
import os
import random
import struct
import sys
import threading

import pyclient as pc
from daemon import DIGITS, Daemon, check, equal, main

FRONT = os.environ.get("PIPED_FRONT")
if FRONT:
    sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "boards"))
    import front_program

DAEMON = None
PATH = PID = None  # of the socket; of the server's process
SIDE = 16  # pixels of the network's own size: nothing is resized
# a thread that computes gives way at once to the one that has just got its answer, instead of after 5 ms each time
sys.setswitchinterval(1e-4)


def connect(**options):
    return pc.Connection(PATH, **options)


@functools.lru_cache(None)
def picture(seed):
    return bytes(random.Random(seed).randrange(256) for _ in range(SIDE * SIDE))


def gray(c, **options):
    return pc.Stream(c, pixfmt=pc.GRAY8, image=(SIDE, SIDE), **options)


def stream(c, **options):
    return pc.Stream(c, model="small", **options) if FRONT else gray(c, **options)


def content(seed):
    """The input of a frame of stream()."""
    return front_program.frame(seed) if FRONT else picture(seed)


def same(a, b):
    """Two outputs of one input are the same. What is between tensors does not count."""
    return a[:60] + a[64:] == b[:60] + b[64:] if FRONT else close_enough(a, b)


class Neighbour(threading.Thread):
    """A client that streams all the time and checks every answer; leaving the block demands that it went well."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.progress = threading.Condition()
        self.answered = 0
        self.failure = None

    def run(self):
        try:
            with connect() as c:
                s = stream(c, credits=4)
                wanted = {seed: s.infer(content(seed)).output for seed in range(3)}
                sent = []
                while not self.stop.is_set():
                    while len(sent) < s.credits:
                        seed = (s.frame + 1) % 3
                        sent.append((s.submit(content(seed), time_ns=seed), seed))
                    number, seed = sent.pop(0)
                    r = s.result()
                    equal((r.frame, r.status, r.time_ns), (number, "ok", seed), "the neighbour's answer")
                    check(same(r.output, wanted[seed]), "the neighbour's answer is wrong")
                    with self.progress:
                        self.answered += 1
                        self.progress.notify_all()
        except BaseException as e:  # reported by __exit__
            with self.progress:
                self.failure = e
                self.progress.notify_all()

    def wait_more(self, count=5):
        with self.progress:
            goal = self.answered + count
            done = self.progress.wait_for(lambda: self.failure or self.answered >= goal, 60)
            check(done and not self.failure, "the neighbour was held up:", self.failure)

    def __enter__(self):
        self.start()
        self.wait_more()
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.wait_more()
        self.stop.set()
        self.join(60)
        if kind is None:
            check(not self.failure, "the neighbour failed:", self.failure)


def close_enough(a, b):
    """Within 1e-5 of the largest value: a plan may sum in another order."""
    x, y = (struct.unpack("<%df" % (len(v) // 4), v) for v in (a, b))
    return len(x) == len(y) and max(abs(p - q) for p, q in zip(x, y)) <= 1e-5 * max(abs(q) for q in y)


def beside_neighbour(case):
    def run():
        with Neighbour():
            case()
    run.__name__ = case.__name__
    return run


def refused(make, status, *words):
    """make() must raise Refused with that status and those words."""
    try:
        make()
    except pc.Refused as e:
        equal(e.status, status, e.text)
        for word in words:
            check(word in e.text, repr(word), "is not in", repr(e.text))
        return
    check(False, "not refused with", status)


def answered(r, status, *words):
    equal(r.status, status, r.text)
    for word in words:
        check(word in r.text, repr(word), "is not in", repr(r.text))


def ends_with(c, status, *words):
    """The server says ERROR and closes."""
    e = c.closed()
    equal(e.status, status, e.text)
    for word in words:
        check(word in e.text, repr(word), "is not in", repr(e.text))


def run_in(cases):
    try:
        main(cases)
    except SystemExit as e:
        return e.code
    return 0


def run_all(cases):
    """Runs these functions against one server; if it is a daemon, DAEMON is that meanwhile. Return: exit code."""
    global DAEMON, PATH, PID
    if FRONT:
        with front_program.front() as f:
            PATH, PID = f.path, f.pid
            return run_in(cases)
    if not os.path.exists(DIGITS):
        print("skipped: no", DIGITS)
        return 77
    with Daemon(models={"digits": DIGITS}) as DAEMON:
        PATH, PID = DAEMON.frames_path, DAEMON.process.pid
        return run_in(cases)
