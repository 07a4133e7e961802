#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes _libpiped.py, which tells cffi what libpiped has, and _numbers.py, its numbers by their names, from the headers
themselves.

usage: make_library.py HEADER... LIBRARY NUMBERS

The first module that comes out (cffi's "ABI mode") loads libpiped.so.0 when it is imported. It needs python3-cffi-backend, is
the same for every architecture and every Python, and nothing of it is compiled. tests/system/test_python.py compares
sizes, offsets and symbols with what a C compiler says of the headers. """
import contextlib
import io
import os
import re
import sys

import cffi

CONSTANTS = re.compile(r"^#define (PIPED_[A-Z0-9_]+) +(UINT32_MAX|0x[0-9a-fA-F]+|\d+)[uU]?\s*$", re.M)

# the enums of piped.h that users see; members have the names without PIPED_
NUMBERS = {
    "status": "What became of a frame.",
    "pixfmt": "How the bytes of an input are to be read. TENSOR: as the model's own inputs.",
    "policy": "BLOCK: every frame is computed. LATEST: a new frame replaces the waiting one, which comes back as\n    DROPPED. "
              "REJECT: a frame that finds no room comes back as RESOURCE_EXHAUSTED.",
    "dtype": "The types of a tensor's values."}


def declarations(text):
    """Return: what cffi understands of a header: no comments, no conditions, no attributes."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    constants = ["#define %s %s" % (name, "0xffffffff" if value == "UINT32_MAX" else value)
                 for name, value in CONSTANTS.findall(text)]
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    return "\n".join(constants) + "\n" + re.sub(r"\bPIPED_API\b", "", text)


def numbers(ffi):
    text = ('# SPDX-License-Identifier: Apache-2.0\n"""The numbers of piped.h, made by ipc/python/make_library.py."""\n'
            "import enum\n\n__all__ = [%s]\n" % ", ".join('"%s"' % name.capitalize() for name in NUMBERS))
    for name, said in NUMBERS.items():
        members = sorted(ffi.typeof("enum piped_" + name).elements.items())
        text += '\n\nclass %s(enum.IntEnum):\n    """%s"""\n' % (name.capitalize(), said)
        text += "".join("    %s = %d\n" % (member[len("PIPED_"):], number) for number, member in members)
    return text


def main():
    headers, (output, output_numbers) = sys.argv[1:-2], sys.argv[-2:]
    ffi = cffi.FFI()
    for name in headers:
        with open(name, encoding="utf-8") as f:
            ffi.cdef(declarations(f.read()))
    ffi.set_source(os.path.basename(output)[:-3], None)
    with contextlib.redirect_stdout(io.StringIO()):  # it says which file it makes
        ffi.emit_python_code(output)
    with open(output, encoding="utf-8") as f:
        text = f.read()
    with open(output, "w", encoding="utf-8") as f:
        f.write("# SPDX-License-Identifier: Apache-2.0\n%slib = ffi.dlopen('libpiped.so.0')\n" % text)
    with open(output_numbers, "w", encoding="utf-8") as f:
        f.write(numbers(ffi))


if __name__ == "__main__":
    main()
