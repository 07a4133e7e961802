#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A service in asyncio: any number of tasks ask, each with its own time limit, and none holds up another.

usage: tasks.py [MODEL]

Needs python3-piped. It sends noise; put your requests where ask() is called.
"""
import asyncio
import sys

import numpy as np

import piped


async def ask(s, name, picture):
    try:
        a = await asyncio.wait_for(s.infer_one(picture), timeout=5)
    except asyncio.TimeoutError:  # its frame was cancelled, too
        return "%s: no answer in time" % name
    best = a.check().top(1)
    return "%s: %s, %.1f ms" % (name, best[0].label or best[0].index if best else a[0].shape, 1e3 * a.latency)


async def main():
    rng = np.random.default_rng(1)
    # Connecting and opening wait for the daemon for a moment; a thread does that, so the loop goes on.
    with await asyncio.to_thread(piped.connect) as p:
        model = sys.argv[1] if len(sys.argv) > 1 else None
        with await asyncio.to_thread(p.stream, model, pixfmt="gray8") as s:
            def picture():
                return rng.integers(0, 256, (s.height, s.width), np.uint8)

            for said in await asyncio.gather(*(ask(s, "task %d" % k, picture()) for k in range(8))):
                print(said)
            async for a in s.ainfer(picture() for _ in range(100)):  # a stream, in order
                a.check()
            print("and %d frames in a row" % a.number)


if __name__ == "__main__":
    asyncio.run(main())
