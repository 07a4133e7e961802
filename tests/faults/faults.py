# SPDX-License-Identifier: Apache-2.0
"""Makes calls fail inside a daemon: the test's side of fault_control.h, and what can fail how."""
import collections
import ctypes
import errno
import mmap
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
from daemon import BUILD, Daemon  # noqa: E402

LIBRARY = os.path.join(BUILD, "tests", "faults", "faults.so")
KINDS = ("malloc", "mmap", "open", "read", "write", "fsync", "rename", "thread", "fd", "epoll", "accept", "send",
         "recv")
ONCE, FROM, COUNT = range(3)
SHORT = 0
NOT_ARMED, ARMED, ARMED_FROM_MAIN = range(3)

Fault = collections.namedtuple("Fault", "kind error")
# All that can go wrong with a call for a moment.
ONE_SHOT = [Fault(kind, error) for kind, errors in {
    "malloc": [errno.ENOMEM], "mmap": [errno.ENOMEM], "open": [errno.EMFILE, errno.EACCES],
    "read": [errno.EIO, errno.EINTR, SHORT], "write": [errno.ENOSPC, errno.EINTR, SHORT], "fsync": [errno.EIO],
    "rename": [errno.EIO], "thread": [errno.EAGAIN], "fd": [errno.EMFILE], "epoll": [errno.ENOMEM],
    "accept": [errno.EMFILE, errno.ECONNABORTED], "send": [errno.ENOBUFS, errno.EINTR, SHORT],
    "recv": [errno.ECONNRESET, errno.EINTR, SHORT]}.items() for error in errors]
# What stays away once it is used up. Not accept: a client then waits, as long as descriptors are scarce.
LASTING = [Fault("malloc", errno.ENOMEM), Fault("mmap", errno.ENOMEM), Fault("open", errno.EMFILE),
           Fault("write", errno.ENOSPC), Fault("fsync", errno.EIO), Fault("rename", errno.EIO),
           Fault("thread", errno.EAGAIN), Fault("fd", errno.EMFILE)]


def name_of(fault):
    return "%s %s" % (fault.kind, errno.errorcode[fault.error] if fault.error else "short")


class Control(ctypes.Structure):
    """struct fault_control."""
    _fields_ = [("armed", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("mode", ctypes.c_uint32),
                ("error", ctypes.c_uint32), ("nth", ctypes.c_uint64), ("strict", ctypes.c_uint64),
                ("libuv", ctypes.c_uint64), ("calls", ctypes.c_uint64), ("failed", ctypes.c_uint64),
                ("where", ctypes.c_char * 4096)]


class Faults:
    """The control file of one daemon's library."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "faults")
        with open(self.path, "wb") as f:
            f.truncate(ctypes.sizeof(Control))
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), ctypes.sizeof(Control))
        self.control = Control.from_buffer(self.map)

    def arm(self, fault, nth=1, mode=ONCE, when=ARMED, strict=False, libuv=False):
        c = self.control
        c.armed = NOT_ARMED
        c.kind, c.mode, c.error, c.nth = KINDS.index(fault.kind), mode, fault.error, nth
        c.strict, c.libuv = strict, libuv
        c.calls = c.failed = 0
        c.where = b""
        c.armed = when

    def disarm(self):
        """Return: how many calls were made, and how many of them failed."""
        self.control.armed = NOT_ARMED
        return self.control.calls, self.control.failed

    def where(self):
        """Who made the first call that failed, as far as the daemon's own code and libraries' names tell."""
        return self.control.where.decode(errors="replace").split("\n")[:-1]


def fds_of(pid):
    """What a process has open, by what it is; files behind sockets and memory have numbers of their own."""
    folder = "/proc/%d/fd" % pid
    names = collections.Counter()
    for fd in os.listdir(folder):
        try:
            name = os.readlink(os.path.join(folder, fd)).split(":[")[0]
            names["libuv's reserve" if name in ("/", "/dev/null") else name] += 1
        except FileNotFoundError:
            pass
    return names


FREED_IS_SEEN = {"MALLOC_PERTURB_": "165"}  # what was freed and is used all the same points nowhere


class FaultyDaemon(Daemon):
    """A daemon whose calls fail as .faults says."""

    def __init__(self, **options):
        super().__init__(**options)
        self.faults = Faults(self.temp)
        self.env.update(LD_PRELOAD=LIBRARY, PIPED_FAULTS=self.faults.path, OPENBLAS_NUM_THREADS="1", **FREED_IS_SEEN)

    def fds(self):
        return fds_of(self.process.pid)
