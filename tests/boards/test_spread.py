#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One model over several boards, while boards, programs and cables come and go: every frame is answered once, in order,
right, bit for bit as by one board.

usage: test_spread.py SOURCE_ROOT [--long] [CASE...]     (PIPED_BUILD: the build folder)
"""
import contextlib
import os
import random
import sys
import tempfile
import time

ROOT = sys.argv[1]
LONG = "--long" in sys.argv
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import tiny_onnx  # noqa: E402  (the folders are known only now)
from cases import check, main  # noqa: E402
from fleet import CABLE  # noqa: E402
from groups import group_reason  # noqa: E402
from load import known  # noqa: E402
from network import bad_cable_reason  # noqa: E402
from spread import Spread, random_route, spread_reason  # noqa: E402
from surroundings import needs  # noqa: E402

UNITS = 12  # of the digits
THREE = "0-3@here|4-7@b2|8-11@b3"


def on_boards(case):
    """Skips where there can be none."""
    def run():
        return spread_reason() or case()
    run.__name__ = case.__name__
    return run


# ---- routes ----

@on_boards
def two_boards_at_every_cut():
    with Spread(2, "0-5@here|6-11@b2") as fleet:
        fleet.serving()
        with fleet.load() as load:
            for cut in range(1, UNITS, 1 if LONG else 2):
                for first, second in (("here", "b2"), ("b2", "here")) if LONG or cut == 7 else (("here", "b2"),):
                    fleet.set_route("0-%d@%s|%d-%d@%s" % (cut - 1, first, cut, UNITS - 1, second))
                    before = fleet.computed("b2")
                    load.more(100)
                    check(fleet.computed("b2") > before, "b2 computed nothing:", fleet.route())
            for route in ("0-11@b2", "0-11@here+b2", "0-3@b2|4-7@here|8-11@b2", "0-3@here|4-7@b2|8-11@here"):
                fleet.set_route(route)
                load.more(100)
        check(load.epochs() > 10, load.epochs())


@on_boards
def four_boards_by_random_routes():
    seed = random.SystemRandom().randrange(1 << 30)
    print("  seed %d" % seed)
    draw, names = random.Random(seed), ["here", "b2", "b3", "b4"]
    with Spread(4, "0-11@here+b2+b3+b4") as fleet:
        fleet.serving()
        with fleet.load() as load:
            load.more(400)
            check(all(fleet.computed(n) for n in ("b2", "b3", "b4")), "a copy computed nothing")
            for _ in range(40 if LONG else 8):
                route = random_route(draw, UNITS, names)
                print("  " + route)
                fleet.set_route(route)
                load.more(100)


@contextlib.contextmanager
def fetched_by_b2():
    """b2 has no file, and has fetched its part. Return: the two boards, the load, and where b2 keeps models."""
    with Spread(2, "off", None) as fleet:
        with fleet.load() as load:
            fleet.set_route(fleet.in_two())
            load.more(50)
            yield fleet, load, os.path.join(fleet["b2"].link_state, "models")


@on_boards
def weights_come_by_the_link():
    """What it fetched is still there after a restart."""
    with fetched_by_b2() as (fleet, load, store):
        kept = {n: os.path.getsize(os.path.join(store, n)) for n in os.listdir(store)}
        check(any(n.endswith(".onnx") for n in kept), kept)
        fleet["b2"].kill()
        fleet["b2"].start()
        fleet.serving()
        load.more(50)
        check(fleet.computed("b2") > 0)


# ---- cables ----

def lost_by_slow_cables():
    with Spread(2, "off", None) as fleet:
        fleet.set_route(fleet.in_two())
        with fleet.load("--in-flight", "4") as load:
            for rate in ("1gbit", "100mbit", "10mbit"):
                fleet.all_cables(lambda cable, rate=rate: cable.shape(rate))
                took = load.more(20, 60)
                print("  %s: %.1f frames/s" % (rate, 20 / took))
        return fleet.head.link.count("b2 is gone")


@on_boards
def slow_cables():
    """A machine that lets a program wait for half a second loses a link now and then; a slow cable would each time."""
    check(any(lost_by_slow_cables() == 0 for _ in range(3)), "a slow link counted as lost")


@on_boards
def late_and_lossy_cables():
    program = CABLE if bad_cable_reason(None) else None
    why = bad_cable_reason(program)
    if why:
        return why
    with Spread(3, THREE, cable=program) as fleet:
        fleet.serving()
        with fleet.load() as load:
            for late_ms, lost in ((0, 0), (5, 0), (50, 0), (0, 1), (5, 5)) if LONG else ((5, 0), (50, 0), (5, 1)):
                fleet.all_cables(lambda cable, late_ms=late_ms, lost=lost: cable.bad(late_ms, lost))
                fleet.serving(60)
                took = load.more(100, 60)
                print("  %d ms later, %d %% lost: %.0f frames/s" % (late_ms, lost, 100 / took))
            fleet.all_cables(lambda cable: cable.bad(0, 0))
            fleet.serving()
            load.more(100)
    return None


# ---- faults ----

def faulty(name, fault, repair, seconds=30, returns=True):
    """A case: a fault under load and its repair. @returns: the route serves again after the repair."""
    @on_boards
    def run():
        with Spread(3, THREE) as fleet:
            fleet.serving()
            with fleet.load() as load:
                load.more(300)
                began = time.monotonic()
                fault(fleet)
                load.more(1000, seconds)
                why = fleet.until(lambda r: True, "a status")["why"] if fleet.head.daemon.process else ""
                repair(fleet)
                if returns:
                    fleet.serving(seconds)
                load.more(300)
            counts, route = load.end(), fleet.route()
        print("  longest pause %d ms; sent again: %d by the client, %d by the head; all as before after %.1f s; %s" % (
            counts["longest_ms"], counts["resent"], route["resent"], time.monotonic() - began, why))
    run.__name__ = name
    return run


def killed(board, program):
    """A case for one program of a board."""
    def fault(fleet):
        getattr(fleet[board], program).kill()

    def repair(fleet):
        getattr(fleet[board], "start_" + program)()
    return faulty("%s_of_%s_is_killed" % ({"link": "piped_link", "daemon": "piped"}[program], board), fault, repair)


def restart_head_daemon(fleet):
    fleet.head.kill_daemon()
    fleet.head.start_daemon()


def stop_head_daemon(fleet):
    """It answers what is on its way over a route that leads through itself, and waits for nobody."""
    fleet.head.daemon.stop()
    said = fleet.head.daemon.log()
    check("it is silent" not in said and "stopping anyway" not in said, said)
    fleet.head.start_daemon()


def restart_head(fleet):
    fleet.head.kill()
    fleet.head.start()


def pulled(board):
    return faulty("the_cable_of_%s_is_pulled" % board, lambda f: f.network.cables[board].plugged(False),
                  lambda f: f.network.cables[board].plugged(True))


def cut(source, to):
    return faulty("nothing_arrives_from_%s_at_%s" % (source, to), lambda f: f.network.cut(source, to),
                  lambda f: f.network.mend(source, to))


FAULTS = [
    faulty("a_middle_board_is_killed", lambda f: f["b2"].kill(), lambda f: f["b2"].start()),
    killed("b2", "link"), killed("b3", "daemon"), killed("b1", "link"),
    faulty("piped_of_the_head_is_stopped", stop_head_daemon, lambda f: None),
    faulty("piped_of_the_head_is_killed", restart_head_daemon, lambda f: None),
    faulty("the_head_is_killed", restart_head, lambda f: None),
    pulled("b2"), pulled("b1"), cut("b2", "b3"), cut("b3", "b1"), cut("b1", "b2"),
    faulty("a_board_freezes", lambda f: f["b2"].freeze(), lambda f: f["b2"].thaw()),
]
MORE_FAULTS = [
    killed("b3", "link"), killed("b2", "daemon"), pulled("b3"), cut("b3", "b2"), cut("b2", "b1"), cut("b1", "b3"),
    faulty("the_last_board_freezes", lambda f: f["b3"].freeze(), lambda f: f["b3"].thaw()),
    faulty("the_last_board_is_killed", lambda f: f["b3"].kill(), lambda f: f["b3"].start()),
]


@on_boards
def copies_go_on_without_one():
    """A board of a hop that has several is lost: the route serves on."""
    with Spread(3, "0-11@here+b2+b3") as fleet:
        fleet.serving()
        with fleet.load() as load:
            load.more(300)
            fleet["b2"].kill()
            load.more(600)
            check(fleet.route()["serving"], fleet.route())
            fleet["b2"].start()
            fleet.serving()
            load.more(300)
        print("  longest pause %d ms" % load.end()["longest_ms"])


@on_boards
def plans_follow_a_flapping_board():
    """It comes and goes; the head does not change its mind each time, and takes it in again in the end."""
    with Spread(2, "auto", keys={"adapt": {"enabled": True}}) as fleet:
        fleet.until(lambda r: True, "a status")
        with fleet.load() as load:
            load.more(500)
            before = fleet.route()["number"]
            for _ in range(6 if LONG else 3):
                fleet.network.cables["b2"].plugged(False)
                fleet.head.link.wait("b2 is gone")
                load.more(300)
                fleet.network.cables["b2"].plugged(True)
                fleet.head.link.wait("b2 is there")
                load.more(300)
            changes = fleet.route()["number"] - before
            print("  %d routes for %d losses" % (changes, 6 if LONG else 3))
            check(changes <= (12 if LONG else 6), "it oscillates")


# ---- memory, disk, weights ----

@on_boards
def a_board_with_little_memory():
    """What does not fit is refused with the reason, and nothing is killed for memory."""
    why = group_reason(memory=1 << 28)
    if why:
        return why
    with tempfile.TemporaryDirectory() as folder:
        return large_segment(os.path.join(folder, "large.onnx"))


def large_segment(path):
    """Of 96 MiB, for a board that has 80."""
    tiny_onnx.write(path, [("conv", 16, 3), ("relu",), ("pool",), ("linear", 1536), ("linear", 10)], channels=3, size=64)
    with Spread(2, "off", path, memory={"b2": 80 << 20}) as fleet:
        fleet.ask_route(fleet.in_two(0.2))
        reason = fleet.until(lambda r: r["why"] and "memory" in r["why"], "the reason", 60)["why"]
        print("  " + reason)
        check(not fleet.route()["serving"])
        check(fleet["b2"].group.killed() == 0 and fleet["b2"].status(), "b2 was killed")
    return None


@on_boards
@needs("own mounts")
def a_full_disk_while_fetching():
    with Spread(2, "off", None, start=False) as fleet:
        models = os.path.join(fleet["b2"].link_state, "models")
        os.makedirs(models, mode=0o700)
        fleet["b2"].link_wrapper = ["unshare", "--mount", "sh", "-c",
                                    'mount -t tmpfs -o size=256k,mode=700 none "$0" && exec "$@"', models]
        for board in fleet.boards.values():
            board.start()
        fleet.wait_joined()
        with fleet.load() as load:
            fleet.ask_route(fleet.in_two())
            print("  " + fleet.until(lambda r: "the disk is full" in r["why"], "the reason")["why"])
            load.more(50)
            fleet["b2"].link.kill()
            fleet["b2"].link_wrapper = []
            fleet["b2"].start_link()
            fleet.serving(60)
            load.more(50)


@on_boards
def a_flipped_leaf():
    """A byte of what b2 has stored is not what it was: it is fetched again."""
    with fetched_by_b2() as (fleet, load, store):
        fleet["b2"].kill()
        for name in os.listdir(store):
            if name.endswith(".onnx"):
                flip(os.path.join(store, name))
        fleet["b2"].start()
        fleet.serving(60)
        load.more(50)


def flip(path):
    with open(path, "r+b") as f:
        f.seek(os.path.getsize(path) // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 1]))


# ---- long ----

@on_boards
def everything_at_random():
    """Four boards, routes and faults at random, under load."""
    seed = random.SystemRandom().randrange(1 << 30)
    print("  seed %d" % seed)
    draw, names = random.Random(seed), ["here", "b2", "b3", "b4"]
    with Spread(4, "0-11@here+b2+b3+b4") as fleet:
        fleet.serving()
        with fleet.load() as load:
            for _ in range(30):
                board = draw.choice(("b2", "b3", "b4"))
                other = draw.choice([n for n in fleet.names if n != board])
                fault, repair = draw.choice((
                    (fleet[board].kill, fleet[board].start), (fleet[board].freeze, fleet[board].thaw),
                    (fleet[board].link.kill, fleet[board].start_link),
                    (lambda b=board: fleet.network.cables[b].plugged(False),
                     lambda b=board: fleet.network.cables[b].plugged(True)),
                    (lambda b=board, o=other: fleet.network.cut(b, o),
                     lambda b=board, o=other: fleet.network.mend(b, o)),
                    (fleet.head.kill_daemon, fleet.head.start_daemon), (fleet.head.link.kill, fleet.head.start_link)))
                fault()
                if fleet.head.daemon.process:
                    load.more(draw.randint(1, 500))
                repair()
                if draw.random() < 0.5:
                    fleet.set_route(random_route(draw, UNITS, names), 60)
                load.more(100, 60)


@on_boards
def real_networks_at_many_cuts():
    for name in ("resnet50", "mobilenet_v1"):
        path = os.path.join(ROOT, "model", "networks", name + ".json")
        units = known(path).units
        with Spread(2, "off", path=path) as fleet:
            with fleet.load("--in-flight", "2") as load:
                for at in range(1, units, 3):
                    fleet.set_route("0-%d@here|%d-%d@b2" % (at - 1, at, units - 1), 60)
                    load.more(4, 60)


CASES = [two_boards_at_every_cut, four_boards_by_random_routes, weights_come_by_the_link, slow_cables,
         late_and_lossy_cables, *FAULTS, copies_go_on_without_one, plans_follow_a_flapping_board,
         a_board_with_little_memory, a_full_disk_while_fetching, a_flipped_leaf]
main(CASES + [*MORE_FAULTS, everything_at_random, real_networks_at_many_cuts] if LONG else CASES,
     [a for a in sys.argv[2:] if a != "--long"])
