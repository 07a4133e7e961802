/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/sensors.h - a timer that samples what the machine is doing, and keeps the two newest
 *
 * Every sensors.interval_ms (0: never) the sampler of governor/sensors.h fills a snapshot; who
 * listens is told with the one before. Nothing that a sensor does or lacks stops the daemon.
 * Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "governor/snapshot.h"

struct dmn_daemon;
struct dmn_sensors;

/** dmn_sensors_fn - a new sample. @before is never NULL: the first sample is not told. Both are
 * borrowed until the return. */
typedef void (*dmn_sensors_fn)(struct dmn_daemon *d, const struct gov_snapshot *before,
                               const struct gov_snapshot *now);

/** dmn_sensors_start() - the first sample, then by the timer; d->sensors stays NULL if there is no
 * memory (logged). */
void dmn_sensors_start(struct dmn_daemon *d);
/** dmn_sensors_stop() - closes files and timer; the loop has to run once more. */
void dmn_sensors_stop(struct dmn_daemon *d);
/** dmn_sensors_configure() - takes sensors.interval_ms from d->config. */
void dmn_sensors_configure(struct dmn_daemon *d);
/** dmn_sensors_on_sample() - @fn is called after every sample but the first; one listener, NULL:
 * none. To be called after dmn_sensors_start(). */
void dmn_sensors_on_sample(struct dmn_daemon *d, dmn_sensors_fn fn);
/** dmn_sensors_now() - the newest snapshot, NULL: none, or they are switched off. Borrowed until
 * the loop's next turn. */
const struct gov_snapshot *dmn_sensors_now(const struct dmn_daemon *d);

/** dmn_sensors_json() - status' "sensors", gpio included. New reference. */
json_t *dmn_sensors_json(const struct dmn_daemon *d);
/** dmn_sensors_metrics() - what is known, as metrics; what is unknown has none. */
void dmn_sensors_metrics(FILE *to, const struct dmn_daemon *d);
