/* SPDX-License-Identifier: Apache-2.0 */
/* What the shortest path may lose because the costs are uncertain. */
#include <math.h>

#include "base/base.h"
#include "kernels/select/figure.h"
#include "kernels/select/path_search.h"

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
    base_autofree size_t *first = calloc(p->step_count + 1, sizeof(*first));
    base_autofree size_t *on = calloc(p->step_count + 1, sizeof(*on));
    base_autofree double *to = calloc(p->node_count + 1, sizeof(*to));
    base_autofree double *behind = calloc(p->node_count + 1, sizeof(*behind));

    if (!first || !on || !to || !behind) {
        return -ENOMEM;
    }
    for (size_t step = 0, i = 0; step <= p->step_count; step++) {
        while (i < p->node_count && p->nodes[i].step < step) {
            i++;
        }
        first[step] = i;
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
