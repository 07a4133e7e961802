/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/route/route_private.h"

#include <sys/random.h>

#include "base/shown_text.h"

#define PAUSE_NS (2 * BASE_NS_PER_MS) /* after a board had no room */
#define STUCK_NS (10 * BASE_NS_PER_S) /* see progress.h; hops notice their daemons before */
#define WINDOW_NS (1 * BASE_NS_PER_S)
#define TURN_NS (500 * BASE_NS_PER_MS) /* a longer turn was nobody's fault but ours */

struct heads *heads_new(void)
{
    return calloc(1, sizeof(struct heads));
}

static struct head *head_free(struct head *h)
{
    for (size_t i = 0; h && i < HEAD_EPOCHS_MAX; i++) {
        head_end_epoch(&h->epoch[i]);
    }
    if (h) {
        lnk_ledger_free(h->ledger);
    }
    free(h);
    return NULL;
}

struct heads *heads_free(struct heads *h)
{
    for (size_t i = 0; h && i < BRD_ROUTES_MAX; i++) {
        head_free(h->head[i]);
    }
    free(h);
    return NULL;
}

/* For a model. Return: NULL: there are too many, or no memory. */
static struct head *head_new(struct link *l, const char *model)
{
    struct head *h = NULL;

    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        if (!l->heads->head[i]) {
            h = calloc(1, sizeof(*h));
            if (h && lnk_ledger_new(HEAD_FRAMES, &h->ledger) < 0) {
                h = head_free(h);
            }
            l->heads->head[i] = h;
            break;
        }
    }
    if (h) {
        h->link = l;
        for (size_t i = HEAD_FRAMES; i-- > 0;) {
            h->frame[i].next_free = h->free;
            h->free = &h->frame[i];
        }
        if (getrandom(&h->stream, sizeof(h->stream), 0) < 0) {
            h->stream = (uint32_t)base_now_ns();
        }
        snprintf(h->state.model, sizeof(h->state.model), "%s", model);
    }
    return h;
}

/* Return: the route of the newest epoch; NULL: there is none. */
static const struct brd_route *newest(const struct head *h)
{
    const struct head_epoch *best = NULL;

    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        const struct head_epoch *e = &h->epoch[i];

        best = e->number && (!best || e->number > best->number) ? e : best;
    }
    return best ? best->route : NULL;
}

/* ---- what the daemon sets ---- */

static void withdraw(struct head *h)
{
    h->withdrawn = true;
    h->link->news = true;
    link_log("the route of %s is withdrawn", h->state.model);
}

/* A new number, or the same of a daemon that was restarted. */
static bool is_new(const struct head *h, const struct brd_route *r)
{
    const struct brd_route *old = newest(h);

    return r->number != h->state.number ||
           (old && (old->hop_count != r->hop_count ||
                    memcmp(old->hop, r->hop, r->hop_count * sizeof(r->hop[0])) != 0));
}

/* Return: false: no memory, or no place yet. */
static bool set_one(struct link *l, const struct brd_route *r)
{
    struct head *h = head_by_model(l, r->model);

    if (h && (r->hop_count == 0 || strcmp(h->content, r->content) != 0)) {
        withdraw(h); /* or its file changed: frames of two files must not mix */
        h = NULL;
    }
    if (r->hop_count == 0) {
        return true;
    }
    if (!h) {
        h = head_new(l, r->model);
        if (!h) {
            return false;
        }
        memcpy(h->content, r->content, sizeof(h->content));
    } else if (!is_new(h, r)) {
        return true;
    }
    head_prepare(h, r);
    return true;
}

bool route_set(struct link *l, const struct brd_routes *routes)
{
    bool all = true;

    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        struct head *h = l->heads->head[i];
        bool there = false;

        for (size_t k = 0; h && k < routes->count; k++) {
            there |= strcmp(routes->route[k].model, h->state.model) == 0;
        }
        if (h && !h->withdrawn && !there) {
            withdraw(h);
        }
    }
    for (size_t k = 0; k < routes->count; k++) {
        all &= set_one(l, &routes->route[k]);
    }
    return all;
}

/* Boards without a place in the route have no say; where frames have one hop, each has its own. */
static bool may_complain(const struct head *h, const struct head_epoch *e, size_t board,
                         const struct lnk_error *m)
{
    return head_uses(h, e, board) && (m->frame == 0 || e->route->hop_count > 1 || m->way == board);
}

/* A frame failed for good. */
static void fail_frame(struct head *h, const struct head_epoch *e, const struct lnk_error *error)
{
    if (lnk_ledger_answer(h->ledger, error->frame, e->ledger, error->way, error->status, NULL) ==
        0) {
        lnk_progress_came(&h->progress, base_now_ns());
    }
}

