/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and products of bytes over oneDNN, which has code for VNNI and for AMX, and asks
 * the kernel for the latter's state by itself. It writes 32-bit sums of u8 by i8 into scratch; the
 * epilogue is ours, so that results equal those of every other primitive. The team shares bands of
 * output rows (pixels if the window is 1x1), all of one shape, so that each width of a team needs
 * one primitive: the last band starts early and recomputes the sums that it shares with its
 * predecessor, but not the epilogue.
 *
 * oneDNN never pads with the zero point. So inputs that are padded, i8, strided under a 1x1 window,
 * or part of a concat are first copied into scratch as u8.
 */
#include <string.h>

#include "kernels/common/cpu.h"
#include "kernels/common/planned.h"
#include "kernels/i8/quant_rows.h"
#include "kernels/lib/conv_i8_dnnl.h"
#include "kernels/lib/onednn_team.h"

struct object {
    struct krn_dnnl_i8 p;
    struct krn_dnnl_md weights;
    bool narrow;                   /* sums are exact without dot product instructions, too */
    struct krn_dnnl_widths widths; /* of struct krn_dnnl_i8_split */
};

static int split_make(const void *of, size_t width, void **ret)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS};
    const struct object *o = of;
    struct krn_dnnl_i8_split *s = calloc(1, sizeof(*s));
    dnnl_primitive_desc_t pd;
    int r = -EOPNOTSUPP;

    if (!s) {
        return -ENOMEM;
    }
    krn_dnnl_i8_bands(&o->p, width, s);
    pd = krn_dnnl_i8_pd(&o->p, &o->weights, s);
    if (pd && (o->narrow || krn_dnnl_i8_has_dot(pd))) {
        r = krn_dnnl_init(&s->conv, pd, base_array_count(args), args);
    }
    dnnl_primitive_desc_destroy(pd);
    if (r < 0) {
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

static void split_free(void *split)
{
    struct krn_dnnl_i8_split *s = split;

    krn_dnnl_deinit(&s->conv);
    free(s);
}

/* This CPU's fastest functions for the work that the library does not do. */
struct own {
    krn_quant_table_fn *table;
    krn_quant_rows_fn *rows;
    krn_quant_bytes_fn *bytes;
};

static struct own own_of_cpu(void)
{
    return (struct own){KRN_OF_CPU(krn_quant_table), KRN_OF_CPU(krn_quant_rows),
                        KRN_OF_CPU(krn_quant_bytes)};
}

static void object_deinit(struct object *o)
{
    krn_dnnl_widths_deinit(&o->widths, split_free);
    krn_dnnl_md_deinit(&o->weights);
}

#define auto_object base_cleanup(object_deinit) struct object

/* Return: whether the primitive supports @op; deinitialise @o in any case */
static bool object_of(const struct mdl_model *m, const struct mdl_op *op, struct object *o)
{
    *o = (struct object){0};
    krn_dnnl_widths_init(&o->widths);
    return krn_dnnl_i8_problem(m, op, &o->p) && krn_dnnl_i8_packed_md(&o->p, &o->weights);
}

KRN_SUPPORTS_BY(auto_object, object_of)

/* The packed bytes: the weights as the library needs them, then the table. */
KRN_PACKED_BYTES_BY(auto_object, object_of,
                    krn_dnnl_align(krn_dnnl_md_bytes(&p.weights)) +
                        krn_quant_table_bytes(p.p.c.y.c))

/* [output][channel][tap]; @bias: the op's, less what the zero point adds to every sum */
static void plain_weights(const struct krn_dnnl_i8 *p, int8_t *dst, int32_t *bias)
{
    const uint8_t *w = krn_const_ptr(p->m, p->op->in[1]);

    for (size_t o = 0; o < p->c.y.c; o++) {
        uint32_t sum = 0;

        for (size_t c = 0; c < p->c.cg; c++) {
            for (size_t t = 0; t < p->c.taps; t++) {
                *dst = krn_dnnl_i8_weight(p, w, o, c, t);
                sum += (uint32_t)*dst++;
            }
        }
        bias[o] =
            (int32_t)((p->op->quant->bias ? (uint32_t)p->op->quant->bias[o] : 0) - p->zero * sum);
    }
}

static int pack(const struct krn_dnnl_i8 *p, const struct krn_dnnl_md *weights, uint8_t *dst)
{
    krn_dnnl_auto_md plain = {0};
    base_autofree int8_t *src = NULL;
    base_autofree int32_t *bias = NULL;
    int r = krn_dnnl_i8_weights_md(p, dnnl_oihw, &plain);

    if (r < 0) {
        return r;
    }
    src = malloc(krn_dnnl_md_bytes(&plain));
    bias = malloc(p->c.y.c * sizeof(*bias));
    if (!src || !bias) {
        return -ENOMEM;
    }
    plain_weights(p, src, bias);
    own_of_cpu().table(dst + krn_dnnl_align(krn_dnnl_md_bytes(weights)), bias, p->op->scale,
                       p->c.y.c);
    return krn_dnnl_reorder_once(&plain, src, weights, dst);
}

KRN_RELEASE_BY(object_deinit)

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *p)
{
    bool first = p->object == NULL;
    struct object *o = first ? malloc(sizeof(*o)) : p->object;
    int r = 0;

    if (!o) {
        return -ENOMEM;
    }
    if (first) {
        *p = (struct krn_prepared){.object = o, .bytes = sizeof(*o)};
        r = object_of(m, op, o) ? pack(&o->p, &o->weights, packed) : -EOPNOTSUPP;
        o->narrow = r == 0 && krn_dnnl_i8_is_exact(&o->p, false);
    }
    r = r < 0 ? r : krn_dnnl_widths_prepare(&o->widths, width, split_make, o);
    if (r < 0 && first) {
        release(p);
    }
    return r;
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    struct krn_dnnl_i8_split s = {0};
    size_t bytes = 0;
    auto_object o;

    if (!object_of(m, op, &o)) {
        return 0;
    }
    width = krn_dnnl_width(width);
    for (size_t w = 1;; w = width) { /* width 1 runs if the other could not be prepared */
        krn_dnnl_i8_bands(&o.p, w, &s);
        dnnl_primitive_desc_destroy(krn_dnnl_i8_pd(&o.p, &o.weights, &s));
        bytes = base_max(bytes, s.part_bytes);
        if (w == width) {
            return width * bytes;
        }
    }
}

