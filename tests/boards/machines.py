# SPDX-License-Identifier: Apache-2.0
"""Boards on one machine: network namespaces joined by cables, and programs in them that talk in lines."""
import contextlib
import ctypes
import ctypes.util
import os
import select
import signal
import socket
import subprocess

from cases import Failure, check
from surroundings import lacking
from wait import asked, until


def free_ports(count):
    """Ports of the loopback device that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def ip(*words, program="ip"):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode == 0, done.stderr.strip()


def netns_reason():
    """Return: why there can be no network namespaces here; None: there can."""
    if lacking("own network"):
        return lacking("own network")
    name = "piped-try-%d" % os.getpid()
    try:
        good, why = ip("netns", "add", name)
    except FileNotFoundError:
        return "there is no ip (iproute2)"
    if not good:
        return "no network namespaces: " + why
    good, why = ip("-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    ip("netns", "delete", name)
    return None if good else "no virtual cables: " + why


class Machines:
    """Two network namespaces with a cable: 10.213.0.1 and 10.213.0.2, in both named eth0."""

    def __init__(self, first, second):
        self.space = {n: "piped-%d-%s" % (os.getpid(), n) for n in (first, second)}
        self.address = {first: "10.213.0.1", second: "10.213.0.2"}
        try:
            for space in self.space.values():
                self.must("netns", "add", space)
            a, b = self.space.values()
            self.must("link", "add", "eth0", "netns", a, "type", "veth", "peer", "name", "eth0", "netns", b)
            for name, space in self.space.items():
                self.must("-n", space, "address", "add", self.address[name] + "/24", "dev", "eth0")
                self.must("-n", space, "link", "set", "lo", "up")
                self.must("-n", space, "link", "set", "eth0", "up")
        except BaseException:
            self.remove()
            raise

    @staticmethod
    def must(*words):
        good, why = ip(*words)
        check(good, "ip", *words, why)

    def inside(self, name):
        """Return: the beginning of a command line that runs in this namespace."""
        return ["ip", "netns", "exec", self.space[name]]

    def link(self, name, how):
        self.must("-n", self.space[name], "link", "set", "eth0", how)

    def tc(self, name, *words):
        return ip("-n", self.space[name], *words, program="tc")[0]

    def shape(self, name, rate):
        """Return: False: impossible here."""
        return self.tc(name, "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "16kb", "latency", "50ms")

    def drop_out_of(self, name):
        """What leaves this machine is lost, because it is addressed to a device that is not there; what comes arrives."""
        other = next(address for n, address in self.address.items() if n != name)
        self.must("-n", self.space[name], "neighbour", "replace", other, "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud",
                  "permanent")

    def drop_nothing(self, name):
        other = next(address for n, address in self.address.items() if n != name)
        self.must("-n", self.space[name], "neighbour", "delete", other, "dev", "eth0")

    def remove(self):
        for space in self.space.values():
            ip("netns", "delete", space)


class Node:
    """A program that tells in lines what happens. Lines are waited for in order: each is met once."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
        self.pid = self.process.pid
        self.lines, self.met, self.rest = [], 0, b""
        os.set_blocking(self.process.stdout.fileno(), False)

    def read(self, seconds):
        """Reads what comes within this time. Return: False: it has ended."""
        if not select.select([self.process.stdout], [], [], max(seconds, 0))[0]:
            return True
        data = self.process.stdout.read()
        if not data:
            return data is None
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.lines += [line.decode(errors="replace") for line in lines]
        return True

    def wait(self, starts, seconds):
        """Return: the next line that starts so; those before it count as met."""
        def line():
            while self.met < len(self.lines):
                self.met += 1
                if self.lines[self.met - 1].startswith(starts):
                    return self.lines[self.met - 1]
            return None
        return self.wait_for(line, "a line %r" % (starts,), seconds)

    def wait_for(self, good, what, seconds):
        """Asks for good() at each of its lines, until it ends. Return: what that gave."""
        def news(left_s):
            if not self.read(left_s):
                raise Failure("it ended before %s; said:\n%s" % (what, self.said()))
        return until(good, what, "; said:\n", self.said, limit_s=seconds, pause=news)

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def tell_until(self, line, good, seconds):
        """Asks again and again, until the answer is good."""
        def answer():
            self.tell(line)
            said = self.wait(line.split()[0], seconds)
            return good(said) and said
        return until(answer, "a good answer to", line, self.said, limit_s=seconds, pause=lambda left_s: self.read(0.05))

    def wait_all(self, lines, seconds):
        """Waits for several lines in any order."""
        self.wait_for(lambda: all(line in self.lines for line in lines), "all of %s" % (lines,), seconds)

    def count(self, what):
        """A number of "stats b"."""
        self.tell("stats b")
        return int(self.wait("stats", 10).split(what + "=")[1].split()[0])

    def said(self):
        return "\n".join(self.lines)

    def signal(self, number):
        os.kill(self.pid, number)

    def ended(self, seconds):
        """Return: its exit code."""
        asked(lambda: not self.read(0), seconds, self.read)
        return self.process.wait(seconds)

    def end(self):
        self.process.stdin.close()
        return self.ended(30)

    def kill(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        with contextlib.suppress(OSError):
            self.process.stdin.close()


def keys_of(name):
    """The pair that link_node has for this name."""
    sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))
    seed, public, secret = (ctypes.create_string_buffer(32) for _ in range(3))
    sodium.crypto_generichash(seed, ctypes.c_size_t(32), name.encode(), ctypes.c_ulonglong(len(name)), None, ctypes.c_size_t(0))
    sodium.crypto_box_seed_keypair(public, secret, seed)
    return public.raw, secret.raw


class raw_dealer:
    """A client of libzmq that keeps to none of our rules. @server: a name, or a public key; @key: a name; None:
    it speaks without keys."""

    def __init__(self, port, server, key):
        self.zmq = ctypes.CDLL(ctypes.util.find_library("zmq"))
        for name in ("zmq_ctx_new", "zmq_socket"):
            getattr(self.zmq, name).restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.zmq.zmq_ctx_new())
        self.socket = ctypes.c_void_p(self.zmq.zmq_socket(self.context, 5))
        self.option(17, (0).to_bytes(4, "little"))
        if key:
            public, secret = keys_of(key)
            self.option(48, public)
            self.option(49, secret)
            self.option(50, server if isinstance(server, bytes) else keys_of(server)[0])
        check(self.zmq.zmq_connect(self.socket, b"tcp://127.0.0.1:%d" % port) == 0)

    def option(self, number, value):
        check(self.zmq.zmq_setsockopt(self.socket, number, value, ctypes.c_size_t(len(value))) == 0, "option", number)

    def send(self, parts):
        """Never waits: a refused connection would never take it. Return: whether the message was taken."""
        return all([self.zmq.zmq_send(self.socket, part, ctypes.c_size_t(len(part)), 1 | (2 if i + 1 < len(parts) else 0)) >= 0
                    for i, part in enumerate(parts)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.zmq.zmq_close(self.socket)
        self.zmq.zmq_ctx_term(self.context)
