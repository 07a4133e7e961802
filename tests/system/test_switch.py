#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plans switched every few frames under load, several models, fairness, policies, deadlines: nothing is lost, doubled,
reordered or wrong.

usage: test_switch.py [--long] [CASE]...      --long: the 30 s version
"""
import os
import random
import struct
import sys
import tempfile
import threading

import pyclient
import tiny_onnx
from daemon import DIGITS, Daemon, VarlinkError, check, equal, main, until
from wait import during

LONG = "--long" in sys.argv
SECONDS = 30 if LONG else 4
SEED = 20260601


def inputs(stream, count=8):
    rng = random.Random(SEED)
    return [struct.pack("<%df" % (stream.input_bytes // 4), *(rng.uniform(-1, 1) for _ in range(stream.input_bytes // 4)))
            for _ in range(count)]


def reference(d, model):
    """Inputs and their answers while nothing else happens."""
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, 1, model, inline=True)
        frames = inputs(s)
        return [(f, s.infer(f).output) for f in frames]


class Client(threading.Thread):
    """Streams until told to stop, checks every answer, keeps what went wrong."""

    def __init__(self, d, model, pairs, inline):
        super().__init__()
        self.d, self.model, self.pairs, self.inline = d, model, pairs, inline
        self.stop = threading.Event()
        self.answered = 0
        self.epochs = set()
        self.error = None

    def run(self):
        try:
            with pyclient.Connection(self.d.frames_path) as c:
                s = pyclient.Stream(c, 1, self.model, inline=self.inline)
                sent = []
                while not self.stop.is_set() or sent:
                    while len(sent) < s.credits and not self.stop.is_set():
                        which = random.randrange(len(self.pairs))
                        sent.append((s.submit(self.pairs[which][0]), which))
                    r = s.result()
                    number, which = sent.pop(0)
                    equal((r.frame, r.status), (number, "ok"), r.text)
                    check(r.output == self.pairs[which][1], "frame", number, "of epoch", r.epoch, "has a wrong answer")
                    self.answered += 1
                    self.epochs.add(r.epoch)
                s.close()
        except Exception as e:  # told by the main thread
            self.error = e


def plans_for(units, eps):
    """Plans of every shape: one stage, many, widths, several teams a stage, more stages than cores."""
    ep, cores = eps[0]["name"], len(eps[0]["cpus"])
    last = units - 1
    third = max(units // 3, 1)
    wide = "x%d" % cores if cores > 1 else ""
    return ["0-%d@%s" % (last, ep), "0-%d@%s%s" % (last, ep, wide), "0-%d@%s*%d" % (last, ep, cores),
            "0-%d@%s|%d-%d@%s" % (third - 1, ep, third, last, ep),
            "0-%d@%s|%d-%d@%s*2|%d-%d@%s" % (third - 1, ep, third, 2 * third - 1, ep, 2 * third, last, ep),
            "|".join("%d-%d@%s" % (u, u, ep) for u in range(units))]


def switch_under_load():
    with Daemon(models={"a": DIGITS}) as d:
        pairs = reference(d, "a")
        status = d.status()
        plans = plans_for(status["models"][0]["units"], status["eps"])
        clients = [Client(d, "a", pairs, inline) for inline in (False, True, False)]
        for c in clients:
            c.start()
        rng = random.Random(SEED)
        switches = 0
        with d.connect() as v:
            for _ in during(SECONDS):
                if any(c.error for c in clients):
                    break
                v.call("io.piped.SetPlan", {"plan": rng.choice(plans)})
                switches += 1
        for c in clients:
            c.stop.set()
        for c in clients:
            c.join()
            if c.error:
                raise c.error
            check(c.answered > 0 and len(c.epochs) > 1, "a client saw", c.answered, "answers of epochs", len(c.epochs))
        m = d.status()["models"][0]
        total = sum(c.answered for c in clients) + len(pairs)
        equal({k: m["frames"][k] for k in ("admitted", "answered", "dropped", "failed")},
              {"admitted": total, "answered": total, "dropped": 0, "failed": 0})
        equal(m["epoch"], switches + 1)
        print("seed %d: %d switches, %d frames" % (SEED, switches, total))


def several_frames_at_once():
    """Plans whose teams take several frames at once give the answers of single frames, in order, also while they change."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wide.onnx")
        tiny_onnx.write(path, [("conv", 8, 3), ("pool",), ("linear", 30), ("relu",), ("linear", 20)], size=16)
        # with so few outputs, indirect GEMM adds in the same order for one row and for several: the same bits
        models = [{"name": "a", "path": path, "kernels": "igemm,__ref"}]
        with Daemon(models={}, config={"models": models, "planner": {"batch_wait_us": 500000}}) as d:
            pairs = reference(d, "a")
            status = d.status()
            ep, last = status["eps"][0]["name"], status["models"][0]["units"] - 1
            one = "0-%d@%s" % (last, ep)
            at_once = one + "/4"
            equal(d.pipectl("plan", "set", at_once)["plan"], at_once)
            equal(d.pipectl("plan", "show")["plan"], at_once)
            with pyclient.Connection(d.frames_path) as c:
                s = pyclient.Stream(c, 1, "a", inline=True)
                check(s.credits >= 8, s.credits)
                for start in range(0, 80, 8):
                    sent = [s.submit(pairs[(start + i) % len(pairs)][0]) for i in range(8)]
                    for i, number in enumerate(sent):
                        r = s.result()
                        equal((r.frame, r.status), (number, "ok"), r.text)
                        check(r.output == pairs[(start + i) % len(pairs)][1], "frame", number, "has a wrong answer")
            stage = d.status()["models"][0]["stages"][0]
            equal(stage["batch"], 4)
            check(1 < stage["frames_at_once"] <= 4, stage)
            equal(d.pipectl("plan", "explain")["stages"][0]["teams"], ep + "/4")
            fails_with(d, one + "/9", "1 to 8 frames at once")
            clients = [Client(d, "a", pairs, inline) for inline in (False, True)]
            for c in clients:
                c.start()
            plans = [one, at_once, "0-0@%s/2|1-%d@%s*2/8" % (ep, last, ep), "0-%d@%s/3|%d-%d@%s" % (last - 1, ep, last, last, ep)]
            try:
                for i in range(40):
                    d.call("SetPlan", {"plan": plans[i % len(plans)]})
            finally:
                for c in clients:
                    c.stop.set()
                    c.join()
            for c in clients:
                if c.error:
                    raise c.error
                check(c.answered > 0, "no answers")


