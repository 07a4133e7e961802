/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_decide.h"

#include "base/base.h"

/* ---- who is there, and for how long ---- */

static void lost(struct dmn_steady *s, uint64_t now_ns)
{
    if (now_ns - s->lost_ns > DMN_DECIDE_MEMORY_NS) {
        s->losses = 0;
    }
    s->losses += s->losses == 0 || now_ns - s->lost_ns >= DMN_DECIDE_EVENT_NS;
    s->lost_ns = s->since_ns = now_ns;
}

static bool is_steady(const struct dmn_steady *s, uint64_t now_ns)
{
    uint64_t dwell = DMN_DECIDE_FIRST_NS;

    if (s->losses) {
        dwell = DMN_DECIDE_DWELL_NS << base_min(s->losses - 1, 6u);
        dwell = base_min(dwell, DMN_DECIDE_DWELL_MOST_NS);
    }
    return s->there && now_ns - s->since_ns >= dwell;
}

static const struct dmn_steady *steady_of(const struct dmn_decide *d, const char *print)
{
    for (size_t i = 0; i < d->board_count; i++) {
        if (strcmp(d->board[i].print, print) == 0) {
            return &d->board[i].steady;
        }
    }
    return NULL;
}

static size_t index_of(const struct dmn_decide *d, const char *print)
{
    size_t i = 0;

    while (i < d->board_count && strcmp(d->board[i].print, print) != 0) {
        i++;
    }
    return i;
}

void dmn_decide_init(struct dmn_decide *d)
{
    memset(d, 0, sizeof(*d));
    d->routes.there = true;
}

void dmn_decide_away(struct dmn_decide *d)
{
    for (size_t i = 0; i < d->board_count; i++) {
        d->board[i].steady.there = false;
    }
    d->sought = false;
}

static bool there(const struct brd_state *s)
{
    return s->up && s->known;
}

static void see_board(struct dmn_decide *d, const struct brd_state *s, uint64_t now_ns)
{
    size_t i = index_of(d, s->print);
    struct dmn_steady *steady;

    if (i == d->board_count) {
        if (i == BRD_MAX) { /* the list was changed: forget one that is gone */
            for (i = 0; i < BRD_MAX && d->board[i].steady.there; i++) {
            }
            if (i == BRD_MAX) {
                return;
            }
        } else {
            d->board_count++;
        }
        memset(&d->board[i], 0, sizeof(d->board[i]));
        snprintf(d->board[i].print, sizeof(d->board[i].print), "%s", s->print);
        d->used[i] = false;
    }
    steady = &d->board[i].steady;
    if (there(s) && !steady->there) {
        steady->since_ns = now_ns;
    } else if (!there(s) && steady->there) {
        lost(steady, now_ns);
    }
    steady->there = there(s);
}

static void blame_link(struct dmn_decide *d, const char *a, const char *b, uint64_t now_ns)
{
    size_t i = 0, oldest = 0;

    for (; i < d->gap_count; i++) {
        const struct dmn_spread_gap *g = &d->gap[i].at;

        if ((strcmp(g->a, a) == 0 && strcmp(g->b, b) == 0) ||
            (strcmp(g->a, b) == 0 && strcmp(g->b, a) == 0)) {
            break;
        }
        oldest = d->gap[i].steady.lost_ns < d->gap[oldest].steady.lost_ns ? i : oldest;
    }
    if (i == d->gap_count) {
        i = d->gap_count < DMN_DECIDE_GAPS ? d->gap_count++ : oldest;
        memset(&d->gap[i], 0, sizeof(d->gap[i]));
        snprintf(d->gap[i].at.a, sizeof(d->gap[i].at.a), "%s", a);
        snprintf(d->gap[i].at.b, sizeof(d->gap[i].at.b), "%s", b);
        d->gap[i].steady.there = true;
    }
    lost(&d->gap[i].steady, now_ns);
}

/* A failure counts once. That of a board that went away is its loss, which is counted already. */
static void blame(struct dmn_decide *d, const struct brd_link_report_all *r,
                  const struct brd_route_state *s, uint64_t now_ns)
{
    size_t i = index_of(d, s->board);

    d->blamed = s->number;
    if (s->to[0]) {
        blame_link(d, s->board, s->to, now_ns);
    } else if (i < d->board_count) {
        if (d->board[i].steady.there) {
            lost(&d->board[i].steady, now_ns);
        }
    } else if (strcmp(s->board, r->self.print) == 0 || !s->board[0]) {
        lost(&d->routes, now_ns);
    }
}

