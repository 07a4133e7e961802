/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/sensors_json.h - the machine's sensors and GPIO lines, as JSON and as metrics
 *
 * An unknown value is null and has no metric. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

struct dmn_machine;

/** dmn_sensors_json() - "sensors" of Status, with gpio. Return: new reference. */
json_t *dmn_sensors_json(const struct dmn_machine *m);
void dmn_sensors_metrics(FILE *to, const struct dmn_machine *m);
