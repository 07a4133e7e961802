#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages and lives with them in a fresh Debian 12: install, serve, upgrade, boards, remove, purge.

usage: try_packages.py [--jobs N] [--packages FOLDER]

Needs root, mmdebstrap, systemd-nspawn, and a network for apt. Packages are built in a tree with nothing but what
debian/control asks for, and installed in a machine under systemd, which has no network and is thrown away.
--packages: those that etc/make-packages has made in FOLDER, instead of new ones. The last
line is "N passed, N failed, N skipped". PIPED_CHROOT=DIR keeps trees and fetched packages in DIR and uses them again.
Each case goes on where the one before ended; after a failure the rest is left out.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from fresh_debian import ROOT, Failed, FreshDebian, raise_version

sys.path[:0] = [os.path.join(ROOT, "tests", folder) for folder in ("nspawn", "lint")]
from cases import check  # noqa: E402  (the folder is known only now)
from nspawn import Machine  # noqa: E402
from wait import RARELY_S, until  # noqa: E402

LIMIT_S = 120
RATE = 100
SUFFIX = "+upgrade1"
EXPOSURE_MOST = 2.0
STATE = ("/var/lib/piped/models", "/var/lib/piped-link/board.key")
# What policy leaves: the user and group files, journals, what apt and dpkg know, and folders of the machine itself.
LEFT = ("/var/log/", "/var/lib/apt/", "/var/cache/apt/", "/var/lib/dpkg/", "/var/cache/ldconfig/",
        "/var/cache/debconf/")
INSTALLED = ("piped", "pipectl", "piped-link", "piped-http", "libpiped0", "libpiped-dev", "pipesim", "piped-doc",
             "python3-piped", "gstreamer1.0-piped")
# Python comes with the packages; it fails for each answer but 200.
GET = ("/usr/bin/python3", "-c", "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=30)")


class Life:
    """The machine and the packages."""

    def __init__(self, debian, top, jobs, made):
        self.debian, self.top, self.jobs, self.out = debian, top, jobs, made
        self.machine = self.files = None

    def run(self, *words, expect=0, limit=LIMIT_S):
        """Return: stdout."""
        inside = self.machine.inside() + ["DEBIAN_FRONTEND=noninteractive", "env", "--chdir=/"]
        done = subprocess.run(inside + list(words), capture_output=True, text=True, check=False, timeout=limit,
                              stdin=subprocess.DEVNULL)
        check(expect is None or done.returncode == expect, *words, "exit", done.returncode, "\n", done.stdout,
              done.stderr)
        return done.stdout

    def apt(self, *words):
        return self.run("apt-get", "-qqy", "--no-install-recommends", *words, limit=600)

    def show(self, unit, prop):
        return self.run("systemctl", "show", "--value", "-p", prop, unit).strip()

    def status(self):
        return json.loads(self.run("pipectl", "--json", "status"))

    def until(self, good, what):
        """Nothing tells a test outside of the machine, so it asks again and again."""
        until(good, what, self.journal, limit_s=LIMIT_S, pause=RARELY_S)

    def journal(self):
        return self.run("journalctl", "--no-pager", "-n", "40", expect=None)

    def ours(self):
        """Return: files and folders whose path has our name."""
        found = self.run("find", "/etc", "/usr", "/var", "/run", "-path", "*piped*", "-o", "-path", "*pipectl*",
                         "-o", "-path", "*pipesim*", expect=None)
        return sorted(n for n in found.split("\n") if n and not n.startswith(LEFT))


def needs_of_tests():
    """Return: packages that debian/tests asks for beyond ours."""
    with open(os.path.join(ROOT, "etc", "debian", "tests", "control"), encoding="utf-8") as f:
        words = re.findall(r"^Depends: (.*)$", f.read(), re.M)
    return sorted({w.strip() for line in words for w in line.split(",")} - set(INSTALLED))


def names_in(folder):
    """Return: file names of the packages, without those of debug symbols."""
    names = [os.path.basename(p) for p in glob.glob(os.path.join(folder, "*.deb"))]
    return sorted(n for n in names if "-dbgsym_" not in n)


