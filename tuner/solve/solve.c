/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/solve.h"

#include "base/base.h"
#include "tuner/boards/solve_boards.h"
#include "tuner/solve/spans.h"

static double figure(const struct tun_problem *p, bool possible, const struct tun_outcome *o)
{
    return possible ? tun_figure(p, o) : o->bottleneck_ns;
}

/* Does @a, of outcome @r, gain enough over @b, of outcome @outcome? Where no plan keeps a bound on
 * latency, batches would only miss it by more. */
static bool gains(const struct tun_problem *p, int r, const struct tun_outcome *a, int outcome,
                  const struct tun_outcome *b)
{
    if (r != outcome) {
        return r == 0;
    }
    if (r != 0 && p->bounds.latency_max_ns > 0) {
        return false;
    }
    return figure(p, r == 0, a) * (1 + TUN_BATCH_GAIN) < figure(p, r == 0, b);
}

/* Takes larger batches into @ret where they gain enough. @outcome: of tun_oneboard_solve() so far.
 * Return: as tun_solve(). */
static int try_batches(const struct tun_problem *p, const struct tun_space_options *o, int outcome,
                       struct tun_solution *ret)
{
    base_autofree struct tun_solution *other = malloc(sizeof(*other));
    struct tun_space_options with = *o;
    size_t most = tun_problem_batch_max(p);

    if (!other) {
        return -ENOMEM;
    }
    for (with.batch_max = 2; with.batch_max <= most; with.batch_max *= 2) {
        int r = tun_oneboard_solve(p, &with, other);

        if (r < 0) {
            return r;
        }
        if (gains(p, r, &other->outcome, outcome, &ret->outcome)) {
            *ret = *other;
            outcome = r;
        }
    }
    return outcome;
}

/* tun_solve() in a part of the space. @p: was checked. */
static int solve_with(const struct tun_problem *p, const struct tun_space_options *o,
                      struct tun_solution *ret)
{
    int r;

    if (p->boards.count > 1) {
        return tun_boards_solve(p, o, ret);
    }
    r = tun_oneboard_solve(p, o, ret);
    if (r < 0 || p->bounds.one_ep_stages) {
        return r;
    }
    r = try_batches(p, o, r, ret);
    return r >= 0 && p->bounds.spans ? tun_spans_try(p, o, r, ret) : r;
}

int tun_solve(const struct tun_problem *p, struct tun_solution *ret)
{
    struct tun_space_options o = {0};
    char error[TUN_ERROR_MAX];

    return tun_problem_check(p, error) < 0 ? -EINVAL : solve_with(p, &o, ret);
}

/* ---- the best plans beside the best one ---- */

#define CANDIDATES_MAX (PL_STAGE_MAX + 2 * PL_EP_MAX + 1)

struct top {
    const struct tun_problem *p;
    struct candidate {
        struct tun_solution found;
        bool kept; /* stays in whatever the order */
    } * list;      /* [CANDIDATES_MAX], owned; [0] is the best */
    size_t count;
};

/* Return: 0, or as tun_solve(). A plan that breaks the bounds is added only if @kept. */
static int add(struct top *t, const struct tun_space_options *o, bool kept)
{
    struct tun_solution *to = &t->list[t->count].found;
    int r = solve_with(t->p, o, to);

    if (r < 0) {
        return r;
    }
    if (r == TUN_E_IMPOSSIBLE && (!kept || to->plan.stage_count == 0)) {
        return 0;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (pl_plan_equal(&t->list[i].found.plan, &to->plan)) {
            t->list[i].kept |= kept;
            return 0;
        }
    }
    t->list[t->count++].kept = kept;
    return 0;
}

/* Each EP alone, the best without each EP, and the best without each stage of the best. */
static int collect(struct top *t)
{
    size_t eps = t->p->ep_count;
    int r = 0;

    for (size_t k = 0; r == 0 && k < eps; k++) {
        struct tun_space_options alone = {0}, without = {0};

        for (size_t other = 0; other < eps; other++) {
            alone.without[other] = other != k;
        }
        without.without[k] = true;
        r = add(t, &alone, true);
        if (r == 0 && eps > 2) {
            r = add(t, &without, false);
        }
    }
    for (size_t i = 0; r == 0 && i < t->list[0].found.plan.stage_count; i++) {
        const struct pl_stage_plan *stage = &t->list[0].found.plan.stages[i];
        struct tun_space_options o = {
            .forbid = true, .forbid_first = stage->first_unit, .forbid_last = stage->last_unit};

        r = add(t, &o, false);
    }
    return r;
}

/* By falling merit from @first on; insertion keeps the order of equals. */
static void sort(struct top *t, size_t first)
{
    base_autofree struct candidate *swap = malloc(sizeof(*swap));

    for (size_t a = first + 1; swap && a < t->count; a++) {
        for (size_t b = a; b > first && tun_better(t->p, &t->list[b].found.outcome,
                                                   &t->list[b - 1].found.outcome);
             b--) {
            *swap = t->list[b];
            t->list[b] = t->list[b - 1];
            t->list[b - 1] = *swap;
        }
    }
}

/* From the end, first those that need not stay. */
static void shorten(struct top *t, size_t count)
{
    while (t->count > count) {
        size_t goes = t->count - 1;

        for (size_t i = t->count; i-- > 1;) {
            if (!t->list[i].kept) {
                goes = i;
                break;
            }
        }
        t->count--;
        memmove(&t->list[goes], &t->list[goes + 1], (t->count - goes) * sizeof(*t->list));
    }
}

int tun_solve_top(const struct tun_problem *p, size_t count, struct tun_solution *ret,
                  size_t *ret_count)
{
    base_autofree struct candidate *list = calloc(CANDIDATES_MAX, sizeof(*list));
    struct top t = {.p = p, .list = list, .count = 1};
    int r, best;

    if (count == 0) {
        return -EINVAL;
    }
    if (!list) {
        return -ENOMEM;
    }
    best = tun_solve(p, &list[0].found);
    if (best < 0) {
        return best;
    }
    r = count > 1 ? collect(&t) : 0;
    if (r < 0) {
        return r;
    }
    sort(&t, 1);
    shorten(&t, count);
    for (size_t i = 0; i < t.count; i++) {
        ret[i] = list[i].found;
    }
    *ret_count = t.count;
    return best;
}
