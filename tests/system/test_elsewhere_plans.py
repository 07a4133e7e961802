#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What piped shows of plans over boards, with a piped-link of the test that reports boards and links.

usage: test_elsewhere_plans.py [CASE]...
"""
import json
import os
import tempfile

import test_elsewhere
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


def a_search_over_boards_is_refused():
    with Planned() as t:
        for words, model, more in ((["piped-link is away"], "digits", {}), (['"off"'], "worker", {}),
                                   (["shisha", "exact, nsga2"], "digits", {"algorithm": "shisha"})):
            refused(t.d, words, "Retune", {"model": model, "boards": True, **more})
        t.up = dict.fromkeys(t.up, False)
        t.report()
        refused(t.d, ["no other board is there"], "Retune", {"model": "digits", "boards": True})
        equal([e["cause"] for e in t.d.call("History")["events"] if e["trials"]], [])


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


def plan_error(d, words, method, parameters):
    refused(d, words, method, parameters, "io.piped.InvalidPlan")


def a_user_sets_a_route():
    with Planned() as t:
        last = t.units - 1
        route = "0-2@here|3-%d@b2" % last
        plan_error(t.d, ["piped-link is away"], "SetPlan", {"model": "digits", "plan": route})
        first = t.until(lambda r: r["hops"], "a planned route")
        t.ready(first)
        t.report()
        before = t.shown()["number"]
        for bad, words in ((route.replace("b2", "b9"), ["no board is called b9", "pipectl board list"]),
                           ("0-2@here|3-4@b2", ["ends with unit 4"]), ("0-1@here|3-%d@b2" % last, []), ("0-2@", [])):
            plan_error(t.d, words, "SetPlan", {"model": "digits", "plan": bad})
        plan_error(t.d, [], "SetPlan", {"model": "worker", "plan": route})
        equal((t.shown()["number"], t.shown()["set"]), (before, False))
        r = t.d.call("SetPlan", {"model": "digits", "plan": route})
        equal(r["plan"], route)
        check(r["warnings"], r)
        second = t.until(lambda r: r["number"] != first["number"], "the route that was set")
        equal((second["number"], t.shown()["route"], t.shown()["set"]), (r["epoch"], route, True))
        e = t.d.call("PlanExplain", {"model": "digits"})["explanation"]["boards"]
        equal((e["set"], e["route"]), (True, route))
        check(e["best"]["fps"] > e["predicted"]["fps"] > 0 and "pipectl plan auto" in e["verdict"], e)
        t.ready(second)
        for _ in range(3):  # reports change nothing
            t.report()
        equal(t.link.routes["digits"]["number"], second["number"])
        t.d.call("AutoPlan", {"model": "digits"})
        equal(t.shown()["set"], False)
        third = t.until(lambda r: r["number"] != second["number"], "a planned route again")
        check(third["hops"], "the route that was set should serve until there is another", third)


def a_plan_of_this_board_ends_the_route():
    with Planned() as t:
        t.until(lambda r: r["hops"], "a planned route")
        t.d.call("SetPlan", {"model": "digits", "plan": "0-%d@big" % (t.units - 1)})
        t.until(lambda r: not r["hops"], "no route")
        for _ in range(3):
            t.report()
        equal((t.link.routes["digits"]["hops"], t.shown()["set"], t.shown()["why"]), ([], True, "a plan of this board was set"))
        t.d.call("AutoPlan", {"model": "digits"})
        t.until(lambda r: r["hops"], "a planned route again")


def a_model_that_is_too_large_needs_a_route():
    with tempfile.TemporaryDirectory() as folder:
        large = os.path.join(folder, "large.json")
        with open(large, "w", encoding="utf-8") as f:
            json.dump({"input": {"shape": [64, 8, 8]}, "layers": [{"op": "conv", "out": 256, "kernel": 3, "pad": 1}] * 2}, f)
        test_elsewhere.config()
        with test_elsewhere.Spread("0-0@here|1-1@b2", large, 1) as t:
            first = t.serve()
            for plan in ("0-1@big", "0-1@here"):
                plan_error(t.d, ["too large"], "SetPlan", {"model": "digits", "plan": plan})
            equal(t.link.routes["digits"]["number"], first["number"])
            r = t.d.call("SetPlan", {"model": "digits", "plan": "0-1@b2"})
            equal((t.route()["route"], t.route()["number"]), ("0-1@b2", r["epoch"]))
            t.d.call("AutoPlan", {"model": "digits"})  # back to what the configuration says
            equal((t.route()["route"], t.route()["set"]), ("0-0@here|1-1@b2", False))


def mapping(t, **devices):
    """A mapping of the units to keys: {key: range}."""
    names = [u["name"] for u in t.d.call("Units", {"model": "digits"})["units"]]
    return {key: [names[u] for u in units] for key, units in devices.items()}


def mappings_go_out_and_in():
    with Planned() as t:
        last = t.units - 1
        path = os.path.join(t.d.temp, "mapping.json")
        refused(t.d, ["several teams", "plan set"], "GetMapping", {"model": "digits"})
        t.d.call("SetPlan", {"model": "digits", "plan": "0-3@big|4-%d@big" % last})
        t.d.pipectl("plan", "export", path, "--model", "digits")
        with open(path, encoding="utf-8") as f:
            equal(json.load(f), mapping(t, host_cpu0=range(4), host_cpu1=range(4, last + 1)))
        t.d.call("AutoPlan", {"model": "digits"})
        t.until(lambda r: r["hops"], "a planned route")
        wanted = mapping(t, here_cpu0=[0, 1], b2_cpu01=range(2, last), here_cpu1=[last])
        wanted["b2_cpu01"].append("an operator that became a part of another")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(wanted, f)
        text = t.d.pipectl("plan", "import", "--model", "digits", path, as_json=False)
        route = "0-1@here|2-%d@b2|%d-%d@here" % (last - 1, last, last)
        check("serving by " + route in text, text)
        equal((t.shown()["route"], t.shown()["set"]), (route, True))
        # once it serves, the same comes out
        t.ready(t.link.wait_route("digits", other_than=0))
        t.until(lambda r: t.shown()["serving"], "frames go there")
        equal(t.d.call("GetPlan", {"model": "digits"})["route"], route)
        check(route in t.d.pipectl("plan", "--model", "digits", as_json=False), "plan show")
        t.d.pipectl("plan", "export", path, "--model", "digits")
        with open(path, encoding="utf-8") as f:
            equal(json.load(f), mapping(t, here_cpu01=[0, 1, last], b2_cpu01=range(2, last)))
        t.d.pipectl("plan", "import", path, "--model", "digits")
        equal(t.shown()["route"], route)
        # what one board had
        t.d.call("SetMapping", {"model": "digits", "mapping": mapping(t, host_cpu0=range(5), host_cpu1=range(5, last + 1))})
        t.until(lambda r: not r["hops"], "no route")
        check("|5-%d@" % last in t.d.call("GetPlan", {"model": "digits"})["plan"], "the plan of the mapping")


def bad_mappings_change_nothing():
    with Planned() as t:
        last = t.units - 1
        good = mapping(t, here_cpu0=range(4), b2_cpu01=range(4, last + 1))
        plan_error(t.d, ["no board is called", "b2"], "SetMapping", {"model": "digits", "mapping": good})
        t.up["b3"] = False
        t.report()
        before = t.shown()

        def bad(words, change, model="digits"):
            plan_error(t.d, words, "SetMapping", {"model": model, "mapping": change})
            equal((t.shown()["set"], t.shown()["boards"]), (before["set"], before["boards"]))

        bad(['"b9"', "pipectl board list"], {"b9_cpu0" if k[0] == "b" else k: v for k, v in good.items()})
        bad(["board b3 is away"], {"b3_cpu0" if k[0] == "b" else k: v for k, v in good.items()})
        bad(["b2_cpu9", "0 to 1"], {"b2_cpu9" if k[0] == "b" else k: v for k, v in good.items()})
        bad(["b2_gpu", "b2_cpu01"], {"b2_gpu" if k[0] == "b" else k: v for k, v in good.items()})
        bad(["b2_x"], {"b2_x" if k[0] == "b" else k: v for k, v in good.items()})
        bad(["is not mapped", "\"other\"", "pipectl units"], dict(good, here_cpu0=good["here_cpu0"][1:] + ["other"]))
        bad(["mapped twice"], dict(good, here_cpu0=good["here_cpu0"] + good["b2_cpu01"][:1]))
        bad(["not a list"], dict(good, here_cpu0="x"))
        bad(["not a string"], dict(good, here_cpu0=[1]))
        bad(["is not mapped"], {})
        bad(["several devices", '"auto"'], good, "worker")
        with open(os.path.join(t.d.temp, "x.json"), "w", encoding="utf-8") as f:
            f.write('{"a": [')
        t.d.pipectl("plan", "import", f.name, as_json=False, expect=1)
        t.d.pipectl("plan", "import", f.name + ".not", as_json=False, expect=1)
        t.d.pipectl("plan", "import", as_json=False, expect=2)
        t.d.pipectl("plan", "export", t.d.temp, as_json=False, expect=1)


LISTED = [a_front_over_boards, a_search_over_boards_is_refused, a_route_is_explained, a_route_that_does_not_pay_is_explained,
          a_user_sets_a_route, a_plan_of_this_board_ends_the_route, a_model_that_is_too_large_needs_a_route, mappings_go_out_and_in,
          bad_mappings_change_nothing]

if __name__ == "__main__":
    main(LISTED)
