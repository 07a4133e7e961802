#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the daemon learns of a model, the plans it makes of that, what it keeps for the next start and how it explains.

usage: test_planner.py [CASE]...
"""
import json
import os
import re
import shutil
import subprocess
import tempfile

import kept_files
import pyclient
from adapting import NETWORK, Meter, Tree
from daemon import BUILD, DIGITS, HEARTBEAT, Daemon, LIMIT_S, VarlinkError, check, equal, main, run_piped

EX_CONFIG = 78
PIPESIM = os.path.join(BUILD, "tuner", "pipesim")
SOURCES = {"measured", "saved", "predicted", "unknown"}
TWO_KINDS = [{"name": "fast", "cpus": "0", "speed": 1.0, "watts": 2.0},
             {"name": "slow", "cpus": "1", "speed": 0.5, "watts": 0.5}]
# cores that this machine need not have, for many_cores(): teams that cannot be pinned run all the same
MANY_CORES = [{"name": "big", "cpus": "0-7"}, {"name": "little", "cpus": "8-23", "speed": 0.4}]


def many_cores(folder):
    """Return: the root of files that tell of 24 cores."""
    for path, text in (("sys/devices/system/cpu/present", "0-23"), ("sys/devices/system/cpu/online", "0-23"),
                       ("proc/self/status", "Cpus_allowed_list:\t0-23")):
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text + "\n")
    return folder


def serve(d, frames=64, model=""):
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, 1, model, inline=True)
        sent = got = 0
        while got < frames:
            while sent < frames and sent - got < s.credits:
                s.submit(b"\0" * s.input_bytes)
                sent += 1
            equal(s.result().status, "ok")
            got += 1


def stages_of(plan):
    """[(first, last, [(ep, width, count)])]"""
    stages = []
    for part in plan.split("|"):
        units, teams = part.split("@")
        first, last = (int(u) for u in units.split("-"))
        groups = []
        for team in teams.split("+"):
            eps, _, count = team.partition("*")
            for ep, width in (re.fullmatch(r"([A-Za-z_]\w*?)(?:x(\d+))?", e).groups() for e in eps.split("&")):
                groups.append((ep, int(width or 1), int(count or 1)))
        stages.append((first, last, groups))
    return stages


def cores_of(plan):
    used = {}
    for _, _, groups in stages_of(plan):
        for ep, width, count in groups:
            used[ep] = used.get(ep, 0) + width * count
    return used


def costs(d, model=None):
    """The recorded table, checked: every row is there, complete, positive, and of a known source."""
    p = d.call("Costs", {"model": model} if model else {})["problem"]
    units = len(p["units"])
    equal(p["units"][0]["in_bytes"], 0)
    check(all(u["weight"] > 0 and len(u["gemm"]) == 3 and u["name"] for u in p["units"]), p["units"])
    equal(sorted(p["costs"]), sorted(k["name"] for k in p["kinds"]))
    equal(sorted(p["sources"]), sorted(p["costs"]))
    for kind in p["kinds"]:
        widths = [str(w + 1) for w in range(kind["cores"])]
        for table in (p["costs"], p["sources"]):
            equal(sorted(table[kind["name"]]), sorted(widths))
            check(all(len(row) == units for row in table[kind["name"]].values()))
        check(all(ns > 0 for row in p["costs"][kind["name"]].values() for ns in row), p["costs"])
        check(all(set(row) <= SOURCES for row in p["sources"][kind["name"]].values()))
        check(kind["speed"] > 0 and kind["bandwidth"] > 0 and kind["watts"] > 0, kind)
    return p


def sources(p):
    return {s for kind in p["sources"].values() for row in kind.values() for s in row}


def starts_with_an_exact_plan_over_all_cores():
    with Daemon() as d:
        got, status = d.call("GetPlan"), d.status()
        equal(got["algorithm"], "exact")
        equal(cores_of(got["plan"]), {e["name"]: len(e["cpus"]) for e in status["eps"]})
        equal(got["warnings"], [])
        equal(sources(costs(d)), {"predicted"})
        check(all(s["expected_ms"] is None for s in status["models"][0]["stages"]), "weights predict no time")


def costs_fill_while_serving():
    with Daemon(config={"eps": TWO_KINDS}) as d:
        units = d.status()["models"][0]["units"]
        half = units // 2
        d.call("SetPlan", {"plan": "0-%d@fast|%d-%d@slow" % (half - 1, half, units - 1)})
        serve(d)
        p = costs(d)
        equal(p["sources"]["fast"]["1"], ["measured"] * half + ["predicted"] * (units - half))
        equal(p["sources"]["slow"]["1"], ["predicted"] * half + ["measured"] * (units - half))
        d.call("SetPlan", {"plan": "0-%d@slow|%d-%d@fast" % (half - 1, half, units - 1)})
        serve(d)
        p = costs(d)
        # where a core was disturbed, what it took before counts as saved
        check("measured" in sources(p) <= {"measured", "saved"}, sources(p))
        # the two kinds are cores of the same make: what one unit costs there is of one order of magnitude
        total = {kind: sum(p["costs"][kind]["1"]) for kind in ("fast", "slow")}
        check(0.1 < total["fast"] / total["slow"] < 10, total)
        equal([k["watts"] for k in p["kinds"]], [2.0, 0.5])
        check(all(u["measured_ms"]["fast"] > 0 for u in d.call("Units")["units"]))


def guesses_go_with_what_was_measured():
    """The weight of a unit tells no time: a kind that never ran is taken for one of its speed, everywhere."""
    with Daemon(config={"eps": TWO_KINDS}) as d:
        units = d.status()["models"][0]["units"]
        d.call("SetPlan", {"plan": "0-%d@fast" % (units - 1)})
        serve(d)
        p = costs(d)
        equal(set(p["sources"]["fast"]["1"]), {"measured"})
        equal(set(p["sources"]["slow"]["1"]), {"predicted"})
        fast, slow = (sum(p["costs"][kind]["1"]) for kind in ("fast", "slow"))
        check(1 < slow / fast < 4, fast, slow)
        alone = 1e9 / fast
        check(d.call("PlanExplain")["explanation"]["bound_fps"] > 1.15 * alone, alone)
        check(max(f["fps"] for f in d.call("PlanFront")["front"]) > 1.05 / (1e-9 * fast + 1e-9 * p["handoff_ns"]))


def pipesim_reads_what_was_recorded():
    """The plan that pipesim finds for the recorded table is the daemon's own."""
    if not os.path.exists(PIPESIM):
        return "pipesim was not built"
    temp = tempfile.mkdtemp(prefix="piped-test-")
    with Daemon(config={"eps": TWO_KINDS}, state_dir=temp) as d:
        serve(d)
        path = os.path.join(temp, "problem.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(costs(d), f)
        r = subprocess.run([PIPESIM, "plan", "--problem", path, "--json"], capture_output=True, text=True, check=False,
                           timeout=LIMIT_S)
        equal(r.returncode, 0, r.stderr)
        equal(json.loads(r.stdout)["plan"], d.call("AutoPlan")["plan"])
    shutil.rmtree(temp)
    return None


def expectations_come_from_the_table():
    with Daemon() as d:
        serve(d)
        d.call("AutoPlan")
        plan = d.call("GetPlan")["plan"]
        if all(width == 1 for _, _, groups in stages_of(plan) for _, width, _ in groups):
            check(all(s["expected_ms"] > 0 for s in d.status()["models"][0]["stages"]), d.status()["models"][0])


def table_and_plan_are_kept_for_the_next_start():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    with Daemon(state_dir=temp) as d:
        plan = d.call("GetPlan")["plan"]
        serve(d)
        before = costs(d)
    with Daemon(state_dir=temp) as d:
        got = d.call("GetPlan")
        equal((got["plan"], got["algorithm"]), (plan, "saved"))
        after = costs(d)
        equal(json.loads(json.dumps(after["sources"]).replace("saved", "measured")), before["sources"])
        check("saved" in sources(after))
        for kind, widths in before["sources"].items():
            for width, row in widths.items():
                for u, source in enumerate(row):
                    was, now = before["costs"][kind][width][u], after["costs"][kind][width][u]
                    check(source != "measured" or abs(was - now) < 0.3 * was, kind, width, u, was, now)
        check(abs(before["handoff_ns"] - after["handoff_ns"]) <= 0.5 * before["handoff_ns"] + 1, before["handoff_ns"])
        d.call("SetPlan", {"plan": "0-%d@%s" % (len(after["units"]) - 1, after["kinds"][0]["name"])})
    with Daemon(state_dir=temp) as d:
        equal(d.call("GetPlan")["algorithm"], "manual", "what a user set is not taken back by a restart")
        serve(d)
        equal(d.call("AutoPlan")["plan"], d.call("GetPlan")["plan"])
        equal(d.call("GetPlan")["algorithm"], "exact")
    one = "0-%d@%s" % (len(after["units"]) - 1, after["kinds"][0]["name"])
    with Daemon(state_dir=temp, models={}, config={"models": [{"name": "digits", "path": DIGITS, "plan": one}]}) as d:
        equal(d.call("GetPlan"), {"plan": one, "algorithm": "config", "epoch": 1, "warnings": [], "route": None})
        check("saved" in sources(costs(d)), "a configured plan still profits from the table")
        serve(d)
    with Daemon(state_dir=temp) as d:
        equal(d.call("GetPlan")["algorithm"], "exact", "a configured plan goes with the configuration")
    shutil.rmtree(temp)


def states_are_kept_by_places_and_bounded():
    temp = tempfile.mkdtemp(prefix="piped-test-")

    def started(name):
        d = Daemon(state_dir=temp, config={"eps": [{"name": name, "cpus": "0-1"}]})
        with d:
            got = d.call("GetPlan")["algorithm"]
            d.call("AutoPlan")
        return got

    for i in range(18):
        equal(started("place%d" % i), "exact", "a state of other places was used")
    files = os.listdir(temp)
    equal(len([f for f in files if f.startswith("model-")]), 1, files)
    kept = kept_files.read(os.path.join(temp, [f for f in files if f.startswith("model-")][0]))
    equal((kept["version"], len(kept["states"])), (3, 16))
    equal([s["eps"].split(":")[0] for s in kept["states"]], ["place%d" % i for i in range(17, 1, -1)])
    equal(started("place2"), "saved", "the oldest that is left")
    equal(started("place0"), "exact", "the oldest was not dropped")
    shutil.rmtree(temp)


def governors_tell_states_apart():
    """The same cores under another governor are another machine."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    tree = os.path.join(temp, "sys", "devices", "system", "cpu")
    state = os.path.join(temp, "state")
    files = {"possible": "0-1", "online": "0-1", "present": "0-1"}
    for cpu in (0, 1):
        base = "cpu%d/" % cpu
        files.update({base + "online": "1", base + "topology/core_id": str(cpu),
                      base + "topology/physical_package_id": "0",
                      base + "topology/thread_siblings_list": str(cpu)})
        os.makedirs(os.path.join(tree, "cpu%d" % cpu))
        os.symlink("../cpufreq/policy0", os.path.join(tree, "cpu%d" % cpu, "cpufreq"))
    files.update({"cpufreq/policy0/scaling_governor": "performance", "cpufreq/policy0/scaling_cur_freq": "1800000",
                  "cpufreq/policy0/cpuinfo_max_freq": "1800000", "cpufreq/policy0/scaling_max_freq": "1800000",
                  "cpufreq/policy0/cpuinfo_min_freq": "600000", "cpufreq/policy0/related_cpus": "0 1",
                  "cpufreq/policy0/affected_cpus": "0 1"})
    for name, text in files.items():
        path = os.path.join(tree, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text + "\n")

    def started(governor):
        with open(os.path.join(tree, "cpufreq/policy0/scaling_governor"), "w", encoding="utf-8") as f:
            f.write(governor + "\n")
        with Daemon(state_dir=state, args=["--sysfs-root", temp]) as d:
            equal([e["governor"] for e in d.status()["eps"]], [governor])
            got = d.call("GetPlan")["algorithm"]
            d.call("AutoPlan")
        return got

    equal([started(g) for g in ("performance", "powersave", "performance", "powersave")],
          ["exact", "exact", "saved", "saved"])
    shutil.rmtree(temp)


def hostile_states_are_ignored():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    with Daemon(state_dir=temp) as d:
        serve(d)
        plan = d.call("GetPlan")["plan"]
        units = d.status()["models"][0]["units"]
    path = os.path.join(temp, [f for f in os.listdir(temp) if f.startswith("model-")][0])
    good = kept_files.read(path)
    kind = list(good["states"][0]["costs"])[0]

    def changed(**keys):
        return dict(good, states=[dict(good["states"][0], **keys)])

    def row(cells):
        return changed(costs={kind: {"1": cells}})

    cell = [1000.0, 0.1]
    whole = [b"", b"{", b"[]", b"null", b"3", b"\0\0\0", b"{\"version\": 3}", b"{\"version\": 3, \"states\": {}}",
             dict(good, version=1), dict(good, version="3"), b"[" * 100000, kept_files.seal(good)[:-20]]
    parts = [changed(plan="0-9999@nowhere"), changed(plan=3), changed(algorithm=None), changed(eps=[]),
             changed(governors={}), dict(good, states=[3, None, [], "x"]), dict(good, states=[])]
    tables = [row([]), row([cell] * (units - 1)), row([cell] * (units + 1)), row([[-1, 0]] * units),
              row([[0, 0]] * units), row([[1e300, 0]] * units), row([[1e3, -1]] * units), row([["1", "2"]] * units),
              row([[]] * units), row([None] * units), row({}), row("x"), changed(costs=[]), changed(costs={kind: []}),
              changed(handoff_ns=-1), changed(handoff_ns="x"), changed(handoff_ns=1e300),
              changed(handoff_ns_per_byte=-5)]
    for text in whole + parts + tables:
        kept_files.write(path, text)
        with Daemon(state_dir=temp) as d:
            got = d.call("GetPlan")
            p = costs(d)
            equal(got["algorithm"], "saved" if text in tables else "exact", str(text)[:200])
            equal(got["plan"] if text in tables else plan, plan)
            told = path + " is damaged" in d.log() or "another version than 3" in d.log()
            check(told == (text in whole), str(text)[:200], d.log())
            check(0 <= p["handoff_ns"] < 1e9 and 0 <= p["handoff_ns_per_byte"] < 1e9, str(text)[:200])
            if text in tables[:13]:
                equal(sources(p), {"predicted"}, str(text)[:200])
    os.unlink(path)
    os.mkdir(path)
    with Daemon(state_dir=temp, env=HEARTBEAT) as d:
        equal(d.call("GetPlan")["algorithm"], "exact")
        check("not a regular file; not used" in d.log(), d.log())
        d.call("AutoPlan")
        check(d.wait_until(lambda: "cannot keep" in d.log()), d.log())
    os.rmdir(path)
    os.mkfifo(path)
    with Daemon(state_dir=temp) as d:
        equal(d.call("GetPlan")["algorithm"], "exact")
    check(not os.path.exists(path), "a FIFO was not set aside")
    old = os.path.join(temp, os.path.basename(path).replace("model-", "plan-").replace(".v3", ""))
    with open(old, "w", encoding="utf-8") as f:
        f.write("{\"version\": 1}")
    with Daemon(state_dir=temp) as d:
        equal(d.call("GetPlan")["algorithm"], "exact")
        check("not used" not in d.log(), "a file of the version before is no cause for alarm\n" + d.log())
    shutil.rmtree(temp)


def wide_teams_are_dearer_where_tasks_wait():
    """A team of two is the best one for latency, but not where its cores are hardly ever there at once."""
    with tempfile.TemporaryDirectory() as folder:
        t, pressure = Tree(folder), "some avg10=%.2f avg60=0.00 avg300=0.00 total=1000"
        t.put("proc/pressure/cpu", pressure % 0)
        config = {"planner": {"objective": "latency"}, "sensors": {"interval_ms": 100}}
        with Daemon({"m": NETWORK}, config=config, env=HEARTBEAT, args=["--sysfs-root", t.root]) as d:
            for waited, wide in ((0, True), (80, False), (0, True)):
                t.put("proc/pressure/cpu", pressure % waited)
                check(d.wait_until(lambda w=waited: d.status()["sensors"]["psi"]["cpu_some_avg10"] == w), waited)
                equal("x2" in d.call("AutoPlan")["plan"], wide)


def refused(d, error, method, parameters=None):
    try:
        d.call(method, parameters)
    except VarlinkError as e:
        equal(e.error.split(".")[-1], error, method)
        return e.parameters
    raise AssertionError("%s was not refused" % method)


def the_front_is_one():
    with Daemon(config={"eps": TWO_KINDS}) as d:
        serve(d)
        front = d.call("PlanFront")["front"]
        check(1 <= len(front) <= 16, front)
        for a, b in zip(front, front[1:]):
            check(a["bottleneck_ms"] < b["bottleneck_ms"] and a["latency_ms"] > b["latency_ms"], a, b)
        for f in front:
            check(abs(f["fps"] * f["bottleneck_ms"] - 1000) < 1e-6 * 1000, f)
            check(f["latency_ms"] >= f["bottleneck_ms"] * 0.999 and f["energy_mj"] > 0, f)
            check(all(n <= 1 for n in cores_of(f["plan"]).values()), f)
            d.call("SetPlan", {"plan": f["plan"]})
        equal(len(d.call("PlanFront", {"max": 1})["front"]), 1)
        equal(d.call("PlanFront", {"max": 1, "model": "digits"})["front"][0]["plan"], front[0]["plan"])
        for bad in (0, -1, 257, 2**40):
            equal(refused(d, "InvalidParameter", "PlanFront", {"max": bad})["parameter"], "max")
        refused(d, "NotFound", "PlanFront", {"model": "x"})
        refused(d, "NotFound", "Costs", {"model": "x"})
        refused(d, "NotFound", "PlanExplain", {"model": "x"})
    with Daemon() as d:
        check(all("energy_mj" not in f for f in d.call("PlanFront")["front"]), "watts that nobody named")


def explanations_are_consistent():
    with Daemon() as d:
        units = d.status()["models"][0]["units"]
        cores = {e["name"]: len(e["cpus"]) for e in d.status()["eps"]}
        ep = list(cores)[0]
        e = d.call("PlanExplain")["explanation"]  # before the first frame
        equal((e["plan"], e["algorithm"], e["objective"]), (d.call("GetPlan")["plan"], "exact", "throughput"))
        equal([e["measured"]["fps"], e["predicted"]["fps"]], [None, None])
        serve(d, 200)
        d.call("SetPlan", {"plan": "0-%d@%s|%d-%d@%s" % (units // 2 - 1, ep, units // 2, units - 1, ep)})
        serve(d, 200)
        e = d.call("PlanExplain")["explanation"]
        equal(e["algorithm"], "manual")
        equal([s["units"] for s in e["stages"]], ["0-%d" % (units // 2 - 1), "%d-%d" % (units // 2, units - 1)])
        equal(sum(s["bottleneck"] for s in e["stages"]), 1)
        slowest = max(e["stages"], key=lambda s: s["measured_ms"])
        check(slowest["bottleneck"] and slowest["teams"] == ep, e["stages"])
        check(abs(e["measured"]["bottleneck_ms"] - slowest["measured_ms"]) < 1e-9, e)
        check(abs(e["measured"]["latency_ms"] - sum(s["measured_ms"] for s in e["stages"])) < 1e-9, e)
        check(abs(e["measured"]["fps"] * e["measured"]["bottleneck_ms"] - 1000) < 1e-6, e)
        for s in e["stages"]:
            check(abs(s["ratio"] * s["predicted_ms"] - s["measured_ms"]) < 1e-9, s)
            check(0 <= s["busy"] <= 1, s)
        check(e["bound_fps"] > 0 and e["runners_up"], e)
        for r in e["runners_up"]:
            check(r["plan"] != e["plan"] and r["fps"] > 0 and r["latency_ms"] > 0 and r["why"].endswith("."), r)
        equal({c["ep"]: c["total"] for c in e["cores"]}, cores)
        equal({c["ep"]: c["used"] for c in e["cores"] if c["used"]}, cores_of(e["plan"]))
        check(e["table"]["measured"] >= units and sum(e["table"].values()) == units * sum(cores[k] * 1 for k in cores), e)
        d.call("SetPlan", {"plan": "0-%d@%s" % (units - 1, ep)})
        serve(d)
        why = {c["ep"]: c["why"] for c in d.call("PlanExplain")["explanation"]["cores"]}
        check("The fastest plan" in why[ep] if cores[ep] > 1 else "All cores" in why[ep], why)
        d.call("SetPlan", {"plan": "|".join("%d-%d@%s" % (u, u, ep) for u in range(units))})
        check("share cores" in d.call("PlanExplain")["explanation"]["cores"][0]["why"])


def solving_outlives_models_and_callers():
    """Models that go and callers that hang up while the front is made."""
    root = many_cores(tempfile.mkdtemp(prefix="piped-test-"))
    with Daemon(config={"eps": MANY_CORES, "frames_in_flight": 2}, models={"stays": DIGITS},
                args=["--sysfs-root", root]) as d:
        for i in range(6):
            d.call("Load", {"name": "goes", "path": DIGITS})
            with d.connect() as a, d.connect() as b, d.connect() as c, d.connect() as hangs_up:
                a.send("io.piped.PlanFront", {"model": "goes", "max": 256})
                b.send("io.piped.PlanExplain", {"model": "goes"})
                c.send("io.piped.AutoPlan", {"model": "goes"})
                hangs_up.send("io.piped.PlanFront", {"model": "stays"})
                if i % 2:
                    hangs_up.sock.shutdown(2)
                d.call("Unload", {"name": "goes"})
                check(a.receive()["front"], "an answer for a model that went")
                check(b.receive()["explanation"]["plan"])
                try:
                    check(c.receive()["plan"])
                except VarlinkError as e:
                    equal(e.error, "io.piped.NotFound")
        equal([m["name"] for m in d.call("Models")["models"]], ["stays"])
        serve(d)
        with d.connect() as last:
            last.send("io.piped.PlanFront", {"max": 256})
            d.stop()
    shutil.rmtree(root)


def goals_of_the_configuration():
    with Daemon(config={"eps": TWO_KINDS, "planner": {"objective": "power", "fps": 1}}) as d:
        got = d.call("GetPlan")["plan"]
        equal(cores_of(got), {"slow": 1}, "one frame a second takes no fast core")
        equal(d.call("PlanExplain")["explanation"]["objective"], "power")
    with Daemon(config={"planner": {"stages_max": 1}}) as d:
        equal(len(stages_of(d.call("GetPlan")["plan"])), 1)
        check(all(len(stages_of(f["plan"])) == 1 for f in d.call("PlanFront")["front"]))
    temp = tempfile.mkdtemp(prefix="piped-test-")
    for planner, key in (({"objective": "power"}, "planner.objective"), ({"objective": "speed"}, "planner.objective"),
                         ({"algorithm": "balance"}, "planner.algorithm"), ({"fps": -1}, "planner.fps"),
                         ({"latency_ms": 1e9}, "planner.latency_ms"), ({"alpha": 1001}, "planner.alpha"),
                         ({"tune_s": 0}, "planner.tune_s")):
        path = os.path.join(temp, "piped.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"planner": planner}, f)
        r = run_piped("--check-config", "--config", path)
        equal(r.returncode, EX_CONFIG, planner)
        check(path + ":1: " + key in r.stdout + r.stderr, planner, r.stdout + r.stderr)
    shutil.rmtree(temp)


def watts_are_learned_from_joules():
    """The configuration has the wrong core as the thrifty one; it counts until joules are known."""
    eps = [{"name": "fast", "cpus": "0", "watts": 0.5}, {"name": "slow", "cpus": "1", "watts": 2.0}]
    d = Daemon(config={"eps": eps, "planner": {"objective": "power", "fps": 1}, "sensors": {"interval_ms": 20}}, env=HEARTBEAT)
    tree = Tree(d.temp)
    d.args = ["--sysfs-root", tree.root]
    meter = Meter(tree)
    with d:
        equal([(e["watts"], e["watts_measured"]) for e in d.status()["eps"]], [(0.5, False), (2.0, False)])
        equal(cores_of(d.call("GetPlan")["plan"]), {"fast": 1})

        def measured():
            """What is known first has a sigma of a tenth, and joules and busy times are read one after the other."""
            meter.step()
            eps = d.status()["eps"]
            return all(e["watts_measured"] and abs(e["watts"] / w - 1) < 0.3 for e, w in zip(eps, Meter.WATTS))
        check(d.wait_until(measured), "what was learned is wrong", d.status()["eps"], d.status()["sensors"]["energy"])
        equal(cores_of(d.call("AutoPlan")["plan"]), {"slow": 1})
        check(all("energy_mj" in f for f in d.call("PlanFront")["front"]), "watts are known")


if __name__ == "__main__":
    main([starts_with_an_exact_plan_over_all_cores, costs_fill_while_serving, guesses_go_with_what_was_measured,
          pipesim_reads_what_was_recorded,
          expectations_come_from_the_table,
          table_and_plan_are_kept_for_the_next_start, states_are_kept_by_places_and_bounded,
          governors_tell_states_apart, hostile_states_are_ignored, the_front_is_one, explanations_are_consistent,
          solving_outlives_models_and_callers, goals_of_the_configuration, watts_are_learned_from_joules,
          wide_teams_are_dearer_where_tasks_wait])
