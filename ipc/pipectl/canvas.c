/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pipectl/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "ipc/pipectl/letters.h"

bool canvas_init(struct canvas *c, const uint8_t *pixels, uint32_t width, uint32_t height,
                 uint32_t stride, uint32_t channels, bool bgr)
{
    uint32_t small = base_min(width, height);

    *c = (struct canvas){
        .rgb = malloc((size_t)width * height * 3), .width = width, .height = height};
    c->pen = small < 400 ? 1 : (int)((small + 200) / 400);
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
    free(c->rgb);
    c->rgb = NULL;
}

uint32_t canvas_colour(size_t number)
{
    static const uint32_t colours[] = {0xe6194b, 0x3cb44b, 0x4363d8, 0xf58231, 0x911eb4, 0x008080,
                                       0xf032e6, 0x9a6324, 0x800000, 0x808000, 0x000075, 0x469990};

    return colours[number % base_array_count(colours)];
}

/* A coordinate as a whole one in [0, most]. */
static int64_t inside(double v, uint32_t most)
{
    return !(v > 0) ? 0 : v > most ? most : (int64_t)v;
}

/* Fills [x1, x2) x [y1, y2); @keep of 2 parts stay. */
static void fill(struct canvas *c, double x1, double y1, double x2, double y2, uint32_t colour,
                 unsigned keep)
{
    int64_t left = inside(x1, c->width), right = inside(x2, c->width);
    int64_t bottom = inside(y2, c->height);

    for (int64_t y = inside(y1, c->height); y < bottom; y++) {
        for (int64_t x = left; x < right; x++) {
            uint8_t *p = c->rgb + ((size_t)y * c->width + (size_t)x) * 3;

            for (int k = 0; k < 3; k++) {
                unsigned to = colour >> (16 - 8 * k) & 0xff;

                p[k] = (uint8_t)((p[k] * keep + to * (2 - keep)) / 2);
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
    int pen = 2 * c->pen;

    fill(c, x, y, x + width, y + pen, colour, 0);
    fill(c, x, y + height - pen, x + width, y + height, colour, 0);
    fill(c, x, y, x + pen, y + height, colour, 0);
    fill(c, x + width - pen, y, x + width, y + height, colour, 0);
}

void canvas_dot(struct canvas *c, double x, double y, uint32_t colour)
{
    fill(c, x - 2 * c->pen, y - 2 * c->pen, x + 2 * c->pen, y + 2 * c->pen, 0xffffff, 0);
    fill(c, x - c->pen, y - c->pen, x + c->pen, y + c->pen, colour, 0);
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

void canvas_text(struct canvas *c, double x, double y, const char *text, uint32_t colour)
{
    double step = (LETTERS_WIDE + 1) * c->pen, high = (LETTERS_HIGH + 2) * c->pen, wide = c->pen;

    for (const char *p = text; *p; p++) {
        wide += ((unsigned char)*p & 0xc0) == 0x80 ? 0 : step; /* not within a character */
    }
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

int canvas_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes)
{
    size_t n = strlen(path);

    return n >= 4 && strcmp(path + n - 4, ".png") == 0
               ? ctl_png_write(c, path, ret_error, error_bytes)
               : ctl_jpeg_write(c, path, ret_error, error_bytes);
}
