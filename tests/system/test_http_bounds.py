#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one client of piped-http can cost others: memory that is claimed before it is there, and places for connections."""
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import zlib

import test_outputs
from daemon import BUILD, DIGITS, LIMIT_S, Daemon, check, equal
from http_attacks import PNG, Slow, memory, png
from http_models import JPEG as GREY, png_of
from http_server import Http, main
from surroundings import needs
from wait import until

JPEG = {"Content-Type": "image/jpeg"}
RAW = {"Inference-Header-Content-Length": "0"}
DIGIT = struct.pack("<256f", *([0.25] * 256))
MIB = 1 << 20


def jpeg_head(width, height, sof, scan=3):
    """A JPEG file up to its first scan, without the scan."""
    components = b"".join(bytes((i, 0x11, 0)) for i in (1, 2, 3))
    tables = b"\xff\xdb\x00\x43\x00" + b"\x01" * 64
    frame = b"\xff" + bytes((sof,)) + struct.pack(">HBHHB", 17, 8, height, width, 3) + components
    return (b"\xff\xd8" + tables + frame + b"\xff\xda" + struct.pack(">HB", 6 + 2 * scan, scan) +
            b"".join(bytes((i, 0)) for i in range(1, scan + 1)) + b"\x00\x3f\x00")


def hidden_head(width, height):
    """A progressive one, in a place that a reader jumps over who takes the stray bytes ff 00 for a marker with a length."""
    real, plain = (jpeg_head(width, height, sof)[2:] for sof in (0xc2, 0xc0))
    scan = real.index(b"\xff\xda")
    plain = plain[plain.index(b"\xff\xc0"):]
    hides = real[:scan] + b"\xff\xfe" + struct.pack(">H", 2 + len(plain))
    return b"\xff\xd8\xff\x00" + struct.pack(">H", 2 + len(hides)) + hides + plain + real[scan:]


def answered(h, answer):
    equal(answer[0], 200, answer[2])
    return h


def slots_are_as_large_as_pictures():
    """Not as the widest times the highest: two pictures of 16 megapixels once took 700 MiB."""
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        answered(h, h.infer("digits", DIGIT, RAW))
        before = memory(h, "VmRSS")
        for size in ((16000, 1000), (1000, 16000), (10, 16000)):
            answered(h, h.infer("digits", png(*size, 3), PNG))
        most = (memory(h, "VmHWM") - before) / MIB
        check(most < 100, "MiB more:", most)
        until(lambda: h.metric("piped_http_buffered_bytes") == 0, "requests leave nothing behind")
        check(48e6 <= h.metric("piped_http_idle_bytes") < 49e6, h.metric("piped_http_idle_bytes"))


def what_never_fits_is_refused_before_it_is_decoded():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        h.refused(413, "--image-mpixels allows 64 megapixels", h.infer("digits", png(16000, 4100, 1), PNG))
        h.refused(400, "cannot be decoded", h.infer("digits", jpeg_head(8000, 8000, 0xc0), JPEG))
        for sof, scan in ((0xc2, 3), (0xc0, 1)):  # progressive, or a scan for each component: all coefficients
            h.refused(413, "seven eighths of --memory-mb", h.infer("digits", jpeg_head(8000, 8000, sof, scan), JPEG))
        h.refused(413, "seven eighths of --memory-mb", h.infer("digits", hidden_head(8000, 8000), JPEG))
        stray = b"\xff\xd8\x12\x34" + jpeg_head(8000, 8000, 0xc0)[2:]  # takes no more than without
        h.refused(400, "cannot be decoded", h.infer("digits", stray, JPEG))
        answered(h, h.infer("digits", png(8000, 8000, 1), PNG))
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--memory-mb", "64") as h:
        h.refused(413, "a request may take 56 MB", h.infer("digits", png(5000, 4000, 3), PNG))
        answered(h, h.infer("digits", png(4000, 4000, 3), PNG))


def pictures_wait_for_memory():
    """Each takes most of what there is; the slot of one that is idle is closed for another."""
    data = [png(1000, 1600, 3), png(1600, 1100, 3), png(100, 15000, 1), DIGIT]
    with Daemon(models={"digits": DIGITS, "other": DIGITS}) as d, Http(d, "--memory-mb", "6.6", "--body-mb", "1") as h:
        answers = []

        def ask(i):
            answers.append(h.infer(("digits", "other")[i % 2], data[i % 4], RAW if i % 4 == 3 else PNG)[0])

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(LIMIT_S)
        equal(answers, [200] * 12)
        check(h.metric("piped_http_idle_bytes") <= 6.6e6)
        until(lambda: h.metric("piped_http_buffered_bytes") == 0, "requests leave nothing behind")


def trees_and_answers_are_claimed():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--memory-mb", "4", "--body-mb", "1") as h:
        h.refused(503, "--memory-mb allows", h.infer("digits", '{"inputs":[],"x":[%s{}]}' % ("{}," * 30000)))
        twice = {"inputs": [{"name": "image", "shape": [1, 1, 16, 16], "datatype": "FP32", "data": [0.5] * 256}],
                 "outputs": [{"name": "probability"}] * 64}
        equal(len(h.infer("digits", twice)[2]["outputs"]), 64)
        until(lambda: h.metric("piped_http_buffered_bytes") == 0, "requests leave nothing behind")
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--memory-mb", "0.05", "--body-mb", "0.02") as h:
        h.refused(503, "--memory-mb allows", h.infer("digits", twice))
        until(lambda: h.metric("piped_http_buffered_bytes") == 0, "requests leave nothing behind")
        answered(h, h.infer("digits", DIGIT, RAW))


