#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several models at once, by piped and by ONNX Runtime, in turns: which part of their wishes they can keep, and what is late.

usage: mix.py [--results FILE.json] [--conditions equal,slowed] [--ways NAME,...] [--rounds N] [--slice S] [--level PART]
              [--wishes] [--bound] [--alone] [--factor F] [--limit N] [--mix FILE.json] [--models DIR] [--build DIR]
              [--measure-ms MS] [--no-install] [--quick]
       mix.py --single [NETWORK...] [common options]    one model on a slowed core, at the rate that ONNX Runtime can just hold,
                                                        to be done in half of its p99
       mix.py --steady MINUTES [--at FACTOR] [common options]      the mix for long, with what the kernel took meanwhile
       mix.py --report [--results FILE.json]

The mix has six networks of bench/networks.py with a rate and a deadline each, or those of FILE: a list of {"name", "network",
"rate", "deadline_ms"}, with "weight", "class" and "max_share" where they are stated. Every system serves all of them:
  piped              the daemon as it is installed
  piped-places       the same with each core an EP of its own, and a search for each model at first
  ort-pools          ONNX Runtime: a session a model, each with the pool that it makes by default
  ort-pinned         a session of one thread for each model and core; a frame goes to whichever is free
  ort-shared         a session a model; one pool for all
  ort-deadline       as pinned, but a core takes the frame with the earliest deadline next: more than its users have
  ort-pools-calm, ort-shared-calm    threads of pools that wait do not spin
Rounds are slices of every system, by turns. First without a clock: clients send the frames of all models by the same part of
their rates, as fast as they are answered; that part is the factor that a system can hold. Then with a clock: every frame is due at
its time and counts from then, at PART of the factor of the best peer ("common") and of the system's own ("own"). A frame that is
late, or refused because --limit others wait, is a miss. "slowed": a competing program leaves 1/F of the last core.
--wishes writes rate, deadline_ms and what else is stated into the daemon's configuration. --bound adds what pipectl plan mix
says of the wishes, if they were written, to the bound by the cost tables. --steady also counts how long threads of the daemon
that could run had to wait for a core, and what the machine's host took. --alone adds each model of piped alone at the common
level.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, 'bench', folder) for folder in ('mix', 'peers')]
import bound  # noqa: E402
import kernel  # noqa: E402
import prepare  # noqa: E402
import tables  # noqa: E402
from machine import machine  # noqa: E402
from systems import FAILURES, Model, Piped, start  # noqa: E402
from ways import CPUS, Slowed, note  # noqa: E402

MIX = [
    Model('detector', 'yolov3_tiny', 20, 100),
    Model('classifier', 'mobilenet_v2', 30, 66),
    Model('segmentation', 'lraspp', 20, 100),
    Model('text_detection', 'text_detector', 15, 133),
    Model('text_recognition', 'text_reader', 60, 50),
    Model('wake_word', 'wake_word', 50, 20, **{'class': 1}),
]
SINGLE = ['squeezenet1_1', 'mobilenet_v1', 'mobilenet_v2', 'resnet50']
WAYS = {'equal': ['piped', 'ort-pools', 'ort-pinned', 'ort-shared', 'ort-deadline', 'ort-pools-calm', 'ort-shared-calm'],
        'slowed': ['piped', 'piped-places', 'ort-pools', 'ort-pinned', 'ort-shared', 'ort-deadline']}
SINGLE_WAYS = ['piped', 'ort-pinned']
SOONER = 0.5  # of a p99: the deadline of --single
STEADY_S = 30.0  # of a slice of --steady
SETTLE_S = 6.0  # without a clock, before anything counts: adaptation may follow
HOLD_STEP, HOLD_LEAST = 0.97, 0.5
HOLD_GROWTH = 2.0  # of the median latency of a slice's last frames over that of its first half: above, a queue grows


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--results', default='mix.json')
    p.add_argument('--conditions', default='equal,slowed', type=lambda s: s.split(','))
    p.add_argument('--ways', type=lambda s: s.split(','))
    p.add_argument('--rounds', type=int, default=5)
    p.add_argument('--slice', type=float, default=5.0, help='seconds')
    p.add_argument('--level', type=float, default=0.9)
    p.add_argument('--wishes', action='store_true')
    p.add_argument('--bound', action='store_true')
    p.add_argument('--alone', action='store_true')
    p.add_argument('--single', action='store_true')
    p.add_argument('--steady', type=float, help='minutes')
    p.add_argument('--at', type=float, help="--steady: the part of all wishes; by default --level of the system's factor")
    p.add_argument('--report', action='store_true')
    p.add_argument('--factor', type=float, default=3.0)
    p.add_argument('--limit', type=int, default=8, help='frames of a model that wait or are computed, at most')
    p.add_argument('--mix', help='a file with other models and wishes')
    p.add_argument('--models', help='where the networks are')
    p.add_argument('--build', help='a folder that is built already')
    p.add_argument('--measure-ms', type=int, default=4000, help="for choosing kernels, as the daemon's default")
    p.add_argument('--no-install', dest='install', action='store_false')
    p.add_argument('--quick', action='store_true', help='one round of short slices')
    p.add_argument('networks', nargs='*')
    options = p.parse_args()
    if options.quick:
        options.rounds, options.slice, options.measure_ms = 1, 2.0, 1000
    beside = os.path.join(ROOT, 'models')
    options.models = options.models or (beside if os.path.isdir(beside) else os.path.join(prepare.CACHE, 'models'))
    return options


