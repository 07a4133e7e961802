/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/bound_primitive.h"

#include <assert.h>

#include "base/base.h"
#include "kernels/common/layout.h"
#include "kernels/common/nhwc.h"
#include "kernels/kernels.h"
#include "kernels/shared_weights.h"

size_t krn_bound_packed_bytes(const struct krn_bound *bound, const struct mdl_model *m, size_t op)
{
    return bound->primitive->packed_bytes ? bound->primitive->packed_bytes(m, &m->ops[op]) : 0;
}

static struct krn_packing packing_of(const struct krn_bound *bound, const struct mdl_model *m,
                                     size_t op)
{
    return (struct krn_packing){
        .primitive = bound->primitive,
        .shelf = bound->shelf,
        .m = m,
        .op = op,
        .bytes = krn_bound_packed_bytes(bound, m, op),
        .nodes = bound->nodes,
    };
}

static bool is_shareable(const struct krn_bound *bound, const struct krn_packing *p)
{
    return bound->primitive->pack && p->bytes && bound->shelf;
}

bool krn_bound_may_share(const struct krn_bound *bound, const struct mdl_model *m, size_t op)
{
    const struct krn_packing p = packing_of(bound, m, op);

    return is_shareable(bound, &p) && krn_shared_may_know(&p);
}

static int pack(struct krn_bound *bound, const struct mdl_model *m, size_t op)
{
    const struct krn_primitive *v = bound->primitive;
    const struct krn_packing p = packing_of(bound, m, op);
    int r;

    if (is_shareable(bound, &p)) {
        return krn_shared_pack(&p, &bound->packed, &bound->shared);
    }
    r = p.bytes ? krn_pages_new(p.bytes, bound->nodes, &bound->packed) : 0;
    if (r == 0 && v->pack) {
        v->pack(m, &m->ops[op], bound->packed.at);
    }
    return r;
}

static int make(struct krn_bound *bound, const struct mdl_model *m, size_t op)
{
    const struct krn_primitive *v = bound->primitive;
    int r = pack(bound, m, op);

    if (r == 0 && v->prepare) {
        r = v->prepare(m, &m->ops[op], bound->packed.at, 1, &bound->prepared);
    }
    if (r == 0 && (v->pack || v->prepare)) {
        mdl_drop_op_weights(m, op);
    }
    return r;
}

int krn_bound_ready(struct krn_bound *bound, const struct mdl_model *m, size_t op, size_t width)
{
    const struct krn_primitive *v = bound->primitive;
    int r = bound->ready ? 0 : make(bound, m, op);

    if (r < 0) {
        krn_bound_release(bound);
        return r;
    }
    if (!bound->ready) { /* teams read the fields of ready primitives */
        bound->ready = true;
    }
    if (width > 1 && v->prepare) { /* if that fails, the primitive runs with fewer members */
        (void)v->prepare(m, &m->ops[op], bound->packed.at, width, &bound->prepared);
    }
    return 0;
}

void krn_bound_release(struct krn_bound *bound)
{
    if (bound->primitive->release) {
        bound->primitive->release(&bound->prepared);
    }
    if (bound->shared) {
        krn_shared_drop(bound->shared, bound->shelf, &bound->packed);
        bound->shared = NULL;
    } else {
        krn_pages_free(&bound->packed);
    }
    bound->ready = false;
}

size_t krn_bound_bytes(const struct krn_bound *bound)
{
    size_t users = bound->ready && bound->shared ? krn_shared_users(bound->shared) : 1;

    return bound->ready ? bound->packed.bytes / users + bound->prepared.bytes : 0;
}

/* Copies the misaligned constant storages of op @i that its fast primitive reads at run time.
 * References read any alignment; packed weights are input 1. */
