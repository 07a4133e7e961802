#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes etc/piped.json, and the keys in piped.json(5), again from the table of configuration keys: ninja config-pages.

usage: config_pages.py CONFIG_DOC etc/piped.json daemon/piped.json.5.scd
"""
import itertools
import json
import re
import subprocess
import sys
import textwrap

BEGIN, END = "; keys: made by config_doc\n", "; end of keys\n"
HEAD = """// Configuration of piped, with every default: see piped.json(5).
// Files in piped.json.d/*.json override single keys. After a change: pipectl reload.
{
    // Models to serve. Empty: the small network that comes with piped.
    // {"name": "resnet", "path": "/var/lib/piped/models/resnet50.onnx"}
    "models": [],

    // Execution places instead of those found. Empty: as found.
    // {"name": "big", "cpus": "4-7", "speed": 1.0}
    "eps": [],

"""
ADVANCED = """# ADVANCED KEYS

Their defaults suit; *pipectl config* lists those that a file sets, and with *--all* the others.

"""


def table(config_doc):
    """The table of keys: {"keys": [...], "items": [...]}."""
    return json.loads(subprocess.run([config_doc], capture_output=True, text=True, check=True, timeout=60).stdout)


def member(row, indent, first_advanced):
    """A key of piped.json with its comment."""
    prefix = indent + "// "
    return "%s%s\n%s(%s)\n%s%s: %s" % (
        "\n%sAdvanced: the defaults suit.\n" % prefix if first_advanced else "",
        textwrap.fill(row["help"], 90, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False),
        prefix, row["range"], indent, json.dumps(row["key"].split(".")[-1]), json.dumps(row["default"]))


def config_text(keys):
    parts, before = [], False
    for group, rows in itertools.groupby(keys, lambda r: r["key"].rpartition(".")[0]):
        members = []
        for row in rows:
            members.append(member(row, "        " if group else "    ", row["advanced"] and not before))
            before = row["advanced"]
        text = ",\n".join(members)
        parts.append('    "%s": {\n%s\n    }' % (group, text) if group else text)
    return HEAD + ",\n".join(parts) + "\n}\n"


def escaped(text):
    return re.sub(r"([_*\\<>])", r"\\\1", text)


def man_keys(keys, advanced):
    return "".join("*%s*\n\t%s Value: %s; default %s.%s\n\n" % (
        escaped(k["key"]), escaped(k["help"]), escaped(k["range"]), json.dumps(k["default"]),
        " Takes effect at the next start." if k["restart"] else "") for k in keys if k["advanced"] == advanced)


def man_text(keys, items):
    of_items = "".join("*%s[].%s*\n\t%s Value: %s; %s.\n\n" % (
        i["array"], i["key"], escaped(i["help"]), i["type"],
        "required" if i["required"] else "default " + i["default"] if i["default"] else "optional")
        for i in items)
    return man_keys(keys, False) + of_items + ADVANCED + man_keys(keys, True)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def made(config_doc, config, page):
    """What the two files should be: {path: text}."""
    of = table(config_doc)
    before, rest = read(page).split(BEGIN)
    return {config: config_text(of["keys"]),
            page: before + BEGIN + man_text(of["keys"], of["items"]) + END + rest.split(END)[1]}


if __name__ == "__main__":
    for path, text in made(*sys.argv[1:4]).items():
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
