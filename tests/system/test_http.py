#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped-http: every path of the Open Inference Protocol v2, bit for bit as pipectl infer --raw, errors and metrics."""
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile

import http_schema
import pyclient
import test_outputs
from daemon import DIGITS, ROOT, Daemon, check, equal
from http_attacks import PNG
from http_models import JPEG, counted_rows, long_names, png, png_of, two_inputs
from http_server import Http, main
from tiny_onnx import node

BINARY = "Inference-Header-Content-Length"


def digits_input(seed):
    r = random.Random(seed)
    return struct.pack("<256f", *(r.random() for _ in range(256)))


def tensor(raw, **more):
    return dict({"name": "image", "shape": [1, 1, 16, 16], "datatype": "FP32",
                 "data": list(struct.unpack("<256f", raw))}, **more)


def pipectl_raw(d, name, raw, model="digits"):
    """What pipectl infer --raw writes for the same bytes."""
    source, to = os.path.join(d.temp, name), os.path.join(d.temp, name + ".out")
    with open(source, "wb") as f:
        f.write(raw)
    d.pipectl("infer", "--model", model, "--raw", to, source)
    with open(to, "rb") as f:
        return f.read()


def binary_request(inputs, **more):
    """`inputs`: (name, shape, datatype, bytes). Return: body, headers."""
    head = json.dumps(dict({"inputs": [{"name": n, "shape": s, "datatype": t, "parameters": {"binary_data_size": len(b)}}
                                       for n, s, t, b in inputs]}, **more)).encode()
    return head + b"".join(i[3] for i in inputs), {BINARY: str(len(head)), "Content-Type": "application/octet-stream"}


def read_binary(answer):
    """Return: JSON, {name: bytes}."""
    status, headers, body = answer
    equal(status, 200, body)
    n = int(headers[BINARY])
    head, at, parts = json.loads(body[:n]), n, {}
    for o in head["outputs"]:
        size = o.get("parameters", {}).get("binary_data_size")
        if size is not None:
            parts[o["name"]] = body[at:at + size]
            at += size
    equal(at, len(body), "bytes behind the JSON")
    return head, parts


def metadata_is_as_the_protocol_says():
    with Daemon(models={"digits": DIGITS}) as d, Http(d, listen=("127.0.0.1:0", "unix:" + d.temp + "/http.sock")) as h:
        for index in (0, 1):
            c = h.connect(index)
            for path, schema in (("/v2", "server"), ("/v2/", "server"), ("/v2/models/digits", "model"),
                                 ("/v2/models/digits/versions/1", "model"), ("/v2/models/digits/ready", "model_ready"),
                                 ("/v2/models/digits/versions/1/ready", "model_ready"), ("/v2/health/live", "live"),
                                 ("/v2/health/ready", "live"), ("/v2/models", "models")):
                status, _, body = h.get(path, connection=c)
                equal(status, 200, path)
                http_schema.check_against(schema, body)
            equal(h.request("HEAD", "/v2", connection=c)[::2], (200, b""))
            c.close()
        equal(h.get("/v2")[2]["extensions"], ["binary_tensor_data", "image_body", "decoded_outputs"])
        equal(h.get("/v2/models")[2], {"models": ["digits"]})
        m = h.get("/v2/models/digits")[2]
        equal(m["inputs"], [{"name": "image", "datatype": "FP32", "shape": [1, 1, 16, 16]}])
        equal(m["outputs"], [{"name": "probability", "datatype": "FP32", "shape": [1, 10]}])


