# SPDX-License-Identifier: Apache-2.0
"""The x86 machine: two frequency domains, each a NUMA node, a thermal zone and a simulated GPIO chip.

Nothing is installed and no rights are needed: the kernel is taken out of Debian's package, the root file system is an
initrd with this machine's own Python, the programs under test and the libraries they ask for, and guest.py is process
1 in there.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig

import acpi
from machine import CLUSTER_SIZE, CPUS, Initrd, Missing, append, module_files, run, step, tool

LIMIT_S = 600
RESULTS = 1
NODE_MIB = 768  # of each NUMA node; there is one a cluster
MODULES = ("acpi-cpufreq", "cpufreq_powersave", "cpufreq_userspace", "cpufreq_ondemand", "thermal", "configfs")
# Of the standard library: what guest.py cannot do without would be longer than what it can.
PYTHON_LEAVES_OUT = ("test", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data", "distutils", "asyncio",
                     "unittest", "xml", "email", "http", "html", "multiprocessing", "sqlite3", "wsgiref",
                     "__pycache__", "turtledemo", "dbm", "curses", "venv", "dist-packages",
                     "site-packages")


INIT = b"""#!/usr/bin/python3 -u
import runpy
import sys
sys.path.insert(0, "/guest")
runpy.run_path("/guest/guest.py", run_name="__main__")
"""


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


def make_initrd(path, root, programs, modules):
    """`modules`: in loading order; of `programs` the libraries come along."""
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
    for program in programs:
        initrd.file(program, "/usr/bin/" + os.path.basename(program))
    for name in ("vm/guest.py", "vm/nodes.py", "vm/cases.py", "wait.py"):
        initrd.file(os.path.join(root, "tests", name), "/guest/" + os.path.basename(name))
    for name in ("digits.onnx", "digits.sidecar.json"):
        initrd.file(os.path.join(root, "model", "default", name), "/guest/" + name)
    initrd.modules(modules)
    initrd.data("/init", INIT, 0o755)
    initrd.close()


def nodes():
    """Return: QEMU's options for the cores and the memory: each cluster is a socket and a NUMA node."""
    count = CPUS // CLUSTER_SIZE
    options = ["-smp", "%d,sockets=%d,cores=%d,threads=1" % (CPUS, count, CLUSTER_SIZE), "-m", str(count * NODE_MIB)]
    for node in range(count):
        first = node * CLUSTER_SIZE
        options += ["-object", "memory-backend-ram,id=m%d,size=%dM" % (node, NODE_MIB),
                    "-numa", "node,nodeid=%d,cpus=%d-%d,memdev=m%d" % (node, first, first + CLUSTER_SIZE - 1, node)]
    return options


def prepare(root, build, folder, cases):
    """Return: the command that boots it, apart from the console."""
    cache = os.path.join(build, "vm-cache")
    version, files = kernel(cache)
    step("kernel %s" % version)
    modules = module_files(os.path.join(files, "lib", "modules", version), MODULES) + [gpio_sim(cache, version)]
    step("modules")
    programs = [os.path.join(build, "daemon", "piped"), os.path.join(build, "apps", "pipectl", "pipectl")]
    make_initrd(os.path.join(folder, "initrd"), root, programs, modules)
    step("initrd of %d MiB" % (os.path.getsize(os.path.join(folder, "initrd")) >> 20))
    source = os.path.join(folder, "unequal.asl")
    with open(source, "w", encoding="utf-8") as f:
        f.write(acpi.table(CPUS, CLUSTER_SIZE))
    run([tool("iasl"), "-p", os.path.join(folder, "unequal"), source])
    return [tool("qemu-system-x86_64"), "-machine", "q35",
            # acpi-cpufreq binds to what calls itself Intel
            "-cpu", "max,vendor=GenuineIntel", *nodes(),
            "-kernel", os.path.join(files, "boot", "vmlinuz-" + version),
            "-initrd", os.path.join(folder, "initrd"),
            "-append", "console=ttyS0 " + append(cases) + " random.trust_cpu=on",
            # its scratch register holds the temperature, see acpi.py
            "-serial", "null",
            "-acpitable", "file=" + os.path.join(folder, "unequal.aml")]
