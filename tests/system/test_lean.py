#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A build for boards (-Dprofile=board): what its programs need, and that it serves the embedded network rightly."""
import os
import subprocess

from daemon import DIGITS, PIPECTL, PIPED, ROOT, Daemon, check, equal, main

# Each brings much along; oneDNN of Debian brings OpenCL.
TOO_MUCH = ("libdnnl", "libOpenCL", "libgomp", "libhwloc", "libmicrohttpd", "libgnutls", "libpython", "libgst")


def readelf(what, path):
    return subprocess.run(["readelf", "-W", what, path], capture_output=True, text=True, check=True).stdout


def programs_need_little():
    for program in (PIPED, PIPECTL):
        # neither itself nor by what it needs; libopenblas alone may be one that needs libgomp
        own, all_of_it = readelf("-d", program), subprocess.run(["ldd", program], capture_output=True, text=True,
                                                                check=True).stdout
        check("libc.so" in own and "libjansson" in all_of_it, own, all_of_it)
        equal([n for n in TOO_MUCH if n in own], [], "needed by " + program)
        equal([n for n in TOO_MUCH if n in all_of_it and n != "libgomp"], [], "needed by what %s needs" % program)


def symbols_are_gone():
    for program in (PIPED, PIPECTL):
        check(".symtab" not in readelf("-S", program), "symbols in", program)


def the_embedded_network_answers_rightly():
    pictures, labels = (os.path.join(ROOT, "model", "default", "heldout." + e) for e in ("pgm", "labels"))
    with Daemon(models={"digits": DIGITS}) as d:
        answers = d.pipectl("infer", "--expect", labels, pictures)
        check(answers["accuracy"] >= 0.97, answers)
        used = {u.get("primitive") or u.get("primitives") or "" for u in d.call("Units")["units"] if isinstance(u, dict)}
        check(not any("dnnl" in str(u) for u in used), used)
        d.pipectl("bench", "--frames", "200", "--verify")


if __name__ == "__main__":
    main([programs_need_little, symbols_are_gone, the_embedded_network_answers_rightly])
