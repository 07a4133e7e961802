# SPDX-License-Identifier: Apache-2.0
"""tests/run --builds: the quick tests in other builds than the developer's; a part of tests/runner.py.

clang finds what gcc does not warn about or compiles otherwise, in the code for every instruction set; without
assertions it also finds work done inside them. The build for boards, here also without XNNPACK and with SSE2 alone,
finds what counts on code that is not there everywhere.
"""
import shutil

from folders import Stop, build, introspect, need_names, say, suites_of, test

# Build folder -> (what to call at the first setup instead of cc, meson options).
BUILDS = {
    "build-clang": ("clang", ["-Db_ndebug=true"]),
    "build-lean": (None, ["-Dprofile=board", "-Dxnnpack=disabled", "-Dx86_isa=", "-Dwerror=true"]),
}
ALWAYS = ["-Dman=disabled", "-Ddebug=false"]
SUITES = ("model", "kernels", "pipeline", "ipc", "governor", "tuner", "daemon", "sim", "fuzz")
LEAVES_OUT = ("check", "long", "system", "adapt", "networks", "boards")
# The daemon itself: frames, plans that change, the commands of pipectl.
SYSTEM = ("system-frames-protocol", "system-frames-bytes", "system-pipectl", "system-pipesim")
# One random case of so many: the plain build runs them all.
ENV = {"PIPED_TEST_SHARE": "8"}


def quick_tests(folder):
    """Names of the tests that are run in these builds."""
    tests = introspect(folder)
    names = {t["name"] for t in tests if suites_of(t) & set(SUITES) and not suites_of(t) & set(LEAVES_OUT)}
    return sorted(names | set(SYSTEM) | {t["name"] for t in tests if t["name"] == "system-lean"})


def compiler(command):
    """CC for meson, which looks for ccache by itself for the default compiler only."""
    return "ccache %s" % command if shutil.which("ccache") else command


def test_builds(names, options, jobs, totals, env):
    """Builds all and runs their quick tests, or those of `names`."""
    for folder, (command, more) in BUILDS.items():
        if command and not shutil.which(command):
            say("%s: no %s" % (folder, command))
            totals.skip("skipped: %s is not installed" % command, folder)
            continue
        try:
            build(folder, [*options, *ALWAYS, *more], jobs, {"CC": compiler(command)} if command else None)
            need_names(names, {t["name"] for t in introspect(folder)}, "test")
            wanted = names or quick_tests(folder)
            test(folder, folder, totals, wanted, dict(ENV, **env), needed=wanted)
        except Stop as stop:  # the others still have something to tell
            say("%s failed" % folder)
            totals.fail(folder, "build", str(stop))
