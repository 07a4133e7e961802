#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A model over several boards, as piped sees it: a piped-link of the test reports boards and takes frames.

Whatever piped-link and boards do, every frame is answered once, in order, right.

usage: test_elsewhere.py [CASE]...
"""
import json
import os
import random
import struct
import subprocess
import tempfile

import pyclient as pc
from daemon import DIGITS, Daemon, VarlinkError, check, equal, main, until
from fake_link import SELF, FakeLink, board_print
from surroundings import as_user, needs

UNITS = None  # of the model
UP = {"b2": True}


def config(route=None, **keys):
    global UNITS
    if UNITS is None:
        with Daemon(models={"digits": DIGITS}) as d:
            UNITS = d.status()["models"][0]["units"]
    route = route or "0-0@here|1-%d@b2" % (UNITS - 1)
    return dict({"models": [{"name": "digits", "path": DIGITS, "boards": route}, {"name": "worker", "path": DIGITS}]}, **keys)


class Spread:
    """A daemon and its piped-link, with the events of the daemon."""

    def __init__(self, route=None, model=DIGITS, memory_mib=0, **options):
        self.d = Daemon()
        c = config(route, boards={"frames_socket": os.path.join(self.d.runtime_dir, "link.sock"), "memory_mib": memory_mib})
        for m in c["models"]:
            m["path"] = model
        self.d.write_config(c)
        self.options = options

    def __enter__(self):
        self.d.__enter__()
        self.events = self.d.connect()
        self.events.send("io.piped.Subscribe", more=True)
        self.events.receive()
        self.link = FakeLink(self.d, "worker", **self.options).start()
        return self

    def __exit__(self, *exc):
        self.events.close()
        if exc[0] is None:
            self.link.die()
        return self.d.__exit__(*exc)

    def wait_event(self, serving):
        """The next event of a route, which must be so."""
        while True:
            event = self.events.receive()["event"]
            if event["event"] == "route":
                equal(bool(event["route"]), serving, event)
                return event

    def serve(self, **ready):
        """Boards are up, the route is asked for and ready."""
        self.link.report(UP)
        route = self.link.wait_route("digits")
        self.link.report(UP, preparing=[route])
        self.link.report(UP, ready=[route])
        self.wait_event(True)
        return route

    def held(self, count):
        """Frames of one stream are away, and four of them held. Return: the route, the stream, the frames, their answers,
        their numbers."""
        route = self.serve()
        s = self.connect(credits=count)
        frames = inputs(s, count)
        wanted = answers(self.d, frames)
        sent = [s.submit(f) for f in frames]
        self.link.wait(lambda: len(self.link.held) == 4, "frames away")
        return route, s, frames, wanted, sent

    def route(self):
        return next(m for m in self.d.status()["models"] if m["name"] == "digits")["route"]

    def causes(self):
        return [(e["cause"], e["outcome"]) for e in self.d.call("History", {"model": "digits"})["events"]]

    def connect(self, **options):
        c = pc.Connection(self.d.frames_path)
        return pc.Stream(c, 1, "digits", **options)


def inputs(s, count, seed=1):
    rng = random.Random(seed)
    return [struct.pack("<%df" % (s.input_bytes // 4), *(rng.uniform(-1, 1) for _ in range(s.input_bytes // 4)))
            for _ in range(count)]


def answers(d, frames):
    """What one board alone answers."""
    with pc.Connection(d.frames_path) as c:
        s = pc.Stream(c, 1, "worker")
        return [s.infer(f).output for f in frames]


def check_all(s, sent, wanted):
    """Answers come in order, once, right."""
    got = []
    for number, output in zip(sent, wanted):
        r = s.result()
        equal((r.frame, r.status), (number, "ok"), r.text)
        check(r.output == output, "frame", number, "has a wrong answer")
        got.append(r)
    return got


def a_model_that_is_too_large_for_this_board():
    """Nothing of it is packed here. It is refused with the reason until other boards serve it, and again without them."""
    with tempfile.TemporaryDirectory() as folder:
        large = os.path.join(folder, "large.json")
        with open(large, "w", encoding="utf-8") as f:
            json.dump({"input": {"shape": [64, 8, 8]}, "layers": [{"op": "conv", "out": 256, "kernel": 3, "pad": 1}] * 2}, f)
        with Spread("0-0@here|1-1@b2", large, 1) as t:
            digits, worker = t.d.call("Models")["models"]
            equal((digits["asleep"], worker["asleep"]), (True, False))
            check(digits["packed_bytes"] < 100000 < worker["packed_bytes"], digits, worker)
            s = t.connect()
            frames = inputs(s, 4)
            wanted = answers(t.d, frames)
            s.submit(frames[0])
            r = s.result()
            equal(r.status, "unavailable")
            check("too large for this board" in r.text, r.text)
            t.serve()
            check_all(s, [s.submit(f) for f in frames], wanted)
            try:
                t.d.call("Retune", {"model": "digits"})
                check(False, "a model that sleeps was retuned")
            except VarlinkError as e:
                check("too large" in str(e), e)
            t.link.report({"b2": False}, failed=[t.link.wait_route("digits")])
            t.wait_event(False)
            s.submit(frames[1])
            equal(s.result().status, "unavailable")


def frames_go_over_boards_while_the_route_is_ready():
    with Spread() as t:
        equal(t.route()["phase"], "none")
        equal(t.link.routes, {}, "nothing was reported yet")
        t.link.report({"b2": False})
        equal((t.route()["phase"], t.route()["why"]), ("none", "board b2 is away"))
        t.link.report(UP)
        route = t.link.wait_route("digits")
        model = next(m for m in t.d.call("Models")["models"] if m["name"] == "digits")
        equal(route["identity"], model["hash"])
        check(route["content"].startswith("digits-" + model["hash"][:8] + "-"), route)  # and its preprocessing
        equal(route["path"], os.path.realpath(DIGITS))
        equal([(h["first_unit"], h["last_unit"], [b["board"] for b in h["boards"]]) for h in route["hops"]],
              [(0, 0, [SELF]), (1, UNITS - 1, [board_print("b2")])])
        equal([i["bytes"] for i in route["inputs"]], [i["bytes"] for i in model["inputs"]])
        equal(t.route()["phase"], "asked")
        s = t.connect()
        frames = inputs(s, 6)
        wanted = answers(t.d, frames)
        check_all(s, [s.submit(frames[0])], wanted)
        equal(t.link.taken, 0, "it is not ready")
        t.link.report(UP, preparing=[route])
        equal(t.route()["phase"], "preparing")
        t.link.report(UP, ready=[route])
        event = t.wait_event(True)
        equal((event["model"], event["route"], event["number"]),
              ("digits", "0-0@here|1-%d@b2" % (UNITS - 1), route["number"]))
        got = check_all(s, [s.submit(f) for f in frames], wanted)
        equal(t.link.taken, 6)
        equal({r.epoch for r in got}, {route["number"]}, "the route's number is the epoch")
        shown = t.route()
        equal((shown["serving"], shown["phase"], shown["sent"], shown["returned"], shown["why"]), (True, "ready", 6, 0, ""))
        equal(shown["hops"][1]["boards"], [{"name": "b2", "share": 1, "up": True}])
        equal(t.d.status()["boards"][0]["name"], "b2")
        equal(t.causes()[-1], ("board", "switched"))
        text = t.d.call("Metrics")["text"]
        for line in ('piped_board_up{board="b2"} 1', 'piped_route_serving{model="digits"} 1',
                     'piped_route_frames_total{model="digits",outcome="answered"} 6'):
            check(line + "\n" in text, line, "is missing in", text)


def pictures_leave_as_tensors():
    """The head converts them where the first board does not say that it can."""
    with Spread() as t:
        t.serve()
        with pc.Connection(t.d.frames_path) as c:
            s = pc.Stream(c, 1, "digits", pixfmt=pc.GRAY8, image=(16, 16))
            equal(s.infer(bytes(256)).status, "ok")
        equal(t.link.taken, 1)


def f16_becomes_f32_before_it_leaves():
    with Spread() as t:
        t.serve()
        with pc.Connection(t.d.frames_path, features=pc.FEATURE_F16) as c:
            s = pc.Stream(c, 1, "digits", input_dtype=pc.F16, output_dtype=pc.F16)
            count = s.input_bytes // 2
            rng = random.Random(1)
            halves = [struct.pack("<%de" % count, *(rng.uniform(-1, 1) for _ in range(count))) for _ in range(6)]
            wanted = answers(t.d, [struct.pack("<%df" % count, *struct.unpack("<%de" % count, h)) for h in halves])
            wanted = [struct.pack("<%de" % (len(w) // 4), *struct.unpack("<%df" % (len(w) // 4), w)) for w in wanted]
            check_all(s, [s.submit(h) for h in halves], wanted)
            t.link.mode = "unavailable"  # and computed here after all
            check_all(s, [s.submit(h) for h in halves], wanted)
        equal((t.link.taken, t.route()["returned"]), (12, 6))


def what_comes_back_without_an_answer_is_computed_here():
    with Spread() as t:
        t.serve()
        s = t.connect()
        frames = inputs(s, 12)
        wanted = answers(t.d, frames)
        for n, mode in enumerate(["unavailable", "resource_exhausted", "internal", "cancelled", "deadline_exceeded", "relay"]):
            t.link.mode = mode
            check_all(s, [s.submit(f) for f in frames[2 * n:2 * n + 2]], wanted[2 * n:])
        equal((t.link.taken, t.route()["returned"]), (12, 10))


def frames_are_counted_where_they_were_computed():
    """At once, and with those from before the boards were there: they and the boards' are all that were answered."""
    with Spread() as t:
        s = t.connect()
        frames = inputs(s, 5)
        wanted = answers(t.d, frames)
        check_all(s, [s.submit(f) for f in frames], wanted)
        t.serve()
        check_all(s, [s.submit(f) for f in frames[:3]], wanted)
        t.link.mode = "unavailable"
        check_all(s, [s.submit(f) for f in frames[:2]], wanted)
        route = t.route()
        equal([route[k] for k in ("answered", "here", "returned")], [3, 7, 2])
        check("3 answered, 0 sent again, 7 wholly here" in t.d.pipectl("status", as_json=False), "status")


