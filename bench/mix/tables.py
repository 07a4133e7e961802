# SPDX-License-Identifier: Apache-2.0
"""What slices of mix.py show, as figures and as tables."""
import statistics


def percentile(values, part):
    """The value that so large a part is not above; None of none."""
    values = sorted(values)
    return round(values[min(len(values) - 1, int(part * len(values)))], 3) if values else None


def spread(values):
    values = [v for v in values if v is not None]
    if not values:
        return None
    return {'median': round(statistics.median(values), 3), 'min': round(min(values), 3), 'max': round(max(values), 3)}


def of_one(deadline_ms, rounds, seconds):
    """rounds: what System.serve() gave of one model, slice by slice."""
    every = [ms for r in rounds for ms in r['ms']]
    due = len(every) + sum(r['refused'] for r in rounds)
    late = sum(ms > deadline_ms for ms in every)
    missed = [100 * (r['refused'] + sum(ms > deadline_ms for ms in r['ms'])) / max(1, r['refused'] + len(r['ms'])) for r in rounds]
    return {'due': due, 'refused': due - len(every), 'late': late, 'missed_percent': spread(missed),
            'wished_fps': round(due / seconds / len(rounds), 3), 'given_fps': round(len(every) / seconds / len(rounds), 3),
            'p50_ms': percentile(every, 0.5), 'p99_ms': percentile(every, 0.99), 'most_ms': percentile(every, 1),
            'p99_of_rounds_ms': spread([percentile(r['ms'], 0.99) for r in rounds])}


def figures(models, rounds, seconds):
    """{"models": {name: figures}, "misses": of all frames, in per cent}."""
    each = {m.name: of_one(m.deadline_ms, [r[i] for r in rounds], seconds) for i, m in enumerate(models)}
    due, bad = sum(f['due'] for f in each.values()), sum(f['late'] + f['refused'] for f in each.values())
    return {'models': each, 'misses_percent': round(100 * bad / max(1, due), 3)}


def row(*cells):
    return '| ' + ' | '.join(str(c) for c in cells) + ' |'


def head(*cells):
    return [row(*cells), row(*['---'] + ['---:'] * (len(cells) - 1))]


def of_factors(condition):
    peers = {n: statistics.median(f) for n, f in condition['factor'].items() if n.startswith('ort-')}
    best = max(peers.values(), default=None)
    lines = head('system', 'factor, median', 'least, most', '/ best peer', 'of the bound', 'misses at common, %',
                 'misses at own, %')
    for name, factors in condition['factor'].items():
        if name not in condition['levels']['own']:
            continue  # it failed meanwhile
        median = statistics.median(factors)
        bound = condition['bound'].get(name) or {}
        most = bound.get('explained') or bound.get('tables')
        lines.append(row(name, '%.3f' % median, '%.3f, %.3f' % (min(factors), max(factors)),
                         '%.2f' % (median / best) if best else '-', '%.2f' % (median / most) if most else '-',
                         *['%.2f' % condition['levels'][level][name]['misses_percent'] for level in ('common', 'own')]))
    return lines


def of_models(condition, level, what, cell):
    """A table with a row for each model and a column for each system."""
    served = condition['levels'][level]
    lines = head(what, *served)
    for model in next(iter(served.values()))['models']:
        lines.append(row(model, *[cell(s['models'][model]) for s in served.values()]))
    return lines


def missed(f):
    return '%.1f' % (100 * (f['late'] + f['refused']) / max(1, f['due']))


def delays(f):
    return '%.1f, %.1f' % (f['p50_ms'] or 0, f['p99_ms'] or 0)


def of_single(single):
    ways = [w for w in next(iter(single.values())) if w.startswith(('piped', 'ort'))]
    lines = head('network', 'frames/s', *['%s: p50, p99 ms' % w for w in ways], *['%s / peer, p99' % w for w in ways
                                                                                  if w.startswith('piped')])
    for network, r in single.items():
        p99 = {w: r[w]['models']['net']['p99_ms'] for w in ways if w in r}
        lines.append(row(network, '%.1f' % r['fps'], *['%.1f, %.1f' % (r[w]['models']['net']['p50_ms'], p99[w]) for w in p99],
                         *['%.2f' % (p99[w] / p99[r['held_by']]) for w in p99 if w.startswith('piped')]))
    return lines


def of_alone(condition):
    """What piped takes for each model alone, at the common level, and beside the others."""
    lines = []
    for name, alone in condition['alone'].items():
        served = condition['levels']['common'][name]['models']
        lines += head('%s, ms' % name, 'alone: p50, p99', 'beside the others', 'longest unit of others')
        lines += [row(model, delays(f), delays(served[model]), '%.2f' % condition['longest_ms'][name][model])
                  for model, f in alone['models'].items()] + ['']
    return lines


def of_steady(steady):
    lines = head('cores', 'factor', 'frames', 'late', 'not by the kernel', 'refused', 'threads waited, ms a minute',
                 'host took, ms a minute')
    for condition, r in steady.items():
        each = r['models'].values()
        minutes = len(r['taken']) * r['slice_s'] / 60
        alone = sum(len(late) for t in r['taken'] for late in t['late_ms'].values())
        due, late, refused = (sum(f[what] for f in each) for what in ('due', 'late', 'refused'))
        lines.append(row(condition, '%.3f' % r['factor'], due, late, alone, refused,
                         *['%.0f' % (sum(t[what] for t in r['taken']) / minutes) for what in ('wait_ms', 'stolen_ms')]))
    return lines


def report(results):
    """The tables of a file of results, as lines."""
    run = results.get('run', {})
    lines = ['Machine: %(cpu)s, %(cores)d cores, Linux %(kernel)s, load %(load)s at the begin.' % results['machine'],
             'Rounds: %(rounds)s of %(slice_s)s s; levels: %(level)s of the factor; %(limit)s frames in flight.' % run, '']
    for condition in ('equal', 'slowed'):
        if condition in results:
            c = results[condition]
            common = next(iter(c['levels']['common'].values()))['factor']
            lines += ['## %s' % condition, '', *of_factors(c), '', 'At the common level, %.3f of the rates:' % common, '',
                      *of_models(c, 'common', 'missed, %', missed), '', *of_models(c, 'common', 'p50, p99, ms', delays), '']
            lines += of_alone(c) if 'longest_ms' in c else []
            for name, b in c['bound'].items():
                lines += ['%s: bound by the tables %.3f; plans %s; by plan mix %s' % (
                    name, b['tables'] or 0, c['plans'].get(name), b.get('explained') or 'not asked'), '']
    if results.get('steady'):
        lines += ['## For long', '', *of_steady(results['steady']), '']
    if results.get('single'):
        lines += ['## One model, one core slowed', '', *of_single(results['single']), '']
    return lines
