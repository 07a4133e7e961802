#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Choices that their times leave in doubt: they are measured again in spare time, by a daemon that serves.

The machine that runs this test may be busy itself, so nothing here asks for a certain choice or time: a doubtful choice
is measured again, told, and replaced where others are clearly better.
"""
import json
import os
import subprocess

import kept_files
import pyclient
from daemon import BUILD, HEARTBEAT, Daemon, check, equal, main
from test_choose import EPS, kept_file, loaded, primitives
from test_upgrade import events

ADAPTS = dict(EPS, adapt={"enabled": True})
AGAIN = "measured again, "


def measured_again(d):
    check(d.wait_until(lambda: AGAIN in d.log()), d.log())


def a_better_choice_is_moved_to():
    with Daemon(config=EPS, env=HEARTBEAT) as d:
        path = kept_file(d)
        d.stop()
        kept_files.choose_references(path, "left", doubt=0.5)
        d.write_config(ADAPTS)
        d.start()
        check("primitives measured" not in loaded(d), loaded(d))
        check("conv__ref" in json.dumps(primitives(d)), primitives(d))
        with pyclient.Connection(d.frames_path) as c:
            s = pyclient.Stream(c, inline=True)
            frame = b"\0" * s.input_bytes
            equal(s.infer(frame).status, "ok")
            measured_again(d)
            check(d.wait_until(lambda: events(d, "measured")), d.log())
            event = events(d, "measured")[0]
            equal((event["model"], event["outcome"]), ("digits", "serving"))
            check("conv__ref" not in json.dumps(primitives(d)), primitives(d))
            equal(s.infer(frame).status, "ok")  # the stream went along
            s.close()
        check(kept_files.read(path)["doubt"] < 0.5, kept_files.read(path)["doubt"])


def told_of_each_unit():
    with Daemon(config=EPS) as d:
        for unit in d.pipectl("units"):
            equal(list(unit["chosen_by"]), ["left"])
            of = unit["chosen_by"]["left"]
            check(of["ms"] >= of["sigma_ms"] >= 0 and of["unsure"] in (True, False), unit)
        choice = d.pipectl("optimise", "--ms", "200")
        check(all(k["may_lose"] >= 0 for k in choice["kinds"]), choice)


def an_odd_doubt_is_none():
    with Daemon(config=EPS) as d:
        path = kept_file(d)
        good = kept_files.read(path)
        for odd in ("much", -1, 2, None, [0.5]):
            d.stop()
            kept_files.write(path, dict(good, doubt=odd))
            d.start()
            check("primitives measured" not in loaded(d), odd, loaded(d))


def a_load_during_the_first_measuring_ends():
    exe = os.path.join(BUILD, "tests", "system", "slow_core")
    if not os.path.exists(exe):
        return "no slow_core"
    thief = subprocess.Popen([exe, "0", "9000", "10000", "600"], stdout=subprocess.PIPE, text=True)
    try:
        equal(thief.stdout.readline(), "ready\n")
        config = dict(ADAPTS, kernels={"measure_ms": 5})
        with Daemon(config=config, env=HEARTBEAT) as d:
            check("primitives measured" in loaded(d), loaded(d))
            doubt = kept_files.read(kept_file(d))["doubt"]
            thief.terminate()
            thief.wait()
            if doubt > 0:
                measured_again(d)
            equal(d.status()["state"], "serving")
    finally:
        thief.kill()
        thief.wait()
        thief.stdout.close()
    return None


if __name__ == "__main__":
    main([a_better_choice_is_moved_to, told_of_each_unit, an_odd_doubt_is_none, a_load_during_the_first_measuring_ends])
