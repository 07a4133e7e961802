/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a pair by every primitive that takes it, and compares it with the references of both ops.
 *
 * With M1 = |w1| |x| + |shift1| (the reference on absolute values) what lies between is at most M1
 * and wrong by at most 2 n1 u L1 M1, L1 the slope of its element function; the second convolution
 * adds up |w2| of that and is wrong by 2 n2 u S2 itself, S2 = |w2| M1 + |shift2| + |residual|. So
 * the whole is wrong by at most 2 u L2 (n1 L1 + n2) S2.
 */
#include "tests/kernels/fused_pair.h"

#include <math.h>

#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/check_values.h"
#include "tests/kernels/kept_pool.h"
#include "tests/kernels/primitive_run.h"

#define PRIMITIVES_MAX 256u

static size_t exercised[PRIMITIVES_MAX];

size_t fused_exercised(size_t index)
{
    return exercised[index];
}

static struct krn_call call_of(const struct fused_pair *p, size_t i, void *out)
{
    const struct mdl_op *op = &p->ops[i];
    struct krn_call c = {.model = &p->o->m, .op = op, .width = 1, .out = {out}};

    c.in[0] = p->o->buffers[op->in[0]].data;
    c.in[1] = op->kind == MDL_OP_CONV ? p->o->buffers[op->in[1]].data : NULL;
    c.residual = op->residual == MDL_RESIDUAL_NONE ? NULL : p->o->buffers[op->residual_in].data;
    return c;
}

static void run_reference(const struct fused_pair *p, void *out)
{
    size_t count;
    const struct krn_primitive *table = krn_primitives(&count);

    for (size_t i = 0; i < 2; i++) {
        const struct krn_primitive *v = table;

        while (v->kind != p->ops[i].kind || !v->reference) {
            v++;
        }
        struct krn_call c = call_of(p, i, i ? out : p->o->buffers[p->ops[0].out[0]].data);

        v->run(&c);
    }
}

static void abs_one(void *arg, size_t at, size_t index)
{
    float v;

    memcpy(&v, (uint8_t *)arg + at, sizeof(v));
    v = fabsf(v);
    memcpy((uint8_t *)arg + at, &v, sizeof(v));
}

/* S2; destroys the pair's inputs */
static void run_magnitude(struct fused_pair *p, void *out)
{
    for (size_t t = 0; t < p->o->m.tensor_count; t++) {
        one_op_each(&p->o->tensors[t], abs_one, p->o->buffers[t].data);
    }
    for (size_t i = 0; i < 2; i++) {
        for (size_t c = 0; c < p->ops[i].channels; c++) {
            if (p->scale[i]) {
                p->scale[i][c] = fabsf(p->scale[i][c]);
            }
            if (p->shift[i]) {
                p->shift[i][c] = fabsf(p->shift[i][c]);
            }
        }
        p->ops[i].act = MDL_ACT_NONE;
    }
    run_reference(p, out);
}

struct result {
    struct one_op_buffer out;
    const struct krn_primitive *primitive;
    size_t width;
};

static struct one_op_buffer out_new(const struct fused_pair *p)
{
    const struct mdl_tensor *t = &p->o->tensors[p->ops[1].out[0]];
    struct one_op_buffer b = one_op_buffer_new(one_op_span(t), sizeof(float));

    primitive_poison(t, &b);
    return b;
}

/* Return: whether it wrote only what it may */
static bool run_fused(const struct fused_pair *p, const struct fused_case *k, pthreadpool_t pool,
                      struct result *r)
{
    const struct krn_primitive *v = r->primitive;
    struct one_op_buffer packed = one_op_buffer_new(v->packed_bytes(&p->o->m, p->ops), 64);
    struct one_op_buffer scratch =
        one_op_buffer_new(v->scratch_bytes(&p->o->m, p->ops, r->width), 64);
    const struct one_op_buffer *between = &p->o->buffers[p->ops[0].out[0]];
    struct krn_call next = call_of(p, 1, r->out.data), call = call_of(p, 0, between->data);
    const struct one_op_buffer *x = &p->o->buffers[p->ops[0].in[0]];
    uint8_t *odd = malloc(x->bytes + 1); /* a client's buffer lies anywhere */
    bool ok;

