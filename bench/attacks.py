#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on piped-http and piped-link that once succeeded: what they do now.

usage: attacks.py [--build DIR] [--model FILE] [--seconds S] [ROW...]

ROW: a part of a name. Each row starts programs of its own, attacks them as one user (GREEDY), and asks them as another
(POLITE). Prints counts, memory, and the polite user's p50 and p99. Needs root, to be several users.
"""
import argparse
import contextlib
import http.client
import os
import struct
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GREEDY, POLITE, OTHERS = 65533, 65534, (1301, 1302, 1303)
CONNECTIONS, CREDITS, ROUTE = 14, 16, "0-12@here|13-25@b2"
MIB = 1 << 20
DIGIT, RAW = struct.pack("<256f", *([0.25] * 256)), {"Inference-Header-Content-Length": "0"}
sys.path[:0] = [os.path.join(ROOT, *p) for p in (("tests", "boards"), ("tests", "system"), ("tests", "lint"), ("bench",))]


def arguments():
    p = argparse.ArgumentParser(description="attacks on piped-http and piped-link")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--model", default=os.path.join(ROOT, "model", "networks", "squeezenet1_1.json"), help="for boards: 26 units")
    p.add_argument("--seconds", type=float, default=10, help="of a polite user, in a row")
    p.add_argument("rows", nargs="*")
    return p.parse_args()


OPTIONS = arguments()
os.environ["PIPED_BUILD"] = OPTIONS.build
import machine  # noqa: E402  (the folders are known only now)
import pyclient as pc  # noqa: E402
from daemon import DIGITS, Daemon  # noqa: E402
from hop_boards import Boards  # noqa: E402
from http_attacks import PNG, Slow, memory, png  # noqa: E402
from http_server import Http  # noqa: E402


def spread(ms):
    """Return: a text of round trips in ms."""
    ms = sorted(ms)
    return "p50 %.1f p99 %.1f ms of %d" % (ms[len(ms) // 2], ms[len(ms) * 99 // 100], len(ms)) if ms else "no answer"


# ---- piped-http ----

def asks(h, seconds):
    """A polite user, 20 requests a second, each on a connection of its own. Return: round trips in ms, and how many failed."""
    trips, failed, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            with pc.user(POLITE):
                c = http.client.HTTPConnection("127.0.0.1", h.port, timeout=5)
                c.connect()
            c.request("POST", "/v2/models/digits/infer", DIGIT, RAW)
            failed += c.getresponse().status != 200
            trips.append(1000 * (time.monotonic() - begun))
            c.close()
        except (OSError, http.client.HTTPException):
            failed += 1
        time.sleep(max(0, begun + 0.05 - time.monotonic()))
    return trips, failed


def polite_http(h, seconds=None):
    trips, failed = asks(h, seconds or OPTIONS.seconds)
    return "others: %s, %d not answered" % (spread(trips), failed)


@contextlib.contextmanager
def http_server(*args):
    with Daemon(models={"digits": DIGITS}) as d, Http(d, *args) as h:
        h.infer("digits", DIGIT, RAW)
        yield h


def memory_text(h, before):
    return "RSS %d -> %d MiB, most %d" % (before, memory(h, "VmRSS") / MIB, memory(h, "VmHWM") / MIB)


def http_alone():
    with http_server() as h:
        return polite_http(h)


def two_pictures():
    """Wide, then high; of 16 megapixels each, 46 KB."""
    with http_server() as h:
        before = memory(h, "VmRSS") / MIB
        status = [h.infer("digits", png(*size, 3), PNG)[0] for size in ((16000, 1000), (1000, 16000))]
        return "%s, answered %s" % (memory_text(h, before), status)


def many_pictures():
    """Of 16 megapixels and odd shapes on 16 connections, for as long as the polite user asks."""
    sizes = ((16000, 1000), (1000, 16000), (4000, 4000), (15000, 1060))
    pictures = [png(*size, 3) for size in sizes]
    with http_server() as h:
        before, end, status = memory(h, "VmRSS") / MIB, threading.Event(), []

        def send(i):
            while not end.is_set():
                status.append(h.infer("digits", pictures[i % len(pictures)], PNG)[0])
        threads = [threading.Thread(target=send, args=(i,)) for i in range(16)]
        for t in threads:
            t.start()
        said = polite_http(h)
        end.set()
        for t in threads:
            t.join()
        counts = {s: status.count(s) for s in sorted(set(status))}
        return "%s, pictures by status %s; %s" % (memory_text(h, before), counts, said)


def slow_connections():
    """64 of one user that is no member of any group; each is made again when it ends."""
    with http_server() as h:
        with Slow(h, [GREEDY], 64):
            return polite_http(h)


def parts_of_methods():
    with http_server() as h:
        said = []
        for method in ("GE", "T", "OS", "GET", "get", "POS"):
            with h.raw() as s:
                s.sendall(("%s /v2/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % method).encode())
                said.append("%s %s" % (method, s.recv(4096).split(b" ")[1].decode()))
        return ", ".join(said)


# ---- piped-link ----

@contextlib.contextmanager
def boards():
    programs = [os.path.join(OPTIONS.build, "apps", name) for name in ("pipectl/pipectl", "link/piped-link")]
    with Boards(*programs, "b2", boards=ROUTE, model=OPTIONS.model) as b:
        head = b.daemons["head"]
        while not route_of(b)["serving"]:
            time.sleep(0.05)
        for path in (head.temp, head.runtime_dir, b.top.name, b.path("head"), b.path("head", "link")):
            os.chmod(path, 0o755)
        for path in (head.frames_path, link_of(b)):
            os.chmod(path, 0o666)
        yield b


def route_of(b):
    return b.daemons["head"].status()["models"][0]["route"]


def link_of(b):
    return b.path("head", "link", "frames.sock")


class Frames:
    """A user's stream on a connection of its own."""

    def __init__(self, path, uid, credits=1):
        with pc.user(uid):
            self.connection = pc.Connection(path)
        self.stream = pc.Stream(self.connection, model="digits", inline=True, credits=credits)
        self.data = bytes(self.stream.in_size)


