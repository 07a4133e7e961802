/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/select/measure_at_once.h"

#include <math.h>

#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/select/measure_private.h"

#define EVICT_BYTES ((size_t)64 << 20)
#define WEIGHTS_MIN ((size_t)256 << 10) /* less takes microseconds, wherever it comes from */
#define TURNS_MIN 3u
#define TURNS_MAX 9u
#define FRAMES_MAX ((size_t)1 << KRN_AT_ONCE)
#define SIGMAS 2 /* of times from before, that a candidate may be slower by */

struct at_once {
    struct krn_measurement r;      /* the frame, copies of constants and the error */
    const struct krn_times *times; /* NULL: the choice stays */
    struct krn_chosen *chosen;
    const struct krn_at_once_options *o;
    double (*ret)[KRN_AT_ONCE];
    uint64_t share_ns;     /* time for one primitive */
    uint8_t *evict;        /* [EVICT_BYTES], owned */
    volatile uint64_t sum; /* of what was read, so that it is */
};

/* A primitive that is timed in turns with another one. */
struct lane {
    struct krn_bound bound;
    uint8_t *scratch; /* owned */
    bool several;     /* it computes several frames at once */
    bool timed;
    double one_ns[TURNS_MAX];             /* a lone frame */
    double ratio[KRN_AT_ONCE][TURNS_MAX]; /* a frame of several, over that of the same turn */
};

