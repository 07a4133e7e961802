/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/select/choose.h"

#include <math.h>

#include "base/base.h"

/* Objective MEMORY: of two choices with equal bytes, the faster one wins. */
#define TIE_BYTES_PER_NS 1e-6

void krn_chosen_deinit(struct krn_chosen *c)
{
    krn_choice_deinit(&c->choice);
    free(c->op_ns);
    free(c->op_sigma_ns);
    free(c->op_lose_ns);
    *c = KRN_CHOSEN_NULL;
}

/* ---- times with changes of layout ---- */

static bool may_stay(const struct krn_times *t, size_t op)
{
    return t->layouts && t->layouts[op].may_stay;
}

/* Return: whether @x's NCHW output stays in NCHW for @next. */
static bool stays(const struct krn_times *t, const struct krn_time *x, const struct krn_time *next)
{
    return x && next && may_stay(t, x->op) && x->primitive->nchw_out && next->primitive->nchw_in;
}

/* Time of @x's conversions between @before and @behind; NULL: a cut. */
static double converted_ns(const struct krn_times *t, const struct krn_time *before,
                           const struct krn_time *x, const struct krn_time *behind)
{
    double ns = 0;

    if (t->layouts && x->primitive->nchw_in && !stays(t, before, x)) {
        ns += t->layouts[x->op].in_ns;
    }
    if (t->layouts && x->primitive->nchw_out && !stays(t, x, behind)) {
        ns += t->layouts[x->op].out_ns;
    }
    return ns;
}

/* Time between primitives that are not NCHW. */
static double apart_ns(const struct krn_times *t, const struct krn_time *x)
{
    return x->ns + converted_ns(t, NULL, x, NULL);
}

/* The least time of op @op by a primitive that runs it alone. */
static double alone_ns(const struct krn_times *t, size_t op)
{
    double ns = -1;

    for (size_t i = 0; i < t->count; i++) {
        const struct krn_time *x = &t->times[i];

        if (x->op == op && !x->primitive->fused && (ns < 0 || apart_ns(t, x) < ns)) {
            ns = apart_ns(t, x);
        }
    }
    return base_max(ns, 0.0);
}

/* @ns: with changes of layout */
static void take(const struct krn_times *t, const struct krn_time *x, double ns,
                 struct krn_chosen *ret)
{
    if (x->primitive->fused) {
        double a = alone_ns(t, x->op), b = alone_ns(t, x->op + 1);
        double share = a + b > 0 ? a / (a + b) : 0.5;

        ret->choice.fused[x->op] = x->primitive;
        ret->op_sigma_ns[x->op] = x->sigma_ns * share;
        ret->op_sigma_ns[x->op + 1] = x->sigma_ns * (1 - share);
        ret->op_ns[x->op] = ns * share;
        ret->op_ns[x->op + 1] = ns * (1 - share);
    } else {
        ret->choice.own[x->op] = x->primitive;
        ret->op_sigma_ns[x->op] = x->sigma_ns;
        ret->op_ns[x->op] = ns;
    }
    ret->ns += ns;
    ret->packed_bytes += x->bytes;
    ret->inexact += x->primitive->inexact ? 1 + (size_t)x->primitive->fused : 0;
}

/* A plan may cut a pair apart: then the fastest primitive that is not INEXACT runs each op. */
static void fill_alone(const struct krn_times *t, struct krn_chosen *ret)
{
    base_autofree double *best = calloc(t->op_count + 1, sizeof(*best));

    for (size_t i = 0; best && i < t->count; i++) {
        const struct krn_time *x = &t->times[i];
        bool pair = ret->choice.fused[x->op] || (x->op > 0 && ret->choice.fused[x->op - 1]);

        if (pair && !x->primitive->fused && !x->primitive->inexact &&
            (!ret->choice.own[x->op] || apart_ns(t, x) < best[x->op])) {
            best[x->op] = apart_ns(t, x);
            ret->choice.own[x->op] = x->primitive;
        }
    }
}

static int chosen_init(const struct krn_times *t, struct krn_chosen *ret)
{
    *ret = KRN_CHOSEN_NULL;
    ret->op_ns = calloc(t->op_count + 1, sizeof(*ret->op_ns));
    ret->op_sigma_ns = calloc(t->op_count + 1, sizeof(*ret->op_sigma_ns));
    ret->op_lose_ns = calloc(t->op_count + 1, sizeof(*ret->op_lose_ns));
    if (!ret->op_ns || !ret->op_sigma_ns || !ret->op_lose_ns ||
        krn_choice_init(&ret->choice, t->op_count) < 0) {
        krn_chosen_deinit(ret);
        return -ENOMEM;
    }
    return 0;
}

