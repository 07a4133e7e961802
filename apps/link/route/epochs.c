/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: heads and their epochs: to find, and from a plan to its end. */
#include "apps/link/route/route_private.h"
#include "ipc/boards/route_window.h"

#define REMIND_NS (BASE_NS_PER_S / 2)

struct head_epoch *head_epoch(struct head *h, uint32_t number)
{
    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        if (number && h->epoch[i].number == number) {
            return &h->epoch[i];
        }
    }
    return NULL;
}

struct head_epoch *head_present(struct head *h)
{
    struct head_epoch *best = NULL;

    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        struct head_epoch *e = &h->epoch[i];

        if (e->number && e->ledger && (!best || e->ledger > best->ledger)) {
            best = e;
        }
    }
    return best;
}

void head_end_epoch(struct head_epoch *e)
{
    free(e->route);
    *e = (struct head_epoch){0};
}

struct head *head_by_stream(const struct link *l, uint32_t stream)
{
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        if (l->heads->head[i] && l->heads->head[i]->stream == stream) {
            return l->heads->head[i];
        }
    }
    return NULL;
}

struct head *head_by_model(const struct link *l, const char *model)
{
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        struct head *h = l->heads->head[i];

        if (h && !h->withdrawn && strcmp(h->state.model, model) == 0) {
            return h;
        }
    }
    return NULL;
}

bool head_hop_has(const struct head *h, const struct brd_hop *hop, size_t board)
{
    for (size_t k = 0; k < hop->board_count; k++) {
        if (strcmp(hop->board[k].print, link_print(h->link, board)) == 0) {
            return true;
        }
    }
    return false;
}

bool head_uses(const struct head *h, const struct head_epoch *e, size_t board)
{
    bool found = false;

    for (size_t i = 0; i < e->route->hop_count; i++) {
        found |= head_hop_has(h, &e->route->hop[i], board);
    }
    return found;
}

void head_epoch_fail(struct head *h, struct head_epoch *e, size_t board, size_t to, const char *why)
{
    struct brd_route_state *s = &h->state;
    uint32_t again = e->ledger ? lnk_ledger_void(h->ledger, e->ledger, LNK_ALL_WAYS) : 0;

    link_log("route %u of %s is over: %s; %u frames wait", e->route->number, e->route->model, why,
             again);
    if (e->route->number == s->number) {
        s->phase = BRD_FAILED;
        snprintf(s->why, sizeof(s->why), "%s", why);
        snprintf(s->board, sizeof(s->board), "%s",
                 board == LINK_NOBODY ? "" : link_print(h->link, board));
        snprintf(s->to, sizeof(s->to), "%s", to == LINK_NOBODY ? "" : link_print(h->link, to));
    }
    h->link->news = true;
    head_end_epoch(e);
}

/* Return: boards of a single hop that still compute, without @lost. */
static size_t others(const struct head *h, const struct head_epoch *e, size_t lost)
{
    size_t count = 0;

    for (size_t k = 0; k < e->route->hop[0].board_count; k++) {
        size_t board = link_find(h->link, e->route->hop[0].board[k].print);

        count += board != lost && board != LINK_NOBODY && !(e->gone & 1u << board);
    }
    return count;
}

void head_lose(struct head *h, struct head_epoch *e, size_t board, const char *why)
{
    char text[256];

    if (!head_uses(h, e, board) || e->gone & 1u << board) {
        return;
    }
    snprintf(text, sizeof(text), "%s %s", link_name(h->link, board), why);
    if (e->ledger && e->route->hop_count == 1 && others(h, e, board) > 0) {
        e->gone |= 1u << board;
        link_log("%s: %s; %u of its frames are sent again", e->route->model, text,
                 lnk_ledger_void(h->ledger, e->ledger, (uint32_t)board));
        h->link->news = true;
    } else {
        head_epoch_fail(h, e, board, LINK_NOBODY, text);
    }
}

/* Return: false: the text is too long. */
static bool plan_text(const struct head_epoch *e, size_t hop, char ret[LNK_PLAN_TEXT_MAX])
{
    const struct brd_route *r = e->route;
    const char *preprocess = e->pictures && hop == 0 ? r->preprocess : "";
    const char *line = *preprocess ? "\n" : "";
    char hops[LNK_PLAN_TEXT_MAX];
    int n;

    if (brd_hops_text(r->hop, r->hop_count, hops, sizeof(hops)) != 0) {
        return false;
    }
    n = snprintf(ret, LNK_PLAN_TEXT_MAX, "%s\n%s\n%s\n%s%s%s", r->content, hops, r->hop[hop].leaves,
                 r->hop[hop].primitives, line, preprocess);
    if (n >= (int)LNK_PLAN_TEXT_MAX) { /* boards can choose primitives by themselves */
        n = snprintf(ret, LNK_PLAN_TEXT_MAX, "%s\n%s\n%s\n%s%s", r->content, hops,
                     r->hop[hop].leaves, line, preprocess);
    }
    return n > 0 && (size_t)n < LNK_PLAN_TEXT_MAX;
}

