/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pipectl/pipectl.h"
#include "ipc/pipectl/report_page.h"

/* The objects of @list with only these keys; NULL ends them. */
static json_t *only(const json_t *list, const char *const *keys)
{
    json_t *ret = json_array(), *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        json_t *o = json_object();

        for (const char *const *key = keys; *key; key++) {
            json_object_set(o, *key, json_object_get(one, *key));
        }
        json_array_append_new(ret, o);
    }
    return ret;
}

json_t *report_moment(const json_t *status)
{
    static const char *const policy[] = {"policy", "cpus", "freq_khz", "limit_khz", NULL};
    static const char *const zone[] = {"zone", "type", "temp_c", NULL};
    const json_t *sensors = json_object_get(status, "sensors"), *m;
    json_t *models = json_object();
    size_t i;

    json_array_foreach(json_object_get(status, "models"), i, m)
    {
        json_object_set_new(
            models, ctl_text(m, "name"),
            json_pack("{s:O?, s:O?, s:O?}", "answered", page_at(m, "frames.answered"), "p50",
                      page_at(m, "latency_ms.p50"), "p99", page_at(m, "latency_ms.p99")));
    }
    return json_pack("{s:O?, s:o, s:o, s:o, s:O?}", "s", json_object_get(status, "uptime_s"),
                     "models", models, "policies",
                     only(json_object_get(sensors, "policies"), policy), "thermal",
                     only(json_object_get(sensors, "thermal"), zone), "cpu_waited_us",
                     page_at(sensors, "psi.cpu_some_total_us"));
}
