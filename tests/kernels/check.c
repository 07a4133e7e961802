/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/check.h"

#include <math.h>
#include <pthreadpool.h>

#include "tests/kernels/strassen_bound.h"
#include "tests/kernels/wino_bound.h"

#define WIDTH_MAX 3u
#define VARIANTS_MAX 256u
#define WINO_MAX 6u
#define STRASSEN (WINO_MAX + 1) /* and two more: panels of 8, 16 and 32 */
#define SUMS (STRASSEN + 3)

static const double unit = 0x1p-24;
static size_t exercised[VARIANTS_MAX];
bool check_partial;

/* Shares are checked for every width by doing the parts one after the other; a real team, whose
 * members spin while they wait, runs every POOL_EVERY-th case of a variant. */
#define POOL_EVERY 16u
static pthreadpool_t pools[WIDTH_MAX + 1];

/* every case draws from one stream, seeded as tests/harness.h says */
static uint64_t next_random(void)
{
    static uint64_t state;
    static bool seeded;
    uint64_t z;

    if (!seeded) {
        const char *seed = getenv("PIPED_TEST_SEED");

        state = seed ? strtoull(seed, NULL, 0) : 20260601;
        seeded = true;
    }
    z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static float random_float(float scale)
{
    return scale * (float)((double)(next_random() >> 11) * (2.0 / 9007199254740992.0) - 1.0);
}

bool check_wants(const char *name)
{
    const char *parts = getenv("PIPED_TEST_ROWS");

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

/* Return: whether a row is wanted whose name holds @part */
static bool wants_any(const char *part)
{
    size_t count;
    const struct krn_variant *v = krn_variants(&count);

    for (size_t i = 0; i < count; i++) {
        if (!v[i].fused && strstr(v[i].name, part) && check_wants(v[i].name)) {
            return true;
        }
    }
    return false;
}

struct fill {
    uint8_t *data;
    float scale;
};

static void fill_one(void *arg, size_t at, size_t index)
{
    const struct fill *f = arg;
    float v = random_float(f->scale);

    memcpy(f->data + at, &v, sizeof(v));
}

void check_fill(struct one_op *o, size_t tensor, float scale)
{
    struct fill f = {o->buffers[tensor].data, scale};

    one_op_each(&o->tensors[tensor], fill_one, &f);
}

void check_epilogue(struct one_op *o, size_t channels, enum mdl_act act, enum mdl_residual residual)
{
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];

    o->op.channels = channels;
    if (next_random() % 4 != 0) {
        o->op.shift = o->shift = malloc(channels * sizeof(float));
        for (size_t i = 0; i < channels; i++) {
            o->shift[i] = random_float(2.0f);
        }
    }
    if (next_random() % 2 != 0) {
        o->op.scale = o->scale = malloc(channels * sizeof(float));
        for (size_t i = 0; i < channels; i++) {
            o->scale[i] = random_float(1.5f);
        }
    }
    o->op.act = act;
    o->op.act_a = act == MDL_ACT_CLIP ? -0.25f : act == MDL_ACT_ELU ? 1.3f : 0.2f;
    o->op.act_b = act == MDL_ACT_CLIP ? 1.5f : 0.5f;
    o->op.residual = residual;
    if (residual != MDL_RESIDUAL_NONE) {
        ptrdiff_t stride[MDL_RANK_MAX];
        bool wider = y->rank == 4 && next_random() % 2;

        memcpy(stride, y->stride, sizeof(stride));
        if (wider) { /* a residual that is part of a wider tensor */
            stride[3] = (ptrdiff_t)y->dim[1] + 3;
            stride[2] = stride[3] * (ptrdiff_t)y->dim[3];
            stride[0] = stride[2] * (ptrdiff_t)y->dim[2];
        }
        o->op.residual_in =
            one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, y->rank, y->dim, wider ? stride : y->stride);
        check_fill(o, o->op.residual_in, 1.0f);
    }
}