struct job {
    const struct krn_call *call;
    const struct krn_dnnl_i8 *p;
    struct krn_dnnl_i8_split *split;
    struct own own;
    struct krn_quant_rows rows;
    size_t parts;
};

/* row @y of the image, from column @left on, to @width pixels @step apart */
static void copy_row(const struct job *j, uint8_t *to, const uint8_t *x, ptrdiff_t left,
                     size_t width, size_t step)
{
    const struct krn_img *i = &j->p->c.x;
    struct krn_range in = krn_taps(left, width, step, i->w);
    const uint8_t *src = x + ((ptrdiff_t)(in.begin * step) + left) * (ptrdiff_t)i->pixel;

    memset(to, j->p->zero, in.begin * i->c);
    if (step == 1 && i->pixel == i->c) {
        j->own.bytes(to + in.begin * i->c, src, (in.end - in.begin) * i->c, j->p->flip);
    } else {
        for (size_t k = in.begin; k < in.end; k++, src += step * i->pixel) {
            j->own.bytes(to + k * i->c, src, i->c, j->p->flip);
        }
    }
    memset(to + in.end * i->c, j->p->zero, (width - in.end) * i->c);
}

/* Image @n's input under the band that begins at unit @first. */
static void copy_band(const struct job *j, uint8_t *to, size_t n, size_t first)
{
    const struct krn_dnnl_i8 *p = j->p;
    const struct krn_win *w = &p->c.win;
    const struct krn_img *i = &p->c.x;
    const uint8_t *x = (const uint8_t *)j->call->in[0] + n * i->batch;
    size_t height = krn_dnnl_i8_band_height(p, j->split->units), width = krn_dnnl_i8_band_width(p);

    if (p->pixels) {
        const uint8_t *src = x + first * i->pixel;

        for (size_t k = 0; k < j->split->units; k++, src += i->pixel, to += i->c) {
            j->own.bytes(to, src, i->c, p->flip);
        }
        return;
    }
    for (size_t y = 0; y < height; y++, to += width * i->c) {
        ptrdiff_t iy = (ptrdiff_t)(first * w->sh + y * (p->gathered ? w->sh : 1)) - w->top;

        if (iy < 0 || iy >= (ptrdiff_t)i->h) {
            memset(to, p->zero, width * i->c);
        } else {
            copy_row(j, to, x + (size_t)iy * i->row, -w->left, width, p->gathered ? w->sw : 1);
        }
    }
}

static const uint8_t *band_at(const struct job *j, size_t n, size_t first)
{
    const struct krn_img *i = &j->p->c.x;

    return (const uint8_t *)j->call->in[0] + n * i->batch +
           first * (j->p->pixels ? i->pixel : j->p->c.win.sh * i->row);
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_dnnl_i8 *p = j->p;
    struct krn_dnnl_i8_split *s = j->split;
    struct krn_range share = krn_share_run(p->images * s->bands, 1, part, j->parts);
    uint8_t *scratch = j->call->scratch + part * s->part_bytes;
    int32_t *sums = (int32_t *)(void *)(scratch + s->x_bytes);
    size_t each = p->pixels ? 1 : p->c.y.w, row = p->c.y.c * each;

    for (size_t i = share.begin; i < share.end; i++) {
        size_t n = i / s->bands, begin = i % s->bands * s->units;
        size_t first = base_min(begin, p->units - s->units), done = begin - first;
        const uint8_t *x = scratch;

        if (p->direct) {
            x = band_at(j, n, first);
        } else {
            copy_band(j, scratch, n, first);
        }
        krn_dnnl_run(&s->conv,
                     (void *[]){(void *)(uintptr_t)x, sums, (void *)(uintptr_t)j->call->packed,
                                scratch + s->x_bytes + s->sum_bytes});
        j->own.rows(&j->rows, sums + done * row, (n * p->units + begin) * each,
                    (s->units - done) * each);
    }
}

static void run(const struct krn_call *call)
{
    struct object *o = call->prepared;
    struct job j = {.call = call,
                    .p = &o->p,
                    .split = krn_dnnl_widths_get(&o->widths, call->width),
                    .own = own_of_cpu(),
                    .parts = krn_dnnl_width(call->width)};

    j.rows = (struct krn_quant_rows){
        .epilogue = krn_quant_epilogue_of(call),
        .table = (const uint8_t *)call->packed + krn_dnnl_align(krn_dnnl_md_bytes(&o->weights)),
        .channels = o->p.c.y.c,
        .y = call->out[0],
        .y_pixel = o->p.c.y.pixel,
    };
    krn_parallel(call->pool, j.parts, part_run, &j);
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_PRIMITIVE(what##__dnnl, kind, .needs = KRN_CPU_AVX2, .supports = supports,                 \
                  .packed_bytes = packed_bytes, .prepare = prepare, .release = release,            \
                  .scratch_bytes = scratch_bytes, .run = run)

PRIMITIVE(conv_i8_nhwc, MDL_OP_CONV);
PRIMITIVE(gemm_i8, MDL_OP_GEMM);
PRIMITIVE(matmul_i8, MDL_OP_MATMUL);
