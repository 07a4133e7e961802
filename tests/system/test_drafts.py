#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Drafts of sidecars: networks are recognised by names and shapes of their outputs and by what exporters wrote, and the
draft loads and decodes right. Networks made here answer known boxes; those that others trained answer known pictures.

usage: test_drafts.py [CASE]...
"""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

from daemon import PIPECTL, ROOT, SHARED, Daemon, check, equal, main
from test_inspect import F32, value, write
from tiny_onnx import node, number, piece

I64 = 7
SIDE = 64  # of the pictures that networks made here take
CELLS = 64 + 16 + 4
WIDE = (128, 64)  # a picture: a letterbox shows half of its size, with 16 rows above and below
REAL = os.path.join(SHARED, "real")
TEMP = tempfile.mkdtemp(prefix="piped-drafts-")


def inspect(path, *args, expect=0):
    done = subprocess.run([PIPECTL, "models", "inspect", path, *args], capture_output=True, text=True, check=False,
                          env={**os.environ, "PIPED_RUNTIME_DIR": "/nonexistent"})
    equal(done.returncode, expect, done.stdout + done.stderr)
    return done.stdout


def tensor(name, kind, shape, values):
    code = "<%d%s" % (len(values), "f" if kind == F32 else "q")
    return (b"".join(number(1, d) for d in shape) + number(2, kind) + piece(8, name) +
            piece(9, struct.pack(code, *values)))


def network(name, outputs, notes=(), channels=3, height=SIDE, width=SIDE, ends=None, batch=1, says=None):
    """Outputs as {name: (shape, {index: value})}, or (shape, {...}, I64), whatever the picture. `ends`: an operator at
    the end of each; `says`: the shape that the file says they have. Return: its path."""
    nodes = [node("ReduceMean", ["x"], "mean", axes=[1, 2, 3], keepdims=0), node("Mul", ["mean", "zero"], "nothing"),
             node("Cast", ["nothing"], "nothing_i", to=I64)]
    tensors = [tensor("zero", F32, (1,), [0.0])]
    for out, (shape, values, *kind) in outputs.items():
        count, kind = 1, kind[0] if kind else F32
        for d in shape:
            count *= d
        listed = [values.get(i, 0) for i in range(count)]
        tensors.append(tensor("c_" + out, kind, shape, listed))
        last = "e_" + out if ends else out
        nodes.append(node("Add", ["nothing_i" if kind == I64 else "nothing", "c_" + out], last))
        nodes += [node(ends, [last], out)] if ends else []
    path = os.path.join(TEMP, name + ".onnx")
    write(path, nodes, [value("x", F32, [batch, channels, height, width])],
          [value(o, (v[2:] or (F32,))[0], says or list(v[0])) for o, v in outputs.items()], tensors, notes=notes)
    return path


def rows(count, fields, **at):
    """A tensor [1, count, fields]: r3=[...] is row 3."""
    return (1, count, fields), {int(k[1:]) * fields + i: v for k, row in at.items() for i, v in enumerate(row)}


def columns(count, fields, **at):
    """The same as [1, fields, count]."""
    return (1, fields, count), {i * count + int(k[1:]): v for k, row in at.items() for i, v in enumerate(row)}


def yunet():
    levels = {8: 64, 16: 16, 32: 4}
    out = {}
    for s, n in levels.items():
        hit = s == 16  # cell (1, 2) of stride 16: centre at (16 + 8, 32), 16 wide and high
        out["cls_%d" % s] = rows(n, 1, r9=[0.81]) if hit else rows(n, 1)
        out["obj_%d" % s] = rows(n, 1, r9=[1.0]) if hit else rows(n, 1)
        out["bbox_%d" % s] = rows(n, 4, r9=[0.5, 0, 0, 0]) if hit else rows(n, 4)
        out["kps_%d" % s] = rows(n, 10)
    return {k: out[k] for s in ("cls", "obj", "bbox", "kps") for k in ["%s_%d" % (s, n) for n in levels]}


ULTRALYTICS = [("author", "Ultralytics"), ("stride", "32"), ("imgsz", "[64, 64]"), ("names", "{0: 'cat', 1: 'dog'}")]
PAGE = "as on the page"
BOX = {"decode": "yolo"}
BARS = (32, 16, 32, 32)  # of the box (16, 24) to (32, 40), through a letterbox
FLAT = (32, 24, 32, 16)  # the same, stretched
CENTRE = [24, 32, 16, 16]
CORNERS = [16, 24, 32, 40]
RELATIVE = [v / SIDE for v in CORNERS]

# name, outputs, notes, what the key output is, what preprocess has, (label or class, score, box)
RECIPES = [
    ("ultraface", {"scores": rows(21, 2, r5=[0.1, 0.9]), "boxes": rows(21, 4, r5=RELATIVE)}, (), PAGE,
     {"mean": 127, "std": 128, "scale": 1, "colour": "rgb", "fit": "stretch"}, ("face", 0.9, FLAT)),
    ("ssd", {"boxes": rows(21, 4, r5=RELATIVE), "scores": rows(21, 3, r5=[0.1, 0.2, 0.7])}, (),
     {"decode": "ssd", "unit": "relative", "tensors": {"boxes": "boxes", "scores": "scores"}},
     {"mean": 127, "std": 128, "fit": "stretch"}, (2, 0.7, FLAT)),
    ("yunet", yunet(), (), PAGE, {"scale": 1, "mean": 0, "std": 1, "colour": "bgr", "fit": "letterbox"},
     ("face", 0.9, BARS)),
    ("yolov8", {"output0": columns(CELLS, 24, r7=CENTRE + [0] * 4 + [0.8])}, (), PAGE,
     {"scale": 1 / 255, "fit": "letterbox", "pad": 114, "colour": "rgb"}, (4, 0.8, BARS)),
    ("ultralytics", {"output0": columns(CELLS, 6, r7=CENTRE + [0, 0.8])}, ULTRALYTICS + [("task", "detect")], BOX,
     {"scale": 1 / 255, "fit": "letterbox"}, ("dog", 0.8, BARS)),
    ("chosen", {"output0": rows(30, 6, r0=CORNERS + [0.8, 1])}, ULTRALYTICS + [("task", "detect")], PAGE,
     {"scale": 1 / 255, "fit": "letterbox"}, ("dog", 0.8, BARS)),
    ("yolov10", {"output0": rows(300, 6, r0=CORNERS + [0.8, 5])}, (), {"decode": "boxes"},
     {"scale": 1 / 255, "fit": "letterbox"}, (5, 0.8, BARS)),
    ("pose", {"output0": columns(CELLS, 11, r7=CENTRE + [0.8] + [0] * 6)},
     ULTRALYTICS[:3] + [("names", "{0: 'hand'}"), ("task", "pose"), ("kpt_shape", "[3, 2]")],
     {"decode": "yolo", "keypoints": 3, "keypoint_numbers": 2}, {"fit": "letterbox"}, ("hand", 0.8, BARS)),
    ("pose17", {"output0": columns(CELLS, 56, r7=CENTRE + [0.8] + [0] * 51)}, (), {"decode": "yolo", "keypoints": 17},
     {"fit": "letterbox"}, (0, 0.8, BARS)),
    ("yolov5", {"output": rows(3 * CELLS, 85, r7=CENTRE + [0.9] + [0, 0.5])}, (), PAGE,
     {"scale": 1 / 255, "fit": "letterbox"}, (1, 0.45, BARS)),
    # cell (1, 2) of stride 16, which is cell 64 + 9: (0.5 + 1) 16 and (0 + 2) 16
    ("yolox", {"output": rows(CELLS, 25, r73=[0.5, 0, 0, 0, 0.9, 0, 0.5])}, (), PAGE,
     {"scale": 1, "mean": 0, "colour": "bgr", "fit": "letterbox", "pad": 114}, (1, 0.45, BARS)),
    ("yolonas", {"a": rows(CELLS, 4, r7=CORNERS), "b": rows(CELLS, 3, r7=[0, 0, 0.8])}, (),
     {"decode": "ssd", "background": False, "tensors": {"boxes": "a", "scores": "b"}}, {"fit": "letterbox"},
     (2, 0.8, BARS)),
    ("torchvision", {"boxes": ((5, 4), dict(enumerate(CORNERS))), "labels": ((5,), {0: 3}, I64),
                     "scores": ((5,), {0: 0.8})}, (),
     {"decode": "boxes", "tensors": {"boxes": "boxes", "classes": "labels", "scores": "scores"}},
     {"scale": 1 / 255, "fit": "letterbox"}, (3, 0.8, BARS)),
    ("tensorflow", {"detection_boxes": rows(9, 4, r0=[RELATIVE[i] for i in (1, 0, 3, 2)]),
                    "detection_classes": ((1, 9), {0: 2}), "detection_scores": ((1, 9), {0: 0.8}),
                    "num_detections": ((1,), {0: 1})}, (),
     {"decode": "boxes", "unit": "relative", "columns": ["y1", "x1", "y2", "x2"],
      "tensors": {"boxes": "detection_boxes", "classes": "detection_classes", "scores": "detection_scores",
                  "count": "num_detections"}}, {"fit": "stretch"}, (2, 0.8, FLAT)),
    ("mmdetection", {"dets": rows(9, 5, r0=CORNERS + [0.8]), "labels": ((1, 9), {0: 2}, I64)}, (),
     {"decode": "boxes", "columns": ["x1", "y1", "x2", "y2", "score"], "tensors": {"boxes": "dets", "classes": "labels"}},
     {"fit": "letterbox"}, (2, 0.8, BARS)),
]


def of_page():
    """{name: the key output of docs/outputs.md}"""
    with open(os.path.join(ROOT, "docs", "outputs.md"), encoding="utf-8") as f:
        page = f.read()
    found = {"ultraface": json.loads(re.search(r"```json\n(.*?)```", page, re.S).group(1))["output"]}
    for name, start in (("yolov8", "YOLOv8, v9, v11"), ("yolov5", "YOLOv5, v7"), ("yolox", "YOLOX"),
                        ("chosen", "YOLOv8 with `nms=True`"), ("yunet", "YuNet"), ("text", "PaddleOCR, detection"),
                        ("movenet", "MoveNet"), ("mask", "semantic segmentation that ends in scores"),
                        ("ended", "semantic segmentation that ends in Softmax")):
        found[name] = json.loads(re.search(r"^\| %s[^|]*\| `(\{.*?\})`" % re.escape(start), page, re.M).group(1))
    return found


def picture(name="wide.ppm", size=WIDE):
    path = os.path.join(TEMP, name)
    with open(path, "wb") as f:
        f.write(b"P6 %d %d 255\n" % size + bytes([90]) * (3 * size[0] * size[1]))
    return path


def drafted(path, *args):
    """The draft, written beside the network: the same as is printed, and as JSON has."""
    text = inspect(path, *args)
    from_json = json.loads(inspect(path, "--json", *args))
    inspect(path, "--write-sidecar", *args)
    with open(path.replace(".onnx", ".sidecar.json"), encoding="utf-8") as f:
        written = f.read()
    check("draft       " + written in text, "printed otherwise than written", text, written)
    equal(json.loads(written), from_json["sidecar"]["draft"])
    check(json.loads(written).get("preprocess", {}).get("fit") != "crop" or
          json.loads(written)["output"]["decode"] == "classes", "a detector is cropped", written)
    return json.loads(written)


def has(got, wanted, what):
    for key, v in wanted.items():
        check(abs(got[key] - v) < 1e-6 if isinstance(v, float) else got[key] == v, what, key, got)


def known_networks_are_drafted_and_decoded():
    page, wide = of_page(), picture()
    paths = {r[0]: network(r[0], r[1], r[2]) for r in RECIPES}
    for name, _, _, output, preprocess, _ in RECIPES:
        draft = drafted(paths[name])
        check("output" in draft, name, draft)
        equal(draft["output"], page[name] if output == PAGE else output, name)
        has(draft["preprocess"], preprocess, name)
    with Daemon(models=paths) as d:
        for name, _, _, _, _, (what, score, box) in RECIPES:
            found = d.pipectl("infer", "--model", name, wide)[0]["objects"]
            equal([o["label"] if isinstance(what, str) else o["class"] for o in found], [what], name)
            got = [found[0][k] for k in ("x", "y", "width", "height")] + [found[0]["score"]]
            check(all(abs(a - b) < 2e-3 for a, b in zip(got, list(box) + [score])), name, got, box, score)


def what_is_not_boxes():
    """Classes, points, masks, text: each with its output and preprocessing."""
    page = of_page()
    letters = os.path.join(TEMP, "letters.txt")
    with open(letters, "w", encoding="utf-8") as f:
        f.write("".join("%c\n" % c for c in range(ord("a"), ord("a") + 9)))
    step = [[0.0] * 11 for _ in range(8)]
    for i, k in enumerate((1, 1, 0, 1, 9, 10, 0, 2)):
        step[i][k] = 1.0
    text = rows(8, 11, **{"r%d" % i: r for i, r in enumerate(step)})
    maps = ((1, 2, SIDE, SIDE), {SIDE * SIDE: 1.0})
    cases = [
        ("mnist", {"y": ((1, 10), {3: 9.0})}, {"channels": 1, "height": 28, "width": 28}, {"decode": "classes"},
         {"scale": 1 / 255, "fit": "stretch"}, 3),
        ("classes", {"y": ((1, 10), {3: 9.0})}, {}, {"decode": "classes"}, {"fit": "crop"}, 3),
        ("two-heads", {"block": ((1, 10), {3: 9.0}), "aux": ((1, 10), {4: 9.0})}, {}, {"decode": "classes"},
         {"fit": "crop"}, 3),
        ("probabilities", {"y": ((1, 10), {3: 9.0})}, {"ends": "Softmax"}, {"decode": "classes"}, {"fit": "crop"}, 3),
        ("movenet", {"y": ((1, 1, 17, 3), {0: 0.5, 1: 0.5, 2: 0.9})}, {}, page["movenet"],
         {"scale": 1, "mean": 0, "std": 1, "fit": "letterbox", "pad": 0}, None),
        ("logits", {"y": maps}, {}, page["mask"], {"fit": "stretch"}, None),
        ("mask", {"y": maps}, {"ends": "Softmax"}, page["ended"], {"fit": "stretch"}, None),
        ("one-map", {"y": ((1, 1, SIDE, SIDE), {5: 1.0})}, {}, {"decode": "mask", "activation": "sigmoid"},
         {"fit": "stretch"}, None),
        ("numbers", {"y": ((1, SIDE, SIDE), {5: 1}, I64)}, {}, page["ended"], {"fit": "stretch"}, None),
        ("text", {"sigmoid_0.tmp_0": ((1, 1, SIDE, SIDE), {})}, {"ends": "Sigmoid"}, page["text"],
         {"colour": "bgr", "mean": [0.485, 0.456, 0.406], "fit": "letterbox", "pad": "mean"}, None),
        ("reader", {"y": text}, {"height": 48}, {"decode": "ctc", "alphabet_file": "letters.txt", "space": True,
                                                 "activation": "softmax"},
         {"scale": 2 / 255, "mean": 1, "colour": "bgr", "pad": "mean"}, None),
        ("own-letters", {"y": text}, {"height": 48, "notes": [("character", "\n".join("0123456789"))]},
         {"decode": "ctc", "alphabet": list("0123456789"), "activation": "softmax"}, {}, None),
    ]
    paths = {}
    for name, outputs, more, output, preprocess, _ in cases:
        paths[name] = network(name, outputs, **more)
        draft = drafted(paths[name])
        equal(draft["output"], output, name)
        has(draft["preprocess"], preprocess, name)
        equal("colour" in draft["preprocess"], more.get("channels") != 1, name)
    wide = picture()
    with Daemon(models=paths) as d:
        answers = {name: d.pipectl("infer", "--model", name, wide)[0] for name in paths}
    for name, _, _, _, _, best in cases:
        equal(answers[name]["objects"][0]["class"] if best is not None else None, best, name)
    equal((answers["reader"]["text"], answers["own-letters"]["text"]), ("aai b", "0089 1".replace(" ", "")))
    os.unlink(letters)


OTHERS = [
    ("strange", {"y": ((1, 5, 6, 7), {})}),
    ("box", {"box": ((1, 4), {}), "class": ((1, 10), {})}),
    ("mtcnn", {"conv5-2": ((1, 4), {}), "prob": ((1, 2), {})}),
    ("onet", {"a": ((1, 2), {}), "b": ((1, 4), {}), "c": ((1, 10), {})}),
    ("landmarks", {"landmarks": ((1, 136), {})}),
    ("embedding", {"face_embedding": ((1, 512), {})}),
    ("depth", {"predicted_depth": ((1, 1, SIDE, SIDE), {})}),
    ("flow", {"flow": ((1, 2, SIDE, SIDE), {})}),
]


def what_cannot_be_decoded_is_said():
    """No output is drafted that would be refused, or that nobody can read; the reason is given."""
    letters = network("no-letters", {"y": rows(8, 20)}, height=48)
    for path, words in ((letters, "put a text file of its characters into its folder, one a line: 18 of them, or 19"),
                        (network("masks", {"output0": columns(CELLS, 38), "output1": ((1, 32, 16, 16), {})},
                                 ULTRALYTICS + [("task", "segment")]), "instance masks"),
                        (network("names", {"output0": columns(CELLS, 9)}, ULTRALYTICS + [("task", "detect")]),
                         "has 5 classes (9 numbers a box, 4 of others) and 2 labels"),
                        (network("nanodet", {"y": rows(CELLS, 112)}), "distributions of the sides of boxes"),
                        *((network(name, outputs), "nobody here knows") for name, outputs in OTHERS)):
        draft = drafted(path)
        check("output" not in draft, draft)
        check(re.search("^no output +.*" + re.escape(words), inspect(path), re.M), path, inspect(path))
        check(words in json.loads(inspect(path, "--json"))["sidecar"]["needs"], path)
        with Daemon(models={"m": path}) as d:
            equal(len(d.status()["models"]), 1)


def what_is_open_is_no_sign():
    """A size that the file leaves open is not the 48, 32 or 227 by which networks are known: something else must say so."""
    boxes = {"output0": columns(80 * 80 + 40 * 40 + 20 * 20, 84)}
    text, classes = {"y": rows(40, 11)}, {"y": ((1, 10), {3: 9.0})}
    opened = {"batch": "batch", "height": "height", "width": "width"}
    paddle = {"batch": "DynamicDimension.0", "height": "DynamicDimension.1", "width": "DynamicDimension.2"}
    for name, outputs, dims, says, example, who in (
            ("open-yolo", boxes, opened, ["batch", 84, "anchors"], "3x640x640", "YOLOv8 and later"),
            ("open-all", boxes, opened, ["b", "c", "d"], "3x640x640", "YOLOv8 and later"),
            ("open-text", text, opened, ["b", "s", 11], "3x640x640", None),
            ("open-rows", text, opened, ["b", "s", "c"], "3x640x640", None),
            ("open-paddle", text, paddle, ["b", "s", 11], "3x48x320", "readers of PaddleOCR"),
            ("wide-paddle", text, {"height": 48, "width": "w"}, ["b", "s", 11], "3x48x320", "readers of PaddleOCR"),
            ("open-classes", classes, opened, ["batch", 10], "3x224x224", "classifiers of torchvision"),
            ("open-digits", classes, {**opened, "channels": 1}, ["batch", 10], "1x224x224", "networks for grey pictures")):
        shown = inspect(network(name, outputs, says=says, **dims))
        check("served      yes" in shown and " units, with x=1x%s\n" % example in shown, name, shown)
        check("as for %s." % who in shown if who else "PaddleOCR" not in shown and '"output"' not in shown, name, shown)


def an_invented_size_is_not_the_models_fault():
    """A network of sound needs more than the example's 64: what is asked for makes it load, and the draft keeps it."""
    path = os.path.join(TEMP, "sound.onnx")
    sidecar = path.replace(".onnx", ".sidecar.json")
    write(path, [node("Unsqueeze", ["input", "axes"], "wide"), node("Conv", ["wide", "w"], "c", kernel_shape=[512]),
                 node("ReduceMax", ["c"], "y", axes=[2], keepdims=0)],
          [value("input", F32, ["batch", "samples"])], [value("y", F32, ["batch", 4])],
          [tensor("axes", I64, (1,), [1]), tensor("w", F32, (4, 1, 512), [0.001] * 2048)])
    text = inspect(path, expect=1)
    check("served      no: with the example size 64, as the file leaves it open: " in text and
          "give --shape input=1xN with a size that it takes" in text, text)
    check("refused     with the example size 64: " in text, text)
    check("shapes" not in json.loads(inspect(path, "--json", expect=1))["sidecar"]["draft"], "a size that fails is drafted")
    equal(drafted(path, "--shape", "input=1x1280")["shapes"], {"input": [1, 1280]})
    check("served      yes" in inspect(path), "not with what was written")
    os.unlink(sidecar)
    text = inspect(path, "--shape", "input=1", expect=1)
    check("a shape of 1 was given" in text and "example" not in text, text)
    path = os.path.join(TEMP, "thirty.onnx")
    write(path, [node("Flatten", ["x"], "flat"), node("MatMul", ["flat", "w"], "y")],
          [value("x", F32, [1, 3, "h", "w"])], [value("y", F32, [1, 2])], [tensor("w", F32, (300, 2), [0.1] * 600)])
    text = inspect(path, expect=1)
    check("served      no: with the example size 224, as the file leaves it open: " in text and
          "give --shape x=1x3xNxN with a size that it takes" in text, text)
    check("shapes" not in json.loads(inspect(path, "--json", expect=1))["sidecar"]["draft"], "a size that fails is drafted")
    equal(drafted(path, "--shape", "h=10", "--shape", "w=10")["shapes"], {"x": [1, 3, 10, 10]})


