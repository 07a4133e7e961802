#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Heads of spread models: two that share boards, a cable between two other boards, deadlines over hops, segments that
nobody uses.

usage: test_heads.py SOURCE_ROOT LINK PIPECTL [CASE...]     (PIPED_BUILD: the build folder)
"""
import os
import sys
import time

ROOT, LINK, PIPECTL = sys.argv[1:4]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import pyclient as pc  # noqa: E402  (the folders are known only now)
from cases import check, main  # noqa: E402
from daemon import DIGITS  # noqa: E402
from fleet import segments_of  # noqa: E402
from hop_boards import Boards, Client  # noqa: E402
from load import Load  # noqa: E402
from program import SLOW  # noqa: E402
from spread import MODEL, Spread, spread_reason  # noqa: E402
from wait import until  # noqa: E402

MS = 1000000
ROUNDS = 30  # of frames, at most, until both routes have carried some; a busy machine may lose a link in between


def on_boards(case):
    """Skips where there can be none."""
    def run():
        return spread_reason() or case()
    run.__name__ = case.__name__
    return run


class TwoHeads(Spread):
    """b1 and b2 are both heads."""

    def __init__(self, count, route, other, **more):
        super().__init__(count, route, **more)
        link = os.path.join(self.folder, "b2", "link-run", "frames.sock")
        self.configs["b2"] = {"models": [{"name": MODEL, "path": DIGITS, "boards": other}], "boards": {"frames_socket": link}}

    def sent_by_other(self):
        route = next(m for m in self["b2"].status()["models"] if m["name"] == MODEL).get("route") or {}
        return route.get("serving") and route["answered"] + 1


@on_boards
def two_heads_share_boards():
    """Both use b3 for the same segment, and compute for each other; then the process of one's links dies."""
    with TwoHeads(3, "0-2@here|3-7@b2|8-11@b3", "0-2@here|3-7@b1|8-11@b3") as fleet:
        fleet.serving()
        check(fleet["b2"].daemon.wait_until(fleet.sent_by_other, 30 * SLOW), "b2 does not serve over boards")
        with Load(fleet, MODEL, DIGITS, name="first") as first, \
                Load(fleet, MODEL, DIGITS, name="second", board=fleet["b2"]) as second:
            for _ in range(ROUNDS):  # each in its turn: neither waits for the end of the other
                first.more(300)
                second.more(300)
                if fleet.route()["answered"] > 300 and fleet.sent_by_other() > 300:
                    break
            shared = segments_of(fleet["b3"])
            check(list(shared) == [(8, 11)], shared)
            check(fleet.route()["answered"] > 300 and fleet.sent_by_other() > 300, fleet.route(), fleet.sent_by_other())
            fleet.head.link.kill()
            first.more(200)
            second.more(200)
            fleet.head.start_link()
            fleet.serving()
            check(fleet["b2"].daemon.wait_until(fleet.sent_by_other, 30 * SLOW), "b2 does not serve over boards again")
            first.more(200)
            second.more(200)


@on_boards
def a_cable_between_two_others():
    """b2 and b3 do not reach each other, and the head reaches both."""
    with Spread(3, "0-3@here|4-7@b2|8-11@b3") as fleet:
        fleet.serving()
        with fleet.load() as load:
            load.more(200)
            fleet.network.cut("b2", "b3")
            fleet.network.cut("b3", "b2")
            why = fleet.alone()
            load.more(200)
            links = fleet.head.links()
            check(links["b2"]["up"] and links["b3"]["up"], "the head lost a link, too:", links)
            check("b2" in why and "b3" in why, why)
            causes = [e["cause"] for e in fleet.head.daemon.call("History")["events"] if e["model"] == MODEL]
            check("link" in causes, causes)
            fleet.network.mend("b2", "b3")
            fleet.network.mend("b3", "b2")
            fleet.serving()
            load.more(200)


