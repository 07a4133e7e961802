/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/conv_igemm.h - a convolution by indirect GEMM; for conv_f32_nhwc_igemm.c and
 * conv_igemm_band.c only
 */
#pragma once

#include "kernels/f32/igemm.h"
#include "kernels/f32/input_rows.h"

struct krn_conv_igemm_plan {
    struct krn_conv c;
    bool band;
    bool dense;       /* one tap, whose pixels are at equal distances: no pointers */
    size_t taps, len; /* of the GEMM */
    size_t tiles_max; /* per chunk without a band */
    size_t band_rows; /* output rows per chunk with a band */
    size_t band_w, band_h;
    size_t part_bytes; /* scratch of one part */
};

struct krn_conv_igemm {
    const struct krn_call *call; /* of the convolution */
    struct krn_conv_igemm_plan p;
    struct krn_input_rows rows; /* for the band */
    struct krn_igemm g;
    const float *zeros;
    size_t parts;
    bool by_panels; /* parts share the panels, not the pixels */
};

/** krn_conv_igemm_bands() - computes chunks of output rows, each from a band of its own. @band:
 * scratch for one. */
void KRN_ISA_FN(krn_conv_igemm_bands)(const struct krn_conv_igemm *j, struct krn_range chunks,
                                      float *band);
