#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One model over several boards: piped-link carries routes, while links, boards and daemons die.

usage: test_hops.py SOURCE_ROOT LINK PIPECTL [CASE...]     (PIPED_BUILD: the build folder)
"""
import contextlib
import ctypes
import errno
import os
import random
import signal
import socket
import sys
import tempfile

ROOT, LINK, PIPECTL = sys.argv[1:4]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import pyclient as pc  # noqa: E402  (the folders are known only now)
from cases import check, main  # noqa: E402
from daemon import DIGITS  # noqa: E402
from hop_boards import LIMIT_S, Boards, Client  # noqa: E402
from wait import until  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438  # its number on x86 and arm64


def boards(*others, **more):
    return Boards(PIPECTL, LINK, *others, **more)


def two_boards_in_a_chain():
    with boards("b2") as b:
        for text in ("0-2@head|3-11@b2", "0-11@b2", "0-5@b2|6-11@head", "0-11@head", "0-2@head|3-7@b2|8-11@head"):
            b.set(text)
            client = Client(b)
            client.more(100)
            client.end()
            check(client.unavailable == 0 and client.epochs == {b.number}, text, client.unavailable, client.epochs)
        state = b.state(b.control.wait(lambda r: b.state(r)["answered"] >= 500, "counted"))
        check(state["resent"] == 0 and state["late"] == 0 and min(state["service_ns"][:3]) > 0, state)


def larger(folder):
    """The model as a file of four leaves: its last field is a doc_string."""
    path = os.path.join(folder, "larger.onnx")
    with open(DIGITS, "rb") as f, open(path, "wb") as to:
        to.write(f.read() + b"\x32\x80\x80\xc0\x01" + random.Random(5).randbytes(3 << 20).translate(bytes(range(32, 96)) * 4))
    return path


def weights_come_from_the_head():
    """Boards without the model's file get what they need, keep it, and need no more when they are back."""
    with tempfile.TemporaryDirectory(prefix="piped-weights-") as folder, \
            boards("b2", "b3", model=larger(folder), files=False) as b:
        kept = b.path("b2", "state", "models", b.known["hash"] + ".onnx")

        def serve(came):
            b.set("0-2@head|3-11@b2")
            b.links["b2"].wait("piped-link: %d leaves have come" % came, LIMIT_S)
            client = Client(b)
            client.more(100)
            client.end()
            check(client.unavailable == 0, client.unavailable)

        def restart():
            b.start_daemon("b2")
            b.start_link("b2")
            b.wait_up("b2")

        serve(4)
        with open(kept, "rb") as f, open(b.model, "rb") as of:
            check(f.read() == of.read(), "not the same file")
        check(os.stat(kept).st_mode & 0o777 == 0o644 and os.stat(os.path.dirname(kept)).st_mode & 0o777 == 0o755)
        b.links["b2"].kill()
        b.kill_daemon("b2")
        restart()
        serve(0)
        b.links["b2"].kill()
        b.kill_daemon("b2")
        with open(kept, "r+b") as f:  # a damaged leaf is seen by the next process, and comes again
            f.seek(2 << 20)
            f.write(b"damaged")
        restart()
        serve(1)
        b.set("0-2@b2|3-7@b3|8-11@b2")
        client = Client(b)
        client.more(100)
        client.end()


def failed(b, board, to=None):
    state = b.wait("failed")
    check((state["board"], state["to"]) == (b.print[board], b.print[to] if to else ""), state)
    check(state["why"], state)
    return state


def the_middle_link_is_killed():
    """A link of a board in the middle dies; another route serves; it is back; all under load, nothing is lost."""
    with boards("b2", "b3") as b:
        b.set("0-2@head|3-7@b2|8-11@b3")
        client = Client(b)
        client.more()
        for _ in range(3):
            b.links["b2"].kill()
            failed(b, "b2")
            b.set("0-5@head|6-11@b3")
            client.more()
            b.start_link("b2")
            b.wait_up("b2")
            b.set("0-2@head|3-7@b2|8-11@b3")
            client.more()
        client.end()


