#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of a model that two boards serve: the answers are those of one board, bit for bit and in order, for every format,
size and fit; on the wire goes the picture or the tensor that it becomes, whichever has fewer bytes.

usage: test_pictures.py SOURCE_ROOT [CASE...]     (PIPED_BUILD: the build folder)
"""
import json
import os
import random
import sys
import tempfile

ROOT = sys.argv[1]
for folder in ("lint", "system"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import pyclient as pc  # noqa: E402  (the folders are known only now)
import tiny_onnx  # noqa: E402
from cases import check, main  # noqa: E402
from program import LIMIT_S  # noqa: E402
from spread import MODEL, Spread, spread_reason  # noqa: E402
from wait import until  # noqa: E402

SIDE = 48
TENSOR = 3 * SIDE * SIDE * 4
LAYERS = [("conv", 16, 3), ("relu",), ("pool",), ("conv", 32, 3), ("relu",), ("pool",), ("linear", 10)]
PREPROCESS = {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}
FORMATS = {"rgb24": (pc.RGB24, 3), "bgr24": (pc.BGR24, 3), "gray8": (pc.GRAY8, 1), "nv12": (pc.NV12, 1.5), "yuyv": (pc.YUYV, 2)}
SIZES = ((SIDE, SIDE), (40, 64), (30, 20), (160, 120))  # plain; resized, of fewer bytes; less; more bytes than the tensor
EACH = 3


def write_model(folder, preprocess):
    path = os.path.join(folder, "net.onnx")
    tiny_onnx.write(path, LAYERS, channels=3, size=SIDE)
    with open(path.replace(".onnx", ".sidecar.json"), "w", encoding="utf-8") as f:
        json.dump({"preprocess": preprocess}, f)
    return path


def pictures():
    """Return: {(format, size): pictures}."""
    draw = random.Random(3)
    return {(name, size): [draw.randbytes(int(size[0] * size[1] * per)) for _ in range(EACH)]
            for name, (_, per) in FORMATS.items() for size in SIZES}


def answers(path, asked, inline):
    """All frames of a format are in flight at once. Return: {(format, size): outputs}."""
    found = {}
    with pc.Connection(path) as c:
        for number, ((name, size), data) in enumerate(asked.items(), 1):
            s = pc.Stream(c, number, MODEL, inline=inline, credits=EACH, pixfmt=FORMATS[name][0], image=size)
            for d in data:
                s.submit(d)
            results = [s.result() for _ in data]
            check([(r.frame, r.status) for r in results] == [(i + 1, "ok") for i in range(EACH)], name, size, results)
            found[name, size] = [r.output for r in results]
            s.close()
    return found


def compare(fleet, asked, wanted, what):
    """All go over the boards, by shared memory and inline."""
    for inline in (False, True):
        def all_went_there(inline=inline):
            before = fleet.route()
            got = answers(fleet.head.frames_path, asked, inline)
            for key, outputs in wanted.items():
                check(got[key] == outputs, what, key, "inline" if inline else "in shared memory")
            after = fleet.route()
            return after["sent"] - before["sent"] == EACH * len(asked) and after["returned"] == before["returned"]
        # the first ones of a format are computed here, until there is a way for them
        until(all_went_there, what, "all sent:", fleet.route, limit_s=LIMIT_S)


def routes(fleet):
    last = fleet.head.status()["models"][0]["units"] - 1
    cut = last // 2
    return ("0-%d@b2" % last, "0-%d@here|%d-%d@b2" % (cut, cut + 1, last), "0-%d@b2|%d-%d@here" % (cut, cut + 1, last),
            "0-%d@here+b2" % last)


def of_the_other_board(board):
    """What it computes for the head is not a model of its own, but in JSON and with --all."""
    found = [m for m in board.status()["models"] if m.get("segment")]
    check(found, "it computes nothing for the head")
    for command in (("status",), ("models", "list")):
        said, everything = board.pipectl(*command), board.pipectl(*command, "--all")
        for m in found:
            its = m["segment"]
            check((its["of"], its["board"]) == (MODEL, "b1"), its)
            line = "computed here: %s, units %d-%d for board b1, plan " % (MODEL, its["first_unit"], its["last_unit"])
            check(line in said and m["name"] not in said, said)
            check(line not in everything and m["name"] in everything, everything)


def every_format_size_and_fit():
    why = spread_reason()
    if why:
        return why
    asked = pictures()
    for fit in ("stretch", "crop", "letterbox"):
        with tempfile.TemporaryDirectory() as folder:
            path = write_model(folder, {**PREPROCESS, "fit": fit, **({"colour": "bgr"} if fit == "crop" else {})})
            with Spread(2, "off", path) as fleet:
                wanted = answers(fleet.head.frames_path, asked, True)
                check(len({o for each in wanted.values() for o in each}) > len(wanted), "all pictures have one answer")
                for route in routes(fleet)[:4 if fit == "stretch" else 1]:
                    fleet.set_route(route)
                    fleet.until(lambda r: r["pictures"], "pictures as they are")
                    said, everything = (fleet.head.pipectl("status", *more) for more in ((), ("--all",)))
                    here = "here" in route
                    check("net-" not in said and ("computed here: units 0-" in said) == here, said)
                    check(("\nmodel net-" in everything) == here, everything)
                    check("pictures go as they are" in said, said)
                    of_the_other_board(fleet["b2"])
                    compare(fleet, asked, wanted, fit + " by " + route)
    return None


def another_sidecar():
    """Boards load the segment anew: its pictures become the input in another way."""
    why = spread_reason()
    if why:
        return why
    asked = {("rgb24", (SIDE, SIDE)): pictures()["rgb24", (SIDE, SIDE)]}
    with tempfile.TemporaryDirectory() as folder:
        path = write_model(folder, PREPROCESS)
        with Spread(2, "off", path) as fleet:
            route = routes(fleet)[0]
            first = answers(fleet.head.frames_path, asked, True)
            fleet.set_route(route)
            compare(fleet, asked, first, "the first sidecar")
            write_model(folder, {"mean": 100, "std": 50})
            fleet.ask_route("off")
            second = answers(fleet.head.frames_path, asked, True)
            check(second != first, "the sidecar changed nothing")
            fleet.set_route(route)
            compare(fleet, asked, second, "the second sidecar")
    return None


def received(fleet, name):
    """Return: bytes that the board's network device has received."""
    with open("/proc/%d/net/dev" % fleet.network.spaces[name].holder.pid, encoding="utf-8") as f:
        line = next(x for x in f if x.strip().startswith("eth0:"))
    return int(line.split(":")[1].split()[0])


