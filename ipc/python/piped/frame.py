# SPDX-License-Identifier: Apache-2.0
"""Filling frames: what the caller has becomes what a slot holds."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Protocol, Sequence, Tuple

import numpy as np

from ._libpiped import ffi
from .errors import Released
from .values import Array, Pixfmt, Tensor, image_shape, image_size

__all__ = ["Frame", "Layout", "fill"]


@dataclass(frozen=True)
class Layout:
    """What a stream's frames look like. stride 0: rows have no gap."""
    pixfmt: Pixfmt
    inputs: Tuple[Tensor, ...]
    width: int
    height: int
    stride: int


def _picture(buffer: Any, pixfmt: Pixfmt, width: int, height: int, stride: int) -> Array:
    shape = image_shape(pixfmt, width, height)
    packed = math.prod(shape[1:])
    whole: Array = np.ndarray((shape[0], stride or packed), np.uint8, buffer)
    return whole[:, :packed].reshape(shape) if not stride or stride == packed else np.ndarray(
        shape, np.uint8, buffer, 0, (stride,) + ((shape[2], 1) if len(shape) == 3 else (1,)))


def _bytes_of(data: Any) -> Optional[memoryview]:
    return memoryview(data).cast("B") if isinstance(data, (bytes, bytearray, memoryview)) else None


def _fill_picture(frame: Any, data: Any, layout: Layout) -> None:
    pixels = np.asarray(data)
    if pixels.dtype != np.uint8:
        raise TypeError("pixels are uint8, and this array has %s" % pixels.dtype)
    width, height = image_size(layout.pixfmt, pixels.shape)
    if pixels.size > frame.input_size:
        raise ValueError("a picture of %dx%d does not fit: the stream takes %dx%d; open it with size=(%d, %d)" % (
            width, height, layout.width, layout.height, width, height))
    target = _picture(ffi.buffer(frame.input, frame.input_size), layout.pixfmt, width, height, 0)
    frame.width, frame.height = width, height
    target[...] = pixels.reshape(target.shape)


def _fill_tensors(frame: Any, data: Any, inputs: Sequence[Tensor]) -> None:
    if isinstance(data, dict):
        unknown = set(data) - {t.name for t in inputs}
        missing = [t.name for t in inputs if t.name not in data]
        if unknown or missing:
            raise ValueError("the model's inputs are %s; unknown: %s; missing: %s" % tuple(
                ", ".join(map(str, names)) or "none" for names in ([t.name for t in inputs], unknown, missing)))
        given = [data[t.name] for t in inputs]
    elif isinstance(data, (list, tuple)) and len(inputs) > 1:
        given = list(data)
    else:
        given = [data]
    if len(given) != len(inputs):
        raise ValueError("the model has %d inputs (%s), and %d arrays were given" % (
            len(inputs), ", ".join(t.name for t in inputs), len(given)))
    buffer = ffi.buffer(frame.input, frame.input_size)
    for t, one in zip(inputs, given):
        array = np.asarray(one)
        # A model that takes one picture at a time has a 1 in front, which an array need not have.
        if array.shape != t.shape and (1,) * (len(t.shape) - array.ndim) + array.shape != t.shape:
            raise ValueError("the input %s has the shape %s, and this array has %s" % (t.name, t.shape, array.shape))
        target: Array = np.ndarray(t.shape, t.dtype, buffer, t.offset)
        np.copyto(target, array.reshape(t.shape), casting="same_kind")


def fill(frame: Any, data: Any, layout: Layout) -> None:
    """Copies a frame into its slot; raises TypeError or ValueError if it does not fit."""
    raw = _bytes_of(data)
    if raw is not None:
        if not 0 < len(raw) <= frame.input_size:  # libpiped reads 0 as all of the slot
            raise ValueError("the frame has %d bytes, and the stream takes %d" % (len(raw), frame.input_size))
        ffi.buffer(frame.input, len(raw))[:] = raw
        frame.input_bytes = len(raw)
    elif layout.pixfmt == Pixfmt.TENSOR:
        _fill_tensors(frame, data, layout.inputs)
    else:
        _fill_picture(frame, data, layout)


