# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a lint test and prints the lines that tests/run counts."""
import sys


class Failure(AssertionError):
    pass


def check(condition, *text):
    """An assertion that stays on under python -O."""
    if not condition:
        raise Failure(" ".join(str(t) for t in text) or "check failed")


def none(problems, what):
    """Fails with all of `problems` when there are any."""
    check(not problems, "%d %s:\n  %s" % (len(problems), what, "\n  ".join(problems)))


def main(cases):
    """A case returns None (passed) or a reason for being skipped. Exits 0, 1 or 77."""
    passed = failed = skipped = 0
    for case in cases:
        try:
            reason = case()
        except Exception as e:  # each case reports on its own
            print("FAIL %s: %s" % (case.__name__, e if isinstance(e, Failure) else repr(e)), flush=True)
            failed += 1
            continue
        if reason:
            print("SKIP %s: %s" % (case.__name__, reason), flush=True)
            skipped += 1
        else:
            print("ok %s" % case.__name__, flush=True)
            passed += 1
    print("cases: %d passed, %d failed, %d skipped" % (passed, failed, skipped))
    sys.exit(1 if failed else 77 if skipped and not passed else 0)
