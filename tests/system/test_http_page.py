#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The status page of piped-http in a headless Chromium. PIPED_TEST_SCREENSHOTS=FOLDER keeps pictures of it."""
import os
import struct
import sys

from browser import Browser, chromium
from daemon import DIGITS, Daemon, check, equal
from http_server import Http, main

RAW = struct.pack("<256f", *([0.25] * 256))
SHOTS = os.environ.get("PIPED_TEST_SCREENSHOTS")
TOKEN = "correct-horse-battery"


def frames(h, count):
    c = h.connect()
    for _ in range(count):
        equal(h.infer("digits", RAW, {"Inference-Header-Content-Length": "0"}, connection=c)[0], 200)
    c.close()


def shoot(b, name, width, height, dark=False):
    b.look(width, height, dark)
    b.ask("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    equal(b.ask("document.documentElement.scrollWidth <= window.innerWidth"), True, "%s is wider than its window" % name)
    equal(b.ask("[...document.querySelectorAll('.wide')].filter(w => w.scrollWidth > w.clientWidth).map(w => w.innerText)"),
          [], "tables of %s are cut off" % name)
    if SHOTS:
        b.screenshot(os.path.join(SHOTS, name + ".png"))


def colours(b):
    return b.ask("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")


def it_shows_what_is_served():
    with Daemon(models={"digits": DIGITS, "other": DIGITS}) as d, Http(d) as h, Browser() as b:
        frames(h, 20)
        b.open(h.url + "/")
        b.wait("document.querySelector('[data-model=digits] table')")
        equal(b.ask("document.getElementById('state').textContent"), "serving")
        equal(b.ask("[...document.querySelectorAll('[data-model]')].map(e => e.dataset.model)"), ["digits", "other"])
        text = b.ask("document.querySelector('[data-model=digits]').innerText")
        plan = d.status()["models"][0]["plan"]
        check(plan in text and "frames/s" in text and "p99 ms" in text, text)
        # It refreshes itself: rates from one answer to the next.
        before = b.ask("document.getElementById('uptime').textContent")
        b.wait("document.getElementById('uptime').textContent !== %r" % before)
        frames(h, 500)
        b.wait("document.querySelector('[data-model=digits] polyline')")
        b.wait("parseFloat(document.querySelector('[data-model=digits] .figures b').textContent) > 0")
        # Units come when they are asked for.
        b.ask("document.querySelector('[data-model=digits] details summary').click()")
        b.wait("document.querySelectorAll('[data-model=digits] details tbody tr').length === %d" % d.status()["models"][0]["units"])
        check(b.ask("document.getElementById('decisions').innerText").count("start") >= 2)
        shoot(b, "light", 1100, 900)
        light = colours(b)
        shoot(b, "dark", 1100, 900, dark=True)
        check(colours(b) != light, "light and dark look the same")
        shoot(b, "phone", 375, 800)
        shoot(b, "phone-dark", 375, 800, dark=True)
        equal(b.console, [], "errors in the page's console")


def texts_are_never_markup():
    name = "<img src=x onerror=alert(1)>"
    with Daemon(config={"models": [{"name": "digits", "path": DIGITS}, {"name": "bad", "path": "/" + name + ".onnx"}]}) as d, \
            Http(d) as h, Browser() as b:
        b.open(h.url + "/")
        b.wait("document.body.innerText.includes('could not be loaded')")
        check(name in b.ask("document.body.innerText"))
        equal(b.ask("document.querySelectorAll('img').length"), 0)
        equal(b.console, [])


def a_restart_of_the_daemon_is_survived():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h, Browser() as b:
        b.open(h.url + "/")
        b.wait("document.querySelector('[data-model=digits] table')")
        d.stop()
        b.wait("!document.getElementById('notice').hidden")
        check("piped is not reachable" in b.ask("document.getElementById('notice').textContent"))
        shoot(b, "away", 600, 500)
        d.start()
        b.wait("document.getElementById('notice').hidden && document.getElementById('state').textContent === 'serving'")
        b.ask("document.getElementById('pause').click()")
        equal(b.ask("document.getElementById('pause').getAttribute('aria-pressed')"), "true")


def the_token_is_asked_for():
    with Daemon(models={"digits": DIGITS}) as d:
        path = os.path.join(d.temp, "token")
        with open(path, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(TOKEN)
        with Http(d, "--token-file", path) as h, Browser() as b:
            b.open(h.url + "/")
            b.wait("!document.getElementById('token').hidden")
            shoot(b, "token", 600, 400)
            b.ask("document.getElementById('secret').value = '%s'; document.getElementById('token').requestSubmit()" % TOKEN)
            b.wait("document.querySelector('[data-model=digits] table') && document.getElementById('token').hidden")


if not chromium():
    print("SKIP: chromium is not installed")
    sys.exit(77)
main((it_shows_what_is_served, texts_are_never_markup, a_restart_of_the_daemon_is_survived, the_token_is_asked_for))
