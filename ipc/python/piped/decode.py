# SPDX-License-Identifier: Apache-2.0
"""Outputs as objects, points, text and masks, where the model's sidecar says how (docs/outputs.md).

libpiped decodes."""
from __future__ import annotations

import threading
from dataclasses import dataclass
from errno import EINVAL
from typing import Any, Dict, List, Mapping, Optional, Protocol, Tuple

import numpy as np

from ._libpiped import ffi, lib
from .errors import Error, last_error
from .values import Array, Tensor, Top

__all__ = ["Decoded", "Decoder", "Mask", "Object", "Outputs", "Point"]

_ALL_ROWS = 2**64 - 1


@dataclass(frozen=True)
class Point:
    """In pixels of the picture. score: 1 where the model gives none."""
    x: float
    y: float
    score: float


@dataclass(frozen=True)
class Object:
    """x, y: the upper left corner; width, height: the size, in pixels of the picture that was sent. index: of the
    class; None where the model knows none. area: in pixels."""
    label: Optional[str]
    index: Optional[int]
    score: float
    x: float
    y: float
    width: float
    height: float
    area: float
    points: Tuple[Point, ...]


@dataclass(frozen=True)
class Mask:
    """classes[row, column] is the class of a part of the rectangle, 255 of none. The rectangle may reach beyond the
    picture, or miss some of it."""
    classes: Array
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Decoded:
    """kind: the decoder. objects: from the highest score down; of text detectors from top to bottom."""
    kind: str
    width: int
    height: int
    objects: Tuple[Object, ...]
    text: Optional[str]
    text_score: float
    mask: Optional[Mask]


def _text(value: Any) -> Optional[str]:
    return None if value == ffi.NULL else str(ffi.string(value).decode(errors="replace"))


class Decoder:
    """What answers of one description are decoded with. Any thread may use it.

    It is prepared when it is first needed, at the latest before its stream is closed or has another; then it outlives
    the stream. outputs, count: of piped_stream_info()."""

    def __init__(self, description: bytes, outputs: Any, count: int):
        self._given: Any = (description, outputs, count)
        self._d: Any = None
        self._why: Optional[Tuple[str, int]] = None
        self._lock = threading.RLock()

    def prepare(self) -> Any:
        """Raises Error if there is no way to decode."""
        with self._lock:
            if self._given:
                found = ffi.new("struct piped_decoder **")
                rc = lib.piped_decoder_new(*self._given, found)
                if rc < 0:
                    self._why = (last_error(), -rc)
                else:
                    self._d = ffi.gc(found[0], lib.piped_decoder_free)
                self._given = None
            if self._why:
                raise Error(*self._why)
            return self._d

    def decode(self, output: Any, rows: Any, size: Tuple[int, int]) -> Decoded:
        """output: the whole output area, contiguous."""
        with self._lock:
            ret = ffi.new("struct piped_decoded **")
            rc = lib.piped_decode(self.prepare(), ffi.from_buffer(output), rows, size[0], size[1], ret)
            if rc < 0:
                raise Error(last_error(), -rc)
            r = ret[0]
            objects = tuple(self._object(r, r.objects[i]) for i in range(r.object_count))
            return Decoded(str(_text(r.kind)), int(r.width), int(r.height), objects, _text(r.text), float(r.text_score),
                           None if r.mask == ffi.NULL else self._mask(r.mask))

    def classes(self, output: Any, most: int) -> List[Top]:
        """The best classes; none if the model is not a classifier. output: as of decode()."""
        with self._lock:
            ret, count = ffi.new("struct piped_class **"), ffi.new("uint32_t *")
            rc = lib.piped_decode_classes(self.prepare(), ffi.from_buffer(output), most, ret, count)
            if rc == -EINVAL:
                return []
            if rc < 0:
                raise Error(last_error(), -rc)
            found = (ret[0][i] for i in range(count[0]))
            return [Top(int(c.number), _text(c.label), float(c.score), float(c.probability)) for c in found]

    @staticmethod
    def _object(r: Any, o: Any) -> Object:
        found = range(o.point_first, o.point_first + o.point_count)
        points = tuple(Point(r.points[k].x, r.points[k].y, r.points[k].score) for k in found)
        return Object(_text(o.label), None if o.number < 0 else int(o.number), float(o.score), float(o.x), float(o.y),
                      float(o.width), float(o.height), float(o.area), points)

    @staticmethod
    def _mask(m: Any) -> Mask:
        classes = np.frombuffer(ffi.buffer(m.classes, m.rows * m.columns), np.uint8).reshape(m.rows, m.columns).copy()
        return Mask(classes, float(m.x), float(m.y), float(m.width), float(m.height))


class Outputs(Protocol):
    """A stream, as far as its answers know it."""
    outputs: Tuple[Tensor, ...]
    output_bytes: int

    def text_of(self, frame: Any) -> str: ...


def area_of(stream: Outputs, outputs: Mapping[str, Array], rows: Dict[int, Any]) -> Tuple[Array, Any]:
    """The output area as the daemon made it, and the valid rows of each output."""
    area: Array = np.zeros(stream.output_bytes, np.uint8)
    counts = ffi.new("uint64_t[]", [_ALL_ROWS] * len(stream.outputs))
    for i, t in enumerate(stream.outputs):
        counts[i], dim = rows.get(i, (_ALL_ROWS, 0))
        _place(area, t, outputs[t.name], dim)
    return area, counts


def _place(area: Array, t: Tensor, values: Array, dim: int) -> None:
    """Puts a tensor, of which only the valid rows of dimension dim may be there, where the daemon had it."""
    whole: Array = np.ndarray(t.shape, t.dtype, area, t.offset)
    if values.ndim:
        whole[(slice(None),) * dim + (slice(values.shape[dim]),)] = values
    else:
        whole[()] = values
