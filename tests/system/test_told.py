#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What people are told: misspelt words, silent daemons, refusals. Each shows the text."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

import tiny_onnx
from daemon import BUILD, DIGITS, PIPECTL, PIPED, ROOT, Daemon, Failure, VarlinkError, check, equal, main

PIPESIM = os.path.join(BUILD, "tuner", "pipesim")


def run(*args, expect=0):
    """Return: what the program printed, on both outputs."""
    r = subprocess.run(list(args), capture_output=True, text=True, timeout=60, check=False)
    equal(r.returncode, expect, "%s\n%s%s" % (args, r.stdout, r.stderr))
    return r.stdout + r.stderr


def told(words, *args, expect=0):
    text = run(*args, expect=expect)
    check(words in text, "'%s' is not in:\n%s" % (words, text))


def commands_and_options_are_guessed():
    told("unknown command 'sttaus'; did you mean status?\n", PIPECTL, "sttaus", expect=2)
    told("unknown command 'xyzzy'; see pipectl --help\n", PIPECTL, "xyzzy", expect=2)
    told("unknown option --moddel; did you mean --model?", PIPECTL, "status", "--moddel", "x", expect=2)
    told("unknown option --moddel=x; did you mean --model?", PIPECTL, "status", "--moddel=x", expect=2)
    told("unknown option --zzz\n", PIPECTL, "status", "--zzz", expect=2)
    told("unknown command 'plam'; did you mean plan?\n", PIPESIM, "plam", expect=2)
    told("unknown option --platfrom; did you mean --platform?", PIPESIM, "plan", "--platfrom", "x", expect=2)


def help_is_found_both_ways():
    for command in ("status", "infer", "optimise", "optimize", "quantise", "plan"):
        equal(run(PIPECTL, "help", command), run(PIPECTL, command, "--help"), command)
    told("unknown command 'plam'; did you mean plan?", PIPECTL, "help", "plam", expect=2)
    equal(run(PIPECTL, "version"), run(PIPECTL, "--version"))
    equal(run(PIPESIM, "help", "plan"), run(PIPESIM, "plan", "--help"))


def a_silent_daemon_is_told():
    with Daemon() as d:
        picture = os.path.join(d.temp, "a.pgm")
        with open(picture, "wb") as f:
            f.write(b"P5\n16 16\n255\n" + bytes(256))
        d.signal(signal.SIGSTOP)
        try:
            for command in (["status"], ["models"], ["plan", "set", "0-11@big"], ["retune", "--cancel"], ["top", "--once"]):
                told("piped at %s has not answered for 0.2 s" % d.control_path,
                     PIPECTL, "--socket", d.control_path, "--timeout", "0.2", *command, expect=3)
            text = run(PIPECTL, "--socket", d.control_path, "infer", picture, "--timeout=0.2", expect=3)
            check("piped at %s has not answered for 0.2 s\n" % d.frames_path in text, text)
            check("it is starting, stopped (SIGSTOP), or its cores are overloaded" in text, text)
            check("is it running?" not in text, text)
        finally:
            d.signal(signal.SIGCONT)
        d.pipectl("status")
        told("not 'soon'", PIPECTL, "--timeout", "soon", "status", expect=2)
        told("--timeout needs a value", PIPECTL, "status", "--timeout", expect=2)


def a_quiet_daemon_is_told():
    """It has answered: that nothing happens is no fault of its own, and the normal end."""
    with Daemon() as d:
        text = run(PIPECTL, "--socket", d.control_path, "subscribe", "--timeout", "2")
        check('"subscribed"' in text and "nothing happened for 2 s\n" in text and "overloaded" not in text, text)


