# SPDX-License-Identifier: Apache-2.0
"""What may go wrong. Each exception has the daemon's or the library's reason as its text."""
from __future__ import annotations

from errno import EACCES, EAGAIN, EBUSY, EHOSTDOWN, ENOENT, ENOTCONN, EOPNOTSUPP, EPERM, EPROTO, ETIMEDOUT
from typing import Any, Dict, Type

from ._libpiped import ffi, lib

__all__ = ["Error", "NoSuchModel", "NotReachable", "NotSupported", "LimitReached", "NotConnected", "TimedOut", "Closed",
           "SlotsHeld", "Released", "FrameError", "ControlError", "NotStarted"]


class Error(Exception):
    """Something failed. errno: as libpiped says; 0: nothing of libpiped's."""

    def __init__(self, text: str, errno: int = 0):
        super().__init__(text)
        self.errno = errno


class NoSuchModel(Error):
    """The daemon serves no such model."""


class NotReachable(Error):
    """There is no daemon at the path, or it may not be asked."""


class NotSupported(Error):
    """The model does not take this pixel format or type."""


class LimitReached(Error):
    """A limit of the daemon's configuration; the text names its key."""


class NotConnected(Error):
    """The daemon went away and did not come back in time."""


class TimedOut(Error, TimeoutError):
    """The answer did not come in time. It may still come."""


class Closed(Error):
    """The stream or the connection was closed, or it belongs to the process from which this one was forked."""


class SlotsHeld(Error):
    """No slot is free, and none can become free: answers, arrays that look into them, or acquired frames hold all."""


class Released(Error):
    """The answer or the frame was given back, so its memory is not ours any more."""


class FrameError(Error):
    """The daemon did not compute the frame. status: why, a piped.Status."""

    def __init__(self, text: str, status: Any):
        super().__init__(text)
        self.status = status


class ControlError(Error):
    """The daemon refused a call. error: its full name in the interface; parameters: what came with it."""

    def __init__(self, error: str, parameters: Dict[str, Any], text: str = ""):
        reason = ", ".join(v for v in parameters.values() if isinstance(v, str))
        name = error.rpartition(".")[2]
        super().__init__(text or ("%s: %s" % (name, reason) if reason else name))
        self.error = error
        self.parameters = parameters


class NotStarted(NotReachable, ControlError):
    """The service fails to start; the text says why, with file, line and key. The next client starts it again. It comes at
    once, from piped.connect() and from calls."""

    def __init__(self, error: str, parameters: Dict[str, Any], text: str = ""):
        ControlError.__init__(self, error, parameters, text or _FAILED + str(parameters.get("why", "")))
        self.errno = EHOSTDOWN

    @property
    def why(self) -> str:
        """As the daemon says it."""
        return str(self.parameters.get("why", ""))


_FAILED = "the service failed to start: "


_OF_OPEN: Dict[int, Type[Error]] = {
    ENOENT: NoSuchModel, EOPNOTSUPP: NotSupported, EBUSY: LimitReached, ENOTCONN: NotConnected, ETIMEDOUT: TimedOut,
    EAGAIN: NotConnected, EPERM: NotReachable}
_OF_CONNECT: Dict[int, Type[Error]] = {ETIMEDOUT: TimedOut, EACCES: NotReachable, EPROTO: NotReachable}


def last_error() -> str:
    """Return: why this thread's last failed call of libpiped failed."""
    return str(ffi.string(lib.piped_last_error()).decode(errors="replace"))


def error_of_open(rc: int, text: str) -> Error:
    return _OF_OPEN.get(-rc, Error)(text, -rc)


def error_of_connect(rc: int, text: str) -> Error:
    if rc == -EHOSTDOWN:
        return NotStarted("io.piped.NotStarted", {"why": text[len(_FAILED):] if text.startswith(_FAILED) else text}, text)
    return _OF_CONNECT.get(-rc, NotReachable)(text, -rc)
