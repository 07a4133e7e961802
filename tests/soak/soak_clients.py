# SPDX-License-Identifier: Apache-2.0
"""Clients of a soak: they stream by every policy, go away in every way, and check each answer."""
import os
import random
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
import pyclient as pc  # noqa: E402
from daemon import check, equal  # noqa: E402

INPUTS = 8
LIMIT_S = 60.0 * float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
# What a client may be told while the daemon restarts, swaps a model or is full; it tries again.
PASSING = {"unavailable", "not_found", "resource_exhausted"}
ANSWERS = {pc.BLOCK: {"ok"}, pc.LATEST: {"ok", "dropped"}, pc.REJECT: {"ok", "resource_exhausted"}}


def frame_of(seed, count):
    r = random.Random(seed)
    return struct.pack("<%df" % count, *(r.uniform(-1, 1) for _ in range(count)))


class Answers:
    """What a model answers to each input: one answer, or a second one where it is quantised at times."""

    def __init__(self, name):
        self.name, self.frames, self.right = name, [], []

    def learn(self, d, path=None):
        with pc.Connection(path or d.frames_path, timeout=LIMIT_S) as c:
            s = pc.Stream(c, 1, self.name)
            self.frames = self.frames or [frame_of(i, s.input_bytes // 4) for i in range(INPUTS)]
            self.right.append([s.infer(f).output for f in self.frames])
            s.close()

    def check(self, which, output):
        check(any(output == right[which] for right in self.right), "a wrong answer of", self.name)


class Client(threading.Thread):
    """Connects again and again until told to stop."""
    door, policies = "frames", sorted(ANSWERS)

    def __init__(self, path, answers, seed):
        super().__init__(daemon=True)
        self.path, self.answers, self.random = path, answers, random.Random(seed)
        self.quit, self.rest = threading.Event(), threading.Event()
        self.go, self.resting = threading.Event(), threading.Event()
        self.go.set()
        self.counts, self.times_ms, self.error = {}, [], None
        self.start()

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def run(self):
        try:
            while not self.quit.is_set():
                if self.rest.is_set():
                    self.resting.set()
                    self.go.wait()
                    self.resting.clear()
                else:
                    self.life()
        except Exception as e:  # told by the soak
            self.error = e
        finally:
            self.resting.set()

    def life(self):
        """One connection."""
        try:
            with pc.Connection(self.path, timeout=LIMIT_S) as c:
                self.stream(c)
        except (ConnectionError, FileNotFoundError):
            self.count("no daemon")
            self.quit.wait(0.05)
        except pc.Closed:
            self.count("closed by the daemon")
        except pc.Refused as e:
            check(str(e).split(":", 1)[0] in PASSING, "refused:", e)
            self.count("refused")
            self.quit.wait(0.05)

    def stream(self, c):
        r = self.random
        policy = r.choice(self.policies)
        s = pc.Stream(c, 1, self.answers.name, policy=policy, inline=r.random() < 0.5, credits=r.randint(1, 8),
                      priority=r.randint(0, 3), deadline_ns=r.choice((0, 0, 0, 50000000)))
        try:
            left = self.frames(s, policy, r.randint(1, 300))
            end = r.random()
            if left == 0 and end < 0.7:
                s.close()
                self.count("closed")
            elif end < 0.9:
                self.count("went away")
            else:
                c.send(99, os.urandom(r.randint(0, 200)))  # no message has this type
                c.closed()
                self.count("sent noise")
        finally:
            s.free()

    def frames(self, s, policy, count):
        """Streams. Return: frames without an answer, as this client chose."""
        sent, newest = {}, 0
        abandons = self.random.random() < 0.2
        while count > 0 or sent:
            while count > 0 and len(sent) < max(s.credits, 1) and not self.rest.is_set():
                which = self.random.randrange(INPUTS)
                sent[s.submit(self.answers.frames[which])] = (which, time.monotonic())
                count -= 1
            if self.rest.is_set():
                count = 0
            if not sent:
                break
            if abandons and count < 5:
                return len(sent)
            newest = self.answer(s.result(), policy, sent, newest)
        return 0

    def answer(self, r, policy, sent, newest):
        check(r.frame in sent, "an answer to frame %d, which waits for none" % r.frame)
        which, since = sent.pop(r.frame)
        if r.status == "ok":
            check(r.frame > newest, "frame %d came after frame %d" % (r.frame, newest))
            self.answers.check(which, r.output)
            self.times_ms.append(1000 * (time.monotonic() - since))
            newest = r.frame
        else:
            known = ANSWERS[policy] | {"deadline_exceeded"} | PASSING
            check(r.status in known, "policy %d got" % policy, r.status, r.text)
        self.count(r.status)
        return newest

    def stop(self):
        """It answers what is on its way; `resting` is set then."""
        self.go.clear()
        self.rest.set()

    def resume(self):
        self.rest.clear()
        self.go.set()

    def end(self):
        self.quit.set()
        self.go.set()
        self.join(2 * LIMIT_S)
        equal(self.is_alive(), False, "a client waits for ever")
