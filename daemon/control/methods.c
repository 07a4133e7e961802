/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/control/methods.h"
#include "daemon/service/log.h"
#include "model/segment/segment_name.h"

static const char service_interface[] =
    "# The Varlink service interface\n"
    "interface org.varlink.service\n\n"
    "method GetInfo() -> (vendor: string, product: string, version: string, url: string, "
    "interfaces: []string)\n\n"
    "method GetInterfaceDescription(interface: string) -> (description: string)\n\n"
    "error InterfaceNotFound (interface: string)\n"
    "error MethodNotFound (method: string)\n"
    "error MethodNotImplemented (method: string)\n"
    "error InvalidParameter (parameter: string)\n"
    "error PermissionDenied ()\n"
    "error ExpectedMore ()\n";

static void get_info(struct dmn_call *c)
{
    dmn_call_reply(c,
                   json_pack("{s:s, s:s, s:s, s:s, s:[s,s]}", "vendor", "piped", "product", "piped",
                             "version", PIPED_VERSION, "url", "man:piped(8)", "interfaces",
                             "org.varlink.service", "io.piped"),
                   false);
}

static void get_description(struct dmn_call *c)
{
    const char *name = json_string_value(json_object_get(c->parameters, "interface"));

    if (name && strcmp(name, "io.piped") == 0) {
        dmn_call_reply(c, json_pack("{s:s}", "description", ipc_varlink_interface), false);
    } else if (name && strcmp(name, "org.varlink.service") == 0) {
        dmn_call_reply(c, json_pack("{s:s}", "description", service_interface), false);
    } else {
        dmn_call_service_error(c, "InterfaceNotFound", "interface", name ? name : "");
    }
}

/* io.piped.varlink declares their parameters. */
static const struct method {
    const char *name;
    dmn_method_fn *run;
    dmn_model_method_fn *of_model;               /* in place of run() */
    bool changes;                                /* needs permission */
    bool more;                                   /* needs "more" */
    bool shared;                                 /* see struct dmn_shared_reply */
    enum { NOT_LINK, LINK, LINK_SEGMENTS } link; /* piped-link may, too; of segments only */
} methods[] = {
    {"org.varlink.service.GetInfo", get_info},
    {"org.varlink.service.GetInterfaceDescription", get_description},
    {"io.piped.Status", dmn_method_status, .shared = true},
    {"io.piped.Models", dmn_method_models, .shared = true},
    {"io.piped.Load", dmn_method_load, .changes = true, .link = LINK_SEGMENTS},
    {"io.piped.Unload", dmn_method_unload, .changes = true, .link = LINK_SEGMENTS},
    {"io.piped.SetWishes", .of_model = dmn_method_set_wishes, .changes = true},
    {"io.piped.GetPlan", .of_model = dmn_method_get_plan},
    {"io.piped.SetPlan", .of_model = dmn_method_set_plan, .changes = true},
    {"io.piped.GetMapping", .of_model = dmn_method_get_mapping},
    {"io.piped.SetMapping", .of_model = dmn_method_set_mapping, .changes = true},
    {"io.piped.AutoPlan", .of_model = dmn_method_auto_plan, .changes = true},
    {"io.piped.Retune", .of_model = dmn_method_retune, .changes = true},
    {"io.piped.CancelRetune", .of_model = dmn_method_cancel_retune, .changes = true},
    {"io.piped.Costs", .of_model = dmn_method_costs, .shared = true},
    {"io.piped.PlanFront", .of_model = dmn_method_plan_front},
    {"io.piped.PlanExplain", .of_model = dmn_method_plan_explain},
    {"io.piped.PlanMix", dmn_method_plan_mix},
    {"io.piped.Profile", dmn_method_profile, .changes = true},
    {"io.piped.Optimise", .of_model = dmn_method_optimise, .changes = true},
    {"io.piped.Quantise", .of_model = dmn_method_quantise, .changes = true},
    {"io.piped.History", dmn_method_history},
    {"io.piped.Units", .of_model = dmn_method_units, .shared = true},
    {"io.piped.Metrics", dmn_method_metrics, .shared = true},
    {"io.piped.Config", dmn_method_config, .shared = true},
    {"io.piped.Reload", dmn_method_reload, .changes = true},
    {"io.piped.Subscribe", dmn_method_subscribe, .more = true},
    {"io.piped.Trace", dmn_method_trace, .changes = true, .more = true},
    {"io.piped.LinkReport", dmn_method_link_report, .changes = true, .link = LINK},
    {"io.piped.LinkRoutes", dmn_method_link_routes, .changes = true, .more = true, .link = LINK},
};

