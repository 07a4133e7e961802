#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the shells complete is what the programs take: bash is asked, zsh and fish are read.

usage: test_completions.py SOURCE_ROOT BUILD_ROOT PIPECTL_OPTIONS PIPESIM_OPTIONS
"""
import os
import re
import shutil
import subprocess
import sys

from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "etc", "completions"))
import make  # noqa: E402  (the folder is known only now)

PROGRAMS = [make.Program(subprocess.run([table], capture_output=True, text=True, check=True).stdout)
            for table in sys.argv[3:5]]
BINARIES = {"pipectl": "apps/pipectl/pipectl", "pipesim": "tuner/pipesim"}
FILES = {"bash": "%s", "zsh": "_%s", "fish": "%s.fish"}


def path(shell, program):
    return os.path.join(BUILD, "etc", FILES[shell] % program.name)


def text(shell, program):
    with open(path(shell, program), encoding="utf-8") as f:
        return f.read()


def complete(program, *words):
    """What bash offers for the last of `words`."""
    script = '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _%s 2>/dev/null; printf "%%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script % program.name, path("bash", program), program.name, *words],
                          capture_output=True, text=True, check=False, timeout=60)
    check(done.returncode == 0, program.name, words, done.stderr)
    return set(done.stdout.split())


def tables_fit():
    """cli_getopt() has room for so many options, and no two are one."""
    with open(os.path.join(ROOT, "base", "cli", "cli.h"), encoding="utf-8") as f:
        room = int(re.search(r"CLI_OPTIONS_MAX (\d+)u", f.read()).group(1))
    wrong = []
    for p in PROGRAMS:
        check(len(p.commands) > 5, "the table of", p.name, "was not read")
        for c in p.commands:
            names = [o.name for o in c.options]
            wrong += ["%s %s: %d options" % (p.name, c.name, len(names))] if len(names) > room else []
            wrong += ["%s %s: --%s twice" % (p.name, c.name, n) for n in set(names) if names.count(n) > 1]
            wrong += ["%s %s --%s: no help" % (p.name, c.name, o.name) for o in c.options if not o.help]
    none(wrong, "mistakes in the tables of options")


def bash_offers_commands_and_options():
    for p in PROGRAMS:
        check(set(p.names()) <= complete(p, ""), p.name, complete(p, ""))
        for c in p.commands:
            for name in c.names:
                offered, wanted = complete(p, name, "--"), {"--" + o.name for o in c.options + p.common} | {"--help"}
                check(offered == wanted, p.name, name, "offers", sorted(offered), "instead of", sorted(wanted))


def bash_offers_words():
    for p in PROGRAMS:
        for c in p.commands:
            for o in [o for o in c.options if o.words and not o.words[0].startswith("@")]:
                check(complete(p, c.name, "--" + o.name, "") == set(o.words), p.name, c.name, o.name,
                      complete(p, c.name, "--" + o.name, ""))
    pipectl, pipesim = PROGRAMS
    check(complete(pipectl, "plan", "") ==
          {"show", "set", "auto", "front", "explain", "mix", "export", "import"}, complete(pipectl, "plan", ""))
    check(complete(pipectl, "--json", "retune", "--seed", "3", "--algorithm", "shi") == {"shisha"}, "behind other options")
    check(complete(pipesim, "compare", "--algorithm", "exact,pipe-i") == {"exact,pipe-it"},
          complete(pipesim, "compare", "--algorithm", "exact,pipe-i"))


def other_shells_name_everything():
    missing = []
    for p in PROGRAMS:
        for shell, option in (("zsh", "--%s["), ("fish", "-l %s ")):
            words = text(shell, p)
            for c in p.commands:
                missing += ["%s: %s" % (shell, n) for n in c.names if not re.search(r"\b%s\b" % n, words)]
                missing += ["%s: %s --%s" % (shell, c.name, o.name) for o in c.options if option % o.name not in words]
    none(missing, "commands and options that a completion lacks")


def scripts_are_valid():
    shells = [s for s in FILES if shutil.which(s)]
    for p in PROGRAMS:
        for shell in shells:
            done = subprocess.run([shell, "-n", path(shell, p)], capture_output=True, text=True, check=False, timeout=60)
            check(done.returncode == 0 and not done.stderr, shell, p.name, done.stderr)


def every_option_is_taken():
    """Each option of a table has its row where the command reads it: what is wrong is the unknown option behind it."""
    wrong = []
    for p in PROGRAMS:
        for c in p.commands:
            for o in [o for o in c.options if o.name != "help"]:
                word = o.words[0] if o.words else "1"
                value = ["/dev/null" if word == "@file" else "1" if word[0] == "@" else word] if o.value else []
                command = [os.path.join(BUILD, BINARIES[p.name]), c.name, "--" + o.name, *value, "--no-such-option"]
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
                wrong += ["%s: %d %s" % (" ".join(command[1:]), done.returncode, done.stderr)] if done.returncode != 2 else []
    none(wrong, "options that end the program otherwise than wrong usage")


main((tables_fit, every_option_is_taken, bash_offers_commands_and_options, bash_offers_words, other_shells_name_everything,
      scripts_are_valid))
