/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipe-it, algorithms 1 to 3 (its section VI): water that flows down a pipeline of one-core stages,
 * then neighbours of one EP merged while that helps. All on the time matrix, so there is one
 * trial: the plan it arrives at.
 *
 * Algorithm 3 as printed ends an EP's loop at the first pair that does not merge ("break"). The
 * results that the paper prints cannot come out of that: B4-s2-s2 needs a second pair of small
 * cores to merge after (s,2)-(s,1) was refused, and so does B2-B2-s3-s1 with the big ones. Going on
 * to the next pair after every success does not give s3-s1 in one pass either, and contradicts the
 * text's walk-through, where (B,2) grows to (B,3) "and beyond". What gives both: a stage grows as
 * long as (12) holds for it and its next neighbour; when it fails, that stage is finished (this is
 * what the break breaks) and the next pair is looked at; and since "Algorithm 3 runs iteratively
 * until no further merging of stages is helpful", passes over an EP repeat until one merges
 * nothing. A merged stage that has become larger than the one in front of it, which the order of
 * (10) does not allow, moves in front. Every merge leaves one stage less, so this ends.
 *
 * (12) says nothing of stages that got no work: both of its sides are 0. Two of them merge: they
 * are empty "because of poor computation capabilities. Therefore, the merging of stages is
 * necessary" (section VI-D), and B4-s4, the paper's result for AlexNet and SqueezeNet, could not
 * come of a flow that reaches no small core. One beside a stage that has work merges by (12) as it
 * is, when that work is done sooner by the wider stage.
 *
 * Algorithm 2 always starts with all layers in the first stage. A split found by algorithm 1 moves
 * to the front, never back, when its stages' borders do, so the borders only ever move forward and
 * the flow settles; costs that break this (not a number) are stopped by a bound on the rounds. As
 * printed, a unit moves only if its stage is still the slower one afterwards, so a heavy unit at a
 * border may leave a stage slow though the move would help; small changes of the costs can change
 * the result much.
 */

#include "tuner/learn.h"
#include "tuner/search/places.h"
#include "tuner/search/search_private.h"

struct stage {
    uint16_t ep, width;
    size_t end; /* one past its last unit; it begins where the one before ends */
};

struct pipeline {
    const struct tun_problem *p;
    size_t count;
    struct stage stages[PL_STAGE_MAX];
};

struct pipe_it {
    struct pl_plan plan;
    bool asked;
};

static double cost(const struct pipeline *l, const struct stage *s, size_t unit)
{
    return tun_cell_at(&l->p->costs, s->ep, s->width, unit)->ns;
}

static size_t begin_of(const struct pipeline *l, size_t i)
{
    return i ? l->stages[i - 1].end : 0;
}

/* Eq. 9, for units first..end-1. */
static double stage_ns(const struct pipeline *l, const struct stage *s, size_t first, size_t end)
{
    double sum = 0;

    for (size_t u = first; u < end; u++) {
        sum += cost(l, s, u);
    }
    return sum;
}

/* Algorithm 1 for stages i and i + 1. */
static void find_split(struct pipeline *l, size_t i)
{
    struct stage *a = &l->stages[i], *b = &l->stages[i + 1];
    size_t first = begin_of(l, i), split = b->end;
    double a_ns = stage_ns(l, a, first, b->end), b_ns = 0;

    while (split > first && a_ns - cost(l, a, split - 1) > b_ns + cost(l, b, split - 1)) {
        split--;
        a_ns -= cost(l, a, split);
        b_ns += cost(l, b, split);
    }
    a->end = split;
}

/* Algorithm 2. */
static void work_flow(struct pipeline *l)
{
    size_t rounds = l->count * l->p->unit_count + 1;
    bool changed = true;

    for (size_t i = 0; i < l->count; i++) {
        l->stages[i].end = l->p->unit_count;
    }
    while (changed && rounds-- > 0) {
        changed = false;
        for (size_t i = 0; i + 1 < l->count; i++) {
            size_t before = l->stages[i].end;

            find_split(l, i);
            changed |= l->stages[i].end != before;
        }
    }
}

