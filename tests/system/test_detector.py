#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The detector of digits that comes with piped finds what is in the pictures that come with it, by every door.

usage: test_detector.py [CASE]...
"""
import json
import os
import subprocess

import gst
from daemon import LIMIT_S, PIPECTL, ROOT, Daemon, check, equal, main
from http_server import PIPED_HTTP, Http

FOLDER = os.path.join(ROOT, "model", "default")
DETECTOR = os.path.join(FOLDER, "detector.onnx")
BYTES_MOST = 500000
OVERLAP_LEAST = 0.5
DAEMON = None

with open(os.path.join(FOLDER, "pictures.json"), encoding="utf-8") as known:
    PICTURES = json.load(known)


def overlap(a, b):
    """Intersection over union."""
    width = min(a["x"] + a["width"], b["x"] + b["width"]) - max(a["x"], b["x"])
    height = min(a["y"] + a["height"], b["y"] + b["height"]) - max(a["y"], b["y"])
    both = max(width, 0) * max(height, 0)
    return both / (a["width"] * a["height"] + b["width"] * b["height"] - both)


def found(name, objects):
    """Each digit of the picture is found once, and nothing else is."""
    truth = PICTURES[name]
    equal(sorted(o["label"] for o in objects), sorted(t["label"] for t in truth), name)
    for t in truth:
        check(any(o["label"] == t["label"] and overlap(o, t) >= OVERLAP_LEAST for o in objects), name, t, objects)


def picture(name):
    return os.path.join(FOLDER, name)


def pipectl_finds_each_digit():
    for name in PICTURES:
        found(name, DAEMON.pipectl("infer", "--model", "detector", picture(name))[0]["objects"])


def http_finds_each_digit():
    if not os.path.exists(PIPED_HTTP):
        return "piped-http is not built"
    with Http(DAEMON) as h:
        for name in PICTURES:
            with open(picture(name), "rb") as f:
                status, _, answer = h.request("POST", "/v2/models/detector/infer?decode=1", f.read(),
                                              {"Content-Type": "image/jpeg"})
            equal(status, 200, answer)
            found(name, answer["objects"])
    return None


def gstreamer_finds_each_digit():
    """As in docs/gstreamer.md: a file goes in, and a picture with boxes and a line of JSON come out."""
    lacks = gst.why_not() or gst.not_by_launch()
    if lacks or gst.missing(("jpegdec", "pngenc")):
        return lacks or "GStreamer has no jpegdec or pngenc"
    out, answers = (os.path.join(DAEMON.temp, n) for n in ("boxes.png", "answers.json"))
    text = ("filesrc location=%s ! jpegdec ! videoconvert ! pipedinfer name=i model=detector ! queue ! pipedoverlay ! "
            "videoconvert ! pngenc ! filesink location=%s i.json ! queue ! filesink location=%s")
    subprocess.run(["gst-launch-1.0", "-q", *(text % (picture("wall.jpg"), out, answers)).split()], check=True,
                   env=gst.environment(PIPED_RUNTIME_DIR=DAEMON.runtime_dir), timeout=2 * LIMIT_S)
    with open(answers, encoding="utf-8") as f:
        found("wall.jpg", json.loads(f.read())["objects"])
    check(os.path.getsize(out) > 1000, "no picture")
    return None


def it_is_loaded_by_its_name_alone():
    with Daemon() as d:
        d.pipectl("models", "load", "detector")
        equal(d.pipectl("models", "load", "detector", as_json=False), "detector is loaded already\n", "asked for again")
        found("desk.jpg", d.pipectl("infer", "--model", "detector", picture("desk.jpg"))[0]["objects"])
        d.pipectl("models", "unload", "detector")
        done = subprocess.run([PIPECTL, "infer", "--model", "detector", picture("desk.jpg")], check=False, text=True,
                              stderr=subprocess.PIPE, timeout=LIMIT_S, env=dict(os.environ, PIPED_RUNTIME_DIR=d.runtime_dir))
        check("it comes with piped: sudo pipectl models load detector" in done.stderr, done.stderr)
        for name in ("detektor", "../default/detector"):
            r = subprocess.run([PIPECTL, "--socket", d.control_path, "models", "load", name], capture_output=True,
                               text=True, check=False)
            equal((r.returncode, "no model '%s' comes with piped" % name in r.stderr), (1, True), r.stderr)


def it_is_small():
    size = os.path.getsize(DETECTOR)
    check(size <= BYTES_MOST, size)


if __name__ == "__main__":
    with Daemon(models={"detector": DETECTOR}) as DAEMON:
        main([pipectl_finds_each_digit, http_finds_each_digit, gstreamer_finds_each_digit,
              it_is_loaded_by_its_name_alone, it_is_small])
