/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/watts.h"

#include <math.h>

#include "base/base.h"

#define WINDOW_NS (BASE_NS_PER_S / 2)
#define GAP_NS (10 * BASE_NS_PER_S) /* a longer window says little: the machine slept */
#define FADES 0.998
#define SURE 0.1         /* greatest sigma of a figure, relative */
#define NOISE_LEAST 0.01 /* of the mean power */
#define RIDGE 1e-9       /* on a diagonal of ones: what others explain gets a large sigma */

_Static_assert(GOV_ENERGY_MAX <= 32, "one bit for each source");

/* Seconds that cores of the group were busy since the machine started; NAN: unknown. */
static double busy_s(const struct gov_snapshot *s, const struct gov_cores *cores)
{
    double sum = 0;

    for (size_t c = 0; c < cores->count; c++) {
        size_t i = 0;

        while (i < s->cpu_count && s->cpus[i].cpu != cores->cpus[c]) {
            i++;
        }
        if (i == s->cpu_count || s->cpus[i].busy_ns == GOV_UNKNOWN) {
            return NAN;
        }
        sum += (double)s->cpus[i].busy_ns / 1e9;
    }
    return sum;
}

/* Return: all of it is known. */
static bool look(const struct gov_snapshot *s, const struct gov_cores *cores, size_t count,
                 struct gov_watts_at *ret)
{
    bool known = gov_known(s->joules);

    *ret = (struct gov_watts_at){.at_ns = s->at_ns, .joules = s->joules};
    for (size_t i = 0; i < s->energy_count; i++) {
        ret->sources |= (uint32_t)s->energy[i].counted << i;
    }
    for (size_t k = 0; k < count; k++) {
        ret->busy_s[k] = busy_s(s, &cores[k]);
        known &= gov_known(ret->busy_s[k]);
    }
    return known && ret->sources;
}

/* The window as a row: busy cores of each group, then 1. Return: false: a counter fell. */
static bool row_of(const struct gov_watts_at *from, const struct gov_watts_at *to, size_t count,
                   double row[GOV_WATTS_TERMS])
{
    double seconds = (double)(to->at_ns - from->at_ns) / 1e9;

    for (size_t k = 0; k < count; k++) {
        row[k] = (to->busy_s[k] - from->busy_s[k]) / seconds;
        if (row[k] < 0) {
            return false;
        }
    }
    row[count] = 1;
    return true;
}

static void add(struct gov_watts *w, const double *row, double watts)
{
    for (size_t i = 0; i <= w->count; i++) {
        for (size_t k = 0; k <= w->count; k++) {
            w->products[i][k] = FADES * w->products[i][k] + row[i] * row[k];
        }
        w->right[i] = FADES * w->right[i] + row[i] * watts;
    }
    w->squares = FADES * w->squares + watts * watts;
    w->power = FADES * w->power + watts;
    w->windows = FADES * w->windows + 1;
}

/* Inverts the products by Gauss and Jordan, scaled to a diagonal of ones. A column of zeros stays
 * one. */
static void invert(const struct gov_watts *w, double ret[GOV_WATTS_TERMS][GOV_WATTS_TERMS])
{
    size_t n = w->count + 1;
    double a[GOV_WATTS_TERMS][GOV_WATTS_TERMS], scale[GOV_WATTS_TERMS];

    for (size_t i = 0; i < n; i++) {
        scale[i] = w->products[i][i] > 0 ? 1 / sqrt(w->products[i][i]) : 0;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            a[i][k] = w->products[i][k] * scale[i] * scale[k] + (i == k ? RIDGE : 0);
            ret[i][k] = i == k;
        }
    }
    for (size_t c = 0; c < n; c++) {
        double pivot = a[c][c];

        for (size_t k = 0; k < n; k++) {
            a[c][k] /= pivot;
            ret[c][k] /= pivot;
        }
        for (size_t i = 0; i < n; i++) {
            double factor = a[i][c];

            for (size_t k = 0; k < n && i != c; k++) {
                a[i][k] -= factor * a[c][k];
                ret[i][k] -= factor * ret[c][k];
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            ret[i][k] *= scale[i] * scale[k];
        }
    }
}

static void solve(struct gov_watts *w)
{
    double inverse[GOV_WATTS_TERMS][GOV_WATTS_TERMS], fit[GOV_WATTS_TERMS] = {0};
    double missed = w->squares, mean = w->power / w->windows;
    size_t n = w->count + 1;

    invert(w, inverse);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            fit[i] += inverse[i][k] * w->right[k];
        }
        missed -= fit[i] * w->right[i];
    }
    missed = base_max(missed / base_max(w->windows - (double)n, 1.0),
                      NOISE_LEAST * mean * NOISE_LEAST * mean);
    for (size_t k = 0; k < w->count; k++) {
        bool sure = w->windows > GOV_WATTS_WINDOWS - 1 && inverse[k][k] > 0 && fit[k] > 0 &&
                    sqrt(missed * inverse[k][k]) <= SURE * fit[k];

        w->known[k] = sure ? fit[k] : 0;
    }
}

void gov_watts_add(struct gov_watts *w, const struct gov_snapshot *s, uint64_t state,
                   const struct gov_cores *cores, size_t count)
{
    struct gov_watts_at now = {0};
    double row[GOV_WATTS_TERMS], watts;
    bool known = count <= GOV_WATTS_GROUPS && look(s, cores, count, &now);

    if (state != w->state || count != w->count) {
        *w = (struct gov_watts){.state = state, .count = base_min(count, (size_t)GOV_WATTS_GROUPS)};
    }
    if (!known || now.sources != w->from.sources || now.at_ns <= w->from.at_ns ||
        now.at_ns - w->from.at_ns > GAP_NS) {
        w->from = known ? now : (struct gov_watts_at){0};
        return;
    }
    if (now.at_ns - w->from.at_ns < WINDOW_NS) {
        return;
    }
    watts = (now.joules - w->from.joules) * 1e9 / (double)(now.at_ns - w->from.at_ns);
    if (row_of(&w->from, &now, w->count, row) && watts > 0) {
        add(w, row, watts);
        solve(w);
    }
    w->from = now;
}
