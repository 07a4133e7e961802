#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Outputs that the sidecar says how to decode, from the file to the drawn picture: networks made here whose answers are known,
and a face detector that others trained, if it is there. What goes over the frames socket, what pipectl prints and draws,
a video from a pipe, and what is refused when a model is loaded.
"""
import atexit
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import pyclient as pc
from daemon import DIGITS, PIPECTL, SHARED, Daemon, check, equal, main
from tiny_onnx import node, number, piece, value

W, H = 64, 48
REAL = os.path.join(SHARED, "real")
GREEN = (0x3C, 0xB4, 0x4B)  # of class 1
FOLDER = tempfile.mkdtemp(prefix="piped-outputs-")
atexit.register(shutil.rmtree, FOLDER, True)
DAEMON = None


def floats(name, shape, values):
    return (b"".join(number(1, d) for d in shape) + number(2, 1) + piece(8, name) +
            piece(9, struct.pack("<%df" % len(values), *values)))


def integers(name, values):
    return number(1, len(values)) + number(2, 7) + piece(8, name) + piece(9, struct.pack("<%dq" % len(values), *values))


def write(name, nodes, tensors, outputs, sidecar):
    path = os.path.join(FOLDER, name + ".onnx")
    graph = (b"".join(piece(1, n) for n in nodes) + piece(2, name) + b"".join(piece(5, t) for t in tensors) +
             piece(11, value("input", (1, 3, H, W))) + b"".join(piece(12, value(*o)) for o in outputs))
    with open(path, "wb") as f:
        f.write(number(1, 8) + piece(7, graph) + piece(8, number(2, 13)))
    with open(path.replace(".onnx", ".sidecar.json"), "w", encoding="utf-8") as f:
        json.dump(sidecar, f)
    return path


def fixed(name, shape, values, output, **sidecar):
    """A network whose answer does not depend on the picture."""
    nodes = [node("GlobalAveragePool", ["input"], "mean"), node("Flatten", ["mean"], "flat"),
             node("Gemm", ["flat", "zero", "values"], "row", transB=1), node("Reshape", ["row", "shape"], "answer")]
    tensors = [floats("zero", (len(values), 3), [0.0] * 3 * len(values)), floats("values", (len(values),), values),
               integers("shape", shape)]
    return write(name, nodes, tensors, [("answer", shape)], dict(sidecar, **({"output": output} if output else {})))


def columns(rows):
    return [r[i] for i in range(len(rows[0])) for r in rows]


def networks():
    yolo = [[16, 12, 8, 6, 0.1, 0.9], [17, 12, 8, 6, 0.1, 0.8], [40, 24, 10, 10, 0.7, 0.2], [10, 40, 4, 4, 0.1, 0.1],
            [5, 5, 1, 1, 0, 0], [5, 5, 1, 1, 0, 0], [5, 5, 1, 1, 0, 0]]
    letters = [[0, 9, 0], [0, 9, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]]
    heat = [0.0] * (2 * 12 * 16)
    heat[3 * 16 + 4], heat[3 * 16 + 5], heat[12 * 16 + 6 * 16 + 8] = 1.0, 0.5, 0.75
    models = {
        "yolo": fixed("yolo", [1, 6, 7], columns(yolo), {"decode": "yolo", "layout": "channels"}, labels=["cat", "dog"],
                      preprocess={"fit": "letterbox"}),
        "text": fixed("text", [1, 5, 3], sum(letters, []), {"decode": "ctc", "alphabet_file": "letters.txt",
                                                            "activation": "softmax"}),
        "pose": fixed("pose", [1, 2, 12, 16], heat, {"decode": "keypoints"}, preprocess={"fit": "crop"}),
        # class 1 where there is more red than green, from the picture itself
        "mask": write("mask", [node("Conv", ["input", "w"], "map", kernel_shape=[1, 1])],
                      [floats("w", (2, 3, 1, 1), [0, 1, 0, 1, 0, 0])], [("map", (1, 2, H, W))],
                      {"labels": ["ground", "red"], "output": {"decode": "mask"}, "preprocess": {"fit": "letterbox"}}),
        "plain": fixed("plain", [1, 3], [1.0, 5.0, 2.0], {"decode": "classes", "most": 2}, labels=["a", "b", "c"]),
        "silent": fixed("silent", [1, 6, 7], columns(yolo), None), "digits": DIGITS}
    with open(os.path.join(FOLDER, "letters.txt"), "w", encoding="utf-8") as f:
        f.write("ä\nb\n")
    return models


def ppm(name, width, height, pixel):
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as f:
        f.write(b"P6 %d %d 255\n" % (width, height) + b"".join(bytes(pixel(x, y)) for y in range(height) for x in range(width)))
    return path


def infer(model, *args, **more):
    return DAEMON.pipectl("infer", "--model", model, *args, **more)


def near(got, wanted, what=""):
    check(len(got) == len(wanted) and all(abs(a - b) < 2e-3 for a, b in zip(got, wanted)), what, got, wanted)


def box(o):
    return [o["x"], o["y"], o["width"], o["height"]]


def read_png(path):
    """(width, [row of RGB bytes]) of an 8-bit RGB file"""
    with open(path, "rb") as f:
        data = f.read()
    width, height = struct.unpack(">II", data[16:24])
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    raw, rows, above = zlib.decompress(packed), [], bytes(3 * width)
    for y in range(height):
        kind, line = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for i in range(3 * width):
            a, b, c = line[i - 3] if i > 2 else 0, above[i], above[i - 3] if i > 2 else 0
            paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        rows.append(bytes(line))
        above = line
    return width, rows


def at(rows, x, y):
    return tuple(rows[y][3 * x:3 * x + 3])


def test_bars_of_a_letterbox():
    """A network that answers its pixels: by default the bars are what YOLO is trained with."""
    wide, raw = ppm("wide.ppm", 128, 48, lambda x, y: (50, 60, 70)), os.path.join(FOLDER, "bars.raw")
    for i, (keys, bars, picture) in enumerate((
            ({}, (114, 114, 114), (50, 60, 70)), ({"pad": 0}, (0, 0, 0), (50, 60, 70)),
            ({"pad": [1, 2, 3], "colour": "bgr"}, (1, 2, 3), (70, 60, 50)),
            ({"pad": "mean", "mean": [30, 20, 10], "std": 10}, (0, 0, 0), (2, 4, 6)),
            ({"pad": "mean", "mean": 0.1, "scale": 0.01}, (0, 0, 0), (0.4, 0.5, 0.6)))):
        path = write("bars", [node("Relu", ["input"], "answer")], [], [("answer", (1, 3, H, W))],
                     {"preprocess": dict(keys, fit="letterbox")})
        said = DAEMON.pipectl("models", "load", "bars%d" % i, path)
        infer("bars%d" % i, "--raw", raw, wide)
        with open(raw, "rb") as f:
            v = struct.unpack("<%df" % (3 * H * W), f.read())
        for c in range(3):
            rows = [v[(c * H + y) * W:(c * H + y + 1) * W] for y in range(H)]
            near(rows[0] + rows[11] + rows[36] + rows[47], [bars[c]] * 4 * W, (keys, said))
            near(rows[12] + rows[35], [picture[c]] * 2 * W, keys)
        DAEMON.pipectl("models", "unload", "bars%d" % i, as_json=False)


def test_boxes_are_in_pixels_of_the_picture():
    # 128 x 48 in 64 x 48: shown at half size, with 12 rows above and below
    answer = infer("yolo", ppm("wide.ppm", 128, 48, lambda x, y: (90, 90, 90)))[0]
    equal([(o["label"], o["class"]) for o in answer["objects"]], [("dog", 1), ("cat", 0)], answer)
    near(box(answer["objects"][0]), [24, 0, 16, 6], "dog")  # rows 9 to 15, of which 12 on are the picture
    near(box(answer["objects"][1]), [70, 14, 20, 20], "cat")
    near([o["score"] for o in answer["objects"]], [0.9, 0.7])
    equal((answer["decoded"], answer["width"], answer["height"]), ("yolo", 128, 48))
    text = infer("yolo", os.path.join(FOLDER, "wide.ppm"), as_json=False)
    check("\n  dog  90.0 %  x 24.0 y 0.0 w 16.0 h 6.0\n  cat  70.0 %  x 70.0 y 14.0 w 20.0 h 20.0\n" in text, text)
    with open(os.path.join(FOLDER, "t.f32"), "wb") as f:
        f.write(bytes(4 * 3 * H * W))
    near(box(infer("yolo", os.path.join(FOLDER, "t.f32"))[0]["objects"][1]), [35, 19, 10, 10], "of a tensor")


def test_text_points_and_classes():
    grey = ppm("grey.ppm", 120, 48, lambda x, y: (90, 90, 90))
    answer = infer("text", grey)[0]
    equal((answer["text"], answer["objects"]), ("ääb", []))
    check("  100.0 %  ääb\n" in infer("text", grey, as_json=False), "the text is not printed")
    answer = infer("pose", grey)[0]["objects"][0]  # cropped to columns 28 to 92
    near(answer["points"][0], [28 + 4 * 4.75, 4 * 3.5, 1])
    near(answer["points"][1], [28 + 4 * 8.5, 4 * 6.5, 0.75])
    near(box(answer) + [answer["score"]], [47, 14, 15, 12, 0.875])
    answer = infer("plain", grey)[0]
    equal([(o["label"], o["class"], "x" in o) for o in answer["objects"]], [("b", 1, False), ("c", 2, False)])
    near([o["score"] for o in answer["objects"]], [0.9362, 0.0466])
    equal([(o["class"], o["score"]) for o in infer("digits", grey)[0]["objects"]],
          [(t["class"], t["probability"]) for t in infer("digits", grey)[0]["top"]], "a classifier needs no key output")
    code, out, err = run("infer", "--model", "silent", grey, grey)
    check(code == 0 and "top" not in out and err.count("pipectl models inspect FILE --write-sidecar drafts it, or") == 1 and
          "docs/outputs.md says how to write it" in err, err)


def test_what_is_not_a_number_is_shown_as_none():
    grey, nan = ppm("grey.ppm", 120, 48, lambda x, y: (90, 90, 90)), float("nan")
    pose = {"decode": "yolo", "layout": "rows", "keypoints": 2, "keypoint_numbers": 2}
    text = {"decode": "ctc", "alphabet": ["a", "b"]}
    for name, values, output, line in (("points", [32, 24, 20, 20, 0.9, 16, 12, nan, 24], pose, "points 30.0,12.0 -,24.0\n"),
                                       ("endless", [0, float("inf"), 0], text, "  - %  a\n")):
        DAEMON.pipectl("models", "load", name, fixed(name, [1, 1, len(values)], values, output))
        said = infer(name, grey, as_json=False)
        check(line in said, said)


def test_only_a_classifier_has_the_expected_class():
    grey, labels = ppm("grey.ppm", 120, 48, lambda x, y: (90, 90, 90)), os.path.join(FOLDER, "labels")
    with open(labels, "w", encoding="ascii") as f:
        f.write("1\n")
    for model, part in (("yolo", "--expect: the model's outputs are yolo, and not the scores of classes"),
                        ("silent", "--expect: the model's sidecar does not say how to decode its outputs")):
        code, out, err = run("infer", "--model", model, "--expect", labels, grey)
        check(code == 1 and out == "" and part in err and "not decoded" not in err, model, code, out, err)
    code, out, err = run("infer", "--model", "plain", "--expect", labels, grey)
    equal((code, out), (0, "accuracy 100.00 % (1 of 1)\n"), err)
    code, out, err = run("infer", "--model", "yolo", "--expect", labels, grey + ".gone")
    check(code == 1 and "No such file" in err and "--expect" not in err, code, out, err)


def test_a_mask_covers_what_it_should():
    red = ppm("red.ppm", 128, 48, lambda x, y: (255, 0, 0) if 32 <= x < 64 and y < 24 else (0, 255, 0))
    answer = infer("mask", red)[0]
    equal([o["label"] for o in answer["objects"]], ["red"])
    near(box(answer["objects"][0]), [32, 0, 32, 24])
    near([answer["objects"][0]["area"]], [32 * 24])
    mask = answer["mask"]
    near([mask[k] for k in ("x", "y", "width", "height")], [0, -24, 128, 96])
    flat = [c for c, n in mask["runs"] for _ in range(n)]
    equal((len(flat), flat[:64], flat[12 * 64 + 15:12 * 64 + 18]), (64 * 48, [255] * 64, [0, 1, 1]))
    check("12.5 % of the picture" in infer("mask", red, as_json=False), "the share is not printed")


def test_pictures_are_drawn_on():
    wide, out = ppm("wide.ppm", 128, 48, lambda x, y: (90, 90, 90)), os.path.join(FOLDER, "out.png")
    r = infer("yolo", wide, wide, "--draw", out, expect=None, as_json=False)
    if not os.path.exists(out):
        check("built without PNG" in r, r)
        return "pipectl was built without PNG"
    width, rows = read_png(out)
    equal((width, len(rows)), (128, 48))
    equal([at(rows, x, y) for x, y in ((70, 16), (89, 25), (80, 33), (70, 33))], [(0xE6, 0x19, 0x4B)] * 4, "the cat's sides")
    equal(at(rows, 24, 8), GREEN, "the dog's label")
    equal([at(rows, x, y) for x, y in ((5, 40), (80, 30), (127, 47), (69, 25))], [(90, 90, 90)] * 4, "the rest")
    with open(out, "rb") as a, open(os.path.join(FOLDER, "out-2.png"), "rb") as b:
        equal(a.read(), b.read(), "the second frame's file")
    red = ppm("red.ppm", 128, 48, lambda x, y: (255, 0, 0) if 32 <= x < 64 and y < 24 else (0, 255, 0))
    infer("mask", red, "--draw", out)
    _, rows = read_png(out)
    equal(at(rows, 50, 20), tuple((a + b) // 2 for a, b in zip((255, 0, 0), GREEN)), "the mask")
    equal(at(rows, 100, 40), (0, 255, 0), "beside the mask")
    jpeg = os.path.join(FOLDER, "out.jpg")
    infer("text", wide, "--draw", jpeg, expect=None, as_json=False)
    if os.path.exists(jpeg):
        check(infer("text", jpeg)[0]["text"] == "ääb", "the JPEG that was drawn cannot be read")
    return None


def run(*args, data=b""):
    r = subprocess.run([PIPECTL, "--socket", DAEMON.control_path] + list(args), input=data, capture_output=True, timeout=120,
                       env=dict(os.environ, PIPED_RUNTIME_DIR=DAEMON.runtime_dir), check=False)
    return r.returncode, r.stdout.decode(), r.stderr.decode()


def test_a_video_is_answered_frame_by_frame():
    frame, other = bytes([0, 255, 0]) * (W * H), bytes([255, 0, 0]) * (W * H)
    code, out, err = run("--json", "infer", "--model", "mask", "--video", "64x48:rgb24", data=frame + other + frame)
    equal(code, 0, err)
    lines = [json.loads(line) for line in out.splitlines()]
    equal([(a["file"], a["frame"], len(a["objects"])) for a in lines], [("-", 0, 0), ("-", 1, 1), ("-", 2, 0)])
    code, out, err = run("infer", "--model", "mask", "--video", "64x48:bgr24", "-", data=other + frame[:100])
    equal(code, 1, err)
    check("the last frame has 100 of 9216 bytes" in err and "nothing found" in out, out, err)
    nv12 = bytes([81]) * (W * H) + bytes([90, 240]) * (W * H // 4)  # red
    code, out, err = run("--json", "infer", "--model", "mask", "--video", "64x48:nv12", data=nv12 * 40)
    equal((code, [len(json.loads(line)["objects"]) for line in out.splitlines()]), (0, [1] * 40), err)
    for args, part in ((("--video", "64x48"), "--video needs WxH:FORMAT"), (("--video", "63x48:nv12"), "--video needs"),
                       (("--video", "64x48:rgb24", "a", "b"), "one FILE"),
                       (("--draw", "a.gif", "x.ppm"), "ends in .jpg or .png")):
        code, out, err = run("infer", *args)
        check(code == 2 and part in err, args, code, err)
    grey = ppm("grey.ppm", 120, 48, lambda x, y: (90, 90, 90))
    code, out, err = run("infer", "--model", "silent", "--draw", os.path.join(FOLDER, "x.png"), grey)
    check(code == 1 and "does not say how to decode its outputs" in err, code, err)


def test_the_frames_socket_brings_the_description():
    with pc.Connection(DAEMON.frames_path, features=pc.FEATURE_DESCRIBED | pc.FEATURE_F16) as c:
        equal(c.features, pc.FEATURE_DESCRIBED | pc.FEATURE_F16)
        for model, there in (("text", True), ("silent", False), ("digits", True), ("yolo", True)):
            c.send(pc.OPEN, pc.open_payload(model), stream=1)
            text, seen = b"", []
            while not seen or seen[-1] != pc.OPENED:
                h, payload = c.read_message()
                seen.append(h.type)
                text += payload if h.type == pc.DESCRIBED else b""
            equal(seen, [pc.DESCRIBED, pc.OPENED] if there else [pc.OPENED], model)
            if model == "text":
                equal(json.loads(text), {"output": {"decode": "ctc", "alphabet": ["ä", "b"], "activation": "softmax"},
                                         "width": W, "height": H, "fit": "stretch"})
            c.send(pc.CLOSE, stream=1)
            c.expect(pc.CLOSED)
    with pc.Connection(DAEMON.frames_path) as c:
        equal(c.features, 0)
        c.send(pc.OPEN, pc.open_payload("text"), stream=1)
        equal(c.read_message()[0].type, pc.OPENED, "a client that does not know DESCRIBED")


def replaced(number, output, **sidecar):
    """Puts a network that answers `number` in place of the one before. Return: its path."""
    fixed("draft", [1, 2, 3], [float(number)] * 6, output, **sidecar)
    for ending in (".sidecar.json", ".onnx"):
        os.rename(os.path.join(FOLDER, "draft" + ending), os.path.join(FOLDER, "replaced" + ending))
    return os.path.join(FOLDER, "replaced.onnx")


LETTERS = {"decode": "ctc", "alphabet": ["a", "b"]}


def test_an_open_stream_hears_how_its_answers_are_decoded():
    """Whichever model computed a frame, the description before its answer is that model's, or says that there is none."""
    DAEMON.pipectl("models", "load", "replaced", replaced(0, LETTERS, labels=["0"]), "--save")
    with pc.Connection(DAEMON.frames_path, features=pc.FEATURE_DESCRIBED) as c:
        s = pc.Stream(c, 1, "replaced", inline=True, credits=16)
        described, number = None, -1
        for renewed in (1, 2, 3, 4):
            for _ in range(8):
                s.submit(bytes(s.input_bytes))
            replaced(renewed, None if renewed == 3 else LETTERS, labels=["%d" % renewed])
            DAEMON.call("Reload")
            for _ in range(8):
                s.submit(bytes(s.input_bytes))
            count = 0
            while count < 16:
                h, payload = c.receive(lambda m: m.type in (pc.DESCRIBED, pc.RESULT))
                if h.type == pc.DESCRIBED:
                    described = json.loads(payload)["labels"] if payload else None
                    continue
                count += 1
                equal(h.status, 0)
                before, number = number, struct.unpack_from("<f", payload, 48)[0]
                check(number >= before, "after", before, "came", number)
                equal(described, None if number == 3 else ["%d" % number])
            equal(number, renewed, "the new model does not serve")
    with pc.Connection(DAEMON.frames_path) as c:
        s = pc.Stream(c, 1, "replaced", inline=True)
        replaced(5, LETTERS)
        DAEMON.call("Reload")
        equal(s.infer(bytes(s.input_bytes)).status, "ok")
        equal([h.type for h, _ in c.waiting], [], "a client that does not know DESCRIBED")
    DAEMON.pipectl("models", "unload", "replaced", "--save", as_json=False)


