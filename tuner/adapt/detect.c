/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt/detect.h"

#include <math.h>

#include "base/base.h"

#define MAD_TO_SIGMA 1.4826 /* of a normal distribution */
#define SPREAD_EVERY 8u     /* windows between two looks at the spread */
#define STEADY_SPREADS 2.0
#define OMEGA_MOST 4.0 /* a drift looks like correlation; it may not shut the detector */

bool tun_detect_check(const struct tun_detect_options *o)
{
    return o->k > 0 && o->k < o->clip && o->clip - o->k < o->h && o->h <= o->firm &&
           isfinite(o->firm) && o->sigma_floor > 0 && isfinite(o->sigma_floor) &&
           o->sigma_start > 0 && isfinite(o->sigma_start);
}

void tun_detect_init(struct tun_detect *d, const struct tun_detect_options *o)
{
    *d = (struct tun_detect){
        .options = *o, .sigma = base_max(o->sigma_start, o->sigma_floor), .omega = 1};
}

static size_t held(const struct tun_detect *d)
{
    return base_min(d->count, (size_t)TUN_DETECT_RING);
}

/* The k-th smallest (Hoare); the order of @v is lost. */
static float select_kth(float *v, size_t count, size_t k)
{
    size_t low = 0, high = count - 1;

    while (low < high) {
        float pivot = v[low + (high - low) / 2];
        size_t i = low, j = high;

        for (;;) {
            while (v[i] < pivot) {
                i++;
            }
            while (v[j] > pivot) {
                j--;
            }
            if (i >= j) {
                break;
            }
            float t = v[i];

            v[i++] = v[j];
            v[j--] = t;
        }
        if (k <= j) {
            high = j;
        } else {
            low = j + 1;
        }
    }
    return v[k];
}

static float median(float *v, size_t count)
{
    float upper = select_kth(v, count, count / 2), lower;

    if (count % 2) {
        return upper;
    }
    lower = select_kth(v, count, count / 2 - 1);
    return (lower + upper) / 2;
}

static double clipped(const struct tun_detect *d, double residual)
{
    double clip = d->options.clip;

    return base_max(-clip, base_min(clip, residual / d->sigma));
}

static double omega_of(const struct tun_detect *d)
{
    double mean = 0, squares = 0, products = 0, before = 0, r;
    size_t count = held(d);

    for (size_t i = 0; i < count; i++) {
        mean += clipped(d, d->ring[i]) / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        double z = clipped(d, d->ring[(d->count - count + i) % TUN_DETECT_RING]) - mean;

        squares += z * z;
        products += i > 0 ? z * before : 0;
        before = z;
    }
    r = squares > 0 ? base_max(0.0, products / squares) : 0;
    return r < 1 ? base_min(OMEGA_MOST, (1 + r) / (1 - r)) : OMEGA_MOST;
}

static void take_spread(struct tun_detect *d)
{
    size_t count = held(d);
    float sorted[TUN_DETECT_RING], middle;

    memcpy(sorted, d->ring, count * sizeof(*sorted));
    middle = median(sorted, count);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = fabsf(d->ring[i] - middle);
    }
    d->sigma = base_max(d->options.sigma_floor, MAD_TO_SIGMA * median(sorted, count));
    d->omega = omega_of(d);
}

static void side_add(struct tun_side *s, double step, double most, uint64_t start_ns)
{
    s->score = base_min(most, s->score + step);
    if (s->score <= 0) {
        *s = (struct tun_side){0};
        return;
    }
    if (s->windows++ == 0) {
        s->since_ns = start_ns;
    }
}

static double firm_of(const struct tun_detect *d)
{
    return d->options.firm * base_max(1.0, d->omega / TUN_DETECT_OMEGA);
}

/* A change that comes while noise keeps up an alarm of another size counts from its own start: else
 * its size would be wrong, and it would be firm too soon. */