double check_act_lipschitz(const struct mdl_op *op)
{
    switch (op->act) {
    case MDL_ACT_LEAKY_RELU:
    case MDL_ACT_HARD_SIGMOID:
    case MDL_ACT_ELU:
        return fmax(1.0, fabs((double)op->act_a));
    case MDL_ACT_HARD_SWISH:
        return 1.5;
    case MDL_ACT_SILU:
        return 1.1;
    default:
        return 1.0;
    }
}

static const struct krn_variant *reference_of(enum mdl_op_kind kind)
{
    size_t count;
    const struct krn_variant *v = krn_variants(&count);

    for (size_t i = 0; i < count; i++) {
        if (v[i].kind == kind && v[i].reference) {
            return &v[i];
        }
    }
    return NULL;
}

/* A tensor as the model lays it out, and as planes: row-major, as one_op_each() counts. */
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

/* Runs a row that takes or leaves planes. */
static void run_planes(const struct krn_variant *v, const struct one_op *o, struct krn_call *call,
                       bool *ret_intact)
{
    struct one_op_buffer in = {0}, out = {0};
    uint8_t *value = call->out[0];

    if (v->planes_in) {
        in = planes_of(o, o->op.in[0], call->in[0]);
        call->in[0] = in.data;
    }
    if (v->planes_out) {
        out = planes_of(o, o->op.out[0], value);
        call->out[0] = out.data;
    }
    v->run(call);
    *ret_intact =
        (!in.map || one_op_buffer_intact(&in)) && (!out.map || one_op_buffer_intact(&out));
    if (v->planes_out) {
        one_op_each(&o->tensors[o->op.out[0]], move_one, &(struct planes){value, out.data, true});
    }
    one_op_buffer_free(&in);
    one_op_buffer_free(&out);
}

static void run_variant(const struct krn_variant *v, struct one_op *o, struct one_op_buffer *out,
                        size_t width, pthreadpool_t pool, const struct check *c, bool *ret_intact)
{
    size_t packed_bytes = v->packed_bytes ? v->packed_bytes(&o->m, &o->op) : 0;
    size_t scratch_bytes = v->scratch_bytes ? v->scratch_bytes(&o->m, &o->op, width) : 0;
    struct one_op_buffer packed = one_op_buffer_new(packed_bytes, 64);
    struct one_op_buffer scratch = one_op_buffer_new(scratch_bytes, 64);
    struct krn_call call = one_op_call(o, out, pool, width, packed.data, scratch.data);
    struct krn_prepared prepared = {0};

    if (!packed_bytes) {
        call.packed = NULL;
    } else if (v->pack) {
        v->pack(&o->m, &o->op, packed.data);
    }
    if (v->prepare) {
        int r = v->prepare(&o->m, &o->op, packed.data, 1, &prepared);

        if (r == 0 && width > 1) { /* where that fails, less of the team has to do */
            (void)v->prepare(&o->m, &o->op, packed.data, width, &prepared);
        }
        if (r < 0) {
            fprintf(stderr, "%s, %s, width %zu: not prepared\n", v->name, o->name, width);
            abort();
        }
        call.prepared = prepared.object;
    }
    if (c && c->residual_in_place) {
        memcpy(out[0].data, call.residual, out[0].bytes);
        call.residual = out[0].data;
    }
    if (c && c->in_place) {
        memcpy(out[0].data, o->buffers[o->op.in[0]].data, out[0].bytes);
        call.in[0] = out[0].data;
    }
    run_planes(v, o, &call, ret_intact);
    *ret_intact &= one_op_buffer_intact(&packed) && one_op_buffer_intact(&scratch);
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        *ret_intact &= o->op.out[i] == MDL_NONE || one_op_buffer_intact(&out[i]);
    }
    if (v->release) {
        v->release(&prepared);
    }
    one_op_buffer_free(&packed);
    one_op_buffer_free(&scratch);
}

static void out_new(const struct one_op *o, struct one_op_buffer *out)
{
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        const struct mdl_tensor *t;

        out[i] = (struct one_op_buffer){0};
        if (o->op.out[i] != MDL_NONE) {
            t = &o->tensors[o->op.out[i]];
            out[i] = one_op_buffer_new(one_op_span(t), mdl_dtype_bytes(t->dtype));
        }
    }
}