    if (k->planes) {
        memcpy(odd + 1, x->data, x->bytes);
        call.in[0] = odd + 1;
    }
    memset(between->data, ONE_OP_PATTERN, between->bytes);
    if (k->in_place) {
        memcpy(r->out.data, next.residual, r->out.bytes);
        next.residual = r->out.data;
    }
    v->pack(&p->o->m, p->ops, packed.data);
    call.next = &next;
    call.packed = packed.data;
    call.pool = next.pool = pool;
    call.width = next.width = r->width;
    call.scratch = next.scratch = scratch.data;
    v->run(&call);
    ok = one_op_buffer_intact(&packed) && one_op_buffer_intact(&scratch) &&
         one_op_buffer_intact(&r->out);
    for (size_t i = 0; i < between->bytes; i++) {
        ok &= between->data[i] == ONE_OP_PATTERN; /* what lies between is written nowhere else */
    }
    one_op_buffer_free(&packed);
    one_op_buffer_free(&scratch);
    free(odd);
    return ok;
}

struct compare {
    const struct result *result;
    const uint8_t *want, *magnitude;
    const char *name;
    double factor;
    bool failed;
};

static void compare_one(void *arg, size_t at, size_t index)
{
    struct compare *c = arg;
    float got, want, magnitude;
    double bound;

    memcpy(&got, c->result->out.data + at, sizeof(got));
    memcpy(&want, c->want + at, sizeof(want));
    memcpy(&magnitude, c->magnitude + at, sizeof(magnitude));
    bound = 2 * c->factor * 0x1p-24 * (double)magnitude + 2e-6;
    if (!(fabs((double)got - (double)want) <= bound) && !(isnan(got) && isnan(want)) &&
        !c->failed) {
        c->failed = true;
        fprintf(stderr, "%s, %s, width %zu: element %zu is %.9g, reference %.9g, bound %.3g\n",
                c->result->primitive->name, c->name, c->result->width, index, (double)got,
                (double)want, bound);
    }
}

/* Return: how many primitives took the pair, or SIZE_MAX where one failed */
static size_t pair_run(const struct fused_case *k, const char *expect)
{
    size_t count, used = 0, taken = 0;
    const struct krn_primitive *v = krn_primitives(&count);
    static struct result results[KEPT_POOL_WIDTH_MAX * PRIMITIVES_MAX];
    struct fused_pair p;
    struct one_op_buffer want, magnitude;
    struct compare c;
    double n[2];
    bool ok = true;

    fused_pair_init(&p, k);
    n[k->dw_first ? 0 : 1] = (double)(k->k * k->k);
    n[k->dw_first ? 1 : 0] = (double)k->c;
    if (k->planes || k->pool) {
        n[k->planes ? 0 : 1] = 0; /* a pooling adds no error of its own */
        n[k->planes ? 1 : 0] = (double)(k->c * k->k * k->k);
    }
    want = out_new(&p);
    run_reference(&p, want.data);
    for (size_t i = 0; i < count && ok; i++) {
        if (!v[i].fused || v[i].kind != p.ops[0].kind || !check_wants(v[i].name) ||
            (v[i].needs & ~krn_cpu_features()) || !v[i].supports(&p.o->m, p.ops)) {
            continue;
        }
        taken += strstr(v[i].name, expect) != NULL;
        /* shares are checked by doing the parts one after the other; a team now and then */
        bool team = exercised[i]++ % 16 == 0;
        for (size_t width = 1; width <= KEPT_POOL_WIDTH_MAX && ok; width++) {
            struct result *r = &results[used++];

            *r = (struct result){out_new(&p), &v[i], width};
            ok = run_fused(&p, k, team ? kept_pool(width) : NULL, r);
            if (!ok) {
                fprintf(stderr, "%s, %s, width %zu: wrote outside its buffers\n", v[i].name,
                        p.o->name, width);
            }
        }
    }
    c = (struct compare){.want = want.data, .name = p.o->name};
    c.factor =
        check_act_lipschitz(&p.ops[1]) * ((n[0] + 8) * check_act_lipschitz(&p.ops[0]) + n[1] + 8);
    magnitude = out_new(&p);
    run_magnitude(&p, magnitude.data);
    c.magnitude = magnitude.data;
    for (size_t i = 0; i < used; i++) {
        c.result = &results[i];
        if (ok) {
            one_op_each(&p.o->tensors[p.ops[1].out[0]], compare_one, &c);
        }
        one_op_buffer_free(&results[i].out);
    }
    one_op_buffer_free(&want);
    one_op_buffer_free(&magnitude);
    fused_pair_deinit(&p);
    return ok && !c.failed ? taken : SIZE_MAX;
}

bool fused_passes(const struct fused_case *k)
{
    size_t taken = pair_run(k, k->planes     ? "copy_conv"
                               : k->pool     ? "stem_pool"
                               : k->dw_first ? "dw_pw"
                                             : "pw_dw");

    return taken != SIZE_MAX && taken > 0;
}
