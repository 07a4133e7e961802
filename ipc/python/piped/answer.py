# SPDX-License-Identifier: Apache-2.0
"""What became of a frame."""
from __future__ import annotations

from errno import ENODATA
from typing import Any, Dict, List, Optional, Union

import numpy as np

from .decode import Decoded, Decoder, Outputs, area_of
from .errors import Error, FrameError, Released
from .values import Array, Status, Top

__all__ = ["Answer"]


class Answer:
    """An answer holds one slot of its stream until it and all arrays of it are gone, or until release() and the arrays
    are gone. copy() gives one that holds none.

    number: 1, 2, ... in the stream. tag: what the caller gave with the frame. size: width and height of its picture,
    (0, 0) of tensors. latency: seconds from submission to answer; queue and service: seconds that the frame waited in
    the daemon, and was computed. epoch: number of the plan. done_ns: CLOCK_MONOTONIC when it was computed.
    """
    __slots__ = ("status", "reason", "number", "tag", "size", "epoch", "time_ns", "latency", "queue", "service",
                 "done_ns", "_stream", "_decoder", "_buffer", "_rows", "_outputs")

    def __init__(self, stream: Outputs, frame: Any, tag: Any, decoder: Decoder):
        self.status = Status(frame.status)
        self.number: int = frame.number
        self.tag = tag
        self.size = (int(frame.width), int(frame.height))
        self.epoch: int = frame.epoch
        self.time_ns: int = frame.time_ns
        self.latency: float = (frame.answered_ns - frame.submitted_ns) / 1e9
        self.queue: float = frame.queue_ns / 1e9
        self.service: float = frame.service_ns / 1e9
        self.done_ns: int = frame.done_ns
        self.reason: str = "" if self.ok else stream.text_of(frame)
        self._stream = stream
        self._decoder = decoder
        self._rows: Dict[int, Any] = {}
        self._outputs: Optional[Dict[str, Array]] = None
        self._buffer: Any = None  # the shared memory; None: it was given back, or never there

    @property
    def ok(self) -> bool:
        """Was the frame computed? If not, status and reason say why."""
        return self.status == Status.OK

    def check(self) -> "Answer":
        """Raises FrameError with the daemon's reason if the frame was not computed. Return: the answer itself."""
        if not self.ok:
            raise FrameError("frame %d: %s: %s" % (self.number, self.status.name.lower(), self.reason), self.status)
        return self

    @property
    def outputs(self) -> Dict[str, Array]:
        """The outputs by name, as arrays in the shared memory: nothing is copied. Of an output whose length depends on
        the picture the valid rows. Raises FrameError if there are none, and Released after release()."""
        self.check()
        if self._outputs is None:
            if self._buffer is None:
                raise Released("answer %d was released; use it before, or take copy()" % self.number)
            self._outputs = {}
            for i, t in enumerate(self._stream.outputs):
                whole: Array = np.ndarray(t.shape, t.dtype, self._buffer, t.offset)
                if i in self._rows:
                    rows, dim = self._rows[i]
                    whole = whole[(slice(None),) * dim + (slice(rows),)]
                self._outputs[t.name] = whole
        return self._outputs

    def __getitem__(self, which: Union[int, str]) -> Array:
        """An output by its name or index."""
        outputs = self.outputs
        return outputs[which] if isinstance(which, str) else outputs[self._stream.outputs[which].name]

    def top(self, count: int = 5) -> List[Top]:
        """The best classes of a classifier, with the labels of its sidecar; of other models none. Raises Error if the
        score of a class is infinite or NaN."""
        try:
            area, _ = area_of(self._stream, self.outputs, self._rows)
            return self._decoder.classes(area, count)
        except Error as e:
            if e.errno == ENODATA:
                return []
            raise

    def decoded(self) -> Decoded:
        """Objects, points, text or a mask, in pixels of the picture that was sent, as the sidecar of the model
        that computed it says. Raises Error if it says nothing, or if the score of a class is infinite or NaN."""
        area, rows = area_of(self._stream, self.outputs, self._rows)
        return self._decoder.decode(area, rows, self.size)

    def copy(self) -> "Answer":
        """Return: an answer with copies of the outputs, which holds no slot."""
        other = Answer.__new__(Answer)
        for name in Answer.__slots__:
            setattr(other, name, getattr(self, name))
        other._outputs = {name: array.copy() for name, array in self.outputs.items()} if self.ok else None
        other._buffer = None
        return other

    def release(self) -> None:
        """Gives the slot back, at the latest when the last array in it is gone. Arrays that you still have stay
        valid."""
        self._buffer = self._outputs = None

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return "<piped.Answer %d %s, %.3f ms>" % (self.number, self.status.name.lower(), 1e3 * self.latency)
