# SPDX-License-Identifier: Apache-2.0
"""Results of bench/peers as tables."""
import math
import statistics

from names import BEFORE, KINDS, PEERS, is_peer, kind_of

QUEUES = ('ort-queue', 'ort-sessions')
TITLES = {'throughput': 'f32: frames a second on two cores', 'latency': 'f32: milliseconds of a frame on one core',
          'int8-throughput': 'int8: frames a second on two cores', 'int8-latency': 'int8: milliseconds of a frame on one core',
          'slowed': 'f32: frames a second and p99 (ms) with one core slowed'}


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float('nan')


def best_way(rows, key, kind=None, least=False):
    """Name of a program's way with the greatest (or least) figure, or of all peers'; None: there is none."""
    names = [n for n in rows if (kind_of(n) == kind if kind else is_peer(n)) and rows[n].get(key)]
    names = [n for n in names if not rows[n].get('first_slice')] or names  # one slice proves nothing against rounds
    return (min if least else max)(names, key=lambda n: rows[n][key]) if names else None


def ratios(a, b):
    """a/b of the same rounds, in order; both are lists of figures or None."""
    return sorted(x / y for x, y in zip(a, b) if x and y)


def figures_of(what):
    """Names of a way's figure and of its series."""
    return ('median_ms', 'ms') if what.endswith('latency') else ('median_fps', 'fps')


def over(rows, way, other, what):
    """(ratio of one way to another, (least, greatest) of the rounds): frames a second, or for latency the time. The spread of
    latencies is that of their quartiles. Without one of both: (None, None)."""
    key, series = figures_of(what)
    if not rows.get(way, {}).get(key) or not rows.get(other, {}).get(key):
        return None, None
    found = ratios(rows[way][series], rows[other][series])
    if not found:  # measured in different runs
        return rows[way][key] / rows[other][key], None
    if what.endswith('latency') and len(found) > 3:
        low, _, high = statistics.quantiles(found, n=4)
    else:
        low, high = found[0], found[-1]
    return statistics.median(found), (low, high)


def against_peer(rows, way, what='throughput'):
    """over() against the best peer, and that peer's way or None."""
    peer = best_way(rows, figures_of(what)[0], least=what.endswith('latency'))
    return *over(rows, way, peer, what), peer


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def text(value, digits=2):
    return '-' if value is None else f'{value:.{digits}f}'


def spread(value, ends):
    return text(value) + (f' ({ends[0]:.2f} to {ends[1]:.2f})' if ends else '')


def one(what, name, rows):
    """A network's result right after it was measured."""
    if what.endswith('latency'):
        lines = [f'{n:<16} {r["median_ms"]:9.2f} ms  ({r["p10_ms"]:.2f} .. {r["p90_ms"]:.2f})' for n, r in rows.items()]
    else:
        lines = [f'{n:<16} {text(r["median_fps"]):>9} fps  p50 {r["p50_ms"]:.1f} ms  p99 {r["p99_ms"]:.1f} ms  '
                 f'{"first slice only" if r.get("first_slice") else r.get("plan", "")}' for n, r in rows.items()]
    other = best_way(rows, figures_of(what)[0], least=what.endswith('latency')) or 'piped' + BEFORE
    compared_to = f'  piped / {other}: {spread(*over(rows, "piped", other, what))}'
    return [f'{name}, {what}'] + ['  ' + line for line in lines] + [compared_to]


def best_cell(rows, kind, what):
    """A program's best figure with the way that gave it."""
    key = figures_of(what)[0]
    way = best_way(rows, key, kind, what.endswith('latency'))
    if way is None:
        return '-'
    return text(rows[way][key]) + (f' {way.partition("-")[2]}' if is_peer(way) and '-' in way else '')


def compared(results, key):
    """Heads and rows: every program's best way, and piped against the best of all peers."""
    peers = [k for k in PEERS if any(kind_of(w) == k for rows in results[key].values() for w in rows)]
    own = ['piped'] + [w for w in ('kernels',) if any(w in rows for rows in results[key].values())]
    figure = figures_of(key)[0]
    lines, shares = [], {w: [] for w in own}
    for name, rows in results[key].items():
        cells = [name] + [text(rows.get(w, {}).get(figure)) for w in own] + [best_cell(rows, k, key) for k in peers]
        for w in own:
            value, ends, peer = against_peer(rows, w, key)
            shares[w].append(value)
            cells.append(spread(value, ends))
        lines.append(cells + [peer or '-'])
    lines.append(['geometric mean'] + [''] * (len(own) + len(peers)) + [text(geomean(shares[w])) for w in own] + [''])
    return ['network'] + own + [KINDS[k] for k in peers] + [w + ' / best peer' for w in own] + ['best peer'], lines


