/* SPDX-License-Identifier: Apache-2.0 */
/* What may happen to a described machine while it serves. */
#include "tuner/pipesim/adapting.h"

#include "base/base.h"

static bool within(double t, const struct psim_scenario *s)
{
    return t >= s->onset_s && t < s->end_s;
}

static void nothing(double t, const struct psim_scenario *s, struct psim_world *w)
{
}

static void contention(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->contended[0] = within(t, s) ? s->amount : 1;
}

static void quota(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->quota[0] = within(t, s) ? 1 / s->amount : 1;
}

static void slowdown(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->slowed[0] = within(t, s) ? s->amount : 1;
}

static void drift(double t, const struct psim_scenario *s, struct psim_world *w)
{
    double way = base_max(0.0, base_min(1.0, (t - s->onset_s) / (s->end_s - s->onset_s)));

    w->slowed[0] = 1 + (s->amount - 1) * way;
}

static void square(double t, const struct psim_scenario *s, struct psim_world *w)
{
    bool high = within(t, s) && (uint64_t)((t - s->onset_s) / 5) % 2 == 0;

    w->contended[0] = high ? s->amount : 1;
}

static void limit(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->clock[0] = within(t, s) ? s->amount : 1;
    w->limited[0] = within(t, s);
}

static void governor(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->clock[0] = within(t, s) ? s->amount : 1;
    w->powersave[0] = within(t, s);
}

static void thermal(double t, const struct psim_scenario *s, struct psim_world *w)
{
    limit(t, s, w);
    w->thermal[0] = within(t, s);
}

static void hotplug(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->cores_less[0] = within(t, s) ? (uint16_t)s->amount : 0;
}

static void cpuset(double t, const struct psim_scenario *s, struct psim_world *w)
{
    hotplug(t, s, w);
    w->events = fabs(t - s->onset_s) < PSIM_WINDOW_S / 2 || fabs(t - s->end_s) < PSIM_WINDOW_S / 2
                    ? TUN_EVENT_CPUSET
                    : 0;
}

/* An on-demand governor clocks down what has little to do, and frames take longer. */
static void load(double t, const struct psim_scenario *s, struct psim_world *w)
{
    if (within(t, s)) {
        w->load = s->amount;
        w->clock[0] = w->clock[1] = 0.5;
    }
}

static void shape(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->slowed[0] = w->slowed[1] = within(t, s) ? s->amount : 1;
    w->events = fabs(t - s->onset_s) < PSIM_WINDOW_S / 2 || fabs(t - s->end_s) < PSIM_WINDOW_S / 2
                    ? TUN_EVENT_INPUT
                    : 0;
}

static void skew(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->clock_skew_ns = within(t, s)    ? -(int64_t)(3600 * BASE_NS_PER_S)
                       : t >= s->end_s ? (int64_t)(86400 * BASE_NS_PER_S)
                                       : 0;
}

static void button(double t, const struct psim_scenario *s, struct psim_world *w)
{
    w->events = fabs(t - s->onset_s) < PSIM_WINDOW_S / 2 ? TUN_EVENT_BUTTON : 0;
}

const struct psim_scenario psim_scenarios[] = {
    {"noise", "nothing but noise and spikes", 3600, 0, 0, TUN_CAUSE_NONE, nothing, 0},
    {"slow-8", "an EP works 8 % slower, and recovers", 240, 60, 150, TUN_CAUSE_THROUGHPUT, slowdown,
     1.08},
    {"slow-15", "an EP works 15 % slower, and recovers", 240, 60, 150, TUN_CAUSE_THROUGHPUT,
     slowdown, 1.15},
    {"slow-30", "an EP works 30 % slower, and recovers", 240, 60, 150, TUN_CAUSE_THROUGHPUT,
     slowdown, 1.3},
    {"contention", "another program takes half of an EP, and ends", 240, 60, 150,
     TUN_CAUSE_CONTENTION, contention, 2},
    {"quota", "a quota leaves a fifth of an EP, and is lifted", 240, 60, 150, TUN_CAUSE_CONTENTION,
     quota, 5},
    {"drift", "an EP gets 30 % slower in half an hour", 2400, 300, 2100, TUN_CAUSE_THROUGHPUT,
     drift, 1.3},
    {"square", "half of an EP comes and goes every 5 s, the cool-down, for an hour", 3600, 60, 3600,
     TUN_CAUSE_CONTENTION, square, 2},
    {"frequency", "a limit halves an EP's frequency, and goes", 240, 60, 150, TUN_CAUSE_FREQUENCY,
     limit, 0.5},
    {"governor", "a governor takes an EP to a third, and back", 240, 60, 150, TUN_CAUSE_GOVERNOR,
     governor, 1.0 / 3},
    {"thermal", "heat takes an EP to 60 %, and back", 240, 60, 150, TUN_CAUSE_THERMAL, thermal,
     0.6},
    {"hotplug", "two cores of an EP go, and come back", 240, 60, 150, TUN_CAUSE_HOTPLUG, hotplug,
     2},
    {"cpuset", "two cores of an EP are taken away, and given back", 240, 60, 150, TUN_CAUSE_CPUSET,
     cpuset, 2},
    {"load", "clients send a third of what could be served; clocks go down", 240, 60, 150,
     TUN_CAUSE_NONE, load, 0.3},
    {"shape", "frames get 40 % heavier everywhere", 240, 60, 150, TUN_CAUSE_NONE, shape, 1.4},
    {"clock", "the clock goes back an hour, then forward a day", 240, 60, 150, TUN_CAUSE_NONE, skew,
     0},
    {"button", "somebody presses the button; nothing has changed", 240, 60, 61, TUN_CAUSE_NONE,
     button, 0},
    {NULL, NULL, 0, 0, 0, TUN_CAUSE_NONE, NULL, 0},
};

const struct psim_scenario *psim_scenario_find(const char *name)
{
    for (const struct psim_scenario *s = psim_scenarios; s->name; s++) {
        if (strcmp(s->name, name) == 0) {
            return s;
        }
    }
    return NULL;
}
