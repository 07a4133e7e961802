#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A start, a reload and --check-config have one verdict on a configuration, whatever it is.

usage: test_verdicts.py [CASE]...
"""
import json
import os
import random
import re
import shutil
import tempfile

import bad_configs
import pyclient
from daemon import DIGITS, Daemon, Failure, VarlinkError, check, equal, main, run_piped
from surroundings import as_user, lacking

EX_CONFIG = 78
QUICK = json.dumps({"adapt": {"enabled": False}, "kernels": {"measure_ms": 0}})


def key_of(words):
    """The key in "c.json:3: KEY: reason"; or all, if there is none."""
    return re.sub(r"^c.json:\d+: |: .*", "", words) or words


class Judges:
    """All three, on one file. A daemon that serves is asked to reload; another is started for each text."""

    def __init__(self, served=None):
        self.folder = tempfile.mkdtemp(prefix="piped-test-")
        self.path = os.path.join(self.folder, "c.json")
        self.state, self.kept_in = os.path.join(self.folder, "state"), None
        os.mkdir(self.state)
        os.mkdir(self.path + ".d")
        with open(self.path + ".d/quick.json", "w", encoding="utf-8") as f:
            f.write(QUICK)
        bad_configs.make_files(self.folder)
        self.write("{}")
        if served:
            with Daemon(models={"a": DIGITS}) as d:
                self.last_unit = d.status()["models"][0]["units"] - 1
            self.write(self.planned(served))
        self.serving = self.daemon(state_dir=self.state).start()
        self.control = self.serving.connect()

    def planned(self, text):
        """The text with "PLAN" replaced by all units of the model of digits."""
        return text.replace("PLAN", "0-%d" % self.last_unit)

    def daemon(self, **more):
        d = Daemon(expect_exit=None, **more)
        d.config_path = self.path
        return d

    def write(self, text):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.path + ".new", self.path)

    def check(self):
        r = run_piped("--check-config", "--config", self.path, "--state-dir", self.state)
        check(r.returncode in (0, EX_CONFIG), "exit code", r.returncode, r.stderr)
        return r.returncode == 0, r.stderr

    def start(self):
        """Serving in full is good; serving without some of the models is not."""
        d = self.daemon(state_dir=self.kept_in)
        try:
            d.start(wait=False)
            d.wait_notify(lambda m: m.get("READY") == "1")
            good = not d.status()["failed_models"]
            d.stop()
        except Failure:
            good = False
            equal(d.process.returncode, EX_CONFIG, d.log())
        finally:
            log = d.log()
            d.cleanup()
        return good, log

    def reload(self):
        before = self.kept()
        try:
            self.control.call("io.piped.Reload")
            return True, ""
        except VarlinkError as e:
            equal(e.error, "io.piped.ReloadFailed")
            equal(self.kept(), before, "a refused reload changed something")
            return False, e.parameters["why"]

    def kept(self):
        """What a refused reload must not change."""
        def call(method):
            return self.control.call("io.piped." + method)
        models = call("Models")["models"]
        return call("Config"), [(m["name"], m["path"], m["plan"]) for m in models], [
            (m["name"], m["epoch"], m["frames"]["failed"]) for m in call("Status")["status"]["models"]]

    def all_say(self, text, good, words=""):
        self.write(text)
        for judge in (self.reload, self.check, self.start):
            verdict, why = judge()
            equal(verdict, good, "%s on %s:\n%s" % (judge.__name__, text[:300], why))
            wanted = key_of(words) if judge == self.start else words  # a start logs more than one line
            check(good or wanted in why, judge.__name__, "says", why, "wanted", wanted, "on", text[:300])

    def serves(self):
        with pyclient.Connection(self.serving.frames_path) as c:
            s = pyclient.Stream(c, inline=True)
            equal(s.infer(bytes(s.input_bytes)).status, "ok")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.control.close()
        try:
            if kind is None:
                self.serving.stop()
        finally:
            self.serving.cleanup()
            shutil.rmtree(self.folder)


def share(cases):
    """All of them; under a sanitizer every fourth or so, from a random one on."""
    step = int(os.environ.get("PIPED_TEST_SHARE", "1"))
    first = random.randrange(step)
    print("case %d and every %d behind it" % (first, step))
    return cases[first::step]


def all_refuse(cases):
    with Judges() as j:
        for text, words in share(cases):
            j.all_say(text, False, words)
        j.serves()
        j.all_say("{}", True)


def syntax():
    all_refuse(bad_configs.SYNTAX)


def keys():
    all_refuse(bad_configs.KEYS)


def cores():
    all_refuse(bad_configs.CORES)


def models():
    all_refuse(bad_configs.MODELS)


def changes_that_only_a_restart_would_notice():
    for served, bad, words in bad_configs.CHANGES:
        with Judges(served) as j:
            j.all_say(j.planned(bad), False, words)
            j.serves()
            j.all_say(j.planned(served), True)


def drop_ins_that_cannot_be_read():
    """Only a folder that is not there has no files."""
    with Judges() as j:
        shutil.rmtree(j.path + ".d")
        for make, why in ((lambda p: os.symlink("nowhere", p), "No such file or directory"), (os.mknod, "Not a directory")):
            make(j.path + ".d")
            j.all_say("{}", False, "c.json.d: " + why)
            os.remove(j.path + ".d")
        os.mkdir(j.path + ".d", 0)
        if os.geteuid() != 0:
            j.all_say("{}", False, "c.json.d: Permission denied")
        j.serves()


def plans_for_cores_of_the_next_start():
    """A plan that fits the cores that the same change configures is good, though it cannot serve before a restart."""
    served, bad, _ = bad_configs.CHANGES[1]
    with Judges(served) as j:
        j.all_say(j.planned(bad).replace("@p0", "@p1"), True)
        check("its plan takes effect at the next start" in j.serving.log(), j.serving.log())
        j.serves()


def odd_ones_are_good_for_all():
    with Judges() as j:
        for text in share(bad_configs.ODD):
            j.all_say(text, True)
        j.all_say("{}", True)  # messages of a reload are of the level before it, which one of these made "error"
        j.all_say(bad_configs.text(default_model="nobody"), True)
        for why in (j.check()[1], j.start()[1], j.serving.log()):
            check("default_model: \"nobody\": no model of this name" in why, why)
        j.serves()


def every_key_at_its_ends():
    """The least and the greatest value of each number, and the next beyond."""
    with Judges() as j:
        page = run_piped("--help").stdout
        rows = [c for c in j.control.call("io.piped.Config")["config"] if type(c["value"]) is int]
        check(len(rows) > 30, len(rows))
        for row in share(rows):
            key = row["key"]
            for beyond in (-(1 << 40), 1 << 40):
                j.write(bad_configs.nested(key, beyond))
                good, why = j.reload()
                check(not good and key + ": %d is outside " % beyond in why, why, page)
            least, most = [int(n) for n in why.split(" is outside ")[1].split()[0].split("..")]
            for value in (least, most):
                j.all_say(bad_configs.nested(key, value), True)
            for value in (least - 1, most + 1):
                j.all_say(bad_configs.nested(key, value), False, "%s: %d is outside " % (key, value))


def saved_models_count():
    """What pipectl saved is there at the next start, too."""
    with Judges() as j:
        j.control.call("io.piped.Load", {"name": "b", "path": DIGITS, "save": True})
        two = bad_configs.text(models=[bad_configs.DIGIT_MODEL], limits={"models": 2})
        j.kept_in = j.state  # a start reads it; the serving daemon keeps the lock
        j.all_say(two, True)
        j.all_say(two.replace("\"models\": 2", "\"models\": 1"), False,
                  "limits.models: 1, but there are 2 models, 1 of them saved")


def a_group_that_the_user_is_not_in():
    """Only root may give a file to any group."""
    wrapper = []
    if os.geteuid() == 0:
        if lacking("other users"):
            return lacking("other users")
        wrapper = as_user(65534)
    with Judges() as j:
        for path in (j.folder, j.state, j.path + ".d"):
            os.chmod(path, 0o777)
        j.write(bad_configs.text(socket_group="daemon"))
        d = j.daemon(wrapper=wrapper)
        for path in (d.temp, d.runtime_dir, d.state_dir):
            os.chmod(path, 0o777)
        exe = os.path.join(j.folder, "piped")
        shutil.copy(d.exe, exe)
        d.exe, d.models = exe, {"a": j.folder + "/" + bad_configs.BIG}
        for args in ([], ["--check-config"]):
            d.args = args
            d.start(wait=False)
            equal(d.wait_exit(), EX_CONFIG, d.log())
        equal(d.log().count("socket_group: \"daemon\": the daemon may not give its sockets to this group"), 2, d.log())
        d.cleanup()
    return None


if __name__ == "__main__":
    main([syntax, keys, cores, models, changes_that_only_a_restart_would_notice, drop_ins_that_cannot_be_read,
          plans_for_cores_of_the_next_start, odd_ones_are_good_for_all, every_key_at_its_ends, saved_models_count,
          a_group_that_the_user_is_not_in])
