# SPDX-License-Identifier: Apache-2.0
"""A machine with AVX-512 emulated by Bochs, which knows instructions that other emulators do not.

Bochs starts from a disk like a real machine. Its first sector is boot.S, which reads the kernel of tests/vm,
decompressed here, and an initrd into memory. Process 1 of that is init.c; what it prints goes to the serial console,
which is a file here.
"""
import contextlib
import lzma
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import threading
import tty

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "vm"), TESTS]
import machine  # noqa: E402  (of tests/vm)
import x86  # noqa: E402
from wait import asked  # noqa: E402

LOOK_S = 0.5  # between two looks at the console
BUSY = 4  # how much longer than its processor time a machine may take where others run, too
SECTOR = 512
COPIES, CHUNK = 440, 128  # of boot.S
TRACK, HEADS = 63, 16
# Physical addresses: the kernel's is its own, the others are free there. RESERVED at the end is the BIOS's.
START_AT, KERNEL_AT, INITRD_AT, RESERVED = 0x20000, 0x1000000, 0x8000000, 0x100000
PT_LOAD, PT_NOTE, NOTE_PHYS32_ENTRY = 1, 4, 18
BIOS, VGA_BIOS = "/usr/share/bochs/BIOS-bochs-latest", "/usr/share/vgabios/vgabios.bin"
ARGUMENTS = ("console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nokaslr random.trust_cpu=on acpi=off pci=off"
             " nosmp tsc=reliable lpj=1000000")
# Bochs gives the first three no or a wrong size in the registers' memory image, and then the kernel saves none of
# them. Where a model has fsrm (fast moves of few bytes), the kernel writes over itself before it has come up.
WRONG = "clearcpuid=pku,xsaves,xsavec,fsrm"
# What emulated time is derived from; it is slower in truth, so that time in there is not too fast.
INSTRUCTIONS_A_SECOND = 20000000
SCREEN = re.compile(rb'connected to screen "([^"]+)"')
CONFIG = """config_interface: textconfig
display_library: term
cpu: model=%(model)s, count=1, ips=%(ips)d, reset_on_triple_fault=0, ignore_bad_msrs=1
memory: guest=%(memory)d, host=%(memory)d
romimage: file=%(bios)s, options=fastboot
vgaromimage: file=%(vga)s
pci: enabled=1, chipset=i440fx
clock: sync=none
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=disk, path=%(disk)s, mode=flat, cylinders=%(cylinders)d, heads=%(heads)d, spt=%(track)d
boot: disk
com1: enabled=1, mode=file, dev=%(console)s
speaker: enabled=0
log: %(log)s
panic: action=fatal
error: action=report
info: action=report
debug: action=ignore
"""


def make_initrd(path, init, tests, programs):
    """`tests`: lines for init.c; `programs`: (file here, name in the guest), with the libraries they ask for."""
    initrd = machine.Initrd(path)
    for name in ("/dev", "/proc", "/sys", "/tmp"):
        initrd.folder(name)
    initrd.device("/dev/console", 5, 1)
    for link, target in (("/lib", "usr/lib"), ("/lib64", "usr/lib64"), ("/bin", "usr/bin"), ("/sbin", "usr/sbin")):
        initrd.link(link, target)
    for library in x86.libraries([p for p, _ in programs]):
        real = "/usr" + library if library.startswith("/lib") else library
        initrd.file(library, real)
    for source, name in programs:
        initrd.file(source, name)
    initrd.file(init, "/init")
    initrd.data("/tests", ("\n".join(tests) + "\n").encode())
    initrd.close()


def payload(bzimage):
    """The kernel within, decompressed here: the emulator would take minutes."""
    with open(bzimage, "rb") as f:
        image = f.read()
    offset, length = struct.unpack_from("<II", image, 0x248)  # payload_offset, payload_length of the boot protocol
    at = ((image[0x1F1] or 4) + 1) * SECTOR + offset
    try:
        return lzma.LZMADecompressor().decompress(image[at:at + length])
    except lzma.LZMAError as e:
        raise machine.Missing("%s is not compressed by xz: %s" % (bzimage, e)) from e


def notes(data):
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, at)
        name = data[at + 12:at + 12 + name_size].rstrip(b"\0")
        at += 12 + (name_size + 3) // 4 * 4
        yield name, kind, data[at:at + size]
        at += (size + 3) // 4 * 4


def flatten(elf, path):
    """Writes what belongs at KERNEL_AT and behind it. Return: where the kernel begins by the PVH protocol."""
    first, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    entry = None
    with open(path, "wb") as out:
        for i in range(count):
            kind, _, offset, _, paddr, length = struct.unpack_from("<IIQQQQ", elf, first + i * size)
            if kind == PT_LOAD:
                out.seek(paddr - KERNEL_AT)
                out.write(elf[offset:offset + length])
            for name, what, text in notes(elf[offset:offset + length]) if kind == PT_NOTE else ():
                if (name, what) == (b"Xen", NOTE_PHYS32_ENTRY):
                    entry = int.from_bytes(text, "little")
    if entry is None:
        raise machine.Missing("the kernel has no PVH entry")
    return entry


