# SPDX-License-Identifier: Apache-2.0
"""Starts the real daemon for a test: own runtime and state folders, readiness by NOTIFY_SOCKET, clean end asserted.

    with Daemon(models={"digits": path}) as d:
        status = d.call("io.piped.Status")["status"]
        d.pipectl("bench", "--frames", "100")

Nothing here sleeps: every wait is for a message, a line or an exit, with a generous limit. Leaving the block
sends SIGTERM and asserts exit code 0 and that no sanitizer printed anything.
"""
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from signal import SIGSTOP, SIGTERM

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PIPED_BUILD", os.path.join(ROOT, "build"))
PIPED = os.environ.get("PIPED_EXE", os.path.join(BUILD, "daemon", "piped"))
PIPECTL = os.environ.get("PIPECTL_EXE", os.path.join(BUILD, "apps", "pipectl", "pipectl"))
DIGITS = os.path.join(ROOT, "model", "default", "digits.onnx")
SHARED = os.environ.get("PIPED_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
HEARTBEAT = {"WATCHDOG_USEC": "100000"}  # a daemon's `env`, for Daemon.wait_until()
SANITIZER_WORDS = ("AddressSanitizer", "ThreadSanitizer", "LeakSanitizer", "UndefinedBehavior", "runtime error:")

sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))
import cases  # noqa: E402
from cases import Failure, check, only_long  # noqa: E402,F401
from wait import LIMIT_S, asked, until  # noqa: E402


def equal(got, wanted, what=""):
    check(got == wanted, what, "got", repr(got), "wanted", repr(wanted))


def ended(event, *outcomes):
    """An event of the history ended so, in one of these ways, and its plans are what that says."""
    outcomes = outcomes or ("switched", "kept", "reverted")
    check(event["outcome"] in outcomes, event)
    if event["outcome"] in ("switched", "kept", "reverted"):
        equal(event["plan_after"] != event["plan_before"], event["outcome"] == "switched", event)


class VarlinkError(Exception):
    def __init__(self, error, parameters):
        super().__init__("%s %s" % (error, parameters))
        self.error = error
        self.parameters = parameters or {}


class Varlink:
    """A blocking connection to a Varlink socket."""

    def __init__(self, path, timeout=LIMIT_S):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.buffer = b""

    def send(self, method, parameters=None, **flags):
        message = {"method": method, "parameters": parameters or {}}
        message.update(flags)
        self.sock.sendall(json.dumps(message).encode() + b"\0")

    def receive(self):
        """The next reply's parameters; raises VarlinkError, or EOFError when the daemon closed."""
        return self.receive_message().get("parameters", {})

    def receive_message(self):
        while b"\0" not in self.buffer:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError("the control socket was closed")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if "error" in message:
            raise VarlinkError(message["error"], message.get("parameters"))
        return message

    def call(self, method, parameters=None):
        self.send(method, parameters)
        return self.receive()

    def news(self, limit_s):
        """Waits for a reply and takes it, if one comes."""
        if b"\0" in self.buffer or select.select([self.sock], [], [], limit_s)[0]:
            self.receive()

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def wait_readable(limit_s, process, *files):
    """Until one of `files` is readable, the process, if there is one, has ended, or the time is over."""
    if process and process.poll() is not None:
        return
    poll, ends = select.poll(), os.pidfd_open(process.pid) if process else None
    try:
        for f in files if ends is None else (ends, *files):
            poll.register(f, select.POLLIN)
        poll.poll(max(limit_s, 0) * 1000)
    finally:
        if ends is not None:
            os.close(ends)


def wait_end(process, limit_s=LIMIT_S):
    """As process.wait(limit_s), which notices up to 50 ms late. Return: the exit code."""
    wait_readable(limit_s, process)
    return process.wait(0)


