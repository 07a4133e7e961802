# SPDX-License-Identifier: Apache-2.0
"""The numbers of piped.h by their names, and what they are in NumPy."""
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Dict, Tuple, Type, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from ._numbers import Dtype, Pixfmt, Policy, Status

__all__ = ["Array", "Dtype", "Pixfmt", "Policy", "Status", "Tensor", "Top"]

Array = NDArray[Any]
_E = TypeVar("_E", bound=enum.IntEnum)

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


# Bytes of a pixel in a picture's array.
_PIXEL = {Pixfmt.RGB24: 3, Pixfmt.BGR24: 3, Pixfmt.GRAY8: 1, Pixfmt.NV12: 1, Pixfmt.YUYV: 2}


def image_shape(pixfmt: Pixfmt, width: int, height: int) -> Tuple[int, ...]:
    """Return: the shape of a picture's array; raises ValueError. NV12: rows of Y, then half as many rows of UV."""
    if width < 1 or height < 1:  # libpiped reads 0 as the stream's size
        raise ValueError("the picture is empty (%dx%d)" % (width, height))
    width += width % 2 if pixfmt in (Pixfmt.NV12, Pixfmt.YUYV) else 0
    rows = height + (height + 1) // 2 if pixfmt == Pixfmt.NV12 else height
    return (rows, width) if _PIXEL[pixfmt] == 1 else (rows, width, _PIXEL[pixfmt])


def image_size(pixfmt: Pixfmt, shape: Tuple[int, ...]) -> Tuple[int, int]:
    """Return: width and height of a picture whose array has this shape; raises ValueError."""
    whole = shape[:2] if pixfmt == Pixfmt.GRAY8 and shape[2:] == (1,) else shape
    if len(whole) >= 2 and not (pixfmt == Pixfmt.NV12 and whole[0] % 3):
        width, height = whole[1], whole[0] // 3 * 2 if pixfmt == Pixfmt.NV12 else whole[0]
        if image_shape(pixfmt, width, height) == whole:
            return width, height
    wanted = "(height * 3 / 2, width)" if pixfmt == Pixfmt.NV12 else "(height, width%s)" % (
        ", %d" % _PIXEL[pixfmt] if _PIXEL[pixfmt] > 1 else "")
    raise ValueError("a picture in %s has the shape %s, and this array has %s" % (pixfmt.name.lower(), wanted, shape))
