#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon as a service: readiness, watchdog, activation, drain, second instance, bad files."""
import ctypes
import json
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

import bad_configs
import pyclient
from daemon import DIGITS, PIPECTL, PIPED, Daemon, VarlinkError, check, equal, main, run_piped
from socket_units import passing
from surroundings import as_user, lacking
from wait import during

EX_CONFIG = 78
SCHED_GETATTR = {"x86_64": 315}.get(platform.machine(), 275)  # the number of the system call


def data(stream, value=1.0):
    return struct.pack("<f", value) * (stream.input_bytes // 4)


def ready_and_status():
    with Daemon() as d:
        d.wait_notify(lambda m: "digits" in m.get("STATUS", ""))
        equal(d.status()["state"], "serving")
    check(not os.path.exists(d.runtime_dir))


def stopping_is_announced_and_files_removed():
    with Daemon() as d:
        check(os.path.exists(d.frames_path) and os.path.exists(d.control_path))
        d.signal(signal.SIGTERM)
        d.wait_notify(lambda m: m.get("STOPPING") == "1")
        equal(d.wait_exit(), 0)
        check(not os.path.exists(d.frames_path) and not os.path.exists(d.control_path), "socket files were left")


def slice_ns(thread):
    """Of the fair scheduler; 0: this kernel knows no slices. The bytes are struct sched_attr of sched_setattr(2)."""
    attr = ctypes.create_string_buffer(48)
    if ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(SCHED_GETATTR), thread, attr, 48, 0) != 0:
        raise OSError(ctypes.get_errno(), "sched_getattr")
    return struct.unpack("=IIQiIQQQ", attr.raw)[5]


def the_loop_has_a_shorter_slice_than_teams():
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        return "at a negative nice level slices stay"
    with Daemon() as d:
        loop, teams = slice_ns(d.process.pid), []
        for thread in os.listdir("/proc/%d/task" % d.process.pid):
            with open("/proc/%d/task/%s/comm" % (d.process.pid, thread), encoding="utf-8") as f:
                teams += [slice_ns(int(thread))] if f.read().startswith("piped:s") else []
    check(teams, "no teams")
    if 0 in teams:
        return "this kernel knows no slices"
    check(loop < min(teams), loop, teams)
    return None


def sigint_stops_too():
    with Daemon() as d:
        d.stop(signal.SIGINT)


def watchdog_is_fed():
    d = Daemon(env={"WATCHDOG_USEC": "200000"})
    with d:
        for _ in range(3):
            d.wait_notify(lambda m: m.get("WATCHDOG") == "1")


def a_manager_that_does_not_read_stops_nothing():
    """Its queue holds some ten messages; the daemon goes on serving when it is full."""
    with Daemon(env={"WATCHDOG_USEC": "4000"}) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        d.wait_notify(lambda m: m.get("WATCHDOG") == "1")
        for _ in during(0.1):  # of frames: 25 watchdog periods
            equal(s.infer(data(s)).status, "ok")
        d.signal(signal.SIGTERM)
        d.wait_notify(lambda m: m.get("STOPPING") == "1")
        equal(d.wait_exit(), 0)


