# SPDX-License-Identifier: Apache-2.0
"""What clients do while calls of the daemon fail. Each ends where it began if nothing failed."""
import fcntl
import json
import os
import random
import re
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
import pyclient as pc  # noqa: E402
import tiny_onnx  # noqa: E402
from daemon import Varlink, VarlinkError, check, until  # noqa: E402

LIMIT_S = 30.0 * float(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
SIDE = 16
EXTRA_SIDE, EXTRA_CHANNELS = 8, 3
# What a client may see of a failure: an error that says what, or the end of its connection.
TOLD = (VarlinkError, pc.Closed, pc.Refused, EOFError, ConnectionError)


def picture(seed):
    return random.Random(seed).randbytes(SIDE * SIDE)


def write_model(path):
    """A network that loads in milliseconds, and whose convolutions several libraries can run."""
    tiny_onnx.write(path, [("conv", 8, 3), ("relu",), ("pool",), ("linear", 4)], channels=EXTRA_CHANNELS,
                    size=EXTRA_SIDE)


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


# lists whose length is of the moment: clients come and go with failures, trials and plans with what was learned
CHANGING = (".clients", ".trials", ".front")


def lacks(reply, known, path=""):
    """Return: what a reply has not that one had before: keys, elements of lists, metrics; None: nothing."""
    if isinstance(known, dict) and isinstance(reply, dict):
        return next((path + "." + k for k in known if k not in reply), None) or next(
            filter(None, (lacks(reply[k], known[k], path + "." + k) for k in known)), None)
    if isinstance(known, list) and isinstance(reply, list) and not path.endswith(CHANGING):
        return "%s[%d]" % (path, len(reply)) if len(reply) < len(known) else next(
            filter(None, (lacks(r, k, path + "[]") for r, k in zip(reply, known))), None)
    if path == ".text":
        return next((name for name in re.findall("^[a-z_]+", known, re.M) if name not in reply), None)
    return None


def question(method, parameters=None):
    """A scenario that asks one thing, and gets all of the answer or none. Each is one of its own: what it allocates is
    then tried soon."""
    def scenario(d):
        reply = ask(d, (method, parameters or {}))[0]
        missing = lacks(reply, d.replies.setdefault(method, reply))
        check(not missing, "an answer lacks", missing)
    scenario.__name__ = method.lower()
    return scenario


QUESTIONS = tuple(question(*words) for words in (
    ("Status",), ("Models",), ("GetPlan",), ("Metrics",), ("History", {"limit": 3}), ("Config",),
    ("Units",), ("Costs",), ("PlanFront", {"max": 3}), ("PlanExplain",)))


def load(d):
    ask(d, ("Load", {"name": "extra", "path": d.extra}), ("Unload", {"name": "extra"}))


def save(d):
    """The same, kept for the next start: writes the state folder's files."""
    ask(d, ("Load", {"name": "extra", "path": d.extra, "save": True}), ("Unload", {"name": "extra", "save": True}))


def plan(d):
    ask(d, ("SetPlan", {"plan": d.plans[1]}), ("SetPlan", {"plan": d.plans[0]}))


def reload(d):
    ask(d, ("Reload", {}))


def mapping(d):
    """The plan as a mapping, and that mapping as the plan."""
    with Varlink(d.control_path, LIMIT_S) as v:
        v.call("io.piped.SetMapping", {"mapping": v.call("io.piped.GetMapping")["mapping"]})


def retune(d):
    """A search that tries one plan; then the plan that served before."""
    ask(d, ("Retune", {"algorithm": "exact", "trials": 1}), ("SetPlan", {"plan": d.plans[0]}))


def profile(d):
    ask(d, ("Profile", {"ms": 1}))


def no_trace(d):
    """A trace whose client has gone ends at the daemon's next look at it: until then another one is refused."""
    def traced():
        try:
            trace(d)
        except VarlinkError as e:
            check("Busy" in e.error, e)
            return False
        return True
    until(traced, "an end of the trace")


def trace(d):
    """Two frames while a trace is on, which its client ends: it is told what it lost, and that this is the end."""
    ours, theirs = socket.socketpair()
    message = {"method": "io.piped.Trace", "parameters": {"seconds": 600, "ring_kib": 4}, "more": True}
    with ours, theirs, Varlink(d.control_path, LIMIT_S) as v:
        ours.settimeout(LIMIT_S)
        socket.send_fds(v.sock, [json.dumps(message).encode() + b"\0"], [theirs.fileno()])
        theirs.close()
        reply = v.receive_message()
        check("begin" in reply["parameters"]["batch"], "the first batch has no begin:", reply)
        frames(d)
        v.sock.shutdown(socket.SHUT_WR)
        while reply.get("continues"):
            reply = v.receive_message()
        check({"lost", "end"} <= set(reply["parameters"]["batch"]), "the last batch lacks something:", reply)
        while ours.recv(65536):
            pass


def has_extra(d):
    return "extra" in [m["name"] for m in ask(d, ("Models", {}))[0]["models"]]


def without_extra(d):
    if has_extra(d):
        ask(d, ("Unload", {"name": "extra"}))


def with_extra(d):
    """What is quantised is a model of its own: the answers of the other have to stay as they are."""
    if not has_extra(d):
        ask(d, ("Load", {"name": "extra", "path": d.extra}))
    ask(d, ("Quantise", {"model": "extra", "off": True}))  # it may be kept by a call whose client saw a failure


def quantise(d):
    """Two calls on one connection: by four examples, and off again."""
    count = EXTRA_SIDE * EXTRA_SIDE * EXTRA_CHANNELS
    draw = random.Random(3)
    data = struct.pack("<%df" % (4 * count), *(draw.random() for _ in range(4 * count)))
    examples = [{"name": "%d.f32" % i, "bytes": 4 * count} for i in range(4)]
    message = {"method": "io.piped.Quantise", "parameters": {"model": "extra", "examples": examples, "agreement": 0.0, "ms": 0}}
    fd = os.memfd_create("examples", os.MFD_ALLOW_SEALING)
    try:
        os.write(fd, data)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        with Varlink(d.control_path, LIMIT_S) as v:
            socket.send_fds(v.sock, [json.dumps(message).encode() + b"\0"], [fd])
            v.receive()
            v.call("io.piped.Quantise", {"model": "extra", "off": True})
    finally:
        os.close(fd)


load.before = save.before = without_extra
trace.before = no_trace
quantise.before = with_extra
SERVING = (frames, *QUESTIONS, trace, load, save, plan, mapping, reload, retune, profile, quantise)


def settle(d):
    """Nothing that a call began and nobody waits for any more goes on."""
    ask(d, ("CancelRetune", {}))
    until(lambda: ask(d, ("Status", {}))[0]["status"]["state"] == "serving", "serving")


def tidy(d):
    """After failures: as it was. Nothing fails any more, so everything here has to go well."""
    settle(d)
    for name in [m["name"] for m in ask(d, ("Models", {}))[0]["models"]]:
        if name != "digits":
            try:
                ask(d, ("Unload", {"name": name, "save": True}))
            except VarlinkError:  # it could not be saved
                ask(d, ("Unload", {"name": name}))
    ask(d, ("SetPlan", {"plan": d.plans[0]}))
    frames(d)