def a_model_without_pictures_is_named():
    """And what the command takes instead. The model is the default one: nobody named it."""
    d = Daemon()
    d.models = {"boxes": os.path.join(d.temp, "boxes.onnx")}
    tiny_onnx.write_boxes(d.models["boxes"])
    picture, mapping = os.path.join(d.temp, "a.pgm"), os.path.join(d.temp, "mapping.json")
    with open(picture, "wb") as f:
        f.write(b"P5\n16 16\n255\n" + bytes(256))
    with open(mapping, "w", encoding="utf-8") as f:
        f.write("{}")
    with d:
        ask = [PIPECTL, "--socket", d.control_path]
        for command, instead in ((["infer", picture], "files that end in .f32, .f16 or .npy"),
                                 (["infer", "--video", "16x16:gray8", "/dev/null"], "files that end in .f32, .f16 or .npy"),
                                 (["bench", "--pixfmt", "rgb24"], "--pixfmt tensor")):
            text = run(*ask, *command, expect=1)
            check("model boxes: its input is not an image" in text, text)
            check(text.endswith("send raw tensors instead: %s\n" % instead), text)
        told("model boxes: there is no execution place", *ask, "plan", "set", "0-1@nowhere", expect=1)
        told("model boxes: mapping", *ask, "plan", "import", mapping, expect=1)


def sizes_of_pictures_are_the_callers():
    with Daemon(models={"digits": DIGITS}) as d:
        ask = [PIPECTL, "--socket", d.control_path]
        told("a picture of 20000x20000 is too large: it has 1144 MiB", *ask, "bench", "--pixfmt", "rgb24", "--size", "20000x20000",
             expect=1)
        told("a picture of 15x15 cannot be nv12", *ask, "bench", "--pixfmt", "nv12", "--size", "15x15", expect=1)
        told("a picture of 99999x99999 is too large", *ask, "infer", "--video", "99999x99999:gray8", "/dev/null", expect=1)


def answers_that_nobody_takes():
    """A command that would go on ends, and says why."""
    with Daemon(models={"digits": DIGITS}) as d:
        ask = [PIPECTL, "--socket", d.control_path]
        heldout = os.path.join(ROOT, "model", "default", "heldout.pgm")

        def ends(stdout, *args):
            with open("/dev/zero", "rb") as endless:
                r = subprocess.run(ask + list(args), stdin=endless, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60,
                                   check=False)
            equal(r.returncode, 1, r.stderr)
            equal(r.stderr.count("pipectl: cannot write the result"), 1, r.stderr)

        commands = (["infer", "--video", "16x16:gray8"], ["--json", "infer", "--video", "16x16:gray8"], ["infer"] + 20 * [heldout])
        for command in commands:
            with open("/dev/full", "wb") as full:
                ends(full, *command)
            read, write = os.pipe()
            os.close(read)
            ends(write, *command)
            os.close(write)
        frames = 20 * os.path.getsize(heldout) // 75
        check(d.status()["models"][0]["frames"]["answered"] < frames, "all pictures were computed for nobody")


def a_video_without_a_frame():
    with Daemon(models={"digits": DIGITS}) as d:
        for more in ([], ["--json"]):
            video = [PIPECTL, "--socket", d.control_path, "infer", "--video", "16x16:gray8", *more]
            told("/dev/null: no frame came; look what the program that writes them says\n", *video, "/dev/null", expect=1)
            r = subprocess.run(video, input=bytes(256 + 100), capture_output=True, timeout=60, check=False)
            equal((r.returncode, len(r.stdout) > 0), (1, True))
            check(b"-: the last frame has 100 of 256 bytes\n" in r.stderr, r.stderr)


def misspelt_names_are_guessed():
    with Daemon(models={"digits": DIGITS}) as d:
        ask = [PIPECTL, "--socket", d.control_path]
        told("no such model: digitz; did you mean digits?", *ask, "status", "--model", "digitz", expect=1)
        told("no such model: digitz; did you mean digits?", *ask, "units", "--model", "digitz", expect=1)
        told("no such model: digitz; did you mean digits?", *ask, "bench", "--model", "digitz", expect=1)
        told("no such model: ?x", *ask, "bench", "--model", "\u202ex", expect=1)
        told("not 'shishaa'; did you mean shisha?", *ask, "retune", "--algorithm", "shishaa", expect=2)


