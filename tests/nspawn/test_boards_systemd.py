#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two boards as docs/boards.md sets them up: machines with the installed units and their sandboxes, joined by a cable.

usage: test_boards_systemd.py SOURCE_ROOT BUILD_ROOT PREFIX SYSCONFDIR

Everything is done from a root shell of the machines, frames are sent by a member of piped-clients. Each case goes on
where the one before ended. Skipped without root, systemd-nspawn, network namespaces or what they need; a failure if
PIPED_NSPAWN_REQUIRED is set.
"""
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT, BUILD, PREFIX, SYSCONFDIR = sys.argv[1:5]
for folder in ("lint", "system", "boards"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
from cases import check, main  # noqa: E402  (the folders are known only now)
from network import Network, network_reason  # noqa: E402
from nspawn import Machine, check_tools, install, installed, skip  # noqa: E402
from spread import write_borders  # noqa: E402
from surroundings import lacking
import wait

LIMIT_S = 180  # of a wait for an event, beside whatever else the machine does
until = functools.partial(wait.until, limit_s=LIMIT_S, pause=wait.RARELY_S)  # nothing tells a test outside of the machines
MEMBER = "member"
NET = "/var/lib/piped/models/net.onnx"  # only the head has it
ROUTE = "0-2@here|3-5@b2"
RATE = 100


class Board(Machine):
    def __init__(self, top, dest, network, name):
        folder = os.path.join(top, name)
        shutil.copytree(dest + SYSCONFDIR + "/piped", os.path.join(folder, "etc"))
        super().__init__(folder, name, [
            "--network-namespace-path=" + network.spaces[name].path, *installed(dest, PREFIX, SYSCONFDIR),
            "--bind=%s/etc:%s/piped" % (folder, SYSCONFDIR)])
        self.address = network.address(name)

    def run(self, *words, user=None, expect=0):
        """Return: stdout."""
        done = subprocess.run(self.inside(user) + list(words), capture_output=True, text=True, check=False,
                              timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        check(done.returncode == expect, self.name, *words, "exit", done.returncode, "\n", done.stdout, done.stderr)
        return done.stdout

    def pipectl(self, *words, user=None):
        return self.run(os.path.join(PREFIX, "bin", "pipectl"), *words, user=user)

    def json(self, *words, user=None):
        return json.loads(self.pipectl("--json", *words, user=user))

    def configure(self, models, **more):
        with open(os.path.join(self.folder, "etc", "piped.json.d", "50-tests.json"), "w", encoding="utf-8") as f:
            json.dump({"models": models, **more}, f)

    def model(self, name="net"):
        return next((m for m in self.json("status")["models"] if m["name"] == name), None)

    def show(self, unit, prop):
        return self.run("systemctl", "show", "--value", "-p", prop, unit).strip()

    def journal(self):
        return subprocess.run(self.inside() + ["journalctl", "--no-pager", "-o", "short-precise", "-n", "60", "-u",
                                               "piped", "-u", "piped-link"],
                              capture_output=True, text=True, check=False).stdout


class Setup:
    """Both machines and what lies between them."""

    def __init__(self, top):
        self.boards, self.network = {}, None
        dest = install(BUILD, top)
        try:
            self.network = Network(["head", "b2"])
            for name in self.network.names:
                self.boards[name] = Board(top, dest, self.network, name)
            write_borders(self.head.folder)
        except BaseException:
            self.remove()
            raise

    @property
    def head(self):
        return self.boards["head"]

    @property
    def b2(self):
        return self.boards["b2"]

    def remove(self):
        for board in self.boards.values():
            board.end()
        if self.network:
            self.network.remove()


class Load:
    """Frames of a client on the head while something happens; each must be answered once, in order, right."""

    def __init__(self):
        self.process = subprocess.Popen(
            S.head.inside(MEMBER) + [os.path.join(PREFIX, "bin", "pipectl"), "--json", "bench", "--model", "net",
                                    "--seconds", "600", "--rate", str(RATE), "--verify", "--reconnect", "30"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def __enter__(self):
        self.more(30)
        return self

    def more(self, count):
        """Waits for so many answers, wherever they are computed. The daemon's counters begin anew with it."""
        first = S.head.model()["frames"]["answered"]
        until(lambda: not 0 <= S.head.model()["frames"]["answered"] - first < count, "%d answers" % count)

    def far(self, count=30):
        """Waits for so many answers by the route."""
        first = until(serving, "a route that serves")["answered"]
        until(lambda: not 0 <= S.head.model()["route"]["answered"] - first < count, "%d answers by the route" % count)

    def __exit__(self, kind, value, trace):
        os.killpg(self.process.pid, signal.SIGINT if kind is None else signal.SIGKILL)
        out, err = self.process.communicate(timeout=LIMIT_S)
        if kind is None:
            check(out.strip(), "bench said nothing:", err)
            result = json.loads(out)
            print("  %d frames, at most %.0f ms" % (result["sent"], result["latency_ms"]["max"]), flush=True)
            check(result["answered"] == result["sent"] > 50, result)
            for key in ("lost", "reordered", "duplicated", "wrong"):
                check(result[key] == 0, key, result)


