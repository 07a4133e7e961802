/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/measure.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base.h"
#include "kernels/form.h"
#include "kernels/row.h"

#define FRAMES 20u
#define ROWS_MAX 24u                    /* of one op, fused ones too */
#define WINDOW_BYTES ((size_t)96 << 20) /* of rows that are packed at the same time */
#define FEW 3u                          /* samples that show a hopeless row ... */
#define HOPELESS 2.0
#define SOME 8u /* ... and one that will not win */
#define BEHIND 1.15
#define HUGE_FRAMES 5u /* samples of a row that alone fills a window */

/* One row of one op. */
struct candidate {
    struct krn_row row;
    size_t stat;
    size_t bytes;
    bool warm; /* was run since it was packed */
    bool unable;
};

/* What ops of the same shapes know of one row. */
struct stat {
    const struct krn_variant *variant;
    double samples[FRAMES];
    size_t count;
    bool dropped;
};

struct op_rows {
    size_t first, count;      /* of the candidates */
    struct stat takes, gives; /* changes of form; of the first op of these shapes */
    size_t same;              /* the first op of these shapes */
    double share;             /* of the model, estimated */
};

struct run {
    const struct mdl_model *m;
    const struct krn_measure_options *o;
    struct op_rows *ops;
    struct candidate *candidates;
    struct stat *stats;
    size_t candidate_count, stat_count, frames;
    void **copies; /* of constants: krn_row_consts() */
    size_t copied;
    struct krn_mem mem;
    uint8_t *arena, *saved, *scratch, **buffers;
    size_t scratch_bytes, buffer_count;
    uint64_t start_ns;
    int error;
};

/* ---- which rows ---- */

static bool same_tensor(const struct mdl_model *m, size_t a, size_t b)
{
    if (a == MDL_NONE || b == MDL_NONE) {
        return a == b;
    }
    const struct mdl_tensor *x = &m->tensors[a], *y = &m->tensors[b];

    return x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x->dim, y->dim, x->rank * sizeof(x->dim[0])) == 0 &&
           memcmp(x->stride, y->stride, x->rank * sizeof(x->stride[0])) == 0 &&
           m->storages[x->storage].home == m->storages[y->storage].home;
}

/* Shapes, types, strides and attributes: what the time of an op depends on. */
static bool same_op(const struct mdl_model *m, size_t a, size_t b)
{
    const struct mdl_op *x = &m->ops[a], *y = &m->ops[b];
    bool same = x->kind == y->kind && x->act == y->act && x->residual == y->residual &&
                !x->scale == !y->scale && !x->shift == !y->shift &&
                memcmp(&x->attr, &y->attr, sizeof(x->attr)) == 0 &&
                same_tensor(m, x->residual_in, y->residual_in);

    for (size_t i = 0; same && i < MDL_OP_IN_MAX; i++) {
        same = same_tensor(m, x->in[i], y->in[i]);
    }
    for (size_t i = 0; same && i < MDL_OP_OUT_MAX; i++) {
        same = same_tensor(m, x->out[i], y->out[i]);
    }
    return same;
}

static bool is_portable(const char *name)
{
    const char *end = strstr(name, "__vec");

    return end && end[5] == '\0';
}

/* Is there a build of the same row for this CPU? */
static bool has_better_build(const struct krn_variant *v, const struct mdl_model *m, size_t op)
{
    size_t count, stem = strlen(v->name) - strlen("vec");
    const struct krn_variant *table = krn_variants(&count);

    for (size_t i = 0; is_portable(v->name) && i < count; i++) {
        if (&table[i] != v && !table[i].reference && strncmp(table[i].name, v->name, stem) == 0 &&
            !strstr(table[i].name + stem, "__") && krn_usable(&table[i], m, op)) {
            return true;
        }
    }
    return false;
}

static bool is_worth_it(const struct run *r, const struct krn_variant *v, size_t op, bool named,
                        bool others)
{
    if (named) {
        return krn_row_named(v, r->o->only);
    }
    return !(v->inexact && !r->o->inexact) && !(v->reference && others) &&
           !has_better_build(v, r->m, op);
}

