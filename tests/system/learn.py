# SPDX-License-Identifier: Apache-2.0
"""Does what a page for learners says, block by block, and compares what comes out with what the page shows.

    with Place() as place:
        place.follow("docs/tutorial.md")

What the blocks of a page are:

    ```sh                              commands, run by one bash each, in one folder; a failing one fails the test
    ```text                            what the block before prints: its words must come, in this order (see said())
    ```json, ini, python, ... after    <!-- file: PATH -->       a file that the reader writes
    any block after                    <!-- not run: WHY -->     counted, and named in the test's output
    ```text after                      <!-- status: BOARD -->    what pipectl status says there (board_trees.py)
    any block after                    <!-- excerpt -->          a part of something, which is read and not run

A manual in scdoc has its blocks in EXAMPLES; those without a note are commands, and notes stand in comments ("; <!-- ... -->").

<!-- needs: FILES --> leaves out what follows, up to the next such note, where the test has no such files of the
reader. <!-- exit: 0 or 1 --> before commands says how they may end.

A test has neither root's folders nor a service manager. MOVED lists paths and addresses that it replaces by its own,
STAND_INS the programs that others stand in for. Everything else is the real program of the build folder.
"""
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap

from board_trees import BOARDS
from daemon import BUILD, LIMIT_S, ROOT, SHARED, Daemon, Failure, check
from http_server import PIPED_HTTP, Http
from python_client import why_not

REAL = os.path.join(SHARED, "real")
# What the reader has: a network, its labels, photographs.
READERS_FILES = {"squeezenet1_1.onnx": "models/squeezenet1_1.onnx", "mine.onnx": "models/squeezenet1_1.onnx",
                 "people.jpg": "images/face_13.jpg", "pictures": "images",
                 "mobilenet.onnx": "models/mobilenet_v1_0.25_128_fp32.onnx"}
# Files of the catalogue that pipectl models fetch gets: their publishers are not asked.
PUBLISHED = {"ultraface": ("version-RFB-320.onnx", "models/ultraface_rfb320.onnx"),
             "mnist": ("MNIST/mnist.onnx", "models/mnist_8.onnx")}
NOTE_OF_THE_AUTHOR = b"\x32\x02v2"  # ModelProto.doc_string
# Where packages install what is in the source tree; each under a spelling of its own, for the way back.
SHARE = {"/usr/share/piped/models": "model/default", "/usr/share/piped/pictures": "model/default/.",
         "/usr/share/piped/networks": "model/networks",
         "/usr/share/piped/prometheus": "etc/prometheus", "/usr/share/piped/grafana": "etc/grafana",
         "/usr/share/doc/python3-piped/examples": "docs/examples/python",
         "/usr/share/piped/platforms": "tuner/platforms"}
PROGRAMS = ("daemon/piped", "apps/pipectl/pipectl", "tuner/pipesim", "apps/http/piped-http")
STAND_INS = {
    "sudo": 'exec "$@"\n',
    # the test has started the daemon and piped-http before
    "systemctl": 'case "$*" in\n'
                 '"reload piped") exec pipectl reload ;;\n'
                 '"daemon-reload" | "enable --now piped.socket" | "enable --now piped-http.socket") ;;\n'
                 '*) echo "no stand-in for systemctl $*" >&2; exit 1 ;;\nesac\n',
    # a camera: raw frames of the size and format that are asked for
    "ffmpeg": 'exec /usr/bin/python3 %s "$@"\n' % os.path.join(ROOT, "tests", "system", "camera_stand_in.py"),
    "python3": 'exec /usr/bin/python3 "$@"\n',
    # the network, where a file is published; the rest of the fetch is real
    "curl": 'case "$*" in\n%s*) exec /usr/bin/curl "$@" ;;\nesac\n' % "".join(
        "*https://*/%s) exec cat '%s' ;;\n" % (url, os.path.join(REAL, path)) for url, path in PUBLISHED.values()),
}
NOTE = re.compile(r"<!-- (not run|file|excerpt|exit|status|needs):? ?(.*?) ?-->$")


class Block:
    def __init__(self, page, line, kind, body, notes):
        self.where = "%s:%d" % (page, line)
        self.kind, self.body, self.notes = kind, body, notes


