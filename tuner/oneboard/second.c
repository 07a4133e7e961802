/* SPDX-License-Identifier: Apache-2.0 */
/*
 * G over (atom, exact cores): the figures of the stages add up from the first stage on, in the
 * order of tun_eval(). Only states with cores enough in front of the border and behind it, by
 * tun_reach_front() and _back(), are visited: with the period near the least one these are few.
 */

#include "base/base.h"
#include "tuner/oneboard/solution.h"

struct program {
    const struct tun_space *s;
    struct tun_maker m;
    double need;
    enum tun_figure figure;
    size_t layers;         /* 0, or the most stages */
    int16_t *front, *back; /* tun_reach_front() and _back(), owned */
    double *g;             /* [layers + 1][atom_count + 1][states], owned */
};

static int program_init(struct program *g)
{
    const struct tun_space *s = g->s;
    size_t borders = s->atom_count + 1, values = (g->layers + 1) * borders * s->state_count;
    int r = tun_maker_init(s, &g->m);

    if (r < 0) {
        return r;
    }
    g->front = malloc(borders * s->row_count * sizeof(*g->front));
    g->back = malloc(borders * s->row_count * sizeof(*g->back));
    g->g = malloc(values * sizeof(*g->g));
    if (!g->front || !g->back || !g->g) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < values; i++) {
        g->g[i] = INFINITY;
    }
    g->g[0] = 0;
    return 0;
}

static double *state_at(const struct program *g, size_t layer, size_t atom, size_t row)
{
    const struct tun_space *s = g->s;

    return g->g + (layer * (s->atom_count + 1) + atom) * s->state_count + row * s->row_len;
}

/* Steps of the last dimension from which, and up to which, a row can be part of a plan. */
static int lowest(const struct program *g, size_t atom, size_t row)
{
    return g->front[atom * g->s->row_count + row];
}
static int highest(const struct program *g, size_t atom, size_t row)
{
    const struct tun_space *s = g->s;
    size_t rows = s->row_count;

    return (int)s->cap[s->dim_count - 1] - g->back[atom * rows + (rows - 1 - row)];
}

static bool border_lives(const struct program *g, size_t atom)
{
    for (size_t row = 0; row < g->s->row_count; row++) {
        if (lowest(g, atom, row) <= highest(g, atom, row)) {
            return true;
        }
    }
    return false;
}

/* Does the segment fit between what is needed in front of it and behind? */
static bool segment_lives(struct program *g, size_t from, size_t to)
{
    const struct tun_space *s = g->s;
    size_t count = tun_make(s, &g->m, from, to, g->need, TUN_FIGURE_NONE);

    for (size_t i = 0; i < count; i++) {
        const struct tun_option *o = &g->m.options[i];

        for (size_t row = 0; row + o->row < s->row_count; row++) {
            if (s->row_fits[o->row * s->row_count + row] &&
                lowest(g, from, row) + o->last <= highest(g, to, row + o->row)) {
                return true;
            }
        }
    }
    return false;
}

base_optimize("O3") static void relax(const double *restrict x, double *restrict y, size_t count,
                                      double add)
{
    for (size_t i = 0; i < count; i++) {
        double sum = x[i] + add;

        y[i] = sum < y[i] ? sum : y[i];
    }
}

static void spread(struct program *g, size_t from, size_t to, const struct tun_option *o)
{
    const struct tun_space *s = g->s;
    size_t rows = s->row_count;

    for (size_t row = 0; row + o->row < rows; row++) {
        int low, high;

        if (!s->row_fits[o->row * rows + row]) {
            continue;
        }
        low = lowest(g, from, row);
        high = base_min(highest(g, from, row), highest(g, to, row + o->row) - (int)o->last);
        for (size_t h = 0; low <= high && h < base_max(g->layers, (size_t)1); h++) {
            relax(state_at(g, h, from, row) + low,
                  state_at(g, h + (g->layers > 0), to, row + o->row) + low + o->last,
                  (size_t)(high - low + 1), o->figure);
        }
    }
}

static void run(struct program *g)
{
    size_t n = g->s->atom_count;

    for (size_t from = 0; from < n; from++) {
        if (!border_lives(g, from)) {
            continue;
        }
        for (size_t to = from + 1; to <= n; to++) {
            size_t count;

            if (!border_lives(g, to) || !segment_lives(g, from, to)) {
                continue;
            }
            count = tun_make(g->s, &g->m, from, to, g->need, g->figure);
            for (size_t i = 0; i < count; i++) {
                spread(g, from, to, &g->m.options[i]);
            }
        }
    }
}

