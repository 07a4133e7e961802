#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Heads of requests to piped-http: what a proxy in front could read in another way, paths, numbers and texts from outside."""
import re

from daemon import DIGITS, Daemon, check, equal
from http_models import png
from http_server import Http, main, rest

PICTURE = png(16, 16, 1, 1)
INFER, GET = b"POST /v2/models/digits/infer HTTP/1.1\r\n", b"GET /v2 HTTP/1.1\r\n"
HOST, NEXT = b"Host: localhost\r\n", b"GET /v2/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def sent(h, text):
    """What comes for it until the server closes."""
    with h.raw() as s:
        s.sendall(text)
        return rest(s)


def refused(text, answers):
    """One answer, and nothing behind it."""
    check(answers.startswith(b"HTTP/1.1 400 ") and b"this request can be read in two ways: " in answers, text, answers[:400])
    equal(answers.count(b"HTTP/1.1 "), 1, text)


def ambiguous_requests_end_their_connection():
    """What a proxy in front could read in another way: 400, and what follows on the connection is no request."""
    # libmicrohttpd itself refuses what follows Content-Length here, before this server sees it, and sends its head twice.
    theirs = [INFER + HOST + b"Content-Length:" + value + b"\r\n\r\n{}{}" for value in (
        b" 4, 4", b" +4", b" -4", b" 0x4", b" 4 4", b"", b" 18446744073709551620")]
    wrong = [INFER + HOST + more + b"\r\n" + body for more, body in (
        (b"Content-Length: 4\r\n" + CHUNKED, b"0\r\n\r\n"), (CHUNKED + b"Content-Length: 4\r\n", b"0\r\n\r\n"),
        (b"Content-Length: 4\r\nContent-Length: 4\r\n", b"{}{}"), (b"Content-Length: 0\r\nContent-Length: 4\r\n", b"{}{}"),
        (b"content-length: 4\r\nCONTENT-LENGTH: 5\r\n", b"{}{}"),
        (b"Content-Length : 4\r\n", b"{}{}"), (b"Content-Length\t: 4\r\n", b"{}{}"), (b"Content-Length: 4\r\n 0\r\n", b"{}{}"),
        (b"X: y\r\n\tz\r\nContent-Length: 4\r\n", b"{}{}"), (b"Content-Length: 4\n", b"{}{}"),
        (b"X: y\nContent-Length: 4\r\n", b"{}{}"),
        (b"X: \rY\r\nContent-Length: 4\r\n", b"{}{}"), (b"X: a\0b\r\nContent-Length: 4\r\n", b"{}{}"),
        (b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"), (b"Transfer-Encoding: chunked, gzip\r\n", b"0\r\n\r\n"),
        (b"Transfer-Encoding: identity\r\n", b""), (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
        (b"Transfer-Encoding: chunked \r\n", b"0\r\n\r\n"), (b"Transfer-Encoding:\r\n", b""), (CHUNKED + CHUNKED, b"0\r\n\r\n"),
        (b"Host: other\r\nContent-Length: 4\r\n", b"{}{}"), (b"X(: y\r\nContent-Length: 4\r\n", b"{}{}"),
        (b": y\r\nContent-Length: 4\r\n", b"{}{}"))]
    zero = b"Content-Length: 0\r\n"
    wrong += [GET + more + b"\r\n" for more in (
        HOST + zero + zero, HOST + CHUNKED + zero, HOST + HOST, HOST + b" folded\r\n", b" " + HOST, b"", b"Host: localhost\n")]
    wrong += [b"GET /v2 HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n", GET[:-2] + b"\n" + HOST + b"\r\n", GET + HOST + b"\n"]
    good = [INFER + HOST + b"Content-Length: 2\r\n\r\n{}", INFER + HOST + b"Content-Length:002\r\n\r\n{}",
            GET + HOST + b"X:\r\n\r\n", GET + HOST + b"X: a  b\t \r\nY: z:\r\n\r\n"]
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--request-s", "30") as h:
        for text in theirs:
            answers = sent(h, text + NEXT)
            statuses = set(re.findall(rb"HTTP/1.1 (\d+)", answers))
            check(statuses and statuses <= {b"400", b"413"} and b'"models"' not in answers, text, answers[:400])
        for text in wrong:
            refused(text, sent(h, text + NEXT))
        for text in good:
            answers = sent(h, text + NEXT + NEXT[:-2] + b"Connection: close\r\n\r\n")
            check(b"two ways" not in answers, text, answers)
            equal((answers.count(b"HTTP/1.1 "), answers.count(b'"models"')), (3, 2), text)
        equal(h.get("/v2")[0], 200)


def first_lines_are_read_whole():
    """libmicrohttpd takes a target, and a method, up to a NUL, and skips spaces."""
    wrong = [b"GET %s HTTP/1.1\r\n" % target for target in (
        b"/v2/models\0/nothing", b"/metrics\0", b"/v2\0", b"/v2/models\0?x=1", b"/v2?x=1\0y", b"/v2?x\0=1", b"/\0v2", b"\0/v2",
        b"/v2/models/digits\0%41%41%41", b"/v2%41\0", b"http://localhost/v2\0/x", b"/v2\0\0", b"/v2\x01", b"/v2\t", b"/v2\x1b[2J",
        b"/v2?\x7f", b"/v2\x0b", b"/v2\r", b"/v2 x", b"/v2 HTTP/1.0", b"/v2 ", b" /v2", b"/v2?a b", b"/v2\0 /x")]
    wrong += [line + b" HTTP/1.1\r\n" for line in (b"GET\0 /v2", b"GET\0POST /v2", b"GET\t /v2")]
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for line in wrong:
            refused(line, sent(h, line + HOST + b"\r\n" + NEXT))
        for target in (b"/v2", b"/v%32", b"/v2?x=%00", b"http://localhost/v2", b"/v2?" + b"a" * 3000, b"/v2?x=\xc3\xa9&y",
                       b"/v2?a?b"):
            answers = sent(h, b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            check(answers.startswith(b"HTTP/1.1 200 "), target, answers)


def headers_that_decide_come_once():
    """Of two, one server takes the first and another the last."""
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for name, one, other in (("Host", "localhost", "127.0.0.1"), ("Content-Type", "image/png", "application/json"),
                                 ("Content-Encoding", "identity", "gzip"), ("Inference-Header-Content-Length", "0", "2"),
                                 ("Authorization", "Bearer a", "Bearer b"), ("Origin", "http://localhost", "http://other")):
            for first, second in ((one, other), (other, one), (one, one)):
                text = INFER + (b"" if name == "Host" else HOST) + b"Content-Length: 2\r\n"
                for key, value in ((name, first), (name.lower(), second)):
                    text += ("%s: %s\r\n" % (key, value)).encode()
                answers = sent(h, text + b"\r\n{}" + NEXT)
                refused(text, answers)
                check(b"more than one " + name.encode() in answers, text, answers)


def nothing_follows_a_body_in_chunks():
    """libmicrohttpd takes LF alone there; another server may see the body end elsewhere."""
    head = INFER + HOST + CHUNKED + b"Content-Type: image/png\r\n"
    size = b"%x" % len(PICTURE)
    bodies = [size + b"\n" + PICTURE + b"\n0\n\n", size + b"\r\n" + PICTURE + b"\n0\r\n\r\n",
              size + b"\r\n" + PICTURE + b"\r\n0\n\n", size + b"\r\n" + PICTURE + b"\r\n0\n\r\n",
              size + b"\r\n" + PICTURE + b"\r\n0\r\nX: a\n\n", size + b"\r\n" + PICTURE + b"\r\n0\r\nX: a\r\n b\r\n\r\n",
              size + b"\r\n" + PICTURE + b"\r\n0\r\nContent-Length : 3\r\n\r\n", size + b"\r\n" + PICTURE + b"\r\n0\r\n\r\n"]
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for text in [head + b"\r\n" + body for body in bodies] + [GET + HOST + CHUNKED + b"\r\n0\n\n",
                                                                 INFER + HOST + CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\r\n"]:
            answers = sent(h, text + NEXT)
            equal((answers.count(b"HTTP/1.1 "), answers.count(b'"models"')), (1, 0), (text, answers[:400]))
            check(b"\r\nConnection: close\r\n" in answers, text, answers[:400])
        c = h.connect()  # a usual client connects again
        for _ in range(2):
            pieces = iter([PICTURE[:10], PICTURE[10:]])
            status, headers, answer = h.infer("digits", pieces, {"Content-Type": "image/png"}, connection=c)
            equal((status, headers["Connection"]), (200, "close"), answer)
        equal(h.get("/v2", connection=c)[0], 200)
        c.close()


def numbers_of_headers_are_read_whole():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for value in ("18446744073709551615", "18446744073709551616", "18446744073709551617", "99999999999999999999999", "-1", "+0",
                      "0x0", "1 ", "0,0", "", "a", "-18446744073709551616"):
            with h.raw() as s:
                s.sendall(INFER + HOST + (b"Inference-Header-Content-Length: %s\r\nContent-Length: 2\r\n"
                                          b"Connection: close\r\n\r\n{}" % value.encode()))
                answers = rest(s)
            check(answers.startswith(b"HTTP/1.1 400 ") and b"Inference-Header-Content-Length" in answers, value, answers)
        answer = h.infer("digits", b"{}", {"Inference-Header-Content-Length": "18446744073709551614"})
        h.refused(400, "the body has 2 bytes", answer)
        for query in ("top=18446744073709551616", "top=18446744073709551617", "timeout=99999999999999999999999",
                      "decode=18446744073709551617", "top=-1", "top=", "top=+1", "top=1%201"):
            path = "/v2/models/digits/infer?" + query
            h.refused(400, "must be a number", h.request("POST", path, PICTURE, {"Content-Type": "image/png"}))


def reasons_survive_any_text():
    """A text of a client may be cut within a character, or be no UTF-8; hidden characters become marks."""
    one = '{"inputs":[{"name":"%s","datatype":"%s","shape":%s,"data":[1]}]}'
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for lead in range(4):
            a = "a" * lead
            for letter in ("\xe9", "\u20ac", "\U0001f431"):
                for text, words in ((one % ("image", a + letter * 40, "[1]"), "input image is " + a + letter * 7),
                                    (one % ("image", "FP32", '["%s"]' % (a + letter * 80)), "input image has shape"),
                                    (one % (a + letter * 600, "FP32", "[1]"), letter * 100 + ": the model has no such input")):
                    h.refused(400, words, h.infer("digits", text.encode()))
        h.refused(404, "there is no model a?", h.get("/v2/models/a%ff"))
        h.refused(404, "there is no model a??b", h.get("/v2/models/a%1b%c2%9bb"))
        h.refused(415, "not x/?", h.infer("digits", b"{}", {"Content-Type": b"x/\xff"}))
        h.refused(415, "not " + "x" * 62, h.infer("digits", b"{}", {"Content-Type": b"x" * 62 + b"\xe2\x82\xac"}))
        h.refused(403, "not as a?.example", h.get("/v2", headers={"Host": b"a\xff.example"}))


def requests_that_never_begin_leave_nothing():
    """libmicrohttpd refuses more arguments than it has memory for, and does not say so: a sanitizer would tell what is left."""
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for _ in range(20):
            sent(h, b"GET /?" + b"&" * 1100 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        equal(h.get("/v2")[0], 200)
        h.refused(413, "this path takes no body", h.request("GET", "/v2", b"x" * 5000))


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


main((ambiguous_requests_end_their_connection, first_lines_are_read_whole, headers_that_decide_come_once,
      nothing_follows_a_body_in_chunks, numbers_of_headers_are_read_whole, reasons_survive_any_text,
      requests_that_never_begin_leave_nothing, methods_and_paths_match_whole))
