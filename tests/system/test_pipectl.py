#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl against the real daemon: what it prints, its JSON keys, its exit codes, its words when things go wrong."""
import fnmatch
import json
import os
import re
import select
import struct
import subprocess
import sys
import zlib

import numpy as np

import pipectl_run
from daemon import BUILD, DIGITS, HEARTBEAT, PIPECTL, ROOT, Daemon, check, equal, until
from pipectl_run import bad, good, good_json, keys, place, run, run_all

HELDOUT = os.path.join(ROOT, "model", "default", "heldout.pgm")
LABELS = os.path.join(ROOT, "model", "default", "heldout.labels")
EACH = 75  # bytes of one picture in heldout.pgm


def path(name):
    return os.path.join(pipectl_run.DAEMON.temp, name)


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)
    return path(name)


def heldout():
    with open(HELDOUT, "rb") as f:
        data = f.read()
    return [data[i:i + EACH] for i in range(0, len(data), EACH)]


def test_status():
    s = good_json("status")
    keys(s, "state", "version", "uptime_s", "models", "eps", "sensors")
    equal(s["state"], "serving")
    m = s["models"][0]
    keys(m, "name", "units", "input", "plan", "epoch", "algorithm", "fps", "latency_ms", "frames", "stages")
    keys(m["input"], "shape", "dtype")
    keys(m["frames"], "admitted", "answered", "dropped", "failed")
    for stage in m["stages"]:
        keys(stage, "units", "ep", "cpus", "width", "replicas", "service_ms", "expected_ms", "busy", "queue")
    for ep in s["eps"]:
        keys(ep, "name", "cpus", "kind", "capacity", "policy", "governor", "freq_khz", "max_freq_khz", "speed", "used",
             "why")
    keys(s["sensors"], "thermal", "psi", "energy", "gpio")
    text = good("status")
    for word in ("serving", "model digits", m["plan"], "service ms", "MHz"):
        check(word in text, word, "is not in", text)
    equal(good_json("status", "--model", "digits")["models"][0]["name"], "digits")
    bad(1, ["NotFound", "nothing"], "status", "--model", "nothing")


def test_every_picture_format_gives_the_same_answer():
    files = heldout()[:1]
    header, pixels = files[0][:11], files[0][11:]
    equal(header, b"P5\n8 8\n255\n")
    pgm = write("a.pgm", files[0])
    commented = write("b.pgm", b"P5 # a comment\n#another\n8\t8\n 255\n" + pixels)
    ppm = write("c.ppm", b"P6\n8 8\n255\n" + b"".join(bytes([p]) * 3 for p in pixels))
    equal(len(pixels), 64)
    answers = good_json("infer", pgm, commented, ppm)
    equal([a["file"] for a in answers], [pgm, commented, ppm])
    for a in answers:
        keys(a, "file", "top", "outputs", "latency_ms", "service_ms")
        check(0 < a["service_ms"] <= a["latency_ms"], "computed for longer than it took", a)
        equal(len(a["top"]), 5)
        keys(a["top"][0], "class", "label", "score")
        equal(a["top"][0]["label"], str(a["top"][0]["class"]))
        check([t["score"] for t in a["top"]] == sorted((t["score"] for t in a["top"]), reverse=True), a["top"])
        equal(a["outputs"][0]["shape"], [1, 10])
    for a in answers[1:]:  # grey as RGB is the same grey but for rounding
        equal(a["top"][0]["class"], answers[0]["top"][0]["class"])
        check(abs(a["top"][0]["score"] - answers[0]["top"][0]["score"]) < 1e-3, a["top"][0], answers[0]["top"][0])
    equal(answers[0]["top"], answers[1]["top"])
    equal([a["top"] for a in good_json("infer", "--inline", pgm)], [answers[0]["top"]])
    os.makedirs(path("folder"))
    os.link(pgm, path("folder/a.pgm"))
    equal([a["file"] for name in ("folder", "folder/") for a in good_json("infer", path(name))], 2 * [path("folder/a.pgm")])
    bad(1, ["64 slots of ", " MiB of a stream, which no key raises; use fewer slots or smaller frames"],
        "bench", "--inline", "--pixfmt", "rgb24", "--size", "8000x8000", "--in-flight", "64")


