/* SPDX-License-Identifier: Apache-2.0 */
/* The front over time, accuracy and memory: data types proposed by paths, each measured and
 * judged. */
#include <math.h>

#include "base/base.h"
#include "kernels/int8cal/quantise_private.h"
#include "kernels/select/choose.h"
#include "kernels/select/mixed.h"

#define MEASURE_SHARE 4u /* of measure_ns, for conversions of each choice: one part in so many */
#define PACKED_MAX 2u    /* choices of primitives for the same data types */
#define AS_FAST 1.02     /* times are not surer */
#define PROPOSED_MAX 32u /* data types, with f32 and integers everywhere */

struct proposal {
    bool *keep; /* [candidates], owned: it stays f32 */
    bool inexact;
};

struct front {
    struct krn_quantise *j;
    struct krn_quantise_candidate *all; /* [count], owned: ops that can run on integers */
    size_t count, asked;                /* asked: ops that the caller keeps */
    struct krn_dtype_times times;
    double inexact_error; /* of an op that rounds more; 0: there is none */
    struct proposal proposals[PROPOSED_MAX];
    size_t proposed;
};

static void precision_deinit(struct krn_precision *p)
{
    for (size_t i = 0; i < p->keep_count; i++) {
        free(p->keep[i]);
    }
    free(p->keep);
}

void krn_precisions_free(struct krn_precision *of, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        precision_deinit(&of[i]);
    }
    free(of);
}

static void front_deinit(struct front *f)
{
    for (size_t i = 0; i < f->proposed; i++) {
        free(f->proposals[i].keep);
    }
    krn_dtype_times_deinit(&f->times);
    free(f->all);
}

static int not_chosen(const struct front *f, int r)
{
    if (r < 0) {
        snprintf(f->j->error, MDL_ERROR_MAX, "no primitives could be chosen: %s", strerror(-r));
    }
    return r;
}

/* ---- proposals ---- */

/* Proposes what @keeps says of each op that can run on integers, unless it is proposed. */
static int propose(struct front *f, bool inexact,
                   bool (*keeps)(const struct front *, size_t, const void *), const void *arg)
{
    struct proposal p = {.keep = calloc(f->count + 1, sizeof(bool)), .inexact = inexact};

    if (!p.keep) {
        return krn_quantise_no_memory(f->j);
    }
    for (size_t i = 0; i < f->count; i++) {
        p.keep[i] = keeps(f, i, arg);
    }
    for (size_t i = 0; i < f->proposed; i++) {
        if (f->proposals[i].inexact == inexact &&
            memcmp(f->proposals[i].keep, p.keep, f->count) == 0) {
            free(p.keep);
            return 0;
        }
    }
    if (f->proposed == PROPOSED_MAX) {
        free(p.keep);
        return 0;
    }
    f->proposals[f->proposed++] = p;
    return 0;
}

static bool keeps_all(const struct front *f, size_t i, const void *arg)
{
    return f && i < f->count && *(const bool *)arg;
}

static bool keeps_as_now(const struct front *f, size_t i, const void *arg)
{
    (void)arg;
    return mdl_calibration_keeps(f->j->q.calibration, f->all[i].name);
}

static bool keeps_real(const struct front *f, size_t i, const void *arg)
{
    return !((const struct krn_mixed_choice *)arg)->on_bytes[f->all[i].op];
}

/* ns of an element in ops of @kind of the quantised model; 0: it has none. */
static double ns_each(const struct front *f, enum mdl_op_kind kind)
{
    const struct mdl_model *m = f->times.whole;
    const struct krn_times *t = &f->times.bytes[0];
    double ns = 0, elements = 0;

    for (size_t op = 0; op < m->op_count; op++) {
        double best = INFINITY;

        for (size_t i = 0; m->ops[op].kind == kind && i < t->count; i++) {
            if (t->times[i].op == op) {
                best = base_min(best, t->times[i].ns);
            }
        }
        if (isfinite(best)) {
            ns += best;
            elements += (double)mdl_elements(&m->tensors[m->ops[op].in[0]]);
        }
    }
    return elements > 0 ? ns / elements : 0;
}

/* Is it a value of quantised bytes. */
static bool of_bytes(const struct mdl_model *m, size_t tensor)
{
    return tensor != MDL_NONE && mdl_dtype_bytes(m->tensors[tensor].dtype) == 1;
}

struct arrays {
    size_t *of;
    bool *takes, *leaves;
    double *error, *to_bytes_ns, *to_real_ns;
};

