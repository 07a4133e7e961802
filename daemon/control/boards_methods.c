/* SPDX-License-Identifier: Apache-2.0 */
/* What piped-link calls: its reports, and the routes that it shall carry. */
#include "base/base.h"
#include "daemon/boards/over_boards.h"
#include "daemon/control/methods.h"

static void free_report(struct brd_link_report_all **r)
{
    if (*r) {
        brd_report_all_deinit(*r);
        free(*r);
    }
}

void dmn_method_link_report(struct dmn_call *c)
{
    base_cleanup(free_report) struct brd_link_report_all *r = calloc(1, sizeof(*r));
    struct dmn_control *control = c->control;

    if (!r || brd_report_all_read(json_object_get(c->parameters, "report"), r) != 0) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "report");
        return;
    }
    control->reporter = c->conn;
    dmn_boards_report(control->boards, base_take(r));
    dmn_call_reply(c, json_object(), false);
}

static json_t *routes_json(const struct dmn_boards *b)
{
    base_autofree struct brd_routes *routes = dmn_boards_routes(b);

    return routes ? json_pack("{s:o}", "routes", brd_routes_json(routes)) : NULL;
}

void dmn_link_routes_changed(void *ctx)
{
    struct dmn_control *control = ctx;
    json_t *routes = LIST_EMPTY(&control->route_calls) ? NULL : routes_json(control->boards);
    struct dmn_call *c, *next;

    for (c = LIST_FIRST(&control->route_calls); routes && c; c = next) {
        next = LIST_NEXT(c, subscriber);
        dmn_call_reply(c, json_incref(routes), true);
    }
    json_decref(routes);
}

void dmn_method_link_routes(struct dmn_call *c)
{
    c->subscribed = true;
    LIST_INSERT_HEAD(&c->control->route_calls, c, subscriber);
    dmn_call_reply(c, routes_json(c->control->boards), true);
}
