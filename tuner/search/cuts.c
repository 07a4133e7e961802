/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/cuts.h"

#include <float.h>
#include <math.h>

#include "base/base.h"
#include "tuner/search/places.h"
#include "tuner/search/search.h"

#define PART_MAX 1000u       /* denominators tried: whole multiples of least / 1..PART_MAX */
#define WHOLE_BITS 46        /* of the greatest weight, where weights have to be rounded */
#define RANK_NONE UINT32_MAX /* a border behind which every rest has been taken */

/* Sums of squared stage weights: at most the square of all weights, which are below 2^62. */
typedef unsigned __int128 tun_square;

/* Is every weight a whole multiple of 1 / @scale, within a few roundings and below @max. */
static bool whole(const double *weight, size_t units, double scale, double roundings, double max)
{
    for (size_t u = 0; u < units; u++) {
        double x = weight[u] * scale;

        if (!(x < max) || fabs(x - rint(x)) > roundings * DBL_EPSILON * x) {
            return false;
        }
    }
    return true;
}

/* Weights as whole numbers whose sum is below 2^62, as prefix sums: @ret [units + 1]. */
static void sum_weights(const double *weight, size_t units, uint64_t *ret)
{
    double least = INFINITY, most = 0;
    double scale = 0;
    int exponent;

    for (size_t u = 0; u < units; u++) {
        least = weight[u] > 0 ? base_min(least, weight[u]) : least;
        most = base_max(most, weight[u]);
    }
    if (whole(weight, units, 1, 0, ldexp(1, WHOLE_BITS))) {
        scale = 1;
    }
    for (unsigned part = 1; part <= PART_MAX && scale == 0; part++) {
        if (whole(weight, units, part / least, 4, 0x1p40)) {
            scale = part / least;
        }
    }
    frexp(most, &exponent);
    ret[0] = 0;
    for (size_t u = 0; u < units; u++) {
        double x = scale > 0 ? weight[u] * scale : ldexp(weight[u], WHOLE_BITS - exponent);

        ret[u + 1] = ret[u] + (uint64_t)rint(x);
    }
}

/* Return: 0 or -EINVAL, as tun_cuts_new() says. */
static int check(const double *weight, size_t units, size_t stages)
{
    if (stages == 0 || stages > units || stages > PL_STAGE_MAX || units > UINT16_MAX) {
        return -EINVAL;
    }
    for (size_t u = 0; u < units; u++) {
        if (!isfinite(weight[u]) || weight[u] < 0) {
            return -EINVAL;
        }
    }
    return 0;
}

/* One way to cut the units from a border on: the next border, and which of the ways from there. */
struct path {
    tun_square square;
    uint32_t next, rank;
};
/* The ways to cut units i.. into q stages that have been looked at, best first. */
struct node {
    struct path *paths; /* owned */
    size_t count, room;
    uint32_t *rank; /* owned, by next border from i + 1 on: the best rest not yet taken there */
};

struct tun_cuts {
    size_t units, stages_max;
    uint64_t *sum;      /* [units + 1], owned */
    tun_square *best;   /* [stages_max + 1][units + 1], owned: least of units i.. in q stages */
    struct node *nodes; /* the same shape, owned */
    uint32_t taken[PL_STAGE_MAX + 1]; /* ways handed out, by stages */
};

static tun_square square_of(const struct tun_cuts *c, size_t from, size_t to)
{
    uint64_t weight = c->sum[to] - c->sum[from];

    return (tun_square)weight * weight;
}

static size_t at(const struct tun_cuts *c, size_t q, size_t i)
{
    return q * (c->units + 1) + i;
}

/* best[q][first..last], the best next borders being within low..high. The leftmost best border
 * never moves left as i grows (squares of sums are Monge), so the middle one splits the rest. */