def serving():
    """Return: the route of status, if frames go that way."""
    route = (S.head.model() or {}).get("route") or {}
    return route if route.get("serving") else None


def logged(case):
    def run():
        try:
            return case()
        except BaseException:
            for board in S.boards.values():
                print("---- %s ----\n%s" % (board.name, board.journal()), file=sys.stderr)
            raise
    run.__name__ = case.__name__
    return run


def users_are_there():
    for board in S.boards.values():
        board.run("systemd-sysusers")
        for name in ("piped", "piped-link"):
            board.run("systemd-tmpfiles", "--create", os.path.join(PREFIX, "lib/tmpfiles.d/%s.conf" % name))
        board.run("useradd", "--no-create-home", "--groups", "piped-clients", MEMBER)
        os.makedirs(os.path.join(board.folder, "etc", "piped.json.d"), exist_ok=True)
    S.head.run("install", "-m", "644", "/host/borders.onnx", NET)


@logged
def three_commands_and_two_keys():
    keys = {name: board.pipectl("board", "key").strip() for name, board in S.boards.items()}
    check(all(re.fullmatch("[0-9a-f]{64}", k) for k in keys.values()) and len(set(keys.values())) == 2, keys)
    for here, there in ((S.head, S.b2), (S.b2, S.head)):
        here.pipectl("board", "add", there.name, there.address, keys[there.name])
    for board in S.boards.values():
        board.run("systemctl", "enable", "--now", "piped-link")
    for here, there in ((S.head, S.b2), (S.b2, S.head)):
        link = until(lambda here=here: [b["link"] for b in here.json("board", "list") if b["link"] and b["link"]["up"]],
                     here.name + "'s link")
        check(len(link) == 1, link)
        check(here.show("piped-link", "NRestarts") == "0", here.name, "needed restarts:\n", here.journal())
        seen = until(lambda here=here: [b for b in here.json("status")["boards"] if b["up"] and b["eps"]],
                     "the other board in status")
        check(seen[0]["name"] == there.name and seen[0]["memory_bytes"], seen)


@logged
def secrets_stay_secret():
    for board in S.boards.values():
        said = board.run("stat", "-c", "%a %U", "/var/lib/piped-link/board.key").strip()
        check(said == "600 piped-link", said)
        secret = json.loads(board.run("cat", "/var/lib/piped-link/board.key"))
        values = [v for k, v in secret.items() if "secret" in k]
        check(len(values) == 1 and values[0] not in board.journal() + board.pipectl("board", "list"), "the key is shown")


@logged
def one_line_serves_over_boards():
    """The planner decides, and says why. What it finds depends on how busy this machine is."""
    S.head.configure([{"name": "net", "path": NET, "boards": "auto"}])
    S.head.run("systemctl", "reload", "piped")

    def decided():
        route = S.head.model()["route"]
        return route if route["serving"] or "faster" in route["why"] else None
    route = until(decided, "a decision")
    print("  %s %s" % (route["route"], route["why"]))


@logged
def a_route_serves():
    S.head.configure([{"name": "net", "path": NET, "boards": ROUTE}])
    S.head.run("systemctl", "reload", "piped")
    until(lambda: (serving() or {}).get("route") == ROUTE, ROUTE)
    S.head.pipectl("bench", "--model", "net", "--frames", "200", "--verify", user=MEMBER)
    until(lambda: (serving() or {"answered": 0})["answered"] >= 200, "200 answers by the route")
    store = S.b2.run("ls", "/var/lib/piped-link/models").split()
    check(any(name.endswith(".onnx") for name in store), "b2 fetched nothing:", store)
    segment = [m for m in S.b2.json("status")["models"] if m.get("segment")]
    check(any(m["name"].endswith("#3-5") and m["frames"]["answered"] >= 200 for m in segment), segment)


