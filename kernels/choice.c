/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/choice.h"

#include "base/base.h"
#include "kernels/common/nhwc.h"

int krn_choice_init(struct krn_choice *c, size_t op_count)
{
    *c = (struct krn_choice){
        .op_count = op_count,
        .own = calloc(op_count + 1, sizeof(*c->own)),
        .fused = calloc(op_count + 1, sizeof(*c->fused)),
    };
    if (!c->own || !c->fused) {
        krn_choice_deinit(c);
        return -ENOMEM;
    }
    return 0;
}

void krn_choice_deinit(struct krn_choice *c)
{
    free(c->own);
    free(c->fused);
    *c = KRN_CHOICE_NULL;
}

static size_t elements(const struct mdl_model *m, size_t tensor)
{
    return tensor == MDL_NONE ? 0 : mdl_elements(&m->tensors[tensor]);
}

static bool any_empty_input(const struct mdl_model *m, const struct mdl_op *op)
{
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        if (op->in[i] != MDL_NONE && elements(m, op->in[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool krn_writes_nothing(const struct mdl_model *m, size_t op)
{
    size_t most = 0;

    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        most = base_max(most, elements(m, m->ops[op].out[i]));
    }
    return most == 0;
}

bool krn_primitive_named(const struct krn_primitive *v, const char *only)
{
    const char *part = only ? only : "";

    while (*part) {
        size_t n = strcspn(part, ",");

        if (n && memmem(v->name, strlen(v->name), part, n)) {
            return true;
        }
        part += n + (part[n] == ',');
    }
    return false;
}

static bool reads(const struct mdl_model *m, const struct mdl_op *op, size_t from, size_t storage)
{
    for (size_t n = from; n <= MDL_OP_IN_MAX; n++) {
        size_t in = n < MDL_OP_IN_MAX ? op->in[n] : op->residual_in;

        if (in != MDL_NONE && m->tensors[in].storage == storage) {
            return true;
        }
    }
    return false;
}

/* Return: whether only op @i + 1 reads op @i's output in the arena, as its input 0. */
static bool is_between(const struct mdl_model *m, size_t i)
{
    const struct mdl_op *a = &m->ops[i], *b = &a[1];

    if (i + 1 >= m->op_count || a->out[1] != MDL_NONE || b->in[0] != a->out[0]) {
        return false;
    }
    size_t at = m->tensors[a->out[0]].storage;
    const struct mdl_storage *s = &m->storages[at];

    if (s->home != MDL_HOME_ARENA || s->first_op != i || reads(m, b, 1, at)) {
        return false;
    }
    /* a FUSED pair may extend the storage's life past its last reader */
    for (size_t k = i + 2; s->last_op != i + 1 && k < m->op_count; k++) {
        if (reads(m, &m->ops[k], 0, at)) {
            return false;
        }
    }
    return true;
}

bool krn_nchw_may_stay(const struct mdl_model *m, size_t i)
{
    const struct mdl_tensor *t = &m->tensors[m->ops[i].out[0]];
    struct krn_img img;

    return is_between(m, i) && t->offset == 0 && krn_img_of(t, &img) && krn_img_flat(&img) &&
           img.pixel == img.c;
}

/* The bytes of a tensor in the arena. Return: false if it is not in the arena. */
static bool arena_range(const struct mdl_model *m, size_t tensor, size_t *ret_begin,
                        size_t *ret_end)
{
    if (tensor == MDL_NONE) {
        return false;
    }
    const struct mdl_storage *s = &m->storages[m->tensors[tensor].storage];

    *ret_begin = s->offset;
    *ret_end = s->offset + s->bytes;
    return s->home == MDL_HOME_ARENA;
}

static bool arena_overlap(const struct mdl_model *m, size_t a, size_t b)
{
    size_t a_begin, a_end, b_begin, b_end;

    return arena_range(m, a, &a_begin, &a_end) && arena_range(m, b, &b_begin, &b_end) &&
           a_begin < b_end && b_begin < a_end;
}

/* Return: whether ops @i and @i + 1 can run as one: nothing else reads the value between them, and
 * the second does not overwrite what the first still reads. */
static bool is_pair(const struct mdl_model *m, size_t i)
{
    const struct mdl_op *a = &m->ops[i], *b = &a[1];

    if (!is_between(m, i)) {
        return false;
    }
    for (size_t k = 0; k <= MDL_OP_IN_MAX; k++) {
        size_t in = k < MDL_OP_IN_MAX ? a->in[k] : a->residual_in;

        for (size_t o = 0; o < MDL_OP_OUT_MAX; o++) {
            if (arena_overlap(m, in, b->out[o])) {
                return false;
            }
        }
    }
    return true;
}

bool krn_usable(const struct krn_primitive *v, const struct mdl_model *m, size_t i)
{
    const struct mdl_op *op = &m->ops[i];

    if (v->kind != op->kind || (v->needs & ~krn_cpu_features())) {
        return false;
    }
    if (v->fused &&
        (!is_pair(m, i) || any_empty_input(m, op + 1) || elements(m, op[1].out[0]) == 0)) {
        return false;
    }
    return (v->reference || !any_empty_input(m, op)) && v->supports(m, op);
}

const struct krn_primitive *krn_primitive_next(const struct mdl_model *m, size_t i, bool fused,
                                               const char *only, const struct krn_primitive *after)
{
    const struct krn_primitive *table;
    size_t count, k = 0;
    bool wanted = !after || !only || krn_primitive_named(after, only);

    table = krn_primitives(&count);
    if (after) {
        k = (size_t)(after - table) + 1;
    }
    for (;; wanted = false, k = 0) {
        for (; k < count; k++) {
            const struct krn_primitive *v = &table[k];

            if (v->fused == fused && (!only || krn_primitive_named(v, only)) == wanted &&
                (!v->inexact || (only && wanted)) && krn_usable(v, m, i)) {
                return v;
            }
        }
        if (!wanted || !only || fused) {
            return NULL;
        }
    }
}

const struct krn_primitive *krn_primitive_find(const char *name)
{
    size_t count;
    const struct krn_primitive *table = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

int krn_choice_prefer(const struct mdl_model *m, const char *only, struct krn_choice *ret)
{
    int r = krn_choice_init(ret, m->op_count);

    for (size_t i = 0; r == 0 && i < m->op_count; i++) {
        bool second = i > 0 && ret->fused[i - 1];

        ret->own[i] = krn_primitive_next(m, i, false, only, NULL);
        ret->fused[i] = second ? NULL : krn_primitive_next(m, i, true, only, NULL);
    }
    return r;
}
