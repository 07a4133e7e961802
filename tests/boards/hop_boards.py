# SPDX-License-Identifier: Apache-2.0
"""Boards that carry routes: real daemons and links, all on the loopback device; the head's daemon is told by the test.

The head's piped-link talks to a control socket of the test, which sends routes, keeps reports, and passes all other calls
to the real daemon there.
"""
import hashlib
import contextlib
import json
import os
import random
import socket
import subprocess
import tempfile
import threading

import pyclient as pc
from cases import check
from daemon import DIGITS, Daemon, Varlink, VarlinkError
from network import free_ports
from program import Node
from wait import LIMIT_S

PATIENT_S = 30  # a busy machine is no reason to lose a board


def listening(path):
    """Return: a server at `path`."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    server.listen(16)
    return server


def connections(server):
    """Each that comes, until the server is closed."""
    with contextlib.suppress(OSError):
        while True:
            yield server.accept()[0]


class Control:
    """The control socket that the head's piped-link sees."""

    def __init__(self, path, behind):
        self.behind = behind
        self.report, self.routes = None, []
        self.news = threading.Condition()
        self.server = listening(path)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        for sock in connections(self.server):
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        buffer = b""
        while True:
            try:
                data = sock.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            buffer += data
            while b"\0" in buffer:
                text, buffer = buffer.split(b"\0", 1)
                try:
                    self.answer(sock, json.loads(text))
                except OSError:
                    return

    def answer(self, sock, call):
        method, reply = call["method"], {}
        if method == "io.piped.LinkReport":
            with self.news:
                self.report = call["parameters"]["report"]
                self.news.notify_all()
        elif method == "io.piped.LinkRoutes":
            self.follow(sock)
            return
        else:
            try:
                with Varlink(self.behind) as v:
                    reply = v.call(method, call["parameters"])
            except VarlinkError as e:
                sock.sendall(json.dumps({"error": e.error, "parameters": e.parameters}).encode() + b"\0")
                return
            except OSError:
                sock.close()
                return
        sock.sendall(json.dumps({"parameters": reply}).encode() + b"\0")

    def follow(self, sock):
        sent = None
        with self.news:
            while True:
                if self.routes != sent:
                    sent = list(self.routes)
                    sock.sendall(json.dumps({"parameters": {"routes": {"routes": sent}}, "continues": True}).encode() + b"\0")
                self.news.wait()

    def set(self, *routes):
        with self.news:
            self.routes = list(routes)
            self.news.notify_all()

    def wait(self, good, what):
        """Until a report is good(). Return: it."""
        with self.news:
            there = self.news.wait_for(lambda: self.report and good(self.report), LIMIT_S)
            check(there, "never", what, json.dumps(self.report, indent=1)[:3000])
            return self.report

    def close(self):
        self.server.close()


class Relay:
    """The frames socket of a daemon as its link sees it. Notes the frames that go in, and may hold what comes out."""

    def __init__(self, path, behind):
        self.path, self.behind = path, behind
        self.frames = []  # of each, its deadline and when it was here
        self.news = threading.Condition()
        self.open = threading.Event()
        self.open.set()
        self.server = listening(path)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        for sock in connections(self.server):
            daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            daemon.connect(self.behind)
            for source, to, inward in ((sock, daemon, True), (daemon, sock, False)):
                threading.Thread(target=self.pass_on, args=(source, to, inward), daemon=True).start()

    def pass_on(self, source, to, inward):
        buffer = b""
        try:
            while True:
                data, fds, _, _ = socket.recv_fds(source, 1 << 16, 16)
                if not data:
                    to.shutdown(socket.SHUT_WR)
                    return
                if inward:
                    buffer = self.note(buffer + data)
                else:
                    self.open.wait()
                sent = socket.send_fds(to, [data], fds) if fds else 0
                for fd in fds:
                    os.close(fd)
                to.sendall(data[sent:])
        except OSError:
            return

    def note(self, data):
        """Return: the beginning of a message."""
        while len(data) >= pc.HEADER_BYTES:
            length, kind = pc.struct.unpack_from("<IH", data)
            if len(data) < pc.HEADER_BYTES + length:
                break
            if kind in (pc.FRAME, pc.INLINE):
                with self.news:
                    self.frames.append((pc.struct.unpack_from("<Q", data, pc.HEADER_BYTES + 40)[0], pc.now_ns()))
                    self.news.notify_all()
            data = data[pc.HEADER_BYTES + length:]
        return data

    def wait(self, count):
        """Until so many frames were here. Return: the last one's deadline, and when it was here."""
        with self.news:
            check(self.news.wait_for(lambda: len(self.frames) >= count, LIMIT_S), len(self.frames), "frames of", count)
            return self.frames[count - 1]

    def close(self):
        self.open.set()
        self.server.close()


