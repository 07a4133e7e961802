#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl doctor: each finding is brought about for real, and must be found with its figures.

The machine may be busy, so other findings are not asked about; tests/unit/ipc/test_doctor.c has those of a calm one.
Heat, clocks and, where the kernel does not let a test set them, quotas are files of a tree in place of sysfs.
"""
import contextlib
import ctypes
import os
import re
import subprocess
import tempfile
import threading

import http_models
import kept_files
import pyclient as pc
import tiny_onnx
from adapting import LAST, NETWORK, TOP
from daemon import BUILD, DIGITS, check, equal, main
from doctor_rig import doctor, finds, load, on_tree, rising, run, sending, served, unless_crowded
from test_adapt_load import no_thief

SLOW_CORE = os.path.join(BUILD, "tests", "system", "slow_core")
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


# ---- what is served ----

def an_idle_daemon_is_well():
    with on_tree() as (d, _):
        v = doctor(d, seconds="0.2")
        equal(v["well"], True, v)
        check({f["name"] for f in v["findings"]} <= {"idle", "starting", "guessed-costs"}, v["findings"])
        check("idle" in {f["name"] for f in v["findings"]}, v["findings"])
        equal([(c["freq_khz"], c["governor"]) for c in v["machine"]["clocks"]], [(TOP, "performance")] * 2)
        text = run("--socket", d.control_path, "doctor", "--seconds", "0.2", expect=0).stdout
        check(text.startswith("all is well"), text)
        check("digits: 0.0 frames/s" in text and "cpu0 at 2.0 of 2.0 GHz (performance)" in text, text)


def models_that_are_not_served():
    with tempfile.TemporaryDirectory() as folder:
        bad, colours = os.path.join(folder, "bad.onnx"), os.path.join(folder, "colours.onnx")
        with open(bad, "wb") as f:
            f.write(b"no network at all")
        tiny_onnx.write(colours, [("conv", 8, 3), ("relu",), ("linear", 10)], channels=3, size=32)
        with served(("bad", bad), ("colours", colours)) as d:
            f = finds(d, "failed-model", bad)
            equal((f["model"], f["severity"], f["share"]), ("bad", "failure", 1.0))
            equal(doctor(d)["findings"][0]["name"], "failed-model", "the costliest is first")
            f = finds(d, "no-sidecar", "they stay 0 to 255")
            equal(f["model"], "colours")
            equal(" ".join(str(v) for v in f.values()).count("--write-sidecar"), 1, f)
            picture = os.path.join(folder, "grey.ppm")
            with open(picture, "wb") as to:
                to.write(b"P6 32 32 255\n" + bytes(32 * 32 * 3))
            r = run("--socket", d.control_path, "infer", "--model", "colours", picture, expect=0)
            check("warning: colours: its input is a picture in floats" in r.stderr, r.stderr)
            other = http_models.write(os.path.join(folder, "other.onnx"), [tiny_onnx.node("Relu", ["x"], "y")],
                                      [tiny_onnx.value("x", [1, 4])], [tiny_onnx.value("y", [1, 5])])
            d.call("Load", {"name": "other", "path": other})
            one, = [f for f in doctor(d, "--model", "other")["findings"] if "file declares" in f["text"]]
            equal((one["name"], one["model"], one["severity"]), ("declared", "other", "loss"), one)
            check("output y is f32 [1, 4], and the file declares f32 [1, 5]" in one["text"], one)
            d.call("Unload", {"name": "other"})
            d.call("Load", {"name": "digits", "path": DIGITS})
            of = {f["model"] for f in doctor(d, "--model", "digits")["findings"] if f["name"] == "no-sidecar"}
            equal(of, set(), "said of another model than the one asked about")
            text = run("--socket", d.control_path, "doctor", "--seconds", "0.2", expect=1).stdout
            check(text.startswith("failed-model 100 % bad: The model could not be loaded"), text)
            for name in ("colours", "digits"):
                d.call("Unload", {"name": name})
            finds(d, "no-model", "No model is loaded")


def team_threads(d):
    """Those that are pinned to one core."""
    tasks, found = "/proc/%d/task" % d.process.pid, []
    for t in os.listdir(tasks):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            with open(os.path.join(tasks, t, "status"), encoding="utf-8") as f:
                if "Cpus_allowed_list:\t0\n" in f.read():
                    found.append(int(t))
    return found


def hold(thread):
    """Forks a process that holds one thread of the daemon still until it is killed."""
    holder = os.fork()
    if holder == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        if libc.ptrace(PTRACE_SEIZE, thread, None, None) or libc.ptrace(PTRACE_INTERRUPT, thread, None, None):
            os._exit(ctypes.get_errno())
        while True:
            os.waitpid(thread, WALL)
    return holder


def a_stage_that_hangs():
    with on_tree(config={"stalled_ms": 200}) as (d, _):
        d.call("SetPlan", {"plan": "0-11@big"})
        # One of the plan before, held while it ends, would hold the daemon's loop, which waits for its end.
        check(d.wait_until(lambda: len(team_threads(d)) <= 1), "teams of the plan before do not end")
        threads = team_threads(d)
        if not threads:
            return "no thread is pinned here"
        with load(d):
            holders = [hold(t) for t in threads]
            try:
                if any(os.waitpid(h, os.WNOHANG)[0] for h in holders):
                    return "threads cannot be held here"
                f = finds(d, "stuck", "makes no progress")
                equal((f["model"], f["severity"]), ("digits", "failure"))
            finally:
                for h in holders:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(h, 9)
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(h, 0)
    return None


# ---- the machine ----

def clocks_and_heat():
    with on_tree(("net", NETWORK)) as (d, t), load(d):
        for cpu in range(2):
            t.policy(cpu, "scaling_governor", "powersave")
            t.policy(cpu, "scaling_cur_freq", 1100000)
        f = finds(d, "governor", "Governor powersave holds cpu0-1 at 1.1 of 2.0 GHz", least=0.45)
        equal(f["share"], 0.45)
        check("policy*/scaling_governor" in f["advice"], f)
        for cpu in range(2):
            t.policy(cpu, "scaling_max_freq", 1000000)
            t.policy(cpu, "scaling_cur_freq", 1000000)
        equal(finds(d, "frequency-limit", "A limit holds cpu1 at 1.0 of 2.0 GHz", least=0.5)["share"], 0.5)
        check(not [f for f in doctor(d)["findings"] if f["name"] == "governor"], "the limit is to blame, not the governor")
        t.put("sys/class/thermal/thermal_zone0/temp", 85000)
        t.put("sys/class/thermal/cooling_device0/cur_state", 3)
        equal(finds(d, "heat", "at 1.0 of 2.0 GHz (cpu 85 C, above its trip point)", least=0.5)["share"], 0.5)


def quota_of_files():
    group = "sys/fs/cgroup/piped.service/"
    files = [("proc/self/cgroup", "0::/piped.service"), ("sys/fs/cgroup/cgroup.controllers", "cpu"),
             (group + "cpu.max", "150000 100000"), (group + "cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0")]
    with on_tree(files=files) as (d, t), rising(t, group + "cpu.stat", "nr_periods %d00\nnr_throttled %d0\nthrottled_usec %d00000"):
        finds(d, "quota", "The control group allows 1.50 CPUs", least=0.05)


class Quota:
    """A control group that gets a fifth of a core."""

    def __init__(self):
        self.path = None
        for root, files in (("/sys/fs/cgroup", {"cpu.max": "20000 100000"}),
                            ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"})):
            path = os.path.join(root, "piped-test-%d" % os.getpid())
            if os.path.exists(os.path.join(root, "cgroup.procs")):
                try:
                    os.mkdir(path)
                    self.path = path
                    for name, text in files.items():
                        with open(os.path.join(path, name), "w", encoding="utf-8") as f:
                            f.write(text)
                    return
                except OSError:
                    self.remove()

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="utf-8") as f:
            f.write(str(os.getpid()))

    def remove(self):
        if self.path:
            os.rmdir(self.path)
        self.path = None


def a_quota_of_the_kernel():
    q = Quota()
    if not q.path:
        return "needs root and the cpu controller of control groups"
    try:
        with served(("net", NETWORK), preexec=q.enter) as d, load(d):
            if not isinstance((d.status()["sensors"]["cgroup"] or {}).get("throttled_us"), int):
                return "this kernel does not tell of its quota"
            finds(d, "quota", "allows 0.20 CPUs", least=0.2, seconds=1)
    finally:
        q.remove()
    return None


def memory_runs_out():
    group = "sys/fs/cgroup/piped.service/"
    files = [("proc/self/cgroup", "0::/piped.service"), ("sys/fs/cgroup/cgroup.controllers", "memory"),
             (group + "memory.max", "max")]
    with on_tree(files=files) as (d, t):
        equal(d.status()["memory"]["limit_bytes"], None)
        t.put(group + "memory.max", d.status()["memory"]["resident_bytes"])
        finds(d, "memory", "MiB that its control group allows")
        with rising(t, "proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=%d000000"):
            finds(d, "memory", "waited for memory for", least=0.5)


# ---- cores ----

def another_program():
    if no_thief():
        return no_thief()
    with on_tree(("net", NETWORK)) as (d, _):
        d.call("SetPlan", {"plan": "0-%d@bigx1" % LAST})
        cpu = d.status()["models"][0]["stages"][0]["cpus"][0]
        thief = subprocess.Popen([SLOW_CORE, str(cpu), "3000", "4000", "600"], stdout=subprocess.PIPE, text=True)
        try:
            equal(thief.stdout.readline(), "ready\n")
            with load(d):
                f = finds(d, "shared-cores", "its cores ran tasks of others", "slow_core (%d)" % thief.pid, least=0.4,
                          seconds=1)
                check("on cpu%d" % cpu in f["text"], f)
        finally:
            thief.kill()
            thief.wait()
            thief.stdout.close()
    return None


def two_models():
    with on_tree(("a", NETWORK), ("b", NETWORK)) as (d, _), load(d, "--model", "a"), load(d, "--model", "b"):
        if max([f["share"] for f in doctor(d)["findings"] if f["name"] == "shared-cores"] + [0]) > 0.8:
            return "other programs take nearly all of the cores"
        f = finds(d, "contention", "Two models contend for the same cores: for ", seconds=1)
        check(f["model"] in ("a", "b") and "--model %s PLAN" % f["model"] in f["advice"], f)
    return None


def too_many_cores_in_a_plan():
    with on_tree() as (d, _):
        d.call("SetPlan", {"plan": "0-11@big*9"})
        finds(d, "crowded-plan", "0-11@big*9", "teams share cores")


# ---- clients ----

def one_frame_in_flight():
    with on_tree(("net", NETWORK)) as (d, _):
        d.call("SetPlan", {"plan": "0-%d@big*2" % LAST})
        with load(d, "--in-flight", "1"):
            finds(d, "client-waits", 'Client "pipectl"', "has one frame in flight", least=0.15)


def too_few_credits():
    """Two frames for eight stages: even one with a third of all work has none for a third of the time."""
    with on_tree(("net", NETWORK)) as (d, _):
        d.call("SetPlan", {"plan": "|".join("%d-%d@big" % ends for ends in (
            (0, 0), (1, 4), (5, 8), (9, 12), (13, 16), (17, 20), (21, 24), (25, 25)))})
        with load(d, "--in-flight", "2"):
            finds(d, "client-waits", "waits for its own credits", "it has 2, the plan needs 16")


def a_client_that_keeps_its_slots():
    """As `for a in s.infer(frames): work(a)` does: it sends all that it may but one or two, then
    takes one answer after the other."""
    with on_tree() as (d, _), pc.Connection(d.frames_path) as c:
        s, stop = pc.Stream(c, credits=8, inline=True), threading.Event()
        frame = bytes(s.in_size)

        def in_bursts():
            while not stop.is_set():
                for _ in range(6):
                    s.submit(frame)
                for _ in range(6):
                    s.result()
                    stop.wait(0.02)

        def one_by_one():  # with seven: this client reads all answers that are there, so every seventh frame finds none unread
            for _ in range(7):
                s.submit(frame)
            while not stop.is_set():
                s.result()
                stop.wait(0.02)
                s.submit(frame)
            for _ in range(7):
                s.result()

        for client in in_bursts, one_by_one:
            stop.clear()
            t = threading.Thread(target=client, daemon=True)
            t.start()
            try:
                f = finds(d, "slow-client", 'Client "pyclient" (pid %d) keeps its 8 slots' % os.getpid(), least=0.5)
                check("and takes an answer every " in f["text"] and f["model"] == "digits", f)
            finally:
                stop.set()
                t.join()


def clients_are_refused():
    with served(config={"limits": {"inline_mib": 1, "connections": 1, "kept_connections": 1}}) as d:
        for _ in range(3):
            run("--socket", d.control_path, "bench", "--model", "nothing", "--frames", "1", expect=1)
        finds(d, "refused", "3 processes", "3 streams refused", "nothing")
        with pc.Connection(d.frames_path) as c:
            try:
                pc.Stream(c, model="nobody")
            except pc.Refused:
                pass
            f = finds(d, "refused", 'Client "pyclient" (pid %d' % os.getpid(), "stream", "not_found", "nobody")
            equal(f["share"], None)
            s = pc.Stream(c, 2, pixfmt=pc.RGB24, image=(1000, 1000), inline=True)
            for _ in range(3):
                equal(s.infer(bytes(s.in_size)).status, "resource_exhausted")
            finds(d, "refused", "3 frames refused", "resource_exhausted", "limits.inline_mib is 1.")
            others = []
            while len(others) < 2:  # root has one more
                try:
                    others.append(pc.Connection(d.frames_path))
                except pc.Closed:
                    break
            finds(d, "refused", "connection", "resource_exhausted", "limits.connections")
            for other in others:
                other.close()


def frames_are_late():
    with served() as d, sending(d, deadline_ns=1000, credits=2):
        finds(d, "deadlines", 'Client "pyclient"', "missed their deadline", least=0.5)


def frames_are_dropped():
    with served(("net", NETWORK)) as d, sending(d, policy=pc.LATEST, credits=32):
        f = finds(d, "dropped", "gave way to newer ones", least=0.2)
        equal(f["severity"], "note")


def pictures_are_large():
    with served() as d, load(d, "--pixfmt", "rgb24", "--size", "1920x1080"):
        f = finds(d, "pictures", "pictures of up to 1920x1080 (rgb24) become 16x16", least=0.3)
        check("16x16" in f["advice"], f)


# ---- plans ----

def a_plan_of_the_user():
    if os.cpu_count() < 2:
        return "needs two cores"
    with on_tree(("net", NETWORK)) as (d, _), load(d):
        d.call("SetPlan", {"plan": "0-%d@big" % LAST})
        f = finds(d, "better-plan", "0-%d@big is a user's" % LAST, "is predicted to serve", least=0.2)
        check("plan auto --model net" in f["advice"], f)
        d.call("AutoPlan")
        check(not [f for f in doctor(d)["findings"] if f["name"] == "better-plan"], "the plan is the daemon's")
    return None


def wishes_cannot_be_kept():
    """One model is to have more than all cores can do, then less, but sooner than a unit of the other one ends."""
    config = {"adapt": {}, "eps": [{"name": n, "cpus": "0"} for n in ("left", "right")]}
    with served(("a", NETWORK), ("b", NETWORK), config=config) as d:
        d.pipectl("models", "set", "b", "--rate", "1")
        d.pipectl("models", "set", "a", "--rate", "1000000")
        f = finds(d, "wishes", "What a is to have, 1000000 frames/s, costs most", least=0.5)
        rate = re.search("pipectl models set a --rate ([0-9.]+[0-9])", f["advice"])[1]
        d.pipectl("models", "set", "a", "--rate", rate)
        check(d.wait_until(lambda: (d.status()["mix"] or {}).get("of_wishes", 0) >= 0.9), "the rate %s is too much" % rate)
        d.pipectl("models", "set", "a", "--rate", "1", "--deadline", "0.01")
        finds(d, "wishes", "A deadline may be missed. Frames of a may be late on ")


def frames_are_later_than_wished():
    with served() as d, load(d):
        d.pipectl("models", "set", "digits", "--rate", "1000000", "--deadline", "0.01")
        finds(d, "late", "later than the 0.01 ms that are wished", least=0.5)


def costs_are_guesses():
    with served(("net", NETWORK)) as d:
        f = finds(d, "guessed-costs", "figures of the cost table are predicted")
        check("pipectl retune" in f["advice"] and "pipectl profile" in f["advice"], f)


def units_are_heavy():
    with served(("net", NETWORK)) as d, load(d):
        f = finds(d, "heavy-units", "Units ", " of a frame, ", least=0.05)
        check("pipectl quantize net" in f["advice"], f)
        equal(f["severity"], "note")


def a_stage_is_slower_than_expected():
    """The costs that the daemon finds kept are a thousandth of what they were measured as."""
    with served(("net", NETWORK)) as d:
        d.pipectl("bench", "--frames", "40")
        d.stop()
        for name in [n for n in os.listdir(d.state_dir) if n.startswith("model-")]:
            path = os.path.join(d.state_dir, name)
            root = kept_files.read(path)
            for state in root["states"]:
                for widths in state["costs"].values():
                    for units in widths.values():
                        units[:] = [u and [u[0] / 1000] + u[1:] for u in units]
            kept_files.write(path, root)
        d.start()
        with load(d):
            finds(d, "slow-stage", "of CPU time for a frame; the planner expected", least=0.5)


def a_search_is_running():
    with served(("net", NETWORK)) as d, load(d):
        d.pipectl("retune", "--no-wait", "--algorithm", "random", "--trials", "1000", as_json=False)
        equal(finds(d, "adapting", "(a search runs)", seconds=0.1)["model"], "net")
        d.pipectl("retune", "--cancel", as_json=False)


if __name__ == "__main__":
    main([unless_crowded(case) for case in (
        an_idle_daemon_is_well, models_that_are_not_served, a_stage_that_hangs, clocks_and_heat, quota_of_files,
        a_quota_of_the_kernel, memory_runs_out, another_program, two_models, too_many_cores_in_a_plan,
        one_frame_in_flight, too_few_credits, a_client_that_keeps_its_slots, clients_are_refused, frames_are_late,
        frames_are_dropped, pictures_are_large, a_plan_of_the_user, wishes_cannot_be_kept, frames_are_later_than_wished,
        costs_are_guesses, units_are_heavy, a_stage_is_slower_than_expected, a_search_is_running)])