def deadlines_cross_hops():
    """What is left of a frame's time shrinks from board to board; a frame that is late on its way is answered so, once."""
    with Boards(PIPECTL, LINK, "b2", "b3", relays=("b2", "b3")) as b, \
            pc.Connection(b.daemons["head"].frames_path) as whole:
        b.set("0-3@head|4-7@b2|8-11@b3")
        own = pc.Stream(whole, model="digits")
        data = bytes(range(64)) * (own.input_bytes // 64)
        data = pc.struct.pack("<%df" % (own.input_bytes // 4), *[x / 255 for x in data[:own.input_bytes // 4]])
        wanted = own.infer(data).output
        with pc.Connection(b.path("head", "link", "frames.sock")) as c:
            s = pc.Stream(c, model="digits", credits=4)
            b2, b3 = b.relays["b2"], b.relays["b3"]
            check(s.infer(data).output == wanted, "another answer")
            check(b2.wait(1)[0] == b3.wait(1)[0] == 0, "a deadline from nowhere")

            b2.open.clear()
            sent_ns = pc.now_ns()
            s.submit(data, deadline_ns=sent_ns + 60000 * MS)
            until_ns, at_ns = b2.wait(2)
            check(0 < until_ns - at_ns < 60000 * MS, "left at b2:", until_ns - at_ns)
            time.sleep(0.3)  # b2 computes for so long
            b2.open.set()
            check(s.result().output == wanted, "another answer")
            until_ns, at_ns = b3.wait(2)
            check(0 < until_ns - at_ns < (60000 - 300) * MS, "left at b3:", until_ns - at_ns)

            b2.open.clear()
            late = s.submit(data, deadline_ns=pc.now_ns() + 2000 * MS)
            s.submit(data)
            b2.wait(4)
            until_ns, _ = b2.frames[2]  # b2's own: the wire's time is not known, so it ends a little later than the head's
            time.sleep(max(until_ns + MS - pc.now_ns(), 0) / 1e9)
            b2.open.set()
            r = s.result()
            check((r.frame, r.status) == (late, "deadline_exceeded"), r)
            r = s.result()
            check((r.frame, r.status, r.output) == (late + 1, "ok", wanted), r)
            c.ping()
            check(not c.waiting, "a frame was answered twice:", c.waiting)
            check(len(b3.frames) == 3, "b3 was sent the late frame:", b3.frames)


def unused_segments_are_unloaded():
    """And loaded again when they are wanted."""
    with Boards(PIPECTL, LINK, "b2", link_args=("--unused-s", "0.5")) as b:
        client = None

        def until_segments(wanted):
            def segments():
                return [m["name"].split("#")[1] for m in b.daemons["b2"].status()["models"] if "#" in m["name"]]
            until(lambda: client.more(20) or segments() == wanted, wanted, segments)

        b.set("0-2@head|3-11@b2")
        client = Client(b)
        for _ in range(2):
            client.more(100)
            until_segments(["3-11"])
            b.set("0-11@head")
            until_segments([])
            b.set("0-2@head|3-11@b2")
        until_segments(["3-11"])
        client.end()
        check(client.unavailable == 0, client.unavailable)
        check(b.state(b.control.report)["resent"] == 0, b.control.report)


def unused_segments_make_room():
    """A board is asked for more segments than its daemon loads, or its link keeps, before any is unused for long."""
    for most in (4, 64):  # models of a daemon: its own and those of three routes; a link keeps 16 segments
        with Boards(PIPECTL, LINK, "b2", limits={"models": most}) as b:
            b.set("0-2@head|3-11@b2")
            client = Client(b)
            for last in range(9 if most == 64 else 4):
                for route in ("0-%d@head|%d-11@b2", "0-%d@b2|%d-11@head"):
                    b.set(route % (last, last + 1))
                    client.more(5)
            client.end()
            check(client.unavailable == 0, client.unavailable)


CASES = (two_heads_share_boards, a_cable_between_two_others, deadlines_cross_hops, unused_segments_are_unloaded,
         unused_segments_make_room)
main([c for c in CASES if not sys.argv[4:] or c.__name__ in sys.argv[4:]])
