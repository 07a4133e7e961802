/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to run one segment of a space. */
#include "base/base.h"
#include "tuner/oneboard/space.h"

int tun_maker_init(const struct tun_space *s, struct tun_maker *ret)
{
    struct tun_maker m = {.option_max = base_max(s->batch_count * (s->state_count + s->team_len),
                                                 (size_t)TUN_WAYS_MAX),
                          .latency_ns = INFINITY};

    m.rate = calloc(s->rate_len, sizeof(*m.rate));
    m.ep_rate = calloc(s->p->ep_count * (PL_CPU_MAX + 1), sizeof(*m.ep_rate));
    m.least = calloc(s->state_count, sizeof(*m.least));
    m.stair = calloc(s->row_count, sizeof(*m.stair));
    m.before = calloc(s->row_count, sizeof(*m.before));
    m.options = calloc(m.option_max, sizeof(*m.options));
    for (size_t t = 0; t < s->team_len; t++) {
        m.order[t] = (uint16_t)t;
    }
    if (!m.rate || !m.ep_rate || !m.least || !m.stair || !m.before || !m.options) {
        tun_maker_deinit(&m);
        return -ENOMEM;
    }
    *ret = m;
    return 0;
}

void tun_maker_deinit(struct tun_maker *m)
{
    free(m->rate);
    free(m->ep_rate);
    free(m->least);
    free(m->stair);
    free(m->before);
    free(m->options);
    *m = TUN_MAKER_NULL;
}

static void stair(const struct tun_space *s, const double *rate, double need, int16_t *l)
{
    size_t dims = s->dim_count - 1, len = s->line_len;
    const double *last = rate + s->rate_at[dims];
    const double *line = dims > 0 ? rate + s->rate_at[dims - 1] : NULL;

    for (size_t plane = 0; plane < s->plane_count; plane++) {
        const uint16_t *steps = s->row_steps + plane * len * dims;
        double base = 0;
        int left = s->cap[dims] + 1; /* steps that are known to be enough; cap + 1: none */

        for (size_t d = 0; d + 1 < dims; d++) {
            base += rate[s->rate_at[d] + steps[d]];
        }
        for (size_t c = 0; c < len; c++) {
            double sum = line ? base + line[c] : base;

            while (left > 0 && sum + last[left - 1] >= need) {
                left--;
            }
            l[plane * len + c] = left > s->cap[dims] ? TUN_STEPS_NONE : (int16_t)left;
        }
    }
}

static bool stair_corner(const struct tun_space *s, const int16_t *l, size_t row)
{
    size_t dims = s->dim_count - 1;

    if (l[row] == TUN_STEPS_NONE) {
        return false;
    }
    for (size_t d = 0; d < dims; d++) {
        if (s->row_steps[row * dims + d] > 0 && l[row - s->row_stride[d]] <= l[row]) {
            return false;
        }
    }
    return true;
}

/* One team of one EP: the papers' stages. */
static size_t make_single(const struct tun_space *s, struct tun_maker *m, const double *team_ns,
                          double need, enum tun_figure figure)
{
    size_t count = 0, dims = s->dim_count - 1;
    double best = INFINITY;

    for (size_t t = 0; t < s->team_len; t++) {
        size_t ep = s->team_ep[t], dim = (size_t)s->dim_of[ep], steps = s->team_steps[t];
        double ns = team_ns[t];
        struct tun_option o = {.slowest_ns = ns};

        if (t == 0 || s->team_ep[t - 1] != ep) {
            best = INFINITY;
        }
        o.row = dim < dims ? (uint16_t)(steps * s->row_stride[dim]) : 0;
        o.last = dim < dims ? 0 : (uint16_t)steps;
        o.ns = ns;
        o.figure = figure == TUN_FIGURE_LATENCY ? ns
                   : figure == TUN_FIGURE_NONE
                       ? 0
                       : s->team_width[t] * tun_ep_watts(&s->p->eps[ep]) * ns;
        /* wider teams come later */
        if (ns * need <= 1 && (figure == TUN_FIGURE_BOTH ? ns <= m->latency_ns : o.figure < best)) {
            best = o.figure;
            m->options[count++] = o;
        }
    }
    return count;
}

/* @like: all but the cores. */
static size_t emit(struct tun_maker *m, size_t count, size_t row, size_t last,
                   const struct tun_option *like)
{
    if (count < m->room) {
        struct tun_option *o = &m->options[count++];

        *o = *like;
        o->row = (uint16_t)row;
        o->last = (uint16_t)last;
    } else {
        m->cut = true;
    }
    return count;
}

static size_t make_period(const struct tun_space *s, struct tun_maker *m, size_t segment,
                          double need)
{
    const struct tun_option like = {.slowest_ns = INFINITY,
                                    .batch = (uint16_t)tun_space_fastest(s, segment)};
    const double *rate = s->rate + segment * s->rate_len;
    size_t count = 0;

    stair(s, rate, need, m->stair);
    for (size_t row = 0; row < s->row_count; row++) {
        if (stair_corner(s, m->stair, row)) {
            count = emit(m, count, row, (size_t)m->stair[row], &like);
        }
    }
    return count;
}

