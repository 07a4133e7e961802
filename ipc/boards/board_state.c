/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/board_state.h"

#include "ipc/boards/board_json.h"

#define CORES_MAX 1024
#define FRAMES_MAX 0x1p62
#define KHZ_MAX 1e8
#define CAPACITY_MAX 1024.0
#define WATTS_MAX 1e4
#define NS_MAX 1e15
#define BYTES_MAX 1e15

void brd_costs_deinit(struct brd_costs *c)
{
    for (size_t i = 0; i < c->row_count; i++) {
        free(c->row[i].ns);
    }
}

void brd_costs_drop(struct brd_state *s)
{
    while (s->costs_count > 0) {
        brd_costs_deinit(&s->costs[--s->costs_count]);
    }
    free(base_take(s->costs));
}

void brd_state_deinit(struct brd_state *s)
{
    brd_costs_drop(s);
    *s = (struct brd_state){0};
}

static bool ep_is_valid(const void *eps, size_t i)
{
    const struct brd_ep *e = (const struct brd_ep *)eps + i;

    return *e->name && e->speed > 0;
}

static const struct brd_field ep_fields[] = {
    {"name", BRD_SHOWN, BRD_AT(brd_ep, name)},
    {"cores", BRD_COUNT, BRD_AT(brd_ep, cores), .least = 1, .most = CORES_MAX},
    {"speed", BRD_NUMBER, BRD_AT(brd_ep, speed), .most = 1},
    {"max_khz", BRD_NUMBER, BRD_AT(brd_ep, max_khz), .most = KHZ_MAX},
    {"capacity", BRD_NUMBER, BRD_AT(brd_ep, capacity), .most = CAPACITY_MAX},
    {"watts", BRD_NUMBER, BRD_AT(brd_ep, watts), .most = WATTS_MAX},
};
static const struct brd_object ep = {BRD_OBJECT(ep_fields), ep_is_valid};

static const struct brd_field way_fields[] = {
    {"board", BRD_PRINT, BRD_AT(brd_way, print)},
    {"up", BRD_FLAG, BRD_AT(brd_way, up)},
    {"ns", BRD_NUMBER, BRD_AT(brd_way, ns), .most = NS_MAX,
     .only_if = offsetof(struct brd_way, measured)},
    {"ns_per_byte", BRD_NUMBER, BRD_AT(brd_way, ns_per_byte), .most = NS_MAX,
     .only_if = offsetof(struct brd_way, measured)},
};
static const struct brd_object way = {BRD_OBJECT(way_fields)};

static const struct brd_field ns_field = {NULL, BRD_TIME, .most = NS_MAX};
static const struct brd_object ns = {&ns_field, 1, NULL};

static const struct brd_field row_fields[] = {
    {"ep", BRD_COUNT, BRD_AT(brd_cost_row, ep), .most = BRD_EPS_MAX - 1},
    {"width", BRD_COUNT, BRD_AT(brd_cost_row, width), .least = 1, .most = CORES_MAX},
    {"ns", BRD_ITEMS(brd_cost_row, ns, units), .most = BRD_COST_UNITS_MAX, .item = &ns,
     .owned = true},
};
static const struct brd_object row = {BRD_OBJECT(row_fields)};

static bool costs_are_valid(const void *costs, size_t i)
{
    const struct brd_costs *c = (const struct brd_costs *)costs + i;
    bool valid = c->first_unit + c->unit_count <= BRD_COST_UNITS_MAX;

    for (size_t r = 0; r < c->row_count; r++) {
        valid &= c->row[r].units == c->unit_count;
    }
    return valid;
}

static const struct brd_field costs_fields[] = {
    {"content", BRD_TEXT, BRD_AT(brd_costs, content)},
    {"first_unit", BRD_COUNT, BRD_AT(brd_costs, first_unit), .most = BRD_COST_UNITS_MAX - 1},
    {"units", BRD_COUNT, BRD_AT(brd_costs, unit_count), .least = 1, .most = BRD_COST_UNITS_MAX},
    {"rows", BRD_ITEMS(brd_costs, row, row_count), .most = BRD_COST_ROWS_MAX, .item = &row},
};
static const struct brd_object costs = {BRD_OBJECT(costs_fields), costs_are_valid};

/* Rows of costs are of an EP that has so many cores. */
static bool state_is_valid(const void *states, size_t i)
{
    const struct brd_state *s = (const struct brd_state *)states + i;
    bool valid = true;

    for (size_t k = 0; k < s->costs_count; k++) {
        for (size_t r = 0; r < s->costs[k].row_count; r++) {
            const struct brd_cost_row *row_of = &s->costs[k].row[r];

            valid &= row_of->ep < s->ep_count && row_of->width <= s->ep[row_of->ep].cores;
        }
    }
    return valid;
}

static bool board_is_valid(const void *boards, size_t i)
{
    return *((const struct brd_state *)boards)[i].print && state_is_valid(boards, i);
}

static const struct brd_field state_fields[] = {
    {"board", BRD_PRINT, BRD_AT(brd_state, print), .may_lack = true},
    {"known", BRD_FLAG, BRD_AT(brd_state, known)},
    {"version", BRD_SHOWN, BRD_AT(brd_state, version), .may_lack = true},
    {"memory_bytes", BRD_NUMBER, BRD_AT(brd_state, memory_bytes), .most = BYTES_MAX},
    {"eps", BRD_ITEMS(brd_state, ep, ep_count), .most = BRD_EPS_MAX, .item = &ep},
    {"links", BRD_ITEMS(brd_state, way, way_count), .most = BRD_MAX, .item = &way},
    {"costs", BRD_ITEMS(brd_state, costs, costs_count), .most = BRD_COSTS_MAX, .item = &costs,
     .owned = true},
    /* of another board, in a report */
    {"name", BRD_TEXT, BRD_AT(brd_state, name)},
    {"up", BRD_FLAG, BRD_AT(brd_state, up)},
};
static const struct brd_object board_state = {state_fields, base_array_count(state_fields) - 2,
                                              state_is_valid};
static const struct brd_object other_board = {BRD_OBJECT(state_fields), board_is_valid};

json_t *brd_state_json(const struct brd_state *s)
{
    return brd_put(&board_state, s);
}

int brd_state_read(const json_t *j, struct brd_state *ret)
{
    *ret = (struct brd_state){0};
    if (!json_is_object(j) || !brd_get(&board_state, j, ret) || !state_is_valid(ret, 0)) {
        brd_state_deinit(ret);
        return -EBADMSG;
    }
    return 0;
}

/* ---- the report of piped-link to piped ---- */

static const char *const phases[] = {
    [BRD_PREPARING] = "preparing", [BRD_READY] = "ready", [BRD_FAILED] = "failed"};

const char *brd_phase_name(enum brd_route_phase phase)
{
    return phases[phase];
}

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
     .bytes = sizeof(double), .most = BRD_HOPS_MAX, .item = &ns},
};
static const struct brd_object route_state = {BRD_OBJECT(route_fields)};

static const struct brd_field report_fields[] = {
    {"routes", BRD_ITEMS(brd_link_report_all, route, route_count), .most = BRD_ROUTES_MAX,
     .item = &route_state},
    {"self", BRD_STRUCT, BRD_AT(brd_link_report_all, self), .item = &board_state},
    {"boards", BRD_ITEMS(brd_link_report_all, board, board_count), .most = BRD_MAX,
     .item = &other_board},
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
