#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the completion of a program for a shell from the table of its commands and options (cli_print_table() in cli.h).

usage: make.py bash|zsh|fish TABLE
TABLE is a program that prints the table. What a shell finds while it completes (@models, ...) is in dynamic.bash, .zsh
and .fish.
"""
import os
import re
import subprocess
import sys


class Option:
    def __init__(self, cells):
        self.name, self.value, words, self.help, many = cells
        self.many = many == "1"
        self.words = [w for w in re.split(r"[ ,]+", words) if w]


class Command:
    def __init__(self, cells):
        self.name, self.also, self.usage, self.help, self.group = cells
        self.names = [self.name] + ([self.also] if self.also else [])
        self.options, self.arguments = [], {}


class Program:
    """What TABLE prints, read again."""

    def __init__(self, text):
        self.common, self.commands = [], []
        for line in text.splitlines():
            what, *cells = line.split("\t")
            if what == "program":
                self.name = cells[0]
            elif what == "common":
                self.common.append(Option(cells))
            elif what == "command":
                self.commands.append(Command(cells))
            elif what == "option":
                self.commands[-1].options.append(Option(cells))
            else:
                self.commands[-1].arguments[cells[0]] = re.split(r"[ ,]+", cells[1])

    def top(self):
        """Options in front of the command."""
        names = {o.name for o in self.common}
        extra = [Option((n, "", "", h, "0")) for n, h in (("help", "print help"), ("version", "print the version"))]
        return self.common + [o for o in extra if o.name not in names]

    def names(self):
        return [n for c in self.commands for n in c.names]


def dynamic(shell, program):
    """The functions that find @models and the like, of this program alone."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "dynamic." + shell), encoding="utf-8") as f:
        parts = re.split(r"^# --- (\w+)$\n", f.read(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2])).get(program.name, "").strip()


# ---- bash ----

def bash_reply(words, many):
    """Lines that fill COMPREPLY by words of the table."""
    plain = [w for w in words if not w.startswith("@")]
    found = ["$(_PROGRAM_%s)" % w[1:] for w in words if w in ("@models", "@networks", "@platforms")]
    lines = []
    if plain or found:
        if many:
            lines += ["[[ $cur == *,* ]] && head=${cur%,*},",
                      'mapfile -t COMPREPLY < <(compgen -P "$head" -W "%s" -- "${cur##*,}")' % " ".join(plain + found)]
        else:
            lines += ['mapfile -t COMPREPLY < <(compgen -W "%s" -- "$cur")' % " ".join(plain + found)]
    if "@file" in words or "@folder" in words:
        lines.append("compopt -o default")
    return lines


def bash(p):
    out = ["# bash completion of %s, made from its table of options" % p.name, dynamic("bash", p), "", "_PROGRAM() {",
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}",
           "    local command= sub= socket= head= words= i word", "    COMPREPLY=()",
           "    for ((i = 1; i < COMP_CWORD; i++)); do", "        word=${COMP_WORDS[i]}", '        case "$command $word" in']
    out += ['        *" --socket") socket=${COMP_WORDS[++i]} ;;'] if any(o.name == "socket" for o in p.common) else []
    valued = ["*' --%s'" % o.name for o in p.common if o.value and o.name != "socket"]
    valued += ["'%s --%s'" % (n, o.name) for c in p.commands for n in c.names for o in c.options if o.value]
    out += ["        %s) i=$((i + 1)) ;;" % " | ".join(valued), "        *' -'*) ;;", "        *)",
            '            if [ -z "$command" ]; then command=$word; elif [ -z "$sub" ]; then sub=$word; fi', "            ;;",
            "        esac", "    done", '    case "$command $prev" in']
    for o in p.common:
        if o.value:
            out += ["    *' --%s')" % o.name] + ["        " + line for line in bash_reply(o.words, o.many)]
            out += ["        return", "        ;;"]
    for c in p.commands:
        for o in c.options:
            if o.value:
                out += ["    %s)" % " | ".join("'%s --%s'" % (n, o.name) for n in c.names)]
                out += ["        " + line for line in bash_reply(o.words, o.many)] + ["        return", "        ;;"]
    out += ["    esac", "    case $command in",
            '    "") words="%s" ;;' % " ".join(p.names() + ["--" + o.name for o in p.top()])]
    for c in p.commands:
        out += ["    %s)" % " | ".join(c.names),
                '        words="%s"' % " ".join(["--" + o.name for o in c.options + p.common] + (
                    [] if any(o.name == "help" for o in c.options) else ["--help"]))]
        if c.arguments:
            out += ["        if [[ $cur != -* ]]; then", "            case $sub in"]
            for after, words in sorted(c.arguments.items(), key=lambda a: a[0] == "*"):
                out += ["            %s)" % (after if after not in ("",) else '""')]
                out += ["                " + line for line in bash_reply(words, False)] + ["                return",
                                                                                          "                ;;"]
            out += ["            esac", "        fi"]
        out += ["        ;;"]
    out += ["    esac", '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")', "}", "complete -F _PROGRAM PROGRAM"]
    return "\n".join(out)


# ---- zsh ----

