# SPDX-License-Identifier: Apache-2.0
"""Runs bench/boards/autodice.c on the boards of a fleet: each rank in its board's namespace and control group."""
import json
import os
import shutil
import subprocess

# TCP alone, although all ranks see one memory.
OPTIONS = ["--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", "eth0", "--mca",
           "oob_tcp_if_include", "eth0"]
AGENT = """#!/bin/sh
# mpirun calls this as it would call ssh: a board's name, then a command.
board=$1
shift
. "{folder}/$board/mpi.env"
for group in $groups; do
    echo $$ >"$group/cgroup.procs" || exit 1
done
export PIPED_RUNTIME_DIR
exec nsenter --net="$net" --uts="$uts" ${{cpus:+taskset -c $cpus}} sh -c "$*"
"""


def reason(program):
    """Return: why it cannot run here; None: it can."""
    if not shutil.which("mpirun"):
        return "there is no mpirun; etc/install-deps mpi"
    return None if os.path.exists(program) else "not built: %s; etc/install-deps mpi, then build again" % program


def write_agent(fleet):
    """Return: its path."""
    for board in fleet.boards.values():
        space = fleet.network.spaces[board.name]
        cpus = ",".join(map(str, sorted(fleet.cpus(board.name)))) if fleet.cpus else ""
        with open(os.path.join(board.folder, "mpi.env"), "w", encoding="utf-8") as f:
            f.write("net=%s\nuts=/proc/%d/ns/uts\ngroups='%s'\ncpus=%s\nPIPED_RUNTIME_DIR=%s\n" % (
                space.path, space.holder.pid, " ".join(board.group.folders) if board.group else "", cpus, board.runtime))
    path = os.path.join(fleet.folder, "agent")
    with open(path, "w", encoding="utf-8") as f:
        f.write(AGENT.format(folder=fleet.folder))
    os.chmod(path, 0o755)
    return path


def run(fleet, program, model, path, mapping, frames, *flags):
    """@mapping: [(first, last, board)]. Loads the segments, runs, unloads them. Return: what rank 0 says, as a dict."""
    agent = write_agent(fleet)
    names = ["%s#%d-%d" % (model, first, last) for first, last, _ in mapping]
    for name, (_, _, board) in zip(names, mapping):
        fleet[board].pipectl("models", "load", name, path)
    try:
        done = subprocess.run(
            [agent, mapping[0][2], "exec", "mpirun", "--allow-run-as-root", "--bind-to", "none", *OPTIONS, "--mca",
             "plm_rsh_agent", agent, "--host", ",".join(b for _, _, b in mapping), "-n", str(len(mapping)), program,
             model, ",".join("%d-%d" % (a, b) for a, b, _ in mapping), str(frames), *flags],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600)
    finally:
        for name, (_, _, board) in zip(names, mapping):
            fleet[board].pipectl("models", "unload", name)
    if done.returncode != 0:
        raise RuntimeError("autodice: %s%s" % (done.stdout, done.stderr))
    return json.loads(done.stdout)
