/* SPDX-License-Identifier: Apache-2.0 */
/* What a team needs of a model: scratch, frames at once, memory near its cores. */
#include "kernels/common/uneven.h"
#include "kernels/net_private.h"

static size_t scratch_of(const struct krn_net *net, const struct krn_bound *bound, size_t i,
                         size_t width)
{
    return krn_bound_scratch_bytes(bound->primitive, net->model, i, width);
}

size_t krn_net_scratch_bytes(const struct krn_net *net, size_t width)
{
    size_t most = krn_preprocess_scratch_bytes(net->model, width);

    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].bound_count; k++) {
            struct krn_bound *bound = &net->ops[i].bound[k];

            if (bound->ready) {
                (void)krn_bound_ready(bound, net->model, i, width);
            }
            most = base_max(most, scratch_of(net, bound, i, width));
        }
    }
    return base_align_up(most, 64);
}

/* Calls @visit for every primitive that a team running ops @first..@last may run. Return: 0 or what
 * @visit returned. */
static int each_bound(const struct krn_net *net, size_t kind, size_t first, size_t last,
                      int (*visit)(const struct krn_net *net, struct krn_bound *bound, size_t op,
                                   void *arg),
                      void *arg)
{
    size_t entry = krn_image_entry(net->model);
    int r = 0;

    for (size_t i = first; r == 0 && i <= last && i < net->model->op_count; i++) {
        struct krn_bound *fused = i < last ? krn_net_pair(net, kind, i) : NULL;

        if (!fused) {
            r = visit(net, krn_net_own(net, kind, i), i, arg);
            continue;
        }
        r = visit(net, fused, i, arg);
        for (size_t k = i; r == 0 && (i == entry || i + 1 == entry) && k <= i + 1; k++) {
            r = visit(net, krn_net_own(net, kind, k), k, arg);
        }
        i++;
    }
    return r;
}

struct team_needs {
    size_t width, scratch_bytes;
};

static int ready_bound(const struct krn_net *net, struct krn_bound *bound, size_t op, void *arg)
{
    struct team_needs *needs = arg;

    needs->scratch_bytes = base_max(needs->scratch_bytes, scratch_of(net, bound, op, needs->width));
    return krn_bound_ready(bound, net->model, op, needs->width);
}

size_t krn_net_frames_bytes(const struct krn_net *net, size_t kind, struct krn_range ops,
                            size_t width, size_t frames)
{
    size_t most = 0;

    for (size_t i = ops.begin; i < ops.end && i < net->model->op_count; i++) {
        const struct krn_primitive *v = krn_net_own(net, kind, i)->primitive;

        most = base_max(most, krn_bound_frames_bytes(v, net->model, i, width, frames));
    }
    return most;
}

static int use_bound(const struct krn_net *net, struct krn_bound *bound, size_t op, void *arg)
{
    const bool *more = arg;

    bound->users += *more ? 1 : (size_t)-1;
    return 0;
}

/* Prepares ops for a team of @width and up to @frames frames at once; raises @io_bytes to the
 * scratch that it needs. */
static int ready_width(const struct krn_net *net, size_t kind, struct krn_range ops, size_t width,
                       size_t frames, size_t *io_bytes)
{
    struct team_needs needs = {width, krn_preprocess_scratch_bytes(net->model, width)};
    int r = each_bound(net, kind, ops.begin, ops.end - 1, ready_bound, &needs);
    size_t at_once = frames > 1 ? krn_net_frames_bytes(net, kind, ops, width, frames) : 0;

    *io_bytes = base_max(*io_bytes, base_align_up(base_max(needs.scratch_bytes, at_once), 64));
    return r;
}

static void join(const struct krn_net *net, size_t kind, struct krn_range ops)
{
    bool more = true;

    each_bound(net, kind, ops.begin, ops.end - 1, use_bound, &more);
}

int krn_net_join(const struct krn_net *net, size_t kind, size_t first, size_t last, size_t width,
                 size_t *ret_scratch_bytes)
{
    struct krn_range ops = {first, last + 1};
    size_t bytes = 0;
    int r = ready_width(net, kind, ops, width, 1, &bytes);

    if (r == 0) {
        join(net, kind, ops);
        *ret_scratch_bytes = bytes;
    }
    return r;
}

