# SPDX-License-Identifier: Apache-2.0
"""The decoders once more, in plain Python and by their definitions in docs/outputs.md; slow, and shares no code with C.

Each decoder gets its settings, flat lists of numbers and the shapes, and returns boxes in coordinates of the model's input:
dicts of x1, y1, x2, y2, score, number, order and points.
"""
import math

NAN = float("nan")
FLOAT_MAX = 3.4028235e38


def sigmoid(v):
    return 0.0 if v < -700 else 1 / (1 + math.exp(-v))


def expo(v):
    return math.inf if v > 700 else math.exp(v)


def softmax(v):
    top = max((x for x in v if not math.isnan(x)), default=-math.inf)
    if any(math.isnan(x) for x in v) or math.isinf(top):
        return [NAN] * len(v)
    e = [expo(x - top) for x in v]
    return [x / sum(e) for x in e]


def activated(settings, v):
    already = all(0 <= x <= 1 for x in v) and abs(sum(v) - 1) < 1e-3
    kind = settings.get("activation", "softmax" if settings["decode"] == "classes" and not already else "none")
    return [sigmoid(x) for x in v] if kind == "sigmoid" else softmax(v) if kind == "softmax" else list(v)


def argmax(v):
    """(index, value) of the highest; the first of equals; (None, NaN) if there is no number"""
    best, where = NAN, None
    for i, x in enumerate(v):
        if not math.isnan(x) and not x <= best:
            best, where = x, i
    return where, best


