# SPDX-License-Identifier: Apache-2.0
"""The connection: one lock for libpiped, waiting in turn, an event loop's reader.

libpiped wants one thread at a time. So everything that calls it holds the guard's lock. Nobody waits while holding it:
of several threads that wait, one leads: it polls the library's descriptor, lets the library work, and wakes the others.
What arrays give back (memory.py) is put into a queue without a lock, and whoever holds the guard next empties it.
"""
from __future__ import annotations

import asyncio
import collections
import os
import select
import threading
import time
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple, TypeVar, Union

from ._calls import Calls
from ._libpiped import ffi, lib
from .errors import Closed, Error, TimedOut, error_of_connect, last_error
from .stream import Stream
from .values import Pixfmt, Policy

__all__ = ["Connection", "Guard"]

_T = TypeVar("_T")
_EINTR = 4


def milliseconds(seconds: Optional[float]) -> int:
    return 0 if seconds is None else max(1, min(int(seconds * 1000), 0x7fffffff))


class Guard:
    """The lock, which is used as `with guard.lock:` without code of ours, so that an interrupt never leaves it locked.

    What arrays give back waits in `returned` if the lock was held just then, even by the same thread; whoever held the
    lock calls settle() afterwards.
    """

    def __init__(self) -> None:
        self.returned: Deque[Callable[[], None]] = collections.deque()
        self.interrupted = False  # by an interrupt in give_back(), which no caller sees
        self.renew()
        _guards.add(self)

    def renew(self) -> None:
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)

    def settle(self) -> None:
        while self.returned and self.lock.acquire(blocking=False):
            try:
                while self.returned:
                    self.returned[0]()  # an interrupt may come before the next line: it is done twice then
                    self.returned.popleft()
                self.changed.notify_all()
            finally:
                self.lock.release()

    def give_back(self, action: Callable[[], None]) -> None:
        """Called by destructors, too, where Python ignores exceptions."""
        self.returned.append(action)
        try:
            self.settle()
        except KeyboardInterrupt:
            self.interrupted = True

    def check_interrupt(self) -> None:
        if self.interrupted and threading.current_thread() is threading.main_thread():
            self.interrupted = False
            raise KeyboardInterrupt


_guards: "weakref.WeakSet[Guard]" = weakref.WeakSet()


def _forked() -> None:
    """A thread that is not in this process may have held the lock."""
    for guard in list(_guards):
        guard.renew()


os.register_at_fork(after_in_child=_forked)


