/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt/apart.h"

#include <math.h>

#include "base/base.h"
#include "tuner/adapt/detect.h"

#define LEVEL_WINDOWS ((size_t)25)               /* whose median is the factor */
#define MOST_WINDOWS (2 * TUN_APART_WINDOWS - 1) /* of which most have to show it */

struct core {
    uint16_t ep, cpu;
    double level;  /* newest */
    uint64_t seen; /* number of the window that it is of */
    double sum;    /* of this window's samples */
    unsigned samples;
    double least[MOST_WINDOWS]; /* q of the last windows, a ring of detect.count */
    struct tun_detect detect;
};

struct tun_apart {
    uint64_t windows;
    size_t count;
    struct core cores[TUN_APART_CORES_MAX];
};

double tun_apart_times(const struct tun_core_seen *seen, size_t count, uint16_t cpu)
{
    double least = INFINITY;
    size_t own = 0;

    while (own < count && seen[own].cpu != cpu) {
        own++;
    }
    for (size_t i = 0; i < count && own < count; i++) {
        if (i != own && seen[i].ep == seen[own].ep && isfinite(seen[i].level)) {
            least = base_min(least, seen[i].level);
        }
    }
    return isfinite(least) && isfinite(seen[own].level) ? exp(seen[own].level - least) : NAN;
}

struct tun_apart *tun_apart_new(void)
{
    return calloc(1, sizeof(struct tun_apart));
}

struct tun_apart *tun_apart_free(struct tun_apart *a)
{
    free(a);
    return NULL;
}

void tun_apart_forget(struct tun_apart *a)
{
    if (a) {
        a->count = 0;
    }
}

static struct core *core_of(struct tun_apart *a, const struct tun_core_seen *s)
{
    struct tun_detect_options o = TUN_DETECT_DEFAULTS;

    for (size_t i = 0; i < a->count; i++) {
        if (a->cores[i].ep == s->ep && a->cores[i].cpu == s->cpu) {
            return &a->cores[i];
        }
    }
    if (a->count == TUN_APART_CORES_MAX) {
        return NULL;
    }
    a->cores[a->count] = (struct core){.ep = s->ep, .cpu = s->cpu};
    tun_detect_init(&a->cores[a->count].detect, &o);
    return &a->cores[a->count++];
}

/* The lower quartile of what the EP's other cores showed of late. Return: one did. */
static bool quartile(const struct tun_apart *a, const struct core *of, double *ret)
{
    double levels[TUN_APART_CORES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < a->count; i++) {
        const struct core *c = &a->cores[i];

        if (c != of && c->ep == of->ep && c->seen > 0 && a->windows - c->seen < TUN_APART_STALE) {
            levels[count++] = c->level;
        }
    }
    if (count == 0) {
        return false;
    }
    qsort(levels, count, sizeof(levels[0]), base_by_size);
    *ret = levels[(count - 1) / 4];
    return true;
}

void tun_apart_see(struct tun_apart *a, const struct tun_core_seen *seen, size_t count,
                   uint64_t start_ns)
{
    a->windows++;
    for (size_t i = 0; i < count; i++) {
        struct core *c = isfinite(seen[i].level) ? core_of(a, &seen[i]) : NULL;

        if (c) {
            c->sum += seen[i].level;
            c->samples++;
            c->level = c->sum / c->samples;
            c->seen = a->windows;
        }
    }
    for (size_t i = 0; i < a->count; i++) {
        struct core *c = &a->cores[i];
        double least;

        if (c->samples > 0 && quartile(a, c, &least)) {
            c->least[c->detect.count % MOST_WINDOWS] = least;
            tun_detect_add(&c->detect, c->level - least, start_ns);
        }
        c->sum = 0;
        c->samples = 0;
    }
}

/* Return: enough was seen of the core of late. */
static bool known(const struct tun_apart *a, const struct core *c)
{
    return a->windows - c->seen < TUN_APART_STALE && c->detect.count >= TUN_APART_WINDOWS;
}

/* The factor that most of the last windows show. */
static double factor(const struct core *c, size_t windows)
{
    return exp(tun_detect_level(&c->detect, windows));
}

static bool apart(const struct tun_apart *a, const struct core *c, double *ret_factor)
{
    size_t windows = tun_detect_change(&c->detect, NULL);

    *ret_factor = factor(c, base_min(windows, LEVEL_WINDOWS));
    return known(a, c) && factor(c, MOST_WINDOWS) >= TUN_APART && *ret_factor >= TUN_APART &&
           tun_detect_state(&c->detect) == TUN_SLOWER && tun_detect_firm(&c->detect);
}

bool tun_apart_alike(const struct tun_apart *a, uint16_t cpu, size_t windows)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct core *c = &a->cores[i];

        if (c->cpu == cpu) {
            return known(a, c) && factor(c, windows) < TUN_APART_ALIKE;
        }
    }
    return false;
}

/* Only of a core of which enough was seen. */
static double siblings(const struct core *c)
{
    size_t count = base_min(c->detect.count, (size_t)MOST_WINDOWS);
    double least[MOST_WINDOWS];

    memcpy(least, c->least, sizeof(least));
    qsort(least, count, sizeof(least[0]), base_by_size);
    return exp(least[(count - 1) / 2]);
}

size_t tun_apart_slow(const struct tun_apart *a, struct tun_slow_core *ret)
{
    size_t count = 0;
    double times;

    for (size_t i = 0; i < a->count; i++) {
        const struct core *c = &a->cores[i];

        if (apart(a, c, &times)) {
            ret[count] =
                (struct tun_slow_core){.cpu = c->cpu, .factor = times, .least = siblings(c)};
            tun_detect_change(&c->detect, &ret[count++].since_ns);
        }
    }
    return count;
}

size_t tun_apart_suspects(const struct tun_apart *a, struct tun_slow_core *ret)
{
    size_t count = 0;

    for (size_t i = 0; i < a->count; i++) {
        const struct core *c = &a->cores[i];
        uint64_t since_ns = 0;
        size_t windows = tun_detect_change(&c->detect, &since_ns);
        double times = factor(c, base_min(windows, (size_t)3));

        if (tun_detect_state(&c->detect) == TUN_SLOWER && a->windows - c->seen < TUN_APART_STALE &&
            times >= TUN_APART) {
            ret[count++] =
                (struct tun_slow_core){.cpu = c->cpu, .factor = times, .since_ns = since_ns};
        }
    }
    return count;
}
