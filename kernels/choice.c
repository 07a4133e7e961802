/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/choice.h"

#include <string.h>

#include "base.h"
#include "kernels/form.h"

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

int krn_choice_copy(const struct krn_choice *from, struct krn_choice *ret)
{
    int r = krn_choice_init(ret, from->op_count);

    if (r == 0) {
        memcpy(ret->kind, from->kind, sizeof(ret->kind));
        memcpy(ret->own, from->own, from->op_count * sizeof(*from->own));
        memcpy(ret->fused, from->fused, from->op_count * sizeof(*from->fused));
    }
    return r;
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

bool krn_row_named(const struct krn_variant *v, const char *only)
{
    const char *name = v->name;

    for (const char *part = only; part; part = strchr(part, ',')) {
        part += *part == ',';
        size_t n = strcspn(part, ",");

        if (n && memmem(name, strlen(name), part, n)) {
            return true;
        }
    }
    return false;
}

/* The bytes of a tensor in the arena. False: it has none there. */
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

/* Can ops @i and @i + 1 be run as one? What lies between them is read by nobody else, and nothing
 * that the second writes lies where the first still reads. */
static bool is_pair(const struct mdl_model *m, size_t i)
{
    const struct mdl_op *a = &m->ops[i], *b = &a[1];

    if (!krn_form_between(m, i)) {
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

bool krn_usable(const struct krn_variant *v, const struct mdl_model *m, size_t i)
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

const struct krn_variant *krn_row_next(const struct mdl_model *m, size_t i, bool fused,
                                       const char *only, const struct krn_variant *after)
{
    const struct krn_variant *table;
    size_t count, k = 0;
    bool wanted = !after || !only || krn_row_named(after, only);

    table = krn_variants(&count);
    if (after) {
        k = (size_t)(after - table) + 1;
    }
    for (;; wanted = false, k = 0) {
        for (; k < count; k++) {
            const struct krn_variant *v = &table[k];

            if (v->fused == fused && (!only || krn_row_named(v, only)) == wanted &&
                (!v->inexact || (only && wanted)) && krn_usable(v, m, i)) {
                return v;
            }
        }
        if (!wanted || !only || fused) {
            return NULL;
        }
    }
}

const struct krn_variant *krn_row_find(const char *name)
{
    size_t count;
    const struct krn_variant *table = krn_variants(&count);

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

        ret->own[i] = krn_row_next(m, i, false, only, NULL);
        ret->fused[i] = second ? NULL : krn_row_next(m, i, true, only, NULL);
    }
    return r;
}
