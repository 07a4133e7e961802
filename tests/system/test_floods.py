#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A user who floods the daemon with messages that are cheap to send stops neither the frames of another user nor the
watchdog, and gets no larger share of the loop than who else wants one. Without other users (no root) both are one user.

Nothing here measures time; bench/floods.py does.
"""
import os

import flooding
import pyclient as pc
from daemon import DIGITS, HEARTBEAT, LIMIT_S, Daemon, VarlinkError, check, equal, main

GREEDY, SECOND = 4001, 4002
FRAMES, BEATS = 10, 1
CONFIG = {"socket_mode": "0666"}
MODELS = {"digits": DIGITS, "other": DIGITS}
# Each stopped frames for seconds, or for ever, before users shared the loop.
ROWS = ["Metrics, pipelined", "Metrics, oneway", "unknown method, pipelined", "Trace refused", "a large call",
        "OPEN and CLOSE", "OPEN refused", "FRAME refused", "CANCEL", "40 connections, reject",
        "connect to control and leave"]


def open_to_all(d):
    for path in (d.temp, d.runtime_dir):
        os.chmod(path, 0o755)


def loop(v):
    """Return: seconds that the loop spent, by user."""
    return {u["uid"]: u["spent_s"] for u in v.call("io.piped.Status")["status"]["loop"]}


def works(d, v, uid, seconds):
    """Waits until the loop has spent so much more time on a user."""
    before = loop(v).get(uid, 0)
    check(d.wait_until(lambda: loop(v).get(uid, 0) > before + seconds), "the loop does nothing for", uid)


def uid_of(user):
    return user if os.geteuid() == 0 else os.getuid()


def others_are_served():
    with Daemon(models=MODELS, config=CONFIG, env=HEARTBEAT) as d, d.connect() as v, pc.Connection(d.frames_path) as c:
        open_to_all(d)
        s = pc.Stream(c, model="digits", slots=1)
        frame = bytes(s.in_size)
        for name in ROWS:
            with flooding.Flood(d, name, GREEDY, processes=1):
                works(d, v, uid_of(GREEDY), 0.005)
                d.drain_notify()
                for _ in range(FRAMES):
                    equal(s.infer(frame).status, "ok", name)
                for _ in range(BEATS):
                    d.wait_notify(lambda m: m.get("WATCHDOG") == "1", LIMIT_S)


def floods_share_the_loop():
    """Two users flood: calls, each of which takes long, against many messages that are handled at once."""
    if os.geteuid() != 0:
        return "needs root to be two users"
    with Daemon(models=MODELS, config=CONFIG, env=HEARTBEAT) as d, d.connect() as v:
        open_to_all(d)
        with flooding.Flood(d, "CANCEL", GREEDY), flooding.Flood(d, "Units, pipelined", SECOND):
            works(d, v, GREEDY, 0.02)
            works(d, v, SECOND, 0.02)
            before = loop(v)
            works(d, v, GREEDY, 0.5)
            after = loop(v)
        first, second = (after[u] - before[u] for u in (GREEDY, SECOND))
        check(first < 3 * second and second < 3 * first, "the loop spent", first, "s on one user,", second,
              "s on the other")
    return None


def a_flood_alone_is_handled_whole():
    """Pipelined calls and messages are answered, each once and in order, whatever turns they take."""
    refused = flooding.message(pc.OPEN, pc.open_payload("nosuch"), stream=1)
    with Daemon(models=MODELS) as d, d.connect() as v, pc.Connection(d.frames_path) as c:
        for _ in range(300):
            v.send("io.piped.Models")
            v.send("io.piped.GetPlan", {"model": "digits"})
        for _ in range(30):
            c.send_bytes(100 * (refused + flooding.message(pc.PING, b"x")))
            for _ in range(100):
                equal(pc.STATUS[c.expect(pc.OPENED)[0].status], "not_found")
                c.expect(pc.PONG)
        for _ in range(300):
            check("models" in v.receive(), "the reply of Models")
            check("plan" in v.receive(), "the reply of GetPlan")


def shared_replies_are_new():
    """Calls that wait together may share a reply; one that came later never gets an older state."""
    with Daemon(models=MODELS) as d, d.connect() as v, pc.Connection(d.frames_path) as c:
        s = pc.Stream(c, model="digits", slots=1)
        for n in range(1, 20):
            equal(s.infer(bytes(s.in_size)).status, "ok")
            for _ in range(3):
                v.send("io.piped.Status")
            for _ in range(3):
                mine = [x for x in v.receive()["status"]["clients"] if x["streams"]]
                equal([x["answered"] for x in mine], [n])
        v.send("io.piped.Models")
        v.send("io.piped.Unload", {"name": "other"})
        v.send("io.piped.Models")
        before, _, after = v.receive(), v.receive(), v.receive()
        equal([len(m["models"]) for m in (before, after)], [2, 1])


def large_calls_are_for_administrators():
    if os.geteuid() != 0:
        return "needs root to be another user"
    with Daemon(config=CONFIG) as d:
        open_to_all(d)
        large = {"model": "x" * 200000}
        try:
            d.call("io.piped.GetPlan", large)
            check(False, "a model of a strange name")
        except VarlinkError as e:
            equal(e.error, "io.piped.NotFound")
        pid = os.fork()
        if pid == 0:
            os.setgid(GREEDY)
            os.setuid(GREEDY)
            ended = 1
            try:
                d.call("io.piped.GetPlan", large)
            except (EOFError, ConnectionError):
                ended = 0
            finally:
                os._exit(ended)
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "a large call of a user who may change nothing")
    return None


if __name__ == "__main__":
    main([others_are_served, floods_share_the_loop, a_flood_alone_is_handled_whole, shared_replies_are_new,
          large_calls_are_for_administrators])
