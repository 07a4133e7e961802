/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/boards_json.h - boards and routes for status and metrics
 *
 * Every json_t returned is a new reference. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

struct dmn_boards;
struct dmn_border_kept;
struct dmn_control;
struct dmn_model;

/** dmn_route_json() - of @m, as Status shows it; null if it is not spread over boards. */
json_t *dmn_route_json(const struct dmn_boards *b, const struct dmn_model *m);
/** dmn_border_json() - @k: NULL: null. */
json_t *dmn_border_json(const struct dmn_border_kept *k);
/** dmn_boards_json() - the boards that piped-link reports; an empty list without it. */
json_t *dmn_boards_json(const struct dmn_boards *b);
/** dmn_boards_metrics() - writes their metrics. */
void dmn_boards_metrics(FILE *to, const struct dmn_control *control);
