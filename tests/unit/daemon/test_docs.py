#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is generated from the table of configuration keys is what stands in the repository, and pages name keys that exist.

usage: test_docs.py CONFIG_DOC PIPED etc/piped.json daemon/piped.json.5.scd daemon/piped.8.scd DOCS PAGE...
       DOCS: the folder of Markdown pages; PAGE: further man pages
"""
import glob
import json
import os
import re
import subprocess
import sys

CONFIG_DOC, PIPED, CONFIG, MAN5, MAN8, DOCS = sys.argv[1:7]
NOT_KEYS = ("sensors.gpio",)  # of status
sys.path.insert(0, os.path.dirname(MAN5))
import config_pages  # noqa: E402  (the folder is known only now)

failed = 0


def check(ok, name, text=""):
    global failed
    print("%s %s %s" % ("ok" if ok else "FAIL", name, text if not ok else ""))
    failed += not ok


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


for path, text in config_pages.made(CONFIG_DOC, CONFIG, MAN5).items():
    check(read(path) == text, "generated: " + os.path.basename(path), "write it again: ninja -C build config-pages")
r = subprocess.run([PIPED, "--config", CONFIG, "--check-config"], capture_output=True, text=True,
                   check=False, timeout=60)
check(r.returncode == 0, "default_config_is_good", r.stderr)
usage = output(PIPED, "--help")
options = set(re.findall(r"--[a-z-]+", usage.split("Configuration keys")[0]))
named = set(re.findall(r"--[a-z-]+", read(MAN8).replace("\\", "")))
check(options <= named, "man_page_names_every_option", str(options - named))
check(not [o for o in named - options if o not in ("--json", "--user", "--catalog")], "man_page_names_no_other_option",
      str(named - options))

# keys and their defaults, and what the pages say of them
table = config_pages.table(CONFIG_DOC)
keys = {k["key"]: json.dumps(k["default"]) for k in table["keys"]}
keys.update(("%s[].%s" % (i["array"], i["key"]), None) for i in table["items"])
check(len(keys) > 30 and keys.get("adapt.cooldown_s") == "5", "keys_are_read", str(keys))
groups = "|".join(sorted({k.split(".")[0] for k in keys if "." in k and "[" not in k}))
unknown = []
for path in sorted(glob.glob(os.path.join(DOCS, "*.md"))) + [MAN5, MAN8] + sys.argv[7:]:
    text = read(path).replace("\\", "")
    unknown += ["%s: %s" % (os.path.basename(path), key)
                for key in re.findall(r"(?<![\w./])((?:%s)\.[a-z_]*[a-z])(?![\w(])" % groups, text)
                if key not in keys and key not in NOT_KEYS and not key.endswith((".h", ".c", ".md"))]
check(not unknown, "pages_name_keys_that_exist", ", ".join(unknown))
table = dict(re.findall(r"^\| `(adapt\.\w+)` \| (\w+) \|", read(os.path.join(DOCS, "adaptation.md")), flags=re.M))
check(table == {k: v for k, v in keys.items() if k.startswith("adapt.")}, "adaptation_lists_its_keys", str(table))
print("cases: %d failed" % failed)
sys.exit(1 if failed else 0)
