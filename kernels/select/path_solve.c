/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest way through units and their layouts. */
#include "kernels/select/path.h"

#include <math.h>

#include "base/base.h"
#include "kernels/select/figure.h"
#include "kernels/select/path_search.h"

static const char *const names[KRN_PATH_ALGORITHM_COUNT] = {
    [KRN_PATH_DIJKSTRA] = "dijkstra",
    [KRN_PATH_A_STAR] = "a-star",
    [KRN_PATH_Q_LEARNING] = "q-learning",
    [KRN_PATH_DIRECT_PLUS] = "ds+",
    [KRN_PATH_DIRECT] = "ds",
    [KRN_PATH_RANDOM] = "rs",
};

const char *krn_path_name(enum krn_path_algorithm a)
{
    return names[a];
}

bool krn_path_find(const char *name, enum krn_path_algorithm *ret)
{
    for (size_t i = 0; i < KRN_PATH_ALGORITHM_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = (enum krn_path_algorithm)i;
            return true;
        }
    }
    return false;
}

static bool sane(double x)
{
    return isfinite(x) && x >= 0;
}

int krn_path_check(const struct krn_path_problem *p)
{
    size_t step = 0;

    if (p->step_count == 0 || p->layout_count == 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < p->node_count; i++) {
        const struct krn_path_node *n = &p->nodes[i];

        if (n->step < step || n->step >= p->step_count || n->span < 1 || n->span > 2 ||
            n->span > p->step_count - n->step || n->takes >= p->layout_count ||
            n->leaves >= p->layout_count || !sane(n->cost) || !sane(n->bytes)) {
            return -EINVAL;
        }
        /* a primitive alone at every step: then every node leads on to the end */
        if (n->step > step + 1 || (i == 0 && n->step > 0)) {
            return -EINVAL;
        }
        step = n->step;
    }
    for (size_t s = 0, i = 0; s < p->step_count; s++) {
        bool alone = false;

        for (; i < p->node_count && p->nodes[i].step == s; i++) {
            alone |= p->nodes[i].span == 1;
        }
        if (!alone) {
            return -EINVAL;
        }
    }
    for (size_t i = 0; p->convert && i < p->step_count * p->layout_count * p->layout_count; i++) {
        if (!sane(p->convert[i])) {
            return -EINVAL;
        }
    }
    return 0;
}

/* ---- Dijkstra and A* ---- */

struct queued {
    double key; /* cost so far, and for A* what remains at least */
    double cost;
    size_t node, from;
};

struct queue {
    struct queued *heap; /* the least key on top */
    size_t count;
};