@logged
def everything_can_be_watched():
    check(ROUTE in S.head.pipectl("status", user=MEMBER), S.head.pipectl("status"))
    check("b2" in S.head.pipectl("board", "list", user=MEMBER), "the link is not shown")
    check(any(e["cause"] == "board" for e in S.head.json("history")), S.head.pipectl("history"))
    metrics = S.head.pipectl("metrics", user=MEMBER)
    check('piped_board_up{board="b2"} 1' in metrics and 'piped_route_serving{model="net"} 1' in metrics, metrics)


@logged
def a_pulled_cable_loses_nothing():
    cable = S.network.cables["b2"]
    with Load() as load:
        load.far()
        cable.plugged(False)
        until(lambda: not serving(), "the head alone")
        load.more(50)
        check(any(not b["up"] for b in S.head.json("status")["boards"]), S.head.json("status")["boards"])
        cable.plugged(True)
        load.far()
    check(any(e["cause"] in ("link", "board") for e in S.head.json("history")), S.head.pipectl("history"))


@logged
def links_at_one_address_and_read_again_lose_nothing():
    S.b2.run("mkdir", "-p", "/run/systemd/system/piped-link.service.d")
    with open(os.path.join(S.b2.folder, "listen.conf"), "w", encoding="utf-8") as f:
        f.write("[Service]\nEnvironment=PIPED_LINK_OPTIONS=\"--listen %s\"\n" % S.b2.address)
    S.b2.run("cp", "/host/listen.conf", "/run/systemd/system/piped-link.service.d")
    S.b2.run("systemctl", "daemon-reload")
    S.b2.run("systemctl", "restart", "piped-link")
    with Load() as load:
        load.far()
        S.head.pipectl("board", "add", "spare", "10.214.0.99", "42" * 32)
        S.head.run("systemctl", "reload", "piped-link")
        until(lambda: len(S.head.json("status")["boards"]) == 2, "the third board in status")
        load.far()


def restart(board, unit):
    def case():
        before = board.show(unit, "MainPID")
        with Load() as load:
            load.far()
            board.run("systemctl", "restart", unit)
            load.far()
        check(board.show(unit, "MainPID") != before, "it did not restart")
    case.__name__ = "restart_of_%s_on_%s_loses_nothing" % (unit.replace("-", "_"), board.name)
    return logged(case)


@logged
def a_wrong_key_is_told():
    right = S.head.pipectl("board", "key").strip()
    for key, good in (("42" * 32, False), (right, True)):
        S.b2.pipectl("board", "remove", "head")
        S.b2.pipectl("board", "add", "head", S.head.address, key)
        S.b2.run("systemctl", "reload", "piped-link")
        if good:
            until(serving, "the route")
        else:
            until(lambda: "connections refused: " in S.head.pipectl("board", "list", user=MEMBER), "word of the key")
            check("b2" in S.head.model()["route"]["why"], S.head.model()["route"])


@logged
def sandboxes_let_everything_through():
    for board in S.boards.values():
        text = board.journal()
        for bad in ("Operation not permitted (src", "Permission denied", "SIGSYS", "code=killed", "code=dumped"):
            check(bad not in text, board.name, "says", bad, "\n", text)


@logged
def everything_stops_cleanly():
    for board in S.boards.values():
        board.run("systemctl", "stop", "piped-link", "piped")
        for unit in ("piped-link", "piped"):
            check(board.show(unit, "Result") == "success", unit, board.show(unit, "Result"), board.journal())


check_tools("nsenter")
if network_reason():
    skip(network_reason())
if lacking("user namespaces"):
    skip(lacking("user namespaces") + "; the sandbox of piped-link wants one (PrivateUsers=)")
with tempfile.TemporaryDirectory(prefix="piped-nspawn-") as temp:
    S = None
    try:
        S = Setup(temp)
        for machine in S.boards.values():
            if not machine.booted(LIMIT_S):
                skip("no systemd could be booted here: " + machine.said())
        main((users_are_there, three_commands_and_two_keys, secrets_stay_secret, one_line_serves_over_boards, a_route_serves,
              everything_can_be_watched, a_pulled_cable_loses_nothing,
              links_at_one_address_and_read_again_lose_nothing, restart(S.b2, "piped-link"), restart(S.b2, "piped"),
              restart(S.head, "piped-link"), restart(S.head, "piped"),
              a_wrong_key_is_told, sandboxes_let_everything_through, everything_stops_cleanly), trace=True)
    finally:
        if S:
            S.remove()
