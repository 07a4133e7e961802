#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus as the judge: promtool checks the names and the alert rules; every metric that the dashboard and the rules
name is one that a daemon prints; a real Prometheus scrapes a daemon and answers every question of both."""
import bisect
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

import pyclient
from daemon import DIGITS, ROOT, Daemon, check, equal, main
from metrics_text import Metrics
from prometheus import Prometheus, installed
from test_sensors import FILES, RAPL, Tree, started, until

RULES = os.path.join(ROOT, "etc", "prometheus", "piped-rules.yml")
DASHBOARD = os.path.join(ROOT, "etc", "grafana", "piped.json")
MONITORING = os.path.join(ROOT, "docs", "monitoring.md")
# what Grafana puts in place of its variables
VARIABLES = (("$__rate_interval", "20s"), ("$instance", ".*"), ("$model", ".*"))
# metrics of which a daemon of one model, without boards and large images, prints no sample
EMPTY = ("piped_board_up", "piped_route_frames_total", "piped_frame_preparing_seconds", "piped_planned_fps")
QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def promtool(*args, stdin=None):
    r = subprocess.run(["promtool", *args], input=stdin, capture_output=True, text=True, timeout=120, check=False)
    equal((r.returncode, r.stderr.replace("\n", "")), (0, ""), " ".join(args) + "\n" + r.stdout)
    return r.stdout


def need_promtool():
    return None if shutil.which("promtool") else "promtool is not installed"


def panels():
    """Those of the dashboard that show something."""
    return [p for p in json.loads(text_of(DASHBOARD))["panels"] if p["type"] != "row"]


def of_dashboard():
    """[(where, expression)] as Prometheus gets them."""
    dashboard = json.loads(text_of(DASHBOARD))
    found = [(p["title"], t["expr"]) for p in panels() for t in p["targets"]]
    found += [(a["name"], a["expr"]) for a in dashboard["annotations"]["list"]]
    for variable, value in VARIABLES:
        found = [(where, e.replace(variable, value)) for where, e in found]
    none = [e for _, e in found if "$" in e]
    equal(none, [], "unknown variables")
    return found


def of_rules():
    """[(alert, expression)]; each expr is one line, or an indented block after "|"."""
    return re.findall(r"- alert: (\w+)\n +expr: ((?:\|\n(?: {10}.*\n)+)|.*\n)", text_of(RULES))


def of_page():
    """The expressions of docs/metrics.md and docs/monitoring.md."""
    pages = text_of(os.path.join(ROOT, "docs", "metrics.md")) + text_of(MONITORING)
    return re.findall(r"^((?:histogram_quantile\(|1 - sum ).*)$", pages, re.M)


def scraped_with_sensors():
    """What a daemon prints of which every sensor can be read, after frames."""
    with Tree(dict(FILES, **{"proc/pressure/memory": FILES["proc/pressure/cpu"]})) as t, started(t) as d:
        d.pipectl("bench", "--frames", "20")
        t.put(RAPL + "energy_uj", "12000000")
        until(d, "the energy of a frame", lambda s: s["energy"]["joules_per_frame"] is not None)
        return Metrics(d.call("Metrics")["text"])


def names_follow_the_conventions():
    missing = need_promtool()
    if missing:
        return missing
    text = scraped_with_sensors().text
    equal(promtool("check", "metrics", stdin=text), "")
    bad = subprocess.run(["promtool", "check", "metrics"], input=text.replace("piped_frames_admitted_total", "piped_frames"),
                         capture_output=True, text=True, timeout=60, check=False)
    check(bad.returncode != 0, "promtool finds nothing wrong with a counter without _total")
    return None


def dashboard_and_rules_name_real_metrics():
    m = scraped_with_sensors()
    wanted = [(where, e) for where, e in of_dashboard() + of_rules()] + [("the pages", e) for e in of_page()]
    check(len(of_rules()) == text_of(RULES).count("- alert:") > 10 and len(of_dashboard()) > 30 and of_page(), wanted)
    wrong = []
    for where, expression in wanted:
        names = re.findall(r"\b(piped_\w+)(?:\{([^}]*)\})?", expression)
        for name, selector in names:
            family = m.family(name)
            if not family:
                wrong.append("%s: no metric %s" % (where, name))
                continue
            labels = {label for (n, at), _ in m.samples.items() if m.family(n) == family for label, _ in at}
            wrong += ["%s: %s has no label %s" % (where, name, label) for label in re.findall(r"(\w+)[=!]", selector)
                      if label not in labels | {"instance"} and family not in EMPTY]
            wrong += ["%s: %s is never %s" % (where, name, value)
                      for label, values in re.findall(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"', selector)
                      for value in values.split("|")
                      if label not in ("model", "instance") and not m.rows(name, **{label: value})]
        if not names and where != "PipedDown":
            wrong.append("%s: no metric of piped" % where)
    equal(wrong, [])


def labels_have_few_values():
    """Whoever connects, and whatever it calls itself, adds no rows."""
    with Daemon() as d:
        def rows():
            return set(Metrics(d.call("Metrics")["text"]).samples)

        before = rows()
        for i in range(5):
            with pyclient.Connection(d.frames_path) as c:
                for k in range(1, 4):
                    s = pyclient.Stream(c, k + 10 * i, priority=k % 3, inline=True)
                    s.infer(b"\0" * s.input_bytes)
        equal(rows() - before, set())


def rules_are_good():
    missing = need_promtool()
    if missing:
        return missing
    check("%d rules found" % len(of_rules()) in promtool("check", "rules", RULES))
    promtool("test", "rules", os.path.join(ROOT, "tests", "system", "rules_test.yml"))
    tested = set(re.findall(r"alertname: (\w+)\n +exp_alerts", text_of(os.path.join(ROOT, "tests", "system", "rules_test.yml"))))
    equal({name for name, _ in of_rules()} - tested, set(), "alerts that no test raises")
    return None


def the_dashboard_fits_its_grid():
    dashboard = json.loads(text_of(DASHBOARD))
    everything = dashboard["panels"]
    equal(len({p["id"] for p in everything}), len(everything))
    taken = {}
    for p in everything:
        at = p["gridPos"]
        check(at["x"] + at["w"] <= 24, p["title"])
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                check((x, y) not in taken, p["title"], "is over", taken.get((x, y)))
                taken[x, y] = p["title"]
    equal((dashboard["uid"], dashboard["id"]), ("piped", None))
    for p in panels():
        equal({t["datasource"]["uid"] for t in p["targets"]}, {"${datasource}"}, p["title"])
        equal(len({t["refId"] for t in p["targets"]}), len(p["targets"]), p["title"])
    names = [v["name"] for v in dashboard["templating"]["list"]]
    equal(names, ["datasource", "instance", "model"])


def frames(d, count):
    """Return: the sorted times of so many frames, arrival to end, in ns."""
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        data = b"\0" * s.input_bytes
        return sorted(r.queue_ns + r.service_ns for r in (s.infer(data) for _ in range(count)))


def a_real_prometheus_reads_them():
    """Its quantiles are those of `pipectl status` but for the width of a bucket."""
    if not installed():
        return "prometheus is not installed"
    with Daemon(models={"a": DIGITS}) as d:
        times = frames(d, 900)  # fewer than `pipectl status` computes its quantiles from
        with Prometheus(lambda: d.call("Metrics")["text"], [RULES]) as p:
            p.until('piped_frames_answered_total{status="ok"} == 900')
            latency = d.pipectl("status")["models"][0]["latency_ms"]
            bounds = [b for b, _ in Metrics(d.call("Metrics")["text"]).buckets("piped_frame_latency_seconds", model="a")]
            for key, quantile in QUANTILES:
                (labels, found), = p.query("histogram_quantile(%g, piped_frame_latency_seconds_bucket)" % quantile)
                equal(labels["model"], "a")
                rank = min(int(quantile * (len(times) - 1) + 0.5), len(times) - 1)
                check(abs(latency[key] * 1e6 / times[rank] - 1) < 1e-6, key, latency[key], times[rank])
                near = times[max(rank - 1, 0)], times[min(rank + 1, len(times) - 1)]
                low, high = (bisect.bisect_left(bounds, t) for t in near)
                check((bounds[low - 1] if low else 0) <= found * 1e9 * 1.000001 and found * 1e9 <= bounds[high] * 1.000001,
                      key, found, "is not in the bucket of", near)
            (_, total), = p.query("piped_frame_latency_seconds_sum")
            equal(round(total * 1e9 / sum(times), 9), 1)
            rules = [r for group in p.get("rules")["groups"] for r in group["rules"]]
            equal(len(rules), len(of_rules()))
            unhealthy = [(r["name"], r.get("lastError")) for r in rules if r["health"] == "err"]
            equal(unhealthy, [])
            equal([r["name"] for r in rules if r["state"] == "firing"], [])
            (_, up), = p.query('up{job="piped"}')
            equal(up, 1)
    return None


def the_dashboard_has_answers():
    """Each of its questions is understood, and has an answer if there can be one."""
    if not installed():
        return "prometheus is not installed"
    with Tree(FILES) as t, started(t) as d, Prometheus(lambda: d.call("Metrics")["text"]) as p:
        p.until("piped_build_info")
        for _ in range(3):
            frames(d, 50)
            p.until('increase(piped_frames_answered_total{status="ok"}[20s]) > 0')
        empty = sorted({title for title, e in of_dashboard() if not p.query(e)})
        filled = {title for title, e in of_dashboard() if p.query(e)}
        only_then = {"Frames without a result, by reason", "Events of plans", "restart", "plan"}
        only_then |= {"Other boards", "Energy a frame", "One plan for all"}
        equal([title for title in empty if title not in filled | only_then], [])
        variables = json.loads(text_of(DASHBOARD))["templating"]["list"][1:]
        for v in variables:
            query, label = re.fullmatch(r"label_values\((.*), (\w+)\)", v["query"]["query"]).groups()
            for variable, value in VARIABLES:
                query = query.replace(variable, value)
            check(p.get("label/%s/values" % label, **{"match[]": query}), v["name"])
    return None


def the_units_of_the_page_are_good():
    """docs/monitoring.md: the units that write a file for node_exporter."""
    blocks = dict(re.findall(r"^```ini\n# /etc/systemd/system/(\S+)\n(.*?)^```", text_of(MONITORING), re.M | re.S))
    equal(set(blocks), {"piped-metrics.service", "piped-metrics.timer"})
    command = re.search(r"^ExecStart=/bin/sh -c '(.*)'$", blocks["piped-metrics.service"], re.M).group(1)
    folder = tempfile.mkdtemp(prefix="piped-test-")
    try:
        with Daemon() as d:
            command = command.replace("/var/lib/prometheus/node-exporter", folder).replace(
                "pipectl ", "%s --socket %s " % (os.environ.get("PIPECTL_EXE", os.path.join(
                    os.environ.get("PIPED_BUILD", os.path.join(ROOT, "build")), "apps", "pipectl", "pipectl")), d.control_path))
            subprocess.run(["/bin/sh", "-c", command], check=True, timeout=60)
            equal(os.listdir(folder), ["piped.prom"])
            check(Metrics(text_of(os.path.join(folder, "piped.prom"))).one("piped_degraded") == 0)
        r = subprocess.run(["/bin/sh", "-c", command], check=False, timeout=60, capture_output=True)
        check(r.returncode != 0 and glob.glob(os.path.join(folder, "*")) == [], "a stale file stays", os.listdir(folder))
        if not shutil.which("systemd-analyze"):
            return None
        for name, text in blocks.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        r = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.join(folder, "piped-metrics.timer")],
                           capture_output=True, text=True, timeout=60, check=False)
        check("piped-metrics" not in r.stderr, r.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


if __name__ == "__main__":
    main([names_follow_the_conventions, dashboard_and_rules_name_real_metrics, labels_have_few_values, rules_are_good,
          the_dashboard_fits_its_grid, a_real_prometheus_reads_them, the_dashboard_has_answers,
          the_units_of_the_page_are_good])
