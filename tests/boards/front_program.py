# SPDX-License-Identifier: Apache-2.0
"""front_node: the front of piped-link with a listener that negates. Its program is PIPED_FRONT, or the second argument of the
test.
"""
import contextlib
import os
import random
import struct
import sys
import tempfile

from cases import check
from machines import Node

NODE = os.environ.get("PIPED_FRONT") or sys.argv[2]
SLOW = float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
LIMIT_S = 60 * SLOW
IN_BYTES, OUT_BYTES = 64 + 100, 64 + 100  # f32[3][5], then u8[100] at the next multiple of 64


class Front(Node):
    def __init__(self, path, models="small"):
        super().__init__([NODE, "serve", path])
        self.path = path
        self.wait("ready", LIMIT_S)
        if models:
            self.obey("models " + models)

    def obey(self, line):
        self.tell(line)
        self.wait("ready", LIMIT_S)

    def stats(self):
        self.tell("stats")
        return {k: int(v) for k, v in (w.split("=") for w in self.wait("stats", LIMIT_S).split()[1:])}

    def until(self, key, value):
        """Until so many frames are there: a client that died is noticed, and its frames read, when the front looks."""
        self.tell_until("stats", lambda line: " %s=%d" % (key, value) in line, LIMIT_S)

    def client(self, frames, model="small", how="shared"):
        return Node([NODE, "client", self.path, model, str(frames), how])


@contextlib.contextmanager
def front(models="small"):
    with tempfile.TemporaryDirectory(prefix="piped-front-") as folder:
        node = Front(os.path.join(folder, "frames.sock"), models)
        try:
            yield node
            check(node.end() == 0, node.said())
            check(not os.path.exists(node.path), "the socket is still there")
        finally:
            node.kill()


def frame(seed):
    rng = random.Random(seed)
    floats = struct.pack("<15f", *(rng.uniform(-9, 9) for _ in range(15)))
    return floats + bytes(4) + bytes(rng.randrange(256) for _ in range(100))


def right(data, output):
    want = struct.pack("<15f", *(-v for v in struct.unpack("<15f", data[:60])))
    return output[:60] == want and output[64:] == bytes(255 - b for b in data[64:])


def equal(a, b, *text):
    check(a == b, repr(a), "against", repr(b), *text)
