/* SPDX-License-Identifier: Apache-2.0 */
/* A route that the configuration or a user fixes: it is wanted while all its boards are there. One
 * that is planned: spread_auto.h has its hops, and here they become a route. */
#include "daemon/boards/spread.h"

#include "base/base.h"
#include "daemon/boards/route_fill.h"
#include "daemon/boards/spread_auto.h"
#include "daemon/config/route_text.h"
#include "daemon/models/models.h"

#define RETRY_LEAST_NS BASE_NS_PER_S
#define RETRY_MOST_NS (60 * BASE_NS_PER_S)
#define GOOD_NS (30 * BASE_NS_PER_S) /* a route that is ready for so long was a good one */

struct dmn_spread {
    struct dmn_model *model; /* borrowed */
    void (*wanted)(void *ctx, struct dmn_spread *s);
    void *ctx;
    struct dmn_auto *plan;      /* owned; NULL: the model cannot be spread */
    bool fixed;                 /* .text is wanted, and .plan only listens */
    bool set;                   /* by a user, not by the configuration */
    char *config;               /* owned: models[].boards */
    struct dmn_route_text text; /* hop_count 0: there is none, or the model cannot be spread */
    struct brd_route route;     /* wanted now */
    bool missing;               /* a board went since the route was made; the others go on */
    uint64_t retry_ns, back_off_ns, ready_ns;
    char why[256];
};

#define say(s, ...) snprintf((s)->why, sizeof((s)->why), __VA_ARGS__)

/* ---- a route as people write it ---- */

/* Reads a route for the units of @m. @why: DMN_ROUTE_ERROR_MAX bytes. Return: 0; -EINVAL with @why
 * set, and @ret has no hops. */
static int read_text(const struct dmn_model *m, const char *text, char *why,
                     struct dmn_route_text *ret)
{
    size_t last;

    if (dmn_route_text_parse(text, why, ret) < 0) {
        ret->hop_count = 0;
        return -EINVAL;
    }
    last = ret->hop[ret->hop_count - 1].last_unit;
    if (last + 1 != m->model->unit_count) {
        snprintf(why, DMN_ROUTE_ERROR_MAX,
                 "the route ends with unit %zu; the model's last one is %zu", last,
                 m->model->unit_count - 1);
        ret->hop_count = 0;
        return -EINVAL;
    }
    return 0;
}

/* Return: all of it is on this board. */
static bool all_here(const struct dmn_route_text *t)
{
    for (size_t i = 0; i < t->hop_count; i++) {
        if (t->hop[i].board_count > 1 || strcmp(t->hop[i].board[0].name, DMN_BOARD_HERE) != 0) {
            return false;
        }
    }
    return true;
}

/* Return: the fingerprint of the board that is called @name; NULL: there is none. */
static const char *print_of(const struct brd_link_report_all *r, const char *name)
{
    if (strcmp(name, DMN_BOARD_HERE) == 0) {
        return r->self.known ? r->self.print : NULL;
    }
    for (size_t i = 0; i < r->board_count; i++) {
        if (strcmp(r->board[i].name, name) == 0) {
            return r->board[i].print;
        }
    }
    return NULL;
}

/* Return: the first board of the text that is not there; NULL: all are. */
static const char *first_away(const struct dmn_route_text *t, const struct brd_link_report_all *r)
{
    for (size_t i = 0; i < t->hop_count; i++) {
        for (size_t b = 0; b < t->hop[i].board_count; b++) {
            const char *print = print_of(r, t->hop[i].board[b].name);

            if (!print || !dmn_board_up(r, print)) {
                return t->hop[i].board[b].name;
            }
        }
    }
    return NULL;
}

/* Sets the hops, without what follows from the model. All boards are known. */
static void set_hops(const struct dmn_route_text *t, const struct brd_link_report_all *r,
                     struct brd_route *ret)
{
    ret->hop_count = t->hop_count;
    for (size_t i = 0; i < t->hop_count; i++) {
        struct brd_hop *h = &ret->hop[i];

        h->first_unit = t->hop[i].first_unit;
        h->last_unit = t->hop[i].last_unit;
        h->board_count = t->hop[i].board_count;
        for (size_t b = 0; b < h->board_count; b++) {
            snprintf(h->board[b].print, sizeof(h->board[b].print), "%s",
                     print_of(r, t->hop[i].board[b].name));
            h->board[b].share = t->hop[i].board[b].share;
        }
    }
}

