#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes in etc/yocto and etc/buildroot name what the build has: its options and their values, what it needs, the files
that it installs, its users, its version. GNU make reads the Buildroot package. Neither BitBake nor Buildroot runs here.

test_recipes.py SOURCE BUILD
"""
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

from cases import check, main, none

ROOT, BUILD = sys.argv[1:3]
YOCTO = "etc/yocto/recipes-piped/piped/piped_%s.bb"
BUILDROOT = "etc/buildroot/package/piped/piped.mk"
# What a dependency of meson.build is called there. None: part of the toolchain.
NAMES = {
    "m": None, "threads": None, "jansson": "jansson", "libprotobuf-c": "protobuf-c", "libsodium": "libsodium",
    "openblas": "openblas", "pthreadpool": "pthreadpool", "libuv": "libuv",
}


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def version():
    return re.search(r"^ *version: '([^']+)'", read("meson.build"), re.M).group(1)


def recipe():
    """The Yocto recipe's variables with what is appended, continued lines joined; flags as NAME[FLAG]."""
    text = re.sub(r"\\\n\s*", " ", read(YOCTO % version()))
    values = {}
    for name, value in re.findall(r'^([\w:${}.-]+(?:\[\w+\])?) *(?:\?\?=|\?=|\+=|:=|=\+|=) *"([^"\n]*)"', text, re.M):
        values[name] = " ".join((values.get(name, ""), value)).strip()
    return values


def package():
    """The Buildroot package as one text, continued lines joined."""
    return re.sub(r"\\\n\s*", " ", read(BUILDROOT))


def options():
    """Name -> (type, choices) of the project's options."""
    found = {}
    for name, rest in re.findall(r"^option\('(\w+)', (.*)$", read("meson_options.txt"), re.M):
        choices = re.search(r"choices: \[([^]]*)\]", rest)
        found[name] = (re.search(r"type: '(\w+)'", rest).group(1), re.findall(r"'([^']*)'", choices.group(1)) if choices else [])
    return found


def given(text):
    return re.findall(r"-D(\w+)=([^\s,\"']*)", text)


def wrong(text):
    """Options in the text that the build does not have, or not with this value."""
    have, bad = options(), []
    for name, value in given(text):
        kind, choices = have.get(name, (None, []))
        right = {"feature": ("enabled", "disabled", "auto"), "boolean": ("true", "false"), "combo": choices}.get(kind)
        if kind is None or (right is not None and value not in right):
            bad.append("-D%s=%s" % (name, value))
    return bad


def options_are_those_of_the_build():
    yocto, buildroot = read(YOCTO % version()), package()
    none(wrong(yocto) + wrong(buildroot), "options that the build does not have")
    features = {n for n, (kind, _) in options().items() if kind == "feature"}
    for where, text in ((YOCTO, yocto), (BUILDROOT, buildroot)):
        none(sorted(features - {n for n, _ in given(text)}), "features that %s leaves to chance" % where)
        check(("profile", "board") in given(text), where, "is not of profile board")


def needed():
    """What meson.build needs in every build."""
    text = read("meson.build")
    found = re.findall(r"^dep_\w+ = (?:dependency|cc\.find_library)\('([^']+)'\)$", text, re.M)
    check(len(found) >= 8, "meson.build is written otherwise now", found)
    return found


def what_is_needed_is_depended_on():
    bb, mk = recipe()["DEPENDS"].split(), re.search(r"PIPED_DEPENDENCIES = (.*)", package()).group(1).split()
    config = read("etc/buildroot/package/piped/Config.in")
    missing = []
    for name in needed():
        check(name in NAMES, "meson.build needs", name, "; say in NAMES what the recipes call it, and add it there")
        own = NAMES[name]
        if own:
            missing += ["DEPENDS " + own] * (own not in bb) + ["PIPED_DEPENDENCIES " + own] * (own not in mk)
            symbol = "BR2_PACKAGE_" + own.upper().replace("-", "_")
            missing += ["select " + symbol] * ("select %s\n" % symbol not in config)
    # a program that runs while building, and the schema of ONNX
    missing += [n for n in ("protobuf-c-native", "onnx-proto", "systemd") if n not in bb]
    missing += [n for n in ("host-protobuf-c", "onnx-proto", "systemd") if n not in mk]
    none(missing, "dependencies that the recipes lack")
    mine = {os.path.basename(f) for f in os.listdir(os.path.join(ROOT, "etc/buildroot/package"))}
    sourced = set(re.findall(r"package/([\w-]+)/Config\.in", read("etc/buildroot/Config.in")))
    check(mine == sourced, "Config.in sources", sourced, "of", mine)


def installed():
    """The paths that the build installs, below /usr, as the recipe's variables write them."""
    r = subprocess.run(["meson", "introspect", "--installed", BUILD], capture_output=True, text=True, check=True)
    options = {o["name"]: o["value"] for o in json.loads(subprocess.run(
        ["meson", "introspect", "--buildoptions", BUILD], capture_output=True, text=True, check=True).stdout)}
    prefix, libdir = options["prefix"], os.path.join(options["prefix"], options["libdir"])
    return {re.sub("^/(lib/systemd|etc)/", r"/usr/\1/", p.replace(prefix, "/usr", 1)) for p in
            (v.replace(libdir + "/", prefix + "/lib/", 1) for v in json.loads(r.stdout).values())}


