# SPDX-License-Identifier: Apache-2.0
"""The arm64 machine: two clusters of unequal capacity in the device tree, Debian's kernel and systemd, piped installed.

No rights are needed and no arm64 code runs on this machine: Debian's packages are unpacked, not configured, and with
what meson installs of the cross build they are an initrd, which is the guest's root file system.
"""
import glob
import os
import re
import shutil

import device_tree
from machine import CLUSTERS, CLUSTER_SIZE, CPUS, Initrd, Missing, append, module_files, run, step, tool

LIMIT_S = 1500
RESULTS = 2  # of guest_arm64.py and of tests/nspawn/guest.py
SLOWDOWN = 5  # of the limits in tests/nspawn/guest.py
MEMORY_MIB = 1536
CPU = "cortex-a53"
MODULES = ("cpufreq-dt", "cpufreq_powersave")
PACKAGES = ("base-files,base-passwd,bash,coreutils,kmod,libpython3-stdlib,linux-image-arm64,login,mount,passwd,"
            "python3-minimal,systemd,util-linux")
LEAVE_OUT = ("/boot", "/lib/modules", "/lib/udev/hwdb.d", "/usr/lib/klibc", "/usr/lib/aarch64-linux-gnu/gconv",
             "/usr/share/doc", "/usr/share/info", "/usr/share/locale", "/usr/share/man", "/var/cache/apt")
PREFIX, SYSCONFDIR = "/usr/local", "/usr/local/etc"
LIBS = "usr/lib/aarch64-linux-gnu"
GPIO_CHIP = "/pl061@9030000"
# Of no use here, and seconds each when emulated.
MASKED = ("systemd-udev-trigger.service", "systemd-udevd.service", "systemd-udevd-kernel.socket",
          "systemd-udevd-control.socket", "systemd-update-utmp.service", "systemd-hwdb-update.service",
          "systemd-random-seed.service", "systemd-firstboot.service", "systemd-binfmt.service",
          "proc-sys-fs-binfmt_misc.automount", "systemd-timesyncd.service", "systemd-networkd.service",
          "systemd-pstore.service", "systemd-logind.service", "systemd-repart.service", "kmod-static-nodes.service",
          "modprobe@.service", "systemd-modules-load.service")
# The kernel unpacks the initrd into a file system that nothing can be mounted over; services with a sandbox want to.
INIT = """#!/bin/bash
mount -n --bind / /new && cd /new && mount -n --move . / && exec chroot . /lib/systemd/systemd
"""
UNIT = """[Unit]
Description=Tests of piped in this machine
Requires=basic.target
After=basic.target
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
Environment=PIPED_TEST_SLOWDOWN={slowdown}
ExecStart=-/usr/bin/python3 -u /guest/guest_arm64.py
ExecStart=-/usr/bin/python3 -u /guest/service.py /guest {prefix} {sysconfdir}
StandardOutput=file:/dev/console
StandardError=inherit
TimeoutStartSec={limit}
"""


def unpacked(folder):
    """Debian's packages for the guest, downloaded once. Return: their root."""
    root, stamp = os.path.join(folder, "root"), os.path.join(folder, "packages")
    if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != PACKAGES:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        run([tool("mmdebstrap"), "--quiet", "--variant=extract", "--architectures=arm64", "--include=" + PACKAGES,
             "bookworm", root])
        run([tool("depmod"), "-b", root, release(root)])
        with open(stamp, "w", encoding="utf-8") as f:
            f.write(PACKAGES)
    return root


def release(root):
    return os.listdir(os.path.join(root, "lib", "modules"))[0]


def libraries(programs, roots):
    """Libraries that the programs ask for, and these in turn, and that the guest's own packages do not have: from the
    packages that piped was linked with. Return: (file, name in the guest)."""
    guest, linked = roots
    found, todo = {}, list(programs)
    while todo:
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run([tool("readelf"), "-d", todo.pop()])):
            if name in found or any(os.path.exists(os.path.join(guest, f, name)) for f in (LIBS, LIBS[4:])):
                continue
            places = [os.path.join(linked, f, name) for f in (LIBS, LIBS + "/openblas-pthread", LIBS[4:])]
            here = [p for p in places if os.path.exists(p)]
            if not here:
                raise Missing("no %s for arm64" % name)
            found[name] = os.path.realpath(here[0])
            todo.append(found[name])
    return [(path, "/%s/%s" % (LIBS, name)) for name, path in found.items()]


