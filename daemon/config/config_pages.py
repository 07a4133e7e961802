#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes etc/piped.json, and the keys in piped.json(5), again from the table of configuration keys: ninja config-pages.

usage: config_pages.py CONFIG_DOC etc/piped.json daemon/piped.json.5.scd
"""
import subprocess
import sys

BEGIN, END = "; keys: made by config_doc\n", "; end of keys\n"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def made(config_doc, config, page):
    """What the two files should be: {path: text}."""
    def output(what):
        return subprocess.run([config_doc, what], capture_output=True, text=True, check=True, timeout=60).stdout
    before, rest = read(page).split(BEGIN)
    return {config: output("config"), page: before + BEGIN + output("man") + END + rest.split(END)[1]}


if __name__ == "__main__":
    for path, text in made(*sys.argv[1:4]).items():
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
