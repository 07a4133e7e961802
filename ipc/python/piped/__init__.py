# SPDX-License-Identifier: Apache-2.0
"""Client of the piped daemon.

    import piped

    with piped.connect() as p, p.stream("digits", pixfmt="gray8") as s:
        for a in s.infer(pictures):
            print(a.number, a.top(5) if a.ok else a.reason)

docs/python.md is the manual.
"""
from __future__ import annotations

from typing import Optional

from ._calls import Busy, Calls, InvalidPlan, InvalidWish, LoadFailed, NotFound, PermissionDenied, ReloadFailed, Unsupported
from .answer import Answer
from .connection import Connection
from .decode import Decoded, Mask, Object, Point
from .errors import (Closed, ControlError, Error, FrameError, LimitReached, NoSuchModel, NotConnected, NotReachable,
                     NotStarted, NotSupported, Released, SlotsHeld, TimedOut)
from .frame import Frame
from .stream import Stream
from .values import Dtype, Pixfmt, Policy, Status, Tensor, Top
from .varlink import Example, Monitor

__all__ = [
    "Answer", "Busy", "Calls", "Closed", "Connection", "ControlError", "Decoded", "Dtype", "Error", "Example", "Frame",
    "FrameError", "InvalidPlan", "InvalidWish", "LimitReached", "LoadFailed", "Mask", "Monitor", "NoSuchModel", "NotConnected",
    "NotFound", "NotReachable", "NotStarted", "NotSupported", "Object", "PermissionDenied", "Pixfmt", "Point", "Policy",
    "Released", "ReloadFailed", "SlotsHeld", "Status", "Stream", "Tensor", "TimedOut", "Top", "Unsupported",
    "connect", "control"]


def connect(path: Optional[str] = None, timeout: Optional[float] = 30.0, *, reconnect: Optional[float] = None,
            client: Optional[str] = None) -> Connection:
    """Connects to the daemon.

    path: the frames socket; None: $PIPED_RUNTIME_DIR/frames.sock, or /run/piped/frames.sock. timeout: seconds to wait
    until a stream is open; None: for ever. reconnect: seconds to look for a daemon that went away, and to wait for its
    greeting; None: as timeout; 0: not at all. client: a name for the daemon's logs; None: the program's.
    """
    return Connection(path, timeout, timeout if reconnect is None else reconnect, client)


def control(path: Optional[str] = None, timeout: Optional[float] = None) -> Calls:
    """The control socket: status, models, plans. It is not connected until a call, so this never fails.

    path: None: $PIPED_RUNTIME_DIR/control.sock, or /run/piped/control.sock. timeout: seconds to wait for an answer;
    None: for ever, as a search may take minutes.
    """
    return Calls(path, timeout)