def add_users(initrd, root):
    """What the packages' own scripts would have made."""
    master = os.path.join(root, "usr", "share", "base-passwd")
    for name in ("passwd", "group"):
        initrd.file(os.path.join(master, name + ".master"), "/etc/" + name)
    with open(os.path.join(master, "passwd.master"), encoding="utf-8") as f:
        users = [line.split(":")[0] for line in f]
    initrd.data("/etc/shadow", "".join("%s:*:19000:0:99999:7:::\n" % u for u in users).encode(), 0o600)
    initrd.data("/etc/machine-id", b"5a1e0f3c2b6d4e7f8a9b0c1d2e3f4a5b\n")


def make_initrd(path, source, cross, guest, folder):
    dest = os.path.join(folder, "dest")
    run(["meson", "install", "-C", os.path.join(cross, "build"), "--no-rebuild"], env=dict(os.environ, DESTDIR=dest))
    initrd = Initrd(path)
    initrd.tree(guest, LEAVE_OUT)
    initrd.tree(dest)
    for name in ("/proc", "/sys", "/dev", "/new"):
        initrd.folder(name)
    initrd.device("/dev/console", 5, 1)
    programs = [os.path.join(dest + PREFIX, "bin", name) for name in ("piped", "pipectl")]
    for library, name in libraries(programs, (guest, os.path.join(cross, "debian", "root"))):
        initrd.file(library, name)
    if not os.path.lexists(os.path.join(guest, "bin", "sh")):
        initrd.link("/bin/sh", "bash")
    for name in ("vm/guest_arm64.py", "vm/cases.py", "wait.py"):
        initrd.file(os.path.join(source, "tests", name), "/guest/" + os.path.basename(name))
    initrd.file(os.path.join(source, "tests", "nspawn", "guest.py"), "/guest/service.py")
    for name in ("digits.onnx", "digits.sidecar.json", "heldout.pgm", "heldout.labels"):
        initrd.file(os.path.join(source, "model", "default", name), "/guest/" + name)
    add_users(initrd, guest)
    initrd.data("/etc/systemd/system/piped-tests.service",
                UNIT.format(prefix=PREFIX, sysconfdir=SYSCONFDIR, limit=LIMIT_S, slowdown=SLOWDOWN).encode())
    for unit in MASKED:
        initrd.link("/etc/systemd/system/" + unit, "/dev/null")
    initrd.modules(module_files(os.path.join(guest, "lib", "modules", release(guest)), MODULES))
    initrd.data("/init", INIT.encode(), 0o755)
    initrd.close()


def make_device_tree(qemu, folder):
    """QEMU's own, with the overlay. Return: file."""
    base, source, overlay, result = (os.path.join(folder, n) for n in ("base.dtb", "unequal.dts", "unequal.dtbo",
                                                                       "machine.dtb"))
    run([*qemu[:1], "-machine", qemu[2] + ",dumpdtb=" + base, *qemu[3:], "-nodefaults", "-display", "none"])
    chip = run([tool("fdtget"), base, GPIO_CHIP, "phandle"]).strip()
    with open(source, "w", encoding="utf-8") as f:
        f.write(device_tree.overlay(CLUSTERS, CLUSTER_SIZE, chip))
    # what the chip's handle refers to is outside the overlay
    run([tool("dtc"), "-@", "-q", "-W", "no-gpios_property", "-I", "dts", "-O", "dtb", "-o", overlay, source])
    run([tool("fdtoverlay"), "-i", base, "-o", result, overlay])
    return result


def prepare(source, build, folder, cases):
    """Return: the command that boots it, apart from the console."""
    cross = os.environ.get("PIPED_TEST_ARM64")
    if not cross:
        raise Missing("PIPED_TEST_ARM64 names no cross build; run tests/run --vm")
    guest = unpacked(os.path.join(cross, "guest"))
    step("packages")
    make_initrd(os.path.join(folder, "initrd"), source, cross, guest, folder)
    step("initrd of %d MiB" % (os.path.getsize(os.path.join(folder, "initrd")) >> 20))
    qemu = [tool("qemu-system-aarch64"), "-machine", "virt", "-cpu", CPU,
            "-smp", "%d,sockets=1,clusters=%d,cores=%d,threads=1" % (CPUS, CPUS // CLUSTER_SIZE, CLUSTER_SIZE),
            "-m", str(MEMORY_MIB)]
    tree = make_device_tree(qemu, folder)
    kernel = glob.glob(os.path.join(guest, "boot", "vmlinuz-*"))
    return qemu + ["-dtb", tree, "-kernel", kernel[0], "-initrd", os.path.join(folder, "initrd"),
                   "-append", "console=ttyAMA0 systemd.unit=piped-tests.service systemd.show_status=no " +
                   append(cases)]
