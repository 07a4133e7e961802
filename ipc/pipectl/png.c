/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: PNG files, by libpng. Transparency becomes black below it; 16 bits become 8. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "ipc/pipectl/picture.h"
#include "ipc/show/canvas.h"

static int fail(png_image *png, char *ret_error, size_t error_bytes)
{
    snprintf(ret_error, error_bytes, "%s", png->message);
    png_image_free(png);
    return -EINVAL;
}

static int begin(const struct ctl_image *img, char *ret_error, size_t error_bytes, png_image *ret)
{
    *ret = (png_image){.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(ret, img->data, img->data_bytes)) {
        return fail(ret, ret_error, error_bytes);
    }
    if (ret->width == 0 || ret->height == 0 || ret->width > CTL_IMAGE_DIMENSION_MAX ||
        ret->height > CTL_IMAGE_DIMENSION_MAX) {
        snprintf(ret->message, sizeof(ret->message), "impossible picture size");
        return fail(ret, ret_error, error_bytes);
    }
    ret->flags |= PNG_IMAGE_FLAG_16BIT_sRGB; /* else they are taken for linear light */
    ret->format = ret->format & PNG_FORMAT_FLAG_COLOR ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    return 0;
}

int ctl_png_size(struct ctl_image *img, char *ret_error, size_t error_bytes)
{
    png_image png;
    int rc = begin(img, ret_error, error_bytes, &png);

    if (rc == 0) {
        img->width = png.width;
        img->height = png.height;
        img->channels = PNG_IMAGE_PIXEL_CHANNELS(png.format);
        png_image_free(&png);
    }
    return rc;
}

int ctl_png_decode(const struct ctl_image *img, uint8_t *to, char *ret_error, size_t error_bytes)
{
    const png_color black = {0, 0, 0};
    png_image png;
    int rc = begin(img, ret_error, error_bytes, &png);

    if (rc == 0 && !png_image_finish_read(&png, &black, to, 0, NULL)) {
        return fail(&png, ret_error, error_bytes);
    }
    return rc;
}

int ctl_png_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = c->width,
                     .height = c->height,
                     .format = PNG_FORMAT_RGB};

    return png_image_write_to_file(&png, path, 0, c->rgb, 0, NULL)
               ? 0
               : fail(&png, ret_error, error_bytes);
}
