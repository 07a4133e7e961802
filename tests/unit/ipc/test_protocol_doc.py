#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables and examples of docs/protocol*.md against ipc/protocol.h and the C codec.

    test_protocol_doc.py DOC... HEADER WIRE_DUMP   checks
    test_protocol_doc.py --update DOC...           writes the hexdumps of the examples again from their fields

Nothing is imported from the project: fields are packed here by the pages' own tables.
"""
import os
import re
import shlex
import struct
import subprocess
import sys

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "char[64]": 64, "u32[8]": 32}
CODES = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "u32[8]": "<8I"}
STRUCTS = {"Header": "ipc_header", "HELLO": "ipc_hello", "WELCOME": "ipc_welcome", "OPEN": "ipc_open",
           "OPENED": "ipc_opened", "Tensor": "ipc_tensor", "POOL": "ipc_pool", "FRAME and INLINE": "ipc_frame",
           "RESULT": "ipc_result", "CREDIT": "ipc_credit", "EVENT": "ipc_event_msg"}
EXAMPLE = re.compile(r"^```example (\w+)\n(.*?)^```$", re.M | re.S)
PAYLOADS = {"FRAME": "FRAME and INLINE", "INLINE": "FRAME and INLINE"}


def check(condition, *text):
    if not condition:
        raise AssertionError(" ".join(str(t) for t in text))


def equal(got, wanted, what):
    check(got == wanted, what + ": page has", repr(got), "code has", repr(wanted))


def sections(text):
    """{heading: body}"""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def table(body):
    """Rows of the first table of a section as dicts by its heading row."""
    lines = [line for line in body.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    check(len(rows) > 2, "no table")
    for row in rows:
        equal(len(row), len(rows[0]), "cells in row %s" % row)
    return [dict(zip(rows[0], row)) for row in rows[2:]]


class Layout:
    """Packs and unpacks one table of offsets."""

    def __init__(self, rows):
        self.fields = [(r["field"], r["type"], int(r["offset"])) for r in rows]
        at = 0
        for name, kind, offset in self.fields:
            equal(offset, at, "offset of " + name)
            at += SIZES[kind]
        self.bytes = at

    def pack(self, values):
        out = b""
        for name, kind, _ in self.fields:
            value = values[name]
            if kind == "char[64]":
                out += value.replace("_", " ").encode().ljust(64, b"\0")
            elif kind == "u32[8]":
                out += struct.pack("<8I", *[int(v) for v in value.split(",")])
            else:
                out += struct.pack(CODES[kind], int(value))
        return out

    def unpack(self, data):
        values = {}
        for name, kind, offset in self.fields:
            raw = data[offset:offset + SIZES[kind]]
            if kind == "char[64]":
                values[name] = raw.rstrip(b"\0").decode().replace(" ", "_")
            elif kind == "u32[8]":
                values[name] = ",".join(str(v) for v in struct.unpack("<8I", raw))
            else:
                values[name] = str(struct.unpack(CODES[kind], raw)[0])
        return values


class Page:
    def __init__(self, text):
        self.text = text
        self.sections = sections(text)
        self.layouts = {name: Layout(table(self.sections[name])) for name in STRUCTS}
        self.types = {r["type"]: r for r in table(self.sections["Types"])}
        self.examples = [(m.group(1), m.group(2)) for m in EXAMPLE.finditer(text)]
        check(len(self.examples) >= 10, "too few examples")

    def payload_layout(self, kind):
        return self.layouts.get(PAYLOADS.get(kind, kind))

    def parse_example(self, kind, body):
        """(header values, payload values or None, [tensor values], text or None, bytes of the dump)"""
        header = payload = text = None
        tensors, dump = [], b""
        for line in body.splitlines():
            word, _, rest = line.partition(" ")
            if re.fullmatch(r"[0-9a-f]{4}", word):
                equal(int(word, 16), len(dump), "offset in the dump of " + kind)
                dump += bytes.fromhex(rest)
                continue
            if word == "text":
                text = rest
                continue
            values = dict(item.split("=", 1) for item in rest.split())
            if word == "header":
                header = values
            elif word == "payload":
                payload = values
            elif word == "tensor":
                tensors.append(values)
            else:
                check(False, "a line that is none:", line)
        return header, payload, tensors, text, dump

    def encode(self, kind, header, payload, tensors, text):
        out = self.payload_layout(kind).pack(payload) if payload else b""
        for t in tensors:
            out += self.layouts["Tensor"].pack(t)
        out += text.encode() if text else b""
        header = dict(header, length=len(out), type=int(self.types[kind]["number"], 0), version=1, flags=0)
        return self.layouts["Header"].pack(header) + out


def dump_lines(data):
    return "".join("%04x  %s\n" % (i, data[i:i + 16].hex(" ")) for i in range(0, len(data), 16))


def read_pages(paths):
    texts = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            texts.append(f.read())
    return texts


def update(paths):
    texts = read_pages(paths)
    page = Page("".join(texts))
    for path, text in zip(paths, texts):
        if EXAMPLE.search(text):
            update_page(page, path, text)


def update_page(page, path, text):
    for m in reversed(list(EXAMPLE.finditer(text))):
        kind, body, (start, end) = m.group(1), m.group(2), m.span()
        header, payload, tensors, words, _ = page.parse_example(kind, body)
        kept = "".join(line + "\n" for line in body.splitlines() if not re.match(r"[0-9a-f]{4} ", line))
        data = page.encode(kind, header, payload, tensors, words)
        text = text[:start] + "```example %s\n%s%s```" % (kind, kept, dump_lines(data)) + text[end:]
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def read_header(path):
    """(defines, enums, struct sizes) of protocol.h"""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    with open(os.path.join(os.path.dirname(path), "..", "base", "pixfmt.h"), encoding="utf-8") as f:
        formats = re.findall(r"^ +X\((\w+), ", f.read(), re.M)
    text = text.replace("PIXFMT_LIST(IPC_PIX_ID)", "".join("IPC_PIX_%s," % name for name in formats))
    defines = {}
    for name, value in re.findall(r"^#define (IPC_\w+) (.+)$", text, flags=re.M):
        defines[name] = eval(re.sub(r"(\d)u?l*\b", r"\1", value), {}, dict(defines))  # constant expressions only
    enums = {}
    for name, body in re.findall(r"enum (\w+) \{(.*?)\}", text, flags=re.S):
        values, following = {}, 0
        for item in body.split(","):
            if item.strip():
                key, _, value = item.partition("=")
                following = int(value, 0) if value else following
                values[key.strip()] = following
                following += 1
        enums[name] = values
    return defines, enums


def enum_by_number(enums, name, prefix, drop=()):
    return {v: k[len(prefix):].lower() for k, v in enums[name].items() if k not in drop}


# what runs a program that was built for another machine
EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))


def wire_dump(tool, *args, data=b""):
    r = subprocess.run(EMULATOR + [tool] + list(args), input=data, capture_output=True, check=False)
    check(r.returncode == 0, "wire_dump", args, r.stdout, r.stderr)
    return r.stdout.decode()


def test_layouts(page, header_path, tool):
    with open(header_path, encoding="utf-8") as f:
        equal(sorted(re.findall(r"^struct (\w+) \{", f.read(), re.M)), sorted(STRUCTS.values()), "structs of protocol.h")
    code = {}
    for line in wire_dump(tool, "layout").splitlines():
        name, field, offset, size = line.split()
        code.setdefault(name, {})[field] = (int(offset), int(size))
    for section, struct_name in STRUCTS.items():
        got = {name: (offset, SIZES[kind]) for name, kind, offset in page.layouts[section].fields}
        wanted = dict(code[struct_name])
        size = wanted.pop("-")[1]
        equal(got, wanted, "fields of " + section)
        equal(page.layouts[section].bytes, size, "bytes of " + section)


def test_numbers(page, header_path, tool):
    defines, enums = read_header(header_path)
    types = {int(r["number"], 0): name for name, r in page.types.items()}
    equal(types, {v: k[4:] for k, v in enums["ipc_type"].items()}, "types")
    for section, column, enum, prefix, drop in (
            ("Status", "status", "ipc_status", "IPC_", ("IPC_STATUS_COUNT",)),
            ("Policies", "policy", "ipc_policy", "IPC_POLICY_", ("IPC_POLICY_COUNT",)),
            ("Pixel formats", "format", "ipc_pixfmt", "IPC_PIX_", ("IPC_PIX_COUNT",)),
            ("Element types", "type", "ipc_dtype", "IPC_", ()),
            ("Features", "feature", "ipc_feature", "IPC_FEATURE_", ()),
            ("Events", "event", "ipc_event", "IPC_EVENT_", ())):
        got = {int(r["number"]): r[column] for r in table(page.sections[section])}
        equal(got, enum_by_number(enums, enum, prefix, drop), section)
    limits = {r["limit"]: int(r["value"]) for r in table(page.sections["Limits"])}
    for name, value in limits.items():
        equal(value, defines[name], name)
    for name in defines:
        check(not name.endswith("_MAX") or name in limits, name, "is missing among the limits")
    for row in table(page.sections["Element types"]):
        equal(int(row["bytes"]), int(wire_dump(tool, "dtype", row["number"])), "bytes of " + row["type"])
    for name, row in page.types.items():
        number = int(row["number"], 0)
        least, most = (int(v) for v in wire_dump(tool, "bounds", str(number)).split())
        equal((int(row["least payload"]), int(row["largest payload"])), (least, most), "payload of " + name)


def test_examples(page, tool):
    for kind, body in page.examples:
        header, payload, tensors, text, dump = page.parse_example(kind, body)
        equal(dump.hex(" "), page.encode(kind, header, payload, tensors, text).hex(" "), "example " + kind)
        layout = page.layouts["Header"]
        decoded = layout.unpack(dump)
        equal({k: decoded[k] for k in header}, header, "header of " + kind)
        equal(int(decoded["length"]), len(dump) - layout.bytes, "length of " + kind)
        if payload:
            equal(page.payload_layout(kind).unpack(dump[layout.bytes:]), payload, "payload of " + kind)
        # and what the C codec makes of it
        got = {}
        for line in wire_dump(tool, "decode", data=dump).splitlines():
            word, _, rest = line.partition(" ")
            got.setdefault(word, []).append(dict(item.split("=", 1) for item in rest.split()))
        equal({k: v for k, v in got["header"][0].items() if k in header}, header, "C header of " + kind)
        equal(got.get("payload", [None])[0], payload, "C payload of " + kind)
        equal(got.get("tensor", []), tensors, "C tensors of " + kind)


def main(argv):
    if argv[:1] == ["--update"]:
        update(argv[1:])
        return 0
    header, tool = argv[-2:]
    page = Page("".join(read_pages(argv[:-2])))
    failed = 0
    for name, run in (("layouts", lambda: test_layouts(page, header, tool)),
                      ("numbers", lambda: test_numbers(page, header, tool)),
                      ("examples", lambda: test_examples(page, tool))):
        try:
            run()
            print("ok", name)
        except AssertionError as e:
            failed = 1
            print("FAIL %s: %s" % (name, e))
    return failed


if __name__ == "__main__":

    sys.exit(main(sys.argv[1:]))
