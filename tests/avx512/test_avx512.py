#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels for AVX-512 and for dot products of bytes, run on emulated CPUs that have them.

usage: test_avx512.py CACHE BOOT INIT PROGRAM...

Part of `tests/run --avx512` only: it takes minutes. BOOT is boot.S, INIT init.c; the programs are tests of kernels/;
they run on what MACHINES lists, several machines at a time, but for models that this Bochs does not know (2.7 has none
with VNNI of 256 bits alone, 3.0 has). What is downloaded and unpacked stays in CACHE.
"""
import concurrent.futures
import os
import re
import sys
import tempfile
import time

import emulator
import machine  # of tests/vm
import x86

MEMORY_MIB, LIMIT_S = 1024, 1200
SKYLAKE = ("corei7_skylake_x", "avx2,avx512")
ICELAKE = ("corei7_icelake_u", "avx2,avx512,avx512vnni")
ARROWLAKE = ("arrow_lake", "avx2,avxvnni")
# (what is tried, (model of Bochs, what must be found there), one random case of how many, programs and their rows).
# A real CPU runs all cases of all rows (tests/run). The longest stand first.
MACHINES = (
    ("bytes", ICELAKE, 10, (("test_cpu", ""),
                            ("test_primitives_i8", "__avx512$,__avx512vnni$,i8_nhwc__dnnl$,i8__dnnl$"))),
    ("bytes on 256 bits", ARROWLAKE, 10, (("test_cpu", ""), ("test_primitives_i8", "__avx2$,__avxvnni$"))),
    ("f32", SKYLAKE, 64, (("test_primitives", "__avx512$"),)),
    ("fused and light", SKYLAKE, 64, (("test_fused", "__avx512$"), ("test_primitives_light", "__avx512$"))),
    ("Winograd", SKYLAKE, 64, (("test_cpu", ""), ("test_winograd", ""))),
)


def say(text, start):
    print("-- %s: %.1f s" % (text, time.monotonic() - start), flush=True)


def line_of(program, rows, features, share):
    words = ["PIPED_TEST_CPU=" + features, "PIPED_TEST_SHARE=%d" % share]
    return " ".join(words + (["PIPED_TEST_PRIMITIVES=" + rows] if rows else []) + ["/usr/bin/" + program])


def boot(folder, kernel, sector, init, programs, wanted):
    """Return: (what the console showed, why it failed or None)."""
    _, (model, features), share, tests = wanted
    used = {name for name, _ in tests}
    os.makedirs(folder)
    emulator.make_initrd(os.path.join(folder, "initrd"), init,
                         [line_of(name, rows, features, share) for name, rows in tests],
                         [(path, "/usr/bin/" + name) for name, path in programs.items() if name in used])
    text, why = emulator.run(folder, model, MEMORY_MIB, kernel, sector, LIMIT_S)
    codes = re.findall(r"^-- exit (\d+)$", text, re.M)
    if why is None and (len(codes) != len(tests) or any(c != "0" for c in codes)):
        why = "exit codes %s of %d programs" % (" ".join(codes), len(tests))
    return text, why


def known():
    """Return: those of MACHINES whose model Bochs has."""
    models = emulator.models()
    for name, (model, _), _, _ in MACHINES:
        if model not in models:
            print("-- %s: not run, this Bochs has no model %s" % (name, model), flush=True)
    return [m for m in MACHINES if m[1][0] in models]


def stripped(folder, paths):
    """Return: name -> file without symbols."""
    programs = {os.path.basename(p): os.path.join(folder, os.path.basename(p)) for p in paths}
    for path in paths:
        machine.run([machine.tool("strip"), "-o", programs[os.path.basename(path)], path])
    return programs


def main(argv):
    if not os.environ.get("PIPED_TEST_AVX512"):
        print("skipped: tests on emulated CPUs: they are part of tests/run --avx512")
        return 77
    cache, sector, init, paths = argv[0], argv[1], argv[2], argv[3:]
    failed, start = 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="piped-avx512-") as folder:
        try:
            version, unpacked = x86.kernel(cache)
            flat = os.path.join(folder, "kernel")
            entry = emulator.flatten(
                emulator.payload(os.path.join(unpacked, "boot", "vmlinuz-" + version)), flat)
            programs = stripped(folder, paths)
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                jobs = [(m, pool.submit(boot, os.path.join(folder, "machine%d" % i), (flat, entry), sector, init,
                                        programs, m)) for i, m in enumerate(known())]
                for wanted, job in jobs:
                    text, why = job.result()
                    say("%s (%s)" % (wanted[0], wanted[1][0]), start)
                    print(text[max(text.find("-- run"), 0):] if "-- run" in text else text[-4000:])
                    if why:
                        print("FAIL %s: %s" % (wanted[0], why))
                        failed += 1
        except machine.Missing as e:
            print("FAIL avx512: %s" % e)
            return 1
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
