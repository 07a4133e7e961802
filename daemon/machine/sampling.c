/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the sensors on a timer and keeps the newest snapshot: every sensors.interval_ms (0:
 * never) the sampler of governor/sensors.h fills it. No sensor failure stops the daemon. */
#include "daemon/machine/machine.h"

#include <math.h>

#include "base/base.h"
#include "daemon/service/log.h"
#include "governor/sensors.h"
#include "governor/watts.h"

#define ENERGY_SECONDS 11u /* so that oldest and newest are ten whole seconds apart */

struct dmn_sensors {
    uv_timer_t timer;
    const struct dmn_machine *machine; /* borrowed */
    struct gov_sensors *sampler;
    int64_t interval_ms; /* 0: off */
    bool sampled;        /* since it was switched on */
    struct gov_snapshot now;
    /* a ring, one entry per second: energy and answers until then */
    struct {
        uint64_t at_ns, answered;
        double joules;
    } energy[ENERGY_SECONDS];
    size_t energy_count, energy_at;
    struct gov_watts watts; /* of the machine's EPs */
};

static size_t newest_energy(const struct dmn_sensors *s)
{
    return (s->energy_at + ENERGY_SECONDS - 1) % ENERGY_SECONDS;
}

/* Restarts the ring if a count fell (a model went, a source was lost). */
static void keep_energy(struct dmn_sensors *s, const struct gov_snapshot *now)
{
    const struct dmn_machine *m = s->machine;
    uint64_t answered = m->answered ? m->answered(m->answered_ctx) : 0;
    size_t last = newest_energy(s);

    if (s->energy_count > 0 && now->at_ns < s->energy[last].at_ns + BASE_NS_PER_S) {
        return;
    }
    if (!gov_known(now->joules) || (s->energy_count > 0 && answered < s->energy[last].answered)) {
        s->energy_count = 0;
    }
    if (gov_known(now->joules)) {
        s->energy[s->energy_at].at_ns = now->at_ns;
        s->energy[s->energy_at].answered = answered;
        s->energy[s->energy_at].joules = now->joules;
        s->energy_at = (s->energy_at + 1) % ENERGY_SECONDS;
        s->energy_count = base_min(s->energy_count + 1, (size_t)ENERGY_SECONDS);
    }
}

double dmn_sensors_joules_per_frame(const struct dmn_machine *m)
{
    const struct dmn_sensors *s = m->sensors;

    if (!s || s->energy_count < 2) {
        return NAN;
    }
    size_t last = newest_energy(s);
    size_t first = (s->energy_at + ENERGY_SECONDS - s->energy_count) % ENERGY_SECONDS;
    uint64_t frames = s->energy[last].answered - s->energy[first].answered;

    return frames ? (s->energy[last].joules - s->energy[first].joules) / (double)frames : NAN;
}

/* Learns what cores take, where joules are measured. */
static void learn_watts(struct dmn_sensors *s)
{
    const struct pl_ep_set *eps = &s->machine->eps;
    struct gov_machine_state state;
    struct gov_cores cores[PL_EP_MAX];

    if (!gov_known(s->now.joules)) {
        return;
    }
    for (size_t i = 0; i < eps->count; i++) {
        cores[i] = (struct gov_cores){eps->eps[i].name, eps->eps[i].cpus, eps->eps[i].cpu_count};
    }
    dmn_eps_state(eps, &s->now, s->machine->topology, NULL, &state);
    gov_watts_add(&s->watts, &s->now, state.id, cores, eps->count);
}

double dmn_sensors_watts(const struct dmn_machine *m, size_t ep)
{
    return m->sensors ? gov_watts_known(&m->sensors->watts, ep) : 0;
}

static void take_sample(struct dmn_sensors *s)
{
    gov_sensors_sample(s->sampler, base_now_ns(), &s->now);
    s->sampled = true;
    keep_energy(s, &s->now);
    learn_watts(s);
}

static void on_timer(uv_timer_t *timer)
{
    take_sample(timer->data);
}

void dmn_sensors_configure(struct dmn_machine *m)
{
    struct dmn_sensors *s = m->sensors;
    int64_t interval = dmn_config_int(dmn_machine_config(m), DMN_KEY_SENSORS_INTERVAL_MS);

    if (!s || s->interval_ms == interval) {
        return;
    }
    s->interval_ms = interval;
    if (interval > 0) {
        take_sample(s);
        uv_timer_start(&s->timer, on_timer, (uint64_t)interval, (uint64_t)interval);
    } else {
        uv_timer_stop(&s->timer);
        s->sampled = false;
        s->energy_count = 0;
    }
}

void dmn_sensors_start(struct dmn_machine *m)
{
    struct dmn_sensors *s = calloc(1, sizeof(*s));

    if (!s || gov_sensors_new(m->sysfs_root, &s->sampler) < 0) {
        dmn_log(LOG_ERR, "out of memory: sensors will not be read");
        free(s);
        return;
    }
    s->machine = m;
    uv_timer_init(m->loop, &s->timer);
    s->timer.data = s;
    m->sensors = s;
    dmn_sensors_configure(m);
}

void dmn_sensors_stop(struct dmn_machine *m)
{
    struct dmn_sensors *s = base_take(m->sensors);

    if (s) {
        s->sampler = gov_sensors_free(s->sampler);
        uv_close((uv_handle_t *)&s->timer, dmn_handle_free);
    }
}

const struct gov_snapshot *dmn_sensors_now(const struct dmn_machine *m)
{
    return m->sensors && m->sensors->sampled ? &m->sensors->now : NULL;
}
