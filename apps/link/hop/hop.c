/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/hop/hop_private.h"

#define REACH_NS (3 * BASE_NS_PER_S) /* how long the boards of the next hop may be away at first */

struct hops *hops_new(void)
{
    struct hops *h = calloc(1, sizeof(*h));

    if (h) {
        TAILQ_INIT(&h->queue.frames);
    }
    return h;
}

struct hops *hops_free(struct hops *h)
{
    while (h && !TAILQ_EMPTY(&h->queue.frames)) {
        hop_drop_waiting(&h->queue, TAILQ_FIRST(&h->queue.frames));
    }
    free(h);
    return NULL;
}

static void end_place(struct hop_place *p)
{
    segment_release(p->segment);
    *p = (struct hop_place){0};
}

/* Ends a place and tells its head. */
static void refuse(struct link *l, struct hop_place *p, int status, const char *why)
{
    struct lnk_error e = {
        .stream = p->stream, .epoch = p->epoch, .hop = p->hop, .status = (uint16_t)status};
    size_t head = p->head;

    end_place(p);
    link_put_error(l, head, &e, why);
}

/* A place cannot go on: what it gets from or sends to a board is lost. */
static void lose(struct link *l, struct hop_place *p, size_t board)
{
    link_log("%s cannot be reached for a route of %s", link_name(l, board), link_name(l, p->head));
    refuse(l, p, PIPED_UNAVAILABLE, link_print(l, board));
}

static void give_credit(struct link *l, struct hop_place *p)
{
    const struct piped_stream_info *info = piped_stream_info(p->segment->lane[0].stream);
    struct lnk_message m = {.header.type = LNK_CREDIT};

    m.credit = (struct lnk_credit){.stream = p->stream,
                                   .epoch = p->epoch,
                                   .hop = p->hop,
                                   .depth = (uint16_t)base_min(info->depth, (uint32_t)UINT16_MAX),
                                   .credits = info->slots,
                                   .frame_bytes = info->input_bytes};
    link_put(l, p->head, LNK_BULK, &m, NULL, 0, NULL, NULL);
}

/* Do the head and the daemon here mean the same by these units, as far as both say? */
static bool same_cut(const struct hop_place *p)
{
    static const uint8_t unknown[LNK_HASH_BYTES];
    const uint8_t *here = p->segment->border;

    return memcmp(p->border, unknown, LNK_HASH_BYTES) == 0 ||
           memcmp(here, unknown, LNK_HASH_BYTES) == 0 ||
           memcmp(p->border, here, LNK_HASH_BYTES) == 0;
}

static void refuse_cut(struct link *l, struct hop_place *p)
{
    const char *head = p->head == LINK_SELF ? PIPED_VERSION : l->peer[p->head].state.version;
    char why[256];

    snprintf(why, sizeof(why), "it cuts the model in another way (piped %s there, %s here)",
             PIPED_VERSION, *head ? head : "of another version");
    refuse(l, p, PIPED_UNSUPPORTED, why);
}

/* Gives credit, if there is a segment, and every board that the place sends to. The head asks again
 * while it does not have credit. */
static void offer(struct link *l, struct hop_place *p)
{
    for (size_t k = 0; k < p->next_count; k++) {
        if (!link_is_up(l, p->next[k].board)) {
            if (base_now_ns() > p->since_ns + REACH_NS) {
                lose(l, p, p->next[k].board);
            }
            return;
        }
    }
    if (p->segment->phase != SEGMENT_READY) {
        return;
    }
    if (same_cut(p)) {
        give_credit(l, p);
    } else {
        refuse_cut(l, p);
    }
}

void hop_segment_changed(struct link *l, struct segment *s)
{
    for (struct hop_place *p = NULL; (p = hop_places(l->hops, p));) {
        if (p->segment != s) {
            continue;
        }
        if (s->phase == SEGMENT_READY) {
            offer(l, p);
        } else if (s->phase == SEGMENT_FAILED) {
            refuse(l, p, s->status, s->why);
        }
    }
}

/* The lines of a plan's text. Return: false: not so. */
struct lines {
    struct segment_text of;
    char hops[LNK_PLAN_TEXT_MAX];
};
static bool read_lines(const struct lnk_message *m, struct lines *ret)
{
    const char *at = (const char *)m->tail, *end = at + m->tail_bytes;
    struct {
        char *text;
        size_t bytes;
    } line[] = {{ret->of.content, sizeof(ret->of.content)},
                {ret->hops, sizeof(ret->hops)},
                {ret->of.leaves, sizeof(ret->of.leaves)},
                {ret->of.primitives, sizeof(ret->of.primitives)},
                {ret->of.preprocess, sizeof(ret->of.preprocess)}};
    size_t n = 0;

    for (; n < base_array_count(line) && at <= end; n++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((stop ? stop : end) - at);

        if (bytes >= line[n].bytes) {
            return false;
        }
        memcpy(line[n].text, at, bytes);
        line[n].text[bytes] = 0;
        at += bytes + 1;
    }
    return ret->of.content[0] && at > end && n > 2 && brd_is_shown(ret->of.primitives) &&
           brd_is_shown(ret->of.preprocess);
}

