#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Networks cut anywhere, over two and four boards: every frame is answered once, in order, bit for bit as by one board,
which measured its primitives. Links of many kinds: what the planner predicts beside what was measured.

usage: test_cuts.py SOURCE_ROOT [--long] [CASE...]     (PIPED_BUILD: the build folder)
"""
import os
import random
import sys
import tempfile
import time

ROOT = sys.argv[1]
LONG = "--long" in sys.argv
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import cut_networks  # noqa: E402  (the folders are known only now)
from cases import check, main  # noqa: E402
from fleet import CABLE, segments_of  # noqa: E402
from load import know_by, known  # noqa: E402
from network import bad_cable_reason  # noqa: E402
from program import SLOW  # noqa: E402
from spread import MODEL, Spread, random_route, spread_reason  # noqa: E402

RESNET50 = os.path.join(ROOT, "model", "networks", "resnet50.json")
LEARN_S = 10  # in which the planner should have learnt that a link changed
FRAMES = 16 if LONG else 8  # by each route


def on_boards(case):
    """Skips where there can be none."""
    def run():
        return spread_reason() or case()
    run.__name__ = case.__name__
    return run


class Measured(Spread):
    """All boards measure primitives, as they do for users, and know() makes those of the head's whole model the truth."""

    def __init__(self, count, path, measure_ms, **more):
        kernels = {"kernels": {"measure_ms": measure_ms}}
        super().__init__(count, "auto", path, kernels, others=kernels, **more)

    def know(self, cut=None):
        """The head alone computes the answers. @cut: by a plan of two stages, cut there; None: of one. Return: units."""
        ep, last = next(iter(primitives(self.head, MODEL)[0])), self.head.status()["models"][0]["units"] - 1
        stages = [(0, last)] if cut is None else [(0, cut - 1), (cut, last)]
        self.head.pipectl("plan", "set", "|".join("%d-%d@%sx1" % (a, b, ep) for a, b in stages))
        self.alone()
        return know_by(self.path, self.head).units

    def go(self, route):
        """A load must run. Return: seconds until each board of the route has computed a frame of each of its segments."""
        began = time.monotonic()
        wanted = set()
        for hop in route.split("|"):
            units, boards = hop.split("@")
            for name in boards.split("+"):
                wanted.add(("b1" if name == "here" else name, tuple(int(n) for n in units.split("-"))))
        before = {(b, s): n for b in self.names for s, n in segments_of(self[b]).items()}
        self.head.pipectl("plan", "set", route)
        self.serving(60, route)

        def all_computed():
            now = {(b, s): n for b in self.names for s, n in segments_of(self[b]).items()}
            return all(now.get(w, 0) > before.get(w, 0) for w in wanted)
        check(self.head.daemon.wait_until(all_computed, 60 * SLOW), "not all of", wanted, "compute:", self.route())
        return time.monotonic() - began

    def check_primitives(self, board, first):
        """The segment there that begins with this unit runs what the head's units run."""
        whole = primitives(self.head, MODEL)[first:]
        ending = "#%d-%d" % (first, first + len(whole) - 1)
        name = next(m["name"] for m in board.status()["models"] if m["name"].endswith(ending))
        for i, (here, there) in enumerate(zip(primitives(board, name), whole)):
            check(here == there, name, "unit", i, "has", here, "and the head", there)

    def parts_pair(self, cut):
        """One primitive computes the units before and after the cut, if nothing parts them: its bits may be others."""
        return any(names[-1].endswith("+") for names in primitives(self.head, MODEL)[cut - 1].values())


def primitives(board, model):
    """Return: for each unit the primitives of its operators by kind, without copies. One that runs the next operator, too,
    ends with "+"."""
    units = board.daemon.call("Units", {"model": model})["units"]
    return [{kind: [n for n in names if not n.startswith("copy_")] for kind, names in u["primitives"].items()}
            for u in units]


