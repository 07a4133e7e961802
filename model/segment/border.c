/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that are alive between two units, in one order, and their hash. */
#include "base/leaves/leaves.h"
#include "model/ir/strides.h"
#include "model/segment/cut.h"

/* ---- orders and places in memory ---- */

void mdl_memory_order(size_t rank, const size_t *dim, const ptrdiff_t *stride,
                      size_t ret_order[MDL_RANK_MAX])
{
    size_t ones = 0, last = MDL_NONE;
    bool sorted = true;

    for (size_t i = 0; i < rank; i++) {
        sorted &= dim[i] <= 1 || last == MDL_NONE || stride[last] >= stride[i];
        last = dim[i] > 1 ? i : last;
        ret_order[i] = i;
    }
    if (sorted) {
        return;
    }
    /* dims of extent 1 have no place in memory: they come first */
    for (size_t i = 0; i < rank; i++) {
        if (dim[i] <= 1) {
            ret_order[ones++] = i;
        }
    }
    for (size_t i = 0, count = ones; i < rank; i++) {
        size_t k = count;

        if (dim[i] <= 1) {
            continue;
        }
        for (; k > ones && stride[ret_order[k - 1]] < stride[i]; k--) {
            ret_order[k] = ret_order[k - 1];
        }
        ret_order[k] = i;
        count++;
    }
}

/* The bytes of a storage from the first to the last that a tensor touches. */
static void hull(const struct mdl_tensor *t, size_t *ret_begin, size_t *ret_end)
{
    ptrdiff_t low = 0, high = 0, size = (ptrdiff_t)mdl_dtype_bytes(t->dtype);

    for (size_t i = 0; i < t->rank; i++) {
        ptrdiff_t reach = t->dim[i] ? ((ptrdiff_t)t->dim[i] - 1) * t->stride[i] : 0;

        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    *ret_begin = (size_t)((ptrdiff_t)t->offset + low * size);
    *ret_end = mdl_elements(t) ? (size_t)((ptrdiff_t)t->offset + (high + 1) * size) : *ret_begin;
}

static void find_dense(const struct mdl_tensor *t, ptrdiff_t *ret)
{
    size_t order[MDL_RANK_MAX];

    mdl_memory_order(t->rank, t->dim, t->stride, order);
    mdl_strides_dense(t->rank, t->dim, order, ret);
}

static bool has_gaps(const struct mdl_tensor *t, const ptrdiff_t *dense)
{
    for (size_t i = 0; i < t->rank; i++) {
        if (t->dim[i] > 1 && t->stride[i] != dense[i]) {
            return true;
        }
    }
    return false;
}

bool mdl_fills(const struct mdl_model *m, const struct mdl_tensor *t)
{
    ptrdiff_t dense[MDL_RANK_MAX];

    find_dense(t, dense);
    return t->offset == 0 && !has_gaps(t, dense) &&
           mdl_elements(t) * mdl_dtype_bytes(t->dtype) == m->storages[t->storage].bytes;
}

bool mdl_same_place(const struct mdl_tensor *a, const struct mdl_tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->rank == b->rank &&
           memcmp(a->dim, b->dim, a->rank * sizeof(a->dim[0])) == 0 &&
           memcmp(a->stride, b->stride, a->rank * sizeof(a->stride[0])) == 0;
}

/* ---- what was written before, and is read behind ---- */

struct found {
    const struct mdl_model *m;
    size_t op;       /* the first behind the border */
    size_t *written; /* tensors, in the order in which they are written; owned */
    size_t count;
};

/* Adds a written tensor, in place of what it overwrites. */
static void add_written(struct found *f, size_t tensor)
{
    const struct mdl_tensor *y = &f->m->tensors[tensor];
    bool all = mdl_fills(f->m, y);
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        const struct mdl_tensor *x = &f->m->tensors[f->written[i]];
        bool same = mdl_dtype_bytes(x->dtype) == mdl_dtype_bytes(y->dtype) && mdl_same_place(x, y);

        if (x->storage != y->storage || !(all || same)) {
            f->written[kept++] = f->written[i];
        }
    }
    f->written[kept] = tensor;
    f->count = kept + 1;
}

