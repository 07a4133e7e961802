# SPDX-License-Identifier: Apache-2.0
"""Process 1 of the virtual machine: mounts, starts piped, changes the machine under it, powers off.

Every case says at the end whether frames that were sent meanwhile were all answered, once, in order and right. Causes
are read from the daemon's history. Waiting is for a state, with a generous limit: the machine is emulated.
"""
import contextlib
import ctypes
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_FINIT_MODULE = 313
POWER_OFF = 0x4321FEDC
LIMIT_S = 60
CPU = "/sys/devices/system/cpu"
POLICY = CPU + "/cpufreq/policy%d"
SIM = "/config/gpio-sim/piped"
BUTTON, POWER, LED = 2, 3, 5
DEBOUNCE_MS = 100
RUNTIME, STATE, CGROUP, LOG = "/run/piped", "/state", "/cgroup/piped", "/tmp/piped.log"
TEMPERATURE_PORT = 0x2FF
COOL_C, HOT_C, TRIP_C = 40, 95, 80
WATCHED = 100  # windows, of 100 ms and more
CONFIG = {
    "models": [{"name": "digits", "path": "/guest/digits.onnx"}],
    # Virtual CPUs are of one kind, and frequency alone makes no kinds: the configuration names the places.
    "eps": [{"name": "big", "cpus": "0-1", "speed": 1.0}, {"name": "little", "cpus": "2-3", "speed": 0.6}],
    "planner": {"frames": 4, "measure_ms": 2000, "tune_s": 60},
    "adapt": {"enabled": True},
    "gpio": {"chip": "piped-sim", "button": BUTTON, "power": POWER, "led": LED, "debounce_ms": DEBOUNCE_MS},
}


class Failure(AssertionError):
    pass


class Skip(Exception):
    pass


def check(condition, *text):
    if not condition:
        raise Failure(" ".join(str(t) for t in text) or "check failed")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read().strip()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(str(text))


