#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two daemons do not harm each other: neither removes the other's sockets, nor undoes what the other keeps.

usage: test_two_daemons.py [CASE]...
"""
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import tempfile

import kept_files
import pyclient
from daemon import DIGITS, HEARTBEAT, Daemon, Varlink, VarlinkError, check, equal, main


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="piped-test-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def infer(d):
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        equal(s.infer(bytes(s.input_bytes)).status, "ok")


def files(d):
    return [(os.stat(p).st_dev, os.stat(p).st_ino) for p in (d.frames_path, d.control_path)]


def connects(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        return s.connect_ex(path) == 0


def serves(d, v):
    """It accepts new clients, on both sockets; `v`: a connection from before."""
    check(v.call("io.piped.Status"), "an old connection was dropped")
    check(d.wait_until(lambda: connects(d.control_path) and connects(d.frames_path)), d.log())
    equal(d.status()["state"], "serving")
    infer(d)


def a_daemon_that_stops_leaves_the_sockets_of_another():
    """Somebody removed the folder of A's sockets; B serves there now, and A stops."""
    with folder() as temp:
        run = os.path.join(temp, "run")
        with Daemon(runtime_dir=run, env=HEARTBEAT) as b:
            b.stop()
            with Daemon(runtime_dir=run, env=HEARTBEAT) as a:
                a.signal(signal.SIGSTOP)  # it must not make its sockets again before B has some
                shutil.rmtree(run)
                os.mkdir(run)
                b.start()
                mine = files(b)
                a.signal(signal.SIGCONT)
                check(a.wait_until(lambda: "cannot be made again" in a.log()), a.log())
                check("another piped serves there (process %d)" % b.process.pid in a.log(), a.log())
                a.stop()
                equal(files(b), mine, "the sockets of another daemon were removed or replaced")
                infer(b)
                equal(b.status()["state"], "serving")
                a.start(wait=False)
                equal(a.wait_exit(), 1, "it served where another one does")
                a.process = None


def vanished_sockets_are_made_again():
    """One file, both, the whole folder: each is made again as it was, and no connection ends."""
    with folder() as temp, Daemon(runtime_dir=os.path.join(temp, "run"), env=HEARTBEAT,
                                  config={"socket_mode": "0606"}) as d:
        with d.connect() as v, pyclient.Connection(d.frames_path) as c:
            s = pyclient.Stream(c, inline=True)
            for number, remove in enumerate((lambda: os.unlink(d.frames_path), lambda: os.unlink(d.control_path),
                                             lambda: shutil.rmtree(d.runtime_dir))):
                remove()
                serves(d, v)
                equal(s.infer(bytes(s.input_bytes)).status, "ok")
                equal([os.stat(p).st_mode & 0o777 for p in (d.frames_path, d.control_path)], [0o606] * 2)
                check(d.log().count("had vanished and was made again") >= number + 1, d.log())
            check(os.path.exists(os.path.join(d.runtime_dir, "piped.lock")))
            equal(d.log().count("had vanished and was made again"), 4, d.log())
        d.stop()
        equal(os.listdir(d.runtime_dir), ["piped.lock"], "sockets were left")


def who_connected_just_before_is_served():
    """Clients that wait at the old socket, which has no file any more, are answered like any other."""
    with folder() as temp, Daemon(runtime_dir=os.path.join(temp, "run"), env=HEARTBEAT) as d:
        for _ in range(3):
            d.signal(signal.SIGSTOP)
            waiting = [Varlink(d.control_path) for _ in range(5)]
            for v in waiting:
                v.send("io.piped.Status")
            frames = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            frames.connect(d.frames_path)
            shutil.rmtree(d.runtime_dir)
            d.signal(signal.SIGCONT)
            for v in waiting:
                check(v.receive()["status"], "no answer")
                check(v.call("io.piped.Status"), "no answer after the move")
                v.close()
            check(d.wait_until(lambda: connects(d.frames_path) and connects(d.control_path)), d.log())
            frames.sendall(pyclient.header(pyclient.PING))
            check(frames.recv(64), "a client that waited was dropped")  # an ERROR: HELLO comes first
            frames.close()
            infer(d)


