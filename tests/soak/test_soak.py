#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed load, hour after hour: clients of every policy, and everything that may happen to a daemon, in a random order.

PIPED_TEST_SOAK_S says for how long (tests/run --soak HOURS), PIPED_TEST_SEED which order. At each rest, when nobody
streams, the daemon has as many threads and descriptors as at the first, and little more memory. Answers are right and
in order, and every frame has one; a restart under load ends cleanly.
"""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
import adapting  # noqa: E402
import tiny_onnx  # noqa: E402
from daemon import DIGITS, HEARTBEAT, Daemon, VarlinkError, check, equal, main  # noqa: E402
from example_pictures import folder  # noqa: E402
from soak_clients import LIMIT_S, Answers, Client  # noqa: E402

SECONDS = float(os.environ.get("PIPED_TEST_SOAK_S", "12"))
SEED = int(os.environ.get("PIPED_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
CLIENTS = 4
REST_EVERY = 40  # events
GROWTH_MIB = 24  # of memory, besides a tenth
CONFIG = {"eps": adapting.EPS, "adapt": {"enabled": True, **adapting.DEAF}, "limits": {"connections": 64}}


class Soak:
    def __init__(self, d):
        self.d, self.random = d, random.Random(SEED)
        self.tree = adapting.Tree(d.temp)
        d.args = ["--sysfs-root", self.tree.root]
        self.extra = os.path.join(d.temp, "extra.onnx")
        tiny_onnx.write(self.extra, [("conv", 8, 3), ("relu",), ("pool",), ("linear", 4)], channels=3, size=8)
        self.pictures = folder(d)
        self.answers = Answers("digits")
        self.did, self.first, self.most, self.rests = {}, None, {}, 0

    def begin(self):
        self.d.start()
        self.answers.learn(self.d)
        self.quantise()
        self.answers.learn(self.d)
        self.plain()
        self.units = self.d.status()["models"][0]["units"]
        self.clients = [Client(self.d.frames_path, self.answers, SEED + i) for i in range(CLIENTS)]

    # ---- events ----

    def set_plan(self):
        k, last = self.random.randrange(self.units - 1), self.units - 1
        plan = self.random.choice(("0-%d@a" % last, "0-%d@a+b" % last, "0-%d@a|%d-%d@b" % (k, k + 1, last),
                                   "0-%d@b|%d-%d@a" % (k, k + 1, last)))
        self.d.call("SetPlan", {"model": "digits", "plan": plan})

    def retune(self):
        self.d.call("Retune", {"model": "digits", "algorithm": self.random.choice(("exact", "shisha", "pipe-it")),
                               "trials": 2})

    def quantise(self):
        self.d.pipectl("quantize", "digits", "--calibrate", self.pictures, "--bound", "90", "--ms", "0")

    def plain(self):
        self.d.call("Quantise", {"model": "digits", "off": True})

    def load(self):
        self.d.call("Load", {"name": "extra", "path": self.extra, "save": self.random.random() < 0.5})

    def unload(self):
        self.d.call("Unload", {"name": "extra"})

    def reload(self):
        self.d.write_config({**CONFIG, "limits": {"connections": self.random.randint(48, 96)}})
        self.d.call("Reload")

    def restart(self):
        self.d.stop()
        self.d.start()

    def kill(self):
        self.d.kill()
        self.d.start()

    def freeze(self):
        """As by a debugger, or a suspended machine."""
        self.d.signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.05, 0.5))
        self.d.signal(signal.SIGCONT)

    def clocks(self):
        cpu = self.random.randrange(2)
        self.tree.policy(cpu, "scaling_max_freq", self.random.choice((adapting.TOP, adapting.LOW)))
        self.tree.policy(cpu, "scaling_governor", self.random.choice(("performance", "powersave", "schedutil")))

    def heat(self):
        self.tree.put("sys/class/thermal/thermal_zone0/temp", self.random.choice((45000, 79000, 85000)))
        self.tree.put("sys/class/thermal/cooling_device0/cur_state", self.random.randrange(4))

    def cores(self):
        self.tree.put("sys/devices/system/cpu/online", self.random.choice(("0-1", "0-1", "0")))

    def ask(self):
        for method in ("Status", "Models", "Units", "History", "Metrics", "PlanFront"):
            self.d.call(method)

    # more often than others: what is cheap and changes the plan
    EVENTS = (set_plan,) * 6 + (ask,) * 4 + (load, unload, reload, clocks, heat, cores) * 2 + (
        retune, restart, kill, freeze, quantise, plain)

    def event(self):
        what = self.random.choice(self.EVENTS)
        name = what.__name__
        try:
            what(self)
        except VarlinkError as e:  # busy with a search, a model that is there already, cores that are gone
            name += ", refused"
            check(e.parameters, "refused without a word:", e)
        self.did[name] = self.did.get(name, 0) + 1

    # ---- watching ----

    def figures(self):
        base = "/proc/%d/" % self.d.process.pid
        with open(base + "status", encoding="ascii") as f:
            status = dict(line.split(":", 1) for line in f)
        return {"memory_mib": int(status["VmRSS"].split()[0]) / 1024, "threads": int(status["Threads"]),
                "descriptors": len(os.listdir(base + "fd"))}

    def tidy(self):
        """Nobody streams, and what is served is what was served first."""
        for client in self.clients:
            client.stop()
        for client in self.clients:
            check(client.resting.wait(2 * LIMIT_S), "a client waits for ever\n" + self.d.log())
        self.tree.put("sys/devices/system/cpu/online", "0-1")
        if any(m["name"] == "extra" for m in self.d.call("Models")["models"]):
            self.d.call("Unload", {"name": "extra"})
        check(self.d.wait_until(self.plain_plan), "the cores did not come back:", self.d.status(), self.d.log())

    def plain_plan(self):
        try:
            return self.d.call("SetPlan", {"model": "digits", "plan": "0-1@a|2-%d@b" % (self.units - 1)})
        except VarlinkError:  # the core has just come back
            return None

    def rest(self):
        self.tidy()
        settled = self.d.wait_until(lambda: self.first is None or all(
            self.figures()[k] <= self.first[k] for k in ("threads", "descriptors")))
        now = self.figures()
        self.first = self.first or now
        check(settled, "threads or descriptors grew:", self.first, now, os.listdir("/proc/%d/fd" % self.d.process.pid))
        if "PIPED_TEST_SANITIZER" not in os.environ:
            check(now["memory_mib"] < 1.1 * self.first["memory_mib"] + GROWTH_MIB, "memory grew:", self.first, now)
        self.most = {k: max(v, self.most.get(k, 0)) for k, v in now.items()}
        self.rests += 1
        for client in self.clients:
            client.resume()

    def alive(self):
        for client in self.clients:
            if client.error:
                raise client.error
        check(self.d.process.poll() is None, "piped ended:", self.d.process.returncode, self.d.log())

    def end(self):
        for client in self.clients:
            client.end()
        self.alive()
        self.d.stop()

    def told(self):
        counts = {}
        for client in self.clients:
            for what, n in client.counts.items():
                counts[what] = counts.get(what, 0) + n
        times = sorted(t for client in self.clients for t in client.times_ms)
        at = lambda share: times[min(int(share * len(times)), len(times) - 1)]  # noqa: E731
        print("clients: %s" % ", ".join("%s %d" % item for item in sorted(counts.items())))
        print("events: %s" % ", ".join("%s %d" % item for item in sorted(self.did.items())))
        print("round trips, ms: median %.1f, 99 %% %.1f, most %.1f" % (at(0.5), at(0.99), times[-1]))
        print("%d rests; the first: %s; the most: %s" % (self.rests, self.first, self.most))
        return counts


def mixed_load():
    print("seed %d, %.0f s" % (SEED, SECONDS), flush=True)
    d = Daemon(models={"digits": DIGITS}, config=CONFIG, env=HEARTBEAT)
    try:
        soak = Soak(d)
        soak.begin()
        end = time.monotonic() + SECONDS
        count = 0
        soak.rest()
        while time.monotonic() < end:
            soak.event()
            soak.alive()
            count += 1
            if count % REST_EVERY == 0:
                soak.rest()
        soak.rest()
        soak.end()
        check(soak.told().get("ok", 0) > 0, "no frame was answered")
        equal(d.process, None)
    except BaseException:
        print("---- log of piped ----\n" + d.log()[-20000:], file=sys.stderr)
        raise
    finally:
        d.cleanup()


if __name__ == "__main__":
    main([mixed_load])
