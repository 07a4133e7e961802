/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pipectl/picture_rows.h"

#include <stdio.h>
#include <string.h>

#define TAG_ORIENTATION 0x0112u
#define ENTRY_BYTES 12u
enum { EXIF_SHORT = 3, EXIF_LONG = 4 };

bool picture_size_fits(uint64_t width, uint64_t height, char *ret_error, size_t error_bytes)
{
    if (width > 0 && height > 0 && width <= PICTURE_SIDE_MAX && height <= PICTURE_SIDE_MAX) {
        return true;
    }
    snprintf(ret_error, error_bytes,
             "the picture has %llux%llu pixels; width and height may be 1 to %u",
             (unsigned long long)width, (unsigned long long)height, PICTURE_SIDE_MAX);
    return false;
}

void picture_cut_short(size_t rows, uint32_t height, char *ret_error, size_t error_bytes)
{
    snprintf(ret_error, error_bytes, "the file is cut short: %zu of %u rows are whole", rows,
             height);
}

static uint32_t number(const uint8_t *p, size_t bytes, bool big)
{
    uint32_t v = 0;

    for (size_t i = 0; i < bytes; i++) {
        v |= (uint32_t)p[i] << 8 * (big ? bytes - 1 - i : i);
    }
    return v;
}

static uint8_t orientation_of(const uint8_t *entry, bool big)
{
    uint32_t type = number(entry + 2, 2, big), count = number(entry + 4, 4, big);
    uint32_t v = number(entry + 8, type == EXIF_LONG ? 4 : 2, big);

    return (type == EXIF_SHORT || type == EXIF_LONG) && count == 1 && v >= 1 && v <= 8 ? (uint8_t)v
                                                                                       : 1;
}

uint8_t picture_orientation(const uint8_t *tiff, size_t bytes)
{
    bool big = bytes >= 8 && memcmp(tiff, "MM\0*", 4) == 0;
    size_t at, count;

    if (!big && (bytes < 8 || memcmp(tiff, "II*\0", 4) != 0)) {
        return 1;
    }
    at = number(tiff + 4, 4, big);
    if (at > bytes || bytes - at < 2) {
        return 1;
    }
    count = number(tiff + at, 2, big);
    at += 2;
    for (size_t i = 0; i < count && bytes - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES) {
        if (number(tiff + at, 2, big) == TAG_ORIENTATION) {
            return orientation_of(tiff + at, big);
        }
    }
    return 1;
}

void picture_put_row(const struct picture_rows *p, uint32_t y, const uint8_t *row, uint8_t *to)
{
    /* (x, y) of the stored picture becomes pixel first + x * step of the upright one */
    ptrdiff_t w = p->width, h = p->height, wide = p->orientation > 4 ? h : w;
    ptrdiff_t down = (ptrdiff_t)y, up = h - 1 - down, first = down * wide, step = 1;
    size_t k = p->channels;

    switch (p->orientation) {
    case 2: /* mirrored */
        first = down * wide + w - 1;
        step = -1;
        break;
    case 3: /* by 180 degrees */
        first = up * wide + w - 1;
        step = -1;
        break;
    case 4: /* upside down */
        first = up * wide;
        break;
    case 5: /* rows are columns */
        first = down;
        step = wide;
        break;
    case 6: /* to be turned clockwise */
        first = up;
        step = wide;
        break;
    case 7:
        first = (w - 1) * wide + up;
        step = -wide;
        break;
    case 8: /* to be turned counter-clockwise */
        first = (w - 1) * wide + down;
        step = -wide;
        break;
    default:
        break;
    }
    if (step == 1) {
        memcpy(to + (size_t)first * k, row, (size_t)w * k);
        return;
    }
    to += first * (ptrdiff_t)k;
    for (ptrdiff_t x = 0; x < w; x++, row += k, to += step * (ptrdiff_t)k) {
        for (size_t c = 0; c < k; c++) {
            to[c] = row[c];
        }
    }
}