class Greedy:
    """Connections that are kept full until the block is left; `answers` counts."""

    def __init__(self, path, uid=GREEDY, connections=CONNECTIONS, credits=CREDITS):
        self.answers, self.ended = 0, False
        self.all = [Frames(path, uid, credits) for _ in range(connections)]
        self.threads = [threading.Thread(target=self.run, args=(f,), daemon=True) for f in self.all]

    def run(self, f):
        with contextlib.suppress(OSError, pc.Closed):
            for _ in range(f.stream.credits):
                f.stream.submit(f.data)
            while not self.ended:
                f.stream.result()
                self.answers += 1
                f.stream.submit(f.data)

    def __enter__(self):
        for t in self.threads:
            t.start()
        time.sleep(2)  # until they fill what they can, and the window was measured
        return self

    def __exit__(self, *_):
        self.ended = True
        for f in self.all:
            f.connection.close()


def polite_frames(path, greedy=None, seconds=None):
    """10 frames a second. Return: a text."""
    polite, trips, passed = Frames(path, POLITE), [], []
    end = time.monotonic() + (seconds or OPTIONS.seconds)
    while time.monotonic() < end:
        begun, before = time.monotonic(), greedy.answers if greedy else 0
        if polite.stream.infer(polite.data).status != "ok":
            return "a frame failed"
        trips.append(1000 * (time.monotonic() - begun))
        passed.append((greedy.answers if greedy else 0) - before)
        time.sleep(max(0, begun + 0.1 - time.monotonic()))
    polite.connection.close()
    more = "; frames of the greedy user meanwhile: median %d, most %d" % (sorted(passed)[len(passed) // 2], max(passed))
    return spread(trips) + (more if greedy else "")


def head_alone():
    with Daemon(models={"digits": OPTIONS.model}) as d:
        for path in (d.temp, d.runtime_dir):
            os.chmod(path, 0o755)
        os.chmod(d.frames_path, 0o666)
        alone = polite_frames(d.frames_path)
        with Greedy(d.frames_path) as g:
            return "alone %s; beside: %s" % (alone, polite_frames(d.frames_path, g))


def greedy_on(socket_of):
    with boards() as b:
        path = b.daemons["head"].frames_path
        alone = polite_frames(path)
        with Greedy(socket_of(b)) as g:
            beside = polite_frames(path, g)
        after = polite_frames(path, seconds=0.5)
        return "alone %s; beside: %s; window %d; when it has left: %s" % (alone, beside, route_of(b)["window"], after)


def by_the_daemon():
    return greedy_on(lambda b: b.daemons["head"].frames_path)


def by_the_links_own_socket():
    return greedy_on(link_of)


def silent_on_the_link():
    """Silent connections of one user, then of three more; can the daemon connect anew, and a user who has none?"""
    with boards() as b:
        held = []
        for uid in (GREEDY, *OTHERS):
            for _ in range(64):
                with contextlib.suppress(OSError, pc.Closed), pc.user(uid):
                    held.append(pc.socket.socket(pc.socket.AF_UNIX))
                    held[-1].connect(link_of(b))
        got = Frames(link_of(b), POLITE)
        status = got.stream.infer(got.data).status
        b.daemons["head"].__exit__(None, None, None)
        b.start_daemon("head")
        end, head = time.monotonic() + 30, b.daemons["head"]
        while not route_of(b)["serving"] and time.monotonic() < end:
            time.sleep(0.05)
        served = Frames(head.frames_path, 0)
        for _ in range(20):
            served.stream.infer(served.data)
        for s in held:
            s.close()
        return "%d connections; a frame of another user: %s; after a restart of piped %d of 20 frames by boards" % (
            len(held), status, route_of(b)["sent"])


ROWS = {
    "http, alone": http_alone,
    "http, two pictures": two_pictures,
    "http, many pictures": many_pictures,
    "http, 64 slow connections": slow_connections,
    "http, parts of methods": parts_of_methods,
    "frames, by the head alone": head_alone,
    "boards, greedy by the daemon": by_the_daemon,
    "boards, greedy by piped-link's socket": by_the_links_own_socket,
    "boards, silent on piped-link's socket": silent_on_the_link,
}


def main():
    if os.geteuid() != 0:
        sys.exit("attacks.py: needs root, to be several users")
    about = machine.machine()
    print("%s, %d cores, Linux %s, load %.1f" % (about["cpu"], about["cores"], about["kernel"], about["load"]))
    for name, row in ROWS.items():
        if not OPTIONS.rows or any(r in name for r in OPTIONS.rows):
            print("%-40s %s" % (name, row()), flush=True)


main()
