#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipesim: what it prints, its JSON keys, its exit codes, and what it says to bad descriptions. Needs no daemon."""
import json
import os
import shutil
import subprocess
import tempfile

from daemon import BUILD, LIMIT_S, ROOT, check, equal, main

PIPESIM = os.environ.get("PIPESIM_EXE", os.path.join(BUILD, "tuner", "pipesim"))
PLATFORMS = os.path.join(ROOT, "tuner", "platforms")
KEYS = ["algorithm", "plan", "bottleneck_ms", "optimum_ms", "ratio", "trials", "tuning_s", "explored"]
TEMP = None


def run(*args, env=None):
    return subprocess.run([PIPESIM, *args], capture_output=True, text=True, timeout=2 * LIMIT_S, check=False,
                          env={**os.environ, **(env or {})})


def good(*args):
    r = run(*args)
    equal(r.returncode, 0, " ".join(args) + "\n" + r.stdout + r.stderr)
    return r.stdout


def near(a, b):
    check(abs(a - b) <= 1e-6 * max(abs(a), abs(b)), a, "is not", b)


def good_json(*args):
    return json.loads(good(*args, "--json"))


def bad(code, words, *args):
    r = run(*args)
    equal(r.returncode, code, " ".join(args) + "\n" + r.stdout + r.stderr)
    equal(r.stdout, "")
    for word in words:
        check(word in r.stderr, repr(word), "is not in", repr(r.stderr))


def write(name, value):
    path = os.path.join(TEMP, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))
    return path


