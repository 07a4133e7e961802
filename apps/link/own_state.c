/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: what this board says of itself, to other boards and to its daemon. */
#include <math.h>

#include "apps/link/common/daemon_call.h"
#include "apps/link/common/link.h"
#include "apps/link/hop/hop.h"
#include "base/base.h"
#include "base/json_text.h"

#define STATUS_NS (10 * BASE_NS_PER_S)
#define CALL_NS (1 * BASE_NS_PER_S)   /* the same, is it alive? while segments are used */
#define SILENT_NS (3 * BASE_NS_PER_S) /* an answer takes much less */
#define TELL_NS (1 * BASE_NS_PER_S)   /* at most that often */
/* What has not changed is told again: the other board may have lacked memory to read it. */
#define TELL_AGAIN_NS (15 * BASE_NS_PER_S)
#define SMALL_CHANGE 0.1 /* of a link's figures, and of watts: not told */
#define WATTS_MAX 1e4
#define COSTS_NS (5 * BASE_NS_PER_S)
#define SMALL_COST_CHANGE 0.05

/* The segment whose costs were asked for. */
struct own_costs {
    uint64_t next_ns;
    size_t at; /* of segments_each() */
    bool waits;
    char content[BRD_CONTENT_BYTES];
    uint32_t first_unit, unit_count;
};

struct own_state {
    struct link *link;
    struct daemon_conn conn;
    unsigned conn_ups; /* of the connection that was asked last */
    uint64_t status_ns, call_ns, tell_ns, again_ns;
    bool changed;
    uint32_t owed; /* bits of boards that have not been told what changed */
    struct brd_state state;
    struct own_costs costs;
};

struct own_state *own_state_new(struct link *l)
{
    struct own_state *o = calloc(1, sizeof(*o));

    if (o) {
        o->link = l;
        daemon_conn_init(&o->conn, l->control_path);
        snprintf(o->state.print, sizeof(o->state.print), "%s", l->print);
        snprintf(o->state.name, sizeof(o->state.name), "%.*s", BRD_NAME_BYTES - 1, l->name);
        snprintf(o->state.version, sizeof(o->state.version), "%s", PIPED_VERSION);
        o->state.up = true;
    }
    return o;
}

struct own_state *own_state_free(struct own_state *o)
{
    if (o) {
        daemon_conn_deinit(&o->conn);
        brd_state_deinit(&o->state);
        free(o);
    }
    return NULL;
}

const struct brd_state *own_state(const struct own_state *o)
{
    return &o->state;
}

struct pollfd own_state_poll(const struct own_state *o)
{
    return daemon_conn_poll(&o->conn);
}

/* ---- measured costs of the segments that the daemon here serves ---- */

/* One (EP, width): only what was measured. Return: false: nothing was, or out of memory. */
static bool read_row(const json_t *ns, const json_t *sources, struct brd_cost_row *ret)
{
    bool any = false;

    ret->ns = malloc(ret->units * sizeof(*ret->ns));
    for (uint32_t u = 0; ret->ns && u < ret->units; u++) {
        const char *source = json_string_value(json_array_get(sources, u));
        double x = json_number_value(json_array_get(ns, u));
        bool measured = source && strcmp(source, "measured") == 0 && isfinite(x) && x > 0;

        ret->ns[u] = measured ? x : 0;
        any |= measured;
    }
    if (!any) {
        free(ret->ns);
    }
    return any;
}

/* Return: false: nothing was measured. */
static bool read_costs(const struct own_state *o, const json_t *problem, struct brd_costs *ret)
{
    const json_t *costs = json_object_get(problem, "costs");
    const json_t *sources = json_object_get(problem, "sources");

    *ret = (struct brd_costs){.first_unit = o->costs.first_unit, .unit_count = o->costs.unit_count};
    memcpy(ret->content, o->costs.content, sizeof(ret->content));
    for (uint32_t ep = 0; ep < o->state.ep_count; ep++) {
        const char *name = o->state.ep[ep].name;

        for (uint32_t w = 1; w <= o->state.ep[ep].cores && ret->row_count < BRD_COST_ROWS_MAX;
             w++) {
            struct brd_cost_row *row = &ret->row[ret->row_count];
            char key[12];

            snprintf(key, sizeof(key), "%u", w);
            *row = (struct brd_cost_row){.ep = ep, .width = w, .units = ret->unit_count};
            ret->row_count += read_row(json_object_get(json_object_get(costs, name), key),
                                       json_object_get(json_object_get(sources, name), key), row);
        }
    }
    return ret->row_count > 0;
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
                fabs(x - y) > SMALL_COST_CHANGE * base_max(x, y)) {
                return false;
            }
        }
    }
    return true;
}

