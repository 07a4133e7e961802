# SPDX-License-Identifier: Apache-2.0
"""Fresh Debian 12: a tree of it that stays as it is, one with what building needs, and packages made and fetched there.

With PIPED_CHROOT=DIR they are kept in DIR and used again.
"""
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CCACHE = os.environ.get("CCACHE_DIR", os.path.expanduser("~/.cache/ccache"))
# Mounts are in a namespace of their own.
ENTER = """
root=$1 folder=$2
shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
    mkdir -p "$root/$2"
    mount --bind "$1" "$root/$2"
    shift 2
done
shift
exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""


class Failed(Exception):
    pass


def run(command, log, env=None):
    """Output goes to the end of the file @log."""
    with open(log, "ab") as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, check=False)
    if done.returncode:
        with open(log, encoding="utf-8", errors="replace") as f:
            raise Failed("%s: exit %d\n%s" % (" ".join(command[-6:]), done.returncode, "".join(f.readlines()[-30:])))


class FreshDebian:
    def __init__(self, folder):
        self.folder = folder
        self.tree, self.build_tree = os.path.join(folder, "tree"), os.path.join(folder, "build-tree")
        self.archives = os.path.join(folder, "archives")
        self.log = os.path.join(folder, "log")
        os.makedirs(os.path.join(self.archives, "partial"), exist_ok=True)
        open(self.log, "wb").close()

    def inside(self, tree, folder, *command, binds=()):
        env = {"PATH": "/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive", "CCACHE_DIR": "/ccache", "CCACHE_BASEDIR": "/",
               "CCACHE_NOHASHDIR": "1",
               **{k: v for k, v in os.environ.items() if k in ("http_proxy", "https_proxy")}}
        binds = (*binds, (self.archives, "/var/cache/apt/archives"))
        run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-euc", ENTER, "enter", tree, folder,
             *[word for bind in binds for word in bind], "--", *command], self.log, env)

    def make_trees(self):
        if not os.path.exists(os.path.join(self.tree, "sbin", "init")):
            run(["mmdebstrap", "--quiet", "--variant=apt", "--include=ca-certificates,systemd-sysv",
                 "bookworm", self.tree], self.log)
        if not os.path.exists(self.build_tree):
            run(["cp", "-a", "--reflink=auto", self.tree, self.build_tree], self.log)
        for tree in (self.tree, self.build_tree):
            for name in ("resolv.conf", "hosts"):
                shutil.copy(os.path.join("/etc", name), os.path.join(tree, "etc", name))
            self.inside(tree, "/", "apt-get", "update", "-qq")

    def make_packages(self, jobs):
        """Only what debian/control asks for is there. Paths are as outside, so that ccache knows the files. Return: the
        folder with the packages."""
        out = os.path.join(self.folder, "packages")
        shutil.rmtree(out, ignore_errors=True)
        source = self.build_tree + ROOT
        shutil.rmtree(source, ignore_errors=True)
        os.makedirs(source)
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=True).stdout.decode().split("\0")
        for name in filter(None, listed):
            if os.path.exists(os.path.join(ROOT, name)):
                os.makedirs(os.path.dirname(os.path.join(source, name)), exist_ok=True)
                shutil.copy(os.path.join(ROOT, name), os.path.join(source, name))
        shutil.copytree(os.path.join(source, "etc", "debian"), os.path.join(self.build_tree, "needs", "debian"),
                        dirs_exist_ok=True)
        self.inside(self.build_tree, "/", "apt-get", "install", "-qqy", "--no-install-recommends", "dpkg-dev", "ccache",
                    "lintian", "build-essential", "fakeroot")
        self.inside(self.build_tree, "/", "apt-get", "build-dep", "-qqy", "/needs")
        os.makedirs(CCACHE, exist_ok=True)
        os.makedirs(out)
        there = os.path.join(ROOT, "build-packages")
        self.inside(self.build_tree, ROOT, "etc/make-packages", "--jobs", str(jobs), there,
                    binds=[(CCACHE, "/ccache"), (out, there)])
        return out

    def lintian(self, out):
        self.inside(self.build_tree, "/packages", "sh", "-c", "lintian --allow-root --fail-on error --info *.changes",
                    binds=[(out, "/packages")])

    def fetch(self, out, words):
        """Fetches what these packages need: the machines have no network. @words: of apt-get install"""
        self.inside(self.tree, "/packages", "apt-get", "install", "-qqy", "--download-only",
                    "--no-install-recommends", *words, binds=[(out, "/packages")])


def raise_version(folder, names, suffix, to):
    """Makes the same packages with a higher version, @suffix longer, in the folder @to."""
    os.makedirs(to)
    for name in names:
        temp = os.path.join(to, "unpacked")
        subprocess.run(["dpkg-deb", "-R", os.path.join(folder, name), temp], check=True)
        path = os.path.join(temp, "DEBIAN", "control")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        version = next(line.split(": ", 1)[1] for line in text.split("\n") if line.startswith("Version: "))
        text = text.replace("Version: %s\n" % version, "Version: %s\n" % (version + suffix))
        text = text.replace("(= %s)" % version, "(= %s)" % (version + suffix))
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        subprocess.run(["dpkg-deb", "-Zgzip", "--root-owner-group", "-b", temp, os.path.join(to, name)], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(temp)
