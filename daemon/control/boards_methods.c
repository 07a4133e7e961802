/* SPDX-License-Identifier: Apache-2.0 */
/* Boards and routes for status and metrics; what piped-link calls: its reports, and the routes that
 * it shall carry. */
#include "base/base.h"
#include "daemon/boards/away.h"
#include "daemon/boards/board_model.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/control/metrics_text.h"

#define AGAIN_NS BASE_NS_PER_S /* clients that are refused make it ask no more often */

static json_t *boards_of_hop_json(const struct brd_link_report_all *r, const struct brd_hop *h)
{
    json_t *list = json_array();

    for (size_t i = 0; i < h->board_count; i++) {
        const char *print = h->board[i].print;

        json_array_append_new(list, json_pack("{s:s, s:i, s:b}", "name", dmn_board_name(r, print),
                                              "share", (int)h->board[i].share, "up",
                                              dmn_board_up(r, print)));
    }
    return list;
}

static json_t *hops_json(const struct dmn_board_model *bm)
{
    json_t *list = json_array();

    for (size_t i = 0; i < bm->route->hop_count; i++) {
        const struct brd_hop *h = &bm->route->hop[i];
        double ns = bm->state.service_ns[i];

        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "units",
                                              json_sprintf("%u-%u", h->first_unit, h->last_unit),
                                              "boards", boards_of_hop_json(bm->of->report, h),
                                              "service_ms", dmn_json_positive(ns / 1e6)));
    }
    return list;
}

/* By other boards; this daemon's own count, so it is never behind the model's. */
static uint64_t answered(const struct dmn_away_counts *n)
{
    return n->taken - n->undone - n->in_flight;
}

json_t *dmn_route_json(const struct dmn_boards *b, const struct dmn_model *m)
{
    const struct dmn_board_model *bm = dmn_boards_of(m);
    char text[DMN_ROUTE_TEXT_MAX];
    struct dmn_away_counts n;
    const char *phase;

    if (!bm) {
        return json_null();
    }
    n = dmn_board_model_counts(bm);
    dmn_hops_text(bm->route->hop, bm->route->hop_count, b->report, text);
    phase = bm->route->hop_count == 0 ? "none"
            : bm->state.number        ? brd_phase_name(bm->state.phase)
                                      : "asked";
    return json_pack(
        "{s:s, s:b, s:s, s:b, s:s, s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:o}",
        "boards", bm->config, "set", bm->set, "route", text, "serving", bm->serving != 0, "phase",
        phase, "why", dmn_board_model_why(bm), "number", (json_int_t)bm->route->number, "hops",
        hops_json(bm), "answered", (json_int_t)answered(&n), "here", (json_int_t)m->stats.here,
        "resent", (json_int_t)bm->state.resent, "sent", (json_int_t)n.taken, "returned",
        (json_int_t)n.undone, "in_flight", (json_int_t)n.in_flight, "window",
        (json_int_t)bm->state.window, "dropped", (json_int_t)bm->state.dropped, "pictures",
        bm->serving && m->image_width ? json_boolean(bm->state.pictures) : json_null());
}

static json_t *eps_json(const struct brd_state *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->ep_count; i++) {
        json_array_append_new(list, json_pack("{s:s, s:i, s:f}", "name", s->ep[i].name, "cores",
                                              (int)s->ep[i].cores, "speed", s->ep[i].speed));
    }
    return list;
}

static json_t *link_json(const struct brd_way *w)
{
    return w && w->measured
               ? json_pack("{s:f, s:f}", "message_us", w->ns / 1e3, "kilobyte_us", w->ns_per_byte)
               : json_null();
}

json_t *dmn_boards_json(const struct dmn_boards *b)
{
    json_t *list = json_array();
    uint64_t now = base_now_ns();

    for (size_t i = 0; b->report && i < b->report->board_count; i++) {
        const struct brd_state *s = &b->report->board[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:f, s:o, s:f, s:s, s:o}", "name",
                                              s->name, "board", s->print, "up", s->up, "for_s",
                                              (double)(now - b->seen[i].since_ns) / 1e9, "link",
                                              link_json(dmn_way_find(&b->report->self, s->print)),
                                              "memory_bytes", s->memory_bytes, "version",
                                              s->version, "eps", eps_json(s)));
    }
    return list;
}

void dmn_boards_metrics(FILE *to, const struct dmn_control *control)
{
    const struct dmn_boards *b = control->boards;
    const struct dmn_board_model *bm;

    dmn_metric_head(to, "board_up", "gauge", "1 while the other board is there.");
    for (size_t i = 0; b->report && i < b->report->board_count; i++) {
        dmn_metric_row(to, "board_up", b->report->board[i].up, "board=\"%s\"",
                       b->report->board[i].name);
    }
    dmn_metric_head(to, "route_serving", "gauge", "1 while frames go over several boards.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        if ((bm = dmn_boards_of(m)) != NULL) {
            dmn_metric_row(to, "route_serving", bm->serving != 0, "model=\"%s\"", m->name);
        }
    }
    dmn_metric_head(to, "route_frames_total", "counter",
                    "Frames sent over several boards: answered, or returned and computed here.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        if ((bm = dmn_boards_of(m)) != NULL) { /* those that came back so far */
            struct dmn_away_counts n = dmn_board_model_counts(bm);

            dmn_metric_row(to, "route_frames_total", (double)answered(&n),
                           "model=\"%s\",outcome=\"answered\"", m->name);
            dmn_metric_row(to, "route_frames_total", (double)n.undone,
                           "model=\"%s\",outcome=\"returned\"", m->name);
        }
    }
}

/* ---- what piped-link calls ---- */

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
