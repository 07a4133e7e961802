/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/predict.h - Pipe-it's performance predictor, equations 5 to 8, fitted by least squares
 *
 * One core (eq. 5):  T = b1 N + b2 K + b3 M + b4 NK + b5 KM + b6 NM + b7 NMK + b8
 * H cores (eq. 8):   T_H = (T - a1)/H + a2 N/(ts H) + a3 + a4 T (1 - 1/H)
 * N, K, M are the matrices of the convolution as a product (eq. 4). a4 is ours, the share of the
 * work that more cores do not speed up: as printed, eq. 8 divides all of T by H. Fully connected
 * layers (N = 1) have fits of their own (section V-D), and so have depthwise convolutions, which
 * are M products of N x K by K x 1: for them T = b3 M + b5 KM + b6 NM + b7 NMK + b8, since no image
 * matrix is common to their columns. The paper counts them as layers and does not say how it
 * predicts them. One eq. 5 for all convolutions misses those that are computed in another way, so
 * three kinds have fits of their own, and that of all where they have too few rows:
 *     a product and nothing else (1x1 or strided):  T = b4 NK + b5 KM + b6 NM + b7 NMK + b8
 *     3x3 with stride 1, by Winograd's transform of N' pixels in whole tiles, or as the others:
 *                                      the same + b1 N'K + b2 N'M + b3 N'MK
 * No b is below 0: terms that would be are left out, one by one, for they have no sense outside
 * of what was measured. Fits minimise the relative error (rows weighted by 1/T), so that light
 * layers count; the paper does not say which it minimises.
 */
#pragma once

#include "tuner/problem.h"

#define TUN_TRANSFORMED 4.0 /* outputs in a row and a column that are transformed at once */
#define TUN_TILE 16.0       /* ts of eq. 6: rows of the image matrix an iteration takes */

struct tun_bench { /* one micro-benchmark, or what is to be predicted */
    double n, k, m;
    uint16_t width;
    double ns;
    enum tun_layer layer; /* TUN_DEPTHWISE: k: terms of a sum; m: channels */
};
struct tun_fit { /* of one kind of layer */
    bool has, has_wide;
    double b[8], a[4];
    double error, error_wide; /* mean relative error on what it was fitted to: one core, several */
};
struct tun_predictor { /* of one EP; plain data, may be saved */
    struct tun_fit fits[TUN_LAYERS];
};

/** tun_predictor_fit() - @benches: [count], any order, of one EP; width 1 for eq. 5, wider ones
 * for eq. 8. What has too few rows stays unset; wide teams are then those of convolutions.
 * Return: 0, or -EINVAL when nothing could be fitted. */
int tun_predictor_fit(const struct tun_bench *benches, size_t count, struct tun_predictor *ret);

/** tun_predict_ns() - @of: its ns is not read. Return: ns, at least 1; < 0 when the fit does not
 * cover it. */
double tun_predict_ns(const struct tun_predictor *f, const struct tun_bench *of);

/** tun_predict_costs() - fills the cells of @ep that are unknown or TUN_PREDICTED for the units
 * whose matrices are known. Return: cells it set. */
size_t tun_predict_costs(struct tun_problem *p, size_t ep, const struct tun_predictor *f);

/** tun_layer_of_conv() - @taps: of the kernel; @strided: in any direction; @depthwise: each channel
 * by itself */
static inline enum tun_layer tun_layer_of_conv(size_t taps, bool strided, bool depthwise)
{
    return depthwise              ? TUN_DEPTHWISE
           : strided || taps == 1 ? TUN_PLAIN
           : taps == 9            ? TUN_CONV3
                                  : TUN_CONV;
}

/** tun_gemm_of_conv() - Pipe-it eq. 3 and 4. */
void tun_gemm_of_conv(size_t out_h, size_t out_w, size_t kernel_h, size_t kernel_w, size_t in_ch,
                      size_t out_ch, double *ret_n, double *ret_k, double *ret_m);
