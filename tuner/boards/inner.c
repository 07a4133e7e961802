/* SPDX-License-Identifier: Apache-2.0 */
/* What one board can do with consecutive units. */
#include "base/base.h"
#include "tuner/boards/pass.h"

int tun_inner_reach(struct tun_kind *k, double period_ns, uint16_t *ret)
{
    const struct tun_space *s = &k->space;
    size_t n = s->atom_count, states = s->state_count, len = s->row_len;
    uint16_t *far = malloc((n + 1) * states * sizeof(*far));

    if (!far) {
        return -ENOMEM;
    }
    for (size_t from = n + 1; from-- > 0;) {
        uint16_t *y = far + from * states;

        for (size_t i = 0; i < states; i++) {
            y[i] = (uint16_t)from;
        }
        for (size_t to = from + 1; to <= n; to++) {
            size_t count = tun_make(s, &k->maker, from, to, tun_need(period_ns), TUN_FIGURE_NONE);
            const uint16_t *x = far + to * states;

            if (count == 0) {
                break;
            }
            for (size_t i = 0; i < count; i++) {
                const struct tun_option *o = &k->maker.options[i];

                for (size_t row = 0; row + o->row < s->row_count; row++) {
                    if (!s->row_fits[o->row * s->row_count + row]) {
                        continue;
                    }
                    uint16_t *restrict b = y + (row + o->row) * len + o->last;
                    const uint16_t *restrict a = x + row * len;

                    for (size_t l = 0; l + o->last < len; l++) {
                        b[l] = a[l] > b[l] ? a[l] : b[l];
                    }
                }
            }
        }
        ret[from] = y[states - 1];
    }
    free(far);
    return 0;
}

int tun_inner_init(struct tun_kind *k, double period_ns, enum tun_want want, struct tun_inner *ret)
{
    struct tun_inner i = {.k = k, .period_ns = period_ns, .want = want, .n = k->space.atom_count};

    i.rows = calloc(i.n, sizeof(*i.rows));
    i.counts = calloc(i.n, sizeof(*i.counts));
    i.options = calloc(i.n * (i.n + 1) / 2, sizeof(*i.options));
    i.tighter = calloc(i.n * (i.n + 1) / 2, sizeof(*i.tighter));
    if (!i.rows || !i.counts || !i.options || !i.tighter) {
        tun_inner_deinit(&i);
        return -ENOMEM;
    }
    *ret = i;
    return 0;
}

void tun_inner_deinit(struct tun_inner *i)
{
    for (size_t u = 0; u < i->n; u++) {
        if (i->rows) {
            free(i->rows[u]);
        }
        if (i->counts) {
            free(i->counts[u]);
        }
    }
    for (size_t s = 0; s < i->n * (i->n + 1) / 2; s++) {
        if (i->options) {
            free(i->options[s].list);
        }
        while (i->tighter && i->tighter[s]) {
            struct tun_inner *first = i->tighter[s];

            i->tighter[s] = first->next;
            tun_inner_deinit(first);
            free(first);
        }
    }
    free(i->rows);
    free(i->counts);
    free(i->options);
    free(i->tighter);
    *i = TUN_INNER_NULL;
}

/* tun_make(), once for each segment. Return: how many, or -ENOMEM. */
static int options_of(struct tun_inner *in, size_t from, size_t to, const struct tun_option **ret)
{
    struct tun_inner_options *o = &in->options[tun_segment(&in->k->space, from, to)];
    struct tun_maker *maker = &in->k->maker;

    if (!o->made) {
        size_t count =
            tun_make(&in->k->space, maker, from, to, tun_need(in->period_ns),
                     in->want == TUN_WANT_ENERGY ? TUN_FIGURE_ENERGY : TUN_FIGURE_LATENCY);

        o->list = malloc(base_max(count, (size_t)1) * sizeof(*o->list));
        if (!o->list) {
            return -ENOMEM;
        }
        memcpy(o->list, maker->options, count * sizeof(*o->list));
        o->count = count;
        o->made = true;
    }
    *ret = o->list;
    return (int)o->count;
}

