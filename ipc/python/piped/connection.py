# SPDX-License-Identifier: Apache-2.0
"""The connection, as users see it."""
from __future__ import annotations

import os
from typing import Any, Callable, Optional, Tuple, Union

from ._libpiped import ffi, lib
from .link import Link
from .stream import Stream
from .values import Pixfmt, Policy

__all__ = ["Connection"]


class Connection(Link):
    """A connection to the daemon, made by piped.connect(). Any number of threads may use it and its streams."""

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
    def server(self) -> str:
        """The daemon's name and version."""
        return str(self._asked(lambda p: ffi.string(lib.piped_server(p))).decode())

    @property
    def reconnects(self) -> int:
        """How often the library has connected again."""
        return int(self._asked(lib.piped_reconnects))

    @property
    def trouble(self) -> str:
        """Why the library has no daemon now and looks for one, such as that the service fails to start; "": it has one, or
        knows no reason."""
        return str(self._asked(lambda p: ffi.string(lib.piped_trouble(p))).decode(errors="replace"))

    def fileno(self) -> int:
        """For poll(), for reading only, in event loops other than asyncio's: when it is readable, call dispatch()."""
        return int(self._asked(lib.piped_fd))

    def _asked(self, call: Callable[[Any], Any]) -> Any:
        with self._guard.lock:
            self._check()
            return call(self._p)

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
