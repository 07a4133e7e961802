#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl models fetch: files of known models from a server of the test's own. What differs from the catalogue is refused,
and nothing is left.

usage: test_models_fetch.py [CASE]...
"""
import functools
import hashlib
import http.server
import json
import os
import pty
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading

import tiny_onnx
from daemon import DIGITS, LIMIT_S, PIPECTL, ROOT, Daemon, check, equal, main
from surroundings import needs, tried

LABELS = b"".join(b"kind %d\n" % i for i in range(10))


def with_curl(case):
    @functools.wraps(case)
    def run():
        return tried("curl", "--version") or case()
    return run


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def body(self, data, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        s = self.server.state
        s.asked.append(self.path)
        if self.path in s.files:
            self.body(s.files[self.path])
        elif self.path == "/truncated":  # the connection ends before the length that was promised
            self.body(s.model[:-100], len(s.model))
        elif self.path in s.redirects:
            self.send_response(302)
            self.send_header("Location", s.redirects[self.path])
            self.end_headers()
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                s.left.set()
        elif self.path == "/stalls":  # a part, and nothing more as long as the client is there
            self.send_response(200)
            self.send_header("Content-Length", str(len(s.model)))
            self.end_headers()
            self.wfile.write(s.model[:1000])
            s.begun.set()
            self.connection.recv(1)
        else:
            self.send_error(404)


class Place:
    """A server with a model, a folder, and a catalogue with a row for each of the server's ways to misbehave."""

    def __enter__(self):
        self.temp = tempfile.mkdtemp(prefix="piped-test-")
        self.folder = os.path.join(self.temp, "models")
        os.mkdir(self.folder)
        path = os.path.join(self.temp, "net.onnx")
        tiny_onnx.write(path, [("conv", 8, 3), ("relu",), ("pool",), ("linear", 10)], size=16)
        with open(path, "rb") as f:
            self.model = f.read()
        other = self.model[:-1] + bytes([self.model[-1] ^ 1])
        self.asked, self.left, self.begun = [], threading.Event(), threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.state = self
        self.base = "http://127.0.0.1:%d" % self.server.server_port
        self.files = {"/net.onnx": self.model, "/wrong": other, "/long": self.model + b"x", "/short": self.model[:-1],
                      "/labels": LABELS, "/wrong-labels": LABELS[::-1]}
        self.redirects = {"/moved": "/net.onnx", "/to-file": "file://" + path, "/to-ftp": "ftp://127.0.0.1/net.onnx",
                          "/round": "/round"}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.rows = [self.row("net", "/net.onnx", sidecar={"preprocess": {"std": 255}}, labels=self.labels("/labels"))]
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.temp)

    def row(self, name, path, **more):
        return {"name": name, "licence": "none", "url": path if "://" in path else self.base + path,
                "bytes": len(self.model), "sha256": hashlib.sha256(self.model).hexdigest(), **more}

    def labels(self, path):
        return {"url": self.base + path, "bytes": len(LABELS), "sha256": hashlib.sha256(LABELS).hexdigest()}

    def catalogue(self):
        path = os.path.join(self.temp, "catalogue.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"models": self.rows}, f)
        return path

    def command(self, *args):
        return [PIPECTL, "models", "fetch", "--catalogue", self.catalogue(), "--folder", self.folder, *args]

    def fetch(self, *args, expect=0, **more):
        r = subprocess.run(self.command(*args), capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)
        equal(r.returncode, expect, r.stdout + r.stderr)
        return r.stderr if expect else r.stdout

    def there(self):
        return sorted(os.listdir(self.folder))

    def refused(self, path, *words, **more):
        """The row of this path is refused for that reason, and nothing is left."""
        self.rows = [self.row("net", path, sidecar={"labels": ["a"]}, **more)]
        said = self.fetch("net", expect=1)
        for word in words:
            check(word in said, path, "should say", word, "and said", said)
        equal(self.there(), [], path)


@with_curl
def the_right_file_comes_with_sidecar_and_labels_and_loads():
    with Place() as p, Daemon(models={"digits": DIGITS}) as d:
        said = p.fetch("net")
        equal(p.there(), ["net.labels.txt", "net.onnx", "net.sidecar.json"])
        check("models load net %s/net.onnx --save" % p.folder in said, said)
        with open(os.path.join(p.folder, "net.onnx"), "rb") as f:
            check(f.read() == p.model, "other bytes")
        with open(os.path.join(p.folder, "net.sidecar.json"), encoding="utf-8") as f:
            equal(json.load(f), {"preprocess": {"std": 255}, "labels_file": "net.labels.txt"})
        d.pipectl("models", "load", "net", os.path.join(p.folder, "net.onnx"))
        equal([m["labels"] for m in d.pipectl("models", "list") if m["name"] == "net"], [LABELS.decode().split("\n")[:10]])


@with_curl
def json_names_the_files():
    with Place() as p:
        r = json.loads(p.fetch("--json", "net"))
        equal(r, {"name": "net", "bytes": len(p.model),
                  "files": [os.path.join(p.folder, "net" + e) for e in (".labels.txt", ".sidecar.json", ".onnx")]})


@with_curl
def what_differs_is_refused():
    with Place() as p:
        p.refused("/wrong", "has the wrong SHA-256", hashlib.sha256(p.files["/wrong"]).hexdigest())
        p.refused("/short", "has the wrong size (%d bytes; the catalogue says %d)" % (len(p.model) - 1, len(p.model)))
        p.refused("/long", "is larger than the catalogue says (%d bytes)" % len(p.model))
        p.refused("/truncated", "transfer closed")
        p.refused("/endless", "is larger than the catalogue says (%d bytes)" % len(p.model))
        check(p.left.wait(LIMIT_S), "curl still reads what nobody wants")
        p.refused("/missing", "404")
        p.refused("http://127.0.0.1:1/net.onnx", "127.0.0.1")


@with_curl
def labels_that_differ_leave_no_model():
    with Place() as p:
        p.rows[0]["labels"]["url"] = p.base + "/wrong-labels"
        check("net.labels.txt" in p.fetch("net", expect=1), "another file is blamed")
        equal(p.there(), [])


@with_curl
def redirects_keep_to_the_web():
    with Place() as p:
        p.rows = [p.row("net", "/moved")]
        p.fetch("net")
        equal(p.there(), ["net.onnx"])
        os.unlink(os.path.join(p.folder, "net.onnx"))
        p.refused("/to-file", "file")
        p.refused("/to-ftp", "ftp")
        p.refused("/round", "redirects")


@with_curl
def https_never_becomes_http():
    lacks = tried("openssl", "version")
    if lacks:
        return lacks
    with Place() as p:
        key, certificate = os.path.join(p.temp, "key.pem"), os.path.join(p.temp, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                        "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        safe = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        safe.socket = context.wrap_socket(safe.socket, server_side=True)
        safe.daemon_threads = True
        safe.state = p
        threading.Thread(target=safe.serve_forever, daemon=True).start()
        base = "https://127.0.0.1:%d" % safe.server_port
        trust = dict(os.environ, CURL_CA_BUNDLE=certificate)
        p.redirects["/down"] = p.base + "/net.onnx"
        p.rows = [p.row("net", base + "/net.onnx"), p.row("down", base + "/down")]
        p.fetch("net", expect=1)  # a certificate that nobody trusts
        said = p.fetch("down", expect=1, env=trust)
        check("http" in said, said)
        equal(p.there(), [])
        p.fetch("net", env=trust)
        safe.shutdown()
        safe.server_close()
    return None


@with_curl
def what_is_there_stays_unless_forced():
    with Place() as p:
        for name in ("net.onnx", "net.sidecar.json", "net.labels.txt"):
            path = os.path.join(p.folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("mine")
            said = p.fetch("net", expect=1)
            check(name + ": is there already; --force replaces it" in said, said)
            equal(p.there(), [name])
            with open(path, encoding="utf-8") as f:
                equal(f.read(), "mine")
            p.fetch("net", "--force")
            equal(len(p.there()), 3)
            before = [os.stat(os.path.join(p.folder, n)).st_ino for n in p.there()]
            p.fetch("net")  # asked for again: it is there
            equal([os.stat(os.path.join(p.folder, n)).st_ino for n in p.there()], before)
            check(os.path.getsize(path) != 4, name, "was not replaced")
            for other in p.there():
                os.unlink(os.path.join(p.folder, other))
        os.symlink("/nowhere/else", os.path.join(p.folder, "net.onnx"))
        p.fetch("net", expect=1)
        equal(p.there(), ["net.onnx"])


@with_curl
def what_is_there_and_right_gets_the_rest():
    """The model alone, with its labels, or with a sidecar that was edited since."""
    with Place() as p:
        mine = {"net.onnx": p.model, "net.labels.txt": LABELS, "net.sidecar.json": b"{}"}
        for names in (("net.onnx",), ("net.onnx", "net.labels.txt"), ("net.onnx", "net.sidecar.json"), ("net.labels.txt",)):
            for name in names:
                with open(os.path.join(p.folder, name), "wb") as f:
                    f.write(mine[name])
            before = [os.stat(os.path.join(p.folder, n)).st_ino for n in names]
            p.fetch("net")
            equal([os.stat(os.path.join(p.folder, n)).st_ino for n in names], before, str(names))
            equal(p.there(), ["net.labels.txt", "net.onnx", "net.sidecar.json"])
            with open(os.path.join(p.folder, "net.sidecar.json"), encoding="utf-8") as f:
                equal("labels_file" in json.load(f), "net.sidecar.json" not in names)
            for name in p.there():
                os.unlink(os.path.join(p.folder, name))


@with_curl
def an_interrupted_fetch_leaves_nothing():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with Place() as p:
            p.rows = [p.row("net", "/stalls", sidecar={"labels": ["a"]})]
            with subprocess.Popen(p.command("net"), stderr=subprocess.PIPE, text=True) as process:
                check(p.begun.wait(LIMIT_S), "it never asked")
                process.send_signal(number)
                said = process.communicate(timeout=LIMIT_S)[1]
                equal(process.returncode, 1, said)
            check("interrupted; nothing was kept" in said, said)
            equal(p.there(), [])


@needs("pseudo-terminals")
@with_curl
def a_terminal_sees_how_far_it_is():
    with Place() as p:
        ours, theirs = pty.openpty()
        subprocess.run(p.command("net"), stderr=theirs, stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
        os.close(theirs)
        said = os.read(ours, 4096).decode()
        os.close(ours)
        check("\r\x1b[Knet.onnx: " in said and " MB" in said and said.endswith("\r\x1b[K"), repr(said))


def rows_are_listed():
    with Place() as p:
        rows = json.loads(p.fetch("--json"))
        equal(rows[-1]["name"], "net")
        equal(rows[-1]["from"], p.catalogue())
        check(any(r["name"] == "ultraface" for r in rows), "the catalogue that comes with it is missing")
        check("ultraface" in p.fetch() and "net " in p.fetch(), p.fetch())
        said = p.fetch("ultrafase", expect=1)
        check("did you mean ultraface?" in said, said)


@with_curl
def own_rows_replace_those_of_the_same_name():
    with Place() as p:
        folder = os.path.join(p.temp, "rows.d")
        os.mkdir(folder)
        for name, row in (("10-a.json", p.row("ultraface", "/missing")), ("20-b.json", p.row("ultraface", "/net.onnx"))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                json.dump({"models": [row]}, f)
        for name, text in ((".hidden.json", "{"), ("note.txt", "{")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        subprocess.run([PIPECTL, "models", "fetch", "--catalogue", folder, "ultraface"], cwd=p.folder, check=True,
                       capture_output=True, timeout=LIMIT_S)
        equal(p.there(), ["ultraface.onnx"])
        equal(p.asked, ["/net.onnx"])


def rows_that_are_wrong_are_named():
    with Place() as p:
        good = p.row("good", "/net.onnx")
        for change, words in (({"name": "../up"}, "the name must be"), ({"name": ".net"}, "the name must be"),
                              ({"name": "-net"}, "the name must be"), ({"name": ""}, "the name must be"),
                              ({"url": "ftp://127.0.0.1/x"}, "url must begin"), ({"url": "--output=/etc/x"}, "url must begin"),
                              ({"url": "/etc/passwd"}, "url must begin"), ({"sha256": "AB" * 32}, "64 hex digits"),
                              ({"sha256": "ab" * 31}, "64 hex digits"), ({"sha256": "ab" * 33}, "64 hex digits"),
                              ({"bytes": 0}, "bytes must be"), ({"bytes": -1}, "bytes must be"),
                              ({"bytes": 5 << 30}, "bytes must be"), ({"bytes": "9"}, "bytes must be a whole number"),
                              ({"colour": 1}, "unknown key colour"), ({"size": 1}, "unknown key size"),
                              ({"sidecar": []}, "sidecar must be"), ({"labels": p.labels("/labels")}, "need a sidecar"),
                              ({"labels": {"url": "x"}, "sidecar": {}}, "bytes"),
                              ({"labels": dict(p.labels("/labels"), bytes=5 << 20), "sidecar": {}}, "bytes must be"),
                              ({"labels": p.labels("/labels"), "sidecar": {"labels": []}}, "given twice")):
            p.rows = [good, dict(good, **change)]
            said = p.fetch("good", expect=1)
            check("catalogue.json: row 2 of models: " in said and words in said, change, said)
        for key in ("name", "licence", "url", "bytes", "sha256"):
            p.rows = [{k: v for k, v in good.items() if k != key}]
            check(key in p.fetch("good", expect=1), "without", key)
        for text in ("{", "[]", '{"models": {}}', '{"models": [], "more": 1}', '{"models": [], "models": []}'):
            with open(os.path.join(p.temp, "bad.json"), "w", encoding="utf-8") as f:
                f.write(text)
            r = subprocess.run([PIPECTL, "models", "fetch", "--catalogue", os.path.join(p.temp, "bad.json")],
                               capture_output=True, text=True, timeout=LIMIT_S, check=False)
            check(r.returncode == 1 and "bad.json" in r.stderr, text, r.stderr)
        equal(p.there(), [])
        equal(p.asked, [])


def without_curl_it_says_so():
    with Place() as p:
        said = p.fetch("net", expect=1, env={"PATH": p.temp})
        check("install the package curl" in said, said)
        equal(p.there(), [])


def the_catalogue_that_comes_with_it_is_sound():
    """Sidecars that a daemon takes; no address that may change its contents; a licence and words for each."""
    with open(os.path.join(ROOT, "etc", "models.json"), encoding="utf-8") as f:
        rows = json.load(f)["models"]
    for row in rows:
        check(row["url"].startswith("https://") and row["licence"] and row["about"], row)
        check("/main/" not in row["url"] and "/master/" not in row["url"], row["url"])
        check("sidecar" in row, row["name"])


main([the_right_file_comes_with_sidecar_and_labels_and_loads, json_names_the_files, what_differs_is_refused,
      labels_that_differ_leave_no_model, redirects_keep_to_the_web, https_never_becomes_http,
      what_is_there_stays_unless_forced, what_is_there_and_right_gets_the_rest, an_interrupted_fetch_leaves_nothing,
      a_terminal_sees_how_far_it_is, rows_are_listed, own_rows_replace_those_of_the_same_name, rows_that_are_wrong_are_named,
      without_curl_it_says_so, the_catalogue_that_comes_with_it_is_sound])
