/* SPDX-License-Identifier: Apache-2.0 */
/* Which primitives are measured for a unit, in which order, and when one has won. */
#include "base/base.h"
#include "kernels/select/measure_private.h"
#include "model/common/arithmetic.h"

/* Work of a run that may be waited for: some seconds. */
#define STILL_WORK ((double)(1ull << 36))
#define STILL_WORK_REFERENCE ((double)(1ull << 31))
#define WORK_PER_NS 16

#define FEW 3u /* samples that identify a hopeless primitive ... */
#define HOPELESS 2.0
#define SOME 8u /* ... and one that will not win */
#define BEHIND 1.15
#define SIGMAS 2 /* that a verdict must leave room for, on both sides */

static bool same_tensor(const struct mdl_model *m, size_t a, const struct mdl_model *n, size_t b)
{
    if (a == MDL_NONE || b == MDL_NONE) {
        return a == b;
    }
    const struct mdl_tensor *x = &m->tensors[a], *y = &n->tensors[b];

    return x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x->dim, y->dim, x->rank * sizeof(x->dim[0])) == 0 &&
           memcmp(x->stride, y->stride, x->rank * sizeof(x->stride[0])) == 0 &&
           m->storages[x->storage].home == n->storages[y->storage].home;
}

bool krn_measure_same(const struct mdl_model *m, size_t a, const struct mdl_model *n, size_t b)
{
    const struct mdl_op *x = &m->ops[a], *y = &n->ops[b];
    bool same = x->kind == y->kind && x->act == y->act && x->residual == y->residual &&
                !x->scale == !y->scale && !x->shift == !y->shift &&
                memcmp(&x->attr, &y->attr, sizeof(x->attr)) == 0 &&
                same_tensor(m, x->residual_in, n, y->residual_in);

    for (size_t i = 0; same && i < MDL_OP_IN_MAX; i++) {
        same = same_tensor(m, x->in[i], n, y->in[i]);
    }
    for (size_t i = 0; same && i < MDL_OP_OUT_MAX; i++) {
        same = same_tensor(m, x->out[i], n, y->out[i]);
    }
    return same;
}

static bool is_portable(const char *name)
{
    const char *end = strstr(name, "__vec");

    return end && end[5] == '\0';
}

/* Return: whether the same primitive has a build for this CPU. */
static bool has_better_build(const struct krn_primitive *v, const struct mdl_model *m, size_t op)
{
    size_t count, stem = strlen(v->name) - strlen("vec");
    const struct krn_primitive *table = krn_primitives(&count);

    for (size_t i = 0; is_portable(v->name) && i < count; i++) {
        if (&table[i] != v && !table[i].reference && strncmp(table[i].name, v->name, stem) == 0 &&
            !strstr(table[i].name + stem, "__") && krn_usable(&table[i], m, op)) {
            return true;
        }
    }
    return false;
}

static bool is_worth_it(const struct krn_measurement *r, const struct krn_primitive *v, size_t op,
                        bool named, bool others)
{
    if (named) {
        return krn_primitive_named(v, r->o->only);
    }
    return !(v->inexact && !r->o->inexact) && !(v->reference && others) &&
           !has_better_build(v, r->m, op);
}

static struct krn_stat *stat_of(struct krn_measurement *r, size_t op, const struct krn_primitive *v)
{
    const struct krn_op_candidates *same = &r->ops[r->ops[op].same];

    for (size_t i = 0; r->ops[op].same != op && i < same->count; i++) {
        /* a pair is the same only if its second op is, too */
        if (same->of[i].stat->primitive == v &&
            (!v->fused || r->ops[op + 1].same == r->ops[r->ops[op].same + 1].same)) {
            return same->of[i].stat;
        }
    }
    r->stats[r->stat_count].primitive = v;
    return &r->stats[r->stat_count++];
}

/* Is it an op to measure, or of the same shapes as one? */
static bool is_wanted(const struct krn_measurement *r, size_t op)
{
    bool wanted = !r->o->known || !r->o->wanted;

    for (size_t i = 0; !wanted && i < r->m->op_count; i++) {
        wanted = r->o->wanted[i] && r->ops[i].same == r->ops[op].same;
    }
    return wanted;
}

