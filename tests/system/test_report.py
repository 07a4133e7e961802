#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl report and pipesim report: the figures of the page against those of other commands, odd names, and the page in a
headless Chromium. PIPED_TEST_SCREENSHOTS=FOLDER keeps pictures of it."""
import base64
import contextlib
import json
import os
import socket
import subprocess
import threading

from adapting import TOP, Tree
from browser import Browser, chromium
from daemon import BUILD, DIGITS, HEARTBEAT, PIPECTL, Daemon, Varlink, check, equal, main
from page_reader import Page

PIPESIM = os.path.join(BUILD, "tuner", "pipesim")
SHOTS = os.environ.get("PIPED_TEST_SCREENSHOTS")
HOSTILE = "</script ><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\">&lt;'\\\n\x1b]0;"
LOOKS = (("light", 1100, 900, False), ("dark", 1100, 900, True), ("phone", 390, 800, False), ("phone-dark", 390, 800, True))


def report(d, *args, seconds="0.3"):
    """Return: the page, and whether this build draws charts."""
    path = os.path.join(d.temp, "report.html")
    told = d.pipectl("report", "-o", path, "--seconds", seconds, *args)
    equal(told["file"], path)
    return Page(path), told["charts"]


def shown(value, decimals, scale=1):
    return "\u2013" if value is None else "%.*f" % (decimals, value * scale)


def close(a, b, what, tolerance=1e-6):
    check(abs(a - b) <= tolerance * max(1, abs(a), abs(b)), what, a, b)


def what_others_say(d):
    """What does not change by itself once the daemon has learned from the last frames."""
    status = d.pipectl("status")["models"]
    for m in status:
        m.pop("fps")
    return status, [d.pipectl("units", "--model", m["name"]) for m in status]


def quiet_report(d):
    """A page of a time in which nothing changed, and what the other commands say of it."""
    pages = []

    def take():
        before = what_others_say(d)
        pages.append(report(d)[0])
        return before == what_others_say(d) and before

    found = d.wait_until(take)
    check(found, "the figures never come to rest")
    return pages[-1], found


def figures_are_those_of_other_commands():
    with Daemon(models={"digits": DIGITS, "other": DIGITS}, env=HEARTBEAT) as d:
        d.pipectl("plan", "set", "0-3@big|4-11@big", "--model", "digits", expect=None)
        d.pipectl("bench", "--model", "digits", "--frames", "300")
        page, (status, units) = quiet_report(d)
        page.needs_nothing()
        rows = page.tables["As pipectl status tells them, at the end"]
        equal([r["model"] for r in rows], ["digits", "other"])
        for m, r in zip(status, rows):
            for key, heading in (("p50", "p50, ms"), ("p95", "p95, ms"), ("p99", "p99, ms"), ("max", "most, ms")):
                answered = m["frames"]["answered"] > 0
                equal(r[heading], shown(m["latency_ms"][key], 2) if answered else "\u2013", (m["name"], key))
            for key in ("admitted", "answered", "dropped", "failed"):
                equal(r[key], str(m["frames"][key]), (m["name"], key))
        equal(rows[0]["answered"], "300")
        check(status[0]["plan"] in page.text and status[0]["stages"][0]["service_ms"] is not None, status[0])
        # The tables of both models have the same captions, and the second is "other": the first stands in its charts.
        chart = page.charts["stages-0"]
        equal([s["values"] for s in chart["series"]],
              [[s[key] for s in status[0]["stages"]] for key in ("expected_ms", "service_ms")])
        equal(page.charts["units-0"]["series"][0]["values"], [u["ewma_ms"] for u in units[0]])
        last = [r for c, rows in page.tables.items() if c.startswith("Units: ") for r in rows]
        for u, r in zip(units[1], last):
            equal((r["unit"], r["name"], r["ms"], r["share, %"], r["primitive"]),
                  (str(u["unit"]), u["name"], shown(u["ms"], 4), shown(u["share"], 1, 100), u["primitive"]))
        equal(len(last), 12)
        front = d.pipectl("plan", "front", "--model", "digits")
        equal([p[:2] for p in page.charts["front-0"]["series"][0]["points"]], [[p["fps"], p["latency_ms"]] for p in front])
        events = d.pipectl("history")
        equal([(r["model"], r["cause"], r["why"], r["outcome"], r["plan"]) for r in page.tables["What changed a plan, or was to"]],
              [(e["model"], e["cause"], e["detail"], e["outcome"], e["plan_after"]) for e in events])
        spans_are_the_history(page, events)


def spans_are_the_history(page, events):
    """One span for each plan of a model, from its event to the next one."""
    plans, points = {}, [p for s in page.charts["plans"]["series"] for p in s["points"]]
    for e in events:
        if e["plan_after"] and plans.get(e["model"], [None])[-1] != e["plan_after"]:
            plans.setdefault(e["model"], []).append(e["plan_after"])
    equal({m: [p[3].split(" ")[0] for p in points if p[2] == m] for m in plans}, plans)
    for m in plans:
        mine = [p for p in points if p[2] == m]
        equal([p[1] for p in mine[:-1]] + [0], [p[0] for p in mine[1:]] + [mine[-1][1]], "plans do not follow each other")


def parts_of(chart):
    """What the first model's bar is made of."""
    return {s["name"]: s["values"][0] for s in chart["series"]}


