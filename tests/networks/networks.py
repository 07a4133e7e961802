#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real network shapes under every shape of plan, against torch's answers.

usage: networks.py PLAN_CHECK LOAD_BENCH CACHE_DIR [NAME...]
bench/models.py writes the networks into CACHE_DIR once. Skipped (77) where torch is not installed. A load's peak
memory, file pages included, must stay under 1.3 times the weights, as they are or packed (the larger), and one
frame's activations; what any process
touches once of its code and libraries while loading comes on top.
"""
import concurrent.futures
import importlib.util
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXPORT = os.path.join(HERE, '..', '..', 'bench', 'models.py')
PEAK_MAX = 1.3
PROCESS_BYTES = 6e6
NAMES = ['mobilenet_v2', 'squeezenet1_1', 'resnet50', 'mobilenet_v3_small', 'yolov3_tiny', 'shufflenet_v2', 'yolov5n', 'lraspp',
         'text_detector', 'text_reader', 'wake_word']
# Only by --long: their operators are in the others too, and the last three take longer than all others together.
LARGE = ['googlenet', 'mobilenet_v1', 'alexnet', 'efficientnet_b0', 'unet', 'yolov3', 'vgg16', 'resnext50']
LONG = bool(os.environ.get('PIPED_TEST_LONG'))
FEW_PLANS = ('resnet50', 'yolov5n', 'yolov3_tiny', 'lraspp', 'text_detector')  # unless --long


def main():
    check, load, cache = sys.argv[1:4]
    names = sys.argv[4:] or NAMES + (LARGE if LONG else [])
    missing = [n for n in names if not os.path.exists(os.path.join(cache, n + '.onnx'))]
    if missing:
        for module in ('torch', 'torchvision', 'onnx'):
            if importlib.util.find_spec(module) is None:
                print('skipped: python3-%s is not installed, the networks cannot be made' % module)
                return 77
        parts = min(os.cpu_count() or 1, len(missing))
        makers = [subprocess.Popen([sys.executable, EXPORT, '--out', cache, *missing[i::parts]]) for i in range(parts)]
        if any([m.wait() for m in makers]):
            print('FAIL the networks could not be made')
            return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        good = [pool.submit(check_network, check, load, os.path.join(cache, name)) for name in names]
        return 0 if all(g.result() for g in good) else 1


def check_network(check, load, path):
    """Its answers under every plan, and its load's memory. Networks run beside each other: each has processes of its
    own. Return: whether both are good."""
    name = os.path.basename(path)
    few = ['--few'] if name in FEW_PLANS and not LONG else []
    done = subprocess.run([check, *few, path + '.onnx', path + '.input.f32', path + '.output.f32'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = done.stdout
    if done.returncode != 0:
        said += 'FAIL %s: exit %d\n' % (name, done.returncode)
    cost = json.loads(subprocess.run([load, path + '.onnx'], stdout=subprocess.PIPE, check=True).stdout)
    need = max(cost['weight_bytes'], cost['packed_bytes']) + cost['arena_bytes']
    good = cost['peak_bytes'] <= PEAK_MAX * need + PROCESS_BYTES
    # the shares of all tensors that QS-DNN's table II gives
    share = {'squeezenet1_1': 0.15, 'mobilenet_v2': 0.12, 'resnet50': 0.13}.get(name, 1)
    good = good and cost['arena_of_all_tensors'] <= share
    said += '%s %s: load peak %.1f MB, %.2f of weights and activations; activations %.3f of all tensors\n' % (
        'ok' if good else 'FAIL', name, cost['peak_bytes'] / 1e6, cost['peak_over_need'], cost['arena_of_all_tensors'])
    print('%scases: %d passed, %d failed, 0 skipped\n' % (said, good, not good), end='', flush=True)
    return good and done.returncode == 0


if __name__ == '__main__':
    sys.exit(main())
