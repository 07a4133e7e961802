#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Good and hostile clients of the frames socket against the real daemon.

Every hostile case shows the status and text that the client gets, and runs while another client streams:
that one's frames must all be answered, right, in order, before and after.
"""
import functools
import os
import random
import socket
import struct
import sys
import threading

import pyclient as pc
from daemon import DIGITS, Daemon, check, equal, main

DAEMON = None
SIDE = 16  # pixels of the network's own size: nothing is resized
# a thread that computes gives way at once to the one that has just got its answer, instead of after 5 ms each time
sys.setswitchinterval(1e-4)


def connect(**options):
    return pc.Connection(DAEMON.frames_path, **options)


@functools.lru_cache(None)
def picture(seed):
    return bytes(random.Random(seed).randrange(256) for _ in range(SIDE * SIDE))


def gray(c, **options):
    return pc.Stream(c, pixfmt=pc.GRAY8, image=(SIDE, SIDE), **options)


class Neighbour(threading.Thread):
    """A client that streams all the time and checks every answer; leaving the block demands that it went well."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.progress = threading.Condition()
        self.answered = 0
        self.failure = None

    def run(self):
        try:
            with connect() as c:
                s = gray(c, credits=4)
                wanted = {seed: s.infer(picture(seed)).output for seed in range(3)}
                sent = []
                while not self.stop.is_set():
                    while len(sent) < s.credits:
                        seed = (s.frame + 1) % 3
                        sent.append((s.submit(picture(seed), time_ns=seed), seed))
                    number, seed = sent.pop(0)
                    r = s.result()
                    equal((r.frame, r.status, r.time_ns), (number, "ok", seed), "the neighbour's answer")
                    check(close_enough(r.output, wanted[seed]), "the neighbour's answer is wrong")
                    with self.progress:
                        self.answered += 1
                        self.progress.notify_all()
        except BaseException as e:  # reported by __exit__
            with self.progress:
                self.failure = e
                self.progress.notify_all()

    def wait_more(self, count=5):
        with self.progress:
            goal = self.answered + count
            done = self.progress.wait_for(lambda: self.failure or self.answered >= goal, 60)
            check(done and not self.failure, "the neighbour was held up:", self.failure)

    def __enter__(self):
        self.start()
        self.wait_more()
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.wait_more()
        self.stop.set()
        self.join(60)
        if kind is None:
            check(not self.failure, "the neighbour failed:", self.failure)


