#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes _calls.py, the typed methods of the control socket, from the interface: so every method and every error is
there.

usage: make_calls.py INTERFACE OUTPUT

A method that takes `examples` sends their bytes with a descriptor; one whose comment says what descriptors come with the
call takes `fds`. A method whose comment speaks of "more" returns a Monitor. """
import collections
import keyword
import re
import sys
import textwrap

TYPES = {"string": "str", "int": "int", "float": "float", "bool": "bool", "object": "Dict[str, Any]"}
HAND_MADE = ("NotStarted",)  # connections raise it, too: in errors.py
Field = collections.namedtuple("Field", "name type optional")
Method = collections.namedtuple("Method", "name text takes gives")

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The methods and errors of io.piped, made from ipc/io.piped.varlink by ipc/python/make_calls.py."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Type

from .errors import ControlError, NotStarted
from .varlink import Caller, Example, Examples, Monitor

__all__ = ["Calls", "ERRORS", "Example"]
'''


def python_type(text):
    return "List[%s]" % python_type(text[2:]) if text.startswith("[]") else TYPES[text]


def fields(text):
    found = []
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, kind = (part.strip() for part in one.split(":"))
        found.append(Field(name, python_type(kind.lstrip("?")), kind.startswith("?")))
    return found


def parse(text):
    """Return: methods, and errors as (name, fields). A comment belongs to what follows it without an empty line."""
    methods, errors = [], []
    pattern = re.compile(r"((?:^#[^\n]*\n)*)^(method|error) (\w+) ?\(([^)]*)\)(?: -> \(([^)]*)\))?$", re.M)
    for comment, kind, name, takes, gives in pattern.findall(text):
        said = "\n".join(line[1:].strip() for line in comment.splitlines())
        if kind == "error":
            errors.append((name, fields(takes)))
        else:
            methods.append(Method(name, said, fields(takes), fields(gives)))
    there = set(re.findall(r"^(?:method|error) (\w+)", text, re.M))
    missed = there - {m.name for m in methods} - {e[0] for e in errors}
    if missed:
        sys.exit("make_calls: not understood: %s" % ", ".join(sorted(missed)))
    return methods, errors


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def optional(field):
    return "Optional[%s]" % field.type if field.optional else field.type


def word(field):
    """A parameter's name in Python: class is class_."""
    return field.name + "_" * keyword.iskeyword(field.name)


def docstring(text, indent):
    """A line that is nearly full goes on in the next one."""
    text = re.sub(r"^(.{100,})\n", r"\1 ", text, flags=re.M)
    lines = [wrapped for line in text.split("\n") for wrapped in (textwrap.wrap(line, 110 - len(indent)) or [""])]
    body = ("\n" + indent).join(lines).replace("\\", "\\\\").replace('"""', "'''")
    return '%s"""%s%s"""' % (indent, body, "\n" + indent if len(lines) > 1 else " " if body.endswith('"') else "")


def reply_class(method):
    rows = ["    %s: %s%s" % (f.name, optional(f), " = None" if f.optional else "")
            for f in sorted(method.gives, key=lambda f: f.optional)]
    return "\n\n@dataclass(frozen=True)\nclass %sReply:\n    \"\"\"What %s answers.\"\"\"\n%s\n" % (
        method.name, snake(method.name), "\n".join(rows))


def method_text(method):
    more = '"more"' in method.text
    takes = [f._replace(type="Examples") if f.name == "examples" else f for f in method.takes]
    must, may = [f for f in takes if not f.optional], [f for f in takes if f.optional]
    words = ["self"] + ["%s: %s" % (word(f), f.type) for f in must]
    # The model comes first everywhere and may be given without its name; what else may be left out has to be named.
    model = [f for f in may if f.name == "model"]
    words += ["model: Optional[str] = None"] * len(model)
    rest = ["%s: %s = None" % (word(f), optional(f)) for f in may if f.name != "model"]
    fds = bool(re.search(r"\bcomes? with the call\b", method.text))
    rest += ["fds: Sequence[int] = ()"] * fds
    words += ["*"] * bool(rest) + rest
    reply = "%sReply" % method.name if method.gives else "None"
    split = ",\n            " if len(takes) > 4 else ", "
    given = "{%s}" % split.join('"%s": %s' % (f.name, word(f)) for f in takes if f.name != "examples")
    beside = ", examples" * any(f.name == "examples" for f in takes) + ", fds=fds" * fds
    kind = "Monitor[%s]" % reply if more else reply
    head = "    def %s(" % snake(method.name)
    one = "%s%s) -> %s:" % (head, ", ".join(words), kind)
    if len(one) > 118:
        one = "%s\n            %s) -> %s:" % (head, (",\n            ").join(words), kind)
    call = 'self.%s("%s", %s%s%s)' % ("_monitor" if more else "_call" if method.gives else "call", method.name, given,
                                      ", %s" % reply if method.gives else "", beside)
    body = "        return %s" % call if method.gives else "        %s" % call
    if len(body) > 118:
        body = body.replace("{", "{\n            ", 1)
    return "\n%s\n%s\n%s\n" % (one, docstring(method.text, "        "), body)


def error_class(name, parts):
    if name in HAND_MADE:
        return ""
    row = ("\n    @property\n    def %s(self) -> %s:\n        \"\"\"As the daemon says it.\"\"\"\n"
           "        return %s(self.parameters.get(\"%s\", \"\"))\n")
    rows = "".join(row % (f.name, f.type, f.type, f.name) for f in parts)
    return "\n\nclass %s(ControlError):\n    \"\"\"io.piped.%s\"\"\"\n%s" % (name, name, rows)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        methods, errors = parse(f.read())
    out = HEAD
    out += "".join(error_class(*e) for e in errors)
    listed = ",\n    ".join('"%s": %s' % (e[0], e[0]) for e in errors)
    out += "\n\nERRORS: Dict[str, Type[ControlError]] = {\n    %s}\n" % listed
    out += "".join(reply_class(m) for m in methods if m.gives)
    out += '\n\nclass Calls(Caller):\n    """Every method of io.piped; each call has a connection of its own."""\n'
    out += "    errors = ERRORS\n"
    out += "".join(method_text(m) for m in methods)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(out)


if __name__ == "__main__":
    main()
