#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped-http over time: many clients at once, daemons that stop, start and hang, models that change, and a clean end."""
import os
import signal
import struct
import tempfile
import threading

import pyclient as pc
import tiny_onnx
from daemon import DIGITS, LIMIT_S, Daemon, check, equal
from http_server import Http, main
from surroundings import needs
from wait import until

SLOWDOWN = float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
RAW = {"Inference-Header-Content-Length": "0"}


def inputs(seed):
    return struct.pack("<256f", *(((seed * 37 + i * i) % 101) / 101 for i in range(256)))


def read(answer):
    status, headers, body = answer
    equal(status, 200, body)
    return body[int(headers["Inference-Header-Content-Length"]):]


def requests(count):
    """So many for a client, fewer where they are slow."""
    return int(count / SLOWDOWN)


class Clients:
    """Threads that send `count` requests each, and compare every answer."""

    def __init__(self, h, threads, count, wanted, model="digits"):
        self.h, self.count, self.wanted, self.model = h, count, wanted, model
        self.wrong, self.answered = [], 0
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]
        for t in self.threads:
            t.start()

    def run(self, number):
        connection = self.h.connect()
        try:
            for i in range(self.count):
                seed = (number * 7 + i) % len(self.wanted)
                if read(self.h.infer(self.model, inputs(seed), RAW, connection=connection)) != self.wanted[seed]:
                    self.wrong.append(seed)
                self.answered += 1
        except BaseException as e:  # pylint: disable=broad-except
            self.wrong.append(e)
        connection.close()

    def join(self):
        for t in self.threads:
            t.join(LIMIT_S)
        equal(self.wrong, [], "wrong answers")
        equal(self.answered, len(self.threads) * self.count)


def many_clients_share_streams():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--streams", "3", "--connections", "64") as h:
        wanted = [read(h.infer("digits", inputs(s), RAW)) for s in range(16)]
        equal(len(set(wanted)), 16, "different inputs")
        clients = Clients(h, 24, requests(40), wanted)
        clients.join()
        check(h.metric("piped_http_streams") <= 3)
        equal(h.metric("piped_frames_admitted_total"), 16 + 24 * requests(40))


def models_share_few_streams():
    with Daemon(models={"digits": DIGITS, "other": DIGITS}) as d, Http(d, "--streams", "2", "--streams-total", "2") as h:
        wanted = [read(h.infer("digits", inputs(s), RAW)) for s in range(16)]
        both = [Clients(h, 5, requests(40), wanted, model) for model in ("digits", "other")]
        for clients in both:
            clients.join()
        check(h.metric("piped_http_streams") <= 2)


def restarts_of_the_daemon_lose_nothing():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--streams", "4", "--reconnect-s", "60") as h:
        wanted = [read(h.infer("digits", inputs(s), RAW)) for s in range(16)]
        clients = Clients(h, 6, requests(300), wanted)
        for goal in (requests(200), requests(700), requests(1200)):
            until(lambda: clients.answered >= goal or clients.wrong, "%d answers" % goal)
            d.stop()
            d.start()
        clients.join()


def an_absent_daemon_is_told():
    with Daemon(models={"digits": DIGITS}) as d:
        d.stop()
        with Http(d, "--reconnect-s", "0.2") as h:
            for answer in (h.infer("digits", inputs(1), RAW), h.get("/v2/health/ready"), h.get("/v2/models"),
                           h.get("/v2/models/digits"), h.get("/status.json")):
                equal(answer[0], 503, answer[2])
                equal(answer[1]["Retry-After"], "1")
                check(d.temp in answer[2]["error"] or "daemon" in answer[2]["error"], answer[2])
            equal(h.get("/v2/health/live")[0], 200)
            equal(h.metric("piped_http_daemon_up"), 0)
            d.start()
            until(lambda: h.get("/v2/health/ready")[0] == 200, "ready")
            read(h.infer("digits", inputs(1), RAW))


def a_failed_model_is_told():
    with Daemon(config={"models": [{"name": "digits", "path": DIGITS}, {"name": "gone", "path": "/nonexistent.onnx"}]}) as d, \
            Http(d) as h:
        h.refused(503, "model gone could not be loaded: ", h.get("/v2/health/ready"))
        h.refused(503, "could not be loaded", h.get("/v2/models/gone/ready"))
        equal(h.get("/v2/models/digits/ready")[0], 200)
        read(h.infer("digits", inputs(1), RAW))


def models_come_go_and_change():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h, tempfile.TemporaryDirectory() as folder:
        wanted = read(h.infer("digits", inputs(1), RAW))
        d.call("Unload", {"name": "digits"})
        h.refused(404, "digits", h.infer("digits", inputs(1), RAW))
        until(lambda: h.get("/v2/models/digits")[0] == 404, "no model")
        other = os.path.join(folder, "other.onnx")
        tiny_onnx.write(other, [("conv", 4, 3), ("relu",), ("linear", 7)], channels=1, size=8)
        d.call("Load", {"name": "digits", "path": other})
        equal(len(read(h.infer("digits", bytes(256), RAW))), 28)
        h.refused(400, "the first takes 256 bytes and the body has 1024", h.infer("digits", inputs(1), RAW))
        d.call("Unload", {"name": "digits"})
        d.call("Load", {"name": "digits", "path": DIGITS})
        equal(read(h.infer("digits", inputs(1), RAW)), wanted)


