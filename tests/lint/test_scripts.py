#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of the README: how tests/run counts, what etc/install-deps knows, that etc/quickstart does its work.

usage: test_scripts.py SOURCE_ROOT BUILD_ROOT
"""
import contextlib
import io
import os
import re
import subprocess
import sys

ROOT, BUILD = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "tests"))
import runner  # noqa: E402  (the folder is known only now)
from cases import check, main  # noqa: E402


def run(*command, **more):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          timeout=240, **more)


def count(*records):
    totals = runner.Totals()
    for result, out in records:
        totals.add("build", {"name": "piped:x / t", "result": result, "stdout": out, "stderr": ""})
    return totals


def tests_are_counted_by_case():
    for result, out, wanted in (
            ("OK", "ok a\ncases: 3 passed, 0 failed, 1 skipped\n", (3, 0, 1)),
            ("OK", "no count\n", (1, 0, 0)),
            ("OK", "cases: 1 passed, 0 failed, 0 skipped\ncases: 2 passed, 0 failed, 0 skipped\n", (3, 0, 0)),
            ("FAIL", "FAIL a\ncases: 3 passed, 2 failed, 0 skipped\n", (3, 2, 0)),
            # It crashed behind its count, or before it: never a pass.
            ("FAIL", "cases: 3 passed, 0 failed, 0 skipped\n", (3, 1, 0)),
            ("FAIL", "", (0, 1, 0)),
            ("TIMEOUT", "ok a\n", (0, 1, 0)),
            ("ERROR", "", (0, 1, 0)),
            ("INTERRUPT", "", (0, 1, 0)),
            ("UNEXPECTEDPASS", "", (0, 1, 0)),
            ("SKIP", "skipped: no root\n", (0, 0, 1)),
            ("SKIP", "cases: 0 passed, 0 failed, 4 skipped\n", (0, 0, 4))):
        t = count((result, out))
        check((t.passed, t.failed, t.skipped) == wanted, result, repr(out), (t.passed, t.failed, t.skipped), wanted)
        check(bool(t.failures) == bool(wanted[1]), result, "failures", t.failures)


def the_last_line_is_plain():
    said = io.StringIO()
    totals = count(("OK", ""), ("FAIL", "FAIL first: no\n" + "later\n" * 200), ("SKIP", "skipped: no root\n"))
    with contextlib.redirect_stdout(said):
        totals.report()
    lines = said.getvalue().rstrip("\n").split("\n")
    check(lines[-1] == "1 passed, 1 failed, 1 skipped", lines[-1])
    check("FAIL first: no" in lines, "a failure far from the end of a log is not shown")
    check(any("no root" in line for line in lines), "the reason of a skip is not shown")
    check(any(line.strip() == "build: t (fail)" for line in lines), "the failure is not named")


def install_deps_knows_its_groups():
    script = os.path.join(ROOT, "etc", "install-deps")
    for group in ("build", "test", "networks", "nspawn"):
        done = run(script, "--list", group)
        check(done.returncode == 0 and done.stdout.split(), group, done.stderr)
    check(run(script, "nonsense").returncode == 2, "an unknown group is taken")
    check(run(script, "--nonsense").returncode == 2, "an unknown option is taken")


def quickstart_serves():
    """In the developer's build folder, which it uses."""
    if os.path.realpath(BUILD) != os.path.join(os.path.realpath(ROOT), "build"):
        return "this is not the build folder that etc/quickstart uses"
    done = run(os.path.join(ROOT, "etc", "quickstart"))
    said = done.stdout + done.stderr
    check(done.returncode == 0, "exit", done.returncode, said)
    check(re.search(r"^serving by 0-3@\S+\|4-11@", said, re.M) or "There is one core" in said, "no two stages:", said)
    accuracy = re.search(r"accuracy ([0-9.]+) %", said)
    check(accuracy and float(accuracy.group(1)) >= 97, "accuracy:", said)
    check("ended cleanly" in said, "no clean end:", said)
    return None


main((tests_are_counted_by_case, the_last_line_is_plain, install_deps_knows_its_groups, quickstart_serves))