/* ---- a route as it is wanted ---- */

static void withdraw(struct dmn_spread *s)
{
    if (s->route.hop_count > 0) {
        s->route.hop_count = 0;
        s->route.number = dmn_route_number();
        s->wanted(s->ctx, s);
    }
}

/* The hops of the route are set: the rest. Without memory for it there are no hops. Return: it is
 * complete. */
static bool complete(struct dmn_spread *s)
{
    bool all = dmn_route_complete(s->model, &s->route) == 0;

    s->route.hop_count = all ? s->route.hop_count : 0;
    s->route.number = dmn_route_number();
    return all;
}

/* ---- a route that is planned ---- */

static void on_planned(void *ctx, const struct brd_hop *hop, size_t count)
{
    struct dmn_spread *s = ctx;

    if (count == 0) {
        withdraw(s);
        return;
    }
    s->route.hop_count = count;
    memcpy(s->route.hop, hop, count * sizeof(*hop));
    complete(s);
    s->wanted(s->ctx, s);
}

/* Return: 0, also if the model cannot be spread; -ENOMEM. */
static int plan(struct dmn_spread *s)
{
    if (dmn_route_fill(s->model, &s->route) < 0) {
        say(s, "the model's path or name is too long for a route");
        return 0;
    }
    return dmn_auto_new(s->model, s->route.content, on_planned, s, &s->plan);
}

/* ---- a route that is fixed ---- */

/* All boards of the text are there. */
static int make(struct dmn_spread *s, const struct brd_link_report_all *r)
{
    if (dmn_route_fill(s->model, &s->route) < 0) {
        say(s, "the model's path or name is too long for a route");
        return -EINVAL;
    }
    set_hops(&s->text, r, &s->route);
    if (!complete(s)) {
        say(s, "out of memory");
        return -ENOMEM;
    }
    s->missing = false;
    s->ready_ns = 0;
    say(s, "all boards of the %s are there", s->set ? "route that was set" : "configured route");
    s->wanted(s->ctx, s);
    return 0;
}

/* A route that lost a board, which may come back, did not fail by itself. */
static void failed(struct dmn_spread *s, const struct brd_route_state *state, bool lost,
                   uint64_t now_ns)
{
    say(s, "%s", state->why[0] ? state->why : "the route failed");
    if (!lost) {
        s->back_off_ns = base_min(base_max(2 * s->back_off_ns, RETRY_LEAST_NS), RETRY_MOST_NS);
    }
    s->retry_ns = now_ns + base_max(lost ? 0 : s->back_off_ns, RETRY_LEAST_NS);
    withdraw(s);
}

/* The route is wanted: does it still make sense? */
static void watch(struct dmn_spread *s, const struct brd_link_report_all *r, uint64_t now_ns)
{
    const struct brd_route_state *state = dmn_route_state(r, s->route.model, s->route.number);
    const char *away = first_away(&s->text, r);

    if (state && state->phase == BRD_FAILED) {
        failed(s, state, away, now_ns);
        return;
    }
    if (!state || state->phase != BRD_READY) {
        if (away) {
            say(s, "board %s is away", away);
            withdraw(s);
        }
        return;
    }
    s->ready_ns = s->ready_ns ? s->ready_ns : now_ns;
    if (now_ns - s->ready_ns > GOOD_NS) {
        s->back_off_ns = 0;
    }
    if (away) {
        s->missing = true; /* piped-link says when the others cannot go on */
    } else if (s->missing) {
        make(s, r);
    }
}

void dmn_spread_report(struct dmn_spread *s, const struct brd_link_report_all *r, uint64_t now_ns)
{
    const char *away;

    if (s->plan) {
        dmn_auto_report(s->plan, r,
                        s->fixed ? NULL : dmn_route_state(r, s->route.model, s->route.number),
                        now_ns);
    }
    if (!s->fixed || s->text.hop_count == 0) {
        return;
    }
    if (!r) {
        say(s, "piped-link is away");
        withdraw(s);
        return;
    }
    if (s->route.hop_count > 0) {
        watch(s, r, now_ns);
        return;
    }
    away = first_away(&s->text, r);
    if (away) {
        say(s, print_of(r, away) ? "board %s is away" : "no board is called %s", away);
    } else if (now_ns >= s->retry_ns) {
        make(s, r);
    }
}

const struct brd_route *dmn_spread_route(const struct dmn_spread *s)
{
    return &s->route;
}

