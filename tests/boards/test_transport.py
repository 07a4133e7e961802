#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Transports between boards: one suite over ZeroMQ and MPI, then what may happen to a link between network namespaces.

usage: test_transport.py SOURCE_ROOT LINK_NODE ("zmq" or "no zmq") ("mpi" or "no mpi") [CASE...]
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT, NODE = sys.argv[1:3]
HAVE_ZMQ, HAVE_MPI = sys.argv[3] == "zmq", sys.argv[4] == "mpi"
sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))
from cases import Failure, check, main  # noqa: E402  (the folder is known only now)
from network import Network, free_ports, network_reason  # noqa: E402
from program import Node  # noqa: E402
from raw_dealer import raw_dealer  # noqa: E402

SLOW = float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
PORT = 8474
TRIES = 3
SUITE = ("all_are_up", "whole_and_in_order", "full_then_room", "statistics_agree", "round_trips")


def suite_over_zmq(count, *more):
    if not HAVE_ZMQ:
        return "built without ZeroMQ"
    names = "abcdefgh"[:count]
    at = dict(zip(names, free_ports(count)))
    nodes = [Node([NODE, "--name", n, "--listen", "127.0.0.1:%d" % at[n], "--suite", *more] +
                  ["--peer=%s=127.0.0.1:%d" % (p, at[p]) for p in names if p != n]) for n in names]
    try:
        for node in nodes:
            for case in SUITE:
                line = node.wait(("ok " + case, "FAIL"), 60 * SLOW)
                check(line.startswith("ok"), node.said())
        for node in nodes:
            check(node.end() == 0, node.said())
    finally:
        for node in nodes:
            node.kill()
    return None


def zmq_two_boards():
    return suite_over_zmq(2)


def zmq_four_boards():
    return suite_over_zmq(4)


def zmq_two_boards_on_a_trusted_wire():
    return suite_over_zmq(2, "--trusted-wire")


def suite_over_mpi(count):
    if not HAVE_MPI:
        return "built without MPI (-Dmpi=enabled)"
    if not shutil.which("mpirun"):
        return "there is no mpirun"
    done = subprocess.run(
        ["mpirun", "-n", str(count), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", NODE, "--kind", "mpi",
         "--suite"] + ["--peer=" + n for n in "abcd"[:count]], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=100 * SLOW)
    check(done.returncode == 0, done.stdout + done.stderr)
    for case in SUITE:
        check(done.stdout.count("ok %s\n" % case) == count, case, "in", done.stdout)
    return None


def mpi_two_ranks():
    return suite_over_mpi(2)


def mpi_three_ranks():
    return suite_over_mpi(3)


def mpi_four_ranks():
    return suite_over_mpi(4)


def mpi_dies_as_a_whole():
    """What the page says: a rank that is killed ends the job."""
    if not HAVE_MPI or not shutil.which("mpirun"):
        return "no MPI here"
    job = Node(["mpirun", "-n", "2", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", NODE, "--kind", "mpi",
                "--peer=a", "--peer=b"])
    try:
        job.wait_all(("up a", "up b"), 30 * SLOW)
        ranks = subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True, check=False).stdout.split()
        check(len(ranks) == 2, "ranks:", ranks)
        os.kill(int(ranks[1]), signal.SIGKILL)
        check(job.wait_exit() != 0, "the job ended well")
    finally:
        job.kill()
    return None


def needs_no_keys_no_listening():
    if not HAVE_ZMQ:
        return "built without ZeroMQ"
    port = free_ports(1)[0]
    for arguments, reason in ((["--no-key", "--peer=b=127.0.0.1:1"], "nothing listens without"),
                              (["--peer=b=127.0.0.1:1", "--peer=c=127.0.0.1:2=b"], "same key"),
                              (["--peer=b=127.0.0.1:1=a"], "own key"),
                              (["--no-key", "--trusted-wire", "--peer=b=127.0.0.1:1"], "nothing listens without")):
        node = Node([NODE, "--name", "a", "--listen", "127.0.0.1:%d" % port, *arguments])
        check(reason in node.wait("refused", 10 * SLOW), node.said())
        check(node.wait_exit() == 1)
        with socket.socket() as s:
            check(s.connect_ex(("127.0.0.1", port)) != 0, "it listens")
    return None