def reasons_survive_any_text():
    """The daemon cuts what it quotes, within a character perhaps."""
    with Daemon(models={"digits": DIGITS}) as d:
        for lead in range(4):
            for letter in ("\xe9", "\u20ac", "\U0001f431"):
                try:
                    d.call("Retune", {"algorithm": "a" * lead + letter * 40})
                    raise Failure("it was taken")
                except VarlinkError as e:
                    check('no algorithm "' + "a" * lead + letter * 14 in e.parameters["why"], e.parameters)


def numbers_are_read_whole():
    """Not a part of their bits, and without signs where none belong."""
    with Daemon(models={"digits": DIGITS}) as d:
        ask = [PIPECTL, "--socket", d.control_path]

        def put(name, data):
            with open(os.path.join(d.temp, name), "wb") as f:
                f.write(data)
            return f.name

        for size in ("4294967312x16", "16x4294967312", "-4294967280x16", "-1x5", "+16x16", " 16x16", "16x16x",
                     "18446744073709551632x16"):
            told("--size needs WIDTHxHEIGHT", *ask, "bench", "--frames", "1", "--pixfmt", "gray8", "--size", size, expect=2)
            told("--video needs WxH:FORMAT", *ask, "infer", "--video", size + ":gray8", "/dev/null", expect=2)
        picture = put("a.pgm", b"P5\n16 16\n255\n" + bytes(256))
        for number in (b"99999999999999999999", b"18446744073709551616", b"-1", b"3.0", b"0x3"):
            told("expected one class index", *ask, "infer", "--expect", put("labels", number + b"\n"), picture, expect=1)
        for shape, words in ((b"256,", ""), (b"-18446744073709551360,", "broken header"), (b"+256,", "broken header"),
                             (b"18446744073709551872,", "broken header"), (b"1099511627776, 1099511627776,", "broken header"),
                             (b"257,", "cut short: 256 of 257 elements are whole"), (b"", "its 4 bytes are not a multiple"),
                             (b"16, -18446744073709551600", "broken header")):
            text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + b"), }"
            told(words, *ask, "infer", put("a.npy", b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(1024)),
                 expect=1 if words else 0)