/* Period of a stage whose energy, the watts of its cores over its rate, is known. */
static double energy_period(const struct tun_space *s, const struct tun_option *o)
{
    size_t dims = s->dim_count - 1;
    double watts = s->watts[s->rate_at[dims] + o->last];

    if (isfinite(o->slowest_ns)) {
        return o->slowest_ns; /* a single team */
    }
    for (size_t d = 0; d < dims; d++) {
        watts += s->watts[s->rate_at[d] + s->row_steps[o->row * dims + d]];
    }
    return o->figure / watts;
}

/* One figure: the least of each state and end up to @end. @period: as @g, written for ENERGY. */
static int fill_one(struct tun_inner *in, size_t from, size_t end, double *g, double *period)
{
    const struct tun_space *s = &in->k->space;
    size_t states = s->state_count, len = s->row_len;
    bool energy = in->want == TUN_WANT_ENERGY;

    for (size_t i = from * states; i < (end + 1) * states; i++) {
        g[i] = INFINITY;
        period[i] = 0;
    }
    memset(g + from * states, 0, states * sizeof(*g));
    for (size_t at = from; at < end && isfinite(g[at * states + states - 1]); at++) {
        for (size_t to = at + 1; to <= end; to++) {
            const struct tun_option *list;
            int count = options_of(in, at, to, &list);

            if (count <= 0) {
                if (count < 0) {
                    return count;
                }
                break;
            }
            for (int i = 0; i < count; i++) {
                const struct tun_option *o = &list[i];
                double ns = energy ? energy_period(s, o) : 0;

                for (size_t row = 0; row + o->row < s->row_count; row++) {
                    size_t to_state = to * states + (row + o->row) * len + o->last;
                    double *restrict y = g + to_state, *restrict yp = period + to_state;
                    const double *restrict x = g + at * states + row * len;
                    const double *restrict xp = period + at * states + row * len;

                    if (!s->row_fits[o->row * s->row_count + row]) {
                        continue;
                    }
                    for (size_t l = 0; l + o->last < len; l++) {
                        double sum = x[l] + o->figure;

                        yp[l] = sum < y[l] ? base_max(xp[l], ns) : yp[l];
                        y[l] = sum < y[l] ? sum : y[l];
                    }
                }
            }
        }
    }
    for (size_t to = from + 1; to <= end; to++) {
        size_t best = to * states;

        for (size_t i = to * states; i < (to + 1) * states; i++) {
            best = g[i] < g[best] ? i : best;
        }
        in->counts[from][to] = isfinite(g[best]);
        in->rows[from][to] = energy ? (struct tun_point){INFINITY, g[best], period[best]}
                                    : (struct tun_point){g[best], INFINITY, 0};
    }
    return 0;
}

/* Adds a point to a list unless one there is as good. Return: the new count. */
static uint16_t add_point(struct tun_inner *in, struct tun_point *list, uint16_t count,
                          struct tun_point p)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < count; i++) {
        if (list[i].latency_ns <= p.latency_ns && list[i].energy_nj <= p.energy_nj) {
            return count;
        }
    }
    for (uint16_t i = 0; i < count; i++) {
        if (list[i].latency_ns < p.latency_ns || list[i].energy_nj < p.energy_nj) {
            list[kept++] = list[i];
        }
    }
    if (kept == TUN_POINTS_MAX) {
        in->cut = true;
        return kept;
    }
    list[kept] = p;
    return (uint16_t)(kept + 1);
}

