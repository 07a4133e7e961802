# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a lint or system test and prints the lines that tests/run counts."""
import concurrent.futures
import os
import sys
import time
import traceback

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # surroundings.py, too
from wait import Failure, check  # noqa: E402,F401  (the folder is known only now)

SLOW_S = 1.0  # a case that takes longer says so


def none(problems, what):
    """Fails with all of `problems` when there are any."""
    check(not problems, "%d %s:\n  %s" % (len(problems), what, "\n  ".join(problems)))


def only_long(*cases):
    """Return: these cases where tests/run --long asks for them; others try most of what they do."""
    return cases if os.environ.get("PIPED_TEST_LONG") else ()


def run(case, trace):
    """Runs a case and says how it ended. Return: passed, failed or skipped."""
    began = time.monotonic()
    try:
        reason = case()
    except Exception as e:  # each case reports on its own
        if trace:
            traceback.print_exc()
        print("FAIL %s: %s" % (case.__name__, e if isinstance(e, Failure) else repr(e)), flush=True)
        return "failed"
    if isinstance(reason, str):
        print("SKIP %s: %s" % (case.__name__, reason), flush=True)
        return "skipped"
    took = time.monotonic() - began
    print("ok %s%s" % (case.__name__, " (%.0f s)" % took if took > SLOW_S else ""), flush=True)
    return "passed"


def main(cases, names=(), trace=False, at_once=1):
    """Runs cases: all, or those whose names start with one of `names`. A case returns a reason if it was skipped.

    `trace`: print where a case failed, too. `at_once`: so many cases beside each other, where they mostly wait and share
    nothing. Exits 0, 1 or 77.
    """
    wanted = [c for c in cases if not names or c.__name__.startswith(tuple(names))]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        ended = list(pool.map(lambda c: run(c, trace), wanted)) if at_once > 1 else [run(c, trace) for c in wanted]
    passed, failed, skipped = (ended.count(how) for how in ("passed", "failed", "skipped"))
    if passed + failed + skipped == 0:
        print("FAIL no case ran")
        failed = 1
    print("cases: %d passed, %d failed, %d skipped" % (passed, failed, skipped))
    sys.exit(1 if failed else 77 if skipped and not passed else 0)
