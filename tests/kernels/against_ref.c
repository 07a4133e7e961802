/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/against_ref.h"

#include <pthreadpool.h>

#include "base/base.h"
#include "kernels/lib/blas.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/kept_pool.h"
#include "tests/kernels/primitive_run.h"
#include "tests/kernels/strassen_bound.h"
#include "tests/kernels/wino_bound.h"

#define WIDTH_MAX 3u
#define UNEVEN 2u  /* members of a team of unequal cores */
#define PIECES 16u /* that a thread runs one after the other */
#define PRIMITIVES_MAX 256u
#define WINO_MAX 6u
#define STRASSEN (WINO_MAX + 1) /* and two more: panels of 8, 16 and 32 */
#define SUMS (STRASSEN + 3)

static size_t exercised[PRIMITIVES_MAX], cut[PRIMITIVES_MAX];
bool check_partial;

/*
 * Shares are checked for every width by doing the parts one after the other. A real team adds only
 * that they are done at once: it runs a primitive's first, second, fourth, eighth ... case and
 * every 64th. Its members spin while they wait, 50 ms and more where others use the cores, which
 * was most of a test's time: so it lives for one case.
 */
#define TEAM_EVERY 64u

/* Return: the width of the real team for a primitive's case of this number, from 0 on; 0: none */
static size_t team_width(size_t number)
{
    size_t n = number + 1;

    if (getenv("PIPED_TEST_LONG")) {
        return 2 + number % (WIDTH_MAX - 1);
    }
    if ((n & number) == 0) { /* a power of two: the widths in turns */
        return 2 + (size_t)__builtin_ctzll(n) % (WIDTH_MAX - 1);
    }
    return n % TEAM_EVERY == 0 ? 2 + n / TEAM_EVERY % (WIDTH_MAX - 1) : 0;
}

/* A run that PIPED_CPU was to narrow and that is not narrowed says nothing. */
__attribute__((constructor)) static void refuse_what_is_not_narrowed(void)
{
    char text[KRN_CPU_TEXT_MAX];
    struct krn_blas_status s;

    if (krn_cpu_check(text) < 0) {
        fprintf(stderr, "%s\n", text);
        exit(2);
    }
    if (krn_cpu_narrowed()) {
        krn_blas_check(&s);
        if (s.above && s.wanted[0]) {
            fprintf(stderr,
                    "OpenBLAS uses more than PIPED_CPU allows; OPENBLAS_CORETYPE=%s helps\n",
                    s.wanted);
            exit(2);
        }
    }
}

bool check_wants(const char *name)
{
    const char *parts = getenv("PIPED_TEST_PRIMITIVES");

    if (!parts || !*parts) {
        return true;
    }
    for (size_t n; *parts; parts += n + (parts[n] == ',')) {
        char part[64], whole[128];

        n = strcspn(parts, ",");
        snprintf(part, sizeof(part), "%.*s", (int)n, parts);
        snprintf(whole, sizeof(whole), "%s$", name);
        if (n && strstr(whole, part)) {
            return true;
        }
    }
    return false;
}

/* Return: whether a primitive is wanted, and can be run here, whose name holds @part */
static bool wants_any(const char *part)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (!v[i].fused && strstr(v[i].name, part) && check_wants(v[i].name) &&
            !(v[i].needs & ~krn_cpu_features())) {
            return true;
        }
    }
    return false;
}

/* S of every output and the terms of the sum, as a primitive computes it */
struct magnitude {
    struct one_op_buffer of[MDL_OP_OUT_MAX];
    double terms;
};

static void count_part(void *arg)
{
    ++*(size_t *)arg;
}

/* Counts the cases of a primitive in which each of the pieces was a part. */
static bool run_counted(const struct krn_primitive *v, struct one_op *o, struct one_op_buffer *out,
                        const struct primitive_how *how)
{
    size_t count, parts = 0;
    bool intact;

    krn_parallel_between((struct krn_between){how->pool ? NULL : count_part, &parts});
    intact = primitive_run(v, o, out, how);
    krn_parallel_between(KRN_BETWEEN_NULL);
    cut[v - krn_primitives(&count)] += parts >= how->width && how->width > 1;
    return intact;
}