static int align_consts(const struct mdl_model *m, size_t i, const struct krn_primitive *v,
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

int krn_bound_consts(const struct krn_primitive *v, const struct mdl_model *m, size_t op,
                     void **copies, size_t *bytes)
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
    void *copy = copies ? copies[tensor->storage] : NULL;

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

size_t krn_bound_scratch_bytes(const struct krn_primitive *v, const struct mdl_model *m, size_t op,
                               size_t width)
{
    size_t bytes = v->scratch_bytes ? v->scratch_bytes(m, &m->ops[op], width) : 0;

    bytes += v->nchw_in ? krn_nchw_bytes(m, m->ops[op].in[0]) : 0;
    return bytes + (v->nchw_out ? krn_nchw_bytes(m, m->ops[op].out[0]) : 0);
}

/* Takes @bytes from the free start of the team's scratch. */
static void *take_scratch(struct krn_call *c, size_t bytes)
{
    void *at = c->scratch;

    c->scratch += bytes;
    return at;
}

static void run_converted(const struct krn_bound *bound, const struct krn_bound_run *r,
                          struct krn_call *call)
{
    const struct krn_primitive *v = bound->primitive;
    size_t in = call->op->in[0], out = call->op->out[0];
    void *value = v->nchw_out && !r->out_nchw ? call->out[0] : NULL;
    uint64_t start = r->laps ? base_now_ns() : 0, begin = start, end;

    if (v->nchw_in && !r->in_nchw) {
        void *nchw = take_scratch(call, krn_nchw_bytes(r->m, in));

        krn_nchw_to(r->m, in, call->in[0], nchw, r->exec);
        call->in[0] = nchw;
        begin = r->laps ? base_now_ns() : 0;
    }
    if (value) {
        call->out[0] = take_scratch(call, krn_nchw_bytes(r->m, out));
    }
    v->run(call);
    end = r->laps ? base_now_ns() : 0;
    if (value) {
        krn_nchw_from(r->m, out, call->out[0], value, r->exec);
    }
    if (r->laps) {
        *r->laps =
            (struct krn_bound_laps){begin - start, end - begin, value ? base_now_ns() - end : 0};
    }
}

void krn_bound_run(const struct krn_bound *bound, const struct krn_bound_run *r)
{
    struct krn_call call, next;

    assert(bound->ready);
    fill_call(r->m, r->op, r->copies, r->mem, r->exec, &call);
    call.packed = bound->packed.at;
    call.prepared = bound->prepared.object;
    if (bound->primitive->fused) {
        fill_call(r->m, r->op + 1, r->copies, r->mem, r->exec, &next);
        call.next = &next;
    }
    run_converted(bound, r, &call);
}

int krn_const_eval(const struct mdl_model *m, void *arena)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count), *end = v + count;
    const struct krn_mem mem = {.arena = arena};
    struct krn_exec exec = {.width = 1};
    base_autofree void *scratch = NULL;
    size_t bytes;

    while (v < end && !(v->reference && v->kind == m->ops[0].kind)) {
        v++;
    }
    if (v == end || !v->supports(m, &m->ops[0])) {
        return -EOPNOTSUPP;
    }
    if (krn_writes_nothing(m, 0)) {
        return 0;
    }
    bytes = krn_bound_scratch_bytes(v, m, 0, 1);
    exec.scratch = scratch = bytes ? aligned_alloc(64, base_align_up(bytes, 64)) : NULL;
    if (bytes && !scratch) {
        return -ENOMEM;
    }
    krn_bound_run(&(struct krn_bound){.primitive = v, .ready = true},
                  &(struct krn_bound_run){.m = m, .mem = &mem, .exec = &exec});
    return 0;
}

/* The pixels of one frame of a value, all at one distance. */
struct pixels {
    size_t count, bytes, step; /* of a pixel; from one to the next */
};

static struct pixels pixels_of(const struct mdl_model *m, size_t tensor)
{
    const struct mdl_tensor *t = &m->tensors[tensor];
    size_t size = mdl_dtype_bytes(t->dtype);
    struct krn_img i;

    if (!krn_img_any(t, &i) || i.pixel == i.c) {
        return (struct pixels){1, mdl_elements(t) * size, mdl_elements(t) * size};
    }
    return (struct pixels){i.h * i.w, i.c * size, i.pixel * size};
}

static size_t frame_bytes(const struct pixels *p)
{
    return p->count * p->step;
}

static void copy_pixels(const struct pixels *p, uint8_t *to, const uint8_t *from)
{
    for (size_t i = 0; i < p->count; i++) {
        memcpy(to + i * p->step, from + i * p->step, p->bytes);
    }
}

static size_t lines(size_t bytes)
{
    return base_align_up(bytes, BASE_CACHE_LINE_BYTES);
}

size_t krn_bound_frames_bytes(const struct krn_primitive *v, const struct mdl_model *m, size_t op,
                              size_t width, size_t frames)
{
    struct pixels in, out;

    if (!v->frames_at_once || !v->frames_at_once(m, &m->ops[op])) {
        return 0;
    }
    in = pixels_of(m, m->ops[op].in[0]);
    out = pixels_of(m, m->ops[op].out[0]);
    return lines(frames * frame_bytes(&in)) + lines(frames * frame_bytes(&out)) +
           lines(v->frames_scratch_bytes ? v->frames_scratch_bytes(m, &m->ops[op], width, frames)
                                         : krn_bound_scratch_bytes(v, m, op, width));
}

void krn_bound_run_frames(const struct krn_bound *bound, const struct krn_bound_run *r,
                          const struct krn_mem *const *mems, size_t count)
{
    size_t in = r->m->ops[r->op].in[0], out = r->m->ops[r->op].out[0];
    const struct pixels in_pixels = pixels_of(r->m, in), out_pixels = pixels_of(r->m, out);
    size_t in_bytes = frame_bytes(&in_pixels), out_bytes = frame_bytes(&out_pixels);
    struct krn_mem first = *mems[0];
    struct krn_call call;
    uint8_t *x, *y;

    assert(bound->ready);
    first.image = NULL;
    fill_call(r->m, r->op, r->copies, &first, r->exec, &call);
    call.packed = bound->packed.at;
    call.prepared = bound->prepared.object;
    call.frames = count;
    call.in[0] = x = take_scratch(&call, lines(count * in_bytes));
    call.out[0] = y = take_scratch(&call, lines(count * out_bytes));
    for (size_t i = 0; i < count; i++) {
        copy_pixels(&in_pixels, x + i * in_bytes, tensor_ptr(r->m, in, r->copies, mems[i]));
    }
    bound->primitive->run(&call);
    for (size_t i = 0; i < count; i++) {
        copy_pixels(&out_pixels, tensor_ptr(r->m, out, r->copies, mems[i]), y + i * out_bytes);
    }
}
