#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon under PIPED_CPU: it serves with what is left of the CPU's features, and refuses names that it does not
know. tests/cpu_classes.py runs this for every class of CPU."""
import os
import platform

from daemon import ROOT, Daemon, check, equal, main, run_piped

HELDOUT = os.path.join(ROOT, "model", "default", "heldout.pgm")
LABELS = os.path.join(ROOT, "model", "default", "heldout.labels")
EX_CONFIG = 78
LEAST = {"x86_64": "sse2", "aarch64": "neon"}.get(platform.machine(), "base")
# OpenBLAS's cores on x86 that use no more than SSE
OLD_CORES = ("Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Generic")


def the_embedded_network_answers_as_trained():
    with Daemon() as d:
        answers = d.pipectl("infer", "--expect", LABELS, HELDOUT)
        check(answers["accuracy"] >= 0.97, answers["accuracy"])


def the_least_cpu_serves():
    with Daemon(env={"PIPED_CPU": LEAST, "OPENBLAS_CORETYPE": ""}) as d:
        answers = d.pipectl("infer", "--expect", LABELS, HELDOUT)
        check(answers["accuracy"] >= 0.97, answers["accuracy"])
        log, status = d.log(), d.status()
        core = status["blas"]["core"]
        equal(status["cpu_features"], LEAST)
        if "PIPED_CPU leaves" not in log:
            return "this CPU is the least one"
        check("PIPED_CPU limits the CPU's features to %s\n" % LEAST in log, log)
        if LEAST == "sse2" and "OpenBLAS cannot be narrowed" not in log:
            check(core in OLD_CORES, core)
    return None


def a_name_that_is_not_known_is_refused():
    for args in ([], ["--check-config"]):
        done = run_piped(*args, env={"PIPED_CPU": LEAST + ",sse9"})
        equal(done.returncode, EX_CONFIG, done.stderr)
        check('no CPU feature "sse9"; known are ' + LEAST in done.stderr, done.stderr)


main([the_embedded_network_answers_as_trained, the_least_cpu_serves, a_name_that_is_not_known_is_refused])