def fails_with(d, plan, words):
    try:
        d.call("SetPlan", {"plan": plan})
    except VarlinkError as e:
        check(words in str(e.parameters), e.parameters)
    else:
        check(False, plan, "was taken")


def bench_verifies_during_switches():
    """pipectl bench, with its own checks, while plans change and retunes run."""
    with Daemon(config={"planner": {"frames": 16}}) as d:
        status = d.status()
        plans = plans_for(status["models"][0]["units"], status["eps"])
        result = {}

        def bench():
            try:
                result.update(d.pipectl("bench", "--seconds", str(SECONDS), "--clients", "3", "--verify"))
            except Exception as e:  # told below
                result["error"] = e

        t = threading.Thread(target=bench)
        t.start()
        rng = random.Random(SEED)
        with d.connect() as v:
            while t.is_alive():
                try:
                    v.call("io.piped.SetPlan", {"plan": rng.choice(plans)})
                    if rng.random() < 0.05:
                        v.call("io.piped.Retune")
                except VarlinkError as e:
                    equal(e.error, "io.piped.Busy")
        t.join()
        check("error" not in result, result.get("error"))
        check(result["answered"] == result["sent"] > 0, result)
        equal([result[k] for k in ("lost", "reordered", "duplicated", "wrong", "errors")], [0, 0, 0, 0, {}])


