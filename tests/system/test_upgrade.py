#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Restarts, crashes and upgrades under load, with sockets that outlive the daemon as under systemd.

Another build is played by what it would have kept: a choice of primitives for another version, other libraries or
another CPU, with primitives that are gone, or of other operators. It serves at once, and is measured again later.
"""
import json
import os
import signal
import subprocess

import kept_files
import pyclient
import tiny_onnx
from daemon import DIGITS, HEARTBEAT, LIMIT_S, PIPECTL, Daemon, check, equal, main
from socket_units import SocketUnits
from test_choose import EPS, kept_file, loaded, primitives

CHANGED = {"cpu": "another CPU", "libraries": "other libraries", "table": "another version of piped",
           "wanted": "another objective"}
OLD = "0.0-0"
# Every answer of each of them has to come once, in order and right, and as what its policy asks for.
CLIENTS = (["--in-flight", "4"], ["--inline"], ["--policy", "latest", "--rate", "200"],
           ["--policy", "reject", "--rate", "200"], ["--pixfmt", "gray8", "--rate", "300"],
           ["--deadline", "60000", "--rate", "200"])


def outdated(path, **changes):
    kept_files.write(path, dict(kept_files.read(path), **changes))


def measured_again(d, path):
    """Waits until the file has a choice for this build. A second without frames goes before."""
    check(d.wait_until(lambda: OLD not in kept_files.read(path).values()), d.log())


def events(d, cause):
    return [e for e in d.call("History")["events"] if e["cause"] == cause]


def settled(d):
    """Waits until the model was measured again. Return: it serves with other primitives now."""
    told = ("they are still the best", "with other primitives than before")
    check(d.wait_until(lambda: any(text in d.log() for text in told)), d.log())
    return bool(events(d, "upgrade"))


def another_build_serves_at_once():
    with Daemon(config=EPS, env=HEARTBEAT) as d:
        path, before = kept_file(d), primitives(d)
        for key, other in CHANGED.items():
            d.stop()
            outdated(path, **{key: OLD})
            d.start()
            check("its primitives chosen for %s" % other in loaded(d), loaded(d))
            equal(primitives(d), before)
            measured_again(d, path)
            moved = settled(d)
            equal(len(events(d, "upgrade")), int(moved))
            before = primitives(d)
            d.stop()
            os.truncate(d.log_path, 0)
            d.start()
            check("primitives chosen" not in loaded(d) and "primitives measured" not in loaded(d), loaded(d))
            equal(primitives(d), before, "not what was measured")


def measuring_again_gives_way_to_requests():
    """Of a network for which it takes several ticks of progress, however fast the machine is."""
    d = Daemon(env=HEARTBEAT)
    net = os.path.join(d.temp, "net.onnx")
    tiny_onnx.write(net, 24 * [("conv", 48, 3)], size=96)
    config = dict(EPS, models=[{"name": "net", "path": net}])
    d.write_config(config)
    with d:
        path = kept_file(d)
        d.stop()
        outdated(path, libraries=OLD)
        d.write_config(dict(config, kernels={"measure_ms": 600000}))
        d.start()
        with d.connect() as v:
            v.send("io.piped.Subscribe", more=True)
            while v.receive().get("event", {}).get("doing") != "measuring primitives of operators":
                pass
        d.pipectl("quantize", "--off", as_json=False)
        check(d.wait_until(lambda: "again was called off: a request took its place" in d.log()), d.log())


def what_is_gone_is_replaced():
    with Daemon(config=EPS, env=HEARTBEAT) as d:
        path, before = kept_file(d), primitives(d)
        state = kept_files.read(path)
        state["kinds"]["left"][0][:2] = ["conv__of_another_build", None]
        d.stop()
        outdated(path, table=OLD, kinds=state["kinds"])
        d.start()
        check("chosen for another version" in loaded(d), loaded(d))
        equal(primitives(d)[1:], before[1:], "more was replaced than what is gone")
        d.stop()
        state["kinds"]["left"].pop()  # this build has other operators
        outdated(path, kinds=state["kinds"])
        d.start()
        check("chosen for another version" in loaded(d), loaded(d))
        settled(d)
        equal(len(kept_files.read(path)["kinds"]["left"]), len(state["kinds"]["left"]) + 1)


def a_bad_file_of_another_build_is_not_used():
    with Daemon(config=EPS, env=HEARTBEAT) as d:
        path = kept_file(d)
        d.stop()
        good = kept_files.read(path)
        for at, value in ((2, -1), (2, "fast"), (0, 7), (1, 7)):
            bad = json.loads(json.dumps(good))
            bad["kinds"]["left"][0][at] = value
            outdated(path, table=OLD, kinds=bad["kinds"])
            d.start()
            check("primitives measured" in loaded(d), value, loaded(d))
            check("not a saved choice of primitives; measuring" in d.log(), d.log())
            d.stop()
            os.truncate(d.log_path, 0)
        d.start()


def a_better_choice_is_moved_to():
    with Daemon(config=EPS, env=HEARTBEAT) as d:
        path = kept_file(d)
        d.stop()
        kept_files.choose_references(path, "left", table=OLD)
        d.start()
        check("conv__ref" in json.dumps(primitives(d)), primitives(d))
        with pyclient.Connection(d.frames_path) as c:
            s = pyclient.Stream(c, inline=True)
            frame = b"\0" * s.input_bytes
            equal(s.infer(frame).status, "ok")
            check(settled(d), "the references are said to be the best", d.log())
            event = events(d, "upgrade")[0]
            equal((event["model"], event["outcome"]), ("digits", "serving"))
            check("conv__ref" not in json.dumps(primitives(d)), primitives(d))
            equal(s.infer(frame).status, "ok")  # the stream went along
            s.close()


def start_benches(d):
    command = [PIPECTL, "--json", "--socket", d.control_path, "bench", "--seconds", "3600", "--verify"]
    return [subprocess.Popen(command + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for args in CLIENTS]


def wait_answers(d, benches, each):
    def answered():
        for b in benches:
            check(b.poll() is None, "a bench ended early:", b.args, b.returncode, b.stderr)
        clients = [c["answered"] for c in d.status()["clients"]]
        return len(clients) == len(benches) and min(clients) >= each

    check(d.wait_until(answered), "too few answers", d.log())


def restart(d, path):
    d.stop()
    d.start()


def kill(d, path):
    d.signal(signal.SIGKILL)
    equal(d.wait_exit(), -signal.SIGKILL)
    d.kill()
    d.start()


def upgrade(d, path):
    d.stop()
    outdated(path, table=OLD)
    d.start()


def crash_and_upgrade(d, path):
    d.signal(signal.SIGKILL)
    equal(d.wait_exit(), -signal.SIGKILL)
    d.kill()
    upgrade(d, path)


def nothing_is_lost():
    d = Daemon(config=dict(EPS, models=[{"name": "digits", "path": DIGITS}]), env=HEARTBEAT)
    with SocketUnits(d), d:
        path, ends = kept_file(d), (restart, kill, upgrade, crash_and_upgrade, kill)
        benches = start_benches(d)
        try:
            for end in ends:
                wait_answers(d, benches, 30)
                end(d, path)
                check("primitives measured" not in loaded(d), end.__name__, loaded(d))
            wait_answers(d, benches, 30)
            for b in benches:
                b.send_signal(signal.SIGINT)
            for args, b in zip(CLIENTS, benches):
                out, err = b.communicate(timeout=LIMIT_S)
                check(out, args, err)
                r = json.loads(out)
                equal(b.returncode, 0, "%s %s %s" % (args, out, err))
                equal([r[key] for key in ("lost", "reordered", "duplicated", "wrong")], [0] * 4, args)
                equal((r["sent"], r["reconnects"]), (r["answered"], len(ends)), args)
                check(r["pause_ms"] > 0, r)
        finally:
            for b in benches:
                if b.poll() is None:
                    b.kill()
                    b.wait()
        settled(d)


if __name__ == "__main__":
    main([another_build_serves_at_once, measuring_again_gives_way_to_requests, what_is_gone_is_replaced,
          a_bad_file_of_another_build_is_not_used, a_better_choice_is_moved_to, nothing_is_lost])
