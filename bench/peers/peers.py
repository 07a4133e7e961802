#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""piped beside ONNX Runtime, OpenCV and PyTorch on the same machine, networks and frames, interleaved.

usage: peers.py [--quick]                           all that follows; at most 30 minutes, or 3
       peers.py --throughput [NAME|FILE.onnx...]    two cores, each program as it is fastest
       peers.py --latency [NAME...]                 one frame at a time on one core
       peers.py --slowed [NAME...]                  two cores, the second slowed 3 times by a competing program
       peers.py --int8 NAME|FILE.onnx [...]         quantised networks: both of the first two
       peers.py --report [--plot FILE.svg]          what is in the file of results
       peers.py --before BUILD [NAME...]           no peers: this build against an older one, f32, two cores and one
       common: [--results FILE.json] [--rounds N] [--slice S] [--budget S] [--ways NAME,...] [--models DIR] [--build DIR]
               [--in-flight N] [--factor F] [--cpu C] [--frames N] [--measure-ms MS] [--no-install]

On a bare Debian it installs what is missing (etc/install-deps bench; npm's onnxruntime-node into $XDG_CACHE_HOME/piped-bench),
builds piped, and writes the networks that it needs into models/ or, without that folder, into $XDG_CACHE_HOME/piped-bench. --budget
is for what comes after installing and building. A peer that cannot be had is named as absent. Results are kept in FILE.json
(peers.json) with a page FILE.html and tables FILE.md beside it. Exit code: 0 if piped and at least one peer were measured for
every network asked for, otherwise 1. --slowed is left out without the right to a real-time priority.

All programs of a network are loaded at once and take turns, a slice of time or a frame each, so that whatever the machine
does meanwhile hits all alike. Printed and kept are medians over the rounds; ratios are medians of the ratios of the same
round. A peer's way that its first slice shows far behind the peer's best way gets no rounds. The ways:
  piped           the daemon as it starts, a client that streams through shared memory
  piped-adapting  the same with adapt.enabled
  piped-places    the same with each core a place of its own
  kernels         two processes with piped's kernels, no daemon, one core each
  kernels-team    one process with piped's kernels, its two threads
  ort-queue, opencv-queue, torch-queue        two one-threaded sessions, one pinned to each core; each takes the next frame
                                              when it is free
  ort-sessions                                the same in one process, not pinned
  ort-threads, opencv-threads, torch-threads  one session with its own two threads
  ort-queue@N, ort-threads@N                  N frames in each run (2, 4, 8)
  piped-before, kernels-before                with --before: those of an older build; it needs daemon/piped and bench/net_bench
A frame's latency is from when it was taken (by piped: submitted) to when it can be given out in order.
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import budget  # noqa: E402
import measure  # noqa: E402
import page  # noqa: E402
import prepare  # noqa: E402
import table  # noqa: E402
from machine import machine  # noqa: E402
from names import BEFORE  # noqa: E402
from ways import CPUS, ROOT, note  # noqa: E402

NETWORKS = ['squeezenet1_1', 'mobilenet_v1', 'mobilenet_v2', 'resnet50', 'alexnet', 'googlenet', 'yolov3_tiny', 'vgg16', 'yolov3']
INT8 = ['squeezenet1_1', 'mobilenet_v1', 'mobilenet_v2', 'resnet50', 'alexnet', 'googlenet', 'vgg16']
SLOWED = ['squeezenet1_1', 'mobilenet_v1', 'mobilenet_v2', 'resnet50']
QUICK = {'f32': ['squeezenet1_1', 'mobilenet_v1', 'resnet50'], 'int8': ['mobilenet_v1'], 'slowed': []}
BUDGET_S, QUICK_BUDGET_S = 1800, 180
MEASURE_MS, QUICK_MEASURE_MS = 4000, 1500
RESERVE = 0.05  # of the budget, for a job that takes longer than its share


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--quick', action='store_true', help='three networks, at most 3 minutes')
    parser.add_argument('--throughput', action='store_true')
    parser.add_argument('--latency', action='store_true')
    parser.add_argument('--slowed', action='store_true')
    parser.add_argument('--int8', action='append', default=[])
    parser.add_argument('--input', help='NAME.input.f32 with NAME.json beside it, if not those of the model')
    parser.add_argument('--report', action='store_true')
    parser.add_argument('--plot')
    parser.add_argument('--results', default='peers.json')
    parser.add_argument('--models')
    parser.add_argument('--build', help='a folder that is built already')
    parser.add_argument('--before', help='a folder in which an older commit is built')
    parser.add_argument('--rounds', type=int, default=7, help='at most')
    parser.add_argument('--frames', type=int, default=25, help='rounds of --latency, at most')
    parser.add_argument('--slice', type=float, default=1.2, help='seconds, at least')
    parser.add_argument('--budget', type=float, help='seconds for all jobs')
    parser.add_argument('--measure-ms', type=int, help="for choosing kernels; by default the daemon's 4000, with --quick 1500")
    parser.add_argument('--ways', type=lambda s: s.split(','))
    parser.add_argument('--no-install', dest='install', action='store_false')
    parser.add_argument('--in-flight', type=int, default=0)
    parser.add_argument('--factor', type=float, default=3.0)
    parser.add_argument('--cpu', type=int, default=CPUS[-1])
    parser.add_argument('names', nargs='*')
    options = parser.parse_args(argv)
    options.budget = options.budget or (QUICK_BUDGET_S if options.quick else BUDGET_S)
    if options.quick:
        options.slice = min(options.slice, 0.6)
    if options.measure_ms is None:
        options.measure_ms = QUICK_MEASURE_MS if options.quick else MEASURE_MS
    if options.before:
        options.before = os.path.abspath(options.before)
        options.throughput = options.latency = True
        options.ways = options.ways or ['piped', 'piped' + BEFORE, 'kernels', 'kernels' + BEFORE]
    if not options.models:
        beside = os.path.join(ROOT, 'models')
        options.models = beside if os.path.isdir(beside) else os.path.join(prepare.CACHE, 'models')
    return options


def jobs_of(options):
    """[(key, name, what of it)] in the order in which they run: what matters most comes first."""
    what = [w for w in ('throughput', 'latency') if getattr(options, w)]
    everything = not (what or options.slowed or options.int8)
    sets = QUICK if options.quick else {'f32': NETWORKS, 'int8': INT8, 'slowed': SLOWED}
    both = ['throughput', 'latency']
    jobs = [('f32', n, what or both) for n in options.names or sets['f32']] if what or everything else []
    jobs += [('int8', n, both) for n in options.int8 or ([] if not everything or options.names else sets['int8'])]
    if options.slowed or everything:
        jobs += [('slowed', n, ['slowed']) for n in options.names or (SLOWED if options.slowed else sets['slowed'])]
    return jobs


def keys_of(job):
    """Where the job's results belong."""
    kind, _, what = job
    return [('int8-' if kind == 'int8' else '') + w for w in what]


def name_of(job):
    name = os.path.basename(job[1]).replace('.onnx', '')
    return name + '_int8' if job[0] == 'int8' and not job[1].endswith('.onnx') else name


def run(options, job, end, left_s):
    """Measures a network until `end`; writing it may take up to what is left of the run. Return: {what: {way: figures}}; empty,
    with a message: it could not be."""
    kind, name, what = job
    model = name if name.endswith('.onnx') else prepare.network(options, name, kind == 'int8', left_s)
    if not model or not os.path.exists(model):
        note(f'{name}: there is no such network')
        return {}
    inputs = options.input or model.replace('.onnx', '.input.f32')
    inputs = inputs if os.path.exists(inputs) else None
    if kind == 'slowed':
        return measure.slowed(options, model, inputs, end)
    return measure.two_cores(options, model, inputs, what, end)


def commit():
    try:
        done = subprocess.run(['git', '-C', ROOT, 'describe', '--always', '--dirty', '--abbrev=7'], capture_output=True,
                              text=True, check=False)
    except FileNotFoundError:  # no git here
        return 'unknown'
    return done.stdout.strip() or 'unknown'


def measure_all(options, results, jobs):
    """Runs the jobs within the budget. Return: what is missing, as lines."""
    begun, missing = time.monotonic(), []
    results['left_out'] = []
    if any(j[0] == 'slowed' for j in jobs) and not prepare.may_slow_cores():
        results['left_out'].append('With one core slowed: left out, real-time priority is not permitted here')
        note(results['left_out'][-1])
        jobs = [j for j in jobs if j[0] != 'slowed']
    about = {'commit': commit(), 'command': ' '.join(['bench/peers/peers.py'] + sys.argv[1:]), 'load': machine()['load']}
    for i, job in enumerate(jobs):
        left_s = begun + options.budget - time.monotonic()
        reserve_s = RESERVE * options.budget
        out = {}
        if budget.is_over(left_s, reserve_s):
            note(f'{name_of(job)}: no time is left')
        else:
            end = time.monotonic() + budget.share(left_s - reserve_s, len(jobs) - i)
            try:
                out = run(options, job, end, left_s - reserve_s)
            except measure.FAILURES as e:
                note(f'{name_of(job)}: {e}')
        if out.get('skipped'):
            results['left_out'].append(f'{name_of(job)}: no time for {", ".join(out["skipped"])}')
            note(results['left_out'][-1])
        for key, what in zip(keys_of(job), job[2]):
            rows = out.get(what, {})
            if not measure.complete(rows, options.ways):
                missing.append(f'{name_of(job)}, {key}: ' + ('only ' + ', '.join(rows) if rows else 'not measured'))
            if rows:
                # ways that were not run now stay as they were
                results.setdefault(key, {}).setdefault(name_of(job), {}).update(rows)
                print('\n'.join(table.one(key, name_of(job), rows)), flush=True)
        results['machine'] = machine()
        prepare.keep(options, results)
    results['left_out'] += missing
    results['runs'] = results.get('runs', []) + [{**about, 'seconds': round(time.monotonic() - begun)}]
    prepare.keep(options, results)
    return missing if jobs else ['nothing was measured']


def show(options, results):
    """The tables, and the page and file of tables beside the results."""
    lines = table.report(results)
    print('\n' + '\n'.join(lines), flush=True)
    stem = os.path.splitext(options.results)[0]
    with open(stem + '.md', 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')
    if prepare.page(options.build or os.path.join(ROOT, 'build'), page.description(results), stem + '.html'):
        print(f'\n{stem}.html, {stem}.md, {options.results}', flush=True)
    if options.plot and results.get('throughput'):
        page.plot(results, options.plot)


def main():
    options = arguments()
    results = prepare.kept(options)
    missing = []
    if not options.report:
        if options.install:
            prepare.packages()
        results['peers'] = prepare.peers(options)
        options.build = options.build or prepare.build(options.install)
        if not options.build:
            return 1
        missing = measure_all(options, results, jobs_of(options))
    show(options, results)
    for line in missing:
        note('missing: ' + line)
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main())
