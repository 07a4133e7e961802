/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/svg.h"

#include <math.h>
#include <string.h>

#include "base.h"

#define LEFT 64.0
#define RIGHT 26.0
#define TOP 14.0
#define BOTTOM 46.0

void psim_svg_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        default:
            fputc(*text, to);
        }
    }
}

void psim_svg_style(FILE *to)
{
    static const char *const LIGHT[PSIM_SERIES_MAX] = {"#0b62a8", "#c2410c", "#15803d", "#7c3aed",
                                                       "#b91c62", "#8a6d00", "#0e7490", "#6b7280",
                                                       "#a16207", "#4d7c0f", "#be123c", "#334155"};
    static const char *const DARK[PSIM_SERIES_MAX] = {"#6cb6ff", "#ff9a62", "#5fd38d", "#b79cff",
                                                      "#ff85b8", "#e3c04b", "#5fd4e6", "#a8b0bb",
                                                      "#d9a441", "#a3d65c", "#ff8496", "#c3cede"};

    fputs(":root{color-scheme:light dark;--bg:#fff;--ink:#1f2328;--soft:#59636e;--rule:#d1d9e0;"
          "--grid:#eaeef2}",
          to);
    for (size_t i = 0; i < PSIM_SERIES_MAX; i++) {
        fprintf(to, ":root{--c%zu:%s}", i, LIGHT[i]);
    }
    fputs("\n@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--ink:#e6edf3;--soft:#9198a1;"
          "--rule:#3d444d;--grid:#21262d}",
          to);
    for (size_t i = 0; i < PSIM_SERIES_MAX; i++) {
        fprintf(to, ":root{--c%zu:%s}", i, DARK[i]);
    }
    fputs("}\nsvg{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}"
          "svg text{fill:var(--soft)}svg{background:var(--bg)}"
          "svg .grid{stroke:var(--grid)}svg .frame{stroke:var(--rule);fill:none}"
          "svg .line{fill:none;stroke-width:2;stroke-linejoin:round}"
          "\n",
          to);
    for (size_t i = 0; i < PSIM_SERIES_MAX; i++) {
        fprintf(to, ".s%zu{stroke:var(--c%zu)}.f%zu{fill:var(--c%zu)}", i, i, i, i);
    }
    /* the second half of the series is told apart without colour too */
    for (size_t i = 6; i < PSIM_SERIES_MAX; i++) {
        fprintf(to, ".line.s%zu{stroke-dasharray:6 3}", i);
    }
    fputc('\n', to);
}

static double share(const struct psim_axis *a, double v)
{
    double s = a->log ? (log(base_max(v, a->min)) - log(a->min)) / (log(a->max) - log(a->min))
                      : (v - a->min) / (a->max - a->min);

    return base_min(base_max(s, 0.0), 1.0);
}

static double px(const struct psim_chart *c, double x)
{
    return LEFT + share(&c->x, x) * (c->width - LEFT - RIGHT);
}

