#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped beside ONNX Runtime and OpenCV on the same machine, networks and frames, interleaved.

usage: peers.py --throughput [NAME|FILE.onnx...]    two cores, each program as it is fastest
       peers.py --latency [NAME...]                 one frame at a time on one core
       peers.py --slowed [NAME...]                  two cores, the second slowed 3 times by a competing program
       peers.py --int8 FILE.onnx [...]              quantised networks: both of the first two
       peers.py --report [--plot FILE.svg]          what is in the file of results
       common: [--results FILE.json] [--rounds N] [--slice S] [--budget S] [--ways NAME,...] [--models DIR] [--build DIR]
               [--in-flight N] [--factor F] [--cpu C] [--frames N] [--measure-ms MS] [--no-install]

All programs of a network are loaded at once and take turns, a slice of time or a frame each, so that whatever the machine
does meanwhile hits all alike. Printed and kept are medians over the rounds; ratios are medians of the ratios of the same
round. The ways:
  piped           the daemon as it starts, a client that streams through shared memory
  piped-adapting  the same with adapt.enabled
  piped-places    the same with each core a place of its own
  kernels         two processes with piped's kernels, no daemon, one core each
  kernels-team    one process with piped's kernels, its two threads
  ort-queue, opencv-queue      two one-threaded sessions, one pinned to each core; each takes the next frame when it is free
  ort-sessions                 the same in one process, not pinned
  ort-threads, opencv-threads  one session with its own two threads
A frame's latency is from when it was taken (by piped: submitted) to when it can be given out in order. ONNX Runtime comes
from the npm package onnxruntime-node, installed on first use into $XDG_CACHE_HOME/piped-bench; a peer that is not there is
left out with a message. Networks are written by bench/models.py, quantised ones by bench/models_int8.py.
--slowed wants root, for a real-time priority.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import table  # noqa: E402
from machine import machine  # noqa: E402
from ways import CPUS, ROOT, Slowed, Way, has_opencv, in_order, note, ort_dir, rate, ways  # noqa: E402

NETWORKS = ['resnet50', 'mobilenet_v1', 'mobilenet_v2', 'squeezenet1_1', 'alexnet', 'googlenet', 'vgg16', 'yolov3_tiny',
            'yolov3']
THROUGHPUT = ['piped', 'kernels', 'ort-queue', 'ort-threads', 'opencv-queue', 'opencv-threads']
SLOWED = ['piped', 'piped-adapting', 'piped-places', 'ort-queue', 'ort-sessions', 'ort-threads']
FRAMES = 10  # that a slice should hold at least
SLICE_MAX_S = 6.0
ADAPT_S = 12.0  # under load before anything counts, where plans may follow


def start(options, model, inputs, names):
    """Those of the ways that can be started."""
    running = []
    for name, begin in ways(options, model, inputs, names).items():
        try:
            running.append(begin())
        except (RuntimeError, OSError, AssertionError) as e:
            note(f'{name} on {os.path.basename(model)}: {e}')
    return running


def stop(running):
    for way in running:
        way.stop()


def take_turns(running, rounds, turn, end):
    """turn(way) of everybody in each round; whoever comes first after the others finds colder caches, so it rotates."""
    results = {w.name: [] for w in running}
    for i in range(rounds):
        if i > 1 and time.monotonic() > end:
            break
        for k in range(len(running)):
            way = running[(i + k) % len(running)]
            results[way.name].append(turn(way))
    return results


def slices(options, running):
    """One slice of each way that is thrown away, then rounds of slices: {way: [frames of a slice]}, seconds of a slice."""
    seconds = options.slice
    for way in running:
        value = rate(way.slice(options.slice), options.slice, 2) or 1
        if way.name.startswith(('piped', 'ort')):
            seconds = max(seconds, FRAMES / value)
    seconds = min(seconds, SLICE_MAX_S)
    return take_turns(running, options.rounds, lambda w: w.slice(seconds), options.end), seconds


def summary(name, taken, seconds):
    lead = 4 if name.startswith('piped') else 2
    fps = [rate(frames, seconds, lead) for frames in taken]
    delays = sorted((end - begin) / 1e6 for frames in taken for begin, end in in_order(frames))
    # an answer less is no failure of the round: it has to stay in step with the others
    return {'fps': [round(f, 3) if f else None for f in fps], 'median_fps': median(fps), 'frames': len(delays),
            'p50_ms': round(table.percentile(delays, 0.5), 3), 'p99_ms': round(table.percentile(delays, 0.99), 3)}


def median(values):
    values = [v for v in values if v]
    return round(statistics.median(values), 3) if values else None


def in_turns(options, running):
    """Slices of all in turns: what each gave, by name, and the plan where there is one."""
    taken, seconds = slices(options, running)
    out = {w.name: summary(w.name, taken[w.name], seconds) for w in running}
    for w in running:
        if hasattr(w, 'plan'):
            out[w.name]['plan'] = w.plan()
    return out


