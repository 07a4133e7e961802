# SPDX-License-Identifier: Apache-2.0
"""What clients do while calls of the daemon fail. Each ends where it began if nothing failed."""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
import pyclient as pc  # noqa: E402
import tiny_onnx  # noqa: E402
from daemon import Varlink, VarlinkError, check  # noqa: E402

LIMIT_S = 30.0 * float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
SIDE = 16
# What a client may see of a failure: an error that says what, or the end of its connection.
TOLD = (VarlinkError, pc.Closed, pc.Refused, EOFError, ConnectionError)


def picture(seed):
    return random.Random(seed).randbytes(SIDE * SIDE)


def write_model(path):
    """A network that loads in milliseconds, and whose convolutions several libraries can run."""
    tiny_onnx.write(path, [("conv", 8, 3), ("relu",), ("pool",), ("linear", 4)], channels=3, size=8)


def stream(d, **options):
    c = pc.Connection(d.frames_path, timeout=LIMIT_S)
    try:
        return pc.Stream(c, pixfmt=pc.GRAY8, image=(SIDE, SIDE), credits=2, **options)
    except BaseException:
        c.close()
        raise


def end(s):
    s.free()
    s.c.close()


def ask(d, *calls):
    with Varlink(d.control_path, LIMIT_S) as v:
        return [v.call("io.piped." + method, parameters) for method, parameters in calls]


def right(d, r, seed):
    """An answer with status ok is right; others say why."""
    if r.status == "ok":
        check(r.output == d.wanted[seed], "a wrong answer")
    else:
        check(r.text, "an error without a text:", r.status)
        raise pc.Refused(r.status, r.text)


def frames(d):
    for inline in (False, True):
        s = stream(d, inline=inline)
        try:
            for seed in range(2):
                right(d, s.infer(picture(seed)), seed)
            s.close()
        finally:
            end(s)


def questions(d):
    ask(d, ("Status", {}), ("Models", {}), ("GetPlan", {}), ("Metrics", {}), ("History", {}), ("Config", {}))


def load(d):
    ask(d, ("Load", {"name": "extra", "path": d.extra}), ("Unload", {"name": "extra"}))


def save(d):
    """The same, kept for the next start: writes the state folder's files."""
    ask(d, ("Load", {"name": "extra", "path": d.extra, "save": True}), ("Unload", {"name": "extra", "save": True}))


def plan(d):
    ask(d, ("SetPlan", {"plan": d.plans[1]}), ("SetPlan", {"plan": d.plans[0]}))


def reload(d):
    ask(d, ("Reload", {}))


def retune(d):
    with Varlink(d.control_path, LIMIT_S) as v:
        v.call("io.piped.Retune", {"algorithm": "exact", "max_trials": 1})


SERVING = (frames, questions, load, save, plan, reload)


def tidy(d):
    """After failures: as it was. Nothing fails any more, so everything here has to go well."""
    for name in [m["name"] for m in ask(d, ("Models", {}))[0]["models"]]:
        if name != "digits":
            try:
                ask(d, ("Unload", {"name": name, "save": True}))
            except VarlinkError:  # it could not be saved
                ask(d, ("Unload", {"name": name}))
    ask(d, ("SetPlan", {"plan": d.plans[0]}))
    frames(d)
