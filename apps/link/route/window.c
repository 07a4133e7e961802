/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: how many frames of a route may be unanswered: ipc/boards/route_window.h. */
#include "ipc/boards/route_window.h"

#include <math.h>

#include "apps/link/route/route_private.h"

#define PACE_ANSWERS 16u /* at least, to know the pace of a full route */

/* What @from says of its link to @to; of this board: what was measured here. */
static bool told_cost(const struct link *l, size_t from, size_t to, double *ret_ns,
                      double *ret_ns_per_byte)
{
    const struct brd_state *s = from == LINK_SELF ? NULL : &l->peer[from].state;
    struct lnk_link_cost cost;

    if (!s) {
        if (!link_cost(l, to, &cost)) {
            return false;
        }
        *ret_ns = cost.a_ns;
        *ret_ns_per_byte = cost.b_ns;
        return true;
    }
    for (size_t i = 0; i < s->way_count; i++) {
        if (s->way[i].measured && strcmp(s->way[i].print, link_print(l, to)) == 0) {
            *ret_ns = s->way[i].ns;
            *ret_ns_per_byte = s->way[i].ns_per_byte;
            return true;
        }
    }
    return false;
}

/* A link: what it holds, and what it takes. */
struct between {
    double most;       /* frames, by brd_link_frames(); 0: it joins a board with itself */
    double ns, ns_one; /* on the way; of which a frame has the wire for itself */
};

static struct between between(const struct link *l, size_t from, size_t to, double bytes)
{
    double ns = 0, ns_per_byte = 0;

    if (from == to || from == LINK_NOBODY || to == LINK_NOBODY) {
        return (struct between){0};
    }
    if (!told_cost(l, from, to, &ns, &ns_per_byte)) {
        told_cost(l, to, from, &ns, &ns_per_byte); /* else nobody knows: it holds one */
    }
    return (struct between){brd_link_frames(ns, ns_per_byte, bytes), ns, ns_per_byte * bytes};
}

static size_t board_at(const struct head *h, const struct brd_hop *hop, size_t k)
{
    return link_find(h->link, hop->board[k].print);
}

static double answer_bytes(const struct brd_route *r)
{
    double bytes = 0;

    for (size_t i = 0; i < r->output_count; i++) {
        bytes += (double)r->output[i].bytes;
    }
    return bytes;
}

/* Border @i of the route: before hop @i, or behind the last one. Of links the most counts. */
static struct between border_at(const struct head *h, const struct head_epoch *e, size_t i)
{
    const struct brd_route *r = e->route;
    const struct brd_hop *a = i > 0 ? &r->hop[i - 1] : NULL,
                         *b = i < r->hop_count ? &r->hop[i] : NULL;
    double bytes = b ? (double)e->frame_bytes[i] : answer_bytes(r);
    struct between ret = {0};

    for (size_t j = 0; j < (a ? a->board_count : 1); j++) {
        for (size_t k = 0; k < (b ? b->board_count : 1); k++) {
            struct between one = between(h->link, a ? board_at(h, a, j) : LINK_SELF,
                                         b ? board_at(h, b, k) : LINK_SELF, bytes);

            ret.most = base_max(ret.most, one.most);
            ret.ns = base_max(ret.ns, one.ns);
            ret.ns_one = base_max(ret.ns_one, one.ns_one);
        }
    }
    return ret;
}

/* Of the frames that keep a board busy, those that it computes at once: pl_depth() counts one more
 * that waits for a stage, and one where several teams share it. */
static double at_once(uint32_t busy)
{
    return busy > 3 ? busy - 2 : base_max(busy, 2u) - 1;
}

/* What keeps the boards of a hop busy. */
struct busy {
    double computed, waiting; /* frames */
};

static struct busy busy_of(const struct head_epoch *e, size_t hop)
{
    struct busy ret = {0};

    for (size_t k = 0; k < e->route->hop[hop].board_count; k++) {
        ret.computed += at_once(e->busy[hop][k]);
        ret.waiting += e->busy[hop][k] - at_once(e->busy[hop][k]);
    }
    return ret;
}

/* Where a route that is full has its queue. */
struct bottleneck {
    double period_ns; /* between two answers; 0: nothing is known */
    double waiting;   /* frames that wait there, so that it is never idle */
};

static struct bottleneck bottleneck_of(const struct head *h, const struct head_epoch *e)
{
    struct bottleneck ret = {0, 1};