bool route_error(struct link *l, size_t board, const struct lnk_message *m)
{
    struct head *h = head_by_stream(l, m->error.stream);
    struct head_epoch *e = h ? head_epoch(h, m->error.epoch) : NULL;
    char text[LNK_TEXT_MAX + 1];
    size_t to;

    if (!h || !e || !may_complain(h, e, board, &m->error)) {
        return h != NULL;
    }
    memcpy(text, m->tail, m->tail_bytes);
    text[m->tail_bytes] = 0;
    shown_clean(text, "");
    to = m->error.status == PIPED_UNAVAILABLE ? link_find(l, text) : LINK_NOBODY;
    if (m->error.frame != 0 && m->error.status == PIPED_RESOURCE_EXHAUSTED) {
        struct lnk_due due = {.frame = m->error.frame, .epoch = e->ledger, .way = m->error.way};

        lnk_ledger_unsend(h->ledger, &due);
        h->pause_ns = base_now_ns() + PAUSE_NS;
    } else if (to != LINK_NOBODY && (board == LINK_SELF || !link_is_up(l, to))) {
        head_lose(h, e, to, "is gone");
    } else if (to != LINK_NOBODY) {
        char why[128];

        snprintf(why, sizeof(why), "%s cannot reach %s", link_name(l, board), link_name(l, to));
        head_epoch_fail(h, e, board, to, why);
    } else if (m->error.frame == 0 || m->error.status == PIPED_UNAVAILABLE ||
               m->error.status == PIPED_NOT_FOUND) {
        char why[256];

        snprintf(why, sizeof(why), "cannot serve: %.200s", text);
        head_lose(h, e, board, why);
    } else {
        fail_frame(h, e, &m->error);
    }
    return true;
}

void route_peer_gone(struct link *l, size_t peer)
{
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        struct head *h = l->heads->head[i];

        if (h) {
            h->over[peer] = 0; /* if it has not noticed, it is told when it is back */
        }
        for (size_t k = 0; h && k < HEAD_EPOCHS_MAX; k++) {
            if (h->epoch[k].number) {
                head_lose(h, &h->epoch[k], peer, "is gone");
            }
        }
    }
}

/* No hop complains, and yet nothing comes: a piped-link hangs, or a frame was lost. */
static void watch(struct head *h, bool slept, uint64_t now_ns)
{
    struct head_epoch *e = head_present(h);
    struct lnk_ledger_counts c;

    lnk_ledger_counts(h->ledger, &c);
    h->progress.due = base_min(h->progress.due, c.in_flight);
    if (slept) {
        lnk_progress_excuse(&h->progress, now_ns);
    }
    if (!e || !lnk_progress_stuck(&h->progress, now_ns, STUCK_NS)) {
        return;
    }
    h->progress = (struct lnk_progress){0};
    for (size_t i = 0; i < h->link->boards.count && e->number; i++) {
        if (h->link->peer[i].pings_lost > 0) {
            head_lose(h, e, i, "does not answer");
        }
    }
    if (e->number) {
        head_epoch_fail(h, e, LINK_NOBODY, LINK_NOBODY, "no board answers");
    }
}

uint64_t route_go(struct link *l, uint64_t now_ns)
{
    uint64_t again_ns = UINT64_MAX;
    bool slept = now_ns > l->heads->turn_ns + TURN_NS;

    l->heads->turn_ns = now_ns;
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        struct head *h = l->heads->head[i];
        bool boards_know;

        if (!h) {
            continue;
        }
        watch(h, slept, now_ns);
        if (now_ns >= h->window_ns && head_present(h)) {
            h->window_ns = now_ns + WINDOW_NS;
            head_windows(h, head_present(h));
        }
        if (h->withdrawn) {
            lnk_ledger_refuse(h->ledger, PIPED_UNAVAILABLE);
        } else if (now_ns >= h->pause_ns) {
            head_send(h, now_ns);
        } else {
            again_ns = base_min(again_ns, h->pause_ns);
        }
        head_cancel(h);
        head_answer(h);
        head_remind(h, now_ns);
        boards_know = head_tidy(h);
        if (h->withdrawn && !newest(h) && h->taken == 0 && boards_know) {
            l->heads->head[i] = head_free(h);
        }
    }
    return again_ns;
}

size_t route_states(const struct link *l, struct brd_route_state ret[BRD_ROUTES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        const struct head *h = l->heads->head[i];
        struct lnk_ledger_counts c;

        if (h && !h->withdrawn) {
            lnk_ledger_counts(h->ledger, &c);
            ret[count] = h->state;
            ret[count].resent = c.resent;
            ret[count].dropped = c.cancelled;
            ret[count].late = c.late + c.doubled + h->late;
            count++;
        }
    }
    return count;
}

const char *route_path(const struct link *l, const uint8_t identity[LNK_HASH_BYTES])
{
    char text[BRD_KEY_TEXT_BYTES];

    brd_key_text(identity, text);
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        const struct brd_route *r = l->heads->head[i] ? newest(l->heads->head[i]) : NULL;

        if (r && strcmp(r->identity, text) == 0) {
            return r->path;
        }
    }
    return NULL;
}
