/* SPDX-License-Identifier: Apache-2.0 */

#include "tuner/oneboard/space.h"
#include "base/base.h"

#define TABLE_VALUES_MAX ((size_t)8 << 20) /* doubles in one table */
#define WORK_MAX 3e8                       /* steps of one pass over all segments */

size_t tun_space_cores(const struct tun_space *s, size_t ep, size_t steps)
{
    size_t cap = s->cap[s->dim_of[ep]];

    return steps >= cap ? s->p->eps[ep].cores : steps * s->block[ep];
}

bool tun_space_forbids(const struct tun_space *s, size_t from, size_t to)
{
    return s->options.forbid && s->atom_first[from] == s->options.forbid_first &&
           s->atom_first[to] == s->options.forbid_last + 1;
}

static double state_count(const struct tun_space *s)
{
    double states = 1;

    for (size_t d = 0; d < s->dim_count; d++) {
        states *= s->cap[d] + 1;
    }
    return states;
}

/* The shortest dimension goes into the next one; both then have its steps. */
static void bundle(struct tun_space *s)
{
    int last = (int)s->dim_count - 1;

    s->cap[1] = s->cap[0];
    s->cap[0] = s->cap[last];
    for (size_t k = 0; k < s->p->ep_count; k++) {
        if (s->dim_of[k] == 0) {
            s->dim_of[k] = 1;
        } else if (s->dim_of[k] == last) {
            s->dim_of[k] = 0;
        }
        if (s->dim_of[k] == 1) {
            s->block[k] = (uint16_t)(s->p->eps[k].cores / s->cap[1]);
        }
    }
    s->dim_count--;
    s->coarse = true;
}

static void swap_dims(struct tun_space *s, size_t a, size_t b)
{
    uint16_t cap = s->cap[a];

    s->cap[a] = s->cap[b];
    s->cap[b] = cap;
    for (size_t k = 0; k < s->p->ep_count; k++) {
        if (s->dim_of[k] == (int)a) {
            s->dim_of[k] = (int)b;
        } else if (s->dim_of[k] == (int)b) {
            s->dim_of[k] = (int)a;
        }
    }
}

/* The longest dimension gets blocks twice as large. */
static void halve(struct tun_space *s, size_t d)
{
    s->cap[d] /= 2;
    for (size_t k = 0; k < s->p->ep_count; k++) {
        if (s->dim_of[k] == (int)d) {
            s->block[k] = (uint16_t)(s->p->eps[k].cores / s->cap[d]);
        }
    }
    s->coarse = true;
}

static void sort_dims(struct tun_space *s)
{
    for (size_t a = 1; a < s->dim_count; a++) {
        for (size_t b = a; b > 0 && s->cap[b] < s->cap[b - 1]; b--) {
            swap_dims(s, b, b - 1);
        }
    }
}

static int plan_dims(struct tun_space *s)
{
    for (size_t k = 0; k < s->p->ep_count; k++) {
        s->dim_of[k] = -1;
        if (!s->options.without[k]) {
            s->dim_of[k] = (int)s->dim_count;
            s->cap[s->dim_count++] = s->p->eps[k].cores;
            s->block[k] = 1;
        }
    }
    if (s->dim_count == 0) {
        return -EINVAL;
    }
    sort_dims(s);
    while (s->options.teams == TUN_TEAMS_ONE_EP && s->dim_count > TUN_GROUP_MAX) {
        bundle(s);
        sort_dims(s);
    }
    while (state_count(s) > TUN_STATES_MAX) {
        if (s->cap[s->dim_count - 1] > 1) {
            halve(s, s->dim_count - 1);
        } else {
            bundle(s);
        }
        sort_dims(s);
    }
    return 0;
}

static int plan_teams(struct tun_space *s)
{
    for (size_t d = 0; d < s->dim_count; d++) {
        s->rate_at[d] = s->rate_len;
        s->rate_len += s->cap[d] + 1u;
    }
    for (size_t k = 0; k < s->p->ep_count; k++) {
        size_t cores = s->p->eps[k].cores, steps = 1;

        if (s->dim_of[k] < 0) {
            continue;
        }
        s->dim_eps[s->dim_of[k]]++;
        for (size_t w = base_min(base_max(s->options.min_width, (size_t)1), cores); w <= cores;
             w++) {
            while (tun_space_cores(s, k, steps) < w) {
                steps++;
            }
            s->team_ep[s->team_len] = (uint16_t)k;
            s->team_width[s->team_len] = (uint16_t)w;
            s->team_steps[s->team_len++] = (uint16_t)steps;
        }
    }
    s->watts = calloc(s->rate_len, sizeof(*s->watts));
    for (size_t k = 0; s->watts && k < s->p->ep_count; k++) {
        for (size_t r = 1; s->dim_of[k] >= 0 && r <= s->cap[s->dim_of[k]]; r++) {
            s->watts[s->rate_at[s->dim_of[k]] + r] +=
                tun_ep_watts(&s->p->eps[k]) * (double)tun_space_cores(s, k, r);
        }
    }
    return s->watts ? 0 : -ENOMEM;
}

