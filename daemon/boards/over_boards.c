/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/over_boards.h"

#include "daemon/boards/board_model.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/service/listeners.h"
#include "daemon/service/log.h"

/* ---- boards ---- */

static void note_board(const struct brd_state *s, const struct dmn_board_seen *before)
{
    if (before ? before->up != s->up : s->up) {
        dmn_log_with(s->up ? LOG_NOTICE : LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_BOARD},
                     "board %s is %s", s->name, s->up ? "there" : "away");
    }
}

/* Keeps since when each board of the newest report has been there, or not. */
static void see(struct dmn_boards *b, const struct brd_link_report_all *r, uint64_t now_ns)
{
    struct dmn_board_seen seen[BRD_MAX] = {0};

    for (size_t i = 0; i < r->board_count; i++) {
        const struct brd_state *s = &r->board[i];
        const struct dmn_board_seen *before = NULL;

        for (size_t k = 0; k < BRD_MAX && !before; k++) {
            before = strcmp(b->seen[k].print, s->print) == 0 ? &b->seen[k] : NULL;
        }
        memcpy(seen[i].print, s->print, sizeof(seen[i].print));
        seen[i].up = s->up;
        seen[i].since_ns = before && before->up == s->up ? before->since_ns : now_ns;
        note_board(s, before);
    }
    memcpy(b->seen, seen, sizeof(seen));
}

static struct brd_link_report_all *report_free(struct brd_link_report_all *r)
{
    if (r) {
        brd_report_all_deinit(r);
        free(r);
    }
    return NULL;
}

static void report(struct dmn_boards *b, struct brd_link_report_all *r)
{
    struct brd_link_report_all *before = b->report;
    uint64_t now = base_now_ns();
    struct dmn_board_model *bm;

    b->report = r;
    b->reported_ns = now;
    LIST_FOREACH(bm, &b->models, linked) {
        dmn_board_model_report(bm, now);
    }
    report_free(before);
}

void dmn_boards_report(struct dmn_boards *b, struct brd_link_report_all *r)
{
    if (b->stopping) {
        report_free(r);
        return;
    }
    if (!b->report) {
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_BOARD},
                     "piped-link reports %zu board%s", r->board_count, base_plural(r->board_count));
    }
    see(b, r, base_now_ns());
    report(b, r);
}

static void gone(struct dmn_boards *b, const char *how)
{
    if (b->report) {
        dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_BOARD},
                     "piped-link is away: %s", how);
        memset(b->seen, 0, sizeof(b->seen));
        report(b, NULL);
    }
}

void dmn_boards_reporter_gone(struct dmn_boards *b)
{
    gone(b, "its connection ended");
}

void dmn_boards_stop(struct dmn_boards *b)
{
    b->stopping = true;
    report(b, NULL);
}

/* ---- routes ---- */

struct brd_routes *dmn_boards_routes(const struct dmn_boards *b)
{
    struct brd_routes *routes = calloc(1, sizeof(*routes));
    const struct dmn_board_model *bm;

    if (!routes) {
        return NULL;
    }
    LIST_FOREACH(bm, &b->models, linked) {
        if (bm->route->number && !bm->model->leaving && routes->count < BRD_ROUTES_MAX) {
            routes->route[routes->count++] = *bm->route;
        }
    }
    return routes;
}

bool dmn_boards_settle(struct dmn_boards *b)
{
    struct dmn_board_model *bm;
    bool any = false;

    LIST_FOREACH(bm, &b->models, linked) {
        any |= dmn_board_model_settle(bm);
    }
    if (b->routes_changed) {
        DMN_TELL(b->listeners, routes_changed);
        b->routes_changed = false;
    }
    return any;
}

/* ---- models ---- */

static void configure(struct dmn_boards *b, struct dmn_model *m)
{
    struct dmn_board_model *bm = dmn_boards_of(m);
    const struct dmn_config_model *c =
        dmn_config_find_model(dmn_machine_config(m->of->machine), m->name);
    const char *text = c ? c->boards : DMN_BOARDS_OFF;

    if (bm && strcmp(bm->config, text) != 0) {
        dmn_board_trial_leave(bm, false);
        bm = dmn_board_model_free(bm, false);
    }
    if (bm || strcmp(text, DMN_BOARDS_OFF) == 0) {
        return;
    }
    bm = dmn_board_model_new(b, m, text);
    if (!bm) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: cannot be spread over boards: out of memory", m->name);
        return;
    }
    if (b->report) {
        dmn_board_model_report(bm, base_now_ns());
    }
}

void dmn_boards_configure(struct dmn_boards *b)
{
    for (struct dmn_model *m = b->plans->models->models; m; m = m->next) {
        configure(b, m);
    }
}

static void on_started(void *ctx, struct dmn_model *m, enum dmn_cause cause, const char *detail)
{
    configure(ctx, m);
}

static void on_second(void *ctx, struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_board_model *bm = dmn_boards_of(m);
    struct dmn_boards *b = ctx;

    if (bm) {
        dmn_board_model_follow(bm, now_ns);
    }
    if (b->report && now_ns > b->reported_ns && now_ns - b->reported_ns > DMN_REPORTER_SILENT_NS) {
        gone(b, "it is silent");
    }
}

/* Frames that are away finish there; the route is no longer told, so piped-link gives back what
 * nobody finishes. */
static void on_unloading(void *ctx, struct dmn_model *m)
{
    struct dmn_board_model *bm = dmn_boards_of(m);

    if (bm) {
        bm->serving = bm->ready = 0;
        bm->of->routes_changed = true;
    }
}

static void on_ending(void *ctx, struct dmn_model *m)
{
    struct dmn_board_model *bm = dmn_boards_of(m);

    if (bm) {
        dmn_board_trial_leave(bm, true);
        dmn_board_model_free(bm, true);
    }
}

void dmn_boards_listen(struct dmn_boards *b, struct dmn_boards_listener *l)
{
    DMN_LISTEN(b->listeners, l);
}

void dmn_boards_init(struct dmn_boards *b)
{
    LIST_INIT(&b->models);
    b->hears = (struct dmn_models_listener){.ctx = b,
                                            .started = on_started,
                                            .second = on_second,
                                            .unloading = on_unloading,
                                            .ending = on_ending};
    dmn_models_listen(b->plans->models, &b->hears);
}

void dmn_boards_deinit(struct dmn_boards *b)
{
    b->report = report_free(b->report);
}
