# SPDX-License-Identifier: Apache-2.0
"""The reference of libpiped as a page, from the comments of its headers, whose form docs/house.md's neighbours have:

    /**
     * name() - purpose
     *
     * Text.
     *
     * @argument: what it is, who owns it     @another: ...
     *
     * Threads: ... Return: ...
     */
"""
import os
import re

HEADERS = ("ipc/piped.h", "ipc/decode/piped_decode.h")
BLOCK = re.compile(r"/\*\*(?P<comment>(?:(?!\*/).)*)\*/\s*(?P<code>PIPED_API[^;]*;)", re.S)
TYPE = re.compile(r"^(?P<comment>/\* [^/]*?\*/\n)?(?P<code>(?:enum|struct) (?P<name>\w+) \{\n.*?^\};)", re.M | re.S)
OPAQUE = re.compile(r"^struct (\w+); +/\* (.*?) \*/", re.M)
ARGUMENT = re.compile(r"@(\w+(?:, @\w+)*): ")


def lines_of(comment):
    return "\n".join(re.sub(r"^ ?\* ?", "", line.strip(" ")) for line in comment.split("\n")).strip("\n ")


def flat(text):
    return re.sub(r"\s+", " ", text).strip()


class Function:
    """name, signature, purpose, text (paragraphs), arguments {name: text}, returns; parameters of the declaration."""

    def __init__(self, comment, code):
        self.signature = re.sub(r"\n {10}", "\n", code[len("PIPED_API "):])  # so much shorter
        self.name, parameters = re.search(r"(\w+)\((.*)\);", flat(self.signature)).groups()
        self.parameters = [re.search(r"(\w+)$", p.strip()).group(1) for p in parameters.split(",") if p.strip() != "void"]
        self.void = bool(re.match(r"void \w", self.signature))
        paragraphs = [p for p in re.split(r"\n *\n", lines_of(comment)) if p.strip()]
        self.documented, _, self.purpose = flat(paragraphs[0]).partition("() - ")
        self.text, self.arguments, self.returns = [], {}, ""
        for p in paragraphs[1:]:
            if p.startswith("@"):
                parts = ARGUMENT.split(flat(p))
                for names, text in zip(parts[1::2], parts[2::2]):
                    self.arguments.update({n: text.strip() for n in names.replace("@", "").split(", ")})
                continue
            before, found, after = flat(p).partition("Return: ")
            self.text += [before.strip()] if before.strip() else []
            self.returns = after if found else self.returns


def functions(text):
    return [Function(m.group("comment"), m.group("code")) for m in BLOCK.finditer(text)]


def header_page(name, text):
    top = lines_of(re.search(r"/\*\*(.*?)\*/", text, re.S).group(1))
    title, _, body = top.partition("\n\n")
    out = ["## %s" % os.path.basename(name), "", flat(title.partition(" - ")[2]) + ".", ""]
    for p in re.split(r"\n *\n", body if _ else top):
        out += (["```c", re.sub(r"^    ", "", p, flags=re.M), "```", ""] if p.startswith("    ") else
                [re.sub(r"^(\w[\w ]*):", r"**\1:**", re.sub(r"(\w+\(\))", r"`\1`", flat(p))), ""])
    for f in functions(text):
        out += ["### %s()" % f.name, "", f.purpose[0].upper() + f.purpose[1:] + ".", "", "```c", f.signature, "```", ""]
        for p in f.text:
            out += [p, ""]
        if f.arguments:
            out += ["| argument | |", "| --- | --- |"] + ["| `%s` | %s |" % a for a in f.arguments.items()] + [""]
        if f.returns:
            out += ["**Returns** %s" % f.returns, ""]
    out += ["### Types of %s" % os.path.basename(name), ""]
    for n, what in OPAQUE.findall(text):
        out += ["`struct %s`: %s." % (n, what), ""]
    for m in TYPE.finditer(text):
        out += ["#### %s" % m.group("code").split(" {")[0], "", "```c", (m.group("comment") or "") + m.group("code"), "```", ""]
    return out


def page(source):
    out = ["# libpiped", "", "Read this page when you write a client in C or C++. It is made of the comments of the headers "
           "`piped.h` and `piped_decode.h`; [libpiped(3)](../man/libpiped.3.md) is an introduction, and "
           "[classify.c](../docs/examples/classify.c.md) a whole program. Arguments are borrowed during a call where nothing "
           "else is said. Where no threads are named, a function belongs to the one thread that uses the connection.", ""]
    for name in HEADERS:
        with open(os.path.join(source, name), encoding="utf-8") as f:
            out += header_page(name, f.read())
    return "\n".join(out)
