#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every method of the control socket, its errors, who may call it, and bytes that are no call at all."""
import json
import os
import re
import socket
import struct
import subprocess

import pyclient
from daemon import DIGITS, LIMIT_S, PIPECTL, ROOT, Daemon, Failure, VarlinkError, check, ended, equal, main, until
from surroundings import as_user, needs

STATUS_KEYS = {"state", "version", "uptime_s", "models", "eps", "sensors"}
MODEL_KEYS = {"name", "units", "input", "plan", "epoch", "algorithm", "fps", "latency_ms", "frames", "stages"}
STAGE_KEYS = {"units", "ep", "cpus", "width", "replicas", "service_ms", "expected_ms", "busy", "queue", "batch",
              "frames_at_once"}
EP_KEYS = {"name", "cpus", "kind", "capacity", "policy", "governor", "freq_khz", "max_freq_khz", "speed", "used", "why"}
# Methods that anybody may call; Subscribe, too, but it wants "more".
READING = {"Status", "Models", "GetPlan", "Costs", "PlanFront", "PlanExplain", "History", "Units", "Metrics", "Config",
           "GetMapping", "PlanMix"}
HISTORY_KEYS = {"id", "at", "cause", "detail", "algorithm", "trials", "plan_before", "plan_after", "fps_before",
                "fps_after", "predicted_gain", "duration_ms", "lost", "outcome"}


def fails(d, error, method, parameters=None):
    """The call is answered by that error; returns its parameters."""
    try:
        d.call(method, parameters)
    except VarlinkError as e:
        equal(e.error, error if "." in error else "io.piped." + error)
        return e.parameters
    raise Failure("%s %s went through" % (method, parameters))


def interface():
    with open(os.path.join(ROOT, "ipc", "io.piped.varlink"), encoding="utf-8") as f:
        return f.read()


def introspection():
    with Daemon() as d:
        info = d.call("org.varlink.service.GetInfo")
        equal(info["product"], "piped")
        equal(info["interfaces"], ["org.varlink.service", "io.piped"])
        get = "org.varlink.service.GetInterfaceDescription"
        equal(d.call(get, {"interface": "io.piped"})["description"].strip(), interface().strip())
        check("GetInfo" in d.call(get, {"interface": "org.varlink.service"})["description"])
        equal(fails(d, "org.varlink.service.InterfaceNotFound", get, {"interface": "no.such"}), {"interface": "no.such"})
        equal(fails(d, "org.varlink.service.MethodNotFound", "io.piped.Nothing"), {"method": "io.piped.Nothing"})
        equal(fails(d, "org.varlink.service.InterfaceNotFound", "a.b.C"), {"interface": "a.b"})


def every_method_of_the_interface_exists():
    """None is answered by MethodNotFound, and wrong parameters are named."""
    with Daemon() as d:
        for name in re.findall(r"^method (\w+)", interface(), re.M):
            equal(fails(d, "org.varlink.service.InvalidParameter", name, {"no_such_parameter": 1}),
                  {"parameter": "no_such_parameter"}, name)
        equal(fails(d, "org.varlink.service.InvalidParameter", "SetPlan", {}), {"parameter": "plan"})
        equal(fails(d, "org.varlink.service.InvalidParameter", "SetPlan", {"plan": 5}), {"parameter": "plan"})
        equal(fails(d, "org.varlink.service.InvalidParameter", "History", {"limit": -1}), {"parameter": "limit"})


def declared():
    """Method -> its parameters as the interface has them: name, type, whether it may be absent."""
    return {name: [(p, "list" if "[]" in t else t, optional == "?") for p, optional, t in
                   re.findall(r"(\w+): (\??)([\w\[\]]+)", parameters)]
            for name, parameters in re.findall(r"^method (\w+)\(([^)]*)\)", interface(), re.M)}