static size_t stat_of(struct run *r, size_t op, const struct krn_variant *v)
{
    const struct op_rows *same = &r->ops[r->ops[op].same];

    for (size_t i = same->first; r->ops[op].same != op && i < same->first + same->count; i++) {
        const struct stat *s = &r->stats[r->candidates[i].stat];

        /* a pair is the same only if the op behind is, too */
        if (s->variant == v &&
            (!v->fused || r->ops[op + 1].same == r->ops[r->ops[op].same + 1].same)) {
            return r->candidates[i].stat;
        }
    }
    r->stats[r->stat_count].variant = v;
    return r->stat_count++;
}

static void list_rows(struct run *r, size_t op)
{
    struct op_rows *ops = &r->ops[op];
    const struct krn_variant *table;
    size_t count;
    bool named = false, others = false;

    table = krn_variants(&count);
    for (size_t i = 0; i < count; i++) {
        if (!table[i].fused && krn_usable(&table[i], r->m, op)) {
            named |= r->o->only && krn_row_named(&table[i], r->o->only);
            others |= !table[i].reference;
        }
    }
    ops->first = r->candidate_count;
    for (size_t i = 0; i < count && ops->count < ROWS_MAX; i++) {
        const struct krn_variant *v = &table[i];

        if (!krn_usable(v, r->m, op) ||
            !(v->fused && r->o->only ? krn_row_named(v, r->o->only)
                                     : is_worth_it(r, v, op, named, others))) {
            continue;
        }
        r->candidates[r->candidate_count++].row.variant = v;
        ops->count++;
    }
}

static size_t bytes_of(const struct run *r, const struct krn_variant *v, size_t op)
{
    const struct mdl_op *o = &r->m->ops[op];

    if (v->packed_bytes) {
        return v->packed_bytes(r->m, o);
    }
    return v->prepare && o->in[1] != MDL_NONE
               ? r->m->storages[r->m->tensors[o->in[1]].storage].bytes
               : 0;
}

/* Cycles, at 16 multiply-accumulates or one element moved in each: only to share the time out. */
static double estimate(const struct mdl_model *m, size_t op)
{
    return 1 + m->ops[op].macs / 16 + (double)mdl_elements(&m->tensors[m->ops[op].out[0]]);
}

static int list_all(struct run *r)
{
    size_t n = r->m->op_count;
    double all = 0;

    r->ops = calloc(n + 1, sizeof(*r->ops));
    r->candidates = calloc(n * ROWS_MAX + 1, sizeof(*r->candidates));
    r->stats = calloc(n * ROWS_MAX + 1, sizeof(*r->stats));
    if (!r->ops || !r->candidates || !r->stats) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        while (!same_op(r->m, r->ops[i].same, i)) {
            r->ops[i].same++;
        }
        all += estimate(r->m, i);
    }
    for (size_t i = 0; i < n; i++) {
        list_rows(r, i);
        r->ops[i].share = estimate(r->m, i) / all;
        for (size_t c = 0; c < r->ops[i].count; c++) {
            struct candidate *at = &r->candidates[r->ops[i].first + c];

            at->bytes = bytes_of(r, at->row.variant, i);
            at->stat = stat_of(r, i, at->row.variant);
        }
    }
    return 0;
}

/* ---- samples ---- */

