#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Documents are tested: they are short, their links and files exist, and they name what the code has: commands, options,
searches, operators, metrics and state files.

usage: test_docs.py SOURCE_ROOT PIPECTL_OPTIONS PIPESIM_OPTIONS
"""
import fnmatch
import json
import os
import re
import subprocess
import sys

import source
from cases import check, main, none

ROOT = sys.argv[1]
sys.path.insert(0, os.path.join(ROOT, "etc", "completions"))
import make  # noqa: E402  (the folder is known only now)

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")  # images too
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
HEADING = re.compile(r"^#+ +(.*)$", re.M)
PATH = re.compile(r"`((?:%s)/[\w./-]+)`" % "|".join(
    ("apps", "base", "bench", "daemon", "docs", "etc", "governor", "ipc", "kernels", "model", "pipeline", "systemd", "tests",
     "tuner")))
LINES_MAX = 250
# words that the glossary of docs/house.md replaces
OLD_WORDS = re.compile(r"\b(run(s|ning)? dry|deal|deals|dealt|dealing|foreign|remade|remake|plan before|hubs?)\b", re.I)
RESULTS = "bench/results/"


def pages():
    return [n for n in source.files(ROOT) if n.endswith(".md")]


def man_pages():
    return [n for n in source.files(ROOT) if n.endswith(".scd")]


def sources(folder):
    return [n for n in source.files(ROOT) if n.startswith(folder + "/") and n.endswith(".c")]


def equal_sets(documented, there, what, where):
    none(["%s has no %s %s" % (where, what, n) for n in sorted(there - documented)] +
         ["%s has %s %s, which is not there" % (where, what, n) for n in sorted(documented - there)],
         "differences between %s and the code" % where)


def pages_are_short():
    lengths = {n: source.text(ROOT, n).count("\n") for n in pages() if os.path.dirname(n) == "docs"}
    check(len(lengths) > 10, "the pages were not found")
    none(["%s: %d lines" % item for item in lengths.items() if item[1] > LINES_MAX], "pages of more than %d lines" % LINES_MAX)


def pages_are_in_the_readme():
    """Its table of documents is the navigation of the site, too."""
    table = source.text(ROOT, "README.md").partition("\n## Documents\n")[2]
    there = {n for n in pages() if os.path.dirname(n) == "docs"}
    none(sorted(there - set(LINK.findall(table))), "pages that the README's table of documents lacks")


def anchors(name):
    """GitHub's rule: lower case, punctuation dropped, spaces to dashes."""
    return {re.sub(r"[^\w\- ]", "", h.lower().replace("`", "")).strip().replace(" ", "-")
            for h in HEADING.findall(FENCE.sub("", source.text(ROOT, name)))}


def links_resolve():
    broken = []
    for name in pages():
        for link in LINK.findall(FENCE.sub("", source.text(ROOT, name))):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not os.path.exists(os.path.join(ROOT, target)):
                broken.append("%s: %s" % (name, link))
            elif anchor and target.endswith(".md") and anchor not in anchors(target):
                broken.append("%s: %s has no such heading" % (name, link))
    none(broken, "broken links")


def named_files_exist():
    """`folder/file` in a page is a file, a folder, or a file that the build makes there."""
    missing = []
    known = source.files(ROOT)
    for name in pages():
        for path in PATH.findall(FENCE.sub("", source.text(ROOT, name))):
            path = path.rstrip("/.")
            stems = {path, path + ".c", path + ".h", path + ".in", path + ".scd"}
            folder, base = os.path.split(path)
            made = "*" in path or "{" in path or (
                folder + "/meson.build" in known and base in source.text(ROOT, folder + "/meson.build"))
            if not made and not os.path.exists(os.path.join(ROOT, path)) and not stems & set(known):
                missing.append("%s: %s" % (name, path))
    none(missing, "files that pages name and that are not there")


def named_pages_exist():
    """The pages that a source, a test, a build file or a man page names."""
    missing = []
    for name in source.files(ROOT):
        if name.endswith((".c", ".h", ".py", ".scd", ".build")) and source.is_text(ROOT, name):
            named = re.findall(r"\b(?:docs|bench/results)/\w+\.md", source.text(ROOT, name))
            missing += ["%s: %s" % (name, page) for page in named if not os.path.exists(os.path.join(ROOT, page))]
    none(missing, "pages that files name and that are not there")


