/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/board_state.h"

#include <math.h>

#include "ipc/boards/board_json.h"

#define CORES_MAX 1024
#define KHZ_MAX 1e8
#define CAPACITY_MAX 1024.0
#define NS_MAX 1e15
#define BYTES_MAX 1e15

void brd_costs_free(struct brd_costs *c)
{
    for (size_t i = 0; c && i < c->row_count; i++) {
        free(c->row[i].ns);
    }
    free(c);
}

void brd_costs_drop(struct brd_state *s)
{
    while (s->costs_count > 0) {
        brd_costs_free(s->costs[--s->costs_count]);
    }
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

static const struct brd_field row_fields[] = {
    {"ep", BRD_COUNT, BRD_AT(brd_cost_row, ep), .most = BRD_EPS_MAX - 1},
    {"width", BRD_COUNT, BRD_AT(brd_cost_row, width), .least = 1, .most = CORES_MAX},
};
static const struct brd_object row = {BRD_OBJECT(row_fields)};

static const struct brd_field costs_fields[] = {
    {"content", BRD_TEXT, BRD_AT(brd_costs, content)},
    {"first_unit", BRD_COUNT, BRD_AT(brd_costs, first_unit), .most = BRD_COST_UNITS_MAX - 1},
    {"units", BRD_COUNT, BRD_AT(brd_costs, unit_count), .least = 1, .most = BRD_COST_UNITS_MAX},
};
static const struct brd_object costs = {BRD_OBJECT(costs_fields)};

/* All but the costs. */
static const struct brd_field state_fields[] = {
    {"board", BRD_PRINT, BRD_AT(brd_state, print), .may_lack = true},
    {"known", BRD_FLAG, BRD_AT(brd_state, known)},
    {"version", BRD_SHOWN, BRD_AT(brd_state, version), .may_lack = true},
    {"memory_bytes", BRD_NUMBER, BRD_AT(brd_state, memory_bytes), .most = BYTES_MAX},
    {"eps", BRD_ITEMS(brd_state, ep, ep_count), .most = BRD_EPS_MAX, .item = &ep},
    {"links", BRD_ITEMS(brd_state, way, way_count), .most = BRD_MAX, .item = &way},
};
static const struct brd_object state = {BRD_OBJECT(state_fields)};

/* ---- costs ---- */

static json_t *row_json(const struct brd_cost_row *r, uint32_t units)
{
    json_t *ns = json_array(), *j = brd_put(&row, r);

    for (uint32_t u = 0; u < units; u++) {
        json_array_append_new(ns, r->ns[u] > 0 ? json_real(r->ns[u]) : json_null());
    }
    json_object_set_new(j, "ns", ns);
    return j;
}

static json_t *costs_json(const struct brd_costs *c)
{
    json_t *rows = json_array(), *j = brd_put(&costs, c);

    for (size_t i = 0; i < c->row_count; i++) {
        json_array_append_new(rows, row_json(&c->row[i], c->unit_count));
    }
    json_object_set_new(j, "rows", rows);
    return j;
}

json_t *brd_state_json(const struct brd_state *s)
{
    json_t *all = json_array(), *j = brd_put(&state, s);

    for (size_t i = 0; i < s->costs_count; i++) {
        json_array_append_new(all, costs_json(s->costs[i]));
    }
    json_object_set_new(j, "costs", all);
    return j;
}

/* Return: 0, -EBADMSG, -ENOMEM. */
static int read_row(const json_t *j, const struct brd_state *s, uint32_t units,
                    struct brd_cost_row *ret)
{
    const json_t *ns;

    if (!brd_get(&row, j, ret) || ret->ep >= s->ep_count || ret->width > s->ep[ret->ep].cores ||
        !brd_get_list(j, "ns", units, &ns) || json_array_size(ns) != units) {
        return -EBADMSG;
    }
    ret->ns = malloc(units * sizeof(*ret->ns));
    if (!ret->ns) {
        return -ENOMEM;
    }
    for (uint32_t u = 0; u < units; u++) {
        const json_t *v = json_array_get(ns, u);
        double x = json_number_value(v);

        ret->ns[u] = json_is_number(v) && isfinite(x) && x > 0 && x <= NS_MAX ? x : -1;
    }
    return 0;
}

static int read_costs(const json_t *j, const struct brd_state *s, struct brd_costs *ret)
{
    const json_t *rows, *v;
    size_t i;

    if (!brd_get(&costs, j, ret) || ret->first_unit + ret->unit_count > BRD_COST_UNITS_MAX ||
        !brd_get_list(j, "rows", BRD_COST_ROWS_MAX, &rows)) {
        return -EBADMSG;
    }
    json_array_foreach(rows, i, v)
    {
        int rc = read_row(v, s, ret->unit_count, &ret->row[ret->row_count]);

        if (rc) {
            return rc;
        }
        ret->row_count++;
    }
    return 0;
}

static int read_all_costs(const json_t *j, struct brd_state *s)
{
    const json_t *all, *v;
    size_t i;

    if (!brd_get_list(j, "costs", BRD_COSTS_MAX, &all)) {
        return -EBADMSG;
    }
    json_array_foreach(all, i, v)
    {
        struct brd_costs *c = calloc(1, sizeof(*c));
        int rc = c ? read_costs(v, s, c) : -ENOMEM;

        if (rc) {
            brd_costs_free(c);
            return rc;
        }
        s->costs[s->costs_count++] = c;
    }
    return 0;
}

int brd_state_read(const json_t *j, struct brd_state *ret)
{
    struct brd_state s = {0};
    int rc = -EBADMSG;

    brd_state_deinit(ret);
    if (json_is_object(j) && brd_get(&state, j, &s)) {
        rc = read_all_costs(j, &s);
    }
    if (rc) {
        brd_state_deinit(&s);
        return rc;
    }
    *ret = s;
    return 0;
}
