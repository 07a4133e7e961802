# SPDX-License-Identifier: Apache-2.0
"""What a machine, container or chroot lets tests do: found out once, at the start of tests/run, and named in each skip.

    @needs("other users", "own mounts")
    def a_case():

tests/run asks for everything and hands the answers to its tests in the environment (announce()); a test that is started
by hand asks for what it needs.
"""
import contextlib
import functools
import json
import os
import shutil
import subprocess

VARIABLE = "PIPED_TEST_LACKS"  # JSON: {what: why not, or null}


def tried(*command):
    """Return: why the command does not succeed; None: it does."""
    if shutil.which(command[0]) is None:
        return "%s is not installed" % command[0]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else said[-1] if said else "%s failed" % command[0]


def as_user(uid, *command, gid=None, groups=()):
    """Return: a command that runs this one as that user, in a group of its number and in no other, or in these."""
    more = "--groups=" + ",".join(map(str, groups)) if groups else "--clear-groups"
    return ["setpriv", "--reuid=%d" % uid, "--regid=%d" % (uid if gid is None else gid), more, *command]


def no_root():
    return None if os.geteuid() == 0 else "this needs root"


def no_terminal():
    import pty
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError as e:
        return str(e)
    return None


PROBES = {
    "rights of root": no_root,
    "other users": lambda: no_root() or tried(*as_user(65534, "true")),
    # In a chroot the root is no mount point, so that what is mounted there cannot be kept from the rest of the machine.
    "own mounts": lambda: no_root() or tried("unshare", "--mount", "true"),
    "own network": lambda: no_root() or tried("unshare", "--net", "--uts", "true"),
    "user namespaces": lambda: tried("unshare", "--user", "true"),
    "pseudo-terminals": no_terminal,
    "real-time priority": lambda: no_root() or tried("chrt", "--fifo", "1", "true"),
    "second core": lambda: None if len(os.sched_getaffinity(0)) > 1 else "there is one core",
}


@functools.lru_cache(maxsize=None)
def lack(what):
    """Return: why there is no such thing here; None: there is."""
    with contextlib.suppress(KeyError, ValueError):
        return json.loads(os.environ[VARIABLE])[what]
    return PROBES[what]()


def lacking(*needs):
    """Return: a reason to skip what needs all these (keys of PROBES); None: nothing is lacking."""
    for what in needs:
        why = lack(what)
        if why:
            return "no %s here: %s" % (what, why)
    return None


def needs(*what):
    """A case that is skipped where something is lacking."""
    def around(case):
        @functools.wraps(case)
        def run(*arguments):
            return lacking(*what) or case(*arguments)
        return run
    return around


def announce():
    """Asks for everything. Return: the variable of the environment for tests, what is lacking as [(what, why)]."""
    found = {what: probe() for what, probe in PROBES.items()}
    return {VARIABLE: json.dumps(found)}, [(what, why) for what, why in found.items() if why]
