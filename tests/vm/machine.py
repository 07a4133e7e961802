# SPDX-License-Identifier: Apache-2.0
"""What the virtual machines share: their clusters, the initrd's format, and booting them in software.

x86.py and arm64.py each make a machine out of Debian's kernel package, an initrd and a description of unequal cores.
What the guest prints goes to the serial console, which is a file here.
"""
import os
import shutil
import stat
import subprocess
import time

CPUS, CLUSTER_SIZE = 4, 2
# Frequencies in MHz of the big and the little cluster, fastest first.
CLUSTERS = ((2000, 1500, 1000), (1200, 800, 400))
COMMAND_LINE = "quiet loglevel=3 panic=-1 mitigations=off"
class Missing(Exception):
    """A tool or package is not to be had here; the text says which."""


def tool(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        raise Missing("%s is not installed (etc/install-deps vm)" % name)
    return path


def run(command, **how):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **how)
    if done.returncode:
        raise Missing("%s: exit %d: %s" % (" ".join(command[:3]), done.returncode, (done.stdout + done.stderr)[-600:]))
    return done.stdout


def step(text, clock=[time.monotonic()]):
    """Says how long it took since the last step."""
    now = time.monotonic()
    print("-- %s: %.1f s" % (text, now - clock[0]), flush=True)
    clock[0] = now


def module_files(base, names):
    """`base`: folder with modules.dep. Return: the modules and what they need, in the order in which they can be
    loaded."""
    needs = {}
    with open(os.path.join(base, "modules.dep"), encoding="utf-8") as f:
        for line in f:
            path, _, rest = line.partition(":")
            needs[path] = rest.split()
    by_name = {os.path.basename(p).split(".")[0].replace("-", "_"): p for p in needs}
    order = []
    for name in names:
        path = by_name.get(name.replace("-", "_"))
        if path is None:
            continue  # built in
        for p in reversed([path] + needs[path]):
            if p not in order:
                order.append(p)
    return [os.path.join(base, p) for p in order]


class Initrd:
    """A cpio archive ("newc") written as it is described; no rights are needed for its devices."""

    def __init__(self, path):
        self.out, self.inode, self.folders = open(path, "wb"), 0, set()

    def entry(self, name, mode, data=b"", rdev=(0, 0)):
        self.inode += 1
        name = name.lstrip("/").encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, rdev[0], rdev[1], len(name), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
        self.out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def folder(self, name, mode=0o755):
        name = name.strip("/")
        if name and name not in self.folders:
            self.folder(os.path.dirname(name))
            self.folders.add(name)
            self.entry(name, 0o040000 | mode)

    def data(self, name, data, mode=0o644):
        self.folder(os.path.dirname(name))
        self.entry(name, 0o100000 | mode, data)

    def file(self, source, name=None):
        with open(source, "rb") as f:
            self.data(name or source, f.read(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def link(self, name, target):
        self.folder(os.path.dirname(name))
        self.entry(name, 0o120777, target.encode())

    def device(self, name, major, minor):
        self.folder(os.path.dirname(name))
        self.entry(name, 0o020600, rdev=(major, minor))

    def tree(self, source, leave_out=()):
        """All below `source`, with root as its owner; `leave_out`: folders, by their names in the guest."""
        for folder, folders, files in os.walk(source):
            name = "/" + os.path.relpath(folder, source)
            name = os.path.normpath(name)
            links = [f for f in folders if os.path.islink(os.path.join(folder, f))]
            folders[:] = [f for f in folders if f not in links and os.path.join(name, f) not in leave_out]
            self.folder(name, stat.S_IMODE(os.stat(folder).st_mode))
            for entry in sorted(files + links):
                path, inside = os.path.join(folder, entry), os.path.join(name, entry)
                if os.path.islink(path):
                    self.link(inside, os.readlink(path))
                elif os.path.isfile(path):
                    with open(path, "rb") as f:
                        self.data(inside, f.read(), stat.S_IMODE(os.stat(path).st_mode))

    def modules(self, files):
        """In loading order, for cases.py."""
        for i, module in enumerate(files):
            self.file(module, "/modules/%02d-%s" % (i, os.path.basename(module)))

    def close(self):
        self.entry("TRAILER!!!", 0)
        self.out.close()


def append(cases):
    """Return: what the kernel's command line has on both machines; `cases`: names for the guest, none: all."""
    return COMMAND_LINE + (" piped.cases=" + ",".join(cases) if cases else "")


def boot(folder, command, limit_s):
    """Runs the machine of `command` to its end. Return: (text of the console, why it did not end by itself or None)."""
    console = os.path.join(folder, "console")
    command = [command[0], "-accel", "tcg,thread=multi", "-nodefaults", "-display", "none", "-monitor", "none", "-nic",
               "none", "-no-reboot", "-serial", "file:" + console] + command[1:]
    why = None
    with open(os.path.join(folder, "qemu"), "wb") as said:
        machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            machine.wait(timeout=limit_s)
            if machine.returncode:
                why = "qemu ended with %d" % machine.returncode
        except subprocess.TimeoutExpired:
            why = "no end within %d s" % limit_s
        finally:
            if machine.poll() is None:
                machine.kill()
                machine.wait()
    with open(os.path.join(folder, "qemu"), encoding="utf-8", errors="replace") as f:
        why = "%s: %s" % (why, f.read()[-500:]) if why else None
    with open(console, encoding="utf-8", errors="replace") as f:
        return f.read().replace("\r\n", "\n"), why
