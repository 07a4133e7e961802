# SPDX-License-Identifier: Apache-2.0
"""Trees of files as known boards have them below /sys and /proc, for docs/boardguides.md. Made from the kernel's device
trees and documents, and from published outputs; not copied from running boards."""
import os

CPU = "sys/devices/system/cpu/"


def put(root, path, value):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write("%s\n" % value)


def numbers(text):
    return [n for part in text.split(",") for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]


def cores(root, text, **files):
    """Files of each core. Underscores stand for slashes where there are two; {n} for the core's number."""
    for n in numbers(text):
        for name, value in files.items():
            put(root, CPU + "cpu%d/" % n + name.replace("__", "/"), str(value).format(n=n))


def cache(root, text, level, shared):
    cores(root, text, **{"cache__index%d__level" % level: level, "cache__index%d__type" % level: "Unified",
                         "cache__index%d__shared_cpu_list" % level: shared})


def policy(root, number, members, governor, least, now, limit, most):
    for name, value in (("related_cpus", " ".join(map(str, numbers(members)))), ("scaling_governor", governor),
                        ("cpuinfo_min_freq", least), ("scaling_min_freq", least), ("scaling_cur_freq", now),
                        ("scaling_max_freq", limit), ("cpuinfo_max_freq", most)):
        put(root, CPU + "cpufreq/policy%d/%s" % (number, name), value)


def zone(root, number, kind, temp, *trips):
    base = "sys/class/thermal/thermal_zone%d/" % number
    put(root, base + "type", kind)
    put(root, base + "temp", temp)
    for i, (name, value) in enumerate(trips):
        put(root, base + "trip_point_%d_type" % i, name)
        put(root, base + "trip_point_%d_temp" % i, value)


def cooling(root, number, kind, state, most):
    for name, value in (("type", kind), ("cur_state", state), ("max_state", most)):
        put(root, "sys/class/thermal/cooling_device%d/%s" % (number, name), value)


def machine(root, text):
    for name in ("present", "online", "possible"):
        put(root, CPU + name, text)
    put(root, "proc/self/status", "Name:\tpiped\nCpus_allowed_list:\t" + text)
    cores(root, text, topology__package_cpus_list=text, topology__core_cpus_list="{n}")


def pi5(root):
    machine(root, "0-3")
    cores(root, "0-3", cpu_capacity=1024, regs__identification__midr_el1="0x00000000414fd0b1")
    cache(root, "0-3", 3, "0-3")
    policy(root, 0, "0-3", "ondemand", 1500000, 2400000, 2400000, 2400000)
    zone(root, 0, "cpu-thermal", 81500, ("critical", 110000), ("active", 50000), ("active", 60000))
    cooling(root, 0, "pwm-fan", 4, 4)


def rk3588(root):
    """Hot: the first pair of big cores is held at 1.608 GHz."""
    machine(root, "0-7")
    cores(root, "0-3", cpu_capacity=530, regs__identification__midr_el1="0x00000000412fd050",
          topology__cluster_cpus_list="0-3")
    cores(root, "4-7", cpu_capacity=1024, regs__identification__midr_el1="0x00000000414fd0b0")
    for pair in ("4-5", "6-7"):
        cores(root, pair, topology__cluster_cpus_list=pair)
    cache(root, "0-7", 3, "0-7")
    policy(root, 0, "0-3", "ondemand", 1008000, 1800000, 1800000, 1800000)
    policy(root, 4, "4-5", "ondemand", 1200000, 1608000, 1608000, 2400000)
    policy(root, 6, "6-7", "ondemand", 1200000, 2400000, 2400000, 2400000)
    for number, name in enumerate(("package", "bigcore0", "bigcore2", "littlecore")):
        zone(root, number, name + "-thermal", 86000 if number == 1 else 71000, ("critical", 115000),
             *([("passive", 85000)] if number in (1, 2) else []))
    for number, cpu in enumerate((0, 4, 6)):
        cooling(root, number, "cpufreq-cpu%d" % cpu, 4 if cpu == 4 else 0, 6)


def orin_nano(root):
    machine(root, "0-5")
    cores(root, "0-5", regs__identification__midr_el1="0x00000000410fd421", cpu_capacity=1024)
    for cluster in ("0-3", "4-5"):
        cores(root, cluster, topology__cluster_cpus_list=cluster)
        cache(root, cluster, 3, cluster)
        policy(root, int(cluster[0]), cluster, "schedutil", 729600, 1510400, 1510400, 1510400)
    zone(root, 0, "cpu-thermal", 52000, ("passive", 99000))


def hybrid(root):
    """Four P cores with two threads, eight E cores in two groups; powersave is intel_pstate's ordinary governor."""
    machine(root, "0-15")
    put(root, "sys/devices/cpu_core/cpus", "0-7")
    put(root, "sys/devices/cpu_atom/cpus", "8-15")
    for n in range(0, 8, 2):
        cores(root, "%d-%d" % (n, n + 1), topology__core_cpus_list="%d-%d" % (n, n + 1))
    for group in ("8-11", "12-15"):
        cores(root, group, topology__cluster_cpus_list=group)
    cache(root, "0-15", 3, "0-15")
    for n in range(16):
        most = 4600000 if n < 8 else 3400000
        policy(root, n, str(n), "powersave", 400000, 3000000, most, most)
    zone(root, 0, "x86_pkg_temp", 62000, ("passive", 0))


BOARDS = {"pi5": pi5, "rk3588": rk3588, "orin-nano": orin_nano, "hybrid": hybrid}
