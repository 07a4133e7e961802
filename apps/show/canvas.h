/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/show/canvas.h - draws on a picture in memory
 *
 * A picture is one to three parts: R, G, B; or Y, U, V; or Y alone. Everything is clipped: any
 * coordinate may be given. Threads: any; one at a time for a canvas.
 */
#pragma once

#include "base/base.h"

/* Where the values of one part are. A value stands for 2^across x 2^down pixels. */
struct canvas_part {
    uint8_t *first;
    size_t stride; /* bytes from row to row */
    uint32_t step; /* bytes from value to value */
    uint32_t across, down;
};

struct canvas {
    uint8_t *rgb; /* owned: [height][width][3]; NULL: the picture is the caller's */
    struct canvas_part part[3];
    uint32_t part_count;
    bool yuv; /* as in BT.601 with 16 to 235; one part: Y alone */
    uint32_t width, height;
    int pen; /* width of lines, and size of a dot of letters, in pixels */
};

/** canvas_on() - Return: a canvas on the caller's picture, which it borrows. @parts: @part_count of
 * them. canvas_deinit() is not needed. */
struct canvas canvas_on(uint32_t width, uint32_t height, const struct canvas_part *parts,
                        uint32_t part_count, bool yuv);
/** canvas_init() - copies a picture. @channels: 3, or 1 for grey; @bgr: the other order; @stride:
 * bytes from row to row. Return: false: out of memory. */
bool canvas_init(struct canvas *c, const uint8_t *pixels, uint32_t width, uint32_t height,
                 uint32_t stride, uint32_t channels, bool bgr);
void canvas_deinit(struct canvas *c);
/** canvas_colour() - Return: one of some well distinguishable colours, 0xRRGGBB. */
uint32_t canvas_colour(size_t number);
/** canvas_blend() - mixes half of @colour into a rectangle [x1, x2) x [y1, y2). */
void canvas_blend(struct canvas *c, double x1, double y1, double x2, double y2, uint32_t colour);
void canvas_line(struct canvas *c, double x1, double y1, double x2, double y2, uint32_t colour);
/** canvas_box() - its lines are thinner in a small box, so that what is in it stays visible. */
void canvas_box(struct canvas *c, double x, double y, double width, double height, uint32_t colour);
/** canvas_dot() - @of: the smaller side of what it is a point of: the dot is small beside it. */
void canvas_dot(struct canvas *c, double x, double y, double of, uint32_t colour);
/** canvas_text() - writes @text on a ground of @colour, with its lower left corner at (@x, @y), but
 * inside of the picture. Characters that are not ASCII become "?". */
void canvas_text(struct canvas *c, double x, double y, const char *text, uint32_t colour);
/** canvas_text_size() - of that ground. */
void canvas_text_size(const struct canvas *c, const char *text, double *ret_width,
                      double *ret_height);
