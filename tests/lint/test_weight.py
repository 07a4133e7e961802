#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""docs/house.md says how much there is, within some slack, and the product is not larger than it allows.

usage: test_weight.py SOURCE_ROOT
"""
import re
import subprocess
import sys
import tempfile

import source
import weight
from cases import check, main, none

ROOT = sys.argv[1]
SLACK, SLACK_LINES = 0.05, 100  # of lines: the larger one
SLACK_PERCENT = 1  # of the shares of comments and blank lines
LIMIT = re.compile(r"at most ([\d,]+) product lines")


def differences(said, there):
    """What a page's {folder: cells} has otherwise than the {folder: Row} that was counted."""
    wrong = ["%s: only one of both has it" % name for name in sorted(set(said) ^ set(there))]
    for name in set(said) & set(there):
        for what, a, b in zip(("product lines", "comments", "blank", "lines of tests"), said[name], there[name].cells()):
            slack = max(SLACK * b, SLACK_LINES) if "lines" in what else SLACK_PERCENT if there[name].lines > 1000 else 100
            if abs(a - b) > slack:
                wrong.append("%s, %s: %d, counted %d" % (name, what, a, b))
    return sorted(wrong)


def the_page_is_true():
    none(differences(weight.read_table(source.text(ROOT, weight.PAGE)), weight.measured(ROOT)),
         "differences between %s and tests/lint/weight.py; --write mends them" % weight.PAGE)


def the_product_is_not_larger_than_allowed():
    found = LIMIT.search(source.text(ROOT, weight.PAGE))
    check(found, weight.PAGE, "names no limit")
    lines, most = weight.measured(ROOT)[weight.TOTAL].lines, int(found[1].replace(",", ""))
    print("%d product lines of %d" % (lines, most))
    check(lines <= most, "%d product lines, at most %d" % (lines, most))


def comments_and_blanks_are_told_apart():
    check(weight.shares("/* a\n * b */\n\nint x; /* c */\n// d\n", ".c") == (5, 3, 1))
    check(weight.shares('"""a\n\nb"""\n# c\nx = 1\n\n"""d"""\n', ".py") == (7, 5, 1))
    check(weight.shares("<!-- a\n-->\n<p>\n", ".html") == (3, 2, 0))


def folders_are_those_of_the_table():
    for name, folder in (("apps/link/x.c", "apps"), ("base.h", "(root)"), ("tests/unit/model/a.c", "model"),
                         ("tests/kernels/a.c", "kernels"), ("tests/system/a.py", weight.SEVERAL), ("tests/run.py", weight.SEVERAL)):
        check(weight.folder_of(name) == folder, name, weight.folder_of(name))
    check(weight.is_product("ipc/a.js") and not weight.is_product("docs/a.py") and not weight.is_product("ipc/a.md"))


def a_wrong_figure_is_refused():
    row = weight.Row()
    row.lines, row.comments, row.blanks, row.tests = 10000, 1000, 1200, 4000
    there = {"a": row, weight.TOTAL: row}
    page = "<!-- weight -->\n%s<!-- end of weight -->" % weight.table(there)
    said = weight.read_table(page)
    check(said == {"a": [10000, 10, 12, 4000], weight.TOTAL: [10000, 10, 12, 4000]}, said)
    check(not differences(said, there), differences(said, there))
    check(not differences({**said, "a": [10400, 11, 12, 4150]}, there), "the slack")
    for wrong in ([10600, 10, 12, 4000], [10000, 8, 12, 4000], [10000, 10, 14, 4000], [10000, 10, 12, 4300]):
        check(len(differences({**said, "a": wrong}, there)) == 1, wrong, "is taken")
    check(len(differences({**said, "b": [1, 1, 1, 1]}, there)) == 1 and len(differences({"a": said["a"]}, there)) == 1)


def a_range_of_commits_is_counted():
    with tempfile.TemporaryDirectory() as folder:
        def git(*words):
            subprocess.run(["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", *words], check=True,
                           capture_output=True)

        def write(name, text):
            with open("%s/%s" % (folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        try:
            git("init", "-q", "-b", "main")
        except FileNotFoundError:
            return "git is not installed"
        for text in ("1\n2\n", "1\n3\n4\n"):
            write("base.h", text)
            write("page.md", text)
            git("add", ".")
            git("commit", "-qm", "next")
        counted = weight.changed(folder, "HEAD~1..HEAD")
        check(counted == {weight.TOTAL: [2, 1, 0, 0], "(root)": [2, 1, 0, 0]}, counted)
    return None


main((the_page_is_true, the_product_is_not_larger_than_allowed, comments_and_blanks_are_told_apart,
      folders_are_those_of_the_table, a_wrong_figure_is_refused, a_range_of_commits_is_counted))
