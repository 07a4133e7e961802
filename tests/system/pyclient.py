# SPDX-License-Identifier: Apache-2.0
"""A frames client in pure Python, written from docs/protocol.md and nothing else.

Good and bad clients alike: every field can be set to anything, messages can be sent in pieces, with any
descriptors. Blocking, with a time limit on every wait.
"""
import array
import collections
import contextlib
import ctypes
import fcntl
import mmap
import os
import socket
import struct
import time

HELLO, WELCOME, OPEN, OPENED, POOL, POOLED, FRAME, INLINE = 1, 2, 3, 4, 5, 6, 7, 8
RESULT, CREDIT, CANCEL, PING, PONG, CLOSE, CLOSED, ERROR, EVENT = 9, 10, 11, 12, 13, 14, 15, 16, 0x8001
DESCRIBED, FLAG_MORE = 0x8002, 4
STATUS = ["ok", "invalid_argument", "not_found", "permission_denied", "unsupported", "resource_exhausted",
          "unavailable", "deadline_exceeded", "cancelled", "dropped", "internal", "protocol"]
TENSOR, RGB24, BGR24, GRAY8, NV12, YUYV = range(6)
BLOCK, LATEST, REJECT = range(3)
DTYPES = {1: "<f4", 2: "<i4", 3: "<i8", 4: "<u1", 5: "<i1", 6: "?", 7: "<f2"}
F32, F16 = 1, 7
FEATURE_F16, FEATURE_DESCRIBED = 1, 2
HEADER_BYTES = 32
F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1033, 1, 2, 4, 8

Header = collections.namedtuple("Header", "length type version flags stream fd_count status frame time_ns")
Tensor = collections.namedtuple("Tensor", "name dtype shape offset bytes")
Result = collections.namedtuple("Result", "stream frame time_ns status text queue_ns service_ns done_ns credits epoch "
                                          "out_bytes depth output")


class Closed(Exception):
    """The server closed the connection; .status and .text are those of its ERROR, if it sent one."""

    def __init__(self, status=None, text=""):
        super().__init__("closed: %s %s" % (status, text))
        self.status = status
        self.text = text


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__("%s: %s" % (status, text))
        self.status = status
        self.text = text


def header(kind, length=0, version=1, flags=0, stream=0, fd_count=0, status=0, frame=0, time_ns=0):
    return struct.pack("<IHBBIHHQQ", length, kind, version, flags, stream, fd_count, status, frame, time_ns)


def name64(text):
    raw = text.encode() if isinstance(text, str) else text
    return raw.ljust(64, b"\0")


def hello(version_min=1, version_max=1, features=0, client="pyclient"):
    return struct.pack("<HHI64sQ", version_min, version_max, features, name64(client), 0)


def open_payload(model="", pixfmt=TENSOR, policy=BLOCK, credits=0, priority=0, deadline_ns=0,
                 input_dtype=0, output_dtype=0):
    return struct.pack("<64sIIIIQII", name64(model), pixfmt, policy, credits, priority, deadline_ns, input_dtype,
                       output_dtype)


def pool_payload(pool, size):
    return struct.pack("<IIQ", pool, 0, size)


def frame_payload(pool=0, in_offset=0, in_bytes=0, out_offset=0, out_bytes=0, deadline_ns=0, width=0, height=0,
                  stride=0):
    return struct.pack("<IIQQQQQIIII", pool, 0, in_offset, in_bytes, out_offset, out_bytes, deadline_ns, width,
                       height, stride, 0)