/* Tells board @k of hop @i its place. Return: false: the epoch is over. */
static bool tell_place(struct head *h, struct head_epoch *e, size_t i, size_t k, const char *text)
{
    const struct brd_hop *hop = &e->route->hop[i];
    size_t board = link_find(h->link, hop->board[k].print);
    struct lnk_message m = {.header.type = LNK_PLAN};
    uint32_t number = e->number;

    if (board == LINK_NOBODY || !link_is_up(h->link, board)) {
        char why[64];

        snprintf(why, sizeof(why), "%s is not there",
                 board == LINK_NOBODY ? hop->board[k].print : link_name(h->link, board));
        head_epoch_fail(h, e, board, LINK_NOBODY, why);
        return false;
    }
    m.plan = (struct lnk_plan){.stream = h->stream,
                               .epoch = e->number,
                               .first_unit = hop->first_unit,
                               .last_unit = hop->last_unit,
                               .hop = (uint16_t)i,
                               .hop_count = (uint16_t)e->route->hop_count};
    brd_key_from_text(e->route->identity, m.plan.model);
    brd_key_from_text(hop->border, m.plan.border); /* zeros: unknown */
    m.tail = (const uint8_t *)text;
    m.tail_bytes = strlen(text);
    h->told |= 1u << board;
    if (link_put(h->link, board, LNK_BULK, &m, NULL, 0, NULL, NULL) != 0 && e->number == number) {
        head_lose(h, e, board, "takes no plan");
    }
    return e->number == number; /* a place here may be refused at once */
}

/* Tells boards that have not given credit. */
static void tell_places(struct head *h, struct head_epoch *e)
{
    base_autofree char *text = malloc(LNK_PLAN_TEXT_MAX);

    e->told_ns = base_now_ns();
    for (size_t i = 0; i < e->route->hop_count; i++) {
        if (!text || !plan_text(e, i, text)) {
            head_epoch_fail(h, e, LINK_NOBODY, LINK_NOBODY, "its plan is too long");
            return;
        }
        for (size_t k = 0; k < e->route->hop[i].board_count; k++) {
            if (e->room[i][k] == 0 && !tell_place(h, e, i, k, text)) {
                return;
            }
        }
    }
}

void head_remind(struct head *h, uint64_t now_ns)
{
    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        struct head_epoch *e = &h->epoch[i];

        if (e->number && !e->ledger && now_ns - e->told_ns > REMIND_NS) {
            tell_places(h, e);
        }
    }
}

/* All boards of the first hop know pictures, and the route says how they become its input. */
static bool takes_pictures(const struct head *h, const struct brd_route *r)
{
    bool all = r->preprocess[0] != 0;

    for (size_t k = 0; k < r->hop[0].board_count; k++) {
        size_t board = link_find(h->link, r->hop[0].board[k].print);

        all = all && board != LINK_NOBODY && link_takes(h->link, board, LNK_HELLO_PICTURES);
    }
    return all;
}

void head_prepare(struct head *h, const struct brd_route *route)
{
    struct head_epoch *e = NULL, *oldest = NULL;

    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        struct head_epoch *o = &h->epoch[i];

        if (o->number && !o->ledger) { /* superseded before it began */
            head_end_epoch(o);
        }
        e = o->number ? e : o;
        oldest = o->number && (!oldest || o->number < oldest->number) ? o : oldest;
    }
    if (!e) { /* boards that do not answer, and no link lost: it has waited long enough */
        lnk_ledger_void(h->ledger, oldest->ledger, LNK_ALL_WAYS);
        head_end_epoch(oldest);
        e = oldest;
    }
    h->state.number = route->number;
    h->state.phase = BRD_PREPARING;
    h->state.why[0] = h->state.board[0] = h->state.to[0] = 0;
    h->link->news = true;
    e->route = malloc(sizeof(*e->route));
    if (!e->route) {
        h->state.phase = BRD_FAILED;
        snprintf(h->state.why, sizeof(h->state.why), "out of memory");
        return;
    }
    *e->route = *route;
    e->pictures = takes_pictures(h, route);
    e->number = ++h->last_epoch;
    tell_places(h, e);
}

