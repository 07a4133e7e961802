#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What users of a model that several boards serve cost each other: by counts and the order of answers, not by times.

usage: test_sharing.py SOURCE_ROOT LINK PIPECTL [CASE...]     (PIPED_BUILD: the build folder)
"""
import os
import select
import sys
from statistics import median

ROOT, LINK, PIPECTL = sys.argv[1:4]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import pyclient as pc  # noqa: E402  (the folders are known only now)
from cases import check, main  # noqa: E402
from daemon import Daemon  # noqa: E402
from hop_boards import Boards  # noqa: E402
from surroundings import needs  # noqa: E402
from wait import asked, until  # noqa: E402

GREEDY, POLITE = 1201, 1202
CONNECTIONS = 14
POLITE_FRAMES = 40
LARGE = os.path.join(ROOT, "model", "networks", "squeezenet1_1.json")  # computing takes longer than sending
LARGE_BYTES = 3 * 224 * 224 * 4
REPORTS = 4  # with other counts: then the route has been full between two of them
AGAIN = "again"  # what was counted so far does not count
LEFT_OVER = 2  # frames of the greedy user that fair queueing may put before one that comes


class Streams:
    """Streams of one user, each on a connection of its own; all inputs are the same, and so are the answers."""

    def __init__(self, path, uid, count, credits, data=None):
        with pc.user(uid):
            self.connections = [pc.Connection(path) for _ in range(count)]
        self.streams = [pc.Stream(c, model="digits", inline=True, credits=credits) for c in self.connections]
        self.data = data or pc.struct.pack("<256f", *[i / 256 for i in range(256)])
        self.last = [0] * count
        self.credits = credits

    def fill(self):
        for s in self.streams:
            for _ in range(self.credits):
                s.submit(self.data)

    def take(self, i, wanted):
        """Takes the next answer of one of them. Return: it."""
        r = self.streams[i].result()
        check(r.status == "ok" and r.frame == self.last[i] + 1, "frame", self.last[i] + 1, "of", i, r)
        check(r.output == wanted, "another answer to frame", r.frame)
        self.last[i] = r.frame
        return r

    def take_first(self):
        """Return: the output of the first answer, which others are compared with."""
        r = self.streams[0].result()
        check((r.status, r.frame) == ("ok", 1), r)
        self.last[0] = 1
        return r.output

    def close(self):
        for c in self.connections:
            c.close()


def open_daemon(daemon):
    for path in (daemon.temp, daemon.runtime_dir):
        os.chmod(path, 0o755)
    os.chmod(daemon.frames_path, 0o666)


def open_to_all(boards):
    for path in (boards.top.name, boards.path("head"), boards.path("head", "link")):
        os.chmod(path, 0o755)
    os.chmod(boards.path("head", "link", "frames.sock"), 0o666)
    open_daemon(boards.daemons["head"])


def until_served(boards):
    """Return: what status says of the route, once frames go by it."""
    def route():
        return boards.daemons["head"].status()["models"][0]["route"]
    until(lambda: route()["serving"], "a route that serves:", route)
    return route()


def window_of(boards):
    return boards.daemons["head"].status()["models"][0]["route"]["window"]


def stand_before(path, user, look=lambda: None, by=None):
    """A greedy user, and a polite one who sends a frame when the last one is answered. @user: of Streams, beside path and uid.
    @by: the greedy user's way; None: the same. @look: called at each answer of the polite user; AGAIN begins anew. Return: how
    many frames of the greedy user were answered between the arrival of each polite frame and its answer, by the daemon's
    clock, sorted."""
    polite = Streams(path, POLITE, 1, 1, user.get("data"))
    polite.fill()
    wanted = polite.take_first()
    greedy = Streams(by or path, GREEDY, **user)
    of = {c.sock.fileno(): i for i, c in enumerate(greedy.connections)}
    done, mine = [], []
    greedy.fill()
    own = polite.connections[0].sock.fileno()
    polite.fill()
    while len(mine) < POLITE_FRAMES:
        for fd in select.select([own, *of], [], [])[0]:
            if fd == own:
                mine.append(polite.take(0, wanted))
                if look() == AGAIN:
                    mine.clear()
                polite.fill()
            else:
                done.append(greedy.take(of[fd], wanted).done_ns)
                greedy.streams[of[fd]].submit(greedy.data)
    greedy.close()
    polite.close()
    return sorted(sum(r.done_ns - r.queue_ns - r.service_ns < t <= r.done_ns for t in done) for r in mine)


def stand_before_over_boards(past_daemon=False):
    """@past_daemon: the greedy user connects to piped-link itself. Return: the widest window of the route, frames of the greedy
    user before each of the polite one's, the route at the end."""
    with Boards(PIPECTL, LINK, "b2", boards="0-5@here|6-11@b2") as b:
        until_served(b)
        open_to_all(b)
        windows = [window_of(b)]
        before = stand_before(b.daemons["head"].frames_path, {"count": CONNECTIONS, "credits": 64},
                              lambda: windows.append(window_of(b)),
                              by=b.path("head", "link", "frames.sock") if past_daemon else None)
        route, widest = until_served(b), max(windows)
    print("  window %d; frames of the greedy user before one: %s" % (widest, before))
    return widest, before, route


