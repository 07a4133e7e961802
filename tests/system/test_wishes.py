#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What models are to have of the cores: how it is said, refused, kept and shown, and that frames then come in that order."""
import json
import os

import pyclient
from daemon import DIGITS, HEARTBEAT, Daemon, VarlinkError, check, equal, main
from metrics_text import Metrics
from page_reader import Page

NONE = {"rate": 0, "weight": 1, "class": 0, "deadline_ms": 0, "max_share": 1}
ALL = {"rate": 30, "weight": 2.5, "class": 3, "deadline_ms": 40, "max_share": 0.5}
BAD = [("rate", -1), ("rate", 1e9), ("rate", 0.0001), ("weight", 0), ("weight", -2), ("weight", 1e9), ("class", -1), ("class", 8),
       ("deadline_ms", -1), ("deadline_ms", 1e9), ("max_share", 0), ("max_share", 1.5), ("max_share", -0.1)]


def wishes(d, model):
    return next(m["wishes"] for m in d.status()["models"] if m["name"] == model)


def infer(d, model, count=1):
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, model=model, inline=True)
        for _ in range(count):
            equal(s.infer(bytes(s.input_bytes)).status, "ok")


def refused(d, method, key, parameters):
    try:
        d.call(method, parameters)
    except VarlinkError as e:
        check(e.error == "io.piped.InvalidWish" and e.parameters["why"].startswith(key + ": "), e, parameters)
        return
    raise AssertionError("taken: %s" % parameters)


def configured_and_set():
    config = {"models": [{"name": "a", "path": DIGITS, **ALL}, {"name": "b", "path": DIGITS}]}
    with Daemon(config=config) as d:
        equal(wishes(d, "a"), ALL)
        equal(wishes(d, "b"), NONE)
        check("a is to have" not in d.log())
        text = d.pipectl("status", as_json=False)
        check("is to have 30 frames/s, each due within 40 ms, class 3, weight 2.5, at most 50 % of the cores' time" in text, text)
        said = d.pipectl("models", "set", "b", "--rate", "10", "--class", "1", as_json=False)
        check("b is to have 10 frames/s, class 1; until a reload or restart" in said, said)
        equal(wishes(d, "b"), dict(NONE, rate=10, **{"class": 1}))
        equal(d.pipectl("models", "set", "b", "--deadline", "5"), dict(NONE, rate=10, deadline_ms=5, **{"class": 1}))
        refused(d, "SetWishes", "deadline_ms", {"model": "b", "rate": 0})
        d.pipectl("models", "set", "b", expect=2)
        d.pipectl("models", "set", "nobody", "--rate", "1", expect=1)
        d.pipectl("models", "set", "a", "--rate", "1", "--save", expect=1)
        config["models"][1]["weight"] = 7
        d.write_config(config)
        d.pipectl("reload")
        equal(wishes(d, "b"), dict(NONE, weight=7))
        infer(d, "a")
        infer(d, "b")


def refused_with_the_key():
    with Daemon(models={"a": DIGITS}) as d:
        for key, value in BAD:
            refused(d, "SetWishes", key, {"model": "a", key: value})
            refused(d, "Load", key, {"name": "c", "path": DIGITS, key: value})
        refused(d, "SetWishes", "deadline_ms", {"model": "a", "deadline_ms": 10})
        equal(wishes(d, "a"), NONE)
        for word in ("nan", "inf", "-1", "1e9", "x", ""):
            d.pipectl("models", "set", "a", "--rate", word, expect=2)
        equal(wishes(d, "a"), NONE)


def kept_over_restarts():
    with Daemon() as d:
        d.pipectl("models", "load", "saved", DIGITS, "--rate", "20", "--save")
        equal(wishes(d, "saved"), dict(NONE, rate=20))
        d.pipectl("models", "set", "saved", "--weight", "3", "--save")
        d.pipectl("models", "set", "saved", "--weight", "4")
        d.stop()
        d.start()
        equal(wishes(d, "saved"), dict(NONE, rate=20, weight=3))
        d.pipectl("models", "unload", "saved", "--save")


