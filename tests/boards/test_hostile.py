#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped-link against boards that lie and strangers at its port, while frames of honest boards go on.

In every case a route over two honest boards serves: each frame must be answered once, in order, right. Afterwards nothing has
crashed, memory and descriptors are as before, and no key stands in a log.

usage: test_hostile.py SOURCE_ROOT LINK PIPECTL HOSTILE_NODE [CASE...]
PIPED_BUILD: the build folder; PIPED_TEST_LONG=1: more of all; PIPED_TEST_SEED: another seed
"""
import contextlib
import ctypes
import ctypes.util
import os
import random
import re
import resource
import socket
import sys

ROOT, LINK, PIPECTL, HOSTILE = sys.argv[1:5]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import hop_boards  # noqa: E402  (the folders are known only now)
from cases import check, main  # noqa: E402
from daemon import SANITIZER_WORDS, VarlinkError  # noqa: E402
from hop_boards import LIMIT_S, Client  # noqa: E402
from network import free_ports  # noqa: E402
from program import Node  # noqa: E402
from raw_dealer import keys_of, raw_dealer  # noqa: E402
from wait import until  # noqa: E402

LONG = os.environ.get("PIPED_TEST_LONG") == "1"
SANITIZER = os.environ.get("PIPED_TEST_SANITIZER")
TIMES = 10 if LONG else 1
SEED = int(os.environ.get("PIPED_TEST_SEED", "20261123"), 0)
GROWN_KIB = 48 << 10  # what libzmq and malloc() may keep
GROWN_DESCRIPTORS = 8
LINES_MAX = 1500  # of a log: a message more must not be a line more
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01"  # of ZMTP 3.1, up to the mechanism


class Boards(hop_boards.Boards):
    """head and b2, which are honest, and evil, which is on their lists."""

    def __init__(self, *link_args, **more):
        super().__init__(PIPECTL, LINK, "b2", link_args=(*link_args, "--unused-s", "1"), **more)
        self.evil = None
        self.port["evil"] = free_ports(1)[0]
        key = keys_of("evil")[0]
        self.print["evil"] = hop_boards.hashlib.blake2b(key, digest_size=16).hexdigest()[:16]
        for name in self.names:
            self.run("board", "--state-dir", self.path(name, "state"), "add", "evil", "127.0.0.1:%d" % self.port["evil"], key.hex())
        self.evil_args = link_args

    def start_evil(self):
        peers = [w for n in self.names for w in ("--peer", "%s=127.0.0.1:%d=%s" % (n, self.port[n], self.key[n]))]
        self.evil = Node([HOSTILE, "--name", "evil", "--listen", "127.0.0.1:%d" % self.port["evil"], *peers, *self.evil_args,
                          "--identity", self.known["hash"], "--content", "digits-" + self.known["hash"][:8],
                          "--seed", str(SEED)])
        self.evil.wait_all(["up " + n for n in self.names], LIMIT_S)

    def ask(self, *words):
        """Lets evil do something to its end."""
        self.evil.tell(" ".join(map(str, words)))
        self.evil.wait("done", 2 * LIMIT_S)

    def processes(self):
        return {"link of " + n: p.pid for n, p in self.links.items()} | {
            "daemon of " + n: d.process.pid for n, d in self.daemons.items()}

    def sizes(self):
        """Return: KiB of memory and descriptors of each process."""
        sizes = {}
        for name, pid in self.processes().items():
            with open("/proc/%d/status" % pid, encoding="ascii") as f:
                sizes[name] = (int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)), len(os.listdir("/proc/%d/fd" % pid)))
        return sizes

    def is_small(self, before):
        until(lambda: all(now[1] <= before[n][1] + GROWN_DESCRIPTORS for n, now in self.sizes().items()),
              "an end of descriptors; before:", before, "now:", self.sizes,
              pause=lambda left_s: self.daemons["head"].call("Status"))  # connections end one by one
        now = self.sizes()
        for name in now:
            check(SANITIZER or now[name][0] <= before[name][0] + GROWN_KIB, "memory of the", name, before[name], now[name])
        print("  %s" % ", ".join("%s %+d KiB" % (n, now[n][0] - before[n][0]) for n in now))

    def is_well(self):
        """All still run, and said nothing that they must not say."""
        secrets = [bytes.fromhex(k).hex() for k in self.key.values()] + [keys_of("evil")[0].hex()]
        for name in self.names:
            with open(self.path(name, "state", "board.key"), encoding="ascii") as f:
                secrets += re.findall(r"[0-9a-f]{64}", f.read())
            check(self.links[name].process.poll() is None, "the link of", name, "has ended\n", self.links[name].said()[-2000:])
            check(self.daemons[name].process.poll() is None, "the daemon of", name, "has ended")
            with open(self.daemons[name].log_path, encoding="utf-8", errors="replace") as f:
                daemon = f.read()
            lines = self.links[name].lines
            said = "\n".join(lines) + daemon
            check(not any(s in said for s in secrets), "a key stands in a log of", name)
            check(not any(w in said for w in SANITIZER_WORDS), said[-4000:])
            check(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said) is None, "bytes of others stand in a log:", name)
            check(len(lines) <= LINES_MAX * TIMES, len(lines), "lines of the link of", name, "such as", lines[-1])
        print("  lines: %s" % ", ".join("%s %d" % (n, len(self.links[n].lines)) for n in self.names))

    def __exit__(self, kind, value, trace):
        if self.evil:
            self.evil.kill()
        for link in self.links.values():
            if link.process.poll() is None:
                link.signal(15)
        super().__exit__(kind, value, trace)


@contextlib.contextmanager
def under_attack(*link_args, evil=True):
    """Frames of the model that is spread, and of one that is not, go on; then all must be as before. Yields the boards."""
    with Boards(*link_args, boards="0-5@here|6-11@b2") as b:
        head = b.daemons["head"]
        head.call("Load", {"name": "other", "path": b.model})
        if evil:
            b.start_evil()
        serving(b)
        clients = [Client(b, head.frames_path), Client(b, head.frames_path, model="other")]
        yield b
        for client in clients:
            client.more(50)
        serving(b)
        for client in clients:
            client.end()
            check(client.unavailable == 0, client.unavailable)
        print("  frames: %d spread, %d of the other model" % tuple(c.answered for c in clients))
        b.is_well()


def route_of(b):
    return next(m for m in b.daemons["head"].status()["models"] if m["name"] == "digits")["route"]


def serving(b):
    """Until boards answer frames of the model."""
    first = None
    with Probe(b) as probe:
        def answers():
            nonlocal first
            probe.infer()
            route = route_of(b)
            first = route["answered"] if first is None or not route["serving"] else first
            return route["serving"] and route["answered"] > first
        until(answers, "a route that serves:", lambda: route_of(b))


class Probe:
    """One frame at a time."""

    def __init__(self, b):
        self.connection = hop_boards.pc.Connection(b.daemons["head"].frames_path)
        self.stream = hop_boards.pc.Stream(self.connection, model="digits", credits=1)

    def infer(self):
        check(self.stream.infer(bytes(self.stream.input_bytes)).status == "ok")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.__exit__(None, None, None)


def any_message_of_a_board_on_the_list():
    with under_attack() as b:
        def attack(thousands):
            for name in b.names:
                b.ask("fuzz", name, 1000 * thousands)
                b.ask("small", name, 10000 * thousands)
                b.ask("greet", name, 100 * thousands)
        attack(2)
        before = b.sizes()
        attack(4 * TIMES)
        b.is_small(before)


def a_wire_without_keys():
    """The same without encryption, and sizes and parts that libzmq would not send."""
    with under_attack("--trusted-wire") as b:
        for name in b.names:
            b.ask("fuzz", name, 500 * TIMES)
        before = b.sizes()
        for name in b.names:
            b.ask("fuzz", name, 2000 * TIMES)
            for identity in (b"u" + keys_of("evil")[0], b"b" + bytes(32), b"x", bytes(255)):
                odd_sizes(b.port[name], identity)
        b.is_small(before)


def low_order_hello(server):
    """A HELLO of CurveZMQ whose short-term key is a point of low order, so that everybody knows the shared secret."""
    sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))
    shared, key, box = ctypes.create_string_buffer(32), bytes(32), ctypes.create_string_buffer(80)
    sodium.crypto_core_hsalsa20(shared, bytes(16), bytes(32), None)
    sodium.crypto_secretbox_easy(box, bytes(64), ctypes.c_ulonglong(64), b"CurveZMQHELLO---" + (1).to_bytes(8, "big"), shared)
    hello = b"\x05HELLO\x01\x00" + bytes(72) + key + (1).to_bytes(8, "big") + box.raw[:80]
    check(len(hello) == 200 and len(server) == 32)
    return b"\x04" + bytes([len(hello)]) + hello


def greeting(mechanism, server=0):
    return (GREETING[:11] + b"\x00" + mechanism.ljust(20, b"\0") + bytes([server]) + bytes(31)).replace(b"\x03\x01", b"\x03\x00")


def odd_sizes(port, identity):
    """A hand-made peer: frames that say that they are longer than any memory, and messages of too many parts."""
    ready = b"\x05READY\x0bSocket-Type" + (6).to_bytes(4, "big") + b"DEALER"
    ready += b"\x08Identity" + len(identity).to_bytes(4, "big") + identity
    shaken = greeting(b"NULL") + bytes([4 if len(ready) < 256 else 6])
    shaken += (len(ready).to_bytes(1, "big") if len(ready) < 256 else len(ready).to_bytes(8, "big")) + ready
    for size in ((1 << 28) + 65, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        talk(port, shaken + b"\x02" + size.to_bytes(8, "big") + b"x" * 100, True)
    talk(port, shaken + b"\x01\x01x" * 200 + b"\x00\x00", False)
    talk(port, shaken + b"\x00\x00" * 50, False)
    talk(port, shaken + b"\x04\xff", False)


def talk(port, data, refused):
    """@refused: the other end must hang up."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as s, contextlib.suppress(ConnectionError):
        s.sendall(data)
        while refused and s.recv(4096):
            pass


