/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/history.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base.h"

int dmn_history_init(struct dmn_history *h, size_t size)
{
    *h = (struct dmn_history){.size = size, .next_id = 1};
    h->events = calloc(size, sizeof(*h->events));
    return h->events ? 0 : -ENOMEM;
}

void dmn_history_deinit(struct dmn_history *h)
{
    for (size_t i = 0; h->events && i < h->size; i++) {
        json_decref(h->events[i]);
    }
    free(h->events);
    *h = (struct dmn_history){0};
}

static json_t *number_or_null(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

void dmn_history_now(char ret[DMN_DATE_MAX])
{
    char date[32];
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret, DMN_DATE_MAX, "%s.%03ldZ", date, now.tv_nsec / 1000000);
}

json_t *dmn_history_add(struct dmn_history *h, const struct dmn_history_event *e)
{
    char at[DMN_DATE_MAX];
    json_t *event;

    dmn_history_now(at);
    event = json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:f, s:f, s:I, s:s}",
                      "id", (json_int_t)h->next_id, "at", at, "model", e->model, "cause", e->cause,
                      "detail", e->detail ? e->detail : "", "algorithm", e->algorithm, "trials",
                      e->trials ? e->trials : json_array(), "plan_before",
                      text_or_null(e->plan_before), "plan_after", e->plan_after, "fps_before",
                      number_or_null(e->fps_before), "fps_after", number_or_null(e->fps_after),
                      "predicted_gain", e->predicted_gain, "duration_ms", e->duration_ms, "lost",
                      (json_int_t)e->lost, "outcome", e->outcome);
    if (!event) {
        return NULL;
    }
    h->next_id++;
    json_decref(h->events[h->at]);
    h->events[h->at] = event;
    h->at = (h->at + 1) % h->size;
    h->count = base_min(h->count + 1, h->size);
    return event;
}

json_t *dmn_history_json(const struct dmn_history *h, const char *model, size_t limit)
{
    json_t *list = json_array();

    for (size_t i = 0; i < h->count && json_array_size(list) < limit; i++) {
        json_t *event = h->events[(h->at + 2 * h->size - 1 - i) % h->size];

        if (!model || strcmp(json_string_value(json_object_get(event, "model")), model) == 0) {
            json_array_insert(list, 0, event);
        }
    }
    return list;
}