def frames_of_several_streams_stay_in_order_when_some_come_back():
    """Held frames come back between others that were computed here and there."""
    with Spread(mode="hold", credits=3) as t:
        route = t.serve()
        streams = [t.connect(credits=4) for _ in range(3)]
        frames = inputs(streams[0], 4)
        wanted = answers(t.d, frames)
        sent = [[s.submit(f) for f in frames] for s in streams]
        t.link.wait(lambda: len(t.link.held) == 3, "three frames away")
        t.link.release("unavailable")
        t.link.wait(lambda: len(t.link.held) == 3, "the next three")
        t.link.report(UP, failed=[route])
        t.wait_event(False)
        for s, numbers in zip(streams, sent):
            check_all(s, numbers, wanted)


def nothing_is_lost_when_piped_link_dies():
    with Spread(mode="hold") as t:
        _, s, frames, wanted, sent = t.held(8)
        t.link.die()
        check_all(s, sent, wanted)
        t.wait_event(False)
        equal(t.causes()[-1], ("link", "switched"))
        equal((t.route()["serving"], t.route()["why"]), (False, "piped-link is away"))
        equal(t.d.status()["boards"], [])
        t.link.mode = "relay"
        t.link.start()
        t.serve()
        check_all(s, [s.submit(f) for f in frames], wanted)
        check(t.link.taken == 12, t.link.taken)


