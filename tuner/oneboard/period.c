/* SPDX-License-Identifier: Apache-2.0 */
/*
 * F by deciding, not by tabulating: for a bound on the period, the least steps of the last
 * dimension that the first j atoms need for each row of the others. A few dozen decisions close in
 * on the least bottleneck; every decision that succeeds yields a plan, whose own bottleneck is the
 * next bound, so the answer is the bottleneck of a plan and not the end of a bisection.
 */

#include "base/base.h"
#include "tuner/oneboard/solution.h"

/* to = min(to, from moved by the option); Return: did anything fit. */
static bool spread(const struct tun_space *s, const int16_t *restrict from, int16_t *restrict to,
                   const struct tun_option *o)
{
    size_t len = s->line_len, plane = o->row / len, shift = o->row % len;
    int16_t add = (int16_t)o->last, cap = (int16_t)s->cap[s->dim_count - 1];
    bool fits = false;

    for (size_t a = 0; a < s->plane_count; a++) {
        if (!s->plane_fits[plane * s->plane_count + a]) {
            continue;
        }
        const int16_t *x = from + a * len;
        int16_t *y = to + a * len + o->row;
        int16_t least = TUN_STEPS_NONE;

        for (size_t c = 0; c < len - shift; c++) {
            int16_t sum = (int16_t)(x[c] + add);

            y[c] = sum < y[c] ? sum : y[c];
            least = sum < least ? sum : least;
        }
        fits |= least <= cap;
    }
    return fits;
}

/* Drops sums beyond the dimension's end. Return: a state is left. */
static bool settle(const struct tun_space *s, int16_t *l)
{
    int16_t cap = (int16_t)s->cap[s->dim_count - 1];
    bool any = false;

    for (size_t row = 0; row < s->row_count; row++) {
        any |= l[row] <= cap;
        l[row] = l[row] <= cap ? l[row] : TUN_STEPS_NONE;
    }
    return any;
}

static void fill_none(int16_t *l, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        l[i] = TUN_STEPS_NONE;
    }
}

void tun_reach_back(const struct tun_space *s, struct tun_maker *m, double need, int16_t *l)
{
    size_t n = s->atom_count, rows = s->row_count;

    fill_none(l, (n + 1) * rows);
    memset(l + n * rows, 0, rows * sizeof(*l));
    for (size_t from = n; from-- > 0;) {
        for (size_t to = from + 1; to <= n; to++) {
            size_t count = tun_make(s, m, from, to, need, TUN_FIGURE_NONE);

            /* Longer segments take longer on any team. */
            if (count == 0 && !tun_space_forbids(s, from, to)) {
                break;
            }
            for (size_t i = 0; i < count; i++) {
                spread(s, l + to * rows, l + from * rows, &m->options[i]);
            }
        }
        settle(s, l + from * rows);
    }
}

void tun_reach_front(const struct tun_space *s, struct tun_maker *m, double need, size_t layers,
                     int16_t *l)
{
    size_t n = s->atom_count, rows = s->row_count, layer = (n + 1) * rows;

    fill_none(l, (layers + 1) * layer);
    memset(l, 0, rows * sizeof(*l));
    for (size_t from = 0; from < n; from++) {
        bool any = false;

        for (size_t h = 0; h <= layers; h++) {
            any |= settle(s, l + h * layer + from * rows);
        }
        for (size_t to = from + 1; any && to <= n; to++) {
            size_t count = tun_make(s, m, from, to, need, TUN_FIGURE_NONE);
            bool fits = tun_space_forbids(s, from, to);

            for (size_t i = 0; i < count; i++) {
                for (size_t h = 0; h < base_max(layers, (size_t)1); h++) {
                    fits |= spread(s, l + h * layer + from * rows,
                                   l + (h + (layers > 0)) * layer + to * rows, &m->options[i]);
                }
            }
            if (!fits) {
                break;
            }
        }
    }
    for (size_t h = 0; h <= layers; h++) {
        settle(s, l + h * layer + n * rows);
    }
}

struct walk {
    size_t layer, to, row;
    int16_t left; /* steps of the last dimension */
};