/* the choice that runs t->times[@times[0..@count - 1]], in order of ops */
static int choose_times(const struct krn_times *t, const size_t *times, size_t count,
                        struct krn_chosen *ret)
{
    const struct krn_time *before = NULL;
    int r = chosen_init(t, ret);

    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct krn_time *x = &t->times[times[i]];
        const struct krn_time *behind = i + 1 < count ? &t->times[times[i + 1]] : NULL;

        take(t, x, x->ns + converted_ns(t, before, x, behind), ret);
        before = x;
    }
    if (r == 0) {
        fill_alone(t, ret);
    }
    return r;
}

static int from_path(const struct krn_times *t, const size_t *times, const struct krn_path *path,
                     struct krn_chosen *ret)
{
    base_autofree size_t *on = calloc(path->count + 1, sizeof(*on));
    int r;

    if (!on) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < path->count; i++) {
        on[i] = times[path->nodes[i]];
    }
    r = choose_times(t, on, path->count, ret);
    if (r == 0) {
        ret->states = path->states;
    }
    return r;
}

/* ---- the problem ---- */

enum { MODEL, NCHW, LAYOUTS };

struct problem {
    struct krn_path_problem p;
    struct krn_path_node *nodes; /* owned */
    size_t *times;               /* [node]: which of the times, owned */
    double *convert;             /* owned; NULL: no layout ever changes */
};

static void problem_deinit(struct problem *p)
{
    free(p->nodes);
    free(p->times);
    free(p->convert);
}

/* The minimised quantity of a time. */
static double weighed(const struct krn_choose_options *o, double ns)
{
    return o->objective == KRN_MEMORY ? TIE_BYTES_PER_NS * ns : ns;
}

static void add_node(const struct krn_times *t, const struct krn_choose_options *o, size_t i,
                     struct problem *p)
{
    const struct krn_time *x = &t->times[i];
    double bytes = (double)x->bytes, ns = x->ns;

    /* conversions that no edge covers */
    if (x->primitive->nchw_in && t->layouts && (x->op == 0 || !may_stay(t, x->op - 1))) {
        ns += t->layouts[x->op].in_ns;
    }
    if (x->primitive->nchw_out && t->layouts && !may_stay(t, x->op)) {
        ns += t->layouts[x->op].out_ns;
    }
    p->times[p->p.node_count] = i;
    p->nodes[p->p.node_count++] = (struct krn_path_node){
        .step = x->op,
        .span = x->primitive->fused ? 2 : 1,
        .takes = x->primitive->nchw_in ? NCHW : MODEL,
        .leaves = x->primitive->nchw_out ? NCHW : MODEL,
        .cost = (o->objective == KRN_MEMORY ? bytes : 0) + weighed(o, ns),
        .bytes = !o->front_inexact       ? bytes
                 : x->primitive->inexact ? (x->primitive->fused ? 2 : 1)
                                         : 0,
    };
}

static int problem_init(const struct krn_times *t, const struct krn_choose_options *o,
                        struct problem *ret)
{
    *ret = (struct problem){.nodes = calloc(t->count + 1, sizeof(*ret->nodes)),
                            .times = calloc(t->count + 1, sizeof(*ret->times))};
    if (t->layouts) {
        ret->convert = calloc(t->op_count * LAYOUTS * LAYOUTS + 1, sizeof(*ret->convert));
    }
    if (!ret->nodes || !ret->times || (t->layouts && !ret->convert)) {
        problem_deinit(ret);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (!t->times[i].primitive->inexact || !o->exact) {
            add_node(t, o, i, ret);
        }
    }
    for (size_t op = 1; op < t->op_count && t->layouts; op++) {
        double *edge = &ret->convert[op * LAYOUTS * LAYOUTS];

        if (may_stay(t, op - 1)) {
            edge[MODEL * LAYOUTS + NCHW] = weighed(o, t->layouts[op].in_ns);
            edge[NCHW * LAYOUTS + MODEL] = weighed(o, t->layouts[op - 1].out_ns);
        }
    }
    ret->p.step_count = t->op_count;
    ret->p.layout_count = LAYOUTS;
    ret->p.nodes = ret->nodes;
    ret->p.convert = ret->convert;
    return 0;
}

