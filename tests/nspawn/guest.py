# SPDX-License-Identifier: Apache-2.0
"""Runs as root in the container, as a unit of its systemd: checks of the installed service.

usage: guest.py HOST_DIR PREFIX SYSCONFDIR
Waiting is for a state, with a generous limit; a state is asked for again and again, since a container without
a message bus has nothing that would tell. The arm64 machine of tests/vm runs this too, with PIPED_TEST_SLOWDOWN set,
since it is emulated.
"""
import ctypes
import json
import os
import pwd
import select
import grp
import signal
import stat
import subprocess
import sys
import time
import traceback

from wait import LIMIT_S, RARELY_S, check, during, until

HOST, PREFIX, SYSCONFDIR = sys.argv[1:4]
PIPECTL = os.path.join(PREFIX, "bin", "pipectl")
SLOWDOWN = int(os.environ.get("PIPED_TEST_SLOWDOWN", "1"))
CONFIG_DIR = os.path.join(SYSCONFDIR, "piped", "piped.json.d")
MEMBER, OUTSIDER = "member", "outsider"
WATCHDOG_S = 3 * SLOWDOWN
STALLED_MS = 2000 * SLOWDOWN
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


def run(*command, user=None, expect=0, timeout=LIMIT_S):
    """Return: stdout. expect=None: CompletedProcess, whatever the exit code."""
    if user:
        entry = pwd.getpwnam(user)
        command = ("setpriv", "--reuid=%d" % entry.pw_uid, "--regid=%d" % entry.pw_gid, "--init-groups") + command
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout,
                          stdin=subprocess.DEVNULL)
    if expect is None:
        return done
    check(done.returncode == expect, " ".join(command), "exit", done.returncode, "\n", done.stdout, done.stderr)
    return done.stdout


def show(prop, unit="piped.service"):
    return run("systemctl", "show", "--value", "-p", prop, unit).strip()


def wait_for_frames(count):
    """Waits until clients have got this many answers. Nothing announces an answered frame, so it asks again and again."""
    until(lambda: pipectl("status")["models"][0]["frames"]["answered"] >= count, count, "frames\n", journal_text,
          pause=RARELY_S)


def wait_in_journal(what, condition):
    """Waits for what the daemon or systemd writes to the journal: asks after every line that the unit gets."""
    command = ["journalctl", "--follow", "--no-tail", "--output=cat", "--since=@%d" % time.time(), "-u", "piped.service"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as follow:
        def line(left_s):
            if select.select([follow.stdout], [], [], left_s)[0]:
                os.read(follow.stdout.fileno(), 65536)
        try:
            until(condition, what, "\n", journal_text, pause=line)
        finally:
            follow.kill()


def journal(**fields):
    out = run("journalctl", "-o", "json", "--no-pager", "-u", "piped.service",
              *("%s=%s" % f for f in fields.items()))
    return [json.loads(line) for line in out.splitlines()]


def journal_text():
    return run("journalctl", "--no-pager", "-n", "25", expect=None).stdout


def message_ids():
    """Name -> id, from the catalog's subjects in the order of daemon/service/log.h."""
    return {"started": "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c01", "model_loaded": "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c03",
            "reload_failed": "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0a", "plan_changed": "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c06"}


def pipectl(*arguments, user=None, expect=0):
    out = run(PIPECTL, "--json", *arguments, user=user, expect=expect)
    return json.loads(out) if expect == 0 and out.strip() else out


def write_config(name, value):
    os.makedirs(CONFIG_DIR, exist_ok=True)
    with open(os.path.join(CONFIG_DIR, name), "w", encoding="utf-8") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))


def main_pid():
    return int(show("MainPID"))


