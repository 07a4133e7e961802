# SPDX-License-Identifier: Apache-2.0
"""What failures were tried, and what went wrong."""
import os
import shutil
import subprocess

from daemon import BUILD
from faults import name_of

PROGRAMS = {os.path.basename(p): os.path.join(BUILD, p) for p in ("daemon/piped", "apps/link/piped-link")}


def source_line(frame):
    """Function and line for a frame of a program of ours, where a tool tells."""
    name, _, offset = frame.partition("+")
    if name not in PROGRAMS or not shutil.which("addr2line"):
        return frame
    r = subprocess.run(["addr2line", "-fse", PROGRAMS[name], offset], capture_output=True, text=True, check=False)
    return " ".join([frame] + r.stdout.split())


class Tally:
    """What was tried, and what went wrong by where the call came from."""

    def __init__(self):
        self.tried = {}
        self.bad = {}

    def note(self, scenario, fault):
        key = (scenario, name_of(fault))
        self.tried[key] = self.tried.get(key, 0) + 1

    def fail(self, what, where, text):
        key = (what.split(" n=")[0], tuple(where[:6]))
        self.bad.setdefault(key, []).append((what, where, text))
        print("failed: %s: %s" % (what, text.split("\n", maxsplit=1)[0]), flush=True)  # all is told at the end

    def report(self):
        for (what, _), all_of_it in self.bad.items():
            first, where, text = all_of_it[0]
            print("FAIL %s (%d such): %s" % (first, len(all_of_it), text))
            print("\n".join("    " + source_line(frame) for frame in where))
        by_fault = {}
        for (_, fault), count in self.tried.items():
            by_fault[fault] = by_fault.get(fault, 0) + count
        print("tried: %d: " % sum(by_fault.values()) + ", ".join("%s %d" % item for item in sorted(by_fault.items())))
        print("cases: %d passed, %d failed, 0 skipped" % (sum(self.tried.values()) - len(self.bad), len(self.bad)))
        return 1 if self.bad else 0