/* The order of the last segment is nearly that of this one. */
static void sort_teams(const struct tun_space *s, const double *team_ns, uint16_t *order)
{
    for (size_t i = 1; i < s->team_len; i++) {
        uint16_t team = order[i];
        size_t at = i;

        for (; at > 0 && team_ns[order[at - 1]] > team_ns[team]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = team;
    }
}

/* Adds a team to its EP's knapsack, and that to the rates of its dimension. @exact: rates are of
 * exactly so many cores; -INFINITY: no teams use as many. */
static void add_team(const struct tun_space *s, struct tun_maker *m, bool exact, size_t team,
                     double ns)
{
    size_t ep = s->team_ep[team], dim = (size_t)s->dim_of[ep], width = s->team_width[team];
    size_t cores = s->p->eps[ep].cores;
    double *best = m->ep_rate + ep * (PL_CPU_MAX + 1), *rate = m->rate + s->rate_at[dim];
    bool any = s->options.teams == TUN_TEAMS_ANY, one = s->options.teams == TUN_TEAMS_ONE_EP;

    if (s->dim_eps[dim] == 1 && s->block[ep] == 1 && s->cap[dim] == cores && any) {
        tun_knapsack(s, rate, cores, width, 1 / ns);
        return;
    }
    if (!exact || any) {
        tun_knapsack(s, best, cores, width, 1 / ns);
    }
    for (size_t c = width; exact && !any && c <= cores; c += width) {
        best[c] = base_max(best[c], (double)(c / width) / ns);
    }
    for (size_t r = 1; r <= s->cap[dim]; r++) {
        rate[r] = exact && one ? -INFINITY : 0;
    }
    for (size_t k = 0; k < s->p->ep_count; k++) {
        for (size_t r = 1; s->dim_of[k] == (int)dim && r <= s->cap[dim]; r++) {
            double gain = m->ep_rate[k * (PL_CPU_MAX + 1) + tun_space_cores(s, k, r)];

            rate[r] = one ? base_max(rate[r], gain) : rate[r] + gain;
        }
    }
}

/* Adds ever slower teams; each new option has the team just added as its slowest. @count: options
 * made so far, of other batches. */
static size_t make_latency(const struct tun_space *s, struct tun_maker *m, size_t segment, size_t b,
                           double need, size_t count)
{
    const double *team_ns = tun_space_teams(s, b, segment);
    int16_t *swap;

    memset(m->rate, 0, s->rate_len * sizeof(*m->rate));
    memset(m->ep_rate, 0, s->p->ep_count * (PL_CPU_MAX + 1) * sizeof(*m->ep_rate));
    for (size_t row = 0; row < s->row_count; row++) {
        m->before[row] = TUN_STEPS_NONE;
    }
    sort_teams(s, team_ns, m->order);
    for (size_t i = 0; i < s->team_len; i++) {
        double ns = team_ns[m->order[i]];
        const struct tun_option like = {.figure = tun_latency_of(s->p, (size_t)1 << b, ns),
                                        .slowest_ns = ns,
                                        .batch = (uint16_t)b};

        add_team(s, m, false, m->order[i], ns);
        if (tun_space_full_rate(s, m->rate) < need) {
            continue;
        }
        stair(s, m->rate, need, m->stair);
        for (size_t row = 0; row < s->row_count; row++) {
            if (m->stair[row] < m->before[row] && stair_corner(s, m->stair, row)) {
                count = emit(m, count, row, (size_t)m->stair[row], &like);
            }
        }
        swap = m->before;
        m->before = m->stair;
        m->stair = swap;
    }
    return count;
}

/* Options that take less energy than those so far (m->least). A stage's energy is the watts of its
 * cores over its rate. @rate: of the teams that it may have. */
static size_t add_thriftier(const struct tun_space *s, struct tun_maker *m, const double *rate,
                            double need, size_t count, struct tun_option like)
{
    size_t dims = s->dim_count - 1, len = s->row_len;
    const double *last = rate + s->rate_at[dims];
    const double *last_watts = s->watts + s->rate_at[dims];

    for (size_t row = 0; row < s->row_count; row++) {
        const uint16_t *steps = s->row_steps + row * dims;
        double row_rate = 0, row_watts = 0, *least = m->least + row * len;

        for (size_t d = 0; d < dims; d++) {
            row_rate += rate[s->rate_at[d] + steps[d]];
            row_watts += s->watts[s->rate_at[d] + steps[d]];
        }
        for (size_t l = 0; l < len; l++) {
            double sum = row_rate + last[l], watts = row_watts + last_watts[l];
            double best = l > 0 ? base_min(least[l], least[l - 1]) : least[l];

            for (size_t d = 0; d < dims; d++) {
                if (steps[d] > 0) {
                    best = base_min(best, least[l - (ptrdiff_t)(s->row_stride[d] * len)]);
                }
            }
            if (sum >= need && watts / sum < best) {
                best = like.figure = watts / sum;
                count = emit(m, count, row, l, &like);
            }
            least[l] = best;
        }
    }
    return count;
}

static void forget(double *values, size_t count, double value)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = value;
    }
}

