#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Too few threads or too little memory: a start or a call is refused with the reason, and what serves goes on."""
import errno
import os
import resource
import sys
import tempfile

from faults import ARMED_FROM_MAIN, FROM, LIBRARY, Fault, FaultyDaemon
import scenarios
import tiny_onnx
from daemon import DIGITS, SANITIZER_WORDS, Daemon, Failure, VarlinkError, check, equal, main

NO_THREADS = Fault("thread", errno.EAGAIN)
ENDS = (1, 78)
LOADER_FAILED = 127  # not even the libraries fit
FOLDER = tempfile.TemporaryDirectory(prefix="piped-scarce-")
MIB = 1 << 20


def network(name, layers, **options):
    path = os.path.join(FOLDER.name, name + ".onnx")
    tiny_onnx.write(path, layers, **options)
    return path


def ended_or_serves(d, *allowed):
    """Return: whether it serves. If it does not, it has ended by itself and said why."""
    d.start(wait=False)
    try:
        d.wait_notify(lambda m: m.get("READY") == "1", scenarios.LIMIT_S)
        return True
    except Failure:
        check(d.process and d.process.poll() is not None, "it neither serves nor ends\n" + d.log())
    check(d.process.returncode in ENDS + allowed, "exit code", d.process.returncode, d.log())
    check(d.log().strip(), "it ended without a word")
    return False


def a_start_without_threads_says_so():
    """Whichever thread is the first that cannot be made."""
    for nth in range(1, 64):
        d = FaultyDaemon(models={"digits": DIGITS}, expect_exit=None)
        d.faults.arm(NO_THREADS, nth, FROM, ARMED_FROM_MAIN)
        try:
            serves = ended_or_serves(d)
            failed = d.faults.disarm()[1]
            if nth <= 4:
                check(not serves and "work threads" in d.log() and "TasksMax=" in d.log(), d.log())
            if serves:
                scenarios.ask(d, ("Status", {}))
                d.stop()
            for word in SANITIZER_WORDS:
                check(word not in d.log(), d.log())
        finally:
            d.cleanup()
        if not failed:
            return
    raise Failure("a start makes more than 64 threads")


def what_needs_threads_is_refused():
    """The first load, the first other plan: the plan that serves goes on, and later both work."""
    with FaultyDaemon(models={"digits": DIGITS}) as d:
        ep, last = d.status()["eps"][0]["name"], d.status()["models"][0]["units"] - 1
        s = scenarios.stream(d)
        wanted = s.infer(scenarios.picture(1)).output
        before = d.call("GetPlan")
        calls = [("Load", {"name": "two", "path": DIGITS}),
                 ("SetPlan", {"plan": "0-0@%sx1|1-%d@%sx1" % (ep, last, ep)})]
        for method, parameters in calls:
            d.faults.arm(NO_THREADS, 1, FROM, strict=True)
            try:
                d.call(method, parameters)
                raise Failure(method + " went well without threads")
            except VarlinkError as e:
                check(e.error.endswith(("LoadFailed", "InvalidPlan", "Busy")) and e.parameters["why"], e)
            check(d.faults.disarm()[1] > 0, "no thread was asked for")
            equal(s.infer(scenarios.picture(1)).output, wanted)
            equal(d.call("GetPlan")["plan"], before["plan"])
        for method, parameters in calls:
            d.call(method, parameters)
        scenarios.end(s)


def more_descriptors_need_no_memory_of_libuv():
    """Its array of watchers has room for all that the limit allows; if it could not grow, libuv would abort."""
    limits = {"connections_per_user": 200, "connections": 200}
    with FaultyDaemon(models={"digits": DIGITS}, config={"limits": limits}) as d:
        s = scenarios.stream(d)
        wanted = s.infer(scenarios.picture(1)).output
        d.faults.arm(Fault("malloc", errno.ENOMEM), 1, FROM, libuv=True)
        crowd = [scenarios.pc.Connection(d.frames_path) for _ in range(140)]
        crowd += [d.connect() for _ in range(8)]
        for v in crowd[140:]:
            v.call("io.piped.Status")
        equal(s.infer(scenarios.picture(1)).output, wanted)
        equal(d.faults.disarm()[1], 0, "calls that failed")
        for c in crowd:
            c.close()
        scenarios.end(s)


def limited(mib):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))
    return limit


def little_memory_ends_with_an_error():
    """Libraries that crash or hang where memory cannot be had are not asked then: oneDNN, OpenBLAS. What is measured
    runs every primitive of every library."""
    if os.environ.get("PIPED_TEST_SANITIZER"):
        return "a sanitizer takes more address space than there is"
    layers = [("conv", 32, 3), ("relu",), ("conv", 64, 1), ("relu",), ("pool",), ("depthwise", 3), ("linear", 10)]
    path = network("measured", layers, channels=16, size=24)
    served = 0
    for mib in range(110, 800, 30):
        d = Daemon(models={"m": path}, config={"kernels": {"measure_ms": 100}}, preexec=limited(mib), expect_exit=None,
                   env={"OPENBLAS_NUM_THREADS": "1"})
        try:
            if ended_or_serves(d, LOADER_FAILED):
                served += 1
                scenarios.ask(d, ("Status", {}))
                d.stop()
        except Failure as e:
            raise Failure("with %d MiB of address space: %s" % (mib, e)) from None
        finally:
            d.cleanup()
    check(served, "it never served")


if __name__ == "__main__":
    if os.environ.get("PIPED_TEST_SANITIZER"):
        print("skipped: the allocator of a sanitizer cannot be replaced")
        sys.exit(77)
    check(os.path.exists(LIBRARY), "not built:", LIBRARY)
    main([a_start_without_threads_says_so, what_needs_threads_is_refused, more_descriptors_need_no_memory_of_libuv,
          little_memory_ends_with_an_error])
