#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which folder may include what, and that every header compiles alone.

usage: test_include_graph.py SOURCE_ROOT BUILD_ROOT
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

import source
from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
# The house's graph: model, governor and ipc need nothing of ours.
ALLOWED = {
    "model": (),
    "kernels": ("model/",),
    "governor": (),
    "ipc": (),
    "pipeline": ("kernels/", "model/"),
    # Plain data only: a search touches no thread, file or clock.
    "tuner": ("pipeline/plan.h", "pipeline/stats.h", "governor/"),
    "daemon": ("ipc/", "tuner/", "pipeline/", "governor/", "kernels/", "model/"),
}
# Programs inside a library's folder: they may include that folder and what is named here, the library nothing of theirs.
# pipesim loads networks, reads files and prints; it needs no more of the pipeline than the tuner does.
PROGRAMS = {
    "tuner/pipesim": ("model/", "pipeline/plan.h", "pipeline/stats.h"),
}
# Outside libraries, by the headers that give them away, and the folders that may know them.
OUTSIDE = {
    r"uv\.h|uv/.*": ("daemon",),
    r"systemd/.*": ("daemon",),
    r"jansson\.h": ("daemon", "ipc", "model", "tuner/pipesim"),
    r"hwloc.*": ("governor",),
    r"gpiod\.h": ("governor",),
    r"protobuf-c/.*": ("model",),
    r"cblas\.h|openblas.*": ("kernels",),
    r"xnnpack\.h": ("kernels",),
    r"pthreadpool\.h": ("kernels", "pipeline"),
    r"jpeglib\.h": ("ipc/pipectl",),
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def c_files():
    return [n for n in source.files(ROOT) if source.is_c(n)]


def house_files():
    return [n for n in c_files() if n.split("/")[0] in ALLOWED]


def includes(name):
    return INCLUDE.findall(source.text(ROOT, name))


def is_generated(name):
    """A header that some meson.build makes."""
    return any(os.path.basename(name) in source.text(ROOT, n) for n in source.files(ROOT)
               if os.path.basename(n) == "meson.build")


def program_of(name):
    """The program of PROGRAMS that a file belongs to, or None."""
    return next((p for p in PROGRAMS if name.startswith(p + "/")), None)


def may_include(name, target):
    """May the file `name` include our header `target`?"""
    folder, program = name.split("/")[0], program_of(name)
    if program_of(target) != program and program_of(target):
        return False
    if target.split("/")[0] == folder or target.count("/") == 0:
        return True
    allowed = PROGRAMS[program] if program else ALLOWED[folder]
    return bool(allowed) and target.startswith(allowed)


def arrows_point_up():
    none(["%s includes %s" % (name, target) for name in house_files() for kind, target in includes(name)
          if kind == '"' and not may_include(name, target)], "includes against the graph")


def rules_can_fail():
    """The graph refuses what it must: a sample of forbidden arrows."""
    for folder, target in (("model", "kernels/kernels.h"), ("tuner", "pipeline/pipeline.h"), ("ipc", "model/model.h"),
                           ("kernels", "pipeline/plan.h"), ("governor", "daemon/log.h"), ("pipeline", "tuner/x.h")):
        check(not may_include(folder + "/x.c", target), folder, "may include", target)


def programs_can_fail():
    """What pipesim may, its library may not; and pipesim may not everything."""
    program = "tuner/pipesim/x.c"
    for target in ("model/model.h", "tuner/solve.h", "tuner/pipesim/pipesim.h", "pipeline/plan.h", "base.h"):
        check(may_include(program, target), "pipesim may not include", target)
    for target in ("pipeline/pipeline.h", "kernels/kernels.h", "governor/topology.h", "ipc/wire.h", "daemon/log.h"):
        check(not may_include(program, target), "pipesim may include", target)
    for target in ("model/model.h", "tuner/pipesim/pipesim.h"):
        check(not may_include("tuner/x.c", target), "tuner may include", target)
    check(not may_include("daemon/x.c", "tuner/pipesim/pipesim.h"), "daemon may include pipesim")


def includes_are_root_relative():
    wrong = []
    for name in c_files():
        for kind, target in includes(name):
            if ".." in target.split("/"):
                wrong.append("%s includes %s" % (name, target))
            elif kind == '"' and not os.path.exists(os.path.join(ROOT, target)) and not is_generated(target):
                wrong.append("%s includes %s, which is not there" % (name, target))
    none(wrong, "includes that are not relative to the root")


def system_includes_come_first():
    """Apart from a module's own header, which may be the very first, and what is under a condition."""
    wrong = []
    for name in house_files():
        text = re.sub(r"^#[ \t]*if.*?^#[ \t]*endif", "", source.text(ROOT, name), flags=re.M | re.S)
        found = INCLUDE.findall(text)
        kinds = [kind for kind, _ in (found[1:] if name.endswith(".c") else found)]
        if '"' in kinds and "<" in kinds[kinds.index('"'):]:
            wrong.append(name)
    none(wrong, "files with system includes behind ours")


def outside_libraries_stay_in_their_rooms():
    wrong = []
    for name in house_files():
        for kind, target in includes(name):
            for pattern, folders in OUTSIDE.items():
                if kind == "<" and re.fullmatch(pattern, target) and not name.startswith(
                        tuple(f + "/" for f in folders)):
                    wrong.append("%s includes <%s>" % (name, target))
    none(wrong, "libraries outside their room")


def compile_flags():
    """Folder -> (compiler, flags) from what meson compiles there."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    flags = {}
    for c in commands:
        path = os.path.relpath(os.path.join(c["directory"], c["file"]), ROOT)
        words = shlex.split(c["command"])
        if os.path.basename(words[0]) == "ccache":
            words = words[1:]
        keep, skip = [], False
        for word in words[1:]:
            if skip or word in ("-o", "-MF", "-MQ", "-c"):
                skip = not skip and word != "-c"
                continue
            if word.startswith(("-I", "-D", "-std", "-isystem")):
                keep.append(word)
        flags.setdefault(os.path.dirname(path), (words[0], keep))
    return flags


def headers_compile_alone():
    path = os.path.join(BUILD, "compile_commands.json")
    if not os.path.exists(path):
        return "no compile_commands.json in the build folder"
    flags = compile_flags()
    # Where only a feature that is off would compile a header, its library may be missing as well.
    jobs = []
    for name in (n for n in c_files() if n.endswith(".h")):
        folder = os.path.dirname(name)
        while folder not in flags and folder:
            folder = os.path.dirname(folder)
        compiler, options = flags.get(folder) or flags["governor"]
        jobs.append((name, [compiler, *options, "-I" + ROOT, "-Wall", "-Werror", "-Wno-unused-function",
                            "-Wno-unused-variable", "-fsyntax-only", "-x", "c", "-"]))

    def compile_one(job):
        name, command = job
        done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False,
                              input='#include "%s"\n#include "%s"\n' % (name, name))
        return None if done.returncode == 0 else "%s: %s" % (name, "\n    ".join(done.stderr.split("\n")[:6]))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        none([r for r in pool.map(compile_one, jobs) if r], "headers that do not compile alone")
    return None


main((arrows_point_up, rules_can_fail, programs_can_fail, includes_are_root_relative, system_includes_come_first,
      outside_libraries_stay_in_their_rooms, headers_compile_alone))
