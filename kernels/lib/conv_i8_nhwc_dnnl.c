/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and products of bytes over oneDNN, which has code for VNNI and for AMX, and asks
 * the kernel for the latter's state by itself. It gives sums of u8 by i8 in 32 bits, into scratch;
 * the epilogue is ours, so that the bits are those of every other row. The team shares bands of
 * output rows (pixels where the window is one pixel), all of one shape, so that there is one
 * primitive for each width of a team: the last band begins early and repeats what it has in common
 * with the one before, but for the epilogue.
 *
 * oneDNN adds the zero point's padding nowhere: what is padded, i8, strided by a window of one
 * pixel or part of a concat is copied into scratch first, as u8.
 *
 * When it is exact: on their way to memory sums pass through f32, so 255 times the sum of an
 * output's weights of either sign has to be at most 2^24. Without an instruction for dot products
 * two products are added in 16 bits with saturation; 255 (64 + 64) fits, so there no weight may be
 * beyond 64, as those of 7 bits are not.
 */
#include <pthread.h>
#include <string.h>

#include "kernels/common/isa_of_cpu.h"
#include "kernels/lib/onednn.h"
#include "kernels/i8/quant_rows.h"

#define WIDTH_MAX 64u             /* wider teams run the shares of that many members */
#define SUM_BYTES (256u * 1024u)  /* of a band, with its input inside L2 */
#define SUM_MAX ((1 << 24) / 255) /* of an output's weights of one sign */
#define WEIGHT_MAX 64

struct problem {
    const struct mdl_model *m;
    const struct mdl_op *op;
    struct krn_conv c;
    ptrdiff_t w_o, w_c;   /* strides of the weights; taps lie side by side */
    uint8_t flip, zero;   /* what makes an input's byte unsigned; what then stands for 0 */
    bool pixels;          /* y's pixels are x's, and bands are made of them: all in one row */
    bool gathered;        /* the copy leaves out what a window of one pixel leaves out */
    bool direct;          /* x is read where it lies */
    size_t images, units; /* rows or pixels of one of the images */
};

/* The primitive of a width and its bands. */
struct split {
    size_t units, bands; /* of a band; of an image */
    struct krn_dnnl conv;
    size_t x_bytes, sum_bytes, part_bytes; /* scratch of one part: x, sums, scratchpad */
};

struct object {
    struct problem p;
    struct krn_dnnl_md weights;
    bool narrow;          /* sums are exact without an instruction for dot products, too */
    pthread_mutex_t lock; /* of making splits */
    _Atomic(struct split *) splits[WIDTH_MAX + 1]; /* [width], owned */
};

static size_t align(size_t bytes)
{
    return base_align_up(bytes, BASE_CACHE_LINE_BYTES);
}

static bool shape_of(const struct mdl_model *m, const struct mdl_op *op, struct problem *p)
{
    struct krn_product r;

    if (op->kind == MDL_OP_CONV) {
        if (!krn_quant_conv_of(m, op, &p->c)) {
            return false;
        }
        p->w_o = (ptrdiff_t)(p->c.cg * p->c.taps);
        p->w_c = (ptrdiff_t)p->c.taps;
        return p->c.cg > 1; /* a depthwise one is not for dot products */
    }
    if (!krn_quant_product_of(m, op, &r)) {
        return false;
    }
    p->c = (struct krn_conv){
        .x = {.n = 1, .h = 1, .w = r.m, .c = r.k, .pixel = r.lda, .row = r.m * r.lda},
        .y = r.y_as_pixels,
        .win = {.kh = 1, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1},
        .groups = 1,
        .cg = r.k,
        .og = r.n,
        .taps = 1,
    };
    p->c.x.batch = p->c.x.row;
    p->w_o = r.b_n;
    p->w_c = r.b_k;
    return true;
}

