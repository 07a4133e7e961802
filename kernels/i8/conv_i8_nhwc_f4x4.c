/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 3x3 convolution of bytes, of stride 1, by F(4x4) on integers (kernels/i8/qwino.h): a quarter of
 * the multiplications, and the same sums.
 *
 * kernels/f32/wino_team.h describes how a team computes it. If transformed weights would be large,
 * they are kept as bytes and transformed on the fly, once per block of tiles.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/wino_team.h"
#include "kernels/i8/quant_vec.h"
#include "kernels/i8/qwino.h"

#define SIDE 3u
#define TAPS (SIDE * SIDE)
#define CHANNELS_MAX 128u           /* of a block */
#define READY_BYTES (1280u * 1024u) /* transformed when packed, if no larger */

struct plan {
    struct krn_wino_plan w;
    bool x_signed;
    int32_t x_zero;
    bool ready; /* weights are transformed when packed */
    size_t table_bytes, weight_bytes;
};

/* elements of u for @channels of the first @panels panels */
static size_t ready_elements(const struct plan *p, size_t channels, size_t panels)
{
    size_t lanes = base_min(panels * KRN_TILE_LANES, p->w.lanes);

    return KRN_QWINO_POINTS * ((channels + 1) / 2 * 2 * lanes + panels * KRN_QWINO_CHANNELS);
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    if (!krn_quant_conv_of(m, op, &p->w.c) ||
        !krn_wino_plan(&p->w, (struct krn_wino_form){.pairs = 2, .side = SIDE}, 1, sizeof(int16_t),
                       CHANNELS_MAX)) {
        return false;
    }
    p->x_signed = m->tensors[op->in[0]].dtype == MDL_I8;
    p->x_zero = op->quant->x_zero;
    p->weight_bytes = 0;
    for (size_t b = 0; b < p->w.work.blocks; b++) {
        struct krn_range r = krn_wino_block(&p->w, b);

        p->weight_bytes += ready_elements(p, r.end - r.begin, p->w.work.panels) * sizeof(int16_t);
    }
    p->ready = p->weight_bytes <= READY_BYTES || !krn_quant_weights_fit(m, op);
    p->w.u_bytes = 0;
    if (!p->ready) {
        p->w.u_bytes =
            KRN_QWINO_POINTS * krn_qwino_u_point(p->w.channels, KRN_TILE_LANES) * sizeof(int16_t);
        p->weight_bytes = TAPS * ((p->w.c.cg + 1) / 2 * 2) * p->w.lanes;
    }
    p->table_bytes = base_align_up(p->w.work.panels * KRN_TILE_LANES * 12 + CHANNELS_MAX, 64);
    return true;
}

/* Estimated time of an op, in 16-bit multiplications of one lane, fitted on AVX2 and, where an
 * instruction for dot products makes multiplications cheap, on Zen 4. */
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define DIRECT_COST 0.5 /* of a product of bytes, if one of 16 bits costs 1 */
#else
#define DIRECT_COST 1.0
#endif
#if defined(__AVX512VNNI__)
#define TILE_IN_COST 200.0 /* of a channel of one tile */
#define TILE_OUT_COST 700.0
#define FILTER_COST 100.0 /* of one filter */
#else
#define TILE_IN_COST 140.0
#define TILE_OUT_COST 480.0
#define FILTER_COST 120.0
#endif

static bool is_faster(const struct plan *p)
{
    double in = (double)p->w.c.cg, out = (double)p->w.lanes, tiles = (double)p->w.work.tiles;
    double pixels = (double)(p->w.c.y.n * p->w.c.y.h * p->w.c.y.w);
    double times =
        p->ready ? 0 : (double)((p->w.work.tiles + KRN_WINO_TILES_MAX - 1) / KRN_WINO_TILES_MAX);

    return tiles * (KRN_QWINO_POINTS * in * out + in * TILE_IN_COST + out * TILE_OUT_COST) +
               times * in * out * FILTER_COST <
           DIRECT_COST * pixels * TAPS * in * out;
}

/* w - zero of byte @at, of output @o */
static int32_t weight_at(const struct mdl_model *m, const struct mdl_op *op, size_t o, size_t at)
{
    uint8_t byte = krn_const_ptr(m, op->in[1])[at];
    int32_t zero = op->quant->w_zero ? op->quant->w_zero[o] : 0;

    return (m->tensors[op->in[1]].dtype == MDL_I8 ? (int8_t)byte : byte) - zero;
}

