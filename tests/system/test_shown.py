#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What comes from outside reaches no terminal raw, whoever made it: a configuration, a catalogue, a file's name, an option,
a daemon. And a fifo in place of a file keeps nobody waiting.

usage: test_shown.py [CASE]...
"""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading

import test_inspect as models
import tiny_onnx as onnx
from daemon import BUILD, DIGITS, LIMIT_S, PIPECTL, PIPED, Daemon, check, equal, main

# a colour, the same in one byte, text from right to left, no width, a tag, a rubout
EVIL = "x\x1b[31m\x9b31m\u202e\u200b\u2028\ufeff\U000e0041\x7fy"
SHOWN = "x?[31m?31m?" + "?" * 5 + "y"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff\U000e0000-\U000e007f]")
PIPESIM = os.path.join(BUILD, "tuner", "pipesim")
DAEMONS = [PIPED] + [p for p in (os.path.join(BUILD, "apps", name) for name in ("link/piped-link", "http/piped-http"))
                     if os.path.exists(p)]


def run(*args, expect, says=(SHOWN,)):
    """Nothing hidden is in what the program prints on both outputs, and these words are."""
    r = subprocess.run(args, capture_output=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)
    text = r.stdout.decode() + r.stderr.decode()
    equal(r.returncode, expect, "%s\n%r" % (args, text))
    check(not HIDDEN.search(text), args, repr(text))
    for word in says:
        check(word in text, args, "should say", word, "and said", repr(text))
    return text


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="piped-test-")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path)

    def write(self, name, content):
        path = os.path.join(self.path, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def fifo(self, name):
        path = os.path.join(self.path, name)
        os.mkfifo(path)
        return path


def configurations():
    model = {"name": "m", "path": DIGITS}
    refused = [{EVIL: 1}, {"models": [{"name": EVIL, "path": "x"}]}, {"models": [{"name": "m", "path": "/" + EVIL}]},
               {"models": [dict(model, plan=EVIL)]}, {"models": [dict(model, preprocess={EVIL: 1})]},
               {"eps": [{"name": EVIL, "cpus": "0"}]}, {"eps": [{"name": "a", "cpus": EVIL}]}, {"socket_group": EVIL}]
    with Folder() as f:
        for config in refused:
            run(PIPED, "--check-config", "--config", f.write("c.json", config), expect=78, says=["piped: "])
        syntax = f.write("c.json", b'{"a": \x1b\xc2\x9b31m}')
        run(PIPED, "--check-config", "--config", syntax, expect=78, says=["c.json:1: "])
        served = f.write("c.json", {"default_model": EVIL, "admin_group": EVIL, "models": [model]})
        run(PIPED, "--check-config", "--config", served, expect=0, says=["default_model: \"" + SHOWN])
        run(PIPED, "--check-config", "--config", os.path.join(f.path, EVIL), expect=78)
    run(PIPED, "--check-config", "--model", EVIL + "=" + DIGITS, expect=78)


def options():
    for program in DAEMONS:
        run(program, "--" + EVIL, expect=2, says=["unknown option --" + SHOWN])
        run(program, EVIL, expect=2, says=["argument"])
    run(PIPED, "-x", expect=2, says=["unknown option -x; see --help"])
    for args in ([PIPECTL, "models", "load", "a"], [PIPESIM, "compare"], *[[p] for p in DAEMONS]):
        run(*args, "-xy", expect=2, says=["unknown option -x"])
    for args in ([PIPECTL, "bench", "-seconds", "3"], [PIPESIM, "compare", "-model", "a"], [PIPED, "-config", "a"]):
        run(*args, expect=2, says=["; did you mean -%s?\n" % next(a for a in args if a.startswith("-"))])
    run(PIPED, "--json=1", expect=2, says=["--json=1: this option takes no value"])
    run(PIPED, "--config", expect=2, says=["--config needs a value"])
    for program in (PIPECTL, PIPESIM):
        run(program, EVIL, expect=2)
        run(program, "plan", "--" + EVIL, expect=2)


def messages_are_one_line():
    """A name with a newline makes no second line that looks like a message."""
    forged = "x\npipectl: all is well"
    for args in ([PIPECTL, "bench", "--rate", forged], [PIPECTL, "status", forged],
                 [PIPECTL, forged], [PIPECTL, "--timeout", forged, "status"], [PIPECTL, "plan", "--" + forged],
                 [PIPECTL, "--socket", "/" + forged, "status"], [PIPESIM, "compare", "--seed", forged], [PIPED, forged],
                 [PIPED, "--check-config", "--config", forged], [PIPED, "--check-config", "--model", forged + "=" + DIGITS]):
        r = subprocess.run(args, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        check(r.returncode != 0 and "?pipectl: all is well" in r.stderr, args, r)
        check("\npipectl: all is well" not in r.stderr, args, r)


def catalogues():
    row = {"name": "net", "url": "http://127.0.0.1:1/x", "bytes": 1, "sha256": "0" * 64,
           "licence": EVIL + "\tfree", "about": EVIL + "\nnet2\tall"}
    with Folder() as f:
        path = f.write("c.json", {"models": [row]})
        text = run(PIPECTL, "models", "fetch", "--catalogue", path, expect=0)
        line = [x for x in text.split("\n") if x.startswith("net ")]
        equal([x.split() for x in line], [["net", "0.00", SHOWN + "?free", SHOWN + "?net2?all"]])
        run("env", "PIPED_RUNTIME_DIR=/nonexistent", PIPECTL, "--json", "models", "fetch", "--catalogue", path, expect=0,
            says=["\\u009b"])
        run(PIPECTL, "models", "fetch", "--catalogue", f.fifo("d.json"), expect=1, says=["d.json: not a regular file"])
        run(PIPECTL, "models", "fetch", "--catalogue", f.path, expect=1, says=["d.json: not a regular file"])


def names_of_files():
    with Folder() as f:
        path = os.path.join(f.path, EVIL + "\n.onnx")
        models.write(path, [onnx.node("Relu", ["x"], "y")], [models.value("x", models.F32, [1, 3])],
                     [models.value("y", models.F32, [1, 3])])
        text = run(PIPECTL, "models", "inspect", path, "--write-sidecar", expect=0, says=["wrote ", SHOWN + "?.sidecar.json"])
        equal(text.count(SHOWN + "?"), 3, text)
        check(re.search(r"^sidecar +/.*%s\?\.sidecar\.json$" % re.escape(SHOWN), text, re.M), text)
        run(PIPECTL, "models", "inspect", path, "--write-sidecar", expect=1, says=["is there; --force replaces it"])
        with Daemon(models={"digits": DIGITS}) as d:
            trace = os.path.join(f.path, EVIL + ".pftrace")
            run(PIPECTL, "--socket", d.control_path, "trace", "--seconds", "0.01", "--output", trace, expect=0)


def names_that_are_not_utf8():
    """Whatever lists such a file has "?" in its name, and leaves out nothing."""
    with Folder() as f:
        path = os.fsdecode(os.path.join(os.fsencode(f.path), b"x\xff.onnx"))
        shutil.copy(DIGITS, path)
        shown = f.path + "/x?.onnx"
        said = json.loads(run(PIPECTL, "--json", "models", "inspect", path, expect=0, says=[shown]))
        equal((said["file"], said["sidecar"]["path"]), (shown, f.path + "/x?.sidecar.json"))
        with Daemon(models={"m": path}) as d:
            equal([(m["name"], m["path"]) for m in d.pipectl("models")], [("m", shown)])
            equal([c["value"]["path"] for c in d.call("Config")["config"] if c["key"] == "models[0]"], [shown])
            for ending, command in ((".pftrace", ["trace", "--seconds", "0.01", "-o"]), (".pgm", ["infer", "--model", "m"]),
                                    (".html", ["report", "--seconds", "0.1", "-o"])):
                path = os.fsdecode(os.path.join(os.fsencode(f.path), b"x\xff")) + ending
                f.write(path, b"P5\n16 16\n255\n" + bytes(256))
                said = d.pipectl(*command, path)
                check('"file": "%s/x?%s"' % (f.path, ending) in json.dumps(said), ending, said)


def keys_of_answers():
    """A daemon that is none: pipectl connects to whatever has the socket."""
    answer = {"parameters": {"config": [{"key": EVIL, "value": {EVIL: EVIL, "more": {EVIL: [EVIL]}}, "origin": EVIL}]}}
    with Folder() as f, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        path = os.path.join(f.path, "control.sock")
        s.bind(path)
        s.listen()

        def serve():
            with s.accept()[0] as c:
                while not c.recv(65536).endswith(b"\0"):
                    pass
                c.sendall(json.dumps(answer, ensure_ascii=False).encode() + b"\0")
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            text = run(PIPECTL, "--socket", path, "config", expect=0)
        finally:
            thread.join()
        check(text.count(SHOWN) >= 4, text)


def fifos_among_pictures():
    with Folder() as f, Daemon(models={"digits": DIGITS}) as d:
        f.fifo("a.png")
        f.write("b.pgm", b"P5\n16 16\n255\n" + bytes(256))
        ctl = [PIPECTL, "--socket", d.control_path]
        env = ["env", "PIPED_RUNTIME_DIR=" + d.runtime_dir]
        run(*env, *ctl, "infer", f.path, expect=1, says=["a.png: not a regular file", "b.pgm"])
        r = subprocess.run([*ctl, "quantize", "digits", "--calibrate", f.path], capture_output=True, text=True,
                           timeout=LIMIT_S, check=False)
        check("skipping %s/a.png: not a regular file" % f.path in r.stderr, r)


if __name__ == "__main__":
    main([configurations, options, messages_are_one_line, catalogues, names_of_files, names_that_are_not_utf8, keys_of_answers,
          fifos_among_pictures])
