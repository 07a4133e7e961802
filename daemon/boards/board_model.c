/* SPDX-License-Identifier: Apache-2.0 */
/* One model: whether its frames go to other boards, and why that changed. */
#include "daemon/boards/board_model.h"

#include "daemon/machine/machine.h"
#include "daemon/plans/switch.h"
#include "daemon/service/listeners.h"
#include "daemon/service/log.h"
#include "ipc/boards/route_window.h"

/* ---- the place elsewhere ---- */

static struct dmn_board_model *model_of(const struct dmn_elsewhere *e)
{
    return base_container_of((struct dmn_elsewhere *)(uintptr_t)e, struct dmn_board_model,
                             elsewhere);
}

struct dmn_away_counts dmn_board_model_counts(const struct dmn_board_model *bm)
{
    struct dmn_away_counts sum = {0};

    for (size_t i = 0; i < PIXFMT_COUNT; i++) {
        struct dmn_away_counts n =
            bm->away[i] ? dmn_away_counts(bm->away[i]) : (struct dmn_away_counts){0};

        sum.taken += n.taken;
        sum.undone += n.undone;
        sum.in_flight += n.in_flight;
    }
    return sum;
}

bool dmn_board_model_settle(struct dmn_board_model *bm)
{
    bool any = false;

    for (size_t i = 0; i < PIXFMT_COUNT; i++) {
        any |= bm->away[i] && dmn_away_settle(bm->away[i]);
    }
    return any;
}

/* The bytes on the wire decide. */
static bool takes(const struct dmn_elsewhere *e, unsigned pixfmt, const struct krn_image *image)
{
    const struct dmn_board_model *bm = model_of(e);
    uint64_t bytes = brd_picture_bytes(pixfmt, image->width, image->height);

    return bm->state.pictures && bytes > 0 && bytes <= bm->model->input_bytes;
}

static enum dmn_offer offer(struct dmn_elsewhere *e, struct dmn_far_frame *f)
{
    struct dmn_board_model *bm = model_of(e);

    if (!bm->serving) {
        return DMN_OFFER_NONE;
    }
    /* more would stand before the frames of others, past the fair queue */
    if (bm->state.window && dmn_board_model_counts(bm).in_flight >= bm->state.window) {
        return DMN_OFFER_FULL;
    }
    if (!bm->away[f->pixfmt]) {
        /* pictures that find no stream are computed here */
        bm->away[f->pixfmt] = dmn_away_new(bm->model, f->pixfmt, e, NULL, NULL);
        if (bm->away[f->pixfmt]) {
            dmn_away_want(bm->away[f->pixfmt], base_now_ns());
        }
    }
    return bm->away[f->pixfmt] ? dmn_away_offer(bm->away[f->pixfmt], f) : DMN_OFFER_NONE;
}

static void cancel(struct dmn_elsewhere *e, struct dmn_far_frame *f)
{
    dmn_away_cancel(model_of(e)->away[f->pixfmt], f);
}

static size_t depth(const struct dmn_elsewhere *e)
{
    const struct dmn_board_model *bm = model_of(e);

    if (!bm->serving) {
        return 0;
    }
    /* streams have twice the depth as credits: the route's window */
    return bm->state.frames ? (bm->state.frames + 1) / 2 : dmn_away_depth(bm->away[0]);
}

/* ---- where its frames go ---- */

static bool failed(const struct dmn_board_model *bm)
{
    return bm->state.number && bm->state.phase == BRD_FAILED;
}

const char *dmn_board_model_why(const struct dmn_board_model *bm)
{
    if (bm->serving) {
        return "";
    }
    if (!bm->of->report) {
        return bm->of->stopping ? "the daemon is stopping" : "piped-link is away";
    }
    if (failed(bm) && bm->state.why[0]) {
        return bm->state.why;
    }
    if (bm->route->hop_count > 0 && dmn_away_why(bm->away[0])[0]) {
        return dmn_away_why(bm->away[0]);
    }
    return bm->route->hop_count > 0 && !bm->ready ? "boards load their segments" : bm->why;
}

/* What took the route away: a link, or a board. */
static enum dmn_cause cause(const struct dmn_board_model *bm)
{
    bool of_link = !bm->of->report || (failed(bm) && bm->state.to[0]) ||
                   (!failed(bm) && bm->ready && !dmn_away_ready(bm->away[0]));

    return of_link && !bm->serving ? DMN_CAUSE_LINK : DMN_CAUSE_BOARD;
}

