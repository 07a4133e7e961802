#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One model over several boards: boards of a part of a core each, in namespaces on a switch of one machine (root).

usage: boards.py --results FILE.json [--build DIR] [--model FILE] [--cpu CORES] [--rate RATE] [--rounds N] [--seconds S]
                 [--cut UNIT] [PART...]
       boards.py --results FILE.json --report

Parts, all by default:
  scale     a model on four boards against the same on one of them, by turns: whole copies, a pipeline, and as planned
  memory    a pipeline over two boards where memory for weights is 60 % of the model's
  handoff   a border of 1 MB to the next board, beyond the wire's own time (a plain TCP connection), unencrypted
  idle      CPU time of a board whose route is ready and that has no frames
  links     links of 1000, 100 and 10 Mbit/s, whole cores: a route and what the table predicts of it, what "auto" does
  autodice  the same boards, network and mapping in the way of AutoDiCE (MPI), against ours
The default network is model/networks/resnet50.json. What a run gave is added to the file of results.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from machine import machine  # noqa: E402  (the folder is known only now)

BOARDS = 4
FRAMES_HELD = 4  # by a board of one core at once
MEGABYTE = {"name": "border", "seed": 1, "input": {"shape": [3, 64, 64]},
            "layers": [{"op": "conv", "out": 64, "kernel": 1, "act": "relu"}, {"op": "conv", "out": 16, "kernel": 1},
                       {"op": "globalavgpool"}, {"op": "fc", "out": 10}]}
BORDER_BYTES = 64 * 64 * 64 * 4
# One MB there, one byte back, as a plain connection does it.
THERE = """import socket, sys, time
a = socket.create_connection((sys.argv[1], 9000)); a.setsockopt(6, 1, 1)
data, took = bytes(int(sys.argv[2])), []
for i in range(60):
    began = time.monotonic(); a.sendall(data); a.recv(1); took.append(time.monotonic() - began)
print(sorted(took)[30] * 1e3)"""
BACK = """import socket, sys
s = socket.create_server((sys.argv[1], 9000)); print("ready", flush=True)
b, _ = s.accept(); b.setsockopt(6, 1, 1); buffer = bytearray(int(sys.argv[2]))
while True:
    got = 0
    while got < len(buffer):
        n = b.recv_into(memoryview(buffer)[got:])
        if n == 0: sys.exit()
        got += n
    b.send(b"x")"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--results", required=True)
    p.add_argument("--report", action="store_true")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--model", default=os.path.join(ROOT, "model", "networks", "resnet50.json"))
    p.add_argument("--cpu", type=float, default=0.4)
    p.add_argument("--rate", default="1gbit")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    options = p.parse_args()
    unknown = [x for x in options.parts if x not in PARTS]
    if unknown:
        p.error("no part " + ", ".join(unknown))
    return options


def core_of(name):
    """Boards share the cores evenly, one core each."""
    cores = sorted(os.sched_getaffinity(0))
    return {cores[(int(name[1:]) - 1) % len(cores)]}


def fleet_of(options, count, models, **more):
    from fleet import Fleet
    more.setdefault("cpu", options.cpu)
    fleet = Fleet(count, cpus=core_of, rate=options.rate, **more)
    fleet.configs["b1"] = {"models": models}
    if any("boards" in m for m in models):
        fleet.configs["b1"]["boards"] = {"frames_socket": os.path.join(fleet.folder, "b1", "link-run", "frames.sock")}
    return fleet


def bench(board, model, seconds, *more):
    """Return: what pipectl bench says; every frame was answered."""
    return json.loads(board.pipectl("--json", "bench", "--model", model, "--seconds", str(seconds), *more))


def equal_parts(board, model, count):
    """By the costs that a daemon has measured. Return: [(first, last)] of about equal time."""
    costs = next(iter(board.daemon.call("Costs", {"model": model})["problem"]["costs"].values()))["1"]
    parts, first, total, spent = [], 0, sum(costs), 0.0
    for i, cost in enumerate(costs):
        spent += cost
        left = len(costs) - 1 - i
        if len(parts) < count - 1 and (spent >= total * (len(parts) + 1) / count or left < count - len(parts)):
            parts.append((first, i))
            first = i + 1
    return parts + [(first, len(costs) - 1)]


def route_text(parts, boards):
    """"0-16@here|17-53@b2" """
    return "|".join("%d-%d@%s" % (a, b, "here" if name == "b1" else name) for (a, b), name in zip(parts, boards))


def wait_route(fleet, model, boards, seconds=60):
    """Until each of these boards but the head has computed a frame of a segment."""
    from fleet import segments_of
    end = time.monotonic() + seconds
    while not all(sum(segments_of(fleet[b]).values()) for b in boards if b != "b1"):
        bench(fleet.head, model, 0.5)
        if time.monotonic() > end:
            raise RuntimeError("no frame of %s came to all of %s: %s" % (model, boards, fleet.logs()))


def spread(values):
    return {"median": round(statistics.median(values), 3), "min": round(min(values), 3), "max": round(max(values), 3),
            "runs": len(values)}


def parts_of(options):
    """Measured on one board of the fleet's size. Return: parts for each number of boards, units."""
    with fleet_of(options, 2, [{"name": "net", "path": options.model}]) as fleet:
        bench(fleet.head, "net", 3)
        found = {n: equal_parts(fleet.head, "net", n) for n in (2, BOARDS)}
    return found