def jpeg(grey):
    """A JPEG file by the Python Imaging Library, or None where that is absent."""
    try:
        import io
        from PIL import Image
    except ImportError:
        return None
    out = io.BytesIO()
    Image.fromarray(grey, "L").save(out, "JPEG", quality=95)
    return out.getvalue()


def test_jpeg():
    grey = np.frombuffer(heldout()[0][11:], np.uint8).reshape(8, 8).repeat(8, 0).repeat(8, 1)
    data = jpeg(grey)
    if data is None:
        return "python3-pil is not there"
    r = run("--json", "infer", write("a.jpg", data), write("big.pgm", b"P5 64 64 255\n" + grey.tobytes()))
    if "built without JPEG" in r.stderr:
        return "pipectl was built without JPEG"
    equal(r.returncode, 0, r.stderr)
    a, b = json.loads(r.stdout)
    equal(a["top"][0]["class"], b["top"][0]["class"])
    check(abs(a["top"][0]["score"] - b["top"][0]["score"]) < 0.05, a, b)
    for cut in (2, 20, len(data) // 2, len(data) - 10):
        bad(1, ["cut.jpg"], "infer", write("cut.jpg", data[:cut]))
    return None


def png(width, height, kind, depth, rows, palette=b""):
    """A PNG file; rows of bytes, not filtered."""
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)) +
            (part(b"PLTE", palette) if palette else b"") +
            part(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows))) + part(b"IEND", b""))


def tops(*args):
    return [a["top"] for a in good_json("infer", *args)]


