/* SPDX-License-Identifier: Apache-2.0 */
/* Proposes which ops run on bytes, by paths over primitives of both data types. */
#include "kernels/select/mixed.h"

#include <math.h>

#include "base/base.h"

#define SLOWER_MOST 1.25 /* QS-DNN, section IV-C3 */
#define PATHS_MAX 64u    /* of one front */

enum { REAL, BYTES, LAYOUTS };

/* Of bytes, in times of what makes them count as much as time. */
static const double weights[] = {0, 0.25, 4};
/* Of the error of all ops: the front has as many cells for little error as for much. */
static const double limits[] = {0, 1.0 / 32, 1.0 / 1024};

struct node {
    struct krn_path_node path;
    double ns, bytes;
    bool on_bytes;
};

struct mixed {
    const struct krn_mixed *x;
    struct krn_path_problem p;
    struct node *nodes; /* [p.node_count], owned, as are the others */
    struct krn_path_node *path_nodes;
    double *convert;
    double error_most;
    struct krn_mixed_choice *found; /* [count], no two with the same data types */
    size_t count, room;
    double fastest; /* ns + weight * bytes of the best episode */
    int error;
};

void krn_mixed_choice_deinit(struct krn_mixed_choice *c)
{
    free(c->on_bytes);
    *c = (struct krn_mixed_choice){0};
}

/* ---- the problem ---- */

static void add_real(struct mixed *m, const struct krn_time *t)
{
    const struct krn_primitive *v = t->primitive;
    const struct krn_layout_time *l = m->x->real->layouts ? &m->x->real->layouts[t->op] : NULL;
    double ns = t->ns;

    if (v->inexact && !m->x->inexact) {
        return;
    }
    ns += l && v->nchw_in ? l->in_ns : 0;
    ns += l && v->nchw_out ? l->out_ns : 0;
    m->nodes[m->p.node_count++] = (struct node){
        .path = {.step = t->op,
                 .span = v->fused ? 2 : 1,
                 .takes = REAL,
                 .leaves = REAL,
                 .bytes = v->inexact ? m->x->inexact_error * (v->fused ? 2 : 1) : 0},
        .ns = ns,
        .bytes = (double)t->bytes,
    };
}

static void add_bytes(struct mixed *m, size_t op, const struct krn_time *t)
{
    if (t->primitive->fused) {
        return;
    }
    m->nodes[m->p.node_count++] = (struct node){
        .path = {.step = op,
                 .span = 1,
                 .takes = m->x->takes[op] ? BYTES : REAL,
                 .leaves = m->x->leaves[op] ? BYTES : REAL,
                 .bytes = m->x->error[op]},
        .ns = t->ns + (op == 0 && m->x->takes[op] ? m->x->to_bytes_ns[op] : 0),
        .bytes = (double)t->bytes,
        .on_bytes = true,
    };
    m->error_most += m->x->error[op];
}

static int mixed_init(struct mixed *m, const struct krn_mixed *x)
{
    size_t ops = x->real->op_count, r = 0, most = x->real->count;

    for (size_t op = 0; op < ops; op++) {
        most += x->of[op] < SIZE_MAX ? x->bytes->count : 0;
    }
    *m = (struct mixed){.x = x, .fastest = INFINITY};
    m->nodes = calloc(most + 1, sizeof(*m->nodes));
    m->path_nodes = calloc(most + 1, sizeof(*m->path_nodes));
    m->convert = calloc(ops * LAYOUTS * LAYOUTS + 1, sizeof(*m->convert));
    if (!m->nodes || !m->path_nodes || !m->convert) {
        return -ENOMEM;
    }
    for (size_t op = 0; op < ops; op++) {
        for (; r < x->real->count && x->real->times[r].op == op; r++) {
            add_real(m, &x->real->times[r]);
        }
        for (size_t i = 0; x->of[op] < SIZE_MAX && i < x->bytes->count; i++) {
            if (x->bytes->times[i].op == x->of[op]) {
                add_bytes(m, op, &x->bytes->times[i]);
            }
        }
        m->convert[(op * LAYOUTS + REAL) * LAYOUTS + BYTES] = x->to_bytes_ns[op];
        m->convert[(op * LAYOUTS + BYTES) * LAYOUTS + REAL] = x->to_real_ns[op];
    }
    m->p.step_count = ops;
    m->p.layout_count = LAYOUTS;
    m->p.nodes = m->path_nodes;
    m->p.convert = m->convert;
    return 0;
}