def test_a_video_goes_on_with_another_sidecar():
    mask = {"decode": "mask"}
    path = write("video", [node("Relu", ["input"], "map")], [], [("map", (1, 3, H, W))],
                 {"output": mask, "labels": list("rgb")})
    DAEMON.pipectl("models", "load", "video", path, "--save")
    video = subprocess.Popen([PIPECTL, "--socket", DAEMON.control_path, "--json", "infer", "--model", "video", "--video",
                              "%dx%d:rgb24" % (W, H)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=dict(os.environ, PIPED_RUNTIME_DIR=DAEMON.runtime_dir))

    def labels():
        video.stdin.write(bytes([0, 9, 0]) * (W * H))
        video.stdin.flush()
        return [o.get("label") for o in json.loads(video.stdout.readline()).get("objects", [])]

    equal(labels(), ["g"])
    for sidecar, wanted in (({"output": mask, "labels": list("xyz")}, ["y"]), ({}, []), ({"output": mask}, [None])):
        write("draft", [], [], [], sidecar)
        os.rename(os.path.join(FOLDER, "draft.sidecar.json"), path.replace(".onnx", ".sidecar.json"))
        DAEMON.call("Reload")
        equal(labels(), wanted)
    out, _ = video.communicate(timeout=120)
    equal((video.returncode, out), (0, b""))
    DAEMON.pipectl("models", "unload", "video", "--save", as_json=False)


def test_a_long_description_comes_in_parts():
    letters = ["%d" % i for i in range(30000)]
    path = fixed("long", [1, 1, 30001], [0.0] * 30001, {"decode": "ctc", "alphabet": letters})
    DAEMON.pipectl("models", "load", "long", path)
    with pc.Connection(DAEMON.frames_path, features=pc.FEATURE_DESCRIBED) as c:
        c.send(pc.OPEN, pc.open_payload("long"), stream=1)
        parts = [c.read_message()]
        while parts[-1][0].type == pc.DESCRIBED:
            parts.append(c.read_message())
        equal([h.flags for h, _ in parts[:-1]], [pc.FLAG_MORE] * (len(parts) - 2) + [0])
        check(len(parts) > 3, "it came in", len(parts) - 1, "parts")
        equal(json.loads(b"".join(p for _, p in parts[:-1]))["output"]["alphabet"], letters)
    equal(infer("long", ppm("grey.ppm", 120, 48, lambda x, y: (90, 90, 90)))[0]["text"], "")


def test_what_does_not_fit_is_refused_at_the_load():
    for output, part in (({"decode": "yolo", "scoer": 1},
                          "bad.sidecar.json: key 'output': key 'scoer': unknown key; did you mean score?"),
                         ({"decode": "yolo"}, "output answer [1, 3] has"),
                         ({"decode": "ssd"}, "bad.sidecar.json: key 'output': key 'tensors': \"scores\" needs 1 outputs"),
                         ({"decode": "classes", "tensors": {"boxes": "answr"}}, "the model has no output answr; it has answer"),
                         ({"decode": "keypoints"}, "must be a map for each point")):
        path = fixed("bad", [1, 3], [1.0, 5.0, 2.0], output)
        code, _, err = run("models", "load", "bad", path)
        check(code == 1 and part in err, output, code, err)
    path = fixed("bad", [1, 3, 1, 2], [0.0] * 6, {"decode": "mask"}, labels=["cat", "dog"])
    code, _, err = run("models", "load", "bad", path)
    check(code == 1 and "has 3 classes and 2 labels; give one for each class, first the background's" in err, code, err)


def test_faces_of_a_real_detector():
    source = os.path.join(REAL, "models", "ultraface_rfb320.onnx")
    if not os.path.exists(source):
        return "no ../shared/real"
    path = os.path.join(FOLDER, "faces.onnx")
    shutil.copy(source, path)
    for fit in ("stretch", "letterbox"):
        with open(path.replace(".onnx", ".sidecar.json"), "w", encoding="utf-8") as f:
            json.dump({"preprocess": {"mean": 127, "std": 128, "fit": fit}, "labels": ["BACKGROUND", "face"],
                       "output": {"decode": "ssd", "unit": "relative", "score": 0.7, "iou": 0.3,
                                  "tensors": {"boxes": "boxes", "scores": "scores"}}}, f)
        DAEMON.pipectl("models", "load", "faces-" + fit, path)
        answer = infer("faces-" + fit, os.path.join(REAL, "images", "face_13.jpg"))[0]
        equal([o["label"] for o in answer["objects"]], ["face", "face"], fit)
        # where they are in the photograph, found by eye
        for o, (x, y) in zip(sorted(answer["objects"], key=lambda o: o["x"]), ((122, 60), (330, 130))):
            check(abs(o["x"] + o["width"] / 2 - x) < 12 and abs(o["y"] + o["height"] / 2 - y) < 14, fit, o)
            check(50 < o["width"] < 80 and 70 < o["height"] < 105, fit, o)
        equal(infer("faces-" + fit, os.path.join(REAL, "images", "coral_owl.jpg"))[0]["objects"], [], "an owl")
    return None


TESTS = [t for n, t in sorted(globals().items()) if n.startswith("test_")]

if __name__ == "__main__":
    with Daemon(models=networks()) as DAEMON:
        main(TESTS)
