# SPDX-License-Identifier: Apache-2.0
"""A unit of the arm64 machine's systemd: the installed service on two clusters of unequal cores.

The daemon is the installed piped.service, started by its socket, with the configuration that it comes with: execution
places are what it finds in this kernel's own files. tests/nspawn/guest.py, which runs after this, has the cases of the
service itself.
"""
import os
import subprocess

import cases
from cases import (CPU, LIMIT_S, POLICY, Events, check, eps, frames, limits, pipectl, read, stages, status,
                   wait_for, write)

IMAGES = "/guest/heldout.pgm"
IMAGE_BYTES = 75
SHOWN = 100  # of the held-out images
SAMPLE_FRAMES = 12


def run(*command, expect=0):
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          timeout=2 * LIMIT_S)
    check(expect is None or done.returncode == expect, *command, "exit", done.returncode, done.stdout, done.stderr)
    return done.stdout


def show(prop, unit="piped.service"):
    return run("systemctl", "show", "--value", "-p", prop, unit).strip()


class Service(cases.Daemon):
    """piped.service."""

    def __init__(self):
        self.pid = None

    def said(self):
        return run("journalctl", "--no-pager", "-o", "cat", "-u", "piped.service", expect=None)

    def allow(self, cpus):
        run("systemctl", "set-property", "--runtime", "piped.service", "AllowedCPUs=" + cpus)

    def started(self):
        """From here on it is to be this process."""
        self.pid = show("MainPID")

    def check_alive(self):
        check(self.pid is None or show("MainPID") == self.pid, "it was restarted:", self.pid, show("MainPID"))


