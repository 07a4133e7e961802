/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/select/measure_at_once.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base.h"
#include "kernels/select/measure_private.h"

#define EVICT_BYTES ((size_t)64 << 20)
#define WEIGHTS_MIN ((size_t)256 << 10) /* less takes microseconds, wherever it comes from */
#define TURNS_MIN 3u
#define TURNS_MAX 9u
#define FRAMES_MAX ((size_t)1 << KRN_AT_ONCE)

struct at_once {
    struct krn_measurement r;      /* the frame, copies of constants and the error */
    const struct krn_times *times; /* NULL: the choice stays */
    struct krn_chosen *chosen;
    const struct krn_at_once_options *o;
    double (*ret)[KRN_AT_ONCE];
    uint64_t share_ns; /* time for one primitive */
    uint8_t *evict;    /* [EVICT_BYTES], owned */
    uint8_t *scratch;
    volatile uint64_t sum; /* of what was read, so that it is */
};

static size_t weight_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *t = &m->tensors[op->in[1]];

    return mdl_elements(t) * mdl_dtype_bytes(t->dtype);
}

static bool is_product(const struct mdl_op *op)
{
    return op->kind == MDL_OP_GEMM || op->kind == MDL_OP_MATMUL;
}

bool krn_at_once_gains(const struct mdl_model *m, const struct krn_choice *c, size_t op)
{
    const struct krn_primitive *v = c->own[op];

    return v && v->frames_at_once && !c->fused[op] && !(op > 0 && c->fused[op - 1]) &&
           v->frames_at_once(m, &m->ops[op]) && weight_bytes(m, &m->ops[op]) >= WEIGHTS_MIN;
}

static const struct krn_time *time_of(const struct krn_times *t, size_t op,
                                      const struct krn_primitive *v)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->times[i].op == op && t->times[i].primitive == v) {
            return &t->times[i];
        }
    }
    return NULL;
}

static bool may_replace(const struct mdl_model *m, size_t op, const struct krn_time *to,
                        const struct krn_time *now)
{
    const struct krn_primitive *v = to->primitive;

    return to->op == op && v != now->primitive && !v->fused && !v->inexact && v->frames_at_once &&
           v->frames_at_once(m, &m->ops[op]) && to->ns <= (1 + KRN_AT_ONCE_TIE_MAX) * now->ns;
}

bool krn_at_once_takes(const struct krn_time *now, double now_gain, const struct krn_time *to,
                       double to_gain)
{
    double now_ns = now_gain * now->ns, to_ns = to_gain * to->ns, loss = to->ns - now->ns;
    double tie = base_max(KRN_AT_ONCE_TIE * now->ns, hypot(to->sigma_ns, now->sigma_ns));

    return to_ns < now_ns && loss <= KRN_AT_ONCE_TIE_MAX * now->ns &&
           (loss <= tie || to_ns <= KRN_AT_ONCE_WORTH * now_ns);
}

/* Adds @t in the order of times, behind those before @first. Return: the new count. */
static size_t add_candidate(struct krn_time *list, size_t first, size_t count,
                            const struct krn_time *t)
{
    size_t at = count;

    while (at > first && list[at - 1].ns > t->ns) {
        at--;
    }
    count = base_min(count + 1, (size_t)KRN_AT_ONCE_CANDIDATES);
    if (at < count) {
        memmove(list + at + 1, list + at, (count - at - 1) * sizeof(*list));
        list[at] = *t;
    }
    return count;
}

size_t krn_at_once_candidates(const struct mdl_model *m, const struct krn_times *t,
                              const struct krn_choice *c, size_t op,
                              struct krn_time ret[KRN_AT_ONCE_CANDIDATES])
{
    const struct krn_primitive *own = c->own[op];
    const struct krn_time *now = t && own ? time_of(t, op, own) : NULL;
    size_t count = 0, first;

    if (krn_at_once_gains(m, c, op)) {
        ret[count++] = now ? *now : (struct krn_time){.op = op, .primitive = own};
    }
    first = count;
    if (!now || c->fused[op] || (op > 0 && c->fused[op - 1]) || own->nchw_in || own->nchw_out ||
        own->inexact || !is_product(&m->ops[op]) || weight_bytes(m, &m->ops[op]) < WEIGHTS_MIN) {
        return count;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (may_replace(m, op, &t->times[i], now)) {
            count = add_candidate(ret, first, count, &t->times[i]);
        }
    }
    return count;
}