def read_mix(options):
    if not options.mix:
        return MIX
    with open(options.mix, encoding='utf-8') as f:
        return [Model(**m) for m in json.load(f)]


def find(options, models):
    """Their files, written where they are missing."""
    missing = [m.network for m in models if not os.path.exists(os.path.join(options.models, m.network + '.onnx'))]
    if missing:
        subprocess.run(['/usr/bin/python3', os.path.join(ROOT, 'bench', 'models.py'), '--out', options.models, *missing],
                       check=True)
    for m in models:
        m.path = os.path.join(options.models, m.network + '.onnx')


def in_turns(systems, rounds, turn, those=None):
    """turn(system, round) of everybody, or of those, in each round; the first of a round is another one each time. One that fails
    is stopped and left out from then on. Return: {name: [results]}."""
    those = list(systems if those is None else those)
    out = {s.name: [] for s in those}
    for r in range(rounds):
        for s in those[r % len(those):] + those[:r % len(those)]:
            try:
                out[s.name].append(turn(s, r))
            except FAILURES as e:
                note('%s: %s' % (s.name, e))
                s.stop()
                systems.remove(s)
        those = [s for s in those if s in systems]
    return {s.name: out[s.name] for s in those}


def best_peer(factors):
    """The factor to which levels refer: that of ONNX Runtime's best way or, without it, the worst of all."""
    medians = {name: statistics.median(f) for name, f in factors.items()}
    return max((f for name, f in medians.items() if name.startswith('ort-')), default=min(medians.values()))


def bounds(options, systems, models, slowed):
    out = {}
    for s in [s for s in systems if isinstance(s, Piped)]:
        lost = {s.ep_of(CPUS[-1]): 1 - 1 / options.factor} if slowed else {}
        out[s.name] = {'tables': bound.bound(s.problems(), [m.rate for m in models], lost)}
        if options.bound:
            out[s.name]['explained'] = s.explained() if options.wishes else None
    return out


def longest_others(models, problems):
    """{model: milliseconds of the longest unit of the others}: the least that a frame of the first class may have to wait."""
    longest = [1e3 * max(max(unit.values()) for unit in bound.seconds_of_units(p)) for p in problems]
    return {m.name: round(max([ms for k, ms in enumerate(longest) if k != i], default=0), 3) for i, m in enumerate(models)}


def settle(options, systems, slowed):
    for s in systems:
        if isinstance(s, Piped):
            s.be_sure()
        if s.name == 'piped-places':
            s.retune()
        s.serve(min(SETTLE_S, 3 * options.slice) if slowed and isinstance(s, Piped) else 0.5, 1, 0)


def measure(options, models, systems, slowed):
    """The mix under one condition."""
    settle(options, systems, slowed)
    alone = in_turns(systems, 1, lambda s, r: {m.name: m.rate * s.factor(options.slice / 2, r, m.name) for m in models})
    out = {'alone_fps': {name: a[0] for name, a in alone.items()},
           'factor': in_turns(systems, options.rounds, lambda s, r: s.factor(options.slice, 10 + r))}
    out['bound'] = bounds(options, systems, models, slowed)
    out['levels'] = {}
    common = options.level * best_peer(out['factor'])
    own = {name: options.level * statistics.median(f) for name, f in out['factor'].items()}
    for level, factor_of in (('common', lambda s: common), ('own', lambda s: own[s.name])):
        served = in_turns(systems, options.rounds, lambda s, r: s.serve(options.slice, 100 + r, 1, factor_of(s)))
        out['levels'][level] = {s.name: {'factor': factor_of(s), **tables.figures(models, served[s.name], options.slice)}
                                for s in systems}
    if options.alone:
        served = in_turns(systems, options.rounds, lambda s, r: [
            s.serve(options.slice, 100 + r, 1, common, m.name)[i] for i, m in enumerate(models)],
            [s for s in systems if isinstance(s, Piped)])
        out['alone'] = {name: tables.figures(models, rounds, options.slice) for name, rounds in served.items()}
        out['longest_ms'] = {s.name: longest_others(models, s.problems()) for s in systems if isinstance(s, Piped)}
    out['plans'] = {s.name: s.plans() for s in systems if isinstance(s, Piped)}
    return out


def under(options, models, names, slowed, what):
    """what(systems) while all run, and one core is slowed if that is wanted."""
    systems = start(options, names, models)
    if not any(s.name.startswith(names[0]) for s in systems):
        sys.exit('mix.py: %s could not be started' % names[0])
    try:
        if not slowed:
            return what(systems)
        with Slowed(options.build, CPUS[-1], options.factor):
            return what(systems)
    finally:
        for s in systems:
            s.stop()