static void arrays_deinit(struct arrays *a)
{
    free(a->of);
    free(a->takes);
    free(a->leaves);
    free(a->error);
    free(a->to_bytes_ns);
    free(a->to_real_ns);
}

static int arrays_init(const struct front *f, struct arrays *a)
{
    const struct mdl_model *m = f->j->m, *whole = f->times.whole;
    double to_bytes = ns_each(f, MDL_OP_QUANTIZE), to_real = ns_each(f, MDL_OP_DEQUANTIZE);
    size_t n = m->op_count + 1;

    *a = (struct arrays){calloc(n, sizeof(size_t)), calloc(n, sizeof(bool)),
                         calloc(n, sizeof(bool)),   calloc(n, sizeof(double)),
                         calloc(n, sizeof(double)), calloc(n, sizeof(double))};
    if (!a->of || !a->takes || !a->leaves || !a->error || !a->to_bytes_ns || !a->to_real_ns) {
        return krn_quantise_no_memory(f->j);
    }
    for (size_t op = 0; op < m->op_count; op++) {
        size_t in = m->ops[op].in[0], at = krn_quantise_find_op(whole, m->ops[op].name);
        double elements = in == MDL_NONE ? 0 : (double)mdl_elements(&m->tensors[in]);

        a->of[op] = SIZE_MAX;
        if (at != MDL_NONE && (whole->ops[at].quant || of_bytes(whole, whole->ops[at].in[0]))) {
            a->of[op] = at;
            a->takes[op] = of_bytes(whole, whole->ops[at].in[0]);
            a->leaves[op] = of_bytes(whole, whole->ops[at].out[0]);
        }
        a->to_bytes_ns[op] = to_bytes * elements;
        a->to_real_ns[op] = to_real * elements;
    }
    for (size_t i = 0; i < f->count; i++) {
        a->error[f->all[i].op] = f->all[i].square;
    }
    return 0;
}

static int propose_paths(struct front *f, bool inexact)
{
    const struct krn_quantise_options *o = f->j->o;
    struct krn_path_options search = {.algorithm = o->front_search, .seed = 1};
    struct krn_mixed_choice found[PROPOSED_MAX];
    struct arrays a;
    struct krn_mixed x = {.real = &f->times.real[0],
                          .bytes = &f->times.bytes[0],
                          .inexact = inexact,
                          .inexact_error = f->inexact_error};
    size_t count = 0;
    int r = arrays_init(f, &a);

    x.of = a.of;
    x.takes = a.takes;
    x.leaves = a.leaves;
    x.error = a.error;
    x.to_bytes_ns = a.to_bytes_ns;
    x.to_real_ns = a.to_real_ns;
    r = r < 0 ? r
              : not_chosen(f, krn_mixed_front(&x, &search,
                                              base_min(o->front_max, (size_t)PROPOSED_MAX), found,
                                              &count));
    for (size_t i = 0; i < count; i++) {
        r = r < 0 ? r : propose(f, inexact, keeps_real, &found[i]);
        krn_mixed_choice_deinit(&found[i]);
    }
    arrays_deinit(&a);
    return r;
}

/* What INEXACT primitives cost, if there are any that are faster. */
static int find_inexact(struct front *f)
{
    struct krn_quantise *j = f->j;
    struct krn_answers some = krn_quantise_ranked(j);
    struct mdl_calibration *ranges = base_take(j->q.calibration);
    struct krn_chosen fastest = KRN_CHOSEN_NULL;
    struct krn_judgement of = {0};
    int r = not_chosen(f, krn_choose(&f->times.real[0], &(struct krn_choose_options){0}, &fastest));

    if (r == 0 && fastest.inexact) {
        krn_quantise_pass(j, "judging operators that round more", 0, 1);
        j->by = &fastest.choice;
        r = krn_quantise_judge(j, &some, &of);
        j->by = NULL;
        f->inexact_error = of.square / (double)fastest.inexact + 1e-300;
    }
    krn_chosen_deinit(&fastest);
    j->q.calibration = ranges;
    return r;
}