def misspelt_keys_are_guessed():
    with Daemon() as d:
        for text, words in (({"defualt_model": "x"}, "defualt_model: unknown key; did you mean default_model?"),
                            ({"limits": {"conections": 3}}, "limits.conections: unknown key; did you mean connections?"),
                            ({"models": [{"name": "a", "pth": "b"}]}, "pth: unknown key; did you mean path?"),
                            ({"xyzzy": 3}, "xyzzy: unknown key\n")):
            path = os.path.join(d.temp, "bad.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(text, f)
            told(words, PIPED, "--check-config", "--config", path, expect=78)
        model, sidecar = os.path.join(d.temp, "m.onnx"), os.path.join(d.temp, "m.sidecar.json")
        os.symlink(DIGITS, model)
        with open(sidecar, "w", encoding="utf-8") as f:
            json.dump({"preprocess": {"meen": 1}}, f)
        told("key 'meen': unknown key; did you mean mean?", PIPED, "--check-config", "--model", model, expect=78)


def health_is_an_exit_code():
    temp = tempfile.mkdtemp(prefix="piped-test-")
    bad = os.path.join(temp, "bad.onnx")
    with open(bad, "wb") as f:
        f.write(b"no network at all")
    d = Daemon(models={"digits": DIGITS, "bad": bad})
    health = [PIPECTL, "--socket", d.control_path, "health"]
    told("is it running?", *health, expect=3)
    told("is it running?", *health, "--live", "--wait", "0.3", expect=3)
    with subprocess.Popen(health + ["--wait", "60", "--model", "digits"], stdout=subprocess.PIPE, text=True) as waits:
        with d:
            equal((waits.wait(60), waits.stdout.read()), (0, "degraded\n"))
            told("degraded", *health, "--live")
            told("not ready: model bad could not be loaded: %s" % bad, *health, expect=1)
            told("not ready: model bad could not be loaded: %s" % bad, *health, "--model", "bad", "--wait", "3600", expect=1)
            told("not ready: no model xyz", *health, "--model", "xyz", expect=1)
            told('"healthy": false', *health, "--json", expect=1)
            d.signal(signal.SIGSTOP)
            told("has not answered for 0.2 s", *health, "--timeout", "0.2", expect=3)
            told("has not answered for 1 s", *health, "--wait", "0.001", expect=3)  # a busy daemon has a second at least
            d.signal(signal.SIGCONT)
            d.call("Load", {"name": "good", "path": DIGITS})
    shutil.rmtree(temp)


def units_are_sorted_by_what_they_cost():
    with Daemon() as d:
        equal({u["share"] for u in d.pipectl("units")}, {None}, "nothing was measured, and no frame came")
        d.pipectl("bench", "--frames", "50")
        units = d.pipectl("units")
        times = [u["ms"] for u in d.pipectl("units", "--sort", "time")]
        equal(times, sorted(times, reverse=True))
        weights = [u["weight"] for u in d.pipectl("units", "--sort", "weight")]
        equal(weights, sorted((u["weight"] for u in units), reverse=True))
        check(abs(sum(u["share"] for u in units) - 1) < 1e-6, units)
        table = d.pipectl("units", as_json=False)
        check("share" in table and ".0000 " not in table, "no share, or weights with fractions, in the table\n", table)
        told("--sort needs one of unit, time, weight, not 'size'", PIPECTL, "--socket", d.control_path, "units", "--sort", "size",
             expect=2)


def limits_are_told_with_their_keys():
    """And a bench to which everything is refused ends."""
    with Daemon(config={"limits": {"inline_mib": 1, "pool_mib_per_user": 1}}) as d:
        bench = [PIPECTL, "--socket", d.control_path, "bench", "--seconds", "600", "--pixfmt", "rgb24", "--size", "1000x1000"]
        told("MiB: user %d has 0.0 MiB, and limits.pool_mib_per_user is 1" % os.geteuid(), *bench, expect=1)
        refused = d.status()["refusals"][-1]
        check("no room for this pool of " in refused["why"], refused)
        equal(d.log().count("no room for this pool of "), 1, d.log())
        check('piped_pools_refused_total{status="resource_exhausted"} 1' in d.pipectl("metrics", as_json=False))
        told("frames of this connection: limits.inline_mib", *bench, "--inline", expect=1)


def files_that_are_no_models_are_named():
    told("this is a text file; it is not an ONNX model", PIPED, "--check-config", "--model", "/etc/passwd", expect=78)


def checks_say_what_is_not_there():
    """Cores that the machine does not have are refused, by a start too. It serves without a group or a chip."""
    with Daemon() as d:
        path = os.path.join(d.temp, "odd.json")
        for config, code, words in (
                ({"eps": [{"name": "big", "cpus": "0,255"}]}, 78, 'eps[0].cpus: "0,255": this machine has no core 255; it has 0'),
                ({"admin_group": "nobodys"}, 0, 'warning: %s:1: admin_group: "nobodys": no such group; until it is made,' % path),
                ({"gpio": {"chip": "nothing", "led": 1}}, 0, 'warning: %s:1: gpio.chip: "nothing": ' % path),
                ({"default_model": "zzz"}, 0, 'default_model: "zzz": no model of this name')):
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            told(words, PIPED, "--check-config", "--config", path, expect=code)
            if code:
                told(words, PIPED, "--config", path, "--runtime-dir", d.temp, expect=code)


if __name__ == "__main__":
    main([commands_and_options_are_guessed, help_is_found_both_ways, a_silent_daemon_is_told, a_quiet_daemon_is_told,
          a_model_without_pictures_is_named, sizes_of_pictures_are_the_callers, answers_that_nobody_takes,
          a_video_without_a_frame, misspelt_names_are_guessed,
          reasons_survive_any_text, numbers_are_read_whole,
          misspelt_keys_are_guessed, health_is_an_exit_code, units_are_sorted_by_what_they_cost,
          limits_are_told_with_their_keys, files_that_are_no_models_are_named,
          checks_say_what_is_not_there])
