# SPDX-License-Identifier: Apache-2.0
"""Builds piped, runs its tests and counts their cases. Called by tests/run, which installs packages first.

Says what is built and which tests run; folders.py builds and runs, counts.py counts, builds.py has the other builds.
"""
import argparse
import os
import shutil
import signal
import sys
import time

import cpu_classes
from builds import BUILDS, test_builds
from counts import Totals, last_line
from folders import (ROOT, Stop, build, installed, introspect, need_names, needed_by_chosen, run, running, say, suites_of,
                     tail, test)
from fuzzing import test_fuzz
from surroundings import announce

# Build folder -> meson options. The sanitizers' test setups (what they leave out, their environment) are in
# tests/meson.build.
# The same sources once more for wider vectors take the compiler three minutes under sanitizers; less optimised it takes
# half the time, and what it takes to name lines in a report is in -g1. Not optimised at all the tests take longer than
# that saves.
LEAN = ["-Db_lundef=false", "-Dman=disabled", "-Dx86_isa=avx2", "-Doptimization=1", "-Dc_args=-g1"]
SANITIZERS = {
    "asan": ("build-asan", ["-Db_sanitize=address,undefined", *LEAN]),
    "tsan": ("build-tsan", ["-Db_sanitize=thread", *LEAN]),
}
# --quick leaves what reads the bytes of strangers. The planner only calculates, and kernels run between guard bytes in the
# plain build.
QUICK_UNSANITIZED = ("tuner", "sim", "kernels", "plans", "use")
# What runs in user-mode emulation; everything else is about this machine, or Python's.
ARM64_SUITES = ("model", "kernels", "pipeline", "ipc", "governor")
# The CPU of tests/arm64/prepare.sh, and one random case of eight for the kernels: emulated code is slow.
ARM64_ENV = {"PIPED_TEST_CPU": "neon,dotprod", "PIPED_TEST_SHARE": "8"}
ARM64_FOLDER = "build-arm64"
# Suites that an option of their own runs and nothing else, and what tells their tests so.
ALONE = {"nspawn": "PIPED_NSPAWN_REQUIRED", "vm": "PIPED_TEST_VM", "avx512": "PIPED_TEST_AVX512"}
BOARDS = "boards"  # `tests/run boards` runs the suite
# Soaks, for --long.
LONG = "long"
QUICK_LEAVES_OUT = ("networks", "conformance", "check", "nspawn", BOARDS)


