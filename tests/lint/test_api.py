#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The references are whole: every symbol of libpiped and every name of the Python package, with arguments and what comes back.

usage: test_api.py SOURCE_ROOT BUILD_ROOT
"""
import ast
import os
import re
import sys

import source
from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "docs", "site"))
import api_c  # noqa: E402  (the folder is known only now)
import api_python  # noqa: E402


def exported():
    """What libpiped.map exports."""
    return set(re.findall(r"^        (piped_\w+);", source.text(ROOT, "ipc/client/libpiped.map"), re.M))


def functions():
    return [f for name in api_c.HEADERS for f in api_c.functions(source.text(ROOT, name))]


def symbols_are_those_of_the_package():
    """libpiped0.symbols, with which Debian's tools compare the library."""
    listed = set(re.findall(r"^ (piped_\w+)@", source.text(ROOT, "etc/debian/libpiped0.symbols"), re.M))
    check(len(exported()) > 20, "the symbols were not found")
    none(sorted(exported() ^ listed), "differences between libpiped.map and libpiped0.symbols")


def every_symbol_is_in_the_reference():
    names, text = {f.name for f in functions()}, api_c.page(ROOT)
    none(sorted(exported() ^ names), "differences between libpiped.map and the documented functions")
    none([n for n in names if "### %s()\n" % n not in text], "functions that the page lacks")


def every_function_says_what_it_takes_and_returns():
    wrong = []
    for f in functions():
        wrong += ["%s: its comment is %s()'s" % (f.name, f.documented)] if f.documented != f.name else []
        wrong += ["%s: no purpose" % f.name] if not f.purpose else []
        wrong += ["%s: argument %s" % (f.name, p) for p in set(f.parameters) ^ set(f.arguments)]
        wrong += ["%s: what it returns" % f.name] if not f.void and not f.returns else []
    none(wrong, "gaps in the comments of libpiped's headers")


def every_type_is_in_the_reference():
    text = api_c.page(ROOT)
    for name in api_c.HEADERS:
        types = set(re.findall(r"^((?:struct|enum) \w+) \{", source.text(ROOT, name), re.M))
        check(types, name, "has no types")
        none([t for t in types if "\n%s {\n" % t not in text], "types of %s that the page lacks" % name)


def every_python_name_is_in_the_reference():
    modules = api_python.modules(ROOT, BUILD)
    if "_calls" not in modules:
        return "the Python client is not built"
    names, found, text = api_python.exported(modules), api_python.found(modules), api_python.page(ROOT, BUILD)
    check(len(names) > 20, "__all__ was not found")
    none([n for n in names if n not in found or not re.search(r"^### %s(\(\))?$" % n, text, re.M)], "names that the page lacks")
    gaps = [n for n, (t, node) in found.items() if not (
        api_python.commented(t, node) if isinstance(node, ast.Assign) else api_python.doc(node))]
    gaps += ["%s.%s" % (n, m.name) for n, (t, node) in found.items() if isinstance(node, ast.ClassDef)
             for m in api_python.public(t, node) if not api_python.doc(m)]
    none(gaps, "names of the Python package without a docstring")
    return None


main((symbols_are_those_of_the_package, every_symbol_is_in_the_reference, every_function_says_what_it_takes_and_returns,
      every_type_is_in_the_reference, every_python_name_is_in_the_reference))