def set_up():
    os.environ["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    cases.load_modules()
    run("systemd-sysusers")
    run("systemd-tmpfiles", "--create", "/usr/local/lib/tmpfiles.d/piped.conf")
    run("systemctl", "daemon-reload")
    os.mkdir("/tmp/images")
    with open(IMAGES, "rb") as f:
        for i in range(SHOWN):
            with open("/tmp/images/%04d.pgm" % i, "wb") as g:
                g.write(f.read(IMAGE_BYTES))
    with open("/guest/heldout.labels", encoding="utf-8") as f, open("/tmp/labels", "w", encoding="utf-8") as g:
        g.writelines(f.readlines()[:SHOWN])


def the_kernel_knows_two_clusters(daemon):
    """Without this the other cases would show nothing."""
    capacities = [int(read(CPU + "/cpu%d/cpu_capacity" % c)) for c in range(4)]
    check(capacities[0] == capacities[1] == 1024 and capacities[2] == capacities[3] < 512, capacities)
    check([read(POLICY % p + "/related_cpus") for p in (0, 2)] == ["0 1", "2 3"], "policies")
    check(all(read(POLICY % p + "/scaling_driver") == "cpufreq-dt" for p in (0, 2)), "drivers")
    check(limits() == [2000000, 1200000], limits())


def a_client_starts_the_service(daemon):
    run("systemctl", "start", "piped.socket", "piped-control.socket")
    check(show("ActiveState") == "inactive", "the service runs already")
    answer = pipectl("--timeout", str(LIMIT_S), "status")
    check(answer["state"] in ("serving", "tuning"), answer)
    check(show("ActiveState") == "active" and show("SubState") == "running", show("SubState"))
    check(show("StatusText"), "no STATUS= was sent")
    daemon.started()


def execution_places_are_found(daemon):
    found = eps()
    check(set(found) == {"big", "little"}, found)
    check(found["big"]["cpus"] == [0, 1] and found["little"]["cpus"] == [2, 3], found)
    for name, first in (("big", 0), ("little", 2)):
        check(found[name]["capacity"] == int(read(CPU + "/cpu%d/cpu_capacity" % first)), found[name])
        check(found[name]["policy"] == first, found[name])
        check(found[name]["max_freq_khz"] == int(read(POLICY % first + "/cpuinfo_max_freq")), found[name])
        check(found[name]["governor"] == read(POLICY % first + "/scaling_governor"), found[name])
        check("cpu_capacity" in found[name]["why"], found[name])
    check(found["big"]["speed"] > found["little"]["speed"] > 0, found)


def frequencies_are_read(daemon):
    """What each governor of cpufreq-dt makes of each cluster."""
    for governor, limit in (("powersave", "min"), ("performance", "max")):
        for name, first in (("big", 0), ("little", 2)):
            write(POLICY % first + "/scaling_governor", governor)
            khz = int(read(POLICY % first + "/cpuinfo_%s_freq" % limit))
            wait_for("%s at %d kHz" % (name, khz),
                     lambda: (eps()[name]["governor"], eps()[name]["freq_khz"]) == (governor, khz))


def images_are_classified(daemon):
    answer = pipectl("infer", "--expect", "/tmp/labels", "/tmp/images")
    check(answer["accuracy"] >= 0.97, "accuracy", answer["accuracy"])


def shapes(units):
    """Plans over both places: borders, orders, widths, teams that share frames."""
    last, half, third = units - 1, units // 2, units // 3
    return ["0-%d@big" % last,
            "0-%d@little" % last,
            "0-%d@bigx2" % last,
            "0-%d@big|%d-%d@little" % (half - 1, half, last),
            "0-%d@little|%d-%d@big" % (half - 1, half, last),
            "0-%d@bigx2|%d-%d@littlex2" % (half - 1, half, last),
            "0-%d@big*2|%d-%d@little*2" % (half - 1, half, last),
            "0-%d@big*2+little*2" % last,
            "0-%d@bigx2+littlex2" % last,
            "0-%d@bigx2&littlex2" % last,
            "0-%d@big|%d-%d@little*2|%d-%d@big" % (third - 1, third, 2 * third - 1, 2 * third, last)]


def plans_over_both_serve(daemon):
    units = status()["models"][0]["units"]
    check(units >= 3, "too few units:", units)
    cores = {"big": {0, 1}, "little": {2, 3}}
    for plan in shapes(units):
        pipectl("plan", "set", plan)
        check(status()["models"][0]["plan"] == plan, plan, status()["models"][0]["plan"])
        check(all(set(s["cpus"]) <= set().union(*(cores[e] for e in cores if e in str(s["ep"]))) for s in stages()),
              stages())
        result = pipectl("bench", "--frames", str(SAMPLE_FRAMES), "--verify")
        check(result["answered"] == result["sent"] >= SAMPLE_FRAMES, plan, result)
        for key in ("lost", "reordered", "duplicated", "wrong"):
            check(result[key] == 0, plan, key, result)


def plans_change_under_load(daemon):
    with frames():
        for plan in shapes(status()["models"][0]["units"]):
            pipectl("plan", "set", plan)
            answered = status()["models"][0]["frames"]["answered"]
            wait_for("frames of " + plan, lambda: status()["models"][0]["frames"]["answered"] > answered + 2)
        pipectl("plan", "auto")


def integers_serve(daemon):
    """The same network quantised, on kernels for bytes."""
    pipectl("quantize", "--calibrate", "/tmp/images")
    try:
        check(pipectl("models")[0]["integers"] > 0, "no operator is on integers")
        images_are_classified(daemon)
        with frames():
            pipectl("plan", "set", "0-4@little|5-%d@big*2" % (status()["models"][0]["units"] - 1))
    finally:
        pipectl("quantize", "--off")
        pipectl("plan", "auto")


def a_retune_is_done(daemon):
    """A search on live frames of both places."""
    before = Events()
    with frames():
        pipectl("retune")
        event = before.wait("request")
    check(event["outcome"] not in ("failed", "cancelled") and event["lost"] == 0, event)
    check(event["trials"], event)


def a_big_core_goes_and_comes_back(daemon):
    cases.go_and_come_back(daemon, [1])


def only(name, cpus):
    """Is this the only execution place?"""
    return {n: e["cpus"] for n, e in eps().items()} == {name: cpus}


def a_cluster_goes_and_comes_back(daemon):
    """The cores that are left keep their name, little ones too, and those that come back get theirs again."""
    cases.go_and_come_back(daemon, [2, 3], lambda: wait_for("big alone", lambda: only("big", [0, 1])))
    execution_places_are_found(daemon)
    cases.go_and_come_back(daemon, [0, 1], lambda: wait_for("little alone", lambda: only("little", [2, 3])))
    execution_places_are_found(daemon)


def a_users_plan_outlives_the_other_cluster(daemon):
    plan = "0-%d@little*2" % (status()["models"][0]["units"] - 1)
    pipectl("plan", "set", plan)

    def it_serves():
        wait_for("little alone", lambda: only("little", [2, 3]))
        check(status()["models"][0]["plan"] == plan, status()["models"][0])

    cases.go_and_come_back(daemon, [0, 1], it_serves)
    check(status()["models"][0]["plan"] == plan, status()["models"][0])
    pipectl("plan", "auto")


def a_start_without_a_cluster(daemon):
    """Its cores are offline at the start and come later."""
    for core in (0, 1):
        write(CPU + "/cpu%d/online" % core, 0)
    run("systemctl", "restart", "piped.service")
    daemon.started()
    check(only("little", [2, 3]), eps())
    with frames():
        for core in (0, 1):
            write(CPU + "/cpu%d/online" % core, 1)
        wait_for("the big cores", lambda: set(eps()) == {"big", "little"} and eps()["big"]["cpus"] == [0, 1])
    execution_places_are_found(daemon)


def calm():
    cases.calm_cores()
    wait_for("full speed", lambda: limits() == [2000000, 1200000])
    Service().allow("0-3")


CASES = (the_kernel_knows_two_clusters, a_client_starts_the_service, execution_places_are_found, frequencies_are_read,
         images_are_classified, cases.frames_are_answered, plans_over_both_serve, plans_change_under_load, integers_serve,
         a_retune_is_done, cases.nothing_changes_by_itself, cases.a_governor_changes, cases.a_limit_is_lowered,
         cases.a_core_goes_and_comes_back, a_big_core_goes_and_comes_back, a_cluster_goes_and_comes_back,
         a_users_plan_outlives_the_other_cluster, a_start_without_a_cluster, cases.the_cpuset_shrinks)


def main():
    print("-- guest is up after %.1f s" % float(read("/proc/uptime").split()[0]), flush=True)
    set_up()
    cases.run(CASES, Service(), calm)
    run("systemctl", "stop", "piped.service", "piped.socket", "piped-control.socket")


main()