def set_up():
    open(os.path.join(HOST, "started"), "w", encoding="utf-8").close()
    run("systemd-sysusers")
    run("systemd-tmpfiles", "--create", os.path.join(PREFIX, "lib/tmpfiles.d/piped.conf"))
    run("journalctl", "--update-catalog")
    run("useradd", "--no-create-home", "--groups", "piped-clients", MEMBER)
    run("useradd", "--no-create-home", OUTSIDER)
    os.makedirs("/var/lib/piped/models", exist_ok=True)
    for name in ("digits.onnx", "digits.sidecar.json"):
        with open(os.path.join(HOST, name), "rb") as f, open("/var/lib/piped/models/" + name, "wb") as g:
            g.write(f.read())
        os.chmod("/var/lib/piped/models/" + name, 0o644)
    write_config("50-tests.json", {"stalled_ms": STALLED_MS,
                                   "models": [{"name": "digits", "path": "/var/lib/piped/models/digits.onnx"}]})
    # The images, for infer: 75 bytes each.
    os.mkdir("/tmp/heldout")
    with open(os.path.join(HOST, "heldout.pgm"), "rb") as f:
        for i, image in enumerate(iter(lambda: f.read(75), b"")):
            with open("/tmp/heldout/%04d.pgm" % i, "wb") as g:
                g.write(image)
    os.chmod("/tmp/heldout", 0o755)
    os.makedirs("/run/systemd/system/piped.service.d", exist_ok=True)
    with open("/run/systemd/system/piped.service.d/tests.conf", "w", encoding="utf-8") as f:
        f.write("[Service]\nWatchdogSec=%d\n" % WATCHDOG_S)
    run("systemctl", "daemon-reload")


def users_and_folders_exist():
    check(pwd.getpwnam("piped").pw_uid < 1000, "piped is no system user")
    check(MEMBER in grp.getgrnam("piped-clients").gr_mem, "the client is not in piped-clients")
    check(stat.S_IMODE(os.stat("/var/lib/piped/models").st_mode) == 0o755, "/var/lib/piped/models")


def check_sockets():
    for name in ("frames", "control"):
        st = os.stat("/run/piped/%s.sock" % name)
        check(stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o660, name, oct(st.st_mode))
        check(grp.getgrgid(st.st_gid).gr_name == "piped-clients", name, "belongs to group", st.st_gid)


def sockets_listen_before_the_service():
    run("systemctl", "start", "piped.socket", "piped-control.socket")
    check(show("ActiveState") == "inactive", "the service runs already")
    check_sockets()


def a_client_starts_the_service():
    status = pipectl("--timeout", str(5 * SLOWDOWN), "status", user=MEMBER)
    check(status["state"] == "serving", status)
    check(show("ActiveState") == "active" and show("SubState") == "running", "not active")
    check(show("StatusText"), "no STATUS= was sent")


def sockets_keep_their_group():
    """RuntimeDirectory= in the service would give them to the daemon's own group."""
    check_sockets()


def strangers_are_refused():
    done = run(PIPECTL, "status", user=OUTSIDER, expect=None)
    check(done.returncode == 3, "exit", done.returncode, done.stderr)


def clients_may_not_change_plans():
    plan = run(PIPECTL, "plan", "show", user=MEMBER).split("\n")[0]
    done = run(PIPECTL, "plan", "set", plan, user=MEMBER, expect=None)
    check(done.returncode == 1 and "denied" in done.stderr.lower(), done.returncode, done.stderr)
    status = pipectl("status")
    pipectl("plan", "set", "0-%d@%s" % (status["models"][0]["units"] - 1, status["eps"][0]["name"]))
    check(len(pipectl("status")["models"][0]["stages"]) == 1, "root may not change the plan")
    pipectl("plan", "set", plan)


def images_are_answered():
    answers = pipectl("infer", "--expect", os.path.join(HOST, "heldout.labels"), "/tmp/heldout", user=MEMBER)
    check(answers["accuracy"] >= 0.97, "accuracy", answers["accuracy"])


