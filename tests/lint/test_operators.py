# SPDX-License-Identifier: Apache-2.0
"""Operators: docs/operators.md lists those that the source has, and what they become.

    test_operators.py SOURCE_ROOT

That each has a reference, a name and a place in every table the compiler and the linker see to.
"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import operators  # noqa: E402

ROOT = sys.argv[1]


def complain(what, names):
    for name in sorted(names):
        print(f"{name}: {what}")
    return len(names)


def main():
    known = collections.Counter(operators.onnx(ROOT))
    kinds = operators.kinds(ROOT)
    rows = operators.documented(ROOT)
    written = collections.Counter(name for names, _ in rows for name in names)
    becomes = set(re.findall(r"\w+", " ".join(what for _, what in rows)))
    if len(known) < 50 or len(kinds) < 20:
        print(f"found only {len(known)} operators and {len(kinds)} kinds: have their tables moved?")
        return 1
    bad = complain("stands twice in the tables of model/lower/",
                   [n for n, count in known.items() if count > 1])
    bad += complain("stands twice in docs/operators.md", [n for n, count in written.items() if count > 1])
    bad += complain("is in a table of model/lower/ but not in docs/operators.md; add it there",
                    set(known) - set(written))
    bad += complain("is in docs/operators.md but in no table of model/lower/", set(written) - set(known))
    bad += complain("is in model/operators.h, but docs/operators.md does not say what becomes it",
                    set(kinds) - becomes)
    print(f"{len(known)} operators of ONNX, {len(kinds)} of a model")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
