#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks that others trained, on real photographs, through the daemon and pipectl: the stored answers come out.

The data is in ../shared/real beside the project (or $PIPED_SHARED/real); skipped elsewhere. Every network serves as
a pipeline of two stages with teams of both kinds; the answers are checked again after the plan has changed.
"""
import array
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import SHARED, Daemon, check, equal, main  # noqa: E402

REAL = os.path.join(SHARED, "real")
MODELS = ("squeezenet1_1", "mobilenet_v1_0.25_128_fp32", "resnet8_cifar10_fp32", "ultraface_rfb320", "mnist_8")
DAEMON = None


def rows(name):
    with open(os.path.join(REAL, name), encoding="utf-8") as f:
        header, *lines = [line.rstrip("\n").split("\t") for line in f]
    return [dict(zip(header, line)) for line in lines]


def prepare(folder):
    """Copies the models and writes their sidecars from the stored preprocessing table."""
    labels = {"squeezenet1_1": "labels_imagenet1000.txt", "mobilenet_v1_0.25_128_fp32": "labels_tf1001.txt"}
    table = {row["model"]: row for row in rows("preproc.tsv")}
    for name in MODELS:
        shutil.copy(os.path.join(REAL, "models", name + ".onnx"), folder)
        row = table.get(name)
        if row is None:
            continue
        sidecar = {"preprocess": {"mean": [float(v) for v in row["mean_in_channel_order"].split(",")],
                                  "std": float(row["divide_by"]), "colour": row["channels"].lower()}}
        if name in labels:
            shutil.copy(os.path.join(REAL, labels[name]), folder)
            sidecar["labels_file"] = labels[name]
        with open(os.path.join(folder, name + ".sidecar.json"), "w", encoding="utf-8") as f:
            json.dump(sidecar, f)
    return {name: os.path.join(folder, name + ".onnx") for name in MODELS}


def floats(path):
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    return values


def picture(model, case):
    """The stored input of a case: a picture of the model's size, or its tensor."""
    row = next((r for r in rows("preproc.tsv") if r["model"] == model), None)
    ppm = row and os.path.join(REAL, "ppm", "%s_%sx%s.ppm" % (case, row["width"], row["height"]))
    return ppm if ppm and os.path.exists(ppm) else os.path.join(REAL, "ref", model, case, "in_0.f32")


def stored(model, case):
    folder = os.path.join(REAL, "ref", model, case)
    outputs, k = [], 0
    while os.path.exists(os.path.join(folder, "out_%d.f32" % k)):
        outputs += floats(os.path.join(folder, "out_%d.f32" % k))
        k += 1
    return outputs


def check_answers():
    tried = 0
    for model in MODELS:
        for case in sorted(os.listdir(os.path.join(REAL, "ref", model))):
            source = picture(model, case)
            if not os.path.exists(source):
                continue
            raw = os.path.join(DAEMON.temp, "raw.f32")
            DAEMON.pipectl("infer", "--model", model, "--raw", raw, source)
            got, wanted = floats(raw), stored(model, case)
            equal(len(got), len(wanted), model + " " + case)
            largest = max(map(abs, wanted))
            # probabilities: 1e-4 absolute; elsewhere relative to the largest output
            bound = 1e-4 * max(largest, 1.0)
            worst = max(abs(a - b) for a, b in zip(got, wanted))
            check(worst <= bound, model, case, "differs by %g, bound %g" % (worst, bound))
            tried += 1
    check(tried >= 25, "only %d cases were found" % tried)


def test_stored_answers_in_two_stages():
    for model in MODELS:
        status = DAEMON.call("Status", {"model": model})["status"]["models"][0]
        half = status["units"] // 2
        DAEMON.pipectl("plan", "set", "--model", model,
                       "0-%d@big|%d-%d@little" % (half - 1, half, status["units"] - 1))
    check_answers()


def test_stored_answers_with_mixed_teams():
    for model in MODELS:
        units = DAEMON.call("Status", {"model": model})["status"]["models"][0]["units"]
        DAEMON.pipectl("plan", "set", "--model", model, "0-%d@big*2+little" % (units - 1))
    check_answers()


def test_photographs_get_their_labels():
    """Whole photographs as JPEG: resized in the pipeline, the best label is the stored one."""
    wanted = {(r["model"], r["image"]): r["label"] for r in rows("expected_top5.tsv") if r["rank"] == "1"}
    right = tried = 0
    for (model, image), label in sorted(wanted.items()):
        path = os.path.join(REAL, "images", image + ".jpg")
        if model != "squeezenet1_1" or not os.path.exists(path):
            continue
        top = DAEMON.pipectl("infer", "--model", model, path)[0]["top"]
        tried += 1
        right += top[0]["label"] == label
        print("  %-18s %s (%.3f)" % (image, top[0]["label"], top[0]["score"]))
    # another decoder and another resizer: most agree, not all must
    check(tried >= 8 and right >= tried - 2, "%d of %d" % (right, tried))


def run_all():
    global DAEMON
    if not os.path.isdir(REAL):
        print("skipped: no %s; the stored answers of real networks are not here" % REAL)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        eps = [{"name": "big", "cpus": "0"},
               {"name": "little", "cpus": str(min(1, os.cpu_count() - 1))}]
        with Daemon(models=prepare(folder), config={"eps": eps}) as DAEMON:
            try:
                main([f for name, f in list(globals().items()) if name.startswith("test_")])
            except SystemExit as e:
                return e.code
    return 0


if __name__ == "__main__":
    sys.exit(run_all())
