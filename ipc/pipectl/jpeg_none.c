/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: in place of jpeg.c in a build without libjpeg-turbo. */
#include <errno.h>
#include <stdio.h>

#include "ipc/pipectl/picture.h"

int ctl_jpeg_size(struct ctl_image *img, char *ret_error, size_t error_bytes)
{
    snprintf(ret_error, error_bytes,
             "pipectl was built without JPEG (meson option jpeg); convert the file to PPM");
    return -EOPNOTSUPP;
}

int ctl_jpeg_decode(const struct ctl_image *img, uint8_t *to, char *ret_error, size_t error_bytes)
{
    struct ctl_image copy = *img;

    return ctl_jpeg_size(&copy, ret_error, error_bytes);
}

int ctl_jpeg_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes)
{
    snprintf(ret_error, error_bytes, "pipectl was built without JPEG (meson option jpeg)");
    return -EOPNOTSUPP;
}
