# SPDX-License-Identifier: Apache-2.0
"""How a test waits: for a condition, with a limit, and it says what never came. How it fails is here, too.

No test counts time in a loop of its own. This file needs nothing of ours: containers and virtual machines get a copy.
"""
import os
import time

LIMIT_S = 60.0 * float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
PAUSE_S = 0.002  # what is waited for needs the cores, too
RARELY_S = 0.05  # the pause where each question starts a process


class Failure(AssertionError):
    pass


def check(condition, *text):
    """An assertion that stays on under python -O."""
    if not condition:
        raise Failure(" ".join(str(t) for t in text) or "check failed")


def asked(condition, limit_s=LIMIT_S, pause=PAUSE_S):
    """Asks for condition() again and again, and once more when the time is over.

    @pause: between two questions, in seconds; or a function that waits for news, for so many seconds at most.
    Return: its first true value; after limit_s, its last one.
    """
    end = time.monotonic() + limit_s
    while not (value := condition()) and (left_s := end - time.monotonic()) > 0:
        if callable(pause):
            pause(left_s)
        else:
            time.sleep(min(pause, left_s))
    return value


def until(condition, *text, limit_s=LIMIT_S, pause=PAUSE_S):
    """As asked(), but fails after limit_s. @text: what was waited for; what can be called is asked only then."""
    value = asked(condition, limit_s, pause)
    if not value:
        check(False, "it never came:", *(t() if callable(t) else t for t in text))
    return value


def during(seconds):
    """For a load: `for _ in during(3): work()` goes on for so long, and works once at least."""
    end = time.monotonic() + seconds
    yield
    while time.monotonic() < end:
        yield