def test_png():
    grey = np.frombuffer(heldout()[0][11:], np.uint8).reshape(8, 8)
    r = run("--json", "infer", write("a.png", png(8, 8, 0, 8, grey)), write("b.pgm", b"P5 8 8 255\n" + grey.tobytes()))
    if "built without PNG" in r.stderr:
        return "pipectl was built without PNG"
    equal(r.returncode, 0, r.stderr)
    a, b = json.loads(r.stdout)
    equal(a["top"], b["top"])
    colour = grey[..., None].repeat(3, 2)
    rgb = write("rgb.ppm", b"P6 8 8 255\n" + colour.tobytes())
    opaque = np.concatenate((colour, np.full((8, 8, 1), 255, np.uint8)), 2)
    forms = {"rgb": png(8, 8, 2, 8, [r.tobytes() for r in colour]), "alpha": png(8, 8, 6, 8, [r.tobytes() for r in opaque]),
             "palette": png(8, 8, 3, 8, grey, bytes(v for i in range(256) for v in (i, i, i)))}
    for name, data in forms.items():
        equal(tops(write(name + ".png", data)), tops(rgb), name)
    wide = png(8, 8, 0, 16, [b"".join(bytes((v, v)) for v in row) for row in grey])
    equal(tops(write("wide.png", wide)), [b["top"]], "16 bits")
    whole = forms["rgb"]
    for cut in (9, 20, 40, len(whole) // 2, len(whole) - 13):
        bad(1, ["cut.png"], "infer", write("cut.png", whole[:cut]))
    return None


def test_arrays_of_numpy():
    pgm = heldout()[0]
    grey = np.frombuffer(pgm[11:], np.uint8).reshape(8, 8)
    floats = np.random.default_rng(4).random((2, 1, 16, 16), np.float32)

    def saved(name, array):
        np.save(path(name), array)
        return path(name)
    equal(tops(saved("grey.npy", grey)), tops(write("grey.pgm", pgm)))
    equal(tops(saved("rgb.npy", grey[..., None].repeat(3, 2))),
          tops(write("grey.ppm", b"P6 8 8 255\n" + grey[..., None].repeat(3, 2).tobytes())))
    equal(tops(saved("two.npy", floats)), tops(write("two.f32", floats.tobytes())))
    equal(tops(saved("half.npy", floats.astype(np.float16))), tops(write("half.f16", floats.astype(np.float16).tobytes())))
    equal(tops(saved("ones.npy", floats.reshape(2, 1, 1, 16, 16))), tops(path("two.f32")))
    equal(tops(saved("flat.npy", floats.ravel())), tops(path("two.f32")))
    bad(1, ["the array has the shape [2,16,16,1], and the model's input is image f32 [1,1,16,16]"], "infer",
        saved("bad.npy", floats.reshape(2, 16, 16, 1)))
    bad(1, ["the array has the shape [512,1]"], "infer", saved("bad.npy", floats.reshape(512, 1)))
    equal(tops(write("tail.pgm", pgm + b"\n")), tops(path("grey.pgm")))
    for array, word in ((floats.astype(np.float64), "are '<f8'"), (floats.astype(">f4"), "are '>f4'; uint8, and float32"),
                        (np.asfortranarray(floats[0, 0]), "ascontiguousarray"),
                        (grey.reshape(64), "must be a picture"), (floats[:, :, :3], "not a multiple of a frame")):
        bad(1, [word], "infer", saved("bad.npy", array))
    with open(path("grey.npy"), "rb") as f:
        whole = f.read()
    for cut in (11, 60, len(whole) - 1):
        bad(1, ["cut.npy"], "infer", write("cut.npy", whole[:cut]))
    for name, size in (("two", 4), ("half", 2)):  # a frame is missing, and part of one; what follows an array is not of it
        with open(path(name + ".npy"), "rb") as f:
            whole = f.read()
        for cut in (256 * size, 1):
            bad(1, ["the file is cut short: %d of 512 elements are whole" % (512 - -(-cut // size))], "infer",
                write("cut.npy", whole[:-cut]))
        equal(tops(write("both.npy", whole + whole)), tops(path(name + ".npy")))


def test_what_can_be_read_only_once():
    pgm = heldout()[0] + heldout()[1]
    file = write("pair.pgm", pgm)
    for name in ("-", "/dev/stdin"):
        r = run("--json", "infer", name, input=pgm)
        equal(r.returncode, 0, r.stderr)
        answers = json.loads(r.stdout)
        equal([a["top"] for a in answers], tops(file))
        equal([a["file"] for a in answers], [name, name])
    r = run("infer", "-", input=b"no picture")
    check(r.returncode == 1 and "-: not a JPEG, PNG," in r.stderr, r)
    bad(1, ["/dev/zero: more than 256 MiB came from it"], "infer", "/dev/zero")


def test_other_formats_are_named():
    for begin, word in ((b"GIF89a", "a GIF file"), (b"BM", "a BMP file"), (b"RIFF1234WEBPVP8", "dwebp"),
                        (b"P3\n1 1\n", "a PPM file in text"), (b"\0\0\0 ftypavif", "AVIF")):
        bad(1, [word, "convert it"], "infer", write("x.img", begin + bytes(64)))


def test_raw_tensors_in_and_out():
    rng = np.random.default_rng(3)
    frames = rng.random((5, 256), np.float32)
    file = write("five.f32", frames.tobytes())
    single = [write("one%d.f32" % i, frames[i].tobytes()) for i in range(5)]
    many = good_json("infer", "--raw", path("many.out"), file)
    equal([a["frame"] for a in many], list(range(5)))
    ones = good_json("infer", "--raw", path("ones.out"), *single)
    equal([a["top"] for a in many], [a["top"] for a in ones])
    a, b = (np.fromfile(path(n), np.float32).reshape(5, 10) for n in ("many.out", "ones.out"))
    check(np.abs(a - b).max() <= 1e-5, "raw outputs differ")
    for row, answer in zip(a, many):
        top = answer["top"][0]
        equal(int(row.argmax()), top["class"])
        check(abs(float(row.max()) - top["score"]) < 1e-6, "the score is not the output")
        equal(answer["outputs"][0]["file"], path("many.out"))
    bad(1, ["not a multiple", "1024", "f32 [1,"], "infer", write("odd.f32", bytes(1023)))
    bad(1, ["not a multiple"], "infer", write("empty.f32", b""))


def test_heldout_accuracy():
    folder = path("heldout")
    os.mkdir(folder)
    pictures = heldout()
    for i, data in enumerate(pictures):
        write("heldout/%d.pgm" % i, data)  # no leading zeros: 10 comes after 9
    r = good_json("infer", "--expect", LABELS, folder)
    equal(r["count"], len(pictures))
    check(r["accuracy"] >= 0.97 and r["correct"] == sum(a["correct"] for a in r["results"]), r["accuracy"])
    equal(r["results"][10]["file"], folder + "/10.pgm")
    check("accuracy 9" in good("infer", "--expect", LABELS, folder), "no accuracy")
    whole = good_json("infer", "--expect", LABELS, HELDOUT)  # all pictures in one file
    equal([a["top"] for a in whole["results"]], [a["top"] for a in r["results"]])
    equal([a["frame"] for a in whole["results"]], list(range(len(pictures))))
    with open(path("list"), "w", encoding="utf-8") as f:
        f.writelines("%s/%d.pgm\n" % (folder, i) for i in range(3))
    equal(len(good_json("infer", "--list", path("list"))), 3)
    bad(1, ["450 classes", "1 frames"], "infer", "--expect", LABELS, folder + "/0.pgm")
    bad(1, ["one class index"], "infer", "--expect", write("words", b"seven\n"), folder + "/0.pgm")


def test_bad_files_do_not_stop_the_others():
    picture = write("fine.pgm", heldout()[0])
    files = [write("short.pgm", heldout()[0][:-1]), write("deep.pgm", b"P5 8 8 65535\n" + bytes(128)),
             write("huge.pgm", b"P5 99999 99999 255\n" + bytes(64)), write("zero.pgm", b"P5 0 8 255\n"),
             write("text.txt", b"hello"), write("none.pgm", b""), write("head.ppm", b"P6 8"),
             write("fake.jpg", b"\xff\xd8\xff" + bytes(100)), path("missing.pgm"), "/dev/null"]
    # a file of several pictures of which the last is broken: the ones before it are answered
    for tail in (b"x", b"P5 8 8 255\n123", b"P7\n"):
        r = run("--json", "infer", write("tail.pgm", heldout()[0] + heldout()[1] + tail))
        equal((r.returncode, ["error" in a for a in json.loads(r.stdout)]), (1, [False, False, True]), r.stderr)
    r = run("--json", "infer", files[0], picture, *files[1:], picture)
    equal(r.returncode, 1, r.stderr)
    answers = json.loads(r.stdout)
    equal([("error" in a) for a in answers], [True, False] + [True] * (len(files) - 1) + [False])
    for f in files:
        check(f in r.stderr, f, "is not in", r.stderr)
    equal(answers[1]["top"], answers[-1]["top"])


def test_models():
    good("models", "load", "second", os.path.relpath(DIGITS))
    equal(sorted(m["name"] for m in good_json("models")), ["digits", "second"])
    equal(good_json("bench", "--model", "second", "--frames", "20")["answered"], 20)
    good("models", "unload", "second")
    bad(1, ["NotFound"], "models", "unload", "second")
    bad(1, ["LoadFailed"], "models", "load", "second", __file__)
    bad(1, ["No such file"], "models", "load", "second", path("missing.onnx"))
    bad(1, ["nowhere"], "models", "load", "second", DIGITS, "--plan", "0-99@nowhere")


def test_teams_of_two_eps_share_a_stage():
    """Column "stage" is its number, as in the JSON, not that of the row."""
    if len(os.sched_getaffinity(0)) < 2:
        return "needs two cores"
    cpus = sorted(os.sched_getaffinity(0))[:2]
    eps = [{"name": name, "cpus": str(cpu)} for name, cpu in zip("ab", cpus)]
    with Daemon(models={"digits": DIGITS}, config={"eps": eps}, env=HEARTBEAT) as d:
        d.call("SetPlan", {"plan": "0-5@a+b|6-11@b"})
        rows = [line.split() for line in d.pipectl("status", as_json=False).splitlines() if re.match(r" *[0-9]+ +[0-9]", line)]
        equal([(r[0], r[1], r[2]) for r in rows], [("0", "0-5", "a"), ("0", "0-5", "b"), ("1", "6-11", "b")])
        equal([s["stage"] for s in d.status()["models"][0]["stages"]], [0, 0, 1])
    return None


def test_history_units_metrics_config():
    event = good_json("retune")
    keys(event, "id", "at", "cause", "algorithm", "plan_before", "plan_after", "fps_before", "fps_after", "duration_ms",
         "lost", "outcome")
    equal(event["cause"], "request")
    equal(good_json("history")[-1]["id"], event["id"])
    equal(len(good_json("history", "--limit", "1")), 1)
    equal(len(good_json("units")), good_json("status")["models"][0]["units"])
    check("# TYPE piped_" in good("metrics"), "no metrics")
    rows = good_json("config")
    keys(rows[0], "key", "value", "origin", "unit", "default", "help", "advanced")
    text, whole = good("config"), good("config", "--all")
    table = [row for row in rows if "default" in row]
    for row in table:
        word = re.compile("^%s " % re.escape(row["key"]), re.M)
        check(word.search(whole), "config --all has no", row["key"])
        equal(bool(word.search(text)), not row["advanced"] or row["value"] != row["default"], row["key"])
    left_out = [row for row in table if row["advanced"] and row["value"] == row["default"]]
    check(any(row["origin"] != "default" for row in left_out), "no file repeats a default")
    check( "%d advanced keys" % len(left_out) in text, text)
    check("advanced keys" not in whole, whole)
    check(text.index("\nlimits.user_weights ") < text.index("\nmodels[0] of "), "the models are not below the table", text)
    check(re.search(r" models\[0\] of [^:]*: name \S+, path .+, latest no, boards off\b", " ".join(text.split())), text)
    widest = max(len(line) for line in whole.split("\nmodels[0] of ")[0].splitlines() if "/tmp" not in line)
    check(widest <= 80, "the table is too wide for a terminal", widest, whole)
    good("reload")
    for table in ("history", "units", "models", "retune"):
        check(good(table).strip(), table)


def test_subscribe():
    with subprocess.Popen([PIPECTL, "--socket", pipectl_run.DAEMON.control_path, "subscribe"], stdout=subprocess.PIPE,
                          text=True) as p:
        def line():  # until it listens, plans are set over and over
            good("plan", "set", "0-11@" + place())
            good("plan", "auto")
            return select.select([p.stdout], [], [], 0.2)[0] and p.stdout.readline()
        check(isinstance(json.loads(until(line, "an event")), dict))
        p.terminate()


def test_usage():
    for args in ([], ["nothing"], ["bench", "--frames"], ["bench", "--frames", "0"], ["bench", "--rate", "x"],
                 ["bench", "--size", "3"], ["bench", "--pixfmt", "png"], ["bench", "--policy", "?"], ["bench", "more"],
                 ["infer"], ["infer", "--top", "0", "x"], ["infer", "--what"], ["plan", "set"], ["plan", "dance"],
                 ["plan", "show", "--limit", "3"], ["models", "load"], ["history", "--limit", "-1"],
                 ["status", "more"], ["metrics", "--model", "digits"], ["--socket"]):
        r = run(*args) if args != ["--socket"] else subprocess.run([PIPECTL, "--socket"], capture_output=True,
                                                                   text=True, check=False)
        equal((r.returncode, r.stdout), (2, ""), " ".join(args) + r.stderr)
        check("pipectl" in r.stderr, r.stderr)
    check("pipectl " in good("--version"), "version")


def test_lost_output():
    """What could not be written is an error, however much of it there was."""
    piped = os.path.join(BUILD, "daemon", "piped")
    ctl = [PIPECTL, "--socket", pipectl_run.DAEMON.control_path]
    for args in ([*ctl, "metrics"], [*ctl, "config"], [*ctl, "subscribe"], [*ctl, "--help"], [*ctl, "models", "inspect", DIGITS],
                 [*ctl, "--json", "models", "inspect", DIGITS], [piped, "--inspect", DIGITS], [piped, "--version"],
                 [piped, "--check-config", "--model", "a=" + DIGITS, "--state-dir", pipectl_run.DAEMON.state_dir]):
        with open("/dev/full", "wb") as full:
            r = subprocess.run(args, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        equal(r.returncode, 1, "%s: %s" % (args, r.stderr))
        check("cannot write the result" in r.stderr, args, r.stderr)
    read, write = os.pipe()
    os.close(read)
    for args in ([*ctl, "metrics"], [*ctl, "config"], [*ctl, "models", "inspect", DIGITS]):
        equal(subprocess.run(args, stdout=write, stderr=subprocess.DEVNULL, timeout=60, check=False).returncode, 1, args)
    os.close(write)


def test_help_and_page_agree():
    """Every command of --help has its section in pipectl(1), and that has every option of the command's usage."""
    with open(os.path.join(ROOT, "apps", "pipectl", "pipectl.1.scd"), encoding="utf-8") as f:
        parts = re.split(r"^## (.*)$", f.read(), flags=re.M)
    page = {name: title + body for title, body in zip(parts[1::2], parts[2::2])
            for name in re.split(r"[ ,]+", title.split(" [")[0])}
    equal(re.findall(r"^(\w+):$", good("--help"), flags=re.M), ["use", "look", "change", "boards"])
    commands = re.findall(r"^  (\w+) ", good("--help"), flags=re.M)
    check(len(commands) >= 12, commands)
    for command in commands:
        check(command in page, "pipectl(1) has no section", command)
        usage = run(command, "--no-such-option").stderr
        check("usage: " in usage, "no function runs", command, usage)
        options = re.findall(r"\[(--[a-z-]+)", usage.split("--json] ")[1])
        for option in options:
            check(option in page[command], "pipectl(1) does not say what", command, option, "does")
        shown = good(command, "--help")
        equal(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown, flags=re.M), options, command)
        equal([line for line in shown.splitlines() if len(line) > 80], [], "lines that a terminal wraps")
    check("shisha" in good("retune", "--help"), "the searches")


def test_metrics_and_state_files_are_documented():
    """What a daemon really prints and keeps, against docs/metrics.md and FILES of piped(8)."""
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as f:
        listed = set(re.findall(r"^\| `(piped_\w+)` \| (\w+) \|", f.read(), flags=re.M))
    printed = set(re.findall(r"^# TYPE (\w+) (\w+)$", good("metrics"), flags=re.M))
    check(len(printed) > 20, printed)
    equal(printed - listed, set(), "metrics that docs/metrics.md lacks")
    with open(os.path.join(ROOT, "daemon", "piped.8.scd"), encoding="utf-8") as f:
        files = [n.replace("\\*", "*") for n in re.findall(r"^/var/lib/piped/(\S+)$", f.read(), flags=re.M)]
    # One that ends in .new is being written, and takes its name a moment later.
    kept = [n for n in os.listdir(pipectl_run.DAEMON.state_dir) if not n.endswith(".new")]
    check(kept, "the daemon kept nothing")
    equal([n for n in kept if not any(fnmatch.fnmatch(n, f) for f in files)], [], "state files that piped(8) lacks")


def test_boards_need_root():
    os.makedirs(path("private/mine"), mode=0o700)
    os.chmod(path("private"), 0)
    stranger = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    for args in (["list"], ["key"]):
        try:
            r = subprocess.run([PIPECTL, "board", "--state-dir", path("private/mine")] + args, capture_output=True, text=True,
                               timeout=60, check=False, **stranger)
        except PermissionError:
            return "strangers cannot run " + PIPECTL
        check(r.returncode == 1 and "Permission denied; only root and piped-link may use it: sudo pipectl board" in r.stderr, r)
    return None


def test_unreachable():
    for args in (["status"], ["plan"], ["bench"], ["infer", HELDOUT], ["subscribe"]):
        r = subprocess.run([PIPECTL, "--socket", path("nobody.sock")] + args, capture_output=True, text=True, timeout=60,
                           check=False)
        equal((r.returncode, r.stdout), (3, ""), " ".join(args) + r.stderr)
        check("not reachable at" in r.stderr and "is it running" in r.stderr, r.stderr)
    r = subprocess.run([PIPECTL, "status"], capture_output=True, text=True, timeout=60, check=False,
                       env=dict(os.environ, PIPED_RUNTIME_DIR=pipectl_run.DAEMON.runtime_dir))
    equal(r.returncode, 0, r.stderr)
    long = "/" + "x" * 120
    equal(subprocess.run([PIPECTL, "--socket", long, "status"], capture_output=True, check=False).returncode, 2)


if __name__ == "__main__":
    sys.exit(run_all([f for name, f in list(globals().items()) if name.startswith("test_")]))