def repeated_requests_to_stop_end_cleanly():
    """Impatient people and supervisors: more signals while it ends, the exit code is 0 all the same."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with Daemon() as d:
            d.signal(signal.SIGTERM)
            d.wait_notify(lambda m: m.get("STOPPING") == "1")
            d.signal(number)
            equal(d.wait_exit(), 0, "after another signal %d" % number)


def no_watchdog_without_asking():
    with Daemon() as d:
        d.wait_notify(lambda m: "STATUS" in m)
        d.signal(signal.SIGTERM)
        d.wait_notify(lambda m: m.get("STOPPING") == "1")
        check(not any("WATCHDOG" in m for m in d.messages))


def drain_answers_all_in_flight():
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, credits=64, inline=True)
        for _ in range(s.credits):
            s.submit(data(s))
        d.signal(signal.SIGTERM)
        numbers = [s.result() for _ in range(s.credits)]
        equal([r.frame for r in numbers], list(range(1, s.credits + 1)))
        equal({r.status for r in numbers} - {"ok", "unavailable"}, set())
        check(numbers[0].status == "ok", "what was in flight was not computed")
        c.closed()
        check(any(e[1] == 2 for e in c.events), "DRAINING was not sent", c.events)
        equal(d.wait_exit(), 0)


def never_read(c):
    """Until the daemon has answers that this client does not take."""
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    for _ in range(3000):
        try:
            c.sock.settimeout(0.2)
            c.sock.sendall(pyclient.header(pyclient.PING, 64) + b"x" * 64)
        except (TimeoutError, OSError):
            break


def drain_does_not_wait_for_ever():
    """A client that never reads holds the stop back for drain_ms at most."""
    with Daemon(config={"drain_ms": 200}) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, credits=64)
        never_read(c)
        d.signal(signal.SIGTERM)
        equal(d.wait_exit(), 0)
        s.free()


def who_greets_during_the_drain_is_told():
    """It was accepted before, and knows then why its stream is refused."""
    with Daemon(config={"drain_ms": 60000}) as d, pyclient.Connection(d.frames_path) as slow, \
            pyclient.Connection(d.frames_path, greet=False) as late:
        with pyclient.Connection(d.frames_path):
            pass  # accepted after the one that says nothing yet
        never_read(slow)
        d.signal(signal.SIGTERM)
        d.wait_notify(lambda m: m.get("STOPPING") == "1")
        late.greet()
        late.receive(lambda h: h.type == pyclient.EVENT)
        equal([e[1] for e in late.events], [2], "DRAINING")
        try:
            pyclient.Stream(late)
            check(False, "a stream was opened")
        except pyclient.Refused as e:
            equal(e.status, "unavailable")
        slow.close()
        equal(d.wait_exit(), 0)


def second_instance_is_refused():
    with Daemon() as d:
        other = Daemon(runtime_dir=d.runtime_dir, expect_exit=1)
        other.start(wait=False)
        equal(other.wait_exit(), 1)
        check("another piped serves there" in other.log(), other.log())
        other.cleanup()
        equal(d.status()["state"], "serving", "the first one lost its sockets")


def stale_socket_is_replaced():
    d = Daemon()
    for path in (d.frames_path, d.control_path):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(path)
    with d:
        equal(d.status()["state"], "serving")
    d = Daemon(expect_exit=1)
    with open(d.frames_path, "w", encoding="utf-8") as f:
        f.write("somebody's file")
    d.start(wait=False)
    equal(d.wait_exit(), 1)
    check("is not a socket" in d.log(), d.log())
    check(os.path.exists(d.frames_path), "a file that is no socket was removed")
    d.cleanup()


def socket_activation():
    """Listening sockets are passed in by name and survive the daemon."""
    d = Daemon()
    listeners = []
    for path in (d.frames_path, d.control_path):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.bind(path)
        s.listen(8)
        listeners.append(s)
    fds = [s.fileno() for s in listeners]
    d.pass_fds = tuple(fds)
    d.wrapper = passing(fds, "frames:control")
    with d:
        equal(d.status()["state"], "serving")
        with pyclient.Connection(d.frames_path) as c:
            s = pyclient.Stream(c)
            equal(s.infer(data(s)).status, "ok")
            s.free()
        d.stop()
        check(os.path.exists(d.frames_path), "a socket that was passed in was removed")
    for s in listeners:
        s.close()

def activation_by_systemd_tool():
    tool = shutil.which("systemd-socket-activate")
    if not tool:
        return "systemd-socket-activate is not installed"
    d = Daemon()
    d.wrapper = [tool, "-l", d.frames_path, "-l", d.control_path, "--fdname=frames:control",
                 "-E", "NOTIFY_SOCKET"]
    d.start(wait=False)
    try:
        c = None
        for _ in range(1000):  # the tool listens before it starts the daemon, but not at once
            if os.path.exists(d.control_path):
                try:
                    c = d.connect()
                    break
                except ConnectionRefusedError:
                    pass
            check(d.process.poll() is None, d.log())
            os.sched_yield()
            subprocess.run(["true"], check=True)
        check(c, "the tool did not listen")
        equal(c.call("io.piped.Status")["status"]["state"], "serving")
        c.close()
        d.stop()
    finally:
        d.cleanup()


def no_listening_socket_is_refused():
    d = Daemon(expect_exit=1)
    a, b = socket.socketpair()
    d.pass_fds = (a.fileno(),)
    d.wrapper = passing([a.fileno()], "frames")
    d.start(wait=False)
    equal(d.wait_exit(), 1)
    check("inherited sockets are not listening Unix stream sockets" in d.log(), d.log())
    d.cleanup()
    a.close()
    b.close()


def check_config_says_where():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    path = os.path.join(temp, "c.json")
    for text, wanted in bad_configs.SYNTAX:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        r = run_piped("--check-config", "--config", path)
        equal(r.returncode, EX_CONFIG, text + r.stderr)
        check(wanted in r.stderr, "wanted", repr(wanted), "got", r.stderr)
    with open(path, "w", encoding="utf-8") as f:
        f.write("// good\n{ \"models\": [ {\"name\": \"a\", \"path\": \"%s\"} ] } # end\n" % DIGITS)
    r = run_piped("--check-config", "--config", path)
    equal(r.returncode, 0, r.stderr)
    check("model a: " in r.stdout, r.stdout)
    r = run_piped("--check-config", "--config", os.path.join(temp, "none.json"))
    equal(r.returncode, EX_CONFIG, "a file that was named and is missing")
    shutil.rmtree(temp)


def dropins_override_in_order():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    path = os.path.join(temp, "piped.json")
    os.mkdir(path + ".d")
    for name, text in ((path, {"spin_us": 1, "drain_ms": 77}), (path + ".d/20.json", {"spin_us": 3}),
                       (path + ".d/10.json", {"spin_us": 2}), (path + ".d/30.txt", {"spin_us": 9})):
        with open(name, "w", encoding="utf-8") as f:
            json.dump(text, f)
    d = Daemon()
    d.config_path = path
    with d:
        config = {c["key"]: c for c in d.call("Config")["config"]}
        equal(config["spin_us"]["value"], 3)
        equal(config["spin_us"]["origin"], path + ".d/20.json:1")
        equal(config["drain_ms"]["origin"], path + ":1")
        equal(config["pin"]["origin"], "default")
        equal(config["models[0]"]["origin"], "default")
    shutil.rmtree(temp)


def bad_models_are_refused_while_others_serve():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    bad = os.path.join(temp, "bad.onnx")
    with open(DIGITS, "rb") as f:
        whole = f.read()
    with open(bad, "wb") as f:
        f.write(whole[:len(whole) // 2])
    with Daemon(models={"good": DIGITS, "bad": bad}) as d:
        s = d.status()
        equal((s["state"], [m["name"] for m in s["failed_models"]]), ("degraded", ["bad"]))
        equal([m["name"] for m in s["models"]], ["good"])
        check("cannot serve model bad from %s: " % bad in d.log(), d.log())
        why = s["failed_models"][0]["error"]
        check(why in d.log() and s["failed_models"][0]["path"] == bad, s)
        check("model bad FAILED: %s" % bad in d.pipectl("status", as_json=False, expect=4), "status tells why")
        check(why in d.pipectl("models", as_json=False), "the list of models tells why")
        for call in (lambda: d.call("Units", {"model": "bad"}), lambda: d.call("Units", {"model": "goood"})):
            try:
                call()
            except VarlinkError as e:
                told = e.parameters["what"]
            check("could not be loaded: " + why in told or told == "no such model: goood; did you mean good?", told)


def broken_models_hold_up_no_reload():
    """One that was broken before is tried again; one that breaks now is refused, and nothing changes."""
    temp = tempfile.mkdtemp(prefix="piped-test-")
    bad, other = os.path.join(temp, "bad.onnx"), os.path.join(temp, "other.onnx")
    with open(bad, "wb") as f:
        f.write(b"no network")
    serve = {"good": DIGITS, "bad": bad}
    config = lambda: {"models": [{"name": n, "path": p} for n, p in serve.items()]}  # noqa: E731
    with Daemon(config=config()) as d:
        names = lambda key: [m["name"] for m in d.call("Models")[key]]  # noqa: E731
        serve["more"] = DIGITS
        d.write_config(config())
        d.call("Reload")
        equal((names("models"), names("failed")), (["good", "more"], ["bad"]))
        said = subprocess.run([PIPECTL, "--socket", d.control_path, "reload"], capture_output=True, text=True, check=True)
        check("configuration reloaded" in said.stdout, said)
        check("model bad still cannot be loaded: %s: " % bad in said.stderr, said)
        shutil.copy(DIGITS, other)
        serve["other"] = other
        d.write_config(config())
        d.call("Reload")
        with open(other, "wb") as f:
            f.write(b"no network either")
        try:
            d.call("Reload")
            check(False, "a model that broke was accepted")
        except VarlinkError as e:
            check("other.onnx" in e.parameters["why"], e)
        equal((names("models"), names("failed")), (["good", "more", "other"], ["bad"]))
        shutil.copy(DIGITS, other)
        shutil.copy(DIGITS, bad)
        d.call("Reload")
        equal((sorted(names("models")), names("failed")), (["bad", "good", "more", "other"], []))
        equal(d.status()["state"], "serving")
    shutil.rmtree(temp)


def no_model_at_all_is_an_error():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    bad = os.path.join(temp, "bad.onnx")
    with open(bad, "wb") as f:
        f.write(b"no network")
    d = Daemon(models={"bad": bad}, expect_exit=EX_CONFIG)
    d.start(wait=False)
    equal(d.wait_exit(), EX_CONFIG)
    check("no model could be loaded" in d.log(), d.log())
    d.cleanup()
    shutil.rmtree(temp)


def plan_is_kept_over_a_restart():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    with Daemon(state_dir=temp) as d:
        units = d.status()["models"][0]["units"]
        plan = "0-%d@%s" % (units - 1, d.status()["eps"][0]["name"])
        equal(d.call("SetPlan", {"plan": plan})["plan"], plan)
    with Daemon(state_dir=temp) as d:
        got = d.call("GetPlan")
        equal((got["plan"], got["algorithm"]), (plan, "manual"))
    for name in os.listdir(temp):
        with open(os.path.join(temp, name), "w", encoding="utf-8") as f:
            f.write("{\"plan\": \"0-9999@nowhere\", \"eps\": \"\", \"algorithm\": 3")
    with Daemon(state_dir=temp) as d:
        equal(d.call("GetPlan")["algorithm"], "exact", "a broken state file was used")
    shutil.rmtree(temp)


def arguments():
    equal(run_piped("--version").stdout.split()[0], "piped")
    r = run_piped("--help")
    equal(r.returncode, 0)
    check("--check-config" in r.stdout and "limits.credits" in r.stdout)
    equal([line for line in r.stdout.splitlines() if len(line) > 80], [], "lines that a terminal wraps")
    equal(run_piped("--nonsense").returncode, 2)
    equal(run_piped("stray").returncode, 2)
    r = run_piped("--config", os.devnull, "--model", "bad/name=" + DIGITS, "--runtime-dir", "/proc/none")
    check(r.returncode != 0, r)
    here = tempfile.mkdtemp(prefix="piped-test-")
    r = run_piped("--state-dir", here, "--check-config", "--model", DIGITS, "--model", DIGITS)
    equal((r.returncode, r.stderr), (EX_CONFIG, 'piped: --model: "digits" is given twice; name each by NAME=FILE\n'))
    for args, expect, where in ((["--check-config", "--model"], EX_CONFIG, "piped: --model digits: "), (["--inspect"], 1, "no: ")):
        r = run_piped("--state-dir", here, *args, DIGITS + ":image=x")
        check(r.returncode == expect and where in r.stdout + r.stderr, r)
        check("'image=x' is not a shape; write INPUT=1x3x480x640" in r.stdout + r.stderr, r)
    os.rmdir(here)


def default_runtime_dir_of_a_user():
    """Without --runtime-dir an ordinary user's sockets go to $XDG_RUNTIME_DIR/piped."""
    if os.geteuid() == 0 and lacking("other users"):
        return lacking("other users")
    temp = tempfile.mkdtemp(prefix="piped-test-")
    os.chmod(temp, 0o777)
    d = Daemon(env={"XDG_RUNTIME_DIR": temp, "HOME": temp})
    os.chmod(d.temp, 0o755)
    for path in (d.notify_path, d.config_path):
        os.chmod(path, 0o777)
    if os.geteuid() == 0:
        d.wrapper = as_user(65534)
    command = d.command
    d.command = lambda: [a for i, a in enumerate(command()) if "-dir" not in a and "-dir" not in command()[i - 1]]
    exe = os.path.join(temp, "piped-exe")
    shutil.copy(PIPED, exe)
    shutil.copy(DIGITS, os.path.join(temp, "digits.onnx"))
    os.chmod(exe, 0o755)
    os.chmod(os.path.join(temp, "digits.onnx"), 0o644)
    d.exe, d.models = exe, {"digits": os.path.join(temp, "digits.onnx")}
    d.start()
    try:
        d.control_path = os.path.join(temp, "piped", "control.sock")
        equal(d.status()["state"], "serving")
        d.stop()
    finally:
        d.cleanup()
        shutil.rmtree(temp)


if __name__ == "__main__":
    main([ready_and_status, the_loop_has_a_shorter_slice_than_teams, stopping_is_announced_and_files_removed, sigint_stops_too,
          watchdog_is_fed, a_manager_that_does_not_read_stops_nothing, repeated_requests_to_stop_end_cleanly,
          no_watchdog_without_asking, drain_answers_all_in_flight, drain_does_not_wait_for_ever,
          who_greets_during_the_drain_is_told,
          second_instance_is_refused, stale_socket_is_replaced, socket_activation, activation_by_systemd_tool,
          no_listening_socket_is_refused, check_config_says_where, dropins_override_in_order,
          bad_models_are_refused_while_others_serve,
          broken_models_hold_up_no_reload, no_model_at_all_is_an_error, plan_is_kept_over_a_restart, arguments,
          default_runtime_dir_of_a_user])
