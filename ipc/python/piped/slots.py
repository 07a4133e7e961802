# SPDX-License-Identifier: Apache-2.0
"""The slots of a stream: what is free, what is on its way, what came back.

A submitted frame is a Pending in the queue of its Sink: that of an infer(), of a task, or the stream's own, which next()
reads. collect() marks those that libpiped answered; it may be interrupted anywhere and called again.
"""
from __future__ import annotations

import collections
import contextlib
import os
import threading
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Tuple, Union

import numpy as np

from ._libpiped import ffi, lib
from .answer import Answer
from .decode import Decoder
from .errors import Closed, Error, NotConnected, SlotsHeld, error_of_open, last_error
from .frame import Layout, fill
from .link import Guard, Link
from .values import NUMPY, Dtype, Pixfmt, Policy, Tensor, image_shape, member

__all__ = ["Pending", "Sink", "Slots"]

_EINTR, _EINVAL, _ENOTCONN = 4, 22, 107


class Sink:
    """Frames of one caller, in order. thread: who reads it, 0 if not known: an event loop's tasks. wake(): called when
    one of them is answered, with the guard held."""
    __slots__ = ("queue", "thread", "wake")

    def __init__(self, thread: int, wake: Optional[Callable[[], None]] = None):
        self.queue: Deque[Pending] = collections.deque()
        self.thread = thread
        self.wake = wake

    def ready(self) -> bool:
        return bool(self.queue) and self.queue[0].done


class Pending:
    """A frame on its way. sink None: nobody waits for it any more."""
    __slots__ = ("frame", "sink", "tag", "done", "decoder")

    def __init__(self, frame: Any, sink: Sink, tag: Any, decoder: Decoder):
        self.frame = frame
        self.sink: Optional[Sink] = sink
        self.tag = tag
        self.done = False
        self.decoder = decoder  # done: of its answer


def _address(frame: Any) -> int:
    return int(ffi.cast("uintptr_t", frame))