def parse(argv):
    p = argparse.ArgumentParser(prog="tests/run", description="Builds piped in build/ and runs all tests.")
    p.add_argument("tests", nargs="*", metavar="TEST",
                   help="only these tests (names of --list); boards: tests of several boards")
    p.add_argument("--quick", action="store_true",
                   help="leave out lesser CPUs and the suites %s; with --sanitizers: the suites %s" % (
                       ", ".join(QUICK_LEAVES_OUT), ", ".join(QUICK_UNSANITIZED)))
    p.add_argument("--suite", action="append", default=[], metavar="S", help="only this suite")
    p.add_argument("--sanitizers", action="store_true",
                   help="only the builds for sanitizers (%s) and what runs there" % ", ".join(SANITIZERS))
    p.add_argument("--setup", choices=sorted(SANITIZERS),
                   help="only this sanitizer's build and tests, or the given ones")
    p.add_argument("--nspawn", action="store_true", help="only the tests under a real systemd; a skip is a failure")
    p.add_argument("--vm", action="store_true",
                   help="only the tests in emulated machines with unequal cores, x86 and arm64 (about ten minutes); "
                        "TEST: only that machine")
    p.add_argument("--avx512", action="store_true",
                   help="only the kernels for AVX-512, on an emulated CPU (minutes)")
    p.add_argument("--arm64", action="store_true",
                   help="only a build for arm64 and its suites %s, in user-mode emulation" % ", ".join(ARM64_SUITES))
    p.add_argument("--cpus", action="store_true",
                   help="only what depends on the CPU's features, once for every lesser CPU that this one can play")
    p.add_argument("--builds", action="store_true",
                   help="only the other builds (%s), with quick tests or the given ones" % ", ".join(BUILDS))
    p.add_argument("--long", action="store_true", help="longer random tests, and soaks (PIPED_TEST_LONG=1, suite long)")
    p.add_argument("--fuzz", type=float, default=0, metavar="MINUTES",
                   help="only the fuzz targets, under libFuzzer; TEST: only that one (wire, onnx ...)")
    p.add_argument("--soak", type=float, default=0, metavar="HOURS",
                   help="only the mixed load, for so long; with --setup under that sanitizer")
    p.add_argument("--chroot", action="store_true",
                   help="do what the README says in a fresh Debian 12 chroot (root, network; several minutes)")
    p.add_argument("--packages", action="store_true",
                   help="make the Debian packages; install, upgrade and purge them in a fresh Debian 12 (root, network)")
    p.add_argument("--list", action="store_true", help="list tests by suite")
    p.add_argument("--jobs", type=int, default=0, metavar="N", help="compile N files at a time")
    p.add_argument("--no-install", action="store_true", help="do not install missing packages")
    args = p.parse_args(argv)
    if args.tests == [BOARDS]:
        args.tests, args.suite = [], args.suite + [BOARDS]
    if args.soak:
        args.tests = ["soak"]
    if args.vm:
        args.tests = [t if t.startswith("vm-") else "vm-" + t for t in args.tests]
    return args


def list_tests():
    by_suite = {}
    for t in introspect("build"):
        for suite in suites_of(t) or {"-"}:
            by_suite.setdefault(suite, []).append(t["name"])
    for suite in sorted(by_suite):
        print("%s: %s" % (suite, " ".join(sorted(by_suite[suite]))))


def soak_arguments(args):
    """Its time limit in tests/meson.build is for seconds of it."""
    return ["--timeout-multiplier", str(1 + int(args.soak * 18))] if args.soak else []


def selected(args):
    """Return: arguments of meson test for the plain build, names and suites that have to be among what ran."""
    tests = introspect("build")
    known = set().union(*(suites_of(t) for t in tests))
    need_names(args.tests, {t["name"] for t in tests}, "test")
    need_names(args.suite, known, "suite")
    if args.tests:
        return args.tests + soak_arguments(args), args.tests, ()
    wanted = [s for s in ALONE if getattr(args, s)] or args.suite
    if wanted:
        return [a for s in wanted for a in ("--suite", s)], (), wanted
    out = ("vm", "avx512") + (() if args.long else (LONG,)) + (QUICK_LEAVES_OUT if args.quick else ())
    return [a for s in out if s in known for a in ("--no-suite", s)], (), ()


def cross_build(args, options, only=None):
    """Builds against Debian's own libraries for arm64. Return: build folder."""
    folder = ARM64_FOLDER
    os.makedirs(os.path.join(ROOT, folder), exist_ok=True)
    log = os.path.join(ROOT, folder, "tests-run-prepare.log")
    open(log, "wb").close()
    if run(["tests/arm64/prepare.sh", os.path.join(folder, "debian")], log):
        raise Stop("tests/arm64/prepare.sh failed:\n%s" % tail(log))
    cross = os.path.join(ROOT, folder, "debian", "cross.ini")
    folder = os.path.join(folder, "build")
    configured = os.path.exists(os.path.join(ROOT, folder, "build.ninja"))
    build(folder, options + ([] if configured else ["--cross-file", cross, "-Dman=disabled"]), args.jobs,
          only=only)
    return folder


def test_arm64(args, options, totals, env):
    """The results of the cross build run in user-mode emulation."""
    folder = cross_build(args, options)
    suites = [a for s in ARM64_SUITES for a in ("--suite", s)]
    env = dict(env, **ARM64_ENV)
    # emulated code takes 20 to 100 times as long
    test(folder, "arm64", totals, suites + ["--no-suite", "check", "--timeout-multiplier", "20"], env,
         suites=ARM64_SUITES)