def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_text(text):
    return re.sub(r"([\[\]:])", r"\\\1", text)


def zsh_action(words, many):
    plain = [w for w in words if not w.startswith("@")]
    if many and plain:
        return "_sequence compadd - %s" % " ".join(plain)
    if plain:
        return "(%s)" % " ".join(plain)
    actions = {"@models": "_PROGRAM_models", "@networks": "_PROGRAM_networks", "@platforms": "_PROGRAM_platforms",
               "@file": "_files", "@folder": "_files -/"}
    return next((actions[w] for w in words if w in actions), " ")


def zsh_option(o):
    many = "*" if o.many and not any(not w.startswith("@") for w in o.words) else ""
    value = ":%s:%s" % (zsh_text(o.value), zsh_action(o.words, o.many)) if o.value else ""
    return quoted("%s--%s[%s]%s" % (many, o.name, zsh_text(o.help), value))


def zsh(p):
    out = ["#compdef PROGRAM", "# made from the table of options of PROGRAM", dynamic("zsh", p), "", "_PROGRAM() {",
           "    local curcontext=$curcontext state line", "    typeset -A opt_args", "    local -a commands", "    commands=("]
    out += ["        " + quoted("%s:%s" % (n, c.help.replace(":", "\\:"))) for c in p.commands for n in c.names]
    out += ["    )", "    _arguments -C \\"] + ["        %s \\" % zsh_option(o) for o in p.top()]
    out += ["        '1:command:->command' '*::argument:->argument'", "    case $state in",
            "    command) _describe -t commands command commands ;;", "    argument)", "        case $line[1] in"]
    for c in p.commands:
        options = [zsh_option(o) for o in c.options + p.common]
        options += [] if any(o.name == "help" for o in c.options) else ["'--help[print help]'"]
        out += ["        %s)" % " | ".join(c.names)]
        follow = {a: w for a, w in c.arguments.items() if a not in ("", "*")}
        rest = ["'1:argument:%s'" % zsh_action(c.arguments[""], False)] if "" in c.arguments else []
        rest += ["'*:argument:%s'" % zsh_action(c.arguments["*"], False)] if "*" in c.arguments else []
        if follow:
            out += ["            case $line[2] in"]
            for after, words in follow.items():
                out += ["            %s) _arguments %s '1:argument:(%s)' '*:argument:%s' ;;" % (
                    after, " ".join(options), after, zsh_action(words, False))]
            out += ["            *) _arguments %s ;;" % " ".join(options + rest), "            esac"]
        else:
            out += ["            _arguments %s" % " ".join(options + rest)]
        out += ["            ;;"]
    out += ["        esac", "        ;;", "    esac", "}", "", '_PROGRAM "$@"']
    return "\n".join(out)


# ---- fish ----

def fish_words(words):
    """Options of `complete` for a value or an argument of these words."""
    plain = [w for w in words if not w.startswith("@")]
    plain += ["(__PROGRAM_%s)" % w[1:] for w in words if w in ("@models", "@networks", "@platforms")]
    files = "@file" in words or "@folder" in words
    return ("-F" if files else "-f") + (" -a %s" % quoted(" ".join(plain)) if plain else "")


def fish_option(where, o):
    value = " -r " + fish_words(o.words) if o.value else ""
    return "complete -c PROGRAM %s-l %s%s -d %s" % ("-n %s " % where if where else "", o.name, value, quoted(o.help))


def fish(p):
    out = ["# fish completion of PROGRAM, made from its table of options", dynamic("fish", p), "",
           "set -l commands %s" % " ".join(p.names()), 'set -l none "not __fish_seen_subcommand_from $commands"',
           "", "complete -c PROGRAM -f"]
    out += [fish_option("", o) for o in p.top() if o.name != "version"]
    out += [fish_option("$none", o) for o in p.top() if o.name == "version"]
    out += ["complete -c PROGRAM -n $none -a %s -d %s" % (n, quoted(c.help)) for c in p.commands for n in c.names]
    for c in p.commands:
        seen = "__fish_seen_subcommand_from " + " ".join(c.names)
        out += [fish_option(quoted(seen), o) for o in c.options if o.name not in [t.name for t in p.top()]]
        for after, words in c.arguments.items():
            where = seen + ("; and __fish_seen_subcommand_from " + after if after not in ("", "*") else "")
            if after == "" and len(c.arguments) > 1:
                where += "; and not __fish_seen_subcommand_from " + " ".join(a for a in c.arguments if a)
            out += ["complete -c PROGRAM -n %s %s" % (quoted(where), fish_words(words))]
    return "\n".join(out)


def main():
    shell, table = sys.argv[1:3]
    p = Program(subprocess.run([table], capture_output=True, text=True, check=True).stdout)
    text = {"bash": bash, "zsh": zsh, "fish": fish}[shell](p).replace("PROGRAM", p.name)
    head, _, rest = text.partition("\n") if shell == "zsh" else ("", "", text)  # zsh wants #compdef first
    print((head + "\n" if head else "") + "# SPDX-License-Identifier: Apache-2.0\n" + rest)


if __name__ == "__main__":
    main()
