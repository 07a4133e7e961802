#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No client takes more than its share, of time or of memory: shares of policies and of users under overload, images that
would hold everybody up, and pools whose pages the client takes away.

Shares are counts of frames computed while everybody has more of them waiting.
"""
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading

import pyclient as pc
import tiny_onnx
from daemon import DIGITS, HEARTBEAT, Daemon, VarlinkError, check, equal, main, until
from surroundings import needs

# some milliseconds a frame, on one core
SLOW = [("conv", 32, 3), ("relu",), ("conv", 64, 3), ("relu",), ("pool",), ("linear", 10)]
SIDE = 64
# ten times as many: a round trip of these clients, which share an interpreter, is short beside it
SLOWER = [("conv", 64, 3), ("relu",), ("conv", 128, 3), ("relu",), ("conv", 128, 3), ("relu",), ("pool",), ("linear", 10)]
CONFIG = {"frames_in_flight": 2}
GREEDY, MODEST = 4001, 4002  # users


def slow_model(folder, layers=SLOW):
    path = os.path.join(folder, "slow.onnx")
    tiny_onnx.write(path, layers, channels=3, size=SIDE)
    return {"slow": path}


class Sender(threading.Thread):
    """A client that always has as many frames on their way as it may, and counts statuses."""

    def __init__(self, path, stop, **options):
        super().__init__(daemon=True)
        self.c = pc.Connection(path)
        self.s = pc.Stream(self.c, inline=True, **options)
        self.stop = stop
        self.counts = {}
        self.goal = threading.Event()
        self.goal_at = 0
        self.failure = None

    def run(self):
        try:
            frame, sent = bytes(self.s.in_size), []
            while not self.stop.is_set():
                while len(sent) < self.s.credits:
                    sent.append(self.s.submit(frame))
                r = self.s.result()
                equal(r.frame, sent.pop(0), "answers in order")
                self.counts[r.status] = self.counts.get(r.status, 0) + 1
                if self.counts.get("ok", 0) >= self.goal_at > 0:
                    self.goal.set()
        except BaseException as e:  # told by run_all()
            self.failure = e
            self.goal.set()
        finally:
            self.c.close()


def run_all(senders, stop, first, count):
    """Until `first` has `count` frames computed. Return: how many each had then."""
    first.goal_at = count
    for s in senders:
        s.start()
    check(first.goal.wait(300), "no progress", [s.counts for s in senders])
    got = [s.counts.get("ok", 0) for s in senders]
    stop.set()
    for s in senders:
        s.join(60)
        check(not s.failure, s.failure)
    return got


def policies_have_equal_shares():
    """One client that waits with a full queue, one that does not wait, one with a deadline far below that queue."""
    with tempfile.TemporaryDirectory() as folder, Daemon(models=slow_model(folder, SLOWER), config=CONFIG) as d:
        stop = threading.Event()
        with pc.Connection(d.frames_path) as c:
            s = pc.Stream(c, inline=True)
            service_ns = max(s.infer(bytes(s.in_size)).service_ns for _ in range(5))
        block = Sender(d.frames_path, stop, credits=64)
        reject = Sender(d.frames_path, stop, credits=1, policy=pc.REJECT)
        late = Sender(d.frames_path, stop, credits=1, deadline_ns=20 * service_ns)
        got = run_all([block, reject, late], stop, block, 60)
        check(got[1] >= 20, "policy reject is starved", got, reject.counts)
        check(got[2] >= 20, "deadlines are starved", got, late.counts)


def a_sender_alone_is_still_refused():
    """Policy reject, without anybody else: what finds no room is answered at once, as ever."""
    with tempfile.TemporaryDirectory() as folder, Daemon(models=slow_model(folder), config=CONFIG) as d:
        with pc.Connection(d.frames_path) as c:
            s = pc.Stream(c, inline=True, policy=pc.REJECT, credits=16)
            for _ in range(16):
                s.submit(bytes(s.in_size))
            statuses = [s.result().status for _ in range(16)]
            check("ok" in statuses and "resource_exhausted" in statuses, statuses)


def open_to_all(d):
    for path in (d.temp, d.runtime_dir):
        os.chmod(path, 0o755)
    os.chmod(d.frames_path, 0o666)


def client(path, uid, streams, credits, opened, go, sent, done):
    """Becomes another user, sends `credits` frames on each of its streams, and tells when each was computed."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    with pc.Connection(path) as c:
        mine = [pc.Stream(c, n, credits=credits) for n in range(1, streams + 1)]
        opened.set()
        go.wait()
        for _ in range(credits):
            for s in mine:
                s.submit_as_is()
        sent.set()
        results = [s.result() for _ in range(credits) for s in mine]
        done.send([(r.status, r.done_ns) for r in results])