def words_are_those_of_the_glossary():
    used = []
    for name in [n for n in pages() if n.startswith("docs/")] + man_pages():
        text = re.sub(r"^; keys: .*?^; end of keys$", "", source.text(ROOT, name), flags=re.M | re.S)
        used += ["%s: %s" % (name, m.group(0)) for m in OLD_WORDS.finditer(text)]
    none(used, "words that docs/house.md has another word for")


def results_say_where_they_are_from():
    """Each page of results names machine, command and commit, and the index has it."""
    index = source.text(ROOT, RESULTS + "README.md")
    wrong = []
    found = [n for n in pages() if n.startswith(RESULTS) and not n.endswith("/README.md")]
    check(len(found) > 5, "the results were not found")
    for name in found:
        text = source.text(ROOT, name)
        wrong += ["%s: no %s" % (name, what) for what, pattern in (
            ("machine", r"^- Machine: "), ("command", r"`(build/)?bench/|`pipesim "),
            ("commit", r"[Rr]ecorded in commits? [0-9a-f]{7}"))
                  if not re.search(pattern, text, re.M)]
        if "(%s)" % name[len(RESULTS):] not in index:
            wrong.append("%s: not in the index" % name)
    none(wrong, "results without a source")


def limits_of_models_are_documented():
    rows = dict(re.findall(r"^\| ([^|]+) \| ([\d,]+)", source.text(ROOT, "docs/models.md"), re.M))
    for row, name, macro in (("operators", "model/ir/ir.h", "MDL_IR_OPS_MAX"), ("units", "tuner/problem.h", "TUN_UNIT_MAX"),
                             ("inputs; outputs, with counts of rows", "pipeline/frame.h", "PL_FRAME_IO_MAX")):
        limit, = re.findall(r"^#define %s (\d+)u" % macro, source.text(ROOT, name), re.M)
        check(rows.get(row, "").replace(",", "") == limit, "docs/models.md, limits", row, rows.get(row), macro, limit)


def metrics_of(names, prefix=""):
    """Return: {metric without "piped_": its type}, of what these files write."""
    there = {}
    for name in names:
        text = re.sub(r'"\s*\n\s*"', "", source.text(ROOT, name))
        there.update((prefix + row, kind) for row, kind in
                     re.findall(r'"([a-z][a-z0-9_]*)",\s*"(counter|gauge|summary|histogram)"', text))
        there.update((name, "histogram") for name in re.findall(r'\bhistogram\(to, control, "(\w+)"', text))
        there.update(re.findall(r"# TYPE piped_(\w+) (counter|gauge|summary|histogram)", text))
    return there


def metrics_are_documented():
    there = metrics_of(sources("daemon"))
    check(len(there) > 20, "the metrics were not found")
    rows = re.findall(r"^\| `piped_(\w+)` \| (\w+) \| ([^|]*) \|", source.text(ROOT, "docs/metrics.md"), re.M)
    equal_sets({"piped_%s, a %s" % r[:2] for r in rows}, {"piped_%s, a %s" % i for i in there.items()}, "metric",
               "docs/metrics.md")
    none([r[0] for r in rows if not r[2].strip()], "metrics without a unit")


def counters_that_are_named_exist():
    """In pages, examples and dashboards."""
    there = {"piped_" + m for m in (*metrics_of(sources("daemon")), *metrics_of(["apps/http/routes.c"], "http_"))}
    named = [(n, c) for n in source.files(ROOT) if n.startswith(("docs/", "etc/")) and n.endswith((".md", ".py", ".json", ".yml"))
             for c in set(re.findall(r"\bpiped_\w+_total\b", source.text(ROOT, n)))]
    check(len(named) > 40, "the names of counters were not found")
    none(["%s: %s" % pair for pair in named if pair[1] not in there], "counters that nobody writes")


