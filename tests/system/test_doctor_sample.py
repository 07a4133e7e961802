#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pipectl doctor --save and --sample: what was seen is judged later, and elsewhere; other files are not."""
import json
import os

from daemon import DIGITS, ROOT, check, equal, main
from doctor_rig import doctor, on_tree, run


def a_sample_can_be_kept():
    with on_tree() as (d, _):
        path = os.path.join(d.temp, "sample.json")
        now = doctor(d, "--save", path, seconds="0.1")
        later = json.loads(run("--json", "doctor", "--sample", path).stdout)
        equal(later, now)
        equal([m["model"] for m in doctor(d, "--model", "digits", seconds="0.1")["figures"]], ["digits"])
        with open(path, encoding="utf-8") as f:
            sample = json.load(f)
        for key in ("before", "after"):  # of a route, one of which answered meanwhile
            models = sample[key]["models"]
            for first, more in ((0, 0), (10, 50 * (key == "after"))):
                its = {"of": "sq", "first_unit": first, "last_unit": first + 5, "board": "head"}
                models.append(dict(models[0], name="sq-56eaa70f#%d-%d" % (first, first + 5), segment=its,
                                   frames=dict(models[0]["frames"], answered=100 + more)))
        with open(path, "w", encoding="utf-8") as f:
            json.dump(sample, f)
        said = run("doctor", "--sample", path, expect=None).stdout
        check("sq, units 10-15 for board head: " in said and "sq-56eaa70f" not in said, said)
    check("is it running?" in run("--socket", os.path.join(ROOT, "none"), "doctor", expect=3).stderr)
    check("--seconds needs seconds from 0.1 to 600, not '0'" in run("doctor", "--seconds", "0", expect=2).stderr)
    check("No such file" in run("doctor", "--sample", "/none", expect=1).stderr)


def a_restart_is_a_finding():
    """The first half of what was seen is of a daemon that ended meanwhile."""
    with on_tree() as (d, _):
        path = os.path.join(d.temp, "sample.json")
        doctor(d, "--save", path, seconds="0.1")
        with open(path, encoding="utf-8") as f:
            before = json.load(f)["before"]
        d.stop()
        d.start()
        doctor(d, "--save", path, seconds="0.1")
        with open(path, encoding="utf-8") as f:
            sample = json.load(f)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dict(sample, before=before), f)
        r = json.loads(run("--json", "doctor", "--sample", path, expect=1).stdout)
        found = [f for f in r["findings"] if f["name"] == "restarted"]
        equal([(f["severity"], f["share"]) for f in found], [("loss", None)])
        check("journalctl -u piped" in found[0]["advice"], found)
        equal((r["seconds"], r["figures"][0]["fps"]), (0, None))
        text = run("doctor", "--sample", path, expect=1).stdout
        check("all is well" not in text and "machine: " in text, text)


def a_model_that_was_loaded_again_counts_from_then():
    """As by a hot swap: bench's frames are answered, though fewer than before."""
    with on_tree() as (d, _):
        path = os.path.join(d.temp, "sample.json")
        d.pipectl("bench", "--frames", "40")
        doctor(d, "--save", path, seconds="0.1")
        with open(path, encoding="utf-8") as f:
            before = json.load(f)["before"]
        d.call("Unload", {"name": "digits"})
        d.call("Load", {"name": "digits", "path": DIGITS})
        for frames in (10, 60):
            d.pipectl("bench", "--frames", str(frames))
            doctor(d, "--save", path, seconds="0.1")
            with open(path, encoding="utf-8") as f:
                sample = json.load(f)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(dict(sample, before=before), f)
            r = json.loads(run("--json", "doctor", "--sample", path).stdout)
            answered = sample["after"]["models"][0]["frames"]["answered"]
            check(answered >= frames and abs(r["figures"][0]["fps"] - answered / r["seconds"]) < 0.1, r)
            check(any("loaded again meanwhile" in f["text"] for f in r["findings"]), r)


def other_files_are_no_samples():
    with on_tree() as (d, _):
        path = os.path.join(d.temp, "other.json")
        no_sample = " is not a sample; pipectl doctor --save FILE writes one"
        for text, why in (("{}", no_sample), (json.dumps(doctor(d, seconds="0.1")), no_sample), (json.dumps(d.status()), no_sample),
                          ("[]", ": is not an object"), ("{'a'}", ": line 1: ")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            r = run("doctor", "--sample", path, expect=1)
            check(path + why in r.stderr and not r.stdout, text, r.stdout, r.stderr)
    for more in (["--model", "net"], ["--seconds", "2"], ["--save", "/nowhere/x"]):
        check("--sample FILE judges what was seen before" in run("doctor", "--sample", "/none", *more, expect=2).stderr, more)


if __name__ == "__main__":
    main([a_sample_can_be_kept, a_restart_is_a_finding, a_model_that_was_loaded_again_counts_from_then, other_files_are_no_samples])