static bool read_by(const struct mdl_model *m, const struct mdl_op *op, const struct mdl_tensor *x)
{
    size_t begin, end;

    hull(x, &begin, &end);
    for (size_t i = 0; i <= MDL_OP_IN_MAX; i++) {
        size_t in = i < MDL_OP_IN_MAX ? op->in[i] : op->residual_in, from, to;

        if (in != MDL_NONE && m->tensors[in].storage == x->storage) {
            hull(&m->tensors[in], &from, &to);
            if (from < end && begin < to) {
                return true;
            }
        }
    }
    return false;
}

static bool needed_behind(const struct found *f, size_t tensor)
{
    const struct mdl_tensor *x = &f->m->tensors[tensor];

    if (f->m->storages[x->storage].home == MDL_HOME_OUTPUT) {
        return true;
    }
    for (size_t k = f->op; k < f->m->op_count; k++) {
        if (read_by(f->m, &f->m->ops[k], x)) {
            return true;
        }
    }
    return false;
}

/* Return: whether the value may be alive; a quick answer, from its lifetime. */
static bool may_live(const struct found *f, size_t tensor)
{
    const struct mdl_tensor *t = &f->m->tensors[tensor];
    const struct mdl_storage *s = &f->m->storages[t->storage];

    return mdl_elements(t) > 0 && (s->home != MDL_HOME_ARENA || s->last_op >= f->op);
}

static int find_written(struct found *f)
{
    const struct mdl_model *m = f->m;
    size_t kept = 0;

    f->written =
        calloc(m->input_count + MDL_OP_OUT_MAX * f->op + 1, sizeof(*f->written)); /* at most */
    if (!f->written) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->input_count; i++) {
        if (may_live(f, m->inputs[i].tensor)) {
            add_written(f, m->inputs[i].tensor);
        }
    }
    for (size_t k = 0; k < f->op; k++) {
        for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
            size_t out = m->ops[k].out[i];

            if (out != MDL_NONE && may_live(f, out)) {
                add_written(f, out);
            }
        }
    }
    for (size_t i = 0; i < f->count; i++) {
        if (needed_behind(f, f->written[i])) {
            f->written[kept++] = f->written[i];
        }
    }
    f->count = kept;
    return 0;
}

/* ---- tensors of the border ---- */

static void finish(struct mdl_live *l)
{
    find_dense(&l->t, l->dense);
    l->bytes = mdl_elements(&l->t) * mdl_dtype_bytes(l->t.dtype);
}

static void add_live(struct mdl_border *b, const struct mdl_model *m, size_t tensor, char *name)
{
    struct mdl_live *l = &b->live[b->count++];

    l->t = m->tensors[tensor];
    l->t.name = name ? name : l->t.name;
    finish(l);
}

/* Takes @b into @a if both together are a box along one dim. */
static bool join_box(struct mdl_live *a, const struct mdl_live *b)
{
    size_t along = MDL_NONE;

    if (a->t.rank != b->t.rank ||
        memcmp(a->t.stride, b->t.stride, a->t.rank * sizeof(a->t.stride[0])) != 0) {
        return false;
    }
    for (size_t d = 0; d < a->t.rank && along == MDL_NONE; d++) {
        ptrdiff_t end = (ptrdiff_t)a->t.offset +
                        (ptrdiff_t)(a->t.dim[d] * mdl_dtype_bytes(a->t.dtype)) * a->t.stride[d];

        along = a->t.stride[d] > 0 && end == (ptrdiff_t)b->t.offset ? d : MDL_NONE;
        for (size_t i = 0; i < a->t.rank; i++) {
            along = i != d && a->t.dim[i] != b->t.dim[i] ? MDL_NONE : along;
        }
    }
    if (along == MDL_NONE) {
        return false;
    }
    a->t.dim[along] += b->t.dim[along];
    return true;
}

/* Takes @b into @a if they are bytes without gaps, one after the other. */
static bool join_flat(struct mdl_live *a, const struct mdl_live *b)
{
    if (has_gaps(&a->t, a->dense) || has_gaps(&b->t, b->dense) ||
        a->t.offset + a->bytes != b->t.offset) {
        return false;
    }
    a->t.rank = 1;
    a->t.dim[0] = (a->bytes + b->bytes) / mdl_dtype_bytes(a->t.dtype);
    a->t.stride[0] = 1;
    return true;
}

