/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/xnn.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>

#include "base.h"

static bool ready;

static void start(void)
{
    ready = xnn_initialize(NULL) == xnn_status_success;
}

bool krn_xnn_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start);
    return ready;
}

int krn_xnn_error(enum xnn_status s)
{
    return s == xnn_status_success ? 0 : s == xnn_status_out_of_memory ? -ENOMEM : -EOPNOTSUPP;
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

void krn_xnn_release(struct krn_prepared *p)
{
    struct krn_xnn *x = p->object;

    for (size_t i = 0; x && i < KRN_XNN_IDLE; i++) {
        xnn_operator_t op = atomic_load(&x->idle[i]);

        if (op) {
            xnn_delete_operator(op);
        }
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
        sched_yield(); /* no memory for another one: one of those in use comes back */
    }
}

void krn_xnn_give(struct krn_xnn *x, xnn_operator_t op)
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

struct job {
    struct krn_epilogue e;
    const struct krn_call *call;
    const struct krn_img *y;
    size_t pixels, parts;
};

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range at = krn_share(j->pixels, 1, part, j->parts);

    if (at.begin < at.end && !krn_epilogue_empty(&j->e)) {
        krn_epilogue_run(&j->e, (float *)j->call->out[0] + at.begin * j->y->pixel, j->y->pixel,
                         at.begin, at.end - at.begin, 0, j->y->c);
    }
}

void krn_xnn_finish(const struct krn_call *c, xnn_operator_t op, const struct krn_epilogue *e,
                    const struct krn_img *y)
{
    struct job j = {
        .e = *e, .call = c, .y = y, .pixels = y->n * y->h * y->w, .parts = base_max(c->width, 1u)};

    xnn_run_operator(op, c->pool);
    krn_xnn_give(c->prepared, op);
    /* an empty one also: after XNNPACK the team spins, here it stops as krn_parallel_yield() says
     */
    if (c->pool || !krn_epilogue_empty(&j.e)) {
        krn_parallel(c->pool, j.parts, part_run, &j);
    }
}

bool krn_xnn_range(const struct mdl_op *op, float *ret_min, float *ret_max)
{
    bool limits = op->residual != MDL_RESIDUAL_BEFORE_ACT &&
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

size_t krn_xnn_padding(size_t out, size_t stride, size_t span, ptrdiff_t begin, size_t size)
{
    size_t needed = (out - 1) * stride + span;

    return needed > (size_t)begin + size ? needed - (size_t)begin - size : 0;
}
