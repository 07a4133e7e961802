/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/row.h"

#include <assert.h>
#include <string.h>

#include "base.h"
#include "kernels/form.h"

size_t krn_row_packed_bytes(const struct krn_row *row, const struct mdl_model *m, size_t op)
{
    return row->variant->packed_bytes ? row->variant->packed_bytes(m, &m->ops[op]) : 0;
}

static int make(struct krn_row *row, const struct mdl_model *m, size_t op)
{
    const struct krn_variant *v = row->variant;
    size_t bytes = krn_row_packed_bytes(row, m, op);
    int r = bytes ? krn_pages_new(bytes, row->nodes, &row->packed) : 0;

    if (r == 0 && v->pack) {
        v->pack(m, &m->ops[op], row->packed.at);
    }
    if (r == 0 && v->prepare) {
        r = v->prepare(m, &m->ops[op], row->packed.at, 1, &row->prepared);
    }
    if (r == 0 && (v->pack || v->prepare)) {
        mdl_drop_op_weights(m, op);
    }
    return r;
}

int krn_row_ready(struct krn_row *row, const struct mdl_model *m, size_t op, size_t width)
{
    const struct krn_variant *v = row->variant;
    int r = row->ready ? 0 : make(row, m, op);

    if (r < 0) {
        krn_row_release(row);
        return r;
    }
    if (!row->ready) { /* teams read it of rows that are */
        row->ready = true;
    }
    if (width > 1 && v->prepare) { /* where that fails the row runs with fewer of the team */
        (void)v->prepare(m, &m->ops[op], row->packed.at, width, &row->prepared);
    }
    return 0;
}

void krn_row_release(struct krn_row *row)
{
    if (row->variant->release) {
        row->variant->release(&row->prepared);
    }
    krn_pages_free(&row->packed);
    row->ready = false;
}

size_t krn_row_bytes(const struct krn_row *row)
{
    return row->ready ? row->packed.bytes + row->prepared.bytes : 0;
}

/* Copies the constant storages of op @i that its fast primitive reads at run time and cannot read
 * where they are. References read unaligned; what a primitive packs is input 1. */
static int align_consts(const struct mdl_model *m, size_t i, const struct krn_variant *v,
                        void **copies, size_t *bytes)
{
    const struct mdl_op *op = &m->ops[i];
    size_t tensors[MDL_OP_IN_MAX + 1];

    for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
        tensors[k] = (v->pack || v->prepare) && k == 1 ? MDL_NONE : op->in[k];
    }
    tensors[MDL_OP_IN_MAX] = op->residual == MDL_RESIDUAL_NONE ? MDL_NONE : op->residual_in;
    for (size_t k = 0; !v->reference && k < base_array_count(tensors); k++) {
        if (tensors[k] == MDL_NONE) {
            continue;
        }
        const struct mdl_tensor *t = &m->tensors[tensors[k]];
        const struct mdl_storage *s = &m->storages[t->storage];
        void **copy = &copies[t->storage];

        if (s->home == MDL_HOME_CONST && !*copy && (uintptr_t)s->data % mdl_dtype_bytes(t->dtype)) {
            *copy = aligned_alloc(64, base_align_up(s->bytes, 64));
            if (!*copy) {
                return -ENOMEM;
            }
            memcpy(*copy, s->data, s->bytes);
            *bytes += s->bytes;
        }
    }
    return 0;
}

int krn_row_consts(const struct krn_variant *v, const struct mdl_model *m, size_t op, void **copies,
                   size_t *bytes)
{
    int r = align_consts(m, op, v, copies, bytes);

    return r == 0 && v->fused ? align_consts(m, op + 1, v, copies, bytes) : r;
}

static void *tensor_ptr(const struct mdl_model *m, size_t t, void *const *copies,
                        const struct krn_mem *mem)
{
    if (t == MDL_NONE) {
        return NULL;
    }
    const struct mdl_tensor *tensor = &m->tensors[t];
    void *copy = copies[tensor->storage];

    return copy ? (uint8_t *)copy + tensor->offset : krn_tensor_ptr(m, t, mem);
}

static void fill_call(const struct mdl_model *m, size_t i, void *const *copies,
                      const struct krn_mem *mem, const struct krn_exec *exec, struct krn_call *ret)
{
    const struct mdl_op *op = &m->ops[i];

    *ret = (struct krn_call){
        .model = m,
        .op = op,
        .pool = exec->pool,
        .width = exec->width ? exec->width : 1,
        .scratch = exec->scratch,
        .image = mem->image,
    };
    for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
        ret->in[k] = tensor_ptr(m, op->in[k], copies, mem);
    }
    for (size_t k = 0; k < MDL_OP_OUT_MAX; k++) {
        ret->out[k] = tensor_ptr(m, op->out[k], copies, mem);
    }
    if (op->residual != MDL_RESIDUAL_NONE) {
        ret->residual = tensor_ptr(m, op->residual_in, copies, mem);
    }
}

size_t krn_row_scratch_bytes(const struct krn_variant *v, const struct mdl_model *m, size_t op,
                             size_t width)
{
    size_t bytes = v->scratch_bytes ? v->scratch_bytes(m, &m->ops[op], width) : 0;

    bytes += v->planes_in ? krn_form_bytes(m, m->ops[op].in[0]) : 0;
    return bytes + (v->planes_out ? krn_form_bytes(m, m->ops[op].out[0]) : 0);
}

/* The begin of the team's scratch that is still free. */
static void *take_scratch(struct krn_call *c, size_t bytes)
{
    void *at = c->scratch;

    c->scratch += bytes;
    return at;
}

static void run_converted(const struct krn_row *row, const struct krn_row_run *r,
                          struct krn_call *call)
{
    const struct krn_variant *v = row->variant;
    size_t in = call->op->in[0], out = call->op->out[0];
    void *value = v->planes_out && !r->out_planes ? call->out[0] : NULL;
    uint64_t start = r->laps ? base_now_ns() : 0, begin = start, end;

    if (v->planes_in && !r->in_planes) {
        void *planes = take_scratch(call, krn_form_bytes(r->m, in));

        krn_form_to_planes(r->m, in, call->in[0], planes, r->exec);
        call->in[0] = planes;
        begin = r->laps ? base_now_ns() : 0;
    }
    if (value) {
        call->out[0] = take_scratch(call, krn_form_bytes(r->m, out));
    }
    v->run(call);
    end = r->laps ? base_now_ns() : 0;
    if (value) {
        krn_form_from_planes(r->m, out, call->out[0], value, r->exec);
    }
    if (r->laps) {
        *r->laps =
            (struct krn_row_laps){begin - start, end - begin, value ? base_now_ns() - end : 0};
    }
}

void krn_row_run(const struct krn_row *row, const struct krn_row_run *r)
{
    struct krn_call call, next;

    assert(row->ready);
    fill_call(r->m, r->op, r->copies, r->mem, r->exec, &call);
    call.packed = row->packed.at;
    call.prepared = row->prepared.object;
    if (row->variant->fused) {
        fill_call(r->m, r->op + 1, r->copies, r->mem, r->exec, &next);
        call.next = &next;
    }
    run_converted(row, r, &call);
}