/* Each further core raises the highest rate, so the highest rate within some cores uses them all.
 */
static size_t make_energy(const struct tun_space *s, struct tun_maker *m, size_t segment,
                          double need)
{
    const struct tun_option like = {.slowest_ns = INFINITY,
                                    .batch = (uint16_t)tun_space_fastest(s, segment)};

    forget(m->least, s->state_count, INFINITY);
    return add_thriftier(s, m, s->rate + segment * s->rate_len, need, 0, like);
}

/* Ever slower teams, which may need less energy. @count: options made so far, of other batches.
 * They are not compared with these: slow teams that take one frame may need less energy than fast
 * ones that take two, and keep a frame longer. */
static size_t make_both(const struct tun_space *s, struct tun_maker *m, size_t segment, size_t b,
                        double need, size_t count)
{
    const double *team_ns = tun_space_teams(s, b, segment);

    forget(m->least, s->state_count, INFINITY);
    forget(m->rate, s->rate_len, -INFINITY);
    forget(m->ep_rate, s->p->ep_count * (PL_CPU_MAX + 1), -INFINITY);
    for (size_t d = 0; d < s->dim_count; d++) {
        m->rate[s->rate_at[d]] = 0;
    }
    for (size_t k = 0; k < s->p->ep_count; k++) {
        m->ep_rate[k * (PL_CPU_MAX + 1)] = 0;
    }
    sort_teams(s, team_ns, m->order);
    for (size_t i = 0; i < s->team_len; i++) {
        double ns = team_ns[m->order[i]];
        const struct tun_option like = {
            .ns = tun_latency_of(s->p, (size_t)1 << b, ns), .slowest_ns = ns, .batch = (uint16_t)b};

        if (like.ns > m->latency_ns) {
            break;
        }
        add_team(s, m, true, m->order[i], ns);
        if (i + 1 == s->team_len || team_ns[m->order[i + 1]] > ns) {
            count = add_thriftier(s, m, m->rate, need, count, like);
        }
    }
    return count;
}

size_t tun_make(const struct tun_space *s, struct tun_maker *m, size_t from, size_t to, double need,
                enum tun_figure figure)
{
    size_t segment = tun_segment(s, from, to);
    size_t count = 0;

    m->room = figure == TUN_FIGURE_BOTH ? TUN_WAYS_MAX : m->option_max;
    if (tun_space_forbids(s, from, to)) {
        return 0;
    }
    if (s->p->bounds.one_ep_stages) {
        return make_single(s, m, tun_space_teams(s, 0, segment), need, figure);
    }
    if (tun_space_full_rate(s, s->rate + segment * s->rate_len) < need) {
        return 0;
    }
    if (figure == TUN_FIGURE_ENERGY) {
        return make_energy(s, m, segment, need);
    }
    if (figure == TUN_FIGURE_NONE) {
        return make_period(s, m, segment, need);
    }
    for (size_t b = 0; b <= tun_space_fastest(s, segment); b++) {
        count = figure == TUN_FIGURE_BOTH ? make_both(s, m, segment, b, need, count)
                                          : make_latency(s, m, segment, b, need, count);
    }
    return count;
}

double tun_option_ns(const struct tun_space *s, size_t from, size_t to, const struct tun_option *o)
{
    const double *team_ns = tun_space_teams(s, o->batch, tun_segment(s, from, to));
    size_t dims = s->dim_count - 1;
    double best[PL_CPU_MAX + 1], sum[PL_EP_MAX] = {0}, rate = 0;

    if (s->p->bounds.one_ep_stages) {
        return o->slowest_ns;
    }
    for (size_t t = 0; t < s->team_len;) {
        size_t ep = s->team_ep[t], dim = (size_t)s->dim_of[ep];
        size_t steps = dim < dims ? s->row_steps[o->row * dims + dim] : o->last;
        size_t cores = tun_space_cores(s, ep, steps);

        memset(best, 0, (cores + 1) * sizeof(*best));
        for (; t < s->team_len && s->team_ep[t] == ep; t++) {
            if (team_ns[t] <= o->slowest_ns) {
                tun_knapsack(s, best, cores, s->team_width[t], 1 / team_ns[t]);
            }
        }
        sum[dim] = s->options.teams == TUN_TEAMS_ONE_EP ? base_max(sum[dim], best[cores])
                                                        : sum[dim] + best[cores];
    }
    for (size_t d = 0; d < s->dim_count; d++) {
        rate += sum[d];
    }
    return 1 / rate;
}