void dmn_decide_see(struct dmn_decide *d, const struct brd_link_report_all *r,
                    const struct dmn_present *now, uint64_t now_ns)
{
    for (size_t i = 0; i < d->board_count; i++) {
        bool listed = false;

        for (size_t k = 0; k < r->board_count; k++) {
            listed |= strcmp(r->board[k].print, d->board[i].print) == 0;
        }
        d->board[i].steady.there &= listed;
    }
    for (size_t i = 0; i < r->board_count; i++) {
        see_board(d, &r->board[i], now_ns);
    }
    if (now->state && now->state->phase == BRD_FAILED && now->state->number != d->blamed) {
        blame(d, r, now->state, now_ns);
    }
}

size_t dmn_decide_usable(const struct dmn_decide *d, const struct brd_link_report_all *r,
                         uint64_t now_ns, bool *ret, struct dmn_spread_gap *ret_gaps,
                         size_t *ret_gap_count)
{
    bool any = !d->routes.losses || is_steady(&d->routes, now_ns);
    size_t count = 0, gaps = 0;

    for (size_t i = 0; i < r->board_count; i++) {
        const struct dmn_steady *s = steady_of(d, r->board[i].print);

        ret[i] = any && s && is_steady(s, now_ns);
        count += ret[i];
    }
    for (size_t i = 0; i < d->gap_count; i++) {
        if (!is_steady(&d->gap[i].steady, now_ns)) {
            ret_gaps[gaps++] = d->gap[i].at;
        }
    }
    *ret_gap_count = gaps;
    return count;
}

/* ---- when ---- */

static bool is_usable(const struct dmn_spread_inputs *in, const char *print)
{
    for (size_t i = 0; i < in->report->board_count; i++) {
        if (strcmp(in->report->board[i].print, print) == 0) {
            return in->usable[i];
        }
    }
    return strcmp(in->report->self.print, print) == 0;
}

/* Boards of a hop, and their links from the hop before. @before: NULL: from the head. */
static bool hop_works(const struct dmn_spread_inputs *in, const struct brd_hop *before,
                      const struct brd_hop *hop)
{
    const char *self = in->report->self.print;

    for (size_t b = 0; b < hop->board_count; b++) {
        const char *to = hop->board[b].print;

        if (!is_usable(in, to) || !dmn_spread_linked(in, self, to)) {
            return false;
        }
        for (size_t a = 0; before && a < before->board_count; a++) {
            if (!dmn_spread_linked(in, before->board[a].print, to)) {
                return false;
            }
        }
    }
    return true;
}

bool dmn_decide_broken(const struct dmn_spread_inputs *in, const struct dmn_present *now)
{
    for (size_t h = 0; h < now->hop_count; h++) {
        if (!hop_works(in, h ? &now->hop[h - 1] : NULL, &now->hop[h])) {
            return true;
        }
    }
    return now->hop_count > 0 && now->state && now->state->phase == BRD_FAILED;
}

static uint64_t cooldown_ns(const struct dmn_decide *d, uint64_t now_ns)
{
    unsigned recent = 0;

    while (recent < DMN_DECIDE_CHANGES && d->change_ns[recent] &&
           now_ns - d->change_ns[recent] < DMN_DECIDE_MEMORY_NS) {
        recent++;
    }
    return base_min(DMN_DECIDE_COOLDOWN_NS << (recent > 3 ? recent - 3 : 0),
                    DMN_DECIDE_DWELL_MOST_NS);
}

static bool same_boards(const struct dmn_decide *d, const struct dmn_spread_inputs *in)
{
    for (size_t i = 0; i < d->board_count; i++) {
        bool used = false;

        for (size_t k = 0; k < in->report->board_count; k++) {
            used |= in->usable[k] && strcmp(in->report->board[k].print, d->board[i].print) == 0;
        }
        if (used != d->used[i]) {
            return false;
        }
    }
    return true;
}

static enum dmn_due what_changed(const struct dmn_decide *d, const struct dmn_spread_inputs *in)
{
    base_autofree struct dmn_signs *signs = malloc(sizeof(*signs));

    if (!d->sought || !same_boards(d, in)) {
        return DMN_DUE_BOARDS;
    }
    if (!signs) {
        return DMN_DUE_NOT;
    }
    dmn_signs_take(in, signs);
    switch (dmn_signs_compare(&d->signs, signs)) {
    case DMN_SIGNS_LINKS:
        return DMN_DUE_LINKS;
    case DMN_SIGNS_COSTS:
        return DMN_DUE_COSTS;
    default:
        return DMN_DUE_NOT;
    }
}

