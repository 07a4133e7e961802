/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/board_state.h"

#include "base/base.h"
#include "ipc/boards/board_json.h"

#define CORES_MAX 1024
#define KHZ_MAX 1e8
#define CAPACITY_MAX 1024.0
#define NS_MAX 1e15
#define BYTES_MAX 1e15

static void free_costs(struct brd_costs *c)
{
    for (size_t i = 0; c && i < c->row_count; i++) {
        free(c->row[i].ns);
    }
    free(c);
}

void brd_state_deinit(struct brd_state *s)
{
    for (size_t i = 0; i < s->costs_count; i++) {
        free_costs(s->costs[i]);
    }
    *s = (struct brd_state){0};
}

static json_t *ep_json(const struct brd_ep *e)
{
    return json_pack("{s:s, s:I, s:f, s:f, s:f}", "name", e->name, "cores", (json_int_t)e->cores,
                     "speed", e->speed, "max_khz", e->max_khz, "capacity", e->capacity);
}

static json_t *way_json(const struct brd_way *w)
{
    json_t *v = json_pack("{s:s, s:b}", "board", w->print, "up", w->up);

    if (v && w->measured) {
        json_object_set_new(v, "ns", json_real(w->ns));
        json_object_set_new(v, "ns_per_byte", json_real(w->ns_per_byte));
    }
    return v;
}

static json_t *row_json(const struct brd_cost_row *r, uint32_t units)
{
    json_t *ns = json_array();

    for (uint32_t u = 0; u < units; u++) {
        json_array_append_new(ns, r->ns[u] > 0 ? json_real(r->ns[u]) : json_null());
    }
    return json_pack("{s:I, s:I, s:o}", "ep", (json_int_t)r->ep, "width", (json_int_t)r->width,
                     "ns", ns);
}

static json_t *costs_json(const struct brd_costs *c)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < c->row_count; i++) {
        json_array_append_new(rows, row_json(&c->row[i], c->unit_count));
    }
    return json_pack("{s:s, s:I, s:I, s:o}", "content", c->content, "first_unit",
                     (json_int_t)c->first_unit, "units", (json_int_t)c->unit_count, "rows", rows);
}

json_t *brd_state_json(const struct brd_state *s)
{
    json_t *eps = json_array(), *ways = json_array(), *costs = json_array();

    for (size_t i = 0; i < s->ep_count; i++) {
        json_array_append_new(eps, ep_json(&s->ep[i]));
    }
    for (size_t i = 0; i < s->way_count; i++) {
        json_array_append_new(ways, way_json(&s->way[i]));
    }
    for (size_t i = 0; i < s->costs_count; i++) {
        json_array_append_new(costs, costs_json(s->costs[i]));
    }
    return json_pack("{s:s, s:b, s:s, s:f, s:o, s:o, s:o}", "board", s->print, "known", s->known,
                     "version", s->version, "memory_bytes", s->memory_bytes, "eps", eps, "links",
                     ways, "costs", costs);
}

bool brd_is_shown(const char *text)
{
    while (*text >= ' ' && *text <= '~') {
        text++;
    }
    return *text == '\0';
}

static bool read_ep(const json_t *j, struct brd_ep *ret)
{
    json_int_t cores;

    if (!brd_get_text(j, "name", ret->name, sizeof(ret->name)) || !*ret->name ||
        !brd_is_shown(ret->name) || !brd_get_count(j, "cores", 1, CORES_MAX, &cores) ||
        !brd_get_number(j, "speed", 1, &ret->speed) || ret->speed <= 0 ||
        !brd_get_number(j, "max_khz", KHZ_MAX, &ret->max_khz) ||
        !brd_get_number(j, "capacity", CAPACITY_MAX, &ret->capacity)) {
        return false;
    }
    ret->cores = (uint32_t)cores;
    return true;
}

static bool read_way(const json_t *j, struct brd_way *ret)
{
    ret->up = json_is_true(json_object_get(j, "up"));
    ret->measured = json_object_get(j, "ns") != NULL;
    return brd_get_print(j, "board", false, ret->print) &&
           brd_get_number(j, "ns", NS_MAX, &ret->ns) &&
           brd_get_number(j, "ns_per_byte", NS_MAX, &ret->ns_per_byte);
}

/* Return: 0, -EBADMSG, -ENOMEM. */
static int read_row(const json_t *j, const struct brd_state *s, uint32_t units,
                    struct brd_cost_row *ret)
{
    const json_t *ns;
    json_int_t ep, width;

    if (!brd_get_count(j, "ep", 0, (json_int_t)s->ep_count - 1, &ep) ||
        !brd_get_count(j, "width", 1, s->ep[ep].cores, &width) ||
        !brd_get_list(j, "ns", units, &ns) || json_array_size(ns) != units) {
        return -EBADMSG;
    }
    ret->ep = (uint32_t)ep;
    ret->width = (uint32_t)width;
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
    json_int_t first, units;
    size_t i;

    if (!brd_get_text(j, "content", ret->content, sizeof(ret->content)) ||
        !brd_get_count(j, "first_unit", 0, BRD_COST_UNITS_MAX - 1, &first) ||
        !brd_get_count(j, "units", 1, BRD_COST_UNITS_MAX - first, &units) ||
        !brd_get_list(j, "rows", BRD_COST_ROWS_MAX, &rows)) {
        return -EBADMSG;
    }
    ret->first_unit = (uint32_t)first;
    ret->unit_count = (uint32_t)units;
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

static bool read_eps_and_ways(const json_t *j, struct brd_state *s)
{
    const json_t *eps, *ways, *v;
    size_t i;

    if (!brd_get_list(j, "eps", BRD_EPS_MAX, &eps) || !brd_get_list(j, "links", BRD_MAX, &ways)) {
        return false;
    }
    json_array_foreach(eps, i, v)
    {
        if (!read_ep(v, &s->ep[s->ep_count++])) {
            return false;
        }
    }
    json_array_foreach(ways, i, v)
    {
        if (!read_way(v, &s->way[s->way_count++])) {
            return false;
        }
    }
    return true;
}

static int read_all_costs(const json_t *j, struct brd_state *s)
{
    const json_t *costs, *v;
    size_t i;

    if (!brd_get_list(j, "costs", BRD_COSTS_MAX, &costs)) {
        return -EBADMSG;
    }
    json_array_foreach(costs, i, v)
    {
        struct brd_costs *c = calloc(1, sizeof(*c));
        int rc = c ? read_costs(v, s, c) : -ENOMEM;

        if (rc) {
            free_costs(c);
            return rc;
        }
        s->costs[s->costs_count++] = c;
    }
    return 0;
}

int brd_state_read(const json_t *j, struct brd_state *ret)
{
    struct brd_state s = {.known = json_is_true(json_object_get(j, "known"))};
    int rc = -EBADMSG;

    brd_state_deinit(ret);
    if (json_is_object(j) && brd_get_print(j, "board", true, s.print) &&
        brd_get_optional_text(j, "version", s.version, sizeof(s.version)) &&
        brd_is_shown(s.version) && brd_get_number(j, "memory_bytes", BYTES_MAX, &s.memory_bytes) &&
        read_eps_and_ways(j, &s)) {
        rc = read_all_costs(j, &s);
    }
    if (rc) {
        brd_state_deinit(&s);
        return rc;
    }
    *ret = s;
    return 0;
}
