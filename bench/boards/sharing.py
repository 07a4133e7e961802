#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a greedy user costs a polite one, over two boards and by the head alone: median latency in turns, and ratios.

usage: PIPED_BUILD=BUILD sharing.py [--model FILE] [--route ROUTE] [--rounds N] [--frames N]     (root)

The greedy user has 14 connections with as many frames on their way as they get; the polite one sends 10 frames a second.
"""
import argparse
import contextlib
import os
import statistics
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("lint", "system", "boards"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import pyclient as pc  # noqa: E402  (the folders are known only now)
from daemon import DIGITS  # noqa: E402
from spread import MODEL, Spread  # noqa: E402

GREEDY, POLITE, CONNECTIONS, CREDITS, PERIOD_S = 1201, 1202, 14, 64, 0.1


def connect(path, uid):
    os.seteuid(uid)
    try:
        return pc.Connection(path)
    finally:
        os.seteuid(0)


class Greedy:
    """Keeps all its connections full until the block is left."""

    def __init__(self, path):
        self.ended = threading.Event()
        self.connections = [connect(path, GREEDY) for _ in range(CONNECTIONS)]
        self.threads = [threading.Thread(target=self.run, args=(c,), daemon=True) for c in self.connections]

    def run(self, connection):
        with contextlib.suppress(OSError, pc.Closed):
            s = pc.Stream(connection, model=MODEL, inline=True, credits=CREDITS)
            data = bytes(s.in_size)
            for _ in range(s.credits):
                s.submit(data)
            while not self.ended.is_set():
                s.result()
                s.submit(data)

    def __enter__(self):
        for t in self.threads:
            t.start()
        time.sleep(1)  # until its frames fill what they can
        return self

    def __exit__(self, *_):
        self.ended.set()
        for c in self.connections:
            c.close()


def polite_ms(path, frames):
    """Return: the median time from a frame's arrival at the daemon to its answer, by the daemon's clock, in ms."""
    took = []
    with connect(path, POLITE) as c:
        s = pc.Stream(c, model=MODEL, inline=True, credits=1)
        data = bytes(s.in_size)
        for _ in range(frames):
            began = time.monotonic()
            r = s.infer(data)
            took.append((r.queue_ns + r.service_ns) / 1e6)
            time.sleep(max(0, began + PERIOD_S - time.monotonic()))
    return statistics.median(took)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default=DIGITS)
    p.add_argument("--route", help="default: two halves, the first one here")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--frames", type=int, default=40)
    o = p.parse_args()
    rows = {(where, how): [] for where in ("head alone", "two boards") for how in ("alone", "beside a greedy user")}
    with Spread(2, "off", path=o.model) as fleet:
        head = fleet.head
        for at in (fleet.folder, head.folder, head.runtime):
            os.chmod(at, 0o755)
        os.chmod(head.frames_path, 0o666)
        units = head.status()["models"][0]["units"]
        route = o.route or "0-%d@here|%d-%d@b2" % (units // 2 - 1, units // 2, units - 1)
        for _ in range(o.rounds):
            for where in ("head alone", "two boards"):
                if where == "two boards":
                    fleet.set_route(route)
                else:
                    fleet.ask_route("off")
                rows[where, "alone"].append(polite_ms(head.frames_path, o.frames))
                with Greedy(head.frames_path):
                    rows[where, "beside a greedy user"].append(polite_ms(head.frames_path, o.frames))
        window = None
        with contextlib.suppress(KeyError):
            window = fleet.route().get("window")
    print("median of the polite user's p50, ms, over %d rounds (least to most); window %s" % (o.rounds, window))
    for (where, how), ms in rows.items():
        print("%-12s %-22s %8.2f (%.2f to %.2f)" % (where, how, statistics.median(ms), min(ms), max(ms)))
    costs = {w: statistics.median(b / a for a, b in zip(rows[w, "alone"], rows[w, "beside a greedy user"]))
             for w in ("head alone", "two boards")}
    print("a greedy user costs: head alone x %.2f, two boards x %.2f" % (costs["head alone"], costs["two boards"]))


main()