def late_frames_are_counted():
    """A deadline shorter than any frame, then one longer than any."""
    with Daemon(models={"a": DIGITS}) as d:
        infer(d, "a", 3)
        d.pipectl("models", "set", "a", "--rate", "1000000", "--deadline", "0.01")
        infer(d, "a", 5)
        frames = d.status()["models"][0]["frames"]
        equal((frames["due"], frames["late"]), (5, 5))
        d.pipectl("models", "set", "a", "--rate", "1000000", "--deadline", "600000")
        infer(d, "a", 5)
        frames = d.status()["models"][0]["frames"]
        equal((frames["due"], frames["late"], frames["answered"]), (10, 5, 13))
        text = d.call("Metrics")["text"]
        for row in ('piped_frames_due_total{model="a"} 10', 'piped_frames_late_total{model="a"} 5',
                    'piped_wished_fps{model="a"} 1000000'):
            check(row in text, row, text)


def who_goes_first_goes_first():
    """One model always has frames; another of a higher class still is served by the same core, and the lower one is, too."""
    config = {"eps": [{"name": "one", "cpus": "0"}], "models": [
        {"name": "low", "path": DIGITS, "plan": "0-11@one"}, {"name": "high", "path": DIGITS, "plan": "0-11@one", "class": 7}]}
    with Daemon(config=config) as d, pyclient.Connection(d.frames_path) as c, pyclient.Connection(d.frames_path) as e:
        low, high = (pyclient.Stream(x, model=n, inline=True, credits=4) for x, n in ((c, "low"), (e, "high")))
        for s in (low, high):
            for _ in range(4):
                s.submit(bytes(s.input_bytes))
        for _ in range(200):
            for s in (high, low):
                equal(s.result().status, "ok")
                s.submit(bytes(s.input_bytes))
        for s in (high, low):
            for _ in range(4):
                equal(s.result().status, "ok")
        frames = {m["name"]: m["frames"] for m in d.status()["models"]}
        equal([frames[n]["answered"] for n in ("low", "high")], [204, 204])


def planned_together():
    """Two EPs of a core each: one plan for all, what it keeps, and why not; then it serves."""
    config = {"eps": [{"name": "left", "cpus": "0"}, {"name": "right", "cpus": "0"}],
              "models": [{"name": n, "path": DIGITS} for n in "abc"]}
    with Daemon(config=config) as d:
        for name in "abc":
            infer(d, name, 40)
        mix = d.pipectl("plan", "mix")
        equal([m["model"] for m in mix["models"]], list("abc"))
        check(0 < mix["of_bound"] <= 1.000001 and not mix["rates"] and mix["refused"] is None, mix)
        check(abs(sum(c["limits"] for c in mix["cores"]) - 1) < 1e-6, mix)
        rates = [m["rate"] * m["part"] for m in mix["models"]]
        said = d.pipectl("models", "set", "a", "--rate", "10", "--deadline", "1000", as_json=False)
        check("All rates can be kept." in said and "All deadlines can be kept" in said, said)
        mix = d.pipectl("plan", "mix")
        check(mix["models"][0]["rate"] == 10 and 0 < mix["models"][0]["bound_ms"] <= 1000, mix)
        check(mix["models"][1]["rate"] > rates[1], mix, rates)
        d.pipectl("models", "set", "b", "--weight", "4")
        mix = d.pipectl("plan", "mix")
        check(2 < mix["models"][1]["rate"] / mix["models"][2]["rate"] < 8, mix)  # they are measured one by one
        said = d.pipectl("models", "set", "a", "--deadline", "0.01", as_json=False)
        check("Frames of a may be late on" in said, said)
        equal((d.pipectl("plan", "mix")["refused"]["late"]), "a")
        said = d.pipectl("models", "set", "c", "--rate", "1000000", as_json=False)
        check("Not all rates can be kept" in said, said)
        check(d.pipectl("plan", "mix")["of_wishes"] < 0.9, said)
        front = d.pipectl("plan", "mix", "--front")["front"]
        equal(len(front), 10)
        for key in ("of_wishes", "energy"):
            check(all(a[key] < b[key] for a, b in zip(front, front[1:])), front)
        mix = d.pipectl("plan", "mix", "--apply")
        plans = {m["name"]: m["plan"] for m in d.status()["models"]}
        equal(plans, {m["model"]: m["plan"] for m in mix["models"]})
        for name in "abc":
            infer(d, name, 40)
        text = d.pipectl("plan", "mix", as_json=False)
        check("of what these cores could ever do" in text, text)
        d.pipectl("plan", "show", "--apply", expect=2)


