#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is generated from the table of configuration keys is what stands in the repository.

usage: test_docs.py CONFIG_DOC PIPED etc/piped.json daemon/piped.json.5.scd daemon/piped.8.scd
"""
import re
import subprocess
import sys

CONFIG_DOC, PIPED, CONFIG, MAN5, MAN8 = sys.argv[1:6]
BEGIN, END = "; keys: made by config_doc\n", "; end of keys\n"
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


check(read(CONFIG) == output(CONFIG_DOC, "config"), "etc_piped_json_is_generated",
      "write it again: config_doc config > etc/piped.json")
page = read(MAN5)
check(BEGIN in page and END in page, "man_page_has_marks")
check(page.split(BEGIN)[1].split(END)[0].strip() == output(CONFIG_DOC, "man").strip(), "man_page_keys_are_generated",
      "write them again: config_doc man")
r = subprocess.run([PIPED, "--config", CONFIG, "--check-config"], capture_output=True, text=True,
                   check=False, timeout=60)
check(r.returncode == 0, "default_config_is_good", r.stderr)
usage = output(PIPED, "--help")
options = set(re.findall(r"--[a-z-]+", usage.split("Configuration keys")[0]))
named = set(re.findall(r"--[a-z-]+", read(MAN8).replace("\\", "")))
check(options <= named, "man_page_names_every_option", str(options - named))
check(not [o for o in named - options if o not in ("--json", "--user", "--catalog")], "man_page_names_no_other_option",
      str(named - options))
print("cases: %d failed" % failed)
sys.exit(1 if failed else 0)
