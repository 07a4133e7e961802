/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/wire/measure.h"

#include <math.h>

#include "base/base.h"

#define LEAST_OF_A_KIND 3u
#define WIRE_BYTES (512u << 10)
#define WIRE_KEEP_NS (10 * BASE_NS_PER_S)
#define WIRE_FULL 0.8        /* of the time */
#define WIRE_ERROR 0.02      /* the kernel counts time in ticks of 4 ms */
#define MAD_TO_SIGMA 1.4826  /* of a normal distribution */
#define QUARTILE_ERROR 1.363 /* standard error of its quartiles x sqrt(n) / sigma */

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorts @x. Return: the value below which a share @q of the @n is, between neighbours by line. */
static double quantile(double *x, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;

    qsort(x, n, sizeof(*x), compare);
    return x[below] + (at - (double)below) * (x[base_min(below + 1, n - 1)] - x[below]);
}

/* The spread around @centre as a standard deviation, but by the median: some may be far off. */
static double scatter(double *x, size_t n, double centre)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = fabs(x[i] - centre);
    }
    return MAD_TO_SIGMA * quantile(x, n, 0.5);
}

static void note_trip(struct lnk_measure *m, double ns)
{
    bool first = m->trips == 0 && m->pairs == 0;

    m->least_trip_ns = first ? ns : base_min(m->least_trip_ns, ns);
}

void lnk_measure_trip(struct lnk_measure *m, uint64_t ns)
{
    note_trip(m, (double)ns);
    m->trip_ns[m->trips++ % LNK_MEASURE_RING] = (double)ns;
}

void lnk_measure_pair(struct lnk_measure *m, uint64_t bytes, uint64_t first_ns, uint64_t second_ns)
{
    if (bytes > 0) {
        note_trip(m, (double)first_ns);
        m->pair[m->pairs++ % LNK_MEASURE_RING] =
            (struct lnk_pair){.bytes = (double)bytes,
                              .apart_ns = base_max((double)second_ns - (double)first_ns, 0.0),
                              .second_ns = (double)second_ns};
    }
}

bool lnk_measure_wire(struct lnk_measure *m, const struct lnk_wire_use *use, uint64_t elapsed_ns)
{
    if (use->bytes < WIRE_BYTES && elapsed_ns < WIRE_KEEP_NS) {
        return false;
    }
    m->wire_ns = use->bytes < WIRE_BYTES ? 0 : (double)use->busy_ns / (double)use->bytes;
    m->wire_full = m->wire_ns > 0 && (double)use->busy_ns >= WIRE_FULL * (double)elapsed_ns;
    return true;
}

static double byte_ns(const struct lnk_measure *m, size_t pairs, double *ret_error)
{
    double apart[LNK_MEASURE_RING], beyond[LNK_MEASURE_RING], by_pairs, by_trips;

    for (size_t i = 0; i < pairs; i++) {
        const struct lnk_pair *p = &m->pair[i];

        apart[i] = p->apart_ns / p->bytes;
        beyond[i] = base_max(p->second_ns - m->least_trip_ns, 0.0) / p->bytes;
    }
    by_pairs = quantile(apart, pairs, 0.75);
    by_trips = quantile(beyond, pairs, 0.25);
    *ret_error =
        QUARTILE_ERROR / sqrt((double)pairs) *
        (by_pairs < by_trips ? scatter(apart, pairs, by_pairs) : scatter(beyond, pairs, by_trips));
    return base_min(by_pairs, by_trips);
}

/* What the wire was busy for is never less than what it needs. */
static void bound_by_wire(const struct lnk_measure *m, struct lnk_link_cost *ret)
{
    if (m->wire_ns > 0 && (m->wire_full || m->wire_ns < ret->b_ns)) {
        ret->b_ns = m->wire_ns;
        ret->b_err_ns = WIRE_ERROR * m->wire_ns;
    }
}

int lnk_measure_get(const struct lnk_measure *m, struct lnk_link_cost *ret)
{
    size_t trips = (size_t)base_min(m->trips, (uint64_t)LNK_MEASURE_RING);
    size_t pairs = (size_t)base_min(m->pairs, (uint64_t)LNK_MEASURE_RING);
    double trip[LNK_MEASURE_RING], both;

    if (trips < LEAST_OF_A_KIND || pairs < LEAST_OF_A_KIND) {
        return LNK_MEASURE_E_UNKNOWN;
    }
    memcpy(trip, m->trip_ns, trips * sizeof(*trip));
    both = quantile(trip, trips, 0.25);
    ret->a_ns = both / 2;
    ret->a_err_ns = QUARTILE_ERROR * scatter(trip, trips, both) / sqrt((double)trips) / 2;
    ret->b_ns = byte_ns(m, pairs, &ret->b_err_ns);
    bound_by_wire(m, ret);
    return 0;
}
