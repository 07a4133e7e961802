#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of all operators in docs/operators.md again from the tables of model/lower/: ninja operators-page.

usage: operators_page.py OPERATORS_DOC docs/operators.md
"""
import collections
import subprocess
import sys
import textwrap

BEGIN, END = "<!-- all operators: made by operators_doc -->\n", "<!-- end of all operators -->\n"
DOMAINS = {"": "ONNX", "com.microsoft": "`com.microsoft`"}


def sets(since, until):
    return (f"{since} to {until}" if since and until else f"from {since} on" if since
            else f"up to {until}" if until else "")


def listed(rows):
    """The list as text. @rows: (name, domain, since, until)."""
    named = collections.defaultdict(list)
    for name, domain, since, until in rows:
        note = sets(int(since), int(until))
        for of in DOMAINS if domain == "*" else [domain]:
            named[of].append(f"{name} ({note})" if note else name)
    parts = [textwrap.fill(f"{len(named[of])} of {DOMAINS[of]}: {', '.join(sorted(named[of]))}.", width=130,
                           break_on_hyphens=False) for of in DOMAINS]
    return "\n\n".join(parts) + "\n"


def made(operators_doc, page):
    """What the page should be."""
    table = subprocess.run([operators_doc], capture_output=True, text=True, check=True, timeout=60).stdout
    with open(page, encoding="utf-8") as f:
        before, rest = f.read().split(BEGIN)
    return before + BEGIN + listed(line.split("\t") for line in table.splitlines()) + END + rest.split(END)[1]


if __name__ == "__main__":
    text = made(*sys.argv[1:3])
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(text)