/* @hop: the first. Return: its boards' shares together. */
static uint32_t shares_of(const struct brd_hop *hop)
{
    uint32_t shares = 0;

    for (size_t k = 0; k < hop->board_count; k++) {
        shares += hop->board[k].share;
    }
    return shares;
}

static uint32_t window_of(const struct head *h, const struct head_epoch *e, size_t k)
{
    const struct brd_hop *hop = &e->route->hop[0];
    uint64_t all;

    if (e->route->hop_count == 1) {
        return e->gone & 1u << link_find(h->link, hop->board[k].print) ? 0
                                                                       : head_way_window(h, e, k);
    }
    all = head_window(h, e);
    return (uint32_t)base_max(all * hop->board[k].share / shares_of(hop), 1ull);
}

static void begin(struct head *h, struct head_epoch *e)
{
    const struct brd_hop *hop = &e->route->hop[0];
    struct lnk_way way[LNK_WAYS_MAX] = {{0}};

    for (size_t k = 0; k < hop->board_count; k++) {
        size_t board = link_find(h->link, hop->board[k].print);

        way[board].window = window_of(h, e, k);
        way[board].period = 1.0 / hop->board[k].share;
    }
    e->ledger = lnk_ledger_begin(h->ledger, way, LNK_WAYS_MAX);
    h->state.phase = BRD_READY;
    h->state.pictures = e->pictures;
    memset(h->state.service_ns, 0, sizeof(h->state.service_ns));
    h->pace = (struct head_pace){0};
    h->link->news = true;
    head_windows(h, e);
    link_log("route %u of %s serves, up to %u frames at once", e->route->number, e->route->model,
             h->state.frames);
}

void head_windows(struct head *h, const struct head_epoch *e)
{
    const struct brd_hop *hop = &e->route->hop[0];

    h->state.frames = 0;
    for (size_t k = 0; k < hop->board_count; k++) {
        uint32_t window = window_of(h, e, k);

        lnk_ledger_window(h->ledger, e->ledger, (uint32_t)link_find(h->link, hop->board[k].print),
                          window);
        h->state.frames += window;
    }
    h->state.window = base_min(head_full(h, e), h->state.frames);
}

void route_credit(struct link *l, size_t board, const struct lnk_message *m)
{
    const struct lnk_credit *c = &m->credit;
    struct head *h = head_by_stream(l, c->stream);
    struct head_epoch *e = h ? head_epoch(h, c->epoch) : NULL;
    const char *print = link_print(l, board);
    bool all = true;

    if (!e || c->hop >= e->route->hop_count || c->credits == 0) {
        return;
    }
    for (size_t k = 0; k < e->route->hop[c->hop].board_count; k++) {
        if (strcmp(e->route->hop[c->hop].board[k].print, print) == 0) {
            uint32_t busy = BRD_WINDOW_TIMES * c->depth;

            e->busy[c->hop][k] = base_min(c->credits, base_max((uint32_t)c->depth, 1u));
            e->room[c->hop][k] = busy ? base_min(c->credits, busy) : c->credits;
            e->frame_bytes[c->hop] = base_max(e->frame_bytes[c->hop], c->frame_bytes);
        }
    }
    for (size_t i = 0; i < e->route->hop_count; i++) {
        for (size_t k = 0; k < e->route->hop[i].board_count; k++) {
            all = all && e->room[i][k] > 0;
        }
    }
    if (all && !e->ledger) {
        begin(h, e);
    }
}

/* Tells boards that epochs before @first are over. Return: false: not all that are there know. */
static bool tell_over(struct head *h, uint32_t first)
{
    struct lnk_message m = {.header.type = LNK_PLAN};
    bool all = true;

    m.plan = (struct lnk_plan){.stream = h->stream, .epoch = first};
    for (size_t i = 0; i < LINK_BOARDS; i++) {
        if (!(h->told & 1u << i) || first <= base_max(h->over[i], 1u) || !link_is_up(h->link, i)) {
            continue;
        }
        if (link_put(h->link, i, LNK_BULK, &m, NULL, 0, NULL, NULL) == 0) {
            h->over[i] = first;
        } else { /* its link is full */
            all = false;
        }
    }
    return all;
}

bool head_tidy(struct head *h)
{
    const struct head_epoch *present = head_present(h);
    uint32_t first = h->last_epoch + 1;

    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        struct head_epoch *e = &h->epoch[i];
        bool ends = e->number && e->ledger && (e != present || h->withdrawn) &&
                    lnk_ledger_unanswered(h->ledger, e->ledger) == 0;

        if (ends || (e->number && !e->ledger && h->withdrawn)) {
            head_end_epoch(e);
        }
        first = e->number ? base_min(first, e->number) : first;
    }
    return tell_over(h, first);
}
