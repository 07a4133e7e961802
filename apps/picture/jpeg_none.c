/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: in place of jpeg.c in a build without libjpeg-turbo. */

#include "apps/picture/picture.h"

int picture_jpeg_read(const struct picture *img, uint8_t *to, struct picture_rows *ret,
                      char ret_error[PICTURE_ERROR_MAX])
{
    picture_fail(ret_error,
                 "pipectl was built without JPEG (meson option jpeg); convert the file to PPM");
    return -EOPNOTSUPP;
}

int picture_jpeg_write(const struct canvas *c, const char *path, char ret_error[PICTURE_ERROR_MAX])
{
    picture_fail(ret_error, "pipectl was built without JPEG (meson option jpeg)");
    return -EOPNOTSUPP;
}
