#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every network of zoo/ at every opset against torch's answers, and under plans.

usage: sweep.py CONFORMANCE_RUN PLAN_CHECK CACHE_DIR small|full|folder [NAME...]
The small forms are written into CACHE_DIR once; the real ones are written, tried and removed one after the other.
With "folder", CACHE_DIR holds what exporters_make.py wrote, on any machine and with any torch: NAME.WAY.onnx.
Every file is run in one stage; the file of one opset, another for each network, under plans too. Skipped (77) where
torch is not installed.

What is refused today stands in REFUSED with its reason. A network there that passes is a failure: the list is then
outdated. Nothing may be wrong.
"""
import concurrent.futures
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE = os.path.join(HERE, 'sweep_make.py')
OPSETS = (11, 13, 17, 18, 20, 22, 24)
OTHER = 0  # the file of opset 17 once more, at another size
# Between a network's oldest opset, what torch writes and the newest one, only --long tries all.
USUAL, LONG = 17, bool(os.environ.get('PIPED_TEST_LONG'))
TOLERANCE = 1e-4

REFUSED = {}  # (network, opset or None for all): part of what the loader says


def sources_hash():
    """The networks are made anew when what makes them has changed."""
    total = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(HERE, 'zoo', '*.py'))) + [MAKE, os.path.join(HERE, 'opsets.py')]:
        with open(path, 'rb') as f:
            total.update(f.read())
    return total.hexdigest()


def network_names(form):
    """Without torch: the names are what the modules of zoo/ say."""
    said = subprocess.run([sys.executable, MAKE, '--list', form], stdout=subprocess.PIPE, text=True, check=True)
    return said.stdout.split()


def make(names, cache, form, parts):
    """Return: whether all were written."""
    makers = [subprocess.Popen([sys.executable, MAKE, cache, form, *names[i::parts]])
              for i in range(min(parts, len(names)))]
    return not any([m.wait() for m in makers])


def made(cache, name):
    return os.path.exists(os.path.join(cache, name + '.done'))


def opsets_of(cache, name):
    there = [n for n in (OTHER, *OPSETS) if os.path.exists(os.path.join(cache, '%s.%d.onnx' % (name, n)))]
    numbers = [n for n in there if n != OTHER]
    return there if LONG else [n for n in there if n in (OTHER, numbers[0], USUAL, numbers[-1])]


def case_line(cache, name, opset):
    base = os.path.join(cache, name)
    fields = ['name=%s:%s' % (name, opset), 'model=%s.%s.onnx' % (base, opset), 'rtol=0', 'atol=0',
              'max_tol=%g' % TOLERANCE, 'ways=default']
    for kind in ('in', 'out'):
        files = glob.glob('%s%s.%s[0-9]*.pb' % (base, '.0' if opset == OTHER else '', kind))
        fields += ['%s=%s' % (kind, f) for f in sorted(files, key=lambda f: int(re.findall(r'(\d+)\.pb$', f)[0]))]
    return '\t'.join(fields) + '\n'


def run_files(runner, lines):
    """Return: {(network, opset or way): (pass, FAIL or unsupported, why)}"""
    results = {}
    with tempfile.NamedTemporaryFile('w', suffix='.cases') as cases:
        cases.writelines(lines)
        cases.flush()
        said = subprocess.run([runner, cases.name], stdout=subprocess.PIPE, text=True).stdout
    for line in said.splitlines():
        verdict, case, why = (line.split('\t') + ['', ''])[:3]
        if verdict != 'total':
            name, form = case.rsplit(':', 1)
            results[name, int(form) if form.isdigit() else form] = (verdict, re.sub(r'^default: (\S+\.onnx: )?', '', why))
    return results


def run_opsets(runner, cache, names):
    return run_files(runner, (case_line(cache, name, n) for name in names for n in opsets_of(cache, name)))


def run_plans(check, cache, name, opset):
    """Return: the verdict and what it said."""
    base = os.path.join(cache, name)
    # where how many rows are valid depends on the data, plans are compared with one stage
    answers = [base + '.output.raw'] if os.path.exists(base + '.output.raw') else []
    done = subprocess.run([check, '--few', '%s.%d.onnx' % (base, opset), base + '.input.raw', *answers],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ('pass' if done.returncode == 0 else 'FAIL'), done.stdout


def judge(name, results):
    """Prints a network's line. Return: (passed, failed)"""
    words, problems, passed, failed = [], [], 0, 0
    for (_, opset), (verdict, why) in sorted(results.items()):
        reason = REFUSED.get((name, opset), REFUSED.get((name, None)))
        word = {'pass': 'passed', 'FAIL': 'WRONG', 'unsupported': 'refused'}[verdict]
        good = verdict == 'pass' and reason is None
        if verdict == 'unsupported' and reason is not None and reason in why:
            good = True
            word = 'refused as known'
        elif verdict == 'pass' and reason is not None:
            word = 'passed, but is listed as refused: remove it from REFUSED'
        words.append('%s %s' % (opset or 'other size', word))
        if verdict != 'pass' and why not in problems:
            problems.append(why)
        passed, failed = passed + good, failed + (not good)
    print('%s %s: %s%s' % ('FAIL' if failed else 'ok', name, ', '.join(words),
                           ''.join('\n    ' + p.strip() for p in problems)), flush=True)
    return passed, failed