/* Return: the primitive that may be used and is known to run @op alone fastest; NULL: none. */
static const struct krn_primitive *known_fastest(const struct krn_measure_options *o, size_t op)
{
    const struct krn_time *best = NULL;

    for (size_t i = 0; i < o->known->count; i++) {
        const struct krn_time *x = &o->known->times[i];

        if (x->op == op && !x->primitive->fused && !(x->primitive->inexact && !o->inexact) &&
            (!best || x->ns < best->ns)) {
            best = x;
        }
    }
    return best ? best->primitive : NULL;
}

static double work_of(const struct mdl_model *m, const struct mdl_op *op)
{
    double made = 0, read = 0;

    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        read += op->in[i] == MDL_NONE ? 0 : (double)mdl_elements(&m->tensors[op->in[i]]);
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        made += op->out[i] == MDL_NONE ? 0 : (double)mdl_elements(&m->tensors[op->out[i]]);
    }
    return mdl_op_work(op, made, read);
}

/* Nobody waits for the end of a run: what takes seconds is taken by the static order. @fast: not
 * only the reference can run it. */
static void find_still(struct krn_measurement *r, size_t op, bool fast)
{
    double work = work_of(r->m, &r->m->ops[op]);

    r->ops[op].still =
        krn_writes_nothing(r->m, op) || work > (fast ? STILL_WORK : STILL_WORK_REFERENCE);
    if (r->ops[op].still && !krn_writes_nothing(r->m, op)) {
        r->ops[op].still_ns = work / (fast ? WORK_PER_NS : 1);
    }
}

/* Does @v run a pair of which one op is not run? */
static bool breaks_still(const struct krn_measurement *r, const struct krn_primitive *v, size_t op)
{
    return v->fused && (r->ops[op].still || krn_writes_nothing(r->m, op + 1) ||
                        work_of(r->m, &r->m->ops[op + 1]) > STILL_WORK);
}

static void list_candidates(struct krn_measurement *r, size_t op)
{
    struct krn_op_candidates *ops = &r->ops[op];
    const struct krn_primitive *table;
    size_t count;
    bool named = false, others = false;
    const struct krn_primitive *only = is_wanted(r, op) ? NULL : known_fastest(r->o, op);

    table = krn_primitives(&count);
    for (size_t i = 0; i < count; i++) {
        if (!table[i].fused && krn_usable(&table[i], r->m, op)) {
            named |= r->o->only && krn_primitive_named(&table[i], r->o->only);
            others |= !table[i].reference;
        }
    }
    ops->of = &r->candidates[r->candidate_count];
    find_still(r, op, others);
    for (size_t i = 0; i < count && ops->count < (ops->still ? 1 : KRN_MEASURE_CANDIDATES_MAX);
         i++) {
        const struct krn_primitive *v = &table[i];

        if (!krn_usable(v, r->m, op) || (only && v != only) || breaks_still(r, v, op) ||
            !(v->fused && r->o->only ? krn_primitive_named(v, r->o->only)
                                     : is_worth_it(r, v, op, named, others))) {
            continue;
        }
        ops->of[ops->count++].bound.primitive = v;
        r->candidate_count++;
    }
}

static size_t bytes_of(const struct krn_measurement *r, const struct krn_primitive *v, size_t op)
{
    const struct mdl_op *o = &r->m->ops[op];

    if (v->packed_bytes) {
        return v->packed_bytes(r->m, o);
    }
    return v->prepare && o->in[1] != MDL_NONE
               ? r->m->storages[r->m->tensors[o->in[1]].storage].bytes
               : 0;
}

static double weight_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    return op->macs > 0 && op->in[1] != MDL_NONE
               ? (double)m->storages[m->tensors[op->in[1]].storage].bytes
               : 0;
}

/* Cycles, at 16 multiply-accumulates, 8 bytes of weights from memory or one moved element per
 * cycle; only divides the time budget. */