def the_interface_is_that_of_the_table():
    """Each row of methods.c is declared, and no declaration lacks its row: parameters are checked by the declarations."""
    with open(os.path.join(ROOT, "daemon", "control", "methods.c"), encoding="utf-8") as f:
        rows = re.findall(r'\{"io\.piped\.(\w+)", (?:\.of_model = )?dmn_method_', f.read())
    equal(sorted(rows), sorted(declared()))


def status_has_the_documented_keys():
    with Daemon(models={"a": DIGITS, "b": DIGITS}) as d:
        s = d.status()
        check(STATUS_KEYS <= set(s), STATUS_KEYS - set(s))
        check({"thermal", "cooling", "throttled", "policies", "psi", "cgroup", "energy", "gpio"} <= set(s["sensors"]))
        for c in s["cpus"]:
            equal(set(c), {"cpu", "online", "used", "ep", "why"})
            check(c["why"], c)
        for m in s["models"]:
            check(MODEL_KEYS <= set(m), MODEL_KEYS - set(m))
            equal(set(m["input"]), {"shape", "dtype"})
            check({"admitted", "answered", "dropped", "failed"} <= set(m["frames"]))
            for stage in m["stages"]:
                check(STAGE_KEYS <= set(stage), STAGE_KEYS - set(stage))
        for e in s["eps"]:
            check(EP_KEYS <= set(e), EP_KEYS - set(e))
        equal([m["name"] for m in d.call("Status", {"model": "b"})["status"]["models"]], ["b"])
        equal([m["name"] for m in d.call("Status", {"model": None})["status"]["models"]], ["a", "b"])
        check("nope" in fails(d, "NotFound", "Status", {"model": "nope"})["what"])


def status_counts_frames():
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        for _ in range(10):
            equal(s.infer(b"\0" * s.input_bytes).status, "ok")
        s.infer(b"\0" * 4, in_bytes=4)
        m = d.status()["models"][0]
        equal({k: m["frames"][k] for k in ("admitted", "answered", "dropped", "failed")},
              {"admitted": 10, "answered": 10, "dropped": 0, "failed": 1})
        check(m["latency_ms"]["p50"] > 0 and m["latency_ms"]["max"] >= m["latency_ms"]["p50"], m["latency_ms"])
        check(all(st["service_ms"] > 0 for st in m["stages"]), m["stages"])
        equal(d.status()["clients"][0]["client"], "pyclient")


def fps_looks_back_over_seconds():
    """Frames of the first second still count after the first sample was taken."""
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        begun = False
        while not begun or d.status()["uptime_s"] < 0.3:  # a slow start still sends one frame
            equal(s.infer(b"\0" * s.input_bytes).status, "ok")
            begun = True
        while True:
            status = d.status()
            check(status["models"][0]["fps"] > 0, status)
            if status["uptime_s"] > 2.5:
                break


def plans():
    with Daemon() as d:
        got = d.call("GetPlan")
        units, ep = d.status()["models"][0]["units"], d.status()["eps"][0]["name"]
        equal(got["algorithm"], "exact")
        plan = "0-3@%s|4-%d@%s" % (ep, units - 1, ep)
        r = d.call("SetPlan", {"plan": plan})
        equal((r["plan"], r["epoch"]), (plan, got["epoch"] + 1))
        equal(d.call("GetPlan")["algorithm"], "manual")
        wide = "|".join("%d-%d@%s" % (u, u, ep) for u in range(units))
        r = d.call("SetPlan", {"plan": wide, "model": "digits"})
        check(any("teams share cores" in w for w in r["warnings"]), r)
        for bad in ("", "0-1@nowhere", "0-3@%s" % ep, "x", "0-%d@%sx999" % (units - 1, ep), "|" * 5000, "0-99999@" + ep):
            check(fails(d, "InvalidPlan", "SetPlan", {"plan": bad})["why"], bad)
        equal(d.call("GetPlan")["plan"], wide, "a refused plan changed something")
        equal(d.call("AutoPlan")["plan"], got["plan"])
        equal(d.call("GetPlan")["algorithm"], "exact")
        fails(d, "NotFound", "SetPlan", {"model": "x", "plan": plan})
        fails(d, "NotFound", "GetPlan", {"model": "x"})
        fails(d, "NotFound", "AutoPlan", {"model": "x"})
        events = d.call("History")["events"]
        equal([e["cause"] for e in events], ["start", "request", "request", "request"])
        equal([e["plan_after"] for e in events], [got["plan"], plan, wide, got["plan"]])
        equal([e["id"] for e in events], [1, 2, 3, 4])
        for e in events:
            check(HISTORY_KEYS <= set(e), HISTORY_KEYS - set(e))
        equal([e["id"] for e in d.call("History", {"limit": 2})["events"]], [3, 4])
        equal(d.call("History", {"limit": 0})["events"], [])
        equal(d.call("History", {"model": "other"})["events"], [])