def real_files_answer_by_their_drafts():
    if not os.path.exists(os.path.join(REAL, "models")):
        return "no ../shared/real"
    paths = {}
    for name in ("ultraface_rfb320", "squeezenet1_1", "mobilenet_v1_0.25_128_fp32", "mnist_8"):
        paths[name] = os.path.join(TEMP, name + ".onnx")
        shutil.copy(os.path.join(REAL, "models", name + ".onnx"), paths[name])
    drafts = {name: drafted(path) for name, path in paths.items()}
    equal(drafts["ultraface_rfb320"]["labels"], ["BACKGROUND", "face"])
    equal(drafts["ultraface_rfb320"]["output"], of_page()["ultraface"])
    has(drafts["mnist_8"]["preprocess"], {"scale": 1, "mean": 0, "std": 1}, "mnist_8")
    check("colour" not in drafts["mnist_8"]["preprocess"], drafts["mnist_8"])
    with Daemon(models=paths) as d:
        def objects(model, image):
            return d.pipectl("infer", "--model", model, os.path.join(REAL, "images", image))[0]["objects"]

        faces = sorted(objects("ultraface_rfb320", "face_13.jpg"), key=lambda o: o["x"])
        equal([o["label"] for o in faces], ["face", "face"])
        for o, (x, y) in zip(faces, ((122, 60), (330, 130))):
            check(abs(o["x"] + o["width"] / 2 - x) < 12 and abs(o["y"] + o["height"] / 2 - y) < 14, o)
        for model, image, best in (("squeezenet1_1", "winml_hummingbird.jpg", 94), ("squeezenet1_1", "winml_dog.jpg", 207),
                                   ("mobilenet_v1_0.25_128_fp32", "winml_hummingbird.jpg", 95)):
            found = objects(model, image)
            check(found[0]["class"] == best and found[0]["score"] > 0.3, model, image, found)
        digit = picture("one.ppm", (28, 28))
        equal(len(objects("mnist_8", digit)), 5)
    return None


if __name__ == "__main__":
    try:
        main([known_networks_are_drafted_and_decoded, what_is_not_boxes, what_cannot_be_decoded_is_said,
              what_is_open_is_no_sign, an_invented_size_is_not_the_models_fault, real_files_answer_by_their_drafts])
    finally:
        shutil.rmtree(TEMP, True)
