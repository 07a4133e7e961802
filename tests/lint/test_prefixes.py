#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names: what a room exports begins with one of its prefixes, by the table of docs/style.md, headers say their own name, and
no type of ours ends in _t.

usage: test_prefixes.py SOURCE_ROOT BUILD_ROOT
"""
import collections
import os
import re
import sys

import house_graph as graph
import rooms
import source
from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
PAGE = "docs/style.md"
ROW = re.compile(r"^\| ((?:`[\w/]+/`(?:, )?)+) \| ((?:`\w+_`(?:, )?)+) \|", re.M)
DEFINED = "TDBRCVWGS"  # letters of nm for what an object defines


def table(page):
    """[(folders, prefixes)], a row of the page each."""
    return [(re.findall(r"`([\w/]+)/`", folders), re.findall(r"`(\w+_)`", prefixes)) for folders, prefixes in ROW.findall(page)]


def prefixes_of(room, rows):
    """Those of the room's rows, or of the nearest folder above it that has rows."""
    while room:
        found = {p for folders, prefixes in rows for p in prefixes if room in folders}
        if found:
            return found
        room = os.path.dirname(room)
    return set()


def strangers(exported, rows):
    """What is wrong with {(room, file, symbol)}."""
    wrong = []
    for room, name, symbol in sorted(exported):
        known = prefixes_of(room, rows)
        if not known:
            wrong.append("%s: %s has no row" % (name, room))
        elif symbol != "main" and not symbol.startswith(tuple(known)):
            wrong.append("%s: %s, where %s has %s" % (name, symbol, room, " ".join(sorted(known))))
    return wrong


def exported_symbols():
    """{(room, file, symbol)} of the objects that this build made."""
    files = [f for f in graph.compiled(ROOT, BUILD) if rooms.room_of(f[0]) and os.path.exists(f[1])]
    check(files, "build everything first")
    source_of = {os.path.normpath(o): s for s, o, _ in files}
    objects = collections.defaultdict(list)
    for _, o, compiler in files:
        objects[compiler].append(os.path.normpath(o))
    return {(rooms.room_of(source_of[path]), source_of[path], symbol) for compiler, paths in objects.items()
            for path, symbol, letter in graph.symbols(graph.symbol_tool(compiler), paths)
            if letter in DEFINED and not symbol.startswith("_")}


def rows_of_the_page():
    rows = table(source.text(ROOT, PAGE))
    check(len(rows) > 15, "the table of %s was not found" % PAGE)
    return rows


def symbols_have_the_prefix_of_their_room():
    none(strangers(exported_symbols(), rows_of_the_page()), "exported symbols against the table of " + PAGE)


def prefixes_are_used():
    """Asked of the sources, as a build may leave out a program."""
    names = [n for n in source.files(ROOT) if source.is_c(n)]
    unused = []
    for folders, prefixes in rows_of_the_page():
        for folder in folders:
            text = "\n".join(source.text(ROOT, n) for n in names if n.startswith(folder + "/"))
            unused += ["%s of %s/" % (p, folder) for p in prefixes if not re.search(r"\b%s\w+\(" % p, text)]
    none(unused, "prefixes of %s that no file has" % PAGE)


def a_prefix_stands_once():
    count = collections.Counter(p for _, prefixes in rows_of_the_page() for p in prefixes)
    none([p for p, n in count.items() if n > 1], "prefixes with several rows")


def a_wrong_prefix_is_refused():
    rows = table("| room | prefix | what |\n| --- | --- | --- |\n| `a/` | `a_` | x |\n| `a/b/`, `c/` | `b_`, `bb_` | y |\n")
    check(rows == [(["a"], ["a_"]), (["a/b", "c"], ["b_", "bb_"])], rows)
    fine = {("a", "a/x.c", "a_go"), ("a/d", "a/d/x.c", "a_go"), ("a/b", "a/b/x.c", "bb_go"), ("c", "c/m.c", "main")}
    check(not strangers(fine, rows), strangers(fine, rows))
    for stranger in (("a/b", "a/b/x.c", "a_go"), ("a", "a/x.c", "bb_go"), ("a", "a/x.c", "go"), ("d", "d/x.c", "a_go")):
        check(len(strangers({stranger}, rows)) == 1, stranger, "is taken")


def own_name(text):
    """The path with which a source opens its first comment; None without one."""
    found = re.match(r"/\* SPDX.*\n\s*/\*\*?\s*\*?\s*([\w./-]+\.[ch]) - ", text)
    return found and found[1]


def headers_say_their_own_name():
    """A header opens with its path, or its name, and its purpose; nothing opens with another's."""
    check(own_name("/* SPDX-x */\n/**\n * a/b.h - does\n */\n") == "a/b.h" and own_name("/* SPDX-x */\n/* a.h */\n") is None)
    names = [n for n in source.files(ROOT) if source.is_c(n) and not n.startswith(("tests/", "bench/"))]
    said = {n: own_name(source.text(ROOT, n)) for n in names}
    check(len(said) > 100, "no sources found")
    none(["%s says %s" % (n, name) for n, name in said.items() if (name or n.endswith(".h")) and
          name not in (n, os.path.basename(n))], "files whose first comment names another, or no file")


def types_do_not_end_in_t():
    """POSIX keeps these names for itself."""
    pattern = re.compile(r"^\s*(?:(?:struct|union|enum) ([a-z]\w*_t) \{|\} ([a-z]\w*_t);)", re.M)
    check(pattern.search("struct a_t {") and pattern.search("} a_t;") and not pattern.search("struct a_tt {"))
    names = [n for n in source.files(ROOT) if source.is_c(n)]
    none(["%s: %s" % (n, a or b) for n in names for a, b in pattern.findall(source.text(ROOT, n))], "types of ours that end in _t")


main((symbols_have_the_prefix_of_their_room, prefixes_are_used, a_prefix_stands_once, a_wrong_prefix_is_refused,
      headers_say_their_own_name, types_do_not_end_in_t))
