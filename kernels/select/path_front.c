/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front by dynamic programming over (node, bytes so far): of the paths to a node with nearly
 * equal bytes, the cheapest is kept. The cheapest path to a node is always kept, so the cheapest
 * path of all is exact.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/select/path_search.h"

#define CELLS 1024u

struct label {
    double cost, bytes; /* cost: infinite where there is none */
    uint32_t node;      /* the previous node; UINT32_MAX: none */
    uint16_t cell;      /* of that one */
};

struct front {
    const struct krn_path_problem *p;
    struct label *labels; /* [node_count][CELLS], owned */
    double cell_bytes;
};

static size_t cell_of(const struct front *f, double bytes)
{
    return base_min((size_t)(bytes / f->cell_bytes), (size_t)CELLS - 1);
}

static void relax(struct front *f, size_t to, struct label l, double bytes_max)
{
    struct label *at = &f->labels[to * CELLS + cell_of(f, l.bytes)];

    if (bytes_max > 0 && l.bytes > bytes_max) {
        return;
    }
    if (l.cost < at->cost || (l.cost == at->cost && l.bytes < at->bytes)) {
        *at = l;
    }
}

/* Nodes are sorted by step, so predecessors come first. */
static void fill(struct front *f, double bytes_max)
{
    const struct krn_path_problem *p = f->p;

    for (size_t i = 0; i < p->node_count * CELLS; i++) {
        f->labels[i].cost = INFINITY;
    }
    for (size_t i = 0; i < p->node_count; i++) {
        if (p->nodes[i].step == 0) {
            relax(f, i,
                  (struct label){krn_path_edge(p, SIZE_MAX, i), p->nodes[i].bytes, UINT32_MAX, 0},
                  bytes_max);
        }
    }
    for (size_t i = 0; i < p->node_count; i++) {
        size_t step = krn_path_after(p, i);

        for (size_t to = i + 1; to < p->node_count && p->nodes[to].step <= step; to++) {
            for (size_t c = 0; p->nodes[to].step == step && c < CELLS; c++) {
                const struct label *l = &f->labels[i * CELLS + c];

                if (l->cost < INFINITY) {
                    relax(f, to,
                          (struct label){l->cost + krn_path_edge(p, i, to),
                                         l->bytes + p->nodes[to].bytes, (uint32_t)i, (uint16_t)c},
                          bytes_max);
                }
            }
        }
    }
}

struct end {
    size_t node, cell;
    double cost, bytes;
};

static int by_cost(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if (x->cost != y->cost) {
        return x->cost < y->cost ? -1 : 1;
    }
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The ends of the Pareto-optimal paths. Return: how many, cheapest first. */
static size_t find_ends(const struct front *f, struct end *ends)
{
    const struct krn_path_problem *p = f->p;
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < p->node_count; i++) {
        for (size_t c = 0; krn_path_after(p, i) == p->step_count && c < CELLS; c++) {
            const struct label *l = &f->labels[i * CELLS + c];

            if (l->cost < INFINITY) {
                ends[count++] = (struct end){i, c, l->cost, l->bytes};
            }
        }
    }
    if (count) {
        qsort(ends, count, sizeof(*ends), by_cost);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || ends[i].bytes < ends[kept - 1].bytes) {
            ends[kept++] = ends[i];
        }
    }
    return kept;
}

static int path_to(const struct front *f, const struct end *e, struct krn_path *ret)
{
    struct krn_path path = {.cost = e->cost, .bytes = e->bytes};
    size_t node = e->node, cell = e->cell;

    path.nodes = calloc(f->p->step_count, sizeof(*path.nodes));
    if (!path.nodes) {
        return -ENOMEM;
    }
    for (;;) {
        const struct label *l = &f->labels[node * CELLS + cell];

        path.nodes[path.count++] = node;
        if (l->node == UINT32_MAX) {
            break;
        }
        node = l->node;
        cell = l->cell;
    }
    krn_path_reverse(path.nodes, path.count);
    *ret = path;
    return 0;
}

int krn_path_front(const struct krn_path_problem *p, double bytes_max, size_t max,
                   struct krn_path *ret, size_t *ret_count)
{
    struct front f = {.p = p};
    base_autofree struct label *labels = NULL;
    base_autofree struct end *ends = NULL;
    double most = 0, step_most = 0;
    size_t count, kept;
    int r = krn_path_check(p);

    if (r < 0 || max == 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < p->node_count; i++) { /* no path holds more */
        step_most = base_max(step_most, p->nodes[i].bytes);
        if (i + 1 == p->node_count || p->nodes[i + 1].step != p->nodes[i].step) {
            most += step_most;
            step_most = 0;
        }
    }
    most = bytes_max > 0 ? base_min(most, bytes_max) : most;
    f.cell_bytes = most > 0 ? most / CELLS : 1;
    f.labels = labels = calloc(p->node_count * CELLS, sizeof(*labels));
    ends = calloc(p->node_count * CELLS, sizeof(*ends));
    if (!labels || !ends) {
        return -ENOMEM;
    }
    fill(&f, bytes_max);
    count = find_ends(&f, ends);
    if (count == 0) {
        return -ENOSPC;
    }
    kept = base_min(count, max);
    for (size_t i = 0; i < kept; i++) {
        r = path_to(&f, &ends[kept > 1 ? i * (count - 1) / (kept - 1) : 0], &ret[i]);
        if (r < 0) {
            while (i-- > 0) {
                krn_path_deinit(&ret[i]);
            }
            return r;
        }
    }
    *ret_count = kept;
    return 0;
}
