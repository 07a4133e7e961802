#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl trace with the real daemon: files are read by tests/system/trace_file.py, and compared with what clients and the
daemon's own clocks say."""
import collections
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

from daemon import DIGITS, HEARTBEAT, LIMIT_S, PIPECTL, Daemon, VarlinkError, check, equal, main
from searches import QUICK
import tiny_onnx
from trace_file import check_trace, read_perfetto, parts_of, units_of

UNTIL_ENDED = "3600"  # seconds: until it is interrupted


class Recording:
    """`pipectl trace` beside a test; interrupt() is Ctrl-C."""

    def __init__(self, d, name, *args, seconds=UNTIL_ENDED):
        self.d = d
        self.path = os.path.join(d.temp, name)
        self.process = subprocess.Popen([PIPECTL, "--socket", d.control_path, "--json", "trace", "--seconds", seconds, "-o",
                                         self.path, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(d.wait_until(lambda: self.process.poll() is not None or os.path.exists(self.path)), "it does not begin")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self, expect=0):
        out, error = self.process.communicate(timeout=LIMIT_S)
        equal(self.process.returncode, expect, out + error)
        return json.loads(out) if out else error

    def stop(self):
        """Return: (the trace, pipectl's summary)."""
        self.interrupt()
        summary = self.end()
        equal(summary["not_understood"], 0)
        equal(os.path.getsize(self.path), summary["bytes"])
        return read_perfetto(self.path), summary


def start_bench(d, *args):
    return subprocess.Popen([PIPECTL, "--json", "bench", *args], stdout=subprocess.PIPE, text=True,
                            env=dict(os.environ, PIPED_RUNTIME_DIR=d.runtime_dir))


def end_bench(process):
    out, _ = process.communicate(timeout=LIMIT_S)
    equal(process.returncode, 0, out)
    report = json.loads(out)
    equal((report["lost"], report["reordered"], report["duplicated"], report["errors"]), (0, 0, 0, {}))
    return report


def two_eps():
    cpus = sorted(os.sched_getaffinity(0))
    return {"eps": [{"name": "big", "cpus": [cpus[0]]}, {"name": "little", "cpus": [cpus[-1]]}]}


def plans_of(trace, model, first):
    """{epoch: plan}: the first one, and what instants tell."""
    plans = {1: first}
    for i in trace.instants(model):
        if i.args["event"] == "plan":
            plans[int(i.args["epoch"])] = i.args["plan"]
    return plans


def check_answers(trace, models, flows, plans, sent):
    """Every admitted frame was answered once, and its arrow leads through one slice of every stage of its plan."""
    seen, answered = set(), 0
    for lane in trace.lanes():
        for s in lane.slices:
            if s.depth != 0:
                continue
            equal((s.name, s.args["status"]), ("frame", "ok"))
            answered += 1
            parts = parts_of(lane, s)
            inside = next(p for p in parts if p.name == "in the pipeline")
            turn = next(p for p in parts if p.name == "waits for its turn")
            equal(inside.flows, turn.flows)
            stages = flows[s.args["model"]][inside.flows[0]]
            wanted = plans[s.args["model"]][int(s.args["epoch"])].count("|") + 1
            equal(len(stages), wanted, "stages of frame %s" % (s.args,))
            check(inside.begin <= stages[0][0] and stages[-1][1] <= inside.end, "stages outside of the pipeline", s)
            equal({stage[3].args["frame"] for stage in stages}, {s.args["frame"]})
            seen.add((s.args["model"], inside.flows[0]))
    equal(answered, sent)
    equal(len(seen), sent, "a frame of a pipeline was answered twice")
    for name, frames in trace.streams().items():
        equal([f.args["frame"] for f in frames], list(range(1, len(frames) + 1)), name)


def everything_at_once():
    """Two models, several clients, plan switches and a search in the middle."""
    with Daemon(models={"a": DIGITS, "b": DIGITS}, config={**two_eps(), **QUICK}, env=HEARTBEAT) as d:
        last = d.status()["models"][0]["units"] - 1
        before = {m: d.call("GetPlan", {"model": m})["plan"] for m in "ab"}
        r = Recording(d, "t.pftrace", "--ring-kib", "1024")
        clients = [start_bench(d, "--model", "a", "--clients", "2", "--frames", "1500"),
                   start_bench(d, "--model", "b", "--frames", "1000", "--policy", "block")]
        for plan in ("0-5@big|6-%d@little", "0-%d@little", "0-2@little|3-7@big|8-%d@little"):
            d.call("SetPlan", {"model": "a", "plan": plan % last})
            equal(d.pipectl("bench", "--model", "a", "--frames", "100")["answered"], 100)
        d.pipectl("retune", "--model", "b", "--trials", "3", "--algorithm", "shisha")
        sent = 300 + sum(end_bench(c)["answered"] for c in clients)
        trace, summary = r.stop()
        equal(sent, 2800)
        equal((summary["lost"]["records"], summary["lost"]["events"], summary["lost"]["teams"]), (0, 0, 0))
        equal(summary["ended"], "its client ended it")
        check(summary["lost"]["memory_bytes"] <= (66 << 20), "more memory than is promised", summary)
        equal(summary["streams"], 6)
        equal(summary["answers"], sent)
        flows = check_trace(trace, "ab")
        check_answers(trace, "ab", flows, {m: plans_of(trace, m, before[m]) for m in "ab"}, sent)
        events = collections.Counter((i.args["model"], i.args["event"]) for i in trace.instants() if "model" in i.args)
        check(events["a", "plan"] >= 3 and events["a", "history"] >= 3, "switches are missing", events)
        check(events["b", "retune"] == 1 and events["b", "trial"] >= 1 and events["b", "history"] >= 1,
              "the search is missing", events)
        teams = {" ".join(t.name.split()[:4]) for t in trace.teams("a")}
        check({"epoch %d stage %d" % (e, s) for e, stages in ((2, 2), (3, 1), (4, 3)) for s in range(stages)} <= teams,
              "teams of former plans are missing", teams)
        check("frames in the pipeline" in trace.counters("model a"), "no queue lengths", trace.counters("model a"))


def metrics(d, name):
    """{(model, stage): [values]} of a metric of teams."""
    found = collections.defaultdict(list)
    for line in d.call("Metrics")["text"].splitlines():
        m = re.match(r'piped_%s\{model="(\w+)",stage="(\d+)",ep="\w+",team="\d+"\} (\S+)' % name, line)
        if m:
            found[m[1], int(m[2])].append(float(m[3]))
    return found


def averages(samples, allow, follows=False):
    """Winsorised mean and EWMA as pipeline/stats.h defines them; service times follow a change that two runs agree on."""
    ewma = mean = before = None
    for n, x in enumerate(samples, 1):
        if follows and before is not None:
            least, most = min(before, x), max(before, x)
            if least > 1.5 * ewma + allow:
                ewma = least
            elif ewma > 1.5 * most + allow:
                ewma = most
        before = x
        if n == 1:
            ewma = mean = x
            continue
        limit = x + max(x, allow)
        if n == 2 and mean > limit:
            ewma = mean = limit
        x = min(x, ewma + max(ewma, allow))
        mean += (x - mean) / n
        ewma += (x - ewma) / 8
    return mean, ewma


def near(got, wanted, what):
    check(abs(got - wanted) <= 0.02 * wanted + 1e-9, what, got, "of the trace, and of the daemon", wanted)


def sums_agree_with_the_clocks():
    with Daemon(models={"a": DIGITS}, config=two_eps(), env=HEARTBEAT) as d:
        last = d.status()["models"][0]["units"] - 1
        r = Recording(d, "t.pftrace", "--ring-kib", "16384")
        d.call("SetPlan", {"plan": "0-5@big|6-%d@little" % last})  # new clocks, all of them in the trace
        equal(d.pipectl("bench", "--frames", "300")["answered"], 300)
        # a frame is answered a moment before it is counted
        check(d.wait_until(lambda: {n[0] for n in metrics(d, "team_frames_total").values()} == {300.0}), "not counted")
        busy, service = metrics(d, "team_busy_seconds_total"), metrics(d, "team_service_seconds")
        units = {u["unit"]: u for u in d.call("Units")["units"]}
        trace, _ = r.stop()
        check_trace(trace, "a")
        waits = []
        for team in trace.teams("a"):
            if not team.name.startswith("epoch 2 "):
                continue
            stage = int(team.name.split()[3])
            frames = [s for s in team.slices if s.depth == 0 and s.name == "frame"]
            equal(len(frames), 300)
            near(sum(f.end - f.begin for f in frames) / 1e9, busy["a", stage][0], "busy seconds of stage %d" % stage)
            near(averages([f.end - f.begin for f in frames], 4e6, follows=True)[1] / 1e9, service["a", stage][0], "service time")
            times = collections.defaultdict(list)
            for u in (u for f in frames for u in units_of(team, f)):
                times[int(u.name.split()[0])].append(u.end - u.begin)
            for unit, samples in times.items():
                equal(len(samples), units[unit]["count"])
                mean = averages(samples, 1e3)[0]
                check(abs(mean - units[unit]["time_ms"] * 1e6) <= max(0.02 * mean, 2), "unit", unit, mean, units[unit])
            waits += [s for s in team.slices if s.name == "waits for a frame"]
        check(waits, "no team waited")  # that of the slower stage need not


def models_come_and_go():
    with Daemon(models={"a": DIGITS}, config=two_eps(), env=HEARTBEAT) as d:
        r = Recording(d, "t.pftrace")
        d.pipectl("bench", "--frames", "50", "--model", "a")
        for _ in range(2):  # two pipelines of one model
            d.pipectl("models", "load", "new", DIGITS)
            d.pipectl("bench", "--frames", "100", "--model", "new")
            d.pipectl("models", "unload", "new")
        trace, _ = r.stop()
        flows = check_trace(trace, ("a", "new"))
        equal(len(flows["new"]), 200)
        equal(len(flows["a"]), 50)
        loads = {i.args["event"] for i in trace.instants("new")}
        check({"model_loaded", "model_unloaded"} <= loads, "events of models are missing", loads)


def send_call(v, parameters, fd, **flags):
    message = {"method": "io.piped.Trace", "parameters": parameters, "more": True, **flags}
    socket.send_fds(v.sock, [json.dumps(message).encode() + b"\0"], [fd])


def refused(d, error, parameters, fd=None, **flags):
    mine, other = socket.socketpair()
    with d.connect() as v, mine, other:
        send_call(v, parameters, other.fileno() if fd is None else fd, **flags)
        try:
            got = v.receive()
        except VarlinkError as e:
            check(e.error.endswith(error), parameters, e)
            return e
    check(False, parameters, "was not refused", got)


def bad_calls_are_refused():
    with Daemon(env=HEARTBEAT) as d:
        for seconds in (0, -1, 3601, 1e300, "1", True, [], {}):
            equal(refused(d, "InvalidParameter", {"seconds": seconds}).parameters["parameter"], "seconds")
        for kib in (0, 1, 2, 3, 5, -4, 32768, 1 << 62, 256.5, "256"):
            equal(refused(d, "InvalidParameter", {"ring_kib": kib}).parameters["parameter"], "ring_kib")
        refused(d, "InvalidParameter", {"rings": 1})
        refused(d, "ExpectedMore", {}, more=False)
        with d.connect() as v:  # without a socket
            v.send("io.piped.Trace", more=True)
            try:
                check(False, v.receive())
            except VarlinkError as e:
                check("socket" in e.parameters["why"], e)
        sockets = [socket.socket(), socket.socket(socket.AF_UNIX), *socket.socketpair(type=socket.SOCK_DGRAM)]
        with open(os.devnull, "wb") as f:
            for fd in [f.fileno()] + [s.fileno() for s in sockets]:
                check("socket" in refused(d, "Unsupported", {}, fd).parameters["why"], "descriptor", fd)
        for s in sockets:
            s.close()
        for args in (("--seconds", "0", "-o", "x"), ("--seconds", "nan", "-o", "x"), ("--ring-kib", "5", "-o", "x"), (),
                     ("-o",), ("-o", "x", "y")):
            d.pipectl("trace", *args, expect=2, as_json=False)
        d.pipectl("trace", "-o", os.path.join(d.temp, "no", "folder"), "--seconds", "0.1", expect=1, as_json=False)


def one_at_a_time():
    with Daemon(env=HEARTBEAT) as d:
        r = Recording(d, "t.pftrace")
        why = refused(d, "Busy", {}).parameters["why"]
        check("pid %d (user %d) traces already" % (r.process.pid, os.getuid()) in why, why)
        kept = os.path.join(d.temp, "kept")
        with open(kept, "w", encoding="utf-8") as f:
            f.write("mine")
        d.pipectl("trace", "-o", kept, expect=1, as_json=False)
        with open(kept, encoding="utf-8") as f:
            equal(f.read(), "mine", "a refused trace must not touch the file")
        r.stop()
        trace, _ = Recording(d, "next.pftrace").stop()
        check_trace(trace, ("digits",))


def a_killed_client_ends_its_trace():
    with Daemon(env=HEARTBEAT, args=["-v"]) as d:
        client = start_bench(d, "--frames", "3000")
        r = Recording(d, "t.pftrace")
        r.process.kill()
        r.process.communicate()
        check(d.wait_until(lambda: "the trace of pid %d" % r.process.pid in d.log()), "the trace goes on\n" + d.log())
        trace, _ = Recording(d, "next.pftrace").stop()
        check_trace(trace, ("digits",))
        end_bench(client)


def a_client_that_does_not_read_is_left():
    """Frames go on, and what waits for it is limited."""
    with Daemon(models={"a": DIGITS}, config=two_eps(), env=HEARTBEAT, args=["-v"]) as d:
        mine, other = socket.socketpair()
        with d.connect() as v, mine:
            with other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # as little as there is
                send_call(v, {"seconds": 3600, "ring_kib": 16384}, other.fileno())
            check("begin" in v.receive()["batch"], "it does not begin")
            # more than the socket takes
            equal(d.pipectl("bench", "--frames", "1000")["answered"], 1000)
            check(d.wait_until(lambda: "it does not read its trace" in d.log()), "it is waited for\n" + d.log())
            try:
                while v.receive():
                    pass
            except EOFError:
                pass
        trace, _ = Recording(d, "next.pftrace").stop()
        check_trace(trace, "a")


def a_closed_socket_ends_the_trace():
    with Daemon(env=HEARTBEAT) as d:
        mine, other = socket.socketpair()
        with d.connect() as v:
            with other:
                send_call(v, {}, other.fileno())
            check("begin" in v.receive()["batch"], "it does not begin")
            mine.close()
            d.pipectl("bench", "--frames", "10")
            while "end" not in (batch := v.receive()["batch"]):
                pass
        equal(batch["end"]["why"], "its client closed the socket for records")


def lost_records_are_counted_and_shown():
    """A ring with room for a single record: the next frame comes before the daemon's next look."""
    frames, units = 300, 600
    with tempfile.TemporaryDirectory() as folder, Daemon(config=two_eps(), env=HEARTBEAT) as d:
        tiny_onnx.write(folder + "/long.onnx", [("conv", 1, 1), ("relu",)] * units, channels=1, size=2)
        d.pipectl("models", "load", "a", folder + "/long.onnx")
        last = d.status()["models"][1]["units"] - 1
        check(4096 // 2 < 4 * last < 4000, "as many units as it should have", last)
        d.call("SetPlan", {"model": "a", "plan": "0-%d@big" % last})
        r = Recording(d, "t.pftrace", "--ring-kib", "4")
        equal(d.pipectl("bench", "--model", "a", "--frames", str(frames))["answered"], frames)
        # the gap is in the next record, for which there is room once the daemon has looked
        d.drain_notify()
        for _ in range(4):
            d.wait_notify(lambda m: m.get("WATCHDOG") == "1")
            frames += d.pipectl("bench", "--model", "a", "--frames", "1")["answered"]
        trace, summary = r.stop()
        check(summary["lost"]["records"] > 0, "nothing was lost", summary)
        check(summary["lost"]["memory_bytes"] < (4 << 20), "more memory than promised", summary["lost"])
        check_trace(trace, "a")
        got = sum(s.depth == 0 and s.name == "frame" for t in trace.teams("a") for s in t.slices)
        equal(got + summary["lost"]["records"], frames)
        check(any(s.name == "records lost" for t in trace.teams("a") for s in t.slices), "the gap is not shown")


def the_daemon_stops_in_the_middle():
    with Daemon(env=HEARTBEAT) as d:
        r = Recording(d, "t.pftrace")
        d.pipectl("bench", "--frames", "100")
        d.stop()
        equal(r.end()["ended"], "the daemon is stopping")
        equal(len(check_trace(read_perfetto(r.path), ("digits",))["digits"]), 100)


def a_daemon_that_dies_leaves_a_file():
    with Daemon(env=HEARTBEAT) as d:
        r = Recording(d, "t.pftrace")
        d.pipectl("bench", "--frames", "100")
        d.kill()
        out, error = r.process.communicate(timeout=LIMIT_S)
        equal(r.process.returncode, 3, out + error)
        check("has what came until then" in error, error)
        check_trace(read_perfetto(r.path), ("digits",))


def it_ends_by_itself():
    with Daemon(env=HEARTBEAT) as d:
        began = time.monotonic()
        r = Recording(d, "t.pftrace", seconds="0.2")
        summary = r.end()
        equal(summary["ended"], "its time is over")
        check(0.2 <= summary["seconds"] <= time.monotonic() - began, summary)
        check_trace(read_perfetto(r.path), ("digits",))
        # the text for people
        text = d.pipectl("trace", "--seconds", "0.01", "--output", r.path, as_json=False)
        check(re.match(re.escape(r.path) + r": 0\.\d MB, 0 frames on \d teams?, ", text) and "ui.perfetto.dev" in text, text)


CASES = (everything_at_once, sums_agree_with_the_clocks, models_come_and_go, bad_calls_are_refused,
         one_at_a_time, a_killed_client_ends_its_trace, a_client_that_does_not_read_is_left, a_closed_socket_ends_the_trace,
         lost_records_are_counted_and_shown,
         the_daemon_stops_in_the_middle, a_daemon_that_dies_leaves_a_file, it_ends_by_itself)

if __name__ == "__main__":
    main(CASES)