def output_keys_are_documented():
    """The keys of a sidecar's `output`, and its decoders, are those of base/."""
    code, page = (source.text(ROOT, "base/output_keys.c") + source.text(ROOT, "base/output_keys.h"),
                  source.text(ROOT, "docs/outputs.md"))
    table = re.search(r"output_keys\[\] = \{(.*?)\{0\}\};", code, re.S).group(1)
    keys = set(re.findall(r'^    \{"(\w+)",', table, re.M))
    check(len(keys) > 20, "the keys of output_keys.c were not found")
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("## Keys")[2].partition("## Equations")[0], re.M)
    equal_sets(set(rows), keys, "key", "docs/outputs.md")
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("## Decoders")[2].partition("## Keys")[0], re.M)
    equal_sets(set(rows), set(re.findall(r"^ +X\(\w+, (\w+)\)", code, re.M)), "decoder", "docs/outputs.md")


def state_files_are_listed():
    """What the daemon keeps in its state directory stands in FILES of piped(8), and nothing else does."""
    written = set(re.findall(r'\.form = "([^"]+)"', source.text(ROOT, "daemon/config/state_file.c")))
    check(len(written) > 3, "the state files were not found")
    written |= set(re.findall(r'LOCK_NAME "([^"]+)"', source.text(ROOT, "daemon/config/state_file.c")))
    listed = [f.replace("\\*", "*") for f in re.findall(r"^/var/lib/piped/(\S+)$", source.text(ROOT, "daemon/piped.8.scd"), re.M)]
    none(["piped(8) does not list %s" % w for w in written if not any(fnmatch.fnmatch(w, f) for f in listed)] +
         ["piped(8) lists %s, which nobody writes" % f for f in listed if not fnmatch.filter(written, f)], "state files")


def operators_are_listed():
    rows = set()
    for name in sources("model"):
        rows |= set(re.findall(r'\{"([A-Z]\w+)",\s*[a-z]\w+,\s*\w+(?:,[^}]*)?\}', source.text(ROOT, name)))
    check(len(rows) > 50, "the operators were not found")
    listed = set()
    for cell in re.findall(r"^\| ([A-Z][^|]*) \|", source.text(ROOT, "docs/operators.md"), re.M):
        names = cell.split(", ")
        listed |= {re.match(r"[A-Z][a-z]+", names[0]).group(0) + n[1:] if n.startswith("-") else n for n in names}
    equal_sets(listed, rows, "operator", "docs/operators.md")


def searches_are_named():
    """Every search of the tuner stands where users look for its name."""
    names = set(re.findall(r'(?:FIRST|NEXT)\(\w+, "([\w-]+)"', source.text(ROOT, "tuner/search/search_table.h")))
    check(len(names) > 5, "the searches were not found")
    listed = set(re.findall(r"`([\w-]+)`", "".join(
        re.findall(r"^\|([^|]*)\|", source.text(ROOT, "docs/tuner.md").split("## The searches")[1].split("\n#")[0], re.M))))
    equal_sets(listed, names, "search", "docs/tuner.md")
    named = re.search(r"\*--algorithm\* _A_\n(.*?)\. Default", source.text(ROOT, "apps/pipectl/pipectl.1.scd"), re.S)[1]
    equal_sets(set(re.findall(r"[\w-]+", named)) - {"or"}, names, "search", "--algorithm of pipectl(1)")


def scenarios_are_named():
    """The scripts of pipesim adapt: in its table of options and in pipesim(1)."""
    names = set(re.findall(r'^    \{"([\w-]+)", "', source.text(ROOT, "tuner/pipesim/scenario.c"), re.M))
    check(len(names) > 10, "the scenarios were not found")
    option = next(o for c in table_of("pipesim").commands if c.name == "adapt" for o in c.options if o.name == "scenario")
    equal_sets(set(option.words), names, "scenario", "tuner/pipesim/pipesim_options.c")
    page = set(re.findall(r"_([\w-]+)_", source.text(ROOT, "tuner/pipesim.1.scd")))
    none(sorted(names - page), "scenarios that pipesim(1) does not name")


def causes_are_named():
    """The causes of history's events stand in pipectl(1)."""
    names = set(re.findall(r'\[TUN_CAUSE_\w+\] = \{"(\w+)"', source.text(ROOT, "tuner/adapt/cause.c"))) - {"none"}
    names |= set(re.findall(r'\[DMN_CAUSE_\w+ - TUN_CAUSE_COUNT\] = "(\w+)"', source.text(ROOT, "daemon/models/serving.c")))
    check(len(names) > 10, "the causes were not found")
    page = re.search(r"_cause_ \(([^)]*)\)", source.text(ROOT, "apps/pipectl/pipectl.1.scd")).group(1)
    equal_sets(set(re.findall(r"\w+", page)), names, "cause", "apps/pipectl/pipectl.1.scd")


