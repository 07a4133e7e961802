#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped in a virtual machine with unequal cores: governors, limits, heat, cores that go, GPIO.

usage: test_vm.py SOURCE_ROOT BUILD_ROOT [CASE...]

Part of `tests/run --vm` only: it takes minutes, since the machine is emulated in software. What is downloaded and
unpacked stays in BUILD_ROOT/vm-cache. guest.py has the cases; judged is what the daemon says and answers, not how
fast, since an emulated CPU does not follow its frequency.
"""
import os
import re
import sys
import tempfile
import time

import acpi
import machine

ROOT, BUILD = (os.path.abspath(p) for p in sys.argv[1:3])
WANTED = sys.argv[3:]
CPUS, DOMAIN, MEMORY_MIB, LIMIT_S = 4, 2, 1024, 420


def step(text, start):
    print("-- %s: %.1f s" % (text, time.monotonic() - start), flush=True)
    return time.monotonic()


def main():
    if not os.environ.get("PIPED_TEST_VM"):
        print("skipped: tests in a virtual machine: they are part of tests/run --vm")
        return 77
    cache = os.path.join(BUILD, "vm-cache")
    start = time.monotonic()
    piped, pipectl = os.path.join(BUILD, "daemon", "piped"), os.path.join(BUILD, "ipc", "pipectl")
    default = os.path.join(ROOT, "model", "default")
    files = [(piped, "/usr/bin/piped"), (pipectl, "/usr/bin/pipectl"),
             (os.path.join(ROOT, "tests", "vm", "guest.py"), "/guest/guest.py")]
    files += [(os.path.join(default, name), "/guest/" + name) for name in ("digits.onnx", "digits.sidecar.json")]
    with tempfile.TemporaryDirectory(prefix="piped-vm-") as folder:
        try:
            version, kernel = machine.kernel(cache)
            start = step("kernel %s" % version, start)
            modules = machine.module_files(version, kernel)
            try:
                modules.append(machine.gpio_sim(cache, version))
            except machine.Missing as e:
                print("-- no gpio-sim: %s" % e)
            start = step("modules", start)
            machine.make_initrd(os.path.join(folder, "initrd"), files, [piped, pipectl], modules)
            start = step("initrd of %d MiB" % (os.path.getsize(os.path.join(folder, "initrd")) >> 20), start)
            table = acpi.table(CPUS, DOMAIN)
            text, why = machine.boot(folder, version, kernel, table, CPUS, MEMORY_MIB, LIMIT_S, WANTED)
        except machine.Missing as e:
            print("FAIL vm: %s" % e)
            return 1
        step("boot, run, power off", start)
    at = text.find("-- guest")
    print(text[at if at >= 0 else -4000:])
    counts = re.search(r"^cases: \d+ passed, (\d+) failed, \d+ skipped$", text, re.M)
    if counts is None or why:
        print("FAIL vm: %s" % (why or "the guest ended without a result"))
        return 1
    return 1 if int(counts.group(1)) else 0


sys.exit(main())