class Boards:
    """The head and others; each knows all."""

    def __init__(self, pipectl, link, *others, model=DIGITS, boards=None, files=True, relays=(), link_args=(), limits=None):
        """@boards: the key of the head's model, which a real head has; else the test is its daemon's mouth. @files: all have
        the model's file. @relays: boards whose links reach their daemons by a Relay. @link_args: more, of all links. @limits:
        of all daemons."""
        self.boards, self.files, self.link_args = boards, files, list(link_args)
        self.relays, self.limits = dict.fromkeys(relays), limits or {}
        self.top = tempfile.TemporaryDirectory(prefix="piped-hops-")
        self.pipectl, self.link, self.model = pipectl, link, model
        self.names = ("head",) + others
        self.port = dict(zip(self.names, free_ports(len(self.names))))
        for name in self.names:
            os.makedirs(self.path(name, "link"))
            os.makedirs(self.path(name, "models"))
        self.key = {n: self.run("board", "--state-dir", self.path(n, "state"), "key").strip() for n in self.names}
        self.print = {n: hashlib.blake2b(bytes.fromhex(k), digest_size=16).hexdigest()[:16] for n, k in self.key.items()}
        for a in self.names:
            for b in self.names:
                if a != b:
                    self.run("board", "--state-dir", self.path(a, "state"), "add", b, "127.0.0.1:%d" % self.port[b], self.key[b])
        self.daemons, self.links, self.control, self.number = {}, {}, None, 0
        self.link_env = {}  # of a board; else the test's own

    def path(self, *words):
        return os.path.join(self.top.name, *words)

    def run(self, *words):
        done = subprocess.run([self.pipectl, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              timeout=60)
        check(done.returncode == 0, words, done.stdout, done.stderr)
        return done.stdout

    def start_daemon(self, name):
        config = {"boards": {"frames_socket": self.path(name, "link", "frames.sock")}, "limits": self.limits}
        if name == "head":
            config["models"] = [{"name": "digits", "path": self.model, **({"boards": self.boards} if self.boards else {})}]
        self.daemons[name] = Daemon(config=config, runtime_dir=self.path(name, "run"))
        self.daemons[name].__enter__()

    def kill_daemon(self, name):
        daemon = self.daemons[name]
        daemon.expect_exit = None
        daemon.process.kill()
        daemon.process.wait()
        daemon.process = None

    def start_link(self, name, wait=True):
        own = name == "head" and not self.boards
        control = self.path("control.sock") if own else self.path(name, "run", "control.sock")
        more = ["--silent-s", str(PATIENT_S), "--control", control, *self.link_args]
        frames = self.path(name, "run", "frames.sock")
        if name in self.relays:
            self.relays[name] = self.relays[name] or Relay(self.path(name, "relay.sock"), frames)
            frames = self.relays[name].path
        self.links[name] = Node([self.link, "--state-dir", self.path(name, "state"), "--name", name, "--listen",
                                 "127.0.0.1:%d" % self.port[name], "--socket", frames,
                                 "--models", self.path(name, "models"), "--runtime-dir", self.path(name, "link"), *more],
                                env=self.link_env.get(name))
        if wait:
            self.links[name].wait("piped-link: listens", LIMIT_S)

    def __enter__(self):
        try:
            for name in self.names:
                self.start_daemon(name)
            self.control = Control(self.path("control.sock"), self.daemons["head"].control_path)
            for name in self.names:
                self.start_link(name)
            self.known = self.daemons["head"].call("Models")["models"][0]
            for name in self.names if self.files else ():
                os.symlink(self.model, self.path(name, "models", self.known["hash"] + ".onnx"))
            if not self.boards:
                self.wait_up(*self.names[1:])
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        for name, link in self.links.items():
            if kind and link.process.poll() is None:
                print("--- link of %s\n%s" % (name, link.said()))
            link.kill()
        if self.control:
            self.control.close()
        for relay in filter(None, self.relays.values()):
            relay.close()
        for daemon in self.daemons.values():
            daemon.__exit__(kind, value, trace)
        self.top.cleanup()

    def up(self, report, name):
        return any(b["board"] == self.print[name] and b["up"] and b["known"] for b in report["boards"])

    def wait_up(self, *names):
        self.control.wait(lambda r: all(self.up(r, n) for n in names), "up: " + " ".join(names))

    def route(self, text, border=""):
        """`0-2@head|3-11@b2*2+b3`: the next route of the model; "": none. @border: hash of all hops' borders."""
        self.number += 1
        hops = []
        for hop in filter(None, text.split("|")):
            units, boards = hop.split("@")
            first, last = units.split("-")
            shares = [(b + "*1").split("*")[:2] for b in boards.split("+")]
            hops.append({"first_unit": int(first), "last_unit": int(last), "leaves": "", "border": border,
                         "boards": [{"board": self.print[name], "share": int(share)} for name, share in shares]})
        tensors = [[{"dtype": 1, "dims": t["shape"], "bytes": t["bytes"]} for t in self.known[k]] for k in ("inputs", "outputs")]
        return {"model": "digits", "content": "digits-" + self.known["hash"][:8], "number": self.number, "identity":
                self.known["hash"], "path": self.model, "hops": hops, "inputs": tensors[0], "outputs": tensors[1]}

    def state(self, report):
        return next((r for r in report["routes"] if r["model"] == "digits" and r["number"] == self.number), None)

    def set(self, text, phase="ready"):
        """Sets a route and waits until it is in this phase. Return: its state."""
        self.control.set(self.route(text))
        return self.wait(phase)

    def wait(self, phase):
        return self.state(self.control.wait(lambda r: (self.state(r) or {}).get("phase") == phase, "route " + phase))


class Client(threading.Thread):
    """Streams frames of a few kinds into the front, checks every answer against the daemon's own; all in order."""
    PATTERNS = 8

    def __init__(self, boards, path=None, model="digits"):
        super().__init__(daemon=True)
        daemon = boards.daemons["head"]
        with pc.Connection(daemon.frames_path) as c:
            s = pc.Stream(c, model="digits")
            draw = random.Random(11)
            self.inputs = [bytes(pc.struct.pack("<%df" % (s.input_bytes // 4),
                                                *[draw.random() for _ in range(s.input_bytes // 4)]))
                           for _ in range(self.PATTERNS)]
            self.wanted = [s.infer(i).output for i in self.inputs]
        self.model = model
        self.path = path or boards.path("head", "link", "frames.sock")
        self.stopped, self.news = False, threading.Condition()
        self.answered, self.unavailable, self.failure, self.epochs = 0, 0, None, set()
        self.start()

    def run(self):
        try:
            with pc.Connection(self.path) as c:
                s = pc.Stream(c, model=self.model, credits=8)
                sent = []
                while True:
                    while len(sent) < s.credits and not self.stopped:
                        sent.append(s.submit(self.inputs[(s.frame + 1) % self.PATTERNS]))
                    if not sent:
                        return
                    self.take(s.result(), sent.pop(0))
        except BaseException as e:  # reported by wait()
            with self.news:
                self.failure = self.failure or e
                self.news.notify_all()

    def take(self, r, number):
        check(r.frame == number, "answer", r.frame, "came, not", number)
        check(r.status in ("ok", "unavailable"), r.status, r.text)
        check(r.status != "ok" or r.output == self.wanted[number % self.PATTERNS], "the answer to frame %d is wrong" % number)
        with self.news:
            self.answered += r.status == "ok"
            self.unavailable += r.status == "unavailable"
            self.epochs.add(r.epoch)
            self.news.notify_all()
            if r.status != "ok":
                self.news.wait(0.002)  # a daemon would compute the frame meanwhile

    def more(self, count=200):
        """Waits for so many more good answers."""
        with self.news:
            goal = self.answered + count
            done = self.news.wait_for(lambda: self.failure or self.answered >= goal, LIMIT_S)
            check(done and not self.failure, "stuck at", self.answered, "of", goal, self.unavailable, "unavailable", self.failure)

    def until_unavailable(self):
        with self.news:
            done = self.news.wait_for(lambda: self.failure or self.unavailable, LIMIT_S)
            check(done and not self.failure, "nothing is refused", self.failure)
            self.unavailable = 0

    def end(self):
        self.stopped = True
        self.join(LIMIT_S)
        check(not self.is_alive() and not self.failure, "does not end", self.failure)