def threads_are_pinned():
    """The sandbox leaves sched_setaffinity() alone."""
    cores = set()
    tasks = "/proc/%d/task" % main_pid()
    for task in os.listdir(tasks):
        with open(os.path.join(tasks, task, "status"), encoding="utf-8") as f:
            allowed = [line.split()[1] for line in f if line.startswith("Cpus_allowed_list:")][0]
        if allowed.isdigit():
            cores.add(int(allowed))
    stages = pipectl("status")["models"][0]["stages"]
    wanted = {cpu for s in stages for cpu in s["cpus"]}
    if os.cpu_count() == 1:
        return "one core: nothing to pin"
    check(cores == wanted, "pinned to", cores, "planned", wanted)
    return None


def journal_has_fields():
    loaded = journal(MESSAGE_ID=message_ids()["model_loaded"])
    check(loaded and loaded[0]["PIPED_MODEL"] == "digits", loaded)
    check(journal(MESSAGE_ID=message_ids()["started"]), "no message says that it started\n", journal_text())
    check(journal(MESSAGE_ID=message_ids()["plan_changed"], PIPED_MODEL="digits"), "no plan change in the journal")
    explained = run("journalctl", "-x", "--no-pager", "-u", "piped.service", "-o", "short")
    check("Model digits is loaded" in explained, "the catalog does not explain\n", explained[-2000:])


def reload_is_synchronous():
    write_config("60-tests.json", {"log_level": "debug"})
    run("systemctl", "reload", "piped.service")
    level = [row for row in pipectl("config") if row.get("key") == "log_level"]
    check(level and level[0]["value"] == "debug", level)


def a_bad_reload_changes_nothing():
    pid = main_pid()
    write_config("60-tests.json", '{"log_level": "loud"}')
    done = run("systemctl", "reload", "piped.service", expect=None)
    check(done.returncode != 0, "systemctl reload succeeded")
    check(show("ActiveState") == "active" and main_pid() == pid, "the service did not go on")
    check(journal(MESSAGE_ID=message_ids()["reload_failed"]), "the journal does not say why\n", journal_text())
    check(pipectl("status")["state"] == "serving", "not serving")
    os.unlink(os.path.join(CONFIG_DIR, "60-tests.json"))
    run("systemctl", "reload", "piped.service")