static double py(const struct psim_chart *c, double y)
{
    return c->height - BOTTOM - share(&c->y, y) * (c->height - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, about @count steps over the axis. */
static double nice_step(double range, double count)
{
    double raw = range / count, power = pow(10, floor(log10(raw))), f = raw / power;

    return power * (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10);
}

static void tick(const struct psim_chart *c, bool is_x, double v)
{
    if (is_x) {
        fprintf(c->to,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                px(c, v), px(c, v), TOP, c->height - BOTTOM, px(c, v), c->height - BOTTOM + 16, v);
    } else {
        fprintf(c->to,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, c->width - RIGHT, py(c, v), py(c, v), LEFT - 6, py(c, v) + 4, v);
    }
}

static void ticks(const struct psim_chart *c, bool is_x)
{
    const struct psim_axis *a = is_x ? &c->x : &c->y;

    if (a->log) {
        for (double v = pow(10, ceil(log10(a->min) - 1e-9)); v <= a->max * 1.0001; v *= 10) {
            tick(c, is_x, v);
        }
    } else {
        double step = nice_step(a->max - a->min, is_x ? 8 : 5);

        for (double i = ceil(a->min / step - 1e-9) + 0.0; i * step <= a->max + step * 1e-6; i++) {
            tick(c, is_x, i * step);
        }
    }
}

/* Entries in rows under the chart. Return: the height they take; draws them if @draw. */
static double legend(const struct psim_chart *c, bool draw)
{
    double x = LEFT, y = c->height + 4;

    for (size_t i = 0; i < c->legend_count; i++) {
        double width = 34 + 6.9 * (double)strlen(c->legend[i]);

        if (x + width > c->width && x > LEFT) {
            x = LEFT;
            y += 20;
        }
        if (draw) {
            fprintf(c->to,
                    "<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" "
                    "rx=\"2\"/><text x=\"%.1f\" y=\"%.1f\">",
                    i % PSIM_SERIES_MAX, x, y, x + 15, y + 9);
            psim_svg_text(c->to, c->legend[i]);
            fputs("</text>\n", c->to);
        }
        x += width;
    }
    return c->legend_count ? y + 20 - c->height : 0;
}

void psim_svg_begin(struct psim_chart *c, const char *title)
{
    c->width = c->width > 0 ? c->width : 760;
    c->height = c->height > 0 ? c->height : 340;
    fprintf(c->to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"%s\" viewBox=\"0 0 %.0f %.0f\" "
            "role=\"img\" aria-label=\"",
            c->id, c->width, c->height + legend(c, false));
    psim_svg_text(c->to, title);
    fputs("\">\n", c->to);
    legend(c, true);
    ticks(c, false);
    if (c->x.label) {
        ticks(c, true);
        fprintf(c->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                (LEFT + c->width - RIGHT) / 2, c->height - 8);
        psim_svg_text(c->to, c->x.label);
        fputs("</text>\n", c->to);
    }
    fprintf(c->to,
            "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
            "<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            LEFT, TOP, c->width - LEFT - RIGHT, c->height - TOP - BOTTOM,
            (TOP + c->height - BOTTOM) / 2);
    psim_svg_text(c->to, c->y.label ? c->y.label : "");
    fputs("</text>\n", c->to);
}

void psim_svg_end(struct psim_chart *c)
{
    fputs("</svg>\n", c->to);
}

static void path(const struct psim_chart *c, size_t series, const double *x, const double *y,
                 size_t count, bool steps)
{
    if (count == 0) {
        return;
    }
    fprintf(c->to, "<path class=\"line s%zu\" d=\"M%.1f %.1f", series % PSIM_SERIES_MAX,
            px(c, x[0]), py(c, y[0]));
    for (size_t i = 1; i < count; i++) {
        if (steps) {
            fprintf(c->to, "H%.1fV%.1f", px(c, x[i]), py(c, y[i]));
        } else {
            fprintf(c->to, "L%.1f %.1f", px(c, x[i]), py(c, y[i]));
        }
    }
    fputs("\"/>\n", c->to);
}

void psim_svg_steps(const struct psim_chart *c, size_t series, const double *x, const double *y,
                    size_t count)
{
    path(c, series, x, y, count, true);
}

void psim_svg_line(const struct psim_chart *c, size_t series, const double *x, const double *y,
                   size_t count)
{
    path(c, series, x, y, count, false);
}

void psim_svg_point(const struct psim_chart *c, size_t series, double x, double y, bool large,
                    const char *note)
{
    fprintf(c->to, "<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>",
            series % PSIM_SERIES_MAX, px(c, x), py(c, y), large ? 6 : 3);
    psim_svg_text(c->to, note);
    fputs("</title></circle>\n", c->to);
}

void psim_svg_bars(const struct psim_chart *c, const char *const *names, size_t groups,
                   const char *const *series_names, size_t series, const double *values)
{
    double group = (c->width - LEFT - RIGHT) / (double)groups, bar = group * 0.84 / (double)series;

    for (size_t g = 0; g < groups; g++) {
        double left = LEFT + (double)g * group;

        for (size_t s = 0; s < series; s++) {
            double v = values[g * series + s];

            if (v < 0) {
                continue;
            }
            fprintf(c->to,
                    "<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                    "<title>",
                    s % PSIM_SERIES_MAX, left + group * 0.08 + (double)s * bar, py(c, v),
                    base_max(bar - 1, 1.0), c->height - BOTTOM - py(c, v));
            psim_svg_text(c->to, names[g]);
            fputs(", ", c->to);
            psim_svg_text(c->to, series_names[s]);
            fprintf(c->to, ": %.3f</title></rect>\n", v);
        }
        fprintf(c->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", left + group / 2,
                c->height - BOTTOM + 16);
        psim_svg_text(c->to, names[g]);
        fputs("</text>\n", c->to);
    }
}