/* The sums of the positive and of the negative weights of an output. */
struct signs {
    int64_t up, down;
};
static struct signs signs_of(const struct mdl_model *m, const struct mdl_op *op, size_t o,
                             size_t count)
{
    struct signs s = {0, 0};

    for (size_t i = 0; i < count; i++) {
        int32_t w = weight_at(m, op, o, o * count + i);

        s.up += w > 0 ? w : 0;
        s.down += w < 0 ? w : 0;
    }
    return s;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct plan p;

    if (!plan_of(m, op, &p) || !is_faster(&p)) {
        return false;
    }
    for (size_t o = 0; o < p.w.c.og; o++) {
        struct signs s = signs_of(m, op, o, TAPS * p.w.c.cg);

        if ((s.up - s.down) * UINT8_MAX >= KRN_QWINO_RANGE) {
            return false;
        }
    }
    return true;
}

/* lanes of whole panels */
static size_t lanes_of(const struct plan *p)
{
    return p->w.work.panels * KRN_TILE_LANES;
}

/* Packed: centres, biases and scales by lane, a row of the zero point, weights. */
static int32_t *centre_of(const void *packed)
{
    return (int32_t *)(uintptr_t)packed;
}
static struct krn_quant_lanes table_of(const struct plan *p, const void *packed)
{
    return krn_quant_lanes_at(centre_of(packed) + lanes_of(p), lanes_of(p));
}

KRN_PACKED_BYTES_BY(struct plan, plan_of, p.table_bytes + p.weight_bytes)

/* output of lane @l of a panel, or og and beyond */
static size_t output_of(const struct plan *p, size_t panel, size_t l)
{
    return panel * KRN_TILE_LANES +
           (krn_wino_panel_lanes(&p->w, panel) == KRN_VL ? l : vq_channel(l / KRN_VL, l % KRN_VL));
}

static void pack_table(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                       void *dst)
{
    int64_t low = (p->x_signed ? INT8_MIN : 0) - p->x_zero, high = low + UINT8_MAX;
    struct krn_quant_lanes table = table_of(p, dst);

    for (size_t i = 0; i < lanes_of(p); i++) {
        size_t panel = i / KRN_TILE_LANES, l = i % KRN_TILE_LANES, o = output_of(p, panel, l);
        struct signs s;
        int64_t middle;

        if (l >= krn_wino_panel_lanes(&p->w, panel) || o >= p->w.c.og) {
            continue;
        }
        s = signs_of(m, op, o, TAPS * p->w.c.cg);
        middle = ((s.up + s.down) * (low + high)) / 2;
        centre_of(dst)[i] = (int32_t)(0u - 64u * (uint32_t)middle);
        table.bias[i] =
            (int32_t)((uint32_t)(op->quant->bias ? op->quant->bias[o] : 0) + (uint32_t)middle);
        table.scale[i] = op->scale[o];
    }
    memset(table.end, (uint8_t)p->x_zero, CHANNELS_MAX);
}

/* the weights of tap @t, channel @c by lane @l of a panel */
static int32_t lane_weight(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                           size_t panel, size_t l, size_t c, size_t t)
{
    size_t o = output_of(p, panel, l);

    return o < p->w.c.og && c < p->w.c.cg ? weight_at(m, op, o, (o * p->w.c.cg + c) * TAPS + t) : 0;
}

static void pack_bytes(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                       int8_t *dst)
{
    size_t pairs = (p->w.c.cg + 1) / 2;

    for (size_t panel = 0; panel < p->w.work.panels; panel++) {
        size_t lanes = krn_wino_panel_lanes(&p->w, panel);

        for (size_t l = 0; l < lanes; l++) {
            for (size_t c = 0; c < 2 * pairs; c++) {
                for (size_t t = 0; t < TAPS; t++) {
                    dst[((t * pairs + c / 2) * lanes + l) * 2 + c % 2] =
                        (int8_t)lane_weight(m, op, p, panel, l, c, t);
                }
            }
        }
        dst += TAPS * pairs * lanes * 2;
    }
}

static void pack_ready(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                       int16_t *dst)
{
    int16_t taps[TAPS * 2 * KRN_TILE_LANES];

    for (size_t b = 0; b < p->w.work.blocks; b++) {
        struct krn_range r = krn_wino_block(&p->w, b);

        for (size_t panel = 0; panel < p->w.work.panels; panel++) {
            size_t lanes = krn_wino_panel_lanes(&p->w, panel), count = r.end - r.begin;
            size_t u_point = krn_qwino_u_point(count, lanes);

            for (size_t c = 0; c < count; c += 2) {
                for (size_t i = 0; i < TAPS * 2 * lanes; i++) {
                    taps[i] = (int16_t)lane_weight(m, op, p, panel, i / 2 % lanes,
                                                   r.begin + c + i % 2, i / 2 / lanes);
                }
                KRN_ISA_FN(krn_qwino_filter)
                (taps, false, 2 * lanes, 2 * lanes, dst + c * lanes, u_point);
            }
            dst += KRN_QWINO_POINTS * u_point;
        }
    }
}

static void pack_all(const struct mdl_model *m, const struct mdl_op *op, const struct plan *p,
                     void *dst)
{
    memset(dst, 0, p->table_bytes + p->weight_bytes);
    pack_table(m, op, p, dst);
    if (p->ready) {
        pack_ready(m, op, p, (int16_t *)((uint8_t *)dst + p->table_bytes));
    } else {
        pack_bytes(m, op, p, (int8_t *)dst + p->table_bytes);
    }
}

