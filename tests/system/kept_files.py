# SPDX-License-Identifier: Apache-2.0
"""The files that a daemon keeps in its state folder, as tests read and change them.

A kept file ends in a checksum of every byte before it. seal() makes one as the daemon does, so a test can have what is
in a file believed, and leave the checksum wrong where it wants the opposite.
"""
import hashlib
import json

BEFORE, AFTER = b',\n"checksum":"', b'"}\n'
REFERENCE = {"conv": "conv__ref", "gemm": "gemm__ref"}


def seal(content):
    """content: a dict, without or with a checksum. Return: the bytes of the file."""
    content = {k: v for k, v in content.items() if k != "checksum"}
    text = json.dumps(content, separators=(",", ":")).encode()[:-1]
    return text + BEFORE + hashlib.blake2b(text, digest_size=32).hexdigest().encode() + AFTER


def is_sealed(data):
    """Do these bytes end in the right checksum?"""
    text, _, end = data.rpartition(BEFORE)
    return end == hashlib.blake2b(text, digest_size=32).hexdigest().encode() + AFTER


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def write(path, content):
    with open(path, "wb") as f:
        f.write(seal(content) if isinstance(content, dict) else content)


def choose_references(path, kind, **changes):
    """Makes a kept choice one of reference primitives on this kind of EP. @changes: of other keys."""
    state = read(path)
    for op in state["kinds"][kind]:
        op[:2] = [REFERENCE.get(op[0].split("_")[0], op[0]), None]
    write(path, dict(state, **changes))