static void push(struct queue *q, struct queued entry)
{
    size_t at = q->count++;

    while (at > 0 && q->heap[(at - 1) / 2].key > entry.key) {
        q->heap[at] = q->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    q->heap[at] = entry;
}

static struct queued pop(struct queue *q)
{
    struct queued top = q->heap[0], last = q->heap[--q->count];
    size_t at = 0;

    for (size_t child = 1; child < q->count; child = 2 * at + 1) {
        child += child + 1 < q->count && q->heap[child + 1].key < q->heap[child].key;
        if (q->heap[child].key >= last.key) {
            break;
        }
        q->heap[at] = q->heap[child];
        at = child;
    }
    q->heap[at] = last;
    return top;
}

/* Lower bound of the cost after @node: its cheapest next edge. It never overestimates and never
 * falls by more than an edge's cost, so the first arrival at a node is the cheapest. */
static double remains(const struct krn_path_search *s, size_t node)
{
    size_t step = krn_path_after(s->p, node);
    double least = INFINITY;

    for (size_t to = s->first[step]; step < s->p->step_count && to < s->first[step + 1]; to++) {
        least = base_min(least, krn_path_edge(s->p, node, to));
    }
    return isfinite(least) ? least : 0;
}

static void trace(struct krn_path_search *s, size_t node, const size_t *from)
{
    size_t count = 0;

    for (size_t at = node; at != SIZE_MAX; at = from[at]) {
        s->trail[count++] = at;
    }
    s->trail_count = count;
    krn_path_reverse(s->trail, count);
}

static void expand(struct krn_path_search *s, struct queue *q, size_t node, double cost,
                   double *best, bool guided)
{
    size_t step = krn_path_after(s->p, node);

    for (size_t to = s->first[step]; to < s->first[step + 1]; to++) {
        double sum = cost + krn_path_edge(s->p, node, to);

        s->states++;
        if (sum < best[to]) {
            best[to] = sum;
            push(q, (struct queued){sum + (guided ? remains(s, to) : 0), sum, to, node});
        }
    }
}

static int shortest(struct krn_path_search *s, bool guided)
{
    size_t nodes = s->p->node_count, edges = nodes;
    base_autofree double *best = calloc(nodes, sizeof(*best));
    base_autofree size_t *from = calloc(nodes, sizeof(*from));
    base_autofree bool *seen = calloc(nodes, sizeof(*seen));
    base_autofree struct queued *heap = NULL;
    struct queue q = {0};

    for (size_t i = 0; i < nodes; i++) { /* each edge is pushed at most once */
        size_t step = krn_path_after(s->p, i);

        edges += step < s->p->step_count ? s->first[step + 1] - s->first[step] : 0;
    }
    q.heap = heap = calloc(edges, sizeof(*heap));
    if (!best || !from || !seen || !heap) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < nodes; i++) {
        best[i] = INFINITY;
    }
    expand(s, &q, SIZE_MAX, 0, best, guided);
    while (q.count) {
        struct queued e = pop(&q);

        if (seen[e.node]) {
            continue;
        }
        seen[e.node] = true;
        from[e.node] = e.from;
        if (krn_path_after(s->p, e.node) == s->p->step_count) {
            s->cost = e.cost;
            trace(s, e.node, from);
            return 0;
        }
        expand(s, &q, e.node, e.cost, best, guided);
    }
    return -ENOTRECOVERABLE;
}

/* ---- greedy ---- */

/* A node that spans two steps is compared by its cost per step. */
static int direct(struct krn_path_search *s, bool convert)
{
    size_t from = SIZE_MAX;

    for (size_t step = 0; step < s->p->step_count; step = krn_path_after(s->p, from)) {
        size_t pick = s->first[step];
        double least = INFINITY;

        for (size_t to = s->first[step]; to < s->first[step + 1]; to++) {
            double cost = convert ? krn_path_edge(s->p, from, to) : s->p->nodes[to].cost;

            s->states++;
            if (cost / (double)s->p->nodes[to].span < least) {
                least = cost / (double)s->p->nodes[to].span;
                pick = to;
            }
        }
        s->cost += krn_path_edge(s->p, from, pick);
        s->trail[s->trail_count++] = pick;
        from = pick;
    }
    return 0;
}

/* ---- all of them ---- */

/* Return: [step_count + 1], the first node of each step and the end, owned; or NULL */
static size_t *first_nodes(const struct krn_path_problem *p)
{
    size_t *first = calloc(p->step_count + 1, sizeof(*first));

    for (size_t step = 0, i = 0; first && step <= p->step_count; step++) {
        while (i < p->node_count && p->nodes[i].step < step) {
            i++;
        }
        first[step] = i;
    }
    return first;
}

int krn_path_solve(const struct krn_path_problem *p, const struct krn_path_options *o,
                   struct krn_path *ret)
{
    struct krn_path_search s = {.p = p};
    int r = krn_path_check(p);

