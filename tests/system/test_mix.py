#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench/mix.py: its bound, its figures and tables, and runs on small networks.

usage: test_mix.py [CASE]...
"""
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

from daemon import BUILD, DIGITS, LIMIT_S, ROOT, Daemon, check, equal, main

sys.path[:0] = [os.path.join(ROOT, "bench", "mix"), os.path.join(ROOT, "bench")]
import bound  # noqa: E402
import mix  # noqa: E402
import systems  # noqa: E402
import tables  # noqa: E402

SEED = 5


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def problem(kinds, costs):
    units = [{}] * len(next(iter(costs.values()))["1"])
    return {"units": units, "kinds": [{"name": n, "cores": c} for n, c in kinds], "costs": costs}


def best_of_all(kinds, work):
    """The bound by trying every set of whole units on the first kind, and dividing one more: an optimum divides one at most."""
    (a, on_a), (b, on_b) = kinds
    best = 0
    for chosen in itertools.product((0, 1), repeat=len(work)):
        for i, cut in enumerate(work):
            load_a = sum(w[a] for k, w in enumerate(work) if k != i and chosen[k])
            load_b = sum(w[b] for k, w in enumerate(work) if k != i and not chosen[k])
            x = ((load_b + cut[b]) * on_a - load_a * on_b) / (cut[a] * on_b + cut[b] * on_a)
            for part in (0, 1, min(1, max(0, x))):
                best = max(best, 1 / max((load_a + part * cut[a]) / on_a, (load_b + (1 - part) * cut[b]) / on_b))
    return best


def a_bound_of_one_kind_is_a_sum():
    p = problem([("big", 2)], {"big": {"1": [3e6, 1e6], "2": [1e6, 1e6]}})
    check(near(bound.bound([p], [10]), 2 / (10 * (2e-3 + 1e-3))), "the width of least core-seconds")
    check(near(bound.bound([p], [10], {"big": 0.5}), 1.5 / (10 * (2e-3 + 1e-3))), "half a core is another program's")
    p["at_once"] = {"big": [[None, 0.5, 0.8], None]}
    check(near(bound.bound([p, p], [10, 10]), 2 / (20 * (1e-3 + 1e-3))), "the frames at once that take the least")


def a_bound_of_two_kinds_is_the_best_of_all():
    numbers = random.Random(SEED)
    for _ in range(200):
        kinds = [("big", numbers.randint(1, 4)), ("little", numbers.randint(1, 4))]
        problems = [problem(kinds, {n: {"1": [numbers.uniform(1e5, 1e7) for _ in range(3)]} for n, _ in kinds}) for _ in range(2)]
        rates = [numbers.uniform(1, 50) for _ in problems]
        work = [{n: r * p["costs"][n]["1"][u] / 1e9 for n, _ in kinds} for p, r in zip(problems, rates) for u in range(3)]
        found, wanted = bound.bound(problems, rates), best_of_all(kinds, work)
        check(near(found, wanted), "seed", SEED, found, wanted)
        check(bound.bound(problems, rates, {"little": 0.5}) < found, "seed", SEED, "half a core less")
    equal(bound.bound([problem([(n, 1) for n in "abc"], {n: {"1": [1e6]} for n in "abc"})], [1]), None)


def a_bound_is_the_daemons():
    """Of one model, what plan explain says."""
    with Daemon(models={"digits": DIGITS}) as d:
        found = bound.bound([d.call("Costs", {"model": "digits"})["problem"]], [1.0])
        said = d.pipectl("plan", "explain")["bound_fps"]
    check(found is None or abs(found - said) < 1e-3 * said, found, said)


def misses_are_late_or_refused():
    models = [systems.Model("a", "x", 10, 20)]
    served = [[{"ms": [1.0] * 8 + [21.0], "refused": 1}], [{"ms": [2.0] * 10, "refused": 0}]]
    f = tables.figures(models, served, 1.0)
    equal(f["misses_percent"], 10)
    a = f["models"]["a"]
    equal([a["due"], a["refused"], a["late"], a["wished_fps"], a["given_fps"]], [20, 1, 1, 10, 9.5])
    equal(a["missed_percent"], {"median": 10, "min": 0, "max": 20})
    equal([a["p50_ms"], a["p99_ms"], a["most_ms"]], [2, 21, 21])
    equal(tables.figures(models, [[{"ms": [], "refused": 0}]], 1.0)["models"]["a"]["p99_ms"], None)


class Served:
    """A system that answers each frame after 1 ms up to so many frames a second; beyond, its queue grows."""
    name = "ort-pinned"

    def __init__(self, most):
        self.most = most

    def factor(self, seconds, seed):
        return self.most * 1.2

    def serve(self, seconds, seed, clock, factor):
        grows = max(0, factor - self.most)
        return [{"ms": [1 + grows * i for i in range(100)], "refused": 0}]


def a_rate_that_is_just_held_is_found():
    class Options:
        slice, rounds = 1.0, 2
    held, p99 = mix.just_held(Options, Served(50))
    check(50 * mix.HOLD_STEP <= held <= 51, held)
    equal(p99, 1 + max(0, held - 50) * 99)


def wishes_are_written():
    m = systems.Model("a", "x", 10, 20, weight=2, **{"class": 1})
    m.path = "a.onnx"
    equal(m.entry(False), {"name": "a", "path": "a.onnx"})
    equal(m.entry(True), {"name": "a", "path": "a.onnx", "rate": 10, "deadline_ms": 20, "weight": 2, "class": 1})


def small_models(folder):
    """Two models of one small network and their wishes, as files. Return: mix.py's arguments."""
    for name in ("a", "b"):
        stem = os.path.join(folder, name)
        shutil.copy(DIGITS, stem + ".onnx")
        with open(stem + ".input.f32", "wb") as f:
            f.write(bytes(4 * 16 * 16))
        with open(stem + ".json", "w", encoding="utf-8") as f:
            json.dump({"input": [1, 1, 16, 16]}, f)
    with open(os.path.join(folder, "mix.json"), "w", encoding="utf-8") as f:
        json.dump([{"name": "first", "network": "a", "rate": 40, "deadline_ms": 5000},
                   {"name": "second", "network": "b", "rate": 20, "deadline_ms": 5000}], f)
    return ["--models", folder, "--mix", os.path.join(folder, "mix.json"), "--build", BUILD, "--no-install", "--measure-ms", "0",
            "--results", os.path.join(folder, "results.json"), "--rounds", "2", "--slice", "0.5"]