def platform(name="hikey970"):
    with open(os.path.join(PLATFORMS, name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def recorded():
    """Three units on two kinds; the middle unit is the heaviest, little cores take 3 times as long."""
    units = [{"name": "u%d" % i, "weight": w, "in_bytes": 0 if i == 0 else 1000, "gemm": [0, 0, 0]}
             for i, w in enumerate((1, 2, 1))]
    costs = {"big": {"1": [1e6, 2e6, 1e6], "2": [6e5, 12e5, 6e5]}, "little": {"1": [3e6, 6e6, 3e6]}}
    kinds = [{"name": "big", "cores": 2, "speed": 1, "bandwidth": 1, "watts": 1},
             {"name": "little", "cores": 1, "speed": 0.33, "bandwidth": 0.5, "watts": 0.3}]
    return {"model": "made up", "units": units, "kinds": kinds, "handoff_ns": 1000, "handoff_ns_per_byte": 0.1,
            "costs": costs}


def timeless(results):
    return [{k: v for k, v in r.items() if k not in ("own_s", "tuning_s")} for r in results]


def test_compare_keys():
    results = good_json("compare", "--model", "squeezenet1_1", "--platform", "hikey970", "--algorithm", "exact,shisha")
    equal([r["algorithm"] for r in results], ["exact", "shisha"])
    for r in results:
        equal(list(r)[:len(KEYS)], KEYS)
        check({"own_s", "space", "latency_ms"} <= set(r), r)
        check(r["trials"] >= 1 and r["tuning_s"] >= r["own_s"] > 0, r)
        check(r["ratio"] >= 1 - 1e-9, "better than the optimum:", r)
        check(abs(r["ratio"] - r["bottleneck_ms"] / r["optimum_ms"]) < 1e-6, r)


def test_boards_repeats_the_experiments():
    args = ("boards", "--units", "--seeds", "2", "--hours", "14")
    r = good_json(*args)
    equal(good_json(*args), r)
    equal([row["experiment"] for row in r["runs"]], [e for e in ("1s-NE", "1s-SPE", "3s-2l-SPE") for _ in range(4)])
    ne, spe = r["runs"][3], r["runs"][7]
    check(ne["fps"][2] < spe["fps"][0] and ne["volume"][2] < spe["volume"][0], ne, spe)
    for row in r["runs"]:
        check(all(row[k][0] <= row[k][1] + 1e-9 <= row[k][2] + 2e-9 for k in ("fps", "memory_mb", "energy_j")), row)
        check(row["volume"][2] <= 1 + 1e-9, row)
    check(r["best_fps"] >= max(p["fps"] for p in r["front"]) - 1e-9, r["best_fps"])
    has = run("boards", "--units", "--seeds", "1", "--hours", "1", "--platform", "pi4-pi5", "--model", "squeezenet1_1")
    check("exact front of split points" in has.stdout, has.stdout, has.stderr)
    bad(1, ["has one board"], "boards", "--platform", "host2")
    for option, value in (("--seeds", "0"), ("--seed", "1.5"), ("--hours", "x"), ("--sigma", "2"), ("--early", "-1")):
        bad(2, [option, "usage"], "boards", option, value)


def test_mappings_there_and_back():
    subject = ("mapping", "--model", "alexnet", "--platform", "xavier-nx-x4")
    plan = "0-3@cpux6|4-5@nx2:gpu|6-7@nx3:cpux2"
    mapping = json.loads(good(*subject, "--export", plan))
    equal(list(mapping), ["nx1_cpu012345", "nx2_gpu", "nx3_cpu01"])
    again = good(*subject, "--import", write("mapping.json", mapping)).split("\n")[0]
    equal(json.loads(good(*subject, "--export", again)), mapping)
    names = sum(mapping.values(), [])
    back = {"nx1_gpu": names[:1] + names[2:], "nx2_gpu": names[1:2]}
    first, second = (good(*subject, "--import", write("back.json", m)).split("\n")[0:2] for m in (back, mapping))
    equal(first[0], "0-0@nx1:gpu|1-1@nx2:gpu|2-7@nx1:gpu")
    equal(second[0], again)
    fps = [float(line.split(" frames/s; the most of a board: ")[0]) for line in (first[1], second[1])]
    check(fps[0] > fps[1] > 0, "one GPU computes what three boards' slower places do:", first, second)
    bad(1, ["wrong.json", "nx9_gpu"], *subject, "--import", write("wrong.json", {"nx9_gpu": []}))
    bad(1, ["several teams"], *subject, "--export", "0-7@cpu*2")
    bad(2, ["one of"], *subject)


def test_every_algorithm_ends():
    names = [a["name"] for a in good_json("list")["algorithms"]]
    equal(names[0], "exact")
    r = run("compare", "--model", "squeezenet1_1", "--platform", "host2", "--json")
    equal(r.returncode, 0, r.stderr)
    equal([v["algorithm"] for v in json.loads(r.stdout)], names, r.stderr)
    r = run("compare", "--model", "squeezenet1_1", "--platform", "hikey970", "--json")
    equal(r.returncode, 0, r.stderr)
    ran = {v["algorithm"] for v in json.loads(r.stdout)}
    for name in set(names) - ran:
        check(name in r.stderr, name, "did not run and nobody says why:", r.stderr)
    check(set(names) - ran <= {"exhaustive", "pipe-search-database"}, "left out:", set(names) - ran, r.stderr)
    equal(timeless(json.loads(r.stdout))[0]["algorithm"], "exact")


def test_exact_is_best():
    for m in ("host2", "tx2-3", "shisha-c5-12x"):
        results = {r["algorithm"]: r for r in good_json("compare", "--model", "synthnet", "--platform", m, "--layers",
                                                        "--algorithm", "exact,shisha,pipe-search,annealing-seeded")}
        check(results["exact"]["ratio"] < 1.031, m, results["exact"])
        for r in results.values():
            check(r["ratio"] >= 1 - 1e-9, m, r)


def test_same_seed_same_answers():
    args = ("compare", "--model", "alexnet", "--platform", "rk3588", "--algorithm", "exact,shisha,random,annealing",
            "--sigma", "0.1", "--contention", "0.2", "--noise", "0.02", "--trials", "30", "--seed")
    first = good_json(*args, "7")
    equal(timeless(first), timeless(good_json(*args, "7")))
    check(timeless(first) != timeless(good_json(*args, "8")), "another seed changes nothing")


def test_contention_and_bounds():
    args = ("compare", "--model", "alexnet", "--platform", "host2", "--algorithm", "exact")
    still = good_json(*args)[0]
    slowed = good_json(*args, "--contention", "core=1")[0]
    check(1.9 < slowed["optimum_ms"] / still["optimum_ms"] < 2.01, still, slowed)
    fps = 500.0 / still["bottleneck_ms"]
    power = good_json(*args, "--objective", "power", "--fps", str(fps))[0]
    check(power["bottleneck_ms"] <= 1000.0 / fps and power["energy_mj"] <= still["energy_mj"] * 1.001, still, power)
    bad(2, ["--fps"], *args, "--objective", "power")
    bad(2, ["no execution place", "huge"], *args, "--contention", "core=1,huge=2")


def test_predicted_costs_lead_to_plans_as_good_as_measured_ones():
    """Pipe-it, tables V and VI: within 5 % (the paper: 4 %)."""
    for model in ("alexnet", "googlenet", "mobilenet_v1", "resnet50", "squeezenet1_0"):
        args = ("compare", "--model", model, "--platform", "hikey970", "--algorithm", "pipe-it")
        measured, predicted = good_json(*args)[0], good_json(*args, "--predict")[0]
        check(predicted["bottleneck_ms"] <= 1.05 * measured["bottleneck_ms"], measured, predicted)
    bad(2, ["--predict", "--platform"], "compare", "--problem", write("table.json", recorded()), "--predict")


def test_text():
    text = good("compare", "--model", "alexnet", "--platform", "host2", "--algorithm", "exact,pipe-it")
    lines = text.rstrip("\n").split("\n")
    check("optimum" in lines[0] and lines[2].startswith("algorithm"), text)
    equal([line.split()[0] for line in lines[3:]], ["exact", "pipe-it"])
    check(not any(line != line.rstrip() for line in lines), "blanks at the end of", lines)


def test_plan():
    p = good_json("plan", "--model", "resnet50", "--platform", "hikey970", "--top", "4", "--front")
    check({"plan", "bottleneck_ms", "fps", "latency_ms", "energy_mj", "bound_ms", "stages", "runners_up", "front"}
          <= set(p), p)
    equal(p["stages"][0]["first"], 0)
    equal(p["stages"][-1]["last"], p["units"] - 1)
    equal(max(s["period_ms"] for s in p["stages"]), p["bottleneck_ms"])
    check(abs(max(s["busy"] for s in p["stages"]) - 1) < 1e-9, p["stages"])
    equal(len(p["runners_up"]), 3)
    front = [(f["bottleneck_ms"], f["latency_ms"]) for f in p["front"]]
    equal(front, sorted(front), "the front is not in order")
    check(all(b[1] < a[1] for a, b in zip(front, front[1:])), "dominated points in", front)
    text = good("plan", "--model", "resnet50", "--platform", "hikey970", "--front")
    check(p["plan"] in text and "front" in text, text)
    check("%.2f mJ a frame; assumed of a busy core: big 1.1 W, small 0.25 W\n" % p["energy_mj"] in text, text)
    r = run("plan", "--model", "resnet50", "--platform", "hikey970", "--fps", "1000000", "--json")
    equal(r.returncode, 1)
    equal(json.loads(r.stdout)["possible"], False)
    check("--fps" in r.stderr, r.stderr)


def mixed(*args):
    return json.loads(good("mix", "--json", "--platform", "rk3588", *args))


def test_several_networks_share_a_machine():
    networks, before = ("mobilenet_v1=30", "resnet50=5", "squeezenet1_1"), 0
    for changes in range(3):
        mix = mixed("--changes", str(changes), *networks)
        equal([(m["model"], m["wished"]) for m in mix["models"]], [("mobilenet_v1", 30), ("resnet50", 5), ("squeezenet1_1", 1)])
        for m in mix["models"]:
            near(m["given"], mix["of_wishes"] * m["wished"])
            near(sum(r["share"] for r in m["routes"]), 1)
            check(all(r["route"].count("|") <= changes for r in m["routes"]), m)
        near(max(k["busy"] for k in mix["kinds"]), 1)
        near(sum(k["limits"] for k in mix["kinds"]), 1)
        check(before <= mix["of_wishes"] * 1.000001 and mix["of_bound"] <= 1.000001, mix)
        before = mix["of_wishes"]
    check("of what these cores could ever do" in good("mix", "--platform", "rk3588", *networks))
    near(mixed("resnet50=5", "resnet50=5")["of_wishes"], mixed("resnet50=10")["of_wishes"])


def test_objectives_of_a_mix():
    networks = ("mobilenet_v1=15,weight=1", "resnet50=4,weight=2", "squeezenet1_1=15,weight=0.5")
    heavy = ("mobilenet_v1=60,weight=1", "resnet50=16,weight=2", "squeezenet1_1=60,weight=0.5")
    energy = mixed("--objective", "energy", *networks)
    check(energy["bound"] <= energy["value"] * 1.000001 and not energy["fell_back"], energy)
    near(energy["of_wishes"], 1)
    over = mixed("--objective", "energy", *heavy)
    check(over["fell_back"] and over["objective"] == "fair" and over["of_wishes"] < 1, over)
    near(over["of_wishes"], mixed(*heavy)["of_wishes"])
    all_kept = mixed("--objective", "weighted", *networks)
    near(all_kept["value"], 15 + 8 + 7.5)
    most = mixed("--objective", "weighted", *heavy)
    near(most["value"], sum(m["given"] * m["weight"] for m in most["models"]))
    fair = over["models"]
    check(sum(m["given"] * m["weight"] for m in fair) < most["value"] <= most["bound"] * 1.000001, most)
    front = mixed("--front", *networks)["front"]
    equal(len(front), 10)
    check(all(a["energy"] < b["energy"] for a, b in zip(front, front[1:])), front)
    check("is fair instead" in good("mix", "--platform", "rk3588", "--objective", "energy", "--front", *heavy))


def test_deadlines_of_a_mix():
    networks = ("mobilenet_v1=15,deadline=500,class=1", "resnet50=4,deadline=3000", "squeezenet1_1=15")
    mix = mixed("--simulate", "20000", "--floor", "0.02", *networks)
    check(mix["admission"]["admitted"] and mix["late"] == 0 and mix["due"] > 5000, mix)
    check(mix["reached"] >= 0.97, mix)
    for m in mix["models"][:2]:
        check(m["worst_ms"] <= m["bound_ms"] <= m["deadline_ms"], m)
    check("bound_ms" not in mix["models"][2], mix)
    energy = mixed("--objective", "energy", *networks)
    check(energy["admission"]["admitted"] and energy["bound"] * 1.000001 < energy["value"], energy)
    answers = {"demand": ("mobilenet_v1=15,deadline=10",), "load": ("resnet50=60,deadline=500",),
               "unit": ("lenet=1,deadline=2,class=1", "resnet50=7")}
    for why, wishes in answers.items():
        a = json.loads(good("mix", "--json", "--platform", "rpi4", *wishes))["admission"]
        equal((a["admitted"], a["why"]), (False, why))
        check(a["seat"].startswith("core ") and a["late"] == wishes[0].split("=")[0] and ("unit" in a) == (why == "unit"), a)
        check("may be late on core" in good("mix", "--platform", "rpi4", *wishes))
    check("All deadlines hold" in good("mix", "--platform", "rk3588", "--simulate", "1000", *networks))


def test_bad_wishes():
    for rate in ("0", "-1", "nan", "1e9", "", "5x", "inf"):
        bad(2, ["the rate must be from"], "mix", "--platform", "rk3588", "resnet50=" + rate)
        for key in ("deadline", "weight", "class"):
            if rate not in ("0", "1e9") or key == "weight":
                bad(2, ["the %s must be" % key], "mix", "--platform", "rk3588", "resnet50=1,%s=%s" % (key, rate))
    for wish, said in (("resnet50,deadlin=3", "did you mean deadline?"), ("resnet50=3,rate=4", "the rate is given twice"),
                       ("resnet50,class=1,class=1", "the class is given twice"), ("resnet50,class=1.5", "a whole number"),
                       ("resnet50,class=8", "a whole number"), ("resnet50,", "unknown key"), ("resnet50,deadline=0", "must be"),
                       ("resnet50,deadline", "must be"), ("resnet50,=", "unknown key"), ("=", "the rate must be")):
        bad(2, [said], "mix", "--platform", "rk3588", wish)
    for option in (("--floor", "1"), ("--floor", "nan"), ("--simulate", "0"), ("--simulate", "1.5"), ("--objective", "all")):
        bad(2, [option[0]], "mix", "--platform", "rk3588", *option, "resnet50")
    bad(2, ["give --platform"], "mix", "--platform", "rk3588")
    bad(2, ["give --platform"], "mix", "resnet50")
    bad(1, ["nonet"], "mix", "--platform", "rk3588", "nonet=2")
    bad(2, ["at most 32 networks"], "mix", "--platform", "rk3588", *["lenet"] * 33)


def test_list():
    v = good_json("list")
    names = {p["name"]: p for p in v["platforms"]}
    for name in ("hikey970", "tx2-1", "tx2-4", "shisha-c1", "shisha-c1-6x", "shisha-c5-12x", "shisha-c6", "rpi4", "rpi5",
                 "rk3588", "intel-hybrid", "host2"):
        check(name in names and "error" not in names[name], name, names.get(name))
    equal(len(names), len([n for n in os.listdir(PLATFORMS) if n.endswith(".json")]))
    check({"alexnet", "vgg16", "resnet101", "synth3"} <= set(v["networks"]), v["networks"])
    text = good("list")
    check("hikey970" in text and "resnet101" in text and "exact" in text, text)


def test_layers_as_the_papers_count():
    for model, units in (("vgg16", 21), ("alexnet", 11), ("synth1", 7), ("synth2", 15), ("synth3", 13)):
        p = good_json("plan", "--model", model, "--platform", "host2", "--layers")
        equal(p["units"], units, model)


def test_words():
    check("compare" in good("--help") and "Exit codes" in good("--help"))
    check(good("--version").startswith("pipesim "))
    for command in ("compare", "plan", "list"):
        check(("usage: pipesim " + command) in good(command, "--help"), command)


def test_wrong_usage():
    bad(2, ["usage"])
    bad(2, ["unknown command", "dance"], "dance")
    bad(2, ["--dance"], "compare", "--dance")
    bad(2, ["--model", "needs a value"], "compare", "--model")
    bad(2, ["--model and --platform"], "compare", "--platform", "host2")
    bad(2, ["alone"], "plan", "--platform", "host2", "--problem", "x")
    bad(2, ["extra"], "list", "extra")
    good_start = ("compare", "--model", "synth1", "--platform", "host2")
    for option, value in (("--seed", "-1"), ("--seed", "1.5"), ("--alpha", "0"), ("--sigma", "nan"), ("--noise", "2"),
                          ("--fps", "0"), ("--trials", "x"), ("--objective", "speed"), ("--space", "outer"),
                          ("--contention", "-0.1"), ("--heuristic", "7"), ("--latency", "")):
        bad(2, [option, "usage"], *good_start, option, value)
    bad(2, ["no algorithm", "magic"], *good_start, "--algorithm", "exact,magic")
    bad(2, ["no algorithm"], *good_start, "--algorithm", "")


def test_unknown_names():
    bad(1, ["no network", "nowhere", "pipesim list"], "plan", "--model", "nowhere", "--platform", "host2")
    bad(1, ["no platform", "nowhere", "pipesim list"], "plan", "--model", "synth1", "--platform", "nowhere")
    bad(1, ["cannot read ./nowhere.onnx: No such file"], "plan", "--model", "./nowhere.onnx", "--platform", "host2")
    bad(1, ["no platform"], "plan", "--model", "synth1", "--platform", "")
    broken = write("broken.onnx", "not a model")
    bad(1, ["broken.onnx"], "plan", "--model", broken, "--platform", "host2")


def test_memory_is_shared():
    """What a machine says of its memory slows teams that share it: least with a memory for each kind, most with one for all."""
    def best(gbytes_max):
        machine = platform("two-memories")
        machine.pop("gbytes_max") if gbytes_max is None else machine.update(gbytes_max=gbytes_max)
        name = write("memory-%s.json" % gbytes_max, machine)
        return good_json("compare", "--model", "alexnet", "--platform", name, "--algorithm", "exact")[0]

    nobody, each, one = best(None), best(60), best(12)
    check(nobody["optimum_ms"] < each["optimum_ms"] < one["optimum_ms"] / 1.1, nobody, each, one)
    check(each["trials"] == 1, "the table knows what its teams lose:", each)
    bad(1, ["gbytes_max"], "plan", "--model", "alexnet", "--platform",
        write("memory-bad.json", {**platform("two-memories"), "gbytes_max": 0}))


def test_bad_platforms():
    def wrong(words, change):
        p = platform()
        change(p)
        path = write("platform.json", p)
        bad(1, ["platform.json", *words], "plan", "--model", "synth1", "--platform", path)

    good("plan", "--model", "synth1", "--platform", write("platform.json", platform()))
    for key in platform():
        wrong([key, "missing"], lambda p, key=key: p.pop(key))
    for key in set(platform()["kinds"][0]) - {"watts"}:
        wrong(["kinds[0]", key, "missing"], lambda p, key=key: p["kinds"][0].pop(key))
        wrong(["kinds[1]", key], lambda p, key=key: p["kinds"][1].update({key: [1]}))
    wrong(["unknown key", "colour"], lambda p: p.update(colour="red"))
    wrong(["kinds[1]", "unknown key"], lambda p: p["kinds"][1].update(colour="red"))
    wrong(["kinds[0].gmacs", "unknown key"], lambda p: p["kinds"][0]["gmacs"].update(colour=1))
    wrong(["kinds[0].gmacs", "fc", "missing"], lambda p: p["kinds"][0]["gmacs"].pop("fc"))
    for cores in (0, -1, 257, 1.5, "4", None, True):
        wrong(["kinds[0].cores"], lambda p, cores=cores: p["kinds"][0].update(cores=cores))
    for figure in (0, -1, "1", None, 1e300):
        for key in ("gbytes", "overhead_ns", "gbytes_max", "watts"):
            wrong(["kinds[1]." + key], lambda p, key=key, v=figure: p["kinds"][1].update({key: v}))
        wrong(["kinds[1].gmacs.conv"], lambda p, v=figure: p["kinds"][1]["gmacs"].update(conv=v))
        wrong(["handoff_ns"], lambda p, v=figure: p.update(handoff_ns=v))
    wrong(["kinds[0].serial"], lambda p: p["kinds"][0].update(serial=1.1))
    wrong(["kinds[0].name"], lambda p: p["kinds"][0].update(name="a|b"))
    wrong(["kinds[0].name"], lambda p: p["kinds"][0].update(name="n" * 48))
    wrong(["kinds", "two are called"], lambda p: p["kinds"][0].update(name="small"))
    wrong(["kinds", "0 entries"], lambda p: p.update(kinds=[]))
    wrong(["kinds", "34 entries"], lambda p: p.update(kinds=p["kinds"] * 17))
    wrong(["kinds", "not a list"], lambda p: p.update(kinds={}))
    wrong(["kinds", "cores in all"],
          lambda p: p.update(kinds=[dict(p["kinds"][0], name="k%d" % i, cores=200) for i in range(2)]))
    wrong(["source"], lambda p: p.update(source="me"))
    for text, word in (("", "line"), ("{", "line 1"), ("[]", "object"), ('{"title": 1, "title": 2}', "title")):
        bad(1, ["text.json", word], "plan", "--model", "synth1", "--platform", write("text.json", text))


def test_a_folder_of_ones_own():
    os.makedirs(os.path.join(TEMP, "mine"), exist_ok=True)
    mine = dict(platform("host2"), title="mine")
    with open(os.path.join(TEMP, "mine", "desk.json"), "w", encoding="utf-8") as f:
        json.dump(mine, f)
    r = run("list", "--json", env={"PIPESIM_PLATFORMS": os.path.join(TEMP, "mine")})
    found = {p["name"]: p for p in json.loads(r.stdout)["platforms"]}
    equal(found["desk"]["title"], "mine")
    check("hikey970" in found)


def test_recorded():
    path = write("table.json", recorded())
    results = good_json("compare", "--problem", path, "--algorithm", "exact,exhaustive,pipe-search,shisha")
    equal(len(results), 4)
    check(all(r["ratio"] >= 1 - 1e-9 for r in results), results)
    p = good_json("plan", "--problem", path)
    # two big cores and a third of one share 4 ms of work
    check(4 / 2.34 <= p["bottleneck_ms"] <= 2.1, p)
    equal(p["units"], 3)


def test_holes_are_filled():
    table = recorded()
    table["costs"]["little"]["1"][1] = None
    table["costs"]["big"]["2"] = [None] * 3
    path = write("holes.json", table)
    whole = good_json("plan", "--problem", write("table.json", recorded()))
    holed = good_json("plan", "--problem", path)
    check(abs(holed["bottleneck_ms"] / whole["bottleneck_ms"] - 1) < 0.05, whole, holed)
    table["costs"] = {"big": {"1": [None] * 3, "2": [None] * 3}, "little": {"1": [None] * 3}}
    bad(1, ["empty.json", "costs", "not one is known"], "plan", "--problem", write("empty.json", table))


def test_bad_tables():
    def wrong(words, change):
        t = recorded()
        change(t)
        bad(1, ["table.json", *words], "plan", "--problem", write("table.json", t))

    for key in recorded():
        wrong([key, "missing"], lambda t, key=key: t.pop(key))
    for key in recorded()["units"][0]:
        wrong(["units[1]", key, "missing"], lambda t, key=key: t["units"][1].pop(key))
    for key in recorded()["kinds"][0]:
        wrong(["kinds[1]", key, "missing"], lambda t, key=key: t["kinds"][1].pop(key))
    wrong(["unknown key"], lambda t: t.update(colour=1))
    wrong(["units", "0 entries"], lambda t: t.update(units=[]))
    wrong(["units[0].weight"], lambda t: t["units"][0].update(weight=0))
    wrong(["units[2].in_bytes"], lambda t: t["units"][2].update(in_bytes=-1))
    wrong(["units[0].gemm"], lambda t: t["units"][0].update(gemm=[1, 2]))
    wrong(["units[0]", "gemm"], lambda t: t["units"][0].update(gemm=[1, 2, "x"]))
    wrong(["kinds[0].cores"], lambda t: t["kinds"][0].update(cores=0))
    wrong(["kinds[0].speed"], lambda t: t["kinds"][0].update(speed=1.5))
    wrong(["costs.little", "missing"], lambda t: t["costs"].pop("little"))
    wrong(["costs.big.2", "not a list"], lambda t: t["costs"]["big"].pop("2"))
    wrong(["costs.big", "is not a width"], lambda t: t["costs"]["big"].update({"3": [1, 1, 1]}))
    wrong(["costs.big.1", "2 entries"], lambda t: t["costs"]["big"].update({"1": [1, 1]}))
    wrong(["costs", "medium"], lambda t: t["costs"].update(medium={}))
    for cost in (0, -1, "1", True, [], {}):
        wrong(["costs.big.1", "entry 2"], lambda t, v=cost: t["costs"]["big"]["1"].__setitem__(2, v))
    bad(1, ["no.json"], "plan", "--problem", os.path.join(TEMP, "no.json"))


def test_one_unit():
    one = {"name": "one", "seed": 1, "input": {"shape": [3, 8, 8]}, "layers": [{"op": "conv", "out": 4, "kernel": 3}]}
    path = write("one.json", one)
    r = run("compare", "--model", path, "--platform", "hikey970", "--json")
    equal(r.returncode, 0, r.stderr)
    results = json.loads(r.stdout)
    check(len(results) >= 1 and results[0]["algorithm"] == "exact", results, r.stderr)
    check(all(v["plan"].startswith("0-0@") for v in results), results)


def with_temp(case):
    def wrapped():
        global TEMP
        TEMP = tempfile.mkdtemp(prefix="pipesim-test-")
        try:
            return case()
        finally:
            shutil.rmtree(TEMP)
    wrapped.__name__ = case.__name__
    return wrapped


main([with_temp(c) for n, c in sorted(globals().items()) if n.startswith("test_")])
