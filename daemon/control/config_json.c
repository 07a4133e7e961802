/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration, with where each value comes from. */
#include "base/base.h"
#include "base/json_text.h"
#include "daemon/config/config.h"
#include "daemon/control/json.h"

static json_t *value_json(const struct dmn_config_row *row, int64_t number, const char *text)
{
    char name[32];

    switch (row->type) {
    case DMN_CONFIG_INT:
        return json_integer(number);
    case DMN_CONFIG_BOOL:
        return json_boolean(number);
    case DMN_CONFIG_STRING:
        return json_text_shown(text ? text : "");
    case DMN_CONFIG_ENUM:
        dmn_config_choice_name(row, (size_t)number, name, sizeof(name));
        return json_string(name);
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
            list, json_pack("{s:o, s:{s:s, s:o, s:s, s:b, s:s, s:o, s:s}, s:o}", "key",
                            json_sprintf("models[%zu]", i), "value", "name", m->name, "path",
                            json_text_path(m->path), "plan", m->plan, "latest", m->latest,
                            "kernels", m->kernels, "calibration", json_text_path(m->calibration),
                            "boards", m->boards, "origin", origin_json(c, m->origin, m->line)));
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