def try_networks(runner, check, cache, names):
    """Return: (passed, failed)"""
    results = run_opsets(runner, cache, names)
    passed = failed = 0
    for name in names:
        mine = {k: v for k, v in results.items() if k[0] == name}
        good, bad = judge(name, mine)
        loads = sorted(opset for (_, opset), (verdict, _) in mine.items() if verdict == 'pass' and opset != OTHER)
        if loads:
            opset = loads[sum(name.encode()) % len(loads)]
            verdict, said = run_plans(check, cache, name, opset)
            good, bad = good + (verdict == 'pass'), bad + (verdict != 'pass')
            if verdict != 'pass':
                print('FAIL %s: opset %d under plans:\n%s' % (name, opset, said), flush=True)
        passed, failed = passed + good, failed + bad
    return passed, failed


def small(runner, check, cache, names, parts):
    stamp = os.path.join(cache, 'sources')
    if not os.path.exists(stamp) or open(stamp).read() != sources_hash():
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)
        with open(stamp, 'w') as f:
            f.write(sources_hash())
    names = names or network_names('small')
    missing = [n for n in names if not made(cache, n)]
    if missing and not make(missing, cache, 'small', parts):
        print('FAIL the networks could not be made')
        return 0, 1
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
        done = list(pool.map(lambda part: try_networks(runner, check, cache, part),
                             [names[i::parts] for i in range(parts) if names[i::parts]]))
    return sum(d[0] for d in done), sum(d[1] for d in done)


def full(runner, check, cache, names, parts):
    """One network at a time is on the disk for each core."""
    def one(name):
        with tempfile.TemporaryDirectory(dir=os.path.dirname(cache)) as folder:
            if not make([name], folder, 'full', 1):
                print('FAIL %s could not be made' % name)
                return 0, 1
            return try_networks(runner, check, folder, [name])

    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
        done = list(pool.map(one, names or network_names('full')))
    return sum(d[0] for d in done), sum(d[1] for d in done)


def ways_of(cache, name):
    """Return: the ways in which torch exports it, as exporters_make.py found; what torch says of the others."""
    with open(os.path.join(cache, name + '.done'), encoding='utf-8') as f:
        lines = [line.strip() for line in f]
    done = [line for line in lines if line.endswith(': exported')]
    return sorted(line.split(':')[0] for line in done), [line for line in lines if line not in done]


def folder(runner, cache, names):
    """Return: (passed, failed)"""
    passed = failed = 0
    for name in names or sorted(f[:-len('.done')] for f in os.listdir(cache) if f.endswith('.done')):
        ways, others = ways_of(cache, name)
        results = run_files(runner, (case_line(cache, name, way) for way in ways))
        results.update({(name, way): ('FAIL', 'it was not run; is its file there?')
                        for way in ways if (name, way) not in results})
        good, bad = judge(name, results)
        for line in others:
            print('    torch does not export it: %.200s' % line)
        passed, failed = passed + good, failed + bad
    print('cases: %d passed, %d failed, 0 skipped' % (passed, failed))
    return 1 if failed else 0


def main():
    runner, check, cache, form = sys.argv[1:5]
    if form == 'folder':
        return folder(runner, cache, sys.argv[5:])
    for module in ('torch', 'torchvision', 'onnx'):
        if importlib.util.find_spec(module) is None:
            print('skipped: python3-%s is not installed, the networks cannot be made' % module)
            return 77
    parts = len(os.sched_getaffinity(0))
    passed, failed = (small if form == 'small' else full)(runner, check, os.path.abspath(cache), sys.argv[5:], parts)
    for (name, opset), reason in sorted(REFUSED.items(), key=str):
        print('not yet: %s%s: %s' % (name, ' at opset %d' % opset if opset else '', reason))
    print('cases: %d passed, %d failed, 0 skipped' % (passed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
