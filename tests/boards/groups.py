# SPDX-License-Identifier: Apache-2.0
"""Control groups for boards: a part of a core, a limit of memory; version 2, or 1 where that is what is mounted."""
import contextlib
import errno
import os

from cases import Failure
from wait import asked

PERIOD_US = 5000  # short: at the usual 100 ms a board would stand still for long
PREFIX = "piped-fleet-"


def mounts():
    """Return: {controller: folder} of version 1, folder of version 2 or None."""
    one, two = {}, None
    with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            _, folder, kind, options, *_ = line.split()
            if kind == "cgroup2":
                two = folder
            elif kind == "cgroup":
                one.update((word, folder) for word in options.split(",") if word in ("cpu", "memory", "cpuset"))
    return one, two


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="ascii") as f:
        f.write("%s\n" % value)


def remove_stale(parent):
    """Groups of tests that were killed."""
    for name in os.listdir(parent):
        pid = name[len(PREFIX):].split("-")[0]
        if name.startswith(PREFIX) and not os.path.exists("/proc/" + pid):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(parent, name))


def has_controllers(folder, names):
    """Whether children of a folder of version 2 can have these; asks for them."""
    try:
        with open(os.path.join(folder, "cgroup.controllers"), encoding="ascii") as f:
            if not set(names) <= set(f.read().split()):
                return False
        write(folder, "cgroup.subtree_control", " ".join("+" + n for n in names))
        return True
    except OSError:
        return False


class Group:
    """One board's. @cpu: cores, such as 0.4; @memory: bytes. Raises Failure if there can be none."""

    def __init__(self, name, cpu=None, memory=None):
        self.folders = []
        wanted = (["cpu"] if cpu else []) + (["memory"] if memory else [])
        one, two = mounts()
        try:
            if two and wanted and has_controllers(two, wanted):
                folder = self.make(two, name)
                if cpu:
                    write(folder, "cpu.max", "%d %d" % (cpu * PERIOD_US, PERIOD_US))
                if memory:
                    write(folder, "memory.max", memory)
                return
            for controller in wanted:
                if controller not in one:
                    raise Failure("no control group for %s" % controller)
                folder = self.make(one[controller], name)
                if controller == "cpu":
                    write(folder, "cpu.cfs_period_us", PERIOD_US)
                    write(folder, "cpu.cfs_quota_us", int(cpu * PERIOD_US))
                else:
                    write(folder, "memory.limit_in_bytes", memory)
        except OSError as e:
            self.remove()
            raise Failure("no control groups: %s" % e) from None
        except BaseException:
            self.remove()
            raise

    def make(self, parent, name):
        remove_stale(parent)
        folder = os.path.join(parent, "%s%d-%s" % (PREFIX, os.getpid(), name))
        os.makedirs(folder, exist_ok=True)
        if folder not in self.folders:
            self.folders.append(folder)
        return folder

    def join(self):
        """In a child before it runs a program: it belongs to the group."""
        for folder in self.folders:
            write(folder, "cgroup.procs", os.getpid())

    def killed(self):
        """How many processes were killed because memory was short."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError), open(os.path.join(folder, name), encoding="ascii") as f:
                    for line in f:
                        if line.startswith("oom_kill "):
                            return int(line.split()[1])
        return 0

    def remove(self):
        """After its processes have ended; the kernel may take a moment to forget them."""
        def gone(folder):
            try:
                os.rmdir(folder)
            except OSError as e:
                return e.errno != errno.EBUSY
            return True
        for folder in self.folders:
            asked(lambda folder=folder: gone(folder), 5, 0.01)
        self.folders = []


def group_reason(cpu=None, memory=None):
    """Return: why there can be no such groups; None: there can."""
    try:
        Group("try", cpu, memory).remove()
    except Failure as e:
        return str(e)
    return None
