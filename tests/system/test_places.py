#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Places of both sockets: nobody locks out root, and silent and idle clients give theirs back. Who may change something
is decided by the groups of the client's process."""
import json
import os
import select
import shutil
import subprocess
from signal import SIGCONT, SIGSTOP

import pyclient as pc
from daemon import HEARTBEAT, LIMIT_S, PIPECTL, Daemon, VarlinkError, check, equal, main
from surroundings import as_user, needs

NOBODY, SOMEBODY, ANYBODY = 65534, 4000001, 4000002  # users; the last two are not in the user database

HELLO = pc.header(pc.HELLO, len(pc.hello())) + pc.hello()
WELCOME_BYTES = 96

# Holds so many connections to each socket, greeted and subscribed, until its input ends; says how many of each it got.
HOLD = """
import socket, sys
frames, control, count, hello = sys.argv[1], sys.argv[2], int(sys.argv[3]), bytes.fromhex(sys.argv[4])
subscribe = b'{"method":"io.piped.Subscribe","more":true}' + bytes(1)
held = []
def hold(path, first, good):
    s = socket.socket(socket.AF_UNIX)
    held.append(s)
    try:
        s.connect(path)
        s.sendall(first)
        answer = s.recv(4096)
        return answer.startswith(good) and b'"error"' not in answer
    except (BrokenPipeError, ConnectionResetError):
        return False
print(sum(hold(frames, hello, bytes.fromhex(sys.argv[5])) for _ in range(count)))
print(sum(hold(control, subscribe, b"{") for _ in range(count)), flush=True)
sys.stdin.read()
"""
CALL = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + bytes(1))
data = b""
while not data.endswith(bytes(1)):
    data += s.recv(65536)
