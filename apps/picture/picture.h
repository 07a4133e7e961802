/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/picture/picture.h - pictures and raw tensors from files
 *
 * Opening a file tells the picture's size; decoding writes straight into a slot. A hostile file
 * gives an error text. It never takes more memory than the file and one picture; a progressive JPEG
 * takes up to 512 MiB besides, an interlaced PNG that must be turned another picture.
 *
 * Pixels are those of Pillow's convert("RGB") or "L", turned as EXIF says: no colour conversion
 * (gAMA, cHRM, iCCP), the high byte of 16 bits, alpha dropped, CMYK without a profile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct canvas;
struct picture_rows; /* picture_rows.h */

enum ctl_image_kind {
    CTL_IMAGE_RAW,
    CTL_IMAGE_PNM,
    CTL_IMAGE_PIXELS, /* of an array of NumPy */
    CTL_IMAGE_JPEG,
    CTL_IMAGE_PNG,
};

#define CTL_DIMS_MAX 8u

struct ctl_image {
    enum ctl_image_kind kind;
    bool f16;                         /* raw: halves instead of floats */
    uint32_t width, height, channels; /* 1: GRAY8, 3: RGB24; raw: 0 */
    size_t rank, dim[CTL_DIMS_MAX];   /* raw, of an array of NumPy; else 0 */
    size_t bytes;                     /* decoded: width * height * channels; raw: of the elements */
    size_t work_bytes;                /* compressed: what decoding takes besides */
    uint8_t *data;                    /* owned: the file */
    size_t data_bytes, pixels_at;     /* not compressed: where pixels or elements start */
};
#define CTL_IMAGE_NULL ((struct ctl_image){0})

/** ctl_image_open() - reads a file. A name ending in .f32 or .f16 means raw; else the first bytes
 * tell; an array of NumPy is raw or a picture. @ret_error: the reason, without the file's name.
 * Return: 0 or -errno. */
int ctl_image_open(const char *path, char *ret_error, size_t error_bytes, struct ctl_image *ret);
/** ctl_image_take() - as ctl_image_open(), of bytes in memory. @name: its ending counts. @data:
 * from malloc(); @ret owns it, and on failure it is freed. */
int ctl_image_take(const char *name, uint8_t *data, size_t bytes, char *ret_error,
                   size_t error_bytes, struct ctl_image *ret);
void ctl_image_close(struct ctl_image *img);
/** ctl_image_known() - what a file is by its first bytes. Return: CTL_IMAGE_JPEG or CTL_IMAGE_PNG;
 * CTL_IMAGE_RAW: another, @ret_foreign is how to go on with one that is known, or NULL. */
enum ctl_image_kind ctl_image_known(const uint8_t *data, size_t bytes, const char **ret_foreign);
/** ctl_image_next() - goes on to the next picture of a PNM file, which may hold several. Return: 1:
 * width, height, channels and bytes are those of the next picture; 0: there is none; -EINVAL. */
int ctl_image_next(struct ctl_image *img, char *ret_error, size_t error_bytes);
/** ctl_image_measure() - of a JPEG or PNG file, by kind, whose bytes are in @img: width, height,
 * channels, bytes and work_bytes. Return: 0; -errno. */
int ctl_image_measure(struct ctl_image *img, char *ret_error, size_t error_bytes);
/** ctl_image_decode() - writes img->bytes bytes to @to. Return: 0 or -EINVAL. */
int ctl_image_decode(const struct ctl_image *img, uint8_t *to, char *ret_error, size_t error_bytes);

/* jpeg.c, or jpeg_none.c: reads the header of a JPEG file whose bytes are in @img; with @to, which
 * is not NULL then, also its rows. Return: 0; -errno. */
int ctl_jpeg_read(const struct ctl_image *img, uint8_t *to, struct picture_rows *ret,
                  char *ret_error, size_t error_bytes);
/* png.c, or png_none.c */
int ctl_png_read(const struct ctl_image *img, uint8_t *to, struct picture_rows *ret,
                 char *ret_error, size_t error_bytes);
/* The same files: write what was drawn (apps/show/canvas.h). Return: 0; -errno, with @ret_error. */
int ctl_jpeg_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes);
int ctl_png_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes);
/* npy.c: an array that numpy.save() wrote */
bool ctl_npy_begins(const struct ctl_image *img);
int ctl_npy_open(struct ctl_image *img, char *ret_error, size_t error_bytes);
