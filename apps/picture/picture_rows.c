/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of pictures share: sizes, orientation, places of rows. */
#include "apps/picture/picture.h"

#define TAG_ORIENTATION 0x0112u
#define ENTRY_BYTES 12u
enum { EXIF_SHORT = 3, EXIF_LONG = 4 };

int picture_fail(char ret_error[PICTURE_ERROR_MAX], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_error, PICTURE_ERROR_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

int picture_check_size(uint64_t width, uint64_t height, char ret_error[PICTURE_ERROR_MAX])
{
    bool fits = width > 0 && height > 0 && width <= PICTURE_SIDE_MAX && height <= PICTURE_SIDE_MAX;

    return fits ? 0
                : picture_fail(ret_error,
                               "the picture has %llux%llu pixels; width and height may be 1 to %u",
                               (unsigned long long)width, (unsigned long long)height,
                               PICTURE_SIDE_MAX);
}

int picture_cut_short(size_t rows, uint32_t height, char ret_error[PICTURE_ERROR_MAX])
{
    return picture_fail(ret_error, "the file is cut short: %zu of %u rows are whole", rows, height);
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

/* Pixel (x, y) of the stored picture becomes pixel first + x * right + y * down of the upright
 * one. */
struct places {
    ptrdiff_t first, right, down;
};

static struct places places_of(const struct picture_rows *p)
{
    ptrdiff_t w = p->width, h = p->height, last = w * h - 1;

    switch (p->orientation) {
    case 2: /* mirrored */
        return (struct places){w - 1, -1, w};
    case 3: /* by 180 degrees */
        return (struct places){last, -1, -w};
    case 4: /* upside down */
        return (struct places){last - w + 1, 1, -w};
    case 5: /* rows are columns: the upright one has h pixels in a row */
        return (struct places){0, h, 1};
    case 6: /* to be turned clockwise */
        return (struct places){h - 1, h, -1};
    case 7:
        return (struct places){last, -h, -1};
    case 8: /* to be turned counter-clockwise */
        return (struct places){last - h + 1, -h, 1};
    default:
        return (struct places){0, 1, w};
    }
}

/* With a constant @k, pixels are copied without a loop. Turned rows are taken several at a time:
 * pixels of one column become neighbours, and to write one alone misses the cache. */
__attribute__((always_inline)) static inline void put(const struct picture_rows *p, uint32_t y,
                                                      size_t count, const uint8_t *rows,
                                                      uint8_t *to, size_t k)
{
    struct places at = places_of(p);
    ptrdiff_t first = at.first + (ptrdiff_t)y * at.down, row_bytes = (ptrdiff_t)(p->width * k);
    bool turned = p->orientation > 4;
    size_t outer = turned ? p->width : count, inner = turned ? count : p->width;
    ptrdiff_t outer_to = turned ? at.right : at.down, inner_to = turned ? at.down : at.right;
    ptrdiff_t outer_from = turned ? (ptrdiff_t)k : row_bytes;
    ptrdiff_t inner_from = turned ? row_bytes : (ptrdiff_t)k;

    for (size_t i = 0; i < outer; i++) {
        const uint8_t *in = rows + (ptrdiff_t)i * outer_from;
        uint8_t *out = to + (first + (ptrdiff_t)i * outer_to) * (ptrdiff_t)k;

        for (size_t n = 0; n < inner; n++) {
            for (size_t c = 0; c < k; c++) {
                out[c] = in[c];
            }
            in += inner_from;
            out += inner_to * (ptrdiff_t)k;
        }
    }
}

void picture_put_rows(const struct picture_rows *p, uint32_t y, size_t count, const uint8_t *rows,
                      uint8_t *to)
{
    if (p->channels == 1) {
        put(p, y, count, rows, to, 1);
    } else {
        put(p, y, count, rows, to, 3);
    }
}
