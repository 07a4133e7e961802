#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The units are valid, expose little, can pin threads, and the journal's catalog matches the daemon's messages.

usage: test_units.py SOURCE_ROOT GENERATED_UNITS_DIR BINDIR
"""
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile

from cases import check, main, none

ROOT, UNITS, BINDIR = sys.argv[1:4]
EXPOSURE_MAX = 15  # tenths
SYSTEMD = os.path.join(ROOT, "systemd")
LINK_EXPOSURE_MAX = 20
NAMES = ("piped.service", "piped.socket", "piped-control.socket")
LINK = "piped-link.service"  # only in builds with ZeroMQ
HTTP = "piped-http.service"  # only in builds with libmicrohttpd
HTTP_EXPOSURE_MAX = 10


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def have_analyze():
    return shutil.which("systemd-analyze") is not None


def units_in(folder, drop_in=None):
    """Copies of the units whose commands exist, whatever was installed here."""
    os.mkdir(os.path.join(folder, "bin"))
    for name in ("piped", "pipectl"):
        shutil.copy("/bin/true", os.path.join(folder, "bin", name))
    for name in NAMES:
        source = os.path.join(UNITS if name.endswith(".service") else SYSTEMD, name)
        with open(source, encoding="utf-8") as f:
            text = f.read()
        if name.endswith(".service"):
            check(BINDIR + "/piped" in text, source, "does not start", BINDIR + "/piped")
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text.replace(BINDIR + "/", folder + "/bin/"))
    if drop_in:
        os.mkdir(os.path.join(folder, "piped.service.d"))
        shutil.copy(drop_in, os.path.join(folder, "piped.service.d", "example.conf"))


def verify(drop_in=None):
    if not have_analyze():
        return "systemd-analyze is not installed"
    with tempfile.TemporaryDirectory(prefix="piped-units-") as folder:
        units_in(folder, drop_in)
        done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                   *(os.path.join(folder, name) for name in NAMES))
        check(done.returncode == 0 and not done.stderr.strip(), "systemd-analyze verify says:\n" + done.stderr)
    return None


def exposure(drop_in=None):
    if not have_analyze():
        return "systemd-analyze is not installed"
    with tempfile.TemporaryDirectory(prefix="piped-units-") as folder:
        units_in(folder, drop_in)
        done = run("systemd-analyze", "security", "--offline=yes", "--threshold=%d" % EXPOSURE_MAX,
                   os.path.join(folder, "piped.service"))
        level = re.search(r"Overall exposure level.*: ([0-9.]+)", done.stdout)
        if level is None and "offline" in done.stderr:
            return "this systemd-analyze cannot work offline"
        check(level, "no exposure level in:\n" + done.stdout + done.stderr)
        check(done.returncode == 0, "exposure", level.group(1), "is above", EXPOSURE_MAX / 10)
        print("exposure %s" % level.group(1))
    return None


def units_are_valid():
    return verify()


def exposure_is_low():
    return exposure()


def examples_are_valid():
    folder = os.path.join(SYSTEMD, "piped.service.d")
    for name in sorted(os.listdir(folder)):
        reason = verify(os.path.join(folder, name)) or exposure(os.path.join(folder, name))
        if reason:
            return reason
    return None


def link_is_sandboxed():
    """It alone speaks to the network, and needs no device, no right and no part of the disk but its state."""
    path = os.path.join(UNITS, LINK)
    if not have_analyze() or not os.path.exists(path):
        return "systemd-analyze is not installed, or this is a build without ZeroMQ"
    with tempfile.TemporaryDirectory(prefix="piped-units-") as folder:
        shutil.copy("/bin/true", os.path.join(folder, "piped-link"))
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(os.path.join(folder, LINK), "w", encoding="utf-8") as f:
            f.write(text.replace(BINDIR + "/piped-link", folder + "/piped-link"))
        done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", os.path.join(folder, LINK))
        check(done.returncode == 0 and not done.stderr.strip(), "systemd-analyze verify says:\n" + done.stderr)
        done = run("systemd-analyze", "security", "--offline=yes", "--threshold=%d" % LINK_EXPOSURE_MAX,
                   os.path.join(folder, LINK))
        level = re.search(r"Overall exposure level.*: ([0-9.]+)", done.stdout)
        check(level and done.returncode == 0, "exposure of the link:\n" + done.stdout + done.stderr)
        print("exposure of the link %s" % level.group(1))
    check("PrivateDevices=yes\n" in text and "ProcSubset=pid\n" in text)
    return None


def http_is_sandboxed():
    """It reads what anybody on the network sends: it has its sockets from systemd, and can open none but Unix ones."""
    path = os.path.join(UNITS, HTTP)
    if not have_analyze() or not os.path.exists(path):
        return "systemd-analyze is not installed, or this is a build without libmicrohttpd"
    with tempfile.TemporaryDirectory(prefix="piped-units-") as folder:
        shutil.copy("/bin/true", os.path.join(folder, "piped-http"))
        shutil.copy(os.path.join(SYSTEMD, "piped-http.socket"), folder)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(os.path.join(folder, HTTP), "w", encoding="utf-8") as f:
            f.write(text.replace(BINDIR + "/piped-http", folder + "/piped-http"))
        done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", os.path.join(folder, HTTP),
                   os.path.join(folder, "piped-http.socket"))
        check(done.returncode == 0 and not done.stderr.strip(), "systemd-analyze verify says:\n" + done.stderr)
        done = run("systemd-analyze", "security", "--offline=yes", "--threshold=%d" % HTTP_EXPOSURE_MAX,
                   os.path.join(folder, HTTP))
        level = re.search(r"Overall exposure level.*: ([0-9.]+)", done.stdout)
        check(level and done.returncode == 0, "exposure of piped-http:\n" + done.stdout + done.stderr)
        print("exposure of piped-http %s" % level.group(1))
    with open(os.path.join(SYSTEMD, "piped-http.socket"), encoding="utf-8") as f:
        listens = [line.strip() for line in f if line.startswith("Listen")]
    check(listens == ["ListenStream=127.0.0.1:8000", "ListenStream=/run/piped-http/http.sock", "ListenNetlink=inet-diag"], listens)
    check("PrivateUsers=yes\n" not in text, "it cannot tell users apart")
    check("PrivateNetwork=yes\n" in text and "RestrictAddressFamilies=AF_UNIX\n" in text)
    return None


def lines_of(unit):
    with open(os.path.join(UNITS, unit), encoding="utf-8") as f:
        return f.read().split("\n")


def link_has_what_it_needs():
    """What was found to be missing: libzmq aborts without, or no socket of the daemon is there."""
    path = os.path.join(UNITS, LINK)
    if not os.path.exists(path):
        return "this is a build without ZeroMQ"
    lines = lines_of(LINK)
    filters = [line.split("=", 1)[1] for line in lines if line.startswith("SystemCallFilter=")]
    behind = filters[[f.startswith("~") for f in filters].index(True):]  # of filters the later one decides
    check("sched_setscheduler" in behind, "threads of libzmq cannot start:", filters)
    check("userfaultfd" in behind, "pools cannot be guarded:", filters)
    check("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK" in lines, "libzmq cannot listen")
    for key in ("Wants=", "After="):
        words = next(line for line in lines if line.startswith(key)).split("=", 1)[1].split()
        check({"piped.socket", "piped-control.socket"} <= set(words), key, words)
    check("Group=piped-clients" in lines, "piped could not connect to its socket")
    for name, unit in (("piped-link", lines), ("piped", lines_of("piped.service"))):
        check("StateDirectoryMode=0751" in unit, "models of", name, "cannot be reached")
        with open(os.path.join(SYSTEMD, name + ".tmpfiles.conf"), encoding="utf-8") as f:
            check("d /var/lib/%s/models 0755 %s %s -" % (name, name, name) in f.read().split("\n"), name)
    return None


def gpio_chips_may_be_opened():
    """Said outright: ProtectClock= of systemd before 253 closes devices, PrivateDevices= hides them."""
    with open(os.path.join(UNITS, "piped.service"), encoding="utf-8") as f:
        lines = f.read().split("\n")
    check("DeviceAllow=char-gpiochip rw" in lines, "no DeviceAllow= for GPIO chips")
    check("PrivateDevices=yes" not in lines, "PrivateDevices= hides GPIO chips")
    with open(os.path.join(SYSTEMD, "piped.sysusers.conf"), encoding="utf-8") as f:
        check("m piped gpio\n" in f.read(), "the user is not in the group gpio")


def netlink_is_closed_by_default():
    with open(os.path.join(UNITS, "piped.service"), encoding="utf-8") as f:
        families = [line for line in f if line.startswith("RestrictAddressFamilies=")]
    check(families == ["RestrictAddressFamilies=AF_UNIX\n"], families)


def read_unit(path):
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str
    with open(path, encoding="utf-8") as f:
        # Repeated keys are lists in units; the last value is enough for what is asked here.
        parser.read_string(f.read())
    return parser


def threads_can_be_pinned():
    if not have_analyze():
        return "systemd-analyze is not installed"
    allowed = run("systemd-analyze", "syscall-filter", "@system-service").stdout.split()
    resources = run("systemd-analyze", "syscall-filter", "@resources").stdout.split()
    denied = run("systemd-analyze", "syscall-filter", "@privileged", "@obsolete").stdout.split()
    check("sched_setaffinity" in resources and "@resources" in allowed, "@system-service lost @resources")
    check("sched_setaffinity" not in denied, "sched_setaffinity is denied")
    with open(os.path.join(UNITS, "piped.service"), encoding="utf-8") as f:
        filters = [line for line in f if line.startswith("SystemCallFilter=")]
    check(filters[0] == "SystemCallFilter=@system-service\n", "the allow list is", filters[0])
    check(not any("@resources" in line for line in filters), "@resources is filtered")
    return None


def sockets_are_named():
    for name, fd_name in (("piped.socket", "frames"), ("piped-control.socket", "control")):
        unit = read_unit(os.path.join(SYSTEMD, name))["Socket"]
        check(unit["FileDescriptorName"] == fd_name, name, unit["FileDescriptorName"])
        check(unit["ListenStream"] == "/run/piped/%s.sock" % fd_name, name, unit["ListenStream"])
        check(unit["SocketMode"] == "0660" and unit["SocketGroup"] == "piped-clients", name, dict(unit))


def catalog_matches_messages():
    with open(os.path.join(ROOT, "daemon", "service", "log.h"), encoding="utf-8") as f:
        messages = set(re.findall(r'^#define DMN_MSG_\w+ "([0-9a-f]{32})"', f.read(), re.M))
    with open(os.path.join(SYSTEMD, "piped.catalog"), encoding="utf-8") as f:
        catalog = re.findall(r"^-- ([0-9a-f]{32})$", f.read(), re.M)
    check(messages, "no messages found")
    check(len(catalog) == len(set(catalog)), "an id is explained twice")
    none(sorted(messages - set(catalog)), "messages without an explanation")
    none(sorted(set(catalog) - messages), "explanations of no message")


def catalog_compiles():
    if not shutil.which("journalctl"):
        return "journalctl is not installed"
    with tempfile.TemporaryDirectory(prefix="piped-catalog-") as root:
        for folder in ("usr/lib/systemd/catalog", "var/lib/systemd/catalog"):
            os.makedirs(os.path.join(root, folder))
        shutil.copy(os.path.join(SYSTEMD, "piped.catalog"), os.path.join(root, "usr/lib/systemd/catalog"))
        done = run("journalctl", "--root=" + root, "--update-catalog")
        check(done.returncode == 0, "journalctl --update-catalog says:\n" + done.stderr)
        listed = run("journalctl", "--root=" + root, "--list-catalog")
        with open(os.path.join(ROOT, "daemon", "service", "log.h"), encoding="utf-8") as f:
            count = f.read().count("#define DMN_MSG_")
        check(len(listed.stdout.split("\n")) - 1 == count, "the compiled catalog has\n" + listed.stdout)
    return None


main((units_are_valid, exposure_is_low, link_is_sandboxed, link_has_what_it_needs, http_is_sandboxed, examples_are_valid,
      gpio_chips_may_be_opened, netlink_is_closed_by_default, threads_can_be_pinned, sockets_are_named,
      catalog_matches_messages, catalog_compiles))