static double median(const struct stat *s)
{
    double sorted[FRAMES];

    for (size_t i = 0; i < s->count; i++) {
        size_t at = i;

        for (; at > 0 && sorted[at - 1] > s->samples[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = s->samples[i];
    }
    return s->count ? (sorted[(s->count - 1) / 2] + sorted[s->count / 2]) / 2 : 0;
}

static double least(const struct stat *s)
{
    double x = s->samples[0];

    for (size_t i = 1; i < s->count; i++) {
        x = base_min(x, s->samples[i]);
    }
    return x;
}

/* The fastest row of op @op that runs it alone, by its median; NULL: none has a sample. */
static struct candidate *fastest(const struct run *r, size_t op)
{
    struct candidate *best = NULL;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        struct candidate *c = &r->candidates[r->ops[op].first + i];

        if (!c->unable && !c->row.variant->fused && r->stats[c->stat].count &&
            (!best || median(&r->stats[c->stat]) < median(&r->stats[best->stat]))) {
            best = c;
        }
    }
    return best;
}

static void judge(struct run *r, size_t op, struct candidate *c)
{
    const struct candidate *best = fastest(r, op), *next;
    struct stat *s = &r->stats[c->stat];
    double rival, rival_least;

    if (!best || s->count < FEW || best == c) {
        return;
    }
    rival = median(&r->stats[best->stat]);
    rival_least = least(&r->stats[best->stat]);
    if (c->row.variant->fused) {
        next = fastest(r, op + 1);
        if (!next) {
            return;
        }
        rival += median(&r->stats[next->stat]);
        rival_least += least(&r->stats[next->stat]);
    }
    s->dropped |= least(s) > HOPELESS * rival_least ||
                  (s->count >= SOME && median(s) > BEHIND * rival && least(s) > rival_least);
}

static bool is_done(const struct run *r, const struct candidate *c)
{
    const struct stat *s = &r->stats[c->stat];

    return c->unable || s->dropped || s->count >= r->frames;
}

/* ---- running ---- */

static bool ready(struct run *r, size_t op, struct candidate *c)
{
    const struct krn_variant *v = c->row.variant;
    size_t scratch;
    int e = krn_row_ready(&c->row, r->m, op, 1);

    e = e < 0 ? e : krn_row_consts(v, r->m, op, r->copies, &r->copied);
    if (e < 0) {
        c->unable = true;
        r->error = e == -EOPNOTSUPP ? r->error : e;
        return false;
    }
    c->warm = false;
    c->bytes = krn_row_bytes(&c->row);
    scratch = krn_row_scratch_bytes(v, r->m, op, 1);
    if (scratch > r->scratch_bytes) {
        free(r->scratch);
        r->scratch = aligned_alloc(64, base_align_up(scratch, 64));
        r->scratch_bytes = r->scratch ? scratch : 0;
        r->error = r->scratch ? r->error : -ENOMEM;
    }
    return r->error == 0;
}

static bool give_up(struct run *r)
{
    if (r->o->stop && atomic_load_explicit(r->o->stop, memory_order_relaxed)) {
        r->error = -ECANCELED;
    }
    return r->error < 0;
}

/* The row that op @op takes in this pass: the least sampled of those that are not done, else the
 * fastest that is ready. NULL: none. */
static struct candidate *next_row(const struct run *r, size_t op, size_t last)
{
    struct candidate *pick = NULL, *spare = NULL;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        struct candidate *c = &r->candidates[r->ops[op].first + i];

        if (!c->row.ready || (c->row.variant->fused && op == last)) {
            continue;
        }
        if (!is_done(r, c) && (!pick || r->stats[c->stat].count < r->stats[pick->stat].count)) {
            pick = c;
        }
        if (!c->row.variant->fused &&
            (!spare || median(&r->stats[c->stat]) < median(&r->stats[spare->stat]))) {
            spare = c;
        }
    }
    return pick ? pick : spare;
}

static void add_sample(const struct run *r, struct stat *s, uint64_t ns)
{
    if (s->count < r->frames) {
        s->samples[s->count++] = (double)ns;
    }
}

static void run_row(struct run *r, size_t op, struct candidate *c)
{
    struct op_rows *shapes = &r->ops[r->ops[op].same];
    struct krn_exec exec = {.width = 1, .scratch = r->scratch};
    struct krn_row_laps laps;

    krn_row_run(&c->row, &(struct krn_row_run){.m = r->m,
                                               .op = op,
                                               .copies = r->copies,
                                               .mem = &r->mem,
                                               .exec = &exec,
                                               .laps = &laps});
    if (c->warm && c->row.variant->planes_in) {
        add_sample(r, &shapes->takes, laps.in_ns);
    }
    if (c->warm && c->row.variant->planes_out) {
        add_sample(r, &shapes->gives, laps.out_ns);
    }
    if (c->warm && r->stats[c->stat].count < r->frames) {
        add_sample(r, &r->stats[c->stat], laps.run_ns);
        judge(r, op, c);
    }
    c->warm = true;
}

static void pass(struct run *r, size_t first, size_t last)
{
    memcpy(r->arena, r->saved, r->m->arena_bytes);
    for (size_t op = first; op <= last; op++) {
        struct candidate *c = next_row(r, op, last);

        if (!c || mdl_elements(&r->m->tensors[r->m->ops[op].out[0]]) == 0) {
            continue;
        }
        run_row(r, op, c);
        op += c->row.variant->fused;
    }
}

static bool all_done(const struct run *r, size_t first, size_t last, size_t least_samples)
{
    for (size_t op = first; op <= last; op++) {
        for (size_t i = 0; i < r->ops[op].count; i++) {
            const struct candidate *c = &r->candidates[r->ops[op].first + i];

            if (c->row.ready && !is_done(r, c) && r->stats[c->stat].count < least_samples &&
                !(c->row.variant->fused && op == last)) {
                return false;
            }
        }
    }
    return true;
}

