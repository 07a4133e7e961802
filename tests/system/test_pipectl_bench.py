#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl bench against the real daemon: what it counts, while plans change and beside others."""
import contextlib
import json
import subprocess
import sys

import pipectl_run
from daemon import HEARTBEAT, LIMIT_S, PIPECTL, Daemon, check, equal
from pipectl_run import bad, good, good_json, keys, place, run_all


def test_bench():
    r = good_json("bench", "--frames", "300", "--clients", "3", "--verify")
    keys(r, "fps", "latency_ms", "sent", "answered", "lost", "reordered", "duplicated", "wrong", "errors", "cpu_s")
    keys(r["latency_ms"], "p50", "p95", "p99", "max")
    equal((r["sent"], r["answered"], r["lost"], r["reordered"], r["duplicated"], r["wrong"], r["errors"]),
          (300, 300, 0, 0, 0, 0, {}))
    check(r["fps"] > 0 and 0 < r["latency_ms"]["p50"] <= r["latency_ms"]["max"], r)
    for pixfmt in ("rgb24", "bgr24", "gray8", "nv12", "yuyv"):
        for more in ([], ["--inline", "--size", "20x10"]):
            r = good_json("bench", "--frames", "40", "--verify", "--pixfmt", pixfmt, *more)
            equal((r["answered"], r["wrong"]), (40, 0))
    r = good_json("bench", "--frames", "200", "--policy", "latest")
    equal(r["answered"], 200)
    check(set(r["errors"]) <= {"dropped"}, r["errors"])
    r = good_json("bench", "--frames", "100", "--deadline", "0.001")
    equal(set(r["errors"]), {"deadline_exceeded"})
    check("frames/s" in good("bench", "--seconds", "0.05", "--rate", "1000"), "no summary")
    bad(1, ["no such model"], "bench", "--model", "nothing")
    r = good_json("bench", "--autodice")
    equal((r["answered"], r["clients"], r["autodice"]["runs"]), (20, 1, 20), r)
    check(abs(r["autodice"]["images_per_s"] * r["autodice"]["mean_ms"] - 1000) < 0.1 and r["autodice"]["stddev_ms"] > 0, r)
    check("20 inferences, one after the other" in good("bench", "--autodice"))


STAGES = "0-2@{0}|3-5@{0}|6-8@{0}|9-11@{0}"  # a team each: two frames for each keep it busy


def test_bench_keeps_what_the_plan_needs():
    good("plan", "set", "0-11@" + place())
    for asked, most in (([], 2), (["--clients", "2"], 2), (["--clients", "5"], 5), (["--in-flight", "7"], 7),
                        (["--in-flight", "1"], 1)):
        equal(good_json("bench", "--frames", "200", *asked)["in_flight"], most, " ".join(asked))
    for plan, most in (("0-5@{0}|6-11@{0}", 4), (STAGES, 8)):
        good("plan", "set", plan.format(place()))
        equal(good_json("bench", "--frames", "200")["in_flight"], most, plan)
    good("plan", "set", STAGES.format(place() + "/8"))
    check(good_json("bench", "--frames", "400")["in_flight"] > 32, "four teams take eight frames at once, and more wait")
    good("plan", "auto")


@contextlib.contextmanager
def endless_bench(d, *args):
    """pipectl bench of one daemon; the caller ends it, or it ends here."""
    with subprocess.Popen([PIPECTL, "--socket", d.control_path, "--json", "bench", "--seconds", "3600", *args],
                          stdout=subprocess.PIPE, text=True) as bench:
        try:
            yield bench
        finally:
            bench.kill()


def test_bench_follows_the_plan():
    with Daemon(env=HEARTBEAT) as d, endless_bench(d) as bench:
        def answered():
            return sum(c["answered"] for c in d.status()["clients"])

        name = d.status()["eps"][0]["name"]
        d.call("SetPlan", {"plan": "0-11@" + name})
        check(d.wait_until(lambda: answered() > 9), d.log())
        d.call("SetPlan", {"plan": STAGES.format(name)})
        before = answered()
        check(d.wait_until(lambda: answered() > before + 50), d.log())
        bench.send_signal(2)
        r = json.loads(bench.communicate(timeout=LIMIT_S)[0])
    equal((r["in_flight"], r["lost"], r["errors"]), (8, 0, {}), r)


def test_bench_beside_a_flood():
    """References are tried again while others fill the pipeline; policies may refuse, answers stay right."""
    with Daemon(config={"frames_in_flight": 1}, env=HEARTBEAT) as d, endless_bench(d, "--in-flight", "64"):
        check(d.wait_until(lambda: any(c["answered"] > 9 for c in d.status()["clients"])), d.log())
        for policy, asked in (("reject", "resource_exhausted"), ("latest", "dropped")):
            for in_flight in ("1", "4", "9"):
                r = json.loads(subprocess.run(
                    [PIPECTL, "--json", "--socket", d.control_path, "bench", "--verify", "--policy", policy, "--frames",
                     "40", "--in-flight", in_flight], stdout=subprocess.PIPE, timeout=LIMIT_S, check=True).stdout)
                equal((r["answered"], r["wrong"], r["reordered"]), (40, 0, 0), r)
                check(set(r["errors"]) <= {asked}, r)


def test_verify_sees_plans_change():
    with endless_bench(pipectl_run.DAEMON, "--verify", "--clients", "2") as bench:
        for plan in ("0-11@big", "0-5@big|6-11@big", "0-2@big|3-5@big|6-8@big|9-11@big", "0-11@big*2") * 3:
            plan = plan.replace("big", place())
            r = good_json("plan", "set", plan)
            equal(r["plan"], plan)
            equal(good("plan", "show").splitlines()[0], plan)
        bench.send_signal(2)
        r = json.loads(bench.communicate(timeout=LIMIT_S)[0])
    equal(bench.returncode, 0, r)
    equal((r["lost"], r["reordered"], r["duplicated"], r["wrong"]), (0, 0, 0, 0))
    bad(1, ["InvalidPlan"], "plan", "set", "0-99@" + place())
    good("plan", "auto")
    equal(good_json("plan", "show")["algorithm"], good_json("status")["models"][0]["algorithm"])


if __name__ == "__main__":
    sys.exit(run_all([test_bench, test_bench_keeps_what_the_plan_needs, test_bench_follows_the_plan,
                      test_bench_beside_a_flood, test_verify_sees_plans_change]))