def trees_are_made(life):
    life.debian.make_trees()


def packages_are_made(life):
    life.out = life.out or life.debian.make_packages(life.jobs)
    made = {n.split("_")[0] for n in names_in(life.out)}
    check(made == set(INSTALLED), made)


def lintian_finds_no_errors(life):
    life.debian.lintian(life.out)


def a_machine_boots(life):
    life.debian.fetch(life.out, ["/packages/" + n for n in names_in(life.out)] + needs_of_tests())
    folder = os.path.join(life.top, "machine")
    os.makedirs(folder)
    names = names_in(life.out)
    os.makedirs(os.path.join(folder, "first"))
    for name in names:
        shutil.copy(os.path.join(life.out, name), os.path.join(folder, "first"))
    raise_version(life.out, names, SUFFIX, os.path.join(folder, "second"))
    source = os.path.join(folder, "source")
    shutil.copytree(os.path.join(ROOT, "etc", "debian", "tests"), os.path.join(source, "debian", "tests"))
    shutil.copytree(os.path.join(ROOT, "model", "default"), os.path.join(source, "model", "default"))
    life.machine = Machine(folder, "packages", [
        "--private-network", "--bind=%s:/var/cache/apt/archives" % life.debian.archives], tree=life.debian.tree)
    check(life.machine.booted(LIMIT_S), life.machine.said())
    life.files = life.ours()


def packages_install(life):
    life.apt("install", *["/host/first/" + n for n in names_in(os.path.join(life.machine.folder, "first"))])
    for unit, active, enabled in (("piped.socket", "active", "enabled"), ("piped-control.socket", "active", "enabled"),
                                  ("piped.service", "inactive", "disabled"),
                                  ("piped-link.service", "inactive", "disabled"),
                                  ("piped-http.socket", "inactive", "disabled"),
                                  ("piped-http.service", "inactive", "disabled")):
        check(life.show(unit, "ActiveState") == active, unit, life.show(unit, "ActiveState"))
        check(life.run("systemctl", "is-enabled", unit, expect=None).strip() == enabled, unit, "is not", enabled)
    life.run("getent", "passwd", "piped", "piped-link")
    life.run("getent", "group", "piped-clients")
    for path in ("/usr/share/doc/piped/copyright", "/usr/share/bash-completion/completions/pipectl",
                 "/usr/share/varlink/io.piped.varlink"):
        life.run("test", "-s", path)


def tests_of_the_package(name):
    """As autopkgtest would run it."""
    def run(life):
        life.apt("install", *needs_of_tests())
        life.run("sh", "-c", "AUTOPKGTEST_TMP=$(mktemp -d) && export AUTOPKGTEST_TMP && cd /host/source && "
                 "debian/tests/%s 2>&1" % name)
    run.__name__ = "the_packages_test_%s_passes" % name
    return run


def the_sandbox_holds(life):
    said = life.run("systemd-analyze", "security", "--no-pager", "piped-link.service")
    exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", said).group(1))
    check(exposure <= EXPOSURE_MOST, said)