def the_middle_daemon_is_killed():
    with boards("b2", "b3") as b:
        b.set("0-2@head|3-7@b2|8-11@b3")
        client = Client(b)
        client.more()
        b.kill_daemon("b2")
        failed(b, "b2")
        b.set("0-11@head")
        client.more()
        b.start_daemon("b2")
        b.set("0-2@head|3-7@b2|8-11@b3")
        client.more()
        client.end()


def the_middle_daemon_is_stopped():
    """A daemon that hangs: its link lives, and says so; what it answers after all is dropped."""
    with boards("b2", "b3") as b:
        b.set("0-2@head|3-7@b2|8-11@b3")
        client = Client(b)
        client.more()
        for _ in range(2):
            process = b.daemons["b2"].process
            process.send_signal(signal.SIGSTOP)
            failed(b, "b2")
            check("does not answer" in b.state(b.control.report)["why"], b.control.report)
            b.set("0-5@head|6-11@b3")
            client.more()
            b.control.wait(lambda r: not b.up(r, "b2"), "nothing is known of b2")
            b.control.set(b.route("0-11@b2"))
            failed(b, "b2")
            b.set("0-5@head|6-11@b3")
            client.more()
            process.send_signal(signal.SIGCONT)
            b.wait_up("b2")
            b.set("0-2@head|3-7@b2|8-11@b3")
            client.more()
        client.end()
        check(client.unavailable == 0, client.unavailable)


def end_connections(process, port):
    """Ends the connections that a process has made to a port, as a network may."""
    pid = os.pidfd_open(process.pid)
    ended = 0
    for fd in os.listdir("/proc/%d/fd" % process.pid):
        with contextlib.suppress(OSError):
            if os.readlink("/proc/%d/fd/%s" % (process.pid, fd)).startswith("socket:"):
                copy = LIBC.syscall(PIDFD_GETFD, pid, int(fd), 0)
                if copy < 0 and ctypes.get_errno() == errno.EBADF:
                    continue  # closed meanwhile
                check(copy >= 0, "pidfd_getfd:", os.strerror(ctypes.get_errno()))
                with socket.socket(fileno=copy) as sock:
                    if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.getpeername()[1] == port:
                        sock.shutdown(socket.SHUT_RDWR)
                        ended += 1
    os.close(pid)
    check(ended > 0, "no connection to the port", port)  # it ends the others itself


def a_connection_ends_in_one_direction():
    """b2 misses the head and forgets its frames. The head, whose own connections live, must know, and at once."""
    with boards("b2") as b:
        b.set("0-2@head|3-11@b2")
        client = Client(b)
        client.more()
        for _ in range(3):
            end_connections(b.links["b2"].process, b.port["head"])
            state = failed(b, "b2")
            check(state["why"].endswith("is gone"), state)
            b.wait_up("b2")
            b.set("0-2@head|3-11@b2")
            client.more()
        client.end()
        check(client.unavailable == 0, client.unavailable)


def another_cut_is_refused():
    """A board whose piped cuts the model in other units, as another version may."""
    with boards("b2") as b:
        b.set("0-2@b2|3-11@head")
        client = Client(b)
        client.more()
        for _ in range(2):
            b.control.set(b.route("0-11@b2", border="ab" * 32))
            state = failed(b, "b2")
            check(state["why"].startswith("b2 cannot serve: it cuts the model in another way (piped "), state)
            client.more()  # the route before goes on
            b.set("0-2@head|3-11@b2")
            client.more()
        client.end()
        check(client.unavailable == 0, client.unavailable)


def routes_change_under_load():
    texts = ("0-11@head", "0-11@b2+b3*3", "0-2@b2|3-11@b3", "0-2@b3|3-7@head|8-11@b2", "0-5@head+b2|6-11@b3+b2", "0-2@b2|3-11@b3")
    with boards("b2", "b3") as b:
        b.set("0-11@b2")
        client = Client(b)
        for text in 2 * texts:
            client.more(60)
            b.set(text)
        for text in texts:  # as fast as they come
            b.control.set(b.route(text))
        b.wait("ready")
        client.more()
        client.end()
        check(client.unavailable == 0, client.unavailable)
        check(b.state(b.control.report)["resent"] == 0, b.control.report)


