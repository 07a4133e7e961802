# SPDX-License-Identifier: Apache-2.0
"""What the guests of both machines share: waiting, pipectl, frames under a change, and the cases both machines run.

A case is a function of the daemon's handle (see Daemon). Every case that changes something says at the end whether
the frames that were sent meanwhile were all answered, once, in order and right. Causes are read from the daemon's
history. Waiting is for a state, with a generous limit: the machine is emulated.
"""
import contextlib
import ctypes
import glob
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
import traceback

from wait import RARELY_S, check, until

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_FINIT_MODULE = {"x86_64": 313, "aarch64": 273}
LIMIT_S = 120
CPU = "/sys/devices/system/cpu"
POLICY = CPU + "/cpufreq/policy%d"
WATCHED = 100  # windows, of 100 ms and more


class Daemon:
    """What a case asks of the daemon beside what pipectl tells; each guest has its own."""

    def said(self):
        """Return: its log so far."""
        raise NotImplementedError

    def allow(self, cpus):
        """Limits it to these cores, a list as in cpuset.cpus, by its control group."""
        raise NotImplementedError

    def check_alive(self):
        """Fails when it ended or was restarted behind the case's back."""
        raise NotImplementedError


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read().strip()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(str(text))


def wait_for(what, condition, limit_s=LIMIT_S):
    """Return: what the condition returned. It is asked again and again: conditions are about files of the kernel, which
    announces few of their changes, and about the status, which the daemon only tells when it is asked."""
    return until(condition, what, limit_s=limit_s, pause=RARELY_S)


def mount(kind, where):
    os.makedirs(where, exist_ok=True)
    if LIBC.mount(kind.encode(), where.encode(), kind.encode(), 0, None):
        print("-- %s cannot be mounted: %s" % (kind, os.strerror(ctypes.get_errno())))


def load_modules():
    for path in sorted(glob.glob("/modules/*")):
        with open(path, "rb") as f:
            if LIBC.syscall(SYS_FINIT_MODULE[platform.machine()], f.fileno(), b"", 0):
                print("-- module %s: %s" % (os.path.basename(path), os.strerror(ctypes.get_errno())))


def pipectl(*arguments, expect=0):
    done = subprocess.run(["pipectl", "--json", *arguments], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=2 * LIMIT_S)
    check(expect is None or done.returncode == expect, "pipectl", *arguments, "exit", done.returncode, done.stdout,
          done.stderr)
    return json.loads(done.stdout) if done.stdout.strip() else None


def status():
    return pipectl("status", expect=None)


def eps():
    return {e["name"]: e for e in status()["eps"]}


def stages():
    return status()["models"][0]["stages"]


def cores_used():
    return {cpu for s in stages() for cpu in s["cpus"]}


class Events:
    """What the history gains from now on."""

    def __init__(self):
        self.last = max((e["id"] for e in pipectl("history")), default=0)

    def all(self):
        return [e for e in pipectl("history") if e["id"] > self.last]

    def of(self, cause):
        return [e for e in self.all() if e["cause"] == cause]

    def wait(self, cause):
        return wait_for("an event of cause " + cause, lambda: self.of(cause))[-1]


