/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposed convolution as convolutions of stride 1, one for each phase of the output.
 *
 * The output at o reads the input at i by tap k where i s + k d = o + pad, so all outputs with the
 * same remainder r = (o + pad) mod s read the same taps, those with k d mod s = r. The pixels of an
 * output row with the same remainder are one indirect GEMM (kernels/f32/igemm.h), with their taps'
 * weights packed together. Every output is computed and finished once; nothing is accumulated in
 * memory. A phase without taps only gets its epilogue.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/igemm.h"

struct plan {
    struct krn_conv c;
    size_t tiles;      /* of an output row and phase, at most */
    size_t taps;       /* of a phase, at most */
    size_t part_bytes; /* pointers of such a row */
};

/* taps in one direction with k @dilation mod @stride == @phase */
static size_t phase_taps(size_t kernel, size_t stride, size_t dilation, size_t phase)
{
    size_t count = 0;

    for (size_t k = 0; k < kernel; k++) {
        count += k * dilation % stride == phase;
    }
    return count;
}

static size_t phase_taps_max(size_t kernel, size_t stride, size_t dilation)
{
    size_t most = 0;

    for (size_t phase = 0; phase < stride; phase++) {
        size_t count = phase_taps(kernel, stride, dilation, phase);

        most = base_max(most, count);
    }
    return most;
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_win *w = &p->c.win;
    struct krn_conv *c = &p->c;

    if (op->in[2] != MDL_NONE || !krn_is_const_f32(m, op->in[1]) ||
        !krn_img_of(&m->tensors[op->in[0]], &c->x) || !krn_img_of(&m->tensors[op->out[0]], &c->y) ||
        !krn_img_flat(&c->y) || !krn_conv_shape_of(m, op, c) ||
        (op->scale && op->channels != c->y.c) || !krn_epilogue_supports(m, op, &c->y)) {
        return false;
    }
    p->tiles = krn_tile_count((c->y.w + w->sw - 1) / w->sw);
    p->taps = phase_taps_max(w->kh, w->sh, w->dh) * phase_taps_max(w->kw, w->sw, w->dw);
    p->part_bytes =
        base_align_up(p->tiles * p->taps * KRN_TILE_ROWS * sizeof(float *), BASE_CACHE_LINE_BYTES);
    return true;
}

KRN_SUPPORTS_BY(struct plan, plan_of)

/* floats of the weights of one phase and group */
static size_t phase_floats(const struct plan *p, size_t py, size_t px)
{
    const struct krn_win *w = &p->c.win;

    return krn_igemm_packed(phase_taps(w->kh, w->sh, w->dh, py) *
                                phase_taps(w->kw, w->sw, w->dw, px) * p->c.cg,
                            p->c.og);
}

static size_t group_floats(const struct plan *p)
{
    size_t sum = 0;

    for (size_t phase = 0; phase < p->c.win.sh * p->c.win.sw; phase++) {
        sum += phase_floats(p, phase / p->c.win.sw, phase % p->c.win.sw);
    }
    return sum;
}

/* the phases of every group, then a row of zeros for the taps that read outside */
KRN_PACKED_BYTES_BY(struct plan, plan_of, (p.c.groups * group_floats(&p) + p.c.cg) * sizeof(float))

/* The weights of one panel; @part: group and phase. Return: the end of them */
static float *pack_panel(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                         size_t part, size_t o0, float *dst)
{
    const struct mdl_tensor *t = &m->tensors[op->in[1]];
    const struct krn_win *w = &p->c.win;
    const size_t group = part / (w->sh * w->sw), phase = part % (w->sh * w->sw);
    const size_t used = base_min(p->c.og - o0, (size_t)KRN_TILE_LANES);
    const float *scale = op->scale ? op->scale + group * p->c.og + o0 : NULL;

    for (size_t tap = 0; tap < w->kh * w->kw; tap++) {
        size_t ky = tap / w->kw, kx = tap % w->kw;
        ptrdiff_t at = (ptrdiff_t)kx * t->stride[t->rank - 1] +
                       (ptrdiff_t)(group * p->c.cg) * t->stride[0] + (ptrdiff_t)o0 * t->stride[1];

        if (ky * w->dh % w->sh != phase / w->sw || kx * w->dw % w->sw != phase % w->sw) {
            continue;
        }
        at += t->rank == 4 ? (ptrdiff_t)ky * t->stride[2] : 0;
        KRN_ISA_FN(krn_igemm_pack)
        (dst, krn_const_ptr(m, op->in[1]) + at * (ptrdiff_t)sizeof(float), 1, p->c.cg, used,
         t->stride[1], 0, t->stride[0], scale, 1.0f);
        dst += krn_igemm_packed(p->c.cg, used);
    }
    return dst;
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    float *out = dst;
    struct plan p;

    if (!plan_of(m, op, &p)) {
        return;
    }
    for (size_t i = 0; i < p.c.groups * p.c.win.sh * p.c.win.sw; i++) {
        for (size_t o = 0; o < p.c.og; o += KRN_TILE_LANES) {
            out = pack_panel(m, op, &p, i, o, out);
        }
    }
    memset(out, 0, p.c.cg * sizeof(float));
}

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_epilogue epilogue;
    const float *zeros;
    size_t parts;
    bool by_panels; /* parts share panels, not rows */
};