static int plan_rows(struct tun_space *s)
{
    size_t dims = s->dim_count - 1;

    s->row_len = s->cap[dims] + 1u;
    s->row_count = 1;
    for (size_t d = dims; d-- > 0;) {
        s->row_stride[d] = s->row_count;
        s->row_count *= s->cap[d] + 1u;
    }
    s->state_count = s->row_count * s->row_len;
    s->line_len = dims > 0 ? s->cap[dims - 1] + 1u : 1;
    s->plane_count = s->row_count / s->line_len;
    s->row_steps = calloc(s->row_count * base_max(dims, (size_t)1), sizeof(*s->row_steps));
    s->row_fits = calloc(s->row_count, s->row_count);
    s->plane_fits = calloc(s->plane_count, s->plane_count);
    if (!s->row_steps || !s->row_fits || !s->plane_fits) {
        return -ENOMEM;
    }
    for (size_t r = 0; r < s->row_count; r++) {
        for (size_t d = 0; d < dims; d++) {
            s->row_steps[r * dims + d] = (uint16_t)(r / s->row_stride[d] % (s->cap[d] + 1u));
        }
    }
    for (size_t a = 0; a < s->row_count; a++) {
        for (size_t b = 0; b < s->row_count; b++) {
            bool fits = true;

            for (size_t d = 0; d < dims; d++) {
                fits &= s->row_steps[a * dims + d] + s->row_steps[b * dims + d] <= s->cap[d];
            }
            s->row_fits[a * s->row_count + b] = fits;
            if (a % s->line_len == 0 && b % s->line_len == 0) {
                s->plane_fits[a / s->line_len * s->plane_count + b / s->line_len] = fits;
            }
        }
    }
    return 0;
}

/* How many atoms a pass over all segments can afford. */
static size_t atoms_max(const struct tun_space *s)
{
    double pairs = 1, longest = s->cap[s->dim_count - 1] + 1.0;
    double values = (double)(s->batch_count * s->team_len + s->rate_len), work, segments;

    for (size_t d = 0; d + 1 < s->dim_count; d++) {
        pairs *= (s->cap[d] + 1.0) * (s->cap[d] + 2.0) / 2;
    }
    pairs *= base_max(16.0 / (double)s->line_len, 1.0); /* short lines are slow */
    work = (double)s->batch_count *
           base_max(pairs, (double)s->team_len * ((double)s->row_count + 2 * longest));
    segments = base_min((double)TABLE_VALUES_MAX / values, WORK_MAX / work);
    work = base_min(floor(sqrt(2 * segments)), (double)TABLE_VALUES_MAX / s->state_count);
    return (size_t)base_max(work, 16.0);
}

static double unit_weight(const struct tun_problem *p, size_t u)
{
    double sum = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        sum += tun_cell_at(&p->costs, k, 1, u)->ns;
    }
    return sum;
}

size_t tun_cut(const struct tun_problem *p, size_t max, size_t *ret_first)
{
    double total = 0, sum = 0;
    size_t count = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        total += unit_weight(p, u);
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        if (u == 0 || p->unit_count <= max ||
            (sum >= total * (double)count / (double)max && count < max)) {
            ret_first[count++] = u;
        }
        sum += unit_weight(p, u);
    }
    ret_first[count] = p->unit_count;
    return count;
}

/* Atoms, where there are more units than a pass can afford. */
static int plan_atoms(struct tun_space *s)
{
    size_t units = s->p->unit_count, max = atoms_max(s);

    s->atom_first = calloc(units + 1, sizeof(*s->atom_first));
    if (!s->atom_first) {
        return -ENOMEM;
    }
    s->atom_count = tun_cut(s->p, max, s->atom_first);
    s->coarse |= units > max;
    return 0;
}

void tun_knapsack(const struct tun_space *s, double *best, size_t cores, size_t width, double gain)
{
    if (s->options.teams == TUN_TEAMS_ANY) {
        for (size_t c = width; c <= cores; c++) {
            double with = best[c - width] + gain;

            best[c] = with > best[c] ? with : best[c];
        }
        return;
    }
    for (size_t c = width; c <= cores; c++) {
        double with = (double)(c / width) * gain;

        best[c] = with > best[c] ? with : best[c];
    }
}

/* Rates of one segment from its teams' times. */
static void fill_rates(const struct tun_space *s, const double *team_ns, double *rate)
{
    double best[PL_CPU_MAX + 1];

    memset(rate, 0, s->rate_len * sizeof(*rate));
    for (size_t t = 0; t < s->team_len;) {
        size_t ep = s->team_ep[t], cores = s->p->eps[ep].cores;
        size_t dim = (size_t)s->dim_of[ep];
        double *to = rate + s->rate_at[dim];

        memset(best, 0, (cores + 1) * sizeof(*best));
        for (; t < s->team_len && s->team_ep[t] == ep; t++) {
            tun_knapsack(s, best, cores, s->team_width[t], 1 / team_ns[t]);
        }
        for (size_t r = 1; r <= s->cap[dim]; r++) {
            double gain = best[tun_space_cores(s, ep, r)];

            to[r] = s->options.teams == TUN_TEAMS_ONE_EP ? base_max(to[r], gain) : to[r] + gain;
        }
    }
}