def holds(system, options, factor, seed):
    """Whether a rate is held: no frame is refused, and no queue grows."""
    served, = system.serve(options.slice, seed, 1, factor)
    ms = served['ms']
    return not served['refused'] and len(ms) >= 10 and (
        statistics.median(ms[-len(ms) // 5:]) <= HOLD_GROWTH * statistics.median(ms[:len(ms) // 2]))


def just_held(options, system):
    """The largest factor that a system holds in one of two slices, from what it does without a clock downwards; its p99."""
    fastest = max(system.factor(options.slice, r) for r in range(2))
    factor = fastest
    while factor > HOLD_LEAST * fastest and not any(holds(system, options, factor, seed) for seed in (1, 2)):
        factor *= HOLD_STEP
    served = [system.serve(options.slice, 100 + r, 1, factor)[0]['ms'] for r in range(options.rounds)]
    return factor, statistics.median(tables.percentile(ms, 0.99) for ms in served)


def measure_single(options, models, systems):
    """One model at its rate, on cores of which one is slow."""
    settle(options, systems, True)
    served = in_turns(systems, options.rounds, lambda s, r: s.serve(options.slice, 100 + r, 1))
    return {'plans': {s.name: s.plans() for s in systems if isinstance(s, Piped)},
            **{s.name: tables.figures(models, served[s.name], options.slice) for s in systems}}


def run_single(options, results):
    """At the rate that two sessions just hold; the daemon is to be as much sooner as it aims at."""
    reference = 'ort-pinned' if options.ort else 'piped'
    for network in options.networks or SINGLE:
        model = Model('net', network, 1.0, 1000.0)
        find(options, [model])
        fps, p99 = under(options, [model], [reference], True, lambda systems: just_held(options, systems[0]))
        model = model.at(fps, SOONER * p99)
        of = under(options, [model], options.ways or SINGLE_WAYS, True, lambda systems: measure_single(options, [model], systems))
        results.setdefault('single', {})[network] = {'fps': fps, 'held_by': reference, 'deadline_ms': model.deadline_ms, **of}
        prepare.keep(options, results)


def run_mix(options, results):
    models = read_mix(options)
    find(options, models)
    results['mix'] = [{'name': m.name, 'network': m.network, **m.wishes} for m in models]
    for condition in options.conditions:
        slowed = condition == 'slowed'
        results[condition] = under(options, models, options.ways or WAYS[condition], slowed,
                                   lambda systems: measure(options, models, systems, slowed))
        prepare.keep(options, results)


def not_taken(looks, model, served):
    """Milliseconds by which frames were late, of those that would have been late had the kernel taken nothing meanwhile."""
    late = []
    for ms, at in zip(served['ms'], served['at']):
        done_ns = served['start_ns'] + at * 1e9
        over = ms - model.deadline_ms
        if over > 0 and over > looks.taken_ms(done_ns - ms * 1e6, done_ns):
            late.append(round(over, 2))
    return late


def measure_steady(options, models, system, slowed):
    settle(options, [system], slowed)
    factor = options.at or options.level * statistics.median(system.factor(options.slice, r) for r in range(3))
    served, took = [], []
    for i in range(max(1, round(60 * options.steady / STEADY_S))):
        stolen, looks = kernel.stolen_ms(), kernel.Looks(system.daemon.process.pid)
        served.append(system.serve(STEADY_S, 1000 + i, 1, factor))
        looks.end()
        took.append({'wait_ms': round(looks.all_ms(), 1), 'stolen_ms': round(kernel.stolen_ms() - stolen, 1),
                     'late_ms': {m.name: late for m, of in zip(models, served[-1]) if (late := not_taken(looks, m, of))}})
    return {'factor': factor, 'slice_s': STEADY_S, 'taken': took, 'plans': system.plans(),
            **tables.figures(models, served, STEADY_S)}


def run_steady(options, results):
    models = read_mix(options)
    find(options, models)
    for condition in options.conditions:
        slowed = condition == 'slowed'
        results.setdefault('steady', {})[condition] = under(
            options, models, (options.ways or ['piped'])[:1], slowed,
            lambda systems: measure_steady(options, models, systems[0], slowed))
        prepare.keep(options, results)


def main():
    options = arguments()
    results = prepare.kept(options)
    if not options.report:
        if (options.single or 'slowed' in options.conditions) and not prepare.may_slow_cores():
            note('with one core slowed: left out, real-time priority is not permitted here')
            options.conditions = [c for c in options.conditions if c != 'slowed']
            if options.single:
                return 1
        options.ort = prepare.ort_dir(options.install)
        options.build = os.path.abspath(options.build or os.path.join(ROOT, 'build'))
        results['machine'] = machine()
        results['run'] = {'rounds': options.rounds, 'slice_s': options.slice, 'level': options.level, 'slowed': options.factor,
                          'limit': options.limit, 'wishes': options.wishes}
        (run_single if options.single else run_steady if options.steady else run_mix)(options, results)
    print('\n'.join(tables.report(results)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
