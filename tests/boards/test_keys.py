#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl board: keys and the list of boards, as a user and a script see them. No secret is ever printed.

usage: test_keys.py SOURCE_ROOT PIPECTL
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT, PIPECTL = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))
from cases import check, main  # noqa: E402  (the folder is known only now)
from surroundings import lacking

SAID = []


def board(folder, *words, exit_code=0):
    done = subprocess.run([PIPECTL, "board", "--state-dir", folder, *words], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)
    SAID.append(done.stdout + done.stderr)
    check(done.returncode == exit_code, words, "exit", done.returncode, done.stdout, done.stderr)
    return done.stdout if exit_code == 0 else done.stderr


def secret(folder):
    with open(os.path.join(folder, "board.key"), encoding="utf-8") as f:
        return json.load(f)["secret_key"]


def two_boards_meet():
    with tempfile.TemporaryDirectory() as top:
        head, b2 = os.path.join(top, "head"), os.path.join(top, "b2")
        check("No such file" in board(head, "list", exit_code=1))
        key = board(head, "key").strip()
        check(len(key) == 64 and board(head, "key").strip() == key, "the key changes")
        check(os.stat(os.path.join(head, "board.key")).st_mode & 0o777 == 0o600)
        other = json.loads(board(b2, "key", "--json"))
        check(other["made"] is True and not json.loads(board(b2, "key", "--json"))["made"])
        board(head, "add", "b2", "10.0.0.2", other["public_key"])
        board(b2, "add", "head", "10.0.0.1:9000", key)
        listed = json.loads(board(b2, "list", "--json"))
        check([(b["name"], b["address"]) for b in listed] == [("head", "10.0.0.1:9000")], listed)
        check(key not in json.dumps(listed) and listed[0]["fingerprint"] in board(b2, "list"), listed)
        check("computed for it" in board(b2, "list"), board(b2, "list"))
        before = secret(head)
        check(board(head, "key", "--replace").strip() != key and secret(head) != before)
        check("b2" in board(head, "list"), "the list is gone")
        board(head, "remove", "b2")
        check(json.loads(board(head, "list", "--json")) == [])
        for folder in (head, b2):
            check(not any(secret(folder) in said for said in SAID), "a secret was printed")


def bad_input_is_refused_with_a_sentence():
    with tempfile.TemporaryDirectory() as head:
        key = board(head, "key").strip()
        with tempfile.TemporaryDirectory() as b2:
            other = board(b2, "key").strip()
        for words, reason in ((("add", "me", "10.0.0.9", key), "own key"),
                              (("add", "me", "10.0.0.9", secret(head)), "secret key"),
                              (("add", "b:2", "10.0.0.2", other), "letters, digits"),
                              (("add", "b2", "b2.example", other), "IP address"),
                              (("add", "b2", "0.0.0.0", other), "IP address"),
                              (("add", "b2", "10.0.0.2", "0" * 64), "not a public key"),
                              (("add", "b2", "10.0.0.2", other[:-1]), "not a public key"),
                              (("remove", "b2"), "no board")):
            said = board(head, *words, exit_code=1)
            check(reason in said and words[-1] not in said.replace("b2", ""), words[:2], said)
        board(head, "add", "b2", "10.0.0.2", other)
        for words, reason in ((("add", "b3", "10.0.0.3", other), "this key"), (("add", "b2", "10.0.0.3", other), "this name")):
            check(reason in board(head, *words, exit_code=1))
        for words in ((), ("nonsense",), ("key", "x"), ("add", "b2"), ("add", "b2", "10.0.0.2", other, "x"), ("remove",),
                      ("list", "--replace")):
            board(head, *words, exit_code=2)
        with open(os.path.join(head, "boards.json"), "w", encoding="utf-8") as f:
            f.write('{"version": 1, "boards": [{"name": "%s' % secret(head))
        said = board(head, "list", exit_code=1)
        check("boards.json: the file is broken" in said and secret(head) not in said, said)
        os.chmod(os.path.join(head, "board.key"), 0o644)
        check("others than its owner" in board(head, "key", exit_code=1))


def writers_at_once_lose_nothing():
    with tempfile.TemporaryDirectory() as head:
        keys = []
        for _ in range(8):
            with tempfile.TemporaryDirectory() as other:
                keys.append(board(other, "key").strip())
        jobs = [subprocess.Popen([PIPECTL, "board", "--state-dir", head, "add", "n%d" % i, "10.0.0.%d" % (i + 1), k],
                                 stdout=subprocess.DEVNULL) for i, k in enumerate(keys)]
        check([j.wait(60) for j in jobs] == [0] * 8)
        check(len(json.loads(board(head, "list", "--json"))) == 8)


def files_belong_to_the_folder():
    if lacking("rights of root"):
        return lacking("rights of root")
    with tempfile.TemporaryDirectory() as head:
        os.chown(head, 12345, 23456)
        board(head, "key")
        there = os.stat(os.path.join(head, "board.key"))
        check((there.st_uid, there.st_gid, there.st_mode & 0o777) == (12345, 23456, 0o600), there)
    return None


main((two_boards_meet, bad_input_is_refused_with_a_sentence, writers_at_once_lose_nothing, files_belong_to_the_folder))