def told_where_people_look():
    """The plan by which all models serve: in status, top, plan explain, report and metrics."""
    config = {"adapt": {}, "eps": [{"name": n, "cpus": "0"} for n in ("left", "right")],
              "models": [{"name": "a", "path": DIGITS, "rate": 20, "deadline_ms": 500}, {"name": "b", "path": DIGITS}]}
    with Daemon(config=config, env=HEARTBEAT) as d:
        def mix():
            s = d.status()
            return all(m["algorithm"] == "mix" for m in s["models"]) and s["mix"] and s["mix"]["serves"] and s["mix"]
        m = d.wait_until(mix)
        check(m, d.status())
        a, b = m["models"]
        equal((a["model"], a["wished"], b["wished"], m["refused"]), ("a", 20, 0, None))
        check(abs(m["fairness"] - 1) < 1e-3, m)
        check(0 < a["bound_ms"] == a["served_bound_ms"] <= 500 and b["bound_ms"] is None, m)
        check(0 < m["served_of_bound"] == m["of_bound"] <= 1.000001, m)
        for c in m["cores"]:
            check(abs(a["busy"][c["ep"]] + b["busy"][c["ep"]] - c["busy"]) < 1e-9 and c["busy"] <= 1.000001, m)
        check(abs(a["costs"] + b["costs"] - 1) < 0.02 and 0 < a["share"] < b["share"], m)
        reaches = "One plan for 2 models reaches %.1f %%" % (100 * m["of_bound"])
        within = "each within %.*f ms" % (3 if a["bound_ms"] < 1 else 1, a["bound_ms"])
        for command in (["status"], ["plan", "explain", "--model", "a"]):
            text = " ".join(d.pipectl(*command, as_json=False).split())
            for words in (reaches, "All rates can be kept. All deadlines can be kept.", "20.0 frames/s, " + within):
                check(words in text, command, words, text)
        check("when the daemon adapted it (cause models)" in text and "all models limit the plan by" in text, text)
        equal(d.pipectl("plan", "explain", "--model", "b")["mix"]["model"], "b")
        check("one plan: %.1f %%" % (100 * m["of_bound"]) in d.pipectl("top", "--once", as_json=False), "top")
        page = os.path.join(d.temp, "report.html")
        d.pipectl("report", "-o", page, "--seconds", "0.1")
        row, _ = Page(page).tables["By one plan for all models"]
        equal((row["model"], row["planned, frames/s"], row["each within, ms"]), ("a", "20.0", "%.1f" % a["bound_ms"]))
        metrics = Metrics(d.call("Metrics")["text"])
        check(abs(metrics.one("piped_mix_of_bound") - m["of_bound"]) < 1e-9, metrics.text)
        for name in ("of_wishes", "fairness"):
            check(abs(metrics.one("piped_mix_" + name) - m[name]) < 1e-9, name, metrics.text)
        check(abs(metrics.one("piped_planned_fps", model="a") - a["rate"]) < 1e-9 and abs(a["rate"] - 20) < 0.2, metrics.text)
        equal(metrics.rows("piped_response_bound_seconds", model="b"), [])
        check(abs(metrics.one("piped_response_bound_seconds", model="a") - a["bound_ms"] / 1000) < 1e-9, metrics.text)
        check(abs(metrics.one("piped_planned_share", model="b") - b["share"]) < 1e-9, metrics.text)
        d.pipectl("models", "set", "a", "--rate", "0", "--deadline", "0")
        check(d.wait_until(lambda: d.status()["mix"] is None), "the mix stays")
        equal(d.pipectl("plan", "explain", "--model", "a")["mix"], None)
        equal(Metrics(d.call("Metrics")["text"]).rows("piped_mix_of_bound"), [])


def come_and_go():
    """Models of all classes come and go while others serve, a hundred times."""
    with Daemon(models={"a": DIGITS}) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, model="a", inline=True)
        for i in range(100):
            d.call("Load", {"name": "b", "path": DIGITS, "class": i % 8, "rate": 10, "deadline_ms": 20})
            s.submit(bytes(s.input_bytes))
            infer(d, "b")
            d.call("SetWishes", {"model": "b", "max_share": 0.01 + i / 200, "weight": 1 + i})
            d.call("Unload", {"name": "b"})
            equal(s.result().status, "ok")
        equal(json.loads(json.dumps(wishes(d, "a"))), NONE)


main([configured_and_set, refused_with_the_key, kept_over_restarts, late_frames_are_counted, who_goes_first_goes_first,
      planned_together, told_where_people_look, come_and_go])
