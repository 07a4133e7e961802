# SPDX-License-Identifier: Apache-2.0
"""The other doors of a soak: HTTP, Python, GStreamer and links between boards, beside the clients of the frames protocol.

A door is made before the daemon starts, so that it may add to its configuration; begin() starts its programs and clients.
At a rest its clients hold no connection, and its programs are measured as the daemon is.
"""
import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for folder in ("boards", "system"):
    sys.path.insert(0, os.path.join(TESTS, folder))
import gst  # noqa: E402
import pyclient as pc  # noqa: E402
import python_client  # noqa: E402
import tiny_onnx  # noqa: E402
from daemon import BUILD, PIPECTL, Daemon, check, equal, subprocess  # noqa: E402
from http_server import PIPED_HTTP, Http  # noqa: E402
from network import free_ports  # noqa: E402
from program import Program  # noqa: E402
from soak_clients import INPUTS, LIMIT_S, Answers, Client  # noqa: E402

PIPED_LINK = os.path.join(BUILD, "apps", "link", "piped-link")
THREADED = "ThreadSanitizer knows nothing of the threads of %s"


def tsan():
    return os.environ.get("PIPED_TEST_SANITIZER") == "tsan"


class Door:
    """@soak: with the daemon `d`, its `config`, `answers` by model, and a `seed`"""
    events = ()

    def __init__(self, soak):
        self.soak, self.d, self.clients = soak, soak.d, []

    def begin(self):
        """The daemon serves, and its answers are known."""

    def warm(self):
        """Return: whether there is all that will be there at a rest."""
        return True

    def processes(self):
        """Return: {name: id} of what is to stay as it is."""
        return {}

    def log(self):
        return ""

    def end(self):
        """Ends its programs, and checks that they end well; its clients have ended."""

    def kill(self):
        """After a failure."""


# ---- HTTP ----