def a_failed_route_is_withdrawn_and_made_again():
    with Spread(mode="hold") as t:
        first, s, frames, wanted, sent = t.held(4)
        t.link.report({"b2": False}, failed=[first], to=SELF)
        t.wait_event(False)
        check_all(s, sent, wanted)
        equal(t.causes()[-1][0], "link")
        gone = t.link.wait_route("digits", hops=False)
        check(gone["number"] > first["number"], gone)
        equal(t.route()["why"], "the link was cut")
        t.link.report({"b2": False})
        equal(t.route()["why"], "board b2 is away")
        equal(t.link.routes["digits"]["hops"], [], "b2 is away")
        until(lambda: t.link.routes["digits"]["hops"], "a route after the back-off", pause=lambda left_s: t.link.report(UP))
        second = t.link.routes["digits"]
        check(second["number"] > gone["number"], second)
        t.link.report(UP, ready=[second])
        t.wait_event(True)


def a_new_route_replaces_the_present_one_without_a_gap():
    """One hop of two boards: one goes, the other serves on; it is back: another number, make before break."""
    with Spread(route="0-9@b2+b3*2".replace("9", str(config() and UNITS - 1))) as t:
        both = {"b2": True, "b3": True}
        t.link.report(both)
        first = t.link.wait_route("digits")
        equal([b["share"] for b in first["hops"][0]["boards"]], [1, 2])
        t.link.report(both, ready=[first])
        t.wait_event(True)
        t.link.report({"b2": True, "b3": False}, ready=[first])
        equal((t.route()["serving"], t.route()["hops"][0]["boards"][1]["up"]), (True, False))
        t.link.report(both, ready=[first])
        second = t.link.wait_route("digits", other_than=first["number"])
        t.link.report(both, preparing=[second])
        equal(t.route()["serving"], True, "the first one still serves")
        s = t.connect()
        equal(s.infer(inputs(s, 1)[0]).status, "ok")
        equal(t.link.taken, 1)
        t.link.report(both, ready=[second])
        equal(t.wait_event(True)["number"], second["number"])


