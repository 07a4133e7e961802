# SPDX-License-Identifier: Apache-2.0
"""tests/run --fuzz MINUTES: the fuzz targets under libFuzzer, which follows what code an input reaches; a part of
tests/runner.py.

They are built by clang with AddressSanitizer and UBSan in build-fuzz. Each begins with the seeds that the ordinary
tests have, and grows a corpus in build-fuzz/corpus, which the next run begins with.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess

from builds import compiler
from folders import ROOT, Stop, build, need_names, say, targets

FOLDER = "build-fuzz"
OPTIONS = ["-Dfuzzers=true", "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dman=disabled", "-Dx86_isa=",
           "-Doptimization=1", "-Dc_args=-g1 -fsanitize=fuzzer-no-link"]
CORPORA = {"fuzz_compile": "quantised"}
LONGEST = 65536  # bytes of an input
# These reach so much code with each input that libFuzzer's statistics of rare places would take most of the time.
WIDE = ("fuzz_conversation", "fuzz_sysfs")
ENV = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
       "LSAN_OPTIONS": "suppressions=%s" % os.path.join(ROOT, "tests", "lsan.supp")}


def is_target(t):
    return t["name"].startswith("fuzz_") and t["type"] == "executable"


def seed(name):
    """Return: the folder with the seeds of the ordinary test."""
    folder = os.path.join(ROOT, FOLDER, "seeds", name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    subprocess.run([os.path.join(ROOT, "build", "tests", "fuzz", name), "-w", folder,
                    *glob.glob(os.path.join(ROOT, "tests", "fuzz", "corpus", CORPORA.get(name, name.replace("fuzz_", ""))))],
                   check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def fuzz(name, seconds):
    """Return: (name, inputs, places of the code reached, inputs of the corpus, log of a failure or None)"""
    corpus = os.path.join(ROOT, FOLDER, "corpus", name)
    log = os.path.join(ROOT, FOLDER, name + ".log")
    wide = ["-entropic=0", "-print_funcs=0"] if name in WIDE else []
    os.makedirs(corpus, exist_ok=True)
    with open(log, "wb") as out:
        code = subprocess.run([os.path.join(ROOT, FOLDER, "tests", "fuzz", name), corpus, seed(name),
                               *wide, "-max_total_time=%d" % seconds, "-max_len=%d" % LONGEST, "-print_final_stats=1",
                               "-rss_limit_mb=4096", "-timeout=30", "-artifact_prefix=%s-" % corpus],
                              stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(os.environ, **ENV),
                              check=False).returncode
    with open(log, encoding="utf-8", errors="replace") as f:
        text = f.read()
    inputs = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    reached = re.findall(r"cov: (\d+)", text)
    return (name, int(inputs.group(1)) if inputs else 0, int(reached[-1]) if reached else 0, len(os.listdir(corpus)),
            log if code else None)


def test_fuzz(minutes, names, options, jobs, totals):
    """Every target, or those of `names`, for an equal share of the time."""
    if not shutil.which("clang"):
        raise Stop("clang is not installed")
    wanted = ["fuzz_" + n for n in names]
    build(FOLDER, options + OPTIONS, jobs, {"CC": compiler("clang")},
          only=lambda folder: targets(folder, lambda t: is_target(t) and (not wanted or t["name"] in wanted)))
    found = sorted(os.path.basename(path) for path in targets(FOLDER, is_target))
    need_names(wanted, found, "fuzz target")
    wanted = wanted or found
    cores = len(os.sched_getaffinity(0))
    seconds = max(1, int(minutes * 60 * min(cores, len(wanted)) / len(wanted)))
    say("%d targets, %d s each" % (len(wanted), seconds))
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        for name, inputs, reached, kept, failed in pool.map(lambda n: fuzz(n, seconds), wanted):
            say("%s: %d inputs, %d places of the code reached, %d inputs in the corpus" % (name, inputs, reached, kept))
            if failed:
                totals.fail(FOLDER, name, "see %s" % failed)
            else:
                totals.passed += 1
