#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The documents as a site: it builds, its links and anchors hold, it needs no network, and the search finds words, from files, too.

usage: test_site.py SOURCE_ROOT BUILD_ROOT. PIPED_TEST_SCREENSHOTS=FOLDER keeps pictures of it.
"""
import functools
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT, BUILD = sys.argv[1:3]
sys.path[:0] = [os.path.join(ROOT, "tests", "lint"), os.path.join(ROOT, "docs", "site")]
from cases import check, main, none  # noqa: E402  (the folders are known only now)

SHOTS = os.environ.get("PIPED_TEST_SCREENSHOTS")
MISSING = [p for p in ("mkdocs", "scdoc", "mandoc") if not shutil.which(p)] + \
    ([] if os.path.isdir("/usr/share/mkdocs/themes/material") else ["mkdocs-material"])
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(html.parser.HTMLParser):
    """What a page links to, what it loads, and where links may point."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.anchors |= {a[k] for k in ("id", "name") if a.get(k)}
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        if a.get(LOADED.get(tag)):
            self.loaded.append(a[LOADED[tag]])


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def built():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "docs", "site", "make_site.py"), ROOT, BUILD, SITE],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stdout, done.stderr)


@functools.lru_cache
def parsed():
    names = [os.path.relpath(os.path.join(folder, f), SITE) for folder, _, files in os.walk(SITE) for f in files]
    return {n: Page(read(SITE, n)) for n in names if n.endswith(".html") and n != "404.html"}, set(names)


def links_hold():
    pages, files = parsed()
    check(len(pages) > 50, "the pages were not found")
    broken = []
    for name, page in pages.items():
        for link in page.links + page.loaded:
            if urllib.parse.urlsplit(link).scheme:
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if target not in files:
                broken.append("%s: %s" % (name, link))
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors | {"__codelineno"}:
                broken.append("%s: %s has no such heading" % (name, link))
    none(broken, "broken links in the site")


def nothing_comes_from_the_network():
    pages, files = parsed()
    none(["%s: %s" % (n, link) for n, p in pages.items() for link in p.loaded if urllib.parse.urlsplit(link).netloc],
         "pages that load from elsewhere")
    none([n for n in files if n.endswith(".css") and ("url(http" in read(SITE, n) or "@import" in read(SITE, n))],
         "styles that load from elsewhere")


def the_search_knows_every_page():
    index = re.search(r"Promise\.resolve\((.*)\)\};", read(SITE, "search", "search_index.js"), re.S).group(1)
    found = {e["location"] for e in json.loads(index)["docs"]}
    none(sorted(set(parsed()[0]) - {e.partition("#")[0] for e in found}), "pages that the search does not know")
    none([e for e in ("man/pipectl.1.html#exit-status", "docs/troubleshooting.html#cannot-connect",
                      "api/libpiped.html#piped_rows", "api/python.html#connect") if e not in found],
         "headings that the search does not know")


def every_page_of_the_repository_is_there():
    there = set(parsed()[0])
    names = ["docs/" + n for n in os.listdir(os.path.join(ROOT, "docs")) if n.endswith(".md")]
    none([n for n in names if n[:-3] + ".html" not in there], "pages that the site lacks")


# What a user types, and the page that answers.
WORDS = (("slow", "slow"), ("JPEG", "http"), ("not permitted", "troubleshooting"), ("thermal", "metrics"),
         ("permission denied", "troubleshooting"), ("detector", "outputs"))


def search(b, words):
    b.ask("(e => {e.value = %s; e.dispatchEvent(new Event('keyup', {bubbles: true}))})"
          "(document.querySelector('.md-search__input'))" % json.dumps(words))


def a_browser_shows_and_searches():
    sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
    from browser import Browser, chromium
    if not chromium():
        return "chromium is not installed"
    with Browser() as b:
        for name, width, height, dark in (("desktop", 1280, 900, False), ("dark", 1280, 900, True), ("phone", 390, 844, False)):
            b.look(width, height, dark)
            b.open("file://" + SITE + "/index.html")
            b.wait("document.readyState === 'complete' && location.href.endsWith('/index.html')")
            b.ask("localStorage.clear()")  # the theme remembers light and dark
            b.open("file://" + SITE + "/index.html")
            b.wait("document.readyState === 'complete' && document.querySelector('h1').innerText.startsWith('piped')")
            scheme = b.ask("document.body.dataset.mdColorScheme")
            check(scheme == ("slate" if dark else "default"), "the colours are those of", scheme)
            shoot(b, "site-" + name)
            if width < 600:
                b.ask("document.querySelector('label[for=__search]').click()")
            b.ask("document.querySelector('.md-search__input').focus()")
            search(b, "watchdog")
            b.wait("[...document.querySelectorAll('.md-search-result__link')].some(e => e.href.includes('docs/reliability.html'))")
            shoot(b, "site-search-" + name, width >= 600)  # on a phone the search slides over the page
            for words, page in WORDS:
                search(b, words)
                b.wait("[...document.querySelectorAll('.md-search-result__link')]"
                       ".some(e => e.href.includes('docs/%s.html'))" % page)
            for page in ("docs/slow", "man/pipectl.1", "api/libpiped", "api/python", "bench/results/governors"):
                b.open("file://%s/%s.html" % (SITE, page))
                b.wait("document.readyState === 'complete' && location.href.endsWith('%s.html') && "
                       "document.querySelector('h1')" % page)
                shoot(b, "site-%s-%s" % (os.path.basename(page), name))
        check(b.console == [], b.console)


def shoot(b, name, fits=True):
    b.ask("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    check(not fits or b.ask("document.documentElement.scrollWidth <= window.innerWidth"), name, "is wider than its window")
    if SHOTS:
        b.screenshot(os.path.join(SHOTS, name + ".png"))


if MISSING:
    print("SKIP: not installed: " + ", ".join(MISSING))
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="piped-site-") as SITE:
    main((built, links_hold, nothing_comes_from_the_network, the_search_knows_every_page,
          every_page_of_the_repository_is_there, a_browser_shows_and_searches), trace=True)