def scale(options):
    names = ["b%d" % (i + 1) for i in range(BOARDS)]
    parts = parts_of(options)[BOARDS]
    routes = {"copies": "0-%d@%s" % (parts[-1][1], "+".join(["here"] + names[1:])),
              "pipeline": route_text(parts, names), "planned": "auto"}
    result = {}
    for name, route in routes.items():
        models = [{"name": "net", "path": options.model, "boards": route}, {"name": "alone", "path": options.model}]
        with fleet_of(options, BOARDS, models) as fleet:
            wait_route(fleet, "net", names)
            fps = {"net": [], "alone": []}
            for i in range(options.rounds):
                for model in ("net", "alone") if i % 2 else ("alone", "net"):
                    fps[model].append(bench(fleet.head, model, options.seconds)["fps"])
            result[name] = {"route": route, "fps": spread(fps["net"]), "one_board_fps": spread(fps["alone"]),
                            "ratio": spread([a / b for a, b in zip(fps["net"], fps["alone"])])}
    return result


def wait_serving(fleet, model, seconds=120):
    """Until frames of the model go over boards."""
    end = time.monotonic() + seconds
    while not next(m for m in fleet.head.status()["models"] if m["name"] == model)["route"]["serving"]:
        if time.monotonic() > end:
            raise RuntimeError("%s is not served over boards: %s" % (model, fleet.logs()))
        time.sleep(0.2)


def memory(options):
    """Each board may use memory for 60 % of the packed weights, and for its frames. The plan's prediction is that of
    the table after the runs."""
    from fleet import Fleet
    with Fleet(2, cpus=core_of) as fleet:
        fleet.head.pipectl("models", "load", "net", options.model)
        net = next(m for m in fleet.head.daemon.call("Models")["models"] if m["name"] == "net")
    limit = {"memory_mib": round((0.6 * net["packed_bytes"] + FRAMES_HELD * net["arena_bytes"]) / 2 ** 20)}
    models = [{"name": "net", "path": options.model, "boards": "auto"}]
    fleet = fleet_of(options, 2, models, others={"boards": limit})
    fleet.configs["b1"]["boards"].update(limit)
    with fleet:
        wait_serving(fleet, "net")
        fps = spread([bench(fleet.head, "net", options.seconds)["fps"] for _ in range(options.rounds)])
        explained = fleet.head.daemon.call("PlanExplain", {"model": "net"})["explanation"]["boards"]
        asleep = fleet.head.daemon.call("Models")["models"][0]["asleep"]
        return {"packed_bytes": net["packed_bytes"], "arena_bytes": net["arena_bytes"], "limit": limit, "fps": fps,
                "asleep": asleep, "route": explained["route"], "predicted": explained["predicted"]}


def plain_wire_ms(fleet, size):
    """One MB there and a byte back over a plain connection."""
    inside = [fleet.network.spaces[n].inside() for n in ("b1", "b2")]
    command = [sys.executable, "-c", "", fleet["b2"].address, str(size)]
    server = subprocess.Popen(inside[1] + command[:2] + [BACK] + command[3:], stdout=subprocess.PIPE)
    try:
        server.stdout.readline()
        done = subprocess.run(inside[0] + command[:2] + [THERE] + command[3:], check=True, capture_output=True,
                              text=True)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    return float(done.stdout)


def latency_ms(options, board, model):
    return bench(board, model, options.seconds / 2, "--in-flight", "1")["latency_ms"]["p50"]


