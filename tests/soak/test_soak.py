#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed load, hour after hour: clients of every policy, and everything that may happen to a daemon, in a random order.

Beside the clients of the frames protocol come those of the other doors: HTTP, Python, GStreamer, links between boards
(soak_doors.py). PIPED_TEST_SOAK_S says for how long (tests/run --soak HOURS), PIPED_TEST_SEED which order. At each rest,
when nobody streams, each process has as many threads and descriptors as at the first, and little more memory. Answers are
right and in order, and every frame has one; a restart under load ends cleanly.
"""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
import adapting  # noqa: E402
import soak_doors  # noqa: E402
import tiny_onnx  # noqa: E402
from daemon import DIGITS, HEARTBEAT, Daemon, VarlinkError, check, equal, main  # noqa: E402
from example_pictures import folder  # noqa: E402
from soak_clients import LIMIT_S, Answers, Client  # noqa: E402
from wait import during  # noqa: E402

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
        self.answers = {name: Answers(name) for name in d.models}
        self.seed, self.config = SEED, dict(CONFIG)
        self.doors = []
        self.did, self.first, self.most, self.rests = {}, {}, {}, 0

    def begin(self):
        for door in soak_doors.PRESENT:
            self.doors.append(door(self))
        self.d.write_config(self.config)
        self.d.start()
        for answers in self.answers.values():
            answers.learn(self.d)
        self.quantise()
        self.answers["digits"].learn(self.d)
        self.plain()
        self.units = self.model("digits")["units"]
        for door in self.doors:
            door.begin()
        self.clients = [Client(self.d.frames_path, self.answers["digits"], SEED + i) for i in range(CLIENTS)]
        self.clients += [client for door in self.doors for client in door.clients]
        self.events = [getattr(self, e.__name__) for e in self.EVENTS]
        self.events += [getattr(door, e.__name__) for door in self.doors for e in door.events]
        for door in self.doors:
            check(self.d.wait_until(door.warm), "never warm:", door, self.log())

    def model(self, name):
        """Return: its status."""
        return next(m for m in self.d.status()["models"] if m["name"] == name)

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
        self.d.write_config({**self.config, "limits": {"connections": self.random.randint(48, 96)}})
        self.d.call("Reload")

    def restart(self):
        before = len(self.d.log())
        self.d.stop()
        said = self.d.log()[before:]
        check("it is silent" not in said and "stopping anyway" not in said, "frames held up the stop:", said)
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
        what = self.random.choice(self.events)
        name = what.__name__
        try:
            what()
        except VarlinkError as e:  # busy with a search, a model that is there already, cores that are gone
            name += ", refused"
            check(e.parameters, "refused without a word:", e)
        self.did[name] = self.did.get(name, 0) + 1

    # ---- watching ----

    def figures(self):
        """Return: of each process, how much it has."""
        processes = {"piped": self.d.process.pid}
        for door in self.doors:
            processes.update(door.processes())
        return {name: figures_of(pid) for name, pid in processes.items()}

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

    def settled(self):
        """Return: whether each process has no more threads and descriptors than at the first rest."""
        now = self.figures()
        return all(now[name][k] <= first[k] for name, first in self.first.items() for k in ("threads", "descriptors"))

    def rest(self):
        self.tidy()
        settled = self.d.wait_until(self.settled)
        now = self.figures()
        self.first = self.first or now
        check(settled, "threads or descriptors grew:", self.first, now)
        for name, figures in now.items():
            first, most = self.first[name], self.most.setdefault(name, figures)
            if "PIPED_TEST_SANITIZER" not in os.environ:
                check(figures["memory_mib"] < 1.1 * first["memory_mib"] + GROWTH_MIB, "memory of", name, "grew:", first, figures)
            self.most[name] = {k: max(v, most[k]) for k, v in figures.items()}
        self.rests += 1
        for client in self.clients:
            client.resume()

    def alive(self):
        for client in self.clients:
            if client.error:
                raise client.error
        check(self.d.process.poll() is None, "piped ended:", self.d.process.returncode, self.d.log())

    def log(self):
        return "\n".join(["---- log of piped ----\n" + self.d.log()[-20000:]] + [door.log() for door in self.doors])

    def end(self):
        for client in self.clients:
            client.end()
        self.alive()
        for door in self.doors:
            door.end()
        self.d.stop()

    def told(self):
        for name in dict.fromkeys(client.door for client in self.clients):
            clients = [client for client in self.clients if client.door == name]
            counts = {}
            for client in clients:
                for what, n in client.counts.items():
                    counts[what] = counts.get(what, 0) + n
            check(counts.get("ok", 0) > 0, "no frame was answered:", name, counts)
            times = sorted(t for client in clients for t in client.times_ms)
            at = lambda share: times[min(int(share * len(times)), len(times) - 1)]  # noqa: E731, B023
            print("%s: %s" % (name, ", ".join("%s %d" % item for item in sorted(counts.items()))))
            print("  round trips, ms: median %.1f, 99 %% %.1f, most %.1f" % (at(0.5), at(0.99), times[-1]))
        print("events: %s" % ", ".join("%s %d" % item for item in sorted(self.did.items())))
        print("%d rests" % self.rests)
        for name, first in self.first.items():
            print("  %s: the first %s, the most %s" % (name, first, self.most[name]))


def figures_of(pid):
    base = "/proc/%d/" % pid
    with open(base + "status", encoding="ascii") as f:
        status = dict(line.split(":", 1) for line in f)
    return {"memory_mib": int(status["VmRSS"].split()[0]) / 1024, "threads": int(status["Threads"]),
            "descriptors": len(os.listdir(base + "fd"))}


def mixed_load():
    print("seed %d, %.0f s" % (SEED, SECONDS), flush=True)
    d = Daemon(config=CONFIG, env=HEARTBEAT)
    d.models = {"digits": DIGITS, "colour": os.path.join(d.temp, "colour.onnx")}
    tiny_onnx.write(d.models["colour"], [("conv", 8, 3), ("relu",), ("pool",), ("linear", 10)], channels=3, size=20)
    soak = Soak(d)
    try:
        soak.begin()
        soak.rest()
        for count, _ in enumerate(during(SECONDS), 1):
            soak.event()
            soak.alive()
            if count % REST_EVERY == 0:
                soak.rest()
        soak.rest()
        soak.end()
        soak.told()
        equal(d.process, None)
    except BaseException:
        print(soak.log(), file=sys.stderr)
        for door in soak.doors:
            door.kill()
        raise
    finally:
        d.cleanup()


if __name__ == "__main__":
    main([mixed_load, *soak_doors.SKIPPED])