def several_models_at_once():
    with Daemon(models={"a": DIGITS, "b": DIGITS, "c": DIGITS}) as d:
        pairs = reference(d, "a")
        clients = [Client(d, m, pairs, inline) for m in "abc" for inline in (False, True)]
        for c in clients:
            c.start()
        with d.connect() as v:  # models come and go meanwhile
            for i in range(10):
                v.call("io.piped.Load", {"name": "extra", "path": DIGITS})
                v.call("io.piped.Unload", {"name": "extra"})
        for c in clients:
            c.stop.set()
        for c in clients:
            c.join()
            if c.error:
                raise c.error
        answered = {m["name"]: m["frames"]["answered"] for m in d.status()["models"]}
        equal(sum(answered.values()), sum(c.answered for c in clients) + len(pairs))


# rounds; each takes seconds under ThreadSanitizer
JUDGED = 1 if "PIPED_TEST_SANITIZER" in os.environ else 3


def greedy_client_does_not_starve_another():
    """While a stream with 64 frames at once keeps the pipeline full, another's 16 frames are not behind all of them."""
    slow = {"models": [{"name": "slow", "path": DIGITS, "kernels": "__ref"}], "frames_in_flight": 4}
    with Daemon(config=slow) as d, pyclient.Connection(d.frames_path) as c1, pyclient.Connection(d.frames_path) as c2:
        greedy = pyclient.Stream(c1, credits=64, inline=True)
        modest = pyclient.Stream(c2, credits=16, inline=True)
        frame = inputs(greedy, 1)[0]
        judged = rounds = 0
        while judged < JUDGED and rounds < 50:
            rounds += 1
            for _ in range(64):
                greedy.submit(frame)
            for _ in range(16):
                modest.submit(frame)
            c2.ping()
            all_there = pyclient.now_ns()
            done = [modest.result().done_ns for _ in range(16)]
            greedy_done = [greedy.result().done_ns for _ in range(64)]
            # to be judged, the greedy one must have had more frames waiting than the other when all were there
            if sum(t > all_there for t in greedy_done) > 24:
                judged += 1
                check(max(done) < max(greedy_done), "the modest client waited for all of the greedy one's frames")
        check(judged > 0, "the pipeline was never busy enough to tell")


def policy_latest_has_its_turn_beside_a_busy_stream():
    """A camera faster than the pipeline replaces its waiting frame again and again, and keeps its place all the same."""
    slow = {"models": [{"name": "slow", "path": DIGITS, "kernels": "__ref"}], "frames_in_flight": 1}
    with Daemon(config=slow) as d, pyclient.Connection(d.frames_path) as c1, pyclient.Connection(d.frames_path) as c2:
        busy = pyclient.Stream(c1, credits=24, inline=True)
        camera = pyclient.Stream(c2, policy=pyclient.LATEST, credits=8, inline=True)
        frame = inputs(busy, 1)[0]
        shown = replaced = rounds = 0
        while replaced < 400 and rounds < 50:
            rounds += 1
            for _ in range(busy.credits):
                busy.submit(frame)
            c1.ping()
            unanswered = []
            while d.status()["models"][0]["waiting"] > 8:
                for _ in range(4):  # in pieces, so that the daemon sees them one by one
                    unanswered.append(camera.submit(frame))
                    c2.ping()
                while len(unanswered) > 3:
                    r = camera.result()
                    equal(r.frame, unanswered.pop(0))
                    shown += r.status == "ok"
                    replaced += r.status == "dropped"
            for n in unanswered:  # these may have come when nobody else waited any more
                equal(camera.result().frame, n)
            for _ in range(busy.credits):
                busy.result()
        print("%d rounds: %d shown, %d replaced" % (rounds, shown, replaced))
        check(replaced > 0, "the camera was never faster than the pipeline")
        check(shown >= 4 * rounds, "the camera had no turn:", shown, "shown in", rounds, "rounds,", replaced, "replaced")


def policy_latest_drops_older_frames():
    with Daemon(config={"frames_in_flight": 2}) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, policy=pyclient.LATEST, credits=64, inline=True)
        frame = inputs(s, 1)[0]
        for _ in range(20):
            for _ in range(64):
                s.submit(frame)
            results = [s.result() for _ in range(64)]
            equal({r.status for r in results} - {"ok", "dropped"}, set())
            equal(results[-1].status, "ok", "the newest frame was dropped")
        m = d.status()["models"][0]["frames"]
        equal(m["answered"] + m["dropped"], 20 * 64)


