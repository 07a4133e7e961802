/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl optimise --svg: a chart of the choices, time against packed bytes. */
#include <math.h>
#include <stdio.h>

#include "ipc/pipectl/pipectl.h"

#define WIDTH 680.0
#define HEIGHT 420.0
#define LEFT 70.0
#define RIGHT 30.0
#define TOP 50.0
#define BOTTOM 60.0
#define ROOM 0.1 /* margin at both ends, as a share of the range */
#define TICKS 6.0

struct axis {
    double least, most, step;
};

static double ms_of(const json_t *entry)
{
    return ctl_real(entry, "ms");
}

static double mb_of(const json_t *entry)
{
    return ctl_real(entry, "packed_bytes") / 1e6;
}

static struct axis axis_over(const json_t *front, double (*of)(const json_t *entry))
{
    double least = INFINITY, most = 0;
    const json_t *entry;
    size_t i;

    json_array_foreach(front, i, entry)
    {
        least = base_min(least, of(entry));
        most = base_max(most, of(entry));
    }
    double range = most > least ? most - least : base_max(most, 1e-3);
    double raw = range / TICKS, power = pow(10, floor(log10(raw))), f = raw / power;

    return (struct axis){.least = base_max(least - ROOM * range, 0.0),
                         .most = most + ROOM * range,
                         .step = power * (f < 1.5   ? 1
                                          : f < 3.5 ? 2
                                          : f < 7.5 ? 5
                                                    : 10)};
}

static double share(const struct axis *a, double v)
{
    return (v - a->least) / (a->most - a->least);
}

static double px(const struct axis *ms, double v)
{
    return LEFT + share(ms, v) * (WIDTH - LEFT - RIGHT);
}

static double py(const struct axis *mb, double v)
{
    return HEIGHT - BOTTOM - share(mb, v) * (HEIGHT - TOP - BOTTOM);
}

static void write_axes(FILE *f, const struct axis *ms, const struct axis *mb)
{
    for (double i = ceil(ms->least / ms->step); i * ms->step <= ms->most; i++) {
        double x = px(ms, i * ms->step);

        fprintf(f,
                "<path class=\"grid\" d=\"M%.1f %.0fV%.0f\"/>"
                "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%g</text>\n",
                x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, i * ms->step);
    }
    for (double i = ceil(mb->least / mb->step); i * mb->step <= mb->most; i++) {
        double y = py(mb, i * mb->step);

        fprintf(f,
                "<path class=\"grid\" d=\"M%.0f %.1fH%.0f\"/>"
                "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, i * mb->step);
    }
    fprintf(f,
            "<path d=\"M%.0f %.0fV%.0fH%.0f\" fill=\"none\" stroke=\"black\"/>\n"
            "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">ms a frame on one core</text>\n"
            "<text x=\"%.0f\" y=\"%.0f\">MB of packed weights</text>\n",
            LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16,
            LEFT - 50, TOP - 14);
}

/* Draws steps: a choice holds until the next smaller one. Then a point with a note for each. */
static void write_front(FILE *f, const json_t *front, const struct axis *ms, const struct axis *mb)
{
    const json_t *entry;
    size_t i;

    fprintf(f, "<path fill=\"none\" stroke=\"steelblue\" stroke-width=\"2\" d=\"");
    json_array_foreach(front, i, entry)
    {
        if (i == 0) {
            fprintf(f, "M%.1f %.1f", px(ms, ms_of(entry)), py(mb, mb_of(entry)));
        } else {
            fprintf(f, "H%.1fV%.1f", px(ms, ms_of(entry)), py(mb, mb_of(entry)));
        }
    }
    fprintf(f, "\"/>\n");
    json_array_foreach(front, i, entry)
    {
        fprintf(f,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"steelblue\"><title>%.3f ms, %.2f "
                "MB</title></circle>\n",
                px(ms, ms_of(entry)), py(mb, mb_of(entry)), ms_of(entry), mb_of(entry));
    }
    entry = json_array_get(front, 0);
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">fastest: %.3g ms, %.3g MB</text>\n",
            px(ms, ms_of(entry)) + 10, py(mb, mb_of(entry)) - 6, ms_of(entry), mb_of(entry));
    entry = json_array_get(front, json_array_size(front) - 1);
    if (json_array_size(front) > 1) {
        fprintf(f,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">smallest: %.3g ms, %.3g "
                "MB</text>\n",
                px(ms, ms_of(entry)) - 6, py(mb, mb_of(entry)) + 16, ms_of(entry), mb_of(entry));
    }
}

int ctl_front_svg(const char *path, const json_t *front)
{
    struct axis ms, mb;
    FILE *f = fopen(path, "we");

    if (!f) {
        ctl_say("%s: %m", path);
        return CTL_FAILED;
    }
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>.grid{stroke:#e5e7eb;fill:none}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%.0f\" y=\"20\" font-size=\"14\">Choices of primitives: time against "
            "memory</text>\n",
            WIDTH, HEIGHT, LEFT - 50);
    if (json_array_size(front) > 0) {
        ms = axis_over(front, ms_of);
        mb = axis_over(front, mb_of);
        write_axes(f, &ms, &mb);
        write_front(f, front, &ms, &mb);
    }
    fprintf(f, "</svg>\n");
    if (fclose(f) != 0) {
        ctl_say("%s: %m", path);
        return CTL_FAILED;
    }
    return CTL_DONE;
}
