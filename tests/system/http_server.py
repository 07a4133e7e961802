# SPDX-License-Identifier: Apache-2.0
"""Starts the real piped-http before a daemon: free port or Unix socket, readiness by its own lines, clean end asserted.

    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        status, headers, body = h.get("/v2")
"""
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from signal import SIGTERM

from daemon import BUILD, LIMIT_S, SANITIZER_WORDS, cases, check, equal, wait_end

PIPED_HTTP = os.path.join(BUILD, "apps", "http", "piped-http")
ANY_PORT = "127.0.0.1:0"


def rest(s):
    """What comes until the server closes."""
    data = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return data
            data += more
    except ConnectionResetError:
        return data


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LIMIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(self.path)


class Http:
    """One piped-http. `args`: further options; `listen`: its addresses; `token`: sent with each request."""

    def __init__(self, daemon, *args, listen=(ANY_PORT,), token=None, tls=None, pass_fds=(), wrapper=(), expect_exit=0):
        self.command = [*wrapper, PIPED_HTTP, "--socket", daemon.frames_path, *args]
        for address in listen:
            self.command += ["--listen", address]
        self.count = max(1, len(listen))
        self.token, self.tls, self.pass_fds, self.expect_exit = token, tls, pass_fds, expect_exit
        self.process, self.addresses, self.lines = None, [], []
        self.heard = threading.Condition()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        pass_fds=self.pass_fds)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        with self.heard:
            self.heard.wait_for(lambda: len(self.addresses) >= self.count or self.process is None or self.ended, LIMIT_S)
        check(len(self.addresses) >= self.count, "piped-http does not listen:\n" + self.log())
        return self

    ended = False

    def read(self):
        for line in self.process.stderr:
            with self.heard:
                self.lines.append(line)
                if "listens at " in line:
                    self.addresses.append(line.split("listens at ")[1].strip())
                self.heard.notify_all()
        with self.heard:
            self.ended = True
            self.heard.notify_all()

    def log(self):
        return "".join(self.lines)

    @property
    def port(self):
        return int(self.addresses[0].rsplit(":", 1)[1])

    @property
    def url(self):
        return self.addresses[0]

    def connect(self, index=0):
        address = self.addresses[index]
        if address.startswith("unix:"):
            return UnixConnection(address[5:])
        if address.startswith("https:"):
            return http.client.HTTPSConnection("localhost", self.port, timeout=LIMIT_S, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)

    def raw(self):
        """A plain socket to the first address."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)

    def request(self, method, path, body=None, headers=None, connection=None):
        """Return: status, headers, body; the body parsed if it is JSON."""
        c = connection or self.connect()
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("Authorization", "Bearer " + self.token)
        try:
            c.request(method, path, body, headers)
            answer = c.getresponse()
            data = answer.read()
        finally:
            if not connection:
                c.close()
        if answer.headers.get("Content-Type") == "application/json" and data:
            data = json.loads(data)
        return answer.status, answer.headers, data

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def infer(self, model, body, headers=None, **more):
        headers = {"Content-Type": "application/json"} if headers is None else headers
        body = json.dumps(body) if isinstance(body, dict) else body
        return self.request("POST", "/v2/models/%s/infer" % model, body, headers, **more)

    def refused(self, status, words, answer):
        """The answer is an error with this status and these words."""
        equal(answer[0], status, answer[2])
        check(words in answer[2]["error"], "'%s' is not in: %s" % (words, answer[2]))

    def metric(self, name):
        text = self.get("/metrics")[2].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.split("{")[0].split(" ")[0] == name)

    def stop(self, number=SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = wait_end(self.process)
        self.reader.join(LIMIT_S)
        log = self.log()
        for word in SANITIZER_WORDS:
            check(word not in log, "a sanitizer spoke:\n" + log)
        equal(code, self.expect_exit, "exit code of piped-http\n" + log)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.stop()
            else:
                print("---- log of piped-http ----\n" + self.log(), file=sys.stderr)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def run_http(*args):
    """Runs piped-http to its end. Return: exit code and what it said."""
    r = subprocess.run([PIPED_HTTP, *args], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return r.returncode, r.stdout + r.stderr


def main(listed):
    """As daemon.main(); skips in a build without piped-http."""
    if not os.path.exists(PIPED_HTTP):
        print("SKIP: this is a build without piped-http")
        sys.exit(77)
    cases.main(listed, sys.argv[1:], trace=True)