bool krn_at_once_any(const struct mdl_model *m, const struct krn_choice *c)
{
    for (size_t i = 0; i < m->op_count && i < c->op_count; i++) {
        if (krn_at_once_gains(m, c, i)) {
            return true;
        }
    }
    return false;
}

static bool stopped(const struct at_once *a)
{
    return a->o->stop && atomic_load_explicit(a->o->stop, memory_order_relaxed);
}

/* What other weights do to the caches between two runs. */
static void evict(struct at_once *a, size_t bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < bytes; i += BASE_CACHE_LINE_BYTES) {
        sum += a->evict[i];
    }
    a->sum += sum;
}

static double time_frames(struct at_once *a, const struct krn_bound *bound, size_t op,
                          size_t frames)
{
    const struct krn_mem *mems[FRAMES_MAX];
    struct krn_exec exec = {.width = 1, .scratch = a->scratch};
    struct krn_bound_run run = {
        .m = a->r.m, .op = op, .copies = a->r.copies, .mem = &a->r.mem, .exec = &exec};
    uint64_t start;

    for (size_t i = 0; i < frames; i++) {
        mems[i] = &a->r.mem; /* the same rows: the weights are what takes time */
    }
    start = base_now_ns();
    if (frames == 1) {
        krn_bound_run(bound, &run);
    } else {
        krn_bound_run_frames(bound, &run, mems, frames);
    }
    return (double)(base_now_ns() - start);
}

static double median(double *x, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t k = i; k > 0 && x[k - 1] > x[k]; k--) {
            double swap = x[k];

            x[k] = x[k - 1];
            x[k - 1] = swap;
        }
    }
    return count % 2 ? x[count / 2] : (x[count / 2 - 1] + x[count / 2]) / 2;
}

static void time_op(struct at_once *a, const struct krn_bound *bound, size_t op,
                    double ret[KRN_AT_ONCE])
{
    size_t own = weight_bytes(a->r.m, &a->r.m->ops[op]);
    size_t others = a->r.m->weight_bytes - base_min(own, a->r.m->weight_bytes);
    /* weights that fill the caches have evicted themselves */
    size_t bytes = own >= EVICT_BYTES ? 0 : base_min(others, EVICT_BYTES);
    double ratio[KRN_AT_ONCE][TURNS_MAX];
    uint64_t end_ns = base_now_ns() + a->share_ns;
    size_t turns = 0;

    (void)time_frames(a, bound, op, FRAMES_MAX);
    while (turns < TURNS_MAX && !stopped(a) && (turns < TURNS_MIN || base_now_ns() < end_ns)) {
        double one;

        evict(a, bytes);
        one = base_max(time_frames(a, bound, op, 1), 1.0);
        for (size_t i = 0; i < KRN_AT_ONCE; i++) {
            size_t frames = (size_t)2 << i;

            evict(a, bytes);
            ratio[i][turns] = time_frames(a, bound, op, frames) / ((double)frames * one);
        }
        turns++;
    }
    for (size_t i = 0; i < KRN_AT_ONCE && turns > 0; i++) {
        ret[i] = median(ratio[i], turns);
    }
}

static int measure_one(struct at_once *a, size_t op, const struct krn_primitive *v,
                       double ret[KRN_AT_ONCE])
{
    struct krn_bound bound = {.primitive = v};
    size_t scratch;
    int r = krn_bound_ready(&bound, a->r.m, op, 1);

    r = r < 0 ? r : krn_bound_consts(bound.primitive, a->r.m, op, a->r.copies, &a->r.copied);
    if (r == 0) {
        scratch = base_max(krn_bound_scratch_bytes(bound.primitive, a->r.m, op, 1),
                           krn_bound_frames_bytes(bound.primitive, a->r.m, op, 1, FRAMES_MAX));
        a->scratch = aligned_alloc(64, base_align_up(base_max(scratch, (size_t)64), 64));
        r = a->scratch ? 0 : -ENOMEM;
    }
    if (r == 0) {
        time_op(a, &bound, op, ret);
    }
    free(a->scratch);
    a->scratch = NULL;
    krn_bound_release(&bound);
    return r;
}

