/* SPDX-License-Identifier: Apache-2.0 */
/* A route that the configuration fixes: it is wanted while all its boards are there. One that is
 * planned: spread_auto.h has its hops, and here they become a route. */
#include "daemon/boards/spread.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
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
    struct dmn_auto *plan;      /* owned; NULL: the configuration has a route */
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
static const char *who_is_away(const struct dmn_spread *s, const struct brd_link_report_all *r)
{
    for (size_t i = 0; i < s->text.hop_count; i++) {
        for (size_t b = 0; b < s->text.hop[i].board_count; b++) {
            const char *print = print_of(r, s->text.hop[i].board[b].name);

            if (!print || !dmn_board_up(r, print)) {
                return s->text.hop[i].board[b].name;
            }
        }
    }
    return NULL;
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
    if (dmn_route_leaves(s->model, &s->route) < 0) {
        s->route.hop_count = 0;
        return false;
    }
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

static int plan(struct dmn_spread *s, uv_loop_t *loop)
{
    if (dmn_route_fill(s->model, &s->route) < 0) {
        say(s, "the model's path or name is too long for a route");
        return 0;
    }
    return dmn_auto_new(s->model, loop, s->route.content, on_planned, s, &s->plan);
}

/* ---- a route that is fixed ---- */

/* All boards of the text are there. */
static void make(struct dmn_spread *s, const struct brd_link_report_all *r)
{
    if (dmn_route_fill(s->model, &s->route) < 0) {
        say(s, "the model's path or name is too long for a route");
        return;
    }
    s->route.hop_count = s->text.hop_count;
    for (size_t i = 0; i < s->text.hop_count; i++) {
        struct brd_hop *h = &s->route.hop[i];

        h->first_unit = s->text.hop[i].first_unit;
        h->last_unit = s->text.hop[i].last_unit;
        h->board_count = s->text.hop[i].board_count;
        for (size_t b = 0; b < h->board_count; b++) {
            snprintf(h->board[b].print, sizeof(h->board[b].print), "%s",
                     print_of(r, s->text.hop[i].board[b].name));
            h->board[b].share = s->text.hop[i].board[b].share;
        }
    }
    if (!complete(s)) {
        say(s, "out of memory");
        return;
    }
    s->missing = false;
    s->ready_ns = 0;
    say(s, "all boards of the configured route are there");
    s->wanted(s->ctx, s);
}

static void failed(struct dmn_spread *s, const struct brd_route_state *state, uint64_t now_ns)
{
    say(s, "%s", state->why[0] ? state->why : "the route failed");
    s->back_off_ns = base_min(base_max(2 * s->back_off_ns, RETRY_LEAST_NS), RETRY_MOST_NS);
    s->retry_ns = now_ns + s->back_off_ns;
    withdraw(s);
}

/* The route is wanted: does it still make sense? */
static void watch(struct dmn_spread *s, const struct brd_link_report_all *r, uint64_t now_ns)
{
    const struct brd_route_state *state = dmn_route_state(r, s->route.model, s->route.number);
    const char *away = who_is_away(s, r);

    if (state && state->phase == BRD_FAILED) {
        failed(s, state, now_ns);
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
        dmn_auto_report(s->plan, r, dmn_route_state(r, s->route.model, s->route.number), now_ns);
        return;
    }
    if (s->text.hop_count == 0) {
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
    away = who_is_away(s, r);
    if (away) {
        say(s, print_of(r, away) ? "board %s is away" : "no board is called %s", away);
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
    return s->plan ? dmn_auto_why(s->plan) : s->why;
}

/* Takes what the configuration says, as far as the model has these units. */
static int take_text(struct dmn_spread *s, uv_loop_t *loop, const char *config_text)
{
    const char *cannot = dmn_route_fits(s->model);
    char why[DMN_ROUTE_ERROR_MAX];
    size_t last;

    say(s, "nothing was heard of piped-link yet");
    if (cannot) {
        say(s, "%s", cannot);
    } else if (strcmp(config_text, DMN_BOARDS_AUTO) == 0) {
        return plan(s, loop);
    } else if (dmn_route_text_parse(config_text, why, &s->text) < 0) {
        say(s, "%s", why);
        s->text.hop_count = 0;
    } else {
        last = s->text.hop[s->text.hop_count - 1].last_unit;
        if (last + 1 != s->model->model->unit_count) {
            say(s, "the route ends with unit %zu; the model's last one is %zu", last,
                s->model->model->unit_count - 1);
            s->text.hop_count = 0;
        }
    }
    return 0;
}

int dmn_spread_new(struct dmn_model *m, uv_loop_t *loop, const char *config_text,
                   void (*wanted)(void *ctx, struct dmn_spread *s), void *ctx,
                   struct dmn_spread **ret)
{
    struct dmn_spread *s = calloc(1, sizeof(*s));

    if (!s) {
        return -ENOMEM;
    }
    s->model = m;
    s->wanted = wanted;
    s->ctx = ctx;
    if (take_text(s, loop, config_text) < 0) {
        free(s);
        return -ENOMEM;
    }
    *ret = s;
    return 0;
}

struct dmn_spread *dmn_spread_free(struct dmn_spread *s)
{
    if (s) {
        dmn_auto_free(s->plan);
        free(s);
    }
    return NULL;
}