static void passes(struct run *r, size_t first, size_t last, size_t frames, uint64_t end_ns)
{
    memcpy(r->saved, r->arena, r->m->arena_bytes);
    while (!give_up(r) && !all_done(r, first, last, frames) &&
           (base_now_ns() < end_ns || !all_done(r, first, last, 1))) {
        pass(r, first, last);
    }
}

static size_t op_bytes(const struct run *r, size_t op)
{
    size_t bytes = 0;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        const struct candidate *c = &r->candidates[r->ops[op].first + i];

        bytes += is_done(r, c) ? 0 : c->bytes;
    }
    return bytes;
}

static void release(struct run *r, size_t first, size_t last)
{
    for (size_t op = first; op <= last; op++) {
        for (size_t i = 0; i < r->ops[op].count; i++) {
            krn_row_release(&r->candidates[r->ops[op].first + i].row);
        }
    }
}

/* Weights that fill a window by themselves: row by row. */
static void measure_huge(struct run *r, size_t op, uint64_t end_ns)
{
    for (size_t i = 0; !give_up(r) && i < r->ops[op].count; i++) {
        struct candidate *c = &r->candidates[r->ops[op].first + i];

        if (!is_done(r, c) && !c->row.variant->fused && ready(r, op, c)) {
            passes(r, op, op, HUGE_FRAMES, end_ns);
            krn_row_release(&c->row);
        }
    }
}

/* Every row of the window that is still worth it, and one to go on with where none is. */
static void ready_window(struct run *r, size_t first, size_t last)
{
    for (size_t op = first; !give_up(r) && op <= last; op++) {
        bool any = false;

        for (size_t i = 0; !give_up(r) && i < r->ops[op].count; i++) {
            struct candidate *c = &r->candidates[r->ops[op].first + i];

            if (!is_done(r, c)) {
                any |= ready(r, op, c) && !c->row.variant->fused;
            }
        }
        for (struct candidate *best; !any && !give_up(r) && (best = fastest(r, op));) {
            any = ready(r, op, best);
        }
        if (!any && r->error == 0) {
            r->error = -EOPNOTSUPP;
        }
    }
}

static void measure_windows(struct run *r)
{
    double before = 0;

    for (size_t first = 0, last; first < r->m->op_count && !give_up(r); first = last + 1) {
        size_t bytes = op_bytes(r, first);

        before += r->ops[first].share;
        for (last = first; last + 1 < r->m->op_count; last++) {
            bytes += op_bytes(r, last + 1);
            if (bytes > WINDOW_BYTES) {
                break;
            }
            before += r->ops[last + 1].share;
        }
        uint64_t end = r->start_ns + (uint64_t)((double)r->o->budget_ns * before);

        if (first == last && op_bytes(r, first) > WINDOW_BYTES) {
            measure_huge(r, first, end);
            continue;
        }
        ready_window(r, first, last);
        passes(r, first, last, r->frames, end);
        release(r, first, last);
    }
}

/* ---- a frame ---- */

static uint8_t *buffer(struct run *r, const struct mdl_io *io)
{
    return r->buffers[r->buffer_count++] =
               aligned_alloc(64, base_align_up(base_max(io->bytes, (size_t)1), 64));
}

/* Values of a normalised image; indices and truths are zero. */
static void fill_input(const struct mdl_tensor *t, uint8_t *at, size_t bytes)
{
    uint32_t state = 12345;

    memset(at, 0, bytes);
    for (size_t i = 0; t->dtype == MDL_F32 && i < bytes / sizeof(float); i++) {
        float x;

        state = state * 1664525u + 1013904223u;
        x = (float)(state >> 8) / 8388608.0f - 1.0f;
        memcpy(at + i * sizeof(x), &x, sizeof(x));
    }
    for (size_t i = 0; t->dtype == MDL_U8 && i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        at[i] = (uint8_t)(state >> 24);
    }
}