int krn_net_join_uneven(const struct krn_net *net, size_t kind, struct krn_range ops,
                        size_t members, size_t frames, size_t *ret_scratch_bytes)
{
    struct krn_uneven asks = {.members = members};
    size_t bytes = 0;
    int r;

    krn_parallel_uneven(&asks);
    r = ready_width(net, kind, ops, members, frames, &bytes);
    /* what a library makes for each width are the runs of parts that a member may get */
    for (size_t width = krn_uneven_parts(members); r == 0 && width > 1; width /= 2) {
        r = ready_width(net, kind, ops, width, frames, &bytes);
    }
    krn_parallel_uneven(NULL);
    if (r == 0) {
        join(net, kind, ops);
        *ret_scratch_bytes = bytes;
    }
    return r;
}

static int refuse_whole(const struct krn_net *net, struct krn_bound *bound, size_t op, void *arg)
{
    bool *any = arg;

    *any |= bound->primitive->whole && !net->ops[op].skip;
    return 0;
}

size_t krn_net_pieces(const struct krn_net *net, size_t kind, struct krn_range ops, size_t most)
{
    size_t pieces = 1;
    bool whole = false;

    each_bound(net, kind, ops.begin, ops.end - 1, refuse_whole, &whole);
    while (!whole && 2 * pieces <= most) {
        pieces *= 2;
    }
    return pieces;
}

int krn_net_join_pieces(const struct krn_net *net, size_t kind, struct krn_range ops, size_t pieces,
                        size_t *io_scratch_bytes)
{
    return ready_width(net, kind, ops, pieces, 1, io_scratch_bytes);
}

void krn_net_leave(const struct krn_net *net, size_t kind, size_t first, size_t last)
{
    bool more = false;

    each_bound(net, kind, first, last, use_bound, &more);
}

void krn_net_trim(const struct krn_net *net)
{
    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].bound_count; k++) {
            if (net->ops[i].bound[k].users == 0) {
                krn_bound_release(&net->ops[i].bound[k]);
            }
        }
    }
    mdl_drop_weights(net->model);
}

/* Adjacent primitives in a store that the same nodes read. */
struct neighbours {
    const struct krn_store *store;
    const uint8_t *from, *end;
    uint64_t nodes;
    bool changed;
};

static void place_neighbours(struct neighbours *n)
{
    if (n->changed) {
        (void)krn_store_near(n->store, n->from, n->end, n->nodes);
    }
    *n = (struct neighbours){.nodes = 0};
}

/* What lies between two places of the net's own store is not in use, or on nodes of its own. In the
 * store of another net it may be that net's. */
static bool goes_on(const struct krn_net *net, const struct neighbours *n,
                    const struct krn_lying *at, uint64_t nodes)
{
    const uint8_t *slot = at->pages->slot;

    return n->nodes == nodes && n->store == at->store && slot >= n->end &&
           (n->store == &net->shelf->store || slot < n->end + BASE_CACHE_LINE_BYTES);
}

static void place_bound(const struct krn_net *net, struct krn_bound *bound, uint64_t nodes,
                        struct neighbours *n)
{
    struct krn_lying at = {&bound->packed, &net->shelf->store, bound->nodes != nodes};

    bound->nodes = nodes;
    if (bound->shared) {
        krn_shared_place(bound->shared, nodes, &at);
    }
    if (!at.pages->slot) {
        (void)(at.elsewhere ? krn_pages_near(at.pages, nodes) : 0);
        return;
    }
    if (!goes_on(net, n, &at, nodes)) {
        place_neighbours(n);
        *n = (struct neighbours){.store = at.store, .from = at.pages->slot, .nodes = nodes};
    }
    n->end = at.pages->slot + at.pages->slot_bytes;
    n->changed |= at.elsewhere;
}

static uint64_t nodes_of(const struct krn_net *net, size_t op, size_t bound, const uint64_t *nodes)
{
    uint64_t all = 0;

    for (size_t k = 0; k < net->kind_count; k++) {
        const struct krn_net_pick *p = &net->ops[op].picks[k];

        all |= p->own == bound || p->fused == bound ? nodes[k] : 0;
    }
    return all;
}

void krn_net_place(const struct krn_net *net, size_t first, size_t last, const uint64_t *nodes)
{
    struct neighbours n = {.nodes = 0};

    for (size_t i = first; i <= last && i < net->model->op_count; i++) {
        for (size_t at = 0; at < net->ops[i].bound_count; at++) {
            uint64_t of_bound = nodes_of(net, i, at, nodes);

            if (of_bound) { /* else no team runs it here, or the nodes are unknown */
                place_bound(net, &net->ops[i].bound[at], of_bound, &n);
            }
        }
    }
    place_neighbours(&n);
}
