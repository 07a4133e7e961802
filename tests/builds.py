# SPDX-License-Identifier: Apache-2.0
"""tests/run --builds: the quick tests in other builds than the developer's; a part of tests/runner.py.

clang finds what gcc does not warn about or compiles otherwise, in the code for every instruction set; without
assertions it also finds work done inside them. The build for boards, here also without XNNPACK and with SSE2 alone,
finds what counts on code that is not there everywhere. For the gate clang only reads what the plain build compiles.
"""
import concurrent.futures
import json
import os
import shutil
import subprocess
import time

from folders import ROOT, Stop, build, compile_words, installed, introspect, need_names, needed_by, say, suites_of, test

SUITES = ("model", "kernels", "pipeline", "ipc", "governor", "tuner", "daemon", "sim", "fuzz")
# Build folder -> (what to call at the first setup instead of cc, meson options, whether all is compiled, suites). What
# clang warns about may be anywhere. The compiler of the plain build has seen the benches and tests that do not run on a
# board, and the rooms that the options of this one do not change.
BUILDS = {
    "build-clang": ("clang", ["-Db_ndebug=true"], True, SUITES),
    "build-lean": (None, ["-Dprofile=board", "-Dxnnpack=disabled", "-Dx86_isa=", "-Dwerror=true"], False,
                   ("model", "kernels", "ipc", "daemon")),
}
ALWAYS = ["-Dman=disabled", "-Ddebug=false"]
# Warnings are the same at either; what only an optimiser makes of our mistakes is for the whole of these tests.
LEVEL, GATE_LEVEL = 2, 1
LEAVES_OUT = ("check", "long", "system", "adapt", "networks", "boards")
# The daemon itself: frames, plans that change, the commands of pipectl.
SYSTEM = ("system-frames-protocol", "system-frames-bytes", "system-frames-wrong", "system-pipectl", "system-pipesim")
# One random case of so many: the plain build runs them all.
ENV = {"PIPED_TEST_SHARE": "8"}


def quick_tests(folder, gate):
    """Names of the tests that are run in this build; @gate: those that show that it works at all."""
    tests, suites = introspect(folder), set() if gate else set(BUILDS[folder][3])
    names = {t["name"] for t in tests if suites_of(t) & suites and not suites_of(t) & set(LEAVES_OUT)}
    return sorted(names | set(SYSTEM) | {t["name"] for t in tests if t["name"] == "system-lean"})


def installed_and_run(folder, names):
    """Return: names for ninja of what is installed and of what these tests need."""
    return sorted({*installed(folder), *needed_by(folder, names)})


def compiler(command):
    """CC for meson, which looks for ccache by itself for the default compiler only."""
    return "ccache %s" % command if shutil.which("ccache") else command


def read_by(command, where, options, jobs, totals):
    """Its warnings about all that is in the plain build."""
    build("build", options, jobs)
    start, folder = time.monotonic(), os.path.join(ROOT, "build")
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
        commands = [[command, "-fsyntax-only", "-Werror", "-Wno-unknown-warning-option", "-DNDEBUG", *compile_words(entry)]
                    for entry in json.load(f)]
    # The same file of several programs differs in folders alone.
    once = {tuple(w for w in c if not w.startswith("-I")): c for c in commands}.values()

    def read(words):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        return done.returncode and (words[-1], done.stderr)

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        bad = [found for found in pool.map(read, once) if found]
    for file, said in bad:
        totals.fail(where, os.path.relpath(file, ".."), said)
    totals.passed += not bad
    say("%s: %d files read in %.0f s" % (where, len(once), time.monotonic() - start))


def test_builds(names, gate, options, jobs, totals, env):
    """Builds all and runs their quick tests, those of the gate, or those of `names`."""
    for folder, (command, more, whole, _) in BUILDS.items():
        if command and not shutil.which(command):
            say("%s: no %s" % (folder, command))
            totals.skip("skipped: %s is not installed" % command, folder)
            continue
        try:
            if gate and command:
                read_by(command, folder, options, jobs, totals)
                continue
            level = "-Doptimization=%d" % (GATE_LEVEL if gate else LEVEL)
            build(folder, [*options, *ALWAYS, *more, level], jobs, {"CC": compiler(command)} if command else None,
                  only=None if whole else lambda f: installed_and_run(f, names or quick_tests(f, gate)))
            need_names(names, {t["name"] for t in introspect(folder)}, "test")
            wanted = names or quick_tests(folder, gate)
            test(folder, folder, totals, wanted, dict(ENV, **env), needed=wanted)
        except Stop as stop:  # the others still have something to tell
            say("%s failed" % folder)
            totals.fail(folder, "build", str(stop))