def units_of_one_frame_count():
    """The metrics leave out the first sample of a team, which may still be cut."""
    with Daemon(models={"digits": DIGITS}) as d:
        d.pipectl("bench", "--frames", "1")
        page, _ = report(d)
        m = page.json["report"]["metrics"]["after"]["digits"]
        equal((m["latency"]["frames"], m["units"]["0"]["frames"]), (1, 0))
        parts = parts_of(page.charts["time"])
        close(sum(parts.values()), 1e3 * m["latency"]["sum"], parts, 1e-3)
        units = sum(u["ewma_ms"] for u in d.pipectl("units"))
        check(units > 0)
        close(parts["units of stage 0"], min(units, 1e3 * m["compute"]["sum"]), parts, 1e-3)


def teams_of_a_stage_share_its_units():
    """Each EP of a stage has a row in the status, but a frame goes through one of them."""
    d = Daemon(models={"digits": DIGITS}, config={"eps": [{"name": "a", "cpus": "0"}, {"name": "b", "cpus": "1"}]}, env=HEARTBEAT)
    with d:
        d.pipectl("plan", "set", "0-11@a+b")
        d.pipectl("bench", "--frames", "400")
        page, _ = report(d)
        equal([s["stage"] for s in d.status()["models"][0]["stages"]], [0, 0])
        m = page.json["report"]["metrics"]["after"]["digits"]
        parts = parts_of(page.charts["time"])
        check("units of stage 1" not in parts, parts)
        close(sum(parts.values()), 1e3 * m["latency"]["sum"] / m["latency"]["frames"], parts, 1e-3)


def the_time_of_a_frame_adds_up():
    with Daemon(models={"digits": DIGITS}) as d:
        d.pipectl("bench", "--frames", "400")
        page, _ = report(d)
        m = page.json["report"]["metrics"]["after"]["digits"]
        equal(m["latency"]["frames"], 400)
        chart = page.charts["time"]
        equal(chart["x"]["names"], ["digits"])
        parts = parts_of(chart)
        close(sum(parts.values()), 1e3 * m["latency"]["sum"] / 400, parts, 1e-3)
        close(parts["waits for the first stage"], 1e3 * m["queue"]["sum"] / 400, parts)
        units = sum(1e3 * u["sum"] / u["frames"] for u in m["units"].values())
        close(sum(v for k, v in parts.items() if k.startswith("units of stage")), units, parts)
        for s in page.charts["histogram"]["series"]:
            close(sum(s["values"]), 100, s["name"])
        counts = m["latency"]["count"]
        first = next(i for i, c in enumerate(counts) if c)
        at = page.charts["histogram"]["x"]["names"].index("%.4g" % (1e3 * m["latency"]["le"][first]))
        close(page.charts["histogram"]["series"][0]["values"][at], counts[first] / 4, "the first bucket")


