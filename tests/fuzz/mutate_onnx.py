#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the compiler with structure: ONNX's own operator tests, or the models of a folder, with attributes, shapes,
constants and wiring changed.

    mutate_onnx.py FUZZ_COMPILE [FOLDER] [--count N] [--seed N]

Byte mutations (replay.c) mostly break a length; these models parse and are wrong in what they mean. Each is fed to the
target once; what made it crash is left in fuzz-last.bin."""
import argparse, os, random, subprocess, sys, tempfile
try:
    import numpy as np
    for alias, kind in (('float', float), ('bool', bool), ('int', int), ('object', object)):
        if alias not in np.__dict__:  # onnx 1.12 uses names that numpy 1.24 dropped
            setattr(np, alias, kind)
    import onnx
    from onnx import helper, numpy_helper
    from onnx.backend.test.case.node import collect_testcases
except ImportError as e:
    print(f'skipped: {e}')
    sys.exit(77)

INTS = [0, 1, 2, 3, -1, -2, 4, 5, 7, 8, 100, -100, 65536, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63)]


def as_floats(model):
    """Some tests, like those of Einsum, are of doubles only, which the compiler refuses at once."""
    for value in list(model.graph.input) + list(model.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def seeds():
    """The tests' models; inputs but the first become constants, as in real models."""
    out = []
    for case in collect_testcases(None):
        if case.model is None or len(case.model.SerializeToString()) > 16384:
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        as_floats(model)
        out.append(model)
        if not case.data_sets or len(model.graph.input) < 2:
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        as_floats(model)
        data = case.data_sets[0][0]
        if all(isinstance(d, np.ndarray) and d.size < 1000 and d.dtype != object for d in data[1:]):
            for value, d in list(zip(model.graph.input, data))[1:]:
                d = d.astype(np.float32) if np.asarray(d).dtype == np.float64 else d
                model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(d), value.name))
            out.append(model)
    return out


def load(folder):
    return [onnx.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]


def change_attribute(r, graph, node, models):
    if not node.attribute:
        return
    a = r.choice(node.attribute)
    if r.random() < 0.1:
        node.attribute.remove(a)
    elif a.type == onnx.AttributeProto.INT:
        a.i = r.choice(INTS)
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = r.choice([0, -1, float('nan'), float('inf'), 1e30])
    elif a.type == onnx.AttributeProto.STRING:
        a.s = r.choice([b'SAME_UPPER', b'SAME_LOWER', b'VALID', b'linear', b'cubic', b'edge', b'x', b'',
                        b'ij,jk->ik', b'...ii->...i', b'bij,b...', b'ijkl,lk'])
    elif a.type == onnx.AttributeProto.INTS:
        what = r.randrange(3)
        if what == 0 or not a.ints:
            a.ints.append(r.choice(INTS[:9]))
        elif what == 1:
            del a.ints[-1]
        else:
            a.ints[r.randrange(len(a.ints))] = r.choice(INTS)


def change_operator(r, graph, node, models):
    node.op_type = r.choice(r.choice(models).graph.node or [node]).op_type


def change_wire(r, graph, node, models):
    names = [t.name for t in graph.initializer] + [v.name for v in graph.input] + ['']
    names += [o for n in graph.node for o in n.output]
    what = r.randrange(3)
    if what == 0 and len(node.input) > 1:
        del node.input[-1]
    elif what == 1 or not node.input:
        node.input.append(r.choice(names))
    else:
        node.input[r.randrange(len(node.input))] = r.choice(names)


def change_constant(r, graph, node, models):
    if not graph.initializer:
        return
    t = r.choice(graph.initializer)
    try:
        a = numpy_helper.to_array(t).copy()
    except Exception:
        return
    what = r.randrange(4)
    if a.dtype in (np.int32, np.int64) and a.size and what < 2:
        a.flat[r.randrange(a.size)] = r.choice([i for i in INTS if np.iinfo(a.dtype).min <= i <= np.iinfo(a.dtype).max])
    elif what == 2 or a.ndim == 0:
        a = a.reshape(-1)
    else:
        a = np.repeat(a, 2, axis=r.randrange(a.ndim)) if a.size < 1000 else a[:1]
    t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(a), t.name))


