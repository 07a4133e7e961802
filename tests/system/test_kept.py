#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kept files that are damaged: none is used, each is named once in the log and set aside, and answers stay right."""
import errno
import json
import os
import random
import re
import shutil

import kept_files
import pyclient
from daemon import DIGITS, Daemon, VarlinkError, check, equal, main, run_piped
from example_pictures import folder

CONFIG = {"kernels": {"measure_ms": 20}, "eps": [{"name": "left", "cpus": "0"}, {"name": "right", "cpus": "0"}],
          "models": [{"name": "digits", "path": DIGITS}]}
NO_CHOICE = dict(CONFIG, kernels={"measure_ms": 0})
SEED = int(os.environ.get("PIPED_TEST_SEED", "1"))


def filled(d):
    """Makes the daemon keep one file of each sort that a board by itself has. Return: their names."""
    d.pipectl("models", "load", "second", DIGITS, "--save")
    d.pipectl("quantize", "--model", "digits", "--calibrate", folder(d, count=8), "--bound", "0", "--ms", "0")
    d.pipectl("optimise", "--model", "digits", "--ms", "20")
    d.call("Profile", {"ms": 1})
    d.pipectl("plan", "set", "--model", "digits", "0-0@left|1-%d@right" % (len(d.call("Units", {"model": "digits"})["units"]) - 1))
    d.stop()
    names = sorted(n for n in os.listdir(d.state_dir) if n.endswith(".json"))
    equal({re.split(r"[-.]", n)[0] for n in names}, {"model", "choice", "calibration", "models"}, names)
    equal({n for n in names if n.startswith("calibration")}, {"calibration.json", "calibration-digits.v2.json"})
    return names