static double estimate(const struct mdl_model *m, size_t op)
{
    double computed = m->ops[op].macs / 16, read = weight_bytes(m, &m->ops[op]) / 8;

    return krn_writes_nothing(m, op) ? 0
                                     : 1 + base_max(computed, read) +
                                           (double)mdl_elements(&m->tensors[m->ops[op].out[0]]);
}

int krn_measure_list(struct krn_measurement *r)
{
    size_t n = r->m->op_count;
    double all = 0;

    r->ops = calloc(n + 1, sizeof(*r->ops));
    r->candidates = calloc(n * KRN_MEASURE_CANDIDATES_MAX + 1, sizeof(*r->candidates));
    r->stats = calloc(n * KRN_MEASURE_CANDIDATES_MAX + 1, sizeof(*r->stats));
    if (!r->ops || !r->candidates || !r->stats) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        while (!krn_measure_same(r->m, r->ops[i].same, r->m, i)) {
            r->ops[i].same++;
        }
    }
    for (size_t i = 0; i < n; i++) { /* what is not wanted needs no time of its own */
        r->ops[i].share = is_wanted(r, i) ? estimate(r->m, i) : 0;
        all += r->ops[i].share;
    }
    for (size_t i = 0; i < n; i++) {
        list_candidates(r, i);
        r->ops[i].share /= base_max(all, 1.0);
        for (size_t c = 0; c < r->ops[i].count; c++) {
            struct krn_candidate *at = &r->ops[i].of[c];

            at->bytes = bytes_of(r, at->bound.primitive, i);
            at->stat = stat_of(r, i, at->bound.primitive);
        }
    }
    return 0;
}

/* ---- which of them are still worth a run ---- */

struct krn_figure krn_stat_figure(const struct krn_stat *s)
{
    return krn_figure_of(s->samples, s->count, s->disturbed,
                         base_min(s->disturbed_count, (size_t)KRN_MEASURE_FRAMES));
}

double krn_stat_median(const struct krn_stat *s)
{
    return krn_stat_figure(s).ns;
}

struct krn_candidate *krn_measure_fastest(const struct krn_measurement *r, size_t op)
{
    struct krn_candidate *best = NULL;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        struct krn_candidate *c = &r->ops[op].of[i];

        if (!c->unable && !c->bound.primitive->fused && c->stat->runs &&
            (!best || krn_stat_median(c->stat) < krn_stat_median(best->stat))) {
            best = c;
        }
    }
    return best;
}

/* What @c has to beat, and how many clean samples that rests on; 0: nothing yet. */
static size_t rival_of(const struct krn_measurement *r, size_t op, const struct krn_candidate *c,
                       struct krn_figure *ret)
{
    size_t last = c->bound.primitive->fused ? op + 1 : op, least = SIZE_MAX;

    *ret = (struct krn_figure){0};
    for (size_t i = op; i <= last; i++) {
        const struct krn_candidate *best = krn_measure_fastest(r, i);
        struct krn_figure f;

        if (!best || best == c) {
            return 0;
        }
        f = krn_stat_figure(best->stat);
        ret->ns += f.ns;
        ret->sigma_ns += f.sigma_ns;
        least = base_min(least, best->stat->count);
    }
    return least;
}

void krn_measure_judge(struct krn_measurement *r, size_t op, struct krn_candidate *c)
{
    struct krn_stat *s = c->stat;
    struct krn_figure own = krn_stat_figure(s), rival;
    size_t count = base_min(s->count, rival_of(r, op, c, &rival));
    double least = own.ns - SIGMAS * own.sigma_ns, most = rival.ns + SIGMAS * rival.sigma_ns;

    s->dropped |= (count >= FEW && least > HOPELESS * most) ||
                  (count >= SOME && least > most && own.ns > BEHIND * rival.ns);
}

bool krn_measure_is_done(const struct krn_measurement *r, const struct krn_candidate *c)
{
    const struct krn_stat *s = c->stat;

    return c->unable || s->dropped || s->count >= r->frames ||
           s->runs >= KRN_MEASURE_PATIENCE * r->frames;
}
