# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of boards, a switch that joins them, and cables that are slow, lossy, cut or pulled.

A namespace lives as long as the program that holds it, which ends with its standard input: so nothing is left when a
test is killed. Each has a host name of its own, too.
"""
import os
import socket
import subprocess

from cases import Failure, check
from surroundings import lacking

SUBNET = "10.214.0"
QUEUE_BYTES = "1mb"  # that a shaped queue may hold
HOLD = 'hostname "$0" && ip link set lo up && echo ready && exec cat >/dev/null'


def free_ports(count):
    """Ports of the loopback device that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def run(*words):
    """Return: whether it succeeded, what it said."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return False, "there is no " + words[0]
    return done.returncode == 0, (done.stderr or done.stdout).strip()


class Space:
    """A network namespace with a host name."""

    def __init__(self, name):
        self.name = name
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c", HOLD, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        line = self.holder.stdout.readline()
        if line != "ready\n":
            self.remove()
            raise Failure("no network namespace: " + (line.strip() or "unshare failed"))
        self.path = "/proc/%d/ns/net" % self.holder.pid

    def inside(self):
        """Return: the beginning of a command line that runs here."""
        return ["nsenter", "--net=" + self.path, "--uts=/proc/%d/ns/uts" % self.holder.pid]

    def run(self, *words):
        return run(*self.inside(), *words)

    def must(self, *words):
        good, why = self.run(*words)
        check(good, *words, "in", self.name + ":", why)

    def remove(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


class Cable:
    """From eth0 of a namespace to a port of the switch."""

    def __init__(self, space, switch, port, program):
        """@program: the cable program, which can delay and lose packets; None: a plain one."""
        self.space, self.switch, self.port, self.program = space, switch, port, None
        self.late_ms = self.lost = 0
        self.rate = None
        if program:
            self.program = subprocess.Popen([program, space.path, "eth0", switch.path, port], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            line = self.program.stdout.readline()
            check(line == "ready\n", "no cable:", line)
        else:
            space.must("ip", "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns",
                       str(switch.holder.pid))

    def plugged(self, yes):
        """Pulled at the switch: the board sees its carrier go."""
        self.switch.must("ip", "link", "set", self.port, "up" if yes else "down")

    def shape(self, rate):
        """@rate: both directions, as tc has it, such as 100mbit; None: as fast as it goes. Return: a reason why not."""
        self.rate = rate
        return self.queues()

    def bad(self, late_ms, lost):
        """Delays each direction, and loses so many percent. Return: a reason why not."""
        self.late_ms, self.lost = late_ms, lost
        if not self.program:
            return self.queues()
        for line in ("delay %d\n" % (late_ms * 1000), "loss %g\n" % lost):
            self.program.stdin.write(line)
            self.program.stdin.flush()
            check(self.program.stdout.readline() == line, "the cable did not answer", line)
        return None

    def queues(self):
        for space, device in ((self.space, "eth0"), (self.switch, self.port)):
            parent = ["root"]
            if not self.rate or self.late_ms or self.lost:
                space.run("tc", "qdisc", "delete", "dev", device, "root")
            if self.rate:
                # small against what measures a link: a burst costs no time, on no cable
                burst = "16kb" if self.rate.endswith("gbit") else "4kb"
                # In place of the queue that is there, with what waits in it, and with room for a few messages: a slow
                # cable loses nothing.
                good, why = space.run("tc", "qdisc", "replace", "dev", device, *parent, "handle", "1:", "tbf", "rate",
                                      self.rate, "burst", burst, "limit", QUEUE_BYTES)
                if not good:
                    return "no rates: " + why
                parent = ["parent", "1:1"]
            if not self.program and (self.late_ms or self.lost):
                good, why = space.run("tc", "qdisc", "add", "dev", device, *parent, "netem", "limit", "4096", "delay",
                                      "%dms" % self.late_ms, "loss", "%g%%" % self.lost)
                if not good:
                    return "no delays: " + why
        return None

    def remove(self):
        if self.program:
            self.program.stdin.close()
            self.program.wait()
            self.program.stdout.close()


class Network:
    """Namespaces with eth0 at 10.214.0.1, .2, ... on one switch. @cable: see Cable."""

    def __init__(self, names, cable=None):
        self.names, self.spaces, self.cables, self.switch = list(names), {}, {}, None
        try:
            self.switch = Space("switch")
            self.switch.must("ip", "link", "add", "switch", "type", "bridge")
            self.switch.must("ip", "link", "set", "switch", "up")
            for i, name in enumerate(self.names):
                space = self.spaces[name] = Space(name)
                port = "port%d" % (i + 1)
                self.cables[name] = Cable(space, self.switch, port, cable)
                self.switch.must("ip", "link", "set", port, "master", "switch", "up")
                space.must("ip", "address", "add", self.address(name) + "/24", "dev", "eth0")
                space.must("ip", "link", "set", "eth0", "up")
        except BaseException:
            self.remove()
            raise

    def address(self, name):
        return "%s.%d" % (SUBNET, self.names.index(name) + 1)

    def cut(self, source, to):
        """What source sends to this one is lost, because it is addressed to a device that is not there."""
        self.spaces[source].must("ip", "neighbour", "replace", self.address(to), "lladdr", "02:00:00:00:00:99",
                                 "dev", "eth0", "nud", "permanent")

    def mend(self, source, to):
        self.spaces[source].must("ip", "neighbour", "delete", self.address(to), "dev", "eth0")

    def remove(self):
        for each in [*self.cables.values(), *self.spaces.values(), *([self.switch] if self.switch else [])]:
            each.remove()


def network_reason():
    """Return: why there can be no such networks here; None: there can."""
    if lacking("own network"):
        return lacking("own network")
    try:
        Network("ab").remove()
    except (Failure, OSError) as e:
        return str(e)
    return None


def bad_cable_reason(program):
    """@program: as of Cable. Return: why cables cannot be delayed or lose packets; None: they can."""
    try:
        network = Network("a", program)
    except (Failure, OSError) as e:
        return str(e)
    why = network.cables["a"].bad(1, 1)
    network.remove()
    return why