class Hanging:
    """The daemon is stopped (SIGSTOP) while a request waits for its answer."""

    def __init__(self, d, h):
        self.d, self.h = d, h
        self.answers = []
        read(h.infer("digits", inputs(1), RAW))
        d.signal(signal.SIGSTOP)
        self.thread = threading.Thread(target=lambda: self.answers.append(h.infer("digits", inputs(1), RAW)))
        self.thread.start()
        until(lambda: h.metric("piped_http_streams_busy") == 1, "a frame under way")

    def go_on(self):
        self.d.signal(signal.SIGCONT)
        self.thread.join(LIMIT_S)
        return self.answers[0]


def limits_and_deadlines_have_codes():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--streams", "1", "--queue", "1") as h:
        hanging = Hanging(d, h)
        h.refused(504, "deadline_exceeded", h.infer("digits", {"parameters": {"timeout": 100000}, "inputs": []}))
        waits = threading.Thread(target=lambda: hanging.answers.append(h.infer("digits", inputs(2), RAW)))
        waits.start()
        until(lambda: h.metric("piped_http_waiting") == 1, "a request that waits")
        answer = h.infer("digits", inputs(3), RAW)
        h.refused(429, "1 requests may wait (--streams, --streams-total, --queue)", answer)
        equal(answer[1]["Retry-After"], "1")
        hanging.go_on()
        waits.join(LIMIT_S)
        equal([a[0] for a in hanging.answers], [200, 200])
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--answer-s", "0.3") as h:
        read(h.infer("digits", inputs(1), RAW))
        d.signal(signal.SIGSTOP)
        h.refused(504, "has not answered in time", h.infer("digits", inputs(1), RAW))
        d.signal(signal.SIGCONT)
        until(lambda: h.infer("digits", inputs(1), RAW)[0] == 200, "an answer in time")


def a_user_leaves_places_of_the_queue():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--streams", "1", "--queue", "4") as h:
        hanging = Hanging(d, h)
        waits = [threading.Thread(target=lambda: hanging.answers.append(h.infer("digits", inputs(2), RAW))) for _ in range(3)]
        for t in waits:
            t.start()
        until(lambda: h.metric("piped_http_waiting") == 3, "three requests that wait")
        h.refused(429, "4 requests may wait", h.infer("digits", inputs(3), RAW))
        hanging.go_on()
        for t in waits:
            t.join(LIMIT_S)
        equal([a[0] for a in hanging.answers], [200] * 4)


@needs("other users")
def a_user_leaves_a_stream_for_others():
    """Of 8 streams one user has 7, however many of its requests wait; the next place is for who has fewest."""
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        read(h.infer("digits", inputs(1), RAW))
        d.signal(signal.SIGSTOP)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(h.infer("digits", inputs(2), RAW)[0])) for _ in range(10)]
        for t in threads:
            t.start()
        until(lambda: h.metric("piped_http_streams_busy") + h.metric("piped_http_waiting") == 10, "ten requests")
        equal(h.metric("piped_http_streams_busy"), 7)
        with pc.user(65534):  # now: a connection that says nothing for long is cut
            polite = h.connect()
            polite.connect()
        threads.append(threading.Thread(target=lambda: answers.append(h.infer("digits", inputs(3), RAW, connection=polite)[0])))
        threads[-1].start()
        until(lambda: h.metric("piped_http_streams_busy") == 8, "the stream that is left")
        equal(h.metric("piped_http_waiting"), 3)
        d.signal(signal.SIGCONT)
        for t in threads:
            t.join(LIMIT_S)
        equal(answers, [200] * 11)
        polite.close()


def what_was_admitted_is_answered_at_the_end():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        idle = h.connect()
        equal(h.get("/v2", connection=idle)[0], 200)
        hanging = Hanging(d, h)
        h.process.send_signal(signal.SIGTERM)
        try:
            # An answer from the very moment is 200 and ends its connection: nobody accepts another one.
            until(lambda: h.get("/v2", connection=idle)[1]["Connection"] == "close", "the end has begun")
        except (ConnectionError, OSError):
            pass
        equal(hanging.go_on()[0], 200, "the answer of a frame that was under way")
        equal(hanging.answers[0][1]["Connection"], "close")
        idle.close()


main((many_clients_share_streams, models_share_few_streams, restarts_of_the_daemon_lose_nothing,
      an_absent_daemon_is_told, a_failed_model_is_told, models_come_go_and_change, limits_and_deadlines_have_codes,
      a_user_leaves_places_of_the_queue, a_user_leaves_a_stream_for_others, what_was_admitted_is_answered_at_the_end))