/* Ends with a calibration that keeps what the caller asked for. */
static int make_proposals(struct front *f)
{
    static const bool none = false, all = true;
    struct krn_quantise *j = f->j;
    int r = 0;

    f->all = calloc(j->m->op_count + 1, sizeof(*f->all));
    r = f->all ? krn_quantise_candidates(j, f->asked, f->all, &f->count)
               : krn_quantise_no_memory(j);
    r = r < 0 ? r : propose(f, false, keeps_as_now, NULL);
    krn_quantise_cut_keep(j, f->asked);
    r = r < 0 ? r : propose(f, false, keeps_all, &all);
    r = r < 0 ? r : propose(f, false, keeps_all, &none);
    r = r < 0 ? r : krn_quantise_costs(j, "finding what each operator costs", f->all, f->count);
    r = r < 0 ? r : krn_dtype_times_init(j, j->o->measure_ns, &f->times);
    r = r < 0 ? r : find_inexact(f);
    r = r < 0 ? r : propose_paths(f, false);
    if (r == 0 && f->inexact_error > 0) {
        r = propose(f, true, keeps_all, &all);
        r = r < 0 ? r : propose(f, true, keeps_all, &none);
        r = r < 0 ? r : propose_paths(f, true);
    }
    return r;
}

/* ---- points ---- */

static bool beats(const struct krn_precision *a, const struct krn_precision *b)
{
    return a->ns <= AS_FAST * b->ns &&
           a->packed_bytes + a->arena_bytes <= b->packed_bytes + b->arena_bytes &&
           a->agreement >= b->agreement && a->error <= b->error;
}

/* Adds @p, which it takes over, unless a point beats it; points that it beats go. */
static int add_point(struct front *f, struct krn_precision *p)
{
    struct krn_quantised *q = &f->j->q;
    struct krn_precision *more = realloc(q->front, (q->front_count + 1) * sizeof(*more));
    size_t kept = 0;
    bool beaten = false;

    if (!more) {
        precision_deinit(p);
        return krn_quantise_no_memory(f->j);
    }
    q->front = more;
    for (size_t i = 0; i < q->front_count && !beaten; i++) {
        beaten = beats(&more[i], p);
    }
    if (beaten) {
        precision_deinit(p);
        return 0;
    }
    for (size_t i = 0; i < q->front_count; i++) {
        if (beats(p, &more[i])) {
            precision_deinit(&more[i]);
        } else {
            more[kept++] = more[i];
        }
    }
    q->front_count = kept + 1;
    for (; kept > 0 && more[kept - 1].ns > p->ns; kept--) {
        more[kept] = more[kept - 1];
    }
    more[kept] = *p;
    return 0;
}

static int copy_keep(const struct front *f, struct krn_precision *p)
{
    const struct mdl_calibration *c = f->j->q.calibration;
    size_t count = c ? c->keep_count : 0;

    p->keep = calloc(count + 1, sizeof(*p->keep));
    for (size_t i = 0; p->keep && i < count; i++) {
        p->keep[i] = strdup(c->keep[i]);
        if (!p->keep[i]) {
            return krn_quantise_no_memory(f->j);
        }
        p->keep_count++;
    }
    return p->keep ? 0 : krn_quantise_no_memory(f->j);
}

/* Judges data types by their fastest primitives; *@p: in: what else is known. */
static int judge(struct front *f, const struct krn_chosen *fastest, struct krn_precision *p)
{
    struct krn_quantise *j = f->j;
    struct krn_judgement of;
    int r;

    j->by = p->inexact ? &fastest->choice : NULL;
    r = krn_quantise_judge(j, &j->judged, &of);
    j->by = NULL;
    p->agreement = (double)of.same / (double)j->judged.count;
    p->expected = of.expected;
    p->error = of.sum / (double)j->judged.count;
    return r;
}

/* The time of the fastest primitives within @packed_max, mean of the kinds of cores; INFINITY: some
 * kind has none. */
static int time_within(const struct krn_times *times, size_t kinds, bool inexact, size_t packed_max,
                       double *ret)
{
    struct krn_choose_options o = {.exact = !inexact, .packed_bytes_max = packed_max};

    *ret = 0;
    for (size_t k = 0; k < kinds; k++) {
        struct krn_chosen c = KRN_CHOSEN_NULL;
        int r = krn_choose(&times[k], &o, &c);

        *ret += r == 0 ? c.ns / (double)kinds : INFINITY;
        krn_chosen_deinit(&c);
        if (r < 0 && r != -ENOSPC) {
            return r;
        }
    }
    return 0;
}