def shares_of_users(weights):
    """A user with 16 streams on two connections and one with a single stream have their frames in the daemon's sockets before
    it reads any. A run of this model is so long that its CPU clock is always read: load does not change what frames cost.
    Return: how many of the first user's frames had been computed when the last of the second user's had.
    """
    config = {**CONFIG, "limits": {"user_weights": weights}}
    fork = multiprocessing.get_context("fork")  # another user may not read this file
    with tempfile.TemporaryDirectory() as folder, Daemon(models=slow_model(folder, SLOWER), config=config) as d:
        open_to_all(d)
        clients, go = [], fork.Event()
        try:
            for uid, streams, credits in ((GREEDY, 8, 6), (GREEDY, 8, 6), (MODEST, 1, 48)):
                opened, sent, (here, there) = fork.Event(), fork.Event(), fork.Pipe(duplex=False)
                process = fork.Process(target=client, args=(d.frames_path, uid, streams, credits, opened, go, sent, there))
                process.start()
                clients.append((process, sent, here))
                check(opened.wait(60), "a client could not open its streams")
            d.signal(signal.SIGSTOP)
            go.set()
            for _, sent, _ in clients:
                check(sent.wait(60), "the sockets do not hold the frames")
            d.signal(signal.SIGCONT)
            done = []
            for _, _, here in clients:
                check(here.poll(120), "a client has no answers")
                done.append(here.recv())
            check(all(status == "ok" for results in done for status, _ in results), done)
            last = max(at for _, at in done.pop())
            return sum(at <= last for results in done for _, at in results)
        finally:
            d.signal(signal.SIGCONT)
            for process, _, _ in clients:
                process.kill()
                process.join()


@needs("other users")
def users_have_equal_shares():
    greedy = shares_of_users("")
    check(32 <= greedy <= 72, "a user with 16 streams had", greedy, "frames, one with a single stream 48")


@needs("other users")
def weights_of_users_count():
    greedy = shares_of_users("%d=3" % MODEST)
    check(11 <= greedy <= 24, "a user of weight 3 had 48 frames, one of weight 1", greedy)


def picture(width, height):
    return bytes(i * 7 % 251 for i in range(width)) * height


def sliced_images_give_the_same_answer():
    """Each fit of the picture, and a deadline and a CANCEL while it is prepared."""
    answers = []
    for most in (1, 64):
        with Daemon(models={"digits": DIGITS}, config={"limits": {"slice_mpixels": most}}) as d:
            with pc.Connection(d.frames_path) as c:
                for inline in (True, False):
                    for width, height in ((4000, 3000), (1500, 1001)):
                        s = pc.Stream(c, pixfmt=pc.GRAY8, image=(width, height), inline=inline, credits=2)
                        r = s.infer(picture(width, height))
                        equal(r.status, "ok", r.text)
                        answers.append(r.output)
                        s.close()
            names = {open("/proc/%d/task/%s/comm" % (d.process.pid, t), encoding="utf-8").read().strip()
                     for t in os.listdir("/proc/%d/task" % d.process.pid)}
            check("piped:images" in names, "no thread for large images", names)
    half = len(answers) // 2
    equal(answers[:half], answers[half:], "in slices, and at once")


@needs("other users")
def pictures_make_way_for_other_users():
    """A picture below limits.slice_mpixels is shrunk by a team, and in slices while another user has a stream: the same."""
    size = (2400, 1600)
    with Daemon(models={"digits": DIGITS}, env=HEARTBEAT) as d, pc.Connection(d.frames_path) as c:
        open_to_all(d)

        def beside():
            return d.status()["models"][0]["pictures_beside_s"]

        s = pc.Stream(c, pixfmt=pc.GRAY8, image=size, slots=1)
        alone = s.infer(picture(*size))
        equal((alone.status, beside()), ("ok", 0))
        with pc.user(MODEST):
            other = pc.Connection(d.frames_path)
        with other:
            pc.Stream(other, inline=True)
            r = s.infer(picture(*size))
            equal((r.status, r.output), ("ok", alone.output))
            check(beside() > 0, "a team had the picture while another user had a stream")
        check(d.wait_until(lambda: len(d.status()["clients"]) == 1), "the other user is still there")

        def by_a_team():
            before = beside()
            equal(s.infer(picture(*size)).output, alone.output)
            return beside() == before

        check(d.wait_until(by_a_team), "no team has pictures again")


def send_at_once(s, count):
    """Frames of a pool as it is, so that they arrive together."""
    messages = b""
    for _ in range(count):
        payload = pc.frame_payload(**s.fields())
        messages += pc.header(pc.FRAME, len(payload), stream=s.number, frame=s.advance(None)) + payload
    s.c.send_bytes(messages)