static bool join_any(struct mdl_border *border,
                     bool (*join)(struct mdl_live *a, const struct mdl_live *b))
{
    for (size_t i = 0; i < border->count; i++) {
        for (size_t k = 0; k < border->count; k++) {
            struct mdl_live *a = &border->live[i], *b = &border->live[k];
            size_t first = base_min(i, k), second = base_max(i, k);

            if (i == k || a->t.storage != b->t.storage || a->t.dtype != b->t.dtype || !join(a, b)) {
                continue;
            }
            finish(a);
            border->live[first] = *a;
            memmove(&border->live[second], &border->live[second + 1],
                    (border->count - second - 1) * sizeof(*border->live));
            border->count--;
            return true;
        }
    }
    return false;
}

/* The whole of a finished concat has the concat's name. */
static void name_joined(const struct mdl_model *m, struct mdl_live *l)
{
    for (size_t i = 0; i < m->tensor_count; i++) {
        if (mdl_same_place(&m->tensors[i], &l->t)) {
            l->t.name = m->tensors[i].name;
            return;
        }
    }
}

static int find_live(const struct mdl_model *m, size_t unit, struct mdl_border *b)
{
    struct found f = {.m = m, .op = m->units[unit].first_op};
    size_t written;
    int r = find_written(&f);

    b->live = r < 0 ? NULL : calloc(f.count + 1, sizeof(*b->live));
    for (size_t i = 0; b->live && i < f.count; i++) {
        add_live(b, m, f.written[i], NULL);
    }
    free(f.written);
    if (!b->live) {
        return -ENOMEM;
    }
    written = b->count;
    while (join_any(b, join_box) || join_any(b, join_flat)) {
    }
    for (size_t i = 0; b->count < written && i < b->count; i++) {
        name_joined(m, &b->live[i]);
    }
    return 0;
}

static int take_ios(const struct mdl_model *m, const struct mdl_io *ios, size_t count,
                    struct mdl_border *b)
{
    b->live = calloc(count + 1, sizeof(*b->live));
    for (size_t i = 0; b->live && i < count; i++) {
        add_live(b, m, ios[i].tensor, ios[i].name);
    }
    return b->live ? 0 : -ENOMEM;
}

/* ---- the hash ---- */

static void hash_number(struct mdl_hash *h, size_t n)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)((uint64_t)n >> (8 * i));
    }
    mdl_hash_update(h, bytes, sizeof(bytes));
}

static void hash_text(struct mdl_hash *h, const char *text)
{
    hash_number(h, strlen(text));
    mdl_hash_update(h, text, strlen(text));
}

static void hash_border(struct mdl_border *b)
{
    struct mdl_hash h;

    mdl_hash_init(&h);
    hash_text(&h, "piped border 1");
    hash_number(&h, b->count);
    for (size_t i = 0; i < b->count; i++) {
        const struct mdl_live *l = &b->live[i];
        size_t order[MDL_RANK_MAX];

        mdl_memory_order(l->t.rank, l->t.dim, l->dense, order);
        hash_text(&h, l->t.name);
        hash_text(&h, mdl_dtype_name(l->t.dtype));
        hash_number(&h, l->t.rank);
        for (size_t d = 0; d < l->t.rank; d++) {
            hash_number(&h, l->t.dim[d]);
            hash_number(&h, order[d]);
        }
        b->bytes += l->bytes;
    }
    mdl_hash_hex(&h, b->hash);
}

int mdl_border(const struct mdl_model *whole, size_t unit, struct mdl_border *ret)
{
    struct mdl_border b = {0};
    int r;

    if (whole->segment || unit > whole->unit_count) {
        return -EINVAL;
    }
    r = unit == 0                   ? take_ios(whole, whole->inputs, whole->input_count, &b)
        : unit == whole->unit_count ? take_ios(whole, whole->outputs, whole->output_count, &b)
                                    : find_live(whole, unit, &b);
    if (r < 0) {
        mdl_border_deinit(&b);
        return r;
    }
    hash_border(&b);
    *ret = b;
    return 0;
}

void mdl_border_deinit(struct mdl_border *b)
{
    free(b->live);
    *b = (struct mdl_border){0};
}
