# SPDX-License-Identifier: Apache-2.0
"""Calls over the control socket: JSON ended by a zero byte, descriptors beside it.

Each call has a connection of its own, so threads, forks and restarts of the daemon need no care.
"""
from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
from dataclasses import MISSING, fields
from errno import ENOTCONN, ETIMEDOUT
from typing import Any, Dict, Generic, Iterable, List, Optional, Sequence, Tuple, Type, TypeVar, Union

import numpy as np

from .errors import ControlError, Error, NotConnected, NotReachable, TimedOut
from .values import Array

__all__ = ["Caller", "Example", "Examples", "Monitor"]

Reply = TypeVar("Reply")
# A file (.ppm, .pgm, .f32; others by Pillow), or a name with the bytes of such a file or an array: uint8 is a picture,
# float32 is the model's input.
Example = Union[str, "os.PathLike[str]", Tuple[str, Union[bytes, Array]]]
Examples = Iterable[Example]

_AS_THEY_ARE = (".ppm", ".pgm", ".pnm", ".f32")
_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # F_SEAL_SEAL, _SHRINK, _GROW, _WRITE
_F_ADD_SEALS = 1033


def _pixmap(pixels: Array) -> bytes:
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (1, 3))):
        raise ValueError("an example is a picture of uint8 with the shape (height, width) or (height, width, 3), or "
                         "float32")
    kind = 6 if pixels.ndim == 3 and pixels.shape[2] == 3 else 5
    return b"P%d\n%d %d\n255\n" % (kind, pixels.shape[1], pixels.shape[0]) + pixels.tobytes()


def _decoded(path: str) -> bytes:
    """As pipectl reads it: upright, without colour conversion, the high byte of 16 bits."""
    from PIL import Image, ImageOps  # python3-pil, only for those who need it
    with Image.open(path) as stored:
        picture = ImageOps.exif_transpose(stored)
        if picture.mode.startswith("I"):
            return _pixmap((np.asarray(picture) >> 8).astype(np.uint8))
        return _pixmap(np.asarray(picture.convert("L" if picture.mode in ("1", "L", "LA") else "RGB")))


def _example(one: Example) -> Tuple[str, bytes]:
    """Return: the name and the bytes that the daemon takes."""
    if isinstance(one, tuple):
        name, data = one
        if isinstance(data, np.ndarray) and data.dtype == np.float32:
            return (name if name.endswith(".f32") else name + ".f32"), data.astype("<f4").tobytes()
        return name, _pixmap(data) if isinstance(data, np.ndarray) else bytes(data)
    path = os.fspath(one)
    if not path.lower().endswith(_AS_THEY_ARE):
        return os.path.basename(path), _decoded(path)
    with open(path, "rb") as f:
        return os.path.basename(path), f.read()


