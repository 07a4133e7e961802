#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon dies and comes back under load, and a program that uses libpiped never notices: nothing is lost,
doubled, out of order or wrong.

pipectl bench --verify is that program: it counts what piped_next() gives it, compares every answer with one taken
before, and the library counts what it had to put right (answers twice, out of order).
"""
import json
import os
import signal
import subprocess
import sys

from daemon import DIGITS, HEARTBEAT, LIMIT_S, PIPECTL, Daemon, check, equal, main

CLIENTS = 3
SLOWDOWN = float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))


def start_bench(daemon, *args):
    command = [PIPECTL, "--json", "--socket", daemon.control_path, "bench", "--clients", str(CLIENTS), "--seconds",
               "3600", "--verify"] + list(args)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_answers(daemon, bench, count):
    """Until this daemon answered so many more frames, fewer where it is slow."""
    def answered():
        check(bench.poll() is None, "the bench ended early", bench.stderr)
        return daemon.status()["models"][0]["frames"]["answered"]

    def all_stream():
        check(bench.poll() is None, "the bench ended early", bench.stderr)
        return sum(client["answered"] > 0 for client in daemon.status()["clients"]) == CLIENTS

    # a client that is still connecting for the first time when its daemon dies gives up
    check(daemon.wait_until(all_stream), "not every client streams", daemon.log())
    wanted = answered() + max(count / SLOWDOWN, 50)
    check(daemon.wait_until(lambda: answered() >= wanted), "too few answers", daemon.log())


def finish(bench):
    bench.send_signal(signal.SIGINT)
    out, err = bench.communicate(timeout=LIMIT_S)
    check(out, "no summary", err)
    r = json.loads(out)
    equal(bench.returncode, 0, out + err)
    for key in ("lost", "reordered", "duplicated", "wrong"):
        equal(r[key], 0, key)
    equal(r["errors"], {})
    equal(r["sent"], r["answered"])
    return r


def kill(daemon):
    daemon.signal(signal.SIGKILL)
    equal(daemon.wait_exit(), -signal.SIGKILL)
    daemon.kill()
    daemon.start()


def restart(daemon):
    daemon.stop()
    daemon.start()


def under_load(end, times, *args):
    with Daemon(models={"digits": DIGITS}, env=HEARTBEAT) as daemon:
        bench = start_bench(daemon, *args)
        try:
            for _ in range(times):
                wait_answers(daemon, bench, 200)
                end(daemon)
            wait_answers(daemon, bench, 200)
            r = finish(bench)
        finally:
            if bench.poll() is None:
                bench.kill()
                bench.wait()
        equal(r["reconnects"], CLIENTS * times, "reconnects")
        return r


def test_killed_with_shared_memory():
    r = under_load(kill, 5)
    check(r["resent"] > 0, "no frame was under way at any kill", r)


def test_killed_with_inline_frames():
    r = under_load(kill, 3, "--inline")
    check(r["resent"] > 0, "no frame was under way at any kill", r)


def test_killed_with_pictures_at_a_rate():
    under_load(kill, 2, "--pixfmt", "gray8", "--rate", "500")


def test_restarted_politely():
    under_load(restart, 3)


def test_given_up_when_nobody_comes_back():
    """Without a daemon the frames come back as unavailable, each once."""
    with Daemon(models={"digits": DIGITS}, env=HEARTBEAT) as daemon:
        bench = start_bench(daemon, "--reconnect", "0.2")
        wait_answers(daemon, bench, 50)
        daemon.signal(signal.SIGKILL)
        daemon.wait_exit()
        daemon.kill()
        out, err = bench.communicate(timeout=LIMIT_S)
        check(out, "no summary", err)
        r = json.loads(out)
        equal(bench.returncode, 1, out + err)
        equal(r["sent"], r["answered"])
        equal((r["lost"], r["reordered"], r["duplicated"], r["wrong"]), (0, 0, 0, 0))
        equal(set(r["errors"]), {"unavailable"})


if __name__ == "__main__":
    if not os.path.exists(DIGITS):
        print("skipped: no", DIGITS)
        sys.exit(77)
    main([f for name, f in list(globals().items()) if name.startswith("test_")])
