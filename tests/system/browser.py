# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its debugging pipe: JSON messages that end with NUL on descriptors 3 and 4."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile

from daemon import LIMIT_S, check
from wait import until


def chromium():
    """The program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page. What it writes to its console, and what it may not load, is in `console`."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="piped-browser-")
        read, self.out = self.pipe()
        self.into, write = self.pipe()
        command = [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + self.folder, "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        close_fds=False, preexec_fn=lambda: (os.dup2(read, 3), os.dup2(write, 4)))
        os.close(read)
        os.close(write)
        self.buffer, self.number, self.session, self.console = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    @staticmethod
    def pipe():
        """Descriptors above those that the program expects."""
        ends = os.pipe()
        high = [fcntl.fcntl(e, fcntl.F_DUPFD_CLOEXEC, 20) for e in ends]
        for e in ends:
            os.close(e)
        return high

    def message(self):
        def news(left_s):
            if select.select([self.into], [], [], left_s)[0]:
                data = os.read(self.into, 1 << 20)
                check(data, "the browser has ended")
                self.buffer += data
        until(lambda: b"\0" in self.buffer, "an answer of the browser", pause=news)
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        m = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.out, json.dumps(m).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.number:
                check("error" not in m, method, m)
                return m["result"]
            if m.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.console.append(m["params"])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def ask(self, expression):
        """The value of an expression of JavaScript, which may be a promise."""
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        check("exceptionDetails" not in r, expression, r)
        return r["result"].get("value")

    def wait(self, expression):
        """Until it is true, asked at each change of the page."""
        until(lambda: self.ask("!!document.body && !!(%s)" % expression), "in the page:", expression,
              lambda: self.ask("document.body && document.body.innerText"),
              pause=lambda left_s: self.ask("new Promise(r => requestAnimationFrame(r))"))

    def look(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
