/* SPDX-License-Identifier: Apache-2.0 */
/* Curves over the time that was watched. */
#include <math.h>

#include "apps/pipectl/report/page.h"

json_t *report_time_chart(const struct report *r, const char *id, const char *title,
                          const char *label)
{
    return page_new(id, title, "lines",
                    page_axis("seconds watched", false, 0, ctl_value(r->data, "seconds")),
                    page_axis(label, false, 0, NAN));
}

static double value_at(const struct report *r, size_t k, const struct report_value *v)
{
    const json_t *in = json_array_get(r->series, k);

    in = v->list ? json_object_get(in, v->list) : in;
    in = v->name ? json_object_get(in, v->name) : json_is_array(in) ? json_array_get(in, v->i) : in;
    return v->scale * ctl_value(in, v->key);
}

static double seconds_at(const struct report *r, size_t k)
{
    return ctl_value(json_array_get(r->series, k), "s");
}

json_t *report_curve(const struct report *r, const struct report_value *v)
{
    json_t *points = json_array();

    for (size_t k = 0; k < json_array_size(r->series); k++) {
        page_point(points, seconds_at(r, k) - seconds_at(r, 0), value_at(r, k, v), NULL);
    }
    return points;
}

json_t *report_rate(const struct report *r, const struct report_value *v, double most)
{
    json_t *points = json_array();

    for (size_t k = 1; k < json_array_size(r->series); k++) {
        double more = value_at(r, k, v) - value_at(r, k - 1, v);
        double passed = seconds_at(r, k) - seconds_at(r, k - 1);

        /* counters begin again where the daemon or the model did */
        if (more >= 0 && passed > 0) {
            page_point(points, seconds_at(r, k) - seconds_at(r, 0), fmin(more / passed, most),
                       NULL);
        }
    }
    return points;
}
