/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Q-learning with experience replay as in QS-DNN (algorithm 1, eq. 2). An episode picks a node for
 * every step; the reward is each edge's negative cost. Half of the episodes explore (epsilon 1);
 * then epsilon falls by 0.1 after each 5 % of the episodes, down to 0. The last 128 episodes are
 * kept; after each episode, a batch of them is replayed.
 *
 * Where the paper is silent: a value is unknown, and no best one, until its edge was taken; then it
 * begins as what that brought. Values that begin at 0 are above all real ones here, and a rate of
 * 0.05 leaves them there for long: with eight primitives an operator that ended 7 % behind the
 * shortest path, with twelve 20 %. A node of two steps is discounted as two (semi-Markov: Sutton,
 * Precup, Singh, Artificial Intelligence 112, 1999), or two nodes would have a cheaper future.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/select/path_search.h"

#define EPISODES 1000u
#define RATE 0.05    /* section V-B */
#define DISCOUNT 0.9 /* section V-B */
#define REPLAY 128u  /* section IV-C2 */
#define BATCH 32u    /* of the kept episodes, after each */

struct learner {
    struct krn_path_search *s;
    uint64_t chance;
    size_t *edges; /* [node_count + 1]: the first edge after each node; the start comes first */
    double *value; /* [edge]: Q(node, next node); -INFINITY: unknown */
    size_t *kept;  /* [REPLAY][step_count]: the paths of late episodes */
    size_t *now;   /* [step_count]: the path of this episode */
    size_t kept_count, next;
    double unit; /* unit of costs, so that values are near 1 */
};

/* xorshift64*; source: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled". Return: 0 <= x < 1. */
static double chance(struct learner *l)
{
    l->chance ^= l->chance >> 12;
    l->chance ^= l->chance << 25;
    l->chance ^= l->chance >> 27;
    return (double)((l->chance * 2685821657736338717ull) >> 11) / 9007199254740992.0;
}

static double *values_behind(const struct learner *l, size_t node)
{
    return &l->value[l->edges[node == SIZE_MAX ? 0 : node + 1]];
}

static size_t best_of(const double *value, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        if (value[i] > value[best]) {
            best = i;
        }
    }
    return best;
}

static size_t next_count(const struct learner *l, size_t node)
{
    size_t step = krn_path_after(l->s->p, node);

    return step < l->s->p->step_count ? l->s->first[step + 1] - l->s->first[step] : 0;
}

static void episode(struct learner *l, const struct krn_path_options *o, double epsilon)
{
    const struct krn_path_problem *p = l->s->p;
    size_t from = SIZE_MAX, count = 0;
    double cost = 0;

    for (size_t step = 0; step < p->step_count; step = krn_path_after(p, from)) {
        size_t choices = next_count(l, from), pick = l->s->first[step];

        pick += chance(l) < epsilon ? (size_t)(chance(l) * (double)choices)
                                    : best_of(values_behind(l, from), choices);
        cost += krn_path_edge(p, from, pick);
        l->now[count++] = from = pick;
        l->s->states++;
    }
    if (cost < l->s->cost) {
        l->s->cost = cost;
        l->s->trail_count = count;
        memcpy(l->s->trail, l->now, count * sizeof(*l->now));
    }
    if (o->episode) {
        o->episode(o->arg, l->now, count, cost);
    }
}

/* Q(s, a) = Q(s, a) (1 - rate) + rate (r + discount max Q(s', .)), from the end to the start; of a
 * node of two steps each has half of the cost. */
static void learn_from(struct learner *l, const size_t *path)
{
    const struct krn_path_problem *p = l->s->p;
    size_t count = 0;

    while (count == 0 || krn_path_after(p, path[count - 1]) < p->step_count) {
        count++;
    }
    for (size_t i = count; i-- > 0;) {
        size_t from = i ? path[i - 1] : SIZE_MAX, to = path[i], ahead = next_count(l, to);
        double *q = &values_behind(l, from)[to - l->s->first[p->nodes[to].step]];
        const double *behind = values_behind(l, to);
        double target = ahead ? behind[best_of(behind, ahead)] : 0;
        double each = krn_path_edge(p, from, to) / l->unit / (double)p->nodes[to].span;

        for (size_t step = 0; step < p->nodes[to].span; step++) {
            target = DISCOUNT * target - each;
        }
        *q = *q > -INFINITY ? *q * (1 - RATE) + RATE * target : target;
    }
}

static void keep_and_replay(struct learner *l)
{
    size_t steps = l->s->p->step_count;

    memcpy(&l->kept[l->next * steps], l->now, steps * sizeof(*l->now));
    learn_from(l, l->now);
    l->next = (l->next + 1) % REPLAY;
    l->kept_count = base_min(l->kept_count + 1, (size_t)REPLAY);
    for (size_t i = 0; i < BATCH; i++) {
        learn_from(l, &l->kept[(size_t)(chance(l) * (double)l->kept_count) * steps]);
    }
}

static int learner_init(struct learner *l)
{
    const struct krn_path_problem *p = l->s->p;
    size_t edges = 0;

    l->edges = calloc(p->node_count + 2, sizeof(*l->edges));
    if (!l->edges) {
        return -ENOMEM;
    }
    for (size_t i = 0; i <= p->node_count; i++) {
        l->edges[i] = edges;
        edges += next_count(l, i ? i - 1 : SIZE_MAX);
    }
    for (size_t i = 0; i < p->node_count; i++) {
        l->unit = base_max(l->unit, p->nodes[i].cost);
    }
    l->unit = l->unit > 0 ? l->unit : 1;
    l->value = malloc((edges + 1) * sizeof(*l->value));
    l->kept = calloc(REPLAY * p->step_count, sizeof(*l->kept));
    l->now = calloc(p->step_count, sizeof(*l->now));
    for (size_t i = 0; l->value && i <= edges; i++) {
        l->value[i] = -INFINITY;
    }
    return l->value && l->kept && l->now ? 0 : -ENOMEM;
}

int krn_path_learn(struct krn_path_search *s, const struct krn_path_options *o, bool learn)
{
    struct learner l = {.s = s, .chance = o->seed ? o->seed : 1};
    size_t episodes = o->episodes ? o->episodes : EPISODES;
    int r = learner_init(&l);

    s->cost = INFINITY;
    for (size_t i = 0; r == 0 && i < episodes; i++) {
        size_t twentieth = i * 20 / episodes; /* 0-9: epsilon 1; 10: 0.9 ... 18: 0.1; 19: 0 */
        double epsilon = twentieth < 10 ? 1 : (double)(19 - twentieth) / 10;

        episode(&l, o, learn ? epsilon : 1);
        if (learn) {
            keep_and_replay(&l);
        }
    }
    free(l.edges);
    free(l.value);
    free(l.kept);
    free(l.now);
    return r;
}
