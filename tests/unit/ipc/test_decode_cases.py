#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Decoders of libpiped on cases worked out by hand: which output is what, other types, numbers that make no object; what does
not fit is refused with a sentence.

usage: test_decode_cases.py DECODE_RUN
"""
import math

from test_decode import F16, F32, I64, U8, check, main


def test_what_is_infinite_takes_no_object_away(run):
    huge, inf = 3e38, math.inf
    boxes, scores = [16, 12, 36, 32, 17, 12, 37, 32], [0, inf, 0, 0.875]
    for o, tensors in (
            ({"decode": "yolo"}, [("o", [1, 2, 5], [26, 22, 20, 20, inf, 27, 22, 20, 20, 0.875], F32)]),
            ({"decode": "yolo", "objectness": "product"},
             [("o", [1, 2, 6], [26, 22, 20, 20, huge, huge, 27, 22, 20, 20, 1, 0.875], F32)]),
            ({"decode": "ssd"}, [("b", [1, 2, 4], boxes, F32), ("s", [1, 2, 2], scores, F32)]),
            ({"decode": "boxes", "most": 1}, [("o", [1, 2, 6], boxes[:4] + [inf, 1] + boxes[4:] + [0.875, 1], F32)]),
            ({"decode": "boxes", "most": 1}, [("o", [1, 2, 6], [-inf] + boxes[1:4] + [1, 1] + boxes[4:] + [0.875, 1], F32)]),
            ({"decode": "boxes", "most": 1, "tensors": {"boxes": "b", "scores": "s", "indices": "i"}},
             [("b", [1, 2, 4], [inf] + boxes[1:], F32), ("s", [1, 1, 2], [1, 0.875], F32),
              ("i", [2, 3], [0, 0, 0, 0, 0, 1], I64)])):
        got = run(dict(o, layout="rows") if o["decode"] != "boxes" else o, tensors)["objects"]
        check([g[:5] for g in got] == [[17, 12, 20, 20, 0.875]], o, got)


def test_parts_without_a_name_take_the_outputs_without_one(run):
    tensors = {"boxes": [1, 2, 5, 8, 20, 30, 22, 33], "scores": [0, 0.9, 0, 0, 0, 0.8], "objectness": [0.5, 1]}
    for named in (["boxes"], ["scores"], ["objectness"], ["boxes", "scores"], ["boxes", "objectness"], ["scores", "objectness"]):
        o = {"decode": "ssd", "objectness": "product", "layout": "rows", "tensors": {n: n for n in named}}
        left = [n for n in tensors if n not in named]
        for order in (named + left, left + named, left[:1] + named + left[1:]):
            got = run(o, [(n, [1, 2, len(tensors[n]) // 2], tensors[n], F32) for n in order])["objects"]
            check([g[:4] + g[6:7] for g in got] == [[20, 30, 2, 3, 2], [1, 2, 4, 6, 1]], o, order, got)


def test_other_types(run):
    """halves and bytes count as the floats that they are"""
    rows = [[10, 20, 30, 40, 0.5, 7], [1, 2, 5, 9, 0.75, 3]]
    for kind in (F32, F16):
        got = run({"decode": "boxes"}, [("out", [1, 2, 6], sum(rows, []), kind)])
        check([o[:7] for o in got["objects"]] == [[1, 2, 4, 7, 0.75, 28, 3], [10, 20, 20, 20, 0.5, 400, 7]], got)
    got = run({"decode": "classes", "activation": "none", "most": 2}, [("out", [1, 3], [0, 200, 3], U8)])
    check([(o[6], o[4]) for o in got["objects"]] == [(1, 200), (2, 3)], got)


def test_what_does_not_fit_is_refused(run):
    boxes, scores = ("boxes", [1, 8, 4], [0.0] * 32, F32), ("scores", [1, 8, 3], [0.0] * 24, F32)
    for settings, tensors, labels, part in (
            ("", [boxes], None, "how to decode its outputs (key output)"),
            ("{", [boxes], None, "the description of the outputs"),
            ("{}", [boxes], None, "key 'output': must be an object"),
            ({"decode": "yolo", "scorre": 1}, [boxes], None, "key 'scorre': unknown key; did you mean score?"),
            ({"decode": "yolo"}, [boxes], None, "output boxes [1, 8, 4] has 4 numbers a box, at least 5"),
            ({"decode": "yolo"}, [("o", [1, 99, 85], [0.0] * 8415, F32)], ["l"] * 80, "81 classes (85 numbers a box, 4 of others) "
             "and 80 labels; \"objectness\""),
            ({"decode": "ssd"}, [boxes, scores], ["cat", "dog"],
             "output scores [1, 8, 3] has 3 classes and 2 labels; give one for each class, first the background's"),
            ({"decode": "ssd", "background": False}, [boxes, scores], ["cat"] * 4,
             "and 4 labels; give one for each class, from class 0"),
            ({"decode": "mask"}, [("o", [1, 3, 2, 2], [0.0] * 12, F32)], ["cat", "dog"],
             "has 3 classes and 2 labels; give one for each class, first"),
            ({"decode": "mask"}, [("o", [1, 1, 2, 2], [0.0] * 4, F32)], ["cat"], "has 2 classes and 1 labels"),
            ({"decode": "mask"}, [("o", [1, 2, 2], [0] * 4, I64)], ["cat"], None),
            ({"decode": "boxes", "tensors": {"boxes": "b", "scores": "s", "indices": "i"}},
             [("b", [1, 8, 4], [0.0] * 32, F32), ("s", [1, 3, 8], [0.0] * 24, F32), ("i", [1, 3], [0] * 3, I64)], ["cat", "dog"],
             "output s [1, 3, 8] has 3 classes and 2 labels"),
            ({"decode": "yolo", "head": "yolox", "strides": [8, 16]}, [("o", [1, 9, 6], [0.0] * 54, F32)], None,
             "has 9 cells of 1; the strides make 60 of 1"),
            ({"decode": "ssd"}, [boxes], None, "\"scores\" needs 1 outputs of the model and gets 0"),
            ({"decode": "ssd", "tensors": {"boxes": "box"}}, [boxes, scores], None, "the model has no output box"),
            ({"decode": "ssd", "tensors": {"boxes": "boxes", "scores": "boxes"}}, [boxes, scores], None,
             "output boxes is named twice; each part needs an output of its own"),
            ({"decode": "ssd", "tensors": {"boxes": ["boxes", "boxes"]}}, [boxes, scores], None, "output boxes is named twice"),
            ({"decode": "ssd"}, [scores, boxes], None, "is to be \"boxes\" and has 3 numbers a row, not 4"),
            ({"decode": "ssd", "coding": "grid", "strides": [16]}, [boxes, scores], None, "8 boxes; \"strides\" make 12"),
            ({"decode": "boxes"}, [boxes], None, "has no score"),
            ({"decode": "boxes"}, [("o", [1, 9, 7], [0.0] * 63, F32)], None, "rows of 7 numbers, and \"columns\" has 0"),
            ({"decode": "dbnet"}, [boxes, scores], None, None),
            ({"decode": "dbnet"}, [("o", [1, 2, 3, 4], [0.0] * 24, F32)], None, "must be one map"),
            ({"decode": "ctc", "alphabet": ["a"]}, [boxes], None, "scores of 4 characters; the alphabet has 1"),
            ({"decode": "ctc", "alphabet_file": "a.txt"}, [boxes], None, "only a sidecar has files"),
            ({"decode": "keypoints"}, [boxes], None, "must be a map for each point"),
            ({"decode": "mask"}, [("o", [5], [0.0] * 5, F32)], None, "must be [1, classes, height, width]")):
        got = run(settings, tensors, labels=labels)
        check("objects" in got if part is None else got.get("code") in (-22, -61) and part in got["error"], settings, got, part)
    got = run({"decode": "mask"}, [("o", [1, 1, 2, 2], [0.0] * 4, F32)], size=(0, 0))
    check("needs a model whose input is a picture" in got["error"], got)


if __name__ == "__main__":
    main(globals())
