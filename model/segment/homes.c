/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a segment's tensors share memory with another. */
#include "model/segment/cut.h"

/* What ops and borders of a segment do with one storage. */
struct facts {
    size_t front, back;           /* how many tensors of it the borders carry */
    bool front_fills, back_fills; /* that is one tensor, which is all of the storage */
    bool written;
    size_t first_write; /* the first op that writes to it ... */
    bool write_fills;   /* ... and whether it writes all of it */
};

static void see_ops(struct mdl_cut *cut, struct facts *facts)
{
    const struct mdl_model *m = cut->whole;

    for (size_t k = cut->first_op; k < cut->end_op; k++) {
        const struct mdl_op *op = &m->ops[k];

        for (size_t i = 0; i <= MDL_OP_IN_MAX; i++) {
            size_t in = i < MDL_OP_IN_MAX ? op->in[i] : op->residual_in;

            if (in != MDL_NONE) {
                cut->uses[m->tensors[in].storage].used = true;
            }
        }
        for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
            const struct mdl_tensor *y = op->out[i] == MDL_NONE ? NULL : &m->tensors[op->out[i]];

            if (!y) {
                continue;
            }
            cut->uses[y->storage].used = true;
            if (!facts[y->storage].written) {
                facts[y->storage].written = true;
                facts[y->storage].first_write = k;
                facts[y->storage].write_fills = mdl_fills(m, y);
            }
        }
    }
}

static void see_border(const struct mdl_model *m, const struct mdl_border *b, bool front,
                       struct facts *facts)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct mdl_live *l = &b->live[i];
        struct facts *f = &facts[l->t.storage];
        size_t *count = front ? &f->front : &f->back;
        bool *all = front ? &f->front_fills : &f->back_fills;

        ++*count;
        *all = *count == 1 && mdl_fills(m, &l->t);
    }
}

static const struct mdl_live *next_of(const struct mdl_border *b, size_t storage, size_t *at)
{
    while (*at < b->count) {
        const struct mdl_live *l = &b->live[(*at)++];

        if (l->t.storage == storage) {
            return l;
        }
    }
    return NULL;
}

/* Return: whether both borders carry the same tensors of @storage. */
static bool same_tensors(const struct mdl_cut *cut, size_t storage)
{
    for (size_t i = 0, k = 0;;) {
        const struct mdl_live *a = next_of(&cut->front, storage, &i);
        const struct mdl_live *b = next_of(&cut->back, storage, &k);

        if (!a || !b) {
            return !a && !b;
        }
        if (!mdl_same_place(&a->t, &b->t)) {
            return false;
        }
    }
}

static void decide(const struct mdl_cut *cut, size_t storage, const struct facts *f)
{
    struct mdl_use *u = &cut->uses[storage];

    u->split_op = MDL_NONE;
    if (cut->whole->storages[storage].home == MDL_HOME_CONST) {
        u->place = u->used ? MDL_PLACE_CONST : MDL_PLACE_NONE;
        return;
    }
    if (f->front_fills && !f->written) {
        u->place = MDL_PLACE_INPUT;
        u->copy_out = f->back > 0;
        return;
    }
    u->passes_by = !u->used && f->front > 0 && same_tensors(cut, storage);
    if (u->passes_by || (!u->used && f->front == 0)) {
        return; /* nowhere */
    }
    u->place = f->back_fills ? MDL_PLACE_OUTPUT : MDL_PLACE_ARENA;
    u->copy_out = f->back > 0 && !f->back_fills;
    if (f->front_fills && f->write_fills) {
        u->split_op = f->first_write;
    } else {
        u->copy_in = f->front > 0;
    }
}

int mdl_cut_homes(struct mdl_cut *cut)
{
    size_t count = cut->whole->storage_count;
    base_autofree struct facts *facts = calloc(count + 1, sizeof(*facts));

    cut->uses = calloc(count + 1, sizeof(*cut->uses));
    if (!facts || !cut->uses) {
        return -ENOMEM;
    }
    see_ops(cut, facts);
    see_border(cut->whole, &cut->front, true, facts);
    see_border(cut->whole, &cut->back, false, facts);
    for (size_t i = 0; i < count; i++) {
        decide(cut, i, &facts[i]);
    }
    return 0;
}
