/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/show/fold_segments.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STEM 20u /* of a model's name, which the name of a segment has at least */

static const char *name_of(const json_t *model)
{
    const char *name = json_string_value(json_object_get(model, "name"));

    return name ? name : "";
}

/* A segment is called as the route's content: MODEL-IDENTITY#FIRST-LAST, with a long name cut. */
static bool is_segment_of(const json_t *segment, const json_t *m)
{
    const char *name = name_of(m), *its = name_of(segment);
    size_t same = 0;

    while (name[same] && name[same] == its[same]) {
        same++;
    }
    return m != segment && strrchr(its, '#') && its[same] == '-' && (!name[same] || same >= STEM);
}

json_t *shw_segment_of(const json_t *m, const json_t *models)
{
    json_t *of;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)models, i, of)
    {
        if (json_is_object(json_object_get(m, "segment")) && is_segment_of(m, of)) {
            return of;
        }
    }
    return NULL;
}

void shw_fold_segments(json_t *models)
{
    for (size_t i = json_array_size(models); i-- > 0;) {
        json_t *segment = json_array_get(models, i);
        json_t *route = json_object_get(shw_segment_of(segment, models), "route");
        json_t *list = json_object_get(route, "segments");

        if (!json_is_object(route)) {
            continue;
        }
        if (!list) {
            list = json_array();
            json_object_set_new(route, "segments", list);
        }
        json_array_insert(list, 0, segment);
        json_array_remove(models, i);
    }
}