def retune():
    with Daemon(config={"planner": {"frames": 8, "measure_ms": 1000}}) as d:
        units = d.status()["models"][0]["units"]
        ep = d.status()["eps"][0]["name"]
        before = d.call("SetPlan", {"plan": "0-%d@%s" % (units - 1, ep)})["plan"]
        event = d.call("Retune")["event"]
        equal((event["cause"], event["algorithm"]), ("request", "exact"))
        ended(event)
        equal(event["plan_before"], before)
        check(event["trials"] and all(t["bottleneck_ms"] > 0 and t["frames"] > 0 for t in event["trials"]), event)
        equal(sum(t["kept"] for t in event["trials"]), 1)
        equal(event["plan_after"], [t["plan"] for t in event["trials"] if t["kept"]][0])
        equal(d.call("GetPlan")["plan"], event["plan_after"])
        check(event["fps_before"] > 0 and event["fps_after"] > 0, event)
        check(event["predicted_gain"] == 0 if event["plan_after"] == event["plan_before"]
              else event["predicted_gain"] > -1, event)
        check(all(u["measured_ms"][ep] > 0 and u["primitive"] and u["weight"] >= 0 for u in d.call("Units")["units"]))
        equal(len(d.call("Units")["units"]), units)
        fails(d, "Unsupported", "Retune", {"algorithm": "wishful"})
        fails(d, "NotFound", "Retune", {"model": "x"})
        equal(d.status()["state"], "serving")
        equal(d.status()["models"][0]["frames"]["answered"], 0, "synthetic frames were counted")


