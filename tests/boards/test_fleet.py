#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The machinery of fleets: each fault that other tests inject does what it says, and nothing is left behind.

usage: test_fleet.py SOURCE_ROOT [CASE...]     (PIPED_BUILD: the build folder;
PIPED_TEST_LONG=1: also what takes a quiet minute)
"""
import os
import re
import subprocess
import sys
import time

ROOT = sys.argv[1]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
from cases import Failure, check, main, only_long  # noqa: E402  (the folders are known only now)
from daemon import DIGITS  # noqa: E402
from fleet import CABLE, Fleet  # noqa: E402
from groups import group_reason, mounts  # noqa: E402
from load import CLIENT, Load  # noqa: E402
from network import Network, bad_cable_reason, network_reason  # noqa: E402
from program import LIMIT_S  # noqa: E402
from wait import until  # noqa: E402

PINGS = """import socket, sys, time
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
a.bind((sys.argv[1], 9000)); a.settimeout(0.15)
got, least = 0, 9.0
for i in range(int(sys.argv[3])):
    began = time.monotonic()
    a.sendto(b"x%d" % i, (sys.argv[2], 9000))
    try:
        while a.recv(99) != b"x%d" % i: pass
        got, least = got + 1, min(least, time.monotonic() - began)
    except OSError: pass
