# SPDX-License-Identifier: Apache-2.0
"""Pipelines of GStreamer with the plugin of the build folder, for tests.

    with Served() as d, d.play("videotestsrc ! pipedinfer name=infer ! appsink name=out") as p:
        p.pull(3)[0]["result"]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import test_outputs
from daemon import BUILD, LIMIT_S, Daemon, check
from daemon import main as run_cases

FOLDER = os.path.join(BUILD, "apps", "gstreamer")
FRAMES = os.path.join(BUILD, "tests", "system", "gst_frames")
TEMP = tempfile.TemporaryDirectory(prefix="piped-gst-")  # removed with the program
REGISTRY = os.path.join(TEMP.name, "registry")
NEEDED = ("videotestsrc", "videoconvert", "videoscale", "appsink", "rawvideoparse", "filesrc", "fakesink", "identity",
          "capsfilter", "tee", "queue")
SINK = "appsink name=out sync=false max-buffers=1"
LATE = -1  # PIPED_GST_LATE


SANITIZED = bool(os.environ.get("PIPED_TEST_SANITIZER"))


def environment(**more):
    env = dict(os.environ, GST_PLUGIN_PATH=FOLDER, GST_REGISTRY=REGISTRY, **more)
    if SANITIZED:  # GStreamer's scanner is a program of its own; stacks of libraries need the slow way
        env.update(GST_REGISTRY_FORK="no", ASAN_OPTIONS=env.get("ASAN_OPTIONS", "") + ":fast_unwind_on_malloc=0")
    return env


def missing(elements):
    """Return: those of the elements that are of other packages and not installed."""
    env = dict(os.environ, GST_REGISTRY=REGISTRY)
    return [n for n in elements if not n.startswith("piped") and subprocess.run(
        ["gst-inspect-1.0", "--exists", n], env=env, check=False, timeout=LIMIT_S).returncode]


def why_not():
    """Return: why these tests cannot run here, or None. Fills the registry with the plugins of the system: a program with a
    sanitizer then loads only those that it plays."""
    if not os.path.exists(FRAMES):
        return "the plugin is not built; libgstreamer-plugins-base1.0-dev was not there"
    if not shutil.which("gst-inspect-1.0"):
        return "gstreamer1.0-tools is not installed"
    lacking = missing(NEEDED)
    return "GStreamer has no %s" % ", ".join(lacking) if lacking else None


def main(listed):
    try:
        reason = why_not()
        if reason:
            print("skipped:", reason)
            sys.exit(77)
        run_cases(listed)
    finally:
        shutil.rmtree(test_outputs.FOLDER, ignore_errors=True)


def not_by_launch():
    """Return: why gst-launch-1.0 cannot load the plugin, or None."""
    return "a program without a sanitizer cannot load a library with one" if SANITIZED else None


class Pipeline:
    """gst_frames with one pipeline; ended with the block."""

    def __init__(self, text, env):
        self.process = subprocess.Popen([FRAMES, text], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()

    def line(self):
        text = self.process.stdout.readline()
        check(text, "gst_frames ended with", self.process.poll())
        return json.loads(text)

    def ask(self, *words):
        self.send(*words)
        return self.line()

    def pull(self, count, word="pull"):
        """Return: `count` frames, or less and then why."""
        self.send(word, count)
        frames = []
        while len(frames) < count and (not frames or "pts" in frames[-1]):
            frames.append(self.line())
        return frames

    def dump(self, path):
        self.ask("dump", path)
        with open(path, "rb") as f:
            return f.read()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.send("end")
            check(self.process.wait(LIMIT_S) == 0, "gst_frames ended with", self.process.returncode)
        else:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Served(Daemon):
    """A daemon with the networks of test_outputs, whose answers are known."""

    def __init__(self, **options):
        super().__init__(models=options.pop("models", None) or test_outputs.networks(), **options)

    def environment(self):
        return environment(PIPED_RUNTIME_DIR=self.runtime_dir)

    def play(self, text):
        return Pipeline(text, self.environment())

    def launch(self, text, expect=0):
        """gst-launch-1.0; Return: what it says."""
        done = subprocess.run(["gst-launch-1.0", "-m", *text.split()], env=self.environment(), capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        said = done.stdout + done.stderr
        check(expect is None or done.returncode == expect, text, "exit", done.returncode, said)
        return said

    def path(self, name):
        return os.path.join(self.temp, name)
