# SPDX-License-Identifier: Apache-2.0
"""Two to eight boards on one machine, each with piped, piped-link, keys and a list of the others, on one switch.

    with Fleet(4, head={"models": [{"name": "digits", "path": DIGITS, "boards": "0-5@here|6-11@b2"}]}) as fleet:
        fleet["b2"].link.kill()
        fleet["b2"].start_link()

Boards are called b1, b2, ...; b1 is the head. Each has a network namespace and folders of its own, and with cpu= or
memory= a control group. When a test fails the ends of all logs are printed. Only processes that were started here are
ended, by their ids; all are killed with the test.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

from cases import Failure, check
from daemon import BUILD, HEARTBEAT, PIPECTL, Daemon, until
from groups import Group
from network import Network
from program import SLOW, TAIL, Program, dies_with_parent

LINK = os.path.join(BUILD, "apps", "link", "piped-link")
CABLE = os.path.join(BUILD, "tests", "boards", "cable")


class Board:
    """One of a fleet."""

    def __init__(self, fleet, name):
        self.fleet, self.name = fleet, name
        self.folder = os.path.join(fleet.folder, name)
        self.runtime, self.state = os.path.join(self.folder, "run"), os.path.join(self.folder, "state")
        self.link_runtime, self.link_state = os.path.join(self.folder, "link-run"), os.path.join(self.folder, "link")
        for folder in (self.runtime, self.state, self.link_runtime):
            os.makedirs(folder)
        self.frames_path, self.control_path = (os.path.join(self.runtime, n + ".sock") for n in ("frames", "control"))
        self.address = fleet.network.address(name)
        self.group = self.daemon = self.link = None
        self.link_args, self.link_wrapper = list(fleet.link_args), []
        cpu, memory = fleet.cpu.get(name), fleet.memory.get(name)
        if cpu or memory:
            self.group = Group(name, cpu, memory)
        self.key = self.pipectl("board", "--state-dir", self.link_state, "key").strip()

    def prepare(self):
        dies_with_parent()
        if self.fleet.cpus:
            os.sched_setaffinity(0, self.fleet.cpus(self.name))
        if self.group:
            self.group.join()

    def environment(self):
        return dict(os.environ, PIPED_RUNTIME_DIR=self.runtime)

    def pipectl(self, *words, expect=0):
        """Return: what it printed. @expect: its exit code; None: any."""
        done = subprocess.run([PIPECTL, "--socket", self.control_path, *words], stdin=subprocess.DEVNULL,
                              timeout=60 * SLOW, capture_output=True, text=True, check=False, env=self.environment())
        if expect is not None:
            check(done.returncode == expect, self.name, words, done.returncode, done.stdout, done.stderr)
        return done.stdout + (done.stderr if expect else "")

    def board(self, *words):
        return self.pipectl("board", "--state-dir", self.link_state, "--runtime-dir", self.link_runtime, *words)

    def start_daemon(self):
        if self.daemon:
            self.daemon.cleanup()
        self.daemon = Daemon(config=self.fleet.configs[self.name], runtime_dir=self.runtime, state_dir=self.state,
                             wrapper=self.fleet.network.spaces[self.name].inside(), preexec=self.prepare,
                             env=HEARTBEAT if self.fleet.heartbeat else None)
        self.daemon.log_path = os.path.join(self.folder, "piped.log")
        self.daemon.start()

    def start_link(self):
        self.link = Program(self.link_command(), os.path.join(self.folder, "link.log"), self.prepare,
                            self.environment())
        self.link.wait("piped-link: listens")

    def link_command(self, *more):
        return self.fleet.network.spaces[self.name].inside() + self.link_wrapper + [
            LINK, "--state-dir", self.link_state, "--runtime-dir", self.link_runtime, "--listen", self.address,
            *self.link_args, *more]

    def start(self):
        self.start_daemon()
        self.start_link()

    def processes(self):
        """Ids of those that run."""
        return [p.process.pid for p in (self.daemon, self.link) if p and p.process and p.process.poll() is None]

    def kill_daemon(self):
        self.daemon.cleanup()

    def kill(self):
        """As if its power were cut."""
        for program in (self.link, self.daemon):
            if program:
                program.kill()

    def freeze(self):
        for pid in self.processes():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self.processes():
            os.kill(pid, signal.SIGCONT)

    def links(self):
        """Return: how its links are, by the others' names."""
        return {b["name"]: b["link"] for b in json.loads(self.board("list", "--json"))}

    def status(self):
        return self.daemon.status()

    def served(self):
        """Return: frames that were answered, by model."""
        return {m["name"]: m["frames"]["answered"] for m in self.status()["models"]}

    def logs(self):
        """Return: the ends of its logs."""
        text = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as f:
                    text.append("---- %s of %s ----\n%s" % (name, self.name, "".join(f.readlines()[-TAIL:])))
        return "\n".join(text)

    def end(self, clean):
        """@clean: ends politely, and checks that it does."""
        try:
            self.thaw()
            if clean and self.link and self.link.process.poll() is None:
                code = self.link.stop()
                check(code == 0, "piped-link of", self.name, "ended with", code)
            if clean and self.daemon:
                self.daemon.stop()
        finally:
            self.kill()
            if self.daemon:
                self.daemon.cleanup()
            if self.group:
                killed = self.group.killed()
                self.group.remove()
                check(not clean or killed == 0, self.name, "was killed for memory")


