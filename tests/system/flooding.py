# SPDX-License-Identifier: Apache-2.0
"""Floods of cheap hostile messages: what one user can send to keep the daemon's loop busy.

    with Flood(d, "OPEN refused", uid=4001):
        ...

ROWS lists them. Each is made by processes of its own, as another user if the caller is root. A connection that the
daemon closes is made again. tests/system/test_floods.py bounds what they take, bench/floods.py measures what they cost.
"""
import json
import multiprocessing
import os
import select
import socket
import struct

import pyclient as pc

CHUNK = 65536  # bytes of one send()
BLANK = dict(in_bytes=1, out_bytes=1)


def call(method, parameters=None, **flags):
    message = {"method": method if "." in method else "io.piped." + method, "parameters": parameters or {}}
    return json.dumps({**message, **flags}).encode() + b"\0"


def message(kind, payload=b"", **fields):
    return pc.header(kind, len(payload), **fields) + payload


HELLO = message(pc.HELLO, pc.hello(client="flood"))
OPEN = message(pc.OPEN, pc.open_payload(), stream=1)


class Pusher:
    """One connection that sends the same bytes again and again. `window`: most calls without an answer; None: as many
    as the socket takes. `reads`: it reads the answers."""

    def __init__(self, path, first, again, window=None, reads=True):
        self.path, self.first, self.reads, self.window = path, first, reads, window
        self.one = again
        self.chunk = memoryview(again * (CHUNK // len(again) + 1))
        self.connect()

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)
        self.sock.setblocking(False)
        self.left, self.room = memoryview(self.first), self.window
        self.wants_to_send = True

    def push(self):
        if not self.left:
            if self.window is None:
                self.left = self.chunk
            else:
                self.left, self.room = memoryview(self.one * self.room), 0
        if self.left:
            self.left = self.left[self.sock.send(self.left):]
        self.wants_to_send = bool(self.left) or self.window is None or self.room > 0

    def pull(self):
        data = self.sock.recv(1 << 18)
        if not data:
            raise ConnectionResetError
        if self.window is not None:
            self.room += data.count(0)
            self.wants_to_send = True


class Framer(Pusher):
    """One connection whose stream always has as many frames on their way as it may. `options`: of pc.Stream."""

    def __init__(self, path, **options):
        self.path, self.options = path, options
        self.connect()

    def connect(self):
        c = pc.Connection(self.path)
        self.s = pc.Stream(c, **{"slots": 1, **self.options})
        self.sock = c.sock
        self.sock.setblocking(False)
        self.one = bytearray(message(pc.FRAME, pc.frame_payload(**self.s.fields()), stream=1))
        self.left, self.room, self.rest, self.frame = memoryview(b""), self.s.credits, b"", 0
        self.reads = self.wants_to_send = True

    def push(self):
        if not self.left:
            frames = bytearray(self.one * self.room)
            for i in range(self.room):
                self.frame += 1
                struct.pack_into("<Q", frames, i * len(self.one) + 16, self.frame)
            self.left, self.room = memoryview(frames), 0
        self.left = self.left[self.sock.send(self.left):]
        self.wants_to_send = bool(self.left) or self.room > 0

    def pull(self):
        data = self.rest + self.sock.recv(1 << 18)
        if not data:
            raise ConnectionResetError
        at = 0
        while len(data) >= at + pc.HEADER_BYTES:
            length, kind = struct.unpack_from("<IH", data, at)
            if len(data) < at + pc.HEADER_BYTES + length:
                break
            if kind == pc.RESULT:
                self.room += struct.unpack_from("<I", data, at + pc.HEADER_BYTES + 24)[0]
            at += pc.HEADER_BYTES + length
        self.rest = data[at:]
        self.wants_to_send = bool(self.left) or self.room > 0


def pump(pushers):
    """For ever."""
    by_fd, poll = {}, select.poll()

    def events(p):
        return (select.POLLIN if p.reads else 0) | (select.POLLOUT if p.wants_to_send else 0)

    def register(p):
        by_fd[p.sock.fileno()] = p
        poll.register(p.sock, events(p))

    for p in pushers:
        register(p)
    while True:
        for fd, ready in poll.poll():
            p = by_fd[fd]
            try:
                if ready & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    p.pull()
                if p.wants_to_send:
                    p.push()
                poll.modify(fd, events(p))
            except BlockingIOError:
                pass
            except (OSError, pc.Closed):
                poll.unregister(fd)
                p.sock.close()
                p.connect()
                register(p)


def pushers(path, count, *args, **options):
    pump([Pusher(path, *args, **options) for _ in range(count)])


def framers(path, count, **options):
    pump([Framer(path, **options) for _ in range(count)])


def come_and_go(path, count):
    while True:
        held = []
        for _ in range(count):
            try:
                held.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                held[-1].connect(path)
            except OSError:
                pass
        for s in held:
            s.close()


def silent(path, count):
    """Holds connections that say nothing, and comes again when they are closed."""
    pump([Pusher(path, b"", b"\0", window=0) for _ in range(count)])


def frames(kind, payload=b"", connections=8, first=HELLO + OPEN, **fields):
    again = message(kind, payload, **{"stream": 1, **fields})
    return lambda d: pushers(d.frames_path, connections, first, again)


def control(again, connections=4, window=None, **options):
    return lambda d: pushers(d.control_path, connections, b"", again, window, **options)


def policy(connections=20, **options):
    return lambda d: framers(d.frames_path, connections, **options)


PICTURE = dict(pixfmt=pc.RGB24, image=(3840, 2160), credits=4)
HUGE = dict(pixfmt=pc.GRAY8, image=(8192, 8192), credits=4)
NO_MODEL = pc.open_payload("nosuch")
OPEN_CLOSE = OPEN + message(pc.CLOSE, stream=1)

# name: one process's work. The figures of connections are those of one process.
ROWS = {
    "Metrics, pipelined": control(call("Metrics")),
    "Metrics, oneway": control(call("Metrics", oneway=True)),
    "Metrics, 16 connections, 8 calls each": control(call("Metrics"), 8, 8),
    "Status, pipelined": control(call("Status")),
    "Units, pipelined": control(call("Units")),
    "Costs, pipelined": control(call("Costs")),
    "PlanFront, pipelined": control(call("PlanFront")),
    "unknown method, pipelined": control(call("io.piped.Nothing")),
    "Trace refused": control(call("Trace", more=True)),
    "a large call": control(call("Status", {"model": "x" * 60000})),
    "OPEN and CLOSE": lambda d: pushers(d.frames_path, 20, HELLO, OPEN_CLOSE),
    "OPEN refused": frames(pc.OPEN, NO_MODEL, stream=2, first=HELLO),
    "FRAME refused": frames(pc.FRAME, pc.frame_payload(**BLANK)),
    "CANCEL": frames(pc.CANCEL, frame=1),
    "CLOSE of no stream": frames(pc.CLOSE, stream=9),
    "PING": frames(pc.PING, b"12345678"),
    "unknown type": frames(0x8999),
    "unknown type, large": frames(0x8999, bytes(65536)),
    "40 connections, block": policy(credits=64),
    "40 connections, latest": policy(credits=64, policy=pc.LATEST),
    "40 connections, reject": policy(credits=64, policy=pc.REJECT),
    "priority 3": policy(credits=64, priority=3),
    "another model": policy(model="other"),
    "pictures of 3840x2160": policy(2, **PICTURE),
    "pictures of 64 megapixels": policy(2, **HUGE),
    "connect and leave": lambda d: come_and_go(d.frames_path, 8),
    "connect to control and leave": lambda d: come_and_go(d.control_path, 8),
    "silent connections": lambda d: silent(d.frames_path, 24),
    "never reads": lambda d: pushers(d.frames_path, 8, HELLO, message(pc.OPEN, NO_MODEL, stream=2), reads=False),
    "never reads Metrics": control(call("Metrics"), reads=False),
}


def work(d, name, uid):
    if os.geteuid() == 0 and uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    ROWS[name](d)


class Flood:
    """One row's flood while the block runs. `uid`: of whom, if this is root. `d`: has frames_path and control_path."""

    def __init__(self, d, name, uid, processes=2):
        fork = multiprocessing.get_context("fork")  # another user may not read this file
        self.processes = [fork.Process(target=work, args=(d, name, uid), daemon=True) for _ in range(processes)]

    def __enter__(self):
        for p in self.processes:
            p.start()
        return self

    def __exit__(self, *exc):
        for p in self.processes:
            p.kill()
            p.join()
