#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow and hostile clients of piped-http: each ends within a limit, and others are served meanwhile."""
import random
import re
import select
import struct
import time

from daemon import DIGITS, LIMIT_S, Daemon, check, equal
from http_models import png
from http_server import Http, main, wait

RAW = struct.pack("<256f", *([0.25] * 256))
HEAD = {"Inference-Header-Content-Length": "0"}
PICTURE = png(16, 16, 1, 1)


def serves(h):
    equal(h.infer("digits", RAW, HEAD)[0], 200)


def is_served_again(h):
    """Connections beyond the limit are closed at once, until others have ended."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            return serves(h)
        except OSError:
            continue
    raise AssertionError("no connection got free")


def until_free(h):
    """Until no connection but the asking one has a place: a client sees the end of its own before the server frees it."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            if h.metric("piped_http_connections") <= 1:
                return
        except OSError:
            continue
    raise AssertionError("connections stay open")


def drip(s, text):
    """Sends the text byte by byte, a byte at each look, until the server closes. Return: bytes that were sent."""
    end = time.monotonic() + LIMIT_S
    sent = 0
    while time.monotonic() < end:
        if select.select([s], [], [], 0.02)[0]:
            try:
                if not s.recv(65536):
                    return sent
            except ConnectionResetError:
                return sent
        try:
            s.sendall(text[sent % len(text):][:1])
        except (BrokenPipeError, ConnectionResetError):
            return sent
        sent += 1
    raise AssertionError("a slow client was not disconnected")


def rest(s):
    """What comes until the server closes."""
    data = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return data
            data += more
    except ConnectionResetError:
        return data


