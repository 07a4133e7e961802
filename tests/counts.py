# SPDX-License-Identifier: Apache-2.0
"""Counts the cases of tests and reports failures; a part of tests/runner.py.

A test prints "cases: N passed, N failed, N skipped" (tests/harness.h and the Python tests do); one that does not
counts as one case. A test that counts none of them has tested nothing, and that is a failure.
"""
import re

CASES = re.compile(r"^cases: (\d+) passed, (\d+) failed, (\d+) skipped\s*$", re.M)
SKIP_LINE = re.compile(r"^(?:SKIP \S+: .*|skipped: .*)$", re.M)
FAIL_LINE = re.compile(r"^FAIL .*$", re.M)
TAIL_LINES = 40


def last_line(passed, failed, skipped):
    """What a run ends with."""
    return "%d passed, %d failed, %d skipped" % (passed, failed, skipped)


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []  # (where, test, result, text)
        self.reasons = {}  # reason -> tests

    def add(self, where, record):
        """One line of meson's log as JSON, of the part `where` of a run."""
        name = record["name"].split(" / ")[-1]
        text = (record.get("stdout") or "") + "\n" + (record.get("stderr") or "")
        counts = CASES.findall(text)
        passed, failed, skipped = (sum(int(c[i]) for c in counts) for i in range(3))
        result = record["result"]
        if result == "EXPECTEDFAIL":  # that it fails is what it shows
            passed, failed, skipped = 1, 0, 0
        bad = result not in ("OK", "EXPECTEDFAIL", "SKIP")
        if result == "SKIP" and not skipped:
            skipped = 1
        if bad and not failed:
            failed = 1  # it crashed, timed out, or does not count
        if not counts and result in ("OK", "EXPECTEDFAIL"):
            passed = 1
        if passed + failed + skipped == 0:
            failed, result, text = 1, "NO CASE RAN", text + "FAIL no case ran\n"
        self.passed, self.failed, self.skipped = (self.passed + passed, self.failed + failed, self.skipped + skipped)
        if bad or failed:
            self.failures.append((where, name, result, text))
        for reason in SKIP_LINE.findall(text) if skipped else ():
            self.skip(reason.strip(), "%s: %s" % (where, name), 0)

    def fail(self, where, name, text):
        """A failure that no test reports."""
        self.failed += 1
        self.failures.append((where, name, "FAIL", text))

    def skip(self, reason, what, count=1):
        self.skipped += count
        self.reasons.setdefault(reason, []).append(what)

    def report(self):
        for reason, tests in sorted(self.reasons.items()):
            print("%s (%s)" % (reason, ", ".join(sorted(set(tests)))))
        for where, name, result, text in self.failures:
            print("\n---- %s: %s: %s" % (where, name, result.lower()))
            lines = text.rstrip().split("\n")
            hidden = "\n".join(lines[:-TAIL_LINES])
            for line in FAIL_LINE.findall(hidden):
                print(line)
            print("\n".join(lines[-TAIL_LINES:]))
        if self.failures:
            print("\nfailed:")
            for where, name, result, _ in self.failures:
                print("    %s: %s (%s)" % (where, name, result.lower()))
        print(last_line(self.passed, self.failed, self.skipped), flush=True)
