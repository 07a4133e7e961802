#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of a frames socket that send bytes that make no sense, half of them, too many, or die; against the real daemon or
piped-link's front, beside a client that streams.
"""
import os
import random
import socket
import sys

import pyclient as pc
from daemon import check, equal
from frames_client import answered, beside_neighbour, connect, content, ends_with, run_all, stream


@beside_neighbour
def test_garbage():
    rng = random.Random(7)
    for size in (1, 31, 32, 33, 1000, 100000):
        with connect(greet=False) as c:
            c.send_bytes(b"\xff" * 6 + bytes(rng.randrange(256) for _ in range(size)))
            c.sock.shutdown(socket.SHUT_WR)
            e = c.closed()
            check(e.status in (None, "protocol", "unsupported"), e)
    with connect() as c:
        c.send_bytes(b"GET / HTTP/1.1\r\nHost: piped\r\n\r\n" + bytes(64))
        check(c.closed().status in ("protocol", "unsupported"), "HTTP was understood")


def bad_header(status, *words, payload=b"", fds=(), **fields):
    with connect() as c:
        kind = fields.pop("kind", pc.PING)
        c.send(kind, payload, fds, **fields)
        ends_with(c, status, *words)


@beside_neighbour
def test_bad_headers_close_their_connection():
    fd, _ = pc.memfd(4096)
    bad_header("unsupported", "version", version=2)
    bad_header("unsupported", version=0)
    bad_header("protocol", length=65)
    bad_header("protocol", length=0xffffffff)
    bad_header("protocol", kind=pc.INLINE, length=(64 << 20) + 1)
    bad_header("protocol", kind=pc.FRAME, length=63)
    bad_header("protocol", kind=pc.FRAME, length=1025)
    bad_header("protocol", kind=pc.OPEN, length=95)
    bad_header("protocol", kind=0)
    bad_header("protocol", kind=99)
    bad_header("protocol", kind=0x7fff)
    bad_header("protocol", kind=0x8002, length=65537)
    bad_header("protocol", fd_count=5)
    bad_header("protocol", "descriptor", fd_count=1)
    bad_header("protocol", "descriptor", fds=[fd], fd_count=0)
    bad_header("protocol", fds=[fd] * 5, fd_count=4)
    bad_header("protocol", fds=[fd] * 200, fd_count=4)
    for kind in (pc.WELCOME, pc.OPENED, pc.POOLED, pc.RESULT, pc.CREDIT, pc.CLOSED, pc.ERROR):
        bad_header("protocol", kind=kind, payload=bytes(96))
    os.close(fd)


@beside_neighbour
def test_hello_comes_first_and_once():
    for kind, payload in ((pc.OPEN, pc.open_payload()), (pc.PING, b""), (pc.FRAME, pc.frame_payload())):
        with connect(greet=False) as c:
            c.send(kind, payload, stream=1)
            ends_with(c, "protocol", "HELLO")
    with connect() as c:
        c.send(pc.HELLO, pc.hello())
        ends_with(c, "protocol", "HELLO")
    for low, high, status in ((2, 9, "unsupported"), (0, 0, "unsupported"), (9, 2, "protocol")):
        with connect(greet=False) as c:
            c.send(pc.HELLO, pc.hello(low, high))
            ends_with(c, status)
    with connect(greet=False) as c:
        c.send(pc.HELLO, pc.hello(client=b"\xff" * 64))
        ends_with(c, "protocol")
    with connect(greet=False) as c:
        c.send(pc.HELLO, pc.hello(0, 65535) + bytes(40))  # a later client: longer, and speaks more
        c.expect(pc.WELCOME)


@beside_neighbour
def test_unknown_optional_types_are_skipped():
    with connect() as c:
        s = stream(c)
        for size in (0, 1, 4096, 65536):
            c.send(0x8000 + 77, bytes(size), stream=size)
            c.send(0xffff, bytes(size))
            answered(s.infer(content(0)), "ok")


@beside_neighbour
def test_longer_payloads_of_later_versions():
    with connect() as c:
        c.send(pc.OPEN, pc.open_payload() + bytes(100), stream=1)
        h, _ = c.expect(pc.OPENED, 1)
        equal(pc.STATUS[h.status], "ok")
        s = stream(c, number=2)
        number = s.advance(None)
        f = dict(s.fields())
        c.send(pc.FRAME, pc.frame_payload(**f) + bytes(200), stream=2, frame=number)
        equal(s.result().status, "ok")


def inline_message(s):
    return pc.header(pc.INLINE, 64 + s.in_size, stream=1, frame=1) + pc.frame_payload(**s.fields()) + content(3)


@beside_neighbour
def test_messages_in_single_bytes():
    with connect(greet=False) as c:
        message = pc.header(pc.HELLO, 80) + pc.hello()
        for i in range(len(message)):
            c.send_bytes(message[i:i + 1])
        c.expect(pc.WELCOME)
        message = inline_message(stream(c, inline=True))
        for i in range(0, len(message), 7):
            c.send_bytes(message[i:i + 7])
        h, _ = c.expect(pc.RESULT, 1)
        equal((h.frame, pc.STATUS[h.status]), (1, "ok"))


@beside_neighbour
def test_half_messages_then_silence_or_death():
    silent = []
    for cut in (1, 31, 32, 33, 95, 96, 97, -1):
        for die in (False, True):
            c = connect()
            c.send_bytes(inline_message(stream(c, inline=True))[:cut])
            if die:
                c.close()
            else:
                silent.append(c)
    with connect() as c:
        answered(stream(c).infer(content(0)), "ok")
    for c in silent:
        c.close()


@beside_neighbour
def test_clients_that_die_with_frames_in_flight():
    for i in range(30):
        c = connect()
        s = stream(c, credits=8)
        for k in range(s.credits):
            s.submit(content(k))
        if i % 3 == 0:
            c.sock.shutdown(socket.SHUT_WR)
        if i % 3 == 1:
            s.result()
        c.close()
        s.free()


@beside_neighbour
def test_a_client_that_stops_reading():
    with connect() as c:
        s = stream(c, inline=True)
        c.sock.setblocking(False)
        data = pc.header(pc.PING, 64) + bytes(64)
        sent = 0
        frame = 0
        try:
            while sent < 64 << 20:  # far more than all buffers hold
                frame += 1
                c.sock.send(data * 64)
                sent += 64 * len(data)
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            return  # closed for it: allowed as well
        check(sent < 64 << 20, "the server took", sent, "bytes without being read")
        del s


@beside_neighbour
def test_random_streams_of_messages():
    rng = random.Random(int(os.environ.get("PIPED_TEST_SEED", "20260601")))
    for _ in range(150):
        with connect() as c:
            s = stream(c, inline=rng.random() < 0.5)
            data = b""
            for _ in range(rng.randrange(1, 6)):
                good = rng.choice([
                    pc.header(pc.PING, 4) + b"abcd",
                    pc.header(pc.FRAME, 64, stream=1, frame=rng.randrange(9)) + pc.frame_payload(**s.fields()),
                    pc.header(pc.CANCEL, stream=1, frame=rng.randrange(9)),
                    pc.header(pc.CLOSE, stream=rng.randrange(3)),
                    pc.header(pc.OPEN, 96, stream=rng.randrange(4)) + pc.open_payload(),
                    pc.header(pc.INLINE, 64 + 64, stream=1, frame=rng.randrange(9)) +
                    pc.frame_payload(in_bytes=64, width=8, height=8) + bytes(64),
                    pc.header(0x9000, 3) + b"xyz"])
                data += good
            data = bytearray(data)
            for _ in range(rng.randrange(4)):  # spoiled bytes
                data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])
            c.send_bytes(bytes(data[:rng.randrange(1, len(data) + 1)]))
            c.sock.shutdown(socket.SHUT_WR)
            c.closed()
            s.free()


if __name__ == "__main__":
    sys.exit(run_all([test_garbage, test_bad_headers_close_their_connection, test_hello_comes_first_and_once,
                      test_unknown_optional_types_are_skipped, test_longer_payloads_of_later_versions,
                      test_messages_in_single_bytes, test_half_messages_then_silence_or_death,
                      test_clients_that_die_with_frames_in_flight, test_a_client_that_stops_reading,
                      test_random_streams_of_messages]))
