# SPDX-License-Identifier: Apache-2.0
"""The operators that the source has: the one list for the lint test and the conformance tests."""
import os
import re


def text(root, *path):
    with open(os.path.join(root, *path), encoding="utf-8") as f:
        return f.read()


def onnx(root):
    """Names of ONNX's operators that model/lower/ knows, from its tables."""
    names = []
    for file in sorted(os.listdir(os.path.join(root, "model", "lower"))):
        if file.endswith(".c"):
            for table in re.findall(r"^const struct mdl_lower_row \w+\[\] = \{(.*?)^\};",
                                    text(root, "model", "lower", file), re.DOTALL | re.MULTILINE):
                names += re.findall(r'\{"(\w+)", \w+, [^,}]+(?:, [^,}]+, [^,}]+(?:, ([\w"][\w".]*))?)?[^}]*\}', table)
    # ONNX and another domain may both have an operator of that name: it counts once
    own = {name for name, domain in names if domain in ("", "NULL")}
    return [name for name, domain in names if domain in ("", "NULL") or name not in own]


def kinds(root):
    """Names of the operators of a compiled model, from model/operators.h."""
    return re.findall(r"^    X\(\w+, (\w+), ", text(root, "model", "operators.h"), re.MULTILINE)


def documented(root):
    """Rows of the table in docs/operators.md: (ONNX's operators, what they become)."""
    rows = []
    for line in text(root, "docs", "operators.md").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if not line.startswith("| ") or cells[0] in ("operator", "---"):
            continue
        names = cells[0].split(", ")
        first = re.match(r"[A-Z][a-z]*", names[0])[0]
        # "ReduceMean, -Sum" names ReduceSum
        rows.append(([first + n[1:] if n.startswith("-") else n for n in names], cells[1]))
    return rows
