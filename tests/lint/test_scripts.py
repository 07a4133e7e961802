#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts: what etc/install-deps knows, that etc/quickstart does its work, that Python modules have what others ask for.

usage: test_scripts.py SOURCE_ROOT BUILD_ROOT
"""
import ast
import os
import re
import subprocess
import sys

import source
from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]


def run(*command, **more):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          timeout=240, **more)


def install_deps_knows_its_groups():
    script = os.path.join(ROOT, "etc", "install-deps")
    for group in ("build", "test", "metrics", "site", "networks", "bench", "node", "nspawn", "builds", "packages"):
        done = run(script, "--list", group)
        check(done.returncode == 0 and done.stdout.split(), group, done.stderr)
    check(run(script, "nonsense").returncode == 2, "an unknown group is taken")
    check(run(script, "--nonsense").returncode == 2, "an unknown option is taken")


def packages_can_be_made_with_its_groups():
    """What dpkg-buildpackage asks for is in the groups that the README names, or comes with a package of them."""
    provided = {"debhelper-compat": "debhelper", "dh-sequence-installsysusers": "debhelper",
                "dh-sequence-python3": "dh-python"}
    with open(os.path.join(ROOT, "etc", "debian", "control"), encoding="utf-8") as f:
        asked = re.search(r"^Build-Depends:(.*?)^\S", f.read(), re.M | re.S).group(1)
    names = [re.match(r"[^\s:(\[]+", item.strip()).group(0) for item in asked.split(",")]
    have = run(os.path.join(ROOT, "etc", "install-deps"), "--list", "build", "packages").stdout.split()
    none([n for n in names if provided.get(n, n) not in have], "Build-Depends that install-deps does not install")


def quickstart_serves():
    """In the developer's build folder, which it uses."""
    if os.path.realpath(BUILD) != os.path.join(os.path.realpath(ROOT), "build"):
        return "this is not the build folder that etc/quickstart uses"
    done = run(os.path.join(ROOT, "etc", "quickstart"))
    said = done.stdout + done.stderr
    check(done.returncode == 0, "exit", done.returncode, said)
    check(re.search(r"^serving by 0-3@\S+\|4-11@", said, re.M) or "only one core" in said, "no two stages:", said)
    accuracy = re.search(r"accuracy ([0-9.]+) %", said)
    check(accuracy and float(accuracy.group(1)) >= 97, "accuracy:", said)
    boxes = re.findall(r"^  (\d) +[0-9.]+ %  x ", said, re.M)
    check(sorted(boxes) == list("034467"), "digits in the picture:", boxes, said)
    check("stopped cleanly" in said, "no clean end:", said)
    return None


def names_of(tree):
    """Return: what a module has at its top, imports among it."""
    names, todo = set(), list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        todo += ast.iter_child_nodes(node)
    return names


def modules_have_what_is_asked_of_them():
    """Long tests and rare options import modules of ours, too, and a name that has moved would show only there."""
    trees = {n: ast.parse(source.text(ROOT, n)) for n in source.files(ROOT) if n.endswith(".py")}
    bad = []
    for path, tree in trees.items():
        def ours(module):
            beside = os.path.join(os.path.dirname(path), module + ".py")
            found = [beside] if beside in trees else [n for n in trees if os.path.basename(n) == module + ".py"]
            return names_of(trees[found[0]]) if len(found) == 1 else None

        nodes = list(ast.walk(tree))
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        has = {a.asname or a.name: ours(a.name) for n in nodes if isinstance(n, ast.Import) for a in n.names}
        for n in nodes:
            if isinstance(n, ast.ImportFrom) and n.module and ours(n.module) is not None:
                bad += ["%s: %s has no %s" % (path, n.module, a.name) for a in n.names if a.name not in ours(n.module)]
            elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id not in stored:
                names = has.get(n.value.id)
                if names is not None and n.attr not in names and not n.attr.startswith("__"):
                    bad.append("%s:%d: %s.%s" % (path, n.lineno, n.value.id, n.attr))
    none(bad, "names that a module of ours does not have")


main((install_deps_knows_its_groups, packages_can_be_made_with_its_groups, quickstart_serves,
      modules_have_what_is_asked_of_them))
