#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who may reach piped-http: addresses, tokens, certificates, pages of other sites, sockets of the service manager."""
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import tempfile

from daemon import DIGITS, ROOT, Daemon, check, equal
from http_server import Http, main, run_http

TOKEN = "correct-horse-battery"


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True, timeout=60)


class Certificates:
    """An issuer, a server's certificate for localhost, a client's, and one of a foreign issuer."""

    def __init__(self, folder):
        self.folder = folder
        for issuer in ("ca", "other-ca"):
            openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=" + issuer, "-keyout", issuer + ".key", "-out", issuer + ".pem")
        self.issue("server", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth")
        self.issue("client", "ca", "extendedKeyUsage=clientAuth")
        self.issue("stranger", "other-ca", "extendedKeyUsage=clientAuth")
        os.chmod(self.path("server.key"), 0o600)

    def issue(self, name, issuer, extensions):
        with open(self.path(name + ".ext"), "w", encoding="utf-8") as f:
            f.write(extensions + "\n")
        openssl(self.folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
                "-keyout", name + ".key", "-out", name + ".csr")
        openssl(self.folder, "x509", "-req", "-in", name + ".csr", "-CA", issuer + ".pem", "-CAkey", issuer + ".key",
                "-CAcreateserial", "-days", "2", "-extfile", name + ".ext", "-out", name + ".pem")

    def path(self, name):
        return os.path.join(self.folder, name)

    def server(self):
        return ["--tls-cert", self.path("server.pem"), "--tls-key", self.path("server.key")]

    def context(self, client=None):
        c = ssl.create_default_context(cafile=self.path("ca.pem"))
        if client:
            c.load_cert_chain(self.path(client + ".pem"), self.path(client + ".key"))
        return c


def token_file(folder, text=TOKEN + "\n", mode=0o600):
    path = os.path.join(folder, "token")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def said(words, code, *args):
    got, text = run_http(*args)
    equal(got, code, text)
    check(words in text, "'%s' is not in: %s" % (words, text))


def options_are_guessed_and_judged():
    said("unknown option --lisen; did you mean --listen?", 2, "--lisen", "x")
    said("unknown option --zzzz; see --help\n", 2, "--zzzz")
    said("--listen needs a value", 2, "--listen")
    said("unexpected argument 'x'", 2, "x")
    said("--body-mb needs a number from 0.001 to 1024, not '0'", 2, "--body-mb", "0")
    said("--streams needs a whole number from 1 to 256, not '1.5'", 2, "--streams", "1.5")
    said("--policy needs one of block, reject, not 'latest'", 2, "--policy", "latest")
    said("belong together", 2, "--tls-cert", "x")
    said("--tls-client-ca needs", 2, "--tls-client-ca", "x")
    said("--memory-mb must be at least --body-mb", 2, "--memory-mb", "1")
    said("--listen 'localhost': IP:PORT", 2, "--listen", "localhost")
    said("--listen '1.2.3.4:99999'", 2, "--listen", "1.2.3.4:99999")
    said("piped-http 0.", 0, "--version")
    said("--token-file /nonexistent: No such file", 6, "--token-file", "/nonexistent")
    said("--token-file /dev/zero: not a regular file", 6, "--token-file", "/dev/zero")
    with tempfile.TemporaryDirectory(prefix="piped-test-") as temp:
        fifo = os.path.join(temp, "fifo")
        os.mkfifo(fifo)
        said("--token-file %s: not a regular file" % fifo, 6, "--token-file", fifo)


def the_manual_has_all_options():
    _, text = run_http("--help")
    options = set(re.findall(r"^  (--[a-z-]+)", text, re.M))
    check(len(options) > 20, text)
    with open(os.path.join(ROOT, "apps", "http", "piped-http.8.scd"), encoding="utf-8") as f:
        manual = f.read()
    equal(set(re.findall(r"^\*(--[a-z-]+)\*", manual, re.M)) | set(re.findall(r", \*(--[a-z-]+)\*", manual)), options)
    for name, default in re.findall(r"^  --([a-z-]+) .*default ([0-9]+)", text, re.M):
        body = manual.split("*--%s*" % name, 1)[1].split("\n\n", 1)[0]
        check(default in body, "--%s: the manual does not say the default %s" % (name, default))


def open_addresses_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        token, certificates = token_file(folder), Certificates(folder)
        for address in ("0.0.0.0:0", "[::]:0", "0.0.0.0:8000"):
            said("other machines can reach this address, but it lacks TLS", 6, "--listen", address)
        said("it lacks TLS", 6, "--listen", "0.0.0.0:0", "--token-file", token)
        said("it lacks a way to know its clients", 6, "--listen", "0.0.0.0:0", *certificates.server())
        said("everybody may read it; chmod o=", 6, "--token-file", token_file(folder, mode=0o644))
        said("16 to 4096 characters, this one 5", 6, "--token-file", token_file(folder, "short"))
        said("--tls-cert", 6, "--tls-cert", token, "--tls-key", token_file(folder), "--listen", "127.0.0.1:0")
        with Daemon() as d:
            for more in (["--token-file", token_file(folder)], ["--tls-client-ca", certificates.path("ca.pem")]):
                with Http(d, *certificates.server(), *more, listen=("0.0.0.0:0",)) as h:
                    check(h.url.startswith("https://0.0.0.0:"), h.url)


def tokens_are_asked_for():
    with Daemon(models={"digits": DIGITS}) as d:
        with Http(d, "--token-file", token_file(d.temp), listen=("127.0.0.1:0", "unix:" + d.temp + "/h.sock")) as h:
            for headers in ({}, {"Authorization": "Bearer " + TOKEN + "x"}, {"Authorization": "Bearer " + TOKEN[:-1] + "X"},
                            {"Authorization": TOKEN}, {"Authorization": "Basic " + TOKEN}):
                for path in ("/v2", "/status.json", "/metrics", "/v2/health/live", "/nothing"):
                    answer = h.get(path, headers=headers)
                    h.refused(401, "needs its token", answer)
                    equal(answer[1]["WWW-Authenticate"], "Bearer")
                h.refused(401, "needs its token", h.infer("digits", "{}", headers))
            c = h.connect(1)
            equal(h.get("/v2", connection=c)[0], 401)
            c.close()
            equal(h.get("/")[0], 200)  # the page itself says nothing
            equal(h.get("/v2", headers={"Authorization": "Bearer " + TOKEN})[0], 200)
            h.token = TOKEN
            equal(h.get("/status.json")[2]["status"]["state"], "serving")


def certificates_are_asked_for():
    with Daemon(models={"digits": DIGITS}) as d:
        c = Certificates(d.temp)
        with Http(d, *c.server(), "--tls-client-ca", c.path("ca.pem"), tls=c.context("client")) as h:
            equal(h.get("/v2/models")[2], {"models": ["digits"]})
            h.tls = c.context()
            h.refused(403, "needs a certificate of the client", h.get("/v2/models"))
            h.refused(403, "needs a certificate of the client", h.get("/"))
            h.tls = c.context("stranger")
            try:
                h.refused(403, "needs a certificate", h.get("/v2/models"))
            except (ssl.SSLError, ConnectionError):
                pass  # GnuTLS may end the handshake
            h.tls = ssl.create_default_context(cafile=c.path("other-ca.pem"))
            try:
                h.get("/v2")
                raise AssertionError("the server's certificate was not checked")
            except ssl.SSLError:
                pass
            h.tls = c.context("client")
            h.tls.maximum_version = ssl.TLSVersion.TLSv1_2
            equal(h.get("/v2")[0], 200)
            with h.raw() as s:  # plain text before TLS
                s.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                check(b"200" not in s.recv(65536))
        with Http(d, *c.server(), "--token-file", token_file(d.temp), tls=c.context(), token=TOKEN) as h:
            equal(h.get("/v2")[0], 200)
            h.token = None
            equal(h.get("/v2")[0], 401)


def pages_of_other_sites_are_refused():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, listen=("127.0.0.1:0", "unix:" + d.temp + "/h.sock")) as h:
        for host in ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "[::1].evil"):
            if not host.startswith("["):
                h.refused(403, "answers as localhost", h.get("/v2", headers={"Host": host}))
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:80", "10.1.2.3"):
            equal(h.get("/v2", headers={"Host": host})[0], 200, host)
        own = "127.0.0.1:%d" % h.port
        equal(h.get("/v2", headers={"Host": own, "Origin": "http://" + own})[0], 200)
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            h.refused(403, "page of another site", h.get("/v2", headers={"Host": own, "Origin": origin}))
            h.refused(403, "page of another site", h.infer("digits", "{}", {"Host": own, "Origin": origin}))
        policy = h.get("/")[1]["Content-Security-Policy"]
        check("default-src 'none'" in policy and "unsafe" not in policy, policy)


