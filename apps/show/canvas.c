/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/show/canvas.h"

#include <math.h>

#include "apps/show/letters.h"

#define BOX_LINES 10 /* of a box's smaller side, at most one is its line */
#define DOTS 32      /* of what has points, at most two are the width of one */

struct canvas canvas_on(uint32_t width, uint32_t height, const struct canvas_part *parts,
                        uint32_t part_count, bool yuv)
{
    uint32_t small = base_min(width, height);
    struct canvas c = {.part_count = part_count, .yuv = yuv, .width = width, .height = height};

    for (uint32_t i = 0; i < part_count; i++) {
        c.part[i] = parts[i];
    }
    c.pen = small < 400 ? 1 : (int)((small + 200) / 400);
    return c;
}

bool canvas_init(struct canvas *c, const uint8_t *pixels, uint32_t width, uint32_t height,
                 uint32_t stride, uint32_t channels, bool bgr)
{
    uint8_t *rgb = malloc((size_t)width * height * 3);
    struct canvas_part parts[3];

    for (int i = 0; rgb && i < 3; i++) {
        parts[i] = (struct canvas_part){.first = rgb + i, .stride = (size_t)width * 3, .step = 3};
    }
    *c = rgb ? canvas_on(width, height, parts, 3, false) : (struct canvas){0};
    c->rgb = rgb;
    for (size_t y = 0; c->rgb && y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            const uint8_t *from = pixels + y * stride + x * channels;
            uint8_t *to = c->rgb + (y * width + x) * 3;

            to[0] = from[bgr ? 2 : 0];
            to[1] = from[channels == 3 ? 1 : 0];
            to[2] = from[channels == 3 && !bgr ? 2 : 0];
        }
    }
    return c->rgb != NULL;
}

void canvas_deinit(struct canvas *c)
{
    free(base_take(c->rgb));
}

uint32_t canvas_colour(size_t number)
{
    static const uint32_t colours[] = {0xe6194b, 0x3cb44b, 0x4363d8, 0xf58231, 0x911eb4, 0x008080,
                                       0xf032e6, 0x9a6324, 0x800000, 0x808000, 0x000075, 0x469990};

    return colours[number % base_array_count(colours)];
}

/* The value of part @i for 0xRRGGBB; BT.601, with 8 bits behind the point. */
static unsigned value_of(const struct canvas *c, uint32_t i, uint32_t colour)
{
    static const int yuv[3][4] = {{66, 129, 25, 16}, {-38, -74, 112, 128}, {112, -94, -18, 128}};
    int r = colour >> 16 & 0xff, g = colour >> 8 & 0xff, b = colour & 0xff;

    return c->yuv ? (unsigned)((yuv[i][0] * r + yuv[i][1] * g + yuv[i][2] * b + 128 +
                                256 * yuv[i][3]) >>
                               8)
                  : colour >> (16 - 8 * i) & 0xff;
}

/* A coordinate as a whole one in [0, most]. */
static int64_t inside(double v, uint32_t most)
{
    return !(v > 0) ? 0 : v > most ? most : (int64_t)v;
}

/* Fills [x1, x2) x [y1, y2); @keep of 2 parts stay. Values that stand for several pixels are those
 * of any pixel within. */
static void fill(struct canvas *c, double x1, double y1, double x2, double y2, uint32_t colour,
                 unsigned keep)
{
    int64_t left = inside(x1, c->width), right = inside(x2, c->width);
    int64_t top = inside(y1, c->height), bottom = inside(y2, c->height);

    for (uint32_t i = 0; left < right && top < bottom && i < c->part_count; i++) {
        const struct canvas_part *part = &c->part[i];
        unsigned to = value_of(c, i, colour) * (2 - keep);
        size_t first = (size_t)left >> part->across, last = (size_t)(right - 1) >> part->across;

        for (size_t y = (size_t)top >> part->down; y <= (size_t)(bottom - 1) >> part->down; y++) {
            uint8_t *p = part->first + y * part->stride + first * part->step;

            for (size_t x = first; x <= last; x++, p += part->step) {
                *p = (uint8_t)((*p * keep + to) / 2);
            }
        }
    }
}