static bool problem_of(const struct mdl_model *m, const struct mdl_op *op, struct problem *ret)
{
    struct problem p = {.m = m, .op = op};
    const struct krn_conv *c = &p.c;
    const struct krn_win *w = &p.c.win;
    bool is_signed = m->tensors[op->in[0]].dtype == MDL_I8, dense, inside;
    size_t span_h, span_w;

    if (!shape_of(m, op, &p) || !krn_quant_weights_fit(m, op)) {
        return false;
    }
    span_h = (w->kh - 1) * w->dh + 1;
    span_w = (w->kw - 1) * w->dw + 1;
    p.flip = is_signed ? 0x80 : 0;
    p.zero = (uint8_t)(op->quant->x_zero + (is_signed ? 128 : 0));
    p.pixels = c->taps == 1 && w->sh == 1 && w->sw == 1 && w->top == 0 && w->left == 0 &&
               c->x.h == c->y.h && c->x.w == c->y.w && krn_img_flat(&c->x);
    p.gathered = c->taps == 1 && !p.pixels;
    dense = c->x.pixel == c->x.c && !p.flip;
    inside = w->top == 0 && w->left == 0 && (c->y.h - 1) * w->sh + span_h <= c->x.h &&
             c->x.w >= span_w && (c->x.w - span_w) / w->sw + 1 == c->y.w;
    p.direct = dense && (p.pixels || (!p.gathered && inside && c->x.row == c->x.w * c->x.c));
    p.images = p.pixels ? 1 : c->y.n;
    p.units = p.pixels ? c->y.n * c->y.h * c->y.w : c->y.h;
    *ret = p;
    return true;
}

/* ---- the weights ---- */

/* w - w_zero of an output, channel and tap */
static int8_t weight_at(const struct problem *p, const uint8_t *w, size_t o, size_t c, size_t t)
{
    uint8_t flip = p->m->tensors[p->op->in[1]].dtype == MDL_I8 ? 0 : 0x80;

    return (int8_t)(w[(ptrdiff_t)o * p->w_o + (ptrdiff_t)c * p->w_c + (ptrdiff_t)t] ^ flip);
}

/* Is every sum exact? @dot: by an instruction for that */
static bool is_exact(const struct problem *p, bool dot)
{
    const uint8_t *w = krn_const_ptr(p->m, p->op->in[1]);

    for (size_t o = 0; o < p->c.y.c; o++) {
        int32_t up = 0, down = 0;

        for (size_t c = 0; c < p->c.cg; c++) {
            for (size_t t = 0; t < p->c.taps; t++) {
                int32_t v = weight_at(p, w, o, c, t);

                if (!dot && (v > WEIGHT_MAX || v < -WEIGHT_MAX)) {
                    return false;
                }
                up += v > 0 ? v : 0;
                down -= v < 0 ? v : 0;
            }
            if (up > SUM_MAX || down > SUM_MAX) {
                return false;
            }
        }
    }
    return true;
}

static int weights_md(const struct problem *p, dnnl_format_tag_t tag, struct krn_dnnl_md *ret)
{
    const struct krn_conv *c = &p->c;
    dnnl_dims_t dims = {(dnnl_dim_t)c->groups, (dnnl_dim_t)c->og, (dnnl_dim_t)c->cg,
                        (dnnl_dim_t)c->win.kh, (dnnl_dim_t)c->win.kw};
    size_t first = c->groups == 1;

    if (tag != dnnl_format_tag_any) {
        tag = c->groups == 1 ? dnnl_oihw : dnnl_goihw;
    }
    return krn_dnnl_md_tag(ret, (int)(5 - first), dims + first, dnnl_s8, tag);
}

/* ---- the library's descriptions ---- */

static size_t band_width(const struct problem *p)
{
    const struct krn_win *w = &p->c.win;

    return p->direct     ? p->c.x.w
           : p->gathered ? p->c.y.w
                         : (p->c.y.w - 1) * w->sw + (w->kw - 1) * w->dw + 1;
}

static size_t band_height(const struct problem *p, size_t units)
{
    const struct krn_win *w = &p->c.win;

    return p->gathered ? units : (units - 1) * w->sh + (w->kh - 1) * w->dh + 1;
}

