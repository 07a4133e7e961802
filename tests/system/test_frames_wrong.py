#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of a frames socket whose openings, pools and frames are wrong; against the real daemon or piped-link's front.

Each shows the status and text that the client gets.
"""
import contextlib
import os
import sys
import tempfile

import frames_client
import pyclient as pc
from daemon import check, equal
from frames_client import answered, beside_neighbour, connect, content, refused, run_all, stream


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
        s = stream(c)
        refused(lambda: stream(c), "invalid_argument", "in use")
        answered(s.infer(content(0)), "ok")


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
        s = stream(c)

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
        with tempfile.TemporaryFile() as f:
            f.truncate(8192)
            bad(f.fileno(), 8192, "memfd")
        bad(c.sock.fileno(), 8192, "memfd")
        readonly = os.open("/proc/self/fd/%d" % good, os.O_RDONLY)
        bad(readonly, 8192)
        equal(pool_answer(c, good, 8192), ("ok", ""))
        for fd in (unsealed, growing, shrinking, frozen, good, r, w, readonly):
            os.close(fd)
        answered(s.infer(content(0)), "ok")


@beside_neighbour
def test_sealed_pools_cannot_shrink_under_the_server():
    with connect() as c:
        s = stream(c)
        for size in (0, 4096):
            try:
                os.ftruncate(s.fd, size)
                check(False, "the memfd could be shrunk")
            except PermissionError:
                pass
        answered(s.infer(content(0)), "ok")


@beside_neighbour
def test_pool_of_an_unknown_stream():
    with connect() as c:
        fd, _ = pc.memfd(4096)
        c.send(pc.POOL, pc.pool_payload(0, 4096), [fd], stream=9)
        h, payload = c.expect(pc.POOLED, 9)
        equal(pc.STATUS[h.status], "not_found", payload)
        os.close(fd)


def kept(pid):
    """How many files of memory a process holds; what its sensors read comes and goes."""
    count, folder = 0, "/proc/%d/fd" % pid
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(os.path.join(folder, name)).startswith("/memfd:")
    return count


def test_descriptors_are_not_kept():
    fd, _ = pc.memfd(4096)
    with connect() as c:
        c.ping()
        before = kept(frames_client.PID)
        for _ in range(50):
            c.send(pc.POOL, pc.pool_payload(0, 4096), [fd], stream=9)      # no such stream
            c.send(0x9000, b"", [fd, fd])                                   # skipped type
            c.send(pc.PING, b"", [fd])                                      # takes none
            c.expect(pc.PONG)
        c.ping()
        equal(kept(frames_client.PID), before, "descriptors that the server kept")
    os.close(fd)


@beside_neighbour
def test_bad_frames_are_answered_and_the_connection_lives():
    with connect() as c:
        s = stream(c)
        size = s.slots * s.slot_bytes
        huge = (1 << 64) - 1

        def bad(status="invalid_argument", *words, **changes):
            answered(s.infer(content(0), **changes), status, *words)
            answered(s.infer(content(0)), "ok")

        bad(in_bytes=s.in_size - 1)
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
        bad("not_found", "pool", pool=1)
        bad(pool=4)
        bad(pool=0xffffffff)
        bad("deadline_exceeded", deadline_ns=1)


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
        s = stream(c, inline=True)
        answered(s.infer(content(0), in_bytes=s.in_size + 1), "invalid_argument", "in_bytes")
        answered(s.infer(content(0)[:-1]), "invalid_argument")
        answered(s.infer(content(0) + b"x"), "invalid_argument")
        answered(s.infer(b"", in_bytes=0), "invalid_argument")
        answered(s.infer(content(0)), "ok")


@beside_neighbour
def test_frame_numbers_must_grow():
    with connect() as c:
        s = stream(c)
        answered(s.infer(content(0), number=10), "ok")
        answered(s.infer(content(0), number=10), "invalid_argument", "10")
        answered(s.infer(content(0), number=3), "invalid_argument", "not above")
        answered(s.infer(content(0), number=11), "ok")
        answered(s.infer(content(0), number=(1 << 64) - 1), "ok")


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
        s = stream(c, credits=2, slots=64)
        sent = [s.submit(content(0)) for _ in range(64)]
        got = [s.result() for _ in sent]
        equal([r.frame for r in got], sent, "order")
        check({r.status for r in got} <= {"ok", "resource_exhausted"}, {r.status for r in got})
        for r in got:
            equal(r.credits, 1 if r.status == "ok" else 0, r.status)
            check(r.status == "ok" or "credit" in r.text, r.text)
        answered(s.infer(content(0)), "ok")


if __name__ == "__main__":
    sys.exit(run_all([test_bad_openings, test_too_many_streams, test_absurd_credits_are_cut, test_bad_pools,
                      test_sealed_pools_cannot_shrink_under_the_server, test_pool_of_an_unknown_stream,
                      test_descriptors_are_not_kept, test_bad_frames_are_answered_and_the_connection_lives,
                      test_bad_tensor_frames, test_bad_inline_frames, test_frame_numbers_must_grow,
                      test_frames_without_a_stream, test_more_frames_than_credits]))
