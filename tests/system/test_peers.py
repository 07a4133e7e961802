#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench/peers: how it deals its time, what it compares and prints, when it succeeds; and a run on a small network.

usage: test_peers.py [CASE]...
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

from daemon import BUILD, DIGITS, LIMIT_S, ROOT, check, equal, main

sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
import budget  # noqa: E402
import measure  # noqa: E402
import page  # noqa: E402
import peers  # noqa: E402
import prepare  # noqa: E402
import table  # noqa: E402
import ways  # noqa: E402

MS = 1000000


def slices_become_rates():
    """Two programs, one of 100 ms a frame and one of 300 ms: 13.3 frames a second, in order after the slow one."""
    fast = [(i * 100 * MS, (i + 1) * 100 * MS) for i in range(20)]
    slow = [(i * 300 * MS + 1, (i + 1) * 300 * MS + 1) for i in range(7)]
    fps = ways.rate(fast + slow, 2.0, 2)
    check(12.5 < fps < 14.2, fps)
    equal(ways.rate(fast, 2.0, 2), 10)
    equal(ways.rate(fast + [(1900 * MS, 9000 * MS)], 2.0, 2), 10, "what ends behind the slice")
    equal(ways.rate(fast[:3], 2.0, 2), None)
    equal(ways.rate([], 2.0, 2), None)
    equal(ways.in_order([(0, 10), (1, 30), (2, 20), (3, 40)]), [(0, 10), (1, 30), (2, 30), (3, 40)])


def batches_become_rates():
    """Two programs that take 4 frames in 400 ms each: 20 frames a second."""
    taken = sorted((i * 400 * MS, (i + 1) * 400 * MS) for i in range(5) for _ in range(4) for _ in range(2))
    equal(ways.rate(taken, 2.0, 2 * 4), 20)
    equal([ways.plan_at_once(p) for p in ("0-15@big*2/4", "0-7@big|8-15@big.0/4", "0-3@big*2|4-7@bigx2", "0-7@big*2/2+little/8")],
          [8, 4, 1, 8])
    # a team's batch is answered within microseconds, and the next one does not fit into the slice
    equal(ways.rate([(0, 1100 * MS + i * 1000) for i in range(8)], 2.0, 4), None)


def time_is_dealt():
    equal(budget.share(100, 4), 25)
    equal(budget.share(-1, 4), 0)
    equal(budget.slice_s(1.2, 100), 1.2)
    equal(budget.slice_s(1.2, 5), 2, "10 frames")
    equal(budget.slice_s(1.2, 0.5), budget.SLICE_MAX_S)
    equal(budget.slice_s(1.2, None), budget.SLICE_MAX_S)
    equal(budget.slice_s(1.2, 12, batch=8, programs=2), 4, "three batches of each")
    check(budget.batch_fits(8, 8, 2) and not budget.batch_fits(7.9, 8, 2) and not budget.batch_fits(None, 2, 1))
    equal([budget.rounds(t, [1.0, 1.5], 7) for t in (100, 10, 1, -5)], [7, 4, 2, 2])
    equal(budget.rounds(10, [], 7), 2)
    equal([budget.latency_frames(t, [100, 300], 25) for t in (100, 4, -1)], [25, 10, 5])
    check(budget.longer(1) == 3 and budget.longer(5) == budget.SLICE_MAX_S)
    check(budget.is_over(5, 5) and not budget.is_over(6, 5))


def ways_start_while_there_is_time():
    for name, left_s, wanted in (("piped", -1, True), ("kernels", -1, True), ("ort-queue", -1, True), ("ort-threads", 41, True),
                                 ("ort-threads", 39, False), ("ort-queue@4", 39, False), ("torch-threads", 39, False)):
        equal(budget.may_start(name, 100, left_s), wanted, (name, left_s))


def a_run_keeps_its_budget():
    """Jobs that need 30 s at least, the third of them 90 s."""
    at, done = 0, 0
    for i in range(20):
        left = 900 - at
        if budget.is_over(left, 45):
            break
        at += max(30 if i != 2 else 90, budget.share(left - 45, 20 - i))
        done += 1
    check(done == 20 and at <= 900, done, at)


def ways_far_behind_stop():
    first = {"ort-queue": 100, "ort-threads": 81, "ort-sessions": 79, "ort-queue@8": None}
    equal(budget.contenders(first), ["ort-queue", "ort-threads"])
    equal(budget.contenders({"piped": 10, "kernels": 2}), ["piped", "kernels"], "ours are compared")
    equal(budget.contenders({"opencv-queue": None}), [])