print(got, least * 1e3)"""
ECHO = """import socket, sys
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
b.bind((sys.argv[1], 9000)); print("ready", flush=True)
while True:
    data, who = b.recvfrom(99); b.sendto(data, who)"""

FLOW = """import socket, sys, time
a = socket.create_server((sys.argv[1], 9001)); print("ready", flush=True)
b = a.accept()[0]; b.settimeout(60)
left, began = int(sys.argv[2]) - len(b.recv(1)), time.monotonic()
while left > 0: left -= len(b.recv(65536)) or left + 1
print(left, time.monotonic() - began)"""
SEND = "import socket, sys; socket.create_connection((sys.argv[1], 9001), 60).sendall(bytes(int(sys.argv[2])))"


def seconds_for(network, source, to, count):
    """Return: seconds from the first to the last of so many bytes by TCP."""
    with subprocess.Popen(network.spaces[to].inside() + [sys.executable, "-c", FLOW, network.address(to), str(count)],
                          stdout=subprocess.PIPE, text=True) as taker:
        taker.stdout.readline()
        network.spaces[source].must(sys.executable, "-c", SEND, network.address(to), str(count))
        left, seconds = taker.stdout.readline().split()
    check(left == "0", "a connection ended before its end")
    return float(seconds)


def pings(network, count):
    """Return: datagrams of b1 that b2 sent back, ms of the fastest."""
    echo = subprocess.Popen(network.spaces["b2"].inside() + [sys.executable, "-c", ECHO, network.address("b2")],
                            stdout=subprocess.PIPE)
    try:
        echo.stdout.readline()
        said = network.spaces["b1"].run(sys.executable, "-c", PINGS, network.address("b1"), network.address("b2"),
                                        str(count))[1]
    finally:
        echo.kill()
        echo.wait()
        echo.stdout.close()
    got, ms = said.split()
    return int(got), float(ms)


def in_network(case):
    """Skips where there can be none."""
    def run():
        return network_reason() or case()
    run.__name__ = case.__name__
    return run


@in_network
def cables_are_late_and_lossy():
    why = bad_cable_reason(None)
    program = CABLE if why else None
    why = bad_cable_reason(program)
    if why:
        return why
    network = Network(("b1", "b2"), program)
    try:
        check(pings(network, 20)[0] > 15)
        network.cables["b2"].bad(20, 0)
        got, ms = pings(network, 5)
        check(got > 2 and ms >= 40, got, ms)
        network.cables["b2"].bad(0, 50)
        got, _ = pings(network, 30)
        check(0 < got < 20, got, "of 30 with half of them lost each way")
        network.cables["b2"].bad(0, 0)
        check(pings(network, 20)[0] > 15)
        network.cut("b2", "b1")
        check(pings(network, 2)[0] == 0)
        network.mend("b2", "b1")
        check(pings(network, 5)[0] > 2)
        network.cables["b1"].plugged(False)
        check(pings(network, 2)[0] == 0)
        network.cables["b1"].plugged(True)
        check(pings(network, 9)[0] > 0)
    finally:
        network.remove()
    return None


@in_network
def boards_meet_and_part():
    with Fleet(3) as fleet:
        head = fleet.head.link
        check(re.search(r"^b3 .* up for", fleet.head.board("list"), re.M), fleet.head.board("list"))
        for fault, repair in ((fleet["b2"].kill, fleet["b2"].start), (fleet["b2"].freeze, fleet["b2"].thaw),
                              (lambda: fleet.network.cut("b2", "b1"), lambda: fleet.network.mend("b2", "b1")),
                              (lambda: fleet.network.cables["b2"].plugged(False),
                               lambda: fleet.network.cables["b2"].plugged(True))):
            began = time.monotonic()
            fault()
            head.wait("b2 is gone")
            print("  gone after %.2f s" % (time.monotonic() - began))
            repair()
            head.wait("b2 is there")
        check(head.count("b3 is gone") == 0)


@in_network
def frames_are_checked():
    with Fleet(2) as fleet:
        with Load(fleet, "digits", DIGITS) as load:
            load.wait(1000)
            fleet.head.kill_daemon()
            fleet.head.start_daemon()
            load.more(1000)
        check(load.end()["reconnects"] == 1, load.counts)
        liar = Load(fleet, "digits", DIGITS)
        liar.wait(100)
        liar.program.kill()
        try:
            other = os.path.join(fleet.folder, "other.f32")
            with open(os.path.join(fleet.head.folder, "client", "answers.f32"), "rb") as f:
                answers = bytearray(f.read())
            answers[3] ^= 1
            with open(other, "wb") as f:
                f.write(answers)
            inputs = os.path.join(fleet.head.folder, "client", "inputs.f32")
            liar.program = fleet.program([CLIENT, fleet.head.frames_path, "digits", inputs, other])
            liar.wait(100)
            liar.end()
        except Failure as e:
            check(re.search(r"wrong=[1-9]", str(e)), e)
        else:
            check(False, "wrong answers were not noticed")


@in_network
def boards_have_limits():
    why = group_reason(cpu=0.2, memory=1 << 28)
    if why:
        return why
    with Fleet(2, cpu=0.2, memory={"b2": 1 << 28}) as fleet:
        with Load(fleet, "digits", DIGITS) as load:
            load.wait(300)
            before, began = cpu_s(fleet.head.daemon.process.pid), time.monotonic()
            load.more(600)
            share = (cpu_s(fleet.head.daemon.process.pid) - before) / (time.monotonic() - began)
        check(share < 0.3, "a board of 0.2 core took", share)
        check(fleet["b2"].group.killed() == 0)
    one, two = mounts()
    for mount in [*one.values(), *([two] if two else [])]:
        left = [n for n in os.listdir(mount) if n.startswith("piped-fleet-%d-" % os.getpid())]
        check(not left, mount, left)
    return None


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@in_network
def rates_hold():
    """A cable that is slow takes its time, each way; what comes first may have waited."""
    network, count = Network(("b1", "b2")), 500000
    try:
        for rate, least in ((None, 0), ("10mbit", 0.39), ("40mbit", 0.09), (None, 0)):
            why = network.cables["b2"].shape(rate)
            if why:
                return why
            for ends in (("b1", "b2"), ("b2", "b1")):
                took = seconds_for(network, *ends, count)
                check(took >= least, count, "bytes over", rate, "took", took)
    finally:
        network.remove()
    return None


@in_network
def a_link_measures_its_cable():
    with Fleet(2, rate="10mbit") as fleet:
        def link():
            return fleet.head.links()["b2"]

        def holds():
            until(lambda: link()["kilobyte_us"], "a rate", link)
            return 600 < link()["kilobyte_us"] < 1200

        def measure_anew(_):
            """What was measured in a busy moment would count until as much had come again."""
            fleet["b2"].link.kill()
            fleet.head.link.wait("b2 is gone")
            fleet["b2"].start_link()
            fleet.head.link.wait("b2 is there")
        until(holds, "us for each kB on 10 Mbit/s:", link, limit_s=LIMIT_S, pause=measure_anew)


main((cables_are_late_and_lossy, rates_hold, boards_meet_and_part, frames_are_checked, boards_have_limits,
      *only_long(a_link_measures_its_cable)), sys.argv[2:])
