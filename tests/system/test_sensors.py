#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What status and metrics say of the machine, on trees of files in place of sysfs, procfs and control groups."""
import os
import re
import shutil
import tempfile

from daemon import ROOT, Daemon, check, equal, main
import wait

ZONE = "sys/class/thermal/thermal_zone0/"
POLICY = "sys/devices/system/cpu/cpufreq/policy0/"
RAPL = "sys/class/powercap/intel-rapl:0/"
GROUP = "sys/fs/cgroup/piped.service/"
SENSORS = {"thermal", "cooling", "throttled", "policies", "online", "allowed", "isolated", "psi", "cgroup", "energy",
           "gpio"}
FILES = {
    "sys/devices/system/cpu/present": "0-1", "sys/devices/system/cpu/online": "0-1",
    "sys/devices/system/cpu/isolated": "",
    POLICY + "related_cpus": "0 1", POLICY + "scaling_governor": "schedutil", POLICY + "scaling_cur_freq": "900000",
    POLICY + "scaling_min_freq": "300000", POLICY + "scaling_max_freq": "1800000",
    POLICY + "cpuinfo_max_freq": "1800000",
    ZONE + "type": "cpu-thermal", ZONE + "temp": "41500", ZONE + "trip_point_0_type": "passive",
    ZONE + "trip_point_0_temp": "80000",
    "sys/class/thermal/cooling_device0/type": "cpufreq-cpu0", "sys/class/thermal/cooling_device0/cur_state": "0",
    "sys/class/thermal/cooling_device0/max_state": "6",
    "proc/pressure/cpu": "some avg10=2.50 avg60=0.00 avg300=0.00 total=77",
    "proc/self/cgroup": "0::/piped.service", "sys/fs/cgroup/cgroup.controllers": "cpuset cpu",
    GROUP + "cpu.max": "150000 100000", GROUP + "cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_usec 2500",
    GROUP + "cpuset.cpus.effective": "0-1",
    RAPL + "name": "package-0", RAPL + "energy_uj": "1000000", RAPL + "max_energy_range_uj": "262143328850",
}


class Tree:
    def __init__(self, files):
        self.root = tempfile.mkdtemp(prefix="piped-test-")
        for name, text in files.items():
            self.put(name, text)

    def put(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text + "\n")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.root, ignore_errors=True)


def started(tree, **keys):
    config = {"sensors": dict({"interval_ms": 20}, **keys)}
    return Daemon(config=config, args=["--sysfs-root", tree.root])


def until(d, what, condition):
    """The sensors of the first status for which the condition holds."""
    def sensors():
        return d.status()["sensors"]

    def wanted():
        found = sensors()
        return condition(found) and found
    return wait.until(wanted, what, "last:", sensors)


def everything_is_shown():
    with Tree(FILES) as t, started(t) as d:
        status = d.status()
        s = status["sensors"]
        equal(set(s), SENSORS)
        equal(s["thermal"], [{"zone": 0, "type": "cpu-thermal", "temp_c": 41.5, "past_trip": False}])
        equal(s["cooling"], [{"device": 0, "type": "cpufreq-cpu0", "state": 0, "max_state": 6, "of_cpu": True}])
        equal(s["throttled"], False)
        equal(s["policies"], [{"policy": 0, "cpus": [0, 1], "governor": "schedutil", "freq_khz": 900000,
                               "min_khz": 300000, "limit_khz": 1800000, "max_freq_khz": 1800000, "pressure": 0.0,
                               "by_heat": False}])
        equal((s["online"], s["allowed"], s["isolated"]), ([0, 1], None, []))
        equal(s["psi"], {"cpu_some_avg10": 2.5, "cpu_some_total_us": 77, "memory_some_avg10": None,
                         "memory_some_total_us": None})
        equal(s["cgroup"], {"version": 2, "quota_cpus": 1.5, "nr_periods": 9, "nr_throttled": 4, "throttled_us": 2500,
                            "cpus": [0, 1]})
        equal(s["energy"]["source"], "package-0")
        equal(s["energy"]["joules"], 0.0)
        equal(s["gpio"], None)
        equal([(e["governor"], e["freq_khz"], e["max_freq_khz"]) for e in status["eps"]],
              [("schedutil", 900000, 1800000)])
        equal([c["cpu"] for c in status["cpus"]], [0, 1])
        check(all(c["ep"] == "big" and "core of big" in c["why"] for c in status["cpus"]), status["cpus"])
        text = d.pipectl("status", as_json=False)
        for words in ("heat: cpu-thermal 41.5 C", "2.5 % of the last ten seconds", "quota: 1.50 CPUs",
                      "energy: 0.0 J since the start (package-0)", "core of big"):
            check(words in text, words, text)


