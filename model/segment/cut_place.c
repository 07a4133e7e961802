/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes of the segment's storages, and their places in its arena. */
#include "model/segment/cut.h"

/* Ops of the whole keep the lifetimes that the compiler gave their values, which may be longer than
 * from the first writer to the last reader. */
static void inherit_life(const struct mdl_cut *k, size_t storage)
{
    const struct mdl_storage *s = &k->whole->storages[storage];
    const struct mdl_use *u = &k->uses[storage];
    size_t first = base_max(s->first_op, k->first_op);
    size_t last = base_min(s->last_op, k->end_op - 1);

    if (u->now == MDL_NONE || u->place == MDL_PLACE_CONST || first > last) {
        return;
    }
    first = u->split_op == MDL_NONE ? first : u->split_op;
    k->m->storages[u->now].first_op = first - k->first_op + k->copies_in;
    k->m->storages[u->now].last_op = last - k->first_op + k->copies_in;
}

static void touch(struct mdl_model *m, size_t tensor, size_t op)
{
    if (tensor != MDL_NONE) {
        struct mdl_storage *s = &m->storages[m->tensors[tensor].storage];

        s->first_op = base_min(s->first_op, op);
        s->last_op = base_max(s->last_op, op);
    }
}

static void find_lifetimes(const struct mdl_cut *k)
{
    struct mdl_model *m = k->m;

    for (size_t i = 0; i < k->whole->storage_count; i++) {
        inherit_life(k, i);
    }
    for (size_t i = 0; i < m->op_count; i++) {
        for (size_t n = 0; n < MDL_OP_IN_MAX; n++) {
            touch(m, m->ops[i].in[n], i);
        }
        touch(m, m->ops[i].residual_in, i);
        for (size_t n = 0; n < MDL_OP_OUT_MAX; n++) {
            touch(m, m->ops[i].out[n], i);
        }
    }
}

/* The op that an image replaces, as in the whole model; here its input may also pass on, or its
 * output may leave. */
static size_t entry_op(const struct mdl_cut *k, size_t input)
{
    size_t entry = k->whole->inputs[input].entry_op, readers = 0;
    size_t storage = k->m->tensors[k->m->inputs[input].tensor].storage;

    if (entry == MDL_NONE || entry >= k->end_op ||
        k->m->storages[k->m->tensors[k->m->ops[entry].out[0]].storage].home != MDL_HOME_ARENA) {
        return MDL_NONE;
    }
    for (size_t i = 0; i < k->m->op_count; i++) {
        const struct mdl_op *op = &k->m->ops[i];

        for (size_t n = 0; n <= MDL_OP_IN_MAX; n++) {
            size_t in = n < MDL_OP_IN_MAX ? op->in[n] : op->residual_in;

            readers += in != MDL_NONE && k->m->tensors[in].storage == storage;
        }
    }
    return readers == 1 ? entry : MDL_NONE;
}

/* An image is converted before the first op runs: its place must be free from the start. */
static void keep_images(const struct mdl_cut *k)
{
    struct mdl_model *m = k->m;

    for (size_t i = 0; k->first_op == 0 && i < m->input_count; i++) {
        struct mdl_storage *s = &m->storages[m->tensors[m->inputs[i].tensor].storage];

        m->inputs[i].entry_op = entry_op(k, i);
        if (m->inputs[i].entry_op != MDL_NONE) {
            s = &m->storages[m->tensors[m->ops[m->inputs[i].entry_op].out[0]].storage];
        }
        s->first_op = 0;
    }
}

/* Return: whether the arena needs room for storage @i: values, and the image of input 0. */
static bool wants_room(const struct mdl_cut *k, size_t i)
{
    const struct mdl_storage *s = &k->m->storages[i];

    if (s->home == MDL_HOME_INPUT) {
        return k->first_op == 0 && s->index == 0 && s->bytes > 0 &&
               k->m->inputs[0].entry_op == MDL_NONE;
    }
    return s->home == MDL_HOME_ARENA && s->bytes > 0 && s->first_op <= s->last_op;
}

int mdl_cut_place(struct mdl_cut *k, size_t limit, char *error)
{
    struct mdl_model *m = k->m;
    base_autofree struct mdl_storage **list = calloc(m->storage_count + 1, sizeof(*list));
    size_t count = 0, bytes = 0;
    int r;

    if (!list) {
        return -ENOMEM;
    }
    find_lifetimes(k);
    keep_images(k);
    for (size_t i = 0; i < m->storage_count; i++) {
        if (wants_room(k, i)) {
            list[count++] = &m->storages[i];
        }
    }
    r = mdl_arena_place(list, count, limit ? limit : SIZE_MAX / 2, &bytes);
    m->arena_bytes = base_align_up(bytes, MDL_ARENA_ALIGN);
    return r == -E2BIG ? mdl_fail(error, r,
                                  "%s: one frame needs more than %zu bytes of memory, which is the "
                                  "limit",
                                  m->name, limit)
                       : r;
}