class HttpClient(Client):
    door = "http"

    def __init__(self, h, answers, seed):
        self.h, self.models = h, answers
        self.described = {a.name: h.get("/v2/models/" + a.name)[2]["inputs"][0] for a in answers}
        super().__init__(None, None, seed)

    def life(self):
        """One connection that is kept, and others beside it."""
        kept = self.h.connect()
        try:
            for _ in range(self.random.randint(1, 60)):
                if self.rest.is_set() or self.quit.is_set():
                    break
                self.random.choices((self.ask, self.mistake, self.vanish), (30, 1, 1))[0](kept)
        finally:
            kept.close()

    def ask(self, kept):
        answers, which = self.random.choice(self.models), self.random.randrange(INPUTS)
        body, headers = self.random.choice((self.raw, self.json, self.mixed))(answers.name, answers.frames[which])
        since = time.monotonic()
        status, headers, data = self.h.infer(answers.name, body, headers, connection=kept if self.random.random() < 0.7 else None)
        if status == 200:
            answers.check(which, self.output(headers, data))
            self.times_ms.append(1000 * (time.monotonic() - since))
            self.count("ok")
        else:
            self.passing(status, headers, data)

    def raw(self, _, frame):
        return frame, {"Content-Type": "application/octet-stream"}

    def tensor(self, name, **more):
        about = self.described[name]
        return {"name": about["name"], "datatype": "FP32", "shape": about["shape"], **more}

    def json(self, name, frame):
        numbers = struct.unpack("<%df" % (len(frame) // 4), frame)
        return {"inputs": [self.tensor(name, data=numbers)]}, {"Content-Type": "application/json"}

    def mixed(self, name, frame):
        head = json.dumps({"inputs": [self.tensor(name, parameters={"binary_data_size": len(frame)})],
                           "parameters": {"binary_data_output": self.random.random() < 0.5}}).encode()
        return head + frame, {"Inference-Header-Content-Length": str(len(head))}

    @staticmethod
    def output(headers, data):
        if isinstance(data, dict):
            return b"".join(struct.pack("<%df" % len(o["data"]), *o["data"]) for o in data["outputs"])
        return data[int(headers["Inference-Header-Content-Length"]):]

    def passing(self, status, headers, data):
        check(status in (429, 503) and headers["Retry-After"], "HTTP answered", status, data)
        self.count("told to wait")
        self.quit.wait(0.05)

    def mistake(self, kept):
        """It is told so, unless the daemon is away."""
        octets = {"Content-Type": "application/octet-stream"}
        name, body, headers, wanted = self.random.choice((
            ("nothing", b"1234", octets, 404), ("digits", b"1234", octets, 400), ("digits", '{"inputs": [', None, 400),
            ("digits", b"1234", {"Content-Type": "text/html"}, 415)))
        status, headers, data = self.h.infer(name, body, headers, connection=kept)
        if status == wanted:
            self.count("told of a mistake")
        else:
            self.passing(status, headers, data)

    def vanish(self, _):
        """In the middle of the request, or before the answer; half of them with a reset."""
        frame = self.models[0].frames[0]
        head = "POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n" \
            "Content-Length: %d\r\n\r\n" % (self.models[0].name, len(frame))
        request = head.encode() + frame
        with socket.create_connection(("127.0.0.1", self.h.port), LIMIT_S) as s:
            s.sendall(request[:self.random.choice((len(request), self.random.randrange(len(request))))])
            if self.random.random() < 0.5:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.count("vanished")


class HttpDoor(Door):
    STREAMS = 2  # of each model; as many clients keep them all busy

    @staticmethod
    def why_not():
        return None if os.path.exists(PIPED_HTTP) else "this is a build without piped-http"

    def begin(self):
        self.h = Http(self.d, "--streams", str(self.STREAMS)).start()
        self.models = [self.soak.answers[n] for n in ("digits", "colour")]
        self.clients = [HttpClient(self.h, self.models, self.soak.seed + 10 + i) for i in range(self.STREAMS)]

    def warm(self):
        """It keeps connections to the daemon for a while: all are there at the first rest."""
        return self.h.metric("piped_http_streams") == self.STREAMS * len(self.models)

    def processes(self):
        return {"piped-http": self.h.process.pid}

    def log(self):
        return self.h.log()

    def end(self):
        self.h.stop()

    def kill(self):
        with contextlib.suppress(AttributeError):
            self.h.process.kill()
            self.h.process.wait()


# ---- Python ----

class PythonClient(Client):
    door = "python"

    def life(self):
        try:
            connection = python_client.piped.connect(self.path, timeout=LIMIT_S)
        except python_client.piped.NotReachable:  # the first connecting does not wait for a daemon
            self.count("no daemon")
            self.quit.wait(0.05)
            return
        self.current, self.order = self.random.choice(self.answers), []
        with connection as p, p.stream(self.current.name, inline=self.random.random() < 0.3,
                                       in_flight=self.random.randint(1, 8)) as s:
            way = self.random.choice((self.by_infer, self.by_run, self.by_ainfer, self.by_gather))
            way(s, self.random.randint(1, 200))
            stats = s.stats
            equal((len(self.order), stats["reordered"], stats["duplicated"]), (0, 0, 0), stats)
            self.count("reconnected" if p.reconnects else "stayed connected")

    def frames(self, s, count):
        shape = s.inputs[0].shape
        for _ in range(count):
            if self.rest.is_set() or self.quit.is_set():
                return
            which = self.random.randrange(INPUTS)
            self.order.append((which, time.monotonic()))
            yield python_client.np.frombuffer(self.current.frames[which], "<f4").reshape(shape)

    def answer(self, a):
        which, since = self.order.pop(0)
        check(a.ok, "Python got", a.status, a.reason)
        self.current.check(which, b"".join(o.tobytes() for o in a.outputs.values()))
        self.times_ms.append(1000 * (time.monotonic() - since))
        self.count("ok")

    def by_infer(self, s, count):
        for number, a in enumerate(s.infer(self.frames(s, count), copy=self.random.random() < 0.5)):
            equal(a.number, number + 1)
            self.answer(a)

    def by_run(self, s, count):
        for frame in self.frames(s, count):
            self.answer(s.run(frame, timeout=LIMIT_S))

    def by_ainfer(self, s, count):
        async def all_of_them():
            number = 0
            async for a in s.ainfer(self.frames(s, count)):
                number += 1
                equal(a.number, number)
                self.answer(a)
        asyncio.run(all_of_them())

    def by_gather(self, s, count):
        async def at_once():
            for _ in range(count // 10 + 1):
                for a in await asyncio.gather(*(s.infer_one(f) for f in list(self.frames(s, 10)))):
                    self.answer(a)
        asyncio.run(at_once())


class PythonDoor(Door):
    CLIENTS = 2
    why_not = staticmethod(python_client.why_not)

    def begin(self):
        answers = [self.soak.answers[n] for n in ("digits", "colour")]
        self.clients = [PythonClient(self.d.frames_path, answers, self.soak.seed + 20 + i) for i in range(self.CLIENTS)]


# ---- GStreamer ----

class GstClient(Client):
    """Each pipeline shows the same pictures of a ball, whose answers are those of the first pipeline that showed them."""
    door = "gstreamer"
    RATE, OK = 30, 0
    MOST = 150  # of a format

    def __init__(self, path, seed):
        self.first = {}
        super().__init__(path, None, seed)

    def life(self):
        r = self.random
        parts = [(r.choice(("RGB", "NV12", "I420")), r.randint(1, self.MOST)) for _ in range(r.randint(1, 4))]
        text = "concat name=c ! pipedinfer name=infer socket=%s model=colour raw-outputs=true in-flight=%d timeout-ms=%d ! %s" % (
            self.path, r.randint(1, 8), 1000 * LIMIT_S, gst.SINK)
        for part in parts:
            text += " videotestsrc pattern=ball num-buffers=%d ! video/x-raw,format=%s,width=64,height=48,framerate=%d/1 ! c." % (
                part[1], part[0], self.RATE)
        wanted = [(form, number) for form, most in parts for number in range(most)]
        del wanted[r.choice((len(wanted), r.randint(1, len(wanted)))):]
        count = len(wanted)
        with gst.Pipeline(text, gst.environment()) as p:
            while wanted and not self.rest.is_set() and not self.quit.is_set():
                since = time.monotonic()
                frames = p.pull(min(10, len(wanted)))
                if len(wanted) == count and "not reachable at" in (frames[0].get("error") or ""):
                    self.count("no daemon")  # at the start it is not waited for
                    return
                for frame in frames:
                    self.compare(frame, *wanted.pop(0))
                self.times_ms.append(1000 * (time.monotonic() - since) / len(frames))
            self.count("reconnected" if p.ask("stats")["reconnects"] else "stayed connected")

    def compare(self, frame, form, number):
        check("pts" in frame, "no frame but", frame)
        equal(frame["pts"], number * 10**9 // self.RATE, "time of frame %d" % number)
        result = frame["result"]
        equal(result["status"], self.OK, result["reason"])
        equal(result["outputs"], self.first.setdefault((form, number), result["outputs"]), "frame %d of %s" % (number, form))
        self.count("ok")


class GstDoor(Door):
    @staticmethod
    def why_not():
        return THREADED % "GStreamer" if tsan() else gst.why_not()

    def begin(self):
        self.clients = [GstClient(self.d.frames_path, self.soak.seed + 30)]


# ---- links ----

class SpreadClient(Client):
    """Of a model that is spread over boards."""
    door = "spread"


class LinkClient(Client):
    """At the socket where piped-link has such frames from the daemon: only while the boards serve."""
    door, policies = "link", [pc.BLOCK]


class LinkDoor(Door):
    """The daemon is the head of a model that another board helps to serve, over the loopback device."""
    HEAD, OTHER = "b1", "b2"

    @staticmethod
    def why_not():
        if not os.path.exists(PIPED_LINK):
            return "this is a build without piped-link"
        return THREADED % "ZeroMQ" if tsan() else None

    def __init__(self, soak):
        super().__init__(soak)
        self.port = dict(zip((self.HEAD, self.OTHER), free_ports(2)))
        self.links = {}
        for name in self.port:
            os.makedirs(self.path(name, "link"))
        keys = {n: self.board(n, "key").strip() for n in self.port}
        for a, b in ((self.HEAD, self.OTHER), (self.OTHER, self.HEAD)):
            self.board(a, "add", b, "127.0.0.1:%d" % self.port[b], keys[b])
        self.other = Daemon(config={"boards": {"frames_socket": self.front(self.OTHER)}}, expect_exit=None)
        model = os.path.join(self.d.temp, "net.onnx")
        tiny_onnx.write(model, [("conv", 8, 3), ("relu",), ("pool",), ("conv", 16, 3), ("relu",), ("linear", 10)], size=16)
        self.entry = {"name": "net", "path": model}
        soak.config.update(models=[self.entry], boards={"frames_socket": self.front(self.HEAD)})
        self.answers = Answers("net")

    def path(self, name, *words):
        return os.path.join(self.d.temp, "boards", name, *words)

    def front(self, name):
        return self.path(name, "link", "frames.sock")

    def board(self, name, *words):
        return subprocess.run([PIPECTL, "board", "--state-dir", self.path(name, "state"), *words], check=True, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout

    def daemon(self, name):
        return self.d if name == self.HEAD else self.other

    def start_link(self, name):
        self.links[name] = Program([
            PIPED_LINK, "--name", name, "--listen", "127.0.0.1:%d" % self.port[name], "--state-dir", self.path(name, "state"),
            "--runtime-dir", self.path(name, "link"), "--socket", self.daemon(name).frames_path], self.path(name, "link.log"))
        self.links[name].wait("piped-link: listens", LIMIT_S)

    def begin(self):
        self.answers.learn(self.d)
        units = self.soak.model("net")["units"]
        self.entry["boards"] = "0-%d@here|%d-%d@%s" % (units // 2 - 1, units // 2, units - 1, self.OTHER)
        self.other.start()
        for name in self.port:
            self.start_link(name)
        self.soak.reload()
        check(self.d.wait_until(self.served), "the boards do not serve:", self.soak.model("net"))
        self.answers.learn(self.d, self.front(self.HEAD))
        equal(self.answers.right[0], self.answers.right[1], "answers of two boards")
        self.clients = [SpreadClient(self.d.frames_path, self.answers, self.soak.seed + 40),
                        LinkClient(self.front(self.HEAD), self.answers, self.soak.seed + 41)]

    def served(self):
        return (self.soak.model("net").get("route") or {}).get("serving")

    def cut(self):
        """One end of the link dies and comes back."""
        name = self.soak.random.choice((self.HEAD, self.OTHER))
        self.links[name].kill()
        self.start_link(name)

    def lose(self):
        """The other board's daemon dies and comes back."""
        self.other.kill()
        self.other.start()

    events = (cut, lose)

    def processes(self):
        return {"piped of b2": self.other.process.pid, **{"piped-link of " + n: p.pid for n, p in self.links.items()}}

    def log(self):
        return "\n".join(["---- piped of b2 ----", self.other.log()] + [
            "---- piped-link of %s ----\n%s" % (name, link.said()) for name, link in self.links.items()])

    def end(self):
        for name, link in self.links.items():
            equal(link.stop(), 0, "exit code of piped-link of %s: %s" % (name, link.said()))
        self.other.expect_exit = 0
        self.other.stop()
        self.other.cleanup()

    def kill(self):
        for link in self.links.values():
            if link.process.poll() is None:
                link.kill()
        self.other.cleanup()


ALL = (HttpDoor, PythonDoor, GstDoor, LinkDoor)
MISSING = {door: door.why_not() for door in ALL}
PRESENT = [door for door in ALL if not MISSING[door]]


def absent(door):
    """Return: a case that is skipped, and says why."""
    def case():
        return MISSING[door]
    case.__name__ = door.__name__
    return case


SKIPPED = [absent(door) for door in ALL if MISSING[door]]