def jobs_are_those_asked_for():
    def jobs(*words):
        return [(k, n, "+".join(w)) for k, n, w in peers.jobs_of(peers.arguments(words))]

    everything = jobs()
    equal([j[0] for j in everything], ["f32"] * 9 + ["int8"] * 7 + ["slowed"] * 4)
    equal({j[2] for j in everything}, {"throughput+latency", "slowed"})
    quick = jobs("--quick")
    check({j[0] for j in quick} == {"f32", "int8"} and len(quick) < 6, quick)
    equal(jobs("--latency", "a", "b"), [("f32", "a", "latency"), ("f32", "b", "latency")])
    equal(jobs("--int8", "c"), [("int8", "c", "throughput+latency")])
    equal(jobs("--slowed", "a"), [("slowed", "a", "slowed")])
    equal(len(jobs("--slowed")), 4)
    equal([peers.name_of(("int8", n, [])) for n in ("c", "d/c_int8.onnx")], ["c_int8", "c_int8"])
    equal(peers.keys_of(("int8", "c", ["throughput", "latency"])), ["int8-throughput", "int8-latency"])
    equal([peers.arguments(w).budget for w in ([], ["--quick"], ["--budget", "9"])], [1800, 180, 9])


def a_network_without_piped_or_a_peer_is_missing():
    check(measure.complete({"piped": {}, "ort-queue": {}}))
    check(not measure.complete({"piped": {}, "kernels": {}}), "no peer")
    check(not measure.complete({"ort-queue": {}}), "no piped")
    check(not measure.complete({"kernels": {}, "ort-queue": {}}), "the daemon is what was asked for")
    check(not measure.complete({}, ["piped"]), "nothing")
    check(measure.complete({"kernels": {}}, ["kernels"]), "no peer was asked for")
    check(not measure.complete({"piped": {}}, ["piped", "ort-queue"]), "one was")


# Answers as the programs of bench/peers do; "ends" with the third line.
PROGRAM = """
import sys, time
print("ready", flush=True)
for i, line in enumerate(sys.stdin):
    if i == 2 and sys.argv[1] == "ends":
        sys.exit("broken")
    if line == "go\\n":
        print(12.5, flush=True)
        continue
    words = line.split()
    print('{"frames": [[0, %d]]}' % (int(words[1]) if len(words) > 1 else 1), flush=True)
"""


def way_of(name, how):
    return ways.Way(name, [([sys.executable, "-c", PROGRAM, how], str(ways.CPUS[0]))])


def ways_speak_with_their_programs():
    way = way_of("x-queue", "stays")
    equal(way.slice(1), [(0, 1)])
    equal(way.frame_ms(ways.CPUS[0]), 12.5)
    way.stop()
    kept, commands = {}, [([sys.executable, "-c", PROGRAM, "stays"], str(ways.CPUS[0]))]
    two, four = ways.Shared("x@2", kept, commands), ways.Shared("x@4", kept, commands)
    check(two.programs is four.programs, "programs of their own")
    two.stop()
    equal(four.slice(1), [(0, 4)] * 4, "frames of a batch, by a program that the other way left")
    four.stop()
    check(four.programs[0].process.poll() is not None, "the program stays")
    try:
        ways.Way("bad", [([sys.executable, "-c", "import sys; sys.exit('no such thing')"], str(ways.CPUS[0]))])
        check(False, "a program that ends at once")
    except RuntimeError as e:
        equal(str(e), "no such thing")


def a_way_that_ends_is_left_out():
    options = peers.arguments(["--no-install", "--build", BUILD])
    options.ort, options.opencv, options.torch = None, False, False
    with measure.Run(options, DIGITS, None, float("inf")) as run:
        run.running = [way_of("x-queue", "stays"), way_of("y-queue", "ends")]
        run.first = {"y-queue": (1, [])}
        found = run.in_turns(run.running, 4, lambda w: w.slice(1))
        equal(found, {"x-queue": [[(0, 1)]] * 4})
        equal([w.name for w in run.running], ["x-queue"])
        check(not run.first, "it has no figures")


