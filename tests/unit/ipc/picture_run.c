/* SPDX-License-Identifier: Apache-2.0 */
/* For test_pictures.py: reads pictures as pipectl and piped-http do. usage: picture_run FILE...
 * Writes of each "ok WIDTH HEIGHT CHANNELS" and its pixels, or "no WHY". The pixels' area is
 * allocated to the byte, so that a write beyond it is found. */
#include <stdio.h>
#include <stdlib.h>

#include "apps/picture/picture.h"
#include "base/base.h"

static void run(const char *path)
{
    base_cleanup(picture_close) struct picture img = PICTURE_NULL;
    base_autofree uint8_t *pixels = NULL;
    char why[PICTURE_ERROR_MAX] = "out of memory";

    if (picture_open(path, why, &img) == 0) {
        pixels = malloc(img.bytes);
    }
    if (pixels && picture_decode(&img, pixels, why) == 0) {
        printf("ok %u %u %u\n", img.width, img.height, img.channels);
        fwrite(pixels, 1, img.bytes, stdout);
    } else {
        printf("no %s\n", why);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        run(argv[i]);
    }
    return 0;
}