static void out_free(struct one_op_buffer *out)
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

/* S of every output element: the reference on absolute values, without the element function */
static void run_magnitude(struct one_op *o, const struct krn_variant *ref,
                          struct one_op_buffer *out)
{
    struct mdl_op op = o->op;
    struct one_op_buffer saved[ONE_OP_TENSORS];
    float *scale = NULL, *shift = NULL;
    bool intact;

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
    run_variant(ref, o, out, 1, NULL, NULL, &intact);
    o->op = op;
    for (size_t i = 0; i < o->m.tensor_count; i++) {
        one_op_buffer_free(&o->buffers[i]);
        o->buffers[i] = saved[i];
    }
    free(scale);
    free(shift);
}

struct compare {
    const struct check *c;
    const struct krn_variant *variant;
    const char *case_name;
    const uint8_t *got, *want, *magnitude;
    uint8_t *gaps; /* elements are overwritten with the pattern, so that gaps alone remain */
    enum mdl_dtype dtype;
    double terms, lipschitz;
    size_t width;
    bool failed;
};

static void compare_one(void *arg, size_t at, size_t index)
{
    struct compare *k = arg;
    size_t size = mdl_dtype_bytes(k->dtype);
    float got, want, magnitude = 0;
    double bound = 0;

    if (k->c->bound == CHECK_EXACT || k->dtype != MDL_F32) {
        if (memcmp(k->got + at, k->want + at, size) != 0 && !k->failed) {
            k->failed = true;
            fprintf(stderr, "%s, %s, width %zu: element %zu differs\n", k->variant->name,
                    k->case_name, k->width, index);
        }
        memset(k->gaps + at, ONE_OP_PATTERN, size);
        return;
    }
    memcpy(&got, k->got + at, sizeof(got));
    memcpy(&want, k->want + at, sizeof(want));
    if (k->magnitude) {
        memcpy(&magnitude, k->magnitude + at, sizeof(magnitude));
        bound = 2 * (k->terms + 4) * unit * (double)magnitude * k->lipschitz;
    }
    bound += 2 * k->c->ulps * unit * fabs((double)want) + k->c->absolute + 1e-37;
    if (!(fabs((double)got - (double)want) <= bound) && !(isnan(got) && isnan(want)) &&
        !(got == want) && !k->failed) {
        k->failed = true;
        fprintf(stderr, "%s, %s, width %zu: element %zu is %.9g, reference %.9g, bound %.3g\n",
                k->variant->name, k->case_name, k->width, index, (double)got, (double)want, bound);
    }
    memset(k->gaps + at, ONE_OP_PATTERN, size);
}

static bool compare_out(struct compare *k, const struct mdl_tensor *t, struct one_op_buffer *got)
{
    k->dtype = t->dtype;
    k->got = got->data;
    k->gaps = malloc(got->bytes + 1);
    memcpy(k->gaps, got->data, got->bytes);
    one_op_each(t, compare_one, k);
    for (size_t i = 0; i < got->bytes && !k->failed && !k->c->in_place && !k->c->residual_in_place;
         i++) {
        if (k->gaps[i] != ONE_OP_PATTERN) {
            k->failed = true;
            fprintf(stderr, "%s, %s, width %zu: wrote between elements at byte %zu\n",
                    k->variant->name, k->case_name, k->width, i);
        }
    }
    free(k->gaps);
    return !k->failed;
}

/* S of every output and the terms of the sum, as a variant computes it */
struct magnitude {
    struct one_op_buffer of[MDL_OP_OUT_MAX];
    double terms;
};

/* What a variant that rounds its operands to bfloat16 adds to the terms: two roundings of 2^-8 for
 * every product, in units of the bound in compare_one(). */
static double terms_of_rounding(const struct krn_variant *v)
{
    return strstr(v->name, "_bf16__") ? 0x1p-7 / (2 * unit) : 0;
}

