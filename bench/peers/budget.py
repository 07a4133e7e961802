# SPDX-License-Identifier: Apache-2.0
"""How the time of a run is dealt, and which ways are worth more of it: decided from one slice of each. No clock is read here."""
from names import is_peer, kind_of

FRAMES = 10  # that a slice should hold at least
BATCHES = 3  # or so many batches of each program
SLICE_MAX_S = 6.0
ROUNDS_LEAST = 2
CONTENDS = 0.8  # of the peer's best way: a way below stays as its first slice showed it
FIRST_SHARE = 0.6  # of a network's time for starting ways and their first slices; afterwards only what a peer needs starts
LATENCY_SHARE = 0.2  # of what is left for a network behind its first slices
FRAMES_LEAST = 5  # of a latency


def share(left_s, jobs):
    """Seconds for the next of so many jobs; what it does not use goes to the others."""
    return max(0.0, left_s) / max(1, jobs)


def longer(seconds):
    """The next slice where one had too few frames for a figure."""
    return min(SLICE_MAX_S, 3 * seconds)


def slice_s(least_s, fps, batch=1, programs=1):
    """Seconds of a way's slices. @fps: None: too few frames were seen."""
    if not fps:
        return SLICE_MAX_S
    frames = max(FRAMES, BATCHES * batch * programs) if batch > 1 else FRAMES
    return min(SLICE_MAX_S, max(least_s, frames / fps))


def may_start(way, share_s, left_s):
    """Whether a way may still be started: our own and a peer's two sessions always, others while there is time for them."""
    return not is_peer(way) or way.endswith('-queue') or left_s >= share_s * (1 - FIRST_SHARE)


def batch_fits(fps, batch, programs):
    """Whether a slice can hold the batches that a figure needs."""
    return bool(fps) and BATCHES * batch * programs / fps <= SLICE_MAX_S


def contenders(first):
    """Those of {way: frames a second} of one peer that go on. Our own ways are compared, so all of them do."""
    best = max((fps for fps in first.values() if fps), default=0)
    return [way for way, fps in first.items()
            if kind_of(way) == 'piped' or (fps and fps >= CONTENDS * best)]


def rounds(left_s, slices_s, most):
    """How many rounds, each a slice of every way, go into the time."""
    one = sum(slices_s)
    return max(ROUNDS_LEAST, min(most, int(left_s / one))) if one > 0 else ROUNDS_LEAST


def latency_frames(left_s, frames_ms, most):
    """How many rounds of a frame of every way go into the time."""
    one = sum(frames_ms) / 1e3
    return max(FRAMES_LEAST, min(most, int(left_s / one))) if one > 0 else most


def is_over(left_s, reserve_s):
    """Whether no further job may begin."""
    return left_s <= reserve_s
