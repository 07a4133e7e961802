#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The pages for learners: every command of them runs, against a real daemon, and prints what the page shows."""
import os

from daemon import check, equal, main
from learn import Place, blocks, missing

TWO = sorted(os.sched_getaffinity(0))[:2]
# the same EP on all machines
CONFIG = {"eps": [{"name": "big", "cpus": ",".join(map(str, TWO))}]}


def follow(page, not_run=0, least=1):
    """@not_run: so many blocks of the page are marked as not to be run. @least: so many are run."""
    if len(TWO) < 2:
        return "one core"
    with Place(CONFIG) as place:
        place.follow(page)
        equal(len(place.not_run), not_run, "blocks that are not run: " + "; ".join(place.not_run))
        check(place.count >= least, "only %d blocks ran" % place.count)
        return "without " + ", ".join(sorted(place.lacked)) if place.lacked else None


def tutorial():
    return follow("docs/tutorial.md", not_run=2)


def cookbook():
    return follow("docs/cookbook.md")


def cookbook_running():
    return follow("docs/cookbook_running.md", not_run=3)


def first_models():
    return follow("docs/first_models.md", least=1)


def boardguides():
    return follow("docs/boardguides.md")


def security():
    return follow("docs/security.md", not_run=1)


def ros2():
    """The node itself: test_ros2.py."""
    return follow("docs/ros2.md", not_run=1, least=0)


def manuals():
    """The EXAMPLES of pages of the manual."""
    for page in ("apps/pipectl/pipectl.1.scd", "tuner/pipesim.1.scd"):
        reason = follow(page)
        if reason:
            return reason
    if "PIPED_TEST_SANITIZER" in os.environ:
        return "a program without a sanitizer cannot load a library with one"
    return follow("ipc/client/libpiped.3.scd")


def comparing_finds_what_is_not_there():
    shown = "model a: 12 units\n...\nstage 0 ... big*2\n"
    printed = "model a: 7 units\n\n  plan x\nstage   1  0-25  at big*4   0.5\nend\n"
    equal(missing(shown, printed), None)
    equal(missing("plan x\nmodel a: 7 units\n", printed), "model a: 7 units", "the order counts")
    equal(missing("stage 0 ... little*2\n", printed), "stage 0 ... little*2")
    equal(missing("", printed), None)


if __name__ == "__main__":
    main([comparing_finds_what_is_not_there, first_models, tutorial, cookbook, cookbook_running, boardguides, security, ros2,
          manuals])