class Fleet:
    """See the head of this file.

    @head: the configuration of b1's piped      @others: of all others
    @cpu, @memory: cores and bytes of each board, or {name: value}      @cpus: function from a name to a set of cores
    @rate: of all cables      @cable: the cable program, if cables will be bad (Cable)
    @trusted_wire: no encryption      @heartbeat: for daemon.wait_until()      @start: whether programs run at once
    """

    def __init__(self, count, head=None, others=None, cpu=None, memory=None, cpus=None, rate=None, cable=None,
                 trusted_wire=False, heartbeat=False, start=True):
        self.names = ["b%d" % (i + 1) for i in range(count)]
        self.configs = {n: (head if n == "b1" else others) or {} for n in self.names}
        self.cpu, self.memory = (x if isinstance(x, dict) else dict.fromkeys(self.names, x) for x in (cpu, memory))
        self.cpus, self.rate, self.cable, self.heartbeat, self.start = cpus, rate, cable, heartbeat, start
        self.link_args = ["--trusted-wire"] if trusted_wire else []
        self.boards, self.network, self.programs = {}, None, []
        self.top = tempfile.TemporaryDirectory(prefix="piped-fleet-")
        self.folder = self.top.name
        self.old_handler = None

    def __getitem__(self, name):
        return self.boards[name]

    @property
    def head(self):
        return self.boards["b1"]

    @property
    def others(self):
        return [b for n, b in self.boards.items() if n != "b1"]

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self.old_handler = signal.signal(signal.SIGTERM, self.terminated)
        try:
            self.network = Network(self.names, self.cable)
            for name in self.names:
                self.boards[name] = Board(self, name)
            for a in self.boards.values():
                for b in self.boards.values():
                    if a is not b:
                        a.board("add", b.name, b.address, b.key)
            if self.rate:
                self.all_cables(lambda cable: cable.shape(self.rate))
            if self.start:
                for board in self.boards.values():
                    board.start()
                self.wait_joined()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    @staticmethod
    def terminated(*_):
        sys.exit(1)

    def all_cables(self, change):
        for cable in self.network.cables.values():
            why = change(cable)
            check(not why, why)

    def wait_joined(self, *names):
        """Waits until these boards (all) see all others that run."""
        for name in names or self.names:
            board = self.boards[name]
            until(lambda board=board: all(link and link["up"] for link in board.links().values()), name, "sees all others")

    def program(self, command, board=None, name="client"):
        """Starts a program, in the namespace of a board but not in its control group; it ends with the fleet."""
        env = dict(os.environ, PIPED_RUNTIME_DIR=board.runtime) if board else None
        inside = self.network.spaces[board.name].inside() if board else []
        self.programs.append(Program(inside + command, os.path.join((board or self).folder, name + ".log"), env=env))
        return self.programs[-1]

    def logs(self):
        return "\n".join(b.logs() for b in self.boards.values())

    def __exit__(self, kind, value, trace):
        failures = []
        if kind:
            print(self.logs(), flush=True)
        clean = kind is None
        for end in [p.kill for p in self.programs] + [lambda b=b: b.end(clean) for b in self.boards.values()]:
            try:
                end()
            except Failure as e:
                failures.append(str(e))
        if failures and clean:
            print(self.logs(), flush=True)
        if self.network:
            self.network.remove()
        self.top.cleanup()
        if self.old_handler is not None:
            signal.signal(signal.SIGTERM, self.old_handler)
        check(not clean or not failures, "\n".join(failures))


def segments_of(board):
    """Return: {(first, last): frames answered} of the segments that a board serves."""
    found = {}
    for name, answered in board.served().items():
        part = re.fullmatch(r".*#(\d+)-(\d+)", name)
        if part:
            units = int(part.group(1)), int(part.group(2))
            found[units] = found.get(units, 0) + answered
    return found
