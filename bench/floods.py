#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long a polite client waits while another user floods the daemon with cheap messages.

usage: floods.py [--build DIR] [--model FILE] [--other FILE] [--seconds S] [--fps N] [--nice N] [--json FILE] [ROW...]

The polite client sends N frames a second, one at a time, through shared memory. Beside it runs each row of
tests/system/flooding.py in turn, two processes of another user; ROW: a part of a name. Prints a table: round trips of
the polite client in ms, and how much of one core the daemon's loop took. Needs root, to be two users.
"""
import argparse
import json
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GREEDY, POLITE = 65533, 65534
sys.path[:0] = [os.path.join(ROOT, "tests", "system"), os.path.join(ROOT, "tests", "lint"),
                os.path.join(ROOT, "bench")]


def arguments():
    p = argparse.ArgumentParser(description="a polite client beside floods of cheap messages")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--model", default=os.path.join(ROOT, "model", "default", "digits.onnx"))
    p.add_argument("--other", default=os.path.join(ROOT, "model", "default", "digits.onnx"))
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--fps", type=float, default=20)
    p.add_argument("--nice", type=int, default=0, help="of the daemon")
    p.add_argument("--json")
    p.add_argument("rows", nargs="*")
    return p.parse_args()


def polite(pc, path, options, pipe):
    """Another process: one frame at a time. Sends its round trips in ms."""
    os.setgroups([])
    os.setgid(POLITE)
    os.setuid(POLITE)
    trips, warm = [], 5
    with pc.Connection(path) as c:
        s = pc.Stream(c, model="net", slots=1)
        frame = bytes(s.in_size)
        pipe.send(True)
        pipe.recv()
        due = time.monotonic()
        while len(trips) < warm + options.seconds * options.fps:
            due = max(due + 1 / options.fps, time.monotonic())
            time.sleep(due - time.monotonic() if due > time.monotonic() else 0)
            begun = time.monotonic()
            assert s.infer(frame).status == "ok"
            trips.append(1000 * (time.monotonic() - begun))
    pipe.send(sorted(trips[warm:]))


def loop_seconds(pid):
    with open("/proc/%d/task/%d/stat" % (pid, pid), encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    options = arguments()
    os.environ["PIPED_BUILD"] = options.build
    import multiprocessing
    import daemon
    import flooding
    import machine
    import pyclient as pc
    if os.geteuid() != 0:
        sys.exit("floods.py: needs root, to be two users")
    names = [n for n in flooding.ROWS if not options.rows or any(r in n for r in options.rows)]
    fork = multiprocessing.get_context("fork")
    config = {"socket_mode": "0666"}
    about = machine.machine()
    print("%s, %d cores, Linux %s, load %.1f" % (about["cpu"], about["cores"], about["kernel"], about["load"]))
    print("%-40s %8s %8s %8s %8s" % ("beside", "p50 ms", "p99 ms", "max ms", "loop %"))
    results = []
    with tempfile.TemporaryDirectory():
        for name in ["alone", *names, "alone"]:
            with daemon.Daemon(models={"net": options.model, "other": options.other}, config=config,
                               preexec=lambda: os.nice(options.nice)) as d:
                for path in (d.temp, d.runtime_dir):
                    os.chmod(path, 0o755)
                here, there = fork.Pipe()
                p = fork.Process(target=polite, args=(pc, d.frames_path, options, there), daemon=True)
                p.start()
                here.recv()
                flood = flooding.Flood(d, name, GREEDY) if name != "alone" else None
                if flood:
                    flood.__enter__()
                    time.sleep(0.5)
                begun, cpu = time.monotonic(), loop_seconds(d.process.pid)
                here.send(True)
                trips = here.recv() if here.poll(5 * options.seconds + 5) else None
                busy = 100 * (loop_seconds(d.process.pid) - cpu) / (time.monotonic() - begun)
                p.kill()
                if flood:
                    flood.__exit__()
            if trips:
                row = {"beside": name, "p50": trips[len(trips) // 2], "p99": trips[len(trips) * 99 // 100],
                       "max": trips[-1], "loop": busy}
                print("%-40s %8.2f %8.2f %8.2f %8.0f" % tuple(row.values()), flush=True)
            else:
                row = {"beside": name, "p50": None}
                print("%-40s no answer in %.0f s" % (name, 5 * options.seconds + 5), flush=True)
            results.append(row)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"machine": about, "rows": results}, f, indent=1)


if __name__ == "__main__":
    main()
