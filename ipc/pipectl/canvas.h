/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/pipectl/canvas.h - draws on a picture in memory, and writes it as JPEG or PNG
 *
 * Everything is clipped: any coordinate may be given. Files are written by jpeg.c and png.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct canvas {
    uint8_t *rgb; /* owned: [height][width][3] */
    uint32_t width, height;
    int pen; /* width of lines, and size of a dot of letters, in pixels */
};

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
void canvas_box(struct canvas *c, double x, double y, double width, double height, uint32_t colour);
void canvas_dot(struct canvas *c, double x, double y, uint32_t colour);
/** canvas_text() - writes @text on a ground of @colour, with its lower left corner at (@x, @y), but
 * inside of the picture. Characters that are not ASCII become "?". */
void canvas_text(struct canvas *c, double x, double y, const char *text, uint32_t colour);
/** canvas_write() - PNG if the name ends in .png, else JPEG. Return: 0; -errno, with @ret_error. */
int canvas_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes);

/* jpeg.c, png.c or their stand-ins. */
int ctl_jpeg_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes);
int ctl_png_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes);