void canvas_blend(struct canvas *c, double x1, double y1, double x2, double y2, uint32_t colour)
{
    fill(c, x1, y1, x2, y2, colour, 1);
}

void canvas_line(struct canvas *c, double x1, double y1, double x2, double y2, uint32_t colour)
{
    double far = 4.0 * (c->width + c->height), length = hypot(x2 - x1, y2 - y1);
    int steps = length < far ? (int)ceil(length) : 0; /* longer ones are not ours */

    for (int i = 0; i <= steps && length < far; i++) {
        double t = steps ? (double)i / steps : 0, half = c->pen / 2.0;
        double x = x1 + t * (x2 - x1), y = y1 + t * (y2 - y1);

        fill(c, floor(x - half + 0.5), floor(y - half + 0.5), floor(x - half + 0.5) + c->pen,
             floor(y - half + 0.5) + c->pen, colour, 0);
    }
}

void canvas_box(struct canvas *c, double x, double y, double width, double height, uint32_t colour)
{
    int pen = (int)fmax(1, fmin(2 * c->pen, fmin(width, height) / BOX_LINES));

    fill(c, x, y, x + width, y + pen, colour, 0);
    fill(c, x, y + height - pen, x + width, y + height, colour, 0);
    fill(c, x, y, x + pen, y + height, colour, 0);
    fill(c, x + width - pen, y, x + width, y + height, colour, 0);
}

void canvas_dot(struct canvas *c, double x, double y, double of, uint32_t colour)
{
    double half = floor(fmax(1, fmin(2 * c->pen, of / DOTS)));

    x = floor(x + 0.5);
    y = floor(y + 0.5);
    if (half < 2) { /* no room for a rim */
        fill(c, x, y, x + 1, y + 1, colour, 0);
        return;
    }
    fill(c, x - half, y - half, x + half, y + half, 0xffffff, 0);
    fill(c, x - half / 2, y - half / 2, x + half / 2, y + half / 2, colour, 0);
}

/* A letter of LETTERS_HIGH rows of LETTERS_WIDE dots. */
static void letter(struct canvas *c, double x, double y, char which)
{
    const uint8_t *rows = letters[which < ' ' || which > '~' ? '?' - ' ' : which - ' '];

    for (int r = 0; r < LETTERS_HIGH; r++) {
        for (int k = 0; k < LETTERS_WIDE; k++) {
            if (rows[r] >> (LETTERS_WIDE - 1 - k) & 1) {
                fill(c, x + k * c->pen, y + r * c->pen, x + (k + 1) * c->pen, y + (r + 1) * c->pen,
                     0xffffff, 0);
            }
        }
    }
}

void canvas_text_size(const struct canvas *c, const char *text, double *ret_width,
                      double *ret_height)
{
    *ret_height = (LETTERS_HIGH + 2) * c->pen;
    *ret_width = c->pen;
    for (; *text; text++) { /* not within a character */
        *ret_width += ((unsigned char)*text & 0xc0) == 0x80 ? 0 : (LETTERS_WIDE + 1) * c->pen;
    }
}

void canvas_text(struct canvas *c, double x, double y, const char *text, uint32_t colour)
{
    double step = (LETTERS_WIDE + 1) * c->pen, high, wide;

    canvas_text_size(c, text, &wide, &high);
    x = fmax(0, fmin(x, c->width - wide));
    y = fmax(high, fmin(y, c->height));
    fill(c, x, y - high, x + wide, y, colour, 0);
    for (x += c->pen; *text; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80) {
            letter(c, x, y - high + c->pen, *text);
            x += step;
        }
    }
}