def throughput(options, model, inputs):
    running = start(options, model, inputs, options.ways or THROUGHPUT)
    try:
        return in_turns(options, running)
    finally:
        stop(running)


def slowed(options, model, inputs):
    running = start(options, model, inputs, options.ways or SLOWED)
    try:
        with Slowed(options.build, CPUS[-1], options.factor):
            for way in running:
                if way.name == 'piped-places':
                    way.retune()
                elif way.name == 'piped-adapting':
                    way.slice(ADAPT_S)
            return in_turns(options, running)
    finally:
        stop(running)


def latency(options, model, inputs):
    known = ways(options, model, inputs)
    running = []
    for name, one in (('piped', 'kernels'), ('ort', 'ort-queue'), ('opencv', 'opencv-queue')):
        if one not in known:
            continue
        try:
            with on_one_core(options.cpu):
                running.append(known[one]())
            running[-1].name = name
        except (RuntimeError, OSError) as e:
            note(f'{name} on {os.path.basename(model)}: {e}')
    try:
        taken = take_turns(running, options.frames, Way.frame_ms, options.end)
    finally:
        stop(running)
    return {name: {'median_ms': round(statistics.median(ms), 3), 'p10_ms': round(table.percentile(sorted(ms), 0.1), 3),
                   'p90_ms': round(table.percentile(sorted(ms), 0.9), 3), 'ms': [round(v, 3) for v in ms]}
            for name, ms in taken.items()}


@contextlib.contextmanager
def on_one_core(cpu):
    """Within it, a way of one program a core is one program on that core."""
    import ways as module
    kept, module.CPUS = module.CPUS, [cpu]
    try:
        yield
    finally:
        module.CPUS = kept


MEASURES = {'throughput': throughput, 'slowed': slowed, 'latency': latency}


def run(options, results, what, key, model):
    inputs = options.input or model.replace('.onnx', '.input.f32')
    inputs = inputs if os.path.exists(inputs) else None
    options.end = time.monotonic() + options.budget
    name = os.path.basename(model).replace('.onnx', '')
    out = MEASURES[what](options, model, inputs)
    if not any(n.startswith('piped') for n in out):
        note(f'piped did not serve {name}: no result')
        return
    results['machine'] = machine()
    # ways that were not run now stay as they were
    results.setdefault(key, {}).setdefault(name, {}).update(out)
    with open(options.results, 'w', encoding='utf-8') as f:
        json.dump(results, f, indent=1)
    print('\n'.join(table.one(what, name, out)), flush=True)


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--throughput', action='store_true')
    parser.add_argument('--latency', action='store_true')
    parser.add_argument('--slowed', action='store_true')
    parser.add_argument('--int8', action='append', default=[])
    parser.add_argument('--input', help='NAME.input.f32 with NAME.json beside it, if not those of the model')
    parser.add_argument('--report', action='store_true')
    parser.add_argument('--plot')
    parser.add_argument('--results', default='peers.json')
    parser.add_argument('--models', default=os.path.join(ROOT, 'models'))
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--frames', type=int, default=25, help='rounds of --latency')
    parser.add_argument('--slice', type=float, default=1.5)
    parser.add_argument('--budget', type=float, default=100, help='seconds after which no round begins, from the third on')
    parser.add_argument('--measure-ms', type=int, default=4000, help="for choosing kernels; the daemon's default")
    parser.add_argument('--ways', type=lambda s: s.split(','))
    parser.add_argument('--no-install', dest='install', action='store_false')
    parser.add_argument('--in-flight', type=int, default=0)
    parser.add_argument('--factor', type=float, default=3.0)
    parser.add_argument('--cpu', type=int, default=CPUS[-1])
    parser.add_argument('names', nargs='*')
    options = parser.parse_args(argv)
    if not (options.throughput or options.latency or options.slowed or options.int8 or options.report):
        parser.error('one of --throughput, --latency, --slowed, --int8, --report')
    return options


def path_of(options, name):
    return name if name.endswith('.onnx') else os.path.join(options.models, name + '.onnx')


def main():
    options = arguments()
    results = {}
    if os.path.exists(options.results):
        with open(options.results, encoding='utf-8') as f:
            results = json.load(f)
    jobs = [(what, what, path_of(options, name)) for what in ('throughput', 'latency', 'slowed') if getattr(options, what)
            for name in options.names or NETWORKS]
    jobs += [(what, 'int8-' + what, path) for path in options.int8 for what in ('throughput', 'latency')]
    options.ort, options.opencv = (ort_dir(options.install), has_opencv()) if jobs else (None, False)
    for what, key, model in jobs:
        if not os.path.exists(model):
            note(f'{model} is not there: bench/models.py writes it')
            continue
        run(options, results, what, key, model)
    if options.report:
        print('\n'.join(table.report(results)))
        if options.plot:
            table.plot(results, options.plot)
    return 0 if results else 77


if __name__ == '__main__':
    sys.exit(main())