def json_and_binary_agree_with_pipectl():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for seed in range(8):
            raw = digits_input(seed)
            wanted = pipectl_raw(d, "%d.f32" % seed, raw)
            # JSON in and out, flat and nested
            flat = {"id": "n%d" % seed, "inputs": [tensor(raw)]}
            rows = [flat["inputs"][0]["data"][i:i + 16] for i in range(0, 256, 16)]
            for body in (flat, {"inputs": [tensor(raw, data=[[rows]])]}):
                http_schema.check_against("request", body)
                status, headers, answer = h.infer("digits", body)
                equal(status, 200, answer)
                http_schema.check_against("response", answer)
                equal(struct.pack("<10f", *answer["outputs"][0]["data"]), wanted, "JSON, seed %d" % seed)
                equal((answer.get("id"), answer["model_name"]), (body.get("id"), "digits"))
                check("compute;dur=" in headers["Server-Timing"], headers)
            # binary in; out as JSON, by parameter, by output
            part = ("image", [1, 1, 16, 16], "FP32", raw)
            body, headers = binary_request([part])
            answer = h.infer("digits", body, headers)[2]
            equal(struct.pack("<10f", *answer["outputs"][0]["data"]), wanted, "binary in, JSON out")
            for more in ({"parameters": {"binary_data_output": True}},
                         {"outputs": [{"name": "probability", "parameters": {"binary_data": True}}]}):
                body, headers = binary_request([part], **more)
                head, parts = read_binary(h.infer("digits", body, headers))
                equal((parts["probability"], head["outputs"][0]["shape"]), (wanted, [1, 10]), "binary")
            # the body is the input
            for headers in ({BINARY: "0"}, {"Content-Type": "application/octet-stream"}):
                equal(read_binary(h.infer("digits", raw, headers))[1]["probability"], wanted, "raw")


def halves_and_other_types_agree():
    r = random.Random(3)
    half = struct.pack("<256e", *(r.random() for _ in range(256)))
    with tempfile.TemporaryDirectory() as folder, \
            Daemon(models={"digits": DIGITS, "two": two_inputs(folder)}) as d, Http(d) as h:
        body, headers = binary_request([("image", [1, 1, 16, 16], "FP16", half)], parameters={"binary_data_output": True})
        equal(read_binary(h.infer("digits", body, headers))[1]["probability"], pipectl_raw(d, "a.f16", half))
        both = [{"name": n, "shape": s, "datatype": t, "data": v} for n, s, t, v in
                (("b", [2], "INT64", [5, -9007199254740993]), ("a", [2, 2], "FP32", [[1, 2.5], [-3e-1, 4]]))]
        answer = h.infer("two", {"inputs": both})[2]
        outputs = {o["name"]: o for o in answer["outputs"]}
        equal(outputs["sum"]["data"], [2, 5, -0.6, 8])
        equal((outputs["twice"]["datatype"], outputs["twice"]["data"]), ("INT64", [10, -18014398509481986]))
        only = h.infer("two", {"inputs": both, "outputs": [{"name": "twice"}]})[2]
        equal([o["name"] for o in only["outputs"]], ["twice"])


def long_names_are_the_same_by_every_door():
    """docs/protocol_messages.md, Tensor: 63 bytes for a name. HTTP takes what it shows, and what the file has."""
    with tempfile.TemporaryDirectory() as folder:
        path, full = long_names(folder, 200)  # one that ends in a letter of two bytes at 255, too
        with open(path[:-5] + ".sidecar.json", "w", encoding="utf-8") as f:
            json.dump({"output": {"decode": "classes", "tensors": {"boxes": full[3]}}}, f)
        with Daemon(models={"long": path}) as d, Http(d) as h:
            shown = [t["name"] for k in ("inputs", "outputs") for t in h.get("/v2/models/long")[2][k]]
            model = d.call("Models")["models"][0]
            equal([t["name"] for k in ("inputs", "outputs") for t in model[k]], shown)
            equal((len(set(shown)), max(len(n.encode()) for n in shown)), (4, 63), shown)
            d.call("Units")
            with pyclient.Connection(d.frames_path) as c:
                opened = pyclient.Stream(c)
                equal([t.name for t in opened.inputs + opened.outputs], shown)
            for names in (shown, full):
                answer = h.infer("long", {"inputs": [{"name": names[0], "shape": [4], "datatype": "FP32", "data": [-1, 2, -3, 4]}],
                                          "outputs": [{"name": n} for n in names[1:]]})[2]
                equal([(o["name"], o["data"]) for o in answer["outputs"]],
                      list(zip(shown[1:], ([0, 2, 0, 4], [1, -2, 3, -4], [1, 2, 3, 4]))))
            raw = os.path.join(folder, "x.f32")
            with open(raw, "wb") as f:
                f.write(struct.pack("<4f", -1, 2, -3, 4))
            equal(d.pipectl("infer", raw)[0]["top"][0]["class"], 3)