static bool check_primitive(struct one_op *o, const struct check *c, const struct krn_primitive *v,
                            size_t team, const struct one_op_buffer *want,
                            const struct magnitude *magnitude)
{
    struct one_op_buffer alone[MDL_OP_OUT_MAX] = {{0}};
    static size_t slower; /* another ratio each time */
    bool ok = true;

    /* behind the last width, where there is a real team: two members of unequal speed; pieces */
    for (size_t width = 1; width <= WIDTH_MAX + 2 * (team > 0) && ok; width++) {
        bool apart = width == WIDTH_MAX + 1;
        double second = (double)(1 + slower++ % 8);
        struct krn_speed speeds[KRN_UNEVEN_EACH][UNEVEN];
        struct krn_uneven uneven = {.members = UNEVEN,
                                    .speeds = speeds[0],
                                    .tried = (uint8_t)(slower / 8 % KRN_UNEVEN_SPEEDS)};
        struct one_op_buffer got[MDL_OP_OUT_MAX];
        struct compare k = {
            .c = c, .primitive = v, .o = o, .width = width, .terms = magnitude->terms};
        struct primitive_how how = {.width = apart               ? krn_uneven_width(&uneven)
                                             : width > WIDTH_MAX ? PIECES
                                                                 : width,
                                    .pool = apart           ? kept_pool(UNEVEN)
                                            : team == width ? kept_pool(width)
                                                            : NULL,
                                    .uneven = apart ? &uneven : NULL,
                                    .in_place = c->in_place,
                                    .residual_in_place = c->residual_in_place};
        bool intact;

        for (size_t i = 0; i < base_array_count(speeds); i++) {
            speeds[i][0] = (struct krn_speed){.hint = 1};
            speeds[i][1] = (struct krn_speed){.hint = second};
        }
        primitive_out_new(o, got);
        intact = run_counted(v, o, got, &how);
        kept_pool_rest(how.pool, apart ? UNEVEN : width);
        if (!intact) {
            fprintf(stderr, "%s, %s, width %zu: wrote outside its buffers\n", v->name, o->name,
                    width);
            ok = false;
        }
        for (size_t i = 0; i < MDL_OP_OUT_MAX && ok; i++) {
            if (o->op.out[i] != MDL_NONE) {
                ok = compare_out(&k, i, &got[i], &want[i], &magnitude->of[i]);
            }
        }
        if (ok && width > 1 && strassen_lanes(v->name) &&
            memcmp(got[0].data, alone[0].data, got[0].bytes) != 0) {
            fprintf(stderr, "%s, %s, width %zu: other bits than alone\n", v->name, o->name, width);
            ok = false;
        }
        if (width == 1) {
            memcpy(alone, got, sizeof(alone));
        } else {
            primitive_out_free(got);
        }
    }
    primitive_out_free(alone);
    return ok;
}

static bool forced(const struct krn_primitive *v, const struct one_op *o, const struct check *c)
{
    return c->force && c->force(v) && v->packed_bytes && v->packed_bytes(&o->m, &o->op) > 0;
}

/* Makes those of a primitive of this name unless they are there. Return: which of @sums they
 * are. */
static size_t sums_of(const struct one_op *o, const char *name, struct magnitude *sums)
{
    size_t wino = wino_size(name), lanes = strassen_lanes(name);
    size_t which = lanes ? STRASSEN + lanes / 16 : wino;

    if (which && !sums[which].of[0].map) {
        primitive_out_new(o, sums[which].of);
        sums[which].terms = lanes ? strassen_magnitude(o, lanes, &sums[which].of[0])
                                  : wino_magnitude(o, wino, &sums[which].of[0]);
    }
    return which;
}