_Static_assert(base_array_count(methods) <= DMN_METHODS_MAX, "every method has its number");

/* Return: the first parameter that is missing, unknown or of the wrong type; NULL: all are good.
 * @ret: DMN_PARAMETER_MAX bytes, which it may use. */
static const char *bad_parameter(const struct method *m, json_t *parameters, char *ret)
{
    bool ours = strncmp(m->name, "io.piped.", 9) == 0;

    return dmn_parameters_bad(dmn_parameters_of(ours ? ipc_varlink_interface : service_interface,
                                                strrchr(m->name, '.') + 1),
                              parameters, ret);
}

static void no_such_method(struct dmn_call *c)
{
    char interface[128];
    const char *dot = strrchr(c->method, '.');

    snprintf(interface, sizeof(interface), "%.*s",
             (int)base_min(dot ? dot - c->method : (ptrdiff_t)0, (ptrdiff_t)100), c->method);
    if (strcmp(interface, "io.piped") == 0 || strcmp(interface, "org.varlink.service") == 0) {
        dmn_call_service_error(c, "MethodNotFound", "method", c->method);
    } else {
        dmn_call_service_error(c, "InterfaceNotFound", "interface", interface);
    }
}

/* Return: piped-link calls, and may. */
static bool link_may(const struct method *m, struct dmn_call *c)
{
    struct mdl_segment_name name;

    return m->link != NOT_LINK && dmn_users_is_link(c->control->users, c->conn->peer.uid) &&
           (m->link == LINK ||
            (mdl_segment_name_parse(json_string_value(json_object_get(c->parameters, "name")),
                                    &name) &&
             name.is_segment));
}

static void deny(const struct method *m, struct dmn_call *c)
{
    dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0}, "%s refused to user %u (pid %d)",
                    m->name, (unsigned)c->conn->peer.uid, (int)c->conn->peer.pid);
    dmn_call_error(c, "PermissionDenied",
                   "only root, the daemon's own user and members of admin_group may change "
                   "something");
}

static void run(const struct method *m, struct dmn_call *c)
{
    struct dmn_model *model;

    if (m->changes) {
        dmn_control_forget(c->control);
    } else if (c->oneway && !c->more) { /* it asks, and wants no answer */
        dmn_call_reply(c, json_object(), false);
        return;
    }
    if (m->shared && json_object_size(c->parameters) == 0 &&
        dmn_call_shared(c, &c->control->shared[m - methods])) {
        return;
    }
    if (m->run) {
        m->run(c);
    } else if ((model = dmn_call_model(c, "model")) != NULL) {
        m->of_model(c, model);
    }
}

void dmn_control_dispatch(struct dmn_call *c)
{
    struct dmn_control *control = c->control;
    const struct method *m = NULL;
    char missing[DMN_PARAMETER_MAX];
    const char *bad;

    for (size_t i = 0; i < base_array_count(methods) && !m; i++) {
        if (strcmp(methods[i].name, c->method) == 0) {
            m = &methods[i];
        }
    }
    if (!m) {
        no_such_method(c);
        return;
    }
    bad = bad_parameter(m, c->parameters, missing);
    if (bad) {
        dmn_call_service_error(c, "InvalidParameter", "parameter", bad);
        return;
    }
    if (m->more && !c->more) {
        dmn_call_service_error(c, "ExpectedMore", NULL, NULL);
        return;
    }
    if (m->changes && !link_may(m, c) &&
        !dmn_users_may_change(control->users, &c->conn->peer, dmn_control_conn_fd(c->conn))) {
        if (m->link == NOT_LINK || !dmn_link_search(c, dmn_control_dispatch)) {
            deny(m, c);
        }
        return;
    }
    if (m->changes && control->models->stopping) {
        dmn_call_error(c, "Busy", "the daemon is stopping");
        return;
    }
    run(m, c);
}
