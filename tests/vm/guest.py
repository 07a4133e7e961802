# SPDX-License-Identifier: Apache-2.0
"""Process 1 of the x86 machine: mounts, starts piped, changes the machine under it, powers off."""
import glob
import json
import os
import signal
import subprocess
import sys
import time
import traceback

import cases
import nodes
from cases import LIMIT_S, Events, check, eps, frames, limits, mount, read, status, wait_for, write
from wait import asked, during

POWER_OFF = 0x4321FEDC
SIM = "/config/gpio-sim/piped"
BUTTON, POWER, LED = 2, 3, 5
DEBOUNCE_MS = 100
BOUNCES = 10  # tries to make edges that are close together
RUNTIME, STATE, CGROUP, LOG = "/run/piped", "/state", "/cgroup/piped", "/tmp/piped.log"
TEMPERATURE_PORT = 0x2FF
COOL_C, HOT_C, TRIP_C = 40, 95, 80
CONFIG = {
    "models": [{"name": "digits", "path": "/guest/digits.onnx"}],
    # Virtual CPUs are of one kind, and frequency alone makes no kinds: the configuration names the places.
    "eps": [{"name": "big", "cpus": "0-1", "speed": 1.0}, {"name": "little", "cpus": "2-3", "speed": 0.6}],
    "planner": {"frames": 4, "measure_ms": 2000, "tune_s": 60},
    "adapt": {"enabled": True},
    "gpio": {"chip": "piped-sim", "button": BUTTON, "power": POWER, "led": LED, "debounce_ms": DEBOUNCE_MS},
}


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
    """A simulated chip of eight lines."""
    if not os.path.isdir(SIM):
        os.mkdir(SIM)
        os.mkdir(SIM + "/bank0")
        write(SIM + "/bank0/num_lines", 8)
        write(SIM + "/bank0/label", "piped-sim")
    write(SIM + "/live", 1)


def unplug():
    write(SIM + "/live", 0)


def line(number, name):
    return "/sys/devices/platform/%s/%s/sim_gpio%d/%s" % (
        read(SIM + "/dev_name"), read(SIM + "/bank0/chip_name"), number, name)


def pull(number, up):
    write(line(number, "pull"), "pull-up" if up else "pull-down")


def lit():
    return read(line(LED, "value")) == "1"


def gpio():
    return status()["sensors"]["gpio"]


class Daemon(cases.Daemon):
    """piped with the configuration above, in a control group of its own."""

    def __init__(self):
        os.makedirs(STATE, exist_ok=True)
        write("/tmp/piped.json", json.dumps(CONFIG))
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
        write(CGROUP + "/cgroup.procs", os.getpid())

    def said(self):
        return read(LOG)

    def allow(self, cpus):
        write(CGROUP + "/cpuset.cpus", cpus)

    def check_alive(self):
        check(self.process.poll() is None, "the daemon ended:", self.process.returncode)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=LIMIT_S)
        return self.process.returncode


def policies_are_read(daemon):
    found = eps()
    check(found["big"]["policy"] == 0 and found["little"]["policy"] == 2, found)
    check(found["big"]["max_freq_khz"] == 2000000 and found["little"]["max_freq_khz"] == 1200000, found)
    check(found["big"]["governor"] == "performance", found)


def a_button_retunes(daemon):
    before = Events()
    presses = gpio()["button"]["presses"]
    with frames():
        pull(BUTTON, True)
        seen = {lit()}
        wait_for("tuning", lambda: status()["state"] == "tuning" or before.of("gpio"))
        # a simulated line can only be read: the kernel announces no change of an output
        asked(lambda: seen.add(lit()) or before.of("gpio"), LIMIT_S, 0.02)
        pull(BUTTON, False)
        event = before.wait("gpio")
    check(event["outcome"] not in ("failed", "cancelled"), event)
    check(seen == {True, False}, "the LED did not blink while the plan was searched:", seen)
    check(gpio()["button"]["presses"] == presses + 1, gpio())
    wait_for("a steady LED", lambda: gpio()["led"] == "on" and lit())


def a_bouncing_contact_is_one_press(daemon):
    """An emulated machine is not always fast enough for edges that are close together: then once more."""
    for _ in range(BOUNCES):
        before, presses = Events(), gpio()["button"]["presses"]
        fast = True
        for up in (True, False) * 5 + (True,):
            start = time.monotonic()
            pull(BUTTON, up)
            fast = fast and time.monotonic() - start < DEBOUNCE_MS / 2000
        before.wait("gpio")
        pull(BUTTON, False)
        wait_for("the release", lambda: not gpio()["button"]["pressed"])
        if fast:
            break
    check(fast, "no edges that were close together in", BOUNCES, "tries")
    check(gpio()["button"]["presses"] == presses + 1, gpio())


def the_led_follows(daemon):
    check(lit() and gpio()["led"] == "on", gpio())
    levels = []
    with frames():
        pull(BUTTON, True)
        wait_for("blinking", lambda: gpio()["led"] == "slow")
        for _ in during(3):
            if gpio()["led"] != "slow":
                break
            levels.append(lit())
        pull(BUTTON, False)
        wait_for("a steady LED", lambda: gpio()["led"] == "on" and lit())
    check(len(set(levels)) == 2 or len(levels) < 5, levels)


def the_power_line_is_told(daemon):
    before = Events()

    def told(what):
        return what in [e["detail"] for e in before.of("gpio")]

    with frames():
        pull(POWER, True)
        wait_for("an event", lambda: told("power line active"))
        check(gpio()["power"] is True, gpio())
        pull(POWER, False)
        wait_for("the end of it", lambda: told("power line inactive") and gpio()["power"] is False)


def a_chip_may_go_and_come_back(daemon):
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


def it_gets_hot(daemon):
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


def calm():
    """The machine as it was at the start, whatever a case left."""
    cases.calm_cores()
    heat(COOL_C)
    wait_for("the machine to cool down", lambda: limits() == [2000000, 1200000])
    if os.path.exists(CGROUP + "/cpuset.cpus"):
        write(CGROUP + "/cpuset.cpus", "0-3")


CASES = (policies_are_read, cases.frames_are_answered, cases.nothing_changes_by_itself, a_button_retunes,
         a_bouncing_contact_is_one_press, the_led_follows, the_power_line_is_told, a_chip_may_go_and_come_back,
         cases.a_governor_changes, cases.a_limit_is_lowered, it_gets_hot, cases.a_core_goes_and_comes_back,
         cases.the_cpuset_shrinks, *nodes.CASES)


def main():
    os.environ.update(PATH="/usr/bin:/bin", HOME="/tmp", PIPED_RUNTIME_DIR=RUNTIME)
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")):
        mount(kind, where)
    print("-- guest is up after %.1f s" % float(read("/proc/uptime").split()[0]))
    cases.load_modules()
    mount("configfs", "/config")
    mount("cgroup2", "/cgroup")
    plug()
    cool_by_frequency()
    calm()
    daemon = Daemon()
    cases.run(CASES, daemon, calm)
    code = daemon.stop()
    if code:
        print("FAIL the daemon ended with %d and said:\n%s\ncases: 0 passed, 1 failed, 0 skipped" % (
            code, daemon.said()))


try:
    main()
except BaseException:
    traceback.print_exc(file=sys.stdout)
sys.stdout.flush()
os.sync()
cases.LIBC.tcdrain(1)  # the serial line is slower than the end
cases.LIBC.reboot(POWER_OFF)
