/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/sensors_private.h - what sensors.c keeps and sensors_json.c shows
 */
#pragma once

#include <uv.h>

#include "daemon/sensors.h"
#include "governor/sensors.h"

#define DMN_ENERGY_SECONDS 11u /* so that ten whole ones are between the oldest and the newest */

struct dmn_sensors {
    uv_timer_t timer;
    struct dmn_daemon *daemon; /* borrowed */
    struct gov_sensors *sampler;
    int64_t interval_ms; /* 0: switched off */
    size_t newest;       /* of snapshots */
    bool sampled;        /* since it was switched on */
    struct gov_snapshot snapshots[2];
    dmn_sensors_fn listener;
    /* once a second, a ring: what was used and answered until then */
    struct {
        uint64_t at_ns, answered;
        double joules;
    } energy[DMN_ENERGY_SECONDS];
    size_t energy_count, energy_at;
};

/** dmn_sensors_joules_per_frame() - over the last ten seconds, everything that the machine used
 * counted; NAN: unknown, or no frame was answered. */
double dmn_sensors_joules_per_frame(const struct dmn_sensors *s);
