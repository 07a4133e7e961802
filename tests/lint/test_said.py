#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What sources say of themselves: each file what it is, comments only of files that are there, -1 only as a value.

usage: test_said.py SOURCE_ROOT
"""
import os
import re
import sys

import rooms
import source
from cases import check, main, none

ROOT = sys.argv[1]
COMMENT = re.compile(r"/\*.*?\*/", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
NAMED = re.compile(r"(?<![\w/.*<-])((?:[a-z0-9_]+/)*[a-z]\w{2,}\.[ch])\b")
# Not ours: the kernel's, and what a build makes.
OTHERS = {"cpufreq_cooling.c", "processor_thermal.c", "cpuidle_cooling.c", "intel_powerclamp.c", "interface_text.h", "page_text.h",
          "search_names.h", "name.c"}
FUNCTION = re.compile(r"^[a-z][\w \t*]*?\b(\w+)\([^;{}]*\)\n\{", re.M)


def opens_with_a_comment(text):
    return re.match(r"/\* SPDX[^\n]*\*/\n\s*/\*", text) is not None


def sources_say_what_they_are():
    """Who has a header of the same name says it there."""
    check(opens_with_a_comment("/* SPDX-x: y */\n/* Does it. */\n") and not opens_with_a_comment("/* SPDX-x: y */\n\nint x;\n"))
    none([n for n in rooms.house_files(ROOT, ".c") if not os.path.exists(os.path.join(ROOT, n[:-2] + ".h"))
          and not opens_with_a_comment(source.text(ROOT, n))],
         "files without a header of their own, and without a comment below the first line that says what they are")


def unknown_files(text, known):
    return [m for c in COMMENT.findall(text) for m in NAMED.findall(STRING.sub("", c))
            if m not in known and os.path.basename(m) not in OTHERS]


def comments_name_files_that_are_there():
    names = source.files(ROOT)
    known = {os.path.basename(n) for n in names} | set(names) | {"/".join(n.split("/")[i:]) for n in names for i in range(1, 4)}
    check(unknown_files("/* see gone_file.c, \"not_this.c\" */ x.y_z.c", known) == ["gone_file.c"])
    none(["%s: %s" % (n, m) for n in rooms.house_files(ROOT) for m in unknown_files(source.text(ROOT, n), known)],
         "files that comments name and that are not there")


def comment_above(text, at):
    """The comment that ends right above this place, or ""."""
    found = re.search(r"/\*(?:(?!\*/).)*\*/\s*(?:static |inline )*[\w \t*]*\Z", text[:at], re.S)
    return found[0] if found else ""


def bare(text, headers):
    """Functions that return -1, which is -EPERM, and whose comment does not say that it is a value."""
    wrong = []
    functions = list(FUNCTION.finditer(text))
    for i, f in enumerate(functions):
        body = text[f.end():functions[i + 1].start() if i + 1 < len(functions) else len(text)]
        if "return -1;" in body:
            said = [comment_above(text, f.start())] + [comment_above(h, m.start()) for h in headers
                                                       for m in re.finditer(r"^[a-z][^;{}]*\b%s\(" % f[1], h, re.M)]
            if not any(re.search(r"-1\b|negative|< 0|exit code|as \w+\(\)", s) for s in said):
                wrong.append(f[1])
    return wrong


def minus_one_is_a_value():
    check(bare("int f(void)\n{\n    return -1;\n}\n", ["/** f() - Return: 0 or an error. */\nint f(void);\n"]) == ["f"])
    check(not bare("int f(void)\n{\n    return -1;\n}\n", ["/** f() - Return: an index; -1: none. */\nint f(void);\n"]))
    headers = {n: source.text(ROOT, n) for n in rooms.house_files(ROOT, ".h")}
    wrong = []
    for n in rooms.house_files(ROOT, ".c"):
        text = source.text(ROOT, n)
        if "return -1;" in text:
            near = [h for name, h in headers.items() if os.path.basename(name) in text or name[:-2] == n[:-2]]
            wrong += ["%s: %s()" % (n, f) for f in bare(text, near)]
    none(wrong, "functions that return -1 where nothing says that it is a value: an error is -errno")


main((sources_say_what_they_are, comments_name_files_that_are_there, minus_one_is_a_value))
