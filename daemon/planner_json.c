/* SPDX-License-Identifier: Apache-2.0 */
/* The cost table as JSON, in the form that pipesim reads. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/planner.h"

const char *dmn_source_name(enum tun_source source)
{
    static const char *const names[] = {[TUN_UNKNOWN] = "unknown",
                                        [TUN_PREDICTED] = "predicted",
                                        [TUN_SAVED] = "saved",
                                        [TUN_MEASURED] = "measured"};

    return names[source];
}

void dmn_planner_count(const struct tun_problem *p, size_t ret[DMN_SOURCE_COUNT])
{
    memset(ret, 0, DMN_SOURCE_COUNT * sizeof(*ret));
    for (size_t k = 0; k < p->kind_count; k++) {
        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            for (size_t u = 0; u < p->unit_count; u++) {
                ret[tun_cell_at(&p->costs, k, w, u)->source]++;
            }
        }
    }
}

static json_t *units_json(const struct tun_problem *p, const struct mdl_model *model)
{
    json_t *list = json_array();

    for (size_t u = 0; u < p->unit_count; u++) {
        const struct tun_unit *unit = &p->units[u];
        const char *name = model ? model->units[u].name : NULL;
        char number[24];

        snprintf(number, sizeof(number), "%zu", u);
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:[f, f, f]}", "name",
                                              name && *name ? name : number, "weight", unit->weight,
                                              "in_bytes", unit->in_bytes, "gemm", unit->gemm_n,
                                              unit->gemm_k, unit->gemm_m));
    }
    return list;
}

static json_t *kinds_json(const struct tun_problem *p)
{
    json_t *list = json_array();

    for (size_t k = 0; k < p->kind_count; k++) {
        const struct tun_kind *kind = &p->kinds[k];

        json_array_append_new(list, json_pack("{s:s, s:i, s:f, s:f, s:f}", "name", kind->name,
                                              "cores", (int)kind->cores, "speed", kind->speed,
                                              "bandwidth", kind->bandwidth, "watts", kind->watts));
    }
    return list;
}

/* One list for each (kind, width): figures, or where they are from. */
static json_t *rows_json(const struct tun_problem *p, bool sources)
{
    json_t *kinds = json_object();

    for (size_t k = 0; k < p->kind_count; k++) {
        json_t *widths = json_object();

        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            json_t *row = json_array();
            char name[24];

            for (size_t u = 0; u < p->unit_count; u++) {
                const struct tun_cell *c = tun_cell_at(&p->costs, k, w, u);

                json_array_append_new(row, sources     ? json_string(dmn_source_name(c->source))
                                           : c->ns > 0 ? json_real(c->ns)
                                                       : json_null());
            }
            snprintf(name, sizeof(name), "%zu", w);
            json_object_set_new(widths, name, row);
        }
        json_object_set_new(kinds, p->kinds[k].name, widths);
    }
    return kinds;
}

json_t *dmn_problem_json(const struct tun_problem *p, const struct mdl_model *model,
                         const char *name)
{
    return json_pack("{s:s, s:o, s:o, s:f, s:f, s:o, s:o}", "model", name, "units",
                     units_json(p, model), "kinds", kinds_json(p), "handoff_ns", p->handoff_ns,
                     "handoff_ns_per_byte", p->handoff_ns_per_byte, "costs", rows_json(p, false),
                     "sources", rows_json(p, true));
}

json_t *dmn_planner_problem_json(const struct dmn_model *m)
{
    struct tun_problem p = TUN_PROBLEM_NULL;
    json_t *json;

    if (dmn_planner_problem(m, &(struct dmn_goal){.objective = TUN_THROUGHPUT}, &p) < 0) {
        return json_null();
    }
    json = dmn_problem_json(&p, m->model, m->name);
    tun_problem_deinit(&p);
    return json;
}
