/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: in place of png.c in a build without libpng. */

#include "apps/picture/picture.h"

int picture_png_read(const struct picture *img, uint8_t *to, struct picture_rows *ret,
                     char ret_error[PICTURE_ERROR_MAX])
{
    picture_fail(ret_error,
                 "pipectl was built without PNG (meson option png); convert the file to PPM");
    return -EOPNOTSUPP;
}

int picture_png_write(const struct canvas *c, const char *path, char ret_error[PICTURE_ERROR_MAX])
{
    picture_fail(ret_error, "pipectl was built without PNG (meson option png)");
    return -EOPNOTSUPP;
}