/* Eq. 12 for stages i and i + 1, of one EP, or two that got no work. */
static bool merging_helps(const struct pipeline *l, size_t i)
{
    const struct stage *a = &l->stages[i], *b = &l->stages[i + 1];
    struct stage merged = {a->ep, (uint16_t)(a->width + b->width), b->end};
    size_t first = begin_of(l, i);

    if (first == b->end) {
        return true;
    }
    return stage_ns(l, &merged, first, b->end) <
           base_max(stage_ns(l, a, first, a->end), stage_ns(l, b, a->end, b->end));
}

/* Return: where the merged stage is now, in front of smaller ones of its EP. */
static size_t merge(struct pipeline *l, size_t i)
{
    struct stage merged = l->stages[i];

    merged.width = (uint16_t)(merged.width + l->stages[i + 1].width);
    memmove(&l->stages[i + 1], &l->stages[i + 2], (l->count - i - 2) * sizeof(merged));
    l->count--;
    while (i > 0 && l->stages[i - 1].ep == merged.ep && l->stages[i - 1].width < merged.width) {
        l->stages[i] = l->stages[i - 1];
        i--;
    }
    l->stages[i] = merged;
    work_flow(l);
    return i;
}

/* One of algorithm 3's loops, over the stages of an EP, see above. */
static void merge_ep(struct pipeline *l, uint16_t ep)
{
    bool merged = true;

    while (merged) {
        size_t i = 0;

        merged = false;
        while (i + 1 < l->count) {
            if (l->stages[i].ep == ep && l->stages[i + 1].ep == ep && merging_helps(l, i)) {
                i = merge(l, i);
                merged = true;
            } else {
                i++;
            }
        }
    }
}

/* A stage per core, EPs in rank order; where that is more than a plan may have, of the fewest
 * cores each that are not. */
static void first_stages(struct pipeline *l)
{
    size_t limit = l->p->bounds.stages_max;
    size_t rank[PL_EP_MAX], eps, cores_each = 0, needed;

    tun_rank_eps(l->p, rank);
    limit = limit ? base_min(limit, (size_t)PL_STAGE_MAX) : PL_STAGE_MAX;
    eps = base_min(limit, l->p->ep_count);
    do {
        cores_each++;
        needed = 0;
        for (size_t k = 0; k < eps; k++) {
            needed += (l->p->eps[rank[k]].cores + cores_each - 1) / cores_each;
        }
    } while (needed > limit);
    for (size_t k = 0; k < eps; k++) {
        size_t left = l->p->eps[rank[k]].cores;

        while (left > 0) {
            size_t width = base_min(left, cores_each);

            l->stages[l->count++] = (struct stage){(uint16_t)rank[k], (uint16_t)width, 0};
            left -= width;
        }
    }
}

/* Algorithm 3; stages that got no work are left out. */
static void merge_stage(const struct tun_problem *p, struct pl_plan *ret)
{
    struct pipeline l = {.p = p};
    size_t rank[PL_EP_MAX];

    tun_rank_eps(p, rank);
    first_stages(&l);
    work_flow(&l);
    for (size_t k = 0; k < p->ep_count; k++) {
        merge_ep(&l, (uint16_t)rank[k]);
    }
    *ret = (struct pl_plan){0};
    for (size_t i = 0; i < l.count; i++) {
        size_t first = begin_of(&l, i);

        if (l.stages[i].end > first) {
            ret->stages[ret->stage_count++] =
                (struct pl_stage_plan){.first_unit = (uint16_t)first,
                                       .last_unit = (uint16_t)(l.stages[i].end - 1),
                                       .group_count = 1,
                                       .groups = {{l.stages[i].ep, l.stages[i].width, 1}}};
        }
    }
}

static int start(struct tun_search *s)
{
    struct pipe_it *state = s->state;

    tun_fill(&s->problem);
    if (tun_problem_check(&s->problem, s->reason) < 0) {
        return -EINVAL;
    }
    merge_stage(&s->problem, &state->plan);
    return 0;
}

static int ask(struct tun_search *s, struct pl_plan *ret)
{
    struct pipe_it *state = s->state;

    if (state->asked) {
        return TUN_E_DONE;
    }
    state->asked = true;
    *ret = state->plan;
    return 0;
}

static void tell(struct tun_search *s, const struct tun_trial *t)
{
    tun_learn(&s->problem, t);
}

const struct tun_search_code tun_pipe_it_code = {
    .state_bytes = sizeof(struct pipe_it),
    .start = start,
    .ask = ask,
    .tell = tell,
};
