#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much there is: lines of the product and of its tests by folder, and what a range of commits added and removed.

Product lines are those of .c, .h, .py, .js, .css and .html files outside tests, bench and docs, with comments and blank
lines. Tests that try one folder are its tests; the others are tests of several.

usage: weight.py            prints the table
       weight.py --write    puts it into docs/house.md, as test_weight.py compares it
       weight.py A..B       lines added and removed by the commits of B that A lacks
"""
import collections
import os
import re
import subprocess
import sys

import source

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENDINGS = (".c", ".h", ".py", ".js", ".css", ".html")
NOT_PRODUCT = ("tests", "bench", "docs")
TESTS_OF = {"tests/kernels": "kernels", "tests/conformance": "kernels", "tests/interleavings": "pipeline", "tests/sim": "tuner"}
SEVERAL, TOTAL = "several folders", "total"
PAGE = "docs/house.md"
TABLE = re.compile(r"(?<=<!-- weight -->\n).*?(?=<!-- end of weight -->)", re.S)
OPENS = {".html": ("<!--", "-->"), ".py": ('"""', '"""')}


def is_product(name):
    return name.endswith(ENDINGS) and name.split("/")[0] not in NOT_PRODUCT


def is_test(name):
    return name.endswith(ENDINGS) and name.startswith("tests/")


def folder_of(name):
    """The row of a product's file, or of a test."""
    parts = name.split("/")
    if parts[0] != "tests":
        return parts[0] if len(parts) > 1 else "(root)"
    if parts[1] == "unit" and len(parts) > 3:
        return parts[2]
    return TESTS_OF.get("/".join(parts[:2]), SEVERAL)


def shares(text, ending):
    """(lines, lines of comments alone, blank lines). A docstring is a comment."""
    begin, end = OPENS.get(ending, ("/*", "*/"))
    comments = blanks = 0
    inside = False
    lines = text.splitlines()
    for line in (x.strip() for x in lines):
        if inside:
            comments += 1
            inside = end not in line
        elif not line:
            blanks += 1
        elif line.startswith(begin):
            comments += 1
            inside = end not in line[len(begin):]
        elif line.startswith("#" if ending == ".py" else "//"):
            comments += 1
    return len(lines), comments, blanks


class Row:
    def __init__(self):
        self.lines = self.comments = self.blanks = self.tests = 0

    def add(self, other):
        for key, value in vars(other).items():
            setattr(self, key, getattr(self, key) + value)

    def percent(self, of):
        return round(100 * of / self.lines) if self.lines else 0

    def cells(self):
        return [self.lines, self.percent(self.comments), self.percent(self.blanks), self.tests]


def measured(root, names=None):
    """{folder: Row}, with a row of all."""
    rows = collections.defaultdict(Row)
    for name in names or source.files(root):
        row = Row()
        if is_product(name):
            row.lines, row.comments, row.blanks = shares(source.text(root, name), os.path.splitext(name)[1])
        elif is_test(name):
            row.tests = len(source.text(root, name).splitlines())
        else:
            continue
        rows[folder_of(name)].add(row)
    total = Row()
    for row in rows.values():
        total.add(row)
    rows = dict(sorted(rows.items(), key=lambda item: (item[0] == SEVERAL, -item[1].lines)))
    rows[TOTAL] = total
    return rows


def table(rows):
    """Markdown. A folder is code; what is not one stands in plain letters."""
    text = "| folder | product lines | comments | blank | lines of tests |\n| --- | --- | --- | --- | --- |\n"
    for name, row in rows.items():
        shown = name if name in (SEVERAL, TOTAL, "(root)") else "`%s/`" % name
        figures = "%s | %d %% | %d %%" % (format(row.lines, ","), *row.cells()[1:3]) if row.lines else "- | - | -"
        text += "| %s | %s | %s |\n" % (shown, figures, format(row.tests, ",") if row.tests else "-")
    return text


def read_table(page):
    """{folder: [product lines, comments, blank, lines of tests]} of what table() wrote."""
    found = {}
    for line in TABLE.search(page).group(0).split("\n")[2:]:
        cells = [c.strip() for c in line.strip("|").split(" | ")]
        if len(cells) == 5:
            found[cells[0].strip("`/")] = [int(re.sub(r"\D", "", c) or 0) for c in cells[1:]]
    return found


def changed(root, commits):
    """{folder: [product lines added, removed, lines of tests added, removed]} of a range of commits."""
    done = subprocess.run(["git", "-C", root, "diff", "--numstat", "--no-renames", "-z", commits.replace("...", "..").replace(
        "..", "...")], capture_output=True, text=True, check=True)
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for line in done.stdout.split("\0"):
        added, removed, name = line.split("\t") if line else ("-", "-", "")
        at = 0 if is_product(name) else 2 if is_test(name) else None
        if at is None or added == "-":
            continue
        for row in (rows[folder_of(name)], rows[TOTAL]):
            row[at] += int(added)
            row[at + 1] += int(removed)
    return dict(sorted(rows.items(), key=lambda item: item[0] == TOTAL))


def print_changes(rows):
    print("%-16s %28s %28s" % ("", "product", "tests"))
    print("%-16s" % "folder" + 2 * " %8s %9s %9s" % (("added", "removed", "together") * 2))
    for name, (a, r, ta, tr) in rows.items():
        print("%-16s %8d %9d %+9d %8d %9d %+9d" % (name, a, -r, a - r, ta, -tr, ta - tr))


def main(arguments):
    if arguments and ".." in arguments[0]:
        print_changes(changed(ROOT, arguments[0]))
    elif arguments == ["--write"]:
        path, made = os.path.join(ROOT, PAGE), table(measured(ROOT))
        page = TABLE.sub(lambda _: made, source.text(ROOT, PAGE))
        with open(path, "w", encoding="utf-8") as f:
            f.write(page)
    elif arguments:
        sys.exit(__doc__)
    else:
        print(table(measured(ROOT)), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
