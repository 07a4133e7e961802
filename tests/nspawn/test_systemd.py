#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped under a real systemd: a container of this machine's own files, with an overlay that is thrown away.

usage: test_systemd.py SOURCE_ROOT BUILD_ROOT PREFIX SYSCONFDIR

systemd-nspawn boots the root file system under a volatile overlay (no packages are fetched, nothing is changed),
with what `meson install` puts below PREFIX bound over it; guest.py then runs as a unit in there and its cases are
counted here. Skipped without root, systemd-nspawn or what they need; a failure if PIPED_NSPAWN_REQUIRED is set.
"""
import os
import shutil
import subprocess
import sys
import tempfile

from nspawn import boot_command, check_tools, install, installed, skip

ROOT, BUILD, PREFIX, SYSCONFDIR = sys.argv[1:5]
LIMIT_S = 600
UNIT = """[Unit]
Description=Tests of piped under this systemd
Requires=basic.target
After=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -u /host/guest.py /host {prefix} {sysconfdir}
StandardOutput=file:/host/out
StandardError=file:/host/err
TimeoutStartSec={limit}
"""


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def boot(temp, dest):
    host = os.path.join(temp, "host")
    os.mkdir(host)
    for name in ("nspawn/guest.py", "wait.py"):
        shutil.copy(os.path.join(ROOT, "tests", name), host)
    for name in ("digits.onnx", "digits.sidecar.json", "heldout.pgm", "heldout.labels"):
        shutil.copy(os.path.join(ROOT, "model", "default", name), host)
    unit = os.path.join(temp, "piped-tests.service")
    with open(unit, "w", encoding="utf-8") as f:
        f.write(UNIT.format(prefix=PREFIX, sysconfdir=SYSCONFDIR, limit=LIMIT_S))
    root = os.path.join(temp, "root")
    os.mkdir(root)
    command = boot_command(root, "piped-%d" % os.getpid(), [
        "--bind=%s:/host" % host, *installed(dest, PREFIX, SYSCONFDIR), "--private-network",
        "--bind-ro=%s:/usr/lib/systemd/system/piped-tests.service" % unit], "piped-tests.service")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=LIMIT_S + 30)
        return host, done.stdout + done.stderr
    except subprocess.TimeoutExpired as e:
        return host, "no end in time\n%s" % (e.stderr or b"").decode(errors="replace")


def main():
    check_tools()
    with tempfile.TemporaryDirectory(prefix="piped-nspawn-") as temp:
        host, said = boot(temp, install(BUILD, temp))
        out, err = read(os.path.join(host, "out")), read(os.path.join(host, "err"))
        if not os.path.exists(os.path.join(host, "started")):
            skip("no systemd could be booted here: " + " ".join(said.split())[-300:])
    sys.stdout.write(out)
    if "cases: " not in out:
        print("FAIL guest: it ended without a result\n%s\n%s" % (err[-4000:], said[-2000:]))
        return 1
    counts = out.rsplit("cases: ", 1)[1]
    if ", 0 failed" not in counts:
        print(err[-8000:], file=sys.stderr)
        return 1
    return 0


sys.exit(main())
