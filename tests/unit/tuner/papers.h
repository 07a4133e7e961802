/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/tuner/papers.h - what papers compute of configurations and no search needs: figures
 * that they print, to be computed again */
#pragma once

#include "tuner/search/staged.h"

/**
 * paper_cv() - @layers: [stages] units per stage, >= 1 each, of @weight [sum of layers]
 * sigma is the population's standard deviation (divided by the number of stages): it gives every
 * figure of the paper's table 7, which are percent and cut off, not rounded (51.49 is printed as
 * 51.4, 56.57 as 56.5, 35.36 as 35). The sample's gives none of those that are not 0.
 * Return: a fraction; 0 where all weights are 0.
 */
double paper_cv(const double *weight, const uint16_t *layers, size_t stages);

/** paper_pipelines() - Pipe-it eq. 1 summed over p = 2..@stages: pipelines of big stages
 * before small. */
double paper_pipelines(size_t big, size_t small, size_t stages);
/** paper_points() - Pipe-it eq. 2: design points for @layers layers. */
double paper_points(size_t layers, size_t big, size_t small);

/** paper_space_log10() - its decimal logarithm, always finite. */
double paper_space_log10(enum tun_encoding encoding, size_t units, size_t places);
