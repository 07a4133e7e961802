#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The node of docs/ros2.md, as it stands there, with stand-ins for the modules of ROS and a real daemon."""
import itertools
import json
import os
import subprocess

import test_outputs
from daemon import LIMIT_S, ROOT, check, equal
from learn import blocks
from python_client import Served, environment, main
from wait import until

STAND_IN = os.path.join(ROOT, "tests", "system", "ros_stand_in.py")
SIZE = (128, 48)
UNHURRIED = ["-p", "deadline_ms:=%d" % (1000 * LIMIT_S)]  # for a machine that stands still between a picture and its answer


def files_of_the_page():
    found = {b.notes["file"]: b.body for b in blocks("docs/ros2.md") if not isinstance(b, str) and "file" in b.notes}
    equal(sorted(found), ["camera_detector.py", "publish_json.py"])
    return found


class Node:
    """The program of the page, with a camera that the test plays."""

    def __init__(self, d, program, model):
        path = d.path("node.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(program)
        self.d, self.pixels, self.errors = d, d.path("pixels"), open(d.path("errors"), "w+b")
        self.process = subprocess.Popen(["/usr/bin/python3", STAND_IN, path, "--ros-args", "-p", "model:=" + model,
                                         *UNHURRIED],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=environment(d))

    def show(self, second, encoding="rgb8", size=SIZE, padding=0):
        """A picture with rows that are longer than they need be."""
        step = size[0] * {"rgb8": 3, "mono8": 1, "yuv422_yuy2": 2}[encoding] + padding
        with open(self.pixels + str(second), "wb") as f:
            f.write(bytes(i * 7 & 255 for i in range(step)) * size[1])
        self.process.stdin.write("%s %d %d %d %d %s%d\n" % (encoding, *size, step, second, self.pixels, second))
        self.process.stdin.flush()

    def published(self):
        line = self.process.stdout.readline()
        check(line, "the node ended:", self.said())
        return json.loads(line)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def end(self):
        """Ctrl-C. Return: what it published since."""
        self.process.stdin.close()
        rest = [json.loads(line) for line in self.process.stdout]
        equal(self.process.wait(LIMIT_S), 0, self.said())
        check("Traceback" not in self.said(), self.said())
        return rest


def served(d, name):
    d.pipectl("models", "load", name, test_outputs.networks()[name])


def detections_are_those_of_pipectl():
    with Served() as d:
        served(d, "yolo")
        wanted = d.pipectl("infer", "--model", "yolo", test_outputs.ppm("a.ppm", *SIZE, lambda x, y: (90, 90, 90)))
        for encoding, padding in (("rgb8", 0), ("rgb8", 12), ("mono8", 3), ("yuv422_yuy2", 0)):
            node = Node(d, files_of_the_page()["camera_detector.py"], "yolo")
            for second in (3, 4):
                node.show(second, encoding, padding=padding)
                m = node.published()
                equal((m["header"]["stamp"]["sec"], m["header"]["frame_id"]), (second, "camera"))
                equal([r["results"][0]["hypothesis"]["class_id"] for r in m["detections"]], ["dog", "cat"])
                for got, o in zip(m["detections"], wanted[0]["objects"]):
                    box = got["bbox"]
                    check(abs(box["center"]["position"]["x"] - o["x"] - o["width"] / 2) < 0.01, got, o)
                    check(abs(box["center"]["position"]["y"] - o["y"] - o["height"] / 2) < 0.01, got, o)
                    equal((round(box["size_x"]), round(box["size_y"])), (round(o["width"]), round(o["height"])))
                    check(abs(got["results"][0]["hypothesis"]["score"] - o["score"]) < 1e-3, got, o)
                    equal(got["header"], m["header"])
            node.show(5, encoding, size=(64, 48))
            node.show(6, encoding, padding=padding)
            equal(node.published()["header"]["stamp"]["sec"], 6, "after a picture of another size")
            node.end()
            check("the camera changed its format" in node.said(), node.said())


def the_newest_picture_is_answered():
    with Served() as d:
        served(d, "yolo")
        node = Node(d, files_of_the_page()["camera_detector.py"], "yolo")
        for second in range(1, 41):
            node.show(second)
        seen, seconds = [], itertools.count(41)

        def goes_on():
            node.show(next(seconds))
            seen.append(node.published()["header"]["stamp"]["sec"])
            return seen[-1] > 40
        until(goes_on, "an answer to a new picture", seen)
        seen += [m["header"]["stamp"]["sec"] for m in node.end()]
        equal(seen, sorted(set(seen)), "in order, none twice")


def a_restart_of_the_daemon_is_survived():
    with Served() as d:
        served(d, "yolo")
        node = Node(d, files_of_the_page()["camera_detector.py"], "yolo")
        node.show(1)
        equal(node.published()["header"]["stamp"]["sec"], 1)
        d.models["yolo"] = test_outputs.networks()["yolo"]
        d.kill()
        d.start()
        node.show(2)
        m = node.published()
        equal((m["header"]["stamp"]["sec"], len(m["detections"])), (2, 2))
        node.end()


def classes_are_published_as_json():
    files = files_of_the_page()
    program = files["camera_detector.py"]
    start, end = program.index("    def publish(self, a):"), program.index("    def close(self):")
    imports, method = files["publish_json.py"].split("\n\n")
    method = "".join("    %s\n" % line for line in method.splitlines())
    program = program[:start] + method + "\n" + program[end:]
    program = program.replace("import threading\n", "import threading\n" + imports + "\n", 1)
    program = program.replace('create_publisher(Detection2DArray, "detections", 10)',
                              'create_publisher(String, "classes", 10)')
    with Served() as d:
        node = Node(d, program, "digits")
        node.show(7, "mono8", size=(28, 28))
        m = json.loads(node.published()["data"])
        equal((m["stamp"], len(m["classes"])), (7, 3))
        check(all(0 <= p <= 1 for _, p in m["classes"]), m)
        node.end()


if __name__ == "__main__":
    main([detections_are_those_of_pipectl, the_newest_picture_is_answered, a_restart_of_the_daemon_is_survived,
          classes_are_published_as_json])
