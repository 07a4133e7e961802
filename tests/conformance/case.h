/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/conformance/case.h - one stored case: a model, its inputs and expected outputs
 *
 * A case is run in several ways: fused on the default primitives ("default"), the same divided for
 * a team of three ("parts"; "team": also on its threads), fused on the references with inputs and
 * outputs at odd addresses ("reference"), and unfused on the references ("unfused").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CASE_FILES_MAX 32u

struct conformance_case {
    const char *name, *model;
    const char *inputs[CASE_FILES_MAX]; /* *.pb, *.f32, or one *.ppm; in graph order */
    size_t input_count;
    const char *outputs[CASE_FILES_MAX];
    size_t output_count;
    /* accept |y - expected| <= atol + rtol |expected| + max_tol max|expected| */
    double rtol, atol, max_tol;
    bool ties; /* integers may differ by 1: the expected ones were rounded from other sums */
    bool top;  /* the largest element of every output must have the same index */
    /* for a *.ppm */
    float mean[3], std;
    int bgr;
    const char *shapes; /* of inputs whose dimensions are open, or NULL */
    const char *ways;   /* comma-separated names of ways to run, or NULL for all but
                         team */
};

enum verdict { CASE_PASS, CASE_FAIL, CASE_UNSUPPORTED };

/** case_run() - runs a case. @text: the failure, or the largest error. Return: the verdict. */
enum verdict case_run(const struct conformance_case *c, char text[1024]);