static int image_md(size_t c, size_t h, size_t w, dnnl_data_type_t type, struct krn_dnnl_md *ret)
{
    dnnl_dims_t dims = {1, (dnnl_dim_t)c, (dnnl_dim_t)h, (dnnl_dim_t)w};

    return krn_dnnl_md_tag(ret, 4, dims, type, dnnl_nhwc);
}

static int band_md(const struct problem *p, size_t units, struct krn_dnnl_md *x,
                   struct krn_dnnl_md *y)
{
    size_t c = p->c.x.c, o = p->c.y.c;
    int r;

    if (p->pixels) {
        r = image_md(c, 1, units, dnnl_u8, x);
        return r < 0 ? r : image_md(o, 1, units, dnnl_s32, y);
    }
    r = image_md(c, band_height(p, units), band_width(p), dnnl_u8, x);
    return r < 0 ? r : image_md(o, units, p->c.y.w, dnnl_s32, y);
}

/* Does it use instructions for dot products? Its name tells what it is compiled for. */
static bool has_dot(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";

    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return strstr(name, "vnni") || strstr(name, "amx");
}

/* @weights: as packed. Return: a description, or NULL. */
static dnnl_primitive_desc_t band_pd(const struct problem *p, size_t units,
                                     const struct krn_dnnl_md *weights)
{
    const struct krn_win *w = &p->c.win;
    bool plain = p->pixels || p->gathered;
    struct krn_dnnl_window window = {
        .strides = {plain ? 1 : (dnnl_dim_t)w->sh, plain ? 1 : (dnnl_dim_t)w->sw},
        .dilates = {(dnnl_dim_t)w->dh - 1, (dnnl_dim_t)w->dw - 1},
    };
    krn_dnnl_auto_md x = {0}, y = {0};
    struct krn_dnnl_tensors tensors = {.x = &x, .weights = weights, .y = &y};
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd;

    if (band_md(p, units, &x, &y) < 0) {
        return NULL;
    }
    attr = krn_dnnl_attr(NULL, dnnl_fpmath_mode_strict);
    pd = attr ? krn_dnnl_conv_pd(dnnl_convolution_direct, &tensors, &window, attr) : NULL;
    dnnl_primitive_attr_destroy(attr);
    if (pd && krn_dnnl_slow(pd)) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    return pd;
}

/* ---- splits ---- */

static void split_bands(const struct problem *p, size_t width, struct split *s)
{
    size_t unit_bytes = (p->pixels ? 1 : p->c.y.w) * p->c.y.c * sizeof(int32_t);
    size_t most = base_max(SUM_BYTES / unit_bytes, 1u), bands = (p->units + most - 1) / most;

    if (p->images < 4 * width) {
        bands = (bands + width - 1) / width * width;
    }
    s->units = (p->units + bands - 1) / bands;
    s->bands = (p->units + s->units - 1) / s->units;
}

/* Sets the sizes of @s, whose bands are set. @weights: as packed. Return: its description, or
 * NULL. */
static dnnl_primitive_desc_t split_pd(const struct problem *p, const struct krn_dnnl_md *weights,
                                      struct split *s)
{
    dnnl_primitive_desc_t pd = band_pd(p, s->units, weights);
    size_t pixels = s->units * (p->pixels ? 1 : p->c.y.w);
    krn_dnnl_auto_md pad = {0}, x = {0};

    if (!pd) {
        return NULL;
    }
    if (krn_dnnl_md_arg(&pad, pd, DNNL_ARG_SCRATCHPAD) < 0 ||
        krn_dnnl_md_arg(&x, pd, DNNL_ARG_SRC) < 0) {
        dnnl_primitive_desc_destroy(pd);
        return NULL;
    }
    s->x_bytes = p->direct ? 0 : align(krn_dnnl_md_bytes(&x));
    s->sum_bytes = align(pixels * p->c.y.c * sizeof(int32_t) + KRN_QUANT_ROWS_SLACK);
    s->part_bytes = s->x_bytes + s->sum_bytes + align(krn_dnnl_md_bytes(&pad));
    return pd;
}