KRN_PACK_BY(struct plan, plan_of, pack_all(m, op, &p, dst))
KRN_WINO_SCRATCH(f4x4, struct plan, plan_of)

struct job {
    struct krn_wino_job team;
    struct plan p;
    struct krn_quant_epilogue epilogue;
    const uint8_t *weights;
};

static const struct job *job_of(const struct krn_wino_job *team)
{
    return base_container_of(team, const struct job, team);
}

static void transform(const struct krn_wino_job *team, const void *const *at, size_t channels,
                      void *v, size_t v_point)
{
    const struct plan *p = &job_of(team)->p;

    KRN_ISA_FN(krn_qwino_input)(at, p->x_signed, p->x_zero, channels, v, v_point);
}

static void multiply(const struct krn_wino_job *team, size_t block, size_t panel, size_t tiles,
                     const void *v, void *u, void *m)
{
    const struct job *j = job_of(team);
    const struct plan *p = &j->p;
    struct krn_range channels = krn_wino_block(&p->w, block);
    size_t count = channels.end - channels.begin, lanes = krn_wino_panel_lanes(&p->w, panel);
    size_t all = (p->w.c.cg + 1) / 2 * 2; /* channels with stored weights */
    size_t u_point = krn_qwino_u_point(count, lanes);
    struct krn_wino_product r = {
        .points = KRN_QWINO_POINTS,
        .tiles = tiles,
        .units = (count + 1) / 2,
        .lanes = lanes,
        .v = v,
        .v_point = krn_wino_v_point(team->plan, tiles, count) / 2,
        .m = m,
        .m_point = krn_wino_m_point(team->plan, tiles),
        .u_point = u_point / 2,
        .add = block > 0,
    };

    if (p->ready) {
        size_t before = ready_elements(p, count, panel);

        for (size_t b = 0; b < block; b++) {
            struct krn_range other = krn_wino_block(&p->w, b);

            before += ready_elements(p, other.end - other.begin, p->w.work.panels);
        }
        r.u = (const int16_t *)(const void *)j->weights + before;
    } else {
        r.u = u;
        KRN_ISA_FN(krn_qwino_filter)
        (j->weights + TAPS * all * panel * KRN_TILE_LANES + channels.begin * lanes, true,
         all * lanes, (count + 1) / 2 * 2 * lanes, u, u_point);
    }
    KRN_ISA_FN(krn_qwino_product)(&r);
}

static void output(const struct krn_wino_job *team, size_t panel, size_t first, size_t tiles,
                   const void *m)
{
    const struct job *j = job_of(team);
    const struct krn_img *y = &j->p.w.c.y;
    size_t from = panel * KRN_TILE_LANES, lanes = krn_wino_panel_lanes(&j->p.w, panel);
    struct krn_quant_lanes table = table_of(&j->p, team->call->packed);
    const int32_t *products = m;
    struct krn_qwino_output o = {
        .epilogue = &j->epilogue,
        .m_point = krn_wino_m_point(team->plan, tiles),
        .lanes = lanes,
        .channels = krn_wino_panel_used(&j->p.w, panel),
        .centre = centre_of(team->call->packed) + from,
        .bias = table.bias + from,
        .scale = table.scale + from,
        .y = (uint8_t *)team->call->out[0] + from * mdl_dtype_bytes(j->epilogue.y_type),
        .res = j->epilogue.res ? j->epilogue.res + from : NULL,
        .y_pixel = y->pixel,
        .y_width = y->w,
    };

    for (size_t t = first; t < first + tiles; t++) {
        struct krn_wino_place to = krn_wino_place(&j->p.w, t);

        KRN_ISA_FN(krn_qwino_output)(&o, products, to.pixel, to.rows, to.cols);
        products += lanes;
    }
}

static void run(const struct krn_call *call)
{
    struct job j;

    if (!plan_of(call->model, call->op, &j.p)) {
        return;
    }
    krn_wino_take_frames(&j.p.w, call->frames);
    j.epilogue = krn_quant_epilogue_of(call);
    j.weights = (const uint8_t *)call->packed + j.p.table_bytes;
    j.team = (struct krn_wino_job){.call = call,
                                   .plan = &j.p.w,
                                   .zeros = table_of(&j.p, call->packed).end,
                                   .transform = transform,
                                   .multiply = multiply,
                                   .output = output};
    krn_wino_run(&j.team);
}

KRN_ISA_PRIMITIVE(conv_i8_nhwc_f4x4, MDL_OP_CONV, KRN_QUANT_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = f4x4_scratch,
                  .frames_at_once = f4x4_frames, .frames_scratch_bytes = f4x4_frames_scratch,
                  .run = run);
