# SPDX-License-Identifier: Apache-2.0
"""The project's files: those that git knows (or would take), or all outside build folders where there is no git."""
import os
import subprocess

NO_SOURCES = ("__pycache__", ".git")


def files(root):
    """Paths below root, sorted."""
    try:
        done = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                              capture_output=True, check=False)
        listed = done.stdout.decode() if done.returncode == 0 else ""
    except FileNotFoundError:
        listed = ""  # no git here
    if listed:
        names = listed.split("\0")
    else:
        names = []
        for folder, folders, found in os.walk(root):
            folders[:] = [f for f in folders if f not in NO_SOURCES and not f.startswith("build") and
                          not (folder == root and f == "models")]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in found]
    return sorted(n for n in names if n and os.path.isfile(os.path.join(root, n)))


def text(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as f:
        return f.read()


def is_text(root, name):
    with open(os.path.join(root, name), "rb") as f:
        return b"\0" not in f.read(8192)


def is_c(name):
    return name.endswith((".c", ".h"))
