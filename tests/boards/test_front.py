#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The front of piped-link: clients of libpiped and of pyclient.py, good and bad ones, against a listener that negates.

Hostile ones are those of the daemon's socket: tests/system/test_frames_bytes.py, test_frames_wrong.py.

usage: test_front.py SOURCE_ROOT FRONT_NODE [CASE...]
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import pyclient as pc  # noqa: E402  (the folders are known only now)
from cases import check, main  # noqa: E402
from front_program import (IN_BYTES, LIMIT_S, NODE, OUT_BYTES, Front, ends_with, equal, finished, frame, front,  # noqa: E402
                           refused, right, still_serves)
from surroundings import needs  # noqa: E402
from wait import until  # noqa: E402


def libpiped_in_shared_memory_and_inline():
    with front("small large:big") as f:
        for order in ("now", "random"):
            f.obey("order " + order)
            for how in ("shared", "inline"):
                finished(f.client(500, how=how), 500, resent=0, reordered=0, duplicated=0)
                finished(f.client(40, "large", how), 40, resent=0, reordered=0, duplicated=0)


def clients_beside_each_other():
    with front("small large:big") as f:
        f.obey("order random")
        clients = [f.client(1000), f.client(1000, how="inline"), f.client(60, "large"), f.client(60, "large", "inline")]
        for c, count in zip(clients, (1000, 1000, 60, 60)):
            finished(c, count, reordered=0, duplicated=0)
        equal(f.stats()["taken"], 2120)


def answers_in_any_order_come_in_order():
    with front() as f, pc.Connection(f.path) as c:
        f.obey("order hold")
        streams = [pc.Stream(c, number=i, model="small", inline=i == 2) for i in (1, 2)]
        for k in range(20):
            for s in streams:
                s.submit(frame(k), time_ns=k)
        f.until("held", 40)
        f.obey("answer")
        for s in streams:
            for k in range(20):
                r = s.result()
                equal((r.frame, r.status, r.time_ns, r.credits, r.epoch, r.queue_ns, r.service_ns),
                      (k + 1, "ok", k, 1, 7, 1000, 2000))
                check(right(frame(k), r.output), "answer", k)
        f.obey("order now")
        for s in streams:
            s.close()


def a_backlog_that_is_read_at_once():
    """Answers of 1 MiB, the first of which comes last: each makes a backlog, and none is there when the front looks."""
    with front("small large:big") as f:
        f.obey("drain")
        f.obey("order hold")
        client = f.client(8, "large", "inline")
        f.until("held", 8)
        f.obey("answer")
        finished(client, 8, resent=0, reordered=0, duplicated=0)


def what_opened_says():
    with front("small large:big") as f, pc.Connection(f.path) as c:
        check(c.server.startswith("piped-link "), c.server)
        s = pc.Stream(c, model="small")
        equal((s.credits, s.input_bytes, s.output_bytes), (32, IN_BYTES, OUT_BYTES))
        equal([(t.dtype, t.shape, t.offset, t.bytes) for t in s.inputs],
              [("<f4", (3, 5), 0, 60), ("<u1", (100,), 64, 100)])
        check(1 <= s.depth <= s.credits, s.depth)
        equal(pc.Stream(c, number=2, credits=5).input_bytes, IN_BYTES)  # no name: the first model
        equal(pc.Stream(c, number=3, credits=256).credits, 256)
        refused(lambda: pc.Stream(c, number=4, model="other"), "not_found")
        refused(lambda: pc.Stream(c, number=1, model="small"), "invalid_argument")
        refused(lambda: pc.Stream(c, number=4, model="small", pixfmt=pc.GRAY8, image=(5, 3)), "unsupported")
        refused(lambda: pc.Stream(c, number=4, model="small", policy=pc.LATEST), "unsupported")
        refused(lambda: pc.Stream(c, number=4, model=b"\xff"), "invalid_argument")
        for i in range(4, 17):
            pc.Stream(c, number=i, model="small", inline=True)
        refused(lambda: pc.Stream(c, number=17, model="small", inline=True), "resource_exhausted")
        c.ping()


def frames_that_the_listener_refuses():
    with front() as f, pc.Connection(f.path) as c:
        s = pc.Stream(c, model="small")
        f.obey("refuse 5")
        equal(s.infer(frame(1)).status, "resource_exhausted")
        f.obey("refuse 0")
        check(right(frame(1), s.infer(frame(1)).output))
        equal(s.infer(frame(1), deadline_ns=2 ** 64 - 1).status, "ok")
        s.close()
        pc.Stream(c, model="small").close()


def too_much_client_memory():
    with front() as f, pc.Connection(f.path) as c:
        pc.Stream(c, model="small")
        fd, _ = pc.memfd(1 << 30, whole=False)
        c.send(pc.POOL, pc.pool_payload(1, 1 << 30), [fd], stream=1)
        h, _ = c.expect(pc.POOLED, 1)
        equal(pc.STATUS[h.status], "resource_exhausted")
        os.close(fd)
        still_serves(f)