def only_valid_rows_are_answered():
    with tempfile.TemporaryDirectory() as folder, Daemon(models={"rows": counted_rows(folder)}) as d, Http(d) as h:
        for values, rows in (([1, 0, 2, 3], 3), ([0, 0, 0, 0], 0)):
            body = {"inputs": [{"name": "x", "shape": [4], "datatype": "FP32", "data": values}]}
            answer = h.infer("rows", body)[2]
            equal(answer["outputs"][0]["shape"], [1, rows], answer)
            equal(len(answer["outputs"][0]["data"]), rows)
            if rows:
                body["parameters"] = {"binary_data_output": True}
                head, parts = read_binary(h.infer("rows", body))
                equal((head["outputs"][0]["shape"], len(parts["where"])), ([1, rows], 8 * rows))


def numbers_are_the_shortest_that_read_back():
    """The same text by HTTP and by pipectl infer, however the answer is asked for."""
    shortest = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?")
    with Daemon(models=dict(test_outputs.networks(), digits=DIGITS)) as d, Http(d) as h:
        path = os.path.join(d.temp, "a.png")
        for model, query in (("digits", "?outputs=1"), ("plain", "?decode=1"), ("yolo", "?decode=1"), ("pose", "?decode=1")):
            data = png(64, 48, 3, 5)
            with open(path, "wb") as f:
                f.write(data)
            c = h.connect()
            c.request("POST", "/v2/models/%s/infer%s" % (model, query), data, {"Content-Type": "image/png"})
            answer = json.loads(c.getresponse().read(), parse_float=str)
            c.close()
            said = d.pipectl("infer", "--json", "--model", model, path, as_json=False)
            wanted = json.loads(said, parse_float=str)[0]
            for key in {"top", "objects"} & set(answer):
                equal(answer[key], wanted[key], model)
            for text in re.findall(r"'(-?[0-9][^']*)'", str([answer.get(k) for k in ("top", "objects", "outputs")])):
                check(shortest.fullmatch(text) and len(re.sub("[^0-9]", "", text.split("e")[0]).lstrip("0")) <= 9, text)
                value = struct.unpack("<f", struct.pack("<f", float(text)))[0]
                check(all(struct.unpack("<f", struct.pack("<f", float("%.*g" % (n, value))))[0] != value
                          for n in range(6, len(re.sub("[^0-9]", "", text.split("e")[0]).strip("0")))), "not the shortest:", text)


