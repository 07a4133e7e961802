/* SPDX-License-Identifier: Apache-2.0 */
/* What may happen to a described machine while it serves. */
#include "tuner/pipesim/adapting.h"

#include "base/base.h"

const struct psim_scenario psim_scenarios[] = {
    {"noise", "nothing but noise and spikes", 3600},
    {"slow-8", "an EP works 8 % slower, and recovers", 240, 60, 150, TUN_CAUSE_THROUGHPUT,
     .then.slowed = {1.08}},
    {"slow-15", "an EP works 15 % slower, and recovers", 240, 60, 150, TUN_CAUSE_THROUGHPUT,
     .then.slowed = {1.15}},
    {"slow-30", "an EP works 30 % slower, and recovers", 240, 60, 150, TUN_CAUSE_THROUGHPUT,
     .then.slowed = {1.3}},
    {"contention", "another program takes half of an EP, and ends", 240, 60, 150,
     TUN_CAUSE_CONTENTION, .then.contended = {2}},
    {"quota", "a quota leaves a fifth of an EP, and is lifted", 240, 60, 150, TUN_CAUSE_CONTENTION,
     .then.quota = {1 / 5.0}},
    {"drift", "an EP gets 30 % slower in half an hour", 2400, 300, 2100, TUN_CAUSE_THROUGHPUT,
     .then.slowed = {1.3}, .how = PSIM_DRIFTS},
    {"square", "half of an EP comes and goes every 5 s, the cool-down, for an hour", 3600, 60, 3600,
     TUN_CAUSE_CONTENTION, .then.contended = {2}, .how = PSIM_COMES_AND_GOES},
    {"frequency", "a limit halves an EP's frequency, and goes", 240, 60, 150, TUN_CAUSE_FREQUENCY,
     .then = {.clock = {0.5}, .limited = {true}}},
    {"governor", "a governor takes an EP to a third, and back", 240, 60, 150, TUN_CAUSE_GOVERNOR,
     .then = {.clock = {1.0 / 3}, .powersave = {true}}},
    {"thermal", "heat takes an EP to 60 %, and back", 240, 60, 150, TUN_CAUSE_THERMAL,
     .then = {.clock = {0.6}, .limited = {true}, .thermal = {true}}},
    {"hotplug", "two cores of an EP go, and come back", 240, 60, 150, TUN_CAUSE_HOTPLUG,
     .then.cores_less = {2}},
    {"cpuset", "two cores of an EP are taken away, and given back", 240, 60, 150, TUN_CAUSE_CPUSET,
     .then.cores_less = {2}, .begins = TUN_EVENT_CPUSET, .ends = TUN_EVENT_CPUSET},
    /* an on-demand governor clocks down what has little to do, and frames take longer */
    {"load", "clients send a third of what could be served; clocks go down", 240, 60, 150,
     .then = {.load = 0.3, .clock = {0.5, 0.5}}},
    {"shape", "frames get 40 % heavier everywhere", 240, 60, 150, .then.slowed = {1.4, 1.4},
     .begins = TUN_EVENT_INPUT, .ends = TUN_EVENT_INPUT},
    {"clock", "the clock goes back an hour, then forward a day", 240, 60, 150,
     .then.clock_skew_ns = -(int64_t)(3600 * BASE_NS_PER_S),
     .skew_after_ns = (int64_t)(86400 * BASE_NS_PER_S)},
    {"button", "somebody presses the button; nothing has changed", 240, 60, 61,
     .begins = TUN_EVENT_BUTTON},
    {0},
};

/* How much of it there is: 0..1. */
static double share_at(const struct psim_scenario *s, double t)
{
    bool within = t >= s->onset_s && t < s->end_s;

    switch (s->how) {
    case PSIM_DRIFTS:
        return base_max(0.0, base_min(1.0, (t - s->onset_s) / (s->end_s - s->onset_s)));
    case PSIM_COMES_AND_GOES:
        return within && (uint64_t)((t - s->onset_s) / 5) % 2 == 0;
    default:
        return within;
    }
}

static bool is_at(double t, double moment)
{
    return fabs(t - moment) < PSIM_WINDOW_S / 2;
}

void psim_scenario_world(const struct psim_scenario *s, double t, struct psim_world *ret)
{
    double share = share_at(s, t);

    *ret = share > 0 ? s->then : (struct psim_world){0};
    ret->load = ret->load > 0 ? ret->load : 1;
    for (size_t k = 0; k < PL_EP_MAX; k++) {
        double *factors[] = {&ret->contended[k], &ret->slowed[k], &ret->quota[k], &ret->clock[k]};

        for (size_t f = 0; f < base_array_count(factors); f++) {
            double then = *factors[f] > 0 ? *factors[f] : 1;

            *factors[f] = share < 1 ? 1 + (then - 1) * share : then;
        }
    }
    ret->events = (is_at(t, s->onset_s) ? s->begins : 0) | (is_at(t, s->end_s) ? s->ends : 0);
    ret->clock_skew_ns = t >= s->end_s ? s->skew_after_ns : ret->clock_skew_ns;
}

const struct psim_scenario *psim_scenario_find(const char *name)
{
    for (const struct psim_scenario *s = psim_scenarios; s->name; s++) {
        if (strcmp(s->name, name) == 0) {
            return s;
        }
    }
    return NULL;
}
