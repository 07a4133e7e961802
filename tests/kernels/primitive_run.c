/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/primitive_run.h"

#include <math.h>

const struct krn_primitive *primitive_reference(enum mdl_op_kind kind)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (v[i].kind == kind && v[i].reference) {
            return &v[i];
        }
    }
    return NULL;
}

/* A tensor as the model lays it out, and as NCHW: row-major, as one_op_each() counts. */
struct planes {
    uint8_t *value, *planes;
    bool back;
};

static void move_one(void *arg, size_t at, size_t index)
{
    const struct planes *p = arg;
    uint8_t *plane = p->planes + index * sizeof(float);

    memcpy(p->back ? p->value + at : plane, p->back ? plane : p->value + at, sizeof(float));
}

/* Return: the tensor as planes, guarded. */
static struct one_op_buffer planes_of(const struct one_op *o, size_t tensor, const void *value)
{
    const struct mdl_tensor *t = &o->tensors[tensor];
    struct one_op_buffer b = one_op_buffer_new(mdl_elements(t) * sizeof(float), 64);

    one_op_each(t, move_one, &(struct planes){(uint8_t *)(uintptr_t)value, b.data, false});
    return b;
}

/* Runs a primitive, also one that takes or leaves planes. Return: whether those are intact. */
static bool run_planes(const struct krn_primitive *v, const struct one_op *o, struct krn_call *call,
                       struct krn_uneven *uneven)
{
    struct one_op_buffer in = {0}, out = {0};
    uint8_t *value = call->out[0];
    bool intact;

    if (v->nchw_in) {
        in = planes_of(o, o->op.in[0], call->in[0]);
        call->in[0] = in.data;
    }
    if (v->nchw_out) {
        out = planes_of(o, o->op.out[0], value);
        call->out[0] = out.data;
    }
    krn_parallel_uneven(uneven);
    v->run(call);
    krn_parallel_uneven(NULL);
    intact = (!in.map || one_op_buffer_intact(&in)) && (!out.map || one_op_buffer_intact(&out));
    if (v->nchw_out) {
        one_op_each(&o->tensors[o->op.out[0]], move_one, &(struct planes){value, out.data, true});
    }
    one_op_buffer_free(&in);
    one_op_buffer_free(&out);
    return intact;
}

static size_t scratch_of(const struct krn_primitive *v, const struct one_op *o,
                         const struct primitive_how *how)
{
    size_t bytes;

    krn_parallel_uneven(how->uneven);
    bytes = v->scratch_bytes ? v->scratch_bytes(&o->m, &o->op, how->width) : 0;
    krn_parallel_uneven(NULL);
    return bytes;
}

bool primitive_run(const struct krn_primitive *v, struct one_op *o, struct one_op_buffer *out,
                   const struct primitive_how *how)
{
    size_t width = how->width;
    size_t packed_bytes = v->packed_bytes ? v->packed_bytes(&o->m, &o->op) : 0;
    size_t scratch_bytes = scratch_of(v, o, how);
    struct one_op_buffer packed = one_op_buffer_new(packed_bytes, 64);
    struct one_op_buffer scratch = one_op_buffer_new(scratch_bytes, 64);
    struct krn_call call = one_op_call(o, out, how->pool, width, packed.data, scratch.data);
    struct krn_prepared prepared = {0};
    bool intact;

    if (!packed_bytes) {
        call.packed = NULL;
    } else if (v->pack) {
        v->pack(&o->m, &o->op, packed.data);
    }
    if (v->prepare) {
        int r = v->prepare(&o->m, &o->op, packed.data, 1, &prepared);

        for (size_t half = 2; how->uneven && r == 0 && half < width; half *= 2) {
            (void)v->prepare(&o->m, &o->op, packed.data, half, &prepared);
        }
        if (r == 0 && width > 1) { /* where that fails, less of the team has to do */
            (void)v->prepare(&o->m, &o->op, packed.data, width, &prepared);
        }
        if (r < 0) {
            fprintf(stderr, "%s, %s, width %zu: not prepared\n", v->name, o->name, width);
            abort();
        }
        call.prepared = prepared.object;
    }
    if (how->residual_in_place) {
        memcpy(out[0].data, call.residual, out[0].bytes);
        call.residual = out[0].data;
    }
    if (how->in_place) {
        memcpy(out[0].data, o->buffers[o->op.in[0]].data, out[0].bytes);
        call.in[0] = out[0].data;
    }
    intact = run_planes(v, o, &call, how->uneven) && one_op_buffer_intact(&packed) &&
             one_op_buffer_intact(&scratch);
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        intact &= o->op.out[i] == MDL_NONE || one_op_buffer_intact(&out[i]);
    }
    if (v->release) {
        v->release(&prepared);
    }
    one_op_buffer_free(&packed);
    one_op_buffer_free(&scratch);
    return intact;
}