def keys_are_read_as_json_says():
    """However a key is escaped it is the same key, and null is as if it were absent."""
    raw = digits_input(4)
    body = json.dumps({"inputs": [tensor(raw)]})
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        wanted = h.infer("digits", body)[2]["outputs"]
        for key in ("inputs", "data", "shape", "datatype", "name"):
            for at in range(len(key)):
                for form in ("%s\\u%04x%s", "%s\\u%04X%s"):
                    escaped = form % (key[:at], ord(key[at]), key[at + 1:])
                    status, _, answer = h.infer("digits", body.replace('"%s"' % key, '"%s"' % escaped))
                    equal((status, answer.get("outputs")), (200, wanted), escaped)
        every = body.replace('"data"', '"' + "".join("\\u%04x" % ord(c) for c in "data") + '"')
        equal(h.infer("digits", every)[2]["outputs"], wanted)
        nulls = ({"id": None}, {"parameters": None}, {"outputs": None}, {"id": None, "parameters": None, "outputs": None},
                 {"parameters": {"timeout": None, "decode": None, "binary_data_output": None, "other": None}},
                 {"outputs": [{"name": "probability", "parameters": None}]},
                 {"outputs": [{"name": "probability", "parameters": {"binary_data": None, "classification": None,
                                                                     "shared_memory_region": None}}]})
        for more in nulls:
            status, _, answer = h.infer("digits", dict(more, inputs=[tensor(raw)]))
            equal((status, answer.get("outputs"), "id" in answer), (200, wanted, False), more)
        for more in ({"parameters": None}, {"parameters": {"binary_data_size": None}}):
            equal(h.infer("digits", {"inputs": [tensor(raw, **more)]})[2]["outputs"], wanted, more)
        binary, headers = binary_request([("image", [1, 1, 16, 16], "FP32", raw)])
        head = binary[:-1024].replace(b'"shape"', b'"data": null, "shape"')
        equal(h.infer("digits", head + raw, dict(headers, **{BINARY: str(len(head))}))[2]["outputs"], wanted)
        for more, words in (({"parameters": 5}, "parameters must be an object"), ({"parameters": []}, "must be an object"),
                            ({"outputs": [{"name": "probability", "parameters": 1}]}, "must be an object"),
                            ({"parameters": {"binary_data_output": 1}}, "binary_data_output is true or false"),
                            ({"outputs": [{"name": "probability", "parameters": {"binary_data": "x"}}]}, "true or false"),
                            ({"inputs": None}, "inputs must be an array"),
                            ({"inputs": [tensor(raw, shape=None)]}, "shape (an array)"),
                            ({"inputs": [tensor(raw, data=None)]}, "neither data nor"),
                            ({"inputs": [tensor(raw, parameters=7)]}, "must be an object")):
            h.refused(400, words, h.infer("digits", dict({"inputs": [tensor(raw)]}, **more)))


FOUND = ("decoded", "width", "height", "objects", "text", "text_score", "mask")


def found(answer):
    return {k: v for k, v in answer.items() if k in FOUND}


def decoded_outputs_are_those_of_pipectl():
    data, f32 = png(128, 48, 3, 1), struct.pack("<9216f", *([0.25] * 9216))
    tensors = {"name": "input", "shape": [1, 3, 48, 64], "datatype": "FP32", "data": [0.25] * 9216}
    head = {"Content-Type": "image/png"}
    with Daemon(models=test_outputs.networks()) as d, Http(d) as h:
        paths = [os.path.join(d.temp, name) for name in ("a.png", "a.f32")]
        for path, content in zip(paths, (data, f32)):
            with open(path, "wb") as f:
                f.write(content)
        for model in ("yolo", "text", "pose", "mask", "plain"):
            of_picture, of_tensor = (found(a) for a in d.pipectl("infer", "--model", model, *paths))
            address = "/v2/models/%s/infer?decode=1" % model
            status, _, answer = h.request("POST", address, data, head)
            equal((status, found(answer)), (200, of_picture), model)
            equal(set(answer) - set(FOUND), {"model_name", "model_version"})
            answer = h.request("POST", address + "&outputs=1", data, head)[2]
            equal((found(answer), len(answer["outputs"])), (of_picture, 1), model)
            # tensors: by the parameter, by the address, as bytes alone; outputs only where they are named
            for body, more, count in (({"inputs": [tensors], "parameters": {"decode": True}}, "", 0),
                                      ({"inputs": [tensors]}, "?decode=1", 0),
                                      ({"inputs": [tensors]}, "?decode=1&outputs=1", 1)):
                answer = h.request("POST", address.split("?")[0] + more, json.dumps(body), {})[2]
                http_schema.check_against("response", answer)
                equal(found(answer), of_tensor, model)
                equal(len(answer["outputs"]), count, model)
            answer = h.request("POST", address, f32, {BINARY: "0"})[2]
            equal((found(answer), answer["outputs"]), (of_tensor, []), model)
            equal(found(h.infer(model, {"inputs": [tensors]})[2]), {}, "nobody asked")
        named = {"inputs": [tensors], "parameters": {"decode": True, "binary_data_output": True}, "outputs": [{"name": "answer"}]}
        answer, parts = read_binary(h.infer("yolo", named))
        equal((answer["decoded"], len(parts["answer"])), ("yolo", 4 * 6 * 7))
        for _ in range(2):  # the second time from a stream that is open
            h.refused(400, "(key output); pipectl models inspect FILE --write-sidecar drafts it",
                      h.request("POST", "/v2/models/silent/infer?decode=1", data, head))
        h.refused(400, "decode is true or false", h.infer("yolo", {"inputs": [tensors], "parameters": {"decode": 1}}))
        h.refused(400, "decode must be a number", h.request("POST", "/v2/models/yolo/infer?decode=yes", data, head))


