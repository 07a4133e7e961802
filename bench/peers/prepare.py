# SPDX-License-Identifier: Apache-2.0
"""What a run of bench/peers needs: packages, ONNX Runtime, a build of piped, the networks. What is there is not made again."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from names import PEERS
from ways import ROOT, note

CACHE = os.path.join(os.environ.get('XDG_CACHE_HOME', os.path.expanduser('~/.cache')), 'piped-bench')
INSTALL = os.path.join(ROOT, 'etc', 'install-deps')
PYTHON = '/usr/bin/python3'
ORT_VERSION = '1'
BUILD_BESIDE = os.path.join(ROOT, 'build-bench')
TARGETS = ['daemon/piped', 'bench/stream_bench', 'bench/net_bench', 'bench/quantise_bench', 'bench/page_of',
           'tests/system/slow_core']
MODULES = {'opencv': ('cv2', 'python3-opencv'), 'torch': ('torch', 'python3-torch')}


def last_line(text):
    return (text.strip().split('\n') or [''])[-1]


def ort_dir(install=True):
    """Folder with onnxruntime-node, which is installed there if that is allowed; or None with a message."""
    cache = os.path.join(CACHE, 'onnxruntime')
    if os.path.isdir(os.path.join(cache, 'node_modules', 'onnxruntime-node')) and shutil.which('node'):
        return cache
    if not install or not shutil.which('npm') or not shutil.which('node'):
        note('no ONNX Runtime: it is not installed' + (', nor are npm and node' if install else ''))
        return None
    os.makedirs(cache, exist_ok=True)
    note(f'installing onnxruntime-node into {cache}')
    done = subprocess.run(['npm', 'install', '--no-fund', '--no-audit', '--prefix', cache,
                           f'onnxruntime-node@{ORT_VERSION}'], capture_output=True, text=True,
                          env=dict(os.environ, ONNXRUNTIME_NODE_INSTALL_CUDA='skip'), timeout=600,
                          check=False)
    if done.returncode != 0:
        note('no ONNX Runtime: npm install failed: ' + last_line(done.stderr))
        return None
    return cache


def packages():
    """Installs what is missing and can be installed; what cannot is named by the script."""
    subprocess.run([INSTALL, '--optional', 'bench'], check=False)
    if not shutil.which('npm') or not shutil.which('node'):
        subprocess.run([INSTALL, '--optional', 'node'], check=False)


def version(module):
    """Of a Python module, or None."""
    done = subprocess.run([PYTHON, '-c', f'import {module}; print({module}.__version__)'], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def peers(options):
    """Finds the peers: sets options.ort, .opencv and .torch. Return: {peer: {version} or {absent: why}}."""
    found = {}
    options.ort = ort_dir(options.install)
    if options.ort:
        with open(os.path.join(options.ort, 'node_modules', 'onnxruntime-node', 'package.json'), encoding='utf-8') as f:
            found['ort'] = {'version': json.load(f)['version']}
    else:
        found['ort'] = {'absent': 'the npm package onnxruntime-node is not installed'}
    for kind, (module, package) in MODULES.items():
        has = version(module)
        setattr(options, kind, bool(has))
        found[kind] = {'version': has} if has else {'absent': f'{package} is not installed'}
        if not has:
            note(f'no {PEERS[kind]}: {package} is not installed')
    return found


def optimised(build):
    """Whether a build folder holds what is worth measuring: optimised code without sanitizers."""
    try:
        with open(os.path.join(build, 'meson-info', 'intro-buildoptions.json'), encoding='utf-8') as f:
            values = {o['name']: o['value'] for o in json.load(f)}
    except (OSError, ValueError):
        return False
    return values.get('optimization') in ('2', '3') and values.get('b_sanitize', 'none') == 'none'


def build(install):
    """Builds what is measured. Return: the build folder, the developer's if its code is optimised; None: it failed."""
    folder = os.path.join(ROOT, 'build')
    if not optimised(folder):
        folder = BUILD_BESIDE
        if install and subprocess.run([INSTALL, 'build'], check=False).returncode != 0:
            return None
    if not os.path.exists(os.path.join(folder, 'build.ninja')):
        note(f'setting up {folder}')
        done = subprocess.run(['meson', 'setup', '-Dbuildtype=debugoptimized', folder, ROOT],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            note('meson: ' + last_line(done.stdout + done.stderr))
            return None
    done = subprocess.run(['ninja', '-C', folder, *TARGETS], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        note('the build failed:\n' + '\n'.join(done.stdout.strip().split('\n')[-20:]))
        return None
    note(f'piped is that of {folder}, built with optimisation')
    return folder


def script(left_s, *command):
    """Runs a script of bench/ whose output is for nobody, and ends it and what it started if the time is over. Return: whether it
    succeeded."""
    process = subprocess.Popen([PYTHON, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    try:
        said, _ = process.communicate(timeout=max(1, left_s))
    except BaseException as e:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()
        if not isinstance(e, subprocess.TimeoutExpired):
            raise
        said = 'the time of the run is over'
    if process.returncode != 0:
        note(f'{os.path.basename(command[0])}: {last_line(said)}')
    return process.returncode == 0


def network(options, name, int8, left_s):
    """Writes a network of bench/models.py that is not there yet. Return: its path, or None with a message."""
    end = time.monotonic() + left_s
    path = os.path.join(options.models, name)
    os.makedirs(options.models, exist_ok=True)
    traced = options.torch and not int8
    if not os.path.exists(path + '.onnx') or (traced and not os.path.exists(path + '.pt')):
        note(f'writing {name} into {options.models}')
        written = script(left_s, os.path.join(ROOT, 'bench', 'models.py'), '--out', options.models, *['--torchscript'] * traced,
                         name)
        if not written and not os.path.exists(path + '.onnx'):
            return None
    if int8 and not os.path.exists(path + '_int8.onnx'):
        note(f'quantising {name}')
        if not script(end - time.monotonic(), os.path.join(ROOT, 'bench', 'models_int8.py'), '--models', options.models, '--build',
                      options.build, name):
            return None
    return path + ('_int8.onnx' if int8 else '.onnx')


def may_slow_cores():
    """Whether a competing program may have a real-time priority."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, policy, parameter)
    return True


def page(build_folder, description, path):
    """Writes the page that bench/page_of makes of a description. Return: whether it did."""
    with open(path + '.part', 'wb') as f:
        done = subprocess.run([os.path.join(build_folder, 'bench', 'page_of')], input=json.dumps(description).encode(), stdout=f,
                              check=False)
    if done.returncode == 0:
        os.replace(path + '.part', path)
    else:
        os.unlink(path + '.part')
        print(f'peers: page_of failed with {done.returncode}', file=sys.stderr)
    return done.returncode == 0


def kept(options):
    """Return: what earlier runs measured."""
    if not os.path.exists(options.results):
        return {}
    with open(options.results, encoding='utf-8') as f:
        return json.load(f)


def keep(options, results):
    with open(options.results + '.part', 'w', encoding='utf-8') as f:
        json.dump(results, f, indent=1)
    os.replace(options.results + '.part', options.results)
