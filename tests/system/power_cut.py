# SPDX-License-Identifier: Apache-2.0
"""What a disk may hold after a loss of power, from a record of what a program did to a folder.

disk_record.c writes the record. read() gives its operations, Disk plays them up to any one, and images() are folders that
a disk may hold then. What was synced is there. Of what was not:

- each sector of 512 bytes of a file holds the new bytes, the old ones, or zeros where there were none;
- the file has any of the sizes that it had since it was last synced;
- names are changed up to some operation, as by a journal, or by any subset of the operations, in order.

Only a sync of the folder makes its names last; a sync of a file makes its bytes last, but not its name.
"""
import os
import tempfile

from daemon import BUILD

SECTOR = 512


class Op:
    """kind: create, write, truncate, sync, sync-folder, rename, unlink."""

    def __init__(self, kind, file=None, at=0, data=b"", name=None, to=None):
        self.kind, self.file, self.at, self.data, self.name, self.to = kind, file, at, data, name, to

    def __str__(self):
        return " ".join(str(x) for x in (self.kind, self.file, self.name, self.to, self.at, len(self.data)) if x is not None)


def environment(folder, log, hold=""):
    """For the program that is recorded."""
    return {"LD_PRELOAD": os.path.join(BUILD, "tests", "system", "disk_record.so"),
            "DISK_RECORD_FOLDER": os.path.realpath(folder), "DISK_RECORD_LOG": log, "DISK_RECORD_HOLD": hold}


def read(log):
    """The operations of a record. A file whose inode is used again is another file."""
    with open(log, "rb") as f:
        text = f.read()
    ops, files, at, count = [], {}, 0, 0
    while at < len(text):
        end = text.index(b"\n", at)
        kind, _, rest = text[at:end].decode().partition(" ")
        at = end + 1
        words = rest.split(" ")
        if kind == "create":
            count += 1
            files[words[0]] = count
            ops.append(Op(kind, file=count, name=rest.split(" ", 1)[1]))
        elif kind == "write":
            data = text[at:at + int(words[2])]
            at += len(data)
            ops.append(Op(kind, file=files[words[0]], at=int(words[1]), data=data))
        elif kind == "truncate":
            ops.append(Op(kind, file=files[words[0]], at=int(words[1])))
        elif kind == "sync":
            ops.append(Op(kind, file=files[words[0]]))
        elif kind == "rename":
            name, to = rest.split("\t")
            ops.append(Op(kind, name=name, to=to))
        else:
            ops.append(Op(kind, name=rest or None))
    return ops


def changed(names, op):
    """Applies an operation on names to a dict of name -> file; one whose file is not there does nothing."""
    if op.kind == "create":
        names[op.name] = op.file
    elif op.kind == "rename" and op.name in names:
        names[op.to] = names.pop(op.name)
    elif op.kind == "unlink":
        names.pop(op.name, None)


class File:
    def __init__(self):
        self.synced = b""
        self.changes = []  # writes and truncations since

    def whole(self):
        data = bytearray(self.synced)
        for op in self.changes:
            if op.kind == "truncate":
                data = data[:op.at].ljust(op.at, b"\0")
            else:
                data = data.ljust(op.at, b"\0")
                data[op.at:op.at + len(op.data)] = op.data
        return bytes(data)

    def sizes(self):
        found, size = {len(self.synced)}, len(self.synced)
        for op in self.changes:
            size = op.at if op.kind == "truncate" else max(size, op.at + len(op.data))
            found.add(size)
        return sorted(found)

    def any(self, rng):
        """Some content that the disk may hold."""
        if not self.changes:
            return self.synced
        new = self.whole()
        size = rng.choice(self.sizes())
        share = rng.choice((0, 0.5, 0.9, 1))  # of sectors that were written
        out = bytearray(size)
        for at in range(0, size, SECTOR):
            end = min(at + SECTOR, size)
            source = new if rng.random() < share else self.synced
            out[at:end] = source[at:end].ljust(end - at, b"\0")
        return bytes(out)


class Disk:
    """A folder after the first operations of a record. `before`: what was there, {name: bytes}."""

    def __init__(self, before=None):
        self.files, self.lasting, self.names, self.pending = {}, {}, {}, []
        for i, (name, data) in enumerate((before or {}).items()):
            self.files[-i - 1] = File()
            self.files[-i - 1].synced = data
            self.lasting[name] = self.names[name] = -i - 1

    def do(self, op):
        if op.kind == "create":
            self.files[op.file] = File()
        if op.kind in ("create", "rename", "unlink"):
            changed(self.names, op)
            self.pending.append(op)
        elif op.kind in ("write", "truncate"):
            self.files[op.file].changes.append(op)
        elif op.kind == "sync":
            f = self.files[op.file]
            f.synced, f.changes = f.whole(), []
        elif op.kind == "sync-folder":
            self.lasting, self.pending = dict(self.names), []

    def content(self):
        """{name: bytes} as a program sees it now."""
        return {name: self.files[f].whole() for name, f in self.names.items()}

    def image(self, rng):
        """{name: bytes} of some state that the disk may hold if the power goes now."""
        names = dict(self.lasting)
        if rng.random() < 0.5:
            some = self.pending[:rng.randint(0, len(self.pending))]
        else:
            some = [op for op in self.pending if rng.random() < 0.5]
        for op in some:
            changed(names, op)
        return {name: self.files[f].any(rng) for name, f in names.items()}


def images(ops, rng, count, before=None):
    """Yields (how many operations were done, an image), at random operations."""
    disk, done = Disk(before), 0
    for at in sorted(rng.randint(0, len(ops)) for _ in range(count)):
        for op in ops[done:at]:
            disk.do(op)
        done = at
        yield at, disk.image(rng)


def versions(ops, before=None):
    """{name: every content that a file of this name was given by a rename}, also None where it is removed or not yet."""
    disk = Disk(before)
    found = {name: {data} for name, data in disk.content().items()}
    for op in ops:
        disk.do(op)
        if op.kind == "rename":
            found.setdefault(op.to, {None}).add(disk.content()[op.to])
        elif op.kind == "unlink":
            found.setdefault(op.name, {None}).add(None)
    return found


def torn(image, kept):
    """The names in an image that hold what was never a whole file. kept: versions() of the names that count."""
    return [name for name, data in image.items() if name in kept and data not in kept[name]]


def lay(image, folder=None):
    """Writes an image to a folder. Return: its path."""
    folder = folder or tempfile.mkdtemp(prefix="piped-power-")
    for name, data in image.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    return folder
