# SPDX-License-Identifier: Apache-2.0
"""A piped-link for tests of piped: reports boards and routes as a test says, and serves the frames socket.

    with FakeLink(d, "worker") as link:
        link.report(boards={"b2": True})
        route = link.wait_route("digits")
        link.report(boards={"b2": True}, ready=[route])

Frames are computed by a model of the same daemon, whose name it is given, or treated as link.mode says: "relay", "hold"
(until release()), or the name of a status.
"""
import mmap
import os
import socket
import struct
import threading

import pyclient as pc
from daemon import LIMIT_S, check

SELF = "00000000000000aa"


def board_print(name):
    """A fingerprint for the board of that name."""
    return ("%016x" % int.from_bytes(name.encode(), "big"))[-16:]


class Served(threading.Thread):
    """A connection to the frames socket: piped's stream for one model."""

    def __init__(self, link, sock):
        super().__init__(daemon=True)
        self.link = link
        self.sock = sock
        self.buffer = b""
        self.fds = []
        self.pools = {}
        self.worker = None
        self.lock = threading.Lock()

    def send(self, kind, payload=b"", **fields):
        with self.lock:
            try:
                self.sock.sendall(pc.header(kind, len(payload), **fields) + payload)
            except OSError:
                pass

    def read(self, count):
        while len(self.buffer) < count:
            data, fds, _, _ = socket.recv_fds(self.sock, 65536, 4)
            self.fds += fds
            if not data:
                raise EOFError
            self.buffer += data
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def run(self):
        try:
            while True:
                h = pc.Header(*struct.unpack("<IHBBIHHQQ", self.read(pc.HEADER_BYTES)))
                self.message(h, self.read(h.length))
        except (EOFError, OSError, pc.Closed):
            pass
        finally:
            self.sock.close()

    def message(self, h, payload):
        if h.type == pc.HELLO:
            self.send(pc.WELCOME, struct.pack("<HHIIIQ64sQ", 1, 0, 0, 1 << 26, 16, 1 << 30, b"fake 0", self.link.instance))
        elif h.type == pc.OPEN:
            self.open(h, payload[:64].rstrip(b"\0").decode())
        elif h.type == pc.POOL:
            number, _, size = struct.unpack("<IIQ", payload)
            fd = self.fds.pop(0)
            self.pools[number] = mmap.mmap(fd, size)
            os.close(fd)
            self.send(pc.POOLED, stream=h.stream, frame=number)
        elif h.type == pc.FRAME:
            self.link.got(self, h, struct.unpack("<IIQQQQQIIII", payload))
        elif h.type == pc.CANCEL:
            with self.link.changed:
                self.link.cancelled.append(h.frame)
                self.link.changed.notify_all()
        elif h.type == pc.PING:
            self.send(pc.PONG, payload, stream=h.stream, frame=h.frame, time_ns=h.time_ns)

    def open(self, h, model):
        if model not in self.link.routes:
            text = b"no such model"
            self.send(pc.OPENED, bytes(48) + text, stream=h.stream, status=pc.STATUS.index("not_found"))
            return
        self.worker = pc.Stream(pc.Connection(self.link.daemon.frames_path), 1, self.link.worker, credits=1)
        w = self.worker
        tensors = b"".join(
            struct.pack("<64sII8IQQQ", pc.name64(t.name), {v: k for k, v in pc.DTYPES.items()}[t.dtype], len(t.shape),
                        *(list(t.shape) + [0] * (8 - len(t.shape))), t.offset, t.bytes, 0)
            for t in w.inputs + w.outputs)
        self.send(pc.OPENED, struct.pack("<IIIIQQIIQ", self.link.credits, self.link.credits, len(w.inputs), len(w.outputs),
                                         w.input_bytes, w.output_bytes, 0, 0, 0) + tensors, stream=h.stream)

    def answer(self, h, fields, status):
        out = b""
        if status == "ok":
            pool, _, in_at, in_bytes, out_at, _, _ = fields[:7]
            r = self.worker.infer(self.pools[pool][in_at:in_at + in_bytes])
            check(r.status == "ok", r)
            out = r.output
            self.pools[pool][out_at:out_at + len(out)] = out
        number = self.link.number_of("digits")
        payload = struct.pack("<QQQIIQQ", 0, 1000, pc.now_ns(), 1, number, len(out), 0)
        self.send(pc.RESULT, payload + (b"" if status == "ok" else b"as the test says"), stream=h.stream, frame=h.frame,
                  time_ns=h.time_ns, status=pc.STATUS.index(status))


