# SPDX-License-Identifier: Apache-2.0
"""A stream: frames to one model, answered in order."""
from __future__ import annotations

import os
import threading
from typing import Any, AsyncIterator, Dict, Iterable, Iterator, List, Optional, Tuple

from . import aio
from ._libpiped import ffi, lib
from .answer import Answer
from .decode import Decoder
from .errors import Error, NotConnected, SlotsHeld
from .frame import Frame
from .slots import Sink, Slots

__all__ = ["Stream"]


class Stream(Slots):
    """Made by Connection.stream(). inputs, outputs: the model's tensors. width, height: of the largest picture.
    image_size: the model's own, None if its input is no picture. in_flight: frames that the daemon accepts; depth:
    frames that keep its pipeline full; slots: frames and answers that may exist at once."""

    @property
    def labels(self) -> List[str]:
        """The names of the model's classes, which the daemon has from the model's sidecar; asked for once, and again when
        an answer came by another sidecar. Empty if it has none, or if its control socket is not there."""
        if self._labels is None:
            try:
                models = self._connection.control.models().models
            except Error:
                models = []
            mine = [m for m in models if (m["name"] == self.model if self.model else m.get("default"))] or models[:1]
            self._labels = [str(label) for label in mine[0]["labels"]] if mine else []
        return self._labels

    def decoder(self) -> Decoder:
        """What decoded() and top() of the newest answer work with."""
        with self._guard.lock:
            self._decoder.prepare()
            return self._decoder

    @property
    def stats(self) -> Dict[str, int]:
        """submitted, answered, resent (after a reconnect), reordered and duplicated (put right by the library)."""
        with self._guard.lock:
            self._check()
            found = ffi.new("struct piped_stream_stats *")
            lib.piped_stream_stats(self._s, found)
            return {name: int(getattr(found, name))
                    for name in ("submitted", "answered", "resent", "reordered", "duplicated")}

    # many frames

    def infer(self, frames: Iterable[Any], *, copy: bool = False, in_flight: Optional[int] = None,
              timeout: Optional[float] = None) -> Iterator[Answer]:
        """Sends frames and yields their answers in order, so many in flight as the stream has, or in_flight.

        A frame is an array, bytes, a dict or list of arrays for several inputs, or what acquire() gave. copy: answers
        hold no slot. timeout: seconds to wait for an answer; then TimedOut. Leaving the loop cancels what is in flight.
        """
        sink = Sink(threading.get_ident())
        most = self._most(in_flight)
        try:
            for frame in frames:
                lost: Optional[NotConnected] = None
                try:
                    while not self._put(frame, sink, timeout):
                        yield self._first(sink, copy, timeout)
                except NotConnected as e:  # what was sent has come back
                    lost = e
                while sink.queue and (lost or len(sink.queue) >= most or self._answered(sink)):
                    yield self._first(sink, copy, timeout)
                if lost:
                    raise lost
            while sink.queue:
                yield self._first(sink, copy, timeout)
        finally:
            self.forget(sink)

    def run(self, frame: Any, *, copy: bool = True, timeout: Optional[float] = None) -> Answer:
        """Sends a frame and waits for its answer, which holds no slot unless copy is False."""
        sink = Sink(threading.get_ident())
        try:
            self._put(frame, sink, timeout)
            return self._first(sink, copy, timeout)
        finally:
            self.forget(sink)

    def ainfer(self, frames: Any, *, copy: bool = False, in_flight: Optional[int] = None) -> AsyncIterator[Answer]:
        """As infer(), for `async for`; frames may be an asynchronous iterator, too."""
        return aio.infer(self, frames, copy, self._most(in_flight))

    async def infer_one(self, frame: Any, *, copy: bool = True) -> Answer:
        """Sends a frame and awaits its answer, which holds no slot unless copy is False. Any number of tasks may do so.
        A task that is cancelled cancels its frame."""
        return await aio.infer_one(self, frame, copy)

    # one frame, without copies

    def acquire(self, size: Optional[Tuple[int, int]] = None, *, stride: int = 0,
                timeout: Optional[float] = None) -> Frame:
        """Takes a slot to fill: Frame.input. size, stride: of a picture that is smaller than the stream's. Waits while
        frames are in flight and no slot is free."""
        def try_it() -> Optional[Frame]:
            found = self.slot(self._own)
            if found is None:
                return None
            frame = Frame(self, found, self._frame_layout, size, stride)
            self.taken(found)
            return frame
        return self._connection.wait(try_it, timeout)

    def submit(self, frame: Frame) -> None:
        """Hands a frame over, for next(). Its arrays can only be read afterwards; what they show then means nothing."""
        with self._guard.lock:
            self._check()
            self._own.thread = threading.get_ident()
            self.enqueue(frame.give(self), self._own, frame.tag)
        self._guard.settle()

    def next(self, timeout: Optional[float] = None) -> Answer:
        """The next answer to a submitted frame, in order. timeout 0: never waits; TimedOut: it is not there yet."""
        with self._guard.lock:
            self._check()
            if not self._own.queue:
                raise Error("no frame is outstanding: submit() one first")
        return self._first(self._own, False, timeout)

    def cancel(self) -> None:
        """Cancels the submitted frames that next() would give. They still come, usually as CANCELLED."""
        with self._guard.lock:
            self._check()
            for p in self._own.queue:
                lib.piped_cancel(self._s, p.frame)

    def close(self) -> None:
        """Drops frames in flight. Memory that arrays look into stays until they are gone, and so does the stream at the
        daemon."""
        if self._connection._pid == os.getpid():
            with self._guard.lock:
                self.close_locked()
                self._connection.close_when_unused()
            self._guard.settle()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # inside; without the guard

    def _most(self, in_flight: Optional[int]) -> int:
        """One slot is for the answer that the caller looks at, one for a frame that it fills."""
        return max(1, min(in_flight or self.in_flight, self.slots - 2))

    def _put(self, frame: Any, sink: Sink, timeout: Optional[float]) -> bool:
        """Return: false: take an answer of the sink first, there is no slot."""
        if isinstance(frame, Frame):
            with self._guard.lock:
                self._check()
                self.enqueue(frame.give(self), sink, frame.tag)
            self._guard.settle()
            return True

        def try_it() -> Optional[bool]:
            try:
                slot = self.slot(sink)
            except SlotsHeld:
                if sink.queue:
                    return False
                raise
            if slot is None:
                return False if sink.queue else None
            self.send(slot, frame, sink)
            return True
        return self._connection.wait(try_it, timeout)

    def _answered(self, sink: Sink) -> bool:
        with self._guard.lock:
            self._check()
            self._connection._dispatch()
            return sink.ready()

    def _first(self, sink: Sink, copy: bool, timeout: Optional[float]) -> Answer:
        """Waits for the sink's next answer."""
        return self._connection.wait(lambda: self.take(sink, copy), timeout)
