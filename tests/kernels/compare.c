/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/compare.h"

#include <math.h>

#include "tests/kernels/check_values.h"

static const double unit = 0x1p-24;

struct output {
    const struct compare *k;
    const uint8_t *got, *want, *magnitude;
    uint8_t *gaps; /* elements are overwritten with the pattern, so that gaps alone remain */
    enum mdl_dtype dtype;
    double terms, lipschitz;
    bool failed;
};

/* What a primitive that rounds its operands to bfloat16 adds to the terms: two roundings of 2^-8
 * for every product, in units of the bound in compare_one(). */
static double terms_of_rounding(const struct krn_primitive *v)
{
    return strstr(v->name, "_bf16__") ? 0x1p-7 / (2 * unit) : 0;
}

static void compare_one(void *arg, size_t at, size_t index)
{
    struct output *out = arg;
    const struct compare *k = out->k;
    size_t size = mdl_dtype_bytes(out->dtype);
    float got, want, magnitude = 0;
    double bound = 0;

    memset(out->gaps + at, ONE_OP_PATTERN, size);
    if (k->c->bound == CHECK_EXACT || out->dtype != MDL_F32) {
        if (memcmp(out->got + at, out->want + at, size) != 0 && !out->failed) {
            out->failed = true;
            fprintf(stderr, "%s, %s, width %zu: element %zu differs\n", k->primitive->name,
                    k->o->name, k->width, index);
        }
        return;
    }
    memcpy(&got, out->got + at, sizeof(got));
    memcpy(&want, out->want + at, sizeof(want));
    if (out->magnitude) {
        memcpy(&magnitude, out->magnitude + at, sizeof(magnitude));
        bound = 2 * (out->terms + 4) * unit * (double)magnitude * out->lipschitz;
    }
    bound += 2 * k->c->ulps * unit * fabs((double)want) + k->c->absolute + 1e-37;
    if (!(fabs((double)got - (double)want) <= bound) && !(isnan(got) && isnan(want)) &&
        !(got == want) && !out->failed) {
        out->failed = true;
        fprintf(stderr, "%s, %s, width %zu: element %zu is %.9g, reference %.9g, bound %.3g\n",
                k->primitive->name, k->o->name, k->width, index, (double)got, (double)want, bound);
    }
}

bool compare_out(const struct compare *k, size_t i, const struct one_op_buffer *got,
                 const struct one_op_buffer *want, const struct one_op_buffer *magnitude)
{
    const struct mdl_tensor *t = &k->o->tensors[k->o->op.out[i]];
    struct output out = {.k = k,
                         .got = got->data,
                         .want = want->data,
                         .magnitude = magnitude->data,
                         .gaps = malloc(got->bytes + 1),
                         .dtype = t->dtype,
                         .terms = k->terms + terms_of_rounding(k->primitive),
                         .lipschitz = check_act_lipschitz(&k->o->op)};

    memcpy(out.gaps, got->data, got->bytes);
    one_op_each(t, compare_one, &out);
    for (size_t at = 0;
         at < got->bytes && !out.failed && !k->c->in_place && !k->c->residual_in_place; at++) {
        if (out.gaps[at] != ONE_OP_PATTERN) {
            out.failed = true;
            fprintf(stderr, "%s, %s, width %zu: wrote between elements at byte %zu\n",
                    k->primitive->name, k->o->name, k->width, at);
        }
    }
    free(out.gaps);
    return !out.failed;
}
