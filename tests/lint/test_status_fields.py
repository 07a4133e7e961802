#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl(1) is the one description of what the daemon tells: whoever shows a key reads its name, unit and meaning there.

usage: test_status_fields.py SOURCE_ROOT

A running daemon's answers are compared with the page by tests/system/test_sensors.py; here are the views of them.
"""
import os
import re
import sys

import source
from cases import check, main, none

ROOT = sys.argv[1]
DESCRIBED = re.compile(r"(?<!\w)_(\w+?)_(?!\w)")
GETTERS = {"json_object_get", "ctl_text", "ctl_value", "ctl_real", "ctl_is", "ctl_has", "ctl_any", "ctl_known"}
LAST_WORD = re.compile(r',\s*"(\w+)"\)')
MEMBER = re.compile(r"\.([a-z]+_[a-z_]+)\b")  # in a script, names with an underscore are not the browser's own
VIEWS = ("apps/pipectl/commands/status.c", "apps/pipectl/commands/units.c", "apps/pipectl/top/",
         "apps/pipectl/doctor/", "apps/pipectl/report/", "apps/gstreamer/", "apps/http/page.js")
# What views keep for themselves: a file of samples of doctor and report, series of charts, segments below their models.
OWN = {"before", "after", "explanation", "explanations", "fronts", "metrics", "programs", "processes", "read_only",
       "steal", "steal_s", "all_s", "series", "names", "segments", "waiting", "sample", "s", "le"}


def called(text, at):
    """The function among whose arguments text[at] is."""
    depth = 0
    while depth >= 0:
        at -= 1
        depth += {")": 1, "(": -1}.get(text[at], 0)
    return re.search(r"\w*\Z", text[:at])[0]


def keys_read(name, text):
    if name.endswith(".js"):
        return set(MEMBER.findall(text))
    return {m[1] for m in LAST_WORD.finditer(text) if called(text, m.start()) in GETTERS}


def views():
    return [n for n in source.files(ROOT) if n.startswith(VIEWS) and n.endswith((".c", ".js"))]


def views_read_what_the_page_describes():
    check(keys_read("x.c", 'ctl_text(ctl_known(m, "adapt"), "state"); json_object_get(\n    m, "plan")') ==
          {"adapt", "state", "plan"})
    described = set(DESCRIBED.findall(source.text(ROOT, "apps/pipectl/pipectl.1.scd"))) | OWN
    read = {n: keys_read(n, source.text(ROOT, n)) for n in views()}
    check(len(set().union(*read.values())) > 150, "too few keys are found: %d" % len(set().union(*read.values())))
    none(["%s: %s" % (n, key) for n, keys in read.items() for key in sorted(keys - described)],
         "keys that pipectl(1) does not describe")
    none(sorted(OWN - set().union(*read.values())), "keys of their own that no view reads")


if __name__ == "__main__":
    sys.exit(main([views_read_what_the_page_describes]))