def keys_of(value):
    """The keys of an object and of what is in it."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return set(value if isinstance(value, dict) else ()).union(*map(keys_of, inner))


def described(section):
    """The keys that pipectl(1) describes in the section of a command."""
    with open(os.path.join(ROOT, "apps", "pipectl", "pipectl.1.scd"), encoding="utf-8") as f:
        text = f.read().split("\n## %s " % section)[1].split("\n## ")[0]
    return set(re.findall(r"(?<!\w)_(\w+?)_(?!\w)", text))


def keys_are_described():
    """The page is the one description of each; the lint test status-fields compares with it what shows them."""
    with Tree(FILES) as t, started(t) as d:
        d.pipectl("bench", "--frames", "3")
        status, name = d.status(), d.status()["models"][0]["name"]
        for section, answer in (("status", status), ("units", d.call("Units", {"model": name})),
                                ("models", d.call("Models")["models"]), ("history", d.call("History")["events"])):
            keys = keys_of(answer) - {e["name"] for e in status["eps"]}
            check(len(keys) > 10, section, keys)
            equal(sorted(keys - described(section)), [], "keys of %s that pipectl(1) lacks" % section)


def changes_are_followed():
    with Tree(FILES) as t, started(t) as d:
        t.put(ZONE + "temp", "85000")
        until(d, "the trip point", lambda s: s["thermal"][0]["past_trip"] is True)
        t.put(POLICY + "scaling_max_freq", "900000")
        t.put("sys/class/thermal/cooling_device0/cur_state", "3")
        s = until(d, "the limit", lambda s: s["policies"][0]["by_heat"] is True)
        equal((s["throttled"], s["policies"][0]["pressure"], s["policies"][0]["limit_khz"]), (True, 0.5, 900000))
        t.put("sys/class/thermal/cooling_device0/cur_state", "0")
        t.put(POLICY + "scaling_governor", "powersave")
        s = until(d, "the end of throttling", lambda s: s["policies"][0]["governor"] == "powersave" and
                  s["throttled"] is False)
        equal(d.status()["eps"][0]["governor"], "powersave")
        t.put(GROUP + "cpu.max", "max 100000")
        until(d, "no quota", lambda s: s["cgroup"]["quota_cpus"] == "none")
        t.put("sys/devices/system/cpu/online", "0")
        until(d, "a core offline", lambda s: s["online"] == [0])


def energy_of_frames():
    """Figures of ten frames and then of eleven joules."""
    with Tree(FILES) as t, started(t) as d:
        bench = d.pipectl("bench", "--frames", "10")
        equal(bench["answered"], 10)
        t.put(RAPL + "energy_uj", "12000000")
        until(d, "the energy", lambda s: s["energy"]["joules"] == 11.0)
        s = until(d, "the energy of a frame", lambda s: s["energy"]["joules_per_frame"] is not None)
        check(0 < s["energy"]["joules_per_frame"] <= 1.1 + 1e-9, s["energy"])
        text = d.call("Metrics")["text"]
        for line in ('piped_energy_joules_total{source="package-0",counted="1"} 11',
                     'piped_temperature_celsius{zone="0",type="cpu-thermal"} 41.5',
                     'piped_cpu_frequency_hertz{policy="0"} 900000000', "piped_throttled 0",
                     "piped_pressure_cpu_some_ratio 0.025", "piped_cgroup_quota_cpus 1.5"):
            check(line in text, line, text)


def nothing_is_known():
    with Tree({"sys/other": "1"}) as t, started(t) as d:
        s = d.status()["sensors"]
        equal(set(s), SENSORS)
        equal((s["thermal"], s["cooling"], s["policies"]), ([], [], []))
        equal({k: v for k, v in s.items() if k not in ("thermal", "cooling", "policies")},
              {k: None for k in SENSORS - {"thermal", "cooling", "policies"}})
        equal(d.status()["state"], "serving")
        check("piped_throttled" not in d.call("Metrics")["text"])
        d.pipectl("status", as_json=False)


def everything_goes_and_garbage_comes():
    with Tree(FILES) as t, started(t) as d:
        for name in FILES:
            if not name.startswith("sys/devices"):
                t.put(name, "\x1b[2J" + "9" * 5000)
        until(d, "garbage as unknown", lambda s: s["thermal"][0]["temp_c"] is None and s["psi"] is None and
              s["energy"]["sources"][0]["state"] == "gone")
        for folder in ("sys/class", "proc", "sys/fs", "sys/devices/system/cpu/cpufreq"):
            shutil.rmtree(os.path.join(t.root, folder))
        until(d, "nothing", lambda s: s["thermal"] == [] and s["policies"] == [] and s["energy"] is None and
              s["cgroup"] is None)
        equal(d.pipectl("bench", "--frames", "20")["lost"], 0)
        for name, text in FILES.items():
            t.put(name, text)
        until(d, "everything again", lambda s: s["thermal"] and s["policies"] and s["energy"] and s["cgroup"] and
              s["psi"])
        equal(d.status()["state"], "serving")


def switched_off_and_on():
    with Tree(FILES) as t, started(t, interval_ms=0) as d:
        equal(set(d.status()["sensors"].values()), {None})
        equal(d.status()["eps"][0]["governor"], "schedutil")
        d.write_config({"sensors": {"interval_ms": 50}})
        d.pipectl("reload", as_json=False)
        equal(d.status()["sensors"]["thermal"][0]["temp_c"], 41.5)
        d.write_config({"sensors": {"interval_ms": 0}})
        d.pipectl("reload", as_json=False)
        equal(d.status()["sensors"]["thermal"], None)


def cores_are_explained():
    files = dict(FILES, **{"sys/devices/system/cpu/present": "0-5", "sys/devices/system/cpu/online": "0-4",
                           "sys/devices/system/cpu/isolated": "4",
                           "sys/devices/system/cpu/cpu0/topology/core_cpus_list": "0,2",
                           "sys/devices/system/cpu/cpu2/topology/core_cpus_list": "0,2",
                           "proc/self/status": "Name:\tpiped\nCpus_allowed_list:\t0-2"})
    with Tree(files) as t, started(t) as d:
        why = {c["cpu"]: c for c in d.status()["cpus"]}
        check("core of big" in why[0]["why"], why[0])
        check("second thread of the core of CPU 0" in why[2]["why"], why[2])
        equal(why[3]["why"], "outside the CPU set of this process")
        equal(why[4]["why"], "outside the CPU set of this process (isolated by the kernel)")
        equal((why[5]["why"], why[5]["online"], why[5]["used"], why[5]["ep"]), ("offline", False, False, None))
        d.call("SetPlan", {"plan": "0-%d@bigx1" % (d.status()["models"][0]["units"] - 1)})
        why = {c["cpu"]: c for c in d.status()["cpus"]}
        equal([(why[0]["used"], why[0]["why"]), (why[1]["used"], why[1]["why"])],
              [(True, "core of big, in use"), (False, "core of big, left free by the present plans")])


if __name__ == "__main__":
    main([everything_is_shown, keys_are_described, changes_are_followed, energy_of_frames, nothing_is_known,
          everything_goes_and_garbage_comes, switched_off_and_on, cores_are_explained])