def whole_addresses_are_taken():
    """RFC 9112, 3.2.2: GET http://HOST/PATH; HOST counts, not the header."""
    def ask(h, target, host, index=0):
        with socket.socket(socket.AF_UNIX if index else socket.AF_INET) as s:
            s.settimeout(60)
            s.connect(h.addresses[index][5:] if index else ("127.0.0.1", h.port))
            s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host)).encode())
            return int(s.makefile("rb").readline().split()[1])

    with Daemon(models={"digits": DIGITS}) as d, Http(d, listen=("127.0.0.1:0", "unix:" + d.temp + "/h.sock")) as h:
        own = "127.0.0.1:%d" % h.port
        for index in (0, 1):
            for target in ("http://%s/v2" % own, "HTTP://localhost/v2", "https://localhost:1/v2", "http://localhost",
                           "http://[::1]:80/v2", "http://%s/v2/models/digits?x=http://evil/" % own, "http://localhost?x=1",
                           "http://%s/v%%32" % own):
                equal(ask(h, target, own, index), 200, target)
            for target in ("http:///v2", "http://:80/v2", "http://user@%s/v2" % own, "http://user%40localhost/v2",
                           "http://localhost:x/v2", "http://localhost:80:80/v2", "http://[::1/v2", "http://" + "a" * 300 + "/v2",
                           "http://local\\host/v2"):
                equal(ask(h, target, own, index), 400, target)
            for target in ("ftp://localhost/v2", "localhost/v2", "*", "http://localhost/nothing"):
                equal(ask(h, target, own, index), 404, target)
        equal(ask(h, "http://localhost/v2", "evil.example"), 200, "the header does not count")
        equal(ask(h, "http://evil.example/v2", "localhost"), 403)
        equal(ask(h, "http://evil.example/v2", "localhost", 1), 200, "on a Unix socket any name will do")
        for host in ("127.0.0.1:evil", "localhost:80:80", "[::1].evil", "[::1]x", "localhost/", "::1", ""):
            equal(ask(h, "/v2", host), 403, host)
        equal(h.get("http://%s/v2/models" % own, headers={"Host": own, "Origin": "http://" + own})[0], 200)
        h.refused(403, "page of another site",
                  h.get("http://%s/v2" % own, headers={"Host": own, "Origin": "http://evil.example"}))


