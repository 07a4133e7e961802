#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The house's graph: which room uses which, no circle of files or modules, one file for each name, files of one sitting.

An arrow is an include, or a call: a symbol that one file's object leaves undefined and another file's object defines.
exceptions.txt lists what is known to be wrong and must go; a line that is no longer needed is a failure as well.

usage: test_rooms.py SOURCE_ROOT BUILD_ROOT
"""
import ast
import collections
import os
import statistics
import subprocess
import sys
import tempfile

import house_graph as graph
import rooms
import source
from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
C_LINES_MAX, H_LINES_MAX = 500, 150
OUTSIDE = tuple(folder + "/" for folder in rooms.OUTSIDE)
EXCEPTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exceptions.txt")


def c_files():
    return [n for n in source.files(ROOT) if source.is_c(n)]


def thing(name):
    """What a file belongs to: a header, its private header and the implementation are one thing."""
    return rooms.stem(name).removesuffix("_private")


def excepted(kind):
    """The lines of exceptions.txt that are of this kind, without it."""
    if not os.path.exists(EXCEPTIONS):
        return set()
    with open(EXCEPTIONS, encoding="utf-8") as f:
        lines = [line.split("#")[0].split(None, 1) for line in f]
    return {words[1].strip() for words in lines if len(words) == 2 and words[0] == kind}


def hold(kind, found, seen=None):
    """Fails with what is found ({line: why}) but not excepted, and with what is excepted but no longer found.

    @seen tells whether this build could have shown an excepted line at all.
    """
    known = excepted(kind)
    none(["%s %s%s" % (kind, line, why and ": " + why) for line, why in sorted(found.items()) if line not in known],
         "things against the house's graph (see docs/house.md)")
    none(["%s %s" % (kind, line) for line in sorted(known - set(found)) if seen is None or seen(line)],
         "lines of tests/lint/exceptions.txt that are no longer needed: remove them")


def include_arrows():
    return graph.include_arrows(ROOT, rooms.house_files(ROOT))


def compiled():
    return [f for f in graph.compiled(ROOT, BUILD) if rooms.room_of(f[0])]  # without what the build has made


def symbol_arrows():
    files = compiled()
    missing = [o for _, o, _ in files if not os.path.exists(o)]
    check(files and not missing, "build everything first; not built:", len(missing), *missing[:3])
    return graph.symbol_arrows(files)


def upward(arrows, may_use=rooms.may_use):
    """{"a -> b": by what} for the arrows that the rooms do not allow."""
    return {"%s -> %s" % arrow: " ".join(sorted(by)[:4]) for arrow, by in arrows.items() if not may_use(*arrow)}


def in_circles(arrows):
    """{thing: the others of its circle}."""
    return {name: " ".join(n for n in circle if n != name) for circle in graph.circles(arrows, thing) for name in circle}


def seen_in_build(line):
    """Do all files of a line about calls take part in this build? (Some stand in for others, by option.)"""
    built = {rooms.stem(s) for s, _, _ in compiled()}
    names = [rooms.stem(n) for n in line.split(" -> ")]
    return all(n in built or not os.path.exists(os.path.join(ROOT, n + ".c")) for n in names)


def includes_go_down():
    hold("include", upward(graph.include_arrows(ROOT, c_files())))


def calls_go_down():
    hold("call", upward(symbol_arrows()), seen_in_build)


def no_circle_of_includes():
    hold("include-circle", in_circles(include_arrows()))


def no_circle_of_calls():
    hold("call-circle", in_circles(symbol_arrows()), seen_in_build)


def imports_of(name, text):
    """{(file, file)}: what a module of a package takes from its neighbours, also for types alone."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom) and n.level == 1]
    modules = [m for n in nodes for m in ([n.module] if n.module else [a.name for a in n.names])]
    return {(name, os.path.join(os.path.dirname(name), m + ".py")) for m in modules}


def no_circle_of_modules():
    check(graph.circles(imports_of("p/a.py", "from .b import x\n") | imports_of("p/b.py", "def f():\n    from . import a\n")) ==
          [["p/a.py", "p/b.py"]], "a circle is not found")
    names = [n for n in source.files(ROOT) if n.endswith(".py") and not n.startswith(OUTSIDE)]
    found = set().union(*(imports_of(n, source.text(ROOT, n)) for n in names))
    check(len(found) > 20, found)
    none([" ".join(c) for c in graph.circles(found)], "modules that need each other")


def private_headers_stay_at_home():
    hold("private", {"%s -> %s" % arrow: "" for arrow in include_arrows() if arrow[1].endswith("_private.h")
                     and os.path.dirname(arrow[0]) != os.path.dirname(arrow[1])})


def every_file_is_in_a_room():
    none(sorted(n for n in rooms.house_files(ROOT) if os.path.dirname(n) not in rooms.ROOMS),
         "files in no room of tests/lint/rooms.py")
    none([r for r in rooms.ROOMS if r in rooms.below(r)], "rooms above themselves")
    unknown = {w.strip("!") for words in rooms.ROOMS.values() for w in words.split()} - set(rooms.ROOMS)
    none(sorted(w for w in unknown if not any(os.path.exists(os.path.join(ROOT, w + end)) for end in ("", ".h", ".c"))),
         "words of tests/lint/rooms.py that are neither a room nor a file")


def names_are_told_apart():
    """Within a library, or the daemon, a file is found by its name, so it stands once; in apps/ the folder is half the name."""
    folders = collections.defaultdict(set)
    for name in rooms.house_files(ROOT):
        if not name.startswith("apps/"):
            folders[name.split("/")[0], os.path.basename(name)].add(os.path.dirname(name))
    hold("name", {base: " ".join(sorted(where)) for (_, base), where in folders.items() if len(where) > 1 and base != "main.c"})


