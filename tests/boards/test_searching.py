#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Searches over boards that are there: their plans become routes, which are measured while a client streams; the best one
serves. Every frame is answered once, in order, right, bit for bit as by one board.

usage: test_searching.py SOURCE_ROOT [CASE...]     (PIPED_BUILD: the build folder)
"""
import json
import os
import re
import sys

ROOT = sys.argv[1]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
from cases import check, main  # noqa: E402  (the folders are known only now)
from program import SLOW  # noqa: E402
from spread import Spread, spread_reason  # noqa: E402

UNITS = 12  # of the digits
QUICK = {"planner": {"frames": 8, "measure_ms": int(100 * SLOW)}, "adapt": {"enabled": False}}
ENDED = ("switched", "kept", "reverted")


def on_boards(case):
    """Skips where there can be none."""
    def run():
        return spread_reason() or case()
    run.__name__ = case.__name__
    return run


def searching(*args, **more):
    """A fleet whose links are patient: what searches find is asked here, not how soon a board is missed."""
    fleet = Spread(*args, **more)
    fleet.link_args += ["--silent-s", "20"]
    return fleet


def told(fleet):
    """Waits until boards have told the head of their cores and links."""
    check(fleet.head.daemon.wait_until(lambda: '"route": "0-' in fleet.head.pipectl(
        "--json", "plan", "front", "--boards", expect=None), 30 * SLOW), "boards told nothing")


def retune(fleet, *words, **more):
    return json.loads(fleet.head.pipectl("--json", "retune", "--boards", *words, **more))


def history(fleet):
    return json.loads(fleet.head.pipectl("--json", "history"))


def boards_of(plan):
    """Return: the board of each segment of a route; None: a plan of the head, or a shared segment."""
    found = re.findall(r"@(here|b\d+)(?=\||$)", plan)
    return found if len(found) == plan.count("|") + 1 else None


def comes_back(plan):
    boards = boards_of(plan)
    return bool(boards) and len(set(boards)) < len(boards)


def good_event(fleet, event, algorithm):
    """The plan that was kept serves, and nothing was lost."""
    check(event["algorithm"] == algorithm and event["outcome"] in ENDED and event["lost"] == 0, event)
    searched = [t for t in event["trials"] if t["role"] == "search"]
    print("  %s; %s" % (event["outcome"], ", ".join(
        "%s %s: %s ms" % (t["role"], t["plan"], t["bottleneck_ms"]) for t in event["trials"])))
    check(searched and event["trials"][0]["role"] == "before", event)
    check(all(t["failed"] or (t["bottleneck_ms"] > 0 and t["frames"] > 0) for t in event["trials"]), event["trials"])
    check({t["plan"] for t in event["trials"] if t["kept"]} == {event["plan_after"]}, event)
    if re.search(r"@(here|b\d)", event["plan_after"]):
        fleet.serving(route=event["plan_after"])
    else:
        fleet.alone()
    return searched


@on_boards
def exact_and_nsga2_measure_routes():
    with searching(2, "auto", keys=QUICK) as fleet:
        told(fleet)
        with fleet.load() as load:
            load.more(100)
            for algorithm, more in (("exact", ()), ("nsga2", ("--trials", "4"))):
                event = retune(fleet, "--algorithm", algorithm, *more)
                searched = good_event(fleet, event, algorithm)
                print("  %s: %s, %s after %d trials, %.0f frames/s before, %.0f after" % (
                    algorithm, event["outcome"], event["plan_after"], len(searched), event["fps_before"] or 0,
                    event["fps_after"] or 0))
                check(any("b2" in t["plan"] and not t["failed"] for t in searched), "no route was measured:", searched)
                load.more(100)
        check([e["cause"] for e in history(fleet) if e["trials"]] == ["request"] * 2, history(fleet))


@on_boards
def a_mapping_that_comes_back_to_a_board_is_measured():
    """Layers placed one by one, at random: the paper's NE, without its model."""
    with searching(2, "0-5@here|6-11@b2", keys=QUICK) as fleet:
        fleet.serving()
        told(fleet)
        with fleet.load() as load:
            event = retune(fleet, "--algorithm", "nsga2", "--encoding", "ne", "--stages", "1", "--trials", "5")
            searched = good_event(fleet, event, "nsga2")
            check(event["plan_before"] == "0-5@here|6-11@b2", event)
            for t in searched:
                print("  %s ms: %s" % (t["bottleneck_ms"], t["plan"]))
            check(any(comes_back(t["plan"]) and not t["failed"] for t in searched), searched)
            load.more(100)
            fleet.head.pipectl("plan", "auto")
            fleet.serving(route="0-5@here|6-11@b2")
            load.more(100)


@on_boards
def without_clients_the_load_is_its_own():
    with searching(2, "0-5@here|6-11@b2", keys=QUICK) as fleet:
        fleet.serving()  # so its frames go over boards; those that this board does alone are counted elsewhere
        told(fleet)
        event = retune(fleet, "--algorithm", "nsga2", "--trials", "3")
        good_event(fleet, event, "nsga2")
        check("under a synthetic load" in event["detail"] and event["fps_during"] > 0, event)


@on_boards
def a_search_that_is_cancelled_restores_the_route():
    with searching(2, "0-5@here|6-11@b2", keys={**QUICK, "planner": {"frames": 10000, "measure_ms": 600000}}) as fleet:
        fleet.serving()
        told(fleet)
        with fleet.load() as load:
            fleet.head.pipectl("retune", "--boards", "--algorithm", "nsga2", "--no-wait")
            load.more(100)
            fleet.head.pipectl("plan", "set", "0-11@b2", expect=1)
            fleet.head.pipectl("retune", "--boards", expect=1)
            fleet.head.pipectl("retune", "--cancel")
            fleet.serving(route="0-5@here|6-11@b2")
            load.more(100)
        check(history(fleet)[-1]["outcome"] == "cancelled", history(fleet)[-1])


@on_boards
def a_board_dies_in_the_middle():
    """The search goes on with what is left, and ends; no frame is lost."""
    with searching(2, "auto", keys=QUICK) as fleet:
        told(fleet)
        with fleet.load() as load:
            load.more(100)
            fleet.head.pipectl("retune", "--boards", "--algorithm", "nsga2", "--encoding", "ne", "--stages", "1", "--trials",
                               "40", "--no-wait")
            fleet.until(lambda r: r["serving"], "a trial of a route")
            fleet["b2"].kill()
            check(fleet.head.daemon.wait_until(lambda: any(e["trials"] for e in history(fleet)), 60 * SLOW), "it does not end")
            load.more(100)
        fleet.alone()
        event = next(e for e in history(fleet) if e["trials"])
        check("@b2" not in event["plan_after"] and event["lost"] == 0, event)


main([exact_and_nsga2_measure_routes, a_mapping_that_comes_back_to_a_board_is_measured, without_clients_the_load_is_its_own,
      a_search_that_is_cancelled_restores_the_route, a_board_dies_in_the_middle], sys.argv[2:])
