#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for what docs/ros2.md imports of ROS 2, and plays a camera.

usage: ros_stand_in.py PROGRAM --ros-args [-p NAME:=VALUE]...

Standard input has a line for each picture: "ENCODING WIDTH HEIGHT STEP SEC FILE". Each goes to the callback of the only
subscription, as an executor would do it. What is published is a line of JSON on standard output. The end of standard
input is Ctrl-C.
"""
import json
import runpy
import sys
import threading
import types

PARAMETERS = dict(a.split(":=", 1) for a in sys.argv if ":=" in a)
NODES, LOCK = [], threading.Lock()
RUNNING = threading.Event()


class Message:
    """A message: its fields have defaults, and unknown ones are errors, as in ROS."""
    fields = {}

    def __init__(self, **values):
        for name, kind in self.fields.items():
            setattr(self, name, kind())
        for name, value in values.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        if name not in self.fields:
            raise AttributeError("%s has no field %s" % (type(self).__name__, name))
        super().__setattr__(name, value)


def message(name, **fields):
    return type(name, (Message,), {"fields": fields})


Time = message("Time", sec=int, nanosec=int)
Header = message("Header", stamp=Time, frame_id=str)
Image = message("Image", header=Header, height=int, width=int, encoding=str, is_bigendian=int, step=int, data=bytes)
String = message("String", data=str)
Point2D = message("Point2D", x=float, y=float)
Pose2D = message("Pose2D", position=Point2D, theta=float)
BoundingBox2D = message("BoundingBox2D", center=Pose2D, size_x=float, size_y=float)
ObjectHypothesis = message("ObjectHypothesis", class_id=str, score=float)
ObjectHypothesisWithPose = message("ObjectHypothesisWithPose", hypothesis=ObjectHypothesis, pose=object)
Detection2D = message("Detection2D", header=Header, results=list, bbox=BoundingBox2D, id=str)
Detection2DArray = message("Detection2DArray", header=Header, detections=list)


def plain(value):
    if isinstance(value, Message):
        return {name: plain(getattr(value, name)) for name in value.fields if name != "pose"}
    return [plain(v) for v in value] if isinstance(value, list) else value


class Publisher:
    def __init__(self, kind):
        self.kind = kind

    def publish(self, m):
        if not isinstance(m, self.kind):
            raise TypeError("a %s was published as %s" % (type(m).__name__, self.kind.__name__))
        with LOCK:
            print(json.dumps(plain(m)), flush=True)


class Logger:
    def info(self, text, **_):
        print(text, file=sys.stderr, flush=True)

    error = info


class Node:
    def __init__(self, name):
        self.name, self.callback = name, None
        NODES.append(self)

    def declare_parameter(self, name, value):
        return types.SimpleNamespace(value=type(value)(PARAMETERS.get(name, value)))

    def create_publisher(self, kind, _topic, _qos):
        return Publisher(kind)

    def create_subscription(self, kind, _topic, callback, qos):
        if kind is not Image or qos is not QOS:
            raise TypeError("a camera's pictures are sensor_msgs/Image, with the profile for sensors")
        self.callback = callback

    def get_logger(self):
        return Logger()

    def destroy_node(self):
        self.callback = None


QOS = object()


def spin(node):
    for line in sys.stdin:
        encoding, width, height, step, sec, name = line.split()
        with open(name, "rb") as f:
            data = f.read()
        node.callback(Image(header=Header(stamp=Time(sec=int(sec)), frame_id="camera"), height=int(height),
                            width=int(width), encoding=encoding, step=int(step), data=data))
    raise KeyboardInterrupt


def modules():
    rclpy = {"init": RUNNING.set, "ok": RUNNING.is_set, "try_shutdown": RUNNING.clear, "spin": spin}
    yield "rclpy", rclpy
    yield "rclpy.node", {"Node": Node}
    yield "rclpy.qos", {"qos_profile_sensor_data": QOS}
    for package, kinds in (("sensor_msgs", (Image,)), ("std_msgs", (Header, String)),
                           ("vision_msgs", (Detection2D, Detection2DArray, ObjectHypothesisWithPose))):
        yield package, {}
        yield package + ".msg", {kind.__name__: kind for kind in kinds}


def main():
    for name, values in modules():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(values)
    runpy.run_path(sys.argv[1], run_name="__main__")


if __name__ == "__main__":
    main()