@contextlib.contextmanager
def frames(seconds=LIMIT_S * 4):
    """Frames of a client while the body runs; none may be lost, doubled, out of order or wrong."""
    answered = status()["models"][0]["frames"]["answered"]
    bench = subprocess.Popen(["pipectl", "--json", "bench", "--seconds", str(seconds), "--verify"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    try:
        wait_for("frames", lambda: status()["models"][0]["frames"]["answered"] > answered + 2)
        yield
        # some under what was left behind
        answered = status()["models"][0]["frames"]["answered"]
        wait_for("more frames", lambda: status()["models"][0]["frames"]["answered"] > answered + 2)
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=LIMIT_S)
    finally:
        if bench.poll() is None:
            bench.kill()
            bench.wait()
    check(out.strip(), "bench said nothing:", err)
    result = json.loads(out)
    check(result["answered"] > 0, result)
    for key in ("lost", "reordered", "duplicated", "wrong"):
        check(result[key] == 0, key, result)
    check(not result["errors"], result)


def frames_are_answered(daemon):
    with frames():
        pass


def nothing_changes_by_itself(daemon):
    """On an emulated machine speeds do vary, by half and more: code is slow while it is translated, and others take time
    from the cores. A plan may be tried for that, but not one after the other, and none twice. Primitives may be measured again."""
    def windows():
        return status()["models"][0]["adapt"].get("windows", 0)

    before = Events()
    with frames():
        first = windows()
        wait_for("windows that were watched", lambda: windows() >= first + WATCHED)
    events = [e for e in before.all() if e["cause"] != "measured"]
    check(all(e["cause"] in ("contention", "throughput") for e in events), events)
    changes = [e["plan_after"] for e in events if e["outcome"] == "switched"]
    check(len([e for e in events if e["outcome"] != "kept"]) <= 2 and len(set(changes)) == len(changes), events)
    check(len(events) <= 8, "noise fills the history:", events)


def a_governor_changes(daemon):
    before = Events()
    with frames():
        write(POLICY % 2 + "/scaling_governor", "powersave")
        wait_for("the status to say so", lambda: eps()["little"]["governor"] == "powersave")
        event = before.wait("governor")
        write(POLICY % 2 + "/scaling_governor", "performance")
        wait_for("the way back", lambda: len(before.of("governor")) >= 2)
    check(event["lost"] == 0, event)


def a_limit_is_lowered(daemon):
    before = Events()
    with frames():
        write(POLICY % 0 + "/scaling_max_freq", 1000000)
        event = before.wait("frequency")
        write(POLICY % 0 + "/scaling_max_freq", 2000000)
        wait_for("the way back", lambda: len(before.of("frequency")) >= 2)
    check(event["lost"] == 0, event)


def go_and_come_back(daemon, cores, without=lambda: None):
    """Takes the cores offline under load, one after the other, and brings them back; `without` runs in between."""
    logged = len(daemon.said())
    before = Events()
    with frames():
        for core in cores:
            write(CPU + "/cpu%d/online" % core, 0)
            wait_for("a line in the log", lambda: re.search(r"hotplug: core %d went" % core, daemon.said()[logged:]))
        before.wait("hotplug")
        wait_for("a plan without them", lambda: not cores_used() & set(cores))
        without()
        for core in cores:
            write(CPU + "/cpu%d/online" % core, 1)
        wait_for("the way back", lambda: len(before.of("hotplug")) >= 2 and
                 set(cores) <= {cpu for e in status()["eps"] for cpu in e["cpus"]})
    check(all(e["lost"] == 0 for e in before.of("hotplug")), before.of("hotplug"))


def a_core_goes_and_comes_back(daemon):
    go_and_come_back(daemon, [3])


def the_cpuset_shrinks(daemon):
    """What AllowedCPUs= of a unit writes."""
    before = Events()
    with frames():
        daemon.allow("0,2")
        wait_for("a line in the log", lambda: "cpuset: cores 1,3 went" in daemon.said())
        event = before.wait("cpuset")
        check(cores_used() <= {0, 2}, stages())
        daemon.allow("0-3")
        wait_for("the way back", lambda: len(before.of("cpuset")) >= 2)
    check(event["lost"] == 0, event)


def calm_cores():
    """All cores online, at full speed."""
    for path in glob.glob(CPU + "/cpu[0-9]*/online"):
        if read(path) == "0":
            write(path, 1)
    for policy in glob.glob(CPU + "/cpufreq/policy*"):
        write(policy + "/scaling_governor", "performance")
        write(policy + "/scaling_max_freq", read(policy + "/cpuinfo_max_freq"))


def limits():
    return [int(read(POLICY % first + "/scaling_max_freq")) for first in (0, 2)]


def wanted(cases):
    """Those that the kernel's command line names, or all."""
    found = re.search(r"piped\.cases=(\S+)", read("/proc/cmdline"))
    names = found.group(1).split(",") if found else []
    return [c for c in cases if not names or c.__name__ in names]


def run(cases, daemon, calm):
    """Runs the wanted ones and prints a line for each; `calm` undoes what a case left. Return: how many failed."""
    counts = {"ok": 0, "FAIL": 0}
    for case in wanted(cases):
        start = time.monotonic()
        result, why = "ok", ""
        try:
            case(daemon)
            daemon.check_alive()
        except Exception as e:  # each case reports on its own
            traceback.print_exc(file=sys.stdout)
            result, why = "FAIL", ": %s" % e
        counts[result] += 1
        print("%s %s%s (%.1f s)" % (result, case.__name__, why, time.monotonic() - start), flush=True)
        calm()
    if counts["FAIL"]:
        print("-- the daemon said:\n%s" % daemon.said())
    print("cases: %d passed, %d failed, 0 skipped" % (counts["ok"], counts["FAIL"]), flush=True)
    return counts["FAIL"]