class Crowd:
    """Many connections that stay open."""

    def __init__(self, port, count, data=b""):
        self.sockets = []
        for _ in range(count):
            s = socket.socket()
            s.setblocking(False)
            self.sockets.append(s)
            s.connect_ex(("127.0.0.1", port))
        for s in self.sockets if data else ():
            with contextlib.suppress(OSError):
                s.send(data)

    def close(self):
        for s in self.sockets:
            s.close()


def strangers(b, draw, times):
    """Who has no key on the list, at every port."""
    for name in b.names:
        port, key = b.port[name], bytes.fromhex(b.key[name])
        curve = greeting(b"CURVE")
        hello = low_order_hello(key)
        talk(port, curve + hello, True)
        for said in (greeting(b"NULL"), greeting(b"PLAIN"), greeting(b"CURVE", 1), b"GET / HTTP/1.1\r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), curve[:10], curve[:33], curve,
                     curve + hello[:50], curve + b"\x04\xff" + bytes(255), curve + b"\x06" + b"\xff" * 8, bytes(64), b"\xff" * 64,
                     b"\xff" + bytes(8) + b"\x7f\x00", b"\xff" + bytes(8) + b"\x7f\x01\x05", b"\x01\x00"):
            talk(port, said, False)
        for _ in range(30 * times):
            talk(port, draw.randbytes(draw.randrange(1, 400)), False)
            damaged = bytearray(curve + hello)
            for _ in range(3):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            talk(port, bytes(damaged[:draw.randrange(1, len(damaged) + 1)]), False)
        for _ in range(700 * times):
            talk(port, b"", False)
        for who in (None, "nobody", "another"):
            with raw_dealer(port, key, who) as d:
                for _ in range(20):
                    d.send([b"x"] * 3)
        with raw_dealer(port, key, "evil") as d:  # its key is on the list, but it keeps to no rules
            for parts in ([b""], [b"x"] * 17, [b"x"] * 18, [b"x"] * 500, [b"", b""]):
                d.send(parts)


