# SPDX-License-Identifier: Apache-2.0
"""A fleet whose head serves a model over several boards, and what tests ask of its route."""
import os
import subprocess

import tiny_onnx
from cases import check
from daemon import DIGITS, PIPED
from fleet import Fleet, segments_of
from load import Load, known
from network import network_reason
from program import SLOW

MODEL = "net"


def write_borders(folder):
    """A model of 4.3 MB, with borders of up to 256 kB. Return: its path."""
    path = os.path.join(folder, "borders.onnx")
    layers = [("conv", 16, 3), ("relu",), ("conv", 16, 3), ("relu",), ("pool",), ("conv", 32, 3), ("relu",), ("pool",),
              ("conv", 32, 3), ("relu",), ("linear", 128), ("relu",), ("linear", 10)]
    tiny_onnx.write(path, layers, channels=3, size=64)
    return path


class Spread(Fleet):
    """@route: as the key models.boards has it      @path: of the model; None: of write_borders()
    @keys: more of the head's configuration      @more: as Fleet's
    """

    def __init__(self, count, route, path=DIGITS, keys=None, **more):
        super().__init__(count, heartbeat=True, **more)
        self.route_text, self.path, self.keys = route, path or write_borders(self.folder), keys or {}
        self.configs["b1"] = self.head_config()

    def head_config(self):
        link = os.path.join(self.folder, "b1", "link-run", "frames.sock")
        return {"models": [{"name": MODEL, "path": self.path, "boards": self.route_text}],
                "boards": {"frames_socket": link}, **self.keys}

    def route(self):
        """Return: what status says of the model's route, or {}."""
        return next(m for m in self.head.status()["models"] if m["name"] == MODEL).get("route") or {}

    def until(self, good, what, seconds=30):
        """Asks for the route until it is good. Return: it."""
        last = {}

        def there():
            last.update(route=self.route())
            return last["route"] and good(last["route"])
        check(self.head.daemon.wait_until(there, seconds * SLOW), what, "did not come:", last.get("route"))
        return last["route"]

    def serving(self, seconds=30, route=None):
        """Waits until frames go over boards. @route: by this one."""
        return self.until(lambda r: r["serving"] and (route is None or r["route"] == route),
                          "a route that serves" if route is None else route, seconds)

    def alone(self, seconds=30):
        """Waits until the head computes frames by itself. Return: why."""
        return self.until(lambda r: not r["serving"], "the head alone", seconds)["why"]

    def ask_route(self, text):
        """Changes the configuration of the running head."""
        self.route_text = text
        self.configs["b1"] = self.head_config()
        self.head.daemon.write_config(self.configs["b1"])
        self.head.pipectl("reload")

    def set_route(self, text, seconds=30):
        """Changes the configuration, and waits until frames go that way."""
        self.ask_route(text)
        return self.serving(seconds, text)

    def in_two(self, at=0.4):
        """Return: a route by the head and b2, cut there."""
        units = known(self.path).units
        cut = max(int(units * at), 1)
        return "0-%d@here|%d-%d@b2" % (cut - 1, cut, units - 1)

    def load(self, *more, **options):
        return Load(self, MODEL, self.path, *more, **options)

    def computed(self, name):
        """Return: frames that segments of this board have answered."""
        return sum(segments_of(self[name]).values())


def spread_reason():
    """Return: why no model can be spread here; None: it can."""
    said = subprocess.run([PIPED, "--help"], capture_output=True, text=True, check=True).stdout
    return network_reason() if "boards.frames_socket" in said else "this piped spreads no models"


def route_of(cuts, boards):
    """@cuts: [(first, last)], @boards: texts. Return: the route's text."""
    return "|".join("%d-%d@%s" % (a, b, where) for (a, b), where in zip(cuts, boards))


def random_route(draw, units, names):
    """Return: a route of some hops, each on one or several boards; not all of it on the head, which is no route."""
    cuts = sorted(draw.sample(range(1, units), draw.randint(1, min(4, units - 1))))
    ends = [0] + cuts + [units]
    places = [["here"]]
    while all(p == ["here"] for p in places):
        places = [draw.sample(names, draw.choice((1, 1, 1, 2))) for _ in range(len(ends) - 1)]
    return route_of([(a, b - 1) for a, b in zip(ends, ends[1:])], ["+".join(p) for p in places])
