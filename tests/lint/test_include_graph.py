#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What may be included where, and that every header compiles alone. (Which room may use which: test_rooms.py.)

usage: test_include_graph.py SOURCE_ROOT BUILD_ROOT
"""
import concurrent.futures
import itertools
import json
import os
import re
import shlex
import subprocess
import sys

import house_graph
import rooms
import source
from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
# Outside libraries, by the headers that give them away, and the folders that may know them.
OUTSIDE = {
    r"uv\.h|uv/.*": ("daemon",),
    r"systemd/.*": ("daemon",),
    r"jansson\.h": ("apps", "base", "daemon", "ipc", "model", "tuner/json", "tuner/pipesim"),
    r"hwloc.*": ("governor",),
    r"gpiod\.h": ("governor",),
    r"protobuf-c/.*": ("model",),
    r"sodium\.h": ("base/leaves", "ipc/boards", "apps/pipectl"),
    r"zmq\.h": ("apps/link",),
    r"mpi\.h": ("apps/link",),
    r"cblas\.h|openblas.*": ("kernels",),
    r"xnnpack\.h": ("kernels",),
    r"pthreadpool\.h": ("kernels", "pipeline"),
    r"jpeglib\.h": ("apps/picture",),
    r"curses\.h": ("apps/pipectl",),
    r"microhttpd\.h|gnutls/.*": ("apps/http",),
}


def c_files():
    return [n for n in source.files(ROOT) if source.is_c(n)]


def includes(name):
    return house_graph.includes(ROOT, name)


def is_generated(name):
    """A header that some meson.build makes."""
    return any(os.path.basename(name) in source.text(ROOT, n) for n in source.files(ROOT)
               if os.path.basename(n) == "meson.build")


def rules_can_fail():
    """The graph refuses what it must: a sample of forbidden arrows."""
    for folder, target in (("model", "kernels/kernels.h"), ("tuner", "pipeline/pipeline.h"), ("ipc", "model/model.h"),
                           ("kernels", "pipeline/plan.h"), ("governor", "daemon/service/log.h"), ("pipeline", "tuner/x.h")):
        check(not rooms.may_use(folder + "/x.c", target), folder, "may include", target)


def programs_can_fail():
    """What pipesim may, its library may not; and pipesim may not everything."""
    program = "tuner/pipesim/x.c"
    for target in ("model/model.h", "tuner/solve/solve.h", "tuner/pipesim/pipesim.h", "pipeline/plan.h", "base/base.h"):
        check(rooms.may_use(program, target), "pipesim may not include", target)
    for target in ("pipeline/pipeline.h", "kernels/kernels.h", "governor/topology.h", "ipc/wire.h", "daemon/service/log.h"):
        check(not rooms.may_use(program, target), "pipesim may include", target)
    for target in ("model/model.h", "tuner/pipesim/pipesim.h"):
        check(not rooms.may_use("tuner/x.c", target), "tuner may include", target)
    check(not rooms.may_use("daemon/x.c", "tuner/pipesim/pipesim.h"), "daemon may include pipesim")


def includes_are_root_relative():
    wrong = []
    for name in c_files():
        for kind, target in includes(name):
            if ".." in target.split("/"):
                wrong.append("%s includes %s" % (name, target))
            elif kind == '"' and not os.path.exists(os.path.join(ROOT, target)) and not is_generated(target):
                wrong.append("%s includes %s, which is not there" % (name, target))
    none(wrong, "includes that are not relative to the root")


def without_conditions(text):
    return re.sub(r"^#[ \t]*if.*?^#[ \t]*endif", "", text, flags=re.M | re.S)


def system_includes_come_first():
    """Apart from a module's own header, which may be the very first, and what is under a condition."""
    wrong = []
    for name in rooms.house_files(ROOT):
        found = house_graph.INCLUDE.findall(without_conditions(source.text(ROOT, name)))
        kinds = [kind for kind, _ in (found[1:] if name.endswith(".c") else found)]
        if '"' in kinds and "<" in kinds[kinds.index('"'):]:
            wrong.append(name)
    none(wrong, "files with system includes behind ours")


