#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a served model takes: at most 1.15 times its weights, the arenas, and 20 MB.

Pages of programs and libraries do not count. They are the page cache's, and a touched byte maps 4 KiB or 2 MiB of them,
depending on how the kernel cached the file; oneDNN alone has 32 MiB. Sanitizers keep memory of their own: skipped there.
Networks are written by tiny_onnx.py; their primitives are measured, which packs the weights for every library in turn,
then kept, so that the second start is a warm one. A network description makes its weights up, into a file without a
name in the state folder.
"""
import json
import os
import re
import tempfile

import pyclient
import tiny_onnx
from daemon import HEARTBEAT, PIPED, Daemon, check, equal, main

MIB = 1 << 20
FRAMES = 12
# heap, stacks, scratch: 3 to 6, with a buffer of OpenBLAS where its products are chosen up to 12; what loading packed and did
# not give back would be 13 and more
PROCESS_BYTES = 12.5 * MIB
SETTLE_S = 60  # the daemon gives back what loading left a moment after the plan began to serve
CONFIG = {"kernels": {"measure_ms": 500}}
NETWORKS = {
    # few weights, so that all that is not theirs is seen
    "small": dict(layers=[("conv", 32, 3), ("relu",)] + [("conv", 64, 1), ("relu",), ("depthwise", 3), ("relu",)] * 6 +
                  [("pool",), ("conv", 128, 3), ("relu",), ("pool",), ("pool",), ("linear", 100)], size=128),
    "convolutions": dict(layers=[("conv", 192, 3), ("relu",), ("pool",)] + [("conv", 192, 3), ("relu",)] * 8 +
                         [("conv", 512, 1), ("relu",)] * 6 + [("pool",), ("conv", 1024, 1)], size=32),
    # two large matrices
    "wide": dict(layers=[("conv", 64, 3), ("relu",), ("pool",), ("pool",), ("linear", 2048), ("relu",), ("linear", 4096)],
                 size=56),
}
DESCRIPTION = {"input": {"shape": [3, 56, 56]},
               "layers": [{"op": "conv", "out": 64, "kernel": 3, "pad": 1, "act": "relu"}] +
                         [{"op": "maxpool", "kernel": 2, "stride": 2}] * 2 +
                         [{"op": "fc", "out": 2048, "act": "relu"}, {"op": "fc", "out": 4096}]}
# depthwise and 1x1 convolutions, which the static order runs as one
PAIRS = dict(layers=[("conv", 512, 1)] + [("depthwise", 3), ("relu",), ("conv", 512, 1), ("relu",)] * 40, size=14)


def write(folder, name):
    if name == "described":
        path = os.path.join(folder, name + ".json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(DESCRIPTION, f)
    else:
        path = os.path.join(folder, name + ".onnx")
        tiny_onnx.write(path, **NETWORKS[name])
    return path


def kilobytes(d, key):
    with open("/proc/%d/status" % d.process.pid, encoding="utf-8") as f:
        return int(re.search(r"^%s:\s+(\d+) kB" % key, f.read(), re.M).group(1))


def mappings(d):
    """Resident bytes of each mapping of the daemon, with its permissions and file."""
    found = []
    with open("/proc/%d/smaps" % d.process.pid, encoding="utf-8") as f:
        for line in f:
            head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)", line)
            size = re.match(r"Rss: +(\d+) kB", line)
            if head:
                found.append([0, head.group(1), head.group(2)])
            elif size:
                found[-1][0] = int(size.group(1)) << 10
    return found


def is_code(permissions, path):
    return "w" not in permissions and (".so" in os.path.basename(path) or path == os.path.realpath(PIPED))


def own(d):
    """Resident bytes that are the daemon's own, and a line for each of its largest mappings."""
    found = sorted((m for m in mappings(d) if not is_code(*m[1:])), reverse=True)
    return sum(m[0] for m in found), "".join("\n    %7.1f MB %s %s" % (m[0] / MIB, *m[1:]) for m in found[:8])


def serve(d, count=FRAMES):
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        for _ in range(count):
            equal(s.infer(b"\0" * s.input_bytes).status, "ok")


