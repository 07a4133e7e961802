/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "apps/pipectl/report/page.h"

double report_number(const json_t *object, const char *path)
{
    const json_t *v = page_at(object, path);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Has a series anything to draw? */
static bool has_something(const json_t *series)
{
    const json_t *v;
    size_t i;

    json_array_foreach(json_object_get(series, "values"), i, v)
    {
        if (json_is_number(v)) {
            return true;
        }
    }
    return json_array_size(json_object_get(series, "points")) > 0;
}

void report_draw(const struct report *r, json_t *chart)
{
    const json_t *s;
    bool some = false;
    size_t i;

    json_array_foreach(json_object_get(chart, "series"), i, s)
    {
        some = some || has_something(s);
    }
    if (some) {
        page_chart(r->to, chart);
    } else {
        json_decref(chart);
    }
}
