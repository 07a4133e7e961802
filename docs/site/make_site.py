#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_site.py SOURCE_ROOT BUILD_ROOT SITE [STAMP] - makes the site of the documents in the folder SITE, by mkdocs.

The pages are those of the repository, which also read well without a site. They are copied to BUILD_ROOT/docs/site-pages;
there links to sources become links to pages that show them, and links to folders become plain text. Man pages (by scdoc
and mandoc) and the references of libpiped and of the Python client are added. The navigation is the README's table
"Documents": who adds a page there has it in the site.
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import api_c  # noqa: E402  (the folder is known only now)
import api_python  # noqa: E402

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```\w*[^\n]*\n.*?^```[^\n]*$)", re.M | re.S)
LANGUAGE = {".c": "c", ".h": "c", ".py": "python", ".json": "json", ".sh": "bash", ".js": "javascript"}
ASSETS = (".svg", ".png", ".jpg", ".gif", ".css", ".js")
MAN = ("daemon/piped.8.scd", "daemon/piped.json.5.scd", "apps/pipectl/pipectl.1.scd", "ipc/client/libpiped.3.scd",
       "apps/http/piped-http.8.scd", "apps/link/piped-link.8.scd", "tuner/pipesim.1.scd")
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.M)


def read(name):
    with open(name, encoding="utf-8") as f:
        return f.read()


def documents(readme):
    """The README's table of documents as [(heading, [(title, page)])]."""
    table = readme.partition("\n## Documents\n")[2]
    rows = [r for r in ROW.findall(table) if r[0] != "---" and not r[0].startswith("you want")]
    seen = set()
    return [(heading[0].upper() + heading[1:],
             [(title[0].upper() + title[1:], page) for _, title, page in LINK.findall(cell)
              if page.endswith(".md") and not (page in seen or seen.add(page))])
            for heading, cell in rows]


