/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/predict.h - Pipe-it's performance predictor, equations 5 to 8, fitted by least squares
 *
 * One core (eq. 5):  T = b1 N + b2 K + b3 M + b4 NK + b5 KM + b6 NM + b7 NMK + b8
 * H cores (eq. 8):   T_H = (T - a1)/H + a2 N/(ts H) + a3
 * N, K, M are the matrices of the convolution as a product (eq. 4). Fully connected layers (N = 1)
 * have a fit of their own (section V-D). Fits minimise the relative error (rows weighted by 1/T),
 * so that light layers count; the paper does not say which it minimises.
 */
#pragma once

#include "tuner/problem.h"

#define TUN_TILE 16.0 /* ts of eq. 6: rows of the image matrix an iteration takes */

struct tun_bench { /* one micro-benchmark */
    double n, k, m;
    uint16_t width;
    double ns;
};
struct tun_predictor {     /* of one EP; plain data, may be saved */
    double conv[8], fc[8]; /* b1..b8 */
    double alpha[3];       /* a1..a3 */
    bool has_conv, has_fc, has_alpha;
    double error_conv, error_fc, error_multi; /* mean relative error on what it was fitted to */
};

/** tun_predictor_fit() - @benches: [count], any order, of one EP; width 1 for eq. 5, wider ones
 * for eq. 8. What has too few rows stays unset. Return: 0, or -EINVAL when nothing could be fitted.
 */
int tun_predictor_fit(const struct tun_bench *benches, size_t count, struct tun_predictor *ret);

/** tun_predict_ns() - @width >= 1. Return: ns, at least 1; < 0 when the fit does not cover it. */
double tun_predict_ns(const struct tun_predictor *f, double n, double k, double m, size_t width);

/** tun_predict_costs() - fills the cells of @ep that are unknown or TUN_PREDICTED for the units
 * whose matrices are known. Return: cells it set. */
size_t tun_predict_costs(struct tun_problem *p, size_t ep, const struct tun_predictor *f);

/** tun_gemm_of_conv() - Pipe-it eq. 3 and 4. */
void tun_gemm_of_conv(size_t out_h, size_t out_w, size_t kernel_h, size_t kernel_w, size_t in_ch,
                      size_t out_ch, double *ret_n, double *ret_k, double *ret_m);
