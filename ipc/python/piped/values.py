# SPDX-License-Identifier: Apache-2.0
"""The numbers of piped.h by their names, and what they are in NumPy."""
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Dict, Tuple, Type, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Dtype", "Pixfmt", "Policy", "Status", "Tensor", "Top"]

Array = NDArray[Any]
_E = TypeVar("_E", bound=enum.IntEnum)


class Status(enum.IntEnum):
    """What became of a frame."""
    OK = 0
    INVALID_ARGUMENT = 1
    NOT_FOUND = 2
    PERMISSION_DENIED = 3
    UNSUPPORTED = 4
    RESOURCE_EXHAUSTED = 5
    UNAVAILABLE = 6
    DEADLINE_EXCEEDED = 7
    CANCELLED = 8
    DROPPED = 9
    INTERNAL = 10
    PROTOCOL = 11


class Pixfmt(enum.IntEnum):
    """How the bytes of an input are to be read. TENSOR: as the model's own inputs."""
    TENSOR = 0
    RGB24 = 1
    BGR24 = 2
    GRAY8 = 3
    NV12 = 4
    YUYV = 5


class Policy(enum.IntEnum):
    """BLOCK: every frame is computed. LATEST: a new frame replaces the waiting one, which comes back as DROPPED.
    REJECT: a frame that finds no room comes back as RESOURCE_EXHAUSTED."""
    BLOCK = 0
    LATEST = 1
    REJECT = 2


class Dtype(enum.IntEnum):
    """The types of a tensor's values."""
    F32 = 1
    I32 = 2
    I64 = 3
    U8 = 4
    I8 = 5
    BOOL = 6
    F16 = 7


NUMPY: Dict[int, "np.dtype[Any]"] = {
    Dtype.F32: np.dtype("<f4"), Dtype.I32: np.dtype("<i4"), Dtype.I64: np.dtype("<i8"), Dtype.U8: np.dtype("u1"),
    Dtype.I8: np.dtype("i1"), Dtype.BOOL: np.dtype("?"), Dtype.F16: np.dtype("<f2")}


def member(kind: Type[_E], value: Union[str, int, _E]) -> _E:
    """Return: the member with this name, in any case, or number."""
    if isinstance(value, str):
        found = kind.__members__.get(value.upper())
        if found is None:
            raise ValueError("%r is not a %s; there are %s" % (
                value, kind.__name__.lower(), ", ".join(n.lower() for n in kind.__members__)))
        return found
    return kind(value)


@dataclass(frozen=True)
class Tensor:
    """An input or output of the model. offset and bytes: where it is in the input or output of a frame."""
    name: str
    dtype: "np.dtype[Any]"
    shape: Tuple[int, ...]
    offset: int
    bytes: int


@dataclass(frozen=True)
class Top:
    """A class of an answer. score: the model's output, unchanged; probability: computed from the scores. label: None if
    the daemon has no names for the classes."""
    index: int
    label: Union[str, None]
    score: float
    probability: float


def image_shape(pixfmt: Pixfmt, width: int, height: int) -> Tuple[int, ...]:
    """Return: the shape of a picture's array; raises ValueError. NV12: rows of Y, then half as many rows of UV."""
    if width < 1 or height < 1:  # libpiped reads 0 as the stream's size
        raise ValueError("the picture is empty (%dx%d)" % (width, height))
    if pixfmt in (Pixfmt.RGB24, Pixfmt.BGR24):
        return (height, width, 3)
    if pixfmt == Pixfmt.GRAY8:
        return (height, width)
    if pixfmt == Pixfmt.NV12:
        return (height + (height + 1) // 2, width + width % 2)
    return (height, width + width % 2, 2)


def image_size(pixfmt: Pixfmt, shape: Tuple[int, ...]) -> Tuple[int, int]:
    """Return: width and height of a picture whose array has this shape; raises ValueError."""
    whole = shape[:2] if pixfmt == Pixfmt.GRAY8 and shape[2:] == (1,) else shape
    if len(whole) >= 2 and not (pixfmt == Pixfmt.NV12 and whole[0] % 3):
        width, height = whole[1], whole[0] // 3 * 2 if pixfmt == Pixfmt.NV12 else whole[0]
        if image_shape(pixfmt, width, height) == whole:
            return width, height
    wanted = {Pixfmt.RGB24: "(height, width, 3)", Pixfmt.BGR24: "(height, width, 3)", Pixfmt.GRAY8: "(height, width)",
              Pixfmt.NV12: "(height * 3 / 2, width)", Pixfmt.YUYV: "(height, width, 2)"}[pixfmt]
    raise ValueError("a picture in %s has the shape %s, and this array has %s" % (pixfmt.name.lower(), wanted, shape))