def frames_pass_large_images():
    """A picture of 48 megapixels comes first; frames that another client sends then are computed before it."""
    config = {"limits": {"slice_mpixels": 1}}
    with Daemon(models={"digits": DIGITS}, config=config) as d, pc.Connection(d.frames_path) as c:
        large = pc.Stream(c, pixfmt=pc.GRAY8, image=(8000, 6000), slots=2)
        with pc.Connection(d.frames_path) as other:
            small = pc.Stream(other, inline=True)
            send_at_once(large, 2)
            c.ping()  # both have arrived
            done = [small.infer(bytes(small.in_size)).done_ns for _ in range(5)]
        first, second = large.result(), large.result()
        equal((first.frame, first.status, second.frame, second.status), (1, "ok", 2, "ok"))
        check(max(done) < second.done_ns, "small frames waited for large images")
        equal(first.output, second.output)


def large_images_can_be_given_up():
    """By CANCEL, by a deadline, by policy latest, by a client that goes; and a stop answers the rest."""
    config = {"limits": {"slice_mpixels": 1}}
    image = picture(8000, 6000)
    with Daemon(models={"digits": DIGITS}, config=config) as d, pc.Connection(d.frames_path) as c:
        options = {"pixfmt": pc.GRAY8, "image": (8000, 6000)}
        s = pc.Stream(c, slots=3, **options)
        send_at_once(s, 1)
        c.send(pc.CANCEL, stream=1, frame=1)
        equal(s.result().status, "cancelled")
        equal(s.infer(image, deadline_ns=pc.now_ns() + 1000).status, "deadline_exceeded")
        s.close()
        s = pc.Stream(c, 2, policy=pc.LATEST, slots=3, credits=3, **options)
        send_at_once(s, 3)
        equal([s.result().status for _ in range(3)], ["dropped", "dropped", "ok"])
        with pc.Connection(d.frames_path) as other:
            gone = pc.Stream(other, slots=2, **options)
            send_at_once(gone, 2)
            other.ping()
        send_at_once(s, 2)
        c.ping()


def images_have_a_limit():
    config = {"limits": {"image_mpixels": 2}}
    with Daemon(models={"digits": DIGITS}, config=config) as d, pc.Connection(d.frames_path) as c:
        s = pc.Stream(c, pixfmt=pc.GRAY8, image=(2000, 1001), slots=1)
        r = s.infer(picture(2000, 1001))
        equal(r.status, "invalid_argument", r.text)
        for word in ("2000x1001", "limits.image_mpixels is 2"):
            check(word in r.text, r.text)
        small = pc.Stream(c, 2, pixfmt=pc.GRAY8, image=(2000, 1000), slots=1)
        equal(small.infer(picture(2000, 1000)).status, "ok")


def pools_with_holes_cost_the_client():
    """A pool that is not there in full is refused. One that gets holes later costs the daemon no page, and its frames fail;
    another pool of the same client works."""
    with Daemon(models={"digits": DIGITS}) as d, pc.Connection(d.frames_path) as c:
        s = pc.Stream(c, pixfmt=pc.GRAY8, image=(4000, 3000), slots=1)
        good = s.infer(picture(4000, 3000))
        equal(good.status, "ok", good.text)
        fd, _ = pc.memfd(1 << 20, whole=False)
        c.send(pc.POOL, pc.pool_payload(1, 1 << 20), [fd], stream=1)
        h, text = c.expect(pc.POOLED, 1)
        equal(pc.STATUS[h.status], "invalid_argument")
        check(b"posix_fallocate" in text, text)
        os.close(fd)
        if "userfaultfd" in d.log():
            return "this kernel does not let the daemon use userfaultfd"
        pc.punch(s.fd, 12000000)
        blocks = os.fstat(s.fd).st_blocks
        for _ in range(3):
            s.submit_as_is()
            r = s.result()
            equal(r.status, "invalid_argument", r.text)
            check("lost pages" in r.text, r.text)
        equal(os.fstat(s.fd).st_blocks, blocks, "blocks of the memfd")
        again = pc.Stream(c, 2, pixfmt=pc.GRAY8, image=(4000, 3000), slots=1)
        equal(again.infer(picture(4000, 3000)).output, good.output)
    return None


