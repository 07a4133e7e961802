# SPDX-License-Identifier: Apache-2.0
"""Machines of systemd-nspawn with this machine's own files, or another tree's, under an overlay that is thrown away.

No packages are fetched, nothing here is changed. What `meson install` makes is bound over the prefix.
"""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from surroundings import lacking  # noqa: E402  (the folder is known only now)

# Bind-mounts a tree without what is mounted on it, so that nspawn takes / for a root other than ours.
BOOT = """
mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"
"""


def skip(reason):
    if os.environ.get("PIPED_NSPAWN_REQUIRED"):
        print("FAIL nspawn: %s" % reason)
        sys.exit(1)
    print("skipped: tests under a real systemd: %s" % reason)
    sys.exit(77)


def check_tools(*more):
    if lacking("own mounts"):
        skip(lacking("own mounts"))
    for tool in ("systemd-nspawn", "unshare", "mount", "setpriv", *more):
        if shutil.which(tool) is None:
            skip("%s is not installed" % tool)
    if not os.path.exists("/lib/systemd/systemd"):
        skip("systemd is not installed")


def install(build, folder):
    """Return: where `meson install` has put everything."""
    dest = os.path.join(folder, "dest")
    done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild"], env=dict(os.environ, DESTDIR=dest),
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        print("FAIL install: meson install failed:\n%s%s" % (done.stdout, done.stderr))
        sys.exit(1)
    return dest


def installed(dest, prefix, sysconfdir):
    """Return: options of systemd-nspawn that show what was installed."""
    binds = ["--bind=%s:%s" % (dest + prefix, prefix)]
    if not sysconfdir.startswith(prefix):
        binds.append("--bind=%s:%s" % (dest + sysconfdir + "/piped", sysconfdir + "/piped"))
    return binds


STATE = ("/var/lib/piped", "/var/lib/piped-link")


def boot_command(root, name, options, unit, tree="/"):
    """Return: a command that boots a machine and runs as long as it does. @root: an empty folder"""
    # What a piped of this machine, or a run by hand, keeps belongs to others than the users in there.
    hidden = ["--tmpfs=" + f for f in STATE if tree == "/" and os.path.isdir(f)]
    return ["unshare", "-m", "sh", "-c", BOOT, "boot", tree, root, "systemd-nspawn", "--quiet", "--directory=" + root,
            "--volatile=overlay", "--boot", "--register=no", "--keep-unit", "--console=pipe", "--link-journal=no",
            "--machine=" + name, *hidden, *options, "--", "--unit=" + unit]


class Group:
    """A control group in each hierarchy that systemd manages: two machines in one group would end each other's services."""

    def __init__(self, name):
        self.folders = []
        with open("/proc/self/mounts", encoding="utf-8") as f:
            for _, folder, kind, options, *_ in map(str.split, f):
                if kind == "cgroup2" or kind == "cgroup" and "name=systemd" in options.split(","):
                    self.folders.append(os.path.join(folder, name))
        for folder in self.folders:
            os.makedirs(folder, exist_ok=True)

    def join(self):
        for folder in self.folders:
            with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write("%d\n" % os.getpid())

    def remove(self):
        for top in self.folders:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


class Machine:
    """Boots at once, to @unit; commands run in it as from a root shell."""

    def __init__(self, folder, name, options, unit="basic.target", tree="/"):
        """@folder: of the machine's own, which it sees as /host"""
        self.folder, self.name, self.leader, self.process = folder, name, None, None
        self.group = Group("piped-nspawn-%d-%s" % (os.getpid(), name))
        with open(os.path.join(folder, "hostname"), "w", encoding="ascii") as f:
            f.write(name + "\n")
        root = os.path.join(folder, "root")
        os.makedirs(root)
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = os.path.join(folder, "notify")
        self.notices.bind(path)
        with open(os.path.join(folder, "console"), "wb") as console:
            self.process = subprocess.Popen(
                boot_command(root, name, ["--notify-ready=yes", "--bind=%s:/host" % folder,
                                          "--bind=%s/hostname:/etc/hostname" % folder, *options], unit, tree),
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT, preexec_fn=self.group.join,
                env=dict(os.environ, NOTIFY_SOCKET=path))

    def booted(self, seconds):
        """Waits until it has reached its unit. Return: whether it has."""
        self.notices.settimeout(seconds)
        ready = False
        try:
            while not (ready and self.leader):
                for line in self.notices.recv(4096).decode().split("\n"):
                    key, _, value = line.partition("=")
                    if key == "X_NSPAWN_LEADER_PID":
                        self.leader = int(value)
                    ready |= line == "READY=1"
        except socket.timeout:
            return False
        self.notices.close()  # nobody reads any more: its first process would wait for room in here
        return True

    def said(self):
        with open(os.path.join(self.folder, "console"), encoding="utf-8", errors="replace") as f:
            return " ".join(f.read().split())[-300:]

    def inside(self, user=None):
        """Return: the beginning of a command line that runs in it."""
        command = ["nsenter", "--all", "--root", "--wd", "--target=%d" % self.leader, "env", "-i", "PATH=" + os.environ["PATH"],
                   "LC_ALL=C.UTF-8"]
        if user:
            command += ["setpriv", "--reuid=" + user, "--regid=" + user, "--init-groups"]
        return command

    def end(self):
        if self.leader:
            # nspawn ends when its first process does, and all others with it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.leader, signal.SIGKILL)
        elif self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.notices.close()
        self.group.remove()