static void find_best(struct tun_cuts *c, size_t q, size_t first, size_t last, size_t low,
                      size_t high)
{
    size_t i = first + (last - first) / 2, pick = 0;
    tun_square best = 0;

    for (size_t j = base_max(low, i + 1); j <= base_min(high, c->units - q + 1); j++) {
        tun_square square = square_of(c, i, j) + c->best[at(c, q - 1, j)];

        if (pick == 0 || square < best) {
            best = square;
            pick = j;
        }
    }
    c->best[at(c, q, i)] = best;
    if (i > first) {
        find_best(c, q, first, i - 1, low, pick);
    }
    if (i < last) {
        find_best(c, q, i + 1, last, pick, high);
    }
}

int tun_cuts_new(const double *weight, size_t units, size_t stages_max, struct tun_cuts **ret)
{
    struct tun_cuts *c;
    int error = check(weight, units, stages_max);

    if (error) {
        return error;
    }
    c = calloc(1, sizeof(*c));
    if (!c) {
        return -ENOMEM;
    }
    *c = (struct tun_cuts){.units = units, .stages_max = stages_max};
    c->sum = calloc(units + 1, sizeof(*c->sum));
    c->best = calloc((stages_max + 1) * (units + 1), sizeof(*c->best));
    c->nodes = calloc((stages_max + 1) * (units + 1), sizeof(*c->nodes));
    if (!c->sum || !c->best || !c->nodes) {
        tun_cuts_free(c);
        return -ENOMEM;
    }
    sum_weights(weight, units, c->sum);
    for (size_t i = 0; i < units; i++) {
        c->best[at(c, 1, i)] = square_of(c, i, units);
    }
    for (size_t q = 2; q <= stages_max; q++) {
        find_best(c, q, 0, units - q, 1, units);
    }
    *ret = c;
    return 0;
}

struct tun_cuts *tun_cuts_free(struct tun_cuts *c)
{
    if (c) {
        for (size_t n = 0; c->nodes && n < (c->stages_max + 1) * (c->units + 1); n++) {
            free(c->nodes[n].paths);
            free(c->nodes[n].rank);
        }
        free(c->nodes);
        free(c->best);
        free(c->sum);
        free(c);
    }
    return NULL;
}

static int extend(struct tun_cuts *c, size_t q, size_t i);

/* Makes the rest of that rank known. Return: 0, TUN_E_DONE: there are not so many, -ENOMEM. */
static int require(struct tun_cuts *c, size_t q, size_t i, uint32_t rank)
{
    struct node *n = &c->nodes[at(c, q, i)];
    int error = 0;

    if (q == 1) {
        return rank == 0 ? 0 : TUN_E_DONE;
    }
    while (!error && n->count <= rank) {
        error = extend(c, q, i);
    }
    return error;
}

/* Finds the next best way to cut units i.. into q >= 2 stages. Only behind the border of the last
 * one found can a new rest have come up. Return: 0, TUN_E_DONE, -ENOMEM. */
static int extend(struct tun_cuts *c, size_t q, size_t i)
{
    struct node *n = &c->nodes[at(c, q, i)];
    size_t borders = c->units - q + 1 - i;
    struct path found = {.next = 0};
    int error = 0;

    n->rank = n->rank ? n->rank : calloc(borders, sizeof(*n->rank));
    if (!n->rank || !base_room(&n->paths, sizeof(*n->paths), n->count, &n->room)) {
        return -ENOMEM;
    }
    if (n->count > 0) {
        const struct path *last = &n->paths[n->count - 1];

        error = require(c, q - 1, last->next, last->rank + 1);
        n->rank[last->next - i - 1] = error == TUN_E_DONE ? RANK_NONE : last->rank + 1;
    }
    if (error && error != TUN_E_DONE) {
        return error;
    }
    for (size_t j = i + 1; j <= i + borders; j++) {
        uint32_t rank = n->rank[j - i - 1];
        tun_square square = square_of(c, i, j);

        if (rank == RANK_NONE) {
            continue;
        }
        square +=
            rank == 0 ? c->best[at(c, q - 1, j)] : c->nodes[at(c, q - 1, j)].paths[rank].square;
        if (found.next == 0 || square < found.square) {
            found = (struct path){.square = square, .next = (uint32_t)j, .rank = rank};
        }
    }
    if (found.next == 0) {
        return TUN_E_DONE;
    }
    n->paths[n->count++] = found;
    return 0;
}

