#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/run and .ci/run: how they count, and what they refuse. Real calls run in a small project of their own.

usage: test_runner.py SOURCE_ROOT
"""
import contextlib
import glob
import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from cases import check, main

ROOT = sys.argv[1]
sys.path.insert(0, os.path.join(ROOT, "tests"))
import counts  # noqa: E402  (the folder is known only now)
import cpu_classes  # noqa: E402
import folders  # noqa: E402
import wait  # noqa: E402

FILES = ("tests/run", ".ci/run", *(os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, "tests", "*.py"))))
MESON_BUILD = """project('small', 'c')
used = executable('used', 'main.c')
executable('unused', 'main.c')
foreach name, suite : {%s}
  test(name, find_program('sh'), suite: suite, depends: used,
    args: ['-c', '${SMALL_FIRST:-:}; echo "cases: ${SMALL_COUNT:-2 passed, 0 failed, 0 skipped}"'])
endforeach
add_test_setup('asan', exclude_suites: 'vm')
add_test_setup('tsan', exclude_suites: 'vm')
"""
OPTIONS = """option('x86_isa', type: 'array', choices: ['avx2', 'avx512', 'vnni'])
option('man', type: 'feature')
option('onednn', type: 'feature')
option('profile', type: 'combo', choices: ['full', 'board'])
option('xnnpack', type: 'feature')
"""
TESTS = {"plan": "ipc", "planner": "model", "solve": "tuner", "vm": "vm"}


@contextlib.contextmanager
def small_project():
    """A project that tests/run builds and tests within seconds: the scripts, and tests that print SMALL_COUNT."""
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(folder, name))
        listed = ", ".join("'%s': '%s'" % item for item in TESTS.items())
        for name, text in (("meson.build", MESON_BUILD % listed), ("meson_options.txt", OPTIONS),
                           ("main.c", "int main(void) { return 0; }\n"), ("etc/install-deps", "#!/bin/sh\n")):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        os.chmod(os.path.join(folder, "etc/install-deps"), 0o755)
        yield folder


def call(*command, begun=None, **env):
    """Runs `command` in the small project, and begun(process) beside it. Return: exit code, what it printed, its last line."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("CC", "CI")}
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**inherited, **env}) as process:
        if begun:
            begun(process)
        said, _ = process.communicate(timeout=240)
    return process.returncode, said, said.rstrip("\n").split("\n")[-1]


def count(*records):
    totals = counts.Totals()
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
            ("SKIP", "cases: 0 passed, 0 failed, 4 skipped\n", (0, 0, 4)),
            # It ended well and tested nothing.
            ("OK", "cases: 0 passed, 0 failed, 0 skipped\n", (0, 1, 0))):
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


def a_test_that_ran_no_case_is_named():
    totals = count(("OK", "cases: 0 passed, 0 failed, 0 skipped\n"))
    check(totals.failures[0][:3] == ("build", "t", "NO CASE RAN"), totals.failures)


def program_of(text):
    """Return: a program of these cases, compiled."""
    program = os.path.join(PROJECT, "harness")
    with open(program + ".c", "w", encoding="utf-8") as f:
        f.write('#include "tests/harness.h"\n%s\nTEST_MAIN()\n' % text)
    code, said, _ = call(*shlex.split(os.environ.get("CC", "cc")), "-I", ROOT, "-pthread", "-o", program, program + ".c", "-lm")
    check(code == 0, said)
    return program


def a_harness_without_a_case_fails():
    for folder, module in (("lint", "cases"), ("system", "daemon")):
        code, said, last = call(sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); sys.argv[1:] = [];"
                                "import %s; %s.main(())" % (module, module), os.path.join(ROOT, "tests", folder))
        check(code == 1 and last == "cases: 0 passed, 1 failed, 0 skipped", module, code, said)
    program = program_of("TEST(one) { T_EQ(1, 1); }")
    for arguments, wanted in (((), (0, "cases: 1 passed, 0 failed, 0 skipped")), (("--list",), (0, "one")),
                              (("two",), (1, "cases: 0 passed, 1 failed, 0 skipped"))):
        code, said, last = call(program, *arguments)
        check((code, last) == wanted, arguments, code, said)


