/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: how many frames of a route may be unanswered: ipc/boards/route_window.h. */
#include "ipc/boards/route_window.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "ipc/link/route_private.h"

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

/* Frames that the link between two boards holds; 0: they are one board. */
static double between(const struct link *l, size_t from, size_t to, double bytes)
{
    double ns = 0, ns_per_byte = 0;

    if (from == to || from == LINK_NOBODY || to == LINK_NOBODY) {
        return 0;
    }
    if (!told_cost(l, from, to, &ns, &ns_per_byte)) {
        told_cost(l, to, from, &ns, &ns_per_byte); /* else nobody knows: it holds one */
    }
    return brd_link_frames(ns, ns_per_byte, bytes);
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

/* The most that a link between two hops holds. @a, @b: NULL: the head. */
static double border(const struct head *h, const struct brd_hop *a, const struct brd_hop *b,
                     double bytes)
{
    double most = 0;

    for (size_t i = 0; i < (a ? a->board_count : 1); i++) {
        for (size_t k = 0; k < (b ? b->board_count : 1); k++) {
            size_t from = a ? board_at(h, a, i) : LINK_SELF;
            size_t to = b ? board_at(h, b, k) : LINK_SELF;

            most = base_max(most, between(h->link, from, to, bytes));
        }
    }
    return most;
}

/* A link of the route: what it holds, and what it takes. */
struct between {
    double most;       /* frames, by brd_link_frames() */
    double ns, ns_one; /* on the way; of which a frame has the wire for itself */
};

/* Of border @i of the route: before hop @i, or behind the last one. Of several links the slowest
 * counts. */
static struct between border_at(const struct head *h, const struct head_epoch *e, size_t i)
{
    const struct brd_route *r = e->route;
    const struct brd_hop *a = i > 0 ? &r->hop[i - 1] : NULL,
                         *b = i < r->hop_count ? &r->hop[i] : NULL;
    double bytes = b ? (double)e->frame_bytes[i] : answer_bytes(r);
    struct between ret = {.most = border(h, a, b, bytes)};

    for (size_t j = 0; j < (a ? a->board_count : 1); j++) {
        for (size_t k = 0; k < (b ? b->board_count : 1); k++) {
            size_t from = a ? board_at(h, a, j) : LINK_SELF;
            size_t to = b ? board_at(h, b, k) : LINK_SELF;
            double ns = 0, ns_per_byte = 0;

            if (from != to && from != LINK_NOBODY && to != LINK_NOBODY &&
                (told_cost(h->link, from, to, &ns, &ns_per_byte) ||
                 told_cost(h->link, to, from, &ns, &ns_per_byte))) {
                ret.ns = base_max(ret.ns, ns);
                ret.ns_one = base_max(ret.ns_one, ns_per_byte * bytes);
            }
        }
    }
    return ret;
}

static double busy_of(const struct head_epoch *e, size_t hop)
{
    double busy = 0;

    for (size_t k = 0; k < e->route->hop[hop].board_count; k++) {
        busy += e->busy[hop][k];
    }
    return busy;
}

/* The time between two answers when all that is fastest is busy; 0: nothing is known. */
static double bottleneck_ns(const struct head *h, const struct head_epoch *e)
{
    const struct brd_route *r = e->route;
    double ns = 0;

    for (size_t i = 0; i <= r->hop_count; i++) {
        ns = base_max(ns, border_at(h, e, i).ns_one);
        if (i < r->hop_count) {
            ns = base_max(ns, h->state.service_ns[i] / busy_of(e, i));
        }
    }
    return ns;
}

uint32_t head_full(const struct head *h, const struct head_epoch *e)
{
    double period_ns = bottleneck_ns(h, e), frames = 0;

    for (size_t i = 0; i <= e->route->hop_count; i++) {
        struct between b = border_at(h, e, i);

        frames += period_ns > 0 && b.most > 0 ? base_min(1 + b.ns / period_ns, b.most) : b.most;
        if (i < e->route->hop_count) {
            double busy = busy_of(e, i), ns = h->state.service_ns[i];

            frames += ns > 0 ? base_min(ns / period_ns, busy) : busy;
            frames += (double)e->route->hop[i].board_count; /* the next one waits there */
        }
    }
    return (uint32_t)ceil(frames);
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
    double frames = border(h, &r->hop[r->hop_count - 1], NULL, answer_bytes(r));

    for (size_t i = 0; i < r->hop_count; i++) {
        frames += border(h, i > 0 ? &r->hop[i - 1] : NULL, &r->hop[i], (double)e->frame_bytes[i]);
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
                          between(h->link, LINK_SELF, board, (double)e->frame_bytes[0]) +
                          between(h->link, board, LINK_SELF, answer_bytes(r)));
}
