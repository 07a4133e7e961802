# SPDX-License-Identifier: Apache-2.0
"""pipectl beside one daemon for all cases of a test: run, and asked whether it went well."""
import json
import os
import subprocess

from daemon import DIGITS, PIPECTL, Daemon, check, equal, main

DAEMON = None


def run(*args, env=None, input=b""):
    command = [PIPECTL, "--socket", DAEMON.control_path] + list(args)
    r = subprocess.run(command, capture_output=True, timeout=120, check=False, env=env, input=input)
    r.stdout, r.stderr = r.stdout.decode(), r.stderr.decode()
    return r


def good(*args):
    r = run(*args)
    equal(r.returncode, 0, " ".join(args) + r.stdout + r.stderr)
    return r.stdout


def good_json(*args):
    return json.loads(good("--json", *args))


def bad(code, words, *args):
    r = run(*args)
    equal(r.returncode, code, " ".join(args) + r.stdout + r.stderr)
    equal(r.stdout, "")
    for word in words:
        check(word in r.stderr, repr(word), "is not in", repr(r.stderr))


def keys(v, *wanted):
    check(set(wanted) <= set(v), "missing", set(wanted) - set(v), "in", v)


def place():
    """The name of this machine's first execution place."""
    return good_json("status")["eps"][0]["name"]


def run_all(cases, **options):
    """With one daemon for all of them, of digits, or of these options. Return: an exit code."""
    global DAEMON
    if not os.path.exists(DIGITS):
        print("skipped: no", DIGITS)
        return 77
    with Daemon(**{"models": {"digits": DIGITS}, "config": {"spin_us": 20}, **options}) as DAEMON:
        try:
            main(cases)
        except SystemExit as e:
            return e.code
    return 0