def files_are_short():
    lines = {n: source.text(ROOT, n).count("\n") for n in c_files() if not n.startswith("tests/")}
    sources = [count for n, count in lines.items() if n.endswith(".c")]
    print("%d .c files: median %d lines, longest %d" % (len(sources), statistics.median(sources), max(sources)))
    for count, name in sorted(((c, n) for n, c in lines.items() if n.endswith(".h") and c > H_LINES_MAX), reverse=True):
        print("%s has %d lines (headers: %d)" % (name, count, H_LINES_MAX))
    check(150 <= statistics.median(sources) <= 250, "the median is not within 150 to 250")
    hold("size", {n: "%d lines" % count for n, count in lines.items() if n.endswith(".c") and count > C_LINES_MAX})


def a_forbidden_arrow_is_refused():
    for name, target in (
            ("model/common/graph.c", "model/onnx/walk.h"), ("model/lower/lower.c", "model/quant/quant.h"),
            ("model/ir/ir.c", "model/compile/compile.c"), ("kernels/f32/dw.c", "kernels/i8/qgemm.h"),
            ("kernels/net.c", "kernels/select/choose.h"), ("kernels/f32/dw.c", "kernels/net.c"),
            ("daemon/models/models.c", "daemon/frames/conn.c"), ("daemon/frames/conn.c", "daemon/plans/trial.h"),
            ("daemon/plans/trial.c", "daemon/frames/room.h"), ("daemon/adapt/adapter.c", "daemon/control/auth.c"),
            ("daemon/service/log.c", "daemon/config/config.h"), ("daemon/control/status.c", "daemon/daemon.h"),
            ("tuner/solve/front.c", "tuner/search/search.h"), ("tuner/learn.c", "tuner/solve/solve.h"),
            ("tuner/eval.c", "pipeline/pipeline.c"), ("ipc/wire.c", "apps/pipectl/common/pipectl.h"),
            ("tuner/adapt/adapt.c", "tuner/pipesim/report.h"), ("pipeline/ring.c", "tuner/eval.c"),
            ("governor/sysfs.c", "ipc/wire.c"), ("apps/pipectl/main.c", "governor/sysfs.h"),
            ("base/near_word.c", "ipc/wire.h"), ("ipc/wire.c", "base/cli/cli.h"), ("ipc/wire.c", "loose.h"),
            ("loose.c", "base/base.h"), ("ipc/wire.c", "tests/unit/harness.h")):
        check(upward({(name, target): {"x"}}), name, "may use", target)
    for name, target in (
            ("daemon/control/status.c", "daemon/service/log.h"), ("daemon/daemon.c", "daemon/control/control.h"),
            ("kernels/f32/dw.c", "kernels/primitive.h"), ("tuner/eval.c", "pipeline/plan.c"),
            ("tuner/search/exact.c", "tuner/solve/solve.c"), ("model/load.c", "model/onnx/onnx.c"),
            ("pipeline/team.c", "kernels/net.c"), ("daemon/plans/planner.c", "tuner/search/search.c"),
            ("kernels/int8cal/runner.c", "model/model.h"), ("tests/unit/x.c", "daemon/daemon.h"),
            ("kernels/f32/dw.c", "base/base.h")):
        check(not upward({(name, target): {"x"}}), name, "may not use", target)


def a_circle_is_refused():
    chain = {("p/a.c", "p/b.h"): {"x"}, ("p/b.c", "p/c.c"): {"x"}, ("p/a.c", "p/a.h"): {"x"},
             ("p/a.c", "p/a_private.h"): {"x"}, ("p/a_private.h", "p/a.h"): {"x"}, ("p/d.c", "p/b.h"): {"x"}}
    check(in_circles(chain) == {}, in_circles(chain))
    check(in_circles({**chain, ("p/c.c", "p/a.h"): {"x"}}) == {"p/a": "p/b p/c", "p/b": "p/a p/c", "p/c": "p/a p/b"})
    two = {**chain, ("p/b.h", "p/a.h"): {"x"}, ("p/e.c", "p/f.c"): {"x"}, ("p/f.c", "p/e.c"): {"x"}}
    check(graph.circles(two, thing) == [["p/a", "p/b"], ["p/e", "p/f"]], graph.circles(two, thing))


def an_object_shows_its_calls():
    """Two files, really compiled: one arrow, then one in each direction."""
    if not compiled():
        return "nothing was compiled"
    compiler = compiled()[0][2]
    with tempfile.TemporaryDirectory() as folder:
        def arrows_of(low, high):
            files = []
            for name, text in (("kernels/common/low.c", low), ("kernels/select/high.c", high)):
                path = os.path.join(folder, os.path.basename(name))
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                subprocess.run([compiler, "-c", path, "-o", path + ".o"], check=True)
                files.append((name, path + ".o", compiler))
            return graph.symbol_arrows(files)

        down = arrows_of("int low(void) { return 1; }\n", "int low(void);\nint high(void) { return low(); }\n")
        check(down == {("kernels/select/high.c", "kernels/common/low.c"): {"low"}}, down)
        check(not upward(down) and not in_circles(down), "an arrow down is refused")
        both = arrows_of("int high(void);\nint low(void) { return high(); }\n",
                         "int low(void);\nint high(void) { return low(); }\n")
        check(upward(both) == {"kernels/common/low.c -> kernels/select/high.c": "high"}, upward(both))
        check(len(in_circles(both)) == 2, in_circles(both))
    return None


main((includes_go_down, calls_go_down, no_circle_of_includes, no_circle_of_calls, no_circle_of_modules,
      private_headers_stay_at_home, every_file_is_in_a_room, names_are_told_apart, files_are_short,
      a_forbidden_arrow_is_refused, a_circle_is_refused, an_object_shows_its_calls))
