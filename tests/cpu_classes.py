# SPDX-License-Identifier: Apache-2.0
"""Lesser CPUs than this one: what depends on the CPU's features, once for each class that this machine can play.

PIPED_CPU (kernels/common/cpu.h) narrows the features of the programs under test, and oneDNN's; OpenBLAS is told its core from
outside, as the daemon does for itself. Which features there are and which core fits them says test_blas_check. A
class that this machine cannot play is named in the summary. The class that this machine is, with OpenBLAS's own choice
of a core, has been run by the plain run.

The plain run has run every primitive that this CPU can, those for lesser CPUs among them. What another class changes
is which are there, which come first, and which code the libraries under them choose: so a share of the random cases
will do, and of test_primitives, the longest, the primitives over libraries. Beside them: reduced networks against stored
answers, and the daemon with the embedded network and with real ones.
"""
import json
import os
import platform
import re
import subprocess

# What the CPU's class is called, PIPED_CPU, and the features that it then has, as test_cpu.c names them.
CLASSES = {
    "x86_64": (
        ("SSE2 only", "sse2", ""),
        ("AVX2", "avx2", "avx2"),
        ("AVX2 with VNNI", "avxvnni", "avx2,avxvnni"),
        ("AVX-512 without VNNI", "avx512", "avx2,avx512"),
        ("AVX-512 with VNNI", "avx512vnni", "avx2,avx512,avx512vnni"),
        ("AVX-512 with bf16", "avx512bf16", "avx2,avx512,avx512vnni,avx512bf16"),
        ("AMX", "amx", "avx2,avx512,avx512vnni,avx512bf16,amx"),
    ),
    "aarch64": (
        ("NEON only", "neon", "neon"),
        ("Arm dot products", "dotprod", "neon,dotprod"),
        ("Arm i8mm", "i8mm", "neon,dotprod,i8mm"),
    ),
}
SHARE = "16"
TESTS = ("cpu", "blas_check", "primitives_i8", "primitives_light", "winograd", "fused", "libraries", "image", "light",
         "system-cpu", "system-real-networks")
LEAST = ("preprocess", "preprocess_sizes")  # there is code of them for AVX2, and for any CPU
OVER_LIBRARIES, LIBRARIES = ("primitives",), "__dnnl$,__blas$,__xnn$"
STATUS = re.compile(r"wanted=(\S+) .* features=(\S+)")


def status(folder, cpu=None):
    """Return: (features, OpenBLAS's core to set or None) under PIPED_CPU=`cpu`, or without it."""
    program = os.path.join(folder, "tests", "kernels", "test_blas_check")
    env = {k: v for k, v in os.environ.items() if k != "PIPED_CPU"}
    said = subprocess.run([program, "status"], env=dict(env, PIPED_CPU=cpu) if cpu else env, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
    wanted, features = STATUS.search(said).groups()
    return set(features.split(",")), None if wanted == "-" else wanted


def environment(folder, cpu, features):
    """Return: what to set for a class, {} if this machine is of it, or None if it cannot play it."""
    there, core = status(folder, cpu)
    if cpu not in there:
        return None
    if (there, core) == status(folder):
        return {}
    env = {"PIPED_CPU": cpu, "PIPED_TEST_CPU": features, "PIPED_TEST_SHARE": SHARE}
    return dict(env, OPENBLAS_CORETYPE=core) if core else env


def names_of(folder):
    out = subprocess.run(["meson", "introspect", folder, "--tests"], capture_output=True, text=True, check=True).stdout
    return {t["name"] for t in json.loads(out)}


def play(folder, run_tests, env):
    """Runs the tests of all classes by run_tests(where, names, environment). Return: the classes that this machine
    cannot play."""
    missing, there = [], names_of(folder)

    def run(part, names, own):
        names = [n for n in names if n in there]
        if names:
            run_tests("cpu " + part, names, dict(env, **own))

    for i, (title, cpu, features) in enumerate(CLASSES.get(platform.machine(), ())):
        own = environment(folder, cpu, features)
        if own is None:
            missing.append("%s (%s)" % (title, cpu))
        if not own:
            continue
        run(cpu, TESTS if i else TESTS + LEAST, own)
        run(cpu + " libraries", OVER_LIBRARIES, dict(own, PIPED_TEST_PRIMITIVES=LIBRARIES))
    return missing
