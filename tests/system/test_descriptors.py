#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon has no file descriptor or place left: clients are told so or wait, and all goes on when it has one again."""
import json
import os
import re
import resource
import subprocess

import pyclient as pc
from daemon import DIGITS, HEARTBEAT, LIMIT_S, PIPECTL, Daemon, check, equal, main
from http_server import PIPED_HTTP, Http


def lowest_free(d):
    """The least descriptor that the daemon does not use."""
    used = set(map(int, os.listdir("/proc/%d/fd" % d.process.pid)))
    return min(set(range(len(used) + 1)) - used)


class FewDescriptors:
    """The daemon may make no descriptor above or equal to `limit` in this block; its heartbeats go on."""

    def __init__(self, d, limit):
        self.pid, self.limit = d.process.pid, limit
        self.before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)

    def __enter__(self):
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (self.limit, self.before[1]))

    def __exit__(self, *exc):
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.before)


# It opens nothing from time to time, and says whom it disconnects.
QUIET = {"sensors": {"interval_ms": 0}, "log_level": "info"}


def a_pool_without_a_descriptor_is_not_the_clients_fault():
    with Daemon(models={"digits": DIGITS}, config=QUIET) as d:
        with pc.Connection(d.frames_path) as c:
            c.ping()
            with FewDescriptors(d, lowest_free(d)):
                try:
                    pc.Stream(c, pixfmt=pc.GRAY8, image=(16, 16))
                    check(False, "a pool was taken without a descriptor")
                except pc.Closed as e:
                    equal(e.status, "resource_exhausted", e.text)
        with pc.Connection(d.frames_path) as c:
            equal(pc.Stream(c, pixfmt=pc.GRAY8, image=(16, 16)).infer(bytes(256)).status, "ok")


def libpiped_tries_again():
    with Daemon(models={"digits": DIGITS}, config=QUIET, env=HEARTBEAT) as d:
        with FewDescriptors(d, lowest_free(d) + 1):  # enough for the connection, not for its pool
            bench = subprocess.Popen([PIPECTL, "--json", "--socket", d.control_path, "bench", "--frames", "50"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            refused = d.wait_until(lambda: "no file descriptor is free" in d.log() or bench.poll() is not None)
        out, err = bench.communicate(timeout=LIMIT_S)
        check(refused and "no file descriptor is free" in d.log(), "no pool was refused", out, err, d.log())
        equal(bench.returncode, 0, out + err)
        equal((json.loads(out)["answered"], json.loads(out)["errors"]), (50, {}))


def a_full_daemon_says_so():
    """A client that never had a place is told at once which limit it met."""
    with Daemon(models={"digits": DIGITS}, config={"limits": {"connections": 1, "kept_connections": 1}}) as d:
        with pc.Connection(d.frames_path), pc.Connection(d.frames_path):
            r = subprocess.run([PIPECTL, "--socket", d.control_path, "bench", "--frames", "1", "--reconnect", "600"],
                               capture_output=True, text=True, timeout=LIMIT_S, check=False)
            equal((r.returncode, r.stderr), (1, "pipectl: refused: no more connections: limits.connections is 1\n"))


def clients_wait_for_a_descriptor():
    """Whoever connects while there is none is served when there is one again, on both sockets."""
    with Daemon(config=QUIET, env=HEARTBEAT) as d:
        with FewDescriptors(d, lowest_free(d)):
            v, c = d.connect(), pc.Connection(d.frames_path, greet=False)
            v.send("io.piped.Status")
            c.send(pc.HELLO, pc.hello())
            for name in ("control", "frames"):
                check(d.wait_until(lambda name=name: re.search("%s socket: cannot accept" % name, d.log())), d.log())
        equal(v.receive()["status"]["state"], "serving")
        c.expect(pc.WELCOME)
        v.close()
        c.close()


WITHOUT = ["sh", "-c", 'exec "$@" <&- >&-', "sh"]  # standard input and output are closed


def opened(pid, *numbers):
    return [os.readlink("/proc/%d/fd/%d" % (pid, n)) for n in numbers]


def no_pipe_or_socket_is_taken_for_standard_output():
    with Daemon(models={"digits": DIGITS}, preexec=lambda: os.closerange(0, 3)) as d:
        equal(opened(d.process.pid, 0, 1, 2), ["/dev/null"] * 3)
        with pc.Connection(d.frames_path) as c:
            equal(pc.Stream(c, pixfmt=pc.GRAY8, image=(16, 16)).infer(bytes(256)).status, "ok")
        for args, why in ((["status"], "cannot write the result"), (["infer", "--video", "16x16:gray8"], "Bad file descriptor")):
            r = subprocess.run([*WITHOUT, PIPECTL, "--socket", d.control_path, *args], stderr=subprocess.PIPE, text=True,
                               timeout=LIMIT_S, check=False)
            check(r.returncode == 1 and why in r.stderr, r)
        if os.path.exists(PIPED_HTTP):
            with Http(d, wrapper=WITHOUT) as h:
                equal(opened(h.process.pid, 0, 1), ["/dev/null"] * 2)


if __name__ == "__main__":
    main([a_pool_without_a_descriptor_is_not_the_clients_fault, libpiped_tries_again, a_full_daemon_says_so,
          clients_wait_for_a_descriptor, no_pipe_or_socket_is_taken_for_standard_output])
