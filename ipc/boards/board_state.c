/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/board_state.h"

#include "ipc/boards/board_json.h"

#define CORES_MAX 1024
#define KHZ_MAX 1e8
#define CAPACITY_MAX 1024.0
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
const struct brd_object brd_state_object = {state_fields, base_array_count(state_fields) - 2,
                                            state_is_valid};
const struct brd_object brd_board_object = {BRD_OBJECT(state_fields), board_is_valid};

json_t *brd_state_json(const struct brd_state *s)
{
    return brd_put(&brd_state_object, s);
}

int brd_state_read(const json_t *j, struct brd_state *ret)
{
    *ret = (struct brd_state){0};
    if (!json_is_object(j) || !brd_get(&brd_state_object, j, ret) || !state_is_valid(ret, 0)) {
        brd_state_deinit(ret);
        return -EBADMSG;
    }
    return 0;
}
