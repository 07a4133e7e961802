/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of teams over several EPs, by the plan in which such a team runs all units. */
#include "tuner/json/costs_json.h"
#include "tuner/span.h"

json_t *tun_spans_json(const struct tun_problem *p)
{
    json_t *all = json_object();
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    for (size_t i = 0; i < p->span_count; i++) {
        struct pl_plan plan = {.stage_count = 1};
        json_t *row = json_array();
        char text[PL_PLAN_TEXT_MAX];

        plan.stages[0].last_unit = (uint16_t)(p->unit_count - 1);
        plan.stages[0].group_count = 1;
        plan.stages[0].groups[0] = p->spans[i].team;
        plan.stages[0].groups[0].count = 1;
        for (size_t u = 0; u < p->unit_count; u++) {
            json_array_append_new(row, json_real(p->spans[i].factors[u]));
        }
        pl_plan_format(&plan, &eps, text, sizeof(text));
        json_object_set_new(all, text, row);
    }
    return all;
}

static void read_span(struct tun_reader *r, const char *text, const json_t *row,
                      struct tun_problem *p)
{
    struct pl_ep_set eps;
    struct pl_plan plan;
    char why[TUN_READER_ERROR_MAX];

    tun_eps(p, &eps);
    if (pl_plan_parse(text, &eps, p->unit_count, why, sizeof(why), &plan) < 0 ||
        plan.stage_count != 1 || !pl_group_spans(&plan.stages[0].groups[0])) {
        tun_wrong(r, "spans", "\"%.60s\" is not a plan of a team over several kinds", text);
        return;
    }
    if (json_array_size(row) != p->unit_count) {
        tun_wrong(r, "spans", "%.60s: not one factor for each unit", text);
        return;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        const json_t *v = json_array_get(row, u);
        double factor = json_number_value(v);

        if (!json_is_number(v) || !(factor >= 0) || factor > 1e6) {
            tun_wrong(r, "spans", "%.60s: entry %zu is not a factor", text, u);
            return;
        }
        if (factor > 0 &&
            tun_span_scale(p, &plan.stages[0].groups[0], u, u, factor / TUN_SPAN_LOSS) < 0) {
            tun_wrong(r, "", "out of memory");
            return;
        }
    }
}

void tun_spans_read(struct tun_reader *r, const json_t *all, struct tun_problem *p)
{
    const char *text;
    json_t *row;

    if (all && !json_is_object(all)) {
        tun_wrong(r, "spans", "is not an object");
    }
    json_object_foreach((json_t *)(uintptr_t)all, text, row)
    {
        read_span(r, text, row, p);
    }
}