def lines_of(page):
    """The lines of a page; of a manual those of its EXAMPLES, where scdoc's comments hold the notes."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        lines = f.read().split("\n")
    if page.endswith(".scd"):
        first = lines.index("# EXAMPLES") + 1
        last = next(i for i in range(first, len(lines)) if lines[i].startswith("# "))
        lines = [""] * first + [re.sub("^; ", "", line).replace("\\\\", "\\") for line in lines[first:last]]
    return lines


def blocks(page):
    """Yields the blocks of a page, and as strings the files that what follows needs."""
    lines = lines_of(page)
    plainly = "sh" if page.endswith(".scd") else ""
    notes, at = {}, 0
    while at < len(lines):
        line, start = lines[at], at
        at += 1
        note = NOTE.match(line.strip())
        if line.lstrip().startswith("```"):
            while lines[at].strip() != "```":
                at += 1
            body = "".join(row + "\n" for row in lines[start + 1:at])
            yield Block(page, start + 1, line.strip("` ") or plainly, textwrap.dedent(body) if line[0] == " " else body, notes)
            at += 1
            notes = {}
        elif note and note.group(1) == "needs":
            yield note.group(2)
        elif note:
            notes[note.group(1)] = note.group(2)
        elif line.strip():
            check(not notes, "%s:%d: a note that no block follows" % (page, at))


def plain(text):
    """Without what differs from machine to machine: numbers, what is unknown (-), the width of columns and lines."""
    text = re.sub(r"(?<!\S)-(?!\S)|[-+]?\d[\d.,:]*", "#", text)
    return re.sub(r"\s+", " ", re.sub(r"#(\s*#)+", "#", text)).strip()


def missing(shown, printed):
    """Return: the first shown line that was not printed after the one before it; None: all are there. "..." stands for
    anything."""
    rest = plain(printed)
    for line in shown.splitlines():
        pieces = [re.escape(plain(piece)) for piece in line.split("...")]
        found = re.search(".*?".join(pieces), rest) if any(pieces) else None
        if any(pieces) and not found:
            return line
        rest = rest[found.end():] if found else rest
    return None


def status_on(board):
    """What pipectl says on a machine whose files are those of a board; its threads run where they can."""
    d = Daemon(config={"pin": False})
    root = os.path.join(d.temp, "tree")
    BOARDS[board](root)
    d.args = ["--sysfs-root", root]
    with d:
        return d.pipectl("status", as_json=False)


class Place:
    """A reader's machine: a daemon, piped-http where it is built, a folder, and the files that the reader has."""

    def __init__(self, config=None, args=()):
        self.daemon = Daemon(config=config, args=args)
        self.top = os.path.join(self.daemon.temp, "reader")
        self.home, self.bin = os.path.join(self.top, "home"), os.path.join(self.top, "bin")
        self.http, self.groups, self.count = None, [], 0
        self.not_run, self.lacked = [], set()  # blocks that nobody runs; what the reader has and the test has not
        self.moved = {}

    def __enter__(self):
        d = self.daemon
        d.start()
        for folder in (self.home, self.bin, os.path.join(d.state_dir, "models")):
            os.makedirs(folder)
        for path in PROGRAMS:
            os.symlink(os.path.join(BUILD, path), os.path.join(self.bin, os.path.basename(path)))
        for name, text in STAND_INS.items():
            path = os.path.join(self.bin, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/bash\n" + text)
            os.chmod(path, 0o755)
        for name, source in READERS_FILES.items():
            source, path = os.path.join(REAL, source), os.path.join(self.home, name)
            if os.path.isdir(source):
                shutil.copytree(source, path)
            elif os.path.exists(source):
                shutil.copy(source, path)
                os.chmod(path, 0o644)
        if self.has("squeezenet1_1.onnx"):  # trained again: the same weights, and a note of the author
            shutil.copy(os.path.join(self.home, "squeezenet1_1.onnx"), os.path.join(self.home, "squeezenet-v2.onnx"))
            with open(os.path.join(self.home, "squeezenet-v2.onnx"), "ab") as f:
                f.write(NOTE_OF_THE_AUTHOR)
        port = 8000
        if os.path.exists(PIPED_HTTP):
            self.http = Http(d).start()
            port = self.http.port
        self.moved = {"/etc/piped/piped.json": d.config_path, "/var/lib/piped": d.state_dir,
                      "/run/piped": d.runtime_dir,
                      "127.0.0.1:8000": "127.0.0.1:%d" % port}
        self.moved.update((path, os.path.join(ROOT, tree)) for path, tree in SHARE.items())
        return self

    def __exit__(self, kind, value, trace):
        for group in self.groups:
            try:
                os.killpg(group, signal.SIGTERM)
            except ProcessLookupError:
                pass
        if self.http:
            self.http.__exit__(kind, value, trace)
        self.daemon.__exit__(kind, value, trace)

    def has(self, name):
        """Whether the reader has a file, what is built (python, http), or what is published."""
        if name == "cc":
            return shutil.which("cc") is not None and shutil.which("pkg-config") is not None
        if name == "python":
            return why_not() is None and importlib.util.find_spec("PIL") is not None
        if name in PUBLISHED:
            return os.path.exists(os.path.join(REAL, PUBLISHED[name][1]))
        return self.http is not None if name == "http" else os.path.exists(os.path.join(self.home, name))

    def here(self, text):
        """The text with the paths of the test."""
        return re.sub(r"(?<![\w.-])(%s)(?![\w-])" % "|".join(map(re.escape, sorted(self.moved, key=len, reverse=True))),
                      lambda m: self.moved[m.group(1)], text)

    def there(self, text):
        """The text with the paths of the page."""
        for path, mine in sorted(self.moved.items(), key=lambda item: -len(item[1])):
            text = text.replace(mine, path)
        return text.replace(self.home + "/", "")

    def environment(self):
        python = os.path.join(BUILD, "ipc", "python")
        return dict(os.environ, PATH=self.bin + ":" + os.environ["PATH"], PIPED_RUNTIME_DIR=self.daemon.runtime_dir,
                    PYTHONPATH=python, PKG_CONFIG_PATH=os.path.join(BUILD, "meson-uninstalled"),
                    LD_LIBRARY_PATH=os.path.join(BUILD, "ipc"), HOME=self.home, LC_ALL="C.UTF-8", COLUMNS="80")

    def run(self, block):
        """Return: what the commands printed, on both outputs."""
        log = os.path.join(self.top, "printed")
        with open(log, "wb") as out:
            p = subprocess.Popen(["/bin/bash", "-e", "-o", "pipefail", "-c", self.here(block.body)], cwd=self.home,
                                 env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True)
            self.groups.append(p.pid)
            try:
                code = p.wait(2 * LIMIT_S)
            except subprocess.TimeoutExpired:
                code = "no end in time"
        with open(log, encoding="utf-8", errors="replace") as f:
            printed = self.there(f.read())
        if os.environ.get("PIPED_LEARN_SHOW"):
            print("==== %s\n%s%s" % (block.where, block.body, printed), flush=True)
        check(str(code) in block.notes.get("exit", "0").split(), "%s: exit code %s\n%s%s\n%s" % (
            block.where, code, block.body, printed, self.daemon.log()))
        self.count += 1
        return printed

    def save(self, block, path):
        path = os.path.join(self.home, self.here(path))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.here(block.body))

    @staticmethod
    def compare(block, printed):
        line = missing(block.body, printed)
        check(line is None, "%s shows '%s', and that is not in\n%s" % (block.where, line, printed))
        return 1

    def follow(self, page):
        printed, lacks, compared = None, [], 0
        for block in blocks(page):
            if isinstance(block, str):
                lacks = [n for n in block.split() if not self.has(n)]
                self.lacked.update(lacks)
            elif "not run" in block.notes:
                check(block.notes["not run"], "%s: it does not say why it is not run" % block.where)
                self.not_run.append("%s: %s" % (block.where, block.notes["not run"]))
                printed = None
            elif lacks or "excerpt" in block.notes:
                printed = None
            elif "file" in block.notes:
                self.save(block, block.notes["file"])
            elif block.kind == "sh":
                printed = self.run(block)
            elif "status" in block.notes:
                printed = status_on(block.notes["status"])
                compared += self.compare(block, printed)
                self.count += 1
            elif block.kind == "text":
                compared += printed is not None and self.compare(block, printed)
            else:
                raise Failure("%s: nobody runs, saves or compares this block" % block.where)
        print("%s: %d blocks run, %d compared" % (page, self.count, compared))
        for why in self.not_run:
            print("  not run:", why)
        sys.stdout.flush()

