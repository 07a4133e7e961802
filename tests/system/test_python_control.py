#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python client's control calls and types, its agreement with piped.h and io.piped.varlink, its page and examples.
"""
import asyncio
import inspect
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from daemon import BUILD, DIGITS, LIMIT_S, ROOT, check, equal
from python_client import LIBRARY, PACKAGE, Served, environment, heldout, main, noise, np, piped, raises

SELF = "00000000000000aa"  # a board
HEADER = os.path.join(ROOT, "ipc", "piped.h")
DECODE_HEADER = os.path.join(ROOT, "ipc", "decode", "piped_decode.h")
EXAMPLES = os.path.join(ROOT, "docs", "examples", "python")
PAGE = os.path.join(ROOT, "docs", "python.md")


def text(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def snake(name):
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


def interface():
    """Return: {method: (parameters, values)}, each {name: type}."""
    def fields(part):
        return dict(re.findall(r"(\w+): (\S+?)(?:,|\s|$)", part))
    return {name: (fields(takes), fields(gives)) for name, takes, gives in
            re.findall(r"^method (\w+) ?\(([^)]*)\) -> \(([^)]*)\)", text("ipc", "io.piped.varlink"), re.M)}


def methods_are_those_of_the_interface():
    """With the same parameters and values, and each is known to the daemon."""
    python = {"string": "str", "int": "int", "float": "float", "bool": "bool", "object": "Dict[str, Any]",
              "[]object": "List[Dict[str, Any]]", "[]string": "List[str]"}

    def wanted(name, kind):
        one = "Examples" if name == "examples" else python[kind.lstrip("?")]
        return "Optional[%s]" % one if kind.startswith("?") else one

    check(len(interface()) > 20, "the interface was not understood")
    calls = piped.Calls
    equal({n for n in vars(calls) if not n.startswith("_")} - {"errors"}, {snake(n) for n in interface()})
    with Served() as d:
        for name, (takes, gives) in interface().items():
            method = getattr(calls, snake(name))
            got = {p.name.rstrip("_"): p.annotation for p in inspect.signature(method).parameters.values() if p.name != "self"}
            fds = {"fds": "Sequence[int]"} if name in ("Load", "Trace") else {}
            equal(got, {**{n: wanted(n, t) for n, t in takes.items()}, **fds}, name)
            reply = inspect.signature(method).return_annotation
            if gives:
                reply = getattr(sys.modules["piped._calls"], re.sub(r"^Monitor\[(.*)\]$", r"\1", reply))
                equal(reply.__annotations__, {n: wanted(n, t) for n, t in gives.items()}, name)
            e = raises(piped.ControlError, "InvalidParameter", piped.control(d.control_path).call, name, {"no_such": 1})
            equal(e.parameters, {"parameter": "no_such"})
    errors = re.findall(r"^error (\w+)", text("ipc", "io.piped.varlink"), re.M)
    check(errors and all(issubclass(getattr(piped, e), piped.ControlError) for e in errors), errors)


def every_method_does_its_work():
    with Served() as d:
        c, done = piped.control(d.control_path, timeout=LIMIT_S), set()

        def call(name, *args, **more):
            done.add(name)
            return getattr(c, name)(*args, **more)

        place = call("status").status["eps"][0]["name"]
        equal([m["name"] for m in call("status", "digits").status["models"]], ["digits"])
        equal([m["name"] for m in call("models").models], ["digits", "colour"])
        with open(DIGITS, "rb") as f:
            equal(call("load", "more", DIGITS, files=["digits.onnx"], fds=[f.fileno()]).model["name"], "more")
        equal(call("set_plan", "0-11@%s" % place, "more").plan, "0-11@%s" % place)
        equal(call("get_plan", "more").plan, "0-11@%s" % place)
        mapping = call("get_mapping", "more").mapping
        equal(call("set_mapping", mapping, "more").plan, "0-11@%s" % place)
        check(call("auto_plan", "more").epoch > 1, "the plan has no new epoch")
        equal(call("unload", "more"), None)
        check(call("units", "digits").units[0]["weight"] > 0)
        check(call("costs", "digits").problem)
        check(call("plan_front", "digits", max=3).front[0]["fps"] > 0)
        check(call("plan_explain", "digits").explanation)
        check(call("plan_mix").mix["models"])
        equal(call("set_wishes", "digits", rate=30.0, class_=2).wishes["class"], 2)
        check(call("profile", ms=50).kinds)
        equal(call("optimise", "digits", ms=20, pareto=True).choice["model"], "digits")
        check(call("history", "digits", limit=5).events is not None)
        check("piped_uptime_seconds" in call("metrics").text)
        check("spin_us" in {row["key"] for row in call("config").config})
        equal(call("reload"), None)
        pictures = [("%d.pgm" % k, x) for k, x in enumerate(heldout(40))]
        equal(call("quantise", "digits", examples=pictures, ms=0, agreement=0.0).quantised["judged"], 20)
        equal(call("quantise", "digits", off=True).quantised, None)
        with call("subscribe") as events:
            c.set_plan("0-11@%s" % place, "digits")
            check(next(events).event)
        with call("link_routes") as routes:
            check(isinstance(next(routes).routes, dict))
        me = {"board": SELF, "known": True, "version": "0", "memory_bytes": 0}
        equal(call("link_report", {"self": me}), None)
        equal(call("retune", "digits", trials=1, wait=False).event, None)
        check(isinstance(call("cancel_retune", "digits").cancelled, bool))
        ours, theirs = socket.socketpair()
        with ours, theirs, call("trace", seconds=0.1, fds=[theirs.fileno()]) as replies:
            check(next(r.batch for r in replies if "end" in r.batch)["end"]["why"])
        equal(done, {snake(n) for n in interface()})


def examples_travel_in_all_forms():
    """Arrays of pictures and tensors, files that the daemon reads and files that Pillow does."""
    with Served() as d:
        c = piped.control(d.control_path, timeout=LIMIT_S)
        pixels = heldout(3)
        with open(d.path("a.pgm"), "wb") as f:
            f.write(b"P5\n8 8\n255\n" + pixels[0].tobytes())
        forms = [d.path("a.pgm"), ("b", b"P5\n8 8\n255\n" + pixels[1].tobytes()), ("c", pixels[2]),
                 ("d", noise((9, 9, 3), 1)), ("e", np.zeros((1, 1, 16, 16), np.float32))]
        try:
            from PIL import Image
            Image.fromarray(pixels[0]).save(d.path("f.png"))
            forms.append(d.path("f.png"))
            tag, upright = Image.Exif(), noise((6, 9, 3), 1)
            tag[0x0112] = 8  # stored turned clockwise
            Image.fromarray(np.rot90(upright, -1)).save(d.path("turned.png"), exif=tag)
            equal(piped.varlink._decoded(d.path("turned.png")), b"P6\n9 6\n255\n" + upright.tobytes())
            Image.fromarray(np.array([[0x1234, 0xfedc]], np.int32)).save(d.path("wide.png"))
            equal(piped.varlink._decoded(d.path("wide.png")), b"P5\n2 1\n255\n\x12\xfe")
        except ImportError:
            pass
        got = c.quantise("digits", examples=forms, ms=0, agreement=0.0).quantised
        equal((got["calibrated"] + got["judged"], got["left_out"]), (len(forms), 0), got["left_out_first"])
        raises(ValueError, "an example is a picture of uint8", c.quantise, examples=[("a", np.zeros((3, 3)))])
        raises(FileNotFoundError, "no-such", c.quantise, examples=[d.path("no-such.pgm")])


def refusals_are_exceptions():
    with Served() as d:
        c = piped.control(d.control_path)
        e = raises(piped.NotFound, "no such model: digitz; did you mean digits?", c.status, "digitz")
        equal((e.error, e.what[:13]), ("io.piped.NotFound", "no such model"))
        raises(piped.InvalidPlan, "", c.set_plan, "nonsense", "digits")
        raises(piped.LoadFailed, "/no/such.onnx", c.load, "x", "/no/such.onnx")
        d.signal(signal.SIGSTOP)
        silent = piped.control(d.control_path, timeout=0.1)
        raises(piped.TimedOut, "piped at %s has not answered for 0.1 s" % d.control_path, silent.status)
        raises(TimeoutError, "", silent.status)
        d.signal(signal.SIGCONT)
        events = c.subscribe()
        d.kill()
        raises(piped.NotConnected, "closed the connection", list, events)  # after events that came before
        raises(piped.NotReachable, "not reachable", c.status)
        d.start()
        check(c.status().status["state"], "after a restart")
        d.write_config("{")
        check(raises(piped.ReloadFailed, "", c.reload).why)


def a_quiet_monitor_says_so():
    """It was answered, so the daemon is well; it goes on afterwards."""
    with Served() as d, piped.control(d.control_path, timeout=0.2).subscribe() as events:
        check(select.select([events], [], [], LIMIT_S)[0], "no first reply")
        raises(piped.TimedOut, "nothing happened for 0.2 s", list, events)
        d.call("AutoPlan", {"model": "digits"})
        check(select.select([events], [], [], LIMIT_S)[0], "no event")
        check(next(events).event)


def monitors_in_asyncio():
    with Served() as d, piped.connect(d.frames_path) as p:
        async def watch():
            with p.control.subscribe() as events:
                await asyncio.to_thread(p.control.auto_plan, "digits")
                async for reply in events:
                    return reply.event

        check(asyncio.run(asyncio.wait_for(watch(), LIMIT_S)))


def declarations_are_those_of_the_compiler():
    """Sizes, offsets and constants that cffi works with, against a program that includes piped.h."""
    from piped._libpiped import ffi, lib
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if not compiler:
        return "no C compiler"
    typedefs, structs, _ = ffi.list_types()
    equal(typedefs, [])
    rows, wanted = [], []
    for name in structs:
        kind = ffi.typeof("struct " + name)
        if kind.fields is None:
            continue
        rows.append(("struct " + name, "sizeof(struct %s)" % name, "_Alignof(struct %s)" % name))
        wanted.append(("struct " + name, ffi.sizeof(kind), ffi.alignof(kind)))
        for field, f in kind.fields:
            rows.append(("%s.%s" % (name, field), "offsetof(struct %s, %s)" % (name, field),
                         "sizeof(((struct %s *)0)->%s)" % (name, field)))
            wanted.append(("%s.%s" % (name, field), f.offset, ffi.sizeof(f.type)))
    enums = ("piped_status", "piped_pixfmt", "piped_policy", "piped_dtype")
    for name in enums:
        for number, member in ffi.typeof("enum " + name).elements.items():
            rows.append((member, member, "0"))
            wanted.append((member, number, 0))
    rows.append(("PIPED_RECONNECT_NEVER", "PIPED_RECONNECT_NEVER", "0"))
    wanted.append(("PIPED_RECONNECT_NEVER", lib.PIPED_RECONNECT_NEVER, 0))
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
        with open(source, "w", encoding="utf-8") as f:
            f.write('#include <stdio.h>\n#include "%s"\n#include "%s"\nint main(void) {\n%s\nreturn 0; }\n' % (
                HEADER, DECODE_HEADER, "\n".join(
                    'printf("%s %%zu %%zu\\n", (size_t)%s, (size_t)%s);' % row for row in rows)))
        subprocess.run([compiler, "-std=gnu11", source, "-o", program], check=True, timeout=LIMIT_S)
        said = subprocess.run([program], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout
    got = [(m.group(1), int(m.group(2)), int(m.group(3))) for m in re.finditer(r"^(.*) (\d+) (\d+)$", said, re.M)]
    equal(got, wanted)
    check(len(got) > 70, "only %d figures were compared" % len(got))
    values = sys.modules["piped.values"]
    for name, kind in zip(enums, (values.Status, values.Pixfmt, values.Policy, values.Dtype)):
        equal({"PIPED_" + m.name: m.value for m in kind},
              {member: number for number, member in ffi.typeof("enum " + name).elements.items()})
    return None


def symbols_are_those_of_the_library():
    from piped._libpiped import lib
    declared = set(re.findall(r"PIPED_API [^;(]*?\b(piped_\w+)\(", text("ipc", "piped.h") +
                              text("ipc", "decode", "piped_decode.h")))
    equal({n for n in dir(lib) if n.startswith("piped_")} >= declared, True, "functions")
    exported = set(re.findall(r"^ +(piped_\w+);", text("ipc", "client", "libpiped.map"), re.M))
    check(declared <= exported, declared - exported)
    for name in declared:
        check(getattr(lib, name), name)
    check(os.path.exists(LIBRARY))


def types_are_strict():
    if not shutil.which("mypy"):
        return "mypy is not installed"
    with tempfile.TemporaryDirectory() as folder:
        use = os.path.join(folder, "use.py")
        with open(use, "w", encoding="utf-8") as f:
            f.write("import piped\np = piped.connect()\ns = p.stream(pixfmt='gray8')\n"
                    "for a in s.infer([b'']):\n    reveal_type(a[0])\n    reveal_type(a.top())\n"
                    "reveal_type(p.control.get_plan().plan)\nreveal_type(next(p.control.subscribe()).event)\n")
        config = os.path.join(folder, "mypy.ini")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[mypy]\n[mypy-PIL.*]\nignore_missing_imports = True\n")  # its types are a package of their own
        r = subprocess.run(["mypy", "--strict", "--config-file", config,
                            "--cache-dir", os.path.join(BUILD, "mypy-cache"), "--python-executable",
                            "/usr/bin/python3", os.path.join(PACKAGE, "piped"), use], capture_output=True, text=True,
                           check=False, timeout=8 * LIMIT_S, env=dict(os.environ, MYPYPATH=PACKAGE), cwd=folder)
    equal(r.returncode, 0, r.stdout + r.stderr)
    for kind in ('numpy.ndarray', 'List[piped.values.Top]"', '"builtins.str"', 'Dict[builtins.str, Any]"'):
        check(kind in r.stdout.replace("builtins.list", "List").replace("builtins.dict", "Dict"), kind, r.stdout)
    return None


def lines_of_the_page_run():
    """Each block of Python of docs/python.md, one after the other."""
    try:
        from PIL import Image
    except ImportError:
        return "this Python has no PIL"
    with open(PAGE, encoding="utf-8") as f:
        blocks = re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)
    check(len(blocks) > 5, "the blocks were not found")
    with Served() as d:
        Image.fromarray(noise((60, 80, 3), 1)).save(d.path("photo.jpg"))
        os.makedirs(d.path("pictures"))
        for k, x in enumerate(heldout(6)):
            Image.fromarray(x).save(d.path("pictures/%d.png" % k))
        with open(d.path("page.py"), "w", encoding="utf-8") as f:
            f.write("\n".join(blocks))
        r = subprocess.run(["/usr/bin/python3", "page.py"], cwd=d.temp, env=environment(d), capture_output=True,
                           text=True, timeout=LIMIT_S, check=False)
        equal(r.returncode, 0, r.stdout + r.stderr)
    return None


def run_example(d, name, *args, data=b"", expect=0):
    r = subprocess.run(["/usr/bin/python3", os.path.join(EXAMPLES, name), *args], env=environment(d), input=data,
                       capture_output=True, timeout=LIMIT_S, check=False)
    equal(r.returncode, expect, "%s\n%s%s" % (name, r.stdout.decode(), r.stderr.decode()))
    return r.stdout.decode()


def examples_do_what_they_say():
    with Served() as d:
        place = d.status()["eps"][0]["name"]
        try:
            from PIL import Image
            os.makedirs(d.path("pictures"))
            for k, x in enumerate(heldout(5)):
                Image.fromarray(x).save(d.path("pictures/%d.png" % k))
            said = run_example(d, "classify.py", d.path("pictures"), "digits")
            equal([line.split(":")[0] for line in said.splitlines()][::3], ["%d.png" % k for k in range(5)])
            with open(os.path.join(ROOT, "model", "default", "heldout.labels"), encoding="ascii") as f:
                labels = f.read().split()[:5]
            best = [line.split()[-1] for line in said.splitlines()[::3]]
            check(sum(a == b for a, b in zip(best, labels)) >= 4, best, labels)
        except ImportError:
            print("without classify.py: this Python has no PIL")
        said = run_example(d, "camera.py", "32x24", "yuyv", "digits", data=noise(50 * 32 * 24 * 2 + 7, 1).tobytes())
        seen, dropped = map(int, re.search(r"(\d+) computed, (\d+) dropped\n$", said).groups())
        equal(seen + dropped, 50)
        said = run_example(d, "tasks.py", "digits")
        equal(len(re.findall(r"^task \d: \d, [0-9.]+ ms$", said, re.M)), 8, said)
        check("and 108 frames in a row" in said, said)
        said = run_example(d, "plan.py", "--model", "digits", "--set", "0-11@" + place, "--watch", "1")
        check(said.startswith("0-11@%s (" % place) and "frames/s" in said and "event: " in said, said)
        run_example(d, "plan.py", "--set", "nonsense", expect=1)
        check(re.search(r"^digits: [0-9.]+ frames/s, \d+ dropped, plan 0-", run_example(d, "metrics.py", "1"), re.M))


if __name__ == "__main__":
    main([methods_are_those_of_the_interface, every_method_does_its_work, examples_travel_in_all_forms,
          refusals_are_exceptions, a_quiet_monitor_says_so, monitors_in_asyncio, declarations_are_those_of_the_compiler,
          symbols_are_those_of_the_library, types_are_strict, lines_of_the_page_run, examples_do_what_they_say])
