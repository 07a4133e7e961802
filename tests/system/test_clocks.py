#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump, and a process or a machine that stands still: no frame is dropped or late for it, no connection
closed, no stage stalled, no plan changed, and the history stays in order.

tests/system/shifted_clocks.c moves the daemon's clocks. A machine that sleeps is a jump of CLOCK_BOOTTIME; a process
that is stopped for hours is SIGSTOP, a jump of CLOCK_MONOTONIC, and SIGCONT.
"""
import datetime
import json
import os
import select
import signal
import socket
import struct
import sys
import threading

import pyclient
from adapting import DEAF
from daemon import BUILD, DIGITS, HEARTBEAT, LIMIT_S, Daemon, Varlink, check, equal, main

HOUR_S = 3600
FRAMES = 30  # that each client gets before and after each jump
DEADLINE_NS = int(LIMIT_S * 1e9)
CONFIG = {"adapt": dict(DEAF, enabled=True)}
# Berlin sets its clocks back at this moment, and forward at the other one.
AUTUMN = datetime.datetime(2027, 10, 31, 0, 59, 59, tzinfo=datetime.timezone.utc)
SPRING = datetime.datetime(2027, 3, 28, 0, 59, 59, tzinfo=datetime.timezone.utc)


class Clocks:
    """The file that moves a daemon's clocks."""

    def __init__(self, path):
        self.path = path
        self.shift_s = {"realtime": 0, "monotonic": 0, "boottime": 0}
        self.write()

    def write(self):
        data = struct.pack("=3q", *(int(s * 1e9) for s in self.shift_s.values()))
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:  # it is mapped
            f.write(data)

    def move(self, **shift_s):
        self.shift_s.update(shift_s)
        self.write()

    def env(self):
        return {"LD_PRELOAD": os.path.join(BUILD, "tests", "system", "shifted_clocks.so"), "SHIFTED_CLOCKS": self.path}


def shifted(config=None, models=None):
    """Return: a daemon that is not started, and its clocks."""
    d = Daemon(models=models or {"digits": DIGITS}, config=config or CONFIG, env=dict(HEARTBEAT, TZ="Europe/Berlin"))
    clocks = Clocks(os.path.join(d.temp, "clocks"))
    d.env.update(clocks.env())
    return d, clocks


