#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One picture has one answer, whoever asks: pipectl infer, HTTP, the Python client and GStreamer; with a sidecar that says
`decode: classes`, with one that says more, and with none; of networks that end in Softmax, in Sigmoid, and in neither.

usage: test_classes.py [CASE]...
"""
import json
import math
import os
import shutil

import gst
import python_client
from daemon import Daemon, check, equal, main
from http_models import png_of
from http_server import PIPED_HTTP, Http
from test_outputs import FOLDER, H, W, fixed, floats, integers, node, ppm, write

SCORES = [1.0, 4.5, 2.0, -1.0, 4.0, 0.5]
LABELS = ["ant", "bee", "cat", "dog", "eel", "fox"]


def network(name, end, output=None, shape=(1, 6), **attributes):
    """Answers SCORES to every picture, after the operator `end`."""
    nodes = [node("GlobalAveragePool", ["input"], "mean"), node("Flatten", ["mean"], "flat"),
             node("Gemm", ["flat", "zero", "values"], "row", transB=1)]
    nodes += [node(end, ["row"], "likely", **attributes), node("Identity", ["likely"], "answer")] if end else \
        [node("Identity", ["row"], "answer")]
    tensors = [floats("zero", (6, 3), [0.0] * 18), floats("values", (6,), SCORES)]
    return write(name, nodes, tensors, [("answer", shape)], dict({"labels": LABELS}, **({"output": output} if output else {})))


def softmax(values):
    powers = [math.exp(v) for v in values]
    return [p / sum(powers) for p in powers]


SOFT, SIGMOID = softmax(SCORES), [1 / (1 + math.exp(-v)) for v in SCORES]
# name: (its last operator, the key output, what the outputs are, probabilities)
KINDS = {
    "soft": ("Softmax", None, SOFT, SOFT),
    "soft_said": ("Softmax", {"decode": "classes"}, SOFT, SOFT),
    "soft_named": ("Softmax", {"decode": "classes", "tensors": {"boxes": "answer"}}, SOFT, SOFT),
    "soft_twice": ("Softmax", {"decode": "classes", "activation": "softmax"}, SOFT, softmax(SOFT)),
    "sigmoid": ("Sigmoid", None, SIGMOID, SIGMOID),
    "sigmoid_said": ("Sigmoid", {"decode": "classes"}, SIGMOID, SIGMOID),
    "logits": (None, None, SCORES, SOFT),
    "logits_said": (None, {"decode": "classes", "most": 4}, SCORES, SOFT),
    "logits_none": (None, {"decode": "classes", "activation": "none"}, SCORES, SCORES),
}


def models():
    return {name: network(name, kind[0], kind[1], **({"axis": 1} if kind[0] == "Softmax" else {})) for name, kind in KINDS.items()}


def wanted(name, count=2):
    """[(class, label, score, probability)] of the best classes."""
    _, _, scores, likely = KINDS[name]
    best = sorted(range(6), key=lambda k: -scores[k])[:count]
    return [(k, LABELS[k], scores[k], likely[k]) for k in best]


def same(got, name, what):
    expect = wanted(name, len(got))
    check(len(got) >= 2 and all(a[:2] == b[:2] and all(abs(x - y) < 1e-5 for x, y in zip(a[2:], b[2:]))
                                for a, b in zip(got, expect)), what, name, got, expect)


def picture():
    return ppm("any.ppm", W, H, lambda x, y: (90, 90, 90))


def top_of(answer):
    return [(t["class"], t["label"], t["score"], t["probability"]) for t in answer["top"][:2]]


def objects_of(answer, name):
    """Objects have probabilities alone."""
    equal((answer["decoded"], len(answer["objects"])), ("classes", 4 if name == "logits_said" else 5))
    return [(o["class"], o["label"], *wanted(name, 2)[i][2:3], o["score"]) for i, o in enumerate(answer["objects"][:2])]


def pipectl_says_so(d):
    for name in KINDS:
        answer, = d.pipectl("infer", "--model", name, picture())
        same(top_of(answer), name, "infer")
        same(objects_of(answer, name), name, "infer, decoded")
        text = d.pipectl("infer", "--model", name, "--top", "1", picture(), as_json=False)
        check("  %5.1f %%  bee, class 1" % (100 * KINDS[name][3][1]) in text, name, text)


def http_says_so(d):
    if not os.path.exists(PIPED_HTTP):
        return "piped-http is not built"
    with open(picture(), "rb") as f:
        body = {"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 3, H, W], "data": [0.5] * (3 * H * W)}]}
        png = png_of(W, H, 3, f.read()[-3 * W * H:])
    with Http(d) as h:
        for name in KINDS:
            status, _, answer = h.request("POST", "/v2/models/%s/infer?top=2" % name, png, {"Content-Type": "image/png"})
            equal((status, len(answer.get("top", []))), (200, 2), answer)
            same(top_of(answer), name, "HTTP, top")
            status, _, answer = h.request("POST", "/v2/models/%s/infer?decode=1" % name, png, {"Content-Type": "image/png"})
            equal(status, 200, answer)
            same(objects_of(answer, name), name, "HTTP, decode")
            status, _, answer = h.request("POST", "/v2/models/%s/infer?decode=1" % name, json.dumps(body),
                                          {"Content-Type": "application/json"})
            equal(status, 200, answer)
            same(objects_of(answer, name), name, "HTTP, decode of a tensor")
    return None


def python_says_so(d):
    reason = python_client.why_not()
    if reason:
        return reason
    np, piped = python_client.np, python_client.piped
    with piped.connect(d.frames_path) as p:
        for name in KINDS:
            with p.stream(name, pixfmt="rgb24", size=(W, H)) as s:
                a = s.run(np.full((H, W, 3), 90, np.uint8))
            same([(t.index, t.label, t.score, t.probability) for t in a.top(2)], name, "top of a closed stream")
            same([(o.index, o.label, wanted(name)[i][2], o.score) for i, o in enumerate(a.decoded().objects[:2])], name, "decoded")
    return None


def gstreamer_says_so(d):
    reason = gst.why_not()
    if reason:
        return reason
    for name in KINDS:
        with gst.Pipeline("videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=%d,height=%d ! pipedinfer name=infer "
                          "model=%s ! %s" % (W, H, name, gst.SINK),
                          gst.environment(PIPED_RUNTIME_DIR=d.runtime_dir)) as p:
            objects = p.pull(1)[0]["result"]["objects"]
            same([(LABELS.index(o["label"]), o["label"], wanted(name)[i][2], o["score"]) for i, o in enumerate(objects[:2])],
                 name, "GStreamer")
    return None


def by_every_door():
    with Daemon(models=models()) as d:
        for door in (pipectl_says_so, http_says_so, python_says_so, gstreamer_says_so):
            reason = door(d)
            print("  %s: %s" % (door.__name__, "not here: " + reason if reason else "ok"))


def no_class_is_the_best_beside_infinity():
    """Nor beside NaN, which softmax makes of it: no door names one, and each says why."""
    why, values = "output answer has a score that is infinite or not a number, so no class is the best", [1.0, math.inf, 2.0, -1.0]
    paths = {n: fixed(n, [1, 4], values, output) for n, output in (("endless", None), ("endless_none", KINDS["logits_none"][1]))}
    with Daemon(models=paths) as d:
        for name in paths:
            answer, = d.pipectl("infer", "--model", name, picture(), expect=1)
            equal((answer["top"], answer["error"]), ([], why))
            if os.path.exists(PIPED_HTTP):
                with Http(d) as h, open(picture(), "rb") as f:
                    png = png_of(W, H, 3, f.read()[-3 * W * H:])
                    for query, code, words in (("decode=1", 500, why), ("top=2", 400, "infinite or not a number")):
                        status, _, answer = h.request("POST", "/v2/models/%s/infer?%s" % (name, query), png,
                                                      {"Content-Type": "image/png"})
                        check(status == code and words in answer["error"], query, status, answer)
            if not python_client.why_not():
                with python_client.piped.connect(d.frames_path) as p, p.stream(name, pixfmt="rgb24", size=(W, H)) as s:
                    a = s.run(python_client.np.full((H, W, 3), 90, "u1"))
                    python_client.raises(python_client.piped.Error, why, a.top)
                    python_client.raises(python_client.piped.Error, why, a.decoded)


def ssd(name, end, activation, tensors=None):
    """Boxes and scores of two candidates; the scores end in `end`. tensors: what the sidecar names; the scores come first then."""
    nodes = [node("GlobalAveragePool", ["input"], "mean"), node("Flatten", ["mean"], "flat"),
             node("Gemm", ["flat", "zero", "values"], "row", transB=1), node("Reshape", ["row", "as_boxes"], "boxes"),
             node("Slice", ["row", "from", "to", "axis"], "part"), node("Reshape", ["part", "as_scores"], "raw"),
             node(end, ["raw"], "scores", **({"axis": 2} if end == "Softmax" else {}))]
    constants = [floats("zero", (8, 3), [0.0] * 24), floats("values", (8,), SCORES + [1.0, 2.0]),
                 integers("as_boxes", [1, 2, 4]), integers("as_scores", [1, 2, 2]), integers("from", [0]), integers("to", [4]),
                 integers("axis", [1])]
    outputs = [("boxes", (1, 2, 4)), ("scores", (1, 2, 2))]
    return write(name, nodes, constants, outputs[::-1] if tensors else outputs,
                 {"output": {"decode": "ssd", "activation": activation, **({"tensors": tensors} if tensors else {})}})


def mask(name, end, activation):
    return write(name, [node("Conv", ["input", "w"], "map", kernel_shape=[1, 1]), node(end, ["map"], "mask")],
                 [floats("w", (1, 3, 1, 1), [0.01] * 3)], [("mask", (1, 1, H, W))],
                 {"output": {"decode": "mask", "activation": activation}})


def an_activation_too_many_is_warned_about():
    """Of any decoder that activates a whole output, in the log and by `models`; not where the graph has none."""
    paths = dict(models(), ssd=ssd("ssd", "Softmax", "softmax"), ssd_raw=ssd("ssd_raw", "Relu", "softmax"),
                 ssd_boxes=ssd("ssd_boxes", "Softmax", "softmax", {"boxes": "boxes"}),
                 mask=mask("mask", "Sigmoid", "sigmoid"), mask_raw=mask("mask_raw", "Relu", "sigmoid"))
    said = "the sidecar applies %s to output %s, of which the graph has made probabilities already"
    expect = {"soft_twice": said % ("softmax", "answer"), "ssd": said % ("softmax", "scores"),
              "ssd_boxes": said % ("softmax", "scores"),
              "mask": said % ("sigmoid", "mask")}
    with Daemon(models=paths) as d:
        for m in d.call("Models")["models"]:
            got = [w for w in m["warnings"] if "applies" in w]
            equal(len(got), m["name"] in expect, m)
            check(not got or expect[m["name"]] in got[0], m)
        for name, text in expect.items():
            equal(d.log().count("model %s: %s" % (name, text)), 1, d.log())


if __name__ == "__main__":
    try:
        main([by_every_door, no_class_is_the_best_beside_infinity, an_activation_too_many_is_warned_about])
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