def silence_counts_as_away():
    with Spread() as t:
        t.serve()
        t.wait_event(False)
        equal(t.causes()[-1], ("link", "switched"))


def clients_and_models_may_go_while_frames_are_away():
    with Spread(mode="hold") as t:
        _, s, frames, wanted, sent = t.held(4)
        s.c.send(pc.CANCEL, stream=1, frame=sent[1])
        s.c.ping()
        t.link.wait(lambda: t.link.cancelled, "the cancelling there")
        held, t.link.held = t.link.held, []
        for i, h in enumerate(held):
            h[0].answer(h[1], h[2], "cancelled" if i == 1 else "ok")
        equal([s.result().status for _ in frames], ["ok", "cancelled", "ok", "ok"])
        for f in frames:
            s.submit(f)
        t.link.wait(lambda: len(t.link.held) == 4, "frames away again")
        s.c.close()  # they are cancelled, and nobody reads their answers
        t.link.wait(lambda: len(t.link.cancelled) == 5, "all are cancelled")
        t.link.release("cancelled")
        other = t.connect(credits=4)
        sent = [other.submit(f) for f in frames]
        t.link.wait(lambda: len(t.link.held) == 4, "frames of another client")
        with t.d.connect() as control:
            control.send("io.piped.Unload", {"name": "digits"})
            t.link.wait(lambda: "digits" not in t.link.routes, "no route")
            t.link.release("unavailable")
            control.receive()
        check_all(other, sent, wanted)


def a_stop_answers_what_is_away():
    with Spread(mode="hold") as t:
        _, s, _, wanted, sent = t.held(4)
        t.d.signal(15)
        t.d.wait_notify(lambda m: m.get("STOPPING") == "1")
        t.link.release("unavailable")
        check_all(s, sent, wanted)
        equal(t.d.wait_exit(), 0)


def a_reload_turns_it_on_and_off():
    with Spread() as t:
        t.serve()
        c = config(boards={"frames_socket": os.path.join(t.d.runtime_dir, "link.sock")})
        c["models"][0]["boards"] = "off"
        t.d.write_config(c)
        t.d.call("Reload")
        t.wait_event(False)
        equal(t.route(), None)
        t.link.wait(lambda: "digits" not in t.link.routes, "no route")
        t.d.write_config(config(boards={"frames_socket": os.path.join(t.d.runtime_dir, "link.sock")}))
        t.d.call("Reload")
        t.serve()


