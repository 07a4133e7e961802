# SPDX-License-Identifier: Apache-2.0
"""tests/run --builds: the quick tests in other builds than the developer's; a part of tests/runner.py.

clang finds what gcc does not warn about or compiles otherwise, in the code for every instruction set; without
assertions it also finds work done inside them. The build for boards, here also without XNNPACK and with SSE2 alone,
finds what counts on code that is not there everywhere.
"""
import shutil

from folders import Stop, build, installed, introspect, need_names, needed_by, say, suites_of, test

SUITES = ("model", "kernels", "pipeline", "ipc", "governor", "tuner", "daemon", "sim", "fuzz")
# Build folder -> (what to call at the first setup instead of cc, meson options, whether all is compiled, suites). What
# clang warns about may be anywhere. The compiler of the plain build has seen the benches and tests that do not run on a
# board, and the rooms that the options of this one do not change.
BUILDS = {
    "build-clang": ("clang", ["-Db_ndebug=true"], True, SUITES),
    "build-lean": (None, ["-Dprofile=board", "-Dxnnpack=disabled", "-Dx86_isa=", "-Dwerror=true"], False,
                   ("model", "kernels", "ipc", "daemon")),
}
ALWAYS = ["-Dman=disabled", "-Ddebug=false", "-Doptimization=2"]
LEAVES_OUT = ("check", "long", "system", "adapt", "networks", "boards")
# The daemon itself: frames, plans that change, the commands of pipectl.
SYSTEM = ("system-frames-protocol", "system-frames-bytes", "system-frames-wrong", "system-pipectl", "system-pipesim")
# One random case of so many: the plain build runs them all.
ENV = {"PIPED_TEST_SHARE": "8"}


def quick_tests(folder):
    """Names of the tests that are run in this build."""
    tests, suites = introspect(folder), set(BUILDS[folder][3])
    names = {t["name"] for t in tests if suites_of(t) & suites and not suites_of(t) & set(LEAVES_OUT)}
    return sorted(names | set(SYSTEM) | {t["name"] for t in tests if t["name"] == "system-lean"})


def installed_and_run(folder, names):
    """Return: names for ninja of what is installed and of what these tests need."""
    return sorted({*installed(folder), *needed_by(folder, names)})


def compiler(command):
    """CC for meson, which looks for ccache by itself for the default compiler only."""
    return "ccache %s" % command if shutil.which("ccache") else command


def test_builds(names, options, jobs, totals, env):
    """Builds all and runs their quick tests, or those of `names`."""
    for folder, (command, more, whole, _) in BUILDS.items():
        if command and not shutil.which(command):
            say("%s: no %s" % (folder, command))
            totals.skip("skipped: %s is not installed" % command, folder)
            continue
        try:
            build(folder, [*options, *ALWAYS, *more], jobs, {"CC": compiler(command)} if command else None,
                  only=None if whole else lambda f: installed_and_run(f, names or quick_tests(f)))
            need_names(names, {t["name"] for t in introspect(folder)}, "test")
            wanted = names or quick_tests(folder)
            test(folder, folder, totals, wanted, dict(ENV, **env), needed=wanted)
        except Stop as stop:  # the others still have something to tell
            say("%s failed" % folder)
            totals.fail(folder, "build", str(stop))
