/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/show/fold_segments.h"

#define STEM 20u /* of a model's name, which the name of a segment has at least */
#define HERE "here"

bool shw_is_segment(const json_t *m)
{
    return *json_text_of(json_object_get(m, "segment"), "board") != '\0';
}

/* Return: the route that this board computes it for; borrowed; NULL: it is for another board. */
static json_t *route_of(const json_t *segment, const json_t *models)
{
    const char *of = json_text_of(json_object_get(segment, "segment"), "of");
    const char *board = json_text_of(json_object_get(segment, "segment"), "board");

    json_text_each(models, i, m) {
        const char *name = json_text_of(m, "name");
        bool same = strcmp(name, of) == 0 ||
                    (strlen(of) >= STEM && strncmp(name, of, strlen(of)) == 0); /* cut */

        if (same && strcmp(board, HERE) == 0 && json_is_object(json_object_get(m, "route"))) {
            return json_object_get(m, "route");
        }
    }
    return NULL;
}

void shw_fold_segments(json_t *owner)
{
    json_t *models = json_object_get(owner, "models");

    for (size_t i = json_array_size(models); i-- > 0;) {
        json_t *segment = json_array_get(models, i), *to, *list;

        if (!shw_is_segment(segment)) {
            continue;
        }
        to = route_of(segment, models);
        to = to ? to : owner;
        list = json_object_get(to, "segments");
        if (!list) {
            list = json_array();
            json_object_set_new(to, "segments", list);
        }
        json_array_insert(list, 0, segment);
        json_array_remove(models, i);
    }
}

void shw_segment_text(const json_t *m, char ret[SHW_SEGMENT_BYTES])
{
    const json_t *s = json_object_get(m, "segment");
    bool here = strcmp(json_text_of(s, "board"), HERE) == 0;

    snprintf(ret, SHW_SEGMENT_BYTES, "%s, units %lld-%lld for %s%s", json_text_of(s, "of"),
             (long long)json_integer_value(json_object_get(s, "first_unit")),
             (long long)json_integer_value(json_object_get(s, "last_unit")),
             here ? "this board" : "board ", here ? "" : json_text_of(s, "board"));
}