def part(a, b, most):
    return max(1, min(most, (2 * a + b) // (2 * b)))


def axes(fit, iw, ih, w, h):
    """(src0, src, dst0, dst) of x and y: which part of the picture goes to which part of the input"""
    x, y = [0, iw, 0, w], [0, ih, 0, h]
    wide = iw * h > ih * w
    if fit == "crop" and wide:
        x[1] = part(ih * w, h, iw)
        x[0] = (iw - x[1]) // 2
    elif fit == "crop":
        y[1] = part(iw * h, w, ih)
        y[0] = (ih - y[1]) // 2
    elif fit == "letterbox" and wide:
        y[3] = part(ih * w, iw, h)
        y[2] = (h - y[3]) // 2
    elif fit == "letterbox":
        x[3] = part(iw * h, ih, w)
        x[2] = (w - x[3]) // 2
    return x, y


def back(axis, u):
    return axis[0] + (u - axis[2]) * axis[1] / axis[3]


def corners(columns, n, scale):
    v = dict(zip(columns, n))
    out = {}
    for a, k in (("x", "w"), ("y", "h")):
        first = v[a + "1"] if a + "1" in v else v["c" + a] - v[k] / 2
        last = v[a + "2"] if a + "2" in v else first + v[k]
        out[a + "1"], out[a + "2"] = first * scale[a], last * scale[a]
    return out


def finite(b):
    return all(math.isfinite(b[k]) for k in ("x1", "y1", "x2", "y2"))


def iou(a, b):
    w, h = min(a["x2"], b["x2"]) - max(a["x1"], b["x1"]), min(a["y2"], b["y2"]) - max(a["y1"], b["y1"])
    if w <= 0 or h <= 0:
        return 0
    both = (a["x2"] - a["x1"]) * (a["y2"] - a["y1"]) + (b["x2"] - b["x1"]) * (b["y2"] - b["y1"]) - w * h
    return w * h / both


def nms(settings, boxes):
    kept = []
    for b in sorted(boxes, key=lambda b: (-b["score"], b["order"])):
        if len(kept) == settings.get("most", 100):
            break
        if not any((settings.get("across") or k["number"] == b["number"]) and iou(k, b) > settings.get("iou", 0.45)
                   for k in kept):
            kept.append(b)
    return kept


def relative(settings, size):
    """what x and y are multiplied by"""
    return {"x": size[0], "y": size[1]} if settings.get("unit") == "relative" else {"x": 1, "y": 1}


def scored(settings, classes, objectness, raw):
    one = (lambda v: sigmoid(v)) if raw or settings.get("activation") == "sigmoid" else (lambda v: v)
    values = [sigmoid(c) for c in classes] if raw else activated(settings, classes)
    number, score = argmax(values) if classes else (-1, 1)
    word = settings.get("objectness", "none")
    if word != "none":
        score *= one(objectness)
    if word == "root":
        score = math.sqrt(score) if score >= 0 else NAN
    return number, score


def yolo(settings, rows, grid, size):
    """rows: in order; grid: for each its (column, row, stride, anchor width, anchor height), or None"""
    head, found = settings.get("head", "decoded"), []
    first = 4 if settings.get("objectness", "none") == "none" else 5
    k, each = settings.get("keypoints", 0), settings.get("keypoint_numbers", 3)
    scale = relative(settings, size)
    for i, r in enumerate(rows):
        last = len(r) - k * each
        number, score = scored(settings, r[first:last], r[4] if first == 5 else 1, head in ("yolov5", "yolov3"))
        if not settings.get("score", 0.25) <= score < FLOAT_MAX:
            continue
        n = r[:4]
        if head != "decoded":
            c, w, s, aw, ah = grid[i]
            if head == "yolox":
                n = [(n[0] + c) * s, (n[1] + w) * s, expo(n[2]) * s, expo(n[3]) * s]
            elif head == "yolov3":
                n = [(sigmoid(n[0]) + c) * s, (sigmoid(n[1]) + w) * s, expo(n[2]) * aw, expo(n[3]) * ah]
            else:
                n = [(2 * sigmoid(n[0]) - 0.5 + c) * s, (2 * sigmoid(n[1]) - 0.5 + w) * s,
                     (2 * sigmoid(n[2])) ** 2 * aw, (2 * sigmoid(n[3])) ** 2 * ah]
        b = corners(settings.get("columns", ("cx", "cy", "w", "h")), n, scale)
        p = [r[last + j * each:last + (j + 1) * each] for j in range(k)]
        b.update(score=score, number=number, order=i,
                 points=[(q[0] * scale["x"], q[1] * scale["y"], q[2] if each == 3 else 1) for q in p])
        if finite(b):
            found.append(b)
    return nms(settings, found)


def ssd(settings, boxes, scores, objectness, points, priors, size):
    found, v, scale = [], settings.get("variances", (0.1, 0.2)), relative(settings, size)
    for i, n in enumerate(boxes):
        known = activated(settings, scores[i])
        number, score = argmax([NAN if k == 0 and settings.get("background", True) else s for k, s in enumerate(known)])
        if settings.get("objectness", "none") != "none":
            o = objectness[i][0]
            score *= sigmoid(o) if settings.get("activation") == "sigmoid" else o
            if settings["objectness"] == "root":
                score = math.sqrt(score) if score >= 0 else NAN
        if not settings.get("score", 0.25) <= score < FLOAT_MAX:
            continue
        flat = points[i] if points else []
        if priors:
            cx, cy, w, h = priors[i]
            a, c = v if settings["coding"] == "priors" else (1, 1)
            b = corners(("cx", "cy", "w", "h"), (cx + n[0] * a * w, cy + n[1] * a * h, w * expo(n[2] * c), h * expo(n[3] * c)),
                        {"x": 1, "y": 1})
            p = [(cx + x * a * w, cy + y * a * h, 1) for x, y in zip(flat[::2], flat[1::2])]
        else:
            b = corners(settings.get("columns", ("x1", "y1", "x2", "y2")), n, scale)
            p = [(x * scale["x"], y * scale["y"], 1) for x, y in zip(flat[::2], flat[1::2])]
        b.update(score=score, number=number, order=i, points=p)
        if finite(b):
            found.append(b)
    return nms(settings, found)


def regions(map_, w, h, threshold):
    """lists of (x, y) that are above the threshold and touch, also at corners"""
    left = {(i % w, i // w) for i, v in enumerate(map_) if v > threshold}
    while left:
        todo, region = [left.pop()], []
        while todo:
            x, y = todo.pop()
            region.append((x, y))
            near = {(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)} & left
            left -= near
            todo += near
        yield region


def least_rectangles(points):
    """by trying the direction of every pair of neighbours on the hull, found by gift wrapping; all that are equally small"""
    start = at = min(points)
    hull = []
    while True:
        hull.append(at)
        end = points[0] if points[0] != at else points[1]
        for p in points:
            turn = (end[0] - at[0]) * (p[1] - at[1]) - (end[1] - at[1]) * (p[0] - at[0])
            far = math.dist(at, p) > math.dist(at, end)
            if p != at and (turn > 0 or (turn == 0 and far)):
                end = p
        at = end
        if at == start:
            break
    best = []
    for p, q in zip(hull, hull[1:] + hull[:1]):
        length = math.dist(p, q)
        ux, uy = (q[0] - p[0]) / length, (q[1] - p[1]) / length
        along = [x * ux + y * uy for x, y in hull]
        across = [y * ux - x * uy for x, y in hull]
        a, c = max(along) - min(along), max(across) - min(across)
        m, n = (max(along) + min(along)) / 2, (max(across) + min(across)) / 2
        best.append((a * c, m * ux - n * uy, m * uy + n * ux, ux, uy, a / 2, c / 2))
    return [b[1:] for b in best if b[0] <= min(best)[0] + 1e-6]


def dbnet(settings, map_, w, h, size):
    """for each region a list of what it may be, [(score, corners in coordinates of the input) or None]"""
    found, least = [], settings.get("least", 3)

    def text(cx, cy, ux, uy, a, c):
        if 2 * min(a, c) < least:
            return None
        inside = [v for i, v in enumerate(values) if not math.isnan(v)
                  and abs((i % w + 0.5 - cx) * ux + (i // w + 0.5 - cy) * uy) <= a + 1e-6
                  and abs((i // w + 0.5 - cy) * ux - (i % w + 0.5 - cx) * uy) <= c + 1e-6]
        score = sum(inside) / len(inside) if inside else 0
        out = (2 * a * 2 * c) * settings.get("unclip", 1.5) / (4 * (a + c))
        a, c = a + out, c + out
        if not score >= settings.get("score", 0.6) or 2 * min(a, c) < least + 2:
            return None
        sx, sy = size[0] / w, size[1] / h
        return score, [((cx + i * a * ux - j * c * uy) * sx, (cy + i * a * uy + j * c * ux) * sy)
                       for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]

    values = activated(settings, map_)
    for region in regions(values, w, h, settings.get("threshold", 0.3)):
        points = sorted({(x + dx, y + dy) for x, y in region for dx in (0, 1) for dy in (0, 1)})
        found.append([text(*r) for r in least_rectangles(points)])
    return found


def ctc(settings, steps):
    letters = settings["alphabet"] + ([" "] if settings.get("space") else [])
    blank = len(letters) if settings.get("blank") == "last" else 0
    text, scores, before = "", [], None
    for s in steps:
        best, score = argmax(activated(settings, s))
        if best is not None and best != blank and best != before:
            text += letters[best - (blank == 0)]
            scores.append(score)
        before = best
    return text, sum(scores) / len(scores) if scores else 0


def heat_points(settings, maps, w, h, size):
    out = []
    for m in maps:
        at, best = argmax(m)
        if at is None:
            out.append((0, 0, 0))
            continue
        x, y = at % w, at // w

        def step(a, b):
            return 0.25 if b > a else -0.25 if b < a else 0
        px = x + 0.5 + (step(m[at - 1], m[at + 1]) if 0 < x < w - 1 else 0)
        py = y + 0.5 + (step(m[at - w], m[at + w]) if 0 < y < h - 1 else 0)
        score = sigmoid(best) if settings.get("activation") == "sigmoid" else best
        out.append((px * size[0] / w, py * size[1] / h, score) if math.isfinite(score) else (0, 0, 0))
    return out