@contextlib.contextmanager
def stream(life):
    """Frames of a client while something happens; each must be answered once, in order, right."""
    bench = subprocess.Popen(life.machine.inside() + ["pipectl", "--json", "bench", "--seconds", "600", "--rate",
                                                      str(RATE), "--verify", "--reconnect", "60"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             start_new_session=True)

    def answered():
        return life.status()["models"][0]["frames"]["answered"]

    try:
        first = answered()
        life.until(lambda: answered() >= first + RATE, "answers")
        yield
        first = answered()
        life.until(lambda: answered() >= first + RATE, "answers afterwards")
        os.killpg(bench.pid, signal.SIGINT)
        out, err = bench.communicate(timeout=LIMIT_S)
    finally:
        if bench.poll() is None:
            os.killpg(bench.pid, signal.SIGKILL)
            bench.wait()
    # nsenter dies of the signal that ends the bench with its summary.
    check(bench.returncode in (0, -signal.SIGINT) and out, "bench ended with", bench.returncode, out, err)
    result = json.loads(out)
    check(result["answered"] == result["sent"] > 2 * RATE and result["reconnects"] >= 1, result)
    for key in ("lost", "reordered", "duplicated", "wrong"):
        check(result[key] == 0, key, result)
    print("   sent %d, answered %d, reconnects %d, longest pause %.0f ms" % (
        result["sent"], result["answered"], result["reconnects"], result["pause_ms"]))


def an_upgrade_loses_nothing(life):
    life.run("systemctl", "enable", "--now", "piped-http.socket")
    life.run(*GET, "http://127.0.0.1:8000/v2/health/ready")
    pids = {unit: life.show(unit, "MainPID") for unit in ("piped.service", "piped-link.service", "piped-http.service")}
    with stream(life):
        life.apt("install", *["/host/second/" + n for n in names_in(os.path.join(life.machine.folder, "second"))])
    check(life.run("dpkg-query", "-W", "-f", "${Version}", "piped").endswith(SUFFIX), "it was not upgraded")
    for unit, pid in pids.items():
        check(life.show(unit, "ActiveState") == "active", unit, "does not run\n", life.journal())
        check(life.show(unit, "MainPID") != pid, unit, "was not restarted")
    life.run(*GET, "http://127.0.0.1:8000/v2/health/ready")


def removal_stops_units(life):
    life.apt("remove", *INSTALLED)
    for unit in ("piped.service", "piped.socket", "piped-control.socket", "piped-link.service", "piped-http.service",
                 "piped-http.socket"):
        check(life.show(unit, "ActiveState") == "inactive", unit, life.show(unit, "ActiveState"))
    for path in (*STATE, "/etc/piped/piped.json"):
        life.run("test", "-e", path)


def a_purge_leaves_nothing(life):
    life.run("dpkg", "--purge", *INSTALLED)  # says which of them left nothing to purge
    left = [n for n in life.ours() if n not in life.files]
    check(not left, "left:\n", "\n".join(left))
    # A user may own files elsewhere: it stays.
    life.run("getent", "passwd", "piped", "piped-link")


CASES = (trees_are_made, packages_are_made, lintian_finds_no_errors, a_machine_boots, packages_install,
         tests_of_the_package("serve"), tests_of_the_package("client"), tests_of_the_package("python"),
         tests_of_the_package("gstreamer"), tests_of_the_package("board"), the_sandbox_holds, an_upgrade_loses_nothing,
         removal_stops_units, a_purge_leaves_nothing)


def skip(reason):
    print("skipped: packages in a fresh Debian: %s\n0 passed, 0 failed, 1 skipped" % reason)
    sys.exit(77)


def go_through(life):
    """Return: exit code."""
    passed = 0
    for case in CASES:
        begun = time.monotonic()
        try:
            case(life)
        except (AssertionError, Failed, OSError, subprocess.SubprocessError) as e:
            print("FAIL %s: %s\n%d passed, 1 failed, %d skipped" % (case.__name__, e, passed, len(CASES) - passed - 1))
            return 1
        print("ok %s (%.0f s)" % (case.__name__, time.monotonic() - begun), flush=True)
        passed += 1
    print("%d passed, 0 failed, 0 skipped" % passed)
    return 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--packages", type=os.path.abspath)
    args = p.parse_args()
    if os.geteuid() != 0:
        skip("this needs root")
    for tool in ("mmdebstrap", "systemd-nspawn", "unshare", "nsenter", "dpkg-deb"):
        if shutil.which(tool) is None:
            skip("%s is not installed" % tool)
    with tempfile.TemporaryDirectory(prefix="piped-packages-", dir=os.environ.get("TMPDIR", "/var/tmp")) as top:
        life = Life(FreshDebian(os.environ.get("PIPED_CHROOT") or os.path.join(top, "debian")), top, args.jobs,
                    args.packages)
        try:
            return go_through(life)
        finally:
            if life.machine:
                life.machine.end()


sys.exit(main())