def a_sidecar_that_changed_decodes_anew():
    data, head = png(16, 16, 3, 1), {"Content-Type": "image/png"}
    models = test_outputs.networks()
    with Daemon(models={"plain": models["plain"]}) as d, Http(d) as h:
        def best():
            return h.request("POST", "/v2/models/plain/infer?decode=1", data, head)[2]["objects"][0]["label"]
        equal(best(), "b")
        path = models["plain"].replace(".onnx", ".sidecar.json")
        with open(path, encoding="utf-8") as f:
            sidecar = json.load(f)
        for labels in ("xyz", "pqr"):
            with open(path, "w", encoding="utf-8") as f:
                json.dump(dict(sidecar, labels=list(labels)), f)
            if labels == "xyz":
                d.stop()
                d.start()
            else:
                d.call("Reload")
            equal(best(), labels[1], "after a restart of the daemon, or a reload")


def errors_have_codes_and_reasons():
    raw = digits_input(1)
    good = tensor(raw)
    too_long = binary_request([("image", [1, 1, 16, 16], "FP32", raw)])
    none = binary_request([])
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        for status, words, answer in (
                (404, "no such model", h.infer("nono", {"inputs": [good]})),
                (404, "there is no model nono", h.get("/v2/models/nono")),
                # names that OPEN cannot have
                (404, "no such model: ?x", h.infer("%E2%80%AEx", {"inputs": [good]})),
                (404, "no such model: ?x", h.infer("%FFx", JPEG, {})),
                (404, "there is no model ?x", h.get("/v2/models/%E2%80%AEx")),
                (404, "only version of a model is 1", h.get("/v2/models/digits/versions/2")),
                (404, "nothing at this path", h.get("/v3")),
                (405, "takes POST: curl --data-binary @FILE URL", h.get("/v2/models/digits/infer")),
                (405, "takes POST: curl --data-binary @FILE URL", h.request("PUT", "/v2/models/digits/infer", JPEG)),
                (405, "takes GET, HEAD: curl URL", h.request("DELETE", "/v2/models/digits")),
                (400, "has shape [16, 16]; the model takes [1,1,16,16]",
                 h.infer("digits", {"inputs": [tensor(raw, shape=[16, 16])]})),
                (400, "is INT32; the model takes FP32", h.infer("digits", {"inputs": [tensor(raw, datatype="INT32")]})),
                (400, "has no such input", h.infer("digits", {"inputs": [tensor(raw, name="x")]})),
                (400, "comes twice", h.infer("digits", {"inputs": [good, good]})),
                (400, "has 1 input, the request 0", h.infer("digits", {"inputs": []})),
                (400, "it has 2 values, the shape 256", h.infer("digits", {"inputs": [tensor(raw, data=[1, 2])]})),
                (400, "more values", h.infer("digits", {"inputs": [tensor(raw, data=[0] * 257)]})),
                (400, "nesting", h.infer("digits", {"inputs": [tensor(raw, data=[[0] * 256])]})),
                (400, "not of the datatype", h.infer("digits", {"inputs": [tensor(raw, data=["a"] + [0] * 255)]})),
                (400, "not of the datatype", h.infer("digits", {"inputs": [tensor(raw, data=[1e300] + [0] * 255)]})),
                (400, "data must be an array", h.infer("digits", {"inputs": [tensor(raw, data=7)]})),
                (400, "neither data nor", h.infer("digits", {"inputs": [{k: v for k, v in good.items() if k != "data"}]})),
                # However long a name is, the reason is there.
                (400, "nnn: the model has no such input", h.infer("digits", {"inputs": [tensor(raw, name="n" * 1100)]})),
                (400, "nnn: it has both data and", h.infer("digits", {"inputs": [
                    tensor(raw, name="n" * 9000, parameters={"binary_data_size": 8})]})),
                (400, "nnn: this server has neither", h.infer("digits", {"inputs": [good], "outputs": [
                    {"name": "n" * 1100, "parameters": {"classification": 1}}]})),
                (400, "the model has no output nnn", h.infer("digits", {"inputs": [good], "outputs": [{"name": "n" * 1100}]})),
                (400, "no output x", h.infer("digits", {"inputs": [good], "outputs": [{"name": "x"}]})),
                (400, "FP16 has no form in JSON", h.infer("digits", {"inputs": [tensor(raw, datatype="FP16")]})),
                (400, "id must be a string", h.infer("digits", {"id": 7, "inputs": [good]})),
                (400, "the parameter timeout", h.infer("digits", {"inputs": [good], "parameters": {"timeout": -1}})),
                (400, "not a JSON object", h.infer("digits", "[1]")),
                (400, "not a JSON object", h.infer("digits", '{"inputs": [}')),
                (400, "the body is empty", h.infer("digits", "")),
                (400, "the first takes 1024 bytes and the body has 1020", h.infer("digits", raw[4:], {BINARY: "0"})),
                (400, "the body has 2 bytes", h.infer("digits", "{}", {BINARY: "50"})),
                (400, "not a number of bytes", h.infer("digits", "{}", {BINARY: "5x"})),
                (400, "both data and", h.infer("digits", {"inputs": [tensor(raw, parameters={"binary_data_size": 8})]})),
                (400, "not within the body", h.infer("digits", too_long[0][:-4], too_long[1])),
                (400, "4 bytes of binary data, binary_data_size names 0", h.infer("digits", none[0] + b"1234", none[1])),
                (415, "not text/xml", h.infer("digits", "<a/>", {"Content-Type": "text/xml"})),
                (415, "not compressed", h.infer("digits", "x", {"Content-Encoding": "gzip"}))):
            h.refused(status, words, answer)
            http_schema.check_against("error", answer[2])
            check(len(answer[2]["error"]) < 1024, answer)
        equal(h.get("/v2/models/digits/infer")[1]["Allow"], "POST")
        equal(h.infer("digits", {"inputs": [good]})[0], 200, "and it still serves")


