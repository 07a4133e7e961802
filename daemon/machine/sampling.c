/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sensors.h"

#include <math.h>
#include <stdlib.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/sensors_private.h"

static uint64_t frames_answered(const struct dmn_daemon *d)
{
    uint64_t answered = 0;

    for (const struct dmn_model *m = d->models; m; m = m->next) {
        answered += m->stats.answered;
    }
    return answered;
}

static size_t newest_energy(const struct dmn_sensors *s)
{
    return (s->energy_at + DMN_ENERGY_SECONDS - 1) % DMN_ENERGY_SECONDS;
}

/* A count that fell (a model went, a source was lost) starts the ring anew. */
static void keep_energy(struct dmn_sensors *s, const struct gov_snapshot *now)
{
    uint64_t answered = frames_answered(s->daemon);
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
        s->energy_at = (s->energy_at + 1) % DMN_ENERGY_SECONDS;
        s->energy_count = base_min(s->energy_count + 1, (size_t)DMN_ENERGY_SECONDS);
    }
}

double dmn_sensors_joules_per_frame(const struct dmn_sensors *s)
{
    if (s->energy_count < 2) {
        return NAN;
    }
    size_t last = newest_energy(s);
    size_t first = (s->energy_at + DMN_ENERGY_SECONDS - s->energy_count) % DMN_ENERGY_SECONDS;
    uint64_t frames = s->energy[last].answered - s->energy[first].answered;

    return frames ? (s->energy[last].joules - s->energy[first].joules) / (double)frames : NAN;
}

static void take_sample(struct dmn_sensors *s)
{
    size_t before = s->newest;
    bool compare = s->sampled;

    s->newest = 1 - s->newest;
    gov_sensors_sample(s->sampler, base_now_ns(), &s->snapshots[s->newest]);
    s->sampled = true;
    keep_energy(s, &s->snapshots[s->newest]);
    if (compare && s->listener) {
        s->listener(s->daemon, &s->snapshots[before], &s->snapshots[s->newest]);
    }
}

static void on_timer(uv_timer_t *timer)
{
    take_sample(timer->data);
}

void dmn_sensors_configure(struct dmn_daemon *d)
{
    struct dmn_sensors *s = d->sensors;
    int64_t interval = dmn_config_int(d->config, DMN_KEY_SENSORS_INTERVAL_MS);

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

void dmn_sensors_start(struct dmn_daemon *d)
{
    struct dmn_sensors *s = calloc(1, sizeof(*s));

    if (!s || gov_sensors_new(d->sysfs_root, &s->sampler) < 0) {
        dmn_log(LOG_ERR, "out of memory: the machine's sensors are not read");
        free(s);
        return;
    }
    s->daemon = d;
    uv_timer_init(&d->loop, &s->timer);
    s->timer.data = s;
    d->sensors = s;
    dmn_sensors_configure(d);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void dmn_sensors_stop(struct dmn_daemon *d)
{
    struct dmn_sensors *s = base_take(d->sensors);

    if (s) {
        s->sampler = gov_sensors_free(s->sampler);
        uv_close((uv_handle_t *)&s->timer, on_closed);
    }
}

void dmn_sensors_on_sample(struct dmn_daemon *d, dmn_sensors_fn fn)
{
    if (d->sensors) {
        d->sensors->listener = fn;
    }
}

const struct gov_snapshot *dmn_sensors_now(const struct dmn_daemon *d)
{
    return d->sensors && d->sensors->sampled ? &d->sensors->snapshots[d->sensors->newest] : NULL;
}