def cuts(path, step, measure_ms):
    with Measured(2, path, measure_ms) as fleet:
        units, took = fleet.know(), []
        every = range(1, units, step)
        parted = [at for at in every if fleet.parts_pair(at)]
        with fleet.load("--in-flight", "4") as load:
            for at in (at for at in every if at not in parted):
                took.append(fleet.go("0-%d@here|%d-%d@b2" % (at - 1, at, units - 1)))
                load.more(FRAMES, 60)
                fleet.check_primitives(fleet["b2"], at)
        took.sort()
        print("  %d cuts; a route serves after %.2f s, at most %.2f s" % (len(took), took[len(took) // 2], took[-1]))
        print("  as a plan of this board cut there, because one primitive computes both sides: before %s" % (
            ", ".join(map(str, parted)) or "none"))
        for at in parted if len(os.sched_getaffinity(0)) > 1 else ():
            fleet.know(at)
            with fleet.load("--in-flight", "4") as load:
                fleet.go("0-%d@here|%d-%d@b2" % (at - 1, at, units - 1))
                load.more(FRAMES, 60)


# ---- cuts and routes ----

@on_boards
def a_small_network_is_cut():
    with tempfile.TemporaryDirectory() as folder:
        cuts(cut_networks.write_small(folder), 2, 300)


@on_boards
def mobilenet_v2_is_cut_everywhere():
    with tempfile.TemporaryDirectory() as folder:
        cuts(cut_networks.write_mobilenet_v2(folder), 1, 4000)


@on_boards
def resnet50_is_cut_everywhere():
    cuts(RESNET50, 1, 4000)


def random_routes(path, count):
    seed = random.SystemRandom().randrange(1 << 30)
    print("  seed %d" % seed)
    draw, names = random.Random(seed), ["here", "b2", "b3", "b4"]
    with Measured(4, path, 4000) as fleet:
        units = fleet.know()
        with fleet.load("--in-flight", "8") as load:
            for _ in range(count):
                route = random_route(draw, units, names)
                while any(fleet.parts_pair(int(hop.split("-")[0])) for hop in route.split("|")[1:]):
                    route = random_route(draw, units, names)
                print("  %s: after %.2f s" % (route, fleet.go(route)), flush=True)
                load.more(FRAMES, 120)


@on_boards
def mobilenet_v2_by_random_routes():
    with tempfile.TemporaryDirectory() as folder:
        random_routes(cut_networks.write_mobilenet_v2(folder), 20)


@on_boards
def resnet50_by_random_routes():
    random_routes(RESNET50, 12)


@on_boards
def a_segment_is_loaded_with_and_without_primitives():
    """What a load takes that measures, and one that is told the primitives."""
    with tempfile.TemporaryDirectory() as folder, Measured(2, cut_networks.write_mobilenet_v2(folder), 4000) as fleet:
        units = fleet.know()
        route = "0-%d@here|%d-%d@b2" % (units // 2 - 1, units // 2, units - 1)
        with fleet.load("--in-flight", "4"):
            fleet.go(route)
        fleet["b2"].pipectl("models", "load", "alone#%d-%d" % (units // 2, units - 1), fleet.path)
        for m in fleet["b2"].daemon.call("Models")["models"]:
            if m["name"].endswith("#%d-%d" % (units // 2, units - 1)):
                print("  %s was loaded in %.0f ms" % (m["name"], m["load_ms"]))


# ---- links ----

def explained(fleet):
    return fleet.head.daemon.call("PlanExplain", {"model": MODEL})["explanation"]["boards"]


def predicted_fps(fleet):
    return (explained(fleet).get("predicted") or {}).get("fps")


def try_link(fleet, load, route, rate, late_ms, lost):
    """Frames over links of this kind, and a line of figures."""
    before = predicted_fps(fleet)
    for change in (lambda c: c.shape(rate), lambda c: c.bad(late_ms, lost)):
        fleet.all_cables(change)
    fleet.head.daemon.wait_until(lambda: fleet.route()["serving"], (60 if lost == 0 else 20) * SLOW)
    check(fleet.route()["serving"] or lost, "the route does not come back:", fleet.route())
    load.more(20, 120)
    fleet.head.daemon.wait_until(lambda: predicted_fps(fleet) != before, LEARN_S * SLOW)  # it may be as before
    took = load.more(40, 180)
    e, state = explained(fleet), fleet.route()
    predicted, alone, best = (e.get(k) or {} for k in ("predicted", "alone", "best"))
    print("  %8s %2d ms %d %%: %6.1f frames/s, predicted %6.1f; alone %6.1f; best %6.1f by %s%s" % (
        rate, late_ms, lost, 40 / took, predicted.get("fps", 0), alone.get("fps", 0), best.get("fps", 0),
        best.get("route") or "this board", "" if state["serving"] else " (%s)" % state["why"]), flush=True)
    check(e["verdict"], "no verdict")
    return e


@on_boards
def links_of_many_kinds():
    program = CABLE if bad_cable_reason(None) else None
    why = bad_cable_reason(program)
    if why:
        return why
    with Spread(2, "auto", None, cable=program) as fleet:
        route = fleet.in_two()
        known(fleet.path)
        fleet.until(lambda r: True, "a status")
        fleet.head.pipectl("plan", "set", route)
        fleet.serving()
        with fleet.load("--in-flight", "16") as load:
            for rate in ("1000mbit", "100mbit", "10mbit"):
                for late_ms in (0, 5, 50):
                    for lost in (0, 1, 5):
                        try_link(fleet, load, route, rate, late_ms, lost)
            e = try_link(fleet, load, route, "10mbit", 0, 0)
            print("  10 Mbit/s: " + e["verdict"])
            if not (e.get("best") or {}).get("fps", 0) > e["alone"]["fps"]:
                fleet.head.pipectl("plan", "auto")
                print("  the slow link is left: " + fleet.alone(60))
                load.more(100, 60)
    return None


SHORT = [a_small_network_is_cut]
MORE = [a_segment_is_loaded_with_and_without_primitives, mobilenet_v2_is_cut_everywhere, resnet50_is_cut_everywhere,
        mobilenet_v2_by_random_routes, resnet50_by_random_routes, links_of_many_kinds]
main(MORE if LONG else SHORT, [a for a in sys.argv[2:] if a != "--long"])
