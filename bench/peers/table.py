# SPDX-License-Identifier: Apache-2.0
"""Results of bench/peers as text and as a plot."""
import math
import statistics

OWN = ('piped', 'kernels')  # ways that begin so are not a peer's


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float('nan')


def is_peer(way):
    return not way.startswith(OWN)


def best_peer(rows, key, least=False):
    """Name of the peers' way with the greatest (or least) figure; None: there is none."""
    names = [n for n in rows if is_peer(n) and rows[n].get(key)]
    return (min if least else max)(names, key=lambda n: rows[n][key]) if names else None


def ratio(a, b):
    """Median of a/b of the same rounds; both are lists of figures or None."""
    pairs = [x / y for x, y in zip(a, b) if x and y]
    return statistics.median(pairs) if pairs else None


def against_peer(rows, way, what='throughput'):
    """(ratio of a way to the best peer, the peer): frames a second, or for latency the time."""
    key, series = ('median_ms', 'ms') if what == 'latency' else ('median_fps', 'fps')
    peer = best_peer(rows, key, what == 'latency')
    if peer is None or way not in rows:
        return None, peer
    value = ratio(rows[way][series], rows[peer][series])
    if value is None and rows[way].get(key):  # measured in different runs
        value = rows[way][key] / rows[peer][key]
    return value, peer


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def text(value, digits=2):
    return '-' if value is None else f'{value:.{digits}f}'


def one(what, name, rows):
    """A network's result right after it was measured."""
    if what == 'latency':
        lines = [f'{n:<16} {r["median_ms"]:9.2f} ms  ({r["p10_ms"]:.2f} .. {r["p90_ms"]:.2f})' for n, r in rows.items()]
    else:
        lines = [f'{n:<16} {text(r["median_fps"]):>9} fps  p50 {r["p50_ms"]:.1f} ms  p99 {r["p99_ms"]:.1f} ms  '
                 f'{r.get("plan", "")}' for n, r in rows.items()]
    value, peer = against_peer(rows, 'piped', what)
    return [f'{name}, {what}'] + ['  ' + line for line in lines] + [f'  piped / {peer}: {text(value)}']


def throughput_table(results, key):
    names = list(results[key])
    ways = list(dict.fromkeys(w for n in names for w in results[key][n]))
    out = ['| network | ' + ' | '.join(ways) + ' | piped / best peer | kernels / best peer |',
           '| --- |' + ' ---: |' * (len(ways) + 2)]
    for n in names:
        rows = results[key][n]
        cells = [text(rows.get(w, {}).get('median_fps')) for w in ways]
        out.append(f'| {n} | ' + ' | '.join(cells + [text(against_peer(rows, w)[0]) for w in OWN]) + ' |')
    means = [geomean([against_peer(results[key][n], w)[0] for n in names]) for w in OWN]
    out.append('| geometric mean |' + ' |' * len(ways) + f' {text(means[0])} | {text(means[1])} |')
    return out


def latency_table(results, key):
    out = ['| network | piped | ort | opencv | piped / best peer |', '| --- | ---: | ---: | ---: | ---: |']
    ratios = []
    for n, rows in results[key].items():
        ratios.append(against_peer(rows, 'piped', 'latency')[0])
        out.append(f'| {n} | ' + ' | '.join(text(rows.get(w, {}).get('median_ms')) for w in ('piped', 'ort', 'opencv')) +
                   f' | {text(ratios[-1])} |')
    return out + [f'| geometric mean | | | | {text(geomean(ratios))} |']


QUEUES = ('ort-queue', 'ort-sessions')