/* The layout of the packed weights. Return: whether one member can run it all. */
static bool packed_md(const struct problem *p, struct krn_dnnl_md *ret)
{
    krn_dnnl_auto_md any = {0};
    struct split s = {0};
    dnnl_primitive_desc_t pd;
    bool ok;

    if (!krn_dnnl_alone() || !krn_dnnl_engine() || weights_md(p, dnnl_format_tag_any, &any) < 0) {
        return false;
    }
    split_bands(p, 1, &s);
    pd = split_pd(p, &any, &s);
    ok = pd && is_exact(p, has_dot(pd)) && krn_dnnl_md_arg(ret, pd, DNNL_ARG_WEIGHTS) == 0;
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static int split_new(const struct object *o, size_t width, struct split **ret)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS};
    struct split *s = calloc(1, sizeof(*s));
    dnnl_primitive_desc_t pd;
    int r = -EOPNOTSUPP;

    if (!s) {
        return -ENOMEM;
    }
    split_bands(&o->p, width, s);
    pd = split_pd(&o->p, &o->weights, s);
    if (pd && (o->narrow || has_dot(pd))) {
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

static struct split *split_free(struct split *s)
{
    if (s) {
        krn_dnnl_deinit(&s->conv);
    }
    free(s);
    return NULL;
}

/* ---- packing ---- */

/* The fastest functions of this CPU for what the library does not do. */
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

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    krn_dnnl_auto_md md = {0};
    struct problem p;

    return problem_of(m, op, &p) && packed_md(&p, &md);
}

/* Packed are the weights as the library wants them, then the table. */
static size_t packed_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    krn_dnnl_auto_md md = {0};
    struct problem p;

    return problem_of(m, op, &p) && packed_md(&p, &md)
               ? align(krn_dnnl_md_bytes(&md)) + krn_quant_table_bytes(p.c.y.c)
               : 0;
}

/* [output][channel][tap]; @bias: the op's, less what the zero point adds to every sum */
static void plain_weights(const struct problem *p, int8_t *dst, int32_t *bias)
{
    const uint8_t *w = krn_const_ptr(p->m, p->op->in[1]);

    for (size_t o = 0; o < p->c.y.c; o++) {
        uint32_t sum = 0;

        for (size_t c = 0; c < p->c.cg; c++) {
            for (size_t t = 0; t < p->c.taps; t++) {
                *dst = weight_at(p, w, o, c, t);
                sum += (uint32_t)*dst++;
            }
        }
        bias[o] =
            (int32_t)((p->op->quant->bias ? (uint32_t)p->op->quant->bias[o] : 0) - p->zero * sum);
    }
}

static int pack(const struct problem *p, const struct krn_dnnl_md *weights, uint8_t *dst)
{
    krn_dnnl_auto_md plain = {0};
    int8_t *src;
    int32_t *bias;
    int r = weights_md(p, dnnl_oihw, &plain);

    if (r < 0) {
        return r;
    }
    src = malloc(krn_dnnl_md_bytes(&plain));
    bias = malloc(p->c.y.c * sizeof(*bias));
    r = src && bias ? 0 : -ENOMEM;
    if (r == 0) {
        plain_weights(p, src, bias);
        own_of_cpu().table(dst + align(krn_dnnl_md_bytes(weights)), bias, p->op->scale, p->c.y.c);
        r = krn_dnnl_reorder_once(&plain, src, weights, dst);
    }
    free(bias);
    free(src);
    return r;
}

static void release(struct krn_prepared *p)
{
    struct object *o = p->object;

    for (size_t w = 0; o && w <= WIDTH_MAX; w++) {
        split_free(atomic_load(&o->splits[w]));
    }
    if (o) {
        krn_dnnl_md_deinit(&o->weights);
        pthread_mutex_destroy(&o->lock);
    }
    free(o);
    *p = (struct krn_prepared){0};
}

static int object_new(const struct mdl_model *m, const struct mdl_op *op, void *packed,
                      struct krn_prepared *p)
{
    struct object *o = calloc(1, sizeof(*o));
    int r;