static void begin_anew(struct tun_detect *d, struct tun_side *side, double sign)
{
    double newest, score = 0;

    if (side->score < d->options.h || side->windows <= 2 * TUN_DETECT_NEWEST) {
        return;
    }
    newest = tun_detect_level(d, TUN_DETECT_NEWEST) - d->base;
    if (sign * (newest - (tun_detect_level(d, side->windows) - d->base)) <=
        d->options.clip * d->sigma) {
        return;
    }
    for (size_t i = 1; i <= TUN_DETECT_NEWEST; i++) {
        double residual = d->ring[(d->count - i) % TUN_DETECT_RING];

        score += sign * clipped(d, residual) - d->options.k;
    }
    side->score = base_max(score, d->options.h);
    side->windows = TUN_DETECT_NEWEST;
    side->since_ns = d->starts[d->count % TUN_DETECT_NEWEST];
}

enum tun_change tun_detect_add(struct tun_detect *d, double x, uint64_t start_ns)
{
    double residual = x - d->base, z;

    if (!isfinite(x)) {
        return tun_detect_state(d);
    }
    z = clipped(d, residual);
    side_add(&d->up, z - d->options.k, 2 * firm_of(d), start_ns);
    side_add(&d->down, -z - d->options.k, 2 * firm_of(d), start_ns);
    d->ring[d->count % TUN_DETECT_RING] = (float)residual;
    d->starts[d->count % TUN_DETECT_NEWEST] = start_ns;
    d->count++;
    begin_anew(d, &d->up, 1);
    begin_anew(d, &d->down, -1);
    if (d->count >= TUN_DETECT_WARM && d->count % SPREAD_EVERY == 0) {
        take_spread(d);
    }
    return tun_detect_state(d);
}

static const struct tun_side *standing(const struct tun_detect *d)
{
    const struct tun_side *s = d->up.score >= d->down.score ? &d->up : &d->down;

    return s->score >= d->options.h ? s : NULL;
}

enum tun_change tun_detect_state(const struct tun_detect *d)
{
    const struct tun_side *s = standing(d);

    return !s ? TUN_SAME : s == &d->up ? TUN_SLOWER : TUN_FASTER;
}

/* Are the last windows all on the alarm's side, not a few spikes among others? */
static bool steady(const struct tun_detect *d, double sign)
{
    for (size_t i = 1; i <= TUN_DETECT_STEADY; i++) {
        if (sign * d->ring[(d->count - i) % TUN_DETECT_RING] <= STEADY_SPREADS * d->sigma) {
            return false;
        }
    }
    return true;
}

bool tun_detect_firm(const struct tun_detect *d)
{
    const struct tun_side *s = standing(d);
    double sign = s == &d->up ? 1 : -1, size;

    if (!s || s->score < d->options.firm || d->count < TUN_DETECT_STEADY) {
        return false;
    }
    size = fabs(tun_detect_level(d, s->windows) - d->base);
    if (size > d->options.clip * d->sigma && !steady(d, sign)) {
        return false;
    }
    return s->score >= firm_of(d) ||
           size >= base_min(TUN_DETECT_PLAIN * d->options.clip * d->sigma, TUN_DETECT_LARGE);
}

size_t tun_detect_change(const struct tun_detect *d, uint64_t *ret_since_ns)
{
    const struct tun_side *s = standing(d);

    if (s && ret_since_ns) {
        *ret_since_ns = s->since_ns;
    }
    return s ? s->windows : 0;
}

double tun_detect_level(const struct tun_detect *d, size_t windows)
{
    size_t count = base_min(windows, held(d));
    float last[TUN_DETECT_RING];

    if (count == 0) {
        return d->base;
    }
    for (size_t i = 0; i < count; i++) {
        last[i] = d->ring[(d->count - count + i) % TUN_DETECT_RING];
    }
    return d->base + (double)median(last, count);
}

void tun_detect_rebase(struct tun_detect *d, double level)
{
    double moved = level - d->base;

    if (!isfinite(level)) {
        return;
    }
    for (size_t i = 0; i < TUN_DETECT_RING; i++) {
        d->ring[i] -= (float)moved;
    }
    d->base = level;
    d->up = d->down = (struct tun_side){0};
}