def before_table(results, key):
    """Heads and rows: our ways beside those of the older build; None: there are none."""
    figure = figures_of(key)[0]
    own = [w for w in ('piped', 'kernels') if any(w + BEFORE in rows for rows in results[key].values())]
    if not own:
        return None
    lines, shares = [], {w: [] for w in own}
    for name, rows in results[key].items():
        cells = [name]
        for w in own:
            value, ends = over(rows, w, w + BEFORE, key)
            shares[w].append(value)
            cells += [text(rows.get(w + BEFORE, {}).get(figure)), text(rows.get(w, {}).get(figure)), spread(value, ends)]
        lines.append(cells)
    lines.append(['geometric mean'] + [c for w in own for c in ('', '', text(geomean(shares[w])))])
    return ['network'] + [h for w in own for h in (w + ' before', w, 'ratio')], lines


def ways_table(results, key):
    """Heads and rows: every way that was measured; "~": its first slice only."""
    ways = list(dict.fromkeys(w for rows in results[key].values() for w in rows))
    lines = [[name] + [text(rows.get(w, {}).get('median_fps')) + ('~' if rows.get(w, {}).get('first_slice') else '') for w in ways]
             for name, rows in results[key].items()]
    return ['network'] + ways, lines


def slowed_shares(rows):
    """Our best way against the faster of two sessions and against the peer's own threads: (way, frames a second, p99, frames)."""
    fps = lambda w: rows[w]['median_fps'] or 0  # noqa: E731
    best = max((w for w in rows if not is_peer(w)), key=fps, default=None)
    queue = max((w for w in QUEUES if w in rows), key=fps, default=None)

    def over(way):
        found = ratios(rows[best]['fps'], rows[way]['fps']) if way in rows and best else []
        return statistics.median(found) if found else None

    return best, over(queue), rows[best]['p99_ms'] / rows[queue]['p99_ms'] if queue and best else None, over('ort-threads')


def slowed_table(results, key='slowed'):
    """Heads and rows."""
    ways = list(dict.fromkeys(w for rows in results[key].values() for w in rows))
    lines, means = [], []
    for name, rows in results[key].items():
        best, *shares = slowed_shares(rows)
        means.append(shares)
        cells = [f'{text(rows[w]["median_fps"])}, {rows[w]["p99_ms"]:.1f}' if w in rows else '-' for w in ways]
        lines.append([name] + cells + [best or '-'] + [text(s) for s in shares])
    lines.append(['geometric mean'] + [''] * (len(ways) + 1) + [text(geomean(column)) for column in zip(*means)])
    return ['network'] + [f'{w} fps, p99 ms' for w in ways] + ['best of ours', 'fps / two sessions', 'p99 / theirs',
                                                                'fps / own threads'], lines


def markdown(heads, lines):
    """A table that is read well as text, too."""
    wide = [max(len(line[i]) for line in [heads] + lines) for i in range(len(heads))]
    out = ['| ' + ' | '.join(c.ljust(w) for c, w in zip(line, wide)) + ' |' for line in [heads] + lines]
    out.insert(1, '| ' + ' | '.join('-' * max(3, w - 1) + ':' if i else '-' * max(3, w) for i, w in enumerate(wide)) + ' |')
    return out


def tables(results):
    """[(title, heads, rows)] of all that was measured."""
    out = []
    for key, title in TITLES.items():
        if not results.get(key):
            continue
        if key == 'slowed':
            out.append((title, *slowed_table(results)))
            continue
        if any(is_peer(w) for rows in results[key].values() for w in rows):
            out.append((title, *compared(results, key)))
        before = before_table(results, key)
        if before:
            out.append((title + ', before and now', *before))
        if key.endswith('throughput'):
            out.append((title + ', every way (~: its first slice only)', *ways_table(results, key)))
    return out


def about(results):
    """The machine and the programs, and what is missing: lines of text."""
    m = results.get('machine', {})
    out = [f'{m.get("cpu", "?")}, {m.get("cores", "?")} cores, Linux {m.get("kernel", "?")}']
    for run in results.get('runs', []):
        out.append(f'Commit {run["commit"]}; {run["command"]}; {run["seconds"]} s; load before it {run["load"]}')
    for kind, how in results.get('peers', {}).items():
        out.append(f'{PEERS[kind]}: ' + (how['version'] if 'version' in how else 'absent, ' + how['absent']))
    return out + results.get('left_out', [])


def report(results):
    out = about(results)
    for title, heads, lines in tables(results):
        out += ['', title, ''] + markdown(heads, lines)
    return out