static int fill_both(struct tun_inner *in, size_t from, size_t n)
{
    const struct tun_space *s = &in->k->space;
    size_t states = s->state_count, len = s->row_len;
    struct tun_point *g = malloc((n + 1) * states * TUN_POINTS_MAX * sizeof(*g));
    uint16_t *count = calloc((n + 1) * states, sizeof(*count));
    struct tun_maker *maker = &in->k->maker;
    int r = g && count ? 0 : -ENOMEM;

    maker->cut = false;
    for (size_t i = 0; r == 0 && i < states; i++) {
        count[from * states + i] = 1;
        g[(from * states + i) * TUN_POINTS_MAX] = (struct tun_point){0, 0, 0};
    }
    for (size_t at = from; r == 0 && at < n; at++) {
        for (size_t to = at + 1; count[at * states + states - 1] && to <= n; to++) {
            size_t ways = tun_make(s, maker, at, to, tun_need(in->period_ns), TUN_FIGURE_BOTH);

            if (ways == 0) {
                break;
            }
            for (size_t i = 0; i < ways; i++) {
                const struct tun_option *w = &maker->options[i];

                for (size_t row = 0; row + w->row < s->row_count; row++) {
                    for (size_t l = 0;
                         s->row_fits[w->row * s->row_count + row] && l + w->last < len; l++) {
                        size_t x = at * states + row * len + l;
                        size_t y = to * states + (row + w->row) * len + w->last + l;

                        for (uint16_t c = 0; c < count[x]; c++) {
                            struct tun_point p = g[x * TUN_POINTS_MAX + c];

                            p.latency_ns += w->ns;
                            p.energy_nj += w->figure;
                            count[y] = add_point(in, g + y * TUN_POINTS_MAX, count[y], p);
                        }
                    }
                }
            }
        }
    }
    for (size_t to = from + 1; r == 0 && to <= n; to++) {
        struct tun_point *list = in->rows[from] + to * TUN_POINTS_MAX;

        in->counts[from][to] = 0;
        for (size_t i = to * states; i < (to + 1) * states; i++) {
            for (uint16_t c = 0; c < count[i]; c++) {
                in->counts[from][to] =
                    add_point(in, list, in->counts[from][to], g[i * TUN_POINTS_MAX + c]);
            }
        }
    }
    in->cut |= maker->cut;
    free(g);
    free(count);
    return r;
}

int tun_inner_points(struct tun_inner *in, size_t from, size_t to, size_t end,
                     const struct tun_point **ret)
{
    size_t room = in->want == TUN_WANT_BOTH ? TUN_POINTS_MAX : 1;

    if (!in->rows[from]) {
        size_t states = in->k->space.state_count;
        double *g =
            in->want == TUN_WANT_BOTH ? NULL : malloc(2 * (in->n + 1) * states * sizeof(*g));
        int r = -ENOMEM;

        in->rows[from] = calloc((in->n + 1) * room, sizeof(**in->rows));
        in->counts[from] = calloc(in->n + 1, sizeof(**in->counts));
        if (in->rows[from] && in->counts[from] && (g || in->want == TUN_WANT_BOTH)) {
            r = g ? fill_one(in, from, end, g, g + (in->n + 1) * states) : fill_both(in, from, end);
        }
        free(g);
        if (r < 0) {
            return r;
        }
    }
    *ret = in->rows[from] + to * room;
    return in->counts[from][to];
}

int tun_inner_tighter(struct tun_inner *in, double period_ns, size_t from, size_t to,
                      const struct tun_point **ret)
{
    struct tun_inner **first = &in->tighter[tun_segment(&in->k->space, from, to)], *at;
    int r;

    for (at = *first; at && at->period_ns != period_ns; at = at->next) {
    }
    if (!at) {
        at = malloc(sizeof(*at));
        r = at ? tun_inner_init(in->k, period_ns, in->want, at) : -ENOMEM;
        if (r < 0) {
            free(at);
            return r;
        }
        at->next = *first;
        *first = at;
    }
    r = tun_inner_points(at, from, to, to, ret);
    in->cut |= at->cut;
    return r;
}