RESULTS = {"machine": {"cpu": "x", "cores": 2, "kernel": "y"},
           "peers": {"ort": {"version": "1.2"}, "opencv": {"absent": "python3-opencv is not installed"}},
           "runs": [{"commit": "abc", "command": "bench/peers/peers.py", "seconds": 5, "load": 0.1}],
           "left_out": ["one thing"],
           "throughput": {"a": {"piped": {"fps": [30, 33, 30], "median_fps": 30, "p99_ms": 5},
                                "kernels": {"fps": [40, 40, 40], "median_fps": 40, "p99_ms": 5},
                                "ort-queue": {"fps": [20, None, 15], "median_fps": 17.5, "p99_ms": 5},
                                "ort-threads": {"fps": [], "median_fps": 10, "p99_ms": 5, "first_slice": True}},
                          "b": {"piped": {"fps": [8], "median_fps": 8, "p99_ms": 5},
                                "opencv-queue": {"fps": [2], "median_fps": 2, "p99_ms": 5}}},
           "latency": {"a": {"piped": {"median_ms": 2, "ms": [2, 2, 1, 3]}, "ort": {"median_ms": 4, "ms": [4, 4, 4, 4]},
                             "opencv": {"median_ms": 3, "ms": [2, 4, 2, 3]}}},
           "slowed": {"a": {"piped": {"fps": [9], "median_fps": 9, "p99_ms": 30},
                            "piped-places": {"fps": [12], "median_fps": 12, "p99_ms": 50},
                            "ort-queue": {"fps": [8], "median_fps": 8, "p99_ms": 100},
                            "ort-threads": {"fps": [4], "median_fps": 4, "p99_ms": 60}}}}


def cells(lines, first):
    """Of the rows that begin with a network."""
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("| %s " % first)]


def peers_are_compared():
    rows = RESULTS["throughput"]
    equal(table.against_peer(rows["a"], "piped"), (1.75, (1.5, 2.0), "ort-queue"), "rounds in which both have a figure")
    equal(table.against_peer(rows["b"], "kernels"), (None, None, "opencv-queue"))
    equal(table.against_peer({"piped": rows["a"]["piped"]}, "piped"), (None, None, None))
    equal(table.against_peer({"piped": rows["a"]["piped"], "ort-threads": rows["a"]["ort-threads"]}, "piped"),
          (3, None, "ort-threads"), "no common round")
    equal(table.against_peer(RESULTS["latency"]["a"], "piped", "latency"), (0.75, (0.5, 1.0), "opencv"), "quartiles")
    lucky = {**rows["a"], "ort-threads": {"fps": [], "median_fps": 99, "p99_ms": 5, "first_slice": True}}
    equal(table.against_peer(lucky, "piped")[2], "ort-queue", "one slice proves nothing against rounds")
    check(abs(table.geomean([1, 4, None]) - 2) < 1e-9 and table.geomean([]) is None)


def results_become_tables():
    text = table.report(RESULTS)
    a = cells(text, "a")
    equal(a[0], ["a", "30.00", "40.00", "17.50 queue", "-", "1.75 (1.50 to 2.00)", "2.33 (2.00 to 2.67)", "ort-queue"])
    equal(a[1], ["a", "30.00", "40.00", "17.50", "10.00~", "-"], "every way")
    equal(a[2][:4], ["a", "2.00", "4.00", "3.00"], "latency")
    equal(a[3][1:], ["9.00, 30.0", "12.00, 50.0", "8.00, 100.0", "4.00, 60.0", "piped-places", "1.50", "0.50", "3.00"])
    for line in ("ONNX Runtime: 1.2", "OpenCV: absent, python3-opencv is not installed", "one thing"):
        check(line in text, line, text)
    wide = {len(line) for line in text[text.index(table.TITLES["throughput"]):text.index(table.TITLES["latency"])]
            if line.startswith("| a") or line.startswith("| b")}
    equal(len(wide), 2, "one width a table, of two tables")
    equal(table.report({})[1:], [], "nothing was measured")


def results_become_a_figure():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plot.svg")
        page.plot(RESULTS, path)
        bars = xml.dom.minidom.parse(path).getElementsByTagName("rect")
        equal(len(bars), 1 + 3 + 4, "background, legend, bars of what was run")


def results_become_a_page():
    hostile = json.loads(json.dumps(RESULTS).replace('"one thing"', '"</script><b>&"'))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page.html")
        check(prepare.page(BUILD, page.description(hostile), path), "no page")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        check(not prepare.page(BUILD, {"parts": []}, path), "a page without a title")
        with open(path, encoding="utf-8") as f:
            equal(f.read(), text, "the page of before")
        equal(os.listdir(folder), ["page.html"])
    for part in ('<figure id="throughput"', '<figure id="latency"', '<figure id="slowed-p99_ms"', "1.75 (1.50 to 2.00)",
                 "&lt;/script&gt;&lt;b&gt;&amp;"):
        check(part in text, part)
    check("<b>&" not in text, "not escaped")