class FakeLink:
    def __init__(self, daemon, worker, mode="relay", credits=4):
        self.daemon, self.worker, self.mode, self.credits = daemon, worker, mode, credits
        self.path = daemon.frames_path.replace("frames.sock", "link.sock")
        self.instance = 1
        self.routes = {}  # model -> its route
        self.numbers = []  # of all routes that came, (model, number, hops)
        self.taken = 0
        self.held, self.cancelled, self.served = [], [], []
        self.changed = threading.Condition()
        self.reporter = None
        self.listener = None

    def __enter__(self):
        return self.start()

    def start(self):
        self.instance += 1
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()
        self.reporter = self.daemon.connect()
        self.subscriber = self.daemon.connect()
        self.subscriber.sock.settimeout(None)
        self.subscriber.send("io.piped.LinkRoutes", more=True)
        self.take_routes(self.subscriber.receive())
        threading.Thread(target=self.listen, args=(self.subscriber,), daemon=True).start()
        return self

    def accept(self, listener):
        while True:
            try:
                s = Served(self, listener.accept()[0])
            except OSError:
                return
            self.served.append(s)
            s.start()

    def listen(self, subscriber):
        try:
            while True:
                self.take_routes(subscriber.receive())
        except (EOFError, OSError):
            pass

    def take_routes(self, reply):
        with self.changed:
            self.routes = {r["model"]: r for r in reply["routes"]["routes"]}
            self.numbers += [(r["model"], r["number"], len(r["hops"])) for r in self.routes.values()]
            self.changed.notify_all()

    def wait(self, condition, what):
        with self.changed:
            check(self.changed.wait_for(condition, LIMIT_S), "never:", what)

    def wait_route(self, model, hops=True, other_than=None):
        """The model's route, once it has hops (or none), and another number."""
        def there():
            r = self.routes.get(model)
            return r and bool(r["hops"]) == hops and r["number"] != other_than
        self.wait(there, "route of " + model)
        return self.routes[model]

    def number_of(self, model):
        return self.routes.get(model, {"number": 0})["number"]

    def report(self, boards, ready=(), preparing=(), failed=(), to=""):
        """boards: {name: up}; the rest: routes."""
        def state(route, phase, why="", board=""):
            return {"model": route["model"], "number": route["number"], "phase": phase, "why": why, "board": board, "to": to,
                    "answered": self.taken, "resent": 0, "late": 0, "service_ns": [2e6]}
        def board(print_):
            return {"board": print_, "known": True, "version": "0", "memory_bytes": 1e9, "costs": [],
                    "eps": [{"name": "cpu", "cores": 2, "speed": 1.0, "max_khz": 0, "capacity": 0}], "ways": []}
        lost = board_print(next(iter(boards), "b2"))
        routes = [state(r, "ready") for r in ready] + [state(r, "preparing") for r in preparing]
        routes += [state(r, "failed", "the link was cut" if to else "board b2 is gone", lost) for r in failed]
        others = [dict(board(board_print(name)), name=name, up=up) for name, up in boards.items()]
        self.reporter.call("io.piped.LinkReport",
                           {"report": {"self": board(SELF), "boards": others, "routes": routes}})

    def got(self, connection, h, fields):
        with self.changed:
            self.taken += 1
            mode = self.mode
            if mode == "hold":
                self.held.append((connection, h, fields))
            self.changed.notify_all()
        if mode != "hold":
            connection.answer(h, fields, "ok" if mode == "relay" else mode)

    def release(self, status="ok"):
        with self.changed:
            held, self.held = self.held, []
        for connection, h, fields in held:
            connection.answer(h, fields, status)

    def die(self):
        """As kill -9: every socket is closed at once."""
        for s in [self.reporter.sock, self.subscriber.sock, self.listener] + [c.sock for c in self.served]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()
        self.served, self.held = [], []

    def __exit__(self, *exc):
        self.die()
