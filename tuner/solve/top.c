/* SPDX-License-Identifier: Apache-2.0 */
/* The best plans beside the best one. */
#include "base/base.h"
#include "tuner/oneboard/space.h"
#include "tuner/solve/solve.h"

#define CANDIDATES_MAX (PL_STAGE_MAX + 2 * PL_EP_MAX + 1)

struct top {
    const struct tun_problem *p;
    struct tun_solution *list; /* [CANDIDATES_MAX], owned; [0] is the best */
    bool *kept;                /* stays in whatever the order, owned */
    size_t count;
};

/* Return: 0, or as tun_solve(). A plan that breaks the bounds is added only if @kept. */
static int add(struct top *t, const struct tun_space_options *o, bool kept)
{
    struct tun_solution *to = &t->list[t->count];
    int r = tun_solve_with(t->p, o, to);

    if (r < 0) {
        return r;
    }
    if (r == TUN_E_IMPOSSIBLE && (!kept || to->plan.stage_count == 0)) {
        return 0;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (pl_plan_equal(&t->list[i].plan, &to->plan)) {
            t->kept[i] |= kept;
            return 0;
        }
    }
    t->kept[t->count++] = kept;
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
    for (size_t i = 0; r == 0 && i < t->list[0].plan.stage_count; i++) {
        struct tun_space_options o = {.forbid = true,
                                      .forbid_first = t->list[0].plan.stages[i].first_unit,
                                      .forbid_last = t->list[0].plan.stages[i].last_unit};

        r = add(t, &o, false);
    }
    return r;
}

/* By falling merit from @first on; insertion keeps the order of equals. */
static void sort(struct top *t, size_t first)
{
    base_autofree struct tun_solution *swap = malloc(sizeof(*swap));

    for (size_t a = first + 1; swap && a < t->count; a++) {
        for (size_t b = a;
             b > first && tun_better(t->p, &t->list[b].outcome, &t->list[b - 1].outcome); b--) {
            bool kept = t->kept[b];

            *swap = t->list[b];
            t->list[b] = t->list[b - 1];
            t->list[b - 1] = *swap;
            t->kept[b] = t->kept[b - 1];
            t->kept[b - 1] = kept;
        }
    }
}

/* From the end, first those that need not stay. */
static void shorten(struct top *t, size_t count)
{
    while (t->count > count) {
        size_t goes = t->count - 1;

        for (size_t i = t->count; i-- > 1;) {
            if (!t->kept[i]) {
                goes = i;
                break;
            }
        }
        for (size_t i = goes; i + 1 < t->count; i++) {
            t->list[i] = t->list[i + 1];
            t->kept[i] = t->kept[i + 1];
        }
        t->count--;
    }
}

int tun_solve_top(const struct tun_problem *p, size_t count, struct tun_solution *ret,
                  size_t *ret_count)
{
    base_autofree struct tun_solution *list = calloc(CANDIDATES_MAX, sizeof(*list));
    bool kept[CANDIDATES_MAX] = {true};
    struct top t = {.p = p, .list = list, .kept = kept, .count = 1};
    int r, best;

    if (count == 0) {
        return -EINVAL;
    }
    if (!list) {
        return -ENOMEM;
    }
    best = tun_solve(p, &list[0]);
    if (best < 0) {
        return best;
    }
    r = count > 1 ? collect(&t) : 0;
    if (r < 0) {
        return r;
    }
    sort(&t, 1);
    shorten(&t, count);
    memcpy(ret, list, t.count * sizeof(*list));
    *ret_count = t.count;
    return best;
}
