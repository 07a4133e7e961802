#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of messages quote what the sources say, and have every message that asks for an action.

A message is the code at the beginning of a list's item; "..." stands for what varies.

usage: test_messages.py SOURCE_ROOT
"""
import functools
import re
import sys

import source
from cases import check, main, none

ROOT = sys.argv[1]
PAGES = ("docs/troubleshooting.md", "docs/messages_daemon.md", "docs/messages_others.md")
ITEM = re.compile(r"^ *- `([^`]+)`", re.M)
C_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*')
PY_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
VARIES = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:ll|l|z|h|hh|j)?[a-zA-Z]|%(?=PRI)")
CALL = re.compile(r"\bdmn_log(?:_with|_limited)?\(\s*(LOG_\w+),(.*?)\);", re.S)
SHORT = 12  # letters: a message without a longer part must be the whole of a text


def page(name):
    return source.text(ROOT, name)


@functools.lru_cache
def messages():
    """All that the pages quote, as (page, message)."""
    return [(n, re.sub(r"\s+", " ", m)) for n in PAGES for m in ITEM.findall(page(n))]


def joined(literals):
    """Literals that stand one after the other, as one text in which NUL is what varies."""
    parts = re.findall(r'"((?:[^"\\\n]|\\.)*)"|(PRI\w+)', literals)
    text = "".join(p[0] or p[1] for p in parts)
    text = VARIES.sub("\0", text.replace("%%", "\1"))
    text = re.sub(r"\0?PRI\w+", "\0", text)
    return text.replace("\\n", "").replace('\\"', '"').replace("\1", "%")


def uncommented(name):
    return re.sub(r"/\*.*?\*/", "", source.text(ROOT, name), flags=re.S)


@functools.lru_cache
def texts():
    """Every text of the programs, between lines."""
    found = set()
    for name in source.files(ROOT):
        if name.startswith("tests/") or not name.endswith((".c", ".h", ".py")) and name != "etc/install-deps":
            continue
        if name.endswith((".c", ".h")):
            found |= {joined(t) for t in C_TEXT.findall(uncommented(name))}
        else:
            found |= {joined(t) for t in PY_TEXT.findall(source.text(ROOT, name))}
    return "\n%s\n" % "\n".join(found)


def said(message):
    """Does any program say it? Looks at the texts that have its longest part."""
    longest, at = max(message.split("..."), key=len), 0
    while (at := texts().find(longest, at)) >= 0:
        end = texts().find("\n", at + 1)
        if says(texts()[texts().rfind("\n", 0, at + 1) + 1:end], message):
            return True
        at = end
    return False


def says(text, message):
    """Is @message, with its ..., what @text says?"""
    parts = message.split("...")
    if max(len(p) for p in parts) < SHORT:
        return re.sub("\0+", "...", text) == message
    at = 0
    for p in parts:
        at = text.find(p, at)
        if at < 0:
            return False
        at += len(p)
    return True


def quoted_messages_are_there():
    check(len(messages()) > 200, "the messages were not found: %d" % len(messages()))
    none(["%s: %s" % m for m in messages() if not said(m[1])], "messages that no program prints")


def none_is_quoted_twice():
    seen = set()
    none(["%s: %s" % m for m in messages() if m in seen or seen.add(m)], "messages that stand twice in a page")


def warnings_and_errors_of_the_daemon_are_there():
    there, count = [m for n, m in messages() if n != "docs/messages_others.md"], 0
    missing = []
    for name in source.files(ROOT):
        if name.startswith("daemon/") and name.endswith(".c"):
            for level, rest in CALL.findall(uncommented(name)):
                literal = C_TEXT.search(rest)
                if level not in ("LOG_ERR", "LOG_WARNING") or not literal:
                    continue
                text = joined(literal.group(0))
                count += 1
                if re.search(r"[a-z]{3}", text) and not any(says(text, m) for m in there):
                    missing.append("%s: %s" % (name, text.replace("\0", "...")))
    check(count > 50, "the calls of the log were not found: %d" % count)
    none(missing, "warnings and errors that no page explains")


def reasons_of_frames_are_there():
    """Why a frame has no result, and each status."""
    rows = re.findall(r'\{"\w+", IPC_\w+,\s*("[^}]*")\}', source.text(ROOT, "daemon/frames/clients.c"))
    check(len(rows) > 10, "the reasons were not found")
    there = {m for _, m in messages()}
    # who cancels knows why
    none([t for t in map(joined, rows) if t not in there and t != "cancelled"], "reasons that docs/troubleshooting.md lacks")
    names = set(re.findall(r"^    PIPED_([A-Z_]+) = \d+", re.search(
        r"enum piped_status \{(.*?)\};", source.text(ROOT, "ipc/piped.h"), re.S).group(1), re.M))
    check(len(names) == 12, "the statuses were not found")
    rows = set(re.findall(r"^\| `(\w+)` \|", page(PAGES[0]), re.M))
    none(sorted({n.lower() for n in names} - rows), "statuses that docs/troubleshooting.md lacks")


def exit_codes_are_there():
    header = next(n for n in source.files(ROOT) if n.endswith(".h") and "enum ctl_exit" in source.text(ROOT, n))
    body = re.search(r"enum ctl_exit \{(.*?)\};", source.text(ROOT, header), re.S).group(1)
    codes = set(re.findall(r"CTL_\w+ = (\d+)", body)) | {str(i) for i, _ in enumerate(re.findall(r"^ +CTL_\w+", body, re.M))}
    check(len(codes) >= 5, "the exit codes were not found:", codes)
    table = page(PAGES[0]).partition("## Exit codes of pipectl")[2].partition("\n## ")[0]
    none(sorted(codes - set(re.findall(r"^\| (\d+) \|", table, re.M))), "exit codes that docs/troubleshooting.md lacks")


def exceptions_are_there():
    text = source.text(ROOT, "ipc/python/piped/errors.py")
    names = set(re.findall(r'"(\w+)"', re.search(r"__all__ = \[(.*?)\]", text, re.S).group(1))) - {"Error"}
    rows = set(re.findall(r"^\| `(\w+)` \|", page("docs/messages_others.md"), re.M))
    none(sorted(names ^ rows), "differences between the exceptions of Python and docs/messages_others.md")


def keys_are_there():
    """`limits.streams` is a key of the configuration; `--option` an option of some program."""
    code = source.text(ROOT, "daemon/config/key_rows.h")
    wrong = []
    for name in PAGES:
        found = re.findall(r"`((?:limits|planner|boards|adapt|gpio|log)\.\w+)`", page(name))
        check(found or name == PAGES[2], name, "names no key")
        wrong += ["%s: %s" % (name, k) for k in found if '"%s"' % k not in code]
    none(wrong, "keys that are not there")


main((quoted_messages_are_there, none_is_quoted_twice, warnings_and_errors_of_the_daemon_are_there,
      reasons_of_frames_are_there, exit_codes_are_there, exceptions_are_there, keys_are_there))