/* ---- choices ---- */

/* A path that was not to be the fastest, or not searched for exactly, loses for other reasons. */
static bool is_shortest(const struct krn_choose_options *o)
{
    return o->objective == KRN_LATENCY && o->packed_bytes_max == 0 &&
           (o->path.algorithm == KRN_PATH_DIJKSTRA || o->path.algorithm == KRN_PATH_A_STAR);
}

static int doubt(const struct krn_times *t, const struct problem *p, const struct krn_path *path,
                 struct krn_chosen *ret)
{
    base_autofree double *sigma = calloc(p->p.node_count + 1, sizeof(*sigma));
    int r = sigma ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < p->p.node_count; i++) {
        sigma[i] = t->times[p->times[i]].sigma_ns;
    }
    r = r < 0 ? r : krn_path_doubt(&p->p, path, sigma, ret->op_lose_ns);
    if (r < 0) {
        krn_chosen_deinit(ret);
    }
    return r;
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
    if (r == 0 && is_shortest(o)) {
        r = doubt(t, &p, &path, ret);
    }
    krn_path_deinit(&path);
    problem_deinit(&p);
    return r;
}

int krn_choose_front(const struct krn_times *t, const struct krn_choose_options *o, size_t max,
                     struct krn_chosen *ret, size_t *ret_count)
{
    struct krn_choose_options latency = *o;
    base_autofree struct krn_path *paths = calloc(max + 1, sizeof(*paths));
    struct problem p;
    size_t count = 0, made = 0;
    int r;

    latency.objective = KRN_LATENCY;
    if (o->front_inexact) {
        latency.packed_bytes_max = 0;
    }
    r = paths ? problem_init(t, &latency, &p) : -ENOMEM;
    if (r < 0) {
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
    problem_deinit(&p);
    *ret_count = count;
    return r;
}

/* ---- choices that exist already ---- */

int krn_choose_by(const struct krn_times *t, const struct krn_choice *choice,
                  struct krn_chosen *ret)
{
    base_autofree size_t *times = calloc(t->op_count + 1, sizeof(*times));
    size_t count = 0;

    if (!times) {
        return -ENOMEM;
    }
    for (size_t op = 0; op < t->op_count; op++) {
        const struct krn_primitive *fused = choice->fused[op];
        const struct krn_time *now = krn_times_of(t, op, fused ? fused : choice->own[op]);

        if (!now) {
            return KRN_E_UNTIMED;
        }
        times[count++] = (size_t)(now - t->times);
        op += fused ? 1 : 0;
    }
    return choose_times(t, times, count, ret);
}

double krn_chosen_doubt(const struct krn_chosen *c)
{
    double sum = 0;

    for (size_t op = 0; c->op_lose_ns && op < c->choice.op_count; op++) {
        sum += c->op_lose_ns[op];
    }
    return c->ns > 0 ? sum / c->ns : 0;
}

size_t krn_chosen_unsure(const struct krn_chosen *c, double share, bool *ret)
{
    double left = krn_chosen_doubt(c) * c->ns;
    size_t count = 0;

    for (size_t op = 0; op < c->choice.op_count; op++) {
        ret[op] = false;
    }
    while (count < c->choice.op_count && left > share * c->ns) {
        size_t most = SIZE_MAX;

        for (size_t op = 0; op < c->choice.op_count; op++) {
            if (!ret[op] && (most == SIZE_MAX || c->op_lose_ns[op] > c->op_lose_ns[most])) {
                most = op;
            }
        }
        ret[most] = true;
        left -= c->op_lose_ns[most];
        count++;
    }
    return count;
}

bool krn_chosen_beats(const struct krn_chosen *c, const struct krn_chosen *now)
{
    double variance = 0;

    for (size_t op = 0; op < c->choice.op_count; op++) {
        if (c->choice.own[op] != now->choice.own[op] ||
            c->choice.fused[op] != now->choice.fused[op]) {
            variance += c->op_sigma_ns[op] * c->op_sigma_ns[op] +
                        now->op_sigma_ns[op] * now->op_sigma_ns[op];
        }
    }
    return now->ns - c->ns > sqrt(variance);
}