static void mixed_deinit(struct mixed *m)
{
    free(m->nodes);
    free(m->path_nodes);
    free(m->convert);
    for (size_t i = 0; i < m->count; i++) {
        krn_mixed_choice_deinit(&m->found[i]);
    }
    free(m->found);
}

static void weigh(struct mixed *m, double ns_per_byte)
{
    for (size_t i = 0; i < m->p.node_count; i++) {
        m->path_nodes[i] = m->nodes[i].path;
        m->path_nodes[i].cost = m->nodes[i].ns + ns_per_byte * m->nodes[i].bytes;
    }
}

/* ---- what paths found ---- */

/* Adds the data types of a path, or what is better of it if they are known. */
static void add_found(struct mixed *m, const size_t *nodes, size_t count)
{
    struct krn_mixed_choice c = {.on_bytes = calloc(m->p.step_count + 1, sizeof(*c.on_bytes))};
    size_t layout = REAL, i = 0;

    if (!c.on_bytes) {
        m->error = -ENOMEM;
        return;
    }
    for (size_t k = 0; k < count; k++) {
        const struct node *n = &m->nodes[nodes[k]];

        c.ns += n->ns;
        c.ns += k ? m->convert[(n->path.step * LAYOUTS + layout) * LAYOUTS + n->path.takes] : 0;
        c.bytes += n->bytes;
        c.error += n->path.bytes;
        c.on_bytes[n->path.step] = n->on_bytes;
        layout = n->path.leaves;
    }
    while (i < m->count && memcmp(m->found[i].on_bytes, c.on_bytes, m->p.step_count) != 0) {
        i++;
    }
    if (i < m->count) {
        m->found[i].ns = base_min(m->found[i].ns, c.ns);
        m->found[i].bytes = base_min(m->found[i].bytes, c.bytes);
        m->found[i].error = base_min(m->found[i].error, c.error);
        free(c.on_bytes);
        return;
    }
    if (m->count == m->room) {
        size_t room = 2 * m->room + 16;
        struct krn_mixed_choice *more = realloc(m->found, room * sizeof(*more));

        if (!more) {
            free(c.on_bytes);
            m->error = -ENOMEM;
            return;
        }
        m->found = more;
        m->room = room;
    }
    m->found[m->count++] = c;
}

static int exact_fronts(struct mixed *m)
{
    struct krn_path_options shortest = {.algorithm = KRN_PATH_DIJKSTRA};
    struct krn_path fastest = KRN_PATH_NULL, paths[PATHS_MAX];
    double bytes = 0, ns_per_byte;
    int r;

    weigh(m, 0);
    r = krn_path_solve(&m->p, &shortest, &fastest);
    for (size_t i = 0; i < fastest.count; i++) {
        bytes += m->nodes[fastest.nodes[i]].bytes;
    }
    ns_per_byte = bytes > 0 ? fastest.cost / bytes : 0;
    krn_path_deinit(&fastest);
    for (size_t w = 0; r == 0 && w < base_array_count(weights); w++) {
        weigh(m, weights[w] * ns_per_byte);
        for (size_t l = 0; r == 0 && l < base_array_count(limits); l++) {
            size_t count = 0;

            r = krn_path_front(&m->p, limits[l] * m->error_most, PATHS_MAX, paths, &count);
            for (size_t i = 0; r == 0 && i < count; i++) {
                add_found(m, paths[i].nodes, paths[i].count);
                krn_path_deinit(&paths[i]);
            }
        }
    }
    return r;
}

