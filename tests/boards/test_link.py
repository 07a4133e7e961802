#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped-link as a service: how its links are listed, what a reload and an end do, and what it refuses to start with.

usage: test_link.py SOURCE_ROOT LINK PIPECTL     (PIPED_BUILD: the build folder)
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

ROOT, LINK, PIPECTL = sys.argv[1:4]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
from cases import check, main  # noqa: E402  (the folders are known only now)
from daemon import until  # noqa: E402
from hop_boards import LIMIT_S, Boards, Client  # noqa: E402
from network import free_ports  # noqa: E402


def pipectl(*words):
    done = subprocess.run([PIPECTL, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
    check(done.returncode == 0, words, done.stdout, done.stderr)
    return done.stdout


def board(b, name, *words):
    return pipectl("board", "--state-dir", b.path(name, "state"), "--runtime-dir", b.path(name, "link"), *words)


def listed(b, name, good):
    """Until the links that a board lists are good(). Return: them, by name."""
    links = {}

    def asked():
        links.update((x["name"], x["link"]) for x in json.loads(board(b, name, "list", "--json")))
        return good(links)

    until(asked, "good links of", name, limit_s=LIMIT_S)
    return links


def links_are_listed():
    """pipectl board list: up, measured, frames; away when the other is gone; nothing without piped-link."""
    with Boards(PIPECTL, LINK, "b2", "b3") as b:
        board(b, "b2", "remove", "b3")
        said = board(b, "b2", "add", "b3", "127.0.0.1:%d" % b.port["b3"], b.key["b3"])
        check("systemctl reload piped-link" in said, said)
        b.links["b2"].signal(signal.SIGHUP)
        b.links["b2"].wait("piped-link: listens", LIMIT_S)
        links = listed(b, "b2", lambda x: x["b3"] and x["b3"]["up"] and x["b3"]["message_us"])
        check(links["b3"]["message_us"] > 0 and links["b3"]["frames"] == 0, links)
        for line in ("b2 is gone", "b2 is there"):  # by the reload
            b.links["head"].wait("piped-link: " + line, LIMIT_S)
        b.set("0-11@b2")
        client = Client(b)
        client.more(300)
        client.end()
        check(client.unavailable == 0, client.unavailable)
        listed(b, "b2", lambda x: x["head"]["frames"] == client.answered)
        b.links["head"].kill()
        listed(b, "b2", lambda x: x["head"]["losses"] >= 1 and not x["head"]["up"])
        text = board(b, "b2", "list")
        check(re.search(r"^b3 .* up for \d+ s, [0-9.]+ ms \+ [0-9.]+ us/kB", text, re.M), text)
        check(re.search(r"^head .* away for", text, re.M), text)
        print(text.rstrip())
        lost = links["b3"]["losses"]
        b.links["b3"].kill()
        listed(b, "b2", lambda x: not x["b3"]["up"] and x["b3"]["losses"] == lost + 1 and x["b3"]["message_us"] is None)
        with open(b.path("b2", "state", "boards.json"), "w", encoding="utf-8") as f:
            f.write("[")  # half a list
        b.links["b2"].signal(signal.SIGHUP)
        b.links["b2"].wait("piped-link: goes on with the boards that it has", LIMIT_S)
        b.links["b2"].signal(signal.SIGTERM)
        check(b.links["b2"].wait_exit(LIMIT_S) == 0)
        check(not os.path.exists(b.path("b2", "link", "links.json")))
        check(listed(b, "b3", lambda x: True)["b2"] is not None, "the report of a killed link is gone")


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
        for words, reason in ((("--listen", "nowhere"), "IP address"), (("--unused-s", "x"), "seconds from 0"),
                              (("--silent-s", "0.1"), "seconds from 0.4"),
                              (("--store-mb", "-1"), "a whole number from 0"), (("x",), "unexpected argument")):
            code, said = run(*words)
            check(code == 2 and reason in said, words, code, said)
        with open(os.path.join(folder, "boards.json"), encoding="utf-8") as f:
            text = json.load(f)
        text["boards"].append(dict(text["boards"][0], name="b3", address="127.0.0.1:2"))
        with open(os.path.join(folder, "boards.json"), "w", encoding="utf-8") as f:
            json.dump(text, f)
        code, said = run()
        check(code == 6 and "this key" in said and theirs not in said and key not in said, said)



main((refusals_are_sentences, links_are_listed))
