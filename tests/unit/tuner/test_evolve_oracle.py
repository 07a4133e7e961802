# SPDX-License-Identifier: Apache-2.0
"""NSGA-II and the hypervolume against DEAP (python3-deap). Exit: 0 passed, 1 failed, 77 without DEAP.

Equal: hypervolumes to 1e-9, ranks, crowding distances. About as good: the last fronts on three known problems.
"""
import math
import random
import subprocess
import sys

try:
    from deap import base, tools
    from deap.tools._hypervolume import hv
except ImportError:
    print("skipped: python3-deap is not installed")
    sys.exit(77)

GENES, MOST, POPULATION, GENERATIONS, SEEDS = 12, 1000, 100, 60, 8
PROBLEMS = {"zdt1": (2, (1.1, 5)), "zdt2": (2, (1.1, 5)), "dtlz2": (3, (2, 2, 2))}
LEAST_RATIO = 0.98


class Fitness3(base.Fitness):
    weights = (-1.0, -1.0, -1.0)


class Fitness2(base.Fitness):
    weights = (-1.0, -1.0)


class Individual(list):
    def __init__(self, genes, kind):
        super().__init__(genes)
        self.fitness = kind()


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(repr(w) if isinstance(w, float) else str(w) for w in words) + "\n")
        self.process.stdin.flush()
        return [float(w) for w in self.process.stdout.readline().split()]


def flat(points):
    return [x for p in points for x in p]


def volume(points, reference):
    return hv.hypervolume([list(p) for p in points], list(reference)) if points else 0


def check_volumes(tool, failures):
    rng = random.Random(1)
    for case in range(300):
        dimensions, count = 2 + case % 2, rng.choice((0, 1, 2, 5, 40))
        whole = case % 5 == 0  # ties
        points = [[float(rng.randint(0, 6)) if whole else rng.uniform(0, 5) for _ in range(dimensions)]
                  for _ in range(count)]
        reference = [4.5] * dimensions
        expected = volume([p for p in points if all(a < b for a, b in zip(p, reference))], reference)
        got = tool.ask("volume", dimensions, count, *reference, *flat(points))[0]
        if abs(got - expected) > 1e-9 * max(1, expected):
            failures.append(f"hypervolume of {points}: {got}, DEAP {expected}")
    return "300 hypervolumes"


def check_ranks(tool, failures):
    rng = random.Random(2)
    for case in range(150):
        objectives, count = 2 + case % 2, rng.choice((1, 2, 3, 20, 60))
        kind = Fitness2 if objectives == 2 else Fitness3
        people = []
        for _ in range(count):
            someone = Individual([], kind)
            # with ties only ranks are defined: the order of equal ones is each program's own
            someone.fitness.values = [float(rng.randint(0, 9)) if case % 3 == 0 else rng.uniform(0, 1)
                                      for _ in range(objectives)]
            people.append(someone)
        answer = tool.ask("rank", objectives, count, *flat(p.fitness.values for p in people))
        for rank, front in enumerate(tools.sortNondominated(people, count)):
            tools.emo.assignCrowdingDist(front)
            for someone in front:
                at = next(i for i, p in enumerate(people) if p is someone)
                if answer[2 * at] != rank:
                    failures.append(f"rank {answer[2 * at]}, DEAP {rank}")
                # DEAP divides by the number of objectives, too
                crowding, own = someone.fitness.crowding_dist * objectives, answer[2 * at + 1]
                if case % 3 and crowding != own and abs(crowding - own) > 1e-9 * crowding:
                    failures.append(f"crowding {own}, DEAP {crowding}")
    return "150 sets ranked and crowded"


def judge(problem, genes):
    x = [g / MOST for g in genes]
    if problem == "dtlz2":
        g = sum((v - 0.5) ** 2 for v in x[2:])
        a, b = x[0] * math.pi / 2, x[1] * math.pi / 2
        return (1 + g) * math.cos(a) * math.cos(b), (1 + g) * math.cos(a) * math.sin(b), (1 + g) * math.sin(a)
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return x[0], g * (1 - (math.sqrt(x[0] / g) if problem == "zdt1" else (x[0] / g) ** 2))


def deap_front(problem, seed):
    random.seed(seed)
    kind = Fitness2 if PROBLEMS[problem][0] == 2 else Fitness3

    def judged(someone):
        someone.fitness.values = judge(problem, someone)
        return someone

    people = [judged(Individual([random.randint(0, MOST) for _ in range(GENES)], kind)) for _ in range(POPULATION)]
    people = tools.selNSGA2(people, POPULATION)
    for _ in range(GENERATIONS - 1):
        children = [Individual(p, kind) for p in tools.selTournamentDCD(people, POPULATION)]
        fresh = []
        for a, b in zip(children[::2], children[1::2]):
            crossed = random.random() < 0.5
            if crossed:
                tools.cxTwoPoint(a, b)
            for someone in (a, b):
                mutated = random.random() < 0.2
                if mutated:
                    tools.mutUniformInt(someone, 0, MOST, 1 / GENES)
                if mutated or crossed:
                    fresh.append(judged(someone))
        people = tools.selNSGA2(people + fresh, POPULATION)
    return [p.fitness.values for p in tools.sortNondominated(people, POPULATION)[0]]


def check_fronts(tool, failures):
    told = []
    for problem, (objectives, reference) in PROBLEMS.items():
        ratios = []
        for seed in range(SEEDS):
            figures = tool.ask("run", problem, seed, GENERATIONS)
            points = [figures[i:i + objectives] for i in range(0, len(figures), objectives)]
            ratios.append(volume(points, reference) / volume(deap_front(problem, seed), reference))
        mean = sum(ratios) / SEEDS
        told.append(f"{problem} {mean:.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
        if mean < LEAST_RATIO:
            failures.append(f"{problem}: hypervolume {mean:.3f} of DEAP's, at least {LEAST_RATIO} wanted: {ratios}")
    return f"hypervolume of the last front by DEAP's, {SEEDS} seeds: " + ", ".join(told)


def main():
    tool, failures = Tool(sys.argv[1]), []
    for check in (check_volumes, check_ranks, check_fronts):
        print(check(tool, failures), flush=True)
    tool.process.stdin.close()
    for failure in failures[:20]:
        print("FAIL", failure)
    print(f"cases: {3 if not failures else 2} passed, {1 if failures else 0} failed, 0 skipped")
    return 1 if failures or tool.process.wait() else 0


sys.exit(main())
