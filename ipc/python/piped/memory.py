# SPDX-License-Identifier: Apache-2.0
"""Memory of libpiped that arrays look into.

NumPy keeps the object alive that it got memory from. That object is a buffer of cffi here, and a weak reference tells
when the last array is gone. So memory is given back when nobody can reach it any more, and not before.
"""
from __future__ import annotations

import itertools
import weakref
from typing import Any, Callable, Dict

from ._libpiped import ffi

__all__ = ["lend"]

_lent: Dict[int, "weakref.ref[Any]"] = {}
_numbers = itertools.count()


def lend(address: Any, size: int, on_return: Callable[[], None]) -> Any:
    """Return: a buffer. on_return() is called when it and all arrays in it are gone: by any thread, at any time, so it
    must take no lock that it waits for."""
    number = next(_numbers)

    def returned(_: Any) -> None:
        _lent.pop(number, None)
        on_return()

    buffer = ffi.buffer(address, size)
    _lent[number] = weakref.ref(buffer, returned)
    return buffer