def start_info(memory_mib, initrd_bytes):
    """Return: struct hvm_start_info with what it points to, for START_AT."""
    modules, memory, words = START_AT + 64, START_AT + 128, START_AT + 512
    ram = ((0, 0x9F000), (0x100000, (memory_mib << 20) - 0x100000 - RESERVED))
    info = struct.pack("<IIIIQQQQII", 0x336EC578, 1, 0, 1, modules, words, 0, memory, len(ram), 0)
    info = info.ljust(64, b"\0") + struct.pack("<QQQQ", INITRD_AT, initrd_bytes, 0, 0)
    info = info.ljust(128, b"\0") + b"".join(struct.pack("<QQII", at, size, 1, 0) for at, size in ram)
    return info.ljust(512, b"\0") + ("%s %s" % (ARGUMENTS, WRONG)).encode() + b"\0"


def make_disk(path, sector, entry, copies):
    """`sector`: file of boot.S; `copies`: (file, address). Return: cylinders."""
    with open(sector, "rb") as f:
        boot = bytearray(f.read())
    at = 1
    with open(path, "wb") as disk:
        for i, (source, address) in enumerate(copies):
            chunks = os.path.getsize(source) // (CHUNK * SECTOR) + 1
            struct.pack_into("<III", boot, COPIES + 12 * i, at, chunks, address)
            disk.seek(at * SECTOR)
            with open(source, "rb") as f:
                shutil.copyfileobj(f, disk)
            at += chunks * CHUNK
        struct.pack_into("<II", boot, SECTOR - 10, START_AT, entry)
        disk.seek(0)
        disk.write(boot)
        cylinders = at // (TRACK * HEADS) + 1
        disk.truncate(cylinders * TRACK * HEADS * SECTOR)
    return cylinders


def models():
    """Return: names of the CPUs that Bochs knows."""
    shown = subprocess.run([machine.tool("bochs"), "--help", "cpu"], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=False)
    return set((shown.stdout + shown.stderr).split())


def swallow(fd):
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass
    finally:
        os.close(fd)


def drain(terminal):
    """Nobody looks at what Bochs says, nor at the screen that it draws on a terminal of its own. Both have to be read
    all the same: where that is full, minutes later, the emulated machine stands still."""
    said, found = b"", None
    try:
        while not found:
            said = said[-4096:] + os.read(terminal, 65536)
            found = SCREEN.search(said)
        screen = os.open(found.group(1), os.O_RDWR | os.O_NOCTTY)
        tty.setraw(screen)
        threading.Thread(target=swallow, args=(screen,), daemon=True).start()
    except OSError:
        pass
    swallow(terminal)


def start(folder, model, memory_mib, kernel, sector):
    """`kernel`: (file of flatten(), entry); folder/initrd is there. Return: (process, console file, log file)."""
    files = {name: os.path.join(folder, name)
             for name in ("bochsrc", "console", "log", "debugger", "disk", "info", "initrd")}
    with open(files["info"], "wb") as f:
        f.write(start_info(memory_mib, os.path.getsize(files["initrd"])))
    cylinders = make_disk(files["disk"], sector, kernel[1], (
        (kernel[0], KERNEL_AT), (files["initrd"], INITRD_AT), (files["info"], START_AT)))
    with open(files["debugger"], "w", encoding="utf-8") as f:
        f.write("c\n")  # Debian's Bochs has a debugger, which waits for that
    with open(files["bochsrc"], "w", encoding="utf-8") as f:
        f.write(CONFIG % dict(files, model=model, ips=INSTRUCTIONS_A_SECOND, memory=memory_mib, bios=BIOS,
                              vga=VGA_BIOS, cylinders=cylinders, heads=HEADS, track=TRACK))
    master, terminal = pty.openpty()
    command = [machine.tool("bochs"), "-q", "-f", files["bochsrc"], "-rc", files["debugger"]]
    env = dict(os.environ, TERM="vt100", LINES="30", COLUMNS="100")
    env.pop("MALLOC_PERTURB_", None)  # Meson sets it, and Bochs aborts where fresh memory is not zero
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    threading.Thread(target=drain, args=(master,), daemon=True).start()
    return process, files["console"], files["log"]


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read().replace("\r\n", "\n")


def spent_s(process):
    """Return: seconds of processor time of a running process, so that a busy machine ends no machine early."""
    with open("/proc/%d/stat" % process.pid, encoding="utf-8") as f:
        user, system = f.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def run(folder, model, memory_mib, kernel, sector, limit_s):
    """Runs the machine to its end, for at most @limit_s of processor time.
    Return: (text of the console, why it did not come to its end or None)."""
    process, console, log = start(folder, model, memory_mib, kernel, sector)
    def look(left_s):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(LOOK_S, left_s))
    def ended():
        return process.poll() is not None or "\n-- end\n" in read(console)
    try:
        asked(lambda: ended() or spent_s(process) > limit_s, BUSY * limit_s, look)
        if not ended():
            return read(console), "no end within %d s of processor time" % limit_s
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    text = read(console)
    why = None if "\n-- end\n" in text else "Bochs ended by %d: %s" % (process.returncode, read(log)[-1500:])
    return text, why
