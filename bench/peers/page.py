# SPDX-License-Identifier: Apache-2.0
"""Results of bench/peers as plots: the description of a page (bench/page_of), and the figure of bench/results."""
import table
from names import KINDS, kind_of

COLOURS = {'piped': '#36c', 'ort': '#c63', 'opencv': '#999', 'torch': '#a3a'}
INTRO = ('All programs of a network take turns on the same machine, models and frames. Figures are medians over rounds; a ratio is '
         'the median of the ratios of the same round, with its spread: the least and the greatest round, for latencies the '
         'quartiles. Of each peer the fastest of its ways counts: two one-threaded sessions, its own threads, and '
         'batches.')


def shares(rows, what):
    """{program: its best figure over that of the best peer}; times are turned over, so that more is better."""
    least = what.endswith('latency')
    key = 'median_ms' if least else 'median_fps'
    peer = table.best_way(rows, key, least=least)
    out = {}
    for kind in KINDS:
        way = 'piped' if kind == 'piped' else table.best_way(rows, key, kind, least)
        if peer and rows.get(way or '', {}).get(key):
            share = rows[way][key] / rows[peer][key]
            if kind == 'piped':
                share = table.against_peer(rows, 'piped', what)[0]
            out[kind] = 1 / share if least else share
    return out


def bars(chart_id, title, names, label, series):
    """A chart as apps/page takes it. @series: {name: {network: value}}"""
    return {'chart': {'id': chart_id, 'title': title, 'kind': 'bars', 'x': {'label': 'network', 'names': names},
                      'y': {'label': label, 'min': 0},
                      'series': [{'name': n, 'values': [values.get(i) for i in names]} for n, values in series.items()]}}


def by_program(rows_of, what):
    """{program: {network: share}} of those that have any."""
    found = {name: shares(rows, what) for name, rows in rows_of.items()}
    out = {KINDS[k]: {name: round(s[k], 3) for name, s in found.items() if k in s} for k in KINDS}
    return {k: v for k, v in out.items() if v}


def charts(results, key):
    names = list(results[key])
    if key == 'slowed':
        ways = list(dict.fromkeys(w for rows in results[key].values() for w in rows))
        return [bars(f'slowed-{figure}', f'One core slowed: {label}', names, label,
                     {w: {n: rows[w][figure] for n, rows in results[key].items() if w in rows} for w in ways})
                for figure, label in (('median_fps', 'frames a second'), ('p99_ms', 'p99 of the latency, ms'))]
    label = 'speed of a frame' if key.endswith('latency') else 'frames a second'
    series = by_program(results[key], key)
    title = f'{table.TITLES[key].split(":")[0]}: {label}, over the best peer'
    return [bars(key, title, names, 'best peer = 1', series)] if series else []


def description(results):
    """What bench/page_of makes a page of."""
    parts = [{'paragraph': INTRO}] + [{'paragraph': line, 'kind': 'quiet'} for line in table.about(results)]
    shown = set()
    for title, heads, lines in table.tables(results):
        key = next(k for k, t in table.TITLES.items() if title.startswith(t))
        if key not in shown:
            shown.add(key)
            parts += [{'heading': table.TITLES[key], 'level': 2}] + charts(results, key)
        parts.append({'table': title, 'columns': heads, 'rows': lines})
    return {'title': 'piped beside other programs', 'parts': parts}


def plot(results, path):
    """As SVG: for every network the frames a second of piped and of each peer's best way, over those of the best peer."""
    rows = results['throughput']
    kinds = [k for k in KINDS if any(kind_of(w) == k for r in rows.values() for w in r)]
    width, height, left, bottom, top = 860, 260, 36, 34, 34
    group = (width - left - 10) / len(rows)
    bar = group * 0.84 / len(kinds)
    drawn, most = [], 1.5
    for i, (name, r) in enumerate(rows.items()):
        share_of = shares(r, 'throughput')
        for k, kind in enumerate(kinds):
            way = 'piped' if kind == 'piped' else table.best_way(r, 'median_fps', kind)
            if way not in r or not r[way]['median_fps']:
                continue
            share = share_of.get(kind, 0)
            most = max(most, share * 1.08)
            drawn.append((left + i * group + group * 0.08 + k * bar, share, COLOURS[kind], r[way]['median_fps']))

    def y(share):
        return height - bottom - share / most * (height - bottom - top)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="14">frames/s on two cores relative to the best way of the best peer; '
           'figures: frames/s</text>']
    for k, kind in enumerate(kinds):
        out.append(f'<rect x="{left + 120 * k}" y="19" width="9" height="9" fill="{COLOURS[kind]}"/>'
                   f'<text x="{left + 120 * k + 13}" y="27">{KINDS[kind]}</text>')
    for i in range(int(most * 5) + 1):
        dash = '' if i == 5 else ' stroke-dasharray="2 3"'
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(i / 5):.1f}" y2="{y(i / 5):.1f}" stroke="#bbb"{dash}/>'
                   f'<text x="{left - 4}" y="{y(i / 5) + 4:.1f}" text-anchor="end">{i / 5:.1f}</text>')
    for x, share, colour, fps in drawn:
        out.append(f'<rect x="{x:.1f}" y="{y(share):.1f}" width="{bar * 0.9:.1f}" height="{height - bottom - y(share):.1f}" '
                   f'fill="{colour}"/><text x="{x + bar * 0.45:.1f}" y="{y(share) - 3:.1f}" text-anchor="middle" '
                   f'font-size="8">{fps:.{0 if fps >= 20 else 1}f}</text>')
    for i, name in enumerate(rows):
        out.append(f'<text x="{left + (i + 0.5) * group:.1f}" y="{height - 14}" text-anchor="middle">{name}</text>')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(out + ['</svg>']) + '\n')