/* The pixels of an output row that have one remainder, and one group of channels. */
struct line {
    size_t n, oy, ox; /* ox: the first */
    size_t pixels, group;
    size_t py, px;
};

/* pointers for the taps of one pixel. Return: how many taps that are */
static size_t point(const struct job *j, const struct line *l, size_t ox, const float **rows)
{
    const struct plan *p = &j->p;
    const struct krn_win *w = &p->c.win;
    const float *image = (const float *)j->call->in[0] + l->n * p->c.x.batch + l->group * p->c.cg;
    ptrdiff_t reach_y = (ptrdiff_t)l->oy + w->top, reach_x = (ptrdiff_t)ox + w->left;
    size_t taps = 0;

    for (size_t ky = 0; ky < w->kh; ky++) {
        ptrdiff_t iy = reach_y - (ptrdiff_t)(ky * w->dh);
        bool in_y = iy >= 0 && iy / (ptrdiff_t)w->sh < (ptrdiff_t)p->c.x.h;

        for (size_t kx = 0; ky * w->dh % w->sh == l->py && kx < w->kw; kx++) {
            ptrdiff_t ix = reach_x - (ptrdiff_t)(kx * w->dw);

            if (kx * w->dw % w->sw != l->px) {
                continue;
            }
            rows[taps++ * KRN_TILE_ROWS] =
                in_y && ix >= 0 && ix / (ptrdiff_t)w->sw < (ptrdiff_t)p->c.x.w
                    ? image + (size_t)iy / w->sh * p->c.x.row + (size_t)ix / w->sw * p->c.x.pixel
                    : j->zeros;
        }
    }
    return taps;
}

static void run_line(const struct job *j, const struct line *l, const float *packed,
                     struct krn_range panels, const float **rows)
{
    const struct plan *p = &j->p;
    const size_t first = (l->n * p->c.y.h + l->oy) * p->c.y.w + l->ox;
    const size_t tiles = krn_tile_count(l->pixels);
    struct krn_igemm g = {.taps = phase_taps(p->c.win.kh, p->c.win.sh, p->c.win.dh, l->py) *
                                  phase_taps(p->c.win.kw, p->c.win.sw, p->c.win.dw, l->px),
                          .len = p->c.cg,
                          .out = p->c.og,
                          .packed = packed,
                          .zeros = j->zeros,
                          .epilogue = j->epilogue,
                          .channel = l->group * p->c.og,
                          .y = (float *)j->call->out[0] + first * p->c.y.pixel,
                          .y_pixel = p->c.win.sw * p->c.y.pixel};

    if (g.epilogue.res) {
        g.epilogue.res += first * g.epilogue.res_pixel;
        g.epilogue.res_pixel *= p->c.win.sw;
    }
    for (size_t t = 0, pixel = 0; t < tiles; t++) {
        size_t end = krn_tile_first(l->pixels, tiles, t + 1), begin = pixel;

        for (; pixel < end; pixel++) {
            point(j, l, l->ox + pixel * p->c.win.sw,
                  rows + t * g.taps * KRN_TILE_ROWS + pixel - begin);
        }
    }
    KRN_ISA_FN(krn_igemm_block)(&g, rows, 0, l->pixels, panels);
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct plan *p = &j->p;
    const float **pointers = (const float **)(void *)(j->call->scratch + part * p->part_bytes);
    struct krn_range rows = {0, p->c.y.n * p->c.y.h}, panels = {0, krn_panel_count(p->c.og)};
    const size_t sh = p->c.win.sh, sw = p->c.win.sw;

    if (j->by_panels) {
        panels = krn_share_run(panels.end, 1, part, j->parts);
    } else {
        rows = krn_share_run(rows.end, 1, part, j->parts);
    }
    for (size_t row = rows.begin; row < rows.end && panels.begin < panels.end; row++) {
        struct line l = {.n = row / p->c.y.h, .oy = row % p->c.y.h};
        const float *packed = j->call->packed;

        for (size_t phase = 0; phase < p->c.groups * sh * sw; phase++) {
            l.group = phase / sw / sh;
            l.py = phase / sw % sh;
            l.px = phase % sw;
            l.ox = (l.px + sw - (size_t)p->c.win.left % sw) % sw;
            if ((l.oy + (size_t)p->c.win.top) % sh == l.py && l.ox < p->c.y.w) {
                l.pixels = (p->c.y.w - l.ox + sw - 1) / sw;
                run_line(j, &l, packed, panels, pointers);
            }
            packed += phase_floats(p, l.py, l.px);
        }
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {
        .call = call, .epilogue = krn_epilogue_of(call), .parts = base_max(call->width, 1u)};

    if (!plan_of(call->model, call->op, &j.p)) {
        return;
    }
    j.zeros = (const float *)call->packed + j.p.c.groups * group_floats(&j.p);
    j.by_panels = krn_by_panels(j.p.c.y.n * j.p.c.y.h, krn_panel_count(j.p.c.og), j.parts);
    krn_parallel(call->pool, j.parts, part_run, &j);
}

KRN_SCRATCH_BYTES_BY(struct plan, plan_of, p.part_bytes)

KRN_ISA_PRIMITIVE(conv_transpose_f32_nhwc, MDL_OP_CONV_TRANSPOSE, KRN_ISA_NEEDS,
                  .supports = supports, .packed_bytes = packed_bytes, .pack = pack,
                  .scratch_bytes = scratch_bytes, .run = run);