def holes_in_a_pool_cost_its_client():
    """It loses its pool, and the front allocates no page of it; another pool and other clients are served."""
    with front("small large:big") as f, pc.Connection(f.path) as c:
        if any("not guarded" in line for line in f.lines):
            return "this kernel has no userfaultfd for users"
        s = pc.Stream(c, model="large", slots=1)
        equal(s.infer(bytes(s.in_size)).status, "ok")
        pc.punch(s.fd, 2 << 20)
        blocks = os.fstat(s.fd).st_blocks
        for _ in range(3):
            s.submit_as_is()
            r = s.result()
            check(r.status == "invalid_argument" and "lost pages" in r.text, r)
        equal(os.fstat(s.fd).st_blocks, blocks, "blocks of the memfd")
        r = pc.Stream(c, 2, model="small").infer(frame(1))
        check(r.status == "ok" and right(frame(1), r.output), r)
        still_serves(f)
    return None


def clients_die_with_frames_in_flight():
    """Their frames stay the listener's, in memory that stays; with half a message or answers that nobody reads, too."""
    with front("small large:big") as f:
        f.obey("order hold")
        killed = [f.client(1000, "large", how) for how in ("shared", "inline")]
        f.until("held", 64)
        for c in killed:
            c.signal(signal.SIGKILL)
            c.process.wait()
        with pc.Connection(f.path) as c:
            s = pc.Stream(c, model="small", inline=True)
            s.submit(frame(1))
            c.send_bytes(pc.header(pc.INLINE, 64 + IN_BYTES, stream=1, frame=2) + bytes(80))
            f.until("held", 65)
        f.obey("answer")
        equal(f.stats()["held"], 0)
        f.until("answered", 65)
        check(f.stats()["gone"] >= 64, f.stats())
        f.obey("order now")
        still_serves(f)
        f.obey("order hold")
        end = f.client(100)
        f.until("held", 32)
        f.tell("exit")  # with frames of a client, and of none
        f.wait("ready", LIMIT_S)
        end.kill()


def a_model_that_goes_and_comes_back():
    with front("small") as f, pc.Connection(f.path) as c:
        f.obey("order hold")
        s = pc.Stream(c, model="small")
        s.submit(frame(1))
        f.until("held", 1)
        f.obey("models")
        c.receive(lambda h: h.type == pc.EVENT)
        equal(c.events, [(1, 3, 0)])
        refused(lambda: pc.Stream(c, number=2, model="small"), "not_found")
        s.submit(frame(2))
        f.obey("models small:big")
        s.submit(frame(3))
        c.ping()
        f.obey("models small")
        f.obey("answer")
        r = s.result()
        check(r.status == "ok" and right(frame(1), r.output), r)
        equal([s.result().status for _ in range(2)], ["unavailable"] * 2)
        f.obey("order now")
        equal(s.infer(frame(4)).status, "ok")


def a_client_that_does_not_read():
    """What waits for it is bounded, it loses nothing, and others go on."""
    with front("small large:big") as f:
        with pc.Connection(f.path) as c:
            s = pc.Stream(c, model="large", inline=True, credits=8)
            data = bytes(s.input_bytes)
            c.sock.settimeout(0)
            out, sent, blocked = b"", 0, 0
            while sent < 100 << 20 and blocked < 3:
                if not out:
                    number = s.advance(None)
                    out = (pc.header(pc.INLINE, 64 + len(data), stream=1, frame=number) +
                           pc.frame_payload(in_bytes=len(data)) + data)
                try:
                    done = c.sock.send(out)
                    out, sent, blocked = out[done:], sent + done, 0
                except BlockingIOError:
                    blocked += 1
                    for _ in range(2):  # after the second one it has had its turn
                        f.obey("stats")
            check(2 << 20 < sent, sent)
            check(sent < 50 << 20, sent, "bytes were taken from a client that reads nothing")
            with open("/proc/%d/statm" % f.pid, encoding="utf-8") as statm:
                pages = int(statm.read().split()[1])
            check("PIPED_TEST_SANITIZER" in os.environ or pages * 4096 < 64 << 20, pages, "pages in memory")
            still_serves(f)
            c.sock.settimeout(LIMIT_S)
            results = [s.result() for _ in range(s.frame - bool(out))]
            equal([r.frame for r in results], list(range(1, len(results) + 1)))
            c.send_bytes(out)
            check(s.result().status in ("ok", "resource_exhausted") if out else True)


