#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes _libpiped.py, which tells cffi what libpiped has, from the headers themselves.

usage: make_library.py HEADER... OUTPUT

The module that comes out (cffi's "ABI mode") loads libpiped.so.0 when it is imported. It needs python3-cffi-backend, is
the same for every architecture and every Python, and nothing of it is compiled. tests/system/test_python.py compares
sizes, offsets and symbols with what a C compiler says of the headers. """
import contextlib
import io
import os
import re
import sys

import cffi

CONSTANTS = re.compile(r"^#define (PIPED_[A-Z0-9_]+) +(UINT32_MAX|0x[0-9a-fA-F]+|\d+)[uU]?\s*$", re.M)


def declarations(text):
    """Return: what cffi understands of a header: no comments, no conditions, no attributes."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    constants = ["#define %s %s" % (name, "0xffffffff" if value == "UINT32_MAX" else value)
                 for name, value in CONSTANTS.findall(text)]
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    return "\n".join(constants) + "\n" + re.sub(r"\bPIPED_API\b", "", text)


def main():
    headers, output = sys.argv[1:-1], sys.argv[-1]
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


if __name__ == "__main__":
    main()