    for (size_t i = 0; i <= e->route->hop_count; i++) {
        double ns_one = border_at(h, e, i).ns_one;

        if (ns_one > ret.period_ns) {
            ret = (struct bottleneck){ns_one, 1};
        }
        if (i < e->route->hop_count) {
            struct busy b = busy_of(e, i);
            double ns = h->state.service_ns[i] / b.computed;

            if (ns > ret.period_ns) {
                ret = (struct bottleneck){ns, b.waiting};
            } else if (ret.period_ns <= 0) {
                ret.waiting = base_max(ret.waiting, b.waiting);
            }
        }
    }
    return ret;
}

/* By Little's law, what is computed and what is on the wire at the rate of the bottleneck. */
static double on_their_way(const struct head *h, const struct head_epoch *e, double period_ns)
{
    double frames = 0;

    for (size_t i = 0; i <= e->route->hop_count; i++) {
        struct between b = border_at(h, e, i);

        frames += period_ns > 0 ? base_min((b.ns + b.ns_one) / period_ns, b.most) : b.most;
        if (i < e->route->hop_count) {
            double computed = busy_of(e, i).computed, ns = h->state.service_ns[i];

            frames += ns > 0 ? base_min(ns / period_ns, computed) : computed;
        }
    }
    return frames;
}

/* How long a frame that finds nobody before it is on its way: by its parts, or as one was. */
static double alone_ns(const struct head *h, const struct head_epoch *e)
{
    double ns = 0;

    for (size_t i = 0; i <= e->route->hop_count; i++) {
        struct between b = border_at(h, e, i);

        ns += b.ns + b.ns_one + (i < e->route->hop_count ? h->state.service_ns[i] : 0);
    }
    return base_max(ns, (double)h->pace.alone_ns);
}

void head_pace_frame(struct head *h, uint64_t took_ns)
{
    h->pace.alone_ns = h->pace.alone_ns ? base_min(h->pace.alone_ns, took_ns) : took_ns;
}

void head_pace_answers(struct head *h, uint32_t count, bool full, uint64_t now_ns)
{
    if (full && h->pace.full) {
        h->pace.full_ns += now_ns - h->pace.last_ns;
        h->pace.answers += count;
    }
    h->pace.full = full;
    h->pace.last_ns = now_ns;
}

uint32_t head_full(struct head *h, const struct head_epoch *e)
{
    struct bottleneck b = bottleneck_of(h, e);
    double frames = on_their_way(h, e, b.period_ns);

    /* What was measured counts what no model has: boards that share cores, other programs. */
    if (h->pace.answers >= PACE_ANSWERS) {
        double period_ns = (double)h->pace.full_ns / h->pace.answers, boards = 0;

        for (size_t i = 0; i < e->route->hop_count; i++) {
            boards += (double)e->route->hop[i].board_count;
        }
        frames = base_min(frames, base_max(alone_ns(h, e) / period_ns, boards));
    }
    h->pace.full_ns = h->pace.answers = 0;
    return (uint32_t)ceil(frames + b.waiting);
}

/* Without more bytes at any border than one may have. */
static uint32_t bounded(const struct head_epoch *e, double frames)
{
    uint64_t bytes = 1;

    for (size_t i = 0; i < e->route->hop_count; i++) {
        bytes = base_max(bytes, e->frame_bytes[i]);
    }
    frames = base_min(frames, (double)(BRD_WINDOW_BYTES / bytes));
    return (uint32_t)base_max(base_min(ceil(frames), (double)HEAD_FRAMES), 1.0);
}

uint32_t head_window(const struct head *h, const struct head_epoch *e)
{
    const struct brd_route *r = e->route;
    double frames = border_at(h, e, r->hop_count).most;

    for (size_t i = 0; i < r->hop_count; i++) {
        frames += border_at(h, e, i).most;
        for (size_t k = 0; k < r->hop[i].board_count; k++) {
            frames += e->room[i][k];
        }
    }
    return bounded(e, frames);
}

uint32_t head_way_window(const struct head *h, const struct head_epoch *e, size_t k)
{
    const struct brd_route *r = e->route;
    size_t board = board_at(h, &r->hop[0], k);

    return bounded(e, e->room[0][k] +
                          between(h->link, LINK_SELF, board, (double)e->frame_bytes[0]).most +
                          between(h->link, board, LINK_SELF, answer_bytes(r)).most);
}