def _sealed(examples: Examples) -> Tuple[int, List[Dict[str, Any]]]:
    """Return: a sealed memfd with the bytes of all, and their names and sizes."""
    fd = os.memfd_create("examples", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        listed = []
        with os.fdopen(os.dup(fd), "wb") as f:
            for one in examples:
                name, data = _example(one)
                f.write(data)
                listed.append({"name": name, "bytes": len(data)})
        fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(fd)
        raise
    return fd, listed


class _Line:
    """A connection for one call."""

    def __init__(self, path: str, timeout: Optional[float]):
        self.path = path
        self.received = bytearray()
        self.answered = False
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self.sock.settimeout(timeout)
            self.sock.connect(path)
        except OSError as e:
            self.sock.close()
            raise NotReachable("piped is not reachable at %s: %s" % (path, e.strerror or e), e.errno or 0) from None

    def send(self, message: Dict[str, Any], fds: Sequence[int]) -> None:
        data = json.dumps(message).encode() + b"\0"
        try:
            sent = socket.send_fds(self.sock, [data], fds) if fds else 0
            self.sock.sendall(data[sent:])
        except socket.timeout:
            raise self.late() from None
        except OSError:
            pass  # a daemon without a place for us says so, and closes: read it

    def late(self) -> TimedOut:
        limit = self.sock.gettimeout() or 0
        if self.answered:
            return TimedOut("nothing happened for %g s" % limit, ETIMEDOUT)
        return TimedOut("piped at %s has not answered for %g s" % (self.path, limit), ETIMEDOUT)

    def ended(self) -> NotConnected:
        return NotConnected("piped at %s closed the connection before it answered" % self.path, ENOTCONN)

    def whole(self) -> Optional[Dict[str, Any]]:
        """Return: the next message, if all of it is there."""
        end = self.received.find(b"\0")
        if end < 0:
            return None
        message: Dict[str, Any] = json.loads(self.received[:end])
        del self.received[:end + 1]
        self.answered = True
        return message

    def receive(self) -> Dict[str, Any]:
        while True:
            message = self.whole()
            if message is not None:
                return message
            try:
                data = self.sock.recv(1 << 16)
            except socket.timeout:
                raise self.late() from None
            except OSError:
                data = b""
            if not data:
                raise self.ended()
            self.received += data


def _made(kind: Type[Reply], parameters: Dict[str, Any]) -> Reply:
    """Return: the reply. What it does not know is left out."""
    known = fields(kind)
    missing = [f.name for f in known if f.name not in parameters and f.default is MISSING]
    if missing:
        raise Error("the daemon's answer has no %s; is it older than python3-piped?" % ", ".join(missing))
    return kind(**{f.name: parameters[f.name] for f in known if f.name in parameters})


class Monitor(Generic[Reply]):
    """The replies of a method that goes on answering. An iterator, also for `async for`; close() or `with` ends it. It
    ends by itself when the daemon does: then it raises NotConnected. After TimedOut it goes on."""

    def __init__(self, line: _Line, kind: Type[Reply], errors: Dict[str, Type[ControlError]]):
        self._line, self._kind, self._errors = line, kind, errors

    def fileno(self) -> int:
        """A descriptor that is readable when a reply is there; -1: it is closed."""
        return self._line.sock.fileno()

    def close(self) -> None:
        """Ends it, also in the daemon."""
        self._line.sock.close()

    def _reply(self, message: Dict[str, Any]) -> Reply:
        return _made(self._kind, _parameters(message, self._errors))

    def __iter__(self) -> "Monitor[Reply]":
        return self

    def __next__(self) -> Reply:
        if self.fileno() < 0:
            raise StopIteration
        return self._reply(self._line.receive())

    def __aiter__(self) -> "Monitor[Reply]":
        self._line.sock.setblocking(False)
        return self

    async def __anext__(self) -> Reply:
        if self.fileno() < 0:
            raise StopAsyncIteration
        while True:
            message = self._line.whole()
            if message is not None:
                return self._reply(message)
            data = await asyncio.get_running_loop().sock_recv(self._line.sock, 1 << 16)
            if not data:
                raise self._line.ended()
            self._line.received += data

    def __enter__(self) -> "Monitor[Reply]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _parameters(message: Dict[str, Any], errors: Dict[str, Type[ControlError]]) -> Dict[str, Any]:
    parameters = message.get("parameters") or {}
    name = message.get("error")
    if name:
        interface, _, short = str(name).rpartition(".")
        raise errors.get(short if interface == "io.piped" else "", ControlError)(name, parameters)
    return dict(parameters)


class Caller:
    """Sends calls. path: the control socket; timeout: seconds to wait for an answer, None: for ever."""
    errors: Dict[str, Type[ControlError]] = {}

    def __init__(self, path: Optional[str] = None, timeout: Optional[float] = None):
        self.path = path or os.path.join(os.environ.get("PIPED_RUNTIME_DIR") or "/run/piped", "control.sock")
        self.timeout = timeout

    def _ask(self, method: str, given: Dict[str, Any], examples: Optional[Examples], fds: Sequence[int],
             more: bool) -> _Line:
        parameters = {name: value for name, value in given.items() if value is not None}
        ours: List[int] = []
        if examples is not None:
            fd, parameters["examples"] = _sealed(examples)
            ours.append(fd)
        try:
            line = _Line(self.path, self.timeout)
            try:
                message = {"method": "io.piped." + method, "parameters": parameters}
                line.send({**message, "more": True} if more else message, [*ours, *fds])
            except BaseException:
                line.sock.close()
                raise
            return line
        finally:
            for fd in ours:
                os.close(fd)

    def call(self, method: str, parameters: Dict[str, Any], examples: Optional[Examples] = None,
             fds: Sequence[int] = ()) -> Dict[str, Any]:
        """Calls a method by its name in the interface, such as "GetPlan". fds: descriptors that come with it, the
        caller's. Return: the answer's parameters."""
        line = self._ask(method, parameters, examples, fds, False)
        try:
            return _parameters(line.receive(), self.errors)
        finally:
            line.sock.close()

    def _call(self, method: str, given: Dict[str, Any], kind: Type[Reply], examples: Optional[Examples] = None,
              fds: Sequence[int] = ()) -> Reply:
        return _made(kind, self.call(method, given, examples, fds))

    def _monitor(self, method: str, given: Dict[str, Any], kind: Type[Reply],
                 fds: Sequence[int] = ()) -> "Monitor[Reply]":
        return Monitor(self._ask(method, given, None, fds, True), kind, self.errors)
