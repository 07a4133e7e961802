#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What Answer.decoded() of the Python client gives is what pipectl prints: boxes, points, text, classes and masks."""
import json
import os

import test_outputs
from daemon import check, equal
from python_client import Served, heldout, main, np, piped, raises

PICTURES = {"grey": (96, 40), "wide": (128, 48), "large": (200, 120)}


def picture(name, width, height):
    path = test_outputs.ppm(name + ".ppm", width, height, lambda x, y: (x * 5 & 255, y * 9 & 255, 90))
    with open(path, "rb") as f:
        return path, np.frombuffer(f.read()[-width * height * 3:], np.uint8).reshape(height, width, 3)


def plain(o):
    """An object as pipectl's JSON has it."""
    return [o.label, o.index, [round(v, 2) for v in (o.score, o.x, o.y, o.width, o.height)],
            [[round(v, 2) for v in (p.x, p.y, p.score)] for p in o.points]]


def wanted(o):
    return [o.get("label"), o.get("class"), [round(o.get(k, 0), 2) for k in ("score", "x", "y", "width", "height")],
            [[round(v, 2) for v in p] for p in o.get("points", [])]]


def runs(classes):
    out = []
    for c in classes.reshape(-1).tolist():
        if out and out[-1][0] == c:
            out[-1][1] += 1
        else:
            out.append([c, 1])
    return out


def all_decoders_agree_with_pipectl():
    models = {name: path for name, path in test_outputs.networks().items() if name not in ("digits", "silent")}
    with Served() as d, d.client() as p:
        for model, path in models.items():
            d.pipectl("models", "load", model, path)
            with p.stream(model, pixfmt="rgb24", size=(200, 120)) as s:
                for name, size in PICTURES.items():
                    path, pixels = picture(name, *size)
                    said = d.pipectl("infer", "--model", model, path)[0]
                    for a in [s.run(pixels), s.run(pixels, copy=False), next(s.infer([pixels]))]:
                        got = a.decoded()
                        equal((got.kind, got.width, got.height), (said["decoded"], *size), model)
                        equal([plain(o) for o in got.objects], [wanted(o) for o in said["objects"]], model)
                        equal(got.text, said.get("text"), model)
                        equal(got.mask is None, said.get("mask") is None, model)
                        if got.mask:
                            equal(runs(got.mask.classes), said["mask"]["runs"], model)
                            check(abs(got.mask.y - said["mask"]["y"]) < 0.01, got.mask, said["mask"])


def without_a_description_it_says_so():
    with Served() as d, d.client() as p:
        d.pipectl("models", "load", "silent", test_outputs.networks()["silent"])
        with p.stream("silent", pixfmt="rgb24", size=(128, 48)) as s:
            a = s.run(picture("wide", 128, 48)[1])
            raises(piped.Error, "(key output); pipectl models inspect FILE --write-sidecar drafts it", a.decoded)
            equal(a.top(1), [])
        with p.stream("digits", pixfmt="gray8") as s:
            check(s.run(heldout(1)[0]).top(1), "a classifier needs no key output")


def a_closed_stream_still_decodes():
    with Served() as d, d.client() as p:
        d.pipectl("models", "load", "yolo", test_outputs.networks()["yolo"])
        _, pixels = picture("wide", 128, 48)
        options = {"pixfmt": "rgb24", "size": (128, 48)}
        with p.stream("yolo", **options) as s, p.stream("yolo", **options) as t:
            a, b = s.run(pixels), t.run(pixels)
            first = a.decoded()
        equal(a.decoded(), first)
        equal([o.label for o in b.decoded().objects], [o.label for o in first.objects])


def an_answer_is_decoded_as_its_own_model_says():
    """A model is replaced under its stream; whoever decodes later decodes by the sidecar of then."""
    with Served() as d, d.client() as p:
        path = test_outputs.networks()["yolo"]
        sidecar = path.replace(".onnx", ".sidecar.json")
        with open(sidecar, encoding="utf-8") as f:
            said = json.load(f)

        def renew(**keys):
            said.update(keys)
            with open(sidecar + ".new", "w", encoding="utf-8") as f:
                json.dump({k: v for k, v in said.items() if v}, f)
            os.rename(sidecar + ".new", sidecar)
            d.call("Reload")

        d.pipectl("models", "load", "yolo", path, "--save")
        _, pixels = picture("wide", 128, 48)
        with p.stream("yolo", pixfmt="rgb24", size=(128, 48)) as s:
            first = s.run(pixels)
            equal(s.labels, ["cat", "dog"])
            renew(labels=["x", "y"], preprocess={"fit": "stretch"})
            second = s.run(pixels, copy=False)
            equal(s.labels, ["x", "y"])
            renew(output=None)
            third = s.run(pixels)
            raises(piped.Error, "(key output)", s.decoder)
        raises(piped.Error, "(key output)", third.decoded)
        for answer, wanted in ((first, [("dog", 0, 6), ("cat", 14, 20)]), (second, [("y", 9, 6), ("x", 19, 10)])):
            equal([(o.label, round(o.y), round(o.height)) for o in answer.decoded().objects], wanted)


if __name__ == "__main__":
    main([all_decoders_agree_with_pipectl, without_a_description_it_says_so, a_closed_stream_still_decodes,
          an_answer_is_decoded_as_its_own_model_says])