def slow_clients_are_cut():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--request-s", "0.4", "--connections", "4") as h:
        for begin in (b"", b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n",
                      b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"):
            with h.raw() as s:
                s.sendall(begin)
                drip(s, b"X-Slow: 1\r\n")
        until_free(h)
        # All places are taken by clients that say nothing; they get free again.
        idle = [h.raw() for _ in range(4)]
        is_served_again(h)
        for s in idle:
            equal(rest(s), b"")
            s.close()
        # Two that dripped (the first line of the other is no HTTP), and the idle ones; one of these may have been closed
        # at once, because the last question's connection still had a place.
        check(h.metric("piped_http_connections_cut_total") >= 5, h.metric("piped_http_connections_cut_total"))


def large_bodies_are_refused():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--body-mb", "0.01", "--memory-mb", "0.024") as h:
        with h.raw() as s:  # before a byte of it is there
            s.sendall(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
            answer = rest(s)
            check(answer.startswith(b"HTTP/1.1 413 ") and b"--body-mb allows 0.01 MB" in answer, answer)
        for size in (12000, 15000):  # chunked: nobody says how large it becomes
            c = h.connect()
            answer = h.request("POST", "/v2/models/digits/infer", iter([b"x" * 500] * (size // 500)), connection=c)
            h.refused(413, "larger than --body-mb", answer)
            c.close()
        with h.raw() as s:  # and without end
            s.sendall(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(1000):
                    s.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            except OSError:
                pass
            check(not rest(s).startswith(b"HTTP/1.1 200"))
        # Bodies of several clients together, once those before are gone: their memory counts, too.
        wait(lambda: h.metric("piped_http_buffered_bytes") == 0, "refused bodies leave nothing behind")
        half = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n" + b"x" * 9000
        held = [h.raw() for _ in range(2)]
        for s in held:
            s.sendall(half)
        wait(lambda: h.metric("piped_http_buffered_bytes") >= 18000, "the bodies")
        h.refused(503, "--memory-mb allows", h.infer("digits", RAW, HEAD))
        for s in held:
            s.close()
        wait(lambda: h.metric("piped_http_buffered_bytes") == 0, "truncated bodies leave nothing behind")
        serves(h)


def bad_json_is_refused():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        inner = '{"inputs":[{"name":"image","shape":[1,1,16,16],"datatype":"FP32","data":%s}]}'
        for text in ("[" * 100000, '{"a":' * 100000, inner % ("[" * 100000), inner % ("[" * 100000 + "]" * 100000), '"' * 99999,
                     inner % '["' + "\\" * 999, inner % "[1,,2]", inner % "[1 2]", inner % "[01]", inner % "[+1]", inner % "[.5]",
                     inner % "[0x10]", inner % "[NaN]", inner % "[1e]", inner % "[[],[]]", inner % "[]", inner % "[1,]",
                     inner % "{}", inner % "null", inner % '"x"', '{"inputs":[{"d\\u0061ta":[1]}]}',
                     (inner % "7").replace('"data"', '"d\\u0061ta"'), (inner % "-1").replace('"data"', '"\\u0064ata"'),
                     (inner % "99999").replace('"data"', '"dat\\u0061"').replace('"inputs"', '"\\u0069nputs"'),
                     (inner % "[1]").replace(',"data"', ',"d\\u0061ta":7,"data"'),
                     (inner % "[1]").replace(',"data"', ',"data\\u0000":[7],"data"'),
                     (inner % "[1]").replace(',"data"', ',"\\ud800":7,"data"'), (inner % "nul"), (inner % "nullx"),
                     "\0\0\0", "{}{}",
                     '{"inputs":[],"inputs":[]}', '{"inputs":{"data":[1]}}', '{"inputs":[[[]]]}', '{"inputs":[7]}',
                     '{"inputs":[{"name":7,"shape":[],"datatype":"FP32","data":[1]}]}', "\xff\xfe", "{", "}", "]"):
            status, _, answer = h.infer("digits", text.encode("latin-1"), {"Content-Type": "application/json"})
            equal(status, 400, (text[:60], answer))
        h.refused(413, "larger than 256 KiB", h.infer("digits", '{"x":"%s"}' % ("y" * 300000)))
        h.refused(400, "at most", h.infer("digits", '{"inputs":[%s]}' % ",".join(["{}"] * 65)))
        serves(h)


def broken_requests_close_their_connection_alone():
    line = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\n"
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--request-s", "1") as h:
        for text in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500, b"\r\n" * 5000, b"GET\r\n\r\n", b"\0" * 70000,
                     line + b"Content-Length: -5\r\n\r\n", line + b"Content-Length: abc\r\n\r\n",
                     line + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
                     line + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     line + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\nabc\r\n", line + b"X: " + b"y" * 200000 + b"\r\n\r\n",
                     line + b"X: y\r\n" * 30000 + b"\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"GET /v2/models/" + b"a" * 2000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET /v2/models/%00%ff%2e%2e%2f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
            with h.raw() as s:
                try:
                    s.sendall(text)
                except OSError:
                    pass
                check(not rest(s).startswith(b"HTTP/1.1 2"), text[:80])
            serves(h)


def ambiguous_requests_end_their_connection():
    """What a proxy in front could read in another way: 400, and what follows on the connection is no request."""
    infer, get = b"POST /v2/models/digits/infer HTTP/1.1\r\n", b"GET /v2 HTTP/1.1\r\n"
    host, next_one = b"Host: localhost\r\n", b"GET /v2/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n"
    wrong = [infer + host + more + b"\r\n" + body for more, body in (
        (b"Content-Length: 4\r\n" + chunked, b"0\r\n\r\n"), (chunked + b"Content-Length: 4\r\n", b"0\r\n\r\n"),
        (b"Content-Length: 4\r\nContent-Length: 4\r\n", b"{}{}"), (b"Content-Length: 0\r\nContent-Length: 4\r\n", b"{}{}"),
        (b"content-length: 4\r\nCONTENT-LENGTH: 5\r\n", b"{}{}"), (b"Content-Length: 4, 4\r\n", b"{}{}"),
        (b"Content-Length: +4\r\n", b"{}{}"), (b"Content-Length: -4\r\n", b"{}{}"), (b"Content-Length: 0x4\r\n", b"{}{}"),
        (b"Content-Length: 4 4\r\n", b"{}{}"), (b"Content-Length:\r\n", b""),
        (b"Content-Length: 18446744073709551620\r\n", b"{}{}"),
        (b"Content-Length : 4\r\n", b"{}{}"), (b"Content-Length\t: 4\r\n", b"{}{}"), (b"Content-Length: 4\r\n 0\r\n", b"{}{}"),
        (b"X: y\r\n\tz\r\nContent-Length: 4\r\n", b"{}{}"), (b"Content-Length: 4\n", b"{}{}"),
        (b"X: y\nContent-Length: 4\r\n", b"{}{}"),
        (b"X: \rY\r\nContent-Length: 4\r\n", b"{}{}"), (b"X: a\0b\r\nContent-Length: 4\r\n", b"{}{}"),
        (b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"), (b"Transfer-Encoding: chunked, gzip\r\n", b"0\r\n\r\n"),
        (b"Transfer-Encoding: identity\r\n", b""), (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
        (b"Transfer-Encoding: chunked \r\n", b"0\r\n\r\n"), (b"Transfer-Encoding:\r\n", b""), (chunked + chunked, b"0\r\n\r\n"),
        (b"Host: other\r\nContent-Length: 4\r\n", b"{}{}"), (b"X(: y\r\nContent-Length: 4\r\n", b"{}{}"),
        (b": y\r\nContent-Length: 4\r\n", b"{}{}"))]
    zero = b"Content-Length: 0\r\n"
    wrong += [get + more + b"\r\n" for more in (host + zero + zero, host + chunked + zero, host + host, host + b" folded\r\n",
                                                b" " + host, b"", b"Host: localhost\n")]
    wrong += [b"GET /v2 HTTP/1.0\r\n" + chunked + b"\r\n0\r\n\r\n", get[:-2] + b"\n" + host + b"\r\n", get + host + b"\n"]
    good = [infer + host + b"Content-Length: 2\r\n\r\n{}", infer + host + b"Content-Length:002\r\n\r\n{}",
            get + host + b"X:\r\n\r\n",
            infer + host + b"transfer-encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            get + host + b"X: a  b\t \r\nY: z:\r\n\r\n"]
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--request-s", "30") as h:
        for texts, refused in ((wrong, True), (good, False)):
            for text in texts:
                with h.raw() as s:
                    s.sendall(text + next_one + (b"" if refused else next_one[:-2] + b"Connection: close\r\n\r\n"))
                    answers = rest(s)
                    if refused:  # by libmicrohttpd itself in part, which sends the head of its answer twice
                        statuses = set(re.findall(rb"HTTP/1.1 (\d+)", answers))
                        check(statuses and statuses <= {b"400", b"413"} and b'"models"' not in answers, text, answers[:400])
                    else:
                        check(b"two ways" not in answers, text, answers)
                        equal((answers.count(b"HTTP/1.1 "), answers.count(b'"models"')), (3, 2), text)
        serves(h)


def methods_and_paths_match_whole():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for method, path, status in (("GE", "/v2/models", 405), ("T", "/v2/models", 405), ("ET", "/v2/models", 405),
                                     ("HEA", "/v2", 405), ("GET,", "/v2", 405), ("POS", "/v2/models/digits/infer", 405),
                                     ("get", "/v2", 405), ("POSTS", "/v2/models/digits/infer", 405), ("GET", "/v2%00", 404),
                                     ("GET", "/v2%00/x", 404), ("GET", "/v2%2fmodels", 404), ("GET", "/v2/models%2Fdigits", 404),
                                     ("GET", "/v2/models/digits%00", 404), ("GET", "/v2/models/digits/", 404), ("GET", "//v2", 404),
                                     ("GET", "/v2/models/digits/versions/1x", 404), ("GET", "/V2", 404), ("GET", "/v2;x", 404),
                                     ("GET", "/v2/models/../models", 404), ("GET", "/v2/models/%64igits", 200),
                                     ("GET", "/v%32", 200)):
            equal(h.request(method, path)[0], status, (method, path))
        h.refused(400, "top must be",
                  h.request("POST", "/v2/models/digits/infer?top=2%00x", PICTURE, {"Content-Type": "image/png"}))


def random_damage_is_survived():
    whole = (b'POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
             b'Inference-Header-Content-Length: 109\r\nContent-Length: 1133\r\n\r\n'
             b'{"inputs":[{"name":"image","shape":[1,1,16,16],"datatype":"FP32",'
             b'"parameters":{"binary_data_size":1024}}]}   ' + RAW)
    r = random.Random(7)
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--request-s", "0.3") as h:
        answers = {}
        for i in range(300):
            text = bytearray(whole)
            for _ in range(r.randrange(0, 4)):
                at = r.randrange(len(text) - 1020)
                text[at:at + r.randrange(1, 3)] = bytes(r.randrange(256) for _ in range(r.randrange(0, 3)))
            with h.raw() as s:
                try:
                    s.sendall(text[:r.choice((len(text), len(text), len(text), r.randrange(len(text))))])
                    s.shutdown(1)
                except OSError:
                    pass
                answer = rest(s)[9:12]
                answers[answer] = answers.get(answer, 0) + 1
        check(answers.get(b"200") and answers.get(b"400"), answers)
        serves(h)
        equal(h.metric("piped_http_streams_busy"), 0)


main((slow_clients_are_cut, large_bodies_are_refused, bad_json_is_refused, broken_requests_close_their_connection_alone,
      ambiguous_requests_end_their_connection, methods_and_paths_match_whole, random_damage_is_survived))
