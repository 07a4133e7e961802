# SPDX-License-Identifier: Apache-2.0
"""The systems that mix.py compares: the daemon, and ONNX Runtime in several ways. All are started, and serve in turns."""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, 'bench', 'peers')]
from ways import ALL, CPUS, Program, note, stop_daemon  # noqa: E402

LIBRARY = 'node_modules/onnxruntime-node/bin/napi-v6/linux/%s/libonnxruntime.so.1'
WISHES = ('rate', 'weight', 'class', 'deadline_ms', 'max_share')
FAILURES = (RuntimeError, OSError, ValueError, AssertionError)  # of a program that ended, hung or printed something else
SURE_S = 90.0
WARM_FROM = 0.2  # of a slice without a clock: what comes before is its start


class Model:
    """A model of the mix: its wishes, and where its files are."""

    def __init__(self, name, network, rate, deadline_ms, **wishes):
        self.name, self.network, self.rate, self.deadline_ms = name, network, rate, deadline_ms
        self.wishes = {'rate': rate, 'deadline_ms': deadline_ms, **wishes}
        self.path = None

    def at(self, rate, deadline_ms):
        """The same with other wishes."""
        other = Model(self.name, self.network, rate, deadline_ms)
        other.path = self.path
        return other

    def words(self):
        """As the clients' programs take it."""
        stem = self.path.replace('.onnx', '')
        with open(stem + '.json', encoding='utf-8') as f:
            shape = 'x'.join(str(n) for n in json.load(f)['input'])
        return [self.name, self.path, stem + '.input.f32', shape, str(self.deadline_ms)]

    def entry(self, wishes):
        """As the daemon's configuration has it."""
        stated = {k: v for k, v in self.wishes.items() if k in WISHES} if wishes else {}
        return {'name': self.name, 'path': self.path, **stated}


class System:
    """Clients in one program, with what they ask."""

    def __init__(self, name, command, models):
        self.name, self.models = name, models
        self.program = Program(command + [w for m in models for w in m.words()], ALL)
        try:
            self.program.wait()
        except BaseException:
            self.program.stop()
            raise

    def serve(self, seconds, seed, clock, factor=1.0, only=None):
        """A slice. only: the name of the model that alone gets frames. Return: [{latencies, refused, due}] of the models, with
        when each answer came, in seconds from the start."""
        rates = [m.rate * factor if only in (None, m.name) else 0 for m in self.models]
        self.program.tell('%g %d %d %s' % (seconds, seed, clock, ' '.join('%.6f' % r for r in rates)))
        told = self.program.hear()
        start = told['start']
        return [{'ms': [(b - a) / 1e6 for a, b in m['frames']], 'at': [(b - start) / 1e9 for _, b in m['frames']],
                 'start_ns': start, 'refused': m['refused']} for m in told['models']]

    def factor(self, seconds, seed, only=None):
        """The part of all wishes that a slice without a clock kept."""
        served = self.serve(seconds, seed, 0, only=only)
        count = sum(WARM_FROM * seconds < t <= seconds for m in served for t in m['at'])
        return count / (sum(m.rate for m in self.models if only in (None, m.name)) * (1 - WARM_FROM) * seconds)

    def stop(self):
        self.program.stop()


class Ort(System):
    """ONNX Runtime, by a way of mix_ort; "-calm" behind it: threads that wait do not spin."""

    def __init__(self, name, options, models):
        way = name.removeprefix('ort-')
        machine = {'x86_64': 'x64', 'aarch64': 'arm64'}.get(os.uname().machine, os.uname().machine)
        super().__init__(name, [
            os.path.join(options.build, 'bench', 'mix', 'mix_ort'), '--library', os.path.join(options.ort, LIBRARY % machine),
            '--way', way.removesuffix('-calm'), '--spin', '0' if way.endswith('-calm') else '1', '--cpus', ALL,
            '--limit', str(options.limit)], models)


class Piped(System):
    """The daemon; "piped-places": each core is an EP of its own."""

    def __init__(self, name, options, models):
        os.environ['PIPED_BUILD'] = options.build
        sys.path.insert(0, os.path.join(ROOT, 'tests', 'system'))
        from daemon import Daemon  # reads PIPED_BUILD
        eps = [{'name': 'core%d' % i, 'cpus': str(c)} for i, c in enumerate(CPUS)] if name == 'piped-places' else []
        # as it is installed: the daemon of a test neither adapts nor measures its kernels
        self.daemon = Daemon(config={'models': [m.entry(options.wishes) for m in models], 'eps': eps, 'adapt': {},
                                     'kernels': {'measure_ms': options.measure_ms}})
        try:
            self.daemon.start()
            os.environ['PIPED_RUNTIME_DIR'] = self.daemon.runtime_dir
            client = os.path.join(options.build, 'bench', 'mix', 'mix_piped')
            super().__init__(name, [client, '--limit', str(options.limit)], models)
        except BaseException:
            self.daemon.kill()
            self.daemon.cleanup()
            raise

    def be_sure(self):
        """Waits while it measures primitives again, of which it was not sure at the start; at most for so long."""
        end = time.monotonic() + SURE_S
        while time.monotonic() < end and any(of['unsure'] for m in self.models
                                             for u in self.daemon.call('Units', {'model': m.name})['units']
                                             for of in (u.get('chosen_by') or {}).values()):
            time.sleep(1)

    def problems(self):
        """The daemon's cost tables."""
        return [self.daemon.call('Costs', {'model': m.name})['problem'] for m in self.models]

    def ep_of(self, cpu):
        """Name of the EP that has this core."""
        return next(e['name'] for e in self.daemon.status()['eps'] if cpu in e['cpus'])

    def explained(self):
        """The bound that pipectl plan mix says of the wished rates."""
        return self.daemon.pipectl('plan', 'mix')['bound']

    def plans(self):
        return {m['name']: m['plan'] for m in self.daemon.status()['models']}

    def retune(self):
        """A search for each model, one after the other."""
        for m in self.models:
            with self.daemon.connect() as v:
                v.sock.settimeout(200)
                v.call('io.piped.Retune', {'model': m.name, 'algorithm': 'exact', 'seed': 1})

    def stop(self):
        super().stop()
        stop_daemon(self.daemon)


def start(options, names, models):
    """Return: the systems that can be started, in order; others with a message."""
    running = []
    for name in names:
        if name.startswith('ort-') and not options.ort:
            continue
        try:
            running.append((Piped if name.startswith('piped') else Ort)(name, options, models))
        except FAILURES as e:
            note('%s: %s' % (name, e))
    return running
