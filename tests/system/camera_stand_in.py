#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for ffmpeg with a camera: writes raw frames of the size and format of its arguments to standard output.

usage: camera_stand_in.py -f v4l2 -video_size 640x480 -i /dev/video0 [-frames:v N] -f rawvideo -pix_fmt nv12 -
"""
import sys

BYTES = {"rgb24": 3, "bgr24": 3, "gray": 1, "nv12": 1.5, "yuyv422": 2}


def main():
    options = dict(zip(sys.argv[1:], sys.argv[2:]))
    if sys.argv[-1] != "-" or options.get("-i") != "/dev/video0":
        sys.exit("this stands in for a camera only: %s" % sys.argv)
    width, height = map(int, options.get("-video_size", options.get("-s", "")).split("x"))
    size = int(width * height * BYTES[options["-pix_fmt"]])
    for k in range(int(options.get("-frames:v", 30))):
        sys.stdout.buffer.write(bytes((i * 7 + k * 31) & 255 for i in range(256)) * (size // 256) + bytes(size % 256))


if __name__ == "__main__":
    main()
