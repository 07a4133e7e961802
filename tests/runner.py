# SPDX-License-Identifier: Apache-2.0
"""Builds piped, runs its tests and counts their cases. Called by tests/run, which installs packages first.

Meson runs the tests and writes one JSON object a test into meson-logs/testlog.json. A test prints
"cases: N passed, N failed, N skipped" (tests/harness.h and the Python tests do); one that does not counts as one
case.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = re.compile(r"^cases: (\d+) passed, (\d+) failed, (\d+) skipped\s*$", re.M)
SKIP_LINE = re.compile(r"^(?:SKIP \S+: .*|skipped: .*)$", re.M)
FAIL_LINE = re.compile(r"^FAIL .*$", re.M)
TAIL_LINES = 40
# Build folder -> meson options. The sanitizers' test setups (what they leave out, their environment) are in
# tests/meson.build.
# The same sources once more for wider vectors take the compiler three minutes under sanitizers.
LEAN = ["-Db_lundef=false", "-Dman=disabled", "-Dx86_isa=avx2"]
SANITIZERS = {
    "asan": ("build-asan", ["-Db_sanitize=address,undefined", *LEAN]),
    "tsan": ("build-tsan", ["-Db_sanitize=thread", *LEAN]),
}
# What runs in user-mode emulation; everything else is about this machine, or Python's.
ARM64_SUITES = ("model", "kernels", "pipeline", "ipc", "governor")
# The CPU of tests/arm64/prepare.sh, and one random case of eight for the kernels: emulated code is slow.
ARM64_ENV = {"PIPED_TEST_CPU": "neon,dotprod", "PIPED_TEST_SHARE": "8"}
# Suites that an option of their own runs and nothing else, and what tells their tests so.
ALONE = {"nspawn": "PIPED_NSPAWN_REQUIRED", "vm": "PIPED_TEST_VM", "avx512": "PIPED_TEST_AVX512"}
QUICK_LEAVES_OUT = ("networks", "conformance", "check", "nspawn")


class Stop(Exception):
    """The run cannot go on; the text says why."""


def say(text):
    print("== %s" % text, flush=True)


def run(command, log=None, env=None, timeout=None):
    """Return: exit code. Output goes to `log`, or through."""
    out = open(log, "ab") if log else None
    try:
        return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                              env=dict(os.environ, **(env or {})), timeout=timeout, check=False).returncode
    finally:
        if out:
            out.close()


def tail(path, lines=TAIL_LINES):
    with open(path, encoding="utf-8", errors="replace") as f:
        return "".join(f.readlines()[-lines:])


def build(folder, options, jobs):
    """Sets up where needed and builds; says what failed."""
    start = time.monotonic()
    os.makedirs(os.path.join(ROOT, folder), exist_ok=True)
    log = os.path.join(ROOT, folder, "tests-run-build.log")
    open(log, "wb").close()
    if not os.path.exists(os.path.join(ROOT, folder, "build.ninja")):
        if run(["meson", "setup", folder, *options], log):
            raise Stop("meson setup %s failed:\n%s" % (folder, tail(log)))
    elif options and run(["meson", "configure", folder, *options], log):
        raise Stop("meson configure %s failed:\n%s" % (folder, tail(log)))
    command = ["ninja", "-C", folder] + (["-j", str(jobs)] if jobs else [])
    if run(command, log):
        # A folder of another meson or of moved sources: once more from scratch.
        if b"ninja: build stopped" in open(log, "rb").read() or run(["meson", "setup", "--wipe", folder, *options],
                                                                   log) or run(command, log):
            raise Stop("building %s failed:\n%s" % (folder, tail(log)))
    say("%s built in %.0f s" % (folder, time.monotonic() - start))


def introspect(folder):
    out = subprocess.run(["meson", "introspect", folder, "--tests"], cwd=ROOT, capture_output=True, text=True,
                         check=True).stdout
    return json.loads(out)


def suites_of(test):
    """Names without the project's prefix."""
    return {s.split(":", 1)[-1] for s in test["suite"]}


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []  # (where, test, text)
        self.reasons = {}  # reason -> tests

    def add(self, where, record):
        name = record["name"].split(" / ")[-1]
        text = (record.get("stdout") or "") + "\n" + (record.get("stderr") or "")
        counts = CASES.findall(text)
        passed, failed, skipped = (sum(int(c[i]) for c in counts) for i in range(3))
        result = record["result"]
        bad = result not in ("OK", "EXPECTEDFAIL", "SKIP")
        if result == "SKIP" and not skipped:
            skipped = 1
        if bad and not failed:
            failed = 1  # it crashed, timed out, or does not count
        if not counts and result in ("OK", "EXPECTEDFAIL"):
            passed = 1
        self.passed, self.failed, self.skipped = (self.passed + passed, self.failed + failed, self.skipped + skipped)
        if bad or failed:
            self.failures.append((where, name, result, text))
        for reason in SKIP_LINE.findall(text) if skipped else ():
            self.reasons.setdefault(reason.strip(), []).append("%s: %s" % (where, name))

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
        print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped), flush=True)


