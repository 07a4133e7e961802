# SPDX-License-Identifier: Apache-2.0
"""Runs stored and generated conformance data through conformance_run.

    run.py --runner PROGRAM --cache DIR --source DIR PART...

Parts: node    ONNX's own operator tests, written by the installed python3-onnx
       integers  operators on integers of every width (integers.py)
       shared  the conformance folder beside the project (../shared or PIPED_SHARED)
       real    trained networks on photographs, from the same place
       light   whole networks with made-up weights, from the same place
       exporters  small networks as torch's exporters write them, from the same place
       odd     graphs of odd_graphs.py: no elements, and numbers at the ends of the line

A wrong answer or a crash fails always. "unsupported" fails where a case is required: every operator
in it is one that piped has (LISTED), its opset is 7..24, its tensors have types that piped computes with, and it
is not in EXCEPTIONS. Exit: 0 passed, 1 failed, 77 nothing to run here.
"""
import argparse
import collections
import csv
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import operators  # noqa: E402

import integers  # noqa: E402

# Every operator that the source has: what it is given, it has to do.
LISTED = set(operators.onnx(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
TYPES = {"FLOAT", "FLOAT32", "DOUBLE", "INT32", "INT64", "UINT8", "INT8", "UINT16", "INT16", "BOOL"}
OPSETS = range(7, 25)
# Operators whose first input is no data either: all of it must be constant.
ALL_CONSTANT = {"ConstantOfShape", "If", "Loop", "NonZero", "Range"}


def needs_no_data(ops, inputs):
    """Whether a node's only input is no data either: its model is required to run as a constant."""
    return ops <= ALL_CONSTANT or (inputs == 1 and bool(ops & ALL_CONSTANT))


# Not required although the rule above says so: (part of the test's name, why).
EXCEPTIONS = [
    ("training_mode", "batch statistics: piped infers"),
]
# Not run: the data are wrong, or nobody can give the size.
WRONG_DATA = {
    # take 2.4 for an output width of 2; ONNX Runtime disagrees too, later tags dropped them
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
    # counts its indices over another shape than output_shape; ONNX Runtime disagrees too
    "test_maxunpool_export_with_output_shape",
    # python3-onnx 1.12 writes bfloat16 as uint16
    "test_cast_FLOAT_to_BFLOAT16",
    "test_castlike_FLOAT_to_BFLOAT16",
    "test_castlike_FLOAT_to_BFLOAT16_expanded",
    "test_cast_BFLOAT16_to_FLOAT",
    "test_castlike_BFLOAT16_to_FLOAT",
    "test_castlike_BFLOAT16_to_FLOAT_expanded",
    # an open dimension that is 0
    "test_sequence_model8",
}

Case = collections.namedtuple("Case", "name ops opset types model inputs outputs rtol atol max_tol "
                              "image required ways ties top shapes",
                              defaults=(None, True, None, False, False, None))


def case_line(case):
    """One line of the runner's list."""
    fields = [f"name={case.name}", f"model={case.model}", f"rtol={case.rtol}", f"atol={case.atol}",
              f"max_tol={case.max_tol}"]
    fields += [f"in={i}" for i in case.inputs] + [f"out={o}" for o in case.outputs]
    if case.image:
        fields += [f"{k}={v}" for k, v in case.image.items()]
    fields += ["ties=1"] * case.ties + ["top=1"] * case.top
    if case.ways:
        fields.append(f"ways={case.ways}")
    if case.shapes:
        fields.append(f"shapes={case.shapes}")
    return "\t".join(fields)


def run_cases(options, part, cases):
    """Runs all cases, in as many processes as there are CPUs. Returns {name: (verdict, why)}."""
    jobs = max(1, min(len(os.sched_getaffinity(0)), 8, len(cases)))
    running = []
    for job in range(jobs):
        path = os.path.join(options.cache, f"{part}-{job}.cases")
        with open(path, "w") as f:
            f.writelines(case_line(c) + "\n" for c in cases[job::jobs])
        running.append(subprocess.Popen([options.runner, path], stdout=subprocess.PIPE, text=True))
    results = {}
    for process in running:
        for line in process.communicate()[0].splitlines():
            verdict, name, why = (line.split("\t") + ["", ""])[:3]
            if verdict != "total":
                results[name] = (verdict, why)
        if process.returncode not in (0, 1):
            sys.exit(f"the runner ended with {process.returncode}")
    missing = [c.name for c in cases if c.name not in results]
    if missing:
        sys.exit(f"no result for {missing[:3]}")
    return results


def base_name(name):
    """test_x of onnx/const-node-v1.10.2/test_x"""
    return name.rsplit("/", 1)[-1]


def is_required(case):
    return (case.required and case.opset in OPSETS and case.ops <= LISTED and case.types <= TYPES
            and not any(part in base_name(case.name) for part, _ in EXCEPTIONS))


def constant_twin(name, names):
    """The same test with all but its data input constant, where there is one."""
    parts = name.split("_expanded")[0].split("/")
    if len(parts) < 2 or parts[-2].startswith("const-"):
        return None
    parts[-2] = "const-" + parts[-2]
    twin = "/".join(parts)
    return twin if twin in names else None


def judge(part, cases, results, verbose):
    """Prints the table by operator and what went wrong. Returns the number of failures."""
    table = collections.defaultdict(collections.Counter)
    bad = []
    for case in cases:
        verdict, why = results[case.name]
        key = next(iter(case.ops)) if len(case.ops) == 1 else "(several)"
        required = is_required(case)
        if verdict == "unsupported" and required:
            twin = constant_twin(case.name, results)
            # what shapes depend on came as data; its twin shows that it works as a constant
            if (twin and results[twin][0] == "pass") or (
                    needs_no_data(case.ops, len(case.inputs)) and "must be a constant" in why):
                verdict = "needs constants"
        table[key][verdict if required or verdict != "unsupported" else "outside"] += 1
        if verdict == "FAIL" or (verdict == "unsupported" and required):
            bad.append((verdict, case.name, why))
        elif verbose and verdict != "pass":
            print(f"{verdict}: {case.name}: {why}")
    columns = ["pass", "FAIL", "unsupported", "needs constants", "outside"]
    print(f"{part:24}" + "".join(f"{c:>17}" for c in columns))
    for key in sorted(table):
        print(f"{key:24}" + "".join(f"{table[key][c] or '':>17}" for c in columns))
    total = sum(table.values(), collections.Counter())
    print(f"{'all':24}" + "".join(f"{total[c]:>17}" for c in columns))
    for verdict, name, why in sorted(bad):
        print(f"{verdict}: {name}: {why}")
    return len(bad)


def data_sets(folder):
    """Yields (inputs, outputs) of each test_data_set_N."""
    for entry in sorted(os.listdir(folder)):
        if entry.startswith("test_data_set_"):
            path = os.path.join(folder, entry)

            def numbered(kind):
                names = [f for f in os.listdir(path) if f.startswith(kind + "_")]
                names.sort(key=lambda n: int(n[len(kind) + 1:-3]))
                return [os.path.join(path, n) for n in names]
            yield numbered("input"), numbered("output")


def import_onnx():
    """Debian's python3-onnx 1.12 wants names that its numpy has dropped."""
    try:
        import numpy
        for name, python in (("float", float), ("bool", bool), ("int", int), ("object", object)):
            if name not in vars(numpy):
                setattr(numpy, name, python)
        import onnx
        return onnx
    except ImportError:
        return None


def onnx_facts(onnx, path):
    """The operators, the opset and the types of the graph's own inputs and outputs."""
    model = onnx.load(path)
    types = set()
    for value in list(model.graph.input) + list(model.graph.output):
        if value.type.HasField("tensor_type"):
            types.add(onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type))
        else:
            types.add("not a tensor")
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    return model, {n.op_type for n in model.graph.node}, opset, types


def open_shapes(onnx, model, inputs):
    """Sizes for the dimensions that the model leaves open, as its data have them; None: it does not."""
    shapes = []
    for value, path in zip(model.graph.input, inputs):
        dims = value.type.tensor_type.shape.dim
        if dims and not all(d.HasField("dim_value") for d in dims):
            tensor = onnx.TensorProto()
            with open(path, "rb") as f:
                tensor.ParseFromString(f.read())
            if 0 not in tensor.dims:
                shapes.append(f"{value.name}={'x'.join(str(d) for d in tensor.dims)}")
    return ",".join(shapes) or None


def constant_form(onnx, model, inputs, ops, folder):
    """Writes the model with all inputs but the first as initializers. Returns its inputs."""
    graph = model.graph
    values = list(graph.input)
    keep = 0 if needs_no_data(ops, len(values)) else 1
    if len(values) <= keep or len(inputs) != len(values):
        return None
    if not all(v.type.HasField("tensor_type") for v in values):
        return None
    os.makedirs(folder, exist_ok=True)
    for value, path in list(zip(values, inputs))[keep:]:
        tensor = onnx.TensorProto()
        with open(path, "rb") as f:
            tensor.ParseFromString(f.read())
        tensor.name = value.name
        graph.initializer.append(tensor)
        graph.input.remove(value)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    return inputs[:keep]


def training(model):
    """Dropout and batch norm in training mode: random, or statistics of the batch."""
    for node in model.graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2:
            return True
        if any(a.name == "training_mode" and a.i for a in node.attribute):
            return True
    return False


def part_node(options):
    onnx = import_onnx()
    if not onnx:
        return None
    data = os.path.join(options.cache, "node-" + onnx.__version__)
    if not os.path.exists(os.path.join(data, "complete")):
        from onnx.backend.test import cmd_tools
        cmd_tools.generate_data(argparse.Namespace(output=data, op_type=None))
        open(os.path.join(data, "complete"), "w").close()
    cases = []
    for kind in ("node", "simple"):
        top = os.path.join(data, kind)
        for name in sorted(os.listdir(top)) if os.path.isdir(top) else []:
            folder = os.path.join(top, name)
            model, ops, opset, types = onnx_facts(onnx, os.path.join(folder, "model.onnx"))
            if opset == 0 or name in WRONG_DATA:
                continue  # operators of another domain
            common = dict(ops=ops, opset=opset, types=types, rtol=1e-3, atol=1e-7, max_tol=0,
                          required=not training(model))
            for number, (inputs, outputs) in enumerate(data_sets(folder)):
                suffix = f"#{number}" if number else ""
                common["shapes"] = open_shapes(onnx, model, inputs)
                cases.append(Case(name=f"{kind}/{name}{suffix}", inputs=inputs, outputs=outputs,
                                  model=os.path.join(folder, "model.onnx"), **common))
                if number == 0:
                    twin = os.path.join(data, "const-" + kind, name)
                    kept = constant_form(onnx, model, inputs, ops, twin)
                    if kept is not None:
                        common["shapes"] = open_shapes(onnx, model, kept)
                        cases.append(Case(name=f"const-{kind}/{name}", inputs=kept,
                                          model=os.path.join(twin, "model.onnx"),
                                          outputs=outputs, **common))
    return cases


def part_integers(options):
    onnx = import_onnx()
    if not onnx:
        return None
    top = os.path.join(options.cache, "integers")
    return [Case(name=f"integers/{name}", ops={op}, opset=18, types={dtype}, model=model, inputs=inputs,
                 outputs=outputs, rtol=0, atol=0, max_tol=0, ways="default,reference")
            for name, op, dtype, (model, inputs, outputs) in integers.cases(onnx, top)]


def find_shared(options):
    path = os.environ.get("PIPED_SHARED") or os.path.join(options.source, "..", "shared")
    return os.path.abspath(path) if os.path.isdir(path) else None


def rows(*path):
    with open(os.path.join(*path), newline="") as f:
        return list(csv.DictReader(f, delimiter="\t"))


# One quantisation step of the blocks that dequantise their result.
QUANTISED_STEP = 0.03


def is_quantised(row):
    """Integers out of rounded products: ties may fall to the other side."""
    return "Q" in row["ops"] or "Quantize" in row["ops"]


def part_shared(options):
    shared = find_shared(options)
    if not shared:
        return None
    top = os.path.join(shared, "conformance")
    cases = []
    for row in rows(top, "MANIFEST.tsv"):
        folder = os.path.join(top, row["name"])
        if row["name"].startswith("light/") or base_name(row["name"]) in WRONG_DATA:
            continue
        sweep = row["name"].startswith("ort-sweep/")
        blocks = row["name"].startswith("ort-sweep/qdq_")
        common = dict(ops={o.rsplit("-", 1)[0] for o in row["ops"].split(",")},
                      opset=int(row["opset"]), types=set(row["dtypes"].split(",")) - {""},
                      rtol=1e-3, max_tol=0,
                      atol=QUANTISED_STEP if blocks else 1e-5 if sweep else 1e-7, ties=is_quantised(row),
                      required=row["tier"] == "1" and int(row["ir"]) in range(3, 9))
        for number, (inputs, outputs) in enumerate(data_sets(folder)):
            suffix = f"#{number}" if number else ""
            cases.append(Case(name=row["name"] + suffix, inputs=inputs, outputs=outputs,
                              model=os.path.join(folder, "model.onnx"), **common))
    return cases


# Networks of quantised operators: sums that are rounded at another place move single steps, which
# then spread; what must hold is the answer.
QUANTISED = ("_int8",)
QUANTISED_TOLERANCE = 0.04


def part_real(options):
    shared = find_shared(options)
    if not shared:
        return None
    top = os.path.join(shared, "real")
    preprocessing = {row["model"]: row for row in rows(top, "preproc.tsv")}
    cases = []
    for model in sorted(os.listdir(os.path.join(top, "ref"))):
        common = dict(ops={"(network)"}, opset=13, types=set(), rtol=0,
                      model=os.path.join(top, "models", model + ".onnx"),
                      top=model.endswith(QUANTISED))
        probabilities = model not in ("mnist_8", "ultraface_rfb320")
        common.update(atol=1e-4 if probabilities else 0, max_tol=0 if probabilities else 1e-4)
        if model.endswith(QUANTISED):
            common.update(atol=QUANTISED_TOLERANCE)
        for case in sorted(os.listdir(os.path.join(top, "ref", model))):
            folder = os.path.join(top, "ref", model, case)
            files = os.listdir(folder)
            common["outputs"] = sorted(os.path.join(folder, f) for f in files
                                       if f.startswith("out_"))
            if "in_0.f32" in files:
                cases.append(Case(name=f"real/{model}/{case}.f32",
                                  ways="default,unfused,team",
                                  inputs=[os.path.join(folder, "in_0.f32")], **common))
            if model in preprocessing:
                p = preprocessing[model]
                picture = f"{case}_{p['width']}x{p['height']}.ppm"
                image = {"bgr": int(p["channels"] == "BGR"), "std": p["divide_by"],
                         "mean": p["mean_in_channel_order"]}
                cases.append(Case(name=f"real/{model}/{case}.ppm", image=image,
                                  ways="default,reference" if "in_0.f32" in files
                                  else "default,team",
                                  inputs=[os.path.join(top, "ppm", picture)], **common))
    return cases


# A run for a lesser CPU: references are the same there.
SHARED_OUT = int(os.environ.get("PIPED_TEST_SHARE") or 1) > 1


def part_light(options):
    shared = find_shared(options)
    if not shared:
        return None
    top = os.path.join(shared, "conformance", "light")
    cases = []
    for model in sorted(m for m in os.listdir(top) if os.path.isdir(os.path.join(top, m))):
        folder = os.path.join(top, model)
        weighted = os.path.join(options.cache, model + ".onnx")
        if not os.path.exists(weighted):
            subprocess.run([sys.executable, os.path.join(top, "reweight_light.py"),
                            os.path.join(folder, "model.onnx"), weighted + ".part"],
                           check=True, stdout=subprocess.DEVNULL)
            os.rename(weighted + ".part", weighted)
        common = dict(ops={"(network)"}, opset=9, types=set(), rtol=0, atol=0, max_tol=1e-4)
        for kind in ("ramp", "prng"):
            cases.append(Case(name=f"light/{model}/{kind}", model=weighted,
                              inputs=[os.path.join(top, f"input_{kind}.f32")],
                              outputs=[os.path.join(folder, f"reweighted_out_{kind}.f32")],
                              ways="default,team" if kind == "ramp" else
                              "default" if SHARED_OUT else "default,reference", **common))
        cases.append(Case(name=f"light/{model}/upstream",
                          model=os.path.join(folder, "model.onnx"), ways="default",
                          inputs=[os.path.join(top, "input_ramp.f32")],
                          outputs=[os.path.join(folder, "upstream_output_0.pb")], **common))
    return cases


def part_exporters(options):
    """Small networks as torch's exporters write them."""
    shared = find_shared(options)
    top = os.path.join(shared or "", "faults", "ops")
    if not shared or not os.path.isdir(top):
        return None
    return [Case(name=f"exporters/{name}", ops={"(network)"}, opset=18, types=set(), rtol=1e-3, atol=1e-6, max_tol=0,
                 model=os.path.join(top, name, "model.onnx"), inputs=[os.path.join(top, name, "input_0.pb")],
                 outputs=[os.path.join(top, name, "output_0.pb")])
            for name in sorted(os.listdir(top)) if os.path.exists(os.path.join(top, name, "output_0.pb"))]


def part_odd(options):
    onnx = import_onnx()
    if not onnx:
        return None
    import odd_graphs
    seed = int(os.environ.get("PIPED_TEST_SEED") or 20260601)
    count = 20000 if os.environ.get("PIPED_TEST_LONG") else 400
    folder = os.path.join(options.cache, "odd")
    shutil.rmtree(folder, ignore_errors=True)
    return [Case(name=name, ops=ops, opset=odd_graphs.OPSET, types={"FLOAT"}, model=model, inputs=inputs,
                 outputs=outputs, rtol=2e-3, atol=1e-5, max_tol=0, ways="default,unfused,measured",
                 required=False)
            for name, ops, model, inputs, outputs in odd_graphs.generate(onnx, folder, seed, count)]


PARTS = {"node": part_node, "integers": part_integers, "shared": part_shared, "real": part_real, "light": part_light,
         "exporters": part_exporters, "odd": part_odd}
# parts that are networks: everything in them is required as it is
NETWORKS = {"real", "light", "exporters"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument("parts", nargs="+", choices=PARTS)
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    failures, ran = 0, 0
    for part in options.parts:
        cases = PARTS[part](options)
        if cases is None:
            print(f"skipped: {part}: " + ("python3-onnx is not installed" if part in ("node", "integers", "odd") else
                                          "no ../shared folder (or PIPED_SHARED)"))
            continue
        cases = [c for c in cases if options.only in c.name]
        if part in NETWORKS:
            LISTED.add("(network)")
        results = run_cases(options, part, cases)
        if part == "real":
            for case in cases:
                if not case.required and results[case.name][0] != "unsupported":
                    results[case.name] = ("FAIL", "quantised, and neither refused nor listed")
            quantised = [c for c in cases if not c.required]
            if quantised:
                print(f"{len(quantised)} cases are of quantised networks, which piped does not run "
                      f"yet; it says: {results[quantised[0].name][1]}")
        failures += judge(part, cases, results, options.verbose)
        ran += len(cases)
    return 77 if not ran else 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