/* Who sends frames to the place, and who gets them from it. Return: NULL, or what is wrong. */
static const char *read_neighbours(const struct link *l, const struct lnk_plan *m, const char *text,
                                   struct hop_place *p)
{
    base_autofree struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    bool here = false;
    size_t count, board;

    if (!hop || brd_hops_parse(text, hop, &count) != 0 || count != m->hop_count ||
        hop[m->hop].first_unit != m->first_unit || hop[m->hop].last_unit != m->last_unit) {
        return "the route cannot be read";
    }
    for (size_t i = 0; i < hop[m->hop].board_count; i++) {
        here |= strcmp(hop[m->hop].board[i].print, l->print) == 0;
    }
    if (!here) {
        return "the route does not name this board here";
    }
    for (size_t i = 0; m->hop > 0 && i < hop[m->hop - 1].board_count; i++) {
        board = link_find(l, hop[m->hop - 1].board[i].print);
        p->from |= board == LINK_NOBODY ? 0 : 1u << board;
    }
    for (size_t i = 0; m->hop + 1u < count && i < hop[m->hop + 1].board_count; i++) {
        board = link_find(l, hop[m->hop + 1].board[i].print);
        if (board == LINK_NOBODY) {
            return "the route names a board that is not on this board's list";
        }
        p->next[p->next_count++] = (struct hop_next){board, (int)hop[m->hop + 1].board[i].share, 0};
    }
    return NULL;
}

static struct hop_place *find_place(struct hops *h, size_t head, const struct lnk_plan *m)
{
    for (struct hop_place *p = NULL; (p = hop_places(h, p));) {
        if (p->head == head && p->stream == m->stream && p->epoch == m->epoch && p->hop == m->hop) {
            return p;
        }
    }
    return NULL;
}

static void end_epochs(struct hops *h, size_t head, const struct lnk_plan *m)
{
    for (struct hop_place *p = NULL; (p = hop_places(h, p));) {
        if (p->head == head && p->stream == m->stream && p->epoch < m->epoch) {
            end_place(p);
        }
    }
}

static void refuse_plan(struct link *l, size_t head, const struct lnk_plan *m, int status,
                        const char *why)
{
    struct hop_place p = {.head = head, .stream = m->stream, .epoch = m->epoch, .hop = m->hop};

    link_log("a route of %s cannot be served: %s", link_name(l, head), why);
    refuse(l, &p, status, why);
}

void hop_plan(struct link *l, size_t head, const struct lnk_message *m)
{
    base_autofree struct lines *lines = calloc(1, sizeof(*lines));
    struct hop_place made = {
        .head = head, .stream = m->plan.stream, .epoch = m->plan.epoch, .hop = m->plan.hop};
    struct hop_place *p;
    const char *why;

    if (m->plan.hop_count == 0) {
        end_epochs(l->hops, head, &m->plan);
        return;
    }
    if (!lines || !read_lines(m, lines)) {
        refuse_plan(l, head, &m->plan, PIPED_INVALID_ARGUMENT, "the plan cannot be read");
        return;
    }
    made.last = m->plan.hop + 1u == m->plan.hop_count;
    memcpy(made.border, m->plan.border, sizeof(made.border));
    p = find_place(l->hops, head, &m->plan);
    if (p && strcmp(p->segment->of.content, lines->of.content) == 0) {
        offer(l, p);
        return;
    }
    if (p) {
        end_place(p);
    }
    why = read_neighbours(l, &m->plan, lines->hops, &made);
    p = why ? NULL : hop_place(l->hops, 0);
    if (p) {
        made.segment = segment_hold(l, head, m, &lines->of);
    }
    if (!made.segment) {
        refuse_plan(
            l, head, &m->plan, why ? PIPED_INVALID_ARGUMENT : PIPED_RESOURCE_EXHAUSTED,
            why ? why : "this board serves too many segments, or a different file under that name");
        return;
    }
    made.number = ++l->hops->last_number;
    made.since_ns = base_now_ns();
    *p = made;
    offer(l, p);
}

static bool sends_to(const struct hop_place *p, size_t board)
{
    bool found = false;

    for (size_t k = 0; k < p->next_count; k++) {
        found |= p->next[k].board == board;
    }
    return found;
}

void hop_peer_gone(struct link *l, size_t peer)
{
    for (struct hop_place *p = NULL; (p = hop_places(l->hops, p));) {
        if (p->head == peer) {
            end_place(p);
        } else if (sends_to(p, peer)) {
            lose(l, p, peer);
        }
    }
}

void hop_error(struct link *l, size_t from, const struct lnk_error *e)
{
    for (struct hop_place *p = NULL; (p = hop_places(l->hops, p));) {
        if (p->stream == e->stream && p->epoch == e->epoch && p->hop + 1u == e->hop &&
            sends_to(p, from)) {
            lose(l, p, from);
        }
    }
}
