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

#include "base/base.h"

struct canvas;

#define PICTURE_ERROR_MAX 512u /* bytes of a reason */

enum picture_kind {
    PICTURE_RAW,
    PICTURE_PNM,
    PICTURE_PIXELS, /* of an array of NumPy */
    PICTURE_JPEG,
    PICTURE_PNG,
};

#define PICTURE_DIMS_MAX 8u

struct picture {
    enum picture_kind kind;
    bool f16;                           /* raw: halves instead of floats */
    uint32_t width, height, channels;   /* 1: GRAY8, 3: RGB24; raw: 0 */
    size_t rank, dim[PICTURE_DIMS_MAX]; /* raw, of an array of NumPy; else 0 */
    size_t bytes;                 /* decoded: width * height * channels; raw: of the elements */
    size_t work_bytes;            /* compressed: what decoding takes besides */
    uint8_t *data;                /* owned: the file */
    size_t data_bytes, pixels_at; /* not compressed: where pixels or elements start */
};
#define PICTURE_NULL ((struct picture){0})

/** picture_open() - reads a file. A name ending in .f32 or .f16 means raw; else the first bytes
 * tell; an array of NumPy is raw or a picture. @ret_error: the reason, without the file's name.
 * Return: 0 or -errno. */
int picture_open(const char *path, char ret_error[PICTURE_ERROR_MAX], struct picture *ret);
/** picture_take() - as picture_open(), of bytes in memory. @name: its ending counts. @data:
 * from malloc(); @ret owns it, and on failure it is freed. */
int picture_take(const char *name, uint8_t *data, size_t bytes, char ret_error[PICTURE_ERROR_MAX],
                 struct picture *ret);
void picture_close(struct picture *img);
/** picture_known() - what a file is by its first bytes. Return: PICTURE_JPEG or PICTURE_PNG;
 * PICTURE_RAW: another, @ret_foreign is how to go on with one that is known, or NULL. */
enum picture_kind picture_known(const uint8_t *data, size_t bytes, const char **ret_foreign);
/** picture_next() - goes on to the next picture of a PNM file, which may hold several. Return: 1:
 * width, height, channels and bytes are those of the next picture; 0: there is none; -EINVAL. */
int picture_next(struct picture *img, char ret_error[PICTURE_ERROR_MAX]);
/** picture_measure() - of a JPEG or PNG file, by kind, whose bytes are in @img: width, height,
 * channels, bytes and work_bytes. Return: 0; -errno. */
int picture_measure(struct picture *img, char ret_error[PICTURE_ERROR_MAX]);
/** picture_decode() - writes img->bytes bytes to @to. Return: 0 or -EINVAL. */
int picture_decode(const struct picture *img, uint8_t *to, char ret_error[PICTURE_ERROR_MAX]);

/*
 * ---- picture_rows.c: what the readers share ----
 *
 * A camera stores its rows as the sensor gave them, and EXIF says how to hold the picture. Readers
 * turn it while they decode, so nobody behind them sees another picture than people do. Nothing
 * here allocates or keeps state; all functions take hostile bytes.
 */

#define PICTURE_SIDE_MAX 16384u
#define PICTURE_ROWS_AT_ONCE 16u

struct picture_rows {
    uint32_t width, height; /* as stored: upright, they change places if orientation is above 4 */
    uint32_t channels;      /* bytes of a pixel */
    uint8_t orientation;    /* of EXIF; 0, 1: upright as stored */
    size_t work_bytes;      /* what decoding takes besides the picture */
};

/** picture_check_size() - Return: 0: both numbers are 1 to PICTURE_SIDE_MAX; else -EINVAL, and
 * @ret_error names them and the limit. */
int picture_check_size(uint64_t width, uint64_t height, char ret_error[PICTURE_ERROR_MAX]);
/** picture_fail() - writes the reason. Return: -EINVAL. */
int picture_fail(char ret_error[PICTURE_ERROR_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** picture_cut_short() - the reason is that so many of @height rows are whole. Return: -EINVAL. */
int picture_cut_short(size_t rows, uint32_t height, char ret_error[PICTURE_ERROR_MAX]);

/**
 * picture_orientation() - reads the orientation of EXIF
 * @tiff: the bytes from the header of TIFF ("II" or "MM") on, borrowed
 *
 * Return: the tag 0x0112 of the first directory, 1 to 8 (CIPA DC-008, 4.6.4); 1, upright, if there
 * is none, it is something else, or the bytes are no EXIF.
 */
uint8_t picture_orientation(const uint8_t *tiff, size_t bytes);

/** picture_put_rows() - writes @count stored rows from @y on to their places. @rows: one after the
 * other, no overlap with @to, the upright picture. Best: PICTURE_ROWS_AT_ONCE. */
void picture_put_rows(const struct picture_rows *p, uint32_t y, size_t count, const uint8_t *rows,
                      uint8_t *to);

/* ---- the readers ---- */

/* jpeg.c, or jpeg_none.c: reads the header of a JPEG file whose bytes are in @img; with @to, which
 * is not NULL then, also its rows. Return: 0; -errno. */
int picture_jpeg_read(const struct picture *img, uint8_t *to, struct picture_rows *ret,
                      char ret_error[PICTURE_ERROR_MAX]);
/* png.c, or png_none.c */
int picture_png_read(const struct picture *img, uint8_t *to, struct picture_rows *ret,
                     char ret_error[PICTURE_ERROR_MAX]);
/* The same files: write what was drawn (apps/show/canvas.h). Return: 0; -errno, with @ret_error. */
int picture_jpeg_write(const struct canvas *c, const char *path, char ret_error[PICTURE_ERROR_MAX]);
int picture_png_write(const struct canvas *c, const char *path, char ret_error[PICTURE_ERROR_MAX]);
/* npy.c: an array that numpy.save() wrote, of more than 10 bytes. Return: 0; -EINVAL. */
int picture_npy_open(struct picture *img, char ret_error[PICTURE_ERROR_MAX]);