/* What takes the chosen one's place. */
struct rival {
    const struct krn_time *time; /* NULL: nothing does */
    double lone;                 /* its lone frame, over that of the chosen one */
    double gain;                 /* a frame of 4, over a lone one of the chosen one */
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

/* Times from before are of other moments: a doubt about them is no reason not to take turns. */
static bool may_replace(const struct mdl_model *m, size_t op, const struct krn_time *to,
                        const struct krn_time *now)
{
    const struct krn_primitive *v = to->primitive;
    double room_ns = KRN_AT_ONCE_TIE_MAX * now->ns + SIGMAS * hypot(to->sigma_ns, now->sigma_ns);

    return to->op == op && v != now->primitive && !v->fused && !v->inexact && v->frames_at_once &&
           v->frames_at_once(m, &m->ops[op]) && to->ns <= now->ns + room_ns;
}

bool krn_at_once_takes(double now_gain, double lone, double to_gain)
{
    double to = lone * to_gain;

    return to < now_gain && (lone <= 1 + KRN_AT_ONCE_TIE || (lone <= 1 + KRN_AT_ONCE_TIE_MAX &&
                                                             to <= KRN_AT_ONCE_WORTH * now_gain));
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
    const struct krn_time *now = t && own ? krn_times_of(t, op, own) : NULL;
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

/* What other weights do to the caches between two runs. */
static void evict(struct at_once *a, size_t bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < bytes; i += BASE_CACHE_LINE_BYTES) {
        sum += a->evict[i];
    }
    a->sum += sum;
}

static double time_frames(const struct at_once *a, const struct lane *l, size_t op, size_t frames)
{
    const struct krn_mem *mems[FRAMES_MAX];
    struct krn_exec exec = {.width = 1, .scratch = l->scratch};
    struct krn_bound_run run = {
        .m = a->r.m, .op = op, .copies = a->r.copies, .mem = &a->r.mem, .exec = &exec};
    uint64_t start, took_ns;

    for (size_t i = 0; i < frames; i++) {
        mems[i] = &a->r.mem; /* the same rows: the weights are what takes time */
    }
    start = krn_watch_thread_ns(NULL);
    if (frames == 1) {
        krn_bound_run(&l->bound, &run);
    } else {
        krn_bound_run_frames(&l->bound, &run, mems, frames);
    }
    took_ns = krn_watch_thread_ns(NULL) - start;
    if (a->o->took_ns) {
        took_ns = a->o->took_ns(l->bound.primitive, frames, took_ns);
    }
    return base_max((double)took_ns, 1.0);
}

static void time_turn(struct at_once *a, struct lane *l, size_t op, size_t evicted, size_t turn)
{
    evict(a, evicted);
    l->one_ns[turn] = time_frames(a, l, op, 1);
    for (size_t i = 0; i < KRN_AT_ONCE; i++) {
        size_t frames = (size_t)2 << i;

        l->ratio[i][turn] = 1;
        if (l->several) {
            evict(a, evicted);
            l->ratio[i][turn] = time_frames(a, l, op, frames) / ((double)frames * l->one_ns[turn]);
        }
    }
}

/* Times the lanes in turns. Return: how many turns; 0: it was stopped. */
static size_t time_lanes(struct at_once *a, size_t op, struct lane *const *lanes, size_t count)
{
    size_t own = weight_bytes(a->r.m, &a->r.m->ops[op]);
    size_t others = a->r.m->weight_bytes - base_min(own, a->r.m->weight_bytes);
    /* weights that fill the caches have evicted themselves */
    size_t evicted = own >= EVICT_BYTES ? 0 : base_min(others, EVICT_BYTES);
    uint64_t end_ns = base_now_ns() + a->share_ns;
    size_t turns = 0;

    for (size_t i = 0; i < count; i++) {
        (void)time_frames(a, lanes[i], op, lanes[i]->several ? FRAMES_MAX : 1);
    }
    while (turns < TURNS_MAX && !mdl_stopped() && (turns < TURNS_MIN || base_now_ns() < end_ns)) {
        for (size_t i = 0; i < count; i++) {
            time_turn(a, lanes[i], op, evicted, turns);
        }
        turns++;
    }
    for (size_t i = 0; i < count; i++) {
        lanes[i]->timed |= turns > 0;
    }
    return turns;
}

static int lane_init(struct at_once *a, size_t op, const struct krn_primitive *v, struct lane *l)
{
    const struct mdl_model *m = a->r.m;
    int r;

    *l = (struct lane){.bound = {.primitive = v},
                       .several = v->frames_at_once && v->frames_at_once(m, &m->ops[op])};
    r = krn_bound_ready(&l->bound, m, op, 1);
    r = r < 0 ? r : krn_bound_consts(v, m, op, a->r.copies, &a->r.copied);
    if (r == 0) {
        size_t scratch = base_max(krn_bound_scratch_bytes(v, m, op, 1),
                                  krn_bound_frames_bytes(v, m, op, 1, FRAMES_MAX));

        l->scratch = aligned_alloc(64, base_align_up(base_max(scratch, (size_t)64), 64));
        r = l->scratch ? 0 : -ENOMEM;
    }
    return r;
}

static void lane_deinit(struct lane *l)
{
    krn_bound_release(&l->bound);
    free(l->scratch);
}

static void lane_gains(const struct lane *l, size_t turns, double ret[KRN_AT_ONCE])
{
    for (size_t i = 0; i < KRN_AT_ONCE && turns > 0; i++) {
        ret[i] = krn_figure_median(l->ratio[i], turns);
    }
}

static void move_to(const struct at_once *a, size_t op, const struct rival *to)
{
    struct krn_chosen *c = a->chosen;
    const struct krn_time *now = krn_times_of(a->times, op, c->choice.own[op]);

    c->choice.own[op] = to->time->primitive;
    c->packed_bytes += to->time->bytes - now->bytes;
    c->ns += (to->lone - 1) * c->op_ns[op];
    c->op_ns[op] *= to->lone;
    c->op_sigma_ns[op] *= to->lone;
}

/* Times @to in turns with the chosen one, whose place it takes if it may and is the best so far. */
static void judge_rival(struct at_once *a, size_t op, struct lane *own, struct lane *lane,
                        const struct krn_time *to, struct rival *best)
{
    size_t turns = time_lanes(a, op, (struct lane *[]){own, lane}, 2);
    double now_gains[KRN_AT_ONCE], gains[KRN_AT_ONCE], lone[TURNS_MAX], ratio;

    if (turns == 0) {
        return;
    }
    for (size_t i = 0; i < turns; i++) {
        lone[i] = lane->one_ns[i] / own->one_ns[i];
    }
    ratio = krn_figure_median(lone, turns);
    lane_gains(own, turns, now_gains);
    lane_gains(lane, turns, gains);
    if (!best->time) {
        memcpy(a->ret[op], now_gains, sizeof(now_gains));
    }
    if (krn_at_once_takes(now_gains[1], ratio, gains[1]) && ratio * gains[1] < best->gain) {
        *best = (struct rival){to, ratio, ratio * gains[1]};
        memcpy(a->ret[op], gains, sizeof(gains));
    }
}

static int measure_rival(struct at_once *a, size_t op, struct lane *own, const struct krn_time *to,
                         struct rival *best)
{
    struct lane lane;
    int r = lane_init(a, op, to->primitive, &lane);

