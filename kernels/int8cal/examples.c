/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8cal/examples.h"

#include <math.h>

#include "base/base.h"
#include "base/pnm.h"
#include "kernels/image/image.h"

#define SIDE_MAX 16384u

static void example_deinit(struct krn_example *x)
{
    free(x->name);
    free(x->owned ? (void *)(uintptr_t)x->data : NULL);
}

void krn_examples_deinit(struct krn_examples *e)
{
    for (size_t i = 0; i < e->count; i++) {
        example_deinit(&e->items[i]);
    }
    free(e->items);
    *e = KRN_EXAMPLES_NULL;
}

int krn_examples_add(struct krn_examples *e, const char *name, const void *data, size_t bytes,
                     bool owned)
{
    base_autofree void *mine = owned ? (void *)(uintptr_t)data : NULL;
    base_autofree char *copy = strdup(name);

    if (e->count >= KRN_EXAMPLES_MAX) {
        return -E2BIG;
    }
    if (!copy || !base_room(&e->items, sizeof(*e->items), e->count, &e->room)) {
        return -ENOMEM;
    }
    e->items[e->count++] = (struct krn_example){base_take(copy), data, bytes, owned};
    mine = NULL;
    return 0;
}

void krn_examples_leave_out(struct krn_examples *e, const char *name, const char *why)
{
    if (e->left_out++ == 0) {
        snprintf(e->note, sizeof(e->note), "%.200s: %.800s", name, why);
    }
}

static bool read_pixmap(const uint8_t *data, size_t bytes, struct krn_image *ret)
{
    struct pnm p;

    if (!pnm_read(data, bytes, 0, &p) || p.most != 255 || p.width > SIDE_MAX ||
        p.height > SIDE_MAX) {
        return false;
    }
    *ret = (struct krn_image){.format = p.channels == 1 ? KRN_PIX_GRAY8 : KRN_PIX_RGB24,
                              .width = p.width,
                              .height = p.height,
                              .stride = p.width * p.channels,
                              .data = data + p.pixels_at};
    return krn_image_bytes(ret) && krn_image_bytes(ret) <= bytes - p.pixels_at;
}

static int wrong(char *error, const char *why)
{
    snprintf(error, MDL_ERROR_MAX, "%s", why);
    return -EINVAL;
}

static int raw_input(const struct krn_example *x, const struct mdl_model *m, void *ret, char *error)
{
    const struct mdl_tensor *t = &m->tensors[m->inputs[0].tensor];
    size_t bytes = m->inputs[0].bytes;
    const float *v = ret;

    if (t->dtype != MDL_F32) {
        snprintf(error, MDL_ERROR_MAX, "it holds f32, and the model's input takes %s",
                 mdl_dtype_name(t->dtype));
        return -EINVAL;
    }
    if (x->bytes != bytes) {
        snprintf(error, MDL_ERROR_MAX, "%zu bytes where the model's input has %zu", x->bytes,
                 bytes);
        return -EINVAL;
    }
    memcpy(ret, x->data, bytes);
    for (size_t i = 0; i < bytes / sizeof(*v); i++) {
        if (!isfinite(v[i])) {
            return wrong(error, "it holds NaN or infinity");
        }
    }
    return 0;
}

int krn_example_input(const struct krn_examples *e, size_t i, const struct mdl_model *m, void *ret,
                      char ret_error[MDL_ERROR_MAX])
{
    const struct mdl_tensor *t = &m->tensors[m->inputs[0].tensor];
    base_autofree uint8_t *scratch = NULL;
    struct krn_exec exec = {.width = 1};
    struct krn_image img;

    if (base_ends_with(e->items[i].name, ".f32")) {
        return raw_input(&e->items[i], m, ret, ret_error);
    }
    if (!read_pixmap(e->items[i].data, e->items[i].bytes, &img)) {
        return wrong(ret_error, "it is not a complete pixmap (P6 or P5, 8 bits)");
    }
    if (!krn_preprocess_ok(&m->preproc, t)) {
        return wrong(ret_error, "it is a picture, but the model's input is not");
    }
    scratch = aligned_alloc(64, base_align_up(krn_preprocess_scratch_bytes(m, 1) + 1, 64));
    if (!scratch) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    exec.scratch = scratch;
    krn_preprocess(&img, &m->preproc, t, ret, &exec);
    return 0;
}

int krn_examples_fit(struct krn_examples *e, const struct mdl_model *m,
                     char ret_error[MDL_ERROR_MAX])
{
    base_autofree void *input = NULL;
    char why[MDL_ERROR_MAX];
    size_t kept = 0;
    int r = 0;

    if (m->input_count != 1) {
        snprintf(ret_error, MDL_ERROR_MAX, "the model has %zu inputs; examples give one",
                 m->input_count);
        return -EINVAL;
    }
    input = aligned_alloc(64, base_align_up(m->inputs[0].bytes + 1, 64));
    for (size_t i = 0; i < e->count; i++) {
        r = !input ? -ENOMEM : r == -ENOMEM ? r : krn_example_input(e, i, m, input, why);
        if (r == 0 || r == -ENOMEM) {
            e->items[kept++] = e->items[i];
            continue;
        }
        krn_examples_leave_out(e, e->items[i].name, why);
        example_deinit(&e->items[i]);
    }
    e->count = kept;
    if (r == -ENOMEM) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return r;
    }
    if (kept == 0) {
        snprintf(ret_error, MDL_ERROR_MAX, "no example fits the model's input%s%.400s",
                 e->note[0] ? "; " : "", e->note);
        return -ENOENT;
    }
    return 0;
}
