#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl top: as text, and in a real pseudo terminal of several sizes; keys, resizing, a daemon that is restarted, odd
names, and the terminal as it was at the end."""
import copy
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unicodedata

from daemon import DIGITS, PIPECTL, Daemon, check, equal, main
from terminal import Terminal
from surroundings import needs

ODD = "e\x1b[2Jv\x07il\x9b1m\r\n\u202e\u6885\u82b1-\u00e9"  # what a name must not do to a terminal


def unit(number, ms):
    return {"unit": number, "name": "conv%d" % number, "kind": "Conv", "primitive": "wino", "ewma_ms": ms, "time_ms": ms}


def full_status():
    """A daemon that has everything: models, a route, boards, clocks, heat."""
    stages = [{"stage": i, "units": "%d-%d" % (2 * i, 2 * i + 1), "ep": ep, "cpus": cpus, "width": len(cpus), "replicas": 1,
               "busy": busy, "queue": i, "service_ms": 2.0, "expected_ms": 1.0 + i}
              for i, (ep, cpus, busy) in enumerate((("big", [4, 5, 6, 7], 0.98), ("little", [0, 1], 0.31)))]
    route = {"boards": "auto", "serving": True, "why": "", "route": "0-1@here|2-3@b2*600+b3*400", "number": 7, "phase": "ready",
             "answered": 500, "sent": 500, "resent": 3, "returned": 2, "here": 7, "in_flight": 4, "hops": [
                 {"units": "0-1", "boards": [{"name": "here", "share": 1000, "up": True}], "service_ms": 3.0},
                 {"units": "2-3", "boards": [{"name": "b2", "share": 600, "up": True}, {"name": ODD, "share": 400, "up": False}],
                  "service_ms": 4.0}]}
    model = {"name": "net", "units": 4, "plan": "0-1@bigx4|2-3@littlex2", "algorithm": "exact", "epoch": 3, "fps": 10.0,
             "latency_ms": {"p50": 12.5, "p95": 20.0, "p99": 31.25, "max": 40.0}, "in_flight": 2, "waiting": 1,
             "frames": {"admitted": 600, "answered": 590, "dropped": 7, "failed": 1}, "tuning": False, "stages": stages,
             "warnings": [], "route": route}
    other = dict(copy.deepcopy(model), name=ODD, route=None, fps=99.0, warnings=["teams \x1b]0;share\x07 cores"])
    policy = {"policy": 4, "cpus": [4, 5, 6, 7], "limit_khz": 1800000, "max_freq_khz": 2400000, "by_heat": True}
    eps = [{"name": "big", "cpus": [4, 5, 6, 7], "kind": "A76", "policy": 4, "governor": "schedutil", "freq_khz": 1700000,
            "max_freq_khz": 2400000, "used": True},
           {"name": "little", "cpus": [0, 1], "kind": "A55", "policy": 0, "governor": None, "freq_khz": None,
            "max_freq_khz": None, "used": False}]
    boards = [{"name": "b2", "up": True, "for_s": 12, "link": {"message_us": 236.0, "kilobyte_us": 8.0},
               "memory_bytes": 8 << 30, "eps": [{"name": "big", "cores": 2, "speed": 1.0}]},
              {"name": ODD, "up": False, "for_s": 9000, "link": None, "memory_bytes": 0, "eps": []}]
    return {"state": "serving", "version": "0.1.0", "pid": 7, "uptime_s": 3725.0, "models": [model, other], "eps": eps,
            "sensors": {"policies": [policy], "thermal": [{"type": "soc", "temp_c": 81.5, "past_trip": True}],
                        "throttled": True, "psi": {"cpu_some_avg10": 12.25}, "cgroup": {"quota_cpus": "none"}},
            "boards": boards, "memory": {"resident_bytes": 123 << 20}, "failed_models": []}


def wish(status):
    """net has wishes, and all models are planned together."""
    net = status["models"][0]
    net["wishes"] = {"rate": 60, "weight": 1, "class": 0, "deadline_ms": 40, "max_share": 1}
    net["frames"].update(due=400, late=10)
    row = {"model": "net", "rate": 42.5, "share": 0.61, "served_bound_ms": 18.1, "busy": {"big": 0.98, "little": 0.31}}
    refused = {"text": "Frames of net may be late on big, core 1 of 4: unit 3 of net runs too long."}
    status["mix"] = {"models": [row], "cores": [{"ep": "big", "limits": 0.9}, {"ep": "little", "limits": 0.1}], "rates": True,
                     "of_wishes": 0.708, "served_of_bound": 0.972, "refused": refused}


def event(number):
    return {"id": number, "at": "2026-03-01T10:20:%02d.123Z" % number, "model": ODD if number % 2 else "net", "cause": "heat",
            "detail": "cpu4-7 may only reach 1.8 of 2.4 GHz, number %d" % number, "algorithm": "exact", "outcome": "serving",
            "plan_after": "0-1@bigx4|2-3@littlex2", "fps_before": 100.0, "fps_after": 80.0}


class FakeDaemon:
    """Answers as full_status() says; each Status is a second later, and its models have answered 50 frames more."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="piped-test-")
        self.path = os.path.join(self.folder, "control.sock")
        self.status = full_status()
        self.listener = None
        self.mute = False

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def reply(self, method, parameters):
        if method == "Status":
            self.status["uptime_s"] += 1
            for m in self.status["models"]:
                m["frames"]["answered"] += 50
            return {"status": self.status}
        if method == "Units":
            return {"units": [unit(i, 0.1 * (i % 7 + 1)) for i in range(60)]}
        if method == "PlanExplain":
            return {"explanation": {"model": "net", "boards": {"number": 7, "hops": [{"predicted_ms": 2.0},
                                                                                    {"predicted_ms": 5.0}]}}}
        events = [event(i) for i in range(20)]
        events.insert(19, dict(event(18), model="net-1234abcd#2-3"))
        return {"events": events[-parameters.get("limit", 20):]}

    def serve(self, sock):
        buffer = b""
        while True:
            data = sock.recv(65536)
            if not data:
                sock.close()
                return
            buffer += data
            while b"\0" in buffer:
                text, buffer = buffer.split(b"\0", 1)
                call = json.loads(text)
                reply = self.reply(call["method"].rsplit(".", 1)[1], call["parameters"])
                try:
                    sock.sendall(b"" if self.mute else json.dumps({"parameters": reply}).encode() + b"\0")
                except OSError:  # the program left
                    return