def what_outputs_mean_is_claimed():
    """Of a mask each run takes memory, and noise is nothing but runs."""
    width, height = test_outputs.W, test_outputs.H
    red, green = b"\xff\0\0", b"\0\xff\0"

    def infer(pixels):
        return h.request("POST", "/v2/models/mask/infer?decode=1", png_of(width, height, 3, pixels), PNG)

    with Daemon(models={"mask": test_outputs.networks()["mask"]}) as d, \
            Http(d, "--memory-mb", "0.6", "--body-mb", "0.1") as h:
        h.refused(503, "--memory-mb allows", infer((red + green) * (width * height // 2)))
        status, _, answer = infer(red * (width * height))
        equal((status, answer["mask"]["runs"]), (200, [[1, width * height]]), answer)
        until(lambda: h.metric("piped_http_buffered_bytes") == 0, "requests leave nothing behind")


def refusals_leave_nothing_behind():
    """Also where a stream that is open is opened anew, because what it says of the model may be old."""
    picture, models = png(48, 40, 3), test_outputs.networks()
    with Daemon(models={name: models[name] for name in ("silent", "mask")}) as d, \
            Http(d, "--image-mpixels", "1", "--memory-mb", "1", "--body-mb", "0.1") as h:
        for status, words, path, data in (
                (400, "(key output)", "silent/infer?decode=1", picture), (400, "(key output)", "silent/infer?decode=1", GREY),
                (400, "cannot be decoded", "silent/infer", picture[:-20]), (400, "not a whole", "silent/infer", picture[:20]),
                (400, "top must be", "silent/infer?top=x", picture), (504, "deadline_exceeded", "silent/infer?timeout=1", picture),
                (413, "--image-mpixels", "silent/infer", png(2000, 1000, 1)), (413, "eighths", "silent/infer", png(600, 600, 3)),
                (503, "--memory-mb allows", "mask/infer", png(280, 1010, 3)), (404, "no such model", "other/infer", picture)):
            for _ in range(3):
                h.refused(status, words, h.request("POST", "/v2/models/" + path, data, PNG))
            until(lambda: h.metric("piped_http_buffered_bytes") == 0, "%s, %s: leaves nothing behind" % (path, words))


def polite(h, index, count):
    """One connection for each request. Return: how many were answered at the first try."""
    good = 0
    for _ in range(count):
        c = h.connect(index)
        try:
            good += h.infer("digits", DIGIT, RAW, connection=c)[0] == 200
        except (OSError, ConnectionError):
            pass
        c.close()
    return good


@needs("other users")
def slow_users_leave_room_for_others():
    """The attack that answered 0 of 83 requests: 64 connections of a user that say nothing, dialled again when cut."""
    if not os.path.exists("/proc/net/tcp"):
        return "the kernel has no TCP here"
    listen = ["127.0.0.1:0", "unix:"]
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        listen.append("[::1]:0")
    except OSError:
        print("without ::1")
    with Daemon(models={"digits": DIGITS}) as d:
        os.chmod(d.temp, 0o755)
        listen[1] += d.temp + "/h.sock"
        with Http(d, listen=listen) as h:
            os.chmod(d.temp + "/h.sock", 0o666)
            for index in range(len(listen)):
                with Slow(h, [65534], 80, index):
                    until(lambda: h.metric("piped_http_connections_refused_total") >= 80 - 48, "all its places are taken")
                    equal(polite(h, index, 40), 40, listen[index])
        # Two users with all places: whoever has most gives one to a third.
        with Http(d, "--connections", "6", "--per-user", "4", listen=listen) as h:
            os.chmod(d.temp + "/h.sock", 0o666)
            for index in range(len(listen)):
                with Slow(h, [65534, 65533], 4, index):
                    until(lambda: h.metric("piped_http_connections_refused_total") >= 2, "all places are taken")
                    equal(polite(h, index, 40), 40, listen[index])
    return None


@needs("other users")
def bodies_of_one_user_leave_memory_for_others():
    """Five bodies of which a byte is missing would take more than there is."""
    with Daemon(models={"digits": DIGITS}) as d, Http(d, "--memory-mb", "8", "--body-mb", "2") as h:
        with Slow(h, [65534], 5, body=1900000):
            until(lambda: h.metric("piped_http_buffered_bytes") > 5e6, "the bodies")
            equal(polite(h, 0, 40), 40)
            answered(h, h.infer("digits", png(160, 160, 3), PNG))


@needs("other users", "own network")
def the_service_knows_users_by_a_socket_of_the_service_manager():
    """As its units have it: a network of its own, and a netlink socket that was opened in the machine's."""
    with Daemon(models={"digits": DIGITS}) as d, socket.create_server(("127.0.0.1", 0)) as s, \
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as diag:
        passed = ["unshare", "--net", "bash", "-c", 'LISTEN_PID=$$ LISTEN_FDS=2 exec "$@" 3<&%d 4<&%d' %
                  (s.fileno(), diag.fileno()), "bash"]
        with Http(d, "--connections", "6", "--per-user", "4", listen=(), pass_fds=(s.fileno(), diag.fileno()), wrapper=passed) as h:
            with Slow(h, [65534, 65533], 4):
                until(lambda: h.metric("piped_http_connections_refused_total") >= 2, "all places are taken")
                equal(polite(h, 0, 40), 40)


main((slots_are_as_large_as_pictures, what_never_fits_is_refused_before_it_is_decoded, pictures_wait_for_memory,
      trees_and_answers_are_claimed, what_outputs_mean_is_claimed, refusals_leave_nothing_behind, slow_users_leave_room_for_others,
      bodies_of_one_user_leave_memory_for_others, the_service_knows_users_by_a_socket_of_the_service_manager))