static int frame_init(struct run *r)
{
    const struct mdl_model *m = r->m;
    size_t arena = base_align_up(base_max(m->arena_bytes, (size_t)64), 64);

    r->arena = aligned_alloc(64, arena);
    r->saved = aligned_alloc(64, arena);
    r->copies = calloc(m->storage_count + 1, sizeof(*r->copies));
    r->buffers = calloc(2 * (m->input_count + m->output_count) + 1, sizeof(*r->buffers));
    if (!r->arena || !r->saved || !r->copies || !r->buffers) {
        return -ENOMEM;
    }
    memset(r->arena, 0, arena);
    for (size_t i = 0; i < m->input_count; i++) {
        uint8_t *at = buffer(r, &m->inputs[i]);

        if (!at) {
            return -ENOMEM;
        }
        fill_input(&m->tensors[m->inputs[i].tensor], at, m->inputs[i].bytes);
    }
    for (size_t i = 0; i < m->output_count; i++) {
        if (!buffer(r, &m->outputs[i])) {
            return -ENOMEM;
        }
    }
    r->mem = (struct krn_mem){.arena = r->arena,
                              .inputs = (const void *const *)r->buffers,
                              .outputs = (void *const *)&r->buffers[m->input_count]};
    return 0;
}

static void run_free(struct run *r)
{
    for (size_t i = 0; r->candidates && i < r->candidate_count; i++) {
        krn_row_release(&r->candidates[i].row);
    }
    for (size_t i = 0; r->copies && i < r->m->storage_count; i++) {
        free(r->copies[i]);
    }
    for (size_t i = 0; r->buffers && i < r->buffer_count; i++) {
        free(r->buffers[i]);
    }
    free(r->copies);
    free(r->buffers);
    free(r->arena);
    free(r->saved);
    free(r->scratch);
    free(r->ops);
    free(r->candidates);
    free(r->stats);
}

static void *measuring_main(void *arg)
{
    struct run *r = arg;

    if (r->o->cpu >= 0) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t)r->o->cpu, &set);
        (void)sched_setaffinity(0, sizeof(set), &set); /* else on whatever core there is */
    }
    r->error = frame_init(r);
    if (r->error == 0) {
        measure_windows(r);
    }
    return NULL;
}

static int results(const struct run *r, struct krn_times *ret)
{
    struct krn_times t = {.op_count = r->m->op_count};

    t.times = calloc(r->candidate_count + 1, sizeof(*t.times));
    t.forms = calloc(t.op_count + 1, sizeof(*t.forms));
    if (!t.times || !t.forms) {
        krn_times_deinit(&t);
        return -ENOMEM;
    }
    for (size_t op = 0; op < r->m->op_count; op++) {
        const struct op_rows *shapes = &r->ops[r->ops[op].same];
        size_t alone = 0;

        t.forms[op] = (struct krn_form_time){median(&shapes->takes), median(&shapes->gives),
                                             krn_form_may_stay(r->m, op)};
        for (size_t i = 0; i < r->ops[op].count; i++) {
            const struct candidate *c = &r->candidates[r->ops[op].first + i];
            const struct stat *s = &r->stats[c->stat];
            /* an op that writes nothing takes no time */
            bool empty = mdl_elements(&r->m->tensors[r->m->ops[op].out[0]]) == 0;

            if (!c->unable && (s->count || (empty && !c->row.variant->fused))) {
                t.times[t.count++] =
                    (struct krn_time){op, c->row.variant, median(s), s->count, c->bytes};
                alone += !c->row.variant->fused;
            }
        }
        if (alone == 0) {
            krn_times_deinit(&t);
            return -EOPNOTSUPP;
        }
    }
    t.took_ns = base_now_ns() - r->start_ns;
    *ret = t;
    return 0;
}

int krn_measure(const struct mdl_model *m, const struct krn_measure_options *o,
                struct krn_times *ret)
{
    struct run r = {.m = m, .o = o, .start_ns = base_now_ns()};
    pthread_t thread;

    r.frames = o->frames ? base_min(o->frames, (size_t)FRAMES) : FRAMES;
    r.error = list_all(&r);
    if (r.error == 0) {
        int e = pthread_create(&thread, NULL, measuring_main, &r);

        if (e == 0) {
            pthread_join(thread, NULL);
        } else {
            r.error = -e;
        }
    }
    if (r.error == 0) {
        r.error = results(&r, ret);
    }
    run_free(&r);
    return r.error;
}

void krn_times_deinit(struct krn_times *t)
{
    free(t->times);
    free(t->forms);
    *t = KRN_TIMES_NULL;
}
