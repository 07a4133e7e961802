/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution: a team shares output rows, or channels if there are few rows.
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/f32/dw.h"

/* fewer rows per part would be shared unevenly; then parts take channels if there are many */
#define ROWS_PER_PART 8u
#define CHANNELS_PER_PART 64u

KRN_SUPPORTS_BY(struct krn_conv, krn_dw_of)
KRN_PACKED_BYTES_BY(struct krn_conv, krn_dw_of, krn_dw_packed(&p) * sizeof(float))
KRN_PACK_BY(struct krn_conv, krn_dw_of, KRN_ISA_FN(krn_dw_pack)(m, op, &p, dst))

struct job {
    const struct krn_call *call;
    struct krn_dw d;
    size_t parts;
};

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_conv *c = &j->d.c;
    struct krn_range rows = {0, c->y.n * c->y.h}, channels = {0, c->x.c};

    if (rows.end < ROWS_PER_PART * j->parts && channels.end >= CHANNELS_PER_PART * j->parts) {
        channels = krn_share(channels.end, BASE_CACHE_LINE_BYTES / sizeof(float), part, j->parts);
    } else {
        rows = krn_share(rows.end, 1, part, j->parts);
    }
    for (size_t row = rows.begin; row < rows.end && channels.begin < channels.end; row++) {
        const float *image = (const float *)j->call->in[0] + row / c->y.h * c->x.batch;
        size_t first = row * c->y.w;

        KRN_ISA_FN(krn_dw_row)
        (&j->d, image, row % c->y.h, (float *)j->call->out[0] + first * c->y.pixel, first,
         channels);
    }
}

KRN_RUN_PARTS_BY(struct job, krn_dw_of, d.c, part_run,
                 .d = {.epilogue = krn_epilogue_of(call), .packed = call->packed})

KRN_ISA_PRIMITIVE(conv_f32_nhwc_dw, MDL_OP_CONV, KRN_ISA_NEEDS, .supports = supports,
                  .packed_bytes = packed_bytes, .pack = pack, .run = run);