/* The points of data types: by the fastest primitives, and by smaller ones. */
static int add_points(struct front *f, const struct mdl_model *m, const struct krn_times *times,
                      size_t kinds, bool inexact)
{
    struct krn_choose_options o = {.exact = !inexact};
    struct krn_chosen packed[PACKED_MAX];
    struct krn_precision p = {.inexact = inexact, .arena_bytes = m->arena_bytes};
    size_t count = 0;
    int r = krn_choose_front(&times[0], &o, inexact ? 1 : PACKED_MAX, packed, &count);

    p.integers = mdl_integer_ops(m);
    r = r < 0 ? not_chosen(f, r) : judge(f, &packed[0], &p);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct krn_precision at = p;

        at.packed_bytes = packed[i].packed_bytes;
        at.inexact_ops = packed[i].inexact;
        at.packed_bytes_max = i ? at.packed_bytes : 0;
        r = time_within(times, kinds, inexact, at.packed_bytes_max, &at.ns);
        if (r == 0 && isfinite(at.ns)) {
            r = copy_keep(f, &at);
            r = r < 0 ? r : add_point(f, &at);
        }
    }
    for (size_t i = 0; i < count; i++) {
        krn_chosen_deinit(&packed[i]);
    }
    return r;
}

static int measure_proposal(struct front *f, const struct proposal *p)
{
    struct krn_quantise *j = f->j;
    struct mdl_load_options load = j->load;
    size_t kinds = base_max(j->o->cpu_count, (size_t)1);
    base_autofree struct krn_times *times = calloc(kinds, sizeof(*times));
    struct krn_measure_options by = {.budget_ns = j->o->measure_ns / MEASURE_SHARE,
                                     .inexact = p->inexact};
    struct mdl_calibration *ranges = NULL;
    struct mdl_model *m = NULL;
    int r = times ? 0 : krn_quantise_no_memory(j);

    krn_quantise_cut_keep(j, f->asked);
    for (size_t i = 0; r == 0 && i < f->count; i++) {
        r = p->keep[i] ? krn_quantise_add_keep(j, f->all[i].name, KRN_KEPT_FRONT) : 0;
    }
    if (j->q.calibration->keep_count == f->asked + f->count) {
        ranges = base_take(j->q.calibration); /* f32, whose channels are not rescaled either */
    }
    load.calibration = j->q.calibration;
    r = r < 0 ? r : mdl_load(j->path, &load, j->error, &m);
    for (size_t k = 0; r == 0 && k < kinds; k++) {
        r = krn_dtype_times_of(j, &f->times, k, m, by, &times[k]);
    }
    r = r < 0 ? r : add_points(f, m, times, kinds, p->inexact);
    for (size_t k = 0; times && k < kinds; k++) {
        krn_times_deinit(&times[k]);
    }
    j->q.calibration = ranges ? ranges : j->q.calibration;
    mdl_free(m);
    return r;
}

int krn_quantise_front(struct krn_quantise *j)
{
    struct front f = {.j = j, .asked = j->o->keep_count};
    int r = make_proposals(&f);

    for (size_t i = 0; r == 0 && i < f.proposed; i++) {
        krn_quantise_pass(j, "judging choices of the front", i, f.proposed);
        r = measure_proposal(&f, &f.proposals[i]);
    }
    krn_quantise_cut_keep(j, f.asked);
    front_deinit(&f);
    return r;
}

/* ---- a choice of the front ---- */

size_t krn_quantised_within(const struct krn_quantised *q, double lost)
{
    size_t i = 0;

    while (i < q->front_count &&
           base_min(q->front[i].agreement, q->front[i].expected) < 1 - lost - 1e-9) {
        i++;
    }
    return i < q->front_count ? i : SIZE_MAX;
}

int krn_quantised_take(struct krn_quantised *q, size_t point)
{
    struct mdl_calibration *c = q->calibration;
    struct krn_precision *p = &q->front[point];
    enum krn_kept_why *why = realloc(q->why, (p->keep_count + 1) * sizeof(*why));
    char **keep = c->keep;
    size_t asked = c->keep_count;

    if (!why) {
        return -ENOMEM;
    }
    q->why = why;
    for (size_t i = 0; i < p->keep_count; i++) {
        why[i] = i < asked ? KRN_KEPT_ASKED : KRN_KEPT_FRONT;
    }
    c->keep = p->keep;
    c->keep_count = p->keep_count;
    p->keep = keep;
    p->keep_count = asked;
    q->agreement = p->agreement;
    q->error_mean = p->error;
    q->integers = p->integers;
    q->int8_ns = p->ns;
    if (p->integers == 0) {
        q->calibration = mdl_calibration_free(c);
    }
    return 0;
}