def inline_memory_is_shared():
    """One user gets half of limits.inline_total_mib, however many connections it has; the reason names the key."""
    config = {"limits": {"inline_total_mib": 40, "inline_mib": 16}}
    with Daemon(models={"digits": DIGITS}, config=config) as d:
        connections = [pc.Connection(d.frames_path) for _ in range(4)]
        streams = [pc.Stream(c, pixfmt=pc.GRAY8, image=(3000, 3000), inline=True) for c in connections]
        results = [s.infer(picture(3000, 3000)) for s in streams]
        equal([r.status for r in results], ["ok", "ok", "resource_exhausted", "resource_exhausted"])
        check("limits.inline_total_mib" in results[2].text, results[2].text)
        streams[0].submit(picture(3000, 3000))
        second = streams[0].submit(picture(3000, 3000))
        results = [streams[0].result() for _ in range(2)]
        equal((results[1].frame, results[0].status), (second, "ok"))
        connections[0].close()
        until(lambda: streams[2].infer(picture(3000, 3000)).status == "ok", "the memory of a connection that ended")
        for c in connections[1:]:
            c.close()


def promises_that_cannot_be_kept_are_told():
    """With fewer descriptors than limits.* allow connections, the log says so, with keys and values."""
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
    config = {"limits": {"connections": 1000, "control_connections": 100}}
    with Daemon(models={"digits": DIGITS}, config=config, preexec=few_files) as d:
        log = d.log()
        for words in ("limit of open files is 512", "limits.connections 1000", "limits.control_connections 100",
                      "LimitNOFILE="):
            check(words in log, words, "is not in", log)
    with Daemon(models={"digits": DIGITS}) as d:
        check("open files" not in d.log(), d.log())


class MemoryGroup:
    """A control group with a limit of memory."""

    def __init__(self, mib):
        for root, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            self.path = os.path.join(root, "piped-test-%d" % os.getpid())
            if not os.path.exists(os.path.join(root, "cgroup.procs")):
                continue
            try:
                os.mkdir(self.path)
                with open(os.path.join(self.path, limit), "w", encoding="utf-8") as f:
                    f.write(str(mib << 20))
                return
            except OSError:
                self.remove()
        self.path = None

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="utf-8") as f:
            f.write(str(os.getpid()))

    def remove(self):
        if self.path and os.path.isdir(self.path):
            os.rmdir(self.path)


def a_client_pays_for_its_pool():
    """In a control group of 64 MiB: frames of 134 megapixels in a pool of 256 MiB, there in full and then not. The
    daemon lives, and another client is served."""
    if os.environ.get("PIPED_TEST_SLOWDOWN", "1") != "1":
        return "sanitizers keep memory of their own"
    group = MemoryGroup(64)
    if not group.path:
        return "needs root and the memory controller of control groups"
    config = {"limits": {"image_mpixels": 200, "inline_total_mib": 8}}
    size = (8192, 16384)
    try:
        with Daemon(models={"digits": DIGITS}, config=config, preexec=group.enter) as d:
            with pc.Connection(d.frames_path) as c, pc.Connection(d.frames_path) as other:
                s = pc.Stream(c, pixfmt=pc.GRAY8, image=size, slots=1)
                send_at_once(s, 1)
                equal(s.result().status, "ok")
                pc.punch(s.fd, size[0] * size[1])
                send_at_once(s, 1)
                r = s.result()
                equal(r.status, "invalid_argument", r.text)
                small = pc.Stream(other)
                equal(small.infer(bytes(small.in_size)).status, "ok")
    finally:
        group.remove()
    return None


def a_model_that_does_not_fit_is_refused():
    """It is larger than the control group. The daemon lives, and serves the other one."""
    group = MemoryGroup(64)
    if not group.path:
        return "needs root and the memory controller of control groups"
    try:
        with Daemon(models={"digits": DIGITS}, preexec=group.enter) as d:
            path = os.path.join(d.temp, "wide.onnx")
            tiny_onnx.write(path, [("conv", 64, 3), ("pool",), ("linear", 1024), ("linear", 4096)], size=48)
            try:
                d.call("Load", {"name": "wide", "path": path})
                check(False, "it was loaded")
            except VarlinkError as e:
                equal(e.error, "io.piped.LoadFailed")
                check("MiB are free for models here" in e.parameters["why"], e.parameters)
            with pc.Connection(d.frames_path) as c:
                s = pc.Stream(c)
                equal(s.infer(bytes(s.in_size)).status, "ok")
    finally:
        group.remove()
    return None


if __name__ == "__main__":
    sys.exit(main([policies_have_equal_shares, a_sender_alone_is_still_refused, users_have_equal_shares,
                   weights_of_users_count, sliced_images_give_the_same_answer, pictures_make_way_for_other_users,
                   frames_pass_large_images, large_images_can_be_given_up, images_have_a_limit, pools_with_holes_cost_the_client,
                   a_client_pays_for_its_pool, a_model_that_does_not_fit_is_refused, inline_memory_is_shared,
                   promises_that_cannot_be_kept_are_told]))
