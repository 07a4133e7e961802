# SPDX-License-Identifier: Apache-2.0
"""Cases of the x86 machine's two NUMA nodes, one a cluster: what the kernel tells of them, and where weights lie.

Weights are what the daemon has put on named nodes. The kernel tells in /proc/PID/numa_maps which policy a mapping has and
on which nodes its pages are.
"""
import contextlib
import json
import os
import re
import signal
import subprocess

from cases import LIMIT_S, check, pipectl, read, wait_for, write
from wait import RARELY_S, until

NODE = "/sys/devices/system/node/node%d/%s"
POLICY = re.compile("(prefer|interleave):")  # libraries say "local"
NODES = {"node0": [0, 1], "node1": [2, 3]}
RUNTIME, STATE, LOG = "/run/piped-nodes", "/state-nodes", "/tmp/piped-nodes.log"
LAYERS = 4
# Weights of 2 MiB and more share a mapping, in which nodes change at the borders of huge pages; smaller ones have
# mappings of their own.
WIDE, NARROW = 1024, 320
HUGE_PAGE, DEALT = 2 << 20, 64 << 10
FRAMES = 12


def describe(name, width):
    """Writes a network of equal layers. Return: its file."""
    path = "/tmp/%s.json" % name
    write(path, json.dumps({"name": name, "input": {"shape": [width, 1, 1]},
                            "layers": [{"op": "fc", "out": width, "bias": False} for _ in range(LAYERS)]}))
    return path


class Second:
    """A piped of its own beside the first. Its places are what it finds. All of them run the same primitives, so that no
    weights are packed twice."""

    def __init__(self, name, path):
        os.makedirs(STATE, exist_ok=True)
        write("/tmp/nodes.json", json.dumps({"kernels": {"measure_ms": 0}, "adapt": {"enabled": False}}))
        with open(LOG, "wb") as log:
            self.process = subprocess.Popen(["piped", "--config", "/tmp/nodes.json", "--runtime-dir", RUNTIME,
                                             "--state-dir", STATE, "--model", "%s=%s" % (name, path)], stderr=log)

    def pipectl(self, *arguments, expect=0):
        return pipectl("--socket", RUNTIME + "/control.sock", *arguments, expect=expect)

    def serves(self):
        check(self.process.poll() is None, "the daemon ended:", read(LOG))
        return os.path.exists(RUNTIME + "/control.sock") and \
            (self.pipectl("status", expect=None) or {}).get("state") == "serving"

    def weights(self):
        """Return: {policy: [bytes on each node]}."""
        found = {}
        for line in read("/proc/%d/numa_maps" % self.process.pid).splitlines():
            policy, page = line.split()[1], re.search(r"kernelpagesize_kB=(\d+)", line)
            if POLICY.match(policy) and page:
                on = found.setdefault(policy, [0] * len(NODES))
                for node, pages in re.findall(r"\bN(\d+)=(\d+)", line):
                    on[int(node)] += int(pages) * int(page.group(1)) * 1024
        return found


@contextlib.contextmanager
def second(name, path):
    daemon = Second(name, path)
    try:
        wait_for("the second daemon", daemon.serves)
        yield daemon
    finally:
        daemon.process.send_signal(signal.SIGTERM)
        code = daemon.process.wait(timeout=LIMIT_S)
    check(code == 0, "the second daemon ended with", code, read(LOG))


def the_kernel_knows_two_nodes(daemon):
    """Without this the other cases would show nothing."""
    for node, cpus in enumerate(("0-1", "2-3")):
        check(read(NODE % (node, "cpulist")) == cpus, node, read(NODE % (node, "cpulist")))
        free = int(re.search(r"MemFree:\s*(\d+) kB", read(NODE % (node, "meminfo"))).group(1))
        check(free >= 64 << 10, "node", node, "has", free, "kB free")


def bandwidths_are_measured(daemon):
    """Of each place, at the first start."""
    costs = pipectl("costs")
    check({kind["name"] for kind in costs["kinds"]} == {"big", "little"}, costs["kinds"])
    for kind in costs["kinds"]:
        check(costs["gbytes_max"] >= kind["gbytes_max"] >= kind["gbytes"] > 0, costs["gbytes_max"], kind)


def lie(weights, expected, slack):
    """`expected`: {policy: bytes on each node}. Do the weights lie so, and nothing elsewhere?"""
    return set(weights) == set(expected) and all(
        abs(there - wanted) <= (slack if wanted else 0) for policy in expected
        for there, wanted in zip(weights[policy], expected[policy]))


def lie_as(daemon, what, expected, slack):
    until(lambda: lie(daemon.weights(), expected, slack), "weights of", *what, "as", expected, daemon.weights,
                limit_s=LIMIT_S, pause=RARELY_S)


def weights_follow(daemon, model, layer, slack):
    """Plan after plan; a layer has so many bytes."""
    one, rest, every = layer, (LAYERS - 1) * layer, LAYERS * layer
    for plan, expected in (
            ("0-0@node0|1-3@node1", {"prefer:0": [one, 0], "prefer:1": [0, rest]}),
            ("0-0@node1|1-3@node0", {"prefer:0": [rest, 0], "prefer:1": [0, one]}),
            ("0-3@node1x2", {"prefer:1": [0, every]}),
            ("0-3@node0x2&node1x2", {"interleave:0-1": [every / 2, every / 2]}),
            ("0-3@node0x2", {"prefer:0": [every, 0]})):
        daemon.pipectl("plan", "--model", model, "set", plan)
        lie_as(daemon, (model, plan), expected, slack)
        result = daemon.pipectl("bench", "--model", model, "--frames", str(FRAMES), "--verify")
        check(result["answered"] == result["sent"] >= FRAMES and result["wrong"] == 0, plan, result)


def weights_are_near_their_cores(daemon):
    path, layer = describe("wide", WIDE), WIDE * WIDE * 4
    with second("wide", path) as other:
        places = {e["name"]: e["cpus"] for e in other.pipectl("status")["eps"]}
        check(places == NODES, places)
        weights_follow(other, "wide", layer, HUGE_PAGE)
        # a model of the same file shares the weights, and has them alone when the first one goes
        other.pipectl("models", "load", "--plan", "0-3@node1x2", "twin", path)
        lie_as(other, ("twin",), {"prefer:1": [0, LAYERS * layer]}, HUGE_PAGE)
        other.pipectl("models", "unload", "wide")
        weights_follow(other, "twin", layer, HUGE_PAGE)
        other.pipectl("models", "load", "narrow", describe("narrow", NARROW))
        other.pipectl("models", "unload", "twin")
        weights_follow(other, "narrow", NARROW * NARROW * 4, DEALT)


CASES = (the_kernel_knows_two_nodes, bandwidths_are_measured, weights_are_near_their_cores)
