# SPDX-License-Identifier: Apache-2.0
"""The largest part of all wishes that a set of cores could ever keep, by the daemon's cost tables: docs/mix.md's bound, exact for
one or two kinds of cores. Whoever plans, no plan passes it in steady state by the same table."""


def seconds_of_units(problem):
    """[{EP: core-seconds}] of each unit, by the width and the frames at once that take the least."""
    costs, at_once = problem['costs'], problem.get('at_once') or {}
    units = []
    for u in range(len(problem['units'])):
        units.append({})
        for ep, by_width in costs.items():
            gains = (at_once.get(ep) or {}) and at_once[ep][u]
            part = min([1.0] + [g for g in gains or [] if g])
            units[-1][ep] = min(int(w) * times[u] for w, times in by_width.items() if times) * part / 1e9
    return units


def bound(problems, rates, lost=None):
    """problems: those of the method Costs; rates: frames a second wished of each; lost: {EP: cores} that another program takes all
    the time, which the tables do not show, since most units pass between two of its turns. Return: the part of all rates, or None
    if there are more than two kinds of cores."""
    cores = {k['name']: k['cores'] - (lost or {}).get(k['name'], 0) for k in problems[0]['kinds']}
    work = [{ep: rate * s for ep, s in unit.items()} for problem, rate in zip(problems, rates)
            for unit in seconds_of_units(problem)]
    if len(cores) > 2:
        return None
    if len(cores) == 1:
        (ep, count), = cores.items()
        return count / sum(w[ep] for w in work)
    (a, b), (on_a, on_b) = cores, cores.values()
    # The units that `a` is best at go there, in order, until both are equally full; one unit is divided.
    work.sort(key=lambda w: w[a] / w[b])
    done, left = 0.0, sum(w[b] for w in work)
    for w in work:
        # load of a: done + x w[a], of b: left - x w[b]
        x = (left * on_a - done * on_b) / (w[a] * on_b + w[b] * on_a)
        if x <= 1:
            x = max(x, 0.0)
            return 1 / max((done + x * w[a]) / on_a, (left - x * w[b]) / on_b)
        done, left = done + w[a], left - w[b]
    return on_a / done
