#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What every file has to keep to: size, line length, licence line, and what must not be in it.

usage: test_style.py SOURCE_ROOT
"""
import ast
import os
import re
import shutil
import subprocess
import sys

import source
from cases import check, main, none

ROOT = sys.argv[1]
LINES_MAX = 500
WIDTH_C, WIDTH_OTHER = 100, 132
SPDX = "SPDX-License-Identifier: Apache-2.0"
CODE = (".c", ".h", ".py", ".sh", ".build", ".in", ".supp", ".service", ".socket", ".catalog", ".conf")
DATA = ("model/default/", "tests/fuzz/corpus/")
LIBRARIES = ("apps/", "base/", "model/", "kernels/", "governor/", "pipeline/", "tuner/", "ipc/")
# Inside a library's folder; json_text.c and apps/page write to the stream that a program gives them.
PROGRAMS = ("base/cli/", "base/json_text.c", "apps/pipectl/", "tuner/pipesim/", "apps/page/", "apps/link/main.c",
            "apps/link/common/out.c")
SHOWING = ("daemon/", "apps/pipectl/", "apps/link/", "apps/http/", "tuner/pipesim/", "base/cli/")
MAY_SHOW = (  # makes files of the build; cleans the text itself
    "daemon/config_doc.c", "tuner/pipesim/search_names.c", "base/cli/cli.c", "base/cli/cli.h", "base/cli/shown_print.c",
    "apps/pipectl/common/call_progress.c")
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'')
CLOCKS = ("monotonic", "monotonic_ns", "now_ns", "time", "perf_counter")
FORMATTER = "14."  # the version whose output the sources have


def is_code(name):
    if name.startswith(DATA) and not name.endswith(".py"):
        return False
    if name.endswith(CODE):
        return True
    with open(os.path.join(ROOT, name), "rb") as f:
        return f.read(2) == b"#!"


def text_files():
    return [n for n in source.files(ROOT) if source.is_text(ROOT, n) and not n.startswith(DATA) and n != "LICENSE"]


def code_files():
    return [n for n in source.files(ROOT) if source.is_text(ROOT, n) and is_code(n)]


def lines(name):
    return source.text(ROOT, name).split("\n")


def found(names, pattern, flags=0):
    compiled = re.compile(pattern, flags)
    return ["%s:%d: %s" % (n, i, line.strip()[:80]) for n in names for i, line in enumerate(lines(n), 1)
            if compiled.search(line)]


def files_are_of_one_sitting():
    sizes = [(n, len(lines(n)) - 1) for n in code_files()]
    none(["%s has %d lines, more than %d" % (*size, LINES_MAX) for size in sizes if size[1] > LINES_MAX],
         "files of more than one sitting")


def lines_are_short():
    wide = []
    for n in code_files():
        most = WIDTH_C if source.is_c(n) else WIDTH_OTHER
        wide += ["%s:%d has %d columns" % (n, i, len(line)) for i, line in enumerate(lines(n), 1) if len(line) > most]
    none(wide, "lines too long")


def licence_comes_first():
    none([n for n in code_files() if not any(SPDX in line for line in lines(n)[:2])], "files without the SPDX line")


def no_tabs_or_trailing_blanks():
    # make needs them there, and Kconfig has them
    none(found([n for n in code_files() if n != "etc/debian/rules" and not n.startswith("etc/buildroot/")], r"\t"), "tabs")
    none(found(text_files(), r"[ \t]+$"), "blanks at the end of a line")


def files_end_with_a_newline():
    none([n for n in text_files() if source.text(ROOT, n) and not source.text(ROOT, n).endswith("\n")],
         "files without a newline at the end")


def nothing_is_left_to_do():
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"))
    none(found(code_files(), r"\b(%s)\b" % words), "things left to do")


def no_paths_of_one_machine():
    none(found(text_files(), r"(?<![\w.])/(work|root|home/\w+|Users)/"), "paths of somebody's machine")


def own_clock(loop):
    """Does this loop compare times, as its condition or in its body? Functions that are defined in it may."""
    todo = [loop]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Compare) and any(isinstance(n, ast.Attribute) and n.attr in CLOCKS for n in ast.walk(node)):
            return True
        todo += [n for n in ast.iter_child_nodes(node) if not isinstance(n, (ast.FunctionDef, ast.Lambda))]
    return False


def waits_have_an_end():
    """A test waits by tests/wait.py, and loads by it, too: with a limit, and it says what never came. What asks a socket or a
    pipe until there is nothing ends by itself."""
    ends = re.compile(r"\b(recv|read|receive)\(")
    names = [n for n in code_files() if n.startswith("tests/") and n.endswith(".py") and n != "tests/wait.py"]
    check(names, "no tests found")
    loops = [(n, loop) for n in names for loop in ast.walk(ast.parse(source.text(ROOT, n))) if isinstance(loop, ast.While)]
    none(["%s:%d: %s" % (n, loop.lineno, lines(n)[loop.lineno - 1].strip()) for n, loop in loops
          if isinstance(loop.body[0], ast.Pass) and not ends.search(lines(n)[loop.lineno - 1])], "waits without end")
    none(["%s:%d: %s" % (n, loop.lineno, lines(n)[loop.lineno - 1].strip()) for n, loop in loops if own_clock(loop)],
         "loops that count time; use until(), asked() or during() of tests/wait.py")


def libraries_do_not_speak():
    """Library code returns what happened; only daemon/, pipectl and pipesim print, log or exit."""
    names = [n for n in source.files(ROOT) if n.endswith(".c") and n.startswith(LIBRARIES)
             and not n.startswith(PROGRAMS)]
    check(names, "no library files found")
    speaking = "printf|fprintf|vfprintf|puts|fputs|perror|syslog|exit|_exit|abort|err|errx|warn"
    none(found(names, r"(?<![\w.>])(%s)\(" % speaking), "libraries that print or exit")


def what_one_file_does_no_other_does():
    for owner, pattern in (("daemon/service/work.c", r"(?<!\w)(uv_queue_work|setpriority)\("),
                           ("daemon/frames/record.c", r"\bstate = DMN_RECORD_")):
        names = [n for n in source.files(ROOT) if source.is_c(n) and n.startswith("daemon/") and n != owner]
        none(found(names, pattern), "places that do what only %s may do" % owner)


def programs_have_standard_descriptors():
    mains = [n for n in source.files(ROOT) if n.endswith("/main.c") and n.startswith(("apps/", "daemon/", "tuner/"))]
    check(len(mains) >= 5, mains)
    none([n for n in mains if "\n    shown_begin();\n" not in source.text(ROOT, n)],
         "programs whose first pipe may get the number of standard output")


def arguments(text, at):
    """Those of the call whose parenthesis opens before `at`."""
    found_ones, depth, begin = [], 0, at
    while depth >= 0:
        literal = LITERAL.match(text, at)
        if not literal and text[at] in ",)" and depth == 0:
            found_ones.append(text[begin:at].strip())
            begin = at + 1
        depth += 0 if literal else (text[at] in "([{") - (text[at] in ")]}")
        at = literal.end() if literal else at + 1
    return found_ones


def prints_raw(function, given):
    """Does this call print a text that the source does not spell out?"""
    stream = given.pop(0) if function == "fprintf" else given.pop() if function == "fputs" else "stdout"
    if stream not in ("stdout", "stderr"):
        return False
    if not function.endswith("printf"):
        return bool(re.search("[a-z]", LITERAL.sub("", given[0]).split("?")[-1]))
    form = "".join(LITERAL.findall(given[0]))
    return not given[0].startswith('"') or (form != '"%*s"' and bool(re.search(r"%[-+ #0-9.*]*s", form)))


def terminals_get_no_raw_text():
    """Whatever is printed with %s, or is a variable, goes through shown_print.c: it may come from outside."""
    raw = []
    for n in source.files(ROOT):
        if not n.endswith((".c", ".h")) or not n.startswith(SHOWING) or n in MAY_SHOW:
            continue
        text = source.text(ROOT, n)
        for call in re.finditer(r"(?<![\w.>])(v?f?printf|f?puts)\(", text):
            if prints_raw(call[1], arguments(text, call.end())):
                raw.append("%s:%d: %s" % (n, text.count("\n", 0, call.start()) + 1, call[0]))
    none(raw, "texts that reach a terminal raw; use shown_print.c")


def c_is_formatted():
    formatter = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not formatter:
        return "clang-format is not installed"
    version = subprocess.run([formatter, "--version"], capture_output=True, text=True, check=False).stdout
    if " version " + FORMATTER not in version:
        return "clang-format is not of version 14: " + version.strip()
    names = [n for n in source.files(ROOT) if source.is_c(n)]
    done = subprocess.run([formatter, "--dry-run", "--ferror-limit=1", "-Werror", *names], cwd=ROOT, check=False,
                          capture_output=True, text=True)
    none(sorted({line.split(":")[0] for line in done.stderr.split("\n") if ": error:" in line}),
         "files that clang-format would change")
    return None


def scripts_are_clean():
    shellcheck = shutil.which("shellcheck")
    if not shellcheck:
        return "shellcheck is not installed"
    scripts = [n for n in code_files() if re.match(r"#!.*\b(ba|da)?sh\b", lines(n)[0])]
    done = subprocess.run([shellcheck, "-S", "warning", *scripts], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    check(done.returncode == 0, "shellcheck says:\n" + done.stdout)
    return None


main((files_are_of_one_sitting, lines_are_short, licence_comes_first, no_tabs_or_trailing_blanks,
      files_end_with_a_newline, nothing_is_left_to_do, no_paths_of_one_machine, waits_have_an_end,
      libraries_do_not_speak, what_one_file_does_no_other_does, programs_have_standard_descriptors, terminals_get_no_raw_text,
      c_is_formatted, scripts_are_clean))