size_t tun_space_fastest(const struct tun_space *s, size_t segment)
{
    const double *least = tun_space_teams(s, s->batch_count - 1, segment);
    size_t b = 0;

    while (b + 1 < s->batch_count &&
           memcmp(tun_space_teams(s, b, segment), least, s->team_len * sizeof(*least)) != 0) {
        b++;
    }
    return b;
}

double tun_space_atom_rate(const struct tun_space *s, size_t atom)
{
    size_t segment = tun_segment(s, atom, atom + 1), unit = s->atom_first[atom];
    const double *team_ns = tun_space_teams(s, s->batch_count - 1, segment);
    double bytes_ns = unit ? s->p->handoff_ns_per_byte * s->p->units[unit].in_bytes : 0;
    double part = 1, rate = 0;

    for (size_t t = 0; t < s->team_len; t++) {
        part = base_min(part, 1 - bytes_ns / team_ns[t]);
        rate = base_max(rate, 1 / team_ns[t]);
    }
    if (!s->p->bounds.one_ep_stages) {
        rate = tun_space_full_rate(s, s->rate + segment * s->rate_len);
    }
    return rate / base_max(part, 1e-9);
}

/* A unit's time in a team, one of 1 << @b frames at once. */
static double unit_ns(const struct tun_space *s, size_t team, size_t unit, size_t b)
{
    size_t ep = s->team_ep[team];
    double ns = tun_cell_at(&s->p->costs, ep, s->team_width[team], unit)->ns;

    return b == 0 ? ns : ns * tun_at_once_factor(tun_at_once_at(s->p, ep, unit), (double)(1u << b));
}

/* The sums run over the units as tun_frames_ns() does, so times agree to the last bit. */
static void fill_batch(struct tun_space *s, size_t b)
{
    size_t segments = s->atom_count * (s->atom_count + 1) / 2;
    const struct tun_problem *p = s->p;
    double now[PL_CPU_MAX];

    for (size_t from = 0; from < s->atom_count; from++) {
        size_t first = s->atom_first[from];

        for (size_t t = 0; t < s->team_len; t++) {
            now[t] = tun_handoff_ns(p, first);
        }
        for (size_t to = from + 1; to <= s->atom_count; to++) {
            size_t segment = tun_segment(s, from, to);

            for (size_t u = s->atom_first[to - 1]; u < s->atom_first[to]; u++) {
                for (size_t t = 0; t < s->team_len; t++) {
                    now[t] += unit_ns(s, t, u, b);
                }
            }
            memcpy(s->team_ns + (b * segments + segment) * s->team_len, now,
                   s->team_len * sizeof(*now));
            if (b + 1 == s->batch_count && !p->bounds.one_ep_stages) {
                fill_rates(s, now, s->rate + segment * s->rate_len);
            }
        }
    }
}

static int fill_tables(struct tun_space *s)
{
    size_t segments = s->atom_count * (s->atom_count + 1) / 2;

    s->team_ns = malloc(s->batch_count * segments * s->team_len * sizeof(*s->team_ns));
    s->rate = malloc(segments * s->rate_len * sizeof(*s->rate));
    if (!s->team_ns || !s->rate) {
        return -ENOMEM;
    }
    for (size_t b = 0; b < s->batch_count; b++) {
        fill_batch(s, b);
    }
    return 0;
}

int tun_space_init(const struct tun_problem *p, const struct tun_space_options *o,
                   struct tun_space *ret)
{
    struct tun_space s = {.p = p, .options = *o};
    int r = plan_dims(&s);

    if (r < 0) {
        return r;
    }
    s.batch_count = 1;
    while (s.batch_count < TUN_BATCHES && (size_t)1 << s.batch_count <= o->batch_max &&
           !p->bounds.one_ep_stages) {
        s.batch_count++;
    }
    s.coarse |= o->min_width > 1 || o->teams != TUN_TEAMS_ANY;
    s.stages_max = p->bounds.stages_max ? base_min(p->bounds.stages_max, (size_t)PL_STAGE_MAX)
                                        : (size_t)PL_STAGE_MAX;
    r = plan_teams(&s);
    if (r == 0) {
        r = plan_rows(&s);
    }
    if (r == 0) {
        r = plan_atoms(&s);
    }
    if (r == 0) {
        r = fill_tables(&s);
    }
    if (r < 0) {
        tun_space_deinit(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void tun_space_deinit(struct tun_space *s)
{
    free(s->atom_first);
    free(s->row_steps);
    free(s->row_fits);
    free(s->plane_fits);
    free(s->team_ns);
    free(s->rate);
    free(s->watts);
    *s = TUN_SPACE_NULL;
}
