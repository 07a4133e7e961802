#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What piped shows of plans over boards, with a piped-link of the test that reports boards and links.

usage: test_elsewhere_plans.py [CASE]...
"""
from daemon import VarlinkError, check, equal, main
from fake_link import board_print
from test_elsewhere_auto import SLOW, Planned


def refused(d, words, method, parameters, error="io.piped.Unsupported"):
    """The call is answered by that error, whose reason has the words."""
    try:
        check(False, method, "was answered:", d.call(method, parameters))
    except VarlinkError as e:
        equal(e.error, error, e)
        for word in words:
            check(word in str(e), repr(word), "is not in", e)


def lines_fit(text):
    for line in text.splitlines():
        check(len(line) <= 80 and line == line.rstrip(), "a bad line:", repr(line))
    return " ".join(text.split())


def a_front_over_boards():
    with Planned() as t:
        refused(t.d, ["piped-link is away"], "PlanFront", {"model": "digits", "boards": True})
        refused(t.d, ['"off"'], "PlanFront", {"model": "worker", "boards": True})
        t.up = dict.fromkeys(t.up, False)
        t.report()
        refused(t.d, ["no other board is there"], "PlanFront", {"model": "digits", "boards": True})
        t.up = dict.fromkeys(t.up, True)
        t.report()
        r = t.d.call("PlanFront", {"model": "digits", "boards": True, "max": 64})
        check(len(r["front"]) > 1, r)
        equal(type(r["exact"]), bool)
        equal(r["watts_known"], False)
        keys = ("bottleneck_ms", "most_memory_bytes", "most_energy_mj")
        for a in r["front"]:
            check(all(a[k] > 0 for k in keys + ("fps", "latency_ms")), a)
            check(a["route"] or ":" not in a["plan"], a)
            for b in r["front"]:
                check(a is b or any(a[k] < b[k] for k in keys), b, "beats", a)
        equal([a["fps"] for a in r["front"]], sorted((a["fps"] for a in r["front"]), reverse=True))
        check(any("b2:" in a["plan"] or "b3:" in a["plan"] for a in r["front"]), r)
        check(any(a["route"] and "@" in a["route"] and ":" not in a["route"] for a in r["front"]), r)
        equal(len(t.d.call("PlanFront", {"model": "digits", "boards": True, "max": 1})["front"]), 1)
        shown = t.d.pipectl("plan", "front", "--boards", "--max", "64", "--model", "digits")
        equal([(p["plan"], p["route"]) for p in shown["front"]], [(p["plan"], p["route"]) for p in r["front"]])
        text = lines_fit(t.d.pipectl("plan", "front", "--boards", "--model", "digits", as_json=False))
        check("frames/s latency ms MiB core ms plan" in text and "b2:cpu" in text, text)
        t.d.pipectl("plan", "show", "--boards", as_json=False, expect=2)


def a_route_is_explained():
    with Planned() as t:
        equal(t.d.call("PlanExplain", {"model": "worker"})["explanation"]["boards"], None)
        e = t.d.call("PlanExplain", {"model": "digits"})["explanation"]["boards"]
        equal((e["route"], e["why"], "verdict" in e), ("", "piped-link is away", False))
        t.up["b3"] = False
        t.report()
        first = t.until(lambda r: board_print("b2") in {b["board"] for h in r["hops"] for b in h["boards"]}, "a route")
        t.ready(first)
        t.report()
        e = t.d.call("PlanExplain", {"model": "digits"})["explanation"]["boards"]
        equal((e["phase"], e["set"], e["best"]["route"]), ("ready", False, e["route"]))
        check("the best one" in e["verdict"], e)
        check(e["predicted"]["fps"] > e["alone"]["fps"] > 0 and e["predicted"]["limit"], e)
        check(all(h["predicted_ms"] > 0 for h in e["hops"]), e)
        equal(e["left_out"], [{"name": "b3", "why": "It is away."}])
        text = lines_fit(t.d.pipectl("plan", "explain", "--model", "digits", as_json=False))
        for words in ("Route " + e["route"], "what decides", "this board alone", "best route", "b3: It is away."):
            check(words in text, repr(words), "is not in", text)


def a_route_that_does_not_pay_is_explained():
    with Planned(link=SLOW) as t:
        t.until(lambda r: "this board alone" in t.shown()["why"], "a route that does not pay")
        e = t.d.call("PlanExplain", {"model": "digits"})["explanation"]["boards"]
        equal((e["route"], e["predicted"]), ("", None))
        check("this board alone" in e["verdict"] or "There is no route" in e["verdict"], e)
        equal({b["name"]: b["why"] for b in e["left_out"]},
              dict.fromkeys(("b2", "b3"), "By the table no route is better with it."))
        text = lines_fit(t.d.pipectl("plan", "explain", "--model", "digits", as_json=False))
        check("Route none: this board alone" in text, text)


LISTED = [a_front_over_boards, a_route_is_explained, a_route_that_does_not_pay_is_explained]

if __name__ == "__main__":
    main(LISTED)
