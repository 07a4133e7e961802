#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped-link with real daemons: frames of one board computed by others, while links, boards and daemons die.

usage: test_link.py SOURCE_ROOT LINK PIPECTL     (PIPED_BUILD: the build folder)
"""
import array
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT, LINK, PIPECTL = sys.argv[1:4]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
from cases import check, main  # noqa: E402  (the folders are known only now)
from daemon import DIGITS, Daemon  # noqa: E402
from machines import Node, free_ports  # noqa: E402
from program import LIMIT_S, SLOW  # noqa: E402

PATTERNS = 16


def pipectl(*words):
    done = subprocess.run([PIPECTL, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
    check(done.returncode == 0, words, done.stdout, done.stderr)
    return done.stdout


class Boards:
    """A hub without a daemon and boards with one each, on the loopback device, with keys and lists of pipectl board."""

    def __init__(self, *names):
        self.top = tempfile.TemporaryDirectory(prefix="piped-boards-")
        self.names = names
        self.port = dict(zip(("hub",) + names, free_ports(1 + len(names))))
        keys = {n: pipectl("board", "--state-dir", self.state(n), "key").strip() for n in self.port}
        for name in names:
            for a, b in (("hub", name), (name, "hub")):
                pipectl("board", "--state-dir", self.state(a), "add", b, "127.0.0.1:%d" % self.port[b], keys[b])
        self.daemons, self.links = {}, {}

    def state(self, name):
        return os.path.join(self.top.name, name)

    def command(self, name, *more):
        return [LINK, "--state-dir", self.state(name), "--name", name, "--listen", "127.0.0.1:%d" % self.port[name], *more]

    def start_daemon(self, name):
        self.daemons[name] = Daemon(models={"digits": DIGITS}, runtime_dir=self.runtime(name))
        self.daemons[name].__enter__()

    def runtime(self, name):
        return os.path.join(self.top.name, name + "-run")

    def reports(self, name):
        return os.path.join(self.top.name, name + "-link")

    def start_link(self, name):
        os.makedirs(self.reports(name), exist_ok=True)
        self.links[name] = Node(self.command(name, "--socket", os.path.join(self.runtime(name), "frames.sock"),
                                             "--runtime-dir", self.reports(name)))
        self.links[name].wait("piped-link: listens", 20 * SLOW)

    def board(self, name, *words):
        return pipectl("board", "--state-dir", self.state(name), "--runtime-dir", self.reports(name), *words)

    def listed(self, name, good):
        """Asks again and again, until the links are good(). Return: them, by name."""
        end = time.monotonic() + LIMIT_S
        while True:
            links = {b["name"]: b["link"] for b in json.loads(self.board(name, "list", "--json"))}
            if good(links):
                return links
            check(time.monotonic() < end, "never good:", links)

    def __enter__(self):
        try:
            for name in self.names:
                self.start_daemon(name)
                self.start_link(name)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *what):
        for link in self.links.values():
            link.kill()
        for daemon in self.daemons.values():
            daemon.__exit__(*what)
        self.top.cleanup()

    def inputs(self, daemon):
        """Return: shape, patterns of input bytes, and the daemon's own answers to them."""
        shape = daemon.status()["models"][0]["input"]["shape"]
        count = 1
        for n in shape:
            count *= n
        draw = random.Random(7)
        patterns, files = [], []
        for i in range(PATTERNS):
            patterns.append(array.array("f", [draw.random() for _ in range(count)]).tobytes())
            files.append(os.path.join(self.top.name, "in-%d.f32" % i))
            with open(files[-1], "wb") as f:
                f.write(patterns[-1])
        raw = os.path.join(self.top.name, "out.f32")
        pipectl("--socket", daemon.control_path, "infer", "--raw", raw, *files)
        with open(raw, "rb") as f:
            answers = f.read()
        size = len(answers) // PATTERNS
        return "x".join(map(str, shape)), patterns, [answers[i * size:(i + 1) * size] for i in range(PATTERNS)]


