/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/sampling.h - samples the sensors on a timer and keeps the newest snapshot
 *
 * Every sensors.interval_ms (0: never) the sampler of governor/sensors.h fills a snapshot; others
 * read it with dmn_sensors_now(). No sensor failure stops the daemon. Threads: the loop thread.
 */
#pragma once

#include "governor/snapshot.h"

struct dmn_machine;
struct dmn_sensors;

/** dmn_sensors_start() - takes the first sample and starts the timer. m->sensors stays NULL if out
 * of memory (logged). */
void dmn_sensors_start(struct dmn_machine *m);
/** dmn_sensors_stop() - closes files and timer; the loop must run once more. */
void dmn_sensors_stop(struct dmn_machine *m);
/** dmn_sensors_configure() - applies sensors.interval_ms of the configuration in force. */
void dmn_sensors_configure(struct dmn_machine *m);
/** dmn_sensors_now() - Return: the newest snapshot, borrowed until the loop's next turn; NULL: none
 * yet, or sampling is off. */
const struct gov_snapshot *dmn_sensors_now(const struct dmn_machine *m);
/** dmn_sensors_joules_per_frame() - Return: energy of the whole machine per answered frame, over
 * the last ten seconds; NAN: unknown, or no frame was answered. */
double dmn_sensors_joules_per_frame(const struct dmn_machine *m);
