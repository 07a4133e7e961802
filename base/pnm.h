/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pnm.h - the head of a binary portable pixmap or graymap (P6 or P5)
 *
 * pipectl reads such files, and sends the examples of a calibration as them, which the kernels
 * read. Threads: any.
 */
#pragma once

#include "base/base.h"

struct pnm {
    uint32_t width, height; /* below 10^9 */
    uint32_t most;          /* of a sample: 255 where it has one byte */
    uint32_t channels;      /* 1: P5, 3: P6 */
    size_t pixels_at;       /* rows from the top, without padding */
};

/** pnm_begins() - Return: one begins with these bytes. */
bool pnm_begins(const uint8_t *data, size_t bytes);

/** pnm_read() - reads the head that begins at @at. Sizes may be 0, and the pixels cut short.
 * Return: true with @ret set; false: it is broken, or the file ends in it. */
bool pnm_read(const uint8_t *data, size_t bytes, size_t at, struct pnm *ret);