def once(path, *args, env=None, expect=0):
    r = subprocess.run([PIPECTL, "--socket", path, "top", "--interval", "0.1"] + list(args), capture_output=True, check=False,
                       timeout=120, stdin=subprocess.DEVNULL, env=dict(os.environ, **{"LC_ALL": "C.UTF-8", **(env or {})}))
    equal(r.returncode, expect, r.stderr.decode())
    return r.stdout.decode(), r.stderr.decode()


def only_text(text):
    wrong = [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")]
    equal(wrong, [], text)


def has(text, *words):
    for word in words:
        check(word in text, repr(word), "is not in\n" + text)


def top(path, rows=24, columns=80, args=("--interval", "0.2"), **env):
    return Terminal([PIPECTL, "--socket", path, "top"] + list(args), rows, columns, env=env)


# ---- as text

def text_of_a_real_daemon():
    with Daemon(models={"digits": DIGITS, "second": DIGITS}) as d:
        d.pipectl("bench", "--model", "digits", "--frames", "50")
        text, _ = once(d.control_path)
        only_text(text)
        has(text, "piped 0.1.0  serving", "digits  12 units by", "second  12 units by", "frames/s", "admitted 0.0", "stage  units",
            "last decisions", "start: serving")
        check("boards" not in text, "an empty table", text)
        text, _ = once(d.control_path, "--once", "--model", "second")
        check("digits  12" not in text, text)
        _, error = once(d.control_path, "--model", "third", expect=1)
        has(error, "third")
        _, error = once(d.control_path, "--interval", "0", expect=2)
        has(error, "--interval needs seconds")
        shown = d.pipectl("top", "--interval", "0.1")
        equal(sorted(shown), ["events", "rates", "status"])
        equal(shown["rates"]["digits"]["answered"], 0)
        equal(shown["rates"]["digits"]["resent"], None)
    _, error = once("/nowhere/control.sock", expect=3)
    has(error, "not reachable")


def text_of_everything():
    with FakeDaemon() as d:
        wish(d.status)
        text, _ = once(d.path)
    only_text(text)
    check("net-1234abcd" not in text, "a decision of a segment:", text)
    has(text, "50.0", "0-1@bigx4|2-3@littlex2", "+100 %", "0-1@here|2-3@b2*600+b3*400", "3 sent again", "7 wholly here",
        "1000", "by heat", "81.5 C (above its trip point)", "12.2 %", "heat: serving by exact, 100.0 to 80.0 frames/s",
        "60 %", "-20 %", "+50 %",
        "is to have 60 frames/s, each due within 40 ms  late 2.5 %",
        "planned: 42.5 frames/s, each within 18.1 ms, with 98 % of big and 31 % of little",
        "one plan: 97.2 % of what these cores could ever do, limited by big", "not all rates can be kept: 70.8 % of each can",
        "Frames of net may be late on big, core 1 of 4: unit 3 of net runs too long.",
        "there", "away", "2 h", "8192", "e?[2Jv?il?1m???\u6885\u82b1-\u00e9", "\u2588")
    for line in text.splitlines():
        check(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) <= 80, line)


def text_without_utf8():
    with FakeDaemon() as d:
        text, _ = once(d.path, env={"LC_ALL": "C"})
    check(text.isascii(), text)
    has(text, "##########", "-?")


# ---- in a terminal