def _half(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        value = {"f16": np.float16, "f32": np.float32}.get(value, value)
    for number in (Dtype.F16, Dtype.F32):
        if value in (number, NUMPY[number], NUMPY[number].type):
            return int(number)
    raise ValueError("%r is not f16 or f32" % (value,))


class Slots:
    """An open stream, below what users call. With the guard held where no other is named."""

    def __init__(self, connection: Link, *, model: Optional[str], pixfmt: Union[str, Pixfmt],
                 policy: Union[str, Policy], deadline_ms: Optional[float], in_flight: Optional[int],
                 size: Optional[Tuple[int, int]], stride: int, priority: int, slots: Optional[int],
                 input_dtype: Any, output_dtype: Any, inline: bool):
        self._connection = connection
        self._guard: Guard = connection._guard
        self._s: Any = ffi.NULL
        self._closed = False
        self._lent: Set[int] = set()  # numbers of what arrays look into
        self._lent_last = 0
        self._own = Sink(0)
        self._pending: Dict[int, Pending] = {}
        self._free = ffi.new("struct piped_frame **")  # by piped_acquire(), and not yet anybody's
        self._taken = ffi.new("struct piped_frame **")  # by piped_next(), and not yet given to its Pending
        self._counted: Optional[List[int]] = None  # outputs with a number of rows
        self._labels: Optional[List[str]] = None
        self._decoder = Decoder(b"", ffi.NULL, 0)  # of what piped_next() gave last
        self._said: Any = ffi.NULL  # the text that it is made of; another text is elsewhere
        self.slot_wakers: Set[Callable[[], None]] = set()  # of tasks that wait for a slot
        self.model = model
        self.pixfmt = member(Pixfmt, pixfmt)
        self.policy = member(Policy, policy)
        if size and self.pixfmt != Pixfmt.TENSOR:
            image_shape(self.pixfmt, *size)  # refuses an empty one
        name = ffi.new("char[]", model.encode()) if model else ffi.NULL
        given = {"model": name, "pixfmt": int(self.pixfmt), "policy": int(self.policy), "credits": in_flight or 0,
                 "priority": priority, "deadline_ns": int((deadline_ms or 0) * 1e6),
                 "slots": slots if slots is not None else in_flight + 2 if in_flight else 0,
                 "width": size[0] if size else 0, "height": size[1] if size else 0, "stride": stride,
                 "inline_frames": int(inline), "input_dtype": _half(input_dtype), "output_dtype": _half(output_dtype)}
        options = ffi.new("struct piped_stream_options *", {"size": ffi.sizeof("struct piped_stream_options"), **given})
        with self._guard.lock:
            connection._check()
            self._open(options)
            self._layout(size, stride)
            connection._streams.append(self)

    def _open(self, options: Any) -> None:
        found = ffi.new("struct piped_stream **")
        rc = lib.piped_stream_open(self._connection._p, options, found)
        while rc == -_EINTR:  # Python has run the signal's handler, which may have raised
            rc = lib.piped_stream_open(self._connection._p, options, found)
        self._connection.collect()
        if rc == -_EINVAL:
            raise ValueError(last_error())
        if rc < 0:
            raise error_of_open(rc, last_error())
        self._s = found[0]

    def _layout(self, size: Optional[Tuple[int, int]], stride: int) -> None:
        info = lib.piped_stream_info(self._s)
        self.in_flight: int = info.credits
        self.depth: int = info.depth
        self.slots: int = info.slots
        self.inputs: Tuple[Tensor, ...] = self._tensors(info.inputs, info.input_count)
        self.outputs: Tuple[Tensor, ...] = self._tensors(info.outputs, info.output_count)
        self.image_size = (int(info.image_width), int(info.image_height)) if info.image_width else None
        self.width, self.height = size or self.image_size or (0, 0)
        self.output_bytes: int = info.output_bytes
        self._frame_layout = Layout(self.pixfmt, self.inputs, self.width, self.height, stride)
        self._describe()

    @staticmethod
    def _tensors(found: Any, count: int) -> Tuple[Tensor, ...]:
        return tuple(Tensor(ffi.string(t.name).decode(), NUMPY[t.dtype], tuple(t.dim[d] for d in range(t.rank)),
                            t.offset, t.bytes)
                     for t in (found[i] for i in range(count)))

    def _check(self) -> None:
        self._connection._check()
        if self._closed:
            raise Closed("the stream is closed")

    def text_of(self, frame: Any) -> str:
        return str(ffi.string(frame.text).decode(errors="replace"))

    def collect(self) -> None:
        """Marks what was answered. An interrupt may come between any two lines: all may be done again."""
        taken = self._taken
        while self._s and not self._closed:
            if not taken[0] and lib.piped_next(self._s, taken) < 0:
                return
            self._describe()
            p = self._pending.get(_address(taken[0]))
            if p is not None and p.sink is not None:
                p.decoder = self._decoder
                p.done = True
                if p.sink.wake:
                    p.sink.wake()
            elif p is not None:
                self._pending.pop(_address(taken[0]), None)
                self._release(taken[0])
            taken[0] = ffi.NULL

    def _release(self, frame: Any) -> None:
        if self._s:
            lib.piped_release(self._s, frame)
        for wake in self.slot_wakers:
            wake()

    def slot(self, sink: Sink) -> Optional[Any]:
        """Return: a free slot, the same one until taken(), which says that it is somebody's; None: wait for one;
        raises SlotsHeld if none would come."""
        self._check()
        if self._free[0]:  # filling it failed, or was interrupted
            frame = self._free[0]
            frame.input_bytes = frame.width = frame.height = frame.stride = 0
            return frame
        if lib.piped_acquire(self._s, self._free) == 0:
            return self._free[0]
        if self._guard.returned:
            self._guard.returned_now()
            return self.slot(sink)
        me = threading.get_ident()
        if not any(not p.done or (p.sink is not sink and p.sink is not None and p.sink.thread != me)
                   for p in self._pending.values()):
            raise SlotsHeld("all %d slots are held: by answers and their arrays, answers that next() has not taken, or "
                            "acquired frames; take copies (copy=True, Answer.copy()) or open the stream with more "
                            "slots" % self.slots)
        return None

    def taken(self, frame: Any) -> None:
        if self._free[0] == frame:
            self._free[0] = ffi.NULL

    def enqueue(self, frame: Any, sink: Sink, tag: Any) -> None:
        """Submits a filled frame; if that fails, gives its slot back and raises."""
        p = self._pending[_address(frame)] = Pending(frame, sink, tag, self._decoder)
        sink.queue.append(p)
        self.taken(frame)
        rc = lib.piped_submit(self._s, frame)
        if rc < 0:
            text = last_error()
            sink.queue.pop()
            del self._pending[_address(frame)]
            self._release(frame)
            if rc == -_EINVAL:
                raise ValueError(text)
            raise NotConnected(text, -rc) if rc == -_ENOTCONN else Error(text, -rc)
        self._connection.wake_leader()

    def send(self, slot: Any, data: Any, sink: Sink) -> None:
        """Copies a frame into the slot that slot() gave, and submits it."""
        fill(slot, data, self._frame_layout)
        self.enqueue(slot, sink, None)

    def take(self, sink: Sink, copy: bool) -> Optional[Answer]:
        """Return: the sink's next answer, if it is there."""
        self._check()
        if not sink.ready():
            return None
        p = sink.queue.popleft()
        self._pending.pop(_address(p.frame), None)
        try:
            answer = Answer(self, p.frame, p.tag, p.decoder)
            if answer.ok:
                self._lend_output(answer, p.frame)
        except BaseException:
            self._release(p.frame)
            raise
        if not answer.ok:
            self._release(p.frame)
        return answer.copy() if copy else answer

    def _lend_output(self, answer: Answer, frame: Any) -> None:
        if self._counted is None:
            dim = ffi.new("uint32_t *")
            self._counted = []
            for i in range(len(self.outputs)):
                lib.piped_rows(self._s, frame, i, dim)
                self._counted += [i] if dim[0] != 0xffffffff else []
        for i in self._counted:
            dim = ffi.new("uint32_t *")
            answer._rows[i] = (int(lib.piped_rows(self._s, frame, i, dim)), int(dim[0]))
        answer._buffer = self.lend(frame.output, self.output_bytes, frame)

    def lend(self, address: Any, size: int, frame: Any = None) -> Any:
        """Return: a buffer for arrays; when they are gone, by whatever thread, the slot of `frame` is free. NumPy keeps
        the object alive that it got memory from: the buffer, which so ends with the last array."""
        self._lent_last = number = self._lent_last + 1
        self._lent.add(number)

        def settle() -> None:
            if frame is not None and number in self._lent:
                self._release(frame)
            self._lent.discard(number)
            self._close_when_unused()

        buffer = ffi.buffer(address, size)
        weakref.finalize(buffer, self._guard.give_back, settle).atexit = False
        return buffer

    def give_back(self, frame: Any) -> None:
        """A frame that was not submitted; without the guard, by any thread."""
        self._guard.give_back(lambda: self._release(frame))

    def forget(self, sink: Sink) -> None:
        """Without the guard: nobody waits for the sink's frames any more."""
        if self._connection._pid != os.getpid():
            return
        with self._guard.lock:
            while sink.queue:
                p = sink.queue[0]
                p.sink = None
                sink.queue.popleft()
                if self._closed or not self._s:
                    continue
                if p.done or p.frame.number == 0:
                    self._pending.pop(_address(p.frame), None)
                    self._release(p.frame)
                else:
                    lib.piped_cancel(self._s, p.frame)
            self._connection.collect()
        self._guard.settle()

    def _describe(self) -> None:
        if self._s and not self._closed:
            said = lib.piped_stream_description(self._s)
            if said != self._said:
                self._prepare()
                info = lib.piped_stream_info(self._s)
                self._decoder = Decoder(ffi.string(said), info.outputs, info.output_count)
                self._said, self._labels = said, None

    def _prepare(self) -> None:
        """Answers may still be decoded."""
        with contextlib.suppress(Error):
            self._decoder.prepare()

    def close_locked(self) -> None:
        if self._closed:
            return
        self._prepare()
        for p in self._pending.values():
            lib.piped_cancel(self._s, p.frame)
            if p.sink and p.sink.wake:
                p.sink.wake()
        self._closed = True
        self._pending.clear()
        for wake in self.slot_wakers:
            wake()
        self._guard.changed.notify_all()
        self._connection.wake_leader()
        self._close_when_unused()

    def _close_when_unused(self) -> None:
        if self._closed and not self._lent and self._s and self._connection._pid == os.getpid():
            s, self._s = self._s, ffi.NULL
            lib.piped_stream_close(s)
            self._connection._streams.remove(self)
            self._connection.close_when_unused()