struct walk {
    size_t layer, to, row, last;
};

/* How much of the fastest cores a state uses: a tie goes to less. */
static double cost_of_cores(const struct tun_space *s, size_t row, size_t last)
{
    double sum = 0;

    for (size_t k = 0; k < s->p->ep_count; k++) {
        size_t dim = s->dim_of[k] < 0 ? 0 : (size_t)s->dim_of[k];
        size_t steps = dim + 1 < s->dim_count ? s->row_steps[row * (s->dim_count - 1) + dim] : last;

        if (s->dim_of[k] >= 0) {
            sum += s->p->eps[k].speed * (double)tun_space_cores(s, k, steps);
        }
    }
    return sum;
}

static bool best_end(const struct program *g, struct walk *ret, double *ret_figure)
{
    const struct tun_space *s = g->s;
    double best = INFINITY, best_cores = INFINITY;

    for (size_t h = g->layers > 0; h <= g->layers; h++) {
        for (size_t row = 0; row < s->row_count; row++) {
            const double *line = state_at(g, h, s->atom_count, row);

            for (size_t l = 0; l < s->row_len; l++) {
                double cores;

                if (line[l] > best || !isfinite(line[l])) {
                    continue;
                }
                cores = cost_of_cores(s, row, l);
                if (line[l] < best || cores < best_cores) {
                    best = line[l];
                    best_cores = cores;
                    *ret = (struct walk){h, s->atom_count, row, l};
                }
            }
        }
    }
    *ret_figure = best;
    return isfinite(best);
}

static bool step_back(struct program *g, struct walk *w, struct tun_path_stage *ret)
{
    const struct tun_space *s = g->s;
    double goal = state_at(g, w->layer, w->to, w->row)[w->last];
    size_t before = w->layer - (g->layers > 0);

    for (size_t from = 0; from < w->to; from++) {
        size_t count;

        if (!border_lives(g, from) || !segment_lives(g, from, w->to)) {
            continue;
        }
        count = tun_make(s, &g->m, from, w->to, g->need, g->figure);
        for (size_t i = 0; i < count; i++) {
            const struct tun_option *o = &g->m.options[i];
            size_t row = w->row - o->row, last = w->last - o->last;

            if (o->row <= w->row && o->last <= w->last &&
                s->row_fits[o->row * s->row_count + row] &&
                state_at(g, before, from, row)[last] + o->figure == goal) {
                *ret = (struct tun_path_stage){from, w->to, *o};
                *w = (struct walk){before, from, row, last};
                return true;
            }
        }
    }
    return false;
}

static bool trace(struct program *g, struct tun_path *ret)
{
    struct tun_path_stage back;
    struct walk w = {0};

    if (!best_end(g, &w, &ret->figure)) {
        return false;
    }
    ret->count = 0;
    ret->bottleneck_ns = 0;
    while (w.to > 0) {
        if (ret->count == PL_CPU_MAX || !step_back(g, &w, &back)) {
            return false;
        }
        tun_path_prepend(g->s, &back, ret);
    }
    return true;
}

static int second(const struct tun_space *s, double period_ns, enum tun_figure figure,
                  size_t layers, struct tun_path *ret)
{
    struct program g = {.s = s, .need = tun_need(period_ns), .figure = figure, .layers = layers};
    int r = program_init(&g);

    if (r == 0) {
        tun_reach_front(s, &g.m, g.need, 0, g.front);
        tun_reach_back(s, &g.m, g.need, g.back);
        run(&g);
        r = trace(&g, ret) ? 0 : TUN_E_IMPOSSIBLE;
    }
    tun_maker_deinit(&g.m);
    free(g.front);
    free(g.back);
    free(g.g);
    return r;
}

int tun_second(const struct tun_space *s, double period_ns, enum tun_figure figure,
               struct tun_path *ret)
{
    int r = second(s, period_ns, figure, 0, ret);

    if (r == 0 && ret->count > s->stages_max) {
        r = second(s, period_ns, figure, s->stages_max, ret);
    }
    return r;
}