class Site:
    def __init__(self, source, build):
        self.source, self.build = source, build
        self.pages = os.path.join(build, "docs", "site-pages")
        self.man = {os.path.basename(m)[:-len(".scd")]: m for m in MAN}
        self.shown = set()  # sources that pages show

    def put(self, name, text):
        path = os.path.join(self.pages, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def listed(self):
        """The pages of the repository that are part of the site."""
        names = ["README.md"]
        for folder in ("docs", "bench/results"):
            names += sorted("%s/%s" % (folder, n) for n in os.listdir(os.path.join(self.source, folder)) if n.endswith(".md"))
        return names

    def link(self, name, match):
        """A link of the page `name`, as it is in the site."""
        mark, text, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return match.group(0)
        whole = os.path.normpath(os.path.join(os.path.dirname(name), path))
        if whole in self.known:
            return match.group(0)
        there = os.path.join(self.source, whole)
        if not os.path.exists(there):
            return match.group(0)  # mkdocs names it
        if os.path.isdir(there):
            readme = whole + "/README.md"
            found = [f for f in sorted(os.listdir(there)) if f.endswith(".py") or f.endswith(".c")] \
                if whole.startswith("docs/examples") else []
            if readme in self.known:
                whole = readme
            elif found:
                self.put(whole + "/index.md", "# Examples\n\n" + "".join(
                    "- [%s](%s.md)\n" % (f, f) for f in found))
                for f in found:
                    self.show("%s/%s" % (whole, f))
                whole += "/index.md"
            else:
                return text
        elif whole.endswith(ASSETS):
            os.makedirs(os.path.dirname(os.path.join(self.pages, whole)), exist_ok=True)
            shutil.copyfile(there, os.path.join(self.pages, whole))
            return match.group(0)
        else:
            self.show(whole)
            whole += ".md"
        return "%s[%s](%s)" % (mark, text, os.path.relpath(whole, os.path.dirname(name) or ".") + hash_ + anchor)

    def show(self, name):
        """A page that shows a source."""
        self.shown.add(name)
        language = LANGUAGE.get(os.path.splitext(name)[1], "text")
        self.put(name + ".md", "# %s\n\n````%s\n%s\n````\n" % (
            name, language, read(os.path.join(self.source, name)).rstrip("\n")))

    def name_man_pages(self, name, text):
        """piped(8) becomes a link, outside of code and of links."""
        up = os.path.relpath("man", os.path.dirname(name) or ".")

        def found(m):
            page = "%s.%s" % m.groups()
            return "[%s](%s/%s.md)" % (m.group(0), up, page) if page in self.man else m.group(0)
        return re.sub(r"(?<![\w`\[./-])(%s)\((\d)\)(?!`)" % self.names(), found, text)

    def names(self):
        """The man pages' names, the longer ones first, as an alternative of a regular expression."""
        names = [p.rsplit(".", 1)[0] for p in self.man] + ["piped-protocol"]
        return "|".join(re.escape(n) for n in sorted(names, key=len, reverse=True))

    def man_link(self, m):
        """In a man page, another's name with its section."""
        page = "%s.%s" % m.groups()
        to = "../docs/protocol.html" if page == "piped-protocol.7" else page + ".html" if page in self.man else None
        return '<a href="%s">%s(%s)</a>' % (to, *m.groups()) if to else m.group(0)

    def copy(self, name):
        parts = FENCE.split(read(os.path.join(self.source, name)))
        for i in range(0, len(parts), 2):  # between blocks of code
            text = LINK.sub(lambda m: self.link(name, m), parts[i])
            if not name.startswith("docs/protocol"):  # made of a man page's text itself
                text = self.name_man_pages(name, text)
            parts[i] = text
        self.put(name, "".join(parts))

    def man_page(self, page, scd):
        roff = subprocess.run(["scdoc"], input=read(os.path.join(self.source, scd)), capture_output=True, text=True, check=True)
        html = subprocess.run(["mandoc", "-T", "html", "-O", "fragment"], input=roff.stdout, capture_output=True, text=True,
                              check=True).stdout
        html = re.sub(r'<table class="(?:head|foot)">.*?</table>|</?section[^>]*>', "", html, flags=re.S)
        html = re.sub(r'^\s*<div class="manual-text">|</div>\s*$', "", html.strip())
        html = re.sub(r'<a class="permalink" href="[^"]*">(.*?)</a>', r"\1", html, flags=re.S)
        html = re.sub(r'<table class="tbl"[^>]*>', "<table>", html)  # which the theme makes scroll
        html = html.replace('<div class="Bd-indent">&#x2022;', '<div class="Bd-indent bullet">&#x2022; ')
        html = re.sub(r"<b>(%s)</b>\((\d)\)" % self.names(), self.man_link, html)
        html = re.sub(r"\n\s*\n", "\n", html)  # Markdown would end the block
        # Headings become Markdown's: the search and the table of contents know these.
        parts = re.split(r'<h(\d) class="S[hs]" id="[^"]*">(.*?)</h\d>', html, flags=re.S)
        html = ""
        for level, title, body in zip(parts[1::3], parts[2::3], parts[3::3]):
            title = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", title)).strip()
            html += "\n%s# %s\n\n<div class=\"manual-text\">\n%s\n</div>\n" % (
                "#" * int(level), title.replace("*", "&#42;").replace("_", "&#95;"), body.strip())
        name, section = page.rsplit(".", 1)
        self.put("man/%s.md" % page, "# %s(%s)\n\n%s\n" % (name, section, html))

    def stage(self):
        shutil.rmtree(self.pages, ignore_errors=True)
        self.known = set(self.listed())
        for name in sorted(self.known):
            self.copy(name)
        for page, scd in self.man.items():
            self.man_page(page, scd)
        self.show("docs/examples/classify.c")
        self.put("api/libpiped.md", api_c.page(self.source))
        self.put("api/python.md", api_python.page(self.source, self.build))
        shutil.copytree(os.path.join(HERE, "assets"), os.path.join(self.pages, "site"))

    def navigation(self):
        nav = [{"piped": "README.md"}]
        rows = documents(read(os.path.join(self.source, "README.md")))
        figures = "bench/results/README.md"
        nav += [{heading: [{t: p} for t, p in pages if p != figures]} for heading, pages in rows
                if any(p != figures for _, p in pages)]
        nav.append({"Reference": [{"libpiped": "api/libpiped.md"}, {"Python": "api/python.md"}] +
                    [{"%s(%s)" % tuple(p.rsplit(".", 1)): "man/%s.md" % p} for p in sorted(self.man)]})
        results = sorted(n for n in self.known if n.startswith("bench/results/") and n != figures)
        nav.append({"Figures": [{"Results": figures}] + [
            {re.match(r"# (.*)", read(os.path.join(self.source, n))).group(1): n} for n in results]})
        nav.append({"Sources": [{n: n + ".md"} for n in sorted(self.shown)]})
        return nav

    def make(self, out):
        """Return: mkdocs' exit code."""
        self.stage()
        config = os.path.join(self.build, "docs", "mkdocs.json")
        with open(config, "w", encoding="utf-8") as f:  # JSON is YAML
            json.dump({"INHERIT": os.path.join(HERE, "mkdocs.yml"), "docs_dir": self.pages, "site_dir": out,
                       "theme": {"custom_dir": os.path.join(HERE, "theme")},
                       "nav": self.navigation()}, f, indent=1)
        done = subprocess.run(["mkdocs", "build", "--strict", "--clean", "-f", config], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            print("\n".join(line for line in done.stderr.split("\n") if "WARNING" in line or "ERROR" in line or "rror" in line))
            return done.returncode
        index = os.path.join(out, "search", "search_index.json")
        with open(os.path.join(out, "search", "search_index.js"), "w", encoding="utf-8") as f:
            f.write("var __search = {index: Promise.resolve(%s)};\n" % read(index))
        os.remove(index)
        # What only other languages and debuggers need, and what is only for servers.
        shutil.rmtree(os.path.join(out, "assets", "javascripts", "lunr"), ignore_errors=True)
        for folder, _, files in os.walk(out):
            for f in files:
                if f.endswith(".map") or f in ("sitemap.xml", "sitemap.xml.gz"):
                    os.remove(os.path.join(folder, f))
        return 0


def main():
    source, build, out = (os.path.abspath(a) for a in sys.argv[1:4])
    code = Site(source, build).make(out)
    if code == 0 and len(sys.argv) > 4:
        with open(sys.argv[4], "w", encoding="utf-8") as f:
            f.write("made\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