def unix_sockets_have_modes_and_are_replaced():
    with Daemon() as d:
        path = os.path.join(d.temp, "h.sock")
        with Http(d, listen=("unix:" + path,)) as h:
            equal(stat.S_IMODE(os.stat(path).st_mode), 0o660)
            said("another process serves there", 1, "--listen", "unix:" + path)
            h.process.kill()
            h.expect_exit = -9
        check(stat.S_ISSOCK(os.stat(path).st_mode), "a killed server leaves its file")
        with Http(d, listen=("unix:" + path,)):
            pass
        check(not os.path.exists(path), "the file is still there")


def sockets_are_passed_in():
    """As systemd does it: descriptor 3, LISTEN_PID and LISTEN_FDS."""
    with Daemon() as d:
        for address, words in ((("127.0.0.1", 0), None), (("0.0.0.0", 0), "it lacks TLS")):
            s = socket.create_server(address)
            wrapper = ["bash", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&%d' % s.fileno(), "bash"]
            h = Http(d, listen=(), pass_fds=(s.fileno(),), wrapper=wrapper)
            if words:
                r = subprocess.run(h.command, pass_fds=h.pass_fds, capture_output=True, text=True, timeout=60, check=False)
                equal(r.returncode, 6, r.stderr)
                check(words in r.stderr, r.stderr)
            else:
                with h:
                    equal(h.port, s.getsockname()[1])
                    equal(h.get("/v2")[0], 200)
            s.close()


if not shutil.which("openssl"):
    print("SKIP: openssl is not installed")
    raise SystemExit(77)
main((options_are_guessed_and_judged, the_manual_has_all_options, open_addresses_are_refused, tokens_are_asked_for,
      certificates_are_asked_for, pages_of_other_sites_are_refused, whole_addresses_are_taken,
      unix_sockets_have_modes_and_are_replaced,
      sockets_are_passed_in))