def findings_are_explained():
    """Each finding of pipectl doctor has a heading in docs/slow.md."""
    names = set(re.findall(r'X\("([\w-]+)", (?:FAILURE|LOSS|NOTE), \w+\)', source.text(ROOT, "apps/pipectl/doctor/facts.h")))
    check(len(names) > 20, "the findings were not found")
    equal_sets(set(re.findall(r"^### ([\w-]+)$", source.text(ROOT, "docs/slow.md"), re.M)), names, "finding", "docs/slow.md")


def groups_are_named():
    """The groups of pipectl --help stand in pipectl(1), with the same commands in the same order."""
    groups = []
    for command in table_of("pipectl").commands:
        if command.group:
            groups.append((command.group, []))
        check(groups, command.name, "is in no group")
        groups[-1][1].append(command.name)
    top = re.split(r"^## ", source.text(ROOT, PAGES["pipectl"]).split("\n# COMMANDS\n")[1], flags=re.M)[0]
    listed = [(g, re.findall(r"\*(\w+)\*", names)) for g, names in re.findall(r"^- _(\w+)_: (.*)$", top, re.M)]
    check(listed == groups, "pipectl(1) has", listed, "and --help", groups)


def json_examples_parse():
    bad = []
    for name in pages():
        for language, body in FENCE.findall(source.text(ROOT, name)):
            if language != "json":
                continue
            try:
                json.loads(body)
            except ValueError as e:
                bad.append("%s: %s in:\n%s" % (name, e, body))
    none(bad, "JSON examples that do not parse")


TABLES = dict(zip(("pipectl", "pipesim"), sys.argv[2:4]))
PAGES = {"pipectl": "apps/pipectl/pipectl.1.scd", "pipesim": "tuner/pipesim.1.scd"}


def table_of(program):
    """The table of commands and options that usage, help and completions are made of."""
    return make.Program(subprocess.run([TABLES[program]], capture_output=True, text=True, check=True).stdout)


def options_in(text):
    return set(re.findall(r"(?<![\w-])--([a-z][\w-]*)", text))


def man_pages_are_complete():
    """Every command has a section, which has its options and no others. An option before the first section is everybody's;
    *COMMAND --option* is another command's."""
    wrong = []
    for program, name in PAGES.items():
        common, commands = source.text(ROOT, name).split("\n# COMMANDS\n")
        parts = re.split(r"^## (.*)$", re.split(r"^# ", commands, flags=re.M)[0], flags=re.M)
        page = {word: title + re.sub(r"\*\w+ --[^*]*\*", "", body) for title, body in zip(parts[1::2], parts[2::2])
                for word in re.findall(r"\w+", re.split(r" \[| -| [A-Z]", title)[0])}
        for row in table_of(program).commands:
            command, options = row.name, {o.name for o in row.options} - {"help"}
            if command not in page:
                wrong.append("%s: no section %s" % (name, command))
                continue
            if row.also and row.also not in page and not re.search(r"also spelled %s\b" % row.also, commands):
                wrong.append("%s: %s is not named" % (name, row.also))
            wrong += ["%s: %s lacks --%s" % (name, command, o) for o in sorted(options - options_in(page[command] + common))]
            wrong += ["%s: %s has --%s, which it does not take" % (name, command, o)
                      for o in sorted(options_in(page[command]) - options - options_in(common))]
    none(wrong, "options and commands that man pages miss or invent")


main((pages_are_short, pages_are_in_the_readme, links_resolve, named_files_exist,
      named_pages_exist, words_are_those_of_the_glossary,
      results_say_where_they_are_from, json_examples_parse, metrics_are_documented, counters_that_are_named_exist,
      output_keys_are_documented,
      limits_of_models_are_documented, state_files_are_listed, operators_are_listed, searches_are_named,
      scenarios_are_named, causes_are_named, findings_are_explained, groups_are_named, man_pages_are_complete))
