# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a lint or system test and prints the lines that tests/run counts."""
import sys
import time
import traceback

SLOW_S = 1.0  # a case that takes longer says so


class Failure(AssertionError):
    pass


def check(condition, *text):
    """An assertion that stays on under python -O."""
    if not condition:
        raise Failure(" ".join(str(t) for t in text) or "check failed")


def none(problems, what):
    """Fails with all of `problems` when there are any."""
    check(not problems, "%d %s:\n  %s" % (len(problems), what, "\n  ".join(problems)))


def main(cases, names=(), trace=False):
    """Runs cases: all, or those whose names start with one of `names`. A case returns a reason if it was skipped.

    `trace`: print where a case failed, too. Exits 0, 1 or 77.
    """
    passed = failed = skipped = 0
    for case in cases:
        if names and not case.__name__.startswith(tuple(names)):
            continue
        began = time.monotonic()
        try:
            reason = case()
        except Exception as e:  # each case reports on its own
            if trace:
                traceback.print_exc()
            print("FAIL %s: %s" % (case.__name__, e if isinstance(e, Failure) else repr(e)), flush=True)
            failed += 1
            continue
        if isinstance(reason, str):
            print("SKIP %s: %s" % (case.__name__, reason), flush=True)
            skipped += 1
        else:
            took = time.monotonic() - began
            print("ok %s%s" % (case.__name__, " (%.0f s)" % took if took > SLOW_S else ""), flush=True)
            passed += 1
    if passed + failed + skipped == 0:
        print("FAIL no case ran")
        failed = 1
    print("cases: %d passed, %d failed, %d skipped" % (passed, failed, skipped))
    sys.exit(1 if failed else 77 if skipped and not passed else 0)
