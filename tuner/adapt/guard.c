/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps changes apart. */
#include "tuner/adapt/guard.h"
#include "base/base.h"

#define HOUR_NS (3600.0 * (double)BASE_NS_PER_S)
#define PATTERN 2u /* back-offs: one may be a single plan that had to be taken back */

uint64_t tun_guard_cooldown_ns(const struct tun_guard *g, const struct tun_adapt_options *o)
{
    return o->cooldown_ns << g->backoff;
}

uint64_t tun_guard_hold_ns(const struct tun_guard *g, const struct tun_adapt_options *o)
{
    return g->backoff >= PATTERN ? tun_guard_cooldown_ns(g, o) : 0;
}

double tun_guard_urgent(const struct tun_guard *g, const struct tun_adapt_options *o)
{
    return g->backoff < PATTERN ? o->gain_urgent : 0;
}

bool tun_guard_calm(const struct tun_guard *g, const struct tun_adapt_options *o)
{
    return !g->changed || (g->clock_ns - g->changed_ns) / TUN_CALM > tun_guard_cooldown_ns(g, o);
}

double tun_guard_left_s(const struct tun_guard *g, const struct tun_adapt_options *o)
{
    uint64_t whole = tun_guard_cooldown_ns(g, o), passed = g->clock_ns - g->changed_ns;

    return !g->changed || passed >= whole ? 0 : (double)(whole - passed) / (double)BASE_NS_PER_S;
}

bool tun_guard_time(struct tun_guard *g, const struct tun_adapt_options *o, uint64_t now_ns)
{
    bool back = now_ns < g->clock_ns;

    if (back) { /* a cool-down that had begun goes on from here */
        uint64_t passed = g->clock_ns - g->changed_ns;

        g->changed_ns = now_ns > passed ? now_ns - passed : 0;
        g->filled_ns = now_ns;
    }
    g->clock_ns = now_ns;
    g->bucket =
        base_min(o->hourly, g->bucket + o->hourly * (double)(now_ns - g->filled_ns) / HOUR_NS);
    g->filled_ns = now_ns;
    return back;
}

/* A-B-A-B: the two last plans in turn, as before. */
static bool oscillates(const struct tun_guard *g, const struct pl_plan *plan)
{
    return g->past_count >= 3 && pl_plan_equal(&g->past[1], plan) &&
           pl_plan_equal(&g->past[0], &g->past[2]);
}

void tun_guard_rest(struct tun_guard *g)
{
    g->changed = true;
    g->changed_ns = g->clock_ns;
}

void tun_guard_lost(struct tun_guard *g)
{
    g->backoff = base_max(g->backoff, 1u);
    tun_guard_rest(g);
}

void tun_guard_change(struct tun_guard *g, const struct tun_adapt_options *o,
                      const struct pl_plan *before, const struct pl_plan *plan, enum tun_why why)
{
    bool calm = tun_guard_calm(g, o);

    if (g->past_count == 0 || !pl_plan_equal(&g->past[0], before)) {
        g->past[0] = *before;
        g->past_count = 1;
    }
    if (why != TUN_WHY_PROBE) {
        g->hasty = calm ? 0 : g->hasty + 1;
        if (why == TUN_WHY_FAILED ||
            (!calm && (oscillates(g, plan) || (why == TUN_WHY_FELT && g->hasty > 1)))) {
            g->backoff = base_min(g->backoff + 1, o->backoff_most);
        } else if (calm && g->backoff > 0) {
            g->backoff--;
        }
    }
    for (size_t i = TUN_PAST - 1; i > 0; i--) {
        g->past[i] = g->past[i - 1];
    }
    g->past[0] = *plan;
    g->past_count = base_min(g->past_count + 1, (size_t)TUN_PAST);
    tun_guard_rest(g);
    g->bucket = base_max(0.0, g->bucket - 1);
}