static void poison_one(void *arg, size_t at, size_t index)
{
    const float none = NAN;

    memcpy((uint8_t *)arg + at, &none, sizeof(none));
}

void primitive_poison(const struct mdl_tensor *t, struct one_op_buffer *b)
{
    if (t->dtype == MDL_F32) {
        one_op_each(t, poison_one, b->data);
    }
}

void primitive_out_new(const struct one_op *o, struct one_op_buffer *out)
{
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        const struct mdl_tensor *t;

        out[i] = (struct one_op_buffer){0};
        if (o->op.out[i] != MDL_NONE) {
            t = &o->tensors[o->op.out[i]];
            out[i] = one_op_buffer_new(one_op_span(t), mdl_dtype_bytes(t->dtype));
            primitive_poison(t, &out[i]);
        }
    }
}

void primitive_out_free(struct one_op_buffer *out)
{
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        one_op_buffer_free(&out[i]);
    }
}

static void abs_array(float *p, size_t n)
{
    for (size_t i = 0; p && i < n; i++) {
        p[i] = fabsf(p[i]);
    }
}

static void abs_one(void *arg, size_t at, size_t index)
{
    float v;

    memcpy(&v, (uint8_t *)arg + at, sizeof(v));
    v = fabsf(v);
    memcpy((uint8_t *)arg + at, &v, sizeof(v));
}

void primitive_magnitude(const struct krn_primitive *ref, struct one_op *o,
                         struct one_op_buffer *out)
{
    struct mdl_op op = o->op;
    struct one_op_buffer saved[ONE_OP_TENSORS];
    float *scale = NULL, *shift = NULL;

    for (size_t i = 0; i < o->m.tensor_count; i++) {
        saved[i] = o->buffers[i];
        o->buffers[i] = one_op_buffer_new(saved[i].bytes, 4);
        memcpy(o->buffers[i].data, saved[i].data, saved[i].bytes);
        if (o->tensors[i].dtype == MDL_F32) {
            one_op_each(&o->tensors[i], abs_one, o->buffers[i].data);
        }
    }
    if (op.scale) {
        scale = malloc(op.channels * sizeof(float));
        memcpy(scale, op.scale, op.channels * sizeof(float));
        abs_array(scale, op.channels);
        o->op.scale = scale;
    }
    if (op.shift) {
        shift = malloc(op.channels * sizeof(float));
        memcpy(shift, op.shift, op.channels * sizeof(float));
        abs_array(shift, op.channels);
        o->op.shift = shift;
    }
    o->op.act = op.kind == MDL_OP_UNARY ? op.act : MDL_ACT_NONE;
    primitive_run(ref, o, out, &(struct primitive_how){.width = 1});
    o->op = op;
    for (size_t i = 0; i < o->m.tensor_count; i++) {
        one_op_buffer_free(&o->buffers[i]);
        o->buffers[i] = saved[i];
    }
    free(scale);
    free(shift);
}
