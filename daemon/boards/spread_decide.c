/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_decide.h"

#include "base/base.h"
#include "daemon/boards/route_fill.h"

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
        if (dmn_spread_is_gap(&d->gap[i].at, a, b)) {
            break;
        }
        oldest = d->gap[i].steady.lost_ns < d->gap[oldest].steady.lost_ns ? i : oldest;
    }
    if (i == d->gap_count) {
        i = d->gap_count < DMN_SPREAD_GAPS ? d->gap_count++ : oldest;
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
        d->board[i].steady.there &= dmn_board_find(r, d->board[i].print) != NULL;
    }
    for (size_t i = 0; i < r->board_count; i++) {
        see_board(d, &r->board[i], now_ns);
    }
    if (now->state && now->state->phase == BRD_FAILED && now->state->number != d->blamed) {
        blame(d, r, now->state, now_ns);
    }
}

size_t dmn_decide_usable(const struct dmn_decide *d, const struct brd_link_report_all *r,
                         uint64_t now_ns, struct dmn_spread_may *ret)
{
    bool any = !d->routes.losses || is_steady(&d->routes, now_ns);
    size_t count = 0;

    ret->gap_count = 0;
    for (size_t i = 0; i < r->board_count; i++) {
        size_t at = index_of(d, r->board[i].print);

        ret->usable[i] = any && at < d->board_count && is_steady(&d->board[at].steady, now_ns);
        count += ret->usable[i];
    }
    for (size_t i = 0; i < d->gap_count; i++) {
        if (!is_steady(&d->gap[i].steady, now_ns)) {
            ret->gaps[ret->gap_count++] = d->gap[i].at;
        }
    }
    return count;
}

/* ---- signs ---- */

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    h = h ? h : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return h;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    return hash(h, text, strlen(text) + 1);
}

static void add(struct dmn_signs *s, uint64_t key, double value, bool link)
{
    if (s->count < DMN_SIGNS_MAX) {
        s->sign[s->count].key = key;
        s->sign[s->count].value = value;
        s->sign[s->count++].link = link;
    }
}

static double mean_border(const struct tun_problem *p)
{
    double sum = p->boards.input_bytes + p->boards.output_bytes;

    for (size_t u = 1; u < p->unit_count; u++) {
        sum += p->units[u].in_bytes;
    }
    return sum / (double)(p->unit_count + 1);
}

static void add_links(const struct brd_state *s, const struct dmn_spread_inputs *in, double bytes,
                      struct dmn_signs *ret)
{
    for (size_t i = 0; i < s->way_count; i++) {
        const struct brd_way *w = &s->way[i];
        uint64_t key = hash_text(hash_text(0, s->print), w->print);
        double ns = !dmn_spread_linked(in, s->print, w->print) ? DMN_LINK_GAP_NS
                    : w->measured                              ? w->ns + w->ns_per_byte * bytes
                                  : DMN_LINK_GUESS_NS + DMN_LINK_GUESS_NS_PER_BYTE * bytes;

        add(ret, key, ns, true);
    }
}

static void add_past(const struct dmn_spread_past *p, struct dmn_signs *ret)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct dmn_past_row *r = &p->row[i];
        size_t known = 0;
        double sum = 0;
        uint64_t key;

        for (size_t u = 0; u < p->unit_count; u++) {
            known += r->ns[u] > 0;
            sum += r->ns[u] > 0 ? r->ns[u] : 0;
        }
        key = hash_text(hash_text(0, r->print), r->ep);
        key = hash(hash(key, &r->width, sizeof(r->width)), &known, sizeof(known));
        add(ret, key, sum, false);
    }
}

static void add_here(const struct tun_problem *p, struct dmn_signs *ret)
{
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            double sum = 0;

            for (size_t u = 0; u < p->unit_count; u++) {
                sum += tun_cell_at(&p->costs, k, w, u)->ns;
            }
            add(ret, hash(hash_text(0, p->eps[k].name), &w, sizeof(w)), sum, false);
        }
    }
}

static void take_signs(const struct dmn_spread_inputs *in, struct dmn_signs *ret)
{
    double bytes = mean_border(in->here);

    ret->count = 0;
    add_links(&in->report->self, in, bytes, ret);
    for (size_t i = 0; i < in->report->board_count; i++) {
        if (!in->may || in->may->usable[i]) {
            add_links(&in->report->board[i], in, bytes, ret);
        }
    }
    add_past(in->past, ret);
    add_here(in->here, ret);
}

static bool near(double a, double b, double change)
{
    return base_max(a, b) <= base_min(a, b) * (1 + change);
}

/* Return: what changed. */
static enum dmn_due compare(const struct dmn_signs *before, const struct dmn_signs *now)
{
    enum dmn_due change = before->count == now->count ? DMN_DUE_NOT : DMN_DUE_COSTS;

    for (size_t i = 0; i < now->count; i++) {
        size_t k = i;

        if (k >= before->count || before->sign[k].key != now->sign[i].key) {
            for (k = 0; k < before->count && before->sign[k].key != now->sign[i].key; k++) {
            }
        }
        if (k == before->count || !near(before->sign[k].value, now->sign[i].value,
                                        now->sign[i].link ? DMN_SIGN_LINKS : DMN_SIGN_COSTS)) {
            if (now->sign[i].link) {
                return DMN_DUE_LINKS;
            }
            change = DMN_DUE_COSTS;
        }
    }
    return change;
}

/* ---- when ---- */

/* Return: it is this board, or one that may be used. */
static bool is_usable(const struct dmn_spread_inputs *in, const char *print)
{
    const struct brd_state *s = dmn_board_find(in->report, print);

    return s && (s == &in->report->self || in->may->usable[s - in->report->board]);
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
        if (is_usable(in, d->board[i].print) != d->used[i]) {
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
    take_signs(in, signs);
    return compare(&d->signs, signs);
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
            d->used[at] = in->may->usable[i];
        }
    }
    take_signs(in, &d->signs);
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