/* One stage back from w. Return: found. */
static bool step_back(const struct tun_space *s, struct tun_maker *m, double need, size_t layers,
                      const int16_t *l, struct walk *w, struct tun_path_stage *ret)
{
    size_t rows = s->row_count, layer = (s->atom_count + 1) * rows;
    size_t before = w->layer - (layers > 0);

    for (size_t from = 0; from < w->to; from++) {
        size_t count = tun_make(s, m, from, w->to, need, TUN_FIGURE_NONE);

        for (size_t i = 0; i < count; i++) {
            const struct tun_option *o = &m->options[i];

            if (o->row <= w->row && s->row_fits[(w->row - o->row) * rows + o->row] &&
                l[before * layer + from * rows + w->row - o->row] + o->last == w->left) {
                *ret = (struct tun_path_stage){from, w->to, *o};
                *w = (struct walk){before, from, w->row - o->row, (int16_t)(w->left - o->last)};
                return true;
            }
        }
    }
    return false;
}

/* A plan from the table: the first row that will do, in the fewest layers. */
static bool trace(const struct tun_space *s, struct tun_maker *m, double need, size_t layers,
                  const int16_t *l, struct tun_path *ret)
{
    size_t n = s->atom_count, rows = s->row_count, layer = (n + 1) * rows;
    struct walk w = {.to = n};
    struct tun_path_stage back;
    bool found = false;

    for (size_t h = layers > 0; h <= layers && !found; h++) {
        for (size_t row = 0; row < rows && !found; row++) {
            if (l[h * layer + n * rows + row] != TUN_STEPS_NONE) {
                w = (struct walk){h, n, row, l[h * layer + n * rows + row]};
                found = true;
            }
        }
    }
    if (!found) {
        return false;
    }
    ret->count = 0;
    ret->figure = ret->bottleneck_ns = 0;
    while (w.to > 0) {
        if (ret->count == PL_CPU_MAX || !step_back(s, m, need, layers, l, &w, &back)) {
            return false;
        }
        tun_path_prepend(s, &back, ret);
    }
    return true;
}

/* The least period that any plan with all cores in one stage has, unless that is forbidden. */
static double one_stage_ns(const struct tun_space *s)
{
    size_t segment = tun_segment(s, 0, s->atom_count);
    double least = INFINITY;

    if (!s->p->bounds.one_ep_stages) {
        return 1 / tun_space_full_rate(s, s->rate + segment * s->rate_len);
    }
    for (size_t t = 0; t < s->team_len; t++) {
        least = base_min(least, tun_space_teams(s, 0, segment)[t]);
    }
    return least;
}

static int close_in(const struct tun_space *s, struct tun_maker *m, size_t layers, double low,
                    struct tun_path *ret)
{
    base_autofree int16_t *l =
        malloc((layers + 1) * (s->atom_count + 1) * s->row_count * sizeof(*l));
    double high = one_stage_ns(s), bound = high;
    bool found = false, quick = false;

    if (!l) {
        return -ENOMEM;
    }
    if (s->options.forbid) {
        bound = INFINITY;
    }
    for (;;) {
        tun_reach_front(s, m, tun_need(bound), layers, l);
        if (trace(s, m, tun_need(bound), layers, l, ret)) {
            found = true;
            high = ret->bottleneck_ns;
        } else if (!found) {
            return TUN_E_IMPOSSIBLE;
        } else {
            low = base_max(low, bound);
        }
        if (low >= high * (1 - 1e-11)) {
            return 0;
        }
        /* Near the end, ask now and then whether anything is better at all. */
        quick = !quick && low > high * 0.9995;
        bound = quick ? high * (1 - 1e-11) : sqrt(low * high);
    }
}

static double lowest_ns(const struct tun_space *s)
{
    double low = 1e-300;

    for (size_t a = 0; a < s->atom_count; a++) {
        low = base_max(low, (1 - 1e-9) / tun_space_atom_rate(s, a));
    }
    return low;
}

int tun_least_period(const struct tun_space *s, struct tun_path *ret)
{
    struct tun_maker m;
    int r = tun_maker_init(s, &m);

    if (r < 0) {
        return r;
    }
    r = close_in(s, &m, 0, lowest_ns(s), ret);
    if (r == 0 && ret->count > s->stages_max) {
        r = close_in(s, &m, s->stages_max, ret->bottleneck_ns * (1 - 1e-9), ret);
    }
    tun_maker_deinit(&m);
    return r;
}
