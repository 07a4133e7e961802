# SPDX-License-Identifier: Apache-2.0
"""The connection: one lock for libpiped, waiting in turn, an event loop's reader.

libpiped wants one thread at a time. So everything that calls it holds the guard's lock. Nobody waits while holding it:
of several threads that wait, one leads: it polls the library's descriptor, lets the library work, and wakes the others.
What arrays give back (lend() of slots.py) is put into a queue without a lock, and whoever holds the guard next empties it.
"""
from __future__ import annotations

import asyncio
import collections
import os
import select
import threading
import time
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional, Protocol, Tuple, TypeVar

from ._calls import Calls
from ._libpiped import ffi, lib
from .errors import Closed, Error, TimedOut, error_of_connect, last_error

__all__ = ["Guard", "Link"]

_T = TypeVar("_T")
_EINTR = 4


def milliseconds(seconds: Optional[float]) -> int:
    return 0 if seconds is None else max(1, min(int(seconds * 1000), 0x7fffffff))


class Guard:
    """The lock, which is used as `with guard.lock:` without code of ours, so that an interrupt never leaves it locked.

    What arrays give back waits in `returned` if the lock was held just then, even by the same thread; whoever held the
    lock calls settle() afterwards, or somebody who needs it returned_now() before.
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
                self.returned_now()
                self.changed.notify_all()
            finally:
                self.lock.release()

    def returned_now(self) -> None:
        """With the lock held, and not while streams are listed: an unused one leaves the list."""
        while self.returned:
            self.returned[0]()  # an interrupt may come before the next line: it is done twice then
            self.returned.popleft()

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


class Member(Protocol):
    """A stream, as far as its link knows it."""

    def collect(self) -> None: ...

    def close_locked(self) -> None: ...


class Link:
    """What a connection and its streams share: libpiped's connection, and who waits for it."""

    def __init__(self, path: Optional[str], timeout: Optional[float], reconnect: Optional[float],
                 client: Optional[str]):
        self._p: Any = ffi.NULL
        self._pid = os.getpid()
        self._guard = Guard()
        self._leader = 0  # the thread that polls
        self._streams: List[Member] = []
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

    @property
    def control(self) -> Calls:
        """The control socket beside this one."""
        if self._control is None:
            self._control = Calls(os.path.join(os.path.dirname(self.path), "control.sock"))
        return self._control

    # with the guard held unless it says otherwise

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
