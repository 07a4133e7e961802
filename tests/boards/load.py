# SPDX-License-Identifier: Apache-2.0
"""Frames whose right answers are known: a client that streams them to a fleet's head while things happen.

    with Load(fleet, "digits", DIGITS) as load:
        load.wait(500)
        fleet["b2"].kill()
        load.more(500)
    # left: all frames were answered once, in order, right
"""
import array
import os
import random
import re
import time

from cases import check
from daemon import BUILD, Daemon

CLIENT = os.path.join(BUILD, "tests", "boards", "steady_client")
PATTERNS = 16


class Known:
    """Inputs of a model, and its answers by a daemon that has all of it. @by: a Daemon or a Board; it serves that model first.
    @folder: for files"""
    kept = {}

    def __init__(self, by, folder):
        status = by.status()["models"][0]
        count = 1
        for n in status["input"]["shape"]:
            count *= n
        self.units = status["units"]
        draw = random.Random(7)
        inputs = [array.array("f", [draw.random() for _ in range(count)]).tobytes() for _ in range(PATTERNS)]
        files = [os.path.join(folder, "%d.f32" % i) for i in range(PATTERNS)]
        for name, data in zip(files, inputs):
            with open(name, "wb") as f:
                f.write(data)
        out = os.path.join(folder, "answers.f32")
        by.pipectl("infer", "--raw", out, *files)
        with open(out, "rb") as f:
            self.answers = f.read()
        self.inputs = b"".join(inputs)

    def write(self, folder):
        """Return: paths of both files."""
        paths = []
        for name, data in (("inputs", self.inputs), ("answers", self.answers)):
            paths.append(os.path.join(folder, name + ".f32"))
            with open(paths[-1], "wb") as f:
                f.write(data)
        return paths


def known(path):
    """Return: Known, computed once for each file."""
    if path not in Known.kept:
        with Daemon(models={"whole": path}) as d:
            Known.kept[path] = Known(d, d.temp)
    return Known.kept[path]


def know_by(path, board):
    """From now on the answers of this file are those of the board."""
    Known.kept[path] = Known(board, board.folder)
    return Known.kept[path]


class Load:
    """Streams from within the head until the block is left, and then checks everything. @errors: these statuses are
    allowed, and are neither lost nor wrong."""

    def __init__(self, fleet, model, path, *more, errors=(), name="client", board=None):
        self.fleet, self.errors, self.name = fleet, errors, name
        board = board or fleet.head
        folder = os.path.join(board.folder, name)
        os.makedirs(folder, exist_ok=True)
        self.program = fleet.program([CLIENT, board.frames_path, model, *known(path).write(folder), *more], board, name)
        self.program.wait("ready")
        self.counts, self.asked = None, 0

    def answered(self):
        """Return: answers so far."""
        for line in reversed(self.program.lines):
            if line.startswith("at "):
                return int(line[3:])
        return 0

    def wait(self, count, seconds=30):
        """Until so many answers have come. Return: seconds that took."""
        began = time.monotonic()
        self.program.wait_for(lambda: self.answered() >= count, seconds)
        return time.monotonic() - began

    def answered_now(self):
        """Return: answers when the client reads this question. What answered() knows may be older than what the test has
        done since."""
        self.asked += 1
        reply = "count %d " % self.asked
        self.program.tell(reply)
        self.program.wait_for(lambda: any(x.startswith(reply) for x in reversed(self.program.lines)))
        return next(int(x[len(reply):]) for x in reversed(self.program.lines) if x.startswith(reply))

    def more(self, count, seconds=30):
        """Until so many frames beyond those answered by now are answered. Return: seconds that took."""
        return self.wait(self.answered_now() + count, seconds)

    def end(self):
        """Return: counts of the client. Fails if a frame was lost, doubled, wrong or out of order."""
        if self.counts is None:
            self.program.tell("stop")
            line = self.program.wait("done ", 60)
            self.counts = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line)}
            check(self.program.wait_exit() == 0, self.program.said())
            c = self.counts
            said = self.said()
            check(c["sent"] == c["answered"] > 0, "frames were lost:", said)
            check(c["wrong"] == c["out_of_order"] == c["reordered"] == c["duplicated"] == 0, said)
            bad = [x for x in self.program.lines if x.startswith("error ") and x.split()[2] not in self.errors]
            check(not bad and (self.errors or c["errors"] == 0), said)
        return self.counts

    def said(self):
        return "\n".join(line for line in self.program.lines if not line.startswith("at "))

    def epochs(self):
        """Return: how often the plan or route of answered frames changed."""
        return sum(line.startswith("epoch ") for line in self.program.lines)

    def gaps(self):
        """Return: pauses of more than 0.4 s between answers, in ms."""
        return [int(line.split()[1]) for line in self.program.lines if line.startswith("gap ")]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.end()
        else:
            print("---- %s ----\n%s" % (self.name, self.said()))
            self.program.kill()
