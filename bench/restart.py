#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long a streaming client waits when the daemon is restarted, killed, or upgraded.

usage: restart.py [--build DIR] [--runs N] [--pause-s S] [NETWORK...]

This program holds the listening sockets and starts the daemon, as systemd does. A client always has two frames
under way. For each network of model/networks (squeezenet1_1, resnet50 and vgg16 by default), N times each:

  none       nothing happens: what the client waits at most anyway
  restart    SIGTERM, and the daemon is started as soon as it has ended
  kill       SIGKILL, and it is started S seconds later (RestartSec= of piped.service)
  upgrade    as restart; the kept choice of primitives is of another version of piped
  first      as restart, but the choice of primitives is gone: what an upgrade would take if it measured first

Prints a JSON object for each: the client's longest wait for an answer, the time from the signal to the end of the
process, and from its start to READY=1; medians with minimum and maximum. A frame that is lost, reordered, doubled or
wrong ends the program.
"""
import argparse
import glob
import hashlib
import json
import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETWORKS = ('squeezenet1_1', 'resnet50', 'vgg16')
LIMIT_S = 120
FRAMES = 10  # that are answered before and after
BEFORE, AFTER = b',\n"checksum":"', b'"}\n'  # of a kept file: docs/reliability.md
PASS = 'export LISTEN_PID=$$; exec "$@" 3<&%d 4<&%d'


class Service:
    """The daemon and its sockets, until the block ends."""

    def __init__(self, build, path, folder):
        self.folder, self.process = folder, None
        self.env = dict(os.environ, PIPED_RUNTIME_DIR=folder, NOTIFY_SOCKET=os.path.join(folder, 'notify.sock'),
                        LISTEN_FDS='2', LISTEN_FDNAMES='frames:control')
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.env['NOTIFY_SOCKET'])
        self.sockets = []
        for name in ('frames', 'control'):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(os.path.join(folder, name + '.sock'))
            s.listen(128)
            self.sockets.append(s)
        self.fds = [s.fileno() for s in self.sockets]
        self.command = ['sh', '-c', PASS % tuple(self.fds), 'sh', os.path.join(build, 'daemon', 'piped'), '--model',
                        'net=' + path, '--runtime-dir', folder, '--state-dir', folder]
        self.client = [os.path.join(build, 'apps', 'pipectl', 'pipectl'), '--socket', os.path.join(folder, 'control.sock'),
                       '--json']

    def start(self):
        """Return: seconds to READY=1."""
        begun = time.monotonic()
        self.process = subprocess.Popen(self.command, env=self.env, stderr=subprocess.DEVNULL, pass_fds=self.fds)
        while True:
            if not select.select([self.notify], [], [], LIMIT_S)[0]:
                sys.exit('restart.py: the daemon did not become ready')
            if b'READY=1' in self.notify.recv(8192):
                return time.monotonic() - begun

    def end(self, number):
        """Return: seconds until the process is gone."""
        begun = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=LIMIT_S)
        return time.monotonic() - begun

    def answered(self):
        r = subprocess.run(self.client + ['status'], env=self.env, stdout=subprocess.PIPE, check=True)
        return json.loads(r.stdout)['models'][0]['frames']['answered']

    def wait_answers(self, count, client):
        wanted = self.answered() + count
        while self.answered() < wanted:
            if client.poll() is not None:
                sys.exit('restart.py: the client ended early')
            time.sleep(0.02)

    def choice(self):
        return glob.glob(os.path.join(self.folder, 'choice-*.json'))[0]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.end(signal.SIGTERM)
        for s in (self.notify, *self.sockets):
            s.close()


def of_another_version(path):
    with open(path, encoding='utf-8') as f:
        content = json.load(f)
    del content['checksum']
    content['table'] = '0.0-0'
    text = json.dumps(content, separators=(',', ':')).encode()[:-1]
    with open(path, 'wb') as f:
        f.write(text + BEFORE + hashlib.blake2b(text, digest_size=32).hexdigest().encode() + AFTER)


def happens(event, service, pause_s):
    """Return: seconds of the stop and of the start, or None."""
    if event == 'none':
        return None
    stop_s = service.end(signal.SIGKILL if event == 'kill' else signal.SIGTERM)
    if event == 'kill':
        time.sleep(pause_s)
    elif event == 'upgrade':
        of_another_version(service.choice())
    elif event == 'first':
        os.unlink(service.choice())
    return stop_s, service.start()


def run(event, service, args):
    """Return: the client's summary, with the daemon's times."""
    with subprocess.Popen(service.client + ['bench', '--seconds', '3600', '--in-flight', '2', '--verify'],
                          env=service.env, stdout=subprocess.PIPE) as client:
        service.wait_answers(FRAMES, client)
        times = happens(event, service, args.pause_s)
        service.wait_answers(FRAMES, client)
        client.send_signal(signal.SIGINT)
        summary = json.loads(client.communicate(timeout=LIMIT_S)[0])
    if client.returncode != 0:
        sys.exit('restart.py: %s: %s' % (event, summary))
    return dict(summary, stop_s=times[0] if times else 0, ready_s=times[1] if times else 0)


def spread(values):
    return {'median': round(statistics.median(values), 3), 'min': round(min(values), 3), 'max': round(max(values), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--pause-s', type=float, default=0.02)
    parser.add_argument('networks', nargs='*', default=NETWORKS)
    args = parser.parse_args()
    for name in args.networks:
        path = name if os.path.exists(name) else os.path.join(ROOT, 'model', 'networks', name + '.json')
        with tempfile.TemporaryDirectory() as folder, Service(args.build, path, folder) as service:
            for event in ('none', 'restart', 'kill', 'upgrade', 'first'):
                runs = [run(event, service, args) for _ in range(args.runs)]
                print(json.dumps({'network': name, 'event': event, 'frames': sum(r['sent'] for r in runs),
                                  'resent': sum(r['resent'] for r in runs),
                                  'wait_s': spread([r['pause_ms'] / 1e3 for r in runs]),
                                  'stop_s': spread([r['stop_s'] for r in runs]),
                                  'ready_s': spread([r['ready_s'] for r in runs])}), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