def policy_reject_answers_at_once():
    with Daemon(config={"frames_in_flight": 2}) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, policy=pyclient.REJECT, credits=64, inline=True)
        frame = inputs(s, 1)[0]
        equal(s.infer(frame).status, "ok")
        seen = set()
        for _ in range(20):
            for _ in range(64):
                s.submit(frame)
            seen |= {s.result().status for _ in range(64)}
        equal(seen - {"ok", "resource_exhausted"}, set())
        check("ok" in seen)


def deadlines():
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, inline=True)
        frame = inputs(s, 1)[0]
        equal(s.infer(frame, deadline_ns=1).status, "deadline_exceeded")
        equal(s.infer(frame, deadline_ns=pyclient.now_ns() + 60 * 10**9).status, "ok")
        late = pyclient.Stream(c, 2, deadline_ns=1, inline=True)
        equal(late.infer(frame).status, "deadline_exceeded")
        equal(s.infer(frame).status, "ok")


def frames_without_credit_are_answered():
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, credits=2, inline=True)
        frame = inputs(s, 1)[0]
        for _ in range(200):
            s.submit(frame)
        results = [s.result() for _ in range(200)]
        equal([r.frame for r in results], list(range(1, 201)))
        equal({r.status for r in results} - {"ok", "resource_exhausted"}, set())
        equal({r.credits for r in results if r.status == "ok"}, {1})


def cancelled_frames_are_answered_in_order():
    with Daemon(config={"frames_in_flight": 2}) as d, pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, credits=32, inline=True)
        frame = inputs(s, 1)[0]
        for _ in range(20):
            numbers = [s.submit(frame) for _ in range(32)]
            for n in numbers[1::2]:
                c.send(pyclient.CANCEL, stream=1, frame=n)
            c.send(pyclient.CANCEL, stream=1, frame=10**9)
            results = [s.result() for _ in range(32)]
            equal([r.frame for r in results], numbers)
            equal({r.status for r in results} - {"ok", "cancelled"}, set())
            equal({r.status for r in results[::2]}, {"ok"})


def credits_follow_a_deeper_plan():
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        status = d.status()
        plans = plans_for(status["models"][0]["units"], status["eps"])
        d.call("SetPlan", {"plan": plans[0]})
        s = pyclient.Stream(c, inline=True)
        d.call("SetPlan", {"plan": plans[-1]})
        _, payload = c.expect(pyclient.CREDIT, 1)
        more = struct.unpack_from("<I", payload)[0]
        check(more > 0)
        c.ping()
        check((1, 1, status["models"][0]["epoch"] + 2) in c.events, c.events)
        frame = inputs(s, 1)[0]
        for _ in range(s.credits + more):
            s.submit(frame)
        equal({s.result().status for _ in range(s.credits + more)}, {"ok"})


def dying_clients_leave_nothing_behind():
    with Daemon() as d:
        for i in range(30):
            c = pyclient.Connection(d.frames_path)
            s = pyclient.Stream(c, inline=i % 2 == 0)
            frame = inputs(s, 1)[0]
            for _ in range(s.credits):
                s.submit(frame)
            c.close()
            s.free()
        until(lambda: not d.status()["clients"] and not d.status()["models"][0]["in_flight"], "the end of all frames")
        equal(d.status()["models"][0]["waiting"], 0)


if __name__ == "__main__":
    main([switch_under_load, bench_verifies_during_switches, several_models_at_once,
          greedy_client_does_not_starve_another, policy_latest_has_its_turn_beside_a_busy_stream,
          policy_latest_drops_older_frames, policy_reject_answers_at_once, deadlines,
          frames_without_credit_are_answered, cancelled_frames_are_answered_in_order, credits_follow_a_deeper_plan,
          several_frames_at_once, dying_clients_leave_nothing_behind], [a for a in sys.argv[1:] if a != "--long"])
