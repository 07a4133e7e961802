# SPDX-License-Identifier: Apache-2.0
"""Streams in asyncio: the loop watches the library's descriptor, and nothing waits in a thread."""
from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Optional

from .answer import Answer
from .errors import NotConnected, SlotsHeld
from .frame import Frame
from .slots import Sink, Slots

__all__ = ["infer", "infer_one"]

_END = object()


class _Waiter:
    """Wakes a task when its sink has an answer, a slot is free, or its next frame is there. For the time of a `with`
    block the loop watches the connection; at its end nobody waits for what is still in flight."""

    def __init__(self, stream: Slots):
        self.stream = stream
        self.loop = asyncio.get_running_loop()
        self.event = asyncio.Event()
        self.sink = Sink(0, self.wake)

    def wake(self) -> None:
        """By any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.event.set)

    def __enter__(self) -> "_Waiter":
        self.stream._connection.attach()
        self.stream.slot_wakers.add(self.wake)
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.slot_wakers.discard(self.wake)
        self.stream.forget(self.sink)
        self.stream._connection.detach(self.loop)

    def put(self, frame: Any) -> bool:
        """Sends a frame. Return: false: there is no slot yet; raises SlotsHeld if none would come."""
        stream = self.stream
        stream._guard.settle()
        with stream._guard.lock:
            stream._check()
            if isinstance(frame, Frame):
                stream.enqueue(frame.give(stream), self.sink, frame.tag)
            else:
                slot = stream.slot(self.sink)
                if slot is None:
                    return False
                stream.send(slot, frame, self.sink)
            stream._connection.collect()
        stream._guard.settle()
        return True

    def take(self, copy: bool) -> Optional[Answer]:
        with self.stream._guard.lock:
            answer = self.stream.take(self.sink, copy)
        self.stream._guard.settle()
        return answer

    async def changed(self) -> None:
        await self.event.wait()
        self.event.clear()


async def infer_one(stream: Slots, frame: Any, copy: bool) -> Answer:
    with _Waiter(stream) as w:
        while not w.put(frame):
            await w.changed()
        while True:
            answer = w.take(copy)
            if answer is not None:
                return answer
            await w.changed()


class _Source:
    """The frames, one at a time: `frame` is there, or a task fetches it, or there are no more."""

    def __init__(self, frames: Any, wake: Any):
        self.iterator = frames.__aiter__() if hasattr(frames, "__aiter__") else None
        self.plain = None if self.iterator else iter(frames)
        self.wake = wake
        self.task: Optional["asyncio.Future[Any]"] = None
        self.ended = False

    async def _next(self) -> Any:
        assert self.iterator is not None
        try:
            return await self.iterator.__anext__()
        except StopAsyncIteration:
            return _END

    def look(self) -> Any:
        """Return: the next frame; None: not yet; _END."""
        if self.ended:
            return _END
        if self.plain is not None:
            frame = next(self.plain, _END)
        else:
            if self.task is None:
                self.task = asyncio.ensure_future(self._next())
                self.task.add_done_callback(lambda _: self.wake())
            if not self.task.done():
                return None
            frame, self.task = self.task.result(), None
        self.ended = frame is _END
        return frame

    async def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


async def infer(stream: Slots, frames: Any, copy: bool, most: int) -> AsyncIterator[Answer]:
    """As Stream.infer(). An answer is given when it comes, also while the next frame is awaited."""
    with _Waiter(stream) as w:
        source = _Source(frames, w.wake)
        frame: Any = None
        lost: Optional[NotConnected] = None
        try:
            while True:
                if frame is None and lost is None and len(w.sink.queue) < most:
                    frame = source.look()
                if frame is not None and frame is not _END and lost is None:
                    try:
                        frame = None if w.put(frame) else frame
                    except NotConnected as e:
                        lost = e
                    except SlotsHeld:
                        if not w.sink.queue:
                            raise
                if w.sink.ready():
                    answer = w.take(copy)
                    assert answer is not None
                    yield answer
                    del answer
                elif not w.sink.queue and (frame is _END or lost is not None):
                    break
                elif frame is _END or frame is not None or len(w.sink.queue) >= most or source.task is not None:
                    await w.changed()
            if lost is not None:
                raise lost
        finally:
            await source.close()