class Daemon:
    """One piped. `models`: {name: path}; `config`: dict (written to a file) or text; `args`: further arguments."""

    def __init__(self, models=None, config=None, args=(), env=None, runtime_dir=None, state_dir=None,
                 expect_exit=0, wrapper=(), pass_fds=(), preexec=None, exe=None):
        self.temp = tempfile.mkdtemp(prefix="piped-test-")
        self.runtime_dir = runtime_dir or os.path.join(self.temp, "run")
        self.state_dir = state_dir or os.path.join(self.temp, "state")
        os.makedirs(self.runtime_dir, exist_ok=True)
        os.makedirs(self.state_dir, exist_ok=True)
        self.frames_path = os.path.join(self.runtime_dir, "frames.sock")
        self.control_path = os.path.join(self.runtime_dir, "control.sock")
        self.config_path = os.path.join(self.temp, "piped.json")
        self.models = models
        self.args = list(args)
        self.env = dict(env or {})
        self.expect_exit = expect_exit
        self.wrapper = list(wrapper)
        self.pass_fds = tuple(pass_fds)
        self.preexec = preexec
        self.exe = exe or PIPED
        self.process = None
        self.messages = []  # every sd_notify message as a dict
        self.write_config({} if config is None else config)
        self.notify_path = os.path.join(self.temp, "notify.sock")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path)
        self.log_path = os.path.join(self.temp, "stderr")

    def write_config(self, config):
        """A dict that does not speak of adapting turns it off: on a busy machine a plan would change under the test. The
        same goes for measured primitives, whose results differ in the last bits."""
        if isinstance(config, dict):
            config = {"adapt": {"enabled": False}, "kernels": {"measure_ms": 0}, **config}
        with open(self.config_path + ".new", "w", encoding="utf-8") as f:
            f.write(config if isinstance(config, str) else json.dumps(config, indent=2))
        os.rename(self.config_path + ".new", self.config_path)

    def command(self):
        models = [a for name, path in (self.models or {}).items() for a in ("--model", "%s=%s" % (name, path))]
        return self.wrapper + [self.exe, "--config", self.config_path, "--runtime-dir", self.runtime_dir,
                               "--state-dir", self.state_dir] + models + self.args

    def start(self, wait=True):
        check(os.path.exists(self.exe), "not built:", self.exe)
        env = {k: v for k, v in os.environ.items() if k not in ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
                                                                "WATCHDOG_USEC", "JOURNAL_STREAM")}
        env["NOTIFY_SOCKET"] = self.notify_path
        env["PIPED_RUNTIME_DIR"] = self.runtime_dir
        env.update(self.env)
        self.drain_notify()  # READY=1 of an earlier start or reload says nothing of this start
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=env, pass_fds=self.pass_fds, preexec_fn=self.preexec)
        if wait:
            try:
                self.wait_notify(lambda m: m.get("READY") == "1")
            except BaseException:
                self.kill()
                raise
        return self

    def drain_notify(self):
        while select.select([self.notify], [], [], 0)[0]:
            self.read_notify()

    def wait_notify(self, wanted, limit_s=LIMIT_S):
        """Waits for a notification for which wanted(dict) is true; returns it."""
        def heard():
            while self.heard(0):
                message = self.read_notify()
                if wanted(message):
                    return message
            if self.process and self.process.poll() is not None:
                raise Failure("piped ended with %s while waiting\n%s" % (self.process.returncode, self.log()))
            return None
        return until(heard, "a notification\n", self.log, limit_s=limit_s, pause=self.heard)

    def heard(self, limit_s):
        """Waits for a notification, and no longer than the process runs. Return: whether there is one."""
        wait_readable(limit_s, self.process, self.notify)
        return bool(select.select([self.notify], [], [], 0)[0])

    def wait_until(self, condition, limit_s=LIMIT_S):
        """Asks for condition() at each sign of life that the daemon gives, every 50 ms with HEARTBEAT. Return: its first
        true value, or the last one after limit_s."""
        return asked(condition, limit_s, lambda left_s: self.wait_notify(lambda m: m.get("WATCHDOG") == "1", limit_s))

    def wait_state(self, wanted):
        """Asks at each event that the daemon tells, and once a second: not every end has one."""
        with self.connect() as events:
            events.send("io.piped.Subscribe", more=True)
            events.receive()
            until(lambda: self.status()["state"] == wanted, wanted, pause=lambda left_s: events.news(min(left_s, 1)))

    def read_notify(self):
        data, fds, _, _ = socket.recv_fds(self.notify, 8192, 8)
        for fd in fds:  # BARRIER=1 waits for this
            os.close(fd)
        message = dict(line.split("=", 1) for line in data.decode().splitlines() if "=" in line)
        self.messages.append(message)
        return message

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def connect(self):
        return Varlink(self.control_path)

    def call(self, method, parameters=None):
        with self.connect() as v:
            return v.call(method if "." in method else "io.piped." + method, parameters)

    def status(self):
        return self.call("Status")["status"]

    def pipectl(self, *args, expect=0, as_json=True, timeout=LIMIT_S):
        """Runs pipectl; returns the parsed JSON (or text); asserts the exit code unless expect is None. A machine that is
        overloaded has longer to answer than users would wait.
        """
        command = [PIPECTL, "--socket", self.control_path, "--timeout", "%g" % LIMIT_S, *["--json"] * as_json, *args]
        env = dict(os.environ, PIPED_RUNTIME_DIR=self.runtime_dir)
        r = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, check=False)
        if expect is not None:
            equal(r.returncode, expect, "%s\n%s%s" % (" ".join(args), r.stdout, r.stderr))
        if not as_json:
            return r.stdout
        return json.loads(r.stdout) if r.stdout.strip() else None

    def signal(self, number):
        """Returns after SIGSTOP when the daemon stands still."""
        self.process.send_signal(number)
        if number == SIGSTOP:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def wait_exit(self, limit_s=LIMIT_S):
        try:
            return wait_end(self.process, limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure("piped did not end in time\n" + self.log()) from None

    def stop(self, number=SIGTERM):
        """Ends the daemon and asserts a clean end."""
        if self.process is None:
            return
        if self.process.poll() is None and number:
            self.signal(number)
        code = self.wait_exit()
        log = self.log()
        self.process = None
        for word in SANITIZER_WORDS:
            check(word not in log, "a sanitizer spoke:\n" + log)
        if self.expect_exit is not None:
            equal(code, self.expect_exit, "exit code of piped\n" + log)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def cleanup(self):
        self.kill()
        self.notify.close()
        shutil.rmtree(self.temp, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.stop()
            elif self.process is not None:
                print("---- log of piped ----\n" + self.log(), file=sys.stderr)
        finally:
            self.cleanup()


def run_piped(*args, env=None, timeout=LIMIT_S):
    """Runs piped to its end (--check-config, --version ...). Returns CompletedProcess with text output."""
    return subprocess.run([PIPED] + list(args), capture_output=True, text=True, timeout=timeout, check=False,
                          env=dict(os.environ, **(env or {})))


def main(listed, argv=None, at_once=1):
    """Runs the functions of `listed` (all, or those whose names start with an argument), so many at once; exits 0, 1 or
    77."""
    cases.main(listed, sys.argv[1:] if argv is None else argv, trace=True, at_once=at_once)
