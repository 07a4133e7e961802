/* SPDX-License-Identifier: Apache-2.0 */

#include "tuner/oneboard/ways.h"
#include "base/base.h"

int tun_ways_init(const struct tun_space *s, struct tun_ways *ret)
{
    struct tun_ways w = {.s = s, .need = tun_need(INFINITY), .latency_ns = INFINITY};

    w.rate = calloc(s->rate_len, sizeof(*w.rate));
    w.ep_rate = calloc(s->p->ep_count * (PL_CPU_MAX + 1), sizeof(*w.ep_rate));
    w.least = calloc(s->state_count, sizeof(*w.least));
    w.list = calloc(TUN_WAYS_MAX, sizeof(*w.list));
    if (!w.rate || !w.ep_rate || !w.least || !w.list) {
        tun_ways_deinit(&w);
        return -ENOMEM;
    }
    *ret = w;
    return 0;
}

void tun_ways_deinit(struct tun_ways *w)
{
    free(w->rate);
    free(w->ep_rate);
    free(w->least);
    free(w->list);
    *w = TUN_WAYS_NULL;
}

/* Rates of exactly so many cores with one more team of @ep; -INFINITY: no teams use as many. */
static void let_in(struct tun_ways *ways, size_t ep, size_t width, double ns)
{
    const struct tun_space *s = ways->s;
    size_t cores = s->p->eps[ep].cores, dim = (size_t)s->dim_of[ep];
    double *best = ways->ep_rate + ep * (PL_CPU_MAX + 1), *rate = ways->rate + s->rate_at[dim];

    for (size_t c = width; c <= cores; c++) {
        if (s->options.teams == TUN_TEAMS_ANY) {
            best[c] = base_max(best[c], best[c - width] + 1 / ns);
        } else if (c % width == 0) {
            best[c] = base_max(best[c], (double)(c / width) / ns);
        }
    }
    for (size_t r = 1; r <= s->cap[dim]; r++) {
        rate[r] = s->options.teams == TUN_TEAMS_ONE_EP ? -INFINITY : 0;
        for (size_t k = 0; k < s->p->ep_count; k++) {
            if (s->dim_of[k] == (int)dim) {
                double gain = ways->ep_rate[k * (PL_CPU_MAX + 1) + tun_space_cores(s, k, r)];

                rate[r] =
                    s->options.teams == TUN_TEAMS_ONE_EP ? base_max(rate[r], gain) : rate[r] + gain;
            }
        }
    }
}

static size_t add_way(struct tun_ways *ways, size_t count, struct tun_way way)
{
    if (count == TUN_WAYS_MAX) {
        ways->cut = true;
        return count;
    }
    ways->list[count] = way;
    return count + 1;
}

/* Options of the teams added so far that need less energy. @like: what all of them have: ns,
 * slowest_ns, batch. */
static size_t add_level(struct tun_ways *ways, size_t count, const struct tun_way *like)
{
    const struct tun_space *s = ways->s;
    size_t dims = s->dim_count - 1;

    for (size_t row = 0; row < s->row_count; row++) {
        const uint16_t *steps = s->row_steps + row * dims;
        double row_rate = 0, row_watts = 0, *least = ways->least + row * s->row_len;

        for (size_t d = 0; d < dims; d++) {
            row_rate += ways->rate[s->rate_at[d] + steps[d]];
            row_watts += s->watts[s->rate_at[d] + steps[d]];
        }
        for (size_t l = 0; l < s->row_len; l++) {
            double rate = row_rate + ways->rate[s->rate_at[dims] + l];
            double nj = (row_watts + s->watts[s->rate_at[dims] + l]) / rate;

            least[l] = base_min(least[l], l > 0 ? least[l - 1] : INFINITY);
            for (size_t d = 0; d < dims; d++) {
                if (steps[d] > 0) {
                    least[l] =
                        base_min(least[l], ways->least[(row - s->row_stride[d]) * s->row_len + l]);
                }
            }
            if (rate >= ways->need && nj < least[l]) {
                struct tun_way way = *like;

                least[l] = way.nj = nj;
                way.row = (uint16_t)row;
                way.last = (uint16_t)l;
                count = add_way(ways, count, way);
            }
        }
    }
    return count;
}

/* @count: ways made so far, of other batches. They are not compared with these: slow teams that
 * take one frame may need less energy than fast ones that take two, and keep a frame longer. */
static size_t make_batch(struct tun_ways *ways, size_t from, size_t to, size_t b, size_t count)
{
    const struct tun_space *s = ways->s;
    const double *team_ns = tun_space_teams(s, b, tun_segment(s, from, to));
    size_t dims = s->dim_count - 1;
    double done = 0;

    for (size_t i = 0; i < s->state_count; i++) {
        ways->least[i] = INFINITY;
    }
    for (size_t i = 0; i < s->rate_len; i++) {
        ways->rate[i] = -INFINITY;
    }
    for (size_t d = 0; d <= dims; d++) {
        ways->rate[s->rate_at[d]] = 0;
    }
    for (size_t i = 0; i < s->p->ep_count * (PL_CPU_MAX + 1); i++) {
        ways->ep_rate[i] = i % (PL_CPU_MAX + 1) == 0 ? 0 : -INFINITY;
    }
    while (!tun_space_forbids(s, from, to)) {
        double ns = INFINITY, stays_ns;

        for (size_t i = 0; i < s->team_len; i++) {
            ns = team_ns[i] > done ? base_min(ns, team_ns[i]) : ns;
        }
        stays_ns = tun_latency_of(s->p, (size_t)1 << b, ns);
        if (!isfinite(ns) || stays_ns > ways->latency_ns) {
            break;
        }
        for (size_t i = 0; i < s->team_len; i++) {
            size_t ep = s->team_ep[i], dim = (size_t)s->dim_of[ep];

            if (team_ns[i] != ns) {
                continue;
            }
            if (!s->p->bounds.one_ep_stages) {
                let_in(ways, ep, s->team_width[i], ns);
            } else if (ns * ways->need <= 1) {
                size_t row = dim < dims ? s->team_steps[i] * s->row_stride[dim] : 0;

                count = add_way(
                    ways, count,
                    (struct tun_way){.row = (uint16_t)row,
                                     .last = dim < dims ? 0 : s->team_steps[i],
                                     .nj = s->team_width[i] * tun_ep_watts(&s->p->eps[ep]) * ns,
                                     .ns = stays_ns,
                                     .slowest_ns = ns});
            }
        }
        if (!s->p->bounds.one_ep_stages) {
            count = add_level(
                ways, count,
                &(struct tun_way){.ns = stays_ns, .slowest_ns = ns, .batch = (uint16_t)b});
        }
        done = ns;
    }
    return count;
}

size_t tun_ways_make(struct tun_ways *ways, size_t from, size_t to)
{
    size_t last = tun_space_fastest(ways->s, tun_segment(ways->s, from, to)), count = 0;

    for (size_t b = 0; b <= last; b++) {
        count = make_batch(ways, from, to, b, count);
    }
    return count;
}
