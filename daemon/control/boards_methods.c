/* SPDX-License-Identifier: Apache-2.0 */
/* What piped-link calls: its reports, and the routes that it shall carry. */
#include "base/base.h"
#include "daemon/boards/over_boards.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"

#define AGAIN_NS BASE_NS_PER_S /* clients that are refused make it ask no more often */

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
        dmn_call_invalid(c, "report");
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

/* ---- the user piped-link was made after the start: a package was installed ---- */

static void look(struct dmn_job *work)
{
    dmn_users_look_up(
        "", &base_container_of(work, struct dmn_control, link_search.work)->link_search.found);
}

static void looked(struct dmn_job *work)
{
    struct dmn_control *control = base_container_of(work, struct dmn_control, link_search.work);
    const struct dmn_users *found = &control->link_search.found;
    struct dmn_call *c;

    control->link_search.again_ns = base_now_ns() + AGAIN_NS;
    if (found->has_link) {
        control->users->has_link = true;
        control->users->link = found->link;
    }
    while ((c = LIST_FIRST(&control->link_search.calls)) != NULL) {
        LIST_REMOVE(c, searching);
        if (c->conn) {
            control->link_search.again(c);
        } else {
            dmn_call_reply(c, json_object(), false); /* to nobody */
        }
    }
}

bool dmn_link_search(struct dmn_call *c, void (*again)(struct dmn_call *c))
{
    struct dmn_control *control = c->control;

    if (control->users->has_link || control->stopping ||
        base_now_ns() < control->link_search.again_ns) {
        return false;
    }
    control->link_search.again = again;
    LIST_INSERT_HEAD(&control->link_search.calls, c, searching);
    if (!control->link_search.work.at) {
        control->link_search.work = (struct dmn_job){.run = look, .done = looked};
        dmn_work_do(control->machine->awaited, &control->link_search.work);
    }
    return true;
}