    if (r == 0) {
        judge_rival(a, op, own, &lane, to, best);
    }
    lane_deinit(&lane);
    return r == -EOPNOTSUPP ? 0 : r;
}

static bool may_compare(const struct at_once *a, size_t op, const struct krn_time *to)
{
    const struct krn_primitive *own = a->chosen->choice.own[op];
    const struct krn_time *now = a->times ? krn_times_of(a->times, op, own) : NULL;

    return to->primitive != own && now && now->bytes + to->bytes <= a->o->packed_max;
}

/* Of the candidates that the chosen one may give way to, takes the one that is best with 4 frames.
 */
static int measure_op(struct at_once *a, size_t op, const struct krn_time *list, size_t count)
{
    struct rival best = {.gain = INFINITY};
    struct lane own;
    int r = lane_init(a, op, a->chosen->choice.own[op], &own);

    for (size_t i = 0; i < count && r == 0 && !mdl_stopped(); i++) {
        if (may_compare(a, op, &list[i])) {
            r = measure_rival(a, op, &own, &list[i], &best);
        }
    }
    if (r == 0 && own.several && !own.timed) {
        lane_gains(&own, time_lanes(a, op, (struct lane *[]){&own}, 1), a->ret[op]);
    }
    if (best.time) {
        move_to(a, op, &best);
    }
    lane_deinit(&own);
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

static void measure_ops(struct krn_measurement *r)
{
    struct at_once *a = base_container_of(r, struct at_once, r);
    uint64_t all_end_ns = r->start_ns + a->o->budget_ns;

    for (size_t op = 0; op < a->r.m->op_count && a->r.error == 0 && !mdl_stopped(); op++) {
        struct krn_time list[KRN_AT_ONCE_CANDIDATES];
        size_t count = krn_at_once_candidates(a->r.m, a->times, &a->chosen->choice, op, list);

        mdl_progress("measuring several frames at once, of operators", op, a->r.m->op_count);
        if (count > 0) {
            uint64_t now = base_now_ns();

            a->share_ns = (all_end_ns - base_min(now, all_end_ns)) / left_from(a, op);
            a->r.error = measure_op(a, op, list, count);
        }
    }
    a->r.error = a->r.error == 0 && mdl_stopped() ? -ECANCELED : a->r.error;
}

int krn_measure_at_once(const struct mdl_model *m, const struct krn_times *t,
                        const struct krn_at_once_options *o, struct krn_chosen *c,
                        double (*ret)[KRN_AT_ONCE])
{
    struct at_once a = {
        .r = {.m = m, .start_ns = base_now_ns()}, .times = t, .chosen = c, .o = o, .ret = ret};
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
    e = krn_measure_on(&a.r, o->cpu, o->stop, measure_ops);
    krn_measure_deinit(&a.r);
    free(a.evict);
    return e;
}
