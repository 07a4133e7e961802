/* SPDX-License-Identifier: Apache-2.0 */
/* Picture files: what is refused has a reason; what is accepted fills its pixels and no more. A PNG
 * comes again with its sums mended, or few mutations would get past them. */
#include "apps/picture/picture.h"
#include "base/base.h"
#include "tests/fuzz/replay.h"

#define PIXELS_MAX (1u << 18)

static void read_picture(const uint8_t *data, size_t bytes)
{
    base_cleanup(picture_close) struct picture img = PICTURE_NULL;
    uint8_t *copy = malloc(bytes + 1), *pixels;
    char why[PICTURE_ERROR_MAX] = "";
    int more = 1;

    MUST(copy);
    memcpy(copy, data, bytes);
    if (picture_take("x.img", copy, bytes, why, &img) < 0) {
        MUST(why[0]);
        return;
    }
    while (more > 0 && img.kind != PICTURE_RAW) {
        MUST(img.width && img.height && img.width <= PICTURE_SIDE_MAX &&
             img.height <= PICTURE_SIDE_MAX && (img.channels == 1 || img.channels == 3) &&
             img.bytes == (size_t)img.width * img.height * img.channels);
        if (img.bytes > PIXELS_MAX) {
            break;
        }
        pixels = malloc(img.bytes);
        MUST(pixels);
        MUST(picture_decode(&img, pixels, why) == 0 || why[0]);
        free(pixels);
        more = picture_next(&img, why);
    }
}

static uint32_t sum_of(const uint8_t *p, size_t bytes)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++) {
            crc = crc & 1 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
        }
    }
    return ~crc;
}

static void mend_sums(uint8_t *data, size_t bytes)
{
    for (size_t at = 8; bytes >= at + 12;) {
        const uint8_t *p = data + at;
        size_t length = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | (size_t)p[3];

        if (length > bytes - at - 12) {
            return;
        }
        for (size_t i = 0, sum = sum_of(p + 4, length + 4); i < 4; i++) {
            data[at + 8 + length + i] = (uint8_t)(sum >> (24 - 8 * i));
        }
        at += 12 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    base_autofree uint8_t *mended = NULL;

    read_picture(data, bytes);
    if (bytes > 8 && memcmp(data, "\x89PNG", 4) == 0) {
        mended = malloc(bytes);
        MUST(mended);
        memcpy(mended, data, bytes);
        mend_sums(mended, bytes);
        read_picture(mended, bytes);
    }
    return 0;
}