static void episode(void *arg, const size_t *nodes, size_t count, double cost)
{
    struct mixed *m = arg;

    m->fastest = base_min(m->fastest, cost);
    if (cost <= SLOWER_MOST * m->fastest) {
        add_found(m, nodes, count);
    }
}

static int learned_front(struct mixed *m, const struct krn_path_options *search)
{
    struct krn_path_options o = *search;
    struct krn_path path = KRN_PATH_NULL;
    size_t kept = 0;
    int r;

    weigh(m, 0);
    o.episode = episode;
    o.arg = m;
    r = krn_path_solve(&m->p, &o, &path);
    krn_path_deinit(&path);
    for (size_t i = 0; i < m->count; i++) { /* the fastest was found later */
        if (m->found[i].ns <= SLOWER_MOST * m->fastest) {
            m->found[kept++] = m->found[i];
        } else {
            krn_mixed_choice_deinit(&m->found[i]);
        }
    }
    m->count = kept;
    return r;
}

/* ---- the front ---- */

static bool beats(const struct krn_mixed_choice *a, const struct krn_mixed_choice *b)
{
    return a->ns <= b->ns && a->bytes <= b->bytes && a->error <= b->error &&
           (a->ns < b->ns || a->bytes < b->bytes || a->error < b->error);
}

static int by_ns(const void *a, const void *b)
{
    const struct krn_mixed_choice *x = a, *y = b;

    if (x->ns != y->ns) {
        return x->ns < y->ns ? -1 : 1;
    }
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1)
                                : (x->error > y->error) - (x->error < y->error);
}

static void leave_best(struct mixed *m)
{
    size_t kept = 0;

    if (m->count) {
        qsort(m->found, m->count, sizeof(*m->found), by_ns);
    }
    for (size_t i = 0; i < m->count; i++) { /* what beats one is sorted before it */
        bool beaten = false;

        for (size_t k = 0; k < kept && !beaten; k++) {
            beaten = beats(&m->found[k], &m->found[i]);
        }
        if (beaten) {
            krn_mixed_choice_deinit(&m->found[i]);
        } else {
            m->found[kept++] = m->found[i];
        }
    }
    m->count = kept;
}

/* Takes @max of the choices, which are sorted: the ends, the smallest, and a spread. */
static void hand_over(struct mixed *m, size_t max, struct krn_mixed_choice *ret, size_t *ret_count)
{
    size_t least = 0, smallest = 0;
    bool *taken = calloc(m->count + 1, sizeof(*taken));

    for (size_t i = 0; i < m->count; i++) {
        least = m->found[i].error < m->found[least].error ? i : least;
        smallest = m->found[i].bytes < m->found[smallest].bytes ? i : smallest;
    }
    *ret_count = 0;
    if (!taken) {
        m->error = -ENOMEM;
        return;
    }
    taken[0] = taken[least] = taken[smallest] = true;
    for (size_t i = 0; i < max && m->count; i++) {
        size_t free_places = max;

        for (size_t k = 0; k < m->count; k++) {
            free_places -= taken[k] && free_places > 0;
        }
        taken[max > 1 ? i * (m->count - 1) / (max - 1) : 0] |= free_places > 0;
    }
    for (size_t i = 0; i < m->count && *ret_count < max; i++) {
        if (taken[i]) {
            ret[(*ret_count)++] = m->found[i];
            m->found[i].on_bytes = NULL;
        }
    }
    free(taken);
}

int krn_mixed_front(const struct krn_mixed *x, const struct krn_path_options *search, size_t max,
                    struct krn_mixed_choice *ret, size_t *ret_count)
{
    struct mixed m;
    int r = max ? mixed_init(&m, x) : -EINVAL;

    *ret_count = 0;
    if (max == 0) {
        return r;
    }
    if (r == 0) {
        r = search->algorithm == KRN_PATH_Q_LEARNING ? learned_front(&m, search) : exact_fronts(&m);
    }
    if (r == 0 && m.error == 0) {
        leave_best(&m);
        hand_over(&m, max, ret, ret_count);
    }
    r = r < 0 ? r : m.error;
    mixed_deinit(&m);
    return r;
}