def change_input(r, graph, node, models):
    if not graph.input:
        return
    t = r.choice(graph.input).type.tensor_type
    if r.random() < 0.2:
        t.elem_type = r.choice([1, 2, 3, 6, 7, 9])
    elif t.shape.dim:
        d = r.choice(t.shape.dim)
        if r.random() < 0.2:
            d.Clear()
        else:
            d.dim_value = r.choice([0, 1, 2, 3, 4, 5, 7, 8, 16, 1000, 65536, 1 << 31])


def append_node(r, graph, node, models):
    other = r.choice(models).graph.node
    if not other or not node.output or not graph.output:
        return
    new = graph.node.add()
    new.CopyFrom(r.choice(other))
    if new.input and new.output:
        new.input[0] = node.output[0]
        new.output[0] = f'made{len(graph.node)}'
        graph.output[0].name = new.output[0]


def branch(nodes, name):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(nodes[-1].output[0], 1, None)])


def put_into_if(r, graph, node, models):
    """The node in a branch of an If, the other branch being another node or nothing of sense."""
    if len(node.output) != 1 or not node.output[0]:
        return
    inner, other = onnx.NodeProto(), onnx.NodeProto()
    inner.CopyFrom(node)
    inner.output[0] = other_name = f'inner{len(graph.node)}'
    other.CopyFrom(r.choice(r.choice(models).graph.node or [node]))
    if r.random() < 0.5 or not other.output:
        other.CopyFrom(inner)
    del other.output[1:]
    other.output[0] = r.choice([other_name, node.output[0], 'other'])
    flag = r.choice([t.name for t in graph.initializer] + ['flag'] * 9)
    if not any(t.name == 'flag' for t in graph.initializer):
        graph.initializer.append(helper.make_tensor('flag', onnx.TensorProto.BOOL, [], [r.random() < 0.8]))
    new = helper.make_node('If', [flag], [node.output[0]], then_branch=branch([inner], 't'),
                           else_branch=branch([other], 'e'))
    node.CopyFrom(new)


def put_into_function(r, graph, node, models):
    """The node as the body of a function; main() hands the functions to the model."""
    f = onnx.FunctionProto()
    f.name, f.domain = f'F{len(graph.node)}', 'own'
    names = [f'i{i}' for i in range(len(node.input))]
    f.input.extend(names)
    f.output.extend(f'o{i}' for i in range(len(node.output)))
    inner = f.node.add()
    inner.CopyFrom(node)
    inner.input[:], inner.output[:] = names, list(f.output)
    if inner.attribute and r.random() < 0.5:
        a = r.choice(inner.attribute)
        a.ref_attr_name = a.name
        f.attribute.append(a.name)
        kept = onnx.AttributeProto()
        kept.name, kept.type, kept.ref_attr_name = a.name, a.type, a.name
        a.CopyFrom(kept)
    else:
        del node.attribute[:]
    FUNCTIONS.append(f)
    node.op_type, node.domain = f.name, 'own'


FUNCTIONS = []
CHANGES = [change_attribute, change_attribute, change_operator, change_wire, change_constant, change_input, append_node,
           put_into_if, put_into_function]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('target')
    p.add_argument('folder', nargs='?')
    p.add_argument('--count', type=int, default=2000)
    p.add_argument('--seed', type=int, default=int(os.environ.get('PIPED_TEST_SEED', '20260601'), 0))
    args = p.parse_args()
    models = load(args.folder) if args.folder else seeds()
    r = random.Random(args.seed)
    print(f'{len(models)} models, {args.count} mutants, seed {args.seed}', flush=True)
    with tempfile.TemporaryDirectory(prefix='piped-fuzz-') as folder:
        for i in range(args.count):
            model = onnx.ModelProto()
            model.CopyFrom(r.choice(models))
            FUNCTIONS.clear()
            for _ in range(r.randint(0, 3)):
                if model.graph.node:
                    r.choice(CHANGES)(r, model.graph, r.choice(model.graph.node), models)
            model.functions.extend(FUNCTIONS)
            with open(os.path.join(folder, f'{i}.onnx'), 'wb') as f:
                f.write(model.SerializeToString())
        return subprocess.run([os.path.abspath(args.target), '-n', '4000', folder], timeout=300).returncode


if __name__ == '__main__':
    code = main()
    sys.exit(1 if code else 0)