def in_a_terminal(case):
    """Skips the case in a build without ncurses, or where there is no pseudo-terminal."""
    with open(PIPECTL, "rb") as f:
        there = b"built without ncurses" not in f.read()
    if not there:
        case = functools.wraps(case)(lambda: "pipectl was built without ncurses")
    return needs("pseudo-terminals")(case)


@in_a_terminal
def sizes_and_keys():
    with FakeDaemon() as d, top(d.path) as t:
        text = t.wait(lambda x: "50.0" in x and "q quit" in x)
        has(text, "piped 0.1.0  serving", "stage  units", "route ", "message us", "governor", "more rows: down")
        check(text.split("\n")[23].startswith("q quit"), text)
        t.send("n")
        t.wait(lambda x: "> e?[2Jv?il" in x and "warning: teams ?]0;share? cores" in x)
        t.send("p")
        t.wait(lambda x: "> net" in x)
        t.send("s")
        t.wait(lambda x: "s sort: load" in x and x.index("  e?[2Jv?il") < x.index("> net"))  # it has more frames
        t.send("u")
        t.wait(lambda x: "ms a frame together" in x and "conv6 " in x)
        t.send("\x1bOB\x1bOB\x1b[6~")
        t.wait(lambda x: "conv6 " not in x and "more rows" in x)
        t.send("m\x1b[6~")
        t.wait(lambda x: "newest first" in x and "governor" in x)
        t.send("d")
        t.wait(lambda x: "newest first" in x and "number 19" in x and "governor" not in x)
        t.send("h")
        t.wait(lambda x: "page down" in x)
        t.send("m")
        t.resize(20, 60)
        text = t.wait(lambda x: "> net" in x and "q quit" in x.split("\n")[19])
        has(text, "frames/s", "failed", "waiting")
        t.resize(50, 200)
        text = t.wait(lambda x: "q quit" in x.split("\n")[49] and "number 19" in x)
        has(text, "cpus", "expected ms", "places", "governor")
        t.resize(2, 10)
        t.wait(lambda x: x.startswith("piped"))
        t.resize(24, 80)
        t.wait(lambda x: "q quit" in x.split("\n")[23])
        t.send(" ")
        t.wait(lambda x: "paused" in x)
        t.send(" ")
        t.wait(lambda x: "paused" not in x and "serving" in x)
        t.send("q")
        equal(t.wait_end(), 0)
        check(t.restored(), "the terminal is not as it was")
        equal(t.unknown, [])


@in_a_terminal
def wishes_fit_a_terminal():
    with FakeDaemon() as d:
        wish(d.status)
        with top(d.path) as t:
            t.wait(lambda x: all(w in x for w in ("wished   late", "60  2.5 %", "61 %", "planned: 42.5 frames/s")))
            t.send("q")
            equal(t.wait_end(), 0)


@in_a_terminal
def ascii_where_the_locale_has_no_more():
    with FakeDaemon() as d, top(d.path, LC_ALL="C") as t:
        t.wait(lambda x: "####" in x and "50.0" in x)
        t.send("q")
        equal(t.wait_end(), 0)
        check(t.bytes.isascii(), t.bytes)


@in_a_terminal
def signals_restore_the_terminal():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with FakeDaemon() as d, top(d.path) as t:
            t.wait(lambda x: "q quit" in x)
            check(not t.restored(), "the test sees no difference")
            os.kill(t.pid, number)
            equal(t.wait_end(), -number)
            check(t.restored(), "the terminal is not as it was after", number)


@in_a_terminal
def a_daemon_that_is_restarted():
    d = Daemon(models={"digits": DIGITS})
    with top(d.control_path) as t:
        try:
            t.wait(lambda x: "waits: No such file or directory at " in x)  # it is not there yet
            d.start()
            t.wait(lambda x: "serving" in x and "digits  12 units" in x and "waits: " not in x)
            d.stop()
            t.wait(lambda x: "waits: " in x and "digits  12 units" in x)
            d.start()
            t.wait(lambda x: "serving" in x and "waits: " not in x)
            d.stop()
        finally:
            d.cleanup()
        t.send("q")
        equal(t.wait_end(), 0)
        check(t.restored(), "the terminal is not as it was")


@in_a_terminal
def a_daemon_that_does_not_answer():
    with FakeDaemon() as d, top(d.path) as t:
        t.wait(lambda x: "serving" in x)
        d.mute = True
        t.wait(lambda x: "waits: no answer for" in x)
        t.send("d")
        t.wait(lambda x: "number 19" in x)
        t.send("q")
        equal(t.wait_end(), 0)


@in_a_terminal
def an_unknown_terminal():
    with top("/nowhere/control.sock", TERM="no-such-terminal") as t:
        equal(t.wait_end(), 1)
        has(t.text(), "is not known", "--once")


main([text_of_a_real_daemon, text_of_everything, text_without_utf8, sizes_and_keys, wishes_fit_a_terminal,
      ascii_where_the_locale_has_no_more, signals_restore_the_terminal, a_daemon_that_is_restarted,
      a_daemon_that_does_not_answer, an_unknown_terminal])