def builds_are_judged():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "meson-info"))
        for values, wanted in (({"optimization": "2"}, True), ({"optimization": "0"}, False), ({"optimization": "g"}, False),
                               ({"optimization": "3", "b_sanitize": "address"}, False)):
            with open(os.path.join(folder, "meson-info", "intro-buildoptions.json"), "w", encoding="utf-8") as f:
                json.dump([{"name": n, "value": v} for n, v in values.items()], f)
            equal(prepare.optimised(folder), wanted, values)
    check(not prepare.optimised(folder), "no build folder")


def a_script_ends_with_the_time():
    """And what it started, whose end closes the pipe that it has from us."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "slow.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write("import subprocess, sys\nif len(sys.argv) > 1:\n    subprocess.run(['sleep', '1000'])\n")
        check(not prepare.script(0, path, "wait"), "it succeeded")
        check(prepare.script(LIMIT_S, path), "it failed")


def run_peers(folder, *more):
    return subprocess.run([sys.executable, os.path.join(ROOT, "bench", "peers", "peers.py"), "--build", BUILD, "--results",
                           os.path.join(folder, "results.json"), "--rounds", "2", "--slice", "0.2", "--no-install", "--models",
                           folder, "--measure-ms", "0", *more], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env=dict(os.environ, XDG_CACHE_HOME=folder))


def a_small_network_is_compared():
    """The daemon and the kernels alone; peers are not asked for."""
    with tempfile.TemporaryDirectory() as folder:
        r = run_peers(folder, "--ways", "piped,kernels", "--throughput", "--latency", DIGITS)
        equal(r.returncode, 0, r.stdout + r.stderr)
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as f:
            found = json.load(f)
        with open(os.path.join(folder, "results.md"), encoding="utf-8") as f:
            text = f.read()
        check(os.path.getsize(os.path.join(folder, "results.html")) > 1000, "a page")
    equal(sorted(found["throughput"]["digits"]), ["kernels", "piped"])
    for way in found["throughput"]["digits"].values():
        equal(len(way["fps"]), 2)
        check(way["frames"] > 0 and 0 < way["p50_ms"] <= way["p99_ms"], way)
    check(found["latency"]["digits"]["piped"]["median_ms"] > 0, found["latency"])
    check("ONNX Runtime: absent, the npm package onnxruntime-node is not installed" in text, text)
    check("| digits" in text and text.strip() in r.stdout, text)


def an_older_build_is_compared():
    rows = {"piped": {"fps": [30, 33], "median_fps": 31.5, "p99_ms": 5}, "piped-before": {"fps": [20, 11], "median_fps": 15.5}}
    title, heads, lines = table.tables({"throughput": {"a": rows}})[0]
    equal((title, heads), (table.TITLES["throughput"] + ", before and now", ["network", "piped before", "piped", "ratio"]))
    equal(lines, [["a", "15.50", "31.50", "2.25 (1.50 to 3.00)"], ["geometric mean", "", "", "2.25"]])
    with tempfile.TemporaryDirectory() as folder:
        r = run_peers(folder, "--before", BUILD, DIGITS)
        equal(r.returncode, 0, r.stdout + r.stderr)
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as f:
            found = json.load(f)
        check(os.path.getsize(os.path.join(folder, "results.html")) > 1000, "a page")
    equal(sorted(found["throughput"]["digits"]), ["kernels", "kernels-before", "piped", "piped-before"])
    equal(sorted(found["latency"]["digits"]), ["piped", "piped-before"])


def nothing_measured_is_a_failure():
    with tempfile.TemporaryDirectory() as folder:
        r = run_peers(folder, "--throughput", os.path.join(folder, "none.onnx"))
        equal(r.returncode, 1, r.stdout + r.stderr)
        check("missing: none, throughput: not measured" in r.stderr, r.stderr)
        r = run_peers(folder, "--throughput", DIGITS)
        equal(r.returncode, 1, "no peer reads a network without an input file: " + r.stdout + r.stderr)
        check("missing: digits, throughput: only piped, kernels" in r.stderr, r.stderr)


main([slices_become_rates, batches_become_rates, time_is_dealt, ways_start_while_there_is_time, a_run_keeps_its_budget,
      ways_far_behind_stop, ways_speak_with_their_programs, a_way_that_ends_is_left_out, jobs_are_those_asked_for,
      a_network_without_piped_or_a_peer_is_missing, peers_are_compared, results_become_tables, results_become_a_figure,
      results_become_a_page, builds_are_judged, a_script_ends_with_the_time, a_small_network_is_compared,
      an_older_build_is_compared, nothing_measured_is_a_failure], sys.argv[1:])