int tun_cuts_next(struct tun_cuts *c, size_t stages, uint16_t *ret_layers)
{
    uint16_t layers[PL_STAGE_MAX];
    uint32_t rank;
    size_t i = 0;

    if (stages == 0 || stages > c->stages_max) {
        return -EINVAL;
    }
    rank = c->taken[stages];
    for (size_t q = stages; q > 0; q--) {
        int error = require(c, q, i, rank);
        size_t next = c->units;

        if (error) {
            return error;
        }
        if (q > 1) {
            const struct path *path = &c->nodes[at(c, q, i)].paths[rank];

            next = path->next;
            rank = path->rank;
        }
        layers[stages - q] = (uint16_t)(next - i);
        i = next;
    }
    memcpy(ret_layers, layers, stages * sizeof(*layers));
    c->taken[stages]++;
    return 0;
}

struct entry {
    tun_square square;
    uint32_t index; /* in order of the cuts from left to right */
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->square != y->square) {
        return x->square < y->square ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Every way to cut, from left to right: @ret_layers [count][stages], @ret_entries [count]. */
static void generate(const uint64_t *sum, size_t units, size_t stages, size_t count,
                     uint16_t *ret_layers, struct entry *ret_entries)
{
    size_t border[PL_STAGE_MAX + 1];

    for (size_t s = 0; s < stages; s++) {
        border[s] = s;
    }
    border[stages] = units;
    for (size_t n = 0; n < count; n++) {
        tun_square square = 0;
        size_t s;

        for (s = 0; s < stages; s++) {
            uint64_t weight = sum[border[s + 1]] - sum[border[s]];

            square += (tun_square)weight * weight;
            ret_layers[n * stages + s] = (uint16_t)(border[s + 1] - border[s]);
        }
        ret_entries[n] = (struct entry){.square = square, .index = (uint32_t)n};
        /* The rightmost border that can move does, and those behind it follow closely. */
        for (s = stages - 1; s > 0 && border[s] == units - stages + s; s--) {
        }
        border[s] += s > 0;
        for (s++; s < stages; s++) {
            border[s] = border[s - 1] + 1;
        }
    }
}

int tun_cuts_sorted(const double *weight, size_t units, size_t stages, uint16_t **ret,
                    size_t *ret_count)
{
    base_autofree uint64_t *sum = NULL;
    base_autofree uint16_t *layers = NULL;
    base_autofree struct entry *entries = NULL;
    uint16_t *sorted;
    int error = check(weight, units, stages);
    double ways = error ? 0 : tun_binomial(units - 1, stages - 1);
    size_t count;

    if (error || ways > TUN_DATABASE_MAX) {
        return error ? error : -E2BIG;
    }
    count = (size_t)ways;
    sum = calloc(units + 1, sizeof(*sum));
    layers = calloc(count * stages, sizeof(*layers));
    entries = calloc(count, sizeof(*entries));
    sorted = calloc(count * stages, sizeof(*sorted));
    if (!sum || !layers || !entries || !sorted) {
        free(sorted);
        return -ENOMEM;
    }
    sum_weights(weight, units, sum);
    generate(sum, units, stages, count, layers, entries);
    qsort(entries, count, sizeof(*entries), compare_entries);
    for (size_t n = 0; n < count; n++) {
        memcpy(&sorted[n * stages], &layers[entries[n].index * stages], stages * sizeof(*sorted));
    }
    *ret = sorted;
    *ret_count = count;
    return 0;
}
