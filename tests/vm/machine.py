# SPDX-License-Identifier: Apache-2.0
"""A virtual machine out of Debian's kernel package and this machine's own files.

Nothing is installed and no rights are needed: the kernel is taken out of its package, the root file system is an
initrd with Python, the programs under test and the libraries they ask for, and guest.py is process 1 in there. What it
prints goes to the serial console, which is a file here.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig

MODULES = ("acpi-cpufreq", "cpufreq_powersave", "cpufreq_userspace", "cpufreq_ondemand", "thermal", "configfs")
# Of the standard library: what guest.py cannot do without would be longer than what it can.
PYTHON_LEAVES_OUT = ("test", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data", "distutils", "asyncio",
                     "unittest", "xml", "email", "http", "html", "multiprocessing", "sqlite3", "wsgiref",
                     "__pycache__", "turtledemo", "dbm", "curses", "venv", "dist-packages",
                     "site-packages")


INIT = b"""#!/usr/bin/python3 -u
import runpy
runpy.run_path("/guest/guest.py", run_name="__main__")
"""


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


def release():
    """Of the kernel that this Debian offers now, as in "6.1.0-56-amd64"."""
    depends = run([tool("apt-cache"), "depends", "linux-image-amd64"])
    found = re.search(r"Depends: linux-image-(\S+)", depends)
    if found is None:
        raise Missing("no package linux-image-amd64 is known here")
    return found.group(1)


def package(cache, name):
    """The package's file, downloaded once."""
    folder = os.path.join(cache, "packages")
    os.makedirs(folder, exist_ok=True)
    found = glob.glob(os.path.join(folder, name + "_*.deb"))
    if not found:
        run([tool("apt-get"), "download", "-qq", name], cwd=folder, timeout=600)
        found = glob.glob(os.path.join(folder, name + "_*.deb"))
    if not found:
        raise Missing("package %s could not be downloaded" % name)
    return found[0]


def kernel(cache):
    """Return: (release, folder with boot/ and lib/modules/), unpacked once."""
    version = release()
    folder = os.path.join(cache, "kernel-" + version)
    if not os.path.exists(os.path.join(folder, "ready")):
        shutil.rmtree(folder, ignore_errors=True)
        run([tool("dpkg-deb"), "-x", package(cache, "linux-image-" + version), folder])
        run([tool("depmod"), "-b", folder, version])
        open(os.path.join(folder, "ready"), "w", encoding="utf-8").close()
    return version, folder


def module_files(version, folder):
    """The modules and what they need, in the order in which they can be loaded."""
    base = os.path.join(folder, "lib", "modules", version)
    needs = {}
    with open(os.path.join(base, "modules.dep"), encoding="utf-8") as f:
        for line in f:
            path, _, rest = line.partition(":")
            needs[path] = rest.split()
    by_name = {os.path.basename(p).split(".")[0].replace("-", "_"): p for p in needs}
    order = []
    for name in MODULES:
        path = by_name.get(name.replace("-", "_"))
        if path is None:
            continue  # built in
        for p in reversed([path] + needs[path]):
            if p not in order:
                order.append(p)
    return [os.path.join(base, p) for p in order]


def gpio_sim(cache, version):
    """The kernel's simulated GPIO chip, which Debian does not build: made out of the packaged source. Return: file."""
    target = os.path.join(cache, "gpio-sim-%s.ko" % version)
    headers = "/usr/src/linux-headers-" + version
    if os.path.exists(target):
        return target
    if not os.path.isdir(headers):
        raise Missing("%s is not installed (etc/install-deps vm)" % os.path.basename(headers))
    series = ".".join(version.split(".")[:2])
    name = "linux-source-" + series
    source = os.path.join(cache, "gpio-sim-source")
    shutil.rmtree(source, ignore_errors=True)
    os.makedirs(source)
    files = ["%s/%s" % (name, f) for f in ("drivers/gpio/gpio-sim.c", "drivers/gpio/gpiolib.h",
                                            "kernel/irq/irq_sim.c")]
    with subprocess.Popen([tool("dpkg-deb"), "--fsys-tarfile", package(cache, name)],
                          stdout=subprocess.PIPE) as outer:
        with subprocess.Popen([tool("tar"), "-xO", "./usr/src/%s.tar.xz" % name], stdin=outer.stdout,
                              stdout=subprocess.PIPE) as inner:
            done = subprocess.run([tool("tar"), "-xJ", "--strip-components=3", "-C", source, *files],
                                  stdin=inner.stdout, capture_output=True, check=False)
    if done.returncode:
        raise Missing("gpio-sim.c could not be taken from %s: %s" % (name, done.stderr.decode()[-300:]))
    # irq_to_desc() is not for modules; the exported function does the same here.
    path = os.path.join(source, "irq_sim.c")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace("handle_simple_irq(irq_to_desc(irqnum));", "generic_handle_irq(irqnum);"))
    # A module of two files needs a name of its own for the first.
    os.rename(os.path.join(source, "gpio-sim.c"), os.path.join(source, "gpio-sim-main.c"))
    with open(os.path.join(source, "Kbuild"), "w", encoding="utf-8") as f:
        f.write("obj-m := gpio-sim.o\ngpio-sim-y := gpio-sim-main.o irq_sim.o\n")
    run([tool("make"), "-s", "-C", headers, "M=" + source, "modules"], timeout=300)
    shutil.copy(os.path.join(source, "gpio-sim.ko"), target)
    return target


