#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The elements of GStreamer: what frames of a pipeline are answered is what other clients are answered; formats, strides,
the pad of texts, messages, and what the overlay draws.
"""
import json
import math
import os
import random
import re
import socket
import struct
import tempfile

import pyclient as pc
import test_outputs
from daemon import ROOT, check, equal
from gst import SINK, Served, main, missing, not_by_launch
from test_outputs import at, read_png

W, H = 64, 48
RED = (0xE6, 0x19, 0x4B)  # of class 0


def rows(data, row, stride, height):
    """The rows of a plane without what is behind them."""
    return b"".join(data[y * stride:y * stride + row] for y in range(height))


def of_protocol(connection, model, numbers=iter(range(1, 1000)), **options):
    return pc.Stream(connection, next(numbers), model, **options)


def all_frames_come_in_order_with_the_right_answers():
    """300 of a ball that moves, in the daemon's own memory; their rows are padded."""
    with Served() as d, pc.Connection(d.frames_path) as c:
        s = of_protocol(c, "mask", pixfmt=pc.RGB24, image=(61, 45))
        with d.play("videotestsrc pattern=ball num-buffers=300 ! video/x-raw,format=RGB,width=61,height=45 ! "
                    "pipedinfer name=infer model=mask raw-outputs=true ! " + SINK) as p:
            seen = set()
            for k in range(300):
                frame, = p.pull(1)
                equal(frame["pts"], k * 10**9 // 30)
                answer = frame["result"]
                equal((answer["status"], answer["model"]), (0, "mask"))
                theirs = s.infer(rows(p.dump(d.path("frame")), 3 * 61, 184, 45))
                equal(answer["outputs"], [theirs.output.hex()], k)
                seen.add(answer["outputs"][0])
            check(len(seen) > 10, "the ball did not move")
            equal(p.pull(1), [{"eos": True, "error": None}])
            stats = p.ask("stats")
            equal((stats["answered"], stats["in-place"], stats["copied"]), (300, 300, 0), stats)


def gst_launch_says_each_answer():
    if not_by_launch():
        return not_by_launch()
    with Served() as d:
        said = d.launch("videotestsrc num-buffers=300 ! pipedinfer model=text post-messages=true ! fakesink")
        numbers = [int(n) for n in re.findall(r'piped-result.*?frame\\"[:]+(\d+)', said)]
        equal(numbers, list(range(300)))
        equal(len(re.findall("status=\\(string\\)ok", said)), 300)
    return None


def formats():
    """(name, of GStreamer's rawvideoparse, planes as [(row bytes, rows)], of the protocol, how that is made of planes)"""
    def whole(*planes):
        return b"".join(planes)

    def three(packed):
        return b"".join(packed[i:i + 3] for i in range(0, len(packed), 4))

    def together(y, u, v):
        return y + bytes(b for pair in zip(u, v) for b in pair)

    def swapped(y, v, u):
        return together(y, u, v)

    half = (W // 2, H // 2)
    return (("rgb", [(3 * W, H)], pc.RGB24, whole), ("bgr", [(3 * W, H)], pc.BGR24, whole),
            ("gray8", [(W, H)], pc.GRAY8, whole), ("nv12", [(W, H), (W, H // 2)], pc.NV12, whole),
            ("yuy2", [(2 * W, H)], pc.YUYV, whole), ("i420", [(W, H), half, half], pc.NV12, together),
            ("yv12", [(W, H), half, half], pc.NV12, swapped), ("rgbx", [(4 * W, H)], pc.RGB24, three),
            ("bgrx", [(4 * W, H)], pc.BGR24, three), ("rgba", [(4 * W, H)], pc.RGB24, three),
            ("bgra", [(4 * W, H)], pc.BGR24, three))


def formats_and_strides_make_no_difference():
    """Pictures with gaps behind their rows and between their planes, of other sizes in each plane."""
    with Served() as d, pc.Connection(d.frames_path) as c:
        for k, (name, planes, pixfmt, joined) in enumerate(formats()):
            pixels = random.Random(k)
            data = [pixels.randbytes(row * count) for row, count in planes]
            theirs = of_protocol(c, "mask", pixfmt=pixfmt, image=(W, H)).infer(joined(*data))
            equal(theirs.status, "ok")
            for gap in (0, 12):
                file, strides, offsets = b"", [], []
                for i, ((row, count), plane) in enumerate(zip(planes, data)):
                    strides.append(row + gap * (i + 1))
                    offsets.append(len(file))
                    file += b"".join(plane[y * row:(y + 1) * row] + bytes([7]) * gap * (i + 1) for y in range(count))
                    file += bytes([9]) * 3 * gap
                with open(d.path("raw"), "wb") as f:
                    f.write(file * 3)
                with d.play("filesrc location=%s blocksize=%d ! rawvideoparse format=%s width=%d height=%d framerate=25/1 "
                            'plane-strides="<%s>" plane-offsets="<%s>" frame-size=%d ! '
                            "pipedinfer name=infer model=mask raw-outputs=true ! %s" % (
                                d.path("raw"), len(file), name, W, H, ",".join(map(str, strides)),
                                ",".join(map(str, offsets)), len(file), SINK)) as p:
                    frames = p.pull(4)
                    equal([f["result"]["outputs"] for f in frames[:3]], [[theirs.output.hex()]] * 3, (name, gap))
                    equal(frames[3:], [{"eos": True, "error": None}], name)


def rgb_of(y, u, v, kr, kb, full):
    """One colour by ITU-R BT.601, BT.709 or BT.2020, which differ in the shares of red and blue in luma."""
    luma, blue, red = (y / 255, (u - 128) / 255, (v - 128) / 255) if full else (
        (y - 16) / 219, (u - 128) / 224, (v - 128) / 224)
    r, b = luma + 2 * (1 - kr) * red, luma + 2 * (1 - kb) * blue
    return tuple(max(0, min(255, round(255 * c))) for c in (r, (luma - kr * r - kb * b) / (1 - kr - kb), b))


def colours_are_what_the_caps_say():
    """A picture of one colour, by each range and matrix, is answered as that colour in RGB is. (JPEG's is 1:4:0:0.)"""
    y, u, v = 140, 90, 170
    planes = {"i420": (y, u, v), "yv12": (y, v, u)}
    half = W * H // 4
    data = {name: bytes([a]) * (W * H) + bytes([b]) * half + bytes([c]) * half for name, (a, b, c) in planes.items()}
    data |= {"nv12": bytes([y]) * (W * H) + bytes((u, v)) * half, "yuy2": bytes((y, u, y, v)) * (W * H // 2),
             "gray8": bytes([y]) * (W * H), "rgb": bytes((y, u, v)) * (W * H)}
    bt601, bt709, bt2020 = (0.299, 0.114), (0.2126, 0.0722), (0.2627, 0.0593)
    cases = [(name, *case) for name in ("i420", "yv12", "nv12", "yuy2") for case in (
        ("1:4:0:0", rgb_of(y, u, v, *bt601, True)), ("2:4:7:1", rgb_of(y, u, v, *bt601, False)),
        ("bt709", rgb_of(y, u, v, *bt709, False)), ("1:3:5:1", rgb_of(y, u, v, *bt709, True)),
        ("bt2020", rgb_of(y, u, v, *bt2020, False)))]
    grey = (round((y - 16) * 255 / 219),) * 3
    cases += [("gray8", "1:4:0:0", (y,) * 3), ("gray8", "2:4:0:0", grey), ("rgb", "1:1:7:1", (y, u, v)),
              ("rgb", "2:1:7:1", tuple(round((c - 16) * 255 / 219) for c in (y, u, v)))]
    with Served() as d, pc.Connection(d.frames_path) as c:
        rgb = of_protocol(c, "mask", pixfmt=pc.RGB24, image=(W, H))
        for name, colorimetry, colour in cases:
            wanted = floats_of(rgb.infer(bytes(colour) * (W * H)).output)
            with open(d.path("raw"), "wb") as f:
                f.write(data[name])
            with d.play("filesrc location=%s blocksize=%d ! rawvideoparse format=%s width=%d height=%d framerate=25/1 "
                        "colorimetry=%s ! pipedinfer name=infer model=mask raw-outputs=true ! %s" % (
                            d.path("raw"), len(data[name]), name, W, H, colorimetry, SINK)) as p:
                got = floats_of(bytes.fromhex(p.pull(1)[0]["result"]["outputs"][0]))
            worst = max(abs(a - b) for a, b in zip(got, wanted))
            check(worst < 2.5, name, colorimetry, colour, "levels off:", worst)


def floats_of(data):
    return struct.unpack("<%df" % (len(data) // 4), data)


def texts_say_what_pipectl_says():
    with Served() as d, d.play(
            "videotestsrc pattern=ball num-buffers=20 ! video/x-raw,format=RGB,width=128,height=48 ! pipedinfer name=infer "
            "model=yolo ! queue ! %s infer.json ! queue ! appsink name=text sync=false" % SINK) as p:
        for k in range(20):
            frame, text = p.pull(1)[0], p.pull(1, "text")[0]
            answer = json.loads(text["json"])
            equal((text["pts"], answer["pts"], answer["frame"], answer["status"]), (frame["pts"], frame["pts"], k, "ok"))
            with open(d.path("frame.ppm"), "wb") as f:
                f.write(b"P6 128 48 255\n" + p.dump(d.path("frame")))
            theirs = d.pipectl("infer", "--model", "yolo", d.path("frame.ppm"))[0]
            for key in ("decoded", "width", "height", "objects"):
                equal(answer[key], theirs[key], key)
            equal([o["label"] for o in frame["result"]["objects"]], [o["label"] for o in theirs["objects"]])
        equal([p.pull(1)[0], p.pull(1, "text")[0]], [{"eos": True, "error": None}] * 2)
    with Served() as d, d.play("videotestsrc num-buffers=9 ! pipedinfer name=infer model=text infer.json ! "
                               "appsink name=out sync=false") as p:
        equal(len(p.pull(10)), 10, "only the pad of texts is linked")


def drawn(d, caps, tail="", model="yolo"):
    with d.play("videotestsrc pattern=black num-buffers=1 ! video/x-raw,%s ! pipedinfer name=infer model=%s ! %s "
                "pipedoverlay ! %s" % (caps, model, tail, SINK)) as p:
        equal(p.pull(1)[0]["result"]["status"], 0)
        return p.dump(d.path("frame"))


def the_overlay_draws_what_pipectl_draws():
    with Served() as d:
        with open(d.path("black.ppm"), "wb") as f:
            f.write(b"P6 128 48 255\n" + bytes(3 * 128 * 48))
        for model in ("yolo", "pose", "text", "plain"):
            got = drawn(d, "format=RGB,width=128,height=48", model=model)
            d.pipectl("infer", "--model", model, "--draw", d.path("out.png"), d.path("black.ppm"), as_json=False, expect=None)
            if not os.path.exists(d.path("out.png")):
                return "pipectl was built without PNG"
            _, wanted = read_png(d.path("out.png"))
            equal(got, b"".join(wanted), model)
            check(any(got), model, "nothing is drawn")
    return None


def the_overlay_draws_in_every_format():
    """The cat's left side is at (70, 16), the label of the dog at (24, 8); nothing is at (5, 40)."""
    spots = ((70, 16), (89, 25), (5, 40))
    y = [(66 * r + 129 * g + 25 * b + 128 + 256 * 16) >> 8 for r, g, b in (RED, RED)] + [16]
    u = ((-38 * RED[0] - 74 * RED[1] + 112 * RED[2] + 128 + 256 * 128) >> 8)
    with Served() as d:
        for name, step, order in (("RGB", 3, (0, 1, 2)), ("BGR", 3, (2, 1, 0)), ("RGBx", 4, (0, 1, 2)), ("BGRA", 4, (2, 1, 0))):
            got = drawn(d, "format=%s,width=128,height=48" % name)
            equal([tuple(got[step * (128 * b + a) + k] for k in order) for a, b in spots], [RED, RED, (0, 0, 0)], name)
        for name, step in (("GRAY8", 1), ("NV12", 1), ("I420", 1), ("YUY2", 2)):
            got = drawn(d, "format=%s,width=128,height=48" % name)
            equal([got[step * (128 * b + a)] for a, b in spots], y if name != "GRAY8" else y[:2] + [got[128 * 40 + 5]], name)
            places = {"NV12": 128 * 48 + 8 * 128 + 70, "I420": 128 * 48 + 8 * 64 + 35, "YUY2": 2 * 128 * 16 + 2 * 70 + 1}
            check(name == "GRAY8" or got[places[name]] == u, name, "blue")
        got = drawn(d, "format=RGB,width=128,height=48", "videoscale ! video/x-raw,width=256,height=96 !")
        lines = [got[3 * 256 * b:3 * 256 * (b + 1)] for b in range(96)]
        equal([at(lines, a, b) for a, b in ((140, 40), (179, 60), (10, 90))], [RED, RED, (0, 0, 0)], "scaled")


def errors_tell_the_reason():
    if not_by_launch():
        return not_by_launch()
    with Served() as d:
        for element, text in (("model=nix", "no such model: nix"), ("socket=/nowhere/frames.sock", "/nowhere/frames.sock"),
                              ("model=pose in-flight=300", "in-flight")):
            said = d.launch("videotestsrc num-buffers=3 ! pipedinfer %s ! fakesink" % element, expect=None)
            check(text in said, element, said)
        said = d.launch("videotestsrc num-buffers=3 ! video/x-raw,format=NV12,width=63,height=48 ! pipedinfer ! fakesink", 1)
        check("not-linked" in said or "could not link" in said.lower() or "negotiated" in said, said)
    return None


def what_cannot_be_drawn_is_said_once():
    """A model of which nobody knows how to decode: one warning, with the key and what to do. Not where tensors are wanted,
    and not of a classifier, whose classes are known without a key."""
    if not_by_launch():
        return not_by_launch()
    endless = test_outputs.fixed("endless", [1, 3], [1.0, math.inf, 2.0], None)
    unknown = "(key output)", "pipectl models inspect FILE --write-sidecar"
    with Served(models=dict(test_outputs.networks(), endless=endless)) as d:
        for element, parts in (("model=silent", unknown), ("model=silent raw-outputs=true", ()), ("model=digits", ()),
                               ("model=endless", ("no class is the best",)), ("model=yolo", ())):
            said = d.launch("videotestsrc num-buffers=20 ! pipedinfer %s ! pipedoverlay ! fakesink" % element)
            equal(len(re.findall("^WARNING: from element", said, re.M)), bool(parts), said)
            check(all(part in said for part in ("nothing to draw: ", *parts)) or not parts, element, said)
    return None


def message(sock):
    """Return: type of the next message, its bytes."""
    head = sock.recv(32, socket.MSG_WAITALL)
    length, kind = struct.unpack_from("<IH", head)
    return kind, head + sock.recv(length, socket.MSG_WAITALL)


def asked_for(d, properties):
    """Return: policy, priority and deadline of the stream that the element opens, as a listener before the daemon sees it."""
    with tempfile.TemporaryDirectory() as temp, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(temp, "frames.sock")
        listener.bind(path)
        listener.listen()
        listener.settimeout(60)
        with d.play("videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8,width=64,height=48 ! pipedinfer model=text "
                    "socket=%s %s ! %s" % (path, properties, SINK)):
            element = listener.accept()[0]
            with element, socket.socket(socket.AF_UNIX) as daemon:
                daemon.connect(d.frames_path)
                daemon.sendall(message(element)[1])
                element.sendall(message(daemon)[1])
                kind, opened = message(element)
                refused = bytes(48)
                element.sendall(pc.header(pc.OPENED, len(refused), stream=1, status=pc.STATUS.index("not_found")) + refused)
    equal(kind, pc.OPEN)
    _, _, policy, _, priority, deadline_ns = struct.unpack_from("<64sIIIIQ", opened, 32)
    return policy, priority, deadline_ns


def properties_of_the_stream_reach_the_daemon():
    with Served() as d:
        equal(asked_for(d, ""), (pc.BLOCK, 0, 0))
        equal(asked_for(d, "policy=latest priority=2 deadline-ms=250"), (pc.LATEST, 2, 250 * 10**6))


def examples():
    with open(os.path.join(ROOT, "docs", "gstreamer.md"), encoding="utf-8") as f:
        return [b.replace("\\\n", " ") for b in re.findall(r"```sh\n(gst-launch.*?)```", f.read(), re.S)]


def of_files(d, example):
    """What reads a file and writes others: the picture that comes with piped, or ten frames of a video."""
    if "in.webm" in example:
        d.launch("videotestsrc num-buffers=10 pattern=black ! video/x-raw,width=320,height=240 ! vp8enc deadline=1 ! "
                 "webmmux ! filesink location=" + d.path("in.webm"))
    pipeline = example.split(None, 2)[2].replace("/usr/share/piped/pictures", os.path.join(ROOT, "model", "default"))
    names = re.findall(r"location=(\w[\w.]*)", pipeline)
    d.launch(re.sub(r"location=(?=\w)", "location=" + d.path(""), pipeline))
    answers, drawn = ([n for n in names if n.endswith(".json")], [n for n in names if not n.endswith(".json")][-1])
    with open(d.path(answers[0]), encoding="utf-8") as f:
        frames = [json.loads(line) for line in f]
    equal([f["status"] for f in frames], ["ok"] * (10 if "in.webm" in example else 1), example)
    equal(len(frames[0]["objects"]), 0 if "in.webm" in example else 6, example)
    check(os.path.getsize(d.path(drawn)) > 300, example)


def the_pages_examples_run():
    """Without a camera and a screen: a test picture comes at the camera's pace, and nobody looks."""
    found, lacking = examples(), []
    if not_by_launch():
        return not_by_launch()
    check(len(found) >= 5, "examples on the page:", found)
    with Served() as d:
        d.pipectl("models", "load", "detector", os.path.join(ROOT, "model", "default", "detector.onnx"))
        for example in found:
            lacks = missing(re.findall(r"! *([a-z]\w+)(?=\s)", example))
            lacking += lacks
            if lacks:
                continue
            if "location=" in example and "answers.json" not in example:
                of_files(d, example)
                continue
            pipeline = example.split(None, 1)[1].replace("-m ", "").replace("-e ", "")
            pipeline = re.sub(r"v4l2src( device=\S+)?", "videotestsrc is-live=true num-buffers=10", pipeline)
            pipeline = re.sub(r"videotestsrc(?! is-live)", "videotestsrc num-buffers=10", pipeline)
            pipeline = re.sub(r"autovideosink", "fakesink", pipeline).replace("model=faces", "model=yolo")
            pipeline = pipeline.replace("answers.json", d.path("answers.json"))
            d.launch(pipeline)
            if "answers.json" in example:
                with open(d.path("answers.json"), encoding="utf-8") as f:
                    text = f.read()
                equal([json.loads(line)["status"] for line in text.splitlines()], ["ok"] * 10)
    return "GStreamer has no %s" % ", ".join(sorted(set(lacking))) if lacking else None


main((all_frames_come_in_order_with_the_right_answers, gst_launch_says_each_answer, formats_and_strides_make_no_difference,
      colours_are_what_the_caps_say, texts_say_what_pipectl_says, the_overlay_draws_what_pipectl_draws,
      the_overlay_draws_in_every_format, errors_tell_the_reason, what_cannot_be_drawn_is_said_once,
      properties_of_the_stream_reach_the_daemon, the_pages_examples_run))
