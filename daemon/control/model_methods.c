/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that tell what there is, and Reload. */

#include "base/base.h"
#include "daemon/config/config.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/plans/plans.h"

void dmn_method_units(struct dmn_call *c, struct dmn_model *m)
{
    dmn_call_reply(c, json_pack("{s:o}", "units", dmn_model_units_json(m)), false);
}

void dmn_method_status(struct dmn_call *c)
{
    const char *name = json_text_of(c->parameters, "model");

    if (!*name || dmn_call_model(c, "model")) {
        dmn_call_reply(c, json_pack("{s:o}", "status", dmn_status_json(c->control, name)), false);
    }
}

void dmn_method_history(struct dmn_call *c)
{
    json_int_t limit = INT32_MAX;
    const char *name = json_text_of(c->parameters, "model");

    if (!dmn_call_integer(c, "limit", 0, INT64_MAX, &limit)) {
        return;
    }
    dmn_call_reply(c,
                   json_pack("{s:o}", "events",
                             dmn_history_json(&c->control->plans->history, name, (size_t)limit)),
                   false);
}

void dmn_method_models(struct dmn_call *c)
{
    json_t *list = json_array();

    for (const struct dmn_model *m = c->control->models->models; m; m = m->next) {
        json_array_append_new(list, dmn_model_json(m));
    }
    dmn_call_reply(c,
                   json_pack("{s:o, s:o}", "models", list, "failed",
                             dmn_failed_json(&c->control->models->failed)),
                   false);
}

void dmn_method_metrics(struct dmn_call *c)
{
    base_autofree char *metrics = dmn_metrics_text(c->control);

    dmn_call_reply(c, json_pack("{s:s}", "text", metrics), false);
}

/* ---- the configuration, with where each value comes from ---- */

static json_t *value_json(const struct dmn_config_row *row, int64_t number, const char *text)
{
    char name[DMN_CONFIG_CHOICE_BYTES];

    switch (row->type) {
    case DMN_CONFIG_INT:
        return json_integer(number);
    case DMN_CONFIG_BOOL:
        return json_boolean(number);
    case DMN_CONFIG_STRING:
        return json_text_shown(text ? text : "");
    case DMN_CONFIG_ENUM:
        return dmn_config_choice_name(row, (size_t)number, name) ? json_string(name) : json_null();
    }
    return json_null();
}

static json_t *origin_json(const struct dmn_config *c, size_t origin, size_t line)
{
    char where[DMN_CONFIG_WHERE_MAX];

    dmn_config_where(c, origin, line, where);
    return json_text_shown(where);
}

json_t *dmn_config_json(const struct dmn_config *c)
{
    const struct dmn_config_row *rows = dmn_config_rows;
    json_t *list = json_array();

    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        const struct dmn_config_value *v = &c->values[i];

        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:s, s:o, s:s, s:b}", "key", rows[i].key, "value",
                            value_json(&rows[i], v->number, v->text), "origin",
                            origin_json(c, v->origin, v->line), "unit", rows[i].unit, "default",
                            value_json(&rows[i], rows[i].value, rows[i].text), "help", rows[i].help,
                            "advanced", rows[i].advanced));
    }
    for (size_t i = 0; i < c->model_count; i++) {
        const struct dmn_config_model *m = &c->models[i];

        json_array_append_new(
            list, json_pack("{s:o, s:{s:s, s:o, s:s, s:b, s:s, s:o, s:s, s:o}, s:o}", "key",
                            json_sprintf("models[%zu]", i), "value", "name", m->name, "path",
                            json_text_path(m->path), "plan", m->plan, "latest", m->latest,
                            "kernels", m->kernels, "calibration", json_text_path(m->calibration),
                            "boards", m->boards, "wishes", dmn_wishes_json(&m->wishes), "origin",
                            origin_json(c, m->origin, m->line)));
    }
    for (size_t i = 0; i < c->ep_count; i++) {
        const struct dmn_config_ep *e = &c->eps[i];

        json_array_append_new(list,
                              json_pack("{s:o, s:{s:s, s:s, s:f, s:f}, s:o}", "key",
                                        json_sprintf("eps[%zu]", i), "value", "name", e->name,
                                        "cpus", e->cpus, "speed", e->speed, "watts", e->watts,
                                        "origin", origin_json(c, c->eps_origin, c->eps_line)));
    }
    return list;
}

void dmn_method_config(struct dmn_call *c)
{
    dmn_call_reply(
        c, json_pack("{s:o}", "config", dmn_config_json(dmn_machine_config(c->control->machine))),
        false);
}

void dmn_method_reload(struct dmn_call *c)
{
    const struct dmn_host *host = c->control->host;

    if (!host->reload(host->ctx, (struct dmn_done){dmn_call_done, c})) {
        dmn_call_error(c, "Busy", "a reload is in progress");
    }
}

void dmn_method_subscribe(struct dmn_call *c)
{
    c->subscribed = true;
    LIST_INSERT_HEAD(&c->control->subscribers, c, subscriber);
    dmn_call_reply(c,
                   json_pack("{s:{s:s, s:s}}", "event", "event", "subscribed", "state",
                             dmn_state_names[c->control->host->state(c->control->host->ctx)]),
                   true);
}
