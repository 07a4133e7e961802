# SPDX-License-Identifier: Apache-2.0
"""pipectl doctor beside a daemon that has something to be found: what it says, and what brings that about."""
import contextlib
import functools
import itertools
import json
import subprocess
import threading

import pyclient as pc
from adapting import Tree
from daemon import DIGITS, HEARTBEAT, LIMIT_S, PIPECTL, Daemon, check, equal
from wait import asked

CROWDED = 0.1  # of the time that a stage holds a frame


def run(*args, expect=None):
    r = subprocess.run([PIPECTL] + list(args), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if expect is not None:
        equal(r.returncode, expect, "%s\n%s%s" % (args, r.stdout, r.stderr))
    return r


def doctor(d, *args, seconds="0.5"):
    """What it says; its exit code must agree."""
    r = run("--socket", d.control_path, "--json", "doctor", "--seconds", seconds, *args)
    check(r.returncode in (0, 1), r.stdout + r.stderr)
    v = json.loads(r.stdout)
    equal(r.returncode, 0 if v["well"] else 1)
    equal(v["well"], all(f["severity"] == "note" for f in v["findings"]))
    return v


class Crowded(Exception):
    """Others take the cores: what a finding is about does not happen."""


def is_crowded(findings):
    return any(f["name"] == "shared-cores" and (f["share"] or 0) > CROWDED for f in findings)


def unless_crowded(case):
    @functools.wraps(case)
    def run_case():
        try:
            return case()
        except Crowded as e:
            return "programs beside this test take the cores: %s" % e
    return run_case


def finds(d, name, *words, least=None, seconds=0.5):
    """Asks until there is a finding @name with these words and at least that share. On a busy machine few frames come in a
    short time, so it watches for longer each time."""
    seen, lasts = [], (min(seconds * 2 ** i, 8) for i in itertools.count())

    def found():
        seen[:] = doctor(d, seconds=str(next(lasts)))["findings"]
        return next((f for f in seen if f["name"] == name and all(w in f["text"] for w in words)
                     and (least is None or (f["share"] or 0) >= least)), None)
    finding = asked(found, LIMIT_S / 3)
    if not finding and name != "shared-cores" and is_crowded(seen):
        raise Crowded(name)
    check(finding, "no finding", name, words, least, json.dumps(seen, indent=1))
    check(len(finding["advice"]) > 10, finding)
    return finding


def served(*models, config=None, **options):
    """A daemon of these models, by name and file; none: digits."""
    config = {"sensors": {"interval_ms": 20}, **(config or {})}
    return Daemon(models=dict(models) or {"digits": DIGITS}, config=config, env=HEARTBEAT, **options)


@contextlib.contextmanager
def on_tree(*models, files=(), **options):
    """A daemon of a machine that is a tree of files, with PSI."""
    d = served(*models, **options)
    t = Tree(d.temp)
    for name, text in files or ():
        t.put(name, text)
    t.put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000")
    t.put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000")
    d.args = ["--sysfs-root", t.root]
    with d:
        yield d, t


@contextlib.contextmanager
def load(d, *args):
    """Frames of pipectl bench until the block is left."""
    command = [PIPECTL, "--socket", d.control_path, "bench", "--seconds", "600"] + list(args)
    before = sum(m["frames"]["answered"] + m["frames"]["dropped"] for m in d.status()["models"])
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        check(d.wait_until(lambda: sum(m["frames"]["answered"] + m["frames"]["dropped"]
                                       for m in d.status()["models"]) > before + 5), "no frames")
        yield p
    finally:
        p.kill()
        p.wait()


@contextlib.contextmanager
def sending(d, **options):
    """A client that always has as many frames on their way as it may, whatever becomes of them."""
    c, stop = pc.Connection(d.frames_path), threading.Event()
    s = pc.Stream(c, inline=True, **options)
    frame = bytes(s.in_size)

    def go():
        for _ in range(s.credits):
            s.submit(frame)
        while not stop.is_set():
            s.result()
            s.submit(frame)

    t = threading.Thread(target=go, daemon=True)
    t.start()
    try:
        yield
    finally:
        stop.set()
        t.join(LIMIT_S)
        c.close()


@contextlib.contextmanager
def rising(tree, path, form):
    """Writes a file again and again, with a number that rises, until the block is left."""
    stop = threading.Event()

    def go():
        n = 0
        while not stop.wait(0.02):
            n += 1
            tree.put(path, form % ((n,) * form.count("%d")))

    t = threading.Thread(target=go, daemon=True)
    t.start()
    try:
        yield
    finally:
        stop.set()
        t.join(LIMIT_S)
