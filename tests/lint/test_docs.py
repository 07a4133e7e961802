#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Documents are tested: links resolve, JSON examples parse, completions know every command and option.

usage: test_docs.py SOURCE_ROOT
"""
import json
import os
import re
import sys

import source
from cases import check, main, none

ROOT = sys.argv[1]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
HEADING = re.compile(r"^#+ +(.*)$", re.M)
PATH = re.compile(r"`((?:%s)/[\w./-]+)`" % "|".join(
    ("model", "kernels", "pipeline", "tuner", "governor", "ipc", "daemon", "systemd", "etc", "tests", "docs", "bench")))


def pages():
    return [n for n in source.files(ROOT) if n.endswith(".md")]


def anchors(name):
    """GitHub's rule: lower case, punctuation dropped, spaces to dashes."""
    return {re.sub(r"[^\w\- ]", "", h.lower().replace("`", "")).strip().replace(" ", "-")
            for h in HEADING.findall(FENCE.sub("", source.text(ROOT, name)))}


def links_resolve():
    broken = []
    for name in pages():
        for link in LINK.findall(FENCE.sub("", source.text(ROOT, name))):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not os.path.exists(os.path.join(ROOT, target)):
                broken.append("%s: %s" % (name, link))
            elif anchor and target.endswith(".md") and anchor not in anchors(target):
                broken.append("%s: %s has no such heading" % (name, link))
    none(broken, "broken links")


def named_files_exist():
    """`folder/file` in a page is a file, a folder, or a file that the build makes there."""
    missing = []
    known = source.files(ROOT)
    for name in pages():
        for path in PATH.findall(FENCE.sub("", source.text(ROOT, name))):
            path = path.rstrip("/.")
            stems = {path, path + ".c", path + ".h", path + ".in", path + ".scd"}
            made = any(k.startswith(os.path.dirname(path) + "/") and k.endswith("meson.build")
                       and os.path.basename(path) in source.text(ROOT, k) for k in known) or (
                           "*" in path or "{" in path)
            if not made and not os.path.exists(os.path.join(ROOT, path)) and not stems & set(known):
                missing.append("%s: %s" % (name, path))
    none(missing, "files that pages name and that are not there")


def json_examples_parse():
    bad = []
    for name in pages():
        for language, body in FENCE.findall(source.text(ROOT, name)):
            if language != "json":
                continue
            try:
                json.loads(body)
            except ValueError as e:
                bad.append("%s: %s in:\n%s" % (name, e, body))
    none(bad, "JSON examples that do not parse")


def commands_of(source_file, array):
    """Name -> set of options, from the table that a program's own help is made of."""
    table = source.text(ROOT, source_file).split(array + "[]", 1)[1].split("};", 1)[0]
    table = re.sub(r'"\s*\n\s*"', "", table)
    rows = re.findall(r'\{"(\w+)",\s*"([^"]*)",', table)
    check(len(rows) > 2, "the table of commands was not found in", source_file)
    return {name: set(re.findall(r"--([\w-]+)", usage)) for name, usage in rows}


PROGRAMS = {"pipectl": ("ipc/pipectl/main.c", "ctl_commands"), "pipesim": ("tuner/pipesim/main.c", "psim_commands")}


def completions_are_complete():
    missing = []
    for program, table in PROGRAMS.items():
        for name in ("etc/completions/%s.bash" % program, "etc/completions/_%s" % program,
                     "etc/completions/%s.fish" % program):
            words = set(re.findall(r"[\w-]+", source.text(ROOT, name)))
            dashed = {w.lstrip("-") for w in words}
            for command, options in commands_of(*table).items():
                if command not in words and command != "watch":
                    missing.append("%s: %s" % (name, command))
                missing += ["%s: %s --%s" % (name, command, o) for o in options if o not in dashed]
    none(missing, "commands and options without completion")


main((links_resolve, named_files_exist, json_examples_parse, completions_are_complete))