def a_failed_check_ends_its_case():
    """Also one in a function that the case calls; in another thread it ends that function, and the case fails."""
    code, said, last = call(program_of("""#include <pthread.h>
static void *threads(void *arg) { puts("thread ends"); return arg; }
static void helper(int round) { t_note("round %d", round); T_LT(round, 2); }
static void *checks(void *arg) { helper(7); return threads(arg); }
static void left(void) { T_SKIP("no reason"); }
TEST(in_a_helper) { for (int i = 0; i < 9; i++) { helper(i); printf("ran %d\\n", i); } }
TEST(in_itself) { base_autofree char *text = strdup("kept"); T_STR(text, "lost"); puts("went on"); }
TEST(in_a_thread) { pthread_t t; pthread_create(&t, NULL, checks, NULL); pthread_join(t, NULL); puts("joined"); }
TEST(skipped) { left(); puts("went on"); }
TEST(good) { helper(1); }"""))
    check(code == 1 and last == "cases: 1 passed, 3 failed, 1 skipped", code, said)
    check("ran 1" in said and "ran 2" not in said and "went on" not in said, said)
    check("round < 2: 2 against 2; round 2" in said and '"kept" against "lost"\n' in said, said)
    check("thread ends" in said and "joined" in said, said)


def a_wait_ends():
    seen = iter(range(9))
    check(wait.until(lambda: next(seen) == 3) and next(seen) == 4, "it asks on")
    check(wait.asked(lambda: [], limit_s=0) == [], "the last value")
    left = []
    try:
        wait.until(lambda: None, "news", lambda: len(left), limit_s=0.01, pause=left.append)
    except wait.Failure as e:
        check(str(e) == "it never came: news %d" % len(left) and 0 < left[-1] <= left[0] <= 0.01, e, left)
    check(len(list(wait.during(0))) == 1, "a load is there once")


def an_unknown_name_gets_its_near_ones():
    known = {"primitives", "primitives_i8", "primitives_light", "governor-sensors", "plan"}
    folders.need_names(["plan", "primitives"], known, "test")
    for name, near in (("primitivs", "primitives"), ("sensors", "governor-sensors"), ("plam", "plan")):
        try:
            folders.need_names(["plan", name], known, "test")
        except folders.Stop as stop:
            check(name in str(stop) and near in str(stop), stop)
        else:
            check(False, name, "is taken for a test")


def only_what_there_is_can_be_asked_for():
    for arguments, part in ((["plam"], "plan"), (["plan", "plam"], "plan"), (["--suite", "mode"], "model"),
                            (["zzz"], "--list")):
        code, said, last = call("tests/run", *arguments)
        check(code == 1 and last == "0 passed, 1 failed, 0 skipped", arguments, code, said)
        check("\"%s\"" % arguments[-1] in said and part in said.split("there is no", 1)[1], arguments, said)
    for arguments, wanted in ((["plan", "vm"], "4 passed, 0 failed, 0 skipped"),
                              (["--suite", "model"], "2 passed, 0 failed, 0 skipped")):
        code, said, last = call("tests/run", *arguments)
        check(code == 0 and last == wanted, arguments, code, said)
    for ended in ("0 passed, 0 failed, 0 skipped", "1 passed, 1 failed, 0 skipped"):
        code, said, last = call("tests/run", "plan", SMALL_COUNT=ended)
        check(code == 1 and "1 failed" in last and "build: plan" in said, ended, code, said)


def a_suite_without_a_test_fails():
    program = ("import sys; sys.path.insert(0, 'tests'); import counts, folders; t = counts.Totals();"
               "folders.build('build', [], 0); folders.test('build', 'build', t, %s, {}, %s, %s);"
               "print(t.failed, [f[1] for f in t.failures])")
    for arguments, names, suites, wanted in (
            (["--suite", "nothing"], [], ["nothing"], "2 ['meson test', 'nothing']"),
            (["--suite", "model"], [], ["model", "nothing"], "1 ['nothing']"),
            (["plan"], ["plan", "gone"], [], "1 ['gone']"),
            (["plan"], ["plan"], ["ipc"], "0 []")):
        code, said, last = call(sys.executable, "-c", program % (arguments, names, suites))
        check(code == 0 and last == wanted, arguments, code, said)


def parts_of_a_run_keep_their_logs():
    """Of two parts in one folder, and of a setup: what the first said is there after the others."""
    program = ("import sys; sys.path.insert(0, 'tests'); import counts, folders; t = counts.Totals();"
               "folders.build('build', [], 0);"
               "[folders.test('build', where, t, more, {'SMALL_COUNT': '%d passed, %d failed, 0 skipped' % n})"
               " for where, more, n in (('build', ['plan'], (1, 3)), ('cpu a', ['plan'], (5, 0)),"
               " ('tsan', ['--setup', 'tsan'], (7, 0)))]; print(t.passed, t.failed)")
    code, said, last = call(sys.executable, "-c", program)
    check(code == 0 and last == "%d 3" % (1 + 5 + 7 * (len(TESTS) - 1)), code, said)
    check("logs: build/meson-logs/tests-run-build.txt" in said and said.count("logs:") == 1, said)
    for part, wanted in (("build", "1 passed, 3 failed"), ("cpu-a", "5 passed"), ("tsan", "7 passed")):
        with open(os.path.join(PROJECT, "build", "meson-logs", "tests-run-%s.txt" % part), encoding="utf-8") as f:
            check("cases: " + wanted in f.read(), part, "has another log")