def libraries(programs):
    """What the dynamic linker loads for them, and the linker."""
    found = set()
    for program in programs:
        for line in run([tool("ldd"), program]).splitlines():
            path = re.search(r"(/\S+) \(0x", line)
            if path:
                found.add(path.group(1))
    return sorted(found)


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

    def folder(self, name):
        name = name.strip("/")
        if name and name not in self.folders:
            self.folder(os.path.dirname(name))
            self.folders.add(name)
            self.entry(name, 0o040755)

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

    def close(self):
        self.entry("TRAILER!!!", 0)
        self.out.close()


def add_python(initrd):
    """The interpreter that runs this, with what guest.py may import. Return: programs to find the libraries of."""
    stdlib = sysconfig.get_path("stdlib")
    initrd.file(os.path.realpath(sys.executable), "/usr/bin/python3")
    for folder, folders, files in os.walk(stdlib):
        folders[:] = [f for f in folders if f not in PYTHON_LEAVES_OUT and not f.startswith("config-")]
        for name in files:
            if name.endswith((".py", ".so")):
                initrd.file(os.path.join(folder, name))
    return [os.path.realpath(sys.executable)] + glob.glob(os.path.join(stdlib, "lib-dynload", "*.so"))


def make_initrd(path, files, programs, modules):
    """`files`: (source, name in the guest); of `programs` the libraries come along; `modules` in loading order."""
    initrd = Initrd(path)
    for name in ("/proc", "/sys", "/dev", "/tmp", "/run", "/state", "/cgroup", "/config"):
        initrd.folder(name)
    initrd.device("/dev/console", 5, 1)
    for link, target in (("/lib", "usr/lib"), ("/lib64", "usr/lib64"), ("/bin", "usr/bin"), ("/sbin", "usr/sbin")):
        if os.path.islink(link):
            initrd.link(link, target)
    needed = add_python(initrd) + programs
    for library in libraries(needed):
        # /lib is a link in the guest as it is here
        real = "/usr" + library if os.path.islink("/lib") and library.startswith("/lib") else library
        initrd.file(library, real)
    for source, name in files:
        initrd.file(source, name)
    for i, module in enumerate(modules):
        initrd.file(module, "/modules/%02d-%s" % (i, os.path.basename(module)))
    initrd.data("/init", INIT, 0o755)
    initrd.close()


def boot(folder, version, kernel_folder, table, cpus, memory_mib, limit_s, cases=()):
    """Runs the machine to its end; `cases`: names for guest.py, none: all. Return: (text of the console, why it did
    not end by itself or None)."""
    console = os.path.join(folder, "console")
    source = os.path.join(folder, "unequal.asl")
    with open(source, "w", encoding="utf-8") as f:
        f.write(table)
    run([tool("iasl"), "-p", os.path.join(folder, "unequal"), source])
    command = [tool("qemu-system-x86_64"), "-machine", "q35", "-accel", "tcg,thread=multi",
               # acpi-cpufreq binds to what calls itself Intel
               "-cpu", "max,vendor=GenuineIntel", "-smp", str(cpus), "-m", str(memory_mib), "-nodefaults", "-display",
               "none", "-monitor", "none", "-nic", "none", "-no-reboot",
               "-serial", "file:" + console, "-serial", "null",
               "-kernel", os.path.join(kernel_folder, "boot", "vmlinuz-" + version),
               "-initrd", os.path.join(folder, "initrd"),
               "-append", "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off random.trust_cpu=on %s" % (
                   "piped.cases=" + ",".join(cases) if cases else ""),
               "-acpitable", "file=" + os.path.join(folder, "unequal.aml")]
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