/* Writes down that frames went by @before and go by the present way. */
static void record(const struct dmn_board_model *bm, const char *before)
{
    struct dmn_model *m = bm->model;
    char here[PL_PLAN_TEXT_MAX];
    const char *after = bm->serving ? bm->text : here;
    const char *why = bm->serving ? bm->why : dmn_board_model_why(bm);
    struct dmn_origin by = bm->set ? (struct dmn_origin){.from = DMN_FROM_USER}
                           : strcmp(bm->config, DMN_BOARDS_AUTO) == 0
                               ? DMN_ORIGIN_EXACT
                               : (struct dmn_origin){.from = DMN_FROM_CONFIG};

    dmn_model_plan_text(m, here);
    dmn_log_with(LOG_NOTICE,
                 ((struct dmn_log_fields){.id = DMN_MSG_ROUTE, .model = m->name, .plan = after}),
                 bm->serving ? "model %s: served over boards by %s (%s)"
                             : "model %s: served by this board alone, plan %s (%s)",
                 m->name, after, why);
    dmn_plan_event(m, &(struct dmn_history_event){.detail = why,
                                                  .plan_before = before ? before : here,
                                                  .plan_after = after,
                                                  .cause = cause(bm),
                                                  .origin = bm->serving ? by : m->origin,
                                                  .outcome = DMN_OUTCOME_SWITCHED,
                                                  .fps_before = dmn_model_fps(m, base_now_ns()),
                                                  .fps_after = -1});
}

/* Lets frames go by the route that is ready, if there is one and the stream is open. */
static void update(struct dmn_board_model *bm)
{
    bool may = bm->ready && bm->route->hop_count > 0 && !bm->model->leaving;
    uint32_t to = may && dmn_away_ready(bm->away[0]) ? bm->ready : 0;
    char before[DMN_ROUTE_TEXT_MAX];
    bool was = bm->serving != 0;

    if (to == bm->serving) {
        return;
    }
    memcpy(before, bm->text, sizeof(before));
    bm->serving = to;
    if (to == bm->route->number) {
        dmn_hops_text(bm->route->hop, bm->route->hop_count, bm->of->report, bm->text);
    }
    if (!bm->model->leaving) {
        if (!bm->trial) { /* else the search tells */
            record(bm, was ? before : NULL);
        }
        DMN_TELL(bm->of->listeners, serving_changed, bm->model);
    }
}

static void on_away_changed(void *ctx)
{
    update(ctx);
}

/* ---- routes ---- */

void dmn_board_model_follow(struct dmn_board_model *bm, uint64_t now_ns)
{
    if (bm->route->hop_count == 0 || !bm->of->report) {
        bm->ready = 0;
        for (size_t i = 0; i < PIXFMT_COUNT; i++) {
            if (bm->away[i]) {
                dmn_away_close(bm->away[i]);
            }
        }
    } else if (bm->state.number && !bm->model->leaving) {
        for (size_t i = 0; i < PIXFMT_COUNT; i++) {
            if (bm->away[i]) {
                dmn_away_want(bm->away[i], now_ns);
            }
        }
    }
    update(bm);
}

static void on_unwanted(struct dmn_board_model *bm)
{
    dmn_board_model_follow(bm, base_now_ns());
}

/* Takes what the newest report says of the route. */
static void take_state(struct dmn_board_model *bm)
{
    const struct brd_route_state *now =
        dmn_route_state(bm->of->report, bm->model->name, bm->route->number);
    const struct brd_route_state *before =
        dmn_route_state(bm->of->report, bm->model->name, bm->ready);

    bm->state = now ? *now : (struct brd_route_state){0};
    if (now && now->phase == BRD_READY) {
        bm->ready = now->number;
    } else if (failed(bm) || (before && before->phase == BRD_FAILED)) {
        bm->ready = 0;
    }
}

void dmn_board_model_report(struct dmn_board_model *bm, uint64_t now_ns)
{
    take_state(bm);
    update(bm);
    if (!bm->model->leaving) {
        dmn_spread_report(bm, now_ns);
    }
    dmn_board_model_follow(bm, now_ns);
    if (bm->serving) {
        dmn_model_collect(bm->model); /* the window may be wider */
    }
}

/* ---- life ---- */

struct dmn_board_model *dmn_board_model_new(struct dmn_boards *b, struct dmn_model *m,
                                            const char *config)
{
    struct dmn_board_model *bm = calloc(1, sizeof(*bm));

    if (!bm) {
        return NULL;
    }
    *bm = (struct dmn_board_model){
        .elsewhere = {.takes = takes, .offer = offer, .cancel = cancel, .depth = depth},
        .of = b,
        .model = m,
        .unwanted = on_unwanted};
    LIST_INSERT_HEAD(&b->models, bm, linked);
    bm->route = calloc(1, sizeof(*bm->route));
    bm->config = strdup(config);
    bm->away[0] = dmn_away_new(m, PIXFMT_TENSOR, &bm->elsewhere, on_away_changed, bm);
    if (!bm->route || !bm->config || !bm->away[0] || dmn_spread_init(bm) < 0) {
        return dmn_board_model_free(bm, true);
    }
    m->elsewhere = &bm->elsewhere;
    return bm;
}

struct dmn_board_model *dmn_board_model_free(struct dmn_board_model *bm, bool ends)
{
    if (!ends) {
        bm->route->hop_count = 0;
        dmn_board_model_follow(bm, base_now_ns());
    }
    bm->of->routes_changed = true;
    bm->model->elsewhere = NULL;
    LIST_REMOVE(bm, linked);
    dmn_auto_deinit(bm);
    for (size_t i = 0; i < PIXFMT_COUNT; i++) {
        dmn_away_free(bm->away[i]);
    }
    free(bm->route);
    free(bm->config);
    free(bm);
    return NULL;
}
