/* SPDX-License-Identifier: Apache-2.0 */
/* Weights are packed by several threads, each kind once. */
#include <stdatomic.h>

#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/net_private.h"

uint8_t krn_net_add(struct krn_net_op *o, const struct krn_primitive *v)
{
    uint8_t at = 0;

    while (at < o->bound_count && o->bound[at].primitive != v) {
        at++;
    }
    if (at == o->bound_count) {
        o->bound[o->bound_count++].primitive = v;
    }
    return at;
}

static _Thread_local size_t pack_threads;

void krn_pack_threads(size_t count)
{
    pack_threads = count;
}

/* A primitive to prepare. */
struct wanted {
    struct krn_bound *bound;
    size_t op;
    bool known; /* another net may have packed the same weights */
};

struct packing {
    const struct mdl_model *m;
    struct wanted *wanted; /* [count], owned */
    size_t count;
    _Atomic size_t next; /* writers: the threads that share the work */
};

static void want(struct packing *p, struct krn_net_op *o, size_t op, const struct krn_primitive *v)
{
    if (v && krn_usable(v, p->m, op)) {
        p->wanted[p->count++] = (struct wanted){&o->bound[krn_net_add(o, v)], op};
    }
}

static void want_chosen(struct krn_net *net, struct packing *p, const struct krn_choice *choices,
                        bool all)
{
    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->kind_count; k++) {
            const struct krn_choice *c = &choices[k];
            bool of_pair = c->fused[i] || (i > 0 && c->fused[i - 1]);

            want(p, &net->ops[i], i, c->fused[i]);
            want(p, &net->ops[i], i, of_pair && !all ? NULL : c->own[i]);
        }
    }
}

static void pack_some(void *arg)
{
    struct packing *p = arg;

    for (;;) {
        size_t at = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);

        if (at >= p->count || mdl_stopped()) {
            return;
        }
        mdl_progress("packing weights of operators", at, p->count);
        (void)krn_bound_ready(p->wanted[at].bound, p->m, p->wanted[at].op, 1);
    }
}

/* Lays the weights out side by side. Those that another net may have packed come last: their places
 * may stay empty, and between others the huge pages around them would fill them all the same. */
static void reserve(struct krn_net *net, const struct packing *p)
{
    size_t bytes[2] = {0};

    for (size_t i = 0; i < p->count; i++) {
        struct wanted *w = &p->wanted[i];

        w->bound->packed.bytes = krn_bound_packed_bytes(w->bound, p->m, w->op);
        w->known = krn_bound_may_share(w->bound, p->m, w->op);
        bytes[w->known] += base_align_up(w->bound->packed.bytes, BASE_CACHE_LINE_BYTES);
    }
    krn_store_init(&net->shelf->store, bytes[false], bytes[true]);
    for (size_t i = 0; i < 2 * p->count; i++) {
        struct wanted *w = &p->wanted[i % p->count];

        if (w->known == (i >= p->count)) {
            krn_store_reserve(&net->shelf->store, w->bound->packed.bytes, &w->bound->packed);
        }
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    size_t of_x = x->bound->packed.bytes, of_y = y->bound->packed.bytes;

    return of_x < of_y ? 1 : of_x > of_y ? -1 : x->op < y->op ? -1 : x->op > y->op;
}

/*
 * Prepares the choices' primitives side by side, the largest first, so that no thread ends with a
 * large one. A primitive that cannot be prepared is skipped; pick() later replaces it, op by op.
 */
int krn_net_pack(struct krn_net *net, const struct krn_choice *choices, bool all)
{
    struct packing p = {.m = net->model};
    size_t most = 2 * net->kind_count * net->model->op_count, count = 0;

    p.wanted = calloc(most + 1, sizeof(*p.wanted));
    if (!p.wanted) {
        return -ENOMEM;
    }
    want_chosen(net, &p, choices, all);
    for (size_t i = 0; i < p.count; i++) {
        bool twice = false; /* two kinds chose the same; entries of an op are adjacent */

        for (size_t k = i; !twice && k > 0 && p.wanted[k - 1].op == p.wanted[i].op; k--) {
            twice = p.wanted[k - 1].bound == p.wanted[i].bound;
        }
        if (!twice) {
            p.wanted[count++] = p.wanted[i];
        }
    }
    p.count = count;
    reserve(net, &p);
    qsort(p.wanted, p.count, sizeof(*p.wanted), by_bytes);
    mdl_share(base_min(base_max(pack_threads, (size_t)1), p.count), pack_some, &p);
    free(p.wanted);
    return 0;
}