def fewer_bytes_go_on_the_wire():
    why = spread_reason()
    if why:
        return why
    count = 200
    with tempfile.TemporaryDirectory() as folder, Spread(2, "off", write_model(folder, PREPROCESS)) as fleet:
        fleet.set_route(routes(fleet)[0])
        for size, bytes_each in (((SIDE, SIDE), SIDE * SIDE * 3), ((160, 120), TENSOR)):
            with pc.Connection(fleet.head.frames_path) as c:
                s = pc.Stream(c, 1, MODEL, inline=True, credits=4, pixfmt=pc.RGB24, image=size)
                data = bytes(size[0] * size[1] * 3)
                first = fleet.route()["sent"]
                while fleet.route()["sent"] == first:  # until there is a way for its pictures
                    check(s.infer(data).status == "ok")
                before = received(fleet, "b2")
                for _ in range(count):
                    check(s.infer(data).status == "ok")
                each = (received(fleet, "b2") - before) / count
            print("  a picture of %dx%d: %.0f bytes on the wire, %d expected" % (*size, each, bytes_each))
            check(bytes_each <= each < 1.5 * bytes_each, size, each, "bytes a frame, not", bytes_each)
    return None


main((every_format_size_and_fit, another_sidecar, fewer_bytes_go_on_the_wire), sys.argv[2:])
