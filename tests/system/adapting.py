# SPDX-License-Identifier: Apache-2.0
"""A daemon on a tree of files that says what the machine is, watched while its plan follows.

Threads run on real cores. A client streams all the while and checks every answer. Where a case is about files,
detectors are set so high (DEAF) that the machine's own noise is no cause of anything.
"""
import functools
import json
import os
import random
import struct
import subprocess
import tempfile
import threading
import time

import kept_files
import pyclient
from daemon import BUILD, HEARTBEAT, LIMIT_S, ROOT, Daemon, check, equal

PIPESIM = os.path.join(BUILD, "tuner", "pipesim")
NETWORK = os.path.join(ROOT, "model", "networks", "squeezenet1_1.json")
LAST = 25  # unit of NETWORK
EPS = [{"name": "a", "cpus": "0"}, {"name": "b", "cpus": "1"}]
DEAF = {"sustain_millisigma": 1000000, "noise_permille": 1000, "cooldown_s": 0, "probe_s": 0, "verify_percent": 1000}
TOP, LOW = 2000000, 600000
AHEAD = -15  # a nice level
GOES = 3


class Tree:
    """Two cores with a policy each, a thermal zone and its cooling device."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "sysfs")
        self.put("sys/devices/system/cpu/online", "0-1")
        self.put("proc/self/status", "Name:\tpiped\nCpus_allowed_list:\t0-1")
        for cpu in range(2):
            self.put("sys/devices/system/cpu/cpu%d/cpu_capacity" % cpu, "1024")
            self.put("sys/devices/system/cpu/cpu%d/topology/core_id" % cpu, str(cpu))
            self.policy(cpu, "related_cpus", cpu)
            self.policy(cpu, "scaling_governor", "performance")
            for name, khz in (("cpuinfo_max_freq", TOP), ("cpuinfo_min_freq", LOW), ("scaling_max_freq", TOP),
                              ("scaling_min_freq", LOW), ("scaling_cur_freq", TOP)):
                self.policy(cpu, name, khz)
        zone = "sys/class/thermal/thermal_zone0/"
        for name, value in (("type", "cpu"), ("temp", 45000), ("trip_point_0_type", "passive"),
                            ("trip_point_0_temp", 80000)):
            self.put(zone + name, value)
        for name, value in (("type", "cpufreq-cpu1"), ("cur_state", 0), ("max_state", 3)):
            self.put("sys/class/thermal/cooling_device0/" + name, value)

    def put(self, path, value):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write("%s\n" % value)
        os.rename(path + ".new", path)

    def policy(self, number, name, value):
        self.put("sys/devices/system/cpu/cpufreq/policy%d/%s" % (number, name), value)


class Meter:
    """A machine of two cores whose joules and busy times are in files: 4 W and 1 W for a busy core 0 and 1, nothing besides,
    so that a reader who comes late finds less of both. Each step() goes on to now, with a load that changes each second."""
    WATTS = (4.0, 1.0)

    def __init__(self, tree):
        self.tree, self.draw = tree, random.Random(3)
        self.at, self.busy_s, self.load = time.monotonic(), [0.0, 0.0], (1, 0)
        self.tree.put("sys/class/powercap/intel-rapl:0/name", "package-0")
        self.step()

    def step(self):
        now = time.monotonic()
        for core in range(2):
            self.busy_s[core] += self.load[core] * (now - self.at)
        if int(now) != int(self.at):
            self.load = self.draw.choice([(0, 1), (1, 0), (1, 1)])
        self.at = now
        joules = sum(w * s for w, s in zip(self.WATTS, self.busy_s))
        self.tree.put("sys/class/powercap/intel-rapl:0/energy_uj", int(joules * 1e6))
        self.tree.put("proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\n" + "".join(
            "cpu%d %d 0 0 0 0 0 0 0 0 0\n" % (i, 100 * s) for i, s in enumerate(self.busy_s)))


class Ahead:
    """Goes ahead of what else the machine does, with the daemons and clients that begin meanwhile: for cases in which one
    plan has to show that it is faster than another. Not at real-time priority: teams that wait by spinning would keep the
    loop from its core. Without the right to that they compete as usual."""

    def __enter__(self):
        try:
            os.setpriority(os.PRIO_PROCESS, 0, AHEAD)
        except OSError:
            pass
        return self

    def __exit__(self, kind, value, trace):
        try:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        except OSError:
            pass


def crowded():
    """Far more wants to run on this machine than a test brings."""
    return os.getloadavg()[0] > 3 * os.cpu_count()


def by_measurement(case):
    """Gives the case three goes: what it asks for is what was measured, which other programs of the machine may disturb."""
    @functools.wraps(case)
    def run():
        for left in range(GOES - 1, -1, -1):
            try:
                return case()
            except (AssertionError, KeyError) as e:
                if not left:
                    raise
                print("again:", case.__name__, str(e)[:400], flush=True)
        return None
    return run


class Client(threading.Thread):
    """Streams until told to stop and checks order and content of every answer. `frames`: what it may send(), None: a constant."""

    def __init__(self, d, frames=(None,), model=None):
        super().__init__()
        self.model = model or d.status()["models"][0]["name"]
        self.d, self.stop, self.answered, self.error = d, threading.Event(), 0, None
        self.frames, self.sends = frames, 0
        self.start()

    def send(self, which):
        """From now on the frame of this number."""
        self.sends = which

    def run(self):
        try:
            with pyclient.Connection(self.d.frames_path, timeout=LIMIT_S) as c:
                s = pyclient.Stream(c, 1, self.model)
                frames = [f or struct.pack("<f", 0.25) * (s.input_bytes // 4) for f in self.frames]
                wanted = [s.infer(f).output for f in frames]
                sent = []
                while not self.stop.is_set() or sent:
                    while len(sent) < s.credits and not self.stop.is_set():
                        which = self.sends
                        sent.append((s.submit(frames[which]), which))
                    r = s.result()
                    number, which = sent.pop(0)
                    equal((r.frame, r.status), (number, "ok"), r.text)
                    check(r.output == wanted[which], "a wrong answer in epoch", r.epoch)
                    self.answered += 1
                s.close()
        except Exception as e:  # told by end()
            self.error = e

    def end(self):
        self.stop.set()
        self.join()
        if self.error:
            raise self.error
        check(self.answered > 0, "nothing was answered")


class Machine:
    """A daemon on a tree, with a client, watched until its plan is."""
    frames_sent = (None,)

    def __init__(self, adapt=None, eps=True, plan=None, network=NETWORK, planner=None, sensors=None, models=None):
        config = {"adapt": {"enabled": True, **(DEAF if adapt is None else adapt)}}
        if sensors:
            config["sensors"] = sensors
        if eps:
            config["eps"] = EPS
        if planner:
            config["planner"] = planner
        if plan:
            models = [{"name": "m", "path": network, "plan": plan}]
        if models:
            config["models"] = models
        self.d = Daemon(models=None if models else {"m": network}, config=config, env=HEARTBEAT)
        self.tree = Tree(self.d.temp)
        self.d.args = ["--sysfs-root", self.tree.root]

    def __enter__(self):
        self.d.start()
        self.client = Client(self.d, self.frames_sent)
        return self

    def __exit__(self, kind, value, trace):
        try:
            self.client.stop.set()
            self.client.join()
            if kind is None:
                self.client.end()
                status = self.model()
                equal((status["frames"]["failed"], status["frames"]["dropped"]), (0, 0))
        finally:
            self.d.__exit__(kind, value, trace)

    def end(self):
        self.client.end()
        self.d.stop()

    def begin(self):
        """The daemon again, on the same tree and state, with another client."""
        self.d.start()
        self.client = Client(self.d, self.frames_sent)

    def model(self):
        return self.d.status()["models"][0]

    def history(self):
        return self.d.call("History")["events"]

    def wait(self, what, wanted):
        def found():
            if self.client.error:
                raise self.client.error
            return wanted()

        value = self.d.wait_until(found)
        check(value, "waited in vain for", what, json.dumps(self.model()["adapt"]),
              [{k: e[k] for k in ("cause", "outcome", "detail")} for e in self.history()], self.d.log())
        return value

    def watched(self):
        self.wait("watching", lambda: self.model()["adapt"]["state"] == "watching")

    def event(self, cause, after=0):
        """The newest event of @cause with an id above @after."""
        return self.wait(cause, lambda: next((e for e in reversed(self.history())
                                              if e["cause"] == cause and e["id"] > after), None))

    def decided(self, cause, after=0):
        """The same, of those that a decision was made for: on a slow machine the change is told before it."""
        return self.wait("a decision, " + cause, lambda: next((e for e in reversed(self.history()) if "decision" in e and
                                                               e["cause"] == cause and e["id"] > after), None))

    def last_id(self):
        return self.history()[-1]["id"]

    def frames(self, count):
        answered = self.client.answered
        self.wait("frames", lambda: self.client.answered >= answered + count)


def good_record(event):
    """What a decision was made from, complete enough to make it again."""
    r = event["decision"]
    equal(len(r["beta"]), len(r["problem"]["units"]))
    equal(r["decided"]["cause"], event["cause"])
    check(event["detail"], event)
    if os.path.exists(PIPESIM):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump([event], f)
            f.flush()
            got = subprocess.run([PIPESIM, "replay", f.name], capture_output=True, text=True, check=False)
            equal(got.returncode, 0, got.stdout + got.stderr)


def kept(m, change=None):
    """The states in the file of what was learned, after change(states) of a daemon that is not there."""
    for name in os.listdir(m.d.state_dir):
        if name.startswith("model-") and name.endswith(".json"):
            path = os.path.join(m.d.state_dir, name)
            root = kept_files.read(path)
            if change:
                root["states"] = change(root["states"])
                kept_files.write(path, root)
            return root["states"]
    return []


def begin_with(m, plan):
    """The daemon anew, with a plan that was kept for the state of the machine it finds."""
    m.watched()
    m.wait("a state", lambda: kept(m))
    m.end()
    kept(m, lambda states: [{**s, "plan": plan} for s in states])
    m.begin()
    equal((m.model()["plan"], m.model()["algorithm"]), (plan, "saved"))
    m.watched()