def what_cannot_be_made_again_is_told_once():
    """A file in place of the folder: the daemon is degraded until it goes."""
    with folder() as temp, Daemon(runtime_dir=os.path.join(temp, "run"), env=HEARTBEAT) as d, d.connect() as v:
        shutil.rmtree(d.runtime_dir)
        with open(d.runtime_dir, "w", encoding="utf-8") as f:
            f.write("in the way")
        check(d.wait_until(lambda: v.call("io.piped.Status")["status"]["state"] == "degraded"), d.log())
        check(d.wait_until(lambda: any("new clients cannot connect" in m.get("STATUS", "") for m in d.messages)))
        for _ in range(30):
            d.wait_notify(lambda m: m.get("WATCHDOG") == "1")
        equal(d.log().count("new clients cannot connect"), 1, d.log())
        os.unlink(d.runtime_dir)
        serves(d, v)


def passed_sockets_are_their_owners():
    """A file of a socket that the daemon did not make is neither made again nor removed."""
    with folder() as temp, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        path = os.path.join(temp, "frames.sock")
        s.bind(path)
        s.listen()
        fd = fcntl.fcntl(s, fcntl.F_DUPFD, 3)
        script = "exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=frames exec \"$@\"" % fd
        with Daemon(env=HEARTBEAT, pass_fds=(fd,), wrapper=["sh", "-c", script, "sh"]) as d:
            os.close(fd)
            d.frames_path = path
            infer(d)
            os.unlink(path)
            for _ in range(25):
                d.wait_notify(lambda m: m.get("WATCHDOG") == "1")
            check(not os.path.exists(path) and "vanished" not in d.log(), d.log())


def the_second_daemon_keeps_nothing():
    """It says who holds the state directory, reads what is kept, and takes over when the first has ended."""
    with folder() as temp:
        first, second = Daemon(state_dir=temp, env=HEARTBEAT), Daemon(state_dir=temp, env=HEARTBEAT)
        with first:
            first.call("Load", {"name": "kept", "path": DIGITS, "save": True})
            with second:
                check("%s: another piped (process %d) keeps what it learns there" % (temp, first.process.pid)
                      in second.log(), second.log())
                equal([m["name"] for m in second.call("Models")["models"]], ["kept", "digits"])
                before = state(temp)
                try:
                    second.call("Unload", {"name": "kept", "save": True})
                    check(False, "it forgot what the first one keeps")
                except VarlinkError as e:
                    check("another daemon keeps the state directory" in str(e.parameters), e.parameters)
                units = second.status()["models"][0]["units"]
                second.call("SetPlan", {"model": "kept",
                                        "plan": "0-%d@%s" % (units - 1, second.status()["eps"][0]["name"])})
                equal(state(temp), before, "the second daemon wrote")
                first.stop()
                check(second.wait_until(lambda: "is free: this piped keeps" in second.log()), second.log())
                second.call("Unload", {"name": "kept", "save": True})
                equal(kept_files.read(os.path.join(temp, "models.v2.json"))["models"], [])
                for d in (first, second):
                    check("cannot keep" not in d.log() and "could not be kept" not in d.log(), d.log())


def state(path):
    """Every file of a state directory with its contents."""
    found = {}
    for name in sorted(os.listdir(path)):
        with open(os.path.join(path, name), "rb") as f:
            found[name] = f.read()
    return found


def a_killed_daemon_leaves_no_lock():
    with folder() as temp:
        with Daemon(state_dir=temp, expect_exit=None) as d:
            d.kill()
        with Daemon(state_dir=temp) as d:
            check("state.lock" in os.listdir(temp) and "keeps what it learns there" not in d.log(), d.log())
            with open(os.path.join(temp, "state.lock"), encoding="utf-8") as f:
                equal(f.read(), "%d\n" % d.process.pid)


if __name__ == "__main__":
    main([a_daemon_that_stops_leaves_the_sockets_of_another, vanished_sockets_are_made_again,
          who_connected_just_before_is_served, what_cannot_be_made_again_is_told_once, passed_sockets_are_their_owners,
          the_second_daemon_keeps_nothing, a_killed_daemon_leaves_no_lock])
