#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Good clients of the frames socket against the real daemon, and those whose openings, pools and frames are wrong.

Every wrong one shows the status and text that the client gets.
"""
import os
import struct
import sys

import frames_client
import pyclient as pc
from daemon import check, equal
from frames_client import (SIDE, answered, beside_neighbour, close_enough, connect, gray, picture, refused, run_all)


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
            check(r.credits == 1 and r.done_ns > 0 and r.epoch > 0 and r.depth >= 3, r)
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
        with open(os.path.join(frames_client.DAEMON.temp, "file"), "wb+") as f:
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
        before = open_fds(frames_client.DAEMON.process.pid)
        for _ in range(50):
            c.send(pc.POOL, pc.pool_payload(0, 4096), [fd], stream=9)      # no such stream
            c.send(0x9000, b"", [fd, fd])                                   # skipped type
            c.send(pc.PING, b"", [fd])                                      # takes none
            c.expect(pc.PONG)
        c.ping()
        equal(open_fds(frames_client.DAEMON.process.pid), before, "descriptors of the daemon")
    os.close(fd)


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


if __name__ == "__main__":
    sys.exit(run_all([test_handshake, test_every_way_of_sending_gives_the_same_answer, test_order_and_credits,
                      test_streams_of_one_connection, test_images_of_another_size_are_resized,
                      test_cancel_is_answered_once, test_deadline_in_the_past, test_policies_answer_every_frame,
                      test_bad_openings, test_too_many_streams, test_absurd_credits_are_cut, test_bad_pools,
                      test_sealed_pools_cannot_shrink_under_the_daemon, test_pool_of_an_unknown_stream,
                      test_descriptors_are_not_kept, test_bad_frames_are_answered_and_the_connection_lives,
                      test_bad_tensor_frames, test_bad_inline_frames, test_frame_numbers_must_grow,
                      test_frames_without_a_stream, test_more_frames_than_credits]))