static void move_to(struct krn_chosen *c, size_t op, const struct krn_time *to,
                    const struct krn_time *now)
{
    c->choice.own[op] = to->primitive;
    c->ns += to->ns - now->ns;
    c->packed_bytes += to->bytes - now->bytes;
    c->op_ns[op] = to->ns;
    c->op_sigma_ns[op] = to->sigma_ns;
}

/* Times the candidates of an op in turn, the chosen one first if it is one. Of those that it may
 * give way to it takes the one that is best with 4 frames. */
static int measure_op(struct at_once *a, size_t op, const struct krn_time *list, size_t count)
{
    const struct krn_primitive *own = a->chosen->choice.own[op];
    const struct krn_time *now = a->times ? time_of(a->times, op, own) : NULL, *best = NULL;
    double least = INFINITY, now_gain = 1;
    int r = 0;

    for (size_t i = 0; i < count && !stopped(a); i++) {
        double gains[KRN_AT_ONCE] = {1, 1, 1}, ns;

        r = measure_one(a, op, list[i].primitive, gains);
        if (r == -EOPNOTSUPP) {
            r = 0;
            continue;
        }
        if (r < 0) {
            return r;
        }
        ns = gains[1] * (list[i].ns > 0 ? list[i].ns : 1);
        now_gain = list[i].primitive == own ? gains[1] : now_gain;
        if (ns < least && (list[i].primitive == own ||
                           (now && krn_at_once_takes(now, now_gain, &list[i], gains[1])))) {
            least = ns;
            best = &list[i];
            memcpy(a->ret[op], gains, sizeof(gains));
        }
    }
    if (best && best->primitive != own) {
        move_to(a->chosen, op, best, now);
    }
    return r;
}

static size_t left_from(const struct at_once *a, size_t op)
{
    struct krn_time list[KRN_AT_ONCE_CANDIDATES];
    size_t left = 0;

    for (; op < a->r.m->op_count; op++) {
        left += krn_at_once_candidates(a->r.m, a->times, &a->chosen->choice, op, list);
    }
    return left;
}

static void *measuring_main(void *arg)
{
    struct at_once *a = arg;
    uint64_t all_end_ns = a->r.start_ns + a->o->budget_ns;

    if (a->o->cpu >= 0) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t)a->o->cpu, &set);
        (void)sched_setaffinity(0, sizeof(set), &set); /* else on any core */
    }
    a->r.error = krn_measure_frame(&a->r);
    for (size_t op = 0; op < a->r.m->op_count && a->r.error == 0 && !stopped(a); op++) {
        struct krn_time list[KRN_AT_ONCE_CANDIDATES];
        size_t count = krn_at_once_candidates(a->r.m, a->times, &a->chosen->choice, op, list);

        if (count > 0) {
            uint64_t now = base_now_ns();

            a->share_ns = (all_end_ns - base_min(now, all_end_ns)) / left_from(a, op);
            a->r.error = measure_op(a, op, list, count);
        }
    }
    a->r.error = a->r.error == 0 && stopped(a) ? -ECANCELED : a->r.error;
    return NULL;
}

int krn_measure_at_once(const struct mdl_model *m, const struct krn_times *t,
                        const struct krn_at_once_options *o, struct krn_chosen *c,
                        double (*ret)[KRN_AT_ONCE])
{
    struct at_once a = {
        .r = {.m = m, .start_ns = base_now_ns()}, .times = t, .chosen = c, .o = o, .ret = ret};
    pthread_t thread;
    int e;

    for (size_t i = 0; i < m->op_count * KRN_AT_ONCE; i++) {
        ret[i / KRN_AT_ONCE][i % KRN_AT_ONCE] = 1;
    }
    if (left_from(&a, 0) == 0) {
        return 0;
    }
    a.evict = malloc(EVICT_BYTES);
    if (!a.evict) {
        return -ENOMEM;
    }
    memset(a.evict, 1, EVICT_BYTES); /* pages of its own, not all the zero page */
    e = pthread_create(&thread, NULL, measuring_main, &a);
    if (e == 0) {
        pthread_join(thread, NULL);
    }
    krn_measure_deinit(&a.r);
    free(a.evict);
    return e ? -e : a.r.error;
}
