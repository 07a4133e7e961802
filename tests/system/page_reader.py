# SPDX-License-Identifier: Apache-2.0
"""A page of pipectl report or pipesim report, read without a browser: elements, tables, charts."""
import html.parser
import json

from daemon import check

NETWORK = ("src", "href", "action", "data", "poster", "srcset", "background")  # attributes that load something


class Page(html.parser.HTMLParser):
    """tables: {caption: [{heading: text}]}, of charts too, under their title; charts, data: {id: JSON}."""

    def __init__(self, path):
        super().__init__()
        with open(path, encoding="utf-8") as f:
            self.source = f.read()
        self.text, self.tables, self.json, self.scripts, self.tags = "", {}, {}, [], []
        self.caption, self.headings, self.row, self.cell, self.script = None, [], None, None, None
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag in ("caption", "figcaption"):
            self.caption, self.cell = "", None
        elif tag == "table":
            self.headings = []
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th"):
            self.cell = ""
        elif tag == "script":
            self.script = [attrs, ""]

    def handle_data(self, data):
        if self.script:
            self.script[1] += data
            return
        self.text += data
        if self.cell is not None:
            self.cell += data
        elif self.caption is not None and self.lasttag in ("caption", "figcaption"):
            self.caption += data

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.row.append(self.cell)
            self.cell = None
        elif tag == "thead":
            self.headings = self.row
            self.tables[self.caption] = []
        elif tag == "tr" and self.headings and self.row is not self.headings:
            self.tables[self.caption].append(dict(zip(self.headings, self.row)))
        elif tag == "script":
            attrs, text = self.script
            self.script = None
            if attrs.get("type") == "application/json":
                self.json[attrs["id"]] = json.loads(text)
            else:
                self.scripts.append(text)

    @property
    def charts(self):
        return {k[:-len("-data")]: v for k, v in self.json.items() if k.endswith("-data")}

    def needs_nothing(self):
        """No element loads anything, and the page forbids it."""
        for tag, attrs in self.tags:
            check(tag not in ("link", "img", "iframe", "object", "embed", "base"), tag, attrs)
            for name in attrs:
                check(name not in NETWORK or (name == "href" and attrs[name].startswith("#")), tag, attrs)
                check(not name.startswith("on"), tag, attrs)
        style = self.source[self.source.index("<style>"):self.source.index("</style>")]
        check("url(" not in style and "@import" not in style, "the style loads something")
        check("default-src 'none'" in self.source, "the page has no policy against loading")