    if (!o) {
        return -ENOMEM;
    }
    pthread_mutex_init(&o->lock, NULL);
    *p = (struct krn_prepared){.object = o, .bytes = sizeof(*o)};
    r = problem_of(m, op, &o->p) && packed_md(&o->p, &o->weights) ? 0 : -EOPNOTSUPP;
    if (r == 0) {
        o->narrow = is_exact(&o->p, false);
        r = pack(&o->p, &o->weights, packed);
    }
    if (r < 0) {
        release(p);
    }
    return r;
}

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *p)
{
    bool first = p->object == NULL;
    int r = first ? object_new(m, op, packed, p) : 0;
    struct object *o = p->object;
    struct split *split;

    if (r < 0) {
        return r;
    }
    width = base_min(base_max(width, 1u), (size_t)WIDTH_MAX);
    pthread_mutex_lock(&o->lock);
    if (!atomic_load(&o->splits[width])) {
        krn_dnnl_alone();
        r = split_new(o, width, &split);
        if (r == 0) {
            atomic_store(&o->splits[width], split);
        }
    }
    pthread_mutex_unlock(&o->lock);
    if (r < 0 && first) {
        release(p);
    }
    return r;
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    krn_dnnl_auto_md md = {0};
    struct split s = {0};
    struct problem p;
    size_t bytes = 0;

    if (!problem_of(m, op, &p) || !packed_md(&p, &md)) {
        return 0;
    }
    width = base_min(base_max(width, 1u), (size_t)WIDTH_MAX);
    for (size_t w = 1;; w = width) { /* that of 1 runs where the other could not be prepared */
        split_bands(&p, w, &s);
        dnnl_primitive_desc_destroy(split_pd(&p, &md, &s));
        bytes = base_max(bytes, s.part_bytes);
        if (w == width) {
            return width * bytes;
        }
    }
}

/* ---- running ---- */

struct job {
    const struct krn_call *call;
    const struct problem *p;
    struct split *split;
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
    const struct problem *p = j->p;
    const struct krn_win *w = &p->c.win;
    const struct krn_img *i = &p->c.x;
    const uint8_t *x = (const uint8_t *)j->call->in[0] + n * i->batch;
    size_t height = band_height(p, j->split->units), width = band_width(p);

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
    const struct problem *p = j->p;
    struct split *s = j->split;
    struct krn_range share = krn_share(p->images * s->bands, 1, part, j->parts);
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
    size_t width = base_min(base_max(call->width, 1u), (size_t)WIDTH_MAX);
    struct job j = {.call = call, .p = &o->p, .own = own_of_cpu(), .parts = width};

    j.split = atomic_load_explicit(&o->splits[width], memory_order_acquire);
    if (!j.split) {
        j.split = atomic_load(&o->splits[1]);
    }
    j.rows = (struct krn_quant_rows){
        .epilogue = krn_quant_epilogue_of(call),
        .table = (const uint8_t *)call->packed + align(krn_dnnl_md_bytes(&o->weights)),
        .channels = o->p.c.y.c,
        .y = call->out[0],
        .y_pixel = o->p.c.y.pixel,
    };
    krn_parallel(call->pool, j.parts, part_run, &j);
}

#define ROW(row, text, of_kind)                                                                    \
    const struct krn_variant row = {                                                               \
        .name = text,                                                                              \
        .kind = of_kind,                                                                           \
        .needs = KRN_CPU_AVX2,                                                                     \
        .supports = supports,                                                                      \
        .packed_bytes = packed_bytes,                                                              \
        .prepare = prepare,                                                                        \
        .release = release,                                                                        \
        .scratch_bytes = scratch_bytes,                                                            \
        .run = run,                                                                                \
    }

ROW(krn_conv_i8_nhwc__dnnl, "conv_i8_nhwc__dnnl", MDL_OP_CONV);
ROW(krn_gemm_i8__dnnl, "gemm_i8__dnnl", MDL_OP_GEMM);
ROW(krn_matmul_i8__dnnl, "matmul_i8__dnnl", MDL_OP_MATMUL);