@contextlib.contextmanager
def load(d):
    p = subprocess.Popen([PIPECTL, "--socket", d.control_path, "bench", "--seconds", "600"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    try:
        check(d.wait_until(lambda: d.status()["models"][0]["frames"]["answered"] > 5), "no frames")
        yield
    finally:
        p.kill()
        p.wait()


def curves_over_the_time_watched():
    d = Daemon(models={"digits": DIGITS}, config={"sensors": {"interval_ms": 20}}, env=HEARTBEAT)
    tree = Tree(d.temp)
    tree.policy(1, "scaling_governor", "powersave")
    d.args = ["--sysfs-root", tree.root]
    with d, load(d):
        page, _ = report(d, seconds="1")
        data = page.json["report"]
        moments = data["series"]
        check(len(moments) > 3 and moments[-1]["s"] - moments[0]["s"] >= 1, len(moments))
        rates = page.charts["rates"]["series"][0]["points"]
        answered = [m["models"]["digits"]["answered"] for m in moments]
        times = [m["s"] - moments[0]["s"] for m in moments]
        close(sum(p[1] * (t - s) for p, s, t in zip(rates, times, times[1:])), answered[-1] - answered[0], "frames", 1e-3)
        check(answered[-1] > answered[0], answered)
        equal(data["figures"][0]["p99_ms"], moments[-1]["models"]["digits"]["p99"])
        clocks = {s["name"]: {p[1] for p in s["points"]} for s in page.charts["clocks"]["series"]}
        equal(clocks, {"cpu0": {TOP / 1e6}, "limit of cpu0": {TOP / 1e6}, "cpu1": {TOP / 1e6}, "limit of cpu1": {TOP / 1e6}})
        equal([r["governor"] for r in page.tables["Clocks and governors"]], ["performance", "powersave"])
        equal({p[1] for p in page.charts["heat"]["series"][0]["points"]}, {45})
        found = d.pipectl("doctor", "--seconds", "0.5", expect=None)["findings"]
        check({f["name"] for f in data["findings"]} & {f["name"] for f in found}, data["findings"], found)
        for f in data["findings"]:
            check(f["text"] in page.text and f["advice"] in page.text, f)
        sample = os.path.join(d.temp, "sample.json")
        with open(sample, "w", encoding="utf-8") as f:
            json.dump(data["sample"], f)
        judged = d.pipectl("doctor", "--sample", sample, expect=None)
        for key in ("fps", "p99_ms", "busy"):
            close(judged["figures"][0][key], data["figures"][0][key], "doctor on the page's sample: " + key)
        check("config" not in data["sample"], "the configuration is in the page")


class Renamed:
    """A control socket before a daemon's, on which the model `digits`, its file and its units have a hostile name."""

    def __init__(self, d):
        self.d, self.path = d, os.path.join(d.temp, "renamed.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(sock,), daemon=True).start()

    def answer(self, sock):
        buffer = b""
        with Varlink(self.d.control_path) as v:
            while True:
                while b"\0" not in buffer:
                    data = sock.recv(65536)
                    if not data:
                        return
                    buffer += data
                text, buffer = buffer.split(b"\0", 1)
                call = json.loads(text)
                if "model" in call["parameters"]:
                    equal(call["parameters"]["model"], HOSTILE)
                    call["parameters"]["model"] = "digits"
                sock.sendall(self.renamed(v.call(call["method"], call["parameters"])).encode() + b"\0")

    @staticmethod
    def renamed(reply):
        name = HOSTILE
        if "text" in reply:  # of Metrics
            name = name.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
        text = json.dumps({"parameters": reply}).replace("digits", json.dumps(name)[1:-1])
        return text.replace("/body/", json.dumps(HOSTILE)[1:-1])


def names_are_never_markup():
    with Daemon(models={"digits": DIGITS}) as d:
        d.pipectl("bench", "--frames", "50")
        path = os.path.join(d.temp, "hostile.html")
        r = subprocess.run([PIPECTL, "--socket", Renamed(d).path, "report", "-o", path, "--seconds", "0.3"], check=False,
                           capture_output=True, text=True, timeout=120)
        equal((r.returncode, r.stderr), (0, ""))
        page = Page(path)
        page.needs_nothing()
        equal(page.json["report"]["sample"]["after"]["models"][0]["name"], HOSTILE)
        check(HOSTILE.replace("\x1b", "\ufffd") in page.text, "the name is not shown")
        check("\x1b" not in page.source)
        equal(list(page.json["report"]["metrics"]["after"]), [HOSTILE], "its metrics")
        check(page.charts["histogram"]["series"], "no histogram")
        check("hacked" not in "".join(page.scripts), "a name became a script")
        if chromium():
            with Browser() as b:
                b.open("file://" + path)
                b.wait("document.readyState === 'complete'")
                equal(b.ask("[typeof window.hacked, document.images.length]"), ["undefined", 0])
                check(HOSTILE.split("\\")[0] in b.ask("document.body.innerText"))
                equal(b.console, [])


# Tables that have to be scrolled. Those of a chart's figures, which are closed at first, may.
CUT_OFF = """[...document.querySelectorAll('.wide')].filter(w => !w.closest('figure details') && w.scrollWidth > w.clientWidth)
    .map(w => (w.querySelector('caption') || w).innerText.slice(0, 80) + ' is cut off')"""
# What is wrong on A4 between its margins.
ON_PAPER = """[...document.querySelectorAll('main .wide table')].filter(t => !t.closest('figure')).flatMap(t => {
    const size = e => parseFloat(getComputedStyle(e).fontSize), head = t.querySelector('th'), cell = t.querySelector('td')
    return [t.offsetWidth > document.querySelector('main').clientWidth && 'is wider than the paper',
        cell && size(head) > size(cell) && 'has headings that are larger than its values',
        [...t.querySelectorAll('code')].some(c => c.innerText.length < 12 && c.offsetHeight > 1.8 * 1.4 * size(c)) &&
            'breaks a short plan'].filter(Boolean).map(what => t.caption.innerText + ' ' + what)
})"""


def links_unfold(b):
    """Each link of the contents leads to a section, and unfolds it."""
    names = b.ask("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))")
    equal(sorted(set(names)), sorted(b.ask("[...document.querySelectorAll('details.section')].map(d => d.id)")))
    for name in names:
        b.ask("document.querySelector('nav a[href=\"#%s\"]').click()" % name)
        b.wait("document.getElementById('%s').open" % name)


def look_at(b, path, name, charts):
    """Draws the page in each look. Return: the colours of its background and of a chart in light and dark."""
    colours = {}
    for look, width, height, dark in LOOKS:
        b.look(width, height, dark)
        b.open("file://" + path)
        b.wait("document.readyState === 'complete' && location.pathname === %s" % json.dumps(path))
        equal(b.ask("+document.documentElement.dataset.drawn"), charts)
        links_unfold(b)
        b.ask("document.querySelectorAll('details.fold').forEach(d => { d.open = true; })")
        b.wait("[...document.querySelectorAll('canvas')].every(c => c.clientHeight > 80)")
        equal(b.ask("document.documentElement.scrollWidth <= window.innerWidth"), True, look + " is wider than its window")
        # Every canvas has something on it, and no chart is higher or wider than its place.
        equal(b.ask("""[...document.querySelectorAll('canvas')].filter(c => {
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            return !d.some(v => v) || c.clientWidth > c.parentElement.clientWidth || c.clientHeight < 80;
        }).map(c => c.closest('figure').id)"""), [], look)
        equal(b.ask(CUT_OFF), [], look)
        colours[look] = b.ask("""[getComputedStyle(document.body).backgroundColor,
            Object.values(Chart.instances)[0].options.scales.x.ticks.color]""")
        if SHOTS:
            b.screenshot(os.path.join(SHOTS, "%s-%s.png" % (name, look)))
    check(all(a != z for a, z in zip(colours["light"], colours["dark"])), colours)


def in_a_browser(path, name, charts):
    if not chromium():
        print("chromium is not installed: the page was read, not looked at")
        return
    with Browser() as b:
        look_at(b, path, name, charts)
        b.look(688, 1017, False)
        b.call("Emulation.setEmulatedMedia", media="print")
        equal(b.ask(ON_PAPER), [])
        b.call("Emulation.setEmulatedMedia", media="")
        # On paper it is light, whatever the reader's theme.
        b.look(1100, 900, True)
        b.ask("""window.onbeforeprint = () => {
            window.paper = getComputedStyle(document.documentElement).getPropertyValue('--text')
        }""")
        pdf = base64.b64decode(b.call("Page.printToPDF")["data"])
        check(pdf.startswith(b"%PDF-") and len(pdf) > 20000, len(pdf))
        equal(b.ask("window.paper.trim()"), "#1f2328")
        if SHOTS:
            with open(os.path.join(SHOTS, name + ".pdf"), "wb") as f:
                f.write(pdf)
        equal(b.ask("performance.getEntriesByType('resource').map(e => e.name)"), [], "the page loads something")
        equal(b.console, [])


def it_is_drawn():
    with Daemon(models={"digits": DIGITS, "other": DIGITS}, env=HEARTBEAT) as d, load(d):
        page, charts = report(d, seconds="1")
        check(len(page.charts) >= 8, sorted(page.charts))
        if charts:
            in_a_browser(os.path.join(d.temp, "report.html"), "report", len(page.charts))
        else:
            check("this build has no Chart.js" in page.text and ("details", {"open": None}) in page.tags)


def only_one_model():
    with Daemon(models={"digits": DIGITS, "other": DIGITS}) as d:
        page, _ = report(d, "--model", "other")
        equal([m["name"] for m in page.json["report"]["sample"]["after"]["models"]], ["other"])
        check("Stages, units and plans of other" in page.text and "plans of digits" not in page.text)
        check(("details", {"class": "fold section", "id": "model-0", "open": None}) in page.tags, "the only model is folded")


def what_is_wrong_is_told():
    with Daemon() as d:
        def told(words, *args, expect):
            r = subprocess.run([PIPECTL, "--socket", d.control_path, "report", *args], capture_output=True, text=True, timeout=120,
                               check=False)
            equal(r.returncode, expect, r.stderr)
            check(words in r.stderr, words, r.stderr)

        told("say where to write the page: -o FILE.html", expect=2)
        told("--seconds needs seconds from 0.1 to 3600, not 'x'", "-o", "x.html", "--seconds", "x", expect=2)
        told("cannot write /nowhere/x.html: No such file", "-o", "/nowhere/x.html", "--seconds", "0.1", expect=1)
        told("no-such", "-o", "/nowhere/x.html", "--model", "no-such", expect=1)


def check_pipe_search(page):
    """What its paper shows and holds here: the best cut depends on the governors, the search balances times, hints do not harm."""
    slow_denver, slow_a57 = (s["values"] for s in page.charts["pipe-search-top-ten"]["series"])
    equal((len(slow_denver), len(slow_a57)), (10, 10))
    check(slow_denver.index(min(slow_denver)) != slow_a57.index(min(slow_a57)), slow_denver, slow_a57)
    first = page.charts["pipe-search-balance"]["series"][0]["values"]
    equal(len(first), 6)
    check(all(abs(end - 50) < abs(seed - 50) for seed, end in zip(first[::2], first[1::2])), first)
    rows = [r for caption, table in page.tables.items() if "alpha 10" in caption for r in table]
    fps = {r["search"]: float(r["frames/s"]) for r in rows}
    check(fps["with hints"] > fps["without hints"] > 0 and fps["random"] >= 0.9, rows)
    ranks = [r for caption, table in page.tables.items() if "order of CV" in caption for r in table]
    check(len(ranks) == 6 and all(int(r["rank"]) >= 1 for r in ranks), ranks)


def the_page_of_pipesim():
    with Daemon() as d:  # for its folder
        path = os.path.join(d.temp, "sim.html")
        r = subprocess.run([PIPESIM, "report", path], capture_output=True, text=True, timeout=500, check=False)
        equal((r.returncode, r.stdout), (0, "wrote %s\n" % path), r.stderr)
        page = Page(path)
        page.needs_nothing()
        equal(len(page.charts), 21)
        for name, chart in page.charts.items():
            check(all(s.get("points") or s.get("values") for s in chart["series"]), name)
        links = [a["href"] for tag, a in page.tags if tag == "a" and a.get("href", "").startswith("#")]
        sections = [a["id"] for tag, a in page.tags if tag == "details" and a.get("id")]
        equal((len(links), links), (16, ["#" + name for name in sections]), "the contents")
        front = page.charts["front"]["series"][0]["points"]
        equal(front, sorted(front, key=lambda p: -p[0]), "throughput")
        equal(front, sorted(front, key=lambda p: -p[1]), "a plan of the front is worse in both")
        check(all(0 < v <= 1.0001 for s in page.charts["shisha-quality"]["series"] for v in s["values"] if v is not None))
        check_pipe_search(page)
        if page.scripts:
            in_a_browser(path, "pipesim", 21)
        else:
            check("no Chart.js" in r.stderr, r.stderr)


main([figures_are_those_of_other_commands, the_time_of_a_frame_adds_up, units_of_one_frame_count,
      teams_of_a_stage_share_its_units, curves_over_the_time_watched, names_are_never_markup,
      it_is_drawn, only_one_model, what_is_wrong_is_told, the_page_of_pipesim])