def copies_lose_one_and_go_on():
    """A route of one hop that loses a board serves on, without a new route."""
    with boards("b2", "b3") as b:
        b.set("0-11@b2+b3")
        client = Client(b)
        client.more()
        b.links["b3"].kill()
        b.control.wait(lambda r: not b.up(r, "b3"), "b3 is gone")
        client.more()
        check(b.state(b.control.report)["phase"] == "ready", b.control.report)
        b.links["b2"].kill()
        failed(b, "b2")
        b.set("0-11@head")
        client.more()
        client.end()


def a_withdrawn_route_is_unavailable():
    with boards("b2") as b:
        b.set("0-2@head|3-11@b2")
        client = Client(b)
        client.more()
        b.links["b2"].kill()
        failed(b, "b2")
        b.control.set(b.route(""))  # what waits comes back
        client.until_unavailable()
        b.start_link("b2")
        b.wait_up("b2")
        b.set("0-2@b2|3-11@head")
        client.more()
        b.control.set()  # no routes at all
        client.until_unavailable()
        client.end()


def holes_in_a_pool_cost_its_client():
    """A client of the head's piped-link takes its pages away while frames go to another board: it loses its pool, the
    link pays for no page, and goes on for others."""
    with boards("b2") as b:
        b.set("0-11@b2")
        client = Client(b)
        client.more(50)
        with pc.Connection(b.path("head", "link", "frames.sock")) as c:
            s = pc.Stream(c, model="digits", credits=8)
            check(s.infer(bytes(s.in_size)).status == "ok")
            if any("userfaultfd" in line for line in b.links["head"].lines):
                return "this kernel has no userfaultfd for users"
            pc.punch(s.fd, s.slots * s.slot_bytes)
            blocks = os.fstat(s.fd).st_blocks
            for _ in range(8):
                s.submit_as_is()
            for _ in range(8):
                r = s.result()
                check(r.status == "invalid_argument" and "lost pages" in r.text, r)
            check(os.fstat(s.fd).st_blocks == blocks, blocks, os.fstat(s.fd).st_blocks)
        client.more(200)
        client.end()
        check(client.unavailable == 0, client.unavailable)
    return None


def the_daemon_decides():
    """The head's daemon has a fixed route, which fails and comes back; its client notices nothing."""
    with boards("b2", boards="0-5@here|6-11@b2") as b:
        head = b.daemons["head"]
        client = Client(b, head.frames_path)

        def route():
            return head.status()["models"][0]["route"]

        def until_route(good):
            until(lambda: client.more(50) or good(route()), "a good route:", route)

        until_route(lambda r: r["serving"])
        sent = route()["answered"]
        until_route(lambda r: r["answered"] > sent + 200)
        b.links["b2"].kill()
        until_route(lambda r: not r["serving"])
        b.start_link("b2")
        until_route(lambda r: r["serving"])
        b.kill_daemon("b2")
        until_route(lambda r: not r["serving"])
        b.start_daemon("b2")
        until_route(lambda r: r["serving"])
        b.links["head"].kill()
        until_route(lambda r: not r["serving"])
        b.start_link("head")
        until_route(lambda r: r["serving"])
        sent = route()["answered"]
        until_route(lambda r: r["answered"] > sent + 200)
        client.end()
        check(client.unavailable == 0, client.unavailable)


CASES = (two_boards_in_a_chain, weights_come_from_the_head, the_middle_link_is_killed, the_middle_daemon_is_killed,
         the_middle_daemon_is_stopped, a_connection_ends_in_one_direction, another_cut_is_refused,
         routes_change_under_load, copies_lose_one_and_go_on, a_withdrawn_route_is_unavailable,
         holes_in_a_pool_cost_its_client, the_daemon_decides)
main([c for c in CASES if not sys.argv[4:] or c.__name__ in sys.argv[4:]])