def handoff(options):
    """A frame through two boards, less it through each segment at its board, less the border over a plain wire."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "border.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(MEGABYTE, f)
        with fleet_of(options, 2, [{"name": "border", "path": path, "boards": "0-0@here|1-2@b2"}], cpu=None,
                      trusted_wire=True) as fleet:
            for board, segment in ((fleet.head, "alone#0-0"), (fleet["b2"], "alone#1-2")):
                board.pipectl("models", "load", segment, path)
            wait_route(fleet, "border", ("b2",))
            rounds = []
            for _ in range(options.rounds):
                ways = (fleet.head, "border"), (fleet.head, "alone#0-0"), (fleet["b2"], "alone#1-2")
                rounds.append([latency_ms(options, *way) for way in ways] + [plain_wire_ms(fleet, BORDER_BYTES)])
    names = ("route_ms", "first_ms", "second_ms", "wire_ms")
    return {"border_bytes": BORDER_BYTES, "rate": options.rate,
            "beyond_ms": spread([a - b - c - d for a, b, c, d in rounds]),
            **{n: spread([r[i] for r in rounds]) for i, n in enumerate(names)}}


def idle(options):
    import service
    names = ["b%d" % (i + 1) for i in range(BOARDS)]
    with fleet_of(options, BOARDS, [{"name": "net", "path": options.model,
                                     "boards": route_text(parts_of(options)[BOARDS], names)}]) as fleet:
        wait_route(fleet, "net", names)
        time.sleep(3)
        seconds, began = max(options.seconds, 10), {}
        for name, board in fleet.boards.items():
            began[name] = [service.schedule_ns(p) for p in board.processes()]
        time.sleep(seconds)
        return {name: [round((service.schedule_ns(p) - before) / 1e9 / seconds, 5)
                       for p, before in zip(board.processes(), began[name])] for name, board in fleet.boards.items()}


def versus_autodice(options):
    """Ours and theirs by turns on the same boards: ranks and hops compute the same segments."""
    import autodice
    program = os.path.join(options.build, "bench", "boards", "autodice")
    why = autodice.reason(program)
    if why:
        return {"skipped": why}
    names = ["b%d" % (i + 1) for i in range(BOARDS)]
    parts = parts_of(options)[BOARDS]
    mapping = [(a, b, name) for (a, b), name in zip(parts, names)]
    route = route_text(parts, names)
    ways = {"autodice": (), "autodice_polite": ("--polite",), "autodice_lockstep": ("--lockstep", "--polite")}
    fps = {way: [] for way in ("ours", *ways)}
    models = [{"name": "net", "path": options.model, "boards": route}]
    with fleet_of(options, BOARDS, models, trusted_wire=True) as fleet:
        wait_route(fleet, "net", names)
        for _ in range(options.rounds):
            mine = bench(fleet.head, "net", options.seconds)["fps"]
            fps["ours"].append(mine)
            frames = max(int(mine * options.seconds), 5)
            for way, flags in ways.items():
                ran = autodice.run(fleet, program, "theirs", options.model, mapping, frames, *flags)
                fps[way].append(ran["fps"])
    return {"route": route, "fps": {k: spread(v) for k, v in fps.items()},
            "ratio": {k: spread([a / b for a, b in zip(fps["ours"], v)]) for k, v in fps.items() if k != "ours"}}


def on_link(options, rate, route):
    """Return: what a route is predicted and measured to do over links of this rate; or, for "auto", what is decided."""
    options = argparse.Namespace(**{**vars(options), "rate": rate, "cpu": None})
    with fleet_of(options, 2, [{"name": "net", "path": options.model, "boards": route}]) as fleet:
        if route != "auto":
            wait_route(fleet, "net", ("b2",))
        bench(fleet.head, "net", 10)  # links and segments are measured
        fps = spread([bench(fleet.head, "net", options.seconds)["fps"] for _ in range(options.rounds)])
        explained = fleet.head.daemon.call("PlanExplain", {"model": "net"})["explanation"]["boards"]
    found = {k: explained.get(k) for k in ("route", "predicted", "alone", "verdict")}
    if route != "auto":
        found["of_prediction"] = round(fps["median"] / explained["predicted"]["fps"], 3)
    return {"fps": fps, **found}


def links(options):
    route = route_text(parts_of(options)[2], ("b1", "b2"))
    return {rate: {"route": on_link(options, rate, route), "auto": on_link(options, rate, "auto")}
            for rate in ("1gbit", "100mbit", "10mbit")}


PARTS = {"scale": scale, "memory": memory, "handoff": handoff, "idle": idle, "links": links,
         "autodice": versus_autodice}


def load(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def main():
    options = arguments()
    if options.report:
        print(json.dumps(load(options.results), indent=2))
        return 0
    os.environ["PIPED_BUILD"] = options.build
    for folder in ("tests/lint", "tests/system", "tests/boards", "bench"):
        sys.path.insert(0, os.path.join(ROOT, folder))
    from groups import group_reason
    from network import network_reason
    why = network_reason() or group_reason(cpu=options.cpu)
    if why:
        print("skipped:", why)
        return 77
    for part in options.parts or PARTS:
        result = {"part": part, "machine": machine(), "cpu": options.cpu, "rate": options.rate,
                  "model": os.path.basename(options.model), "result": PARTS[part](options)}
        print(json.dumps(result), flush=True)
        results = load(options.results) + [result]
        with open(options.results + ".new", "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
        os.rename(options.results + ".new", options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