static bool check_variant(struct one_op *o, const struct check *c, const struct krn_variant *v,
                          bool team, const struct one_op_buffer *want,
                          const struct magnitude *magnitude)
{
    struct one_op_buffer alone[MDL_OP_OUT_MAX] = {{0}};
    bool ok = true;

    for (size_t width = 1; width <= WIDTH_MAX && ok; width++) {
        struct one_op_buffer got[MDL_OP_OUT_MAX];
        struct compare k = {.c = c,
                            .variant = v,
                            .case_name = o->name,
                            .terms = magnitude->terms + terms_of_rounding(v),
                            .lipschitz = check_act_lipschitz(&o->op),
                            .width = width};
        bool intact;

        out_new(o, got);
        run_variant(v, o, got, width, team ? pools[width] : NULL, c, &intact);
        if (!intact) {
            fprintf(stderr, "%s, %s, width %zu: wrote outside its buffers\n", v->name, o->name,
                    width);
            ok = false;
        }
        for (size_t i = 0; i < MDL_OP_OUT_MAX && ok; i++) {
            if (o->op.out[i] != MDL_NONE) {
                k.want = want[i].data;
                k.magnitude = magnitude->of[i].data;
                ok = compare_out(&k, &o->tensors[o->op.out[i]], &got[i]);
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
            out_free(got);
        }
    }
    out_free(alone);
    return ok;
}

static bool forced(const struct krn_variant *v, const struct one_op *o, const struct check *c)
{
    return c->force && c->force(v) && v->packed_bytes && v->packed_bytes(&o->m, &o->op) > 0;
}

/* Makes those of a row of this name unless they are there. Return: which of @sums they are. */
static size_t sums_of(const struct one_op *o, const char *name, struct magnitude *sums)
{
    size_t wino = wino_size(name), lanes = strassen_lanes(name);
    size_t which = lanes ? STRASSEN + lanes / 16 : wino;

    if (which && !sums[which].of[0].map) {
        out_new(o, sums[which].of);
        sums[which].terms = lanes ? strassen_magnitude(o, lanes, &sums[which].of[0])
                                  : wino_magnitude(o, wino, &sums[which].of[0]);
    }
    return which;
}

bool check_run(struct one_op *o, const struct check *c)
{
    size_t count;
    const struct krn_variant *v = krn_variants(&count);
    const struct krn_variant *ref = reference_of(o->op.kind);
    struct one_op_buffer want[MDL_OP_OUT_MAX];
    struct magnitude sums[SUMS] = {{.terms = c->terms}};
    bool ok = true, intact, expected = c->expect == NULL || !wants_any(c->expect);

    if (!ref || !ref->supports(&o->m, &o->op) || count > VARIANTS_MAX) {
        fprintf(stderr, "%s: no reference takes it\n", o->name);
        return false;
    }
    for (size_t w = 2; w <= WIDTH_MAX && !pools[w]; w++) {
        pools[w] = pthreadpool_create(w);
    }
    out_new(o, want);
    run_variant(ref, o, want, 1, NULL, NULL, &intact);
    if (c->bound == CHECK_SUM) {
        out_new(o, sums[0].of);
        run_magnitude(o, ref, sums[0].of);
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
        ok = check_variant(o, c, &v[i], exercised[i]++ % POOL_EVERY == 0, want, &sums[which]);
    }
    if (ok && !expected) {
        fprintf(stderr, "%s: no variant of '%s' takes it\n", o->name, c->expect);
        ok = false;
    }
    out_free(want);
    for (size_t i = 0; i < SUMS; i++) {
        out_free(sums[i].of);
    }
    return ok;
}

int check_unexercised(bool (*which)(const struct krn_variant *v))
{
    size_t count;
    const struct krn_variant *v = krn_variants(&count);
    int missing = 0;

    for (size_t i = 0; i < count; i++) {
        if (v[i].reference || v[i].fused || exercised[i] || !which(&v[i]) ||
            !check_wants(v[i].name)) {
            continue;
        }
        if (getenv("PIPED_TEST_ROWS") || !(v[i].needs & ~krn_cpu_features())) {
            fprintf(stderr, "%s: no case exercised it\n", v[i].name);
            missing++;
        } else {
            fprintf(stderr, "%s: not run, this CPU lacks what it needs\n", v[i].name);
        }
    }
    return missing;
}