VARIABLES = {"bindir": "/usr/bin", "libdir": "/usr/lib", "nonarch_libdir": "/usr/lib", "datadir": "/usr/share",
             "sysconfdir": "/usr/etc", "includedir": "/usr/include", "systemd_system_unitdir": "/usr/lib/systemd/system"}


def expand(pattern):
    return re.sub(r"\$\{(\w+)\}", lambda m: VARIABLES.get(m.group(1), m.group(0)), pattern)


def every_file_of_a_package_is_installed():
    have, bb = installed(), recipe()
    # What this build leaves out for want of a library is not looked for.
    absent = {"http": "piped-http", "link": "piped-link"}
    absent = [v for v in absent.values() if not any(p.endswith("/bin/" + v) for p in have)]
    missing, named = [], []
    for name, value in bb.items():
        if name.startswith("FILES:"):
            named += [expand(p) for p in value.split()]
    for p in named:
        if not any(fnmatch.fnmatch(h, p) or h.startswith(p + "/") for h in have) and not any(a in p for a in absent):
            missing.append(p)
    none(missing, "paths in FILES that the build does not install")
    # programs and units that no package would have
    loose = [h for h in have if ("/bin/" in h or "/systemd/" in h or "/sysusers.d/" in h or "/tmpfiles.d/" in h or
                                 "/etc/" in h) and not any(fnmatch.fnmatch(h, p) for p in named)]
    none(sorted(loose), "installed files that no package in the recipe has")
    none([c for c in bb["CONFFILES:${PN}"].split() if expand(c) not in have], "CONFFILES that are not installed")


def units_and_users_are_those_of_systemd():
    bb, mk = recipe(), read(BUILDROOT)
    units = {u.replace(".in", "") for u in os.listdir(os.path.join(ROOT, "systemd"))
             if u.endswith((".socket", ".service.in"))}
    listed = {u for n, v in bb.items() if n.startswith("SYSTEMD_SERVICE:") for u in v.split()}
    check(listed == units, "the recipe has", sorted(listed), "and systemd/", sorted(units))
    for name in ("piped", "piped-link", "piped-http"):
        lines = read("systemd/%s.sysusers.conf" % name)
        groups = set(re.findall(r"^m %s (\S+)" % name, lines, re.M))
        home = re.search(r'^u %s - "[^"]*" (\S+)' % name, lines, re.M).group(1)
        row = re.search(r"\b%s -1 %s -1 \* (\S+) - (\S+)" % (name, name), mk)
        check(row and row.group(1) == home and set(row.group(2).split(",")) == groups, "PIPED_USERS", name, home, groups)
        params = bb["USERADD_PARAM:${PN}" + name[len("piped"):]]
        check(params.endswith(" " + name) and set(re.search(r"--groups (\S+)", params).group(1).split(",")) == groups, params)


def versions_and_licence_agree():
    bb, mk = recipe(), read(BUILDROOT)
    check(re.search(r"^PIPED_VERSION = %s$" % re.escape(version()), mk, re.M), "PIPED_VERSION is not", version())
    check("--prefix=piped-%s/" % version() in read(YOCTO % version()), "the comment on git archive names another version")
    with open(os.path.join(ROOT, "LICENSE"), "rb") as f:
        md5 = hashlib.md5(f.read()).hexdigest()
    check("md5=" + md5 in bb["LIC_FILES_CHKSUM"], "LICENSE has the md5", md5)


def the_package_is_make():
    if not shutil.which("make"):
        return "make is not installed"
    shown = "PIPED_DEPENDENCIES PIPED_CONF_OPTS PIPED_USERS PIPED_SITE"
    for chosen, words in (("", ("-Djpeg=disabled", "-Dzmq=disabled")),
                          ("BR2_PACKAGE_JPEG=y BR2_PACKAGE_PIPED_LINK=y BR2_PACKAGE_PIPED_HTTP=y BR2_PACKAGE_LIBGPIOD=y",
                           ("-Djpeg=enabled", "-Dzmq=enabled", "-Dhttp=enabled", "-Dgpio=enabled", "piped-link -1", "zeromq",
                            "gnutls"))):
        text = "BR2_EXTERNAL_PIPED_PATH = %s/etc/buildroot\nmeson-package =\ngeneric-package =\n%s\ninclude %s\n" % (
            ROOT, chosen.replace(" ", "\n"), "$(BR2_EXTERNAL_PIPED_PATH)/external.mk")
        text += "all:\n" + "".join("\t$(info $(%s))\n" % n for n in shown.split()) + "\t@:\n"
        r = subprocess.run(["make", "-f", "-", "--warn-undefined-variables", "all"], input=text, capture_output=True,
                           text=True, check=False)
        check(r.returncode == 0, r.stderr)
        none([w for w in words if w not in r.stdout], "missing of what make reads with '%s'" % chosen)
        none([w for w in set(given(r.stdout)) if list(dict(given(r.stdout))).count(w[0]) != 1], "options given twice")


main((options_are_those_of_the_build, what_is_needed_is_depended_on, every_file_of_a_package_is_installed,
      units_and_users_are_those_of_systemd, versions_and_licence_agree, the_package_is_make))