def answer(d, model="digits"):
    with pyclient.Connection(d.frames_path) as c:
        s = pyclient.Stream(c, model=model, inline=True)
        r = s.infer(b"\0" * (s.input_bytes // 2) + b"\0\0\x80\x3f" * (s.input_bytes // 8))
        equal(r.status, "ok")
        return list(memoryview(r.output).cast("f"))


def near(a, b):
    return max(abs(p - q) for p, q in zip(a, b)) <= 1e-3 * max(abs(v) for v in b)


def scaled(data):
    """Every number of the file times 100, in the same form: what a wrong range or cost looks like."""
    return re.sub(rb"(?<=[\s\[,:])-?\d+\.\d+", lambda m: b"%g" % (100 * float(m.group(0))), data)


def flipped(data):
    at = random.Random(SEED).randrange(len(data))
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


DAMAGES = {
    "numbers times 100": scaled,
    "one bit": flipped,
    "a lost sector": lambda data: data[:512].ljust(min(512, len(data)), b"\0") if len(data) > 512 else b"\0" * len(data),
    "cut off": lambda data: data[:-1],
    "empty": lambda data: b"",
    "no checksum": lambda data: json.dumps({k: v for k, v in json.loads(data).items() if k != "checksum"}).encode(),
}


def no_damaged_file_is_used():
    with Daemon(config=CONFIG) as d:
        plain = answer(d)
        served = next(m["hash"] for m in d.call("Models")["models"])
        names = filled(d)
        good = {}
        for name in names:
            with open(os.path.join(d.state_dir, name), "rb") as f:
                good[name] = f.read()
        for what, damage in DAMAGES.items():
            changed = {name for name in names if damage(good[name]) != good[name]}
            check(what == "numbers times 100" or changed == set(names), what, changed)
            for name in names:
                kept_files.write(os.path.join(d.state_dir, name), damage(good[name]))
            with Daemon(config=CONFIG, state_dir=d.state_dir) as again:
                check(near(answer(again), plain), what, "the answer is another one")
                for name in changed:
                    if re.match("(model|choice)-", name) and not (served in name and "second" not in name):
                        continue  # no longer read: without ranges and the list, these models are not served
                    told = [line for line in again.log().splitlines() if "/%s is damaged: " % name in line]
                    equal(len(told), 1, "%s: %s\n%s" % (what, name, again.log()))
                    check("kept as %s.damaged, but not used: " % name in told[0], told)
                    with open(os.path.join(d.state_dir, name + ".damaged"), "rb") as f:
                        equal(f.read(), damage(good[name]))
                equal({m["name"] for m in again.call("Models")["models"]},
                      {"digits"} if "models.v2.json" in changed else {"digits", "second"}, what)
            with Daemon(config=CONFIG, state_dir=d.state_dir) as third:  # it was told once
                check("damaged" not in third.log(), third.log())


def change(path, **how):
    kept_files.write(path, dict(kept_files.read(path), **how))


def plan(d):
    return next(m["plan"] for m in d.status()["models"] if m["name"] == "digits")


def a_file_of_another_model_is_not_used():
    """Renamed or copied by hand: the file names its model."""
    with Daemon(config=NO_CHOICE) as d:
        plain = answer(d)
        names = filled(d)
        with Daemon(config=NO_CHOICE, state_dir=d.state_dir) as again:
            digits = next(m for m in again.call("Models")["models"] if m["name"] == "digits")
            check(digits["integers"] > 0 and plan(again).startswith("0-0@left|"), "the good files were not used")
        for name in names:
            if name.startswith("model-"):
                change(os.path.join(d.state_dir, name), identity="0" * 64)
        with Daemon(config=NO_CHOICE, state_dir=d.state_dir) as again:
            check(not plan(again).startswith("0-0@left|"), "the plan of another model was used")
            check("is damaged: it is of another model" in again.log(), again.log())
        change(os.path.join(d.state_dir, "calibration-digits.v2.json"), model="0" * 64)
        with Daemon(config=NO_CHOICE, state_dir=d.state_dir) as again:
            check(near(answer(again), plain), "ranges of another model were used")
            check("not quantised as before" in again.log(), again.log())


def the_format_before_checksums_is_read_once():
    """What users made stays: models that were saved, and ranges. Measured files are made anew."""
    with Daemon(config=NO_CHOICE) as d:
        names = filled(d)
        for name in names:
            content = kept_files.read(os.path.join(d.state_dir, name))
            content = {k: v for k, v in content.items() if k not in ("checksum", "identity")}
            version = content.pop("version")
            os.unlink(os.path.join(d.state_dir, name))
            former = name.replace(".v%d." % version, ".v%d." % (version - 1))
            kept_files.write(os.path.join(d.state_dir, former), json.dumps(dict(content, version=version - 1)).encode())
        before = sorted(os.listdir(d.state_dir))
        said = run_piped("--check-config", "--config", d.config_path, "--state-dir", d.state_dir)
        equal(said.returncode, 0, said)
        check("model second: " in said.stdout, said)
        equal(sorted(os.listdir(d.state_dir)), before, "a check wrote files again")
        for first in (True, False):
            with Daemon(config=NO_CHOICE, state_dir=d.state_dir) as again:
                models = {m["name"]: m for m in again.call("Models")["models"]}
                equal(set(models), {"digits", "second"})
                check(models["digits"]["integers"] > 0, "the ranges were lost")
                for name in ("models", "calibration-digits"):
                    equal("%s.v1.json has the format of an earlier version" % name in again.log(), first, again.log())
                    check(not os.path.exists(os.path.join(d.state_dir, name + ".v1.json")), "still there")
                    with open(os.path.join(d.state_dir, name + ".v2.json"), "rb") as f:
                        check(kept_files.is_sealed(f.read()), name)


def refused(d, method, **parameters):
    try:
        d.call(method, parameters)
    except VarlinkError as e:
        return e.parameters["why"]
    check(False, method, parameters, "was not refused")


def a_list_that_cannot_be_used_is_not_empty():
    """A reload keeps what serves, a check fails, calls change nothing; a start is degraded. Only a start sets it aside."""
    def put(data):
        if os.path.lexists(path):
            os.unlink(path)
        if isinstance(data, bytes):
            kept_files.write(path, data)
        else:
            os.symlink(data, path)

    def served(d):
        return sorted(m["name"] for m in d.call("Models")["models"])

    def lists(d):
        return [(n, os.lstat(os.path.join(d.state_dir, n)).st_ino) for n in sorted(os.listdir(d.state_dir)) if "models" in n]

    with Daemon() as d:
        d.pipectl("models", "load", "kept", DIGITS, "--save")
        path = os.path.join(d.state_dir, "models.v2.json")
        with open(path, "rb") as f:
            good = f.read()
        for bad, why in ((flipped(good), ""), (kept_files.seal({"version": 2, "models": 7}), "it holds something else"),
                         ("models.v2.json", "Too many levels of symbolic links"), ("nowhere", "No such file or directory")):
            put(bad)
            there = lists(d)
            told = refused(d, "Reload")
            check(told.startswith(path + ": the list of saved models cannot be used: " + why), told)
            equal(served(d), ["digits", "kept"], why)
            said = run_piped("--check-config", "--config", d.config_path, "--state-dir", d.state_dir)
            equal(said.returncode, 78, said)
            check(told in said.stderr, said)
            refused(d, "Load", name="other", path=DIGITS, save=True)
            refused(d, "Unload", name="kept", save=True)
            d.call("Unload", {"name": "other"})
            equal(lists(d), there, "something was renamed or written")
            d.stop()
            d.start()
            equal((d.status()["state"], served(d)), ("degraded", ["digits"]), why)
            equal([(m["name"], m["path"]) for m in d.status()["failed_models"]], [("(saved)", path)])
            check(told in d.pipectl("health", expect=1)["why"], why)
            check("cannot serve the saved models: " + told in d.log(), d.log())
            put(good)
            d.call("Reload")
            equal((d.status()["state"], served(d)), ("serving", ["digits", "kept"]), why)


def a_saved_model_whose_file_is_gone_is_put_back_or_forgotten():
    with Daemon() as d:
        path = shutil.copy(DIGITS, os.path.join(d.temp, "x.onnx"))
        d.pipectl("models", "load", "kept", path, "--save")
        os.unlink(path)
        told = refused(d, "Reload")
        check(told.startswith("saved model kept: %s: No such file or directory; put the file back, or " % path), told)
        said = run_piped("--check-config", "--config", d.config_path, "--state-dir", d.state_dir)
        check(said.returncode == 78 and told in said.stderr, said)
        command = told.rpartition("forget it by pipectl ")[2]
        equal(command, "models unload kept --save")
        d.pipectl(*command.split())
        d.call("Reload")


def a_state_directory_that_cannot_be_used_is_named():
    d = Daemon()
    d.state_dir = d.config_path
    with d:
        told = ("cannot use %s as the state directory: Not a directory: plans are not kept, and saved models are not served"
                % d.state_dir)
        check(told in d.log(), d.log())
        check("its log says why" in refused(d, "Unload", name="digits", save=True))
        said = run_piped("--check-config", "--config", d.config_path, "--state-dir", d.state_dir)
        check(said.returncode == 0 and "warning: " + told in said.stderr, said)


def a_saved_model_adds_to_what_is_served():
    """In any order of saving and starting: digits stays while none is configured, and what was saved is meant by default."""
    def served(d):
        return {m["name"]: m["default"] for m in d.call("Models")["models"]}

    with Daemon() as d:
        equal(served(d), {"digits": True})
        equal([row["origin"] for row in d.call("Config")["config"] if row["key"] == "models[0]"], ["default"])
        d.pipectl("models", "load", "one", DIGITS)  # saved below, while it is loaded
        for saved in ({"one": True, "two": False}, {"two": True}):
            if "one" in saved:
                for name in saved:
                    d.pipectl("models", "load", name, DIGITS, "--save")
            else:
                d.pipectl("models", "unload", "one", "--save")
            equal(served(d), {**saved, "digits": False})
            d.stop()
            d.start()
            equal(served(d), {**saved, "digits": False}, "after a restart")
            d.pipectl("reload")
            equal(served(d), {**saved, "digits": False}, "after a reload")
        equal([c.split()[0] for c in d.pipectl("models", as_json=False).splitlines()[1:]], ["two", "digits"])
        try:
            d.call("Unload", {"name": "digits", "save": True})
            check(False, "what nobody saved was forgotten")
        except VarlinkError as e:
            check("digits comes with piped" in e.parameters["why"], e.parameters)
        d.pipectl("models", "unload", "digits")
        equal(served(d), {"two": True})
        for config, wanted, why in (
                ({"limits": {"models": 1}}, {"two": True}, "no room for what nobody asked for"),
                ({"models": [{"name": "mine", "path": DIGITS}]}, {"mine": True, "two": False}, "nothing comes along")):
            d.stop()
            d.write_config(config)
            d.start()
            equal(served(d), wanted, why)


def what_is_saved_is_what_serves():
    """A model whose file, or sidecar, has changed since it was loaded is loaded again before it is saved; clients go on."""
    with Daemon() as d, pyclient.Connection(d.frames_path) as c:
        path = os.path.join(d.temp, "m.onnx")
        shutil.copy(DIGITS, path)

        def loads(*more):
            d.pipectl("models", "load", "one", path, *more)
            return d.log().count("model one from ")

        equal(loads(), 1)
        s = pyclient.Stream(c, model="one", inline=True)
        first = s.infer(bytes(s.input_bytes)).output
        equal(loads("--save"), 1, "nothing had changed")
        with open(os.path.join(d.temp, "m.sidecar.json"), "w", encoding="utf-8") as f:
            json.dump({"labels": ["n%d" % i for i in range(10)]}, f)
        equal(loads("--save"), 2)
        equal([m["labels"][3] for m in d.call("Models")["models"] if m["name"] == "one"], ["n3"])
        shutil.copy(DIGITS, path + ".new")
        os.rename(path + ".new", path)
        equal([loads("--save"), loads("--save")], [3, 3])
        r = s.infer(bytes(s.input_bytes))
        equal((r.status, r.output), ("ok", first))
        with open(path + ".new", "wb") as f:
            f.write(b"not a model")
        os.rename(path + ".new", path)
        for _ in range(2):
            try:
                d.call("Load", {"name": "one", "path": path, "save": True})
                check(False, "it was saved")
            except VarlinkError as e:
                equal(e.error, "io.piped.LoadFailed")
        equal(s.infer(bytes(s.input_bytes)).output, first, "the old one serves")


def what_cannot_be_saved_says_why():
    with Daemon() as d:
        os.mkdir(os.path.join(d.state_dir, "models.v2.json.new"))
        for name in ("one", "one"):  # loaded; then loaded already
            try:
                d.call("Load", {"name": name, "path": DIGITS, "save": True})
                check(False, "it was saved")
            except VarlinkError as e:
                equal(e.parameters["why"], "the model serves, but cannot be saved: " + os.strerror(errno.EISDIR))
        equal([m["name"] for m in d.call("Models")["models"]], ["digits", "one"])


if __name__ == "__main__":
    main([a_saved_model_adds_to_what_is_served, a_list_that_cannot_be_used_is_not_empty,
          a_saved_model_whose_file_is_gone_is_put_back_or_forgotten, a_state_directory_that_cannot_be_used_is_named,
          no_damaged_file_is_used, a_file_of_another_model_is_not_used, the_format_before_checksums_is_read_once,
          what_is_saved_is_what_serves, what_cannot_be_saved_says_why])