def retune_under_traffic():
    """Client frames are answered in order and right while a retune runs."""
    with Daemon(config={"planner": {"frames": 50}}) as d, pyclient.Connection(d.frames_path) as c, d.connect() as v:
        s = pyclient.Stream(c, inline=True)
        frame = struct.pack("<f", 0.5) * (s.input_bytes // 4)
        wanted = s.infer(frame).output
        v.send("io.piped.Retune")
        for _ in range(200):
            for _ in range(s.credits):
                s.submit(frame)
            for _ in range(s.credits):
                r = s.result()
                equal((r.status, r.output), ("ok", wanted))
        event = v.receive()["event"]
        ended(event)
        equal(event["plan_after"], d.call("GetPlan")["plan"])
        fails(d, "NotFound", "Units", {"model": "x"})


def two_retunes_at_once():
    with Daemon(config={"planner": {"frames": 10000, "measure_ms": 300}}) as d, d.connect() as v:
        v.send("io.piped.Retune")
        d.wait_state("tuning")
        plan = d.call("GetPlan")["plan"]
        fails(d, "Busy", "Retune")
        fails(d, "Busy", "SetPlan", {"plan": plan})
        fails(d, "Busy", "AutoPlan")
        v.receive()


def load_and_unload():
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        m = d.call("Load", {"name": "two", "path": DIGITS})["model"]
        equal((m["name"], m["path"], m["default"]), ("two", DIGITS, True))
        equal([(m["name"], m["default"]) for m in d.call("Models")["models"]], [("digits", False), ("two", True)],
              "what comes along stands in while there is no other")
        s = pyclient.Stream(c, 7, "two", inline=True)
        equal(s.infer(b"\0" * s.input_bytes).status, "ok")
        equal(fails(d, "Busy", "Load", {"name": "two", "path": DIGITS}),
              {"why": "model two is loaded already: unload it first, or take another name"})
        equal(fails(d, "org.varlink.service.InvalidParameter", "Unload", {"name": ""}), {"parameter": "name"})
        equal(d.call("Unload", {"name": "two"}), {})
        equal(s.infer(b"\0" * s.input_bytes).status, "unavailable")
        c.ping()
        check((7, 3, 1) in c.events, c.events)
        try:
            pyclient.Stream(c, 8, "two")
            raise Failure("a stream to an unloaded model")
        except pyclient.Refused as e:
            equal(e.status, "not_found")
        fails(d, "NotFound", "Unload", {"name": "two"})
        for name, path in (("a/b", DIGITS), ("", DIGITS), ("x" * 64, DIGITS), ("ok", "relative.onnx"), ("ok", __file__),
                           ("ok", "/nonexistent.onnx"), ("ok", os.path.dirname(DIGITS))):
            check(fails(d, "LoadFailed", "Load", {"name": name, "path": path})["why"])
        check(fails(d, "LoadFailed", "Load", {"name": "p", "path": DIGITS, "plan": "x"})["why"])
        d.call("Load", {"name": "p", "path": DIGITS, "plan": d.call("GetPlan")["plan"]})
        equal(d.call("GetPlan", {"model": "p"})["algorithm"], "config")


def models_say_what_a_client_needs():
    with Daemon() as d:
        m = d.call("Models")["models"][0]
        check(m["default"] and m["inputs"] and m["outputs"] and m["hash"] and m["weight_bytes"] > 0, m)
        equal(len(m["labels"]), 10)
        equal(m["input"]["shape"], [1, 1, m["preprocess"]["height"], m["preprocess"]["width"]])


def metrics_parse():
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        s.infer(b"\0" * s.input_bytes)
        text = d.call("Metrics")["text"]
        seen = set()
        typed = None
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                typed = line.split()[2]
                check(typed not in seen, "twice:", typed)
                seen.add(typed)
            elif not line.startswith("#"):
                m = re.fullmatch(r'(\w+)(\{(\w+="[^"]*",?)+\})? ([-+0-9.e]+)', line)
                check(m and m.group(1).startswith(typed), line)
        check('piped_frames_answered_total{model="digits",status="ok"} 1' in text, text)


def config_tells_origins():
    with Daemon(config={"spin_us": 7, "limits": {"credits": 5}}) as d:
        rows = {c["key"]: c for c in d.call("Config")["config"]}
        equal((rows["spin_us"]["value"], rows["spin_us"]["unit"]), (7, "us"))
        equal(rows["limits.credits"]["value"], 5)
        check(rows["limits.credits"]["origin"].startswith(d.config_path + ":"), rows["limits.credits"])
        equal(rows["drain_ms"]["value"], rows["drain_ms"]["default"])


def reload_errors():
    with Daemon() as d:
        d.write_config("{ nonsense")
        check(d.config_path + ":1: " in fails(d, "ReloadFailed", "Reload")["why"])
        d.write_config({"models": [{"name": "a", "path": DIGITS, "plan": "0-1@none"}]})
        check(fails(d, "ReloadFailed", "Reload")["why"])
        equal([m["name"] for m in d.call("Models")["models"]], ["digits"])
        d.write_config({"spin_us": 3})
        equal(d.call("Reload"), {})


def change(v):
    """The next event; a slow load tells of its progress, too."""
    told = v.receive()["event"]
    return change(v) if told["event"] == "progress" else told


def subscribe():
    with Daemon() as d, d.connect() as v:
        fails(d, "org.varlink.service.ExpectedMore", "Subscribe")
        v.send("io.piped.Subscribe", more=True)
        m = v.receive_message()
        check(m["continues"], m)
        plan = d.call("GetPlan")["plan"]
        d.call("SetPlan", {"plan": plan})
        e = v.receive()["event"]
        equal((e["event"], e["plan"], e["algorithm"]), ("plan", plan, "manual"))
        d.call("Load", {"name": "two", "path": DIGITS})
        equal(change(v)["event"], "model_loaded")
        d.call("Unload", {"name": "two"})
        equal(v.receive()["event"]["event"], "model_unloaded")


def calls_are_answered_in_order():
    with Daemon() as d, d.connect() as v:
        v.send("io.piped.Load", {"name": "two", "path": DIGITS})
        v.send("io.piped.Models")
        v.send("io.piped.Metrics", oneway=True)
        v.send("org.varlink.service.GetInfo")
        equal(v.receive()["model"]["name"], "two")
        equal(len(v.receive()["models"]), 2)
        equal(v.receive()["product"], "piped")


def an_answer_during_a_reload_does_not_run_the_next_call():
    """The reload that ends a retune answers it; the call behind it comes when the reload is through."""
    config = {"models": [{"name": n, "path": DIGITS} for n in "ab"], "planner": {"frames": 10000, "measure_ms": 60000}}
    with Daemon(config=config) as d, d.connect() as v:
        v.send("io.piped.Retune", {"model": "a"})
        v.send("io.piped.Unload", {"name": "b"})
        d.wait_state("tuning")
        d.write_config(dict(config, models=[{"name": "c", "path": DIGITS}]))
        d.call("Reload")
        for error in ("io.piped.Busy", "io.piped.NotFound"):
            try:
                raise AssertionError(v.receive())
            except VarlinkError as e:
                equal(e.error, error)
        equal([m["name"] for m in d.status()["models"]], ["c"])


def half_closed_connection_is_answered():
    with Daemon() as d, d.connect() as v:
        v.send("io.piped.Load", {"name": "two", "path": DIGITS})
        v.sock.shutdown(socket.SHUT_WR)
        equal(v.receive()["model"]["name"], "two")


def garbage_closes_that_connection_alone():
    with Daemon() as d, d.connect() as good:
        for bytes_ in (b"\0", b"{}\0", b"[]\0", b"{\"method\": 3}\0", b"\xff\xfe\0", b"{\"method\":\"a\"" + b"[" * 100000 + b"\0",
                       b"x" * (2 << 20)):
            with d.connect() as v:
                try:
                    v.sock.sendall(bytes_)
                except (BrokenPipeError, ConnectionResetError):
                    continue
                try:
                    m = v.receive_message()
                    raise Failure("answered %r with %s" % (bytes_[:40], m))
                except (EOFError, ConnectionResetError, VarlinkError):
                    pass
        equal(good.call("io.piped.Status")["status"]["state"], "serving")


def clients_that_leave_while_waiting():
    with Daemon(config={"planner": {"frames": 10000, "measure_ms": 200}}) as d:
        v = d.connect()
        v.send("io.piped.Retune")
        d.wait_state("tuning")
        v.close()
        d.wait_state("serving")
        v = d.connect()
        v.send("io.piped.Load", {"name": "two", "path": DIGITS})
        v.send("io.piped.Subscribe", more=True)
        v.close()
        until(lambda: len(d.call("Models")["models"]) == 2 or "its client has gone" in d.log(), "the end of a load")


def too_many_connections():
    """Those that wait for something stay; a newcomer is refused."""
    with Daemon(config={"limits": {"control_connections": 2, "kept_connections": 1}}) as d, d.connect() as first, \
            d.connect() as second, d.connect() as third:
        for v in (first, second):
            v.send("io.piped.Subscribe", more=True)
            v.receive()
        third.send("io.piped.Load", {"name": "two", "path": DIGITS})
        with d.connect() as v:
            try:
                v.receive()
                raise Failure("a fourth connection was served")
            except VarlinkError as e:
                why = "no more control connections: limits.control_connections is 2"
                equal((e.error, e.parameters["why"]), ("io.piped.Busy", why))
        for _ in range(5):  # whether its call comes before the refusal or after
            r = subprocess.run([PIPECTL, "--socket", d.control_path, "status"], capture_output=True, text=True,
                               timeout=LIMIT_S, check=False)
            equal((r.returncode, r.stderr), (1, "pipectl: Busy: %s\n" % why))
        equal(third.receive()["model"]["name"], "two")
        for v in (first, second):
            equal(change(v)["event"], "model_loaded")


OTHER_USER = """
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
for text in sys.argv[2:]:
    s.sendall(text.encode() + b"\\0")
    data = b""
    while not data.endswith(b"\\0"):
        data += s.recv(65536)
    print(data[:-1].decode())
"""


HOLD = """
import socket, sys
held = []
for _ in range(3):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    held.append(s)
    try:
        s.sendall(b'{"method":"io.piped.Subscribe","more":true}\\0')
        print(b'"error"' not in s.recv(4096))
    except (BrokenPipeError, ConnectionResetError):
        print(False)
print("held", flush=True)
sys.stdin.read()
"""


@needs("other users")
def one_user_leaves_room_for_others():
    with Daemon(config={"socket_mode": "0666", "limits": {"control_connections_per_user": 2}}) as d:
        os.chmod(d.temp, 0o755)
        os.chmod(d.runtime_dir, 0o755)
        with subprocess.Popen(as_user(65534, "/usr/bin/python3", "-c", HOLD, d.control_path), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as other:
            equal([other.stdout.readline().strip() for _ in range(4)], ["True", "True", "False", "held"])
            held = [d.connect() for _ in range(3)]
            for v in held:
                v.call("io.piped.Status")
                v.close()
            other.stdin.close()
            equal(other.wait(60), 0)


@needs("other users")
def others_may_read_but_not_change():
    with Daemon(config={"socket_mode": "0666", "admin_group": "games"}) as d:
        os.chmod(d.temp, 0o755)
        os.chmod(d.runtime_dir, 0o755)
        d.call("SetPlan", {"plan": "0-%d@%s" % (d.status()["models"][0]["units"] - 1, d.status()["eps"][0]["name"])})  # GetMapping
        reading = [n for n in declared() if n in READING]
        changing = [n for n in declared() if n not in READING | {"Subscribe"}]
        # every method with what it must be given; nobody may change anything by it
        calls = [json.dumps({"method": "io.piped." + n, "more": n in ("LinkRoutes", "Trace"),
                             "parameters": {p: {} if t == "object" else "/x" for p, t, optional in declared()[n]
                                            if not optional}})
                 for n in reading + changing]

        def run(gid):
            r = subprocess.run(as_user(65534, "/usr/bin/python3", "-c", OTHER_USER, d.control_path, *calls, gid=gid),
                               capture_output=True, text=True, timeout=60, check=False)
            equal(r.returncode, 0, r.stderr)
            return [json.loads(line).get("error") for line in r.stdout.splitlines()]

        equal(dict(zip(reading + changing, run(65534))),
              dict.fromkeys(reading) | dict.fromkeys(changing, "io.piped.PermissionDenied"))
        equal([m["name"] for m in d.call("Models")["models"]], ["digits"])
        calls = [json.dumps({"method": "io.piped.Retune"})]
        gid = __import__("grp").getgrnam("games").gr_gid
        equal(run(gid), [None], "a member of admin_group was refused")


if __name__ == "__main__":
    main([introspection, every_method_of_the_interface_exists, the_interface_is_that_of_the_table,
          status_has_the_documented_keys, status_counts_frames, fps_looks_back_over_seconds, plans,
          retune, retune_under_traffic, two_retunes_at_once, load_and_unload, models_say_what_a_client_needs, metrics_parse,
          config_tells_origins, reload_errors, subscribe, calls_are_answered_in_order, half_closed_connection_is_answered,
          an_answer_during_a_reload_does_not_run_the_next_call, garbage_closes_that_connection_alone,
          clients_that_leave_while_waiting, too_many_connections, one_user_leaves_room_for_others,
          others_may_read_but_not_change])
