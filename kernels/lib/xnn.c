/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/xnn.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>

#include "base/base.h"

static bool ready, keeps_nan;

/* Return: whether NaN + 1 is one */
static bool nan_stays(void)
{
    static const struct krn_xnn_shapes shapes = {.dims = 1, .a = {8}, .b = {8}};
    float a[8], b[8], y[8];
    xnn_operator_t x;
    bool stays;

    for (size_t i = 0; i < base_array_count(a); i++) {
        a[i] = NAN;
        b[i] = 1.0f;
        y[i] = 0.0f;
    }
    if (krn_xnn_make_binary(MDL_BIN_ADD, &x) < 0) {
        return false;
    }
    stays = krn_xnn_setup_binary(x, MDL_BIN_ADD, &shapes, a, b, y, NULL) == 0 &&
            xnn_run_operator(x, NULL) == xnn_status_success && isnan(y[0]);
    xnn_delete_operator(x);
    return stays;
}

static void start(void)
{
    ready = xnn_initialize(NULL) == xnn_status_success;
    keeps_nan = ready && nan_stays();
}

bool krn_xnn_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start);
    return ready;
}

bool krn_xnn_keeps_nan(void)
{
    return krn_xnn_ready() && keeps_nan;
}

int krn_xnn_new(const struct mdl_model *m, const struct mdl_op *op,
                int (*make)(const struct mdl_model *m, const struct mdl_op *op,
                            xnn_operator_t *ret),
                size_t bytes, struct krn_prepared *ret)
{
    struct krn_xnn *x;
    xnn_operator_t first;
    int r;

    if (ret->object) {
        return 0;
    }
    x = calloc(1, sizeof(*x));
    if (!x) {
        return -ENOMEM;
    }
    x->m = m;
    x->op = op;
    x->make = make;
    r = make(m, op, &first);
    if (r < 0) {
        free(x);
        return r;
    }
    atomic_store(&x->idle[0], first);
    *ret = (struct krn_prepared){.object = x, .bytes = bytes + sizeof(*x)};
    return 0;
}

int krn_xnn_set_up(xnn_operator_t x, int r, xnn_operator_t *ret)
{
    if (r < 0) {
        xnn_delete_operator(x);
    } else {
        *ret = x;
    }
    return r;
}

void krn_xnn_release(struct krn_prepared *p)
{
    struct krn_xnn *x = p->object;

    for (size_t i = 0; x && i < KRN_XNN_IDLE; i++) {
        xnn_operator_t op = atomic_load(&x->idle[i]);

        if (op) {
            xnn_delete_operator(op);
        }
    }
    if (x) {
        free(x->constants);
    }
    free(x);
    *p = (struct krn_prepared){0};
}

xnn_operator_t krn_xnn_take(struct krn_xnn *x)
{
    for (;;) {
        xnn_operator_t op = NULL;

        for (size_t i = 0; i < KRN_XNN_IDLE && !op; i++) {
            op = atomic_exchange_explicit(&x->idle[i], NULL, memory_order_acquire);
        }
        if (op || x->make(x->m, x->op, &op) == 0) {
            return op;
        }
        sched_yield(); /* no memory for another operator: wait until one is returned */
    }
}

static void give(struct krn_xnn *x, xnn_operator_t op)
{
    for (size_t i = 0; i < KRN_XNN_IDLE; i++) {
        xnn_operator_t none = NULL;

        if (atomic_compare_exchange_strong_explicit(&x->idle[i], &none, op, memory_order_release,
                                                    memory_order_relaxed)) {
            return;
        }
    }
    xnn_delete_operator(op);
}

float *krn_xnn_nowhere(void)
{
    return (float *)((uintptr_t)1 << (sizeof(uintptr_t) * CHAR_BIT - 2));
}

struct job {
    struct krn_epilogue e;
    const struct krn_call *call;
    const struct krn_img *y;
    size_t pixels, parts;
    bool look;             /* for infinite results */
    atomic_bool seen_some; /* written by any part */
};

typedef uint32_t lanes __attribute__((vector_size(16))); /* as every CPU has them */

static bool any_infinite(const float *y, size_t pixel, size_t pixels, size_t channels)
{
    const uint32_t sign = 0x80000000u, infinite = 0x7f800000u;
    const size_t step = sizeof(lanes) / sizeof(float);
    lanes seen = {0};
    uint32_t v, any = 0;

    if (pixel == channels) {
        channels *= pixels;
        pixels = 1;
    }
    for (size_t p = 0; p < pixels; p++, y += pixel) {
        size_t i = 0;

        for (; i + step <= channels; i += step) {
            lanes l;

            memcpy(&l, y + i, sizeof(l));
            seen |= (lanes)((l & ~sign) == infinite);
        }
        for (; i < channels; i++) {
            memcpy(&v, y + i, sizeof(v));
            any |= (v & ~sign) == infinite;
        }
    }
    for (size_t i = 0; i < step; i++) {
        any |= seen[i];
    }
    return any != 0;
}

static void part_run(void *arg, size_t part)
{
    struct job *j = arg;
    struct krn_range at = krn_share_run(j->pixels, 1, part, j->parts);
    size_t count = at.end - at.begin;
    float *y;

    if (count == 0) {
        return;
    }
    y = (float *)j->call->out[0] + at.begin * j->y->pixel;
    if (j->look && any_infinite(y, j->y->pixel, count, j->y->c)) {
        atomic_store(&j->seen_some, true);
    } else if (!krn_epilogue_empty(&j->e)) {
        krn_epilogue_run(&j->e, y, j->y->pixel, at.begin, count, 0, j->y->c);
    }
}

void krn_xnn_finish(const struct krn_call *c, xnn_operator_t op, const struct krn_epilogue *e,
                    const struct krn_img *y, const struct krn_primitive *portable)
{
    struct job j = {.e = *e,
                    .call = c,
                    .y = y,
                    .pixels = y ? y->n * y->h * y->w : 0,
                    .parts = base_max(c->width, 1u),
                    .look = portable && !krn_xnn_keeps_nan()};

    xnn_run_operator(op, c->pool);
    give(c->prepared, op);
    /* even if empty: after XNNPACK the team spins; this call stops it as set by
     * krn_parallel_yield() */
    if (c->pool || j.look || !krn_epilogue_empty(&j.e)) {
        krn_parallel(c->pool, j.parts, part_run, &j);
    }
    if (atomic_load(&j.seen_some)) {
        portable->run(c);
    }
}

bool krn_xnn_range(const struct mdl_op *op, float *ret_min, float *ret_max)
{
    bool limits = krn_xnn_keeps_nan() && op->residual != MDL_RESIDUAL_BEFORE_ACT &&
                  (op->act == MDL_ACT_RELU || (op->act == MDL_ACT_CLIP && op->act_a < op->act_b));

    *ret_min = limits ? (op->act == MDL_ACT_RELU ? 0.0f : op->act_a) : -INFINITY;
    *ret_max = limits && op->act == MDL_ACT_CLIP ? op->act_b : INFINITY;
    return limits;
}

struct krn_epilogue krn_xnn_rest(const struct mdl_op *op, struct krn_epilogue e)
{
    float min, max;

    e.shift = NULL;
    if (krn_xnn_range(op, &min, &max)) {
        e.act = MDL_ACT_NONE;
    }
    return e;
}