def infinite_values_have_no_form_in_json():
    low = test_outputs.fixed("low", [1, 3], [1.0, -math.inf, 2.0], {"decode": "classes"})
    log = test_outputs.write("log", [node("Log", ["input"], "answer")], [], [("answer", (1, 3, 48, 64))], {})
    black, wide = png_of(64, 48, 3, bytes(64 * 48 * 3)), 64 * 48 * 3
    with tempfile.TemporaryDirectory() as folder, \
            Daemon(models={"two": two_inputs(folder), "low": low, "log": log}) as d, Http(d) as h:
        big = [{"name": "b", "shape": [2], "datatype": "INT64", "data": [0, 0]},
               {"name": "a", "shape": [2, 2], "datatype": "FP32", "data": [3e38] * 4}]
        why = "ask for binary data: the parameter binary=1 of the address"
        h.refused(400, why, h.infer("two", {"inputs": big}))
        head, parts = read_binary(h.infer("two", {"inputs": big, "parameters": {"binary_data_output": True}}))
        equal(struct.unpack("<4f", parts["sum"]), (math.inf,) * 4, head)
        for more, names in (({}, {"sum", "twice"}), ({"parameters": {"timeout": 0}}, {"sum", "twice"}),
                            ({"outputs": [{"name": "sum"}]}, {"sum"}),
                            ({"outputs": [{"name": "sum"}, {"name": "twice", "parameters": {"binary_data": False}}]}, {"sum"})):
            answer = h.request("POST", "/v2/models/two/infer?binary=1", json.dumps(dict({"inputs": big}, **more)), {})
            equal(set(read_binary(answer)[1]), names, more)
        h.refused(400, why, h.request("POST", "/v2/models/two/infer?binary=1", json.dumps(
            {"inputs": big, "parameters": {"binary_data_output": False}}), {}))
        # A picture has no JSON in which it could ask.
        for path, values in (("log/infer?", (-math.inf,) * wide), ("low/infer?top=1&outputs=1&", (1, -math.inf, 2))):
            h.refused(400, why, h.request("POST", "/v2/models/" + path, black, PNG))
            head, parts = read_binary(h.request("POST", "/v2/models/" + path + "binary=1", black, PNG))
            equal(struct.unpack("<%df" % len(values), parts["answer"]), values)
            equal([t["class"] for t in head.get("top", [])], [2] if "low" in path else [])
        h.refused(400, "binary must be a number", h.request("POST", "/v2/models/log/infer?binary=x", black, PNG))