def brought_by(name):
    """What a file has by the headers that are its own: its module's, the private ones of its folder, and base/base.h."""
    here, found = os.path.dirname(name), set()
    for _, target in includes(name):
        own = name.endswith(".c") and (target == name[:-2] + ".h" or (
            os.path.dirname(target) == here and target.endswith("private.h")))
        if own or target == "base/base.h":
            found |= reached_from(target)
    return found | reached_from("base/base.h") if "base/base.h" in found else found


def reached_from(name, found=frozenset()):
    """All that a header of ours includes, whatever is under a condition left out."""
    found = set(found)
    if os.path.exists(os.path.join(ROOT, name)):
        for _, target in house_graph.INCLUDE.findall(without_conditions(source.text(ROOT, name))):
            if target not in found:
                found = reached_from(target, found | {target})
    return found


def nothing_is_included_again():
    """What a file's own headers bring. Where base/base.h is to be had, it brings the system's usual headers."""
    wrong = []
    for name in rooms.house_files(ROOT):
        again = brought_by(name) & {t for _, t in house_graph.INCLUDE.findall(without_conditions(source.text(ROOT, name)))}
        wrong += ["%s includes %s again" % (name, target) for target in sorted(again)]
    none(wrong, "headers that a file's own headers, or base/base.h, bring")


def outside_libraries_stay_in_their_rooms():
    wrong = []
    for name in rooms.house_files(ROOT):
        for kind, target in includes(name):
            for pattern, folders in OUTSIDE.items():
                if kind == "<" and re.fullmatch(pattern, target) and not name.startswith(
                        tuple(f + "/" for f in folders)):
                    wrong.append("%s includes <%s>" % (name, target))
    none(wrong, "libraries outside their room")


def compile_words(entry):
    """Return: how an entry of compile_commands.json is compiled: without compiler, output and dependencies."""
    words = itertools.dropwhile(lambda word: word[0] != "-", shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in ("-o", "-MF", "-MQ"):
            next(words)
        elif word not in ("-c", "-MD"):
            kept.append(word)
    return kept


def compile_flags():
    """Folder -> (compiler, flags) from what meson compiles there."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    flags = {}
    for c in commands:
        path = os.path.relpath(os.path.join(c["directory"], c["file"]), ROOT)
        compiler = next(w for w in shlex.split(c["command"]) if os.path.basename(w) != "ccache")
        words, keep = iter(compile_words(c)), []
        for word in words:
            if word == "-isystem":
                keep += [word, next(words)]
            elif word.startswith(("-I", "-D", "-std", "-isystem")):
                keep.append(word)
        flags.setdefault(os.path.dirname(path), (compiler, keep))
    return flags


def shown_by_its_module(name, compiled):
    """A module that begins with its own header has shown that it compiles alone."""
    module = name[:-2] + ".c"
    return module in compiled and "#pragma once" in source.text(ROOT, name) and includes(module)[0][1] == name


def headers_compile_alone():
    path = os.path.join(BUILD, "compile_commands.json")
    if not os.path.exists(path):
        return "no compile_commands.json in the build folder"
    flags = compile_flags()
    with open(path, encoding="utf-8") as f:
        compiled = {os.path.relpath(os.path.join(BUILD, entry["file"]), ROOT) for entry in json.load(f)}
    # Where only a feature that is off would compile a header, its library may be missing as well.
    jobs = []
    for name in (n for n in c_files() if n.endswith(".h") and not shown_by_its_module(n, compiled)):
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


main((rules_can_fail, programs_can_fail, includes_are_root_relative, system_includes_come_first,
      nothing_is_included_again, outside_libraries_stay_in_their_rooms, headers_compile_alone))