def cancelled_frames_are_forsaken():
    """The listener is told once, of a CANCEL and of a client that leaves; the frame is still answered, in its turn."""
    with front() as f, pc.Connection(f.path) as c:
        f.obey("order hold")
        s = pc.Stream(c, model="small")
        for k in range(4):
            s.submit(frame(k))
        f.until("held", 4)
        for number in (2, 2, 99):
            c.send(pc.CANCEL, stream=1, frame=number)
        c.send(pc.CANCEL, stream=7, frame=2)
        f.until("told", 1)
        other = pc.Connection(f.path)
        t = pc.Stream(other, model="small")
        for k in range(3):
            t.submit(frame(k))
        f.until("held", 7)
        other.close()
        f.until("told", 4)
        f.obey("answer")
        equal([(s.result().frame) for _ in range(4)], [1, 2, 3, 4])
        equal(f.stats()["gone"], 4)


def connect(f, *users):
    """Return: silent connections of these users."""
    found = []
    for uid in users:
        with pc.user(uid):
            found.append(pc.Connection(f.path, greet=False))
    return found


@contextlib.contextmanager
def front_for_all():
    """A front to which every user can connect."""
    with front() as f:
        os.chmod(os.path.dirname(f.path), 0o755)
        os.chmod(f.path, 0o666)
        yield f


@needs("other users")
def places_of_users():
    """Silent connections of one user, and of many, leave places for others, for root, and for those who have none."""
    with front_for_all() as f:
        held = connect(f, *[1001] * 17)
        ends_with(held.pop(), "resource_exhausted", "this user")
        held += connect(f, *[1002] * 16 + [1003] * 16 + [1004] * 8)
        with connect(f, 1004)[0] as late:
            ends_with(late, "resource_exhausted", "too many connections")
        with pc.user(1005):  # it has none yet
            still_serves(f)
        still_serves(f)
        for c in held:
            c.close()


@needs("other users")
def a_user_has_a_share_of_the_frames():
    """The listener gets as many of one user as it asks for, those counted whose inline bytes are still to come."""
    with front_for_all() as f:
        f.obey("order hold")
        f.obey("share 2")
        with pc.user(1001):
            held = [pc.Connection(f.path) for _ in range(3)]
        streams = [pc.Stream(c, model="small", inline=True) for c in held]
        payload = pc.frame_payload(**streams[0].fields()) + frame(1)
        whole = pc.header(pc.INLINE, len(payload), stream=1, frame=1) + payload
        for c in held:
            c.send_bytes(whole[:-40])
        with pc.Connection(f.path) as other:  # the front has read all that came before
            other.send(pc.PING, bytes(8))
            other.expect(pc.PONG)
        for c in held:
            c.send_bytes(whole[-40:])
        f.until("held", 2)
        f.obey("order now")
        still_serves(f)
        equal(f.stats()["taken"], 3)
        f.obey("answer")
        for s in streams:
            equal(s.result().status, "ok")
        equal(f.stats()["taken"], 4)
        for c in held:
            c.close()


def too_many_connections():
    with front() as f:
        held = [pc.Connection(f.path, greet=False) for _ in range(64 if os.geteuid() == 0 else 16)]
        with pc.Connection(f.path, greet=False) as c:
            ends_with(c, "resource_exhausted", "connections")
        held.pop().close()

        def served():
            try:
                still_serves(f)
            except pc.Closed:
                return False
            return True
        until(served, "a free place: the server sees that one is closed")
        f.obey("late 11")  # none of them has greeted
        for c in held:
            ends_with(c, "deadline_exceeded", "HELLO")
        still_serves(f)


def libpiped_over_restarts():
    with tempfile.TemporaryDirectory(prefix="piped-front-") as folder:
        path = os.path.join(folder, "frames.sock")
        node = Front(path)
        client = None
        try:
            node.obey("order hold")
            client = node.client(2000)
            for i in range(3):
                node.until("held", 32)
                node.obey("answer")
                if i:
                    node.until("held", 32)  # else some answers are on their way
                node.kill()
                node = Front(path, models=None)  # the models come later
                node.obey("order hold")
                node.obey("models small")
            node.obey("order random")
            line = finished(client, 2000, reordered=0, duplicated=0)
            # once more each time that it came before the models
            check(int(re.search(r" reconnects=(\d+)", line).group(1)) >= 3, line)
            check(" resent=0 " not in client.said(), client.said())
        finally:
            node.kill()
            if client:
                client.kill()


def the_socket_file():
    with front() as f:
        mode = os.stat(f.path).st_mode
        equal(mode & 0o777, 0o660)
        done = subprocess.run([NODE, "serve", f.path], capture_output=True, text=True, check=False, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL)
        check(done.returncode == 1 and "in use" in done.stdout, done)
        still_serves(f)


main((libpiped_in_shared_memory_and_inline, clients_beside_each_other, answers_in_any_order_come_in_order,
      a_backlog_that_is_read_at_once, what_opened_says,
      frames_that_the_listener_refuses, too_much_client_memory, holes_in_a_pool_cost_its_client,
      clients_die_with_frames_in_flight,
      a_model_that_goes_and_comes_back, a_client_that_does_not_read, cancelled_frames_are_forsaken, places_of_users,
      a_user_has_a_share_of_the_frames, too_many_connections, libpiped_over_restarts,
      the_socket_file), sys.argv[3:], trace=True)
