/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/picture/picture_rows.h - what the readers of pictures share: the largest size, the
 * orientation that EXIF tells, and where a stored row goes in the upright picture
 *
 * A camera stores its rows as the sensor gave them, and EXIF says how to hold the picture. Readers
 * turn it while they decode, so nobody behind them sees another picture than people do. Nothing
 * here allocates or keeps state; all functions take hostile bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PICTURE_ERROR_MAX 512u /* bytes of a reason */
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
