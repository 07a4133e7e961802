/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/svg.h - charts as SVG inside an HTML page: lines, points, grouped bars
 *
 * Colours come from the style sheet of the page or of the file (classes s0..s11), so that a chart
 * follows the reader's theme.
 * Texts are escaped here. A chart is begun, drawn into, ended; nothing is kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PSIM_SERIES_MAX 12u

struct psim_axis {
    const char *label;
    double min, max; /* max > min; log: min > 0 */
    bool log;
};

struct psim_chart {
    FILE *to; /* borrowed */
    struct psim_axis x, y;
    double width, height;      /* of the chart without its legend, px; 0: 760 x 340 */
    const char *id;            /* of the <svg> element, and of its file */
    const char *const *legend; /* one entry a series, in the order of their numbers */
    size_t legend_count;
};

/** psim_svg_text() - writes text with &, <, >, " escaped. */
void psim_svg_text(FILE *to, const char *text);

/** psim_svg_style() - the style sheet that charts need, theme included. */
void psim_svg_style(FILE *to);

/** psim_svg_begin() - opens the chart with legend, frame, grid and ticks; without ticks on x where
 * its label is NULL (bars). psim_svg_end() closes it. */
void psim_svg_begin(struct psim_chart *c, const char *title);
void psim_svg_end(struct psim_chart *c);

/** psim_svg_steps() - a curve that keeps its value until the next point: [count] each. */
void psim_svg_steps(const struct psim_chart *c, size_t series, const double *x, const double *y,
                    size_t count);
void psim_svg_line(const struct psim_chart *c, size_t series, const double *x, const double *y,
                   size_t count);
/** psim_svg_point() - @note: shown when pointed at. */
void psim_svg_point(const struct psim_chart *c, size_t series, double x, double y, bool large,
                    const char *note);
/** psim_svg_bars() - @values: [groups][series], negative: no bar; @names: [groups]. The chart's x
 * axis must be 0..groups. */
void psim_svg_bars(const struct psim_chart *c, const char *const *names, size_t groups,
                   const char *const *series_names, size_t series, const double *values);
