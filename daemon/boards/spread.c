/* SPDX-License-Identifier: Apache-2.0 */
/* A route that the configuration or a user fixes: it is wanted while all its boards are there. One
 * that is planned: spread_auto.h has its hops, and here they become a route. */
#include "daemon/boards/spread.h"

#include <stdarg.h>

#include "base/base.h"
#include "daemon/boards/route_fill.h"
#include "daemon/boards/route_names.h"
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
    enum brd_encoding encoding; /* of borders between boards */
    bool missing;               /* a board went since the route was made; the others go on */
    uint64_t retry_ns, back_off_ns, ready_ns;
    char why[256];
};

__attribute__((format(printf, 2, 3))) static void say(struct dmn_spread *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(s->why, sizeof(s->why), format, args);
    va_end(args);
}

static void withdraw(struct dmn_spread *s)
{
    if (s->route.hop_count > 0) {
        s->route.hop_count = 0;
        s->route.number = dmn_route_number();
        s->wanted(s->ctx, s);
    }
}

/* The hops of the route are set: the rest. Return: it is complete. */
static bool complete(struct dmn_spread *s)
{
    if (dmn_route_leaves(s->model, &s->route) < 0 || dmn_route_borders(s->model, &s->route) < 0) {
        s->route.hop_count = 0;
        return false;
    }
    dmn_route_primitives(s->model, &s->route);
    for (size_t i = 0; i < s->route.hop_count; i++) {
        bool last = i + 1 == s->route.hop_count;

        s->route.hop[i].encoding = last ? BRD_AS_IS : s->encoding;
    }
    s->route.number = dmn_route_number();
    return true;
}

/* ---- a route that is planned ---- */

static void on_planned(void *ctx)
{
    struct dmn_spread *s = ctx;
    size_t count;
    const struct brd_hop *hop = dmn_auto_hops(s->plan, &count);

    if (count == 0) {
        withdraw(s);
        return;
    }
    s->route.hop_count = count;
    memcpy(s->route.hop, hop, count * sizeof(*hop));
    if (!complete(s)) {
        s->route.number = dmn_route_number();
    }
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
    dmn_names_hops(&s->text, r, &s->route);
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
    const char *away = dmn_names_away(&s->text, r);

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
    away = dmn_names_away(&s->text, r);
    if (away) {
        say(s, dmn_names_print(r, away) ? "board %s is away" : "no board is called %s", away);
    } else if (now_ns >= s->retry_ns) {
        make(s, r);
    }
}

void dmn_spread_encode(struct dmn_spread *s, enum brd_encoding encoding)
{
    if (encoding == s->encoding) {
        return;
    }
    s->encoding = encoding;
    if (s->plan) {
        dmn_auto_encode(s->plan, encoding);
    }
    if (s->route.hop_count > 1) {
        if (!complete(s)) {
            s->route.number = dmn_route_number();
        }
        s->wanted(s->ctx, s);
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
    if (s->plan && dmn_names_read(s->model, s->config, why, &text) < 0) {
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
    if (dmn_names_read(s->model, text, why, &read) < 0) {
        return -EINVAL;
    }
    if (dmn_names_here(&read) && pl_asleep(s->model->pipe)) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "the model is too large for this board alone");
        return -EINVAL;
    }
    if (dmn_names_here(&read)) {
        dmn_spread_set_alone(s);
        return 0;
    }
    if (!r) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "piped-link is away; start the service piped-link");
        return -EINVAL;
    }
    away = dmn_names_away(&read, r);
    if (away) {
        snprintf(why, DMN_ROUTE_ERROR_MAX,
                 dmn_names_print(r, away)
                     ? "board %s is away; start piped-link there, or leave it out"
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
    if (s->fixed &&
        (!r || s->text.hop_count == 0 || dmn_names_away(&s->text, r) || make(s, r) < 0)) {
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