def test(folder, where, totals, arguments, env):
    start = time.monotonic()
    log = os.path.join(ROOT, folder, "meson-logs", "tests-run.log")
    command = ["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", *arguments]
    records = None
    for suffix in ("", "-" + where):
        path = os.path.join(ROOT, folder, "meson-logs", "testlog%s.json" % suffix)
        if os.path.exists(path):
            os.unlink(path)
    if os.path.exists(log):
        os.unlink(log)
    code = run(command, log, env)
    for suffix in ("-" + where, ""):
        path = os.path.join(ROOT, folder, "meson-logs", "testlog%s.json" % suffix)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                records = [json.loads(line) for line in f if line.strip()]
            break
    if records is None:
        if "No suitable tests" in tail(log) or "No tests defined" in tail(log):
            say("%s: no tests" % where)
            return
        raise Stop("meson test in %s failed:\n%s" % (folder, tail(log)))
    before = (totals.passed, totals.failed, totals.skipped)
    for record in records:
        totals.add(where, record)
    if code and totals.failed == before[1]:
        totals.failures.append((where, "meson test", "FAIL", tail(log)))
        totals.failed += 1
    say("%s: %d tests, %d cases passed, %d failed, %d skipped in %.0f s" % (
        where, len(records), totals.passed - before[0], totals.failed - before[1], totals.skipped - before[2],
        time.monotonic() - start))


def parse(argv):
    p = argparse.ArgumentParser(prog="tests/run", description="Builds piped in build/ and runs all tests.")
    p.add_argument("tests", nargs="*", metavar="TEST", help="only these tests (names of --list), without sanitizers")
    p.add_argument("--quick", action="store_true",
                   help="leave out sanitizers and the suites %s" % ", ".join(QUICK_LEAVES_OUT))
    p.add_argument("--suite", action="append", default=[], metavar="S", help="only this suite, without sanitizers")
    p.add_argument("--setup", choices=sorted(SANITIZERS), help="only this sanitizer's build and tests")
    p.add_argument("--nspawn", action="store_true", help="only the tests under a real systemd; a skip is a failure")
    p.add_argument("--vm", action="store_true",
                   help="only the tests in an emulated machine with unequal cores (about three minutes)")
    p.add_argument("--avx512", action="store_true",
                   help="only the kernels for AVX-512, on an emulated CPU (minutes)")
    p.add_argument("--arm64", action="store_true",
                   help="only a build for arm64 and its suites %s, in user-mode emulation" % ", ".join(ARM64_SUITES))
    p.add_argument("--long", action="store_true", help="longer random tests and soaks (PIPED_TEST_LONG=1)")
    p.add_argument("--chroot", action="store_true",
                   help="do what the README says in a fresh Debian 12 chroot (root, network; several minutes)")
    p.add_argument("--list", action="store_true", help="list tests by suite")
    p.add_argument("--jobs", type=int, default=0, metavar="N", help="compile N files at a time")
    p.add_argument("--no-install", action="store_true", help="do not install missing packages")
    return p.parse_args(argv)