def bench_during(action):
    """Frames of a client while `action` happens to the service; every one must be answered once, in order."""
    entry = pwd.getpwnam(MEMBER)
    bench = subprocess.Popen(
        ["setpriv", "--reuid=%d" % entry.pw_uid, "--regid=%d" % entry.pw_gid, "--init-groups", PIPECTL, "--json",
         "bench", "--seconds", str(4 * SLOWDOWN), "--rate", str(200 // SLOWDOWN), "--verify", "--reconnect", "30"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    try:
        before = pipectl("status")["models"][0]["frames"]["answered"]
        wait_for_frames(before + 51)
        action()
        out, err = bench.communicate(timeout=LIMIT_S)
    finally:
        if bench.poll() is None:
            bench.kill()
            bench.wait()
    check(bench.returncode == 0, "bench ended with", bench.returncode, out, err, journal_text())
    result = json.loads(out)
    check(result["answered"] == result["sent"] and result["sent"] > 100, result)
    for key in ("lost", "reordered", "duplicated", "wrong"):
        check(result[key] == 0, key, result)
    print("   the client's longest pause: %.0f ms" % result["pause_ms"])


def a_restart_loses_nothing():
    bench_during(lambda: run("systemctl", "restart", "piped.service"))
    check_sockets()


def a_crash_is_restarted():
    restarts = int(show("NRestarts"))
    pid = main_pid()
    bench_during(lambda: os.kill(pid, signal.SIGKILL))
    check(int(show("NRestarts")) == restarts + 1, "restarts:", show("NRestarts"))
    check(main_pid() != pid, "the same process")


def the_watchdog_bites():
    pid, restarts = main_pid(), int(show("NRestarts"))
    os.kill(pid, signal.SIGSTOP)
    wait_in_journal("the watchdog", lambda: int(show("NRestarts")) > restarts and show("ActiveState") == "active")
    check(main_pid() != pid, "the same process")
    check(any("watchdog" in e.get("MESSAGE", "").lower() for e in journal_of_manager()), "no word of the watchdog")
    check(pipectl("status")["state"] == "serving", "not serving")


def team_threads():
    """Threads of the daemon that compute: those that are pinned to one core."""
    tasks, found = "/proc/%d/task" % main_pid(), []
    for task in sorted(os.listdir(tasks), key=int):
        with open(os.path.join(tasks, task, "status"), encoding="utf-8") as f:
            allowed = [line.split()[1] for line in f if line.startswith("Cpus_allowed_list:")][0]
        if allowed.isdigit():
            found.append(int(task))
    return found


def hang(thread):
    """Forks a process that holds one thread of another process still, and no other thread, until that process ends."""
    holder = os.fork()
    if holder == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        held = libc.ptrace(PTRACE_SEIZE, thread, None, None) == 0 and \
            libc.ptrace(PTRACE_INTERRUPT, thread, None, None) == 0
        if not held:
            os._exit(ctypes.get_errno())
        try:
            while True:
                os.waitpid(thread, WALL)  # it stops, and at last it ends
        except ChildProcessError:
            os._exit(0)
    return holder


def a_stage_that_hangs_is_noticed():
    """The loop goes on and would feed the watchdog; that a stage does not is what counts."""
    threads = team_threads()
    if not threads:
        return "no thread is pinned here"
    pid, restarts = main_pid(), int(show("NRestarts"))
    bench = subprocess.Popen([PIPECTL, "bench", "--seconds", str(LIMIT_S), "--reconnect", "30"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    holder = hang(threads[-1])
    try:
        done, code = os.waitpid(holder, os.WNOHANG)
        check(done == 0 or code == 0, "the thread cannot be held:", os.strerror(os.waitstatus_to_exitcode(code)))
        wait_in_journal("word of the stage", lambda: any("a stage made no progress" in e.get("MESSAGE", "") for e in journal()))
        wait_in_journal("the watchdog", lambda: int(show("NRestarts")) > restarts and show("ActiveState") == "active")
        if done == 0:
            os.waitpid(holder, 0)
        check(main_pid() != pid, "the same process")
        before = pipectl("status")["models"][0]["frames"]["answered"]
        wait_for_frames(before + 1)
    finally:
        bench.kill()
        bench.wait()
    return None


def journal_of_manager():
    out = run("journalctl", "-o", "json", "--no-pager", "_PID=1")
    return [e for e in map(json.loads, out.splitlines()) if isinstance(e.get("MESSAGE"), str)]


def a_fed_watchdog_does_not_bite():
    pid = main_pid()
    for _ in during(WATCHDOG_S + 1):
        pipectl("bench", "--frames", "20")
    check(main_pid() == pid, "the service was restarted")


def a_stop_is_clean():
    run("systemctl", "stop", "piped.service")
    check(show("Result") == "success" and show("ExecMainStatus") == "0", show("Result"), show("ExecMainStatus"))
    check(show("ActiveState", "piped.socket") == "active", "the socket is gone")
    check_sockets()
    check(pipectl("status", user=MEMBER)["state"] == "serving", "the next client did not start it")


def a_bad_configuration_leaves_the_sockets():
    """One typo, a restart, and clients of both sockets: each is told why, and the first after the mending starts it."""
    run("systemctl", "stop", "piped.service")
    write_config("60-tests.json", '{"log_level": "loud"}')
    bad = "60-tests.json:1: log_level: "
    done = run("systemctl", "restart", "piped.service", expect=None)
    check(done.returncode != 0, "it started")
    check(show("ExecMainStatus") == "78", "exit", show("ExecMainStatus"))
    check(show("ActiveState") == "failed", show("ActiveState"))
    check(bad in show("StatusText"), show("StatusText"))
    for client in range(3):
        done = run(PIPECTL, "status", user=MEMBER, expect=None)
        check(done.returncode == 3 and "failed to start" in done.stderr and bad in done.stderr, client, done.stderr)
        check_sockets()
    done = run(PIPECTL, "bench", "--frames", "1", user=MEMBER, expect=None)
    check(done.returncode == 3 and "failed to start: " in done.stderr and bad in done.stderr, done.stderr)
    check("overloaded" not in done.stderr, "a wrong hint", done.stderr)
    for unit in ("piped.socket", "piped-control.socket"):
        check(show("ActiveState", unit) == "active", unit, show("Result", unit), journal_text())
    os.unlink(os.path.join(CONFIG_DIR, "60-tests.json"))
    check(pipectl("status", user=MEMBER)["state"] == "serving", "the first client did not start it", journal_text())


def sockets_that_failed_are_told():
    """A loop of crashes ends at the unit's limit of starts, and the sockets with it: pipectl says what brings them back."""
    run("systemctl", "stop", "piped.service")
    folder = "/run/systemd/system/piped.service.d"
    with open(os.path.join(folder, "crash.conf"), "w", encoding="utf-8") as f:
        f.write("[Unit]\nStartLimitBurst=3\n[Service]\nExecStart=\nExecStart=/bin/sh -c 'kill -SEGV $$$$'\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "piped.service", expect=None)
    done = run(PIPECTL, "bench", "--frames", "1", expect=None)
    check(done.returncode == 3 and "systemd says: the service failed" in done.stderr, done.stderr)
    until(lambda: show("ActiveState", "piped-control.socket") != "active", "an end of the sockets",
          pause=lambda left_s: run(PIPECTL, "--timeout", "1", "status", expect=None))
    said = run(PIPECTL, "status", expect=None).stderr
    check("systemd says: the service failed" in said and "\npipectl: then sudo systemctl reset-failed" in said, said)
    with open(os.path.join(folder, "crash.conf"), "w", encoding="utf-8") as f:
        f.write("[Unit]\nStartLimitBurst=10000\n[Service]\nExecStart=\nExecStart=/bin/false\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "reset-failed", "piped.service", "piped.socket", "piped-control.socket")
    run("systemctl", "start", "piped.socket", "piped-control.socket")
    said = run(PIPECTL, "--timeout", str(SLOWDOWN), "status", expect=None).stderr
    check("systemd says: the service failed and starts again, restart " in said and "SIGSTOP" not in said, said)
    os.unlink(os.path.join(folder, "crash.conf"))
    run("systemctl", "daemon-reload")
    # a start that a client has asked for, or that follows a crash, cancels it
    until(lambda: run("systemctl", "stop", "piped.service", "piped.socket", "piped-control.socket", expect=None).returncode == 0,
          "a stop", pause=RARELY_S)
    run("systemctl", "reset-failed", "piped.service", "piped.socket", "piped-control.socket", expect=None)  # or forgotten
    run("systemctl", "start", "piped.socket", "piped-control.socket")
    check(pipectl("status")["state"] == "serving", "not serving")


CASES = (users_and_folders_exist, sockets_listen_before_the_service, a_client_starts_the_service,
         sockets_keep_their_group, strangers_are_refused, clients_may_not_change_plans, images_are_answered,
         threads_are_pinned, journal_has_fields, reload_is_synchronous, a_bad_reload_changes_nothing,
         a_fed_watchdog_does_not_bite, a_restart_loses_nothing, a_crash_is_restarted, the_watchdog_bites,
         a_stage_that_hangs_is_noticed,
         a_stop_is_clean, a_bad_configuration_leaves_the_sockets, sockets_that_failed_are_told)


def main():
    passed = failed = skipped = 0
    set_up()
    for case in CASES:
        try:
            reason = case()
        except Exception as e:  # each case reports on its own
            traceback.print_exc()
            print("FAIL %s: %s" % (case.__name__, e), flush=True)
            failed += 1
            continue
        print("%s %s%s" % (("SKIP", case.__name__, ": " + reason) if reason else ("ok", case.__name__, "")))
        passed, skipped = passed + (not reason), skipped + bool(reason)
    if failed:
        print(journal_text(), file=sys.stderr)
    print("cases: %d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
    sys.exit(1 if failed else 0)


main()