/* The newest take the place of the oldest. @c: its rows are taken. Return: is it news? */
static bool keep(struct brd_state *s, struct brd_costs *c)
{
    size_t i = 0;

    s->costs = s->costs ? s->costs : calloc(BRD_COSTS_MAX, sizeof(*s->costs));
    while (i < s->costs_count && !same_place(&s->costs[i], c)) {
        i++;
    }
    if (!s->costs || (i < s->costs_count && nearly_same(&s->costs[i], c))) {
        brd_costs_deinit(c);
        return false;
    }
    if (i == BRD_COSTS_MAX) {
        i = 0;
    }
    if (i < s->costs_count) {
        brd_costs_deinit(&s->costs[i]);
        memmove(&s->costs[i], &s->costs[i + 1], (--s->costs_count - i) * sizeof(s->costs[0]));
    }
    s->costs[s->costs_count++] = *c;
    return true;
}

static void costs_came(void *arg, const char *error, const json_t *parameters)
{
    struct own_state *o = arg;
    struct brd_costs c;

    o->costs.waits = false;
    if (!error && read_costs(o, json_object_get(parameters, "problem"), &c)) {
        o->changed |= keep(&o->state, &c);
    }
}

/* Asks for the costs of one segment after the other. */
static void ask_costs(struct own_state *o, uint64_t now_ns)
{
    struct own_costs *c = &o->costs;
    const struct segment *s;

    if (c->waits || now_ns < c->next_ns || o->state.ep_count == 0) {
        return;
    }
    do {
        s = segments_each(o->link, &c->at);
    } while (s && s->last_unit >= BRD_COST_UNITS_MAX);
    if (!s) {
        c->at = 0;
        c->next_ns = now_ns + COSTS_NS;
        return;
    }
    memcpy(c->content, s->of.content, sizeof(c->content));
    c->first_unit = s->first_unit;
    c->unit_count = s->last_unit - s->first_unit + 1;
    c->waits = daemon_conn_call(&o->conn, "io.piped.Costs", json_pack("{s:s}", "model", s->name),
                                false, costs_came, o) == 0;
}

/* ---- its status ---- */

static double number(const json_t *j, const char *key)
{
    double x = json_number_value(json_object_get(j, key));

    return isfinite(x) && x > 0 ? x : 0;
}

static bool read_ep(const json_t *j, struct brd_ep *ret)
{
    const char *name = json_string_value(json_object_get(j, "name"));

    *ret = (struct brd_ep){.cores = (uint32_t)json_array_size(json_object_get(j, "cpus"))};
    if (!name || !*name || strlen(name) >= sizeof(ret->name) || ret->cores == 0) {
        return false;
    }
    strcpy(ret->name, name);
    ret->speed = base_min(number(j, "speed"), 1.0);
    ret->speed = ret->speed > 0 ? ret->speed : 1;
    ret->max_khz = number(j, "max_freq_khz");
    ret->capacity = base_min(number(j, "capacity"), 1024.0);
    ret->watts = base_min(number(j, "watts"), WATTS_MAX);
    return true;
}

static bool differs(double a, double b)
{
    return fabs(a - b) > SMALL_CHANGE * base_max(fabs(a), fabs(b));
}

/* Takes what the daemon tells of its EPs; watts that hardly changed stay as they were told. */
static void take_eps(struct own_state *o, struct brd_ep *ep, size_t count)
{
    bool same = count == o->state.ep_count;

    for (size_t i = 0; i < count && same; i++) {
        double watts = ep[i].watts, before = o->state.ep[i].watts;

        ep[i].watts = before;
        same = memcmp(&ep[i], &o->state.ep[i], sizeof(*ep)) == 0;
        ep[i].watts = differs(watts, before) ? watts : before;
        o->changed |= ep[i].watts != before;
    }
    if (!same) {
        o->changed = true;
        brd_costs_drop(&o->state); /* they name EPs by their index */
    }
    memcpy(o->state.ep, ep, count * sizeof(*ep));
    o->state.ep_count = count;
}

static void status_came(void *arg, const char *error, const json_t *parameters)
{
    struct own_state *o = arg;
    const json_t *status = json_object_get(parameters, "status");
    struct brd_ep ep[BRD_EPS_MAX];
    double memory;
    size_t count = 0;

    if (error) {
        return;
    }
    memset(ep, 0, sizeof(ep));
    json_text_each(json_object_get(status, "eps"), i, j) {
        count += count < BRD_EPS_MAX && read_ep(j, &ep[count]);
    }
    memory = number(json_object_get(status, "memory"), "for_models_bytes");
    o->changed |= !o->state.known || memory != o->state.memory_bytes;
    take_eps(o, ep, count);
    o->state.memory_bytes = memory;
    o->state.known = count > 0;
}

