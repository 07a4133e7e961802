#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A process that is stopped and goes on, as by a debugger or a machine that sleeps, is told from a stage that hangs."""
import json
import os
import signal
import time

import pyclient
from daemon import HEARTBEAT, Daemon, check, equal, main, until

SANITIZED = "PIPED_TEST_SANITIZER" in os.environ  # several times as slow
NO_PROGRESS = "a stage made no progress"


def slow(stalled_ms, side):
    """One unit on one core: 3.2 million multiplications for a pixel of a square image."""
    d = Daemon(config={"stalled_ms": stalled_ms, "eps": [{"name": "a", "cpus": "0"}]}, env=HEARTBEAT)
    path = os.path.join(d.temp, "slow.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"input": {"shape": [256, side, side]}, "layers": [{"op": "conv", "out": 256, "kernel": 7, "pad": 3}]}, f)
    d.models = {"slow": path}
    return d


def a_stage_that_takes_too_long_is_told():
    with slow(100, 48 if SANITIZED else 96) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, 1, "slow")
        frame, sent = bytes(s.input_bytes), []

        def go_on(left_s):
            while len(sent) < s.credits:
                sent.append(s.submit(frame))
            equal(s.result().frame, sent.pop(0))
        until(lambda: NO_PROGRESS + " for 100 ms" in d.log(), NO_PROGRESS, d.log, pause=go_on)
        for number in sent:
            equal(s.result().frame, number)
        check(d.wait_until(lambda: "all stages progress again" in d.log()), d.log())
        s.close()


def a_process_that_was_stopped_has_no_stalled_stage():
    with slow(3000, 20 if SANITIZED else 40) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, 1, "slow")
        frame = bytes(s.input_bytes)
        wanted = s.infer(frame).output
        sent = [s.submit(frame) for _ in range(s.credits)]
        d.signal(signal.SIGSTOP)
        time.sleep(4)  # so long nothing runs
        d.signal(signal.SIGCONT)
        for number in sent:
            r = s.result()
            equal((r.frame, r.status), (number, "ok"), r.text)
            check(r.output == wanted)
        s.close()
        check(NO_PROGRESS not in d.log(), d.log())
        equal(d.status()["state"], "serving")


if __name__ == "__main__":
    main([a_stage_that_takes_too_long_is_told, a_process_that_was_stopped_has_no_stalled_stage])
