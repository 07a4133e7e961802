#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Routes that piped plans itself, with a piped-link of the test that reports boards, links and costs.

usage: test_elsewhere_auto.py [CASE]...
"""
import os

from daemon import DIGITS, Daemon, check, equal, main, until
from fake_link import SELF, FakeLink, board_print

FAST = (100.0, 0.0001)  # a link on which even this small model pays
SLOW = (1e6, 1e7)  # a frame takes ten seconds


class Planned:
    """A daemon that plans, and boards as the test says: {name: up}."""

    def __init__(self, boards=("b2", "b3"), link=FAST, memory=1e9):
        self.d = Daemon()
        self.memory = memory
        models = [{"name": "digits", "path": DIGITS, "boards": "auto"}, {"name": "worker", "path": DIGITS}]
        self.d.write_config({"models": models, "boards": {"frames_socket": os.path.join(self.d.runtime_dir, "link.sock")}})
        self.up = dict.fromkeys(boards, True)
        self.way = dict.fromkeys(boards, link)
        self.costs = {}  # board -> ns of every unit
        self.state = []

    def __enter__(self):
        self.d.__enter__()
        self.link = FakeLink(self.d, "worker").start()
        self.model = next(m for m in self.d.call("Models")["models"] if m["name"] == "digits")
        self.units = next(m for m in self.d.status()["models"] if m["name"] == "digits")["units"]
        return self

    def __exit__(self, *exc):
        if exc[0] is None:
            self.link.die()
        return self.d.__exit__(*exc)

    def board(self, name):
        """What a board tells; None: this one."""
        others = [n for n in self.up if n != name] + ([None] if name else [])
        links = [{"board": board_print(n) if n else SELF, "up": True, "ns": self.way[n or name][0],
                  "ns_per_byte": self.way[n or name][1]} for n in others]
        known = self.link.routes.get("digits") or {"content": "digits-" + self.model["hash"][:8]}
        costs = [{"content": known["content"], "first_unit": 0, "units": self.units,
                  "rows": [{"ep": 0, "width": w, "ns": [self.costs.get(name, 1.0)] * self.units} for w in (1, 2)]}]
        told = {"board": board_print(name) if name else SELF, "known": True, "version": "0", "memory_bytes": self.memory,
                "costs": costs if name in self.costs else [], "links": links,
                "eps": [{"name": "cpu", "cores": 2, "speed": 1.0, "max_khz": 0, "capacity": 0}]}
        return dict(told, name=name, up=self.up[name]) if name else told

    def report(self):
        self.link.reporter.call("io.piped.LinkReport", {"report": {
            "self": self.board(None), "boards": [self.board(n) for n in self.up], "routes": self.state}})

    def shown(self):
        return next(m for m in self.d.status()["models"] if m["name"] == "digits")["route"]

    def ready(self, route, phase="ready", why="", board=""):
        self.state = [{"model": "digits", "number": route["number"], "phase": phase, "why": why, "board": board, "to": "",
                       "answered": 0, "resent": 0, "late": 0, "service_ns": []}]

    def until(self, condition, what):
        """Reports, as piped-link does, until it is so. Return: the route."""
        def wanted():
            self.report()
            route = self.link.routes.get("digits", {"hops": [], "number": 0})
            return condition(route) and route
        return until(wanted, what, lambda: self.link.routes, self.shown)


def names(route):
    return {b["board"] for h in route["hops"] for b in h["boards"]}


def a_route_is_planned_and_left():
    with Planned() as t:
        first = t.until(lambda r: r["hops"], "a route")
        check(len(names(first)) >= 2, "too few boards in", first)
        equal([first["hops"][0]["first_unit"], first["hops"][-1]["last_unit"]], [0, t.units - 1])
        t.ready(first)
        t.report()
        lost = next(n for n in t.up if board_print(n) in names(first))
        t.up[lost] = False
        second = t.until(lambda r: r["number"] != first["number"], "another route")
        check(board_print(lost) not in names(second), "it has a board that is away:", second)
        t.up = dict.fromkeys(t.up, False)
        t.until(lambda r: not r["hops"], "no route")


def links_decide():
    with Planned(link=SLOW) as t:
        t.until(lambda r: "this board alone" in t.shown()["why"], "a route that does not pay")
        equal(t.link.routes.get("digits"), None)
        t.way = dict.fromkeys(t.way, FAST)
        t.until(lambda r: r["hops"], "a route over better links")


def measured_costs_correct_a_route():
    with Planned(boards=("b2",)) as t:
        t.costs["b2"] = 1.0
        t.until(lambda r: board_print("b2") in names(r), "a route")
        t.ready(t.link.routes["digits"])
        t.costs["b2"] = 1e9
        t.until(lambda r: not r["hops"], "the route is left")


def boards_that_cannot_hold_the_model_share_it():
    memory, hops = 1e6, []
    while not hops:
        with Planned(boards=("b2",), memory=memory) as t:
            hops = t.until(lambda r: r["hops"] or "fits in the memory" in t.shown()["why"], "an answer")["hops"]
            memory *= 1.15
    check(len(hops) > 1, "each holds the whole model with", memory / 1.15, hops)


def who_fails_is_left_for_a_while():
    with Planned() as t:
        first = t.until(lambda r: r["hops"], "a route")
        t.ready(first, "failed", "no room", board_print("b3"))
        second = t.until(lambda r: r["number"] != first["number"], "another route")
        check(board_print("b3") not in names(second), second)
        t.ready(second)
        t.until(lambda r: board_print("b3") in names(r), "it gets another chance")


def nothing_is_planned_without_piped_link():
    with Planned() as t:
        t.until(lambda r: r["hops"], "a route")
        t.link.die()
        with t.d.connect() as v:  # its next report would be another connection's
            equal(v.call("io.piped.Status")["status"]["state"], "serving")
        until(lambda: t.shown()["why"] == "piped-link is away", t.shown)
        equal(t.shown()["hops"], [])


LISTED = [a_route_is_planned_and_left, links_decide, measured_costs_correct_a_route,
          boards_that_cannot_hold_the_model_share_it, who_fails_is_left_for_a_while, nothing_is_planned_without_piped_link]

if __name__ == "__main__":
    main(LISTED, at_once=len(LISTED))  # they wait for back-offs and for gains to last
