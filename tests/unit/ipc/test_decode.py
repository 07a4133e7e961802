#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every decoder of libpiped against decode_reference.py: random tensors, also with NaN, infinity and huge numbers, random
settings and pictures.

usage: test_decode.py DECODE_RUN
"""
import json
import math
import os
import random
import shlex
import struct
import subprocess
import sys

import decode_reference as ref

SEED = int(os.environ.get("PIPED_TEST_SEED", random.randrange(1 << 30)))
SHARE = max(1, int(os.environ.get("PIPED_TEST_SHARE", "1")))
TIMES = (60 + SHARE - 1) // SHARE
R = random.Random(SEED)
F32, I64, U8, F16 = 1, 3, 4, 7
FORMS = {F32: "f", I64: "q", U8: "B", F16: "e"}
HOSTILE = (float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-40)


def check(condition, *text):
    if not condition:
        raise AssertionError(" ".join(str(t) for t in text))


class Runner:
    def __init__(self, program):
        emulator = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
        self.p = subprocess.Popen(emulator + [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, settings, tensors, size=(64, 48), picture=(0, 0), fit="stretch", labels=None, rows=None):
        """tensors: [(name, dims, values, dtype)]; settings: of "output", or the whole description as text"""
        area, outputs = b"", []
        for name, dims, values, dtype in tensors:
            data = struct.pack("<%d%s" % (len(values), FORMS[dtype]), *values)
            outputs.append({"name": name, "dtype": dtype, "dim": dims, "offset": len(area), "bytes": len(data)})
            area += data + bytes(-len(data) % 64)
        text = settings if isinstance(settings, str) else json.dumps(
            {"output": settings, "width": size[0], "height": size[1], "fit": fit, **({"labels": labels} if labels else {})})
        case = {"description": text, "outputs": outputs, "width": picture[0], "height": picture[1], "bytes": len(area),
                "rows": rows}
        self.p.stdin.write(json.dumps(case).encode() + b"\n" + area)
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        check(line, "decode_run ended")
        return json.loads(line)


def numbers(count, low=-3.0, high=3.0, hostile=0.0):
    """exactly representable as f32"""
    v = [R.choice(HOSTILE) if R.random() < hostile else R.uniform(low, high) for _ in range(count)]
    return list(struct.unpack("<%df" % count, struct.pack("<%df" % count, *v)))


def tied(rows, first):
    """some rows with the scores of others: the first of equals wins"""
    if R.random() < 0.3:
        for r in rows:
            r[first:] = rows[0][first:]
    return rows


def spoilt():
    return R.choice((0.0, 0.0, 0.02, 0.3))


def scene():
    return {"size": (R.choice((32, 64, 80)), R.choice((32, 48, 64))), "fit": R.choice(("stretch", "crop", "letterbox")),
            "picture": R.choice(((0, 0), (64, 48), (640, 480), (37, 91), (1, 1), (300, 40)))}


def chunks(values, n):
    return [values[i:i + n] for i in range(0, len(values), n)]


def near(a, b, scale):
    return a is not None and abs(a - b) <= 2e-5 * max(scale, abs(b), 1)


def placed(s, boxes):
    """as the decoder returns them: in the picture, clipped, without what is outside"""
    w, h = s["picture"] if s["picture"][0] else s["size"]
    x, y = ref.axes(s["fit"], w, h, *s["size"])
    out = []
    for b in boxes:
        x1, x2 = (min(max(ref.back(x, b[k]), 0), w) for k in ("x1", "x2"))
        y1, y2 = (min(max(ref.back(y, b[k]), 0), h) for k in ("y1", "y2"))
        if abs(b["score"]) < ref.FLOAT_MAX and x2 > x1 and y2 > y1:
            out.append((x1, y1, x2 - x1, y2 - y1, b["score"], b["number"],
                        [(ref.back(x, p[0]), ref.back(y, p[1]), p[2]) for p in b.get("points", ())]))
    return out


def compare(got, wanted, s, what):
    check("objects" in got, what, got)
    text = "%s %s seed %d\n got %s\nwant %s" % (what, s, SEED, got["objects"][:4], wanted[:4])
    scale = max(s["picture"] + s["size"])
    check(len(got["objects"]) == len(wanted), len(got["objects"]), "objects, not", len(wanted), text)
    for o, w in zip(got["objects"], wanted):
        check(o[6] == w[5] and all(near(a, b, scale) for a, b in zip(o[:4], w[:4])) and near(o[4], w[4], 1), o, w, text)
        for p, q in zip(got["points"][o[8]:o[8] + o[9]], w[6]):
            check(all(not math.isfinite(b) or abs(b) > 1e6 or near(a, b, scale) for a, b in zip(p, q)), p, q, text)
        check(o[9] == len(w[6]), "points", text)


def columns_of(rows):
    return [r[i] for i in range(len(rows[0])) for r in rows]


def box_settings(**more):
    s = dict(more, score=R.choice((0.1, 0.25, 0.6)), iou=R.choice((0.0, 0.3, 0.45, 1.0)), most=R.choice((1, 7, 100)))
    if R.random() < 0.3:
        s["across"] = True
    return s


def test_yolo(run):
    for _ in range(TIMES):
        s, classes, k = scene(), R.choice((1, 3, 20)), R.choice((0, 0, 2, 17))
        o = box_settings(decode="yolo", objectness=R.choice(("none", "product", "root")), keypoints=k,
                         keypoint_numbers=R.choice((2, 3)), unit=R.choice(("pixels", "relative")),
                         activation=R.choice(("none", "sigmoid", "softmax")), layout=R.choice(("rows", "channels")))
        if R.random() < 0.4:
            o["columns"] = R.choice((["x1", "y1", "x2", "y2"], ["y1", "x1", "h", "w"], ["cx", "cy", "h", "w"]))
        fields = 4 + (o["objectness"] != "none") + classes + k * o["keypoint_numbers"]
        n = R.choice((1, 2, 50, 300))
        high = 1.0 if o["unit"] == "relative" else 70.0
        rows = [numbers(4, 0, high, bad) + numbers(fields - 4, 0, 1, bad) for bad in [spoilt()] for _ in range(n)]
        rows = tied(rows, 4)
        flat = sum(rows, []) if o["layout"] == "rows" else columns_of(rows)
        dims = [1, n, fields] if o["layout"] == "rows" else [1, fields, n]
        if n >= fields and R.random() < 0.5:
            del o["layout"]  # found by the shape
        got = run(o, [("out", dims, flat, F32)], **s)
        compare(got, placed(s, ref.yolo(o, rows, None, s["size"])), s, o)


def cells(size, strides, anchors):
    """(column, row, stride, width, height) of each row of a head, levels one after another"""
    return [(i % -(-size[0] // s), i // -(-size[0] // s), s, *a) for s, level in zip(strides, anchors)
            for i in range(-(-size[0] // s) * -(-size[1] // s)) for a in level]


def test_yolo_heads(run):
    for _ in range(TIMES):
        s, classes, strides = scene(), R.choice((1, 4)), R.choice(([8], [8, 16], [4, 16, 32]))
        head = R.choice(("yolox", "yolov5", "yolov3"))
        count = 1 if head == "yolox" else R.choice((1, 3))
        anchors = [[[R.randint(2, 40), R.randint(2, 40)] for _ in range(count)] for _ in strides]
        o = box_settings(decode="yolo", head=head, strides=strides, objectness="product")
        if head != "yolox":
            o["anchors"] = anchors
        fields, tensors, rows, bad = 5 + classes, [], [], spoilt()
        for level, stride in enumerate(strides):
            w, h = -(-s["size"][0] // stride), -(-s["size"][1] // stride)
            mine = [numbers(fields, -4, 4, bad) for _ in range(w * h * count)]  # by cell and anchor
            rows += mine
            by_anchor = [mine[i * count + a] for a in range(count) for i in range(w * h)]
            shape = R.choice(("5", "channels"))
            if shape == "5":
                tensors.append(("l%d" % level, [1, count, h, w, fields], sum(by_anchor, []), F32))
            else:
                flat = sum((columns_of(by_anchor[a * w * h:(a + 1) * w * h]) for a in range(count)), [])
                tensors.append(("l%d" % level, [1, count * fields, h, w], flat, F32))
        if head == "yolox" and R.random() < 0.4:
            tensors = [("all", [1, len(rows), fields], sum(rows, []), F32)]
            o["layout"] = "rows"
        got = run(o, tensors, **s)
        compare(got, placed(s, ref.yolo(o, rows, cells(s["size"], strides, anchors), s["size"])), s, o)


def priors_of(o, size):
    if o["coding"] == "none":
        return None
    anchors = o.get("anchors", [[[0, 0]]] * len(o["strides"]))
    if o["coding"] == "grid":
        return [(c * s, r * s, s, s) for c, r, s, _, _ in cells(size, o["strides"], anchors)]
    return [((c + 0.5) * s, (r + 0.5) * s, w, h) for c, r, s, w, h in cells(size, o["strides"], anchors)]


def test_ssd(run):
    for _ in range(TIMES):
        s, classes, k = scene(), R.choice((2, 5)), R.choice((0, 0, 5))
        o = box_settings(decode="ssd", coding=R.choice(("none", "priors", "grid")), keypoints=k,
                         objectness=R.choice(("none", "product", "root")), background=R.random() < 0.5,
                         activation=R.choice(("none", "sigmoid", "softmax")), unit=R.choice(("pixels", "relative")))
        sizes = [R.choice((1, 40, 200))]
        if o["coding"] != "none":
            o["strides"] = R.choice(([16], [8, 16, 32]))
            o["anchors"] = [[[R.randint(4, 60), R.randint(4, 60)] for _ in range(R.choice((1, 2)))] for _ in o["strides"]]
            if o["coding"] == "grid":
                del o["anchors"]
            else:
                o["variances"] = R.choice(([0.1, 0.2], [0.5, 1]))
            sizes = [len(priors_of(dict(o, strides=[t], anchors=[a]), s["size"]))
                     for t, a in zip(o["strides"], o.get("anchors", [[[0, 0]]] * 3))]
        if R.random() < 0.5:
            sizes = [sum(sizes)]
        bad, total, high = spoilt(), sum(sizes), 70 if o["coding"] == "none" and o["unit"] == "pixels" else 1
        parts = {"boxes": [numbers(4, 0 if high > 1 else -0.2, high, bad) for _ in range(total)],
                 "scores": [numbers(classes, 0, 1, bad) for _ in range(total)]}
        if o["objectness"] != "none":
            parts["objectness"] = [numbers(1, 0, 1, bad) for _ in range(total)]
        if k:
            parts["keypoints"] = [numbers(2 * k, 0, high, bad) for _ in range(total)]
        tensors, at = [], 0
        for level, n in enumerate(sizes):
            tensors += [("%s_%d" % (p, level), [1, n, len(v[0])], sum(v[at:at + n], []), F32) for p, v in parts.items()]
            at += n
        R.shuffle(tensors)
        o["layout"] = "rows"
        o["tensors"] = {p: ["%s_%d" % (p, i) for i in range(len(sizes))] for p in parts}
        got = run(o, tensors, **s)
        wanted = ref.ssd(o, parts["boxes"], parts["scores"], parts.get("objectness"), parts.get("keypoints"),
                         priors_of(o, s["size"]), s["size"])
        compare(got, placed(s, wanted), s, o)


def taken(o, rows, scores, classes, size):
    columns = o.get("columns", ["x1", "y1", "x2", "y2", "score", "class"][:len(rows[0]) if rows else 4])
    out = []
    for i, r in enumerate(rows):
        b = ref.corners(columns, r, ref.relative(o, size))
        v = dict(zip(columns, r))
        score = scores[i] if scores else v.get("score")
        number = classes[i] if classes else v.get("class", -1)
        b.update(score=score, order=i, number=int(number) if 0 <= number < 1e9 else -1)
        if score >= o["score"] and math.isfinite(score) and ref.finite(b):
            out.append(b)
    return sorted(out, key=lambda b: (-b["score"], b["order"]))[:o["most"]]


def test_boxes(run):
    for _ in range(TIMES):
        s, n, bad = scene(), R.choice((1, 5, 60)), spoilt()
        o = {"decode": "boxes", "score": R.choice((0.0, 0.5)), "most": R.choice((2, 100)), "unit": R.choice(("pixels", "relative"))}
        high, rows = 70 if o["unit"] == "pixels" else 1, R.choice((None, 0, 1, n, 10 ** 18))
        valid = n if rows is None else min(rows, n)
        if R.random() < 0.5:
            o["columns"] = ["skip", "class", "score", "cx", "cy", "w", "h"]
            table = [[0, R.randint(0, 80)] + numbers(1, 0, 1, bad) + numbers(4, 0, high, bad) for _ in range(n)]
            got = run(o, [("out", [1, 1, n, 7], sum(table, []), F32)], rows=[rows] if rows is not None else None, **s)
            wanted = taken(o, table[:valid], None, None, s["size"])
        else:
            table, scores = [numbers(4, 0, high, bad) for _ in range(n)], numbers(n, 0, 1, bad)
            classes, count = [R.randint(-1, 90) for _ in range(n)], R.choice((0.0, 1.0, n, 1e30, -4.0, float("nan")))
            o["tensors"] = {"boxes": "b", "scores": "s", "classes": "c", "count": "n"}
            got = run(o, [("n", [1], [count], F32), ("c", [1, n], classes, I64), ("s", [n], scores, F32),
                          ("b", [1, n, 4], sum(table, []), F32)], **s)
            most = int(min(count, n)) if count >= 0 else 0
            wanted = taken(o, table[:most], scores, classes, s["size"])
        compare(got, placed(s, wanted), s, o)


def test_boxes_of_non_maximum_suppression(run):
    for _ in range(TIMES):
        s, boxes, classes, n = scene(), 30, 4, 12
        o = {"decode": "boxes", "score": 0.2, "columns": ["y1", "x1", "y2", "x2"], "most": 8,
             "tensors": {"boxes": "b", "scores": "s", "indices": "i"}}
        table, scores = [numbers(4, 0, 70) for _ in range(boxes)], numbers(boxes * classes, 0, 1)
        index = [[0, R.randrange(classes), R.randrange(boxes)] for _ in range(n)]
        index += [R.choice(([1, 0, 0], [0, classes, 0], [0, 0, boxes], [0, -1, 0], [0, 0, -5], [0, 2 ** 62, 1]))]
        found = []
        for i, (_, c, b) in enumerate(index[:n]):
            y, x = sorted(table[b][0::2]), sorted(table[b][1::2])
            found.append({"x1": x[0], "x2": x[1], "y1": y[0], "y2": y[1], "score": scores[c * boxes + b], "number": c, "order": i})
        found = sorted([f for f in found if f["score"] >= 0.2], key=lambda f: (-f["score"], f["order"]))[:8]
        got = run(o, [("i", [n + 1, 3], sum(index, []), I64), ("b", [1, boxes, 4], sum(table, []), F32),
                      ("s", [1, classes, boxes], scores, F32)], **s)
        compare(got, placed(s, found), s, o)


def blobs(w, h):
    """a map with turned rectangles, lines and noise"""
    m = [R.uniform(0, 0.25) for _ in range(w * h)]
    for _ in range(R.randint(0, 4)):
        cx, cy, a, b, t = R.uniform(0, w), R.uniform(0, h), R.uniform(1, w / 4), R.uniform(1, h / 6), R.uniform(0, 3.2)
        p = R.uniform(0.5, 1)
        for i in range(w * h):
            x, y = i % w + 0.5 - cx, i // w + 0.5 - cy
            if abs(x * math.cos(t) + y * math.sin(t)) < a and abs(y * math.cos(t) - x * math.sin(t)) < b:
                m[i] = min(1, p + R.uniform(-0.05, 0.05))
    for _ in range(R.choice((0, 0, 5))):
        m[R.randrange(w * h)] = R.choice((float("nan"), 0.9, -1e30))
    return list(struct.unpack("<%df" % len(m), struct.pack("<%df" % len(m), *m)))


def test_dbnet(run):
    seen = 0
    for _ in range(TIMES):
        s, w, h = scene(), R.choice((8, 40, 64)), R.choice((8, 30, 48))
        o = {"decode": "dbnet", "threshold": R.choice((0.3, 0.5)), "score": R.choice((0.3, 0.6)),
             "unclip": R.choice((0, 1.5, 2.0)), "least": R.choice((0, 3))}
        m = blobs(w, h)
        got = run(o, [("maps", [1, 1, h, w], m, F32)], **s)
        scale, wanted = max(s["picture"] + s["size"]), ref.dbnet(o, m, w, h, s["size"])
        pw, ph = s["picture"] if s["picture"][0] else s["size"]
        x, y = ref.axes(s["fit"], pw, ph, *s["size"])

        def clipped(q):
            """as it is in the picture; None if nothing of it is there"""
            p = [(min(max(ref.back(x, u), 0), pw), min(max(ref.back(y, v), 0), ph)) for u, v in (q[1] if q else [])]
            return (q[0], p) if len({a for a, _ in p}) > 1 and len({b for _, b in p}) > 1 else None
        wanted = [[clipped(q) for q in region] for region in wanted]
        least, most = sum(None not in region for region in wanted), sum(any(region) for region in wanted)
        check(least <= len(got["objects"]) <= most, len(got["objects"]), "texts, not", least, most, o, s, "seed", SEED)
        for found in got["objects"]:
            corners = got["points"][found[8]:found[8] + 4]
            check(any(q and near(found[4], q[0], 1) and all(any(math.dist(c[:2], p) < 1e-3 * scale for c in corners) for p in q[1])
                      for region in wanted for q in region), found, corners, wanted, o, s, "seed", SEED)
            around = zip(corners, corners[1:] + corners[:1])
            area = abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in around)) / 2
            check(abs(found[5] - area) <= 1e-3 * max(1, area), "area", found[5], "not", area, o, s, "seed", SEED)
            seen += 1
        order = [o[1] for o in got["objects"]]
        check(order == sorted(order), "not from top to bottom", order)
    check(seen > 0, "nothing was found in any map")


def test_ctc(run):
    for _ in range(TIMES):
        letters = [chr(c) for c in R.sample(range(33, 0x9FFF), R.choice((1, 5, 60)))]
        o = {"decode": "ctc", "alphabet": letters, "blank": R.choice(("first", "last")), "space": R.random() < 0.5,
             "activation": R.choice(("none", "softmax", "sigmoid")), "layout": R.choice(("rows", "channels"))}
        count, steps = len(letters) + 1 + o["space"], R.choice((1, 9, 80))
        rows = [numbers(count, -4, 4, bad) for bad in [spoilt()] for _ in range(steps)]
        dims = R.choice(([1, steps, count], [steps, 1, count], [steps, count]))
        if o["layout"] == "channels":
            got = run(o, [("out", [1, count, steps], columns_of(rows), F32)])
        else:
            got = run(o, [("out", dims, sum(rows, []), F32)])
        text, score = ref.ctc(o, rows)
        check(got.get("text") == text, repr(got), repr(text), o, "seed", SEED)
        check(not math.isfinite(score) or abs(score) > 1e30 or near(got["text_score"], score, 1), got, score, "seed", SEED)


def test_classes(run):
    for _ in range(TIMES):
        o = {"decode": "classes", "activation": R.choice(("none", "softmax", "sigmoid")), "most": R.choice((1, 5, 200)),
             "score": R.choice((0.0, 0.1))}
        if R.random() < 0.3:
            o = {"decode": "classes"}
        n, bad = R.choice((1, 10, 100)), spoilt()
        values = numbers(n, -5, 5, bad)
        scores = ref.activated(o, values)
        wanted = sorted((-values[i], i) for i, v in enumerate(scores) if v >= o.get("score", 0) and math.isfinite(v))
        got = run(o, [("out", [1, n, 1, 1], values, F32)], labels=["l%d" % i for i in range(n // 2)])
        if not all(v < math.inf for v in scores):
            check(got.get("code") == -33 and "a score that is infinite or not a number" in got["error"], got, o, values)
            continue
        got, wanted = got["objects"], [(scores[i], i) for _, i in wanted[:o.get("most", 5)]]
        check([g[6] for g in got] == [i for _, i in wanted], got, wanted, "seed", SEED)
        check(all(near(g[4], v, 1) or abs(v) > 1e30 for g, (v, _) in zip(got, wanted)), got, wanted, "seed", SEED)
        check(all(g[7] == ("l%d" % i if i < n // 2 else None) for g, (_, i) in zip(got, wanted)), "labels", got)


def test_keypoints(run):
    for _ in range(TIMES):
        s, k, bad = scene(), R.choice((1, 5, 17)), spoilt()
        o = {"decode": "keypoints", "score": R.choice((0.0, 0.3)), "activation": R.choice(("none", "sigmoid"))}
        if R.random() < 0.5:
            o["columns"], o["unit"] = R.choice((["y", "x", "score"], ["x", "y"])), "relative"
            rows = [numbers(len(o["columns"]), 0, 1, bad) for _ in range(k)]
            got = run(o, [("out", [1, 1, k, len(o["columns"])], sum(rows, []), F32)], **s)
            points = []
            for r in rows:
                v = dict(zip(o["columns"], r))
                score = ref.activated(o, [v.get("score", 1.0)])[0]
                p = (v["x"] * s["size"][0], v["y"] * s["size"][1], score)
                points.append(p if all(map(math.isfinite, p)) else (0, 0, 0))
        else:
            w, h = R.choice((1, 2, 12)), R.choice((1, 3, 16))
            maps = [numbers(w * h, -1, 1, bad) for _ in range(k)]
            o["layout"] = R.choice(("channels", "rows"))
            flat, dims = (sum(maps, []), [1, k, h, w]) if o["layout"] == "channels" else (columns_of(maps), [1, h, w, k])
            got = run(o, [("out", dims, flat, F32)], **s)
            points = ref.heat_points(o, maps, w, h, s["size"])
        good = [p for p in points if p[2] >= o["score"] and p[2] > 0]
        boxes = [{"x1": min(p[0] for p in good), "x2": max(p[0] for p in good), "y1": min(p[1] for p in good),
                  "y2": max(p[1] for p in good), "score": sum(p[2] for p in good) / len(good), "number": -1,
                  "points": points}] if good else []
        wanted = placed(s, boxes)
        check(len(got["points"]) == k, got, "seed", SEED)
        if wanted and max(p[2] for p in good) < 1e30:  # a box of no size is kept, but placed() drops it
            compare(got, wanted, s, o)


def test_mask(run):
    for _ in range(TIMES):
        s, w, h, classes, bad = scene(), R.choice((1, 7, 32)), R.choice((1, 9, 24)), R.choice((1, 2, 21)), spoilt()
        o = {"decode": "mask", "background": R.random() < 0.5, "layout": R.choice(("channels", "rows")),
             "activation": R.choice(("none", "sigmoid")), "threshold": R.choice((0.3, 0.5))}
        maps = [numbers(w * h, -2, 2, bad) for _ in range(classes)]
        kind = R.choice((F32, F32, I64, U8))
        if kind == F32:
            by_map = o["layout"] == "channels"
            flat, dims = (sum(maps, []), [1, classes, h, w]) if by_map else (columns_of(maps), [1, h, w, classes])
            each = [ref.argmax(ref.activated(o, [m[i] for m in maps])) for i in range(w * h)]
            if classes == 1:
                each = [(c if c is None else int(v > o["threshold"]), v) for c, v in each]
            want = [255 if c is None else c for c, _ in each]
        else:
            o["layout"] = "channels"
            flat = [R.choice((0, 1, 2, 20, 254, 255) + ((-1, 300, 2 ** 62) if kind == I64 else ())) for _ in range(w * h)]
            dims, want = [1, h, w], [v if 0 <= v < 255 else 255 for v in flat]
        got = run(o, [("out", dims, flat, kind)], **s)
        pw, ph = s["picture"] if s["picture"][0] else s["size"]
        x, y = ref.axes(s["fit"], pw, ph, *s["size"])
        for i in range(w * h):
            u = ref.back(x, (i % w + 0.5) * s["size"][0] / w)
            v = ref.back(y, (i // w + 0.5) * s["size"][1] / h)
            want[i] = want[i] if 0 <= u < pw and 0 <= v < ph else 255
        check(got["mask"]["classes"] == want, o, s, "seed", SEED)
        there = sorted(set(want) - {255} - ({0} if o["background"] else set()))
        check(sorted(b[6] for b in got["objects"]) == there or s["fit"] == "crop", got["objects"], there, o, s, "seed", SEED)
        place = [ref.back(x, 0), ref.back(y, 0)]
        place += [ref.back(x, s["size"][0]) - place[0], ref.back(y, s["size"][1]) - place[1]]
        check(all(near(a, b, 1000) for a, b in zip(got["mask"]["place"], place)), got["mask"]["place"], place)


def main(cases):
    run = Runner(sys.argv[1])
    for name, test in sorted(cases.items()):
        if name.startswith("test_"):
            test(run)
            print("ok", name)
    run.p.stdin.close()
    check(run.p.wait(30) == 0, "decode_run returned", run.p.returncode)


if __name__ == "__main__":
    main(globals())