def bounds(memory):
    """Of what is the daemon's own: as users are promised it, and what its parts come to."""
    return (1.15 * memory["weight_bytes"] + memory["arena_bytes"] + 20 * MIB,
            memory["packed_bytes"] + memory["arena_bytes"] + PROCESS_BYTES)


def is_within_bounds(d, what):
    """Waits for it, SETTLE_S at most."""
    d.wait_until(lambda: own(d)[0] <= min(bounds(d.status()["memory"])), SETTLE_S)
    memory = d.status()["memory"]
    resident, largest = own(d)
    promised, parts = bounds(memory)
    text = "%s: %.1f MB, at most %.1f and %.1f (weights %.1f, packed %.1f, arenas %.1f)" % (
        what, resident / MIB, promised / MIB, parts / MIB, memory["weight_bytes"] / MIB, memory["packed_bytes"] / MIB,
        memory["arena_bytes"] / MIB)
    print("  " + text)
    check(resident <= min(promised, parts), text + largest)
    counted = kilobytes(d, "VmRSS") * 1024
    check(abs(memory["resident_bytes"] - counted) < 4 * MIB, memory)
    check(memory["peak_bytes"] >= counted, memory)
    return memory


def networks_stay_within_bounds():
    if "PIPED_TEST_SANITIZER" in os.environ:
        return "sanitizers keep memory of their own"
    with tempfile.TemporaryDirectory() as folder:
        for name in (*NETWORKS, "described"):
            path = write(folder, name)
            with Daemon(models={name: path}, config=CONFIG, env=HEARTBEAT) as d:
                check("primitives measured" in d.call("History")["events"][-1]["detail"])
                serve(d)
                first = is_within_bounds(d, name + ", measured")
                check(first["arena_bytes"] > 0 and first["weight_bytes"] * 4 > os.path.getsize(path), first)
                with Daemon(models={name: path}, config=CONFIG, state_dir=d.state_dir, env=HEARTBEAT) as again:
                    check("primitives measured" not in again.call("History")["events"][-1]["detail"])
                    serve(again)
                    is_within_bounds(again, name + ", kept")
    return None


def measuring_anew_leaves_nothing():
    if "PIPED_TEST_SANITIZER" in os.environ:
        return "sanitizers keep memory of their own"
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "small")
        with Daemon(models={"small": path}, config=CONFIG, env=HEARTBEAT) as d:
            for _ in range(3):
                d.call("Optimise", {"ms": 200})
                serve(d)
            is_within_bounds(d, "small, measured four times")
    return None


def static_order_packs_what_it_runs():
    if "PIPED_TEST_SANITIZER" in os.environ:
        return "sanitizers keep memory of their own"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pairs.onnx")
        tiny_onnx.write(path, **PAIRS)
        with Daemon(models={"pairs": path}, env=HEARTBEAT) as d:
            serve(d)
            memory = is_within_bounds(d, "pairs, static order")
            most = 1.15 * memory["weight_bytes"] + memory["arena_bytes"] + 32 * MIB
            check(memory["peak_bytes"] <= most, "at most %.1f MB at a time, not %.1f" % (
                most / MIB, memory["peak_bytes"] / MIB))
    return None


def metrics_tell_the_same():
    with Daemon() as d:
        serve(d)
        memory = d.status()["memory"]
        text = d.call("Metrics")["text"]
        for key in ("packed_bytes", "arena_bytes"):
            equal(re.search(r"^piped_%s (\d+)$" % key, text, re.M).group(1), str(memory[key]))
        check(int(re.search(r"^piped_resident_bytes (\d+)$", text, re.M).group(1)) > 0)


def room_for_models():
    """What is free on this machine, unless the configuration says it."""
    with Daemon() as d:
        room = d.status()["memory"]["for_models_bytes"]
        check(16 * MIB <= room <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), room)
    with Daemon(config={"boards": {"memory_mib": 77}}) as d:
        equal(d.status()["memory"]["for_models_bytes"], 77 * MIB)


if __name__ == "__main__":
    main([networks_stay_within_bounds, measuring_anew_leaves_nothing, static_order_packs_what_it_runs,
          metrics_tell_the_same, room_for_models])
