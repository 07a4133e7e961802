#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""protocol_man.py PAGE.md... - writes the protocol's pages as one scdoc page, for piped-protocol(7).

Knows what those pages use: headings, paragraphs, lists, tables, blocks and links. Of the pages after the first, what
stands before the first section (title and introduction) is left out.
"""
import re
import sys


def escape(text):
    return re.sub(r"([\\*_#~])", r"\\\1", text)


def inline(text):
    """`code` becomes bold, a link its text; the rest is escaped."""
    parts = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).split("`")
    return "".join("*%s*" % escape(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def table(lines):
    rows = [[c.strip() for c in line.strip().strip("|").split("|")] for line in lines]
    del rows[1]
    out = []
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            mark = ("[[" if c == 0 else ":[") if r == 0 else ("|" if c == 0 else ":")
            cell = "*%s*" % escape(cell) if r == 0 else inline(cell)
            out.append("%s %s" % (mark.ljust(2), cell or "-"))
    return out + [""]


def convert(lines):
    out = ["piped-protocol(7)", "", "# NAME", "", "piped-protocol - the frames protocol of piped(8), version 1", "",
           "# DESCRIPTION", ""]
    at = 1  # the title is the name
    while at < len(lines):
        line = lines[at].rstrip("\n")
        if line.startswith("## "):
            out += ["# " + escape(line[3:]).upper(), ""]
        elif line.startswith("```"):
            out.append("```")
            at += 1
            while not lines[at].startswith("```"):
                out.append(lines[at].rstrip("\n"))
                at += 1
            out += ["```", ""]
        elif line.startswith("|"):
            start = at
            while at < len(lines) and lines[at].startswith("|"):
                at += 1
            out += table(lines[start:at])
            continue
        elif re.match(r"- |\d+\. ", line):
            item = re.sub(r"^(- |\d+\. )", "", line)
            while at + 1 < len(lines) and lines[at + 1].startswith("  "):
                at += 1
                item += " " + lines[at].strip()
            out.append(("- " if line.startswith("-") else ". ") + inline(item))
            if at + 1 < len(lines) and not lines[at + 1].strip():
                out.append("")
        elif line:
            # a paragraph may be broken anywhere: markup never spans two of our lines
            while at + 1 < len(lines) and lines[at + 1].strip() and not re.match(r"[-|`#]|\d+\. ", lines[at + 1]):
                at += 1
                line += " " + lines[at].strip()
            out += [inline(line), ""]
        at += 1
    out += ["# SEE ALSO", "", "*piped*(8), *pipectl*(1), *libpiped*(3)"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n"


if __name__ == "__main__":
    text = []
    for page in sys.argv[1:]:
        with open(page, encoding="utf-8") as f:
            read = f.readlines()
        text += read if not text else ["\n"] + read[next(i for i, line in enumerate(read) if line.startswith("## ")):]
    sys.stdout.write(convert(text))