static void look_at_ways(struct link *l, struct own_state *o)
{
    o->changed |= o->state.way_count != l->boards.count;
    o->state.way_count = l->boards.count;
    for (size_t i = 0; i < l->boards.count; i++) {
        struct brd_way *w = &o->state.way[i];
        struct lnk_link_cost cost = {0};
        bool measured = link_cost(l, i, &cost);

        if (w->up != l->peer[i].joined || w->measured != measured ||
            strcmp(w->print, l->peer[i].print) != 0 ||
            (measured && (differs(w->ns, cost.a_ns) || differs(w->ns_per_byte, cost.b_ns)))) {
            memcpy(w->print, l->peer[i].print, sizeof(w->print));
            w->up = l->peer[i].joined;
            w->measured = measured;
            w->ns = cost.a_ns;
            w->ns_per_byte = cost.b_ns;
            o->changed = true;
        }
    }
}

/* Return: the state as text, of malloc(); NULL: out of memory. */
static char *text_of(const struct own_state *o)
{
    json_auto_t *j = brd_state_json_within(&o->state, LNK_BOARD_BYTES);

    return j ? json_text(j, JSON_COMPACT) : NULL;
}

/* Tells boards what they are owed. What cannot be sent now stays owed. */
static void tell(struct link *l, struct own_state *o)
{
    base_autofree char *text = text_of(o);
    struct lnk_message m = {.header.type = LNK_BOARD};
    struct lnk_bytes part = {text, text ? strlen(text) : 0};

    for (size_t i = 0; text && i < l->boards.count; i++) {
        if (o->owed & 1u << i &&
            (!l->peer[i].joined || link_put(l, i, LNK_BULK, &m, &part, 1, NULL, NULL) == 0)) {
            o->owed &= ~(1u << i);
        }
    }
}

void own_state_joined(struct link *l, size_t peer)
{
    l->own_state->owed |= 1u << peer;
    tell(l, l->own_state);
}

static void forget(struct own_state *o, uint64_t now_ns)
{
    o->status_ns = now_ns;
    o->changed |= o->state.known;
    o->state.known = false; /* until the daemon has answered */
    brd_costs_drop(&o->state);
}

static void called(void *arg, const char *error, const json_t *parameters)
{
    (void)arg; /* whatever it says: it answers */
}

/* Is the daemon another one, is it gone, or silent? */
static void look_at_daemon(struct link *l, struct own_state *o, uint64_t now_ns)
{
    bool silent = daemon_conn_waits_ns(&o->conn, now_ns) > SILENT_NS;

    if (daemon_conn_up(&o->conn) != o->conn_ups || silent != l->daemon_silent) {
        link_log("the daemon here %s", silent                     ? "does not answer"
                                       : daemon_conn_up(&o->conn) ? "is there"
                                                                  : "is gone");
        o->conn_ups = daemon_conn_up(&o->conn);
        l->daemon_silent = silent;
        forget(o, now_ns);
    }
}

static void ask(struct link *l, struct own_state *o, uint64_t now_ns)
{
    if (now_ns >= o->status_ns) {
        o->status_ns = now_ns + STATUS_NS;
        daemon_conn_call(&o->conn, "io.piped.Status", NULL, false, status_came, o);
    } else if (now_ns >= o->call_ns && segments_are_used(l)) {
        o->call_ns = now_ns + CALL_NS;
        daemon_conn_call(&o->conn, "org.varlink.service.GetInfo", NULL, false, called, o);
    }
}

void own_state_go(struct link *l, uint64_t now_ns)
{
    struct own_state *o = l->own_state;

    daemon_conn_go(&o->conn, now_ns);
    look_at_daemon(l, o, now_ns);
    if (o->conn_ups && !l->daemon_silent) {
        ask(l, o, now_ns);
        ask_costs(o, now_ns);
    }
    look_at_ways(l, o);
    if ((o->changed && now_ns >= o->tell_ns) || now_ns >= o->again_ns) {
        l->news |= o->changed;
        o->changed = false;
        o->owed = ~0u;
        o->again_ns = now_ns + TELL_AGAIN_NS;
    }
    if (o->owed && now_ns >= o->tell_ns) {
        o->owed &= (1u << l->boards.count) - 1;
        o->tell_ns = now_ns + TELL_NS;
        tell(l, o);
    }
}

void own_state_take(struct link *l, size_t peer, const struct lnk_message *m)
{
    struct link_peer *p = &l->peer[peer];
    json_auto_t *j = json_loadb(m->part->data, m->part->bytes, JSON_REJECT_DUPLICATES, NULL);
    struct brd_state s;

    if (brd_state_read(j, &s) < 0) {
        link_log("%s says of itself what cannot be read; it is ignored", link_name(l, peer));
        return;
    }
    brd_state_deinit(&p->state);
    p->state = s;
    l->news = true;
}
