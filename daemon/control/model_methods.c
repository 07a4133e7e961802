/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that tell what there is, and Reload. */

#include "base/base.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/plans/plans.h"

void dmn_method_units(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");

    if (m) {
        dmn_call_reply(c, json_pack("{s:o}", "units", dmn_model_units_json(m)), false);
    }
}

void dmn_method_status(struct dmn_call *c)
{
    const char *name = dmn_call_text(c, "model");

    if (!name || !*name) {
        dmn_call_reply(c, json_pack("{s:o}", "status", dmn_status_json(c->control, NULL)), false);
    } else if (dmn_call_model(c, "model")) {
        dmn_call_reply(c, json_pack("{s:o}", "status", dmn_status_json(c->control, name)), false);
    }
}

void dmn_method_history(struct dmn_call *c)
{
    json_int_t limit = INT32_MAX;
    const char *name = dmn_call_text(c, "model");

    if (!dmn_call_integer(c, "limit", 0, INT64_MAX, &limit)) {
        return;
    }
    dmn_call_reply(c,
                   json_pack("{s:o}", "events",
                             dmn_history_json(&c->control->plans->history,
                                              name && *name ? name : NULL, (size_t)limit)),
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
                             dmn_state_name(c->control->host->state(c->control->host->ctx))),
                   true);
}