def close_enough(a, b):
    """Within 1e-5 of the largest value: a plan may sum in another order."""
    x, y = (struct.unpack("<%df" % (len(v) // 4), v) for v in (a, b))
    return len(x) == len(y) and max(abs(p - q) for p, q in zip(x, y)) <= 1e-5 * max(abs(q) for q in y)


def beside_neighbour(case):
    def run():
        with Neighbour():
            case()
    run.__name__ = case.__name__
    return run


def refused(make, status, *words):
    """make() must raise Refused with that status and those words."""
    try:
        make()
    except pc.Refused as e:
        equal(e.status, status, e.text)
        for word in words:
            check(word in e.text, repr(word), "is not in", repr(e.text))
        return
    check(False, "not refused with", status)


def answered(r, status, *words):
    equal(r.status, status, r.text)
    for word in words:
        check(word in r.text, repr(word), "is not in", repr(r.text))


def ends_with(c, status, *words):
    """The server says ERROR and closes."""
    e = c.closed()
    equal(e.status, status, e.text)
    for word in words:
        check(word in e.text, repr(word), "is not in", repr(e.text))


# ---- good clients

def test_handshake():
    with connect() as c:
        check(c.server.startswith("piped "), c.server)
        check(c.payload_max >= 1 << 20 and c.streams_max >= 1 and c.instance, c.__dict__)
        c.ping()
        with connect() as d:
            equal(d.instance, c.instance, "instance of one daemon")


def test_every_way_of_sending_gives_the_same_answer():
    with connect() as c:
        shared, inline = gray(c, number=1), gray(c, number=7, inline=True)
        tensor = pc.Stream(c, number=9)
        equal(len(tensor.inputs), 1)
        equal(tensor.inputs[0].dtype, "<f4")
        data = picture(1)
        a, b = shared.infer(data, time_ns=11), inline.infer(data, time_ns=12)
        # the sidecar of the digits: mean 0, std 255
        t = tensor.infer(struct.pack("<%df" % len(data), *[v / 255 for v in data]))
        for r in (a, b, t):
            answered(r, "ok")
            check(r.credits == 1 and r.done_ns > 0 and r.epoch > 0, r)
        equal((a.time_ns, b.time_ns), (11, 12))
        check(close_enough(a.output, b.output) and close_enough(a.output, t.output), "answers differ")
        check(a.done_ns <= pc.now_ns(), "done in the future")
        for s in (shared, inline, tensor):
            s.close()
        c.ping()


def test_order_and_credits():
    with connect() as c:
        s = gray(c, credits=8)
        check(1 <= s.credits <= 8, s.credits)
        numbers = []
        for i in range(200):
            if len(numbers) == s.credits:
                equal(s.result().frame, numbers.pop(0))
            numbers.append(s.submit(picture(i % 5), number=10 * i + 3))
        for number in numbers:
            equal(s.result().frame, number)
        s.close()


def test_streams_of_one_connection():
    with connect() as c:
        streams = [gray(c, number=n + 1) for n in range(6)]
        for i in range(10):
            for s in streams:
                s.submit(picture(i))
            for s in reversed(streams):
                answered(s.result(), "ok")
        streams[2].close()
        again = gray(c, number=3)
        answered(again.infer(picture(0)), "ok")


def test_images_of_another_size_are_resized():
    with connect() as c:
        s = pc.Stream(c, pixfmt=pc.RGB24, image=(32, 24))
        answered(s.infer(bytes(32 * 24 * 3)), "ok")
        s = pc.Stream(c, number=2, pixfmt=pc.NV12, image=(16, 16), inline=True)
        answered(s.infer(bytes(16 * 16 * 3 // 2)), "ok")


def test_cancel_is_answered_once():
    with connect() as c:
        s = gray(c, credits=8)
        numbers = [s.submit(picture(0)) for _ in range(s.credits)]
        for n in numbers:
            c.send(pc.CANCEL, stream=1, frame=n)
        c.send(pc.CANCEL, stream=1, frame=999)
        c.send(pc.CANCEL, stream=55, frame=1)
        for n in numbers:
            r = s.result()
            equal(r.frame, n)
            check(r.status in ("ok", "cancelled"), r)
        c.ping()


def test_deadline_in_the_past():
    with connect() as c:
        s = gray(c)
        answered(s.infer(picture(0), deadline_ns=1), "deadline_exceeded")
        answered(s.infer(picture(0), deadline_ns=pc.now_ns() + 60 * 10**9), "ok")


def test_policies_answer_every_frame():
    with connect() as c:
        for number, policy, name in ((1, pc.LATEST, "dropped"), (2, pc.REJECT, "resource_exhausted")):
            s = gray(c, number=number, policy=policy, credits=64)
            sent = [s.submit(picture(i)) for i in range(s.credits)]
            got = [s.result() for _ in sent]
            equal([r.frame for r in got], sent)
            check({r.status for r in got} <= {"ok", name}, {r.status for r in got})
            check(any(r.status == "ok" for r in got), "none was computed")
            if policy == pc.LATEST:
                equal(got[-1].status, "ok", "the newest frame")


# ---- openings

@beside_neighbour
def test_bad_openings():
    with connect() as c:
        refused(lambda: pc.Stream(c, model="nothing of that name"), "not_found", "model")
        refused(lambda: pc.Stream(c, number=0), "invalid_argument")
        refused(lambda: pc.Stream(c, pixfmt=6), "invalid_argument")
        refused(lambda: pc.Stream(c, policy=3), "invalid_argument")
        refused(lambda: pc.Stream(c, priority=4), "invalid_argument")
        refused(lambda: pc.Stream(c, model=b"x" * 64), "invalid_argument")
        refused(lambda: pc.Stream(c, model=b"\xff\xfe"), "invalid_argument")
        refused(lambda: pc.Stream(c, model=b"a\nb"), "invalid_argument")
        s = gray(c)
        refused(lambda: gray(c), "invalid_argument", "in use")
        answered(s.infer(picture(0)), "ok")


@beside_neighbour
def test_too_many_streams():
    with connect() as c:
        def open_many():
            for n in range(1, c.streams_max + 2):
                pc.Stream(c, number=n, inline=True)
        refused(open_many, "resource_exhausted", "streams")
        c.send(pc.CLOSE, stream=1)
        c.expect(pc.CLOSED, 1)
        pc.Stream(c, number=1, inline=True)


@beside_neighbour
def test_absurd_credits_are_cut():
    with connect() as c:
        s = pc.Stream(c, credits=0xffffffff, inline=True)
        check(1 <= s.credits <= 256, s.credits)


# ---- pools

def pool_answer(c, fd, size, number=1, fds=None, **fields):
    fds = [fd] if fds is None else fds
    c.send(pc.POOL, pc.pool_payload(number, size), fds, stream=1, **fields)
    h, payload = c.expect(pc.POOLED, 1)
    equal(h.frame, number if number < 4 else h.frame)
    return pc.STATUS[h.status], payload.decode()


@beside_neighbour
def test_bad_pools():
    with connect() as c:
        s = gray(c)

        def bad(fd, size, *words, status="invalid_argument", **more):
            got, text = pool_answer(c, fd, size, **more)
            equal(got, status, text)
            for word in words:
                check(word in text, repr(word), "is not in", repr(text))

        unsealed, _ = pc.memfd(8192, seals=0)
        bad(unsealed, 8192, "seal")
        growing, _ = pc.memfd(8192, seals=pc.F_SEAL_SHRINK)
        bad(growing, 8192, "seal")
        shrinking, _ = pc.memfd(8192, seals=pc.F_SEAL_GROW)
        bad(shrinking, 8192, "seal")
        frozen, _ = pc.memfd(8192, seals=pc.F_SEAL_SHRINK | pc.F_SEAL_GROW | pc.F_SEAL_WRITE)
        bad(frozen, 8192, "writ")
        good, _ = pc.memfd(8192)
        bad(good, 16384, "size")
        bad(good, 4096, "size")
        bad(good, 0)
        bad(good, 1 << 40)
        bad(good, (1 << 64) - 1)
        bad(good, 8192, number=4)
        bad(good, 8192, "in use", number=0)
        bad(-1, 8192, "descriptor", fds=[])
        bad(-1, 8192, "descriptor", fds=[good, good])
        with open("/dev/zero", "rb") as zero:
            bad(zero.fileno(), 8192, "memfd")
        r, w = os.pipe()
        bad(r, 8192, "memfd")
        with open(os.path.join(DAEMON.temp, "file"), "wb+") as f:
            f.truncate(8192)
            bad(f.fileno(), 8192, "memfd")
        bad(c.sock.fileno(), 8192, "memfd")
        readonly = os.open("/proc/self/fd/%d" % good, os.O_RDONLY)
        bad(readonly, 8192)
        equal(pool_answer(c, good, 8192), ("ok", ""))
        for fd in (unsealed, growing, shrinking, frozen, good, r, w, readonly):
            os.close(fd)
        answered(s.infer(picture(0)), "ok")


@beside_neighbour
def test_sealed_pools_cannot_shrink_under_the_daemon():
    with connect() as c:
        s = gray(c)
        for size in (0, 4096):
            try:
                os.ftruncate(s.fd, size)
                check(False, "the memfd could be shrunk")
            except PermissionError:
                pass
        answered(s.infer(picture(0)), "ok")


@beside_neighbour
def test_pool_of_an_unknown_stream():
    with connect() as c:
        fd, _ = pc.memfd(4096)
        c.send(pc.POOL, pc.pool_payload(0, 4096), [fd], stream=9)
        h, payload = c.expect(pc.POOLED, 9)
        equal(pc.STATUS[h.status], "not_found", payload)
        os.close(fd)


def open_fds(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def test_descriptors_are_not_kept():
    fd, _ = pc.memfd(4096)
    with connect() as c:
        c.ping()
        before = open_fds(DAEMON.process.pid)
        for _ in range(50):
            c.send(pc.POOL, pc.pool_payload(0, 4096), [fd], stream=9)      # no such stream
            c.send(0x9000, b"", [fd, fd])                                   # skipped type
            c.send(pc.PING, b"", [fd])                                      # takes none
            c.expect(pc.PONG)
        c.ping()
        equal(open_fds(DAEMON.process.pid), before, "descriptors of the daemon")
    os.close(fd)


# ---- frames

@beside_neighbour
def test_bad_frames_are_answered_and_the_connection_lives():
    with connect() as c:
        s = gray(c)
        size = s.slots * s.slot_bytes
        huge = (1 << 64) - 1

        def bad(status="invalid_argument", *words, **changes):
            answered(s.infer(picture(0), **changes), status, *words)
            answered(s.infer(picture(0)), "ok")

        bad(in_bytes=SIDE * SIDE - 1)
        bad(in_bytes=0)
        bad(in_bytes=huge)
        bad(in_bytes=size + 1, in_offset=0)
        bad(in_offset=size)
        bad(in_offset=size - 1)
        bad(in_offset=huge)
        bad(in_offset=huge - 63, in_bytes=64)
        bad(out_offset=size)
        bad(out_offset=huge - 63)
        bad(out_bytes=s.output_bytes - 1)
        bad(out_bytes=huge)
        bad(out_offset=1)
        bad(out_offset=0, in_offset=0)
        bad(width=0)
        bad(width=SIDE + 1)
        bad(height=SIDE + 1)
        bad(width=0xffffffff, height=0xffffffff)
        bad(width=0x80000000, height=2)
        bad(stride=SIDE - 1)
        bad(stride=0xffffffff)
        bad("not_found", "pool", pool=1)
        bad(pool=4)
        bad(pool=0xffffffff)


@beside_neighbour
def test_bad_tensor_frames():
    with connect() as c:
        s = pc.Stream(c)
        zeros = bytes(s.input_bytes)
        answered(s.infer(zeros, in_bytes=s.input_bytes - 4), "invalid_argument", str(s.input_bytes))
        answered(s.infer(zeros, in_bytes=s.input_bytes + 4), "invalid_argument")
        answered(s.infer(zeros, in_offset=4), "invalid_argument")
        answered(s.infer(zeros), "ok")


@beside_neighbour
def test_bad_inline_frames():
    with connect() as c:
        s = gray(c, inline=True)
        answered(s.infer(picture(0), in_bytes=SIDE * SIDE + 1), "invalid_argument", "in_bytes")
        answered(s.infer(picture(0)[:-1]), "invalid_argument")
        answered(s.infer(picture(0) + b"x"), "invalid_argument")
        answered(s.infer(b"", in_bytes=0), "invalid_argument")
        answered(s.infer(picture(0)), "ok")


@beside_neighbour
def test_frame_numbers_must_grow():
    with connect() as c:
        s = gray(c)
        answered(s.infer(picture(0), number=10), "ok")
        answered(s.infer(picture(0), number=10), "invalid_argument", "10")
        answered(s.infer(picture(0), number=3), "invalid_argument", "not above")
        answered(s.infer(picture(0), number=11), "ok")
        answered(s.infer(picture(0), number=(1 << 64) - 1), "ok")


@beside_neighbour
def test_frames_without_a_stream():
    with connect() as c:
        c.send(pc.FRAME, pc.frame_payload(), stream=5, frame=1, time_ns=9)
        h, payload = c.expect(pc.RESULT, 5)
        equal((pc.STATUS[h.status], h.frame, h.time_ns), ("not_found", 1, 9), payload)
        c.send(pc.INLINE, pc.frame_payload(in_bytes=3000) + bytes(3000), stream=5, frame=2)
        h, payload = c.expect(pc.RESULT, 5)
        equal((pc.STATUS[h.status], h.frame), ("not_found", 2), payload)
        c.send(pc.CLOSE, stream=5)
        h, _ = c.expect(pc.CLOSED, 5)
        equal(pc.STATUS[h.status], "not_found")
        c.ping()


@beside_neighbour
def test_more_frames_than_credits():
    with connect() as c:
        s = gray(c, credits=2, slots=64)
        sent = [s.submit(picture(0)) for _ in range(64)]
        got = [s.result() for _ in sent]
        equal([r.frame for r in got], sent, "order")
        check({r.status for r in got} <= {"ok", "resource_exhausted"}, {r.status for r in got})
        for r in got:
            equal(r.credits, 1 if r.status == "ok" else 0, r.status)
            check(r.status == "ok" or "credit" in r.text, r.text)
        answered(s.infer(picture(0)), "ok")


# ---- bytes that make no sense

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
        s = gray(c)
        for size in (0, 1, 4096, 65536):
            c.send(0x8000 + 77, bytes(size), stream=size)
            c.send(0xffff, bytes(size))
            answered(s.infer(picture(0)), "ok")


@beside_neighbour
def test_longer_payloads_of_later_versions():
    with connect() as c:
        c.send(pc.OPEN, pc.open_payload() + bytes(100), stream=1)
        h, _ = c.expect(pc.OPENED, 1)
        equal(pc.STATUS[h.status], "ok")
        s = gray(c, number=2)
        number = s.advance(None)
        f = dict(s.fields())
        c.send(pc.FRAME, pc.frame_payload(**f) + bytes(200), stream=2, frame=number)
        equal(s.result().status, "ok")


@beside_neighbour
def test_messages_in_single_bytes():
    with connect(greet=False) as c:
        message = pc.header(pc.HELLO, 80) + pc.hello()
        for i in range(len(message)):
            c.send_bytes(message[i:i + 1])
        c.expect(pc.WELCOME)
        c.send(pc.OPEN, pc.open_payload(pixfmt=pc.GRAY8), stream=1)
        c.expect(pc.OPENED, 1)
        message = (pc.header(pc.INLINE, 64 + SIDE * SIDE, stream=1, frame=1) +
                   pc.frame_payload(in_bytes=SIDE * SIDE, width=SIDE, height=SIDE) + picture(3))
        for i in range(0, len(message), 7):
            c.send_bytes(message[i:i + 7])
        h, _ = c.expect(pc.RESULT, 1)
        equal((h.frame, pc.STATUS[h.status]), (1, "ok"))


@beside_neighbour
def test_half_messages_then_silence_or_death():
    message = (pc.header(pc.INLINE, 64 + SIDE * SIDE, stream=1, frame=1) +
               pc.frame_payload(in_bytes=SIDE * SIDE, width=SIDE, height=SIDE) + picture(3))
    silent = []
    for cut in (1, 31, 32, 33, 95, 96, 97, len(message) - 1):
        for die in (False, True):
            c = connect()
            gray(c, inline=True)
            c.send_bytes(message[:cut])
            if die:
                c.close()
            else:
                silent.append(c)
    with connect() as c:
        answered(gray(c).infer(picture(0)), "ok")
    for c in silent:
        c.close()


@beside_neighbour
def test_clients_that_die_with_frames_in_flight():
    for i in range(30):
        c = connect()
        s = gray(c, credits=8)
        for k in range(s.credits):
            s.submit(picture(k))
        if i % 3 == 0:
            c.sock.shutdown(socket.SHUT_WR)
        if i % 3 == 1:
            s.result()
        c.close()
        s.free()


@beside_neighbour
def test_a_client_that_stops_reading():
    with connect() as c:
        s = gray(c, inline=True)
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
        check(sent < 64 << 20, "the daemon took", sent, "bytes without being read")
        del s


@beside_neighbour
def test_random_streams_of_messages():
    rng = random.Random(int(os.environ.get("PIPED_TEST_SEED", "20260601")))
    for _ in range(150):
        with connect() as c:
            s = gray(c, inline=rng.random() < 0.5)
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


def run_all():
    global DAEMON
    if not os.path.exists(DIGITS):
        print("skipped: no", DIGITS)
        return 77
    cases = [f for name, f in globals().items() if name.startswith("test_")]
    with Daemon(models={"digits": DIGITS}) as DAEMON:
        try:
            main(cases)
        except SystemExit as e:
            return e.code
    return 0


if __name__ == "__main__":
    sys.exit(run_all())
