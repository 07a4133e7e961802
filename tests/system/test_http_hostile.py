#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow and hostile clients of piped-http: each ends within a limit, and others are served meanwhile."""
import random
import select
import struct
import tempfile

from daemon import DIGITS, Daemon, check, equal
from http_models import counted_rows, png, two_inputs
from http_server import Http, main, rest
from wait import until

RAW = struct.pack("<256f", *([0.25] * 256))
HEAD = {"Inference-Header-Content-Length": "0"}
PICTURE = png(16, 16, 1, 1)


def serves(h):
    equal(h.infer("digits", RAW, HEAD)[0], 200)


def is_served_again(h):
    """Connections beyond the limit are closed at once, until others have ended."""
    def served():
        try:
            serves(h)
        except OSError:
            return False
        return True
    until(served, "a connection that is free")


def until_free(h):
    """Until no connection but the asking one has a place: a client sees the end of its own before the server frees it."""
    def free():
        try:
            return h.metric("piped_http_connections") <= 1
        except OSError:
            return False
    until(free, "an end of connections")


def drip(s, text):
    """Sends the text byte by byte, a byte at each look, until the server closes. Return: bytes that were sent."""
    sent = 0

    def closed():
        nonlocal sent
        try:
            if select.select([s], [], [], 0.02)[0] and not s.recv(65536):
                return True
            s.sendall(text[sent % len(text):][:1])
        except (BrokenPipeError, ConnectionResetError):
            return True
        sent += 1
        return False
    until(closed, "an end of a slow client", pause=0)
    return sent


def slow_clients_are_cut():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--request-s", "0.4", "--connections", "4") as h:
        for begin in (b"", b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n",
                      b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"):
            with h.raw() as s:
                s.sendall(begin)
                drip(s, b"X-Slow: 1\r\n")
        until_free(h)
        # Its own; that of the look before may not have ended yet.
        until(lambda: h.metric("piped_http_requests") == 1, "a head that does not end is no request")
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
            check(answer.startswith(b"HTTP/1.1 413 ") and b"larger than --body-mb allows, 0.01 MB" in answer, answer)
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
        until(lambda: h.metric("piped_http_buffered_bytes") == 0, "refused bodies leave nothing behind")
        half = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n" + b"x" * 9000
        held = [h.raw() for _ in range(2)]
        for s in held:
            s.sendall(half)
        until(lambda: h.metric("piped_http_buffered_bytes") >= 18000, "the bodies")
        h.refused(503, "--memory-mb allows", h.infer("digits", RAW, HEAD))
        for s in held:
            s.close()
        until(lambda: h.metric("piped_http_buffered_bytes") == 0, "truncated bodies leave nothing behind")
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


def arrays_are_nested_as_the_shape():
    """An array among the numbers of a flat one, or without numbers, is refused for each rank."""
    inner = '{"name":"%s","shape":%s,"datatype":"%s","data":%s}'
    four = '{"inputs":[%s]}' % (inner % ("image", "[1,1,16,16]", "FP32", "%s"))
    flat = ",".join(["1"] * 256)
    row = "[%s]" % ",".join(["1"] * 16)
    whole = "[[[%s]]]" % ",".join([row] * 16)
    with tempfile.TemporaryDirectory() as folder, \
         Daemon(models={"digits": DIGITS, "two": two_inputs(folder), "rows": counted_rows(folder)}) as d, Http(d) as h:
        def asks(model, text, status):
            equal(h.infer(model, text)[0], status, (model, text[:200]))

        for data in ("[1,2,3,4]",):
            asks("rows", '{"inputs":[%s]}' % (inner % ("x", "[4]", "FP32", data)), 200)
        for data in ("[1,[],2,3,4]", "[1,2,3,4,[]]", "[[],1,2,3,4]", "[[1,2,3,4]]", "[[]]", "[1,[[]],2,3,4]"):
            asks("rows", '{"inputs":[%s]}' % (inner % ("x", "[4]", "FP32", data)), 400)
        b = inner % ("b", "[2]", "INT64", "[5,6]")
        for data, status in (("[1,2,3,4]", 200), ("[[1,2],[3,4]]", 200), ("[1,[],2,3,4]", 400), ("[1,2,3,4,[]]", 400),
                             ("[[],1,2,3,4]", 400), ("[1,[2],3,4]", 400), ("[[1,2],[3,4],[]]", 400), ("[[1,2],[],[3,4]]", 400),
                             ("[[[1,2],[3,4]]]", 400), ("[1,[[]],2,3,4]", 400), ("[[1,2],3,4]", 400), ("[1,2,[3,4]]", 400)):
            asks("two", '{"inputs":[%s,%s]}' % (inner % ("a", "[2,2]", "FP32", data), b), status)
            if "[]" in data:  # of the second input, which is flat
                a = inner % ("a", "[2,2]", "FP32", "[1,2,3,4]")
                asks("two", '{"inputs":[%s,%s]}' % (a, inner % ("b", "[2]", "INT64", "[5,[],6]")), 400)
        for data, status in (("[%s]" % flat, 200), (whole, 200), ("[%s,[]]" % flat, 400), ("[1,[[[]]],%s]" % flat[2:], 400),
                             ("[%s,[[[]]]]" % flat, 400), (whole[:-1] + ",[]]", 400), (whole[:-2] + ",[]]]", 400),
                             (whole[:-3] + ",[]]]]", 400), ("[[[[%s" % whole[3:], 400)):
            asks("digits", four % data, status)


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
        until(lambda: h.metric("piped_http_streams_busy") == 0, "an end of all streams")


main((slow_clients_are_cut, large_bodies_are_refused, bad_json_is_refused, arrays_are_nested_as_the_shape,
      broken_requests_close_their_connection_alone, random_damage_is_survived))