def a_run_that_is_ended_says_what_ran():
    for more in ((), ("--builds",)):  # nor does the next build begin
        fifo = os.path.join(PROJECT, "fifo" + "".join(more))  # what read the former one may still be there

        def end(process, fifo=fifo):
            with open(fifo, "wb"):  # the test has opened it, too
                process.terminate()
                process.wait(240)

        os.mkfifo(fifo)
        code, said, last = call("tests/run", *more, "plan", begun=end, SMALL_FIRST="cat " + fifo)
        check(code == 1 and last == "0 passed, 1 failed, 0 skipped" and "SMALL_FIRST" in said, code, said)


def ci_adds_up_all_runs():
    quick = [name for name, suite in TESTS.items() if suite != "vm"]
    code, said, last = call(".ci/run", "--quick")
    rest = len(quick) - 1  # without the planner
    check(code == 0 and last == "%d passed, 0 failed, 0 skipped" % (2 * (len(quick) + rest)), code, said)
    code, said, last = call(".ci/run", "plan", SMALL_COUNT="1 passed, 1 failed, 0 skipped")
    # A program that no test needs is compiled where compiling it shows something.
    for folder, unused in (("build", True), ("build-asan", False)):
        there = [os.path.exists(os.path.join(PROJECT, folder, name)) for name in ("used", "unused")]
        check(there == [True, unused], folder, "has its used and its unused program:", there)
    check(code == 1 and last == "%d passed, %d failed, 0 skipped" % (1 + rest, 1 + rest), code, said)
    names = said.rsplit("\nfailed:\n", 1)[1]
    for name in ("tests/run plan (exit code 1)", "build: plan", "asan: plan"):
        check(name in names, name, "is not in", said)
    # None of the runs says how many there were.
    script, aside = (os.path.join(PROJECT, name) for name in ("tests/runner.py", "aside"))
    os.rename(script, aside)
    code, said, last = call(".ci/run")
    os.rename(aside, script)
    check(code == 1 and last == "0 passed, 2 failed, 0 skipped", code, said)


def a_cpu_is_not_played_as_itself():
    """The plain run was on a CPU of that class; not so where OpenBLAS has to be told another core for it."""
    x86 = ("sse2", "avx2", "avx512", "avx512vnni", "avx512bf16")
    classes = [cpu for _, cpu, _ in cpu_classes.CLASSES["x86_64"]]

    def played(core):
        """The parts that run on a CPU with AVX-512 and bf16, where that class asks for `core`."""
        def status(_, cpu=None):
            if cpu in ("avx512bf16", "amx"):
                return set(x86), core
            return set(x86[:classes.index(cpu)]) | {cpu} if cpu in x86 else set(x86), None
        parts, kept = [], (cpu_classes.status, cpu_classes.names_of, cpu_classes.platform.machine)
        cpu_classes.status, cpu_classes.names_of = status, lambda _: set(cpu_classes.TESTS)
        cpu_classes.platform.machine = lambda: "x86_64"
        try:
            missing = cpu_classes.play("build", lambda where, names, env: parts.append(where), {})
        finally:
            cpu_classes.status, cpu_classes.names_of, cpu_classes.platform.machine = kept
        check([m.split("(")[-1] for m in missing] == ["avxvnni)", "amx)"], missing)
        return parts
    lesser = ["cpu sse2", "cpu avx2", "cpu avx512", "cpu avx512vnni"]
    check(played(None) == lesser, played(None))
    check(played("Cooperlake") == lesser + ["cpu avx512bf16"], played("Cooperlake"))


with small_project() as PROJECT:
    main((tests_are_counted_by_case, the_last_line_is_plain, a_test_that_ran_no_case_is_named,
          a_harness_without_a_case_fails, a_failed_check_ends_its_case, a_wait_ends, an_unknown_name_gets_its_near_ones,
          only_what_there_is_can_be_asked_for, a_suite_without_a_test_fails, a_run_that_is_ended_says_what_ran,
          a_cpu_is_not_played_as_itself, parts_of_a_run_keep_their_logs, ci_adds_up_all_runs))
