/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/history.h - what changed a plan, newest last: a ring of JSON events
 * Keys as `pipectl history` prints them. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct dmn_history {
    json_t **events; /* owned ring */
    size_t size, count, at;
    uint64_t next_id;
};

/* What an event says; strings are borrowed. */
struct dmn_history_event {
    const char *model, *cause, *detail, *algorithm, *plan_before, *plan_after, *outcome;
    json_t *trials;                                            /* stolen, NULL: none */
    double fps_before, fps_after, predicted_gain, duration_ms; /* negative fps: not measured */
    uint64_t lost;
};

/** dmn_history_init() - Return: 0 or -ENOMEM. */
int dmn_history_init(struct dmn_history *h, size_t size);
void dmn_history_deinit(struct dmn_history *h);
#define DMN_DATE_MAX 64u
/** dmn_history_now() - date and time as events have it, to the millisecond, UTC. Any thread. */
void dmn_history_now(char ret[DMN_DATE_MAX]);
/** dmn_history_add() - Return: the event, borrowed until it is pushed out; NULL without memory. */
json_t *dmn_history_add(struct dmn_history *h, const struct dmn_history_event *e);
/** dmn_history_json() - at most @limit of @model (NULL: all), newest last; new reference. */
json_t *dmn_history_json(const struct dmn_history *h, const char *model, size_t limit);