class Client(threading.Thread):
    """Streams until it is told to end. Every answer has to be right, in order, and not refused."""

    def __init__(self, d, policy, deadline_ns=0, own_deadline=False):
        super().__init__()
        self.path, self.policy, self.deadline_ns, self.own = d.frames_path, policy, deadline_ns, own_deadline
        self.ending, self.answered, self.error = threading.Event(), 0, None
        self.start()

    def stream(self):
        with pyclient.Connection(self.path, timeout=LIMIT_S) as c:
            s = pyclient.Stream(c, 1, "digits", policy=self.policy, deadline_ns=self.deadline_ns)
            frame = struct.pack("<f", 0.25) * (s.input_bytes // 4)
            wanted = s.infer(frame).output
            while not self.ending.is_set():
                # one at a time: then no policy has a reason to drop
                r = s.infer(frame, **({"deadline_ns": pyclient.now_ns() + DEADLINE_NS} if self.own else {}))
                equal(r.status, "ok", r.text)
                check(r.output == wanted, "a wrong answer")
                self.answered += 1
            s.close()

    def run(self):
        try:
            self.stream()
        except Exception as e:  # told by end()
            self.error = e

    def end(self):
        self.ending.set()
        self.join()
        if self.error:
            raise self.error


class Clients:
    """One of each policy, and two with deadlines, those of the stream and of the frame."""

    def __init__(self, d, deadline_ns=DEADLINE_NS, own_deadline=True):
        self.d = d
        self.all = [Client(d, policy) for policy in (pyclient.BLOCK, pyclient.LATEST, pyclient.REJECT)]
        self.all.append(Client(d, pyclient.BLOCK, deadline_ns=deadline_ns))
        if own_deadline:
            self.all.append(Client(d, pyclient.BLOCK, own_deadline=True))

    def wait_answers(self):
        before = [c.answered for c in self.all]

        def got():
            for c in self.all:
                if c.error:
                    raise c.error
            return all(c.answered >= n + FRAMES for c, n in zip(self.all, before))

        check(self.d.wait_until(got), "too few answers", [c.answered for c in self.all], self.d.log())

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for c in self.all:
            c.ending.set()
        for c in self.all:
            c.join()
        if kind is None:
            for c in self.all:
                c.end()


def nothing_happened(d):
    """Return: the history's events."""
    log = d.log()
    for word in ("made no progress", "stopped reading", "no HELLO", "no call within", "damaged", "ignoring"):
        check(word not in log, word, log)
    model = d.status()["models"][0]
    equal((model["frames"]["dropped"], model["frames"]["failed"]), (0, 0))
    events = d.call("History")["events"]
    check(not [e for e in events if "decision" in e or e["cause"] not in ("start", "request")], json.dumps(events))
    ids = [e["id"] for e in events]
    equal(ids, sorted(set(ids)), "the history is out of order")
    return events


def ticks(d, count=2):
    """Waits until the loop has looked at everything once more."""
    seen = []
    check(d.wait_until(lambda: seen.append(1) or len(seen) > 2 * count), d.log())


def the_time_of_day_may_jump():
    d, clocks = shifted()
    with d, Clients(d) as clients:
        now = datetime.datetime.now(datetime.timezone.utc)
        for to in (now + datetime.timedelta(hours=10), now - datetime.timedelta(hours=30), AUTUMN, SPRING,
                   datetime.datetime(1970, 1, 1, 0, 1, tzinfo=datetime.timezone.utc)):
            clients.wait_answers()
            clocks.move(realtime=(to - now).total_seconds())
            d.call("Load", {"name": "more", "path": DIGITS, "save": True})
            clients.wait_answers()
            event = nothing_happened(d)[-1]
            equal(event["model"], "more")
            at = datetime.datetime.fromisoformat(event["at"].replace("Z", "+00:00"))
            check(abs((at - to).total_seconds()) < 2 * LIMIT_S, "not the shifted time", event["at"], to)
            d.call("Unload", {"name": "more", "save": True})
    d, clocks = shifted()
    clocks.move(realtime=-9 * HOUR_S)  # a start before its files were written
    with d:
        with Clients(d) as clients:
            d.call("Load", {"name": "more", "path": DIGITS, "save": True})
            clients.wait_answers()
            nothing_happened(d)
        d.stop()
        clocks.move(realtime=-20 * HOUR_S)
        d.start()
        equal(sorted(m["name"] for m in d.status()["models"]), ["digits", "more"])


def a_machine_may_sleep():
    """CLOCK_BOOTTIME goes on while CLOCK_MONOTONIC stands."""
    d, clocks = shifted()
    with d, Clients(d) as clients:
        for hours in (1, 100):
            clients.wait_answers()
            clocks.move(boottime=hours * HOUR_S, realtime=hours * HOUR_S)
            clients.wait_answers()
        nothing_happened(d)


def stopped_for_an_hour(d, clocks):
    d.signal(signal.SIGSTOP)
    with open("/proc/%d/stat" % d.process.pid, encoding="ascii") as f:
        while f.read().rsplit(") ", 1)[1][0] not in "Tt":
            f.seek(0)
    clocks.move(monotonic=clocks.shift_s["monotonic"] + HOUR_S, boottime=clocks.shift_s["boottime"] + HOUR_S)
    d.signal(signal.SIGCONT)


def a_process_may_be_stopped():
    d, clocks = shifted()
    # the deadline of a frame that was under way does pass if it is nearer
    with d, Clients(d, deadline_ns=100 * HOUR_S * 10**9, own_deadline=False) as clients:
        for _ in range(3):
            clients.wait_answers()
            stopped_for_an_hour(d, clocks)
            clients.wait_answers()
            ticks(d)
        equal(d.status()["state"], "serving")
        nothing_happened(d)


def clients_keep_their_time():
    """Nobody could speak to a process that was stopped, so nobody was too slow."""
    d, clocks = shifted()
    path = os.path.join(d.temp, "wide.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"input": {"shape": [64, 128, 128]}, "layers": [{"op": "conv", "out": 64, "kernel": 1}]}, f)
    d.models = {"digits": DIGITS, "wide": path}
    with d, pyclient.Connection(d.frames_path, timeout=LIMIT_S) as c, \
            pyclient.Connection(d.frames_path, timeout=LIMIT_S, greet=False) as silent, \
            Varlink(d.control_path) as caller:
        s = pyclient.Stream(c, 1, "wide", inline=True)
        number = s.submit(b"\0" * s.input_bytes)
        select.select([c.sock], [], [], LIMIT_S)  # 4 MiB, of which a socket holds a part, and nobody reads
        stopped_for_an_hour(d, clocks)
        ticks(d, 15)
        silent.greet()
        equal(caller.call("io.piped.Status")["status"]["state"], "serving")
        r = s.result()
        equal((r.frame, r.status), (number, "ok"), r.text)
        nothing_happened(d)


def who_is_slow_is_still_closed():
    """The same without a stop: the limits hold."""
    d, _ = shifted(config=dict(CONFIG, limits={"handshake_s": 1}))
    with d, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.settimeout(LIMIT_S)
        silent.connect(d.frames_path)
        check(b"HELLO" in silent.recv(4096), "not told why")


if __name__ == "__main__":
    if os.environ.get("PIPED_TEST_SANITIZER"):
        print("skip: the clocks cannot be loaded before a sanitizer")
        sys.exit(77)
    main([the_time_of_day_may_jump, a_machine_may_sleep, a_process_may_be_stopped, clients_keep_their_time,
          who_is_slow_is_still_closed])
