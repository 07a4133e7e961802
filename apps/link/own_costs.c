/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/own_costs.h"

#include <math.h>

#include "apps/link/common/daemon_call.h"
#include "apps/link/hop/segments.h"
#include "base/base.h"

#define ASK_NS (5 * BASE_NS_PER_S)
#define SMALL_CHANGE 0.05

static void free_costs(struct brd_costs *c)
{
    for (size_t i = 0; c && i < c->row_count; i++) {
        free(c->row[i].ns);
    }
    free(c);
}

void own_costs_drop(struct brd_state *state)
{
    for (size_t i = 0; i < state->costs_count; i++) {
        free_costs(state->costs[i]);
    }
    state->costs_count = 0;
}

/* One (EP, width): only what was measured. Return: false: nothing was, or out of memory. */
static bool read_row(const json_t *ns, const json_t *sources, uint32_t units,
                     struct brd_cost_row *ret)
{
    bool any = false;

    ret->ns = malloc(units * sizeof(*ret->ns));
    for (uint32_t u = 0; ret->ns && u < units; u++) {
        const char *source = json_string_value(json_array_get(sources, u));
        double x = json_number_value(json_array_get(ns, u));
        bool measured = source && strcmp(source, "measured") == 0 && isfinite(x) && x > 0;

        ret->ns[u] = measured ? x : -1;
        any |= measured;
    }
    if (!any) {
        free(ret->ns);
    }
    return any;
}

static struct brd_costs *read_costs(const struct own_costs *o, const json_t *problem)
{
    struct brd_costs *c = calloc(1, sizeof(*c));
    const json_t *costs = json_object_get(problem, "costs");
    const json_t *sources = json_object_get(problem, "sources");

    if (!c) {
        return NULL;
    }
    memcpy(c->content, o->content, sizeof(c->content));
    c->first_unit = o->first_unit;
    c->unit_count = o->unit_count;
    for (uint32_t ep = 0; ep < o->state->ep_count; ep++) {
        const char *name = o->state->ep[ep].name;

        for (uint32_t w = 1; w <= o->state->ep[ep].cores && c->row_count < BRD_COST_ROWS_MAX; w++) {
            struct brd_cost_row *row = &c->row[c->row_count];
            char key[12];

            snprintf(key, sizeof(key), "%u", w);
            *row = (struct brd_cost_row){.ep = ep, .width = w};
            c->row_count +=
                read_row(json_object_get(json_object_get(costs, name), key),
                         json_object_get(json_object_get(sources, name), key), c->unit_count, row);
        }
    }
    if (c->row_count == 0) {
        free_costs(c);
        return NULL;
    }
    return c;
}

static bool same_place(const struct brd_costs *a, const struct brd_costs *b)
{
    return strcmp(a->content, b->content) == 0 && a->first_unit == b->first_unit &&
           a->unit_count == b->unit_count;
}

static bool nearly_same(const struct brd_costs *a, const struct brd_costs *b)
{
    if (a->row_count != b->row_count) {
        return false;
    }
    for (size_t i = 0; i < a->row_count; i++) {
        for (uint32_t u = 0; u < a->unit_count; u++) {
            double x = a->row[i].ns[u], y = b->row[i].ns[u];

            if (a->row[i].ep != b->row[i].ep || a->row[i].width != b->row[i].width ||
                fabs(x - y) > SMALL_CHANGE * fmax(fabs(x), fabs(y))) {
                return false;
            }
        }
    }
    return true;
}

/* The newest take the place of the oldest. Return: is it news? */
static bool keep(struct brd_state *s, struct brd_costs *c)
{
    size_t i = 0;

    while (i < s->costs_count && !same_place(s->costs[i], c)) {
        i++;
    }
    if (i < s->costs_count && nearly_same(s->costs[i], c)) {
        free_costs(c);
        return false;
    }
    if (i == BRD_COSTS_MAX) {
        i = 0;
    }
    if (i < s->costs_count) {
        free_costs(s->costs[i]);
        memmove(&s->costs[i], &s->costs[i + 1], (--s->costs_count - i) * sizeof(s->costs[0]));
    }
    s->costs[s->costs_count++] = c;
    return true;
}

static void costs_came(void *arg, const char *error, const json_t *parameters)
{
    struct own_costs *o = arg;
    struct brd_costs *c;

    o->waits = false;
    c = error ? NULL : read_costs(o, json_object_get(parameters, "problem"));
    if (c) {
        o->changed |= keep(o->state, c);
    }
}

bool own_costs_go(struct own_costs *c, struct link *l, struct brd_state *state,
                  struct daemon_conn *conn, uint64_t now_ns)
{
    bool changed = c->changed;
    const struct segment *s;

    c->state = state;
    c->changed = false;
    if (c->waits || now_ns < c->next_ns || state->ep_count == 0) {
        return changed;
    }
    do {
        s = segments_each(l, &c->at);
    } while (s && s->last_unit >= BRD_COST_UNITS_MAX);
    if (!s) {
        c->at = 0;
        c->next_ns = now_ns + ASK_NS;
        return changed;
    }
    memcpy(c->content, s->of.content, sizeof(c->content));
    c->first_unit = s->first_unit;
    c->unit_count = s->last_unit - s->first_unit + 1;
    c->waits = daemon_conn_call(conn, "io.piped.Costs", json_pack("{s:s}", "model", s->name), false,
                                costs_came, c) == 0;
    return changed;
}