static bool check_once(struct one_op *o, const struct check *c)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);
    const struct krn_primitive *ref = primitive_reference(o->op.kind);
    struct one_op_buffer want[MDL_OP_OUT_MAX];
    struct magnitude sums[SUMS] = {{.terms = c->terms}};
    bool ok = true, expected = c->expect == NULL || !wants_any(c->expect);

    if (!ref || !ref->supports(&o->m, &o->op) || count > PRIMITIVES_MAX) {
        fprintf(stderr, "%s: no reference takes it\n", o->name);
        return false;
    }
    primitive_out_new(o, want);
    primitive_run(ref, o, want, &(struct primitive_how){.width = 1});
    if (c->bound == CHECK_SUM) {
        primitive_out_new(o, sums[0].of);
        primitive_magnitude(ref, o, sums[0].of);
    }
    for (size_t i = 0; i < count && ok; i++) {
        if (v[i].kind != o->op.kind || v[i].reference || v[i].fused || !check_wants(v[i].name) ||
            (c->without && strstr(v[i].name, c->without)) ||
            (v[i].needs & ~krn_cpu_features()) != 0 ||
            (!v[i].supports(&o->m, &o->op) && !forced(&v[i], o, c))) {
            continue;
        }
        size_t which = sums_of(o, v[i].name, sums);

        expected |= c->expect && strstr(v[i].name, c->expect) != NULL;
        ok = check_primitive(o, c, &v[i], team_width(exercised[i]++), want, &sums[which]);
    }
    if (ok && !expected) {
        fprintf(stderr, "%s: no primitive of '%s' takes it\n", o->name, c->expect);
        ok = false;
    }
    primitive_out_free(want);
    for (size_t i = 0; i < SUMS; i++) {
        primitive_out_free(sums[i].of);
    }
    return ok;
}

/* Return: whether a primitive other than the reference takes the case */
static bool is_taken(const struct one_op *o)
{
    const struct krn_primitive *ref = primitive_reference(o->op.kind);
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);
    bool any = false;

    for (size_t i = 0; i < count && ref->supports(&o->m, &o->op); i++) {
        any |= v[i].kind == o->op.kind && !v[i].reference && !v[i].fused &&
               check_wants(v[i].name) && (v[i].needs & ~krn_cpu_features()) == 0 &&
               v[i].supports(&o->m, &o->op);
    }
    return any;
}

/* The case again with operands that repeat along a dim, as Expand leaves them: the first, the
 * second, both, or the residual. Few primitives take it, but what they take must be right. The
 * bounds of those left out are for values that differ: of equal ones they make more of a rounding.
 */
static bool check_repeated(struct one_op *o, const struct check *c)
{
    static size_t number;
    const size_t operands[] = {o->op.in[0], o->op.in[1],
                               c->residual_in_place ? MDL_NONE : o->op.residual_in};
    struct mdl_tensor tensors[ONE_OP_TENSORS];
    struct check k = *c;
    size_t which = number % 4 + 1, at = number / 4, length = strlen(o->name);
    bool changed = false, ok = true;

    number++;
    memcpy(tensors, o->tensors, sizeof(tensors));
    for (size_t i = 0; i < base_array_count(operands); i++) {
        struct mdl_tensor *t = operands[i] == MDL_NONE ? NULL : &o->tensors[operands[i]];

        if (t && t->rank > 0 && which >> i & 1) {
            t->stride[at % t->rank] = 0;
            changed |= t->dim[at % t->rank] > 1;
        }
    }
    k.expect = NULL;
    k.force = NULL;
    k.in_place = false;
    changed &= o->op.kind != MDL_OP_NORM && o->op.kind != MDL_OP_ATTENTION &&
               o->op.kind != MDL_OP_RECURRENT;
    if (changed && is_taken(o)) {
        snprintf(o->name + length, sizeof(o->name) - length, ", operands %zu repeated", which);
        ok = check_once(o, &k);
        o->name[length] = '\0';
    }
    memcpy(o->tensors, tensors, sizeof(tensors));
    return ok;
}

bool check_run(struct one_op *o, const struct check *c)
{
    return check_once(o, c) && check_repeated(o, c);
}

int check_unexercised(bool (*which)(const struct krn_primitive *v))
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);
    int missing = 0;

    for (size_t i = 0; i < count; i++) {
        if (exercised[i] > 0 && cut[i] == 0 && !v[i].whole && which(&v[i])) {
            fprintf(stderr, "%s: runs in one piece, and is not whole\n", v[i].name);
            missing++;
        }
        if (v[i].reference || v[i].fused || exercised[i] || !which(&v[i]) ||
            !check_wants(v[i].name)) {
            continue;
        }
        /* Who names primitives means all of them, but for a run as a CPU of some class. */
        if ((getenv("PIPED_TEST_PRIMITIVES") && !getenv("PIPED_CPU")) ||
            !(v[i].needs & ~krn_cpu_features())) {
            fprintf(stderr, "%s: no case exercised it\n", v[i].name);
            missing++;
        } else {
            fprintf(stderr, "%s: not run, this CPU lacks what it needs\n", v[i].name);
        }
    }
    return missing;
}
