/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that read an image between its pixels: the positions and weights of one output pixel
 * are found once, as the reference finds them, then all its channels are summed as vectors.
 */
#include "base/base.h"
#include "kernels/common/epilogue.h"
#include "kernels/common/nhwc.h"
#include "kernels/common/planned.h"
#include "kernels/common/sample.h"
#include "kernels/common/vec_arith.h"

struct shape {
    struct krn_img x, y;
};

static bool shape_of(const struct mdl_model *m, const struct mdl_op *op, struct shape *s)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return x->rank == 4 && y->rank == 4 && krn_img_of(x, &s->x) && krn_img_of(y, &s->y) &&
           m->tensors[op->in[1]].dtype == MDL_F32 && krn_op_is_plain(op);
}

KRN_SUPPORTS_BY(struct shape, shape_of)

struct job {
    const struct krn_call *call;
    struct shape s;
    size_t parts;
};

/* @n channels of the weighed sum */
static void sum_channels(const float *x, const struct krn_sample_tap *tap, size_t count, size_t n,
                         float *y)
{
    for (size_t c = 0; c < n; c += KRN_VL) {
        size_t lanes = base_min(n - c, (size_t)KRN_VL);
        vf sum = vf_set(0.0f);

        for (size_t k = 0; k < count; k++) {
            sum += vf_load_n(x + tap[k].at + c, lanes) * (float)tap[k].weight;
        }
        vf_store_n(y + c, sum, lanes);
    }
}

static const float *image_of(const struct job *j, size_t n)
{
    return (const float *)j->call->in[0] + n * j->s.x.batch;
}

/* ---- GRID_SAMPLE ---- */

static void grid_row(const struct job *j, size_t n, size_t oy, float *y)
{
    struct krn_sample_tap tap[KRN_SAMPLE_TAPS_MAX];

    for (size_t ox = 0; ox < j->s.y.w; ox++) {
        size_t count = krn_grid_taps(j->call, n, (size_t[]){oy, ox}, tap);

        sum_channels(image_of(j, n), tap, count, j->s.y.c, y + ox * j->s.y.pixel);
    }
}

/* ---- ROI_ALIGN ---- */

static bool roi_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return supports(m, op) && !op->attr.roi.max;
}

static void roi_bin(const struct job *j, const struct krn_roi *roi, const size_t *bin, float *y)
{
    size_t samples = roi->valid ? roi->grid[0] * roi->grid[1] : 0;
    float share = samples ? 1.0f / (float)samples : 0;

    for (size_t c = 0; c < j->s.y.c; c++) {
        y[c] = 0;
    }
    for (size_t i = 0; i < samples; i++) {
        struct krn_sample_tap tap[4];
        size_t sample[2] = {i / roi->grid[1], i % roi->grid[1]};
        size_t count = krn_roi_taps(j->call, roi, bin, sample, tap);
        const float *x = image_of(j, roi->image);

        for (size_t c = 0; c < j->s.y.c; c += KRN_VL) {
            size_t lanes = base_min(j->s.y.c - c, (size_t)KRN_VL);
            vf sum = vf_load_n(y + c, lanes);

            for (size_t k = 0; k < count; k++) {
                sum += vf_load_n(x + tap[k].at + c, lanes) * ((float)tap[k].weight * share);
            }
            vf_store_n(y + c, sum, lanes);
        }
    }
}

static void roi_row(const struct job *j, size_t n, size_t oy, float *y)
{
    struct krn_roi roi = krn_roi_of(j->call, n);

    for (size_t ox = 0; ox < j->s.y.w; ox++) {
        roi_bin(j, &roi, (size_t[]){oy, ox}, y + ox * j->s.y.pixel);
    }
}

/* ---- DEFORM_COLUMNS ---- */

/* The channels of offset group @group and tap @k, in pieces that lie in one group of the
 * convolution. */
static void deform_tap(const struct job *j, size_t group, size_t k, const float *x,
                       const struct krn_sample_tap *tap, size_t count, float *y)
{
    const struct mdl_window *win = &j->call->op->attr.deform.window;
    size_t taps = win->kernel[0] * win->kernel[1];
    size_t per = j->s.x.c / j->call->op->attr.deform.groups;
    size_t per_offset = j->s.x.c / j->call->op->attr.deform.offset_groups;
    size_t end = (group + 1) * per_offset;

    for (size_t c = group * per_offset; c < end;) {
        size_t g = c / per, n = base_min(end, (g + 1) * per) - c;

        sum_channels(x + c, tap, count, n, y + (g * taps + k) * per + c % per);
        c += n;
    }
}

static void deform_row(const struct job *j, size_t n, size_t oy, float *y)
{
    const struct mdl_window *win = &j->call->op->attr.deform.window;
    size_t taps = win->kernel[0] * win->kernel[1];

    for (size_t ox = 0; ox < j->s.y.w; ox++) {
        for (size_t group = 0; group < j->call->op->attr.deform.offset_groups; group++) {
            for (size_t k = 0; k < taps; k++) {
                struct krn_sample_tap tap[4];
                size_t count = krn_deform_taps(j->call, n, group, k, (size_t[]){oy, ox}, tap);

                deform_tap(j, group, k, image_of(j, n), tap, count, y + ox * j->s.y.pixel);
            }
        }
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    enum mdl_op_kind kind = j->call->op->kind;
    struct krn_range share = krn_share_run(j->s.y.n * j->s.y.h, 1, part, j->parts);

    for (size_t r = share.begin; r < share.end; r++) {
        size_t n = r / j->s.y.h, oy = r % j->s.y.h;
        float *y = (float *)j->call->out[0] + n * j->s.y.batch + oy * j->s.y.row;

        if (kind == MDL_OP_GRID_SAMPLE) {
            grid_row(j, n, oy, y);
        } else if (kind == MDL_OP_ROI_ALIGN) {
            roi_row(j, n, oy, y);
        } else {
            deform_row(j, n, oy, y);
        }
    }
}

KRN_RUN_PARTS_BY(struct job, shape_of, s, part_run)

KRN_ISA_PRIMITIVE(grid_sample_f32_nhwc, MDL_OP_GRID_SAMPLE, KRN_ISA_NEEDS, .supports = supports,
                  .run = run);

KRN_ISA_PRIMITIVE(roi_align_f32_nhwc, MDL_OP_ROI_ALIGN, KRN_ISA_NEEDS, .supports = roi_supports,
                  .run = run);

KRN_ISA_PRIMITIVE(deform_columns_f32_nhwc, MDL_OP_DEFORM_COLUMNS, KRN_ISA_NEEDS,
                  .supports = supports, .run = run);