def memfd(size, seals=F_SEAL_SHRINK | F_SEAL_GROW, whole=True):
    """A memfd, with all its pages unless `whole` is false, and its mapping."""
    fd = os.memfd_create("pyclient", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if size and whole:
        os.posix_fallocate(fd, 0, size)
    view = mmap.mmap(fd, size) if size else None
    if seals:
        if seals & F_SEAL_WRITE:  # refused while a writable mapping exists
            view.close()
            view = None
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd, view


def punch(fd, length):
    """Takes the first pages of a memfd away."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    assert libc.fallocate(fd, 3, 0, length) == 0, ctypes.get_errno()  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE


def align64(n):
    return (n + 63) & ~63


@contextlib.contextmanager
def user(uid):
    """Connections that are made here are this user's."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


class Connection:
    """Raw messages out, decoded messages in."""

    def __init__(self, path, timeout=60.0, greet=True, features=0):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.buffer = b""
        self.waiting = collections.deque()  # messages that somebody else will want
        self.events = []
        self.instance = None
        self.server = ""
        if greet:
            self.greet(features)

    def greet(self, features=0):
        self.send(HELLO, hello(features=features))
        _, payload = self.expect(WELCOME)
        (_, _, self.features, self.payload_max, self.streams_max, self.pool_bytes_max, server,
         self.instance) = struct.unpack_from("<HHIIIQ64sQ", payload)
        self.server = server.rstrip(b"\0").decode()

    def send_bytes(self, data, fds=()):
        """All of it; the descriptors with the first byte."""
        try:
            if fds:
                sent = self.sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
                data = data[sent:]
            if data:
                self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # why is told by what can still be read

    def send(self, kind, payload=b"", fds=(), **fields):
        fields.setdefault("fd_count", len(fds))
        fields.setdefault("length", len(payload))
        self.send_bytes(header(kind, **fields) + payload, fds)

    def read(self, count):
        while len(self.buffer) < count:
            try:
                data = self.sock.recv(max(65536, count - len(self.buffer)))
            except ConnectionResetError:
                data = b""
            if not data:
                raise Closed()
            self.buffer += data
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def read_message(self):
        h = Header(*struct.unpack("<IHBBIHHQQ", self.read(HEADER_BYTES)))
        assert h.version == 1 and (h.flags == 0 or (h.type, h.flags) == (DESCRIBED, FLAG_MORE)), h
        return h, self.read(h.length)

    def receive(self, wanted=lambda h: True):
        """The next message for which wanted(header); others are kept, events noted, ERROR raises Closed."""
        for i, (h, payload) in enumerate(self.waiting):
            if wanted(h):
                del self.waiting[i]
                return h, payload
        while True:
            h, payload = self.read_message()
            if h.type == ERROR:
                status, text = STATUS[h.status], payload.decode()
                try:
                    after, _ = self.read_message()
                except Closed:
                    raise Closed(status, text) from None
                raise AssertionError("after ERROR %s came %s" % (text, after))
            if h.type == EVENT:
                event, epoch, _ = struct.unpack_from("<IIQ", payload)
                self.events.append((h.stream, event, epoch))
                if not wanted(h):
                    continue
            elif h.type == PING:
                self.send(PONG, payload, stream=h.stream, frame=h.frame, time_ns=h.time_ns)
                continue
            if wanted(h):
                return h, payload
            self.waiting.append((h, payload))

    def expect(self, kind, stream=None):
        return self.receive(lambda h: h.type == kind and (stream is None or h.stream == stream))

    def closed(self):
        """Waits for the end of the connection; returns the Closed."""
        try:
            while True:
                self.receive()
        except Closed as e:
            return e

    def ping(self, payload=b"ping"):
        """A round trip: everything sent before has been read by the server."""
        self.send(PING, payload, frame=77, time_ns=5)
        h, back = self.expect(PONG)
        assert back == payload and h.frame == 77 and h.time_ns == 5, (h, back)

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Stream:
    """A stream of a connection. Slots of a pool, or inline frames."""

    def __init__(self, connection, number=1, model="", pixfmt=TENSOR, policy=BLOCK, credits=0, priority=0,
                 deadline_ns=0, image=None, inline=False, slots=None, input_dtype=0, output_dtype=0):
        self.c = connection
        self.number = number
        self.pixfmt = pixfmt
        self.frame = self.sent = 0
        self.slot_of = {}
        connection.send(OPEN, open_payload(model, pixfmt, policy, credits, priority, deadline_ns, input_dtype,
                                           output_dtype), stream=number)
        h, payload = connection.expect(OPENED, number)
        if h.status:
            raise Refused(STATUS[h.status], payload[48:].decode())
        (self.credits, self.depth, inputs, outputs, self.input_bytes, self.output_bytes, self.image_width,
         self.image_height, _) = struct.unpack_from("<IIIIQQIIQ", payload)
        tensors = [self.tensor(payload[48 + 128 * i:48 + 128 * (i + 1)]) for i in range(inputs + outputs)]
        assert len(payload) == 48 + 128 * len(tensors), len(payload)
        self.inputs, self.outputs = tensors[:inputs], tensors[inputs:]
        self.image = image or (self.image_width, self.image_height)
        self.inline = inline
        self.in_size = self.input_bytes if pixfmt == TENSOR else self.image_bytes()
        self.fd = -1
        if not inline:
            self.slots = slots or max(self.credits, 1)
            self.slot_bytes = align64(self.in_size) + align64(self.output_bytes)
            self.fd, self.memory = memfd(self.slots * self.slot_bytes)
            connection.send(POOL, pool_payload(0, self.slots * self.slot_bytes), [self.fd], stream=number)
            h, payload = connection.expect(POOLED, number)
            if h.status:
                raise Refused(STATUS[h.status], payload.decode())

    @staticmethod
    def tensor(raw):
        name, dtype, rank, *rest = struct.unpack("<64sII8IQQQ", raw)
        return Tensor(name.rstrip(b"\0").decode(), DTYPES[dtype], tuple(rest[:rank]), rest[8], rest[9])

    def image_bytes(self):
        width, height = self.image
        return {RGB24: 3 * width * height, BGR24: 3 * width * height, GRAY8: width * height,
                NV12: width * height * 3 // 2, YUYV: 2 * width * height}[self.pixfmt]

    def fields(self):
        """A good frame's payload fields for the next number."""
        f = dict(in_bytes=self.in_size)
        if self.pixfmt != TENSOR:
            f.update(width=self.image[0], height=self.image[1])
        if not self.inline:
            at = self.slot() * self.slot_bytes
            f.update(in_offset=at, out_offset=at + align64(self.in_size), out_bytes=self.output_bytes)
        return f

    def submit(self, data, number=None, time_ns=0, **changes):
        """Sends a frame; returns its number. `changes` spoil single fields."""
        f = dict(self.fields(), **changes)
        if self.inline:
            number = self.advance(number)
            self.c.send(INLINE, frame_payload(**f) + data, stream=self.number, frame=number, time_ns=time_ns)
        else:
            at = self.slot() * self.slot_bytes
            self.memory[at:at + len(data)] = data
            number = self.advance(number)
            self.c.send(FRAME, frame_payload(**f), stream=self.number, frame=number, time_ns=time_ns)
        return number

    def submit_as_is(self):
        """Sends a frame whose slot the client does not touch; returns its number."""
        f = self.fields()
        number = self.advance(None)
        self.c.send(FRAME, frame_payload(**f), stream=self.number, frame=number)
        return number

    def slot(self):
        """Of the next frame: in turns, whatever the frames' numbers are, so that frames in flight share none."""
        return self.sent % self.slots

    def advance(self, number):
        number = self.frame + 1 if number is None else number
        self.slot_of[number] = self.slot() if not self.inline else 0
        self.sent += 1
        self.frame = max(self.frame, number)
        return number

    def result(self):
        h, payload = self.c.expect(RESULT, self.number)
        queue_ns, service_ns, done_ns, credits, epoch, out_bytes, depth, _ = struct.unpack_from("<QQQIIQII", payload)
        rest = payload[48:]
        text, output = "", b""
        if h.status:
            text = rest.decode()
            assert text and out_bytes == 0, (h, text)
        elif self.inline:
            output = rest
            assert len(output) == out_bytes == self.output_bytes, (len(output), out_bytes)
        else:
            assert rest == b"" and out_bytes == self.output_bytes, (rest, out_bytes)
            at = self.slot_of[h.frame] * self.slot_bytes + align64(self.in_size)
            output = bytes(self.memory[at:at + out_bytes])
        return Result(h.stream, h.frame, h.time_ns, STATUS[h.status], text, queue_ns, service_ns, done_ns, credits,
                      epoch, out_bytes, depth, output)

    def infer(self, data, **changes):
        number = self.submit(data, **changes)
        r = self.result()
        assert r.frame == number, (r.frame, number)
        return r

    def close(self):
        self.c.send(CLOSE, stream=self.number)
        self.c.expect(CLOSED, self.number)
        self.free()

    def free(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def now_ns():
    return time.monotonic_ns()