def slowed_table(results, key):
    """Against the faster of the ways with two sessions, and against the peer's own threads."""
    ways = list(dict.fromkeys(w for rows in results[key].values() for w in rows))
    own = [w for w in ways if not is_peer(w)]
    out = ['| network | ' + ' | '.join(f'{w} fps, p99 ms' for w in ways) +
           ' | best of ours | fps / two sessions | p99 / theirs | fps / own threads |', '| --- |' + ' ---: |' * (len(ways) + 4)]
    means = []
    for n, rows in results[key].items():
        best = max((w for w in own if w in rows), key=lambda w: rows[w]['median_fps'] or 0)
        queue = max((w for w in QUEUES if w in rows), key=lambda w: rows[w]['median_fps'] or 0, default=None)
        shares = [ratio(rows[best]['fps'], rows[queue]['fps']) if queue else None,
                  rows[best]['p99_ms'] / rows[queue]['p99_ms'] if queue else None,
                  ratio(rows[best]['fps'], rows['ort-threads']['fps']) if 'ort-threads' in rows else None]
        means.append(shares)
        cells = [f'{text(rows[w]["median_fps"])}, {text(rows[w]["p99_ms"], 1)}' if w in rows else '-' for w in ways]
        out.append(f'| {n} | ' + ' | '.join(cells + [best] + [text(s) for s in shares]) + ' |')
    out.append('| geometric mean |' + ' |' * (len(ways) + 1) + ' ' +
               ' | '.join(text(geomean([m[i] for m in means])) for i in range(3)) + ' |')
    return out


TITLES = {'throughput': 'Frames a second on two cores', 'latency': 'Milliseconds of a frame on one core',
          'slowed': 'The second core slowed by a competing program',
          'int8-throughput': 'int8: frames a second on two cores', 'int8-latency': 'int8: milliseconds of a frame on one core'}
TABLES = {'throughput': throughput_table, 'latency': latency_table, 'slowed': slowed_table,
          'int8-throughput': throughput_table, 'int8-latency': latency_table}


def report(results):
    m = results.get('machine', {})
    out = [f'{m.get("cpu", "?")}, {m.get("cores", "?")} cores, Linux {m.get("kernel", "?")}']
    for key, title in TITLES.items():
        if results.get(key):
            out += ['', title, ''] + TABLES[key](results, key)
    return out


def plot(results, path):
    """For every network the frames a second of piped and of each peer's best way, over those of the best peer."""
    rows = results['throughput']
    colours = (('piped', '#36c'), ('ort', '#c63'), ('opencv', '#999'))
    width, height, left, bottom, top = 860, 260, 36, 34, 34
    group = (width - left - 10) / len(rows)
    bar = group * 0.84 / len(colours)
    bars, most = [], 1.5
    for i, (name, r) in enumerate(rows.items()):
        peer = best_peer(r, 'median_fps')
        for k, (kind, colour) in enumerate(colours):
            fps = [v['median_fps'] for w, v in r.items() if (w == kind if kind == 'piped' else w.startswith(kind))]
            fps = max((f for f in fps if f), default=0)
            if not fps:
                continue
            share = fps / r[peer]['median_fps'] if peer else 0
            if kind == 'piped':
                share = against_peer(r, 'piped')[0] or 0
            most = max(most, share * 1.08)
            bars.append((left + i * group + group * 0.08 + k * bar, share, colour, fps))

    def y(share):
        return height - bottom - share / most * (height - bottom - top)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="14">frames/s on two cores relative to the best way of the best peer; '
           'figures: frames/s</text>']
    for k, (kind, colour) in enumerate(colours):
        out.append(f'<rect x="{left + 120 * k}" y="19" width="9" height="9" fill="{colour}"/>'
                   f'<text x="{left + 120 * k + 13}" y="27">{ {"ort": "ONNX Runtime", "opencv": "OpenCV"}.get(kind, kind)}</text>')
    for i in range(int(most * 5) + 1):
        dash = '' if i == 5 else ' stroke-dasharray="2 3"'
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(i / 5):.1f}" y2="{y(i / 5):.1f}" stroke="#bbb"{dash}/>'
                   f'<text x="{left - 4}" y="{y(i / 5) + 4:.1f}" text-anchor="end">{i / 5:.1f}</text>')
    for x, share, colour, fps in bars:
        out.append(f'<rect x="{x:.1f}" y="{y(share):.1f}" width="{bar * 0.9:.1f}" height="{height - bottom - y(share):.1f}" '
                   f'fill="{colour}"/><text x="{x + bar * 0.45:.1f}" y="{y(share) - 3:.1f}" text-anchor="middle" '
                   f'font-size="8">{fps:.{0 if fps >= 20 else 1}f}</text>')
    for i, name in enumerate(rows):
        out.append(f'<text x="{left + (i + 0.5) * group:.1f}" y="{height - 14}" text-anchor="middle">{name}</text>')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(out + ['</svg>']) + '\n')