class Relay:
    """piped-link --relay: feeds frames once all boards are there, checks every answer as it comes."""

    def __init__(self, boards, frames, *more):
        daemon = next(iter(boards.daemons.values()))
        shape, self.patterns, self.answers = boards.inputs(daemon)
        self.frames, self.answered, self.wrong, self.error = frames, 0, None, b""
        self.process = subprocess.Popen(boards.command("hub", "--relay", "digits", "--input", shape, *more),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.news = threading.Condition()
        self.names = more[1].split(",") if more[:1] == ("--to",) else boards.names
        self.threads = [threading.Thread(target=t, daemon=True) for t in (self.feed, self.take, self.listen)]
        for t in self.threads:
            t.start()

    def feed(self):
        with self.news:
            self.news.wait_for(lambda: all(b"%s is there" % n.encode() in self.error for n in self.names), 30 * SLOW)
        try:
            for i in range(self.frames):
                self.process.stdin.write(self.patterns[i % PATTERNS])
            self.process.stdin.close()
        except OSError:
            pass

    def take(self):
        size = len(self.answers[0])
        while True:
            got = self.process.stdout.read(size)
            with self.news:
                if len(got) < size:
                    self.wrong = self.wrong or (got and "a piece of an answer")
                    self.news.notify_all()
                    return
                if got != self.answers[self.answered % PATTERNS]:
                    self.wrong = self.wrong or "answer %d is another frame's or wrong" % self.answered
                self.answered += 1
                self.news.notify_all()

    def listen(self):
        for line in self.process.stderr:
            with self.news:
                self.error += line
                self.news.notify_all()

    def wait(self, count):
        with self.news:
            there = self.news.wait_for(lambda: self.answered >= count or self.wrong, 60 * SLOW)
        check(there and not self.wrong, self.answered, "of", count, self.wrong, self.error.decode())

    def end(self):
        self.wait(self.frames)
        check(self.process.wait(30 * SLOW) == 0, self.error.decode())
        for t in self.threads:
            t.join(10)
        check(self.answered == self.frames and not self.wrong, self.answered, self.wrong)
        said = self.error.decode()
        return int(re.search(r"(\d+) sent again", said.split("frames answered")[-1]).group(1)), said

    def kill(self):
        self.process.kill()
        self.process.wait()


def relayed(boards, frames, faults, *more):
    """Runs frames; @faults: [(after so many answers, function)]. Return: frames sent again, what was said."""
    relay = Relay(boards, frames, *more)
    try:
        for after, fault in faults:
            relay.wait(after)
            fault()
        return relay.end()
    finally:
        relay.kill()


def one_board_computes_all():
    with Boards("b2") as boards:
        again, said = relayed(boards, 500, ())
        check(again == 0, said)
        check("a message takes" in said, "the link was not measured:", said)
        print("  " + next(line for line in said.split("\n") if "a message takes" in line))


def two_boards_share():
    with Boards("b2", "b3") as boards:
        again, said = relayed(boards, 1000, ())
        served = [d.status()["models"][0]["frames"]["answered"] - (PATTERNS if n == "b2" else 0)
                  for n, d in boards.daemons.items()]
        check(again == 0 and sum(served) == 1000 and min(served) > 0, served, said)


def links_are_killed_and_come_back():
    with Boards("b2", "b3") as boards:
        def kill(name):
            return boards.links[name].kill

        def start(name):
            return lambda: boards.start_link(name)

        again, said = relayed(boards, 6000, ((500, kill("b2")), (1500, start("b2")), (2500, kill("b3")), (3500, start("b3")),
                                             (4500, kill("b2"))))
        check(said.count("is gone") >= 2, said)
        print("  %d frames sent again" % again)


def all_boards_are_gone_for_a_while():
    with Boards("b2") as boards:
        def both():
            boards.links["b2"].kill()
            boards.start_link("b2")
        again, said = relayed(boards, 3000, ((500, both), (1500, both)))
        check("is gone" in said, said)
        print("  %d frames sent again" % again)


def a_frozen_board_answers_late():
    with Boards("b2", "b3") as boards:
        link = boards.links["b2"]
        relay = Relay(boards, 20000)
        try:
            relay.wait(500)
            link.signal(signal.SIGSTOP)
            began, seen = time.monotonic(), relay.answered
            relay.wait(seen + 1500)  # the other goes on
            check(time.monotonic() - began < 10 * SLOW)
            link.signal(signal.SIGCONT)
            _, said = relay.end()
            check("b2 is gone" in said, said)
        finally:
            relay.kill()


def the_daemon_behind_a_link_is_restarted():
    with Boards("b2", "b3") as boards:
        def restart():
            boards.daemons["b2"].process.kill()
            boards.daemons["b2"].expect_exit = None
            boards.daemons["b2"].process.wait()
            boards.daemons["b2"].process = None
            boards.start_daemon("b2")
        relayed(boards, 4000, ((500, restart),))


def links_are_listed():
    """pipectl board list: up, measured, frames; away when the other is gone; nothing without piped-link."""
    with Boards("b2", "b3") as boards:
        for a, b in (("b2", "b3"), ("b3", "b2")):
            key = pipectl("board", "--state-dir", boards.state(b), "key").strip()
            said = boards.board(a, "add", b, "127.0.0.1:%d" % boards.port[b], key)
            check("systemctl reload piped-link" in said, said)
            boards.links[a].signal(signal.SIGHUP)
            boards.links[a].wait("piped-link: listens", 20 * SLOW)
        links = boards.listed("b2", lambda x: x["b3"] and x["b3"]["up"] and x["b3"]["message_us"])
        check(links["b3"]["message_us"] > 0 and not links["hub"]["up"], links)
        relayed(boards, 300, (), "--to", "b2")
        boards.listed("b2", lambda x: x["hub"]["frames"] == 300 and x["hub"]["losses"] >= 1 and not x["hub"]["up"])
        text = boards.board("b2", "list")
        check(re.search(r"^b3 .* up for \d+ s, [0-9.]+ ms \+ [0-9.]+ us/kB", text, re.M), text)
        check(re.search(r"^hub .* away for", text, re.M), text)
        print(text.rstrip())
        lost = links["b3"]["losses"]
        boards.links["b3"].kill()
        boards.listed("b2", lambda x: not x["b3"]["up"] and x["b3"]["losses"] == lost + 1 and x["b3"]["message_us"] is None)
        with open(os.path.join(boards.state("b2"), "boards.json"), "w", encoding="utf-8") as f:
            f.write("[")  # half a list
        boards.links["b2"].signal(signal.SIGHUP)
        boards.links["b2"].wait("piped-link: goes on with the boards that it has", 20 * SLOW)
        boards.links["b2"].signal(signal.SIGTERM)
        check(boards.links["b2"].ended(20 * SLOW) == 0)
        check(not os.path.exists(os.path.join(boards.reports("b2"), "links.json")))
        check(boards.listed("b3", lambda x: True)["b2"] is not None, "the report of a killed link is gone")


def refusals_are_sentences():
    with tempfile.TemporaryDirectory() as folder:
        def run(*words):
            done = subprocess.run([LINK, "--state-dir", folder, "--listen", "127.0.0.1:%d" % free_ports(1)[0], *words],
                                  capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
            return done.returncode, done.stderr

        check(run() == (6, "piped-link: %s: there are no keys, and nothing listens without; run pipectl board key\n" % folder))
        key = pipectl("board", "--state-dir", folder, "key").strip()
        code, said = run()
        check(code == 6 and "run pipectl board add" in said, said)
        with tempfile.TemporaryDirectory() as other:
            theirs = pipectl("board", "--state-dir", other, "key").strip()
        pipectl("board", "--state-dir", folder, "add", "b2", "127.0.0.1:1", theirs)
        for words, reason in ((("--listen", "nowhere"), "IP address"), (("--relay", "m"), "--input"),
                              (("--relay", "m", "--input", "1x0"), "--input"), (("--relay", "m", "--input", "1x3x"), "--input"),
                              (("--relay", "m", "--input", " -18446744073709551615"), "--input"),
                              (("--relay", "m", "--input", "1x4", "--to", "b9"), "no board"), (("x",), "unknown argument")):
            code, said = run(*words)
            check(code == 2 and reason in said, words, code, said)
        with open(os.path.join(folder, "boards.json"), encoding="utf-8") as f:
            text = json.load(f)
        text["boards"].append(dict(text["boards"][0], name="b3", address="127.0.0.1:2"))
        with open(os.path.join(folder, "boards.json"), "w", encoding="utf-8") as f:
            json.dump(text, f)
        code, said = run()
        check(code == 6 and "this key" in said and theirs not in said and key not in said, said)


main((refusals_are_sentences, links_are_listed, one_board_computes_all, two_boards_share, links_are_killed_and_come_back,
      all_boards_are_gone_for_a_while, a_frozen_board_answers_late, the_daemon_behind_a_link_is_restarted))
