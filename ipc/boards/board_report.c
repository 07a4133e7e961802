/* SPDX-License-Identifier: Apache-2.0 */
/* The report of piped-link to piped. */

#include "ipc/boards/board_json.h"
#include "ipc/boards/board_state.h"

#define FRAMES_MAX 0x1p62
#define NS_MAX 1e15

static const char *const phases[] = {
    [BRD_PREPARING] = "preparing", [BRD_READY] = "ready", [BRD_FAILED] = "failed"};

const char *brd_phase_name(enum brd_route_phase phase)
{
    return phases[phase];
}

static const struct brd_field time_field = {NULL, BRD_TIME, .most = NS_MAX};
static const struct brd_object time_item = {&time_field, 1, NULL};

static const struct brd_field route_fields[] = {
    {"model", BRD_TEXT, BRD_AT(brd_route_state, model)},
    {"number", BRD_COUNT, BRD_AT(brd_route_state, number), .most = UINT32_MAX},
    {"phase", BRD_WORD, BRD_AT(brd_route_state, phase), .most = BRD_FAILED, .words = phases},
    {"why", BRD_TEXT, BRD_AT(brd_route_state, why), .may_lack = true},
    {"board", BRD_PRINT, BRD_AT(brd_route_state, board), .may_lack = true},
    {"to", BRD_PRINT, BRD_AT(brd_route_state, to), .may_lack = true},
    {"pictures", BRD_FLAG, BRD_AT(brd_route_state, pictures)},
    {"frames", BRD_COUNT, BRD_AT(brd_route_state, frames), .may_lack = true, .most = UINT32_MAX},
    {"window", BRD_COUNT, BRD_AT(brd_route_state, window), .may_lack = true, .most = UINT32_MAX},
    {"answered", BRD_COUNT, BRD_AT(brd_route_state, answered), .most = FRAMES_MAX},
    {"resent", BRD_COUNT, BRD_AT(brd_route_state, resent), .most = FRAMES_MAX},
    {"late", BRD_COUNT, BRD_AT(brd_route_state, late), .most = FRAMES_MAX},
    {"dropped", BRD_COUNT, BRD_AT(brd_route_state, dropped), .may_lack = true, .most = FRAMES_MAX},
    {"service_ns", BRD_LIST, .at = offsetof(struct brd_route_state, service_ns),
     .bytes = sizeof(double), .most = BRD_HOPS_MAX, .item = &time_item},
};
static const struct brd_object route_state = {BRD_OBJECT(route_fields)};

static const struct brd_field report_fields[] = {
    {"routes", BRD_ITEMS(brd_link_report_all, route, route_count), .most = BRD_ROUTES_MAX,
     .item = &route_state},
    {"self", BRD_STRUCT, BRD_AT(brd_link_report_all, self), .item = &brd_state_object},
    {"boards", BRD_ITEMS(brd_link_report_all, board, board_count), .most = BRD_MAX,
     .item = &brd_board_object},
};
static const struct brd_object report = {BRD_OBJECT(report_fields)};

json_t *brd_report_all_json(const struct brd_link_report_all *r)
{
    return brd_put(&report, r);
}

int brd_report_all_read(const json_t *j, struct brd_link_report_all *ret)
{
    *ret = (struct brd_link_report_all){0};
    if (!brd_get(&report, j, ret)) {
        brd_report_all_deinit(ret);
        return -EBADMSG;
    }
    return 0;
}

void brd_report_all_deinit(struct brd_link_report_all *r)
{
    brd_state_deinit(&r->self);
    for (size_t i = 0; i < r->board_count; i++) {
        brd_state_deinit(&r->board[i]);
    }
    *r = (struct brd_link_report_all){0};
}

/* ---- not too long ---- */

/* @ret: borrows from @s, without the @oldest costs. */
static void without(const struct brd_state *s, size_t oldest, struct brd_state *ret)
{
    *ret = *s;
    oldest = base_min(oldest, s->costs_count);
    ret->costs_count -= oldest;
    ret->costs = oldest > 0 ? s->costs + oldest : s->costs;
}

/* Return: @j if it fits, or may be as long as it is; else NULL. */
static json_t *keep(json_t *j, size_t bytes, bool anyway)
{
    if (j && !anyway && json_dumpb(j, NULL, 0, JSON_COMPACT) > bytes) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

json_t *brd_state_json_within(const struct brd_state *s, size_t bytes)
{
    base_autofree struct brd_state *part = malloc(sizeof(*part));
    json_t *j = NULL;

    for (size_t oldest = 0; part && !j && oldest <= BRD_COSTS_MAX; oldest++) {
        without(s, oldest, part);
        j = keep(brd_state_json(part), bytes, oldest == BRD_COSTS_MAX);
    }
    return j;
}

json_t *brd_report_all_json_within(const struct brd_link_report_all *r, size_t bytes)
{
    base_autofree struct brd_link_report_all *part = malloc(sizeof(*part));
    json_t *j = NULL;

    for (size_t oldest = 0; part && !j && oldest <= BRD_COSTS_MAX; oldest++) {
        *part = *r;
        without(&r->self, oldest, &part->self);
        for (size_t i = 0; i < r->board_count; i++) {
            without(&r->board[i], oldest, &part->board[i]);
        }
        j = keep(brd_report_all_json(part), bytes, oldest == BRD_COSTS_MAX);
    }
    return j;
}
