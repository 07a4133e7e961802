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

import pyclient as pc
from cases import check
from program import Node
from wait import LIMIT_S

NODE = os.environ.get("PIPED_FRONT") or sys.argv[2]
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


def finished(client, frames, **counts):
    """The client got every answer, right and in order. Return: what it said of them."""
    line = client.wait(("done", "frame", "wrong", "cannot", "submit"), LIMIT_S)
    check(line.startswith("done answered=%d " % frames), client.said())
    for key, value in counts.items():
        check(" %s=%d" % (key, value) in line, key, value, line)
    equal(client.wait_exit(LIMIT_S), 0)
    return line


def ends_with(c, status, *words):
    e = c.closed()
    equal(e.status, status, e.text)
    for word in words:
        check(word in e.text, word, "is not in", e.text)


def refused(make, status):
    try:
        make()
    except pc.Refused as e:
        equal(e.status, status, e.text)
    else:
        check(False, "not refused with", status)


def still_serves(f):
    with pc.Connection(f.path) as c:
        r = pc.Stream(c, model="small").infer(frame(1))
        check(r.status == "ok" and right(frame(1), r.output), r)