def test_sanitized(setup, options, jobs, totals, env, names=(), quick=False, arguments=()):
    """Builds what the setup's tests need, and runs them, or only those of `names`."""
    folder, more = SANITIZERS[setup]
    chosen = ["--setup", setup, *(a for s in QUICK_UNSANITIZED if quick for a in ("--no-suite", s))]
    build(folder, options + more, jobs, only=lambda f: needed_by_chosen(f, chosen, names))
    test(folder, setup, totals, [*chosen, *names, *arguments], env)


def test_cpu_classes(totals, env):
    """The plain build on every lesser CPU that this one can play; names those that it cannot."""
    missing = cpu_classes.play(os.path.join(ROOT, "build"), lambda where, names, more: test(
        "build", where, totals, names, more), env)
    for name in missing:
        totals.skip("this machine cannot play a CPU of the class %s" % name, "PIPED_CPU")


class Ended(Exception):
    """By a signal: no further part of the run begins, as one may after a Stop."""


def ended(*_):
    """Whoever ends a run that takes too long wants to know which test it was."""
    raise Ended("ended by a signal, while there ran:\n%s" % running())


def main(argv):
    args = parse(argv)
    signal.signal(signal.SIGTERM, ended)
    start = time.monotonic()
    totals = Totals()
    env = {"PIPED_TEST_LONG": "1"} if args.long else {}
    if args.soak:
        env["PIPED_TEST_SOAK_S"] = str(args.soak * 3600)
    # Nobody debugs what CI builds: lines in reports are enough, which compiles a fifth faster.
    options = ["-Dwerror=true", "-Dc_args=-g1"] if os.environ.get("CI") == "true" else []
    if args.chroot:
        return run(["tests/chroot/try_readme.sh"])
    if args.packages:
        return run(["tests/packages/try_packages.py", *(["--jobs", str(args.jobs)] if args.jobs else [])])
    for tool in ("meson", "ninja"):
        if not shutil.which(tool):
            raise Stop("%s is not installed; run etc/install-deps" % tool)
    alone = [s for s in ALONE if getattr(args, s)]
    variables, lacking = announce()
    env.update(variables)
    for what, why in lacking:
        say("no %s here: %s; what needs that is skipped" % (what, why))
    only_plain = args.quick or args.suite or args.tests or alone
    env.update({ALONE[s]: "1" for s in alone})
    if args.arm64:
        test_arm64(args, options, totals, env)
    elif args.builds:
        test_builds(args.tests, options, args.jobs, totals, env)
    elif args.setup or args.sanitizers:
        for setup in [args.setup] if args.setup else SANITIZERS:
            test_sanitized(setup, options, args.jobs, totals, env, args.tests, args.quick, soak_arguments(args))
    elif args.list:
        build("build", options, args.jobs, only=lambda _: ["build.ninja"])
        list_tests()
        return 0
    else:
        build("build", options, args.jobs)
        if args.fuzz:
            test_fuzz(args.fuzz, args.tests, options, args.jobs, totals)
            totals.report()
            return 1 if totals.failed else 0
        arguments, needed, suites = selected(args)
        if args.vm and args.tests != ["vm-x86"]:
            cross_build(args, options, only=installed)
            env["PIPED_TEST_ARM64"] = os.path.join(ROOT, ARM64_FOLDER)
        if not args.cpus:
            test("build", "build", totals, arguments, env, needed, suites)
        if args.cpus or not only_plain:
            test_cpu_classes(totals, env)
    say("done in %.0f s" % (time.monotonic() - start))
    totals.report()
    return 1 if totals.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Stop, Ended) as stop:
        print("tests/run: %s" % stop, file=sys.stderr, flush=True)
        print(last_line(0, 1, 0), flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