def two_small_models_are_served():
    with tempfile.TemporaryDirectory() as folder:
        r = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "mix.py"), *small_models(folder), "--conditions", "equal",
                            "--level", "0.01", "--bound", "--alone"], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                           env=dict(os.environ, XDG_CACHE_HOME=folder))
        equal(r.returncode, 0, r.stdout + r.stderr)
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as f:
            found = json.load(f)["equal"]
    equal(len(found["factor"]["piped"]), 2)
    check(all(f > 0 for f in found["factor"]["piped"]), found["factor"])
    check(found["bound"]["piped"]["tables"] is None or found["bound"]["piped"]["tables"] > 0, found["bound"])
    own = found["levels"]["own"]["piped"]
    for of in (own["models"], found["alone"]["piped"]["models"]):
        equal(sorted(of), ["first", "second"])
        for f in of.values():
            check(f["due"] > 0 and f["refused"] == 0 and 0 < f["p50_ms"] <= f["p99_ms"], f)
    check("| piped |" in r.stdout and "| second |" in r.stdout, r.stdout)


def wrong_arguments_are_refused():
    client = os.path.join(BUILD, "bench", "mix", "mix_piped")
    equal(subprocess.run([client, "a", "b"], capture_output=True, check=False).returncode, 2)
    equal(subprocess.run([client, "a", "b.onnx", "/nowhere", "1x1", "5"], capture_output=True, check=False).returncode, 2)
    r = subprocess.run([client.replace("mix_piped", "mix_ort"), "--way", "pinned", "--cpus", "0", "--library", "/nowhere", "a", "b",
                        "/dev/zero", "1x1", "5"], capture_output=True, text=True, check=False)
    equal(r.returncode, 1)
    check("no ONNX Runtime" in r.stderr, r.stderr)


main([a_bound_of_one_kind_is_a_sum, a_bound_of_two_kinds_is_the_best_of_all, a_bound_is_the_daemons, misses_are_late_or_refused,
      a_rate_that_is_just_held_is_found, wishes_are_written, two_small_models_are_served, wrong_arguments_are_refused],
     sys.argv[1:])
