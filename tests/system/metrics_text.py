# SPDX-License-Identifier: Apache-2.0
"""Reads the text format of Prometheus, as far as piped writes it."""
import re

LINE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Metrics:
    """One scrape. `types`: of every metric; `samples`: (name, ((label, value), ...)) -> the value's text."""

    def __init__(self, text):
        self.text = text
        self.types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
        self.samples = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                m = LINE.fullmatch(line)
                key = (m.group(1), tuple(sorted(LABEL.findall(m.group(2) or ""))))
                assert key not in self.samples, "twice: " + line
                self.samples[key] = m.group(3)

    def rows(self, name, **labels):
        """[({label: value}, number)] of the samples that have these labels."""
        wanted = set(labels.items())
        return [(dict(at), float(value)) for (n, at), value in self.samples.items() if n == name and wanted <= set(at)]

    def one(self, name, **labels):
        rows = self.rows(name, **labels)
        assert len(rows) == 1, (name, labels, rows)
        return rows[0][1]

    def total(self, name, **labels):
        return sum(value for _, value in self.rows(name, **labels))

    def by(self, name, *which, **labels):
        """{values of the labels `which`: sum}, without zeros."""
        sums = {}
        for at, value in self.rows(name, **labels):
            key = at[which[0]] if len(which) == 1 else tuple(at[w] for w in which)
            sums[key] = sums.get(key, 0) + value
        return {k: v for k, v in sums.items() if v}

    def nanoseconds(self, name, **labels):
        """The exact sum of a histogram, whose text has nine decimals."""
        rows = [v for (n, at), v in self.samples.items() if n == name + "_sum" and set(labels.items()) <= set(at)]
        assert len(rows) == 1 and re.fullmatch(r"\d+\.\d{9}", rows[0]), (name, labels, rows)
        return int(rows[0].replace(".", ""))

    def buckets(self, name, **labels):
        """[(upper bound in ns, frames up to there)]; infinity last."""
        rows = [(float(at["le"]), int(value)) for at, value in self.rows(name + "_bucket", **labels)]
        return [(round(le * 1e9) if le < float("inf") else le, n) for le, n in sorted(rows)]

    def family(self, name):
        """The metric that a sample or a query's name belongs to; None: there is none."""
        for suffix, kinds in (("", None), ("_bucket", ("histogram",)), ("_sum", ("histogram", "summary")),
                              ("_count", ("histogram", "summary"))):
            base = name[:len(name) - len(suffix)] if suffix else name
            if name.endswith(suffix) and base in self.types and (kinds is None or self.types[base] in kinds):
                return base
        return None