    if (r < 0) {
        return r;
    }
    s.first = first_nodes(p);
    s.trail = calloc(p->step_count, sizeof(*s.trail));
    r = s.first && s.trail ? 0 : -ENOMEM;
    if (r == 0) {
        switch (o->algorithm) {
        case KRN_PATH_DIJKSTRA:
        case KRN_PATH_A_STAR:
            r = shortest(&s, o->algorithm == KRN_PATH_A_STAR);
            break;
        case KRN_PATH_DIRECT_PLUS:
        case KRN_PATH_DIRECT:
            r = direct(&s, o->algorithm == KRN_PATH_DIRECT_PLUS);
            break;
        case KRN_PATH_Q_LEARNING:
        case KRN_PATH_RANDOM:
            r = krn_path_learn(&s, o, o->algorithm == KRN_PATH_Q_LEARNING);
            break;
        default:
            r = -EINVAL;
            break;
        }
    }
    free(s.first);
    if (r < 0) {
        free(s.trail);
        return r;
    }
    *ret = (struct krn_path){
        .count = s.trail_count, .nodes = s.trail, .cost = s.cost, .states = s.states};
    for (size_t i = 0; i < ret->count; i++) {
        ret->bytes += p->nodes[ret->nodes[i]].bytes;
    }
    return 0;
}

void krn_path_deinit(struct krn_path *path)
{
    free(path->nodes);
    *path = KRN_PATH_NULL;
}

/* ---- what the shortest path may lose because the costs are uncertain ---- */

/* Sets the least cost of all paths up to and with each node, and of what comes behind it. */
static void sweep(const struct krn_path_problem *p, const size_t *first, double *to, double *behind)
{
    for (size_t i = 0; i < p->node_count; i++) {
        to[i] = p->nodes[i].step == 0 ? krn_path_edge(p, SIZE_MAX, i) : INFINITY;
    }
    for (size_t i = 0; i < p->node_count; i++) {
        size_t step = krn_path_after(p, i);

        for (size_t k = first[step]; step < p->step_count && k < first[step + 1]; k++) {
            to[k] = base_min(to[k], to[i] + krn_path_edge(p, i, k));
        }
    }
    for (size_t i = p->node_count; i-- > 0;) {
        size_t step = krn_path_after(p, i);

        behind[i] = step < p->step_count ? INFINITY : 0;
        for (size_t k = first[step]; step < p->step_count && k < first[step + 1]; k++) {
            behind[i] = base_min(behind[i], krn_path_edge(p, i, k) + behind[k]);
        }
    }
}

static void weigh(const struct krn_path_problem *p, const double *sigma, const size_t *on,
                  size_t node, double behind, double *lose)
{
    const struct krn_path_node *n = &p->nodes[node];
    double variance = sigma[node] * sigma[node], gain;

    for (size_t s = n->step; s < n->step + n->span; s++) {
        if (on[s] == node) {
            return;
        }
        if (s == n->step || on[s] != on[s - 1]) {
            variance += sigma[on[s]] * sigma[on[s]];
        }
    }
    gain = krn_figure_gain(base_max(behind, 0.0), sqrt(variance)) / (double)n->span;
    for (size_t s = n->step; s < n->step + n->span; s++) {
        lose[s] = base_max(lose[s], gain);
    }
}

int krn_path_doubt(const struct krn_path_problem *p, const struct krn_path *path,
                   const double *sigma, double *ret_lose)
{
    base_autofree size_t *first = first_nodes(p);
    base_autofree size_t *on = calloc(p->step_count + 1, sizeof(*on));
    base_autofree double *to = calloc(p->node_count + 1, sizeof(*to));
    base_autofree double *behind = calloc(p->node_count + 1, sizeof(*behind));

    if (!first || !on || !to || !behind) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < path->count; i++) {
        const struct krn_path_node *n = &p->nodes[path->nodes[i]];

        for (size_t s = n->step; s < n->step + n->span; s++) {
            on[s] = path->nodes[i];
        }
    }
    sweep(p, first, to, behind);
    for (size_t s = 0; s < p->step_count; s++) {
        ret_lose[s] = 0;
    }
    for (size_t i = 0; i < p->node_count; i++) {
        weigh(p, sigma, on, i, to[i] + behind[i] - path->cost, ret_lose);
    }
    return 0;
}