def wait_for(what, condition, limit_s=LIMIT_S):
    """Return: what the condition returned."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, "waited in vain for", what)
        time.sleep(0.05)


def mount(kind, where):
    os.makedirs(where, exist_ok=True)
    if LIBC.mount(kind.encode(), where.encode(), kind.encode(), 0, None):
        print("-- %s cannot be mounted: %s" % (kind, os.strerror(ctypes.get_errno())))


def load_modules():
    for path in sorted(glob.glob("/modules/*")):
        with open(path, "rb") as f:
            if LIBC.syscall(SYS_FINIT_MODULE, f.fileno(), b"", 0):
                print("-- module %s: %s" % (os.path.basename(path), os.strerror(ctypes.get_errno())))


def cool_by_frequency():
    """Lets heat lower frequencies: the kernel asks each CPU how far it can go when the processor driver takes it, which
    was before acpi-cpufreq was there, and does not ask again."""
    for cpu in sorted(glob.glob("/sys/bus/cpu/drivers/processor/cpu*")):
        for verb in ("unbind", "bind"):
            write("/sys/bus/cpu/drivers/processor/" + verb, os.path.basename(cpu))


def heat(degrees):
    with open("/dev/port", "r+b", buffering=0) as f:
        f.seek(TEMPERATURE_PORT)
        f.write(bytes((degrees,)))


def plug():
    """A simulated chip of eight lines. Return: is there gpio-sim in this kernel."""
    if not os.path.isdir("/config/gpio-sim"):
        return False
    if not os.path.isdir(SIM):
        os.mkdir(SIM)
        os.mkdir(SIM + "/bank0")
        write(SIM + "/bank0/num_lines", 8)
        write(SIM + "/bank0/label", "piped-sim")
    write(SIM + "/live", 1)
    return True


def unplug():
    write(SIM + "/live", 0)


def line(number, name):
    return "/sys/devices/platform/%s/%s/sim_gpio%d/%s" % (
        read(SIM + "/dev_name"), read(SIM + "/bank0/chip_name"), number, name)


def pull(number, up):
    write(line(number, "pull"), "pull-up" if up else "pull-down")


def lit():
    return read(line(LED, "value")) == "1"


def pipectl(*arguments, expect=0):
    done = subprocess.run(["pipectl", "--json", *arguments], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=2 * LIMIT_S)
    check(expect is None or done.returncode == expect, "pipectl", *arguments, "exit", done.returncode, done.stdout,
          done.stderr)
    return json.loads(done.stdout) if done.stdout.strip() else None


def status():
    return pipectl("status", expect=None)


def gpio():
    return status()["sensors"]["gpio"]


class Daemon:
    """piped with the configuration above, in a control group of its own."""

    def __init__(self):
        os.makedirs(STATE, exist_ok=True)
        write("/tmp/piped.json", json.dumps(CONFIG))
        with contextlib.suppress(OSError):
            write("/cgroup/cgroup.subtree_control", "+cpuset +cpu")
            os.makedirs(CGROUP, exist_ok=True)
        self.log = open(LOG, "wb")
        self.process = subprocess.Popen(["piped", "--config", "/tmp/piped.json", "--runtime-dir", RUNTIME,
                                         "--state-dir", STATE], stderr=self.log, preexec_fn=self.enter)
        wait_for("the daemon", lambda: self.process.poll() is not None or
                 os.path.exists(RUNTIME + "/control.sock"))
        wait_for("an answer", lambda: subprocess.run(["pipectl", "status"], capture_output=True,
                                                     check=False).returncode in (0, 4))

    @staticmethod
    def enter():
        with contextlib.suppress(OSError):
            write(CGROUP + "/cgroup.procs", os.getpid())

    def said(self):
        return read(LOG)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=LIMIT_S)
        return self.process.returncode


class Events:
    """What the history gains from now on."""

    def __init__(self):
        self.last = max((e["id"] for e in pipectl("history")), default=0)

    def of(self, cause):
        return [e for e in pipectl("history") if e["id"] > self.last and e["cause"] == cause]

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

def eps():
    return {e["name"]: e for e in status()["eps"]}


def policies_are_read():
    found = eps()
    check(found["big"]["policy"] == 0 and found["little"]["policy"] == 2, found)
    check(found["big"]["max_freq_khz"] == 2000000 and found["little"]["max_freq_khz"] == 1200000, found)
    check(found["big"]["governor"] == "performance", found)


def frames_are_answered():
    with frames():
        pass


def a_button_retunes():
    before = Events()
    presses = gpio()["button"]["presses"]
    with frames():
        pull(BUTTON, True)
        seen = {lit()}
        wait_for("tuning", lambda: status()["state"] == "tuning" or before.of("gpio"))
        end = time.monotonic() + LIMIT_S
        while not before.of("gpio") and time.monotonic() < end:
            seen.add(lit())
            time.sleep(0.02)
        pull(BUTTON, False)
        event = before.wait("gpio")
    check(event["outcome"] not in ("failed", "cancelled"), event)
    check(seen == {True, False}, "the LED did not blink while the plan was searched:", seen)
    check(gpio()["button"]["presses"] == presses + 1, gpio())
    wait_for("a steady LED", lambda: gpio()["led"] == "on" and lit())


def a_bouncing_contact_is_one_press():
    before, presses = Events(), gpio()["button"]["presses"]
    fast = True
    for up in (True, False) * 5 + (True,):
        start = time.monotonic()
        pull(BUTTON, up)
        fast = fast and time.monotonic() - start < DEBOUNCE_MS / 2000
    before.wait("gpio")
    pull(BUTTON, False)
    wait_for("the release", lambda: not gpio()["button"]["pressed"])
    if not fast:
        raise Skip("this machine is too slow for edges that are close together")
    check(gpio()["button"]["presses"] == presses + 1, gpio())


def the_led_follows():
    check(lit() and gpio()["led"] == "on", gpio())
    levels = []
    with frames():
        pull(BUTTON, True)
        wait_for("blinking", lambda: gpio()["led"] == "slow")
        end = time.monotonic() + 3
        while gpio()["led"] == "slow" and time.monotonic() < end:
            levels.append(lit())
        pull(BUTTON, False)
        wait_for("a steady LED", lambda: gpio()["led"] == "on" and lit())
    check(len(set(levels)) == 2 or len(levels) < 5, levels)


def the_power_line_is_told():
    before = Events()

    def told(what):
        return what in [e["detail"] for e in before.of("gpio")]

    with frames():
        pull(POWER, True)
        wait_for("an event", lambda: told("power line active"))
        check(gpio()["power"] is True, gpio())
        pull(POWER, False)
        wait_for("the end of it", lambda: told("power line inactive") and gpio()["power"] is False)


def a_chip_may_go_and_come_back():
    opened = gpio()["opened"]
    with frames():
        unplug()
        wait_for("the daemon to notice", lambda: gpio()["state"] == "unknown")
        check(gpio()["power"] is None and gpio()["led"] is None, gpio())
        plug()
        wait_for("the chip", lambda: gpio()["state"] == "open")
    check(gpio()["opened"] == opened + 1, gpio())
    wait_for("the LED", lit)
    before = Events()
    pull(BUTTON, True)
    before.wait("gpio")
    pull(BUTTON, False)


def a_governor_changes():
    before = Events()
    with frames():
        write(POLICY % 2 + "/scaling_governor", "powersave")
        wait_for("the status to say so", lambda: eps()["little"]["governor"] == "powersave")
        event = before.wait("governor")
        write(POLICY % 2 + "/scaling_governor", "performance")
        wait_for("the way back", lambda: len(before.of("governor")) >= 2)
    check(event["lost"] == 0, event)


def a_limit_is_lowered():
    before = Events()
    with frames():
        write(POLICY % 0 + "/scaling_max_freq", 1000000)
        event = before.wait("frequency")
        write(POLICY % 0 + "/scaling_max_freq", 2000000)
        wait_for("the way back", lambda: len(before.of("frequency")) >= 2)
    check(event["lost"] == 0, event)


def limits():
    return [int(read(POLICY % first + "/scaling_max_freq")) for first in (0, 2)]


def it_gets_hot():
    zone = "/sys/class/thermal/thermal_zone0"
    before = Events()
    with frames():
        heat(HOT_C)
        wait_for("the zone to be hot", lambda: int(read(zone + "/temp")) >= TRIP_C * 1000)
        wait_for("the kernel to lower the limits", lambda: limits() == [1000000, 400000])
        event = before.wait("thermal")
        heat(COOL_C)
        wait_for("the zone to be cool", lambda: int(read(zone + "/temp")) < TRIP_C * 1000)
        wait_for("the limits to be lifted", lambda: limits() == [2000000, 1200000])
        wait_for("the way back", lambda: len(before.of("thermal")) >= 2)
    check(event["lost"] == 0, event)


def a_core_goes_and_comes_back():
    before = Events()
    with frames():
        write(CPU + "/cpu3/online", 0)
        wait_for("a line in the log", lambda: "hotplug: core 3 went" in read(LOG))
        event = before.wait("hotplug")
        check(all(3 not in s["cpus"] for s in status()["models"][0]["stages"]), status()["models"][0]["stages"])
        write(CPU + "/cpu3/online", 1)
        wait_for("the way back", lambda: len(before.of("hotplug")) >= 2)
    check(event["lost"] == 0, event)


def the_cpuset_shrinks():
    """What AllowedCPUs= of a unit writes."""
    check(os.path.exists(CGROUP + "/cpuset.cpus"), "no cpuset controller here")
    before = Events()
    with frames():
        write(CGROUP + "/cpuset.cpus", "0,2")
        wait_for("a line in the log", lambda: "cpuset: cores 1,3 went" in read(LOG))
        event = before.wait("cpuset")
        used = {cpu for s in status()["models"][0]["stages"] for cpu in s["cpus"]}
        check(used <= {0, 2}, used)
        write(CGROUP + "/cpuset.cpus", "0-3")
        wait_for("the way back", lambda: len(before.of("cpuset")) >= 2)
    check(event["lost"] == 0, event)


def windows():
    return status()["models"][0]["adapt"].get("windows", 0)


def nothing_changes_by_itself():
    """On an emulated machine speeds do vary, by half and more: code is slow while it is translated, and others take time
    from the cores. A plan may be tried for that, but not one after the other, and none twice."""
    before = Events()
    with frames():
        first = windows()
        wait_for("windows that were watched", lambda: windows() >= first + WATCHED)
    events = [e for e in pipectl("history") if e["id"] > before.last]
    check(all(e["cause"] in ("contention", "throughput") for e in events), events)
    changes = [e["plan_after"] for e in events if e["outcome"] == "switched"]
    check(len([e for e in events if e["outcome"] != "kept"]) <= 2 and len(set(changes)) == len(changes), events)
    check(len(events) <= 8, "noise fills the history:", events)


GPIO_CASES = (a_button_retunes, a_bouncing_contact_is_one_press, the_led_follows, the_power_line_is_told,
              a_chip_may_go_and_come_back)
CASES = (policies_are_read, frames_are_answered, nothing_changes_by_itself, *GPIO_CASES, a_governor_changes,
         a_limit_is_lowered, it_gets_hot, a_core_goes_and_comes_back, the_cpuset_shrinks)


def calm():
    """The machine as it was at the start, whatever a case left."""
    for path in glob.glob(CPU + "/cpu[1-9]*/online"):
        if read(path) == "0":
            write(path, 1)
    for policy in glob.glob(CPU + "/cpufreq/policy*"):
        write(policy + "/scaling_governor", "performance")
        write(policy + "/scaling_max_freq", read(policy + "/cpuinfo_max_freq"))
    heat(COOL_C)
    wait_for("the machine to cool down", lambda: limits() == [2000000, 1200000])
    if os.path.exists(CGROUP + "/cpuset.cpus"):
        write(CGROUP + "/cpuset.cpus", "0-3")


def run_case(case, daemon, has_gpio):
    """Return: "ok", "SKIP" or "FAIL", and why."""
    if case in GPIO_CASES and not has_gpio:
        return "SKIP", "no gpio-sim"
    try:
        case()
        check(daemon.process.poll() is None, "the daemon ended:", daemon.process.returncode)
        return "ok", ""
    except Skip as e:
        return "SKIP", str(e)
    except Exception as e:  # each case reports on its own
        traceback.print_exc(file=sys.stdout)
        return "FAIL", str(e)


def wanted():
    found = re.search(r"piped\.cases=(\S+)", read("/proc/cmdline"))
    names = found.group(1).split(",") if found else []
    return [c for c in CASES if not names or c.__name__ in names]


def main():
    os.environ.update(PATH="/usr/bin:/bin", HOME="/tmp", PIPED_RUNTIME_DIR=RUNTIME)
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")):
        mount(kind, where)
    print("-- guest is up after %.1f s" % float(read("/proc/uptime").split()[0]))
    load_modules()
    mount("configfs", "/config")
    mount("cgroup2", "/cgroup")
    has_gpio = plug()
    cool_by_frequency()
    counts = {"ok": 0, "FAIL": 0, "SKIP": 0}
    with contextlib.suppress(OSError):
        calm()
    daemon = Daemon()
    for case in wanted():
        start = time.monotonic()
        result, why = run_case(case, daemon, has_gpio)
        counts[result] += 1
        print("%s %s%s%s" % (result, case.__name__, ": " + why if why else "",
                             " (%.1f s)" % (time.monotonic() - start) if result != "SKIP" else ""))
        calm()
    code = daemon.stop()
    if code or counts["FAIL"]:
        print("-- the daemon ended with %d and said:\n%s" % (code, daemon.said()))
        counts["FAIL"] += 1 if code else 0
    print("cases: %d passed, %d failed, %d skipped" % (counts["ok"], counts["FAIL"], counts["SKIP"]))


try:
    main()
except BaseException:
    traceback.print_exc(file=sys.stdout)
sys.stdout.flush()
os.sync()
time.sleep(0.2)  # the serial line
LIBC.reboot(POWER_OFF)
