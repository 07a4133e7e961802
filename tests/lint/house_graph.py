# SPDX-License-Identifier: Apache-2.0
"""Who uses whom among source files: by what they include, and by the symbols that their objects leave to the linker."""
import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess

import source

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def includes(root, name):
    """(kind, target) of each include; the kind is '"' or '<'."""
    return INCLUDE.findall(source.text(root, name))


def include_arrows(root, names):
    """{(file, header): {"include"}} for the headers that are among `names`."""
    known = set(names)
    return {(name, target): {"include"} for name in names for kind, target in includes(root, name)
            if kind == '"' and target in known}


def compiled(root, build):
    """[(source below root, object, compiler)] of what meson compiled."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = []
    for c in commands:
        words = shlex.split(c["command"])
        words = words[1:] if os.path.basename(words[0]) == "ccache" else words
        path = os.path.relpath(os.path.join(c["directory"], c["file"]), root)
        found.append((path, os.path.join(c["directory"], c["output"]), words[0]))
    return found


def symbol_tool(compiler):
    """The nm that understands this compiler's objects."""
    done = subprocess.run([compiler, "-print-prog-name=nm"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "nm"


def symbols(nm, objects):
    """[(object, symbol, letter)] of the global symbols: 'U' is one that another object has to define."""
    done = subprocess.run([nm, "-A", "-P", "-g", *objects], capture_output=True, text=True, check=True)
    found = []
    for line in done.stdout.split("\n"):
        path, colon, rest = line.rpartition(": ")
        words = rest.split()
        if colon and len(words) >= 2:
            found.append((path, words[0], words[1]))
    return found


def symbol_arrows(files):
    """{(user, definer): {symbol}} of [(source, object, compiler)].

    A file that is compiled several times, once for each instruction set or library, is one file. Where two programs define
    the same symbol, the one in the user's own folder is meant, otherwise any of them.
    """
    source_of = {os.path.normpath(o): s for s, o, _ in files if os.path.exists(o)}
    tools = {c: symbol_tool(c) for c in {c for _, _, c in files}}
    jobs = collections.defaultdict(list)
    for _, o, c in files:
        if os.path.normpath(o) in source_of:
            jobs[tools[c]].append(os.path.normpath(o))
    chunks = [(nm, objects[i:i + 100]) for nm, objects in jobs.items() for i in range(0, len(objects), 100)]
    definers, users = collections.defaultdict(set), collections.defaultdict(set)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for found in pool.map(lambda job: symbols(*job), chunks):
            for path, symbol, letter in found:
                name = source_of[os.path.normpath(path)]
                (users if letter in "Uvw" else definers)[symbol].add(name)
    arrows = collections.defaultdict(set)
    for symbol, names in users.items():
        for name in names - definers[symbol]:
            near = {d for d in definers[symbol] if d.split("/")[0] == name.split("/")[0]}
            for d in near or definers[symbol]:
                arrows[name, d].add(symbol)
    return dict(arrows)


def circles(arrows, node=lambda name: name):
    """The largest sets of nodes that all reach each other, sorted. Arrows within a node do not count."""
    to = collections.defaultdict(set)
    for a, b in arrows:
        if node(a) != node(b):
            to[node(a)].add(node(b))
    index, low, stack, found = {}, {}, [], []
    for start in sorted(to):
        if start in index:
            continue
        index[start] = low[start] = len(index)
        stack.append(start)
        work = [(start, iter(sorted(to[start])))]
        while work:
            at, rest = work[-1]
            step = next((n for n in rest if n not in index or n in stack), None)
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    circle = stack[stack.index(at):]
                    del stack[stack.index(at):]
                    if len(circle) > 1:
                        found.append(sorted(circle))
            elif step in index:
                low[at] = min(low[at], index[step])
            else:
                index[step] = low[step] = len(index)
                stack.append(step)
                work.append((step, iter(sorted(to[step]))))
    return sorted(found)
