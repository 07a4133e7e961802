#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No exported function or variable is dead: used by tests and benches alone, or exported for nobody. No test is left unbuilt.

An object file says what it defines and wants (nm), a source whether a build with other options would use it. A function
that its own file uses may be exported for its tests.

usage: test_dead_code.py SOURCE_ROOT BUILD_ROOT
"""
import json
import os
import re
import subprocess
import sys

import source
from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
HOUSE = ("apps/", "base/", "daemon/", "governor/", "ipc/", "kernels/", "model/", "pipeline/", "tuner/")
OTHERS = ("tests/", "bench/")
# Symbol -> for whom it is kept. One that is not needed is a failure as well.
KEPT = {
}
PUBLIC = re.compile(r"^(piped_\w+|main)$")  # the installed header


def objects():
    """Object file -> source, of the house, its tests and benches."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = {}
    for c in commands:
        name = os.path.relpath(os.path.join(c["directory"], c["file"]), ROOT)
        path = os.path.join(c["directory"], c["output"])
        if name.startswith(HOUSE + OTHERS) and os.path.exists(path):
            found[path] = name
    return found


def symbols(paths):
    """Object -> (what it defines for others, what it wants)."""
    table = {p: (set(), set()) for p in paths}
    for i in range(0, len(paths), 200):
        done = subprocess.run(["nm", "-A", "-g", *paths[i:i + 200]], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            path, _, rest = line.rpartition(":")
            kind, name = rest.split()[-2:]
            table[path][1 if kind in "Uw" else 0].add(name)
    return table


def code(name):
    """The source of a file without its comments and strings."""
    text = re.sub(r"/\*.*?\*/", " ", source.text(ROOT, name), flags=re.S)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)


def words():
    """Word -> how often each source of the house has it; headers do not count, they declare."""
    found = {}
    for name in source.files(ROOT):
        if name.startswith(HOUSE) and name.endswith(".c"):
            for word in re.findall(r"\b[a-z]\w+\b", code(name)):
                uses = found.setdefault(word, {})
                uses[name] = uses.get(name, 0) + 1
    return found


def dead(table, sources, mentioned):
    """(file, symbol, what is wrong) for every export that is for nobody."""
    wanted = {}
    for path, (_, wants) in table.items():
        for name in wants:
            wanted.setdefault(name, set()).add(sources[path])
    wrong = set()
    for path, (defined, _) in table.items():
        name = sources[path]
        if not name.startswith(HOUSE):
            continue
        for symbol in defined:
            users = wanted.get(symbol, set()) - {name}
            own = mentioned.get(symbol, {}).get(name, 0)
            # A macro made a name that its source does not have: only the compiler knows who uses it.
            if own == 0 or any(u.startswith(HOUSE) for u in users) or set(mentioned[symbol]) - {name}:
                continue
            if own == 1:
                wrong.add((name, symbol, "is used by tests alone" if users else "is used by nobody"))
            elif not users:
                wrong.add((name, symbol, "could be static"))
    return sorted(wrong)


def exports_are_used():
    sources = objects()
    check(len(sources) > 300, "the objects were not found")
    found = [f for f in dead(symbols(sorted(sources)), sources, words()) if not PUBLIC.match(f[1])]
    none(["%s: %s %s" % f for f in found if f[1] not in KEPT], "exports for nobody")
    none(sorted(set(KEPT) - {f[1] for f in found}), "names of KEPT that are no longer needed: remove them")


def rules_can_fail():
    """What others use passes; what tests alone use, nobody uses or the own file alone uses is found."""
    table = {"a.o": ({"used", "tested", "lonely", "own", "seam", "made"}, set()), "b.o": (set(), {"used"}),
             "t.o": (set(), {"tested", "seam"})}
    sources = {"a.o": "model/a.c", "b.o": "model/b.c", "t.o": "tests/t.c"}
    counts = {"used": 1, "tested": 1, "lonely": 1, "own": 2, "seam": 2}
    found = dead(table, sources, {w: {"model/a.c": n} for w, n in counts.items()})
    check(found == [("model/a.c", "lonely", "is used by nobody"), ("model/a.c", "own", "could be static"),
                    ("model/a.c", "tested", "is used by tests alone")], found)


def is_listed(name, build):
    """Does the text of a meson.build list test_NAME.c? By NAME, or by what follows a prefix that a loop adds."""
    parts = name.split("_")
    return any(re.search(r"'(test_)?%s(\.c)?'" % re.escape("_".join(parts[i:])), build) for i in range(len(parts)))


def tests_are_built():
    check(is_listed("ref_math", "foreach name : ['math', 'move']") and not is_listed("ref_math", "['ref_move']"))
    names = [n for n in source.files(ROOT) if re.match(r"tests/.*/test_\w+\.c$", n)]
    check(len(names) > 60, "the tests were not found")
    none([n for n in names if not is_listed(os.path.basename(n)[5:-2],
                                            source.text(ROOT, os.path.join(os.path.dirname(n), "meson.build")))],
         "tests that no meson.build lists")


main((rules_can_fail, exports_are_used, tests_are_built))