const char *dmn_spread_why(const struct dmn_spread *s)
{
    return s->fixed ? s->why : dmn_auto_why(s->plan);
}

/* ---- who decides ---- */

/* From now on @text is wanted; its hop_count 0: no route. */
static void fix(struct dmn_spread *s, const struct dmn_route_text *text)
{
    if (s->plan) {
        dmn_auto_hold(s->plan);
    }
    s->fixed = true;
    s->text = *text;
    s->retry_ns = s->back_off_ns = 0;
}

/* Takes what the configuration says, as far as the model has these units. */
static void take_config(struct dmn_spread *s)
{
    struct dmn_route_text text = {0};
    char why[DMN_ROUTE_ERROR_MAX];

    s->set = false;
    if (s->plan && strcmp(s->config, DMN_BOARDS_AUTO) == 0) {
        s->fixed = false;
        dmn_auto_release(s->plan, s->route.hop, s->route.hop_count);
        return;
    }
    if (s->plan && read_text(s->model, s->config, why, &text) < 0) {
        say(s, "%s", why);
    }
    fix(s, &text);
}

int dmn_spread_set(struct dmn_spread *s, const char *text, const struct brd_link_report_all *r,
                   char *why)
{
    struct dmn_route_text read;
    const char *away;

    if (!s->plan) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "%.*s", (int)DMN_ROUTE_ERROR_MAX - 1, s->why);
        return -EINVAL;
    }
    if (read_text(s->model, text, why, &read) < 0) {
        return -EINVAL;
    }
    if (all_here(&read) && pl_asleep(s->model->pipe)) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "the model is too large for this board alone");
        return -EINVAL;
    }
    if (all_here(&read)) {
        dmn_spread_set_alone(s);
        return 0;
    }
    if (!r) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "piped-link is away; start the service piped-link");
        return -EINVAL;
    }
    away = first_away(&read, r);
    if (away) {
        snprintf(why, DMN_ROUTE_ERROR_MAX,
                 print_of(r, away) ? "board %s is away; start piped-link there, or leave it out"
                                   : "no board is called %s; pipectl board list names them",
                 away);
        return -EINVAL;
    }
    s->set = true;
    fix(s, &read);
    if (make(s, r) < 0) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "%.*s", (int)DMN_ROUTE_ERROR_MAX - 1, s->why);
        take_config(s);
        return -EINVAL;
    }
    return 0;
}

void dmn_spread_set_alone(struct dmn_spread *s)
{
    s->set = true;
    fix(s, &(struct dmn_route_text){0});
    say(s, "a plan of this board was set");
    withdraw(s);
}

void dmn_spread_unset(struct dmn_spread *s, const struct brd_link_report_all *r)
{
    if (!s->set) {
        return;
    }
    take_config(s);
    if (s->fixed && (!r || s->text.hop_count == 0 || first_away(&s->text, r) || make(s, r) < 0)) {
        withdraw(s);
    }
}

bool dmn_spread_is_set(const struct dmn_spread *s)
{
    return s->set;
}

int dmn_spread_query(const struct dmn_spread *s, struct dmn_spread_query *ret)
{
    int r = s->plan ? dmn_auto_query(s->plan, ret) : -EOPNOTSUPP;

    if (r == 0 && s->fixed) {
        ret->hop_count = s->route.hop_count;
        memcpy(ret->hop, s->route.hop, s->route.hop_count * sizeof(ret->hop[0]));
    }
    return r;
}

/* ---- life ---- */

int dmn_spread_new(struct dmn_model *m, const char *config_text,
                   void (*wanted)(void *ctx, struct dmn_spread *s), void *ctx,
                   struct dmn_spread **ret)
{
    struct dmn_spread *s = calloc(1, sizeof(*s));
    const char *cannot = dmn_route_fits(m);

    if (!s || !(s->config = strdup(config_text))) {
        free(s);
        return -ENOMEM;
    }
    s->model = m;
    s->wanted = wanted;
    s->ctx = ctx;
    say(s, "nothing was heard of piped-link yet");
    if (cannot) {
        say(s, "%s", cannot);
    } else if (plan(s) < 0) {
        dmn_spread_free(s);
        return -ENOMEM;
    }
    take_config(s);
    *ret = s;
    return 0;
}

struct dmn_spread *dmn_spread_free(struct dmn_spread *s)
{
    if (s) {
        dmn_auto_free(s->plan);
        free(s->config);
        free(s);
    }
    return NULL;
}