print(data[:-1].decode())
"""


def open_to_all(d):
    for path in (d.temp, d.runtime_dir):
        os.chmod(path, 0o755)


class Holder:
    """Another user that holds connections while the block runs; `got`: how many to the frames and control sockets."""

    def __init__(self, d, uid, count):
        welcome = pc.header(pc.WELCOME, WELCOME_BYTES)[:6]
        self.process = subprocess.Popen(as_user(uid, "/usr/bin/python3", "-c", HOLD, d.frames_path, d.control_path, str(count),
                                                HELLO.hex(), welcome.hex()),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.got = tuple(int(self.process.stdout.readline()) for _ in range(2))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.wait(LIMIT_S)


@needs("other users")
def other_users_cannot_lock_out_root():
    limits = {"connections": 4, "connections_per_user": 2, "control_connections": 4, "control_connections_per_user": 2}
    with Daemon(config={"socket_mode": "0666", "limits": limits}) as d:
        open_to_all(d)
        with Holder(d, NOBODY, 3) as first, Holder(d, SOMEBODY, 3) as second, Holder(d, ANYBODY, 1) as third:
            equal((first.got, second.got, third.got), ((2, 2), (2, 2), (0, 0)), "places of three users")
            # told at once, by a client that would look for a daemon for ten minutes
            bench = [shutil.copy(PIPECTL, d.temp), "--timeout", "600", "--socket", d.control_path, "bench", "--frames", "1"]
            r = subprocess.run(as_user(NOBODY, *bench), capture_output=True, text=True, timeout=LIMIT_S, check=False)
            why = "no more connections of user %d: limits.connections_per_user is 2" % NOBODY
            equal((r.returncode, r.stderr), (1, "pipectl: refused: %s\n" % why))
            r = subprocess.run(as_user(ANYBODY, *bench), capture_output=True, text=True, timeout=LIMIT_S, check=False)
            equal((r.returncode, r.stderr), (1, "pipectl: refused: no more connections: limits.connections is 4\n"))
            equal(d.status()["state"], "serving")
            with pc.Connection(d.frames_path) as c:
                s = pc.Stream(c, pixfmt=pc.GRAY8, image=(16, 16))
                equal(s.infer(bytes(256)).status, "ok")
        for key in ("limits.connections is 4", "limits.connections_per_user is 2", "limits.control_connections is 4",
                    "limits.control_connections_per_user is 2"):
            check(key in d.log(), key, d.log())
    return None


def silent_clients_are_closed():
    with Daemon(config={"limits": {"handshake_s": 1}}) as d:
        call = json.dumps({"method": "io.piped.Status"}).encode()
        with pc.Connection(d.frames_path) as greeted, d.connect() as called, pc.Connection(d.frames_path, greet=False) as \
                silent, pc.Connection(d.frames_path, greet=False) as half, d.connect() as no_call, d.connect() as half_a_call:
            called.call("io.piped.Status")
            half.sock.sendall(HELLO[:-1])
            half_a_call.sock.sendall(call)
            for c in (silent, half):
                end = c.closed()
                equal(end.status, "deadline_exceeded")
                check("limits.handshake_s" in end.text, end.text)
            for v in (no_call, half_a_call):
                equal(v.sock.recv(1), b"", "a control connection without a call")
            greeted.ping()
            called.call("io.piped.Status")


def what_came_while_the_daemon_slept_counts():
    """A client whose HELLO or call waits in the socket is not late, however long the daemon was held up."""
    with Daemon(config={"limits": {"handshake_s": 3}}) as d:
        with pc.Connection(d.frames_path, greet=False) as c, d.connect() as v, pc.Connection(d.frames_path) as last:
            last.ping()  # the others are accepted
            d.signal(SIGSTOP)
            c.sock.sendall(HELLO)
            v.send("io.piped.Status")
            select.select([c.sock], [], [], 3.5)  # it is asleep for longer than a client may be silent
            d.signal(SIGCONT)
            c.expect(pc.WELCOME)
            equal(v.receive()["status"]["state"], "serving")


def idle_control_connections_make_room():
    """The idlest goes first, and those that wait for something never."""
    with Daemon(config={"limits": {"control_connections": 2, "kept_connections": 1}}, env=HEARTBEAT) as d:
        with d.connect() as busy, d.connect() as first, d.connect() as second:
            busy.send("io.piped.Subscribe", more=True)
            busy.receive()
            for v in (first, second):
                v.call("io.piped.Status")

            def served():
                try:
                    return d.status()["state"] == "serving"
                except (BrokenPipeError, VarlinkError) as e:
                    check(isinstance(e, BrokenPipeError) or e.error == "io.piped.Busy", e)
                    return False

            check(d.wait_until(served), "no idle connection made room", d.log())
            equal(first.sock.recv(1), b"", "the idlest")
            equal(second.call("io.piped.Status")["status"]["state"], "serving")
            second.call("io.piped.SetPlan", {"plan": second.call("io.piped.GetPlan")["plan"]})
            equal(busy.receive()["event"]["event"], "plan")


@needs("other users")
def the_clients_own_groups_decide():
    """What the user database says of a client counts for nothing; a reload changes the group."""
    group = __import__("grp").getgrnam("games").gr_gid
    with Daemon(config={"socket_mode": "0666", "admin_group": "games"}) as d:
        open_to_all(d)

        def change(uid, *groups):
            call = ("/usr/bin/python3", "-c", CALL, d.control_path, '{"method":"io.piped.Reload"}')
            r = subprocess.run(as_user(uid, *call, groups=groups), capture_output=True, text=True, timeout=LIMIT_S,
                               check=False)
            equal(r.returncode, 0, r.stderr)
            return json.loads(r.stdout).get("error")

        many = range(100000, 100200)
        equal(change(SOMEBODY, group), None)
        equal(change(SOMEBODY, *many, group), None)
        equal(change(SOMEBODY, *many), "io.piped.PermissionDenied")
        d.write_config({"socket_mode": "0666", "admin_group": "no-such-group"})
        d.call("Reload")
        equal(change(SOMEBODY, group), "io.piped.PermissionDenied")
        check("admin_group: no group is named no-such-group" in d.log(), d.log())
        d.write_config({"socket_mode": "0666", "admin_group": "games"})
        d.call("Reload")
        equal(change(SOMEBODY, group), None)
    return None


def limits_apply_to_a_reload():
    """A client that a lower limit makes one too many stays; a new one is refused, until there is room."""
    with Daemon(config={"limits": {"control_connections": 3}}) as d:
        held = [d.connect() for _ in range(3)]
        for v in held:
            v.send("io.piped.Subscribe", more=True)
            v.receive()
        d.write_config({"limits": {"control_connections": 1, "kept_connections": 1}})
        d.call("Reload")
        try:
            d.status()
            check(False, "a client was served beyond the limit")
        except (EOFError, OSError, VarlinkError):
            pass
        for v in held:
            v.close()


if __name__ == "__main__":
    main([other_users_cannot_lock_out_root, silent_clients_are_closed, what_came_while_the_daemon_slept_counts,
          idle_control_connections_make_room, the_clients_own_groups_decide, limits_apply_to_a_reload])