class Pair:
    """Boards a and b in network namespaces with one cable. Use as a context."""

    def __init__(self, *more, **nodes):
        self.network = Network("ab")
        self.more = more
        self.nodes = {}
        try:
            for name in "ab":
                self.start(name, *nodes.get(name, ()))
        except BaseException:
            self.__exit__()
            raise

    def start(self, name, *arguments):
        other = "b" if name == "a" else "a"
        if not any(x.startswith("--peer") for x in arguments):
            arguments += ("--peer=%s=%s:%d" % (other, self.network.address(other), PORT),)
        self.nodes[name] = Node(self.network.spaces[name].inside() + [
            NODE, "--name", name, "--listen", "%s:%d" % (self.network.address(name), PORT), *self.more, *arguments])
        self.nodes[name].wait("ready", 10 * SLOW)
        return self.nodes[name]

    def both_up(self):
        self.nodes["a"].wait("up b", 15 * SLOW)
        self.nodes["b"].wait("up a", 15 * SLOW)
        return self.nodes["a"], self.nodes["b"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes.values():
            node.kill()
        self.network.remove()


def in_namespaces(case):
    """Skips where there can be none."""
    def run():
        if not HAVE_ZMQ:
            return "built without ZeroMQ"
        return network_reason() or case()
    run.__name__ = case.__name__
    return run


def noticed(node, what, began):
    """Not a gate: how soon depends on what else the machine does."""
    node.wait(what, 10 * SLOW)
    print("  %s after %.2f s" % (what, time.monotonic() - began))


@in_namespaces
def a_killed_board_comes_back():
    with Pair() as pair:
        a, b = pair.both_up()
        for _ in range(3):
            began = time.monotonic()
            b.kill()
            noticed(a, "down b", began)
            a.tell("send b 1 100")
            a.wait("not-sent b down", 5 * SLOW)
            b = pair.start("b")
            a, b = pair.both_up()
            a.tell("send b 2 100000")
            b.wait("message a 1 100000", 5 * SLOW)


@in_namespaces
def a_silent_link_comes_back():
    with Pair() as pair:
        a, b = pair.both_up()
        for side in ("a", "b"):
            began = time.monotonic()
            pair.network.spaces[side].must("ip", "link", "set", "eth0", "down")
            noticed(a, "down b", began)
            noticed(b, "down a", began)
            began = time.monotonic()
            pair.network.spaces[side].must("ip", "link", "set", "eth0", "up")
            a, b = pair.both_up()
            print("  back after %.2f s" % (time.monotonic() - began))
            b.tell("send a 3 5000")
            a.wait("message b 2 5000", 5 * SLOW)


@in_namespaces
def a_partition_in_one_direction():
    with Pair() as pair:
        a, b = pair.both_up()
        began = time.monotonic()
        pair.network.cut("a", "b")
        noticed(a, "down b", began)
        noticed(b, "down a", began)
        pair.network.mend("a", "b")
        pair.both_up()


@in_namespaces
def a_frozen_board_comes_back():
    with Pair() as pair:
        a, b = pair.both_up()
        a.tell("send b 4 1000")  # before it freezes
        began = time.monotonic()
        b.signal(signal.SIGSTOP)
        noticed(a, "down b", began)
        b.signal(signal.SIGCONT)
        a.wait("up b", 15 * SLOW)
        a.tell("send b 1 77")
        b.wait("message a 0 77", 10 * SLOW)


@in_namespaces
def what_was_queued_for_a_lost_board_is_dropped():
    """It is sent again by its owner; two copies would only fill the link."""
    with Pair("--queue-max", "4000000") as pair:
        a, b = pair.both_up()
        b.signal(signal.SIGSTOP)
        a.tell("send b 100 1000000")
        a.wait("not-sent b full", 10 * SLOW)
        a.wait("down b", 10 * SLOW)
        b.kill()
        pair.start("b").wait("up a", 15 * SLOW)
        a.wait("up b", 15 * SLOW)
        a.tell("stats b")
        check("queued=0 " in a.wait("stats", 5 * SLOW), a.said())
        a.tell("send b 1 5")
        check(pair.nodes["b"].wait("message a", 5 * SLOW) == "message a 0 5", pair.nodes["b"].said())


@in_namespaces
def a_slow_link_is_not_a_lost_one():
    """A message of megabytes on 10 Mbit/s takes longer than the silence that counts as a loss. If heartbeats waited behind it,
    each would end the connection; a machine that stands still for half a second ends it once."""
    said = []
    for _ in range(TRIES):
        with Pair() as pair:
            a, b = pair.both_up()
            if why := pair.network.cables["a"].shape("10mbit"):
                return why
            began = time.monotonic()
            a.tell("send b 2 4000000")
            try:
                b.wait("message a 1 4000000", 30 * SLOW)
            except Failure:  # it was lost with the connection
                pass
            took = time.monotonic() - began
            said.append(a.said() + b.said())
            if "message a 1" in b.said() and "down" not in said[-1]:
                check(took > 5, "no slow link: %.1f s" % took)
                return None
    check(False, "lost each time", *said)
    return None


@in_namespaces
def the_wrong_key_then_the_right_one():
    """b has another key than a knows; a has another than b knows. Neither is ever up, both recover by themselves."""
    with Pair() as pair:
        pair.both_up()
        pair.nodes["b"].kill()
        liar = pair.start("b", "--name", "mallory")
        pair.nodes["a"].wait("down b", 5 * SLOW)
        pair.nodes["a"].tell_until("stats b", lambda line: "denied=0" not in line, 10 * SLOW)
        check("up a" not in liar.said() and "up=0" in pair.nodes["a"].said().split("stats")[-1], liar.said())
        liar.kill()
        pair.start("b")
        pair.both_up()
        for node in pair.nodes.values():
            node.kill()
    with Pair(b=("--peer=a=10.214.0.1:%d=other" % PORT,)) as pair:  # b takes a for somebody else
        a, b = pair.nodes["a"], pair.nodes["b"]
        b.tell_until("stats a", lambda line: "denied=0" not in line, 10 * SLOW)
        check("up " not in a.said() and "up " not in b.said().replace("up=", ""), a.said(), b.said())
        b.kill()
        pair.start("b")
        pair.both_up()


@in_namespaces
def a_wire_that_only_one_trusts():
    with Pair(b=("--trusted-wire",)) as pair:
        a, b = pair.nodes["a"], pair.nodes["b"]
        a.tell_until("stats b", lambda line: "denied=0" not in line, 10 * SLOW)
        b.tell("stats a")
        b.wait("stats", 5 * SLOW)
        check("up b" not in a.said() and "up a" not in b.said(), a.said(), b.said())
        check("message" not in a.said() + b.said())


@in_namespaces
def oversized_parts_end_the_connection():
    with Pair(a=("--part-max", "1000")) as pair:
        a, b = pair.both_up()
        b.tell("send a 1 1000")
        a.wait("message b 0 1000", 5 * SLOW)
        b.tell("send a 1 1200")
        b.wait("down a", 5 * SLOW)
        b.wait("up a", 10 * SLOW)
        b.tell("send a 1 999")
        a.wait("message b 0 999", 5 * SLOW)
        check("1200" not in a.said())


def strangers_and_garbage():
    """Raw bytes, other protocols, no key, an unknown key, messages of too many parts: counted, and all is well."""
    if not HAVE_ZMQ:
        return "built without ZeroMQ"
    ports = free_ports(2)
    a = Node([NODE, "--name", "a", "--listen", "127.0.0.1:%d" % ports[0], "--peer=b=127.0.0.1:%d" % ports[1]])
    b = None
    try:
        a.wait("ready", 10 * SLOW)
        for junk in (b"GET / HTTP/1.0\r\n\r\n", bytes(range(256)) * 64, b"\xff" + b"\0" * 8 + b"\x7f" + b"\3" + b"\1" * 64,
                     b"\xff\0\0\0\0\0\0\0\1\x7f\3\0CURVE" + b"\0" * 15 + b"\0" * 32 + b"\4\xc8\5HELLO" + b"\1" * 194):
            with socket.create_connection(("127.0.0.1", ports[0])) as s:
                s.settimeout(10 * SLOW)
                try:
                    s.sendall(junk)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(4096):
                        pass
                except OSError:  # it was refused meanwhile
                    pass
        a.tell_until("stats b", lambda line: int(line.split("denied=")[1].split()[0]) >= 1, 10 * SLOW)
        for key in (None, "stranger"):
            before = a.stat("denied")
            with raw_dealer(ports[0], server="a", key=key) as dealer:
                a.tell_until("stats b", lambda line, n=before: int(line.split("denied=")[1].split()[0]) > n, 10 * SLOW)
                dealer.send([b"hello"])
        with raw_dealer(ports[0], server="a", key="b") as dealer:
            check(dealer.send([b"x"] * 40))
            a.tell_until("stats b", lambda line: "garbage=1" in line, 10 * SLOW)
        check("message" not in a.said(), a.said())
        b = Node([NODE, "--name", "b", "--listen", "127.0.0.1:%d" % ports[1], "--peer=a=127.0.0.1:%d" % ports[0]])
        b.wait("up a", 10 * SLOW)
        b.tell("send a 1 10")
        a.wait("message b 0 10", 10 * SLOW)
    finally:
        for node in (a, b):
            if node:
                node.kill()
    return None


@in_namespaces
def latency_is_shown():
    """Not a gate: round trips between namespaces, printed."""
    for more in ((), ("--trusted-wire",)):
        with Pair(*more) as pair:
            a, _ = pair.both_up()
            for size in (64, 802816):
                a.tell("rtt b 100 %d" % size)
                least, median = (int(x) / 1e3 for x in a.wait("rtt", 60 * SLOW).split()[3:])
                check(least > 0)
                print("  %s%d bytes: least %.0f us, median %.0f us" % ("trusted wire, " if more else "", size, least, median))


main((zmq_two_boards, zmq_four_boards, zmq_two_boards_on_a_trusted_wire, mpi_two_ranks, mpi_three_ranks, mpi_four_ranks,
      mpi_dies_as_a_whole, needs_no_keys_no_listening, a_killed_board_comes_back, a_silent_link_comes_back,
      a_partition_in_one_direction, a_frozen_board_comes_back, what_was_queued_for_a_lost_board_is_dropped,
      a_slow_link_is_not_a_lost_one, the_wrong_key_then_the_right_one, a_wire_that_only_one_trusts,
      oversized_parts_end_the_connection, strangers_and_garbage, latency_is_shown), sys.argv[5:])
