# SPDX-License-Identifier: Apache-2.0
"""The reference of the Python package as a page: what `piped.__all__` has, with signatures and docstrings. The sources are
parsed, not imported: neither NumPy nor libpiped need be there."""
import ast
import glob
import os
import re

LINE = 88  # columns of a signature


def modules(source, build):
    """Every module of the package by its name; one is made while building."""
    found = {}
    for folder in (os.path.join(source, "ipc", "python", "piped"), os.path.join(build, "ipc", "python", "piped")):
        for path in glob.glob(os.path.join(folder, "*.py")):
            with open(path, encoding="utf-8") as f:
                found.setdefault(os.path.basename(path)[:-3], f.read())
    return found


def exported(modules_):
    """The names of __all__."""
    for node in ast.parse(modules_["__init__"]).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []


def end_of_public(text, node):
    """The line of a class from which a comment says that methods are not for users."""
    lines = text.split("\n")[node.lineno - 1:node.end_lineno]
    for i, line in enumerate(lines):
        if re.match(r"    # (inside|what streams call)\b", line):
            return node.lineno + i
    return node.end_lineno + 1


def public(text, node):
    """Methods and properties of a class for its users."""
    return [n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and not n.name.startswith("_")
            and not any(getattr(d, "attr", "") == "setter" for d in n.decorator_list) and n.lineno < end_of_public(text, node)]


def signature(node, method):
    arguments = node.args
    if method and arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments.args = arguments.args[1:]
    returns = " -> " + ast.unparse(node.returns).strip("'") if node.returns else ""
    head = "%sdef %s(" % ("async " if isinstance(node, ast.AsyncFunctionDef) else "", node.name)
    whole = ast.unparse(arguments)
    if len(head + whole + returns) > LINE:  # one argument a line: commas within brackets do not part them
        whole = "\n    %s" % re.sub(r", (?![^\[]*\])", ",\n    ", whole)
    return "%s%s)%s" % (head, whole, returns)


def is_property(node):
    return any(getattr(d, "id", getattr(d, "attr", "")) in ("property", "cached_property") for d in node.decorator_list)


def found(modules_):
    """{name: (module's text, node)} of what the package exports."""
    wanted, there = set(exported(modules_)), {}
    for text in modules_.values():
        for node in ast.parse(text).body:
            name = getattr(node, "name", None) or getattr(getattr(node, "targets", [None])[0], "id", None)
            if name in wanted:
                there.setdefault(name, (text, node))
    return there


def commented(text, node):
    """The comment before an assignment."""
    lines, at = text.split("\n"), node.lineno - 2
    while lines[at].startswith("# "):
        at -= 1
    return "\n".join(line[2:] for line in lines[at + 1:node.lineno - 1])


def doc(node):
    return ast.get_docstring(node) or ""


def described(text, node):
    """A class: what it says, its values if it is an enumeration, and its methods."""
    bases = ", ".join(ast.unparse(b) for b in node.bases)
    head = "class %s%s" % (node.name, "(%s)" % bases if bases else "")
    out = ["### %s" % node.name, "", "```python", head, "```", "", doc(node), ""]
    values = [(ast.unparse(n.targets[0]), ast.unparse(n.value)) for n in node.body if isinstance(n, ast.Assign)
              and isinstance(n.targets[0], ast.Name) and n.targets[0].id.isupper()]
    fields = [(n.target.id, ast.unparse(n.annotation)) for n in node.body if isinstance(n, ast.AnnAssign)
              and isinstance(n.target, ast.Name) and not n.target.id.startswith("_")]
    if values:
        out += ["Values: " + ", ".join("`%s` = %s" % v for v in values) + ".", ""]
    if fields:
        out += ["| field | type |", "| --- | --- |"] + ["| `%s` | `%s` |" % (n, t.replace("|", "\\|")) for n, t in fields] + [""]
    for n in public(text, node):
        if is_property(n):
            kind = " -> " + ast.unparse(n.returns) if n.returns else ""
            out += ["#### %s.%s" % (node.name, n.name), "", "```python", "%s%s  # property" % (n.name, kind), "```", "", doc(n), ""]
        else:
            out += ["#### %s.%s()" % (node.name, n.name), "", "```python", signature(n, True), "```", "", doc(n), ""]
    return out


def page(source, build):
    there = found(modules(source, build))
    out = ["# Python reference", "", "Read this page when you look up a class or a function of the Python package `piped`. "
           "It is made of the package's docstrings; [Python](../docs/python.md) is the manual.", ""]
    exceptions = {"Error"}
    for _ in there:  # and what is made of them
        exceptions |= {n for n, (_, node) in there.items() if isinstance(node, ast.ClassDef)
                       and exceptions & {ast.unparse(b) for b in node.bases}}
    out += ["## Functions", ""]
    for name, (text, node) in sorted(there.items()):
        if isinstance(node, ast.FunctionDef):
            out += ["### %s()" % name, "", "```python", signature(node, False), "```", "", doc(node), ""]
    out += ["## Classes", ""]
    for name, (text, node) in sorted(there.items()):
        if isinstance(node, ast.ClassDef) and name not in exceptions:
            out += described(text, node)
    for name, (text, node) in sorted(there.items()):
        if isinstance(node, ast.Assign):
            out += ["### %s" % name, "", "```python", ast.unparse(node), "```", "", commented(text, node), ""]
    out += ["## Exceptions", ""]
    for name, (text, node) in sorted(there.items()):
        if isinstance(node, ast.ClassDef) and name in exceptions:
            out += described(text, node)
    return "\n".join(out)
