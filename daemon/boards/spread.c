/* SPDX-License-Identifier: Apache-2.0 */
/* Who decides which route is wanted; and one that the configuration or a user fixes: it is wanted
 * while all its boards are there. */
#include "daemon/boards/board_model.h"

#define RETRY_LEAST_NS BASE_NS_PER_S
#define RETRY_MOST_NS (60 * BASE_NS_PER_S)
#define GOOD_NS (30 * BASE_NS_PER_S) /* a route that is ready for so long was a good one */

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

/* ---- a route that is fixed ---- */

/* All boards of the text are there. */
static int make(struct dmn_board_model *bm)
{
    set_hops(&bm->fixes, bm->of->report, bm->route);
    if (dmn_spread_want(bm, bm->fixes.hop_count) < 0) {
        dmn_spread_say(bm, "out of memory");
        return -ENOMEM;
    }
    bm->missing = false;
    bm->ready_ns = 0;
    dmn_spread_say(bm, "all boards of the %s are there",
                   bm->set ? "route that was set" : "configured route");
    return 0;
}

/* A route that lost a board, which may come back, did not fail by itself. */
static void failed(struct dmn_board_model *bm, bool lost, uint64_t now_ns)
{
    dmn_spread_say(bm, "%s", bm->state.why[0] ? bm->state.why : "the route failed");
    if (!lost) {
        bm->back_off_ns = base_min(base_max(2 * bm->back_off_ns, RETRY_LEAST_NS), RETRY_MOST_NS);
    }
    bm->retry_ns = now_ns + base_max(lost ? 0 : bm->back_off_ns, RETRY_LEAST_NS);
    dmn_spread_want(bm, 0);
}

/* The route is wanted: does it still make sense? */
static void watch(struct dmn_board_model *bm, uint64_t now_ns)
{
    const struct brd_route_state *state = dmn_spread_state(bm);
    const char *away = first_away(&bm->fixes, bm->of->report);

    if (state && state->phase == BRD_FAILED) {
        failed(bm, away, now_ns);
        return;
    }
    if (!state || state->phase != BRD_READY) {
        if (away) {
            dmn_spread_say(bm, "board %s is away", away);
            dmn_spread_want(bm, 0);
        }
        return;
    }
    bm->ready_ns = bm->ready_ns ? bm->ready_ns : now_ns;
    if (now_ns - bm->ready_ns > GOOD_NS) {
        bm->back_off_ns = 0;
    }
    if (away) {
        bm->missing = true; /* piped-link says when the others cannot go on */
    } else if (bm->missing) {
        make(bm);
    }
}

void dmn_spread_report(struct dmn_board_model *bm, uint64_t now_ns)
{
    const struct brd_link_report_all *r = bm->of->report;
    const char *away;

    if (bm->spreads) {
        dmn_auto_report(bm, now_ns);
    }
    if (!bm->fixed || bm->fixes.hop_count == 0 || bm->trial) {
        return;
    }
    if (!r) {
        dmn_spread_say(bm, "piped-link is away");
        dmn_spread_want(bm, 0);
        return;
    }
    if (bm->route->hop_count > 0) {
        watch(bm, now_ns);
        return;
    }
    away = first_away(&bm->fixes, r);
    if (away) {
        dmn_spread_say(bm, print_of(r, away) ? "board %s is away" : "no board is called %s", away);
    } else if (now_ns >= bm->retry_ns) {
        make(bm);
    }
}

/* ---- who decides ---- */

/* From now on @text is wanted; its hop_count 0: no route. */
static void fix(struct dmn_board_model *bm, const struct dmn_route_text *text)
{
    bm->fixed = true;
    bm->fixes = *text;
    bm->retry_ns = bm->back_off_ns = 0;
}

/* Takes what the configuration says, as far as the model has these units. */
static void take_config(struct dmn_board_model *bm)
{
    struct dmn_route_text text = {0};
    char why[DMN_ROUTE_ERROR_MAX];

    bm->set = false;
    if (bm->spreads && strcmp(bm->config, DMN_BOARDS_AUTO) == 0) {
        dmn_auto_release(bm);
        return;
    }
    if (bm->spreads && read_text(bm->model, bm->config, why, &text) < 0) {
        dmn_spread_say(bm, "%s", why);
    }
    fix(bm, &text);
}

void dmn_boards_set_alone(const struct dmn_model *m)
{
    struct dmn_board_model *bm = dmn_boards_of(m);

    if (bm) {
        bm->set = true;
        fix(bm, &(struct dmn_route_text){0});
        dmn_spread_say(bm, "a plan of this board was set");
        dmn_spread_want(bm, 0);
    }
}

int dmn_boards_set(const struct dmn_model *m, const char *text, char *why)
{
    struct dmn_board_model *bm = dmn_boards_of(m);
    const struct brd_link_report_all *r = bm ? bm->of->report : NULL;
    struct dmn_route_text read;
    const char *away;

    if (!bm) {
        snprintf(why, DMN_ROUTE_ERROR_MAX,
                 "the model's key boards is \"" DMN_BOARDS_OFF "\"; set it to \"" DMN_BOARDS_AUTO
                 "\" and reload");
        return -EINVAL;
    }
    if (!bm->spreads) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "%.*s", (int)DMN_ROUTE_ERROR_MAX - 1, bm->why);
        return -EINVAL;
    }
    if (read_text(m, text, why, &read) < 0) {
        return -EINVAL;
    }
    if (all_here(&read) && pl_asleep(m->pipe)) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "the model is too large for this board alone");
        return -EINVAL;
    }
    if (all_here(&read)) {
        dmn_boards_set_alone(m);
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
    bm->set = true;
    fix(bm, &read);
    if (make(bm) < 0) {
        snprintf(why, DMN_ROUTE_ERROR_MAX, "%.*s", (int)DMN_ROUTE_ERROR_MAX - 1, bm->why);
        take_config(bm);
        return -EINVAL;
    }
    return 0;
}

void dmn_boards_unset(const struct dmn_model *m)
{
    struct dmn_board_model *bm = dmn_boards_of(m);
    const struct brd_link_report_all *r = bm ? bm->of->report : NULL;

    if (!bm || !bm->set) {
        return;
    }
    take_config(bm);
    if (bm->fixed &&
        (!r || bm->fixes.hop_count == 0 || first_away(&bm->fixes, r) || make(bm) < 0)) {
        dmn_spread_want(bm, 0);
    }
}

void dmn_spread_searched(struct dmn_board_model *bm, const char *text)
{
    struct dmn_route_text route = {0};
    char why[DMN_ROUTE_ERROR_MAX];

    dmn_spread_say(bm, "%s", text ? "a search found it" : "a search found nothing better");
    if (!bm->fixed) {
        dmn_auto_searched(bm);
    } else if (text) {
        (void)read_text(bm->model, text, why, &route); /* a plan of this board: no route */
        bm->set = true;
        fix(bm, &route);
    }
}

int dmn_spread_init(struct dmn_board_model *bm)
{
    const char *cannot = dmn_route_fits(bm->model);
    int error = 0;

    if (!cannot && dmn_route_fill(bm->model, bm->route) < 0) {
        cannot = "the model's path or name is too long for a route";
    }
    bm->spreads = !cannot;
    dmn_spread_say(bm, "%s", cannot ? cannot : "nothing was heard of piped-link yet");
    if (bm->spreads) {
        error = dmn_auto_init(bm);
    }
    take_config(bm);
    return error;
}
