#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a line a second: what each model served, and what was dropped.

usage: metrics.py [COUNT]
"""
import re
import sys
import time

import piped

SAMPLE = re.compile(r'^(\w+)\{([^}]*)\} (\S+)$', re.M)


def counters(text):
    """Return: {(model, status): frames answered so}."""
    sums = {}
    for name, labels, value in SAMPLE.findall(text):
        of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if name == "piped_frames_answered_total":
            key = (of["model"], of["status"])
            sums[key] = sums.get(key, 0) + float(value)
    return sums


def main():
    c = piped.control(timeout=5)
    before, at = counters(c.metrics().text), time.monotonic()
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
        time.sleep(1)
        now, then = counters(c.metrics().text), time.monotonic()
        for m in c.models().models:
            key = (m["name"], "ok")
            rate = (now.get(key, 0) - before.get(key, 0)) / (then - at)
            dropped = now.get((m["name"], "dropped"), 0)
            print("%s: %.1f frames/s, %d dropped, plan %s" % (m["name"], rate, dropped, m["plan"]), flush=True)
        before, at = now, then


if __name__ == "__main__":
    main()