def metrics_are_the_daemons_and_its_own():
    with Daemon(models={"digits": DIGITS}) as d, Http(d) as h:
        raw = digits_input(2)
        for _ in range(3):
            h.infer("digits", raw, {BINARY: "0"})
        h.infer("nono", raw, {BINARY: "0"})
        status, headers, body = h.get("/metrics")
        equal(status, 200)
        check(headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers)
        names = [line.split(" ")[2] for line in body.decode().splitlines() if line.startswith("# TYPE ")]
        equal(len(names), len(set(names)), "a metric is declared twice")
        equal(h.metric("piped_frames_admitted_total"), 3)
        equal(h.metric("piped_http_infer_total"), 4)
        equal(h.metric("piped_http_received_bytes_total"), 4096)
        check('piped_http_answers_total{code="404"} 1' in body.decode(), body)
        equal(h.metric("piped_http_daemon_up"), 1)


def examples_of_the_page_run():
    """Each curl command of docs/http.md, with its files."""
    if not shutil.which("curl"):
        return "curl is not installed"
    with open(os.path.join(ROOT, "docs", "http.md"), encoding="utf-8") as f:
        page = f.read()
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)).replace("\\\n", "")
    commands = [c for c in blocks.splitlines() if c.startswith("curl ")]
    check(len(commands) >= 14, commands)
    raw = digits_input(1)
    models = {"digits": DIGITS, "detector": os.path.join(ROOT, "model", "default", "detector.onnx")}
    with Daemon(models=models) as d, Http(d, listen=("127.0.0.1:0", "unix:" + d.temp + "/http.sock")) as h:
        body, headers = binary_request([("image", [1, 1, 16, 16], "FP32", raw)], parameters={"binary_data_output": True})
        for name, data in (("three.png", png(16, 16, 1, 3)), ("three.f32", raw), ("request.bin", body),
                           ("request.json", json.dumps({"inputs": [tensor(raw)]}).encode())):
            with open(os.path.join(d.temp, name), "wb") as f:
                f.write(data)
        for c in commands:
            c = c.replace("http://127.0.0.1:8000", h.url).replace("/run/piped-http", d.temp)
            c = c.replace("/usr/share/piped/pictures", os.path.join(ROOT, "model", "default"))
            c = c.replace("Content-Length: 176", "Content-Length: " + headers[BINARY])
            if "https:" in c:
                continue  # test_http_access.py
            r = subprocess.run(["bash", "-c", c.replace("curl ", "curl -sS --fail ", 1)], cwd=d.temp, capture_output=True,
                               text=True, timeout=60, check=False)
            equal(r.returncode, 0, c + "\n" + r.stderr)
            if "-o answer.bin" in c:
                with open(os.path.join(d.temp, "answer.bin"), "rb") as f:
                    equal(f.read()[-40:], pipectl_raw(d, "page.f32", raw), c)
    return None


if __name__ == "__main__":
    main((metadata_is_as_the_protocol_says, json_and_binary_agree_with_pipectl, halves_and_other_types_agree,
          long_names_are_the_same_by_every_door, only_valid_rows_are_answered, numbers_are_the_shortest_that_read_back,
          keys_are_read_as_json_says, decoded_outputs_are_those_of_pipectl, a_sidecar_that_changed_decodes_anew,
          errors_have_codes_and_reasons,
          infinite_values_have_no_form_in_json, metrics_are_the_daemons_and_its_own, examples_of_the_page_run))
