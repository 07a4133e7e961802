/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/choose.h"

#include <string.h>

#include "base.h"

/* Objective MEMORY: of two choices of the same bytes the faster one is taken. */
#define TIE_BYTES_PER_NS 1e-6

void krn_chosen_deinit(struct krn_chosen *c)
{
    krn_choice_deinit(&c->choice);
    free(c->op_ns);
    *c = KRN_CHOSEN_NULL;
}

/* The least time of op @op by a row that runs it alone. */
static double alone_ns(const struct krn_times *t, size_t op)
{
    double ns = -1;

    for (size_t i = 0; i < t->count; i++) {
        const struct krn_time *x = &t->times[i];

        if (x->op == op && !x->row->fused && (ns < 0 || x->ns < ns)) {
            ns = x->ns;
        }
    }
    return base_max(ns, 0.0);
}

static void take(const struct krn_times *t, const struct krn_time *x, struct krn_chosen *ret)
{
    if (x->row->fused) {
        double a = alone_ns(t, x->op), b = alone_ns(t, x->op + 1);
        double share = a + b > 0 ? a / (a + b) : 0.5;

        ret->choice.fused[x->op] = x->row;
        ret->op_ns[x->op] = x->ns * share;
        ret->op_ns[x->op + 1] = x->ns * (1 - share);
    } else {
        ret->choice.own[x->op] = x->row;
        ret->op_ns[x->op] = x->ns;
    }
    ret->ns += x->ns;
    ret->packed_bytes += x->bytes;
    ret->inexact += x->row->inexact ? 1 + (size_t)x->row->fused : 0;
}

/* Ops of a pair may be cut apart: then the fastest row that rounds no more than f32 runs each. */
static void fill_alone(const struct krn_times *t, struct krn_chosen *ret)
{
    base_autofree double *best = calloc(t->op_count + 1, sizeof(*best));

    for (size_t i = 0; best && i < t->count; i++) {
        const struct krn_time *x = &t->times[i];
        bool pair = ret->choice.fused[x->op] || (x->op > 0 && ret->choice.fused[x->op - 1]);

        if (pair && !x->row->fused && !x->row->inexact &&
            (!ret->choice.own[x->op] || x->ns < best[x->op])) {
            best[x->op] = x->ns;
            ret->choice.own[x->op] = x->row;
        }
    }
}

static int chosen_init(const struct krn_times *t, struct krn_chosen *ret)
{
    *ret = KRN_CHOSEN_NULL;
    ret->op_ns = calloc(t->op_count + 1, sizeof(*ret->op_ns));
    if (!ret->op_ns || krn_choice_init(&ret->choice, t->op_count) < 0) {
        krn_chosen_deinit(ret);
        return -ENOMEM;
    }
    return 0;
}

static int from_path(const struct krn_times *t, const size_t *times, const struct krn_path *path,
                     struct krn_chosen *ret)
{
    int r = chosen_init(t, ret);

    for (size_t i = 0; r == 0 && i < path->count; i++) {
        take(t, &t->times[times[path->nodes[i]]], ret);
    }
    if (r == 0) {
        fill_alone(t, ret);
        ret->states = path->states;
    }
    return r;
}

struct problem {
    struct krn_path_problem p;
    struct krn_path_node *nodes; /* owned */
    size_t *times;               /* [node]: which of the times, owned */
};

static void problem_deinit(struct problem *p)
{
    free(p->nodes);
    free(p->times);
}

static int problem_init(const struct krn_times *t, const struct krn_choose_options *o,
                        struct problem *ret)
{
    *ret = (struct problem){.nodes = calloc(t->count + 1, sizeof(*ret->nodes)),
                            .times = calloc(t->count + 1, sizeof(*ret->times))};
    if (!ret->nodes || !ret->times) {
        problem_deinit(ret);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        const struct krn_time *x = &t->times[i];
        double bytes = (double)x->bytes;

        if (x->row->inexact && o->exact) {
            continue;
        }
        ret->times[ret->p.node_count] = i;
        ret->nodes[ret->p.node_count++] = (struct krn_path_node){
            .step = x->op,
            .span = x->row->fused ? 2 : 1,
            .cost = o->objective == KRN_MEMORY ? bytes + TIE_BYTES_PER_NS * x->ns : x->ns,
            .bytes = !o->front_inexact ? bytes
                     : x->row->inexact ? (x->row->fused ? 2 : 1)
                                       : 0,
        };
    }
    ret->p.step_count = t->op_count;
    ret->p.form_count = 1;
    ret->p.nodes = ret->nodes;
    return 0;
}

int krn_choose(const struct krn_times *t, const struct krn_choose_options *o,
               struct krn_chosen *ret)
{
    struct krn_path path = KRN_PATH_NULL;
    struct problem p;
    size_t count;
    int r = problem_init(t, o, &p);

    if (r < 0) {
        return r;
    }
    r = krn_path_solve(&p.p, &o->path, &path);
    if (r == 0 && o->packed_bytes_max && path.bytes > (double)o->packed_bytes_max) {
        size_t states = path.states;

        krn_path_deinit(&path);
        r = krn_path_front(&p.p, (double)o->packed_bytes_max, 1, &path, &count);
        path.states = states;
    }
    if (r == 0) {
        r = from_path(t, p.times, &path, ret);
    }
    krn_path_deinit(&path);
    problem_deinit(&p);
    return r;
}

int krn_choose_front(const struct krn_times *t, const struct krn_choose_options *o, size_t max,
                     struct krn_chosen *ret, size_t *ret_count)
{
    struct krn_choose_options latency = *o;
    struct krn_path *paths = calloc(max + 1, sizeof(*paths));
    struct problem p;
    size_t count = 0, made = 0;
    int r;

    latency.objective = KRN_LATENCY;
    if (o->front_inexact) {
        latency.packed_bytes_max = 0;
    }
    r = paths ? problem_init(t, &latency, &p) : -ENOMEM;
    if (r < 0) {
        free(paths);
        return r;
    }
    r = krn_path_front(&p.p, (double)latency.packed_bytes_max, max, paths, &count);
    for (; r == 0 && made < count; made++) {
        r = from_path(t, p.times, &paths[made], &ret[made]);
        if (r < 0) {
            break;
        }
    }
    for (size_t i = 0; i < count; i++) {
        krn_path_deinit(&paths[i]);
    }
    while (r < 0 && made-- > 0) {
        krn_chosen_deinit(&ret[made]);
    }
    free(paths);
    problem_deinit(&p);
    *ret_count = count;
    return r;
}

int krn_choose_uniform(const struct krn_times *t, const char *only, struct krn_chosen *ret)
{
    int r = chosen_init(t, ret);

    for (size_t first = 0, end; r == 0 && first < t->count; first = end) {
        const struct krn_time *best = NULL;

        for (end = first; end < t->count && t->times[end].op == t->times[first].op; end++) {
            const struct krn_time *x = &t->times[end];
            bool named = krn_row_named(x->row, only);

            if (x->row->fused || x->row->inexact) {
                continue;
            }
            if (!best || named > krn_row_named(best->row, only) ||
                (named == krn_row_named(best->row, only) && x->ns < best->ns)) {
                best = x;
            }
        }
        if (best) {
            take(t, best, ret);
        }
    }
    return r;
}