@needs("other users")
def a_greedy_user_stands_before_a_polite_one_by_a_window():
    """However many wait, so many of the greedy user go before a polite frame as the route needs to be full."""
    widest, before, route = stand_before_over_boards()
    check(route["sent"] > POLITE_FRAMES, "frames did not go over boards:", route)
    check(0 < widest < CONNECTIONS * 64 / 4, "the window is", widest)
    check(max(before) <= widest + LEFT_OVER, "before a frame of the polite user there were", before)


@needs("other users")
def who_goes_to_the_links_own_socket_has_a_share_there():
    """Past the daemon, and its fair queue, a user has no more frames on the route than the daemon."""
    widest, before, _ = stand_before_over_boards(past_daemon=True)
    check(0 < median(before) <= 2 * widest + LEFT_OVER, "before a frame of the polite user there were", before)


@needs("other users")
def a_greedy_user_costs_no_more_frames_over_boards():
    """Between a polite frame's arrival and its answer, no more of the greedy user's are answered over two boards than by the
    head alone: both have the same cores here, so as many frames keep them busy."""
    user = {"count": 4, "credits": 16, "data": bytes(LARGE_BYTES)}
    with Daemon(models={"digits": LARGE}) as d:
        open_daemon(d)
        alone = stand_before(d.frames_path, user)
    with Boards(PIPECTL, LINK, "b2", boards="0-12@here|13-25@b2", model=LARGE) as b:
        until_served(b)
        of_route = []

        def until_measured():
            """The window follows what was measured, once a second; reports say so. A route that was lost begins anew."""
            now = b.daemons["head"].status()["models"][0]["route"]
            if of_route and now["number"] != of_route[0]["number"]:
                of_route.clear()
            if not of_route or now["answered"] != of_route[-1]["answered"]:
                of_route.append(now)
            return AGAIN if len(of_route) < REPORTS else None
        open_to_all(b)
        boards, most = [], median(alone) + LEFT_OVER

        def no_more_than_alone():
            boards[:] = stand_before(b.daemons["head"].frames_path, user, until_measured)
            return median(boards) <= most
        asked(no_more_than_alone)  # beside a load links are slow at times, and hold more
        route = until_served(b)
        print("  frames of the greedy user before one: %s alone, %s over boards, window %d" % (alone, boards, route["window"]))
        check(route["sent"] > POLITE_FRAMES, "frames did not go over boards:", route)
        check(median(boards) <= most, "more over boards:", boards, "than without:", alone)


def frames_of_a_client_that_left_are_not_sent():
    """Of the daemon: what waits there goes, what its piped-link has and has not sent goes, too."""
    with Boards(PIPECTL, LINK, "b2", boards="0-11@b2", relays=("b2",)) as b:
        relay = b.relays["b2"]
        until_served(b)
        path = b.daemons["head"].frames_path
        polite = Streams(path, 0, 1, 1)
        polite.fill()
        wanted = polite.take_first()
        sent = len(relay.frames)
        relay.open.clear()
        greedy = Streams(path, 0, 4, 64)
        greedy.fill()
        relay.wait(sent + 1)
        greedy.close()
        polite.fill()
        relay.open.set()
        polite.take(0, wanted)
        route = until_served(b)
        print("  window %d; %d frames were sent of %d" % (route["window"], len(relay.frames) - sent, 4 * 64 + 1))
        check(len(relay.frames) - sent < 4 * 64 / 2, len(relay.frames) - sent, "frames were sent:", route)
        polite.close()


def frames_of_a_client_of_the_link_that_left_are_not_sent():
    """Of its 80 frames a share is taken; the others go with their sockets."""
    with Boards(PIPECTL, LINK, "b2", relays=("b2",)) as b:
        relay = b.relays["b2"]
        b.set("0-11@b2")
        path = b.path("head", "link", "frames.sock")
        polite = Streams(path, 0, 1, 1)
        polite.fill()
        wanted = polite.take_first()
        sent = len(relay.frames)
        relay.open.clear()
        greedy = Streams(path, 0, 4, 20)
        greedy.fill()
        relay.wait(sent + 1)
        greedy.close()
        polite.fill()
        relay.open.set()
        polite.take(0, wanted)
        print("  %d of 80 frames were sent" % (len(relay.frames) - sent))
        check(len(relay.frames) - sent < 80 / 2, len(relay.frames) - sent, "frames were sent")
        polite.close()


CASES = (a_greedy_user_stands_before_a_polite_one_by_a_window, a_greedy_user_costs_no_more_frames_over_boards,
         who_goes_to_the_links_own_socket_has_a_share_there, frames_of_a_client_that_left_are_not_sent,
         frames_of_a_client_of_the_link_that_left_are_not_sent)
main([c for c in CASES if not sys.argv[4:] or c.__name__ in sys.argv[4:]])
