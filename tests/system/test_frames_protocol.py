#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Good clients of the frames socket against the real daemon, and those whose pictures are wrong."""
import struct
import sys

import pyclient as pc
from daemon import check, equal
from frames_client import SIDE, answered, beside_neighbour, close_enough, connect, gray, picture, run_all


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
def test_bad_pictures_are_answered_and_the_connection_lives():
    with connect() as c:
        s = gray(c)
        for changes in (dict(width=0), dict(width=SIDE + 1), dict(height=SIDE + 1), dict(width=0x80000000, height=2),
                        dict(width=0xffffffff, height=0xffffffff), dict(stride=SIDE - 1), dict(stride=0xffffffff)):
            answered(s.infer(picture(0), **changes), "invalid_argument")
            answered(s.infer(picture(0)), "ok")


if __name__ == "__main__":
    sys.exit(run_all([test_handshake, test_every_way_of_sending_gives_the_same_answer, test_order_and_credits,
                      test_streams_of_one_connection, test_images_of_another_size_are_resized,
                      test_cancel_is_answered_once, test_deadline_in_the_past, test_policies_answer_every_frame,
                      test_bad_pictures_are_answered_and_the_connection_lives]))
