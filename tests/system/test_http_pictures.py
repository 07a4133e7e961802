#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures over piped-http: whatever a client calls them, answered as pipectl infer answers the same file."""
import json
import os
import struct

import test_outputs
from daemon import DIGITS, Daemon, equal
from http_models import JPEG, png, png_of
from http_server import Http, main
from test_http import BINARY, digits_input, tensor


def pictures_are_answered_with_classes():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        pictures = [("a.png", png(16, 16, 1, 1), "image/png"), ("b.png", png(40, 30, 1, 2), "image/png"),
                    ("c.png", png(21, 16, 3, 3), "image/png"), ("d.jpg", JPEG, "image/jpeg"),
                    ("e.png", png(30, 20, 1, 2, orientation=6), "image/png")]
        for name, data, kind in pictures:
            path = os.path.join(d.temp, name)
            with open(path, "wb") as f:
                f.write(data)
            wanted = d.pipectl("infer", "--raw", path + ".out", path)[0]
            with open(path + ".out", "rb") as f:
                raw = f.read()
            status, _, answer = h.request("POST", "/v2/models/digits/infer?top=3&outputs=1", data, {"Content-Type": kind})
            equal(status, 200, answer)
            equal(struct.pack("<10f", *answer["outputs"][0]["data"]), raw, name)
            equal([(t["class"], t["label"], round(t["score"], 6)) for t in answer["top"]],
                  [(t["class"], t["label"], round(t["score"], 6)) for t in wanted["top"][:3]], name)
            answer = h.infer("digits", data, {"Content-Type": kind})[2]
            equal((len(answer["top"]), "outputs" in answer), (5, False))
        h.refused(400, "not a whole PNG picture", h.infer("digits", pictures[0][1][:40], {"Content-Type": "image/png"}))
        h.refused(400, "cannot be decoded", h.infer("digits", pictures[0][1][:-20], {"Content-Type": "image/png"}))
        h.refused(400, "top must be a number", h.request("POST", "/v2/models/digits/infer?top=x", pictures[0][1],
                                                         {"Content-Type": "image/png"}))


def pictures_without_classes_are_answered_with_outputs():
    with Daemon(models={"silent": test_outputs.networks()["silent"]}) as d, Http(d) as h:
        status, _, answer = h.infer("silent", png(48, 40, 3, 1), {"Content-Type": "image/png"})
        equal((status, [o["shape"] for o in answer.get("outputs", [])], "top" in answer), (200, [[1, 6, 7]], False), answer)


def form(data, name="image", boundary="b", more=b""):
    """As curl -F sends it. Return: body, headers."""
    head = 'Content-Disposition: form-data; name="%s"; filename="x"\r\nContent-Type: application/octet-stream\r\n\r\n' % name
    mark = b"--" + boundary.encode()
    return mark + b"\r\n" + head.encode() + data + b"\r\n" + more + mark + b"--\r\n", \
        {"Content-Type": "multipart/form-data; boundary=" + boundary}


def by_curl_d(data):
    """What curl -d @FILE sends of it."""
    return data.translate(None, b"\r\n\0")


