#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Classifies raw frames from standard input, always the newest one.

usage: ffmpeg -f v4l2 -i /dev/video0 -f rawvideo -pix_fmt nv12 -s 640x480 - | camera.py 640x480 nv12 [MODEL]

Frames are read straight into memory that the daemon shares: nothing is copied. With the policy latest, a new frame
takes the place of one that still waits, which comes back as dropped; so what is shown is never older than it must be.
"""
import sys

import piped


def frames(s):
    while True:
        f = s.acquire()
        pixels = memoryview(f.input).cast("B")
        at = 0
        while at < len(pixels):
            count = sys.stdin.buffer.readinto(pixels[at:])
            if not count:
                f.release()
                return
            at += count
        yield f


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    width, height = map(int, sys.argv[1].split("x"))
    seen = dropped = 0
    with piped.connect() as p:
        with p.stream(sys.argv[3] if len(sys.argv) > 3 else None, pixfmt=sys.argv[2], size=(width, height),
                      policy="latest", in_flight=4) as s:
            for a in s.infer(frames(s)):
                if a.status == piped.Status.DROPPED:
                    dropped += 1
                    continue
                seen += 1
                best = a.check().top(1)
                said = "%s %.0f %%" % (best[0].label or best[0].index, 100 * best[0].probability) if best else ""
                print("frame %d: %s, %.1f ms" % (a.number, said, 1e3 * a.latency), flush=True)
    print("%d computed, %d dropped" % (seen, dropped))


if __name__ == "__main__":
    main()
