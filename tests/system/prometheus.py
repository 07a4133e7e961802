# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus on loopback that scrapes a daemon through a small HTTP server, for one test.

    with Prometheus(lambda: d.call("Metrics")["text"], [rules]) as p:
        p.until("up == 1")
        p.query("piped_uptime_seconds")
"""
import http.server
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

from daemon import LIMIT_S, Failure, check
from wait import until

DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def installed():
    return shutil.which("prometheus") is not None


class Exporter(http.server.ThreadingHTTPServer):
    """Serves what text() returns under /metrics."""

    def __init__(self, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                with self.server.scraped:
                    self.server.scraped.notify_all()

            def log_message(self, *_args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.scraped = threading.Condition()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def end(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    def __init__(self, text, rules=()):
        self.temp = tempfile.mkdtemp(prefix="piped-test-")
        self.exporter = Exporter(text)
        self.port = free_port()
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                  "rule_files": [os.path.abspath(r) for r in rules],
                  "scrape_configs": [{"job_name": "piped", "static_configs": [
                      {"targets": ["127.0.0.1:%d" % self.exporter.server_address[1]]}]}]}
        self.config = os.path.join(self.temp, "prometheus.yml")
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump(config, f)  # JSON is YAML, too
        self.log_path = os.path.join(self.temp, "log")
        self.process = None

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def __enter__(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file", self.config, "--storage.tsdb.path", os.path.join(self.temp, "data"),
                 "--web.listen-address", "127.0.0.1:%d" % self.port, "--log.level", "warn"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.exporter.end()
        shutil.rmtree(self.temp, ignore_errors=True)

    def get(self, path, **parameters):
        """Return: data of an answer of the API; None while it does not answer. Fails with what it refuses."""
        url = "http://127.0.0.1:%d/api/v1/%s?%s" % (self.port, path, urllib.parse.urlencode(parameters))
        try:
            with DIRECTLY.open(url, timeout=LIMIT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as e:
            if e.code == 503:  # it starts
                return None
            raise Failure("%s: %s" % (parameters, e.read().decode())) from e
        except (urllib.error.URLError, ConnectionError):
            check(self.process.poll() is None, "prometheus ended\n", self.log())
            return None

    def query(self, expression):
        """Return: [({label: value}, number)], now."""
        data = self.get("query", query=expression)
        if data is None:
            return []
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def until(self, expression, limit_s=LIMIT_S):
        """Asks after each scrape until there is an answer; returns it."""
        def scraped(left_s):
            with self.exporter.scraped:
                self.exporter.scraped.wait(left_s)
        return until(lambda: self.query(expression), expression, self.log, limit_s=limit_s, pause=scraped)