def pictures_come_as_clients_send_them():
    """Whatever type a client gives a picture, its first bytes count."""
    picture, field = png(16, 16, 1, 1), b'--b\r\nContent-Disposition: form-data; name="top"\r\n\r\n3\r\n'
    curl = {"Content-Type": "application/x-www-form-urlencoded"}
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        wanted = h.infer("digits", picture, {"Content-Type": "image/png"})[2]["top"]
        quoted = form(picture, boundary="a b'c")[0], {"Content-Type": 'multipart/form-data; charset=x; Boundary="a b\'c"; y=z'}
        for data, kind in ((picture, curl), (picture, {}), (picture, {"Content-Type": "image/jpeg"}), form(picture), quoted,
                           (picture, {"Content-Type": "image/*"}), (picture, {"Content-Type": "IMAGE/X-PNG; q=1"}),
                           (picture, {"Content-Type": "image/webp"})):
            status, _, answer = h.infer("digits", data, kind)
            equal((status, answer.get("top")), (200, wanted), kind)
        wanted = h.infer("digits", JPEG, {"Content-Type": "image/jpeg"})[2]["top"]
        for data, kind in ((JPEG, {"Content-Type": "image/jpg"}), (JPEG, {"Content-Type": "image/pjpeg"}), (JPEG, curl),
                           (JPEG, {}), (JPEG, {"Content-Type": "image/png"}), form(JPEG)):
            equal(h.infer("digits", data, kind)[2]["top"], wanted, kind)
        body = json.dumps({"inputs": [tensor(digits_input(1))]}).encode()
        equal(h.infer("digits", body, curl)[0], 200, "JSON as curl -d sends it")
        webp, gif = b"RIFF\x24\0\0\0WEBPVP8 ", b"GIF89a" + bytes(20)
        for status, words, answer in (
                (415, "a WebP file; convert it", h.infer("digits", webp, {"Content-Type": "image/png"})),
                (415, "a GIF file; convert it", h.infer("digits", gif, curl)),
                (415, "a WebP file; convert it", h.infer("digits", webp, {"Content-Type": "image/webp"})),
                (400, "neither a JPEG nor a PNG", h.infer("digits", b"nothing", {"Content-Type": "image/png"})),
                (400, "for a picture: -H 'Content-Type: image/png'", h.infer("digits", picture, {BINARY: "0"})),
                (415, "not JSON: -H 'Content-Type: image/png'", h.infer("digits", picture, {"Content-Type": "application/json"})),
                (400, "PNG picture without its line ends; curl sends", h.infer("digits", by_curl_d(picture), curl)),
                (400, "whole by --data-binary @FILE, not by -d", h.infer("digits", by_curl_d(JPEG), curl)),
                (400, "for a picture: -H", h.infer("digits", JPEG, {"Content-Type": "application/octet-stream"})),
                (400, "more than one part; send one picture", h.infer("digits", *form(picture, more=field))),
                (400, "neither a JPEG nor a PNG", h.infer("digits", *form(b"x"))),
                (400, "is not complete", h.infer("digits", form(picture)[0][:-7], form(b"")[1])),
                (400, "cannot be read", h.infer("digits", form(picture)[0], {"Content-Type": "multipart/form-data"})),
                (400, "cannot be read", h.infer("digits", picture, {"Content-Type": "multipart/form-data; boundary=" + "x" * 71})),
                (400, "cannot be read", h.infer("digits", b"--b", form(b"")[1]))):
            h.refused(status, words, answer)


def pictures_are_upright():
    """What is red is at the right of the upright picture, whichever door reads the file."""
    red, green, head = b"\xff\0\0", b"\0\xff\0", {"Content-Type": "image/png"}
    stored = png_of(48, 128, 3, (red * 48) * 32 + (green * 48) * 96, orientation=6)  # to be turned clockwise
    with Daemon(models={"mask": test_outputs.networks()["mask"]}) as d, Http(d) as h:
        path = os.path.join(d.temp, "stored.png")
        with open(path, "wb") as f:
            f.write(stored)
        printed, drawn = d.pipectl("infer", path)[0], os.path.join(d.temp, "drawn.png")
        for answer in (printed, h.request("POST", "/v2/models/mask/infer?decode=1", stored, head)[2]):
            equal((answer["width"], answer["height"]), (128, 48), answer)
            o = answer["objects"][0]
            equal((o["label"], o["x"], o["y"], o["width"], o["height"]), ("red", 96, 0, 32, 48))
        d.pipectl("infer", "--draw", drawn, path)
        width, rows = test_outputs.read_png(drawn)
        equal((width, len(rows), test_outputs.at(rows, 40, 40)), (128, 48, (0, 255, 0)))


main((pictures_are_answered_with_classes, pictures_without_classes_are_answered_with_outputs, pictures_are_upright,
      pictures_come_as_clients_send_them))