def bench_verifies_every_answer():
    with Spread() as t:
        route = t.serve()
        r = t.d.pipectl("bench", "--model", "digits", "--frames", "200", "--clients", "2", "--verify")
        equal([r[k] for k in ("answered", "lost", "wrong", "reordered", "duplicated")], [200, 0, 0, 0, 0], r)
        if "it is silent" in t.d.log():
            return  # on a busy machine the link's own thread may wait for 5 s; every answer was right all the same
        check(t.link.taken >= 200, t.link.taken)
        text = t.d.pipectl("status", as_json=False)
        check("route 0-0@here|1-%d@b2" % (UNITS - 1) in text and "b2" in text, text)
        check(str(route["number"]) in text, text)


def bad_reports_change_nothing():
    with Spread() as t:
        t.serve()
        for bad in ({}, {"self": 1}, {"boards": [{"name": "x"}]}):
            with t.d.connect() as v:
                v.send("io.piped.LinkReport", {"report": bad})
                try:
                    v.receive()
                    check(False, "taken:", bad)
                except VarlinkError as e:
                    equal(e.error, "org.varlink.service.InvalidParameter")
        equal(t.route()["serving"], True)


AS_LINK = """
import json, socket, sys
for text in sys.argv[2:]:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(text.encode() + b"\\0")
    data = b""
    while not data.endswith(b"\\0"):
        data += s.recv(65536)
    print(data[:-1].decode())
"""


@needs("other users", "own mounts")
def the_user_piped_link_may_do_its_work_and_nothing_else():
    d = Daemon(models={"digits": DIGITS}, config={"socket_mode": "0666"})
    users = os.path.join(d.temp, "passwd")
    with open("/etc/passwd", encoding="utf-8") as f, open(users, "w", encoding="utf-8") as to:
        to.write("".join(line for line in f if not line.startswith("piped-link:")) + "piped-link:x:64999:64999::/:/bin/false\n")
    d.wrapper = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', users]
    with d:
        os.chmod(d.temp, 0o755)
        os.chmod(d.runtime_dir, 0o755)
        me = {"board": SELF, "known": True, "version": "0", "memory_bytes": 0}
        calls = [("LinkReport", {"report": {"self": me}}, None), ("LinkRoutes", {}, None),
                 ("Load", {"name": "x#0-1", "path": DIGITS}, None), ("Unload", {"name": "x#0-1"}, None),
                 ("Status", {}, None), ("Load", {"name": "x", "path": DIGITS}, "io.piped.PermissionDenied"),
                 ("Unload", {"name": "digits"}, "io.piped.PermissionDenied"),
                 ("SetPlan", {"plan": "0-11@big"}, "io.piped.PermissionDenied"), ("Reload", {}, "io.piped.PermissionDenied")]
        texts = [json.dumps({"method": "io.piped." + m, "parameters": p, "more": m == "LinkRoutes"}) for m, p, _ in calls]
        r = subprocess.run(as_user(64999, "/usr/bin/python3", "-c", AS_LINK, d.control_path, *texts),
                           capture_output=True, text=True, timeout=60, check=False)
        equal(r.returncode, 0, r.stderr)
        got = [json.loads(line).get("error") for line in r.stdout.splitlines()]
        equal([(m, e) for (m, _, _), e in zip(calls, got)], [(m, e) for m, _, e in calls])


LISTED = [frames_go_over_boards_while_the_route_is_ready, pictures_leave_as_tensors, f16_becomes_f32_before_it_leaves,
          a_model_that_is_too_large_for_this_board, what_comes_back_without_an_answer_is_computed_here,
          frames_are_counted_where_they_were_computed,
          frames_of_several_streams_stay_in_order_when_some_come_back, nothing_is_lost_when_piped_link_dies,
          a_failed_route_is_withdrawn_and_made_again, a_new_route_replaces_the_present_one_without_a_gap,
          silence_counts_as_away, clients_and_models_may_go_while_frames_are_away, a_stop_answers_what_is_away,
          a_reload_turns_it_on_and_off, bench_verifies_every_answer, bad_reports_change_nothing,
          the_user_piped_link_may_do_its_work_and_nothing_else]

if __name__ == "__main__":
    main(LISTED)
