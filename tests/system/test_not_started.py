#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A service that fails to start, whose sockets stay: every client says at once why, with file, line and key, and none starts
it again and again."""
import os
import select
import shutil
import signal
import socket
import subprocess
import time

import gst
import python_client
from daemon import BUILD, DIGITS, LIMIT_S, PIPECTL, Daemon, check, equal, main
from http_server import PIPED_HTTP, Http
from socket_units import Manager
from wait import during, until

BAD = '{\n "models": [{"name": "digits", "path": "%s"}],\n "log_level": "loud"\n}' % DIGITS
GOOD = {"models": [{"name": "digits", "path": DIGITS}]}
PIPED_LINK = os.path.join(BUILD, "apps", "link", "piped-link")
STARTS = "the service failed to start: "
PICTURE = b"P5 16 16 255\n" + bytes(256)


def broken():
    return Manager(Daemon(config=BAD))


def reason(m):
    return "%s%s:3: log_level: " % (STARTS, m.d.config_path)


def run(m, *command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env=dict(os.environ, PIPED_RUNTIME_DIR=m.d.runtime_dir, **(env or {})))
    return done.returncode, done.stdout + done.stderr


def told(m, said):
    check(reason(m) in said, said)
    check("io.piped" not in said and "{" not in said, "not English:", said)


def pipectl_says_it():
    """Commands that use frames, and those of the control socket; also where they were asked to wait."""
    with broken() as m:
        picture = os.path.join(m.d.temp, "a.pgm")
        with open(picture, "wb") as f:
            f.write(PICTURE)
        for command in (["infer", picture], ["bench", "--frames", "1"], ["bench", "--reconnect", "60", "--frames", "1"],
                        ["--timeout", "60", "infer", picture], ["status"], ["subscribe"], ["history"], ["health"],
                        ["health", "--wait", "60"], ["retune"], ["trace", "-o", os.path.join(m.d.temp, "t.pftrace")],
                        ["top", "--once"], ["doctor"], ["report", "-o", os.path.join(m.d.temp, "r.html")],
                        ["models", "load", "detector"], ["models"], ["units"], ["costs"], ["plan", "explain"],
                        ["plan", "front"], ["optimise"], ["quantize", "--calibrate", m.d.temp], ["quantize", "--off"],
                        ["bench", "--autodice"], ["reload"], ["metrics"], ["profile"]):
            before = m.starts
            code, said = run(m, PIPECTL, *command)
            equal(code, 3, "%s: %s" % (command, said))
            told(m, said)
            equal(said.count(STARTS), 1, said)
            check("mend that; the next client starts it" in said, command, said)
            check(m.starts - before <= 1, command, "started it", m.starts - before, "times")


def clients_that_ask_again_and_again_start_it_rarely():
    """And they are told the reason of the present configuration."""
    with broken() as m:
        before, gaps = time.monotonic(), 0
        for _ in during(5):
            told(m, run(m, PIPECTL, "status")[1])
            now = time.monotonic()
            gaps, before = gaps + (now - before > 1), now
        check(m.starts <= 1 + gaps, "started", m.starts, "times in 5 s")
        m.d.write_config(BAD.replace("log_level", "log_levle"))
        said = run(m, PIPECTL, "status")[1]
        check("log_levle" in said, "the old reason:", said)


def the_first_client_after_the_mending_starts_it():
    with broken() as m:
        equal(run(m, PIPECTL, "bench", "--frames", "1")[0], 3)
        m.d.write_config(GOOD)
        code, said = run(m, PIPECTL, "bench", "--frames", "1")
        equal(code, 0, said)


def a_mended_model_is_noticed_at_once():
    """While the start that could not load it still answers."""
    with Manager(Daemon(config=BAD)) as m:
        path = os.path.join(m.d.temp, "net.onnx")
        m.d.write_config({"models": [{"name": "net", "path": path}]})
        code, said = run(m, PIPECTL, "status")
        check(code == 3 and STARTS + "no model could be loaded; net: " in said and "No such file" in said, said)
        with open(path, "wb") as f:
            f.write(b"no network")
        code, said = run(m, PIPECTL, "status")
        check(code == 3 and STARTS + "no model could be loaded; net: " in said and "No such file" not in said, said)
        shutil.copy(DIGITS, path)
        code, said = run(m, PIPECTL, "status")
        equal((code, m.starts), (0, 3), said)


def starts_that_fail_early_say_it():
    """Before there is a configuration: an option or a CPU that nobody knows, in a drop-in of the unit."""
    for more, words in (({"args": ["--nonsense"]}, "wrong options in ExecStart= of the unit; journalctl -u piped says which"),
                        ({"env": {"PIPED_CPU": "nonsense"}}, "nonsense")):
        with Manager(Daemon(config=GOOD, **more)) as m:
            for command in ("bench", "status"):
                code, said = run(m, PIPECTL, command)
                equal(code, 3, said)
                check(STARTS in said and words in said, said)
            check(m.starts <= 2, "started", m.starts, "times")


def line_with(lines, words):
    for line in lines:
        if words in line:
            return line
    return "no line with " + words


def sleeps(pid):
    """All its threads do, as who waits on a descriptor; one that asks again and again runs."""
    folder = "/proc/%d/task" % pid
    for task in os.listdir(folder) * 3:
        with open(os.path.join(folder, task, "stat"), encoding="ascii", errors="replace") as f:
            if f.read().rsplit(")", 1)[1].split()[0] != "S":
                return False
    return True


def who_is_connected_says_it_and_waits():
    """At once, and goes on when the service is mended; nothing is lost."""
    clients = [([PIPECTL, "--json", "bench", "--seconds", "600", "--rate", "1000", "--in-flight", "1"], None)]
    if not (gst.why_not() or gst.not_by_launch()):
        source = "videotestsrc is-live=true ! video/x-raw,framerate=50/1 ! pipedinfer ! fakesink"
        clients.append((["gst-launch-1.0", "-e", *source.split()], gst.environment()))
    for command, env in clients:
        with Manager(Daemon(config=GOOD)) as m:
            answered = lambda: m.d.status()["models"][0]["frames"]["answered"]  # noqa: E731,B023
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=dict(env or os.environ, PIPED_RUNTIME_DIR=m.d.runtime_dir)) as client:
                try:
                    until(lambda: answered() > 0, "the first answer")
                    m.d.write_config(BAD)
                    m.d.signal(signal.SIGTERM)
                    told(m, line_with(client.stdout, "waits: "))
                    until(lambda: sleeps(client.pid), "sleep")  # noqa: B023
                    m.d.write_config(GOOD)
                    until(lambda: answered() > 0, "an answer of the mended service")
                finally:
                    client.send_signal(signal.SIGINT)
                    said = client.communicate(timeout=LIMIT_S)[0]
            equal(client.returncode, 0, said)
            check("waits: " not in said and '"lost": 0' in said or command[0] != PIPECTL, said)


def python_says_it():
    if python_client.why_not():
        return python_client.why_not()
    piped = python_client.piped
    with broken() as m:
        for ask in (lambda: piped.connect(m.d.frames_path), lambda: piped.connect(m.d.frames_path, reconnect=60),
                    piped.Calls(m.d.control_path).status):
            try:
                ask()
                check(False, "it was reached")
            except piped.NotStarted as e:
                told(m, str(e))
                check(isinstance(e, piped.NotReachable) and isinstance(e, piped.ControlError), type(e).__mro__)
                equal(STARTS + e.why, str(e))
        check(m.starts <= 2, "started", m.starts, "times")
    with Manager(Daemon(config=GOOD)) as m, piped.connect(m.d.frames_path) as p:
        equal(p.trouble, "")
        m.d.write_config(BAD)
        m.d.signal(signal.SIGTERM)
        while not p.trouble:
            check(select.select([p], [], [], LIMIT_S)[0], "nothing came")
            p.dispatch()
        told(m, p.trouble)
    return None


def gstreamer_says_it():
    if gst.why_not() or gst.not_by_launch():
        return gst.why_not() or gst.not_by_launch()
    with broken() as m:
        code, said = run(m, "gst-launch-1.0", *"videotestsrc num-buffers=1 ! pipedinfer ! fakesink".split(),
                         env=gst.environment())
        check(code != 0 and reason(m) in said, said)
        equal(m.starts, 1)
    return None


def http_says_it():
    """Every door that needs the daemon; those of the protocol that do not, go on answering."""
    if not os.path.exists(PIPED_HTTP):
        return "piped-http is not built; libmicrohttpd-dev was not there"
    frame = {"inputs": [{"name": "x", "shape": [1, 1, 16, 16], "datatype": "FP32", "data": [0] * 256}]}
    with broken() as m, Http(m.d) as h:
        asked = [h.get(path) for path in ("/v2/health/ready", "/v2/models", "/v2/models/digits", "/v2/models/digits/ready",
                                          "/status.json")]
        asked += [h.infer("digits", frame), h.infer("digits", PICTURE, {"Content-Type": "image/png"})]
        for status, headers, body in asked[:-1]:
            equal(status, 503, body)
            told(m, body["error"] if isinstance(body, dict) else body.decode())
            check(headers["Retry-After"], headers)
        equal(asked[-1][0], 400)
        equal(h.get("/v2/health/live")[0], 200)
        check(m.starts <= 2, "started", m.starts, "times")
    return None


def http_says_it_when_it_was_connected():
    """A connection of an earlier request does not wait for the service either, and the next request finds a mended one."""
    if not os.path.exists(PIPED_HTTP):
        return "piped-http is not built; libmicrohttpd-dev was not there"
    with Manager(Daemon(config=GOOD)) as m, Http(m.d, "--reconnect-s", "3600") as h:
        shape = h.get("/v2/models/digits")[2]["inputs"][0]
        frame = {"inputs": [dict(shape, data=[0] * 256)]}
        equal(h.infer("digits", frame)[0], 200)
        m.d.write_config(BAD)
        m.d.signal(signal.SIGTERM)
        answers = []
        # by the old one, until it has the signal
        until(lambda: answers.append(h.infer("digits", frame)) or answers[-1][0] != 200, "an end of the service")
        status, _, body = answers[-1]
        equal(status, 503, body)
        told(m, body["error"])
        m.d.write_config(GOOD)
        status, _, body = h.infer("digits", frame)
        equal(status, 200, body)
    return None


def link_says_it():
    """piped-link goes on by itself, and so only logs it: once."""
    if not os.path.exists(PIPED_LINK):
        return "piped-link is not built; libzmq3-dev was not there"
    with broken() as m, socket.socket() as free:
        run(m, PIPECTL, "board", "--state-dir", m.d.state_dir, "key")
        key = run(m, PIPECTL, "board", "--state-dir", m.d.runtime_dir, "key")[1].strip()
        run(m, PIPECTL, "board", "--state-dir", m.d.state_dir, "add", "other", "127.0.0.1:1", key)
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
        free.close()
        link = subprocess.Popen([PIPED_LINK, "--listen", address, "--state-dir", m.d.state_dir, "--socket", m.d.frames_path],
                                stderr=subprocess.PIPE, text=True)
        try:
            told(m, next((line for line in link.stderr if "no model is spread" in line), "no such line"))
        finally:
            link.terminate()
            said = link.communicate(timeout=LIMIT_S)[1]
        check(STARTS not in said, "twice:", said)
        check(m.starts <= 2, "started", m.starts, "times")
    return None


if __name__ == "__main__":
    main([pipectl_says_it, clients_that_ask_again_and_again_start_it_rarely, the_first_client_after_the_mending_starts_it,
          a_mended_model_is_noticed_at_once, starts_that_fail_early_say_it, who_is_connected_says_it_and_waits, python_says_it,
          gstreamer_says_it, http_says_it, http_says_it_when_it_was_connected, link_says_it])