def list_tests():
    by_suite = {}
    for t in introspect("build"):
        for suite in suites_of(t) or {"-"}:
            by_suite.setdefault(suite, []).append(t["name"])
    for suite in sorted(by_suite):
        print("%s: %s" % (suite, " ".join(sorted(by_suite[suite]))))


def selected(args):
    """Arguments of meson test for the plain build."""
    if args.tests:
        return list(args.tests)
    known = set().union(*(suites_of(t) for t in introspect("build")))
    for s in args.suite:
        if s not in known:
            raise Stop("no suite \"%s\"; there are: %s" % (s, " ".join(sorted(known))))
    alone = [s for s in ALONE if getattr(args, s)]
    wanted = alone or args.suite
    if wanted:
        return [a for s in wanted for a in ("--suite", s)]
    out = ("vm", "avx512") + (QUICK_LEAVES_OUT if args.quick else ())
    return [a for s in out if s in known for a in ("--no-suite", s)]


def test_arm64(args, options, totals, env):
    """Cross-built against Debian's own libraries for arm64; results run in user-mode emulation."""
    folder = "build-arm64"
    os.makedirs(os.path.join(ROOT, folder), exist_ok=True)
    log = os.path.join(ROOT, folder, "tests-run-prepare.log")
    open(log, "wb").close()
    if run(["tests/arm64/prepare.sh", os.path.join(folder, "debian")], log):
        raise Stop("tests/arm64/prepare.sh failed:\n%s" % tail(log))
    cross = os.path.join(ROOT, folder, "debian", "cross.ini")
    folder = os.path.join(folder, "build")
    configured = os.path.exists(os.path.join(ROOT, folder, "build.ninja"))
    build(folder, options + ([] if configured else ["--cross-file", cross, "-Dman=disabled"]), args.jobs)
    suites = [a for s in ARM64_SUITES for a in ("--suite", s)]
    env = dict(env, **ARM64_ENV)
    # emulated code takes 20 to 100 times as long
    test(folder, "arm64", totals, suites + ["--no-suite", "check", "--timeout-multiplier", "20"], env)


def main(argv):
    args = parse(argv)
    start = time.monotonic()
    totals = Totals()
    env = {"PIPED_TEST_LONG": "1"} if args.long else {}
    options = ["-Dwerror=true"] if os.environ.get("CI") == "true" else []
    if args.chroot:
        return run(["tests/chroot/try_readme.sh"])
    for tool in ("meson", "ninja"):
        if not shutil.which(tool):
            raise Stop("%s is not installed; run etc/install-deps" % tool)
    alone = [s for s in ALONE if getattr(args, s)]
    only_plain = args.quick or args.suite or args.tests or alone
    env.update({ALONE[s]: "1" for s in alone})
    if args.arm64:
        test_arm64(args, options, totals, env)
    elif args.setup:
        folder, more = SANITIZERS[args.setup]
        build(folder, options + more, args.jobs)
        test(folder, args.setup, totals, ["--setup", args.setup], env)
    else:
        build("build", options, args.jobs)
        if args.list:
            list_tests()
            return 0
        test("build", "build", totals, selected(args), env)
        for setup, (folder, more) in () if only_plain else SANITIZERS.items():
            build(folder, options + more, args.jobs)
            test(folder, setup, totals, ["--setup", setup], env)
    say("done in %.0f s" % (time.monotonic() - start))
    totals.report()
    return 1 if totals.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Stop as stop:
        print("tests/run: %s" % stop, file=sys.stderr, flush=True)
        print("0 passed, 1 failed, 0 skipped", flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