def strangers_at_the_port():
    draw = random.Random(SEED)
    with under_attack(evil=False) as b:
        strangers(b, draw, 1)
        before = b.sizes()
        strangers(b, draw, TIMES)
        b.is_small(before)


def more_connections_than_descriptors():
    """A link that can open no more files goes on with the connections that it has; then it takes others again."""
    with under_attack(evil=False) as b:
        before = b.sizes()
        for name in b.names:
            resource.prlimit(b.links[name].pid, resource.RLIMIT_NOFILE, (100, 100))
        crowds = [Crowd(b.port[n], 400, greeting(b"CURVE")) for n in b.names]
        with Probe(b) as probe:
            for _ in range(30):
                probe.infer()
        for crowd in crowds:
            crowd.close()
        b.is_small(before)
        for name in b.names:
            strangers_may_ask(b.port[name])


def strangers_may_ask(port):
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as s:
        s.sendall(greeting(b"CURVE"))
        check(s.recv(10)[:1] == b"\xff", "it greets nobody any more")


def a_board_outside_the_route_forges():
    """A board that once had a place in the route knows its numbers, and answers frames that are not its own."""
    with Boards() as b:
        b.start_evil()
        for text in ("0-11@b2", "0-2@head|3-11@b2", "0-2@b2|3-11@head"):
            for name in b.names:  # it may have been lost and dialed again, and nobody greets for it
                b.ask("greet", name, 1)
            b.control.wait(lambda r: any(x["board"] == b.print["evil"] and x["up"] for x in r["boards"]), "evil is up")
            b.control.set(b.route("0-5@head|6-11@evil"))
            stream, epoch = map(int, b.evil.wait("plan", LIMIT_S).split()[1:])
            b.set(text)
            client = Client(b)
            client.more(20)
            for i in range(10 * TIMES):
                for e in (epoch, epoch + 1, epoch + 2):
                    for name in b.names:
                        b.ask("forge", name, stream, e, client.answered, 64, b.print["b2"])
                client.more(5)
            client.end()
            check(client.unavailable == 0 and client.epochs == {b.number}, text, client.unavailable, client.epochs)
            check(b.state(b.control.report)["phase"] == "ready", b.control.report)
        b.is_well()


print("PIPED_TEST_SEED=%d" % SEED, flush=True)
CASES = (a_board_outside_the_route_forges, any_message_of_a_board_on_the_list, a_wire_without_keys, strangers_at_the_port,
         more_connections_than_descriptors)
main([c for c in CASES if not sys.argv[5:] or c.__name__ in sys.argv[5:]])
