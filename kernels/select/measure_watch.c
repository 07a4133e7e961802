/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/select/measure_watch.h"

#include <math.h>

#include "base/base.h"
#include "kernels/select/figure.h"

/* An interrupt is below this, a switch to another thread and back above. */
#define OFF_NS 5000
#define OFF_SHARE 0.01
#define MOVED 0.05 /* a share of the reference's usual time */
#define REFERENCE_LOOPS 4000u
#define CHAINS 8u /* enough to use the core's units, which a thread beside it would take */

static uint64_t wall(void *arg)
{
    return base_now_ns();
}

uint64_t krn_watch_thread_ns(void *arg)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t none(void *arg)
{
    return 0;
}

static uint64_t reference(void *arg)
{
    uint32_t chain[CHAINS] = {1, 2, 3, 4, 5, 6, 7, 8};
    double laps[3];

    for (size_t lap = 0; lap < base_array_count(laps); lap++) {
        uint64_t start = base_now_ns();

        for (size_t i = 0; i < REFERENCE_LOOPS; i++) {
            for (size_t c = 0; c < CHAINS; c++) {
                chain[c] = chain[c] * 1664525u + 1013904223u;
            }
            __asm__ volatile("" : : "r"(chain) : "memory"); /* keeps every turn */
        }
        laps[lap] = (double)(base_now_ns() - start);
    }
    return (uint64_t)krn_figure_median(laps, base_array_count(laps));
}

void krn_watch_init(struct krn_watch *w, const struct krn_watch_clocks *clocks)
{
    struct krn_watch_clocks *c = &w->clocks;

    *w = (struct krn_watch){0};
    *c = clocks ? *clocks : (struct krn_watch_clocks){0};
    c->wall_ns = c->wall_ns ? c->wall_ns : wall;
    c->thread_ns = c->thread_ns ? c->thread_ns : krn_watch_thread_ns;
    c->reference_ns = c->reference_ns ? c->reference_ns : reference;
    c->stolen_ns = c->stolen_ns ? c->stolen_ns : none;
}

/* Is this reference as most are? */
static bool take_reference(struct krn_watch *w)
{
    double now = (double)w->clocks.reference_ns(w->clocks.arg), usual;

    w->references[w->reference_count++ % KRN_WATCH_REFERENCES] = now;
    usual = krn_figure_median(w->references,
                              base_min(w->reference_count, (size_t)KRN_WATCH_REFERENCES));
    return fabs(now - usual) <= MOVED * usual;
}

static void read_clocks(struct krn_watch *w)
{
    w->wall_ns = w->clocks.wall_ns(w->clocks.arg);
    w->thread_ns = w->clocks.thread_ns(w->clocks.arg);
}

void krn_watch_begin(struct krn_watch *w)
{
    w->steady = take_reference(w);
    w->stolen_ns = w->clocks.stolen_ns(w->clocks.arg);
    read_clocks(w);
    w->start_ns = w->wall_ns;
}

bool krn_watch_kept(struct krn_watch *w)
{
    struct krn_watch before = *w;
    double took, ran;

    read_clocks(w);
    took = (double)(w->wall_ns - before.wall_ns);
    ran = (double)(w->thread_ns - before.thread_ns);
    return took - ran <= OFF_NS + OFF_SHARE * took;
}

bool krn_watch_end(struct krn_watch *w)
{
    uint64_t stolen_ns = w->stolen_ns;
    bool steady = w->steady;

    krn_watch_begin(w);
    return steady && w->steady && w->stolen_ns == stolen_ns;
}