class Connection:
    """A connection to the daemon, made by piped.connect(). Any number of threads may use it and its streams."""

    def __init__(self, path: Optional[str], timeout: Optional[float], reconnect: Optional[float],
                 client: Optional[str]):
        self._p: Any = ffi.NULL
        self._pid = os.getpid()
        self._guard = Guard()
        self._leader = 0  # the thread that polls
        self._streams: List[Stream] = []
        self._wanted_closed = False
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._loop_users = 0
        self._control: Optional[Calls] = None
        self._wake_fds: Tuple[int, ...] = ()  # a pipe: to read, to write
        if path is None:
            room = ffi.new("char[]", 4096)
            if lib.piped_socket_path(room, 4096) < 0:
                raise Error(last_error())
            path = ffi.string(room).decode()
        self.path: str = path
        keep = [ffi.new("char[]", os.fsencode(path)), ffi.new("char[]", client.encode()) if client else ffi.NULL]
        options = ffi.new("struct piped_options *", {
            "size": ffi.sizeof("struct piped_options"), "path": keep[0], "client": keep[1],
            "reconnect_ms": (lib.PIPED_RECONNECT_NEVER if reconnect == 0 else
                             milliseconds(1e9 if reconnect is None else reconnect)),
            "answer_ms": milliseconds(timeout)})
        found = ffi.new("struct piped **")
        rc = lib.piped_connect(options, found)
        while rc == -_EINTR:  # Python has run the signal's handler, which may have raised
            rc = lib.piped_connect(options, found)
        if rc < 0:
            raise error_of_connect(rc, last_error())
        self._p = found[0]
        self._wake_fds = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    # what users call

    def stream(self, model: Optional[str] = None, *, pixfmt: Union[str, Pixfmt] = "tensor",
               policy: Union[str, Policy] = "block", deadline_ms: Optional[float] = None,
               in_flight: Optional[int] = None, size: Optional[Tuple[int, int]] = None, stride: int = 0,
               priority: int = 0, slots: Optional[int] = None, input_dtype: Any = None, output_dtype: Any = None,
               inline: bool = False) -> Stream:
        """Opens a stream to a model (None: the only or the default one); waits for the daemon's answer.

        pixfmt: tensor, rgb24, bgr24, gray8, nv12 or yuyv (read as BT.601 of limited range). size: width and height of the
        largest picture; None: the model's. stride: bytes from row to row of it; 0: no gap. policy: block, latest or
        reject. deadline_ms: of each frame, from its arrival at the daemon. in_flight: frames that the daemon may hold;
        None: it decides. priority: 0 to 3. slots: frames and answers that may exist at once; None: two more than
        in_flight. input_dtype, output_dtype: "f16" lets f32 tensors travel as f16. inline: send bytes through the
        socket, without shared memory.
        """
        return Stream(self, model=model, pixfmt=pixfmt, policy=policy, deadline_ms=deadline_ms, in_flight=in_flight,
                      size=size, stride=stride, priority=priority, slots=slots, input_dtype=input_dtype,
                      output_dtype=output_dtype, inline=inline)

    @property
    def control(self) -> Calls:
        """The control socket beside this one."""
        if self._control is None:
            self._control = Calls(os.path.join(os.path.dirname(self.path), "control.sock"))
        return self._control

    @property
    def server(self) -> str:
        """The daemon's name and version."""
        with self._guard.lock:
            self._check()
            return str(ffi.string(lib.piped_server(self._p)).decode())

    @property
    def reconnects(self) -> int:
        """How often the library has connected again."""
        with self._guard.lock:
            self._check()
            return int(lib.piped_reconnects(self._p))

    @property
    def trouble(self) -> str:
        """Why the library has no daemon now and looks for one, such as that the service fails to start; "": it has one, or
        knows no reason."""
        with self._guard.lock:
            self._check()
            return str(ffi.string(lib.piped_trouble(self._p)).decode(errors="replace"))

    def fileno(self) -> int:
        """For poll(), for reading only, in event loops other than asyncio's: when it is readable, call dispatch()."""
        with self._guard.lock:
            self._check()
            return int(lib.piped_fd(self._p))

    def dispatch(self) -> None:
        """Sends and receives what it can; never waits. Then take answers with Stream.next(0)."""
        with self._guard.lock:
            self._check()
            self._dispatch()
        self._guard.settle()

    def close(self) -> None:
        """Closes all streams. Frames in flight are dropped. Memory that arrays look into stays until they are gone."""
        self._wanted_closed = True
        if self._pid != os.getpid():
            return
        with self._guard.lock:
            for s in list(self._streams):
                s.close_locked()
            self.close_when_unused()
        self._guard.settle()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except (AttributeError, TypeError):  # the interpreter ends, or the constructor failed
            pass

    # what streams call; with the guard held unless it says otherwise

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise Closed("the connection belongs to the process from which this one was forked; "
                         "call piped.connect() here")
        self._guard.check_interrupt()
        if self._wanted_closed or not self._p:
            raise Closed("the connection is closed")

    def close_when_unused(self) -> None:
        """A thread that polls looks at the descriptors: it is woken, and closes them itself."""
        if self._wanted_closed and not self._streams and self._p and self._pid == os.getpid():
            if self._leader:
                self._wake()
                return
            p, self._p = self._p, ffi.NULL
            if self._loop is not None and self._loop_users and not self._loop.is_closed():
                self._loop.remove_reader(int(lib.piped_fd(p)))
            lib.piped_close(p)
            fds, self._wake_fds = self._wake_fds, ()
            for fd in fds:
                os.close(fd)

    def _dispatch(self) -> None:
        """The library works, answers go to those who wait for them."""
        if lib.piped_dispatch(self._p, 0) < 0:
            pass  # the daemon did not come back: every frame has returned, and submitting says why
        self.collect()

    def collect(self) -> None:
        for s in self._streams:
            s.collect()
        self._guard.changed.notify_all()
        self.wake_leader()

    def wake_leader(self) -> None:
        """A thread that polls looks again."""
        if self._leader and self._leader != threading.get_ident() and self._wake_fds:
            self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._wake_fds[1], b"1")
        except BlockingIOError:
            pass  # it was woken often enough

    def wait(self, ready: Callable[[], Optional[_T]], timeout: Optional[float] = None) -> _T:
        """Waits without the guard until ready(), which is called with it, returns something; raises TimedOut."""
        end = None if timeout is None else time.monotonic() + timeout
        me = threading.get_ident()
        found: Optional[_T] = None
        while True:
            self._guard.settle()
            try:
                with self._guard.lock:
                    self._check()
                    self.collect()
                    found = ready()
                    if found is not None:
                        break
                    self._dispatch()
                    found = ready()
                    if found is not None:
                        break
                    left = None if end is None else end - time.monotonic()
                    if left is not None and left <= 0:
                        raise TimedOut("no answer within %g s" % timeout if timeout else "there is no answer yet")
                    if self._leader not in (0, me):
                        self._guard.changed.wait(left)
                        continue
                    self._leader = me
                    fds = (int(lib.piped_fd(self._p)), self._wake_fds[0])
                self._poll(fds, left)
            finally:
                if self._leader == me:
                    self._leader = 0
                    with self._guard.lock:
                        self._guard.changed.notify_all()
                        self.close_when_unused()
        self._guard.settle()
        return found

    @staticmethod
    def _poll(fds: Tuple[int, int], left: Optional[float]) -> None:
        poll = select.poll()
        for fd in fds:
            poll.register(fd, select.POLLIN)
        found: Dict[int, int] = dict(poll.poll(None if left is None else max(0, left * 1000) + 1))
        if fds[1] in found:
            try:
                os.read(fds[1], 4096)
            except BlockingIOError:
                pass

    # asyncio; called by the loop's thread, without the guard

    def attach(self) -> asyncio.AbstractEventLoop:
        """The running loop watches the descriptor until detach()."""
        loop = asyncio.get_running_loop()
        with self._guard.lock:
            self._check()
            if self._loop not in (None, loop):
                raise Error("another event loop uses the connection; a connection serves one loop at a time")
            if self._loop_users == 0:
                loop.add_reader(int(lib.piped_fd(self._p)), self._readable)
            self._loop = loop
            self._loop_users += 1
        return loop

    def detach(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard.lock:
            self._loop_users -= 1
            if self._loop_users == 0:
                if self._p:
                    loop.remove_reader(int(lib.piped_fd(self._p)))
                self._loop = None

    def _readable(self) -> None:
        with self._guard.lock:
            if self._p and self._pid == os.getpid():
                self._dispatch()
        self._guard.settle()