class Lender(Protocol):
    """A stream, as far as its frames know it."""

    def lend(self, address: Any, size: int) -> Any: ...

    def give_back(self, frame: Any) -> None: ...


class Frame:
    """A slot to fill, made by Stream.acquire(). tag: comes back with the answer. Give it to Stream.submit(), infer() or
    infer_one(), or give it up with release() or the end of a `with` block."""

    def __init__(self, stream: Lender, frame: Any, layout: Layout, size: Optional[Tuple[int, int]], stride: int):
        self.tag: Any = None
        self._stream = stream
        self._frame: Any = None  # until it is known to fit
        self._layout = layout
        self._arrays: List[Array] = []
        self._views: Dict[str, Array] = {}
        self._size, self._stride = (size or (layout.width, layout.height)), stride if size else stride or layout.stride
        if layout.pixfmt != Pixfmt.TENSOR:
            shape = image_shape(layout.pixfmt, *self._size)
            row = math.prod(shape[1:])
            if 0 < self._stride < row:
                raise ValueError("rows have %d bytes, and stride is %d" % (row, self._stride))
            if (self._stride or row) * shape[0] > frame.input_size:
                raise ValueError("a picture of %dx%d does not fit into the stream's slots; open it with a larger size"
                                 % self._size)
            frame.width, frame.height = self._size
            frame.stride = self._stride
        self._buffer = stream.lend(frame.input, frame.input_size)
        self._frame = frame

    def _live(self) -> Any:
        if self._frame is None:
            raise Released("the frame was submitted or released; take the next by acquire()")
        return self._frame

    @property
    def input(self) -> Array:
        """The picture, or the model's only or first input, to be filled: shared memory. After submit() it can only be
        read."""
        self._live()
        if self._layout.pixfmt == Pixfmt.TENSOR:
            return self.inputs[self._layout.inputs[0].name]
        if not self._arrays:
            self._arrays.append(_picture(self._buffer, self._layout.pixfmt, *self._size, self._stride))
        return self._arrays[0]

    @property
    def inputs(self) -> Dict[str, Array]:
        """The model's inputs by name, to be filled."""
        self._live()
        if self._layout.pixfmt != Pixfmt.TENSOR:
            raise TypeError("this stream takes pictures: use Frame.input")
        if not self._views:
            self._views = {t.name: np.ndarray(t.shape, t.dtype, self._buffer, t.offset) for t in self._layout.inputs}
            self._arrays = list(self._views.values())
        return self._views

    @property
    def deadline_ns(self) -> int:
        """CLOCK_MONOTONIC (time.monotonic_ns()); after it the frame is not computed any more. 0: the stream's."""
        return int(self._live().deadline_ns)

    @deadline_ns.setter
    def deadline_ns(self, when: int) -> None:
        self._live().deadline_ns = when

    @property
    def time_ns(self) -> int:
        """For the caller; comes back with the answer."""
        return int(self._live().time_ns)

    @time_ns.setter
    def time_ns(self, when: int) -> None:
        self._live().time_ns = when

    def release(self) -> None:
        """Gives the slot back without sending it."""
        if self._frame is not None:
            self._stream.give_back(self.give(self._stream))

    # inside

    def give(self, stream: Lender) -> Any:
        """Return: the slot, which is not this frame's any more; its arrays can only be read."""
        if stream is not self._stream:
            raise ValueError("the frame belongs to another stream")
        frame = self._live()
        for array in self._arrays:
            array.flags.writeable = False
        self._arrays, self._views = [], {}
        self._frame = self._buffer = None
        return frame

    def __enter__(self) -> "Frame":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        try:
            self.release()
        except (AttributeError, TypeError):  # the interpreter ends, or the constructor failed
            pass