enum dmn_due dmn_decide_due(const struct dmn_decide *d, const struct dmn_spread_inputs *in,
                            const struct dmn_present *now, uint64_t now_ns)
{
    uint64_t since = d->change_ns[0] ? now_ns - d->change_ns[0] : UINT64_MAX;
    bool spread = now->hop_count > 0;
    bool ready = !spread || (now->state && now->state->phase == BRD_READY);
    enum dmn_due due;

    if (dmn_decide_broken(in, now)) {
        return DMN_DUE_BROKEN;
    }
    if (!ready && since < DMN_DECIDE_PREPARE_NS) {
        return DMN_DUE_NOT;
    }
    due = what_changed(d, in);
    if (due == DMN_DUE_NOT && d->gain_ns && now_ns - d->gain_ns >= DMN_DECIDE_SUSTAIN_NS) {
        return DMN_DUE_COSTS;
    }
    if (due == DMN_DUE_COSTS && spread && d->corrections < DMN_DECIDE_CORRECTIONS) {
        return since >= DMN_DECIDE_CORRECT_NS ? due : DMN_DUE_NOT;
    }
    return since >= cooldown_ns(d, now_ns) ? due : DMN_DUE_NOT;
}

void dmn_decide_sought(struct dmn_decide *d, const struct dmn_spread_inputs *in)
{
    memset(d->used, 0, sizeof(d->used));
    for (size_t i = 0; i < in->report->board_count; i++) {
        size_t at = index_of(d, in->report->board[i].print);

        if (at < d->board_count) {
            d->used[at] = in->usable[i];
        }
    }
    dmn_signs_take(in, &d->signs);
    d->sought = true;
}

bool dmn_decide_sustained(struct dmn_decide *d, enum dmn_due why, bool gain, bool moves,
                          uint64_t now_ns)
{
    if (!gain || !moves || why == DMN_DUE_BROKEN || why == DMN_DUE_BOARDS) {
        d->gain_ns = 0;
        return gain;
    }
    if (!d->gain_ns) {
        d->gain_ns = now_ns;
        return false;
    }
    return now_ns - d->gain_ns >= DMN_DECIDE_SUSTAIN_NS;
}

void dmn_decide_changed(struct dmn_decide *d, enum dmn_due why, uint64_t now_ns)
{
    memmove(d->change_ns + 1, d->change_ns, sizeof(d->change_ns) - sizeof(d->change_ns[0]));
    d->change_ns[0] = now_ns;
    d->gain_ns = 0;
    d->corrections = why == DMN_DUE_COSTS ? d->corrections + 1 : 0;
}

/* ---- whether ---- */

static bool keeps(const struct tun_problem *p, const struct dmn_figures *f)
{
    const struct tun_bounds *b = &p->bounds;

    return (b->period_max_ns <= 0 || f->bottleneck_ns <= b->period_max_ns) &&
           (b->latency_max_ns <= 0 || f->latency_ns <= b->latency_max_ns);
}

/* Is @a better than @b by more than @gain? */
static bool gains(const struct tun_problem *p, const struct dmn_figures *a,
                  const struct dmn_figures *b, double gain)
{
    double x = a->bottleneck_ns, y = b->bottleneck_ns;

    if (!a->possible || !b->possible) {
        return a->possible;
    }
    if (keeps(p, a) != keeps(p, b)) {
        return keeps(p, a);
    }
    if (keeps(p, a) && p->objective == TUN_LATENCY) {
        x = a->latency_ns;
        y = b->latency_ns;
    } else if (keeps(p, a) && p->objective == TUN_POWER) {
        x = a->energy_nj;
        y = b->energy_nj;
    }
    return x * (1 + gain) < y;
}

enum dmn_worth dmn_decide_worth(const struct tun_problem *p, const struct dmn_figures *best,
                                const struct dmn_figures *present, const struct dmn_figures *alone,
                                bool spread, bool moves)
{
    double gain = moves ? DMN_DECIDE_MOVE_GAIN : DMN_DECIDE_GAIN;

    if (gains(p, best, alone, DMN_DECIDE_GAIN)) {
        return gains(p, best, present, gain) ? DMN_TAKE_ROUTE : DMN_KEEP;
    }
    return spread && (!present->possible || gains(p, alone, present, DMN_DECIDE_GAIN))
               ? DMN_TAKE_NONE
               : DMN_KEEP;
}
