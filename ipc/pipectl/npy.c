/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: arrays that numpy.save() wrote. The header, a Python dict as text, is what NumPy's
 * "NEP 1 - A simple file format for NumPy arrays" describes; only what NumPy writes is read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "ipc/pipectl/picture.h"
#include "ipc/pipectl/picture_rows.h"

#define MAGIC "\x93NUMPY"

bool ctl_npy_begins(const struct ctl_image *img)
{
    return img->data_bytes > 10 && memcmp(img->data, MAGIC, strlen(MAGIC)) == 0;
}

static int fail(char *ret_error, size_t error_bytes, const char *why)
{
    snprintf(ret_error, error_bytes, "%s", why);
    return -EINVAL;
}

/* Return: what follows "'KEY': " in the dict; NULL: no such key. */
static const char *value_of(const char *text, const char *key)
{
    char quoted[32];
    const char *at;

    snprintf(quoted, sizeof(quoted), "'%s': ", key);
    at = strstr(text, quoted);
    return at ? at + strlen(quoted) : NULL;
}

static bool read_shape(const char *text, struct ctl_image *ret)
{
    if (!text || *text++ != '(') {
        return false;
    }
    while (*text != ')') {
        char *end;
        unsigned long long v = strtoull(text, &end, 10);

        if (*text < '0' || *text > '9' || ret->rank == CTL_DIMS_MAX || v > (size_t)1 << 40) {
            return false;
        }
        ret->dim[ret->rank++] = (size_t)v;
        text = end + strspn(end, ", ");
    }
    return true;
}

/* Finds where the text and the elements begin. @ret_text: owned by the caller. */
static int read_header(struct ctl_image *img, char **ret_text)
{
    const uint8_t *d = img->data;
    size_t head = d[6] == 1 ? 10 : 12;
    size_t length = d[8] | (size_t)d[9] << 8;

    if (head == 12) {
        length |= (size_t)d[10] << 16;
    }
    if (img->data_bytes < head + length) {
        return -EINVAL;
    }
    *ret_text = strndup((const char *)d + head, length);
    img->pixels_at = head + length;
    return *ret_text ? 0 : -ENOMEM;
}

/* (height, width), or (height, width, 1 or 3) */
static bool is_picture(const struct ctl_image *h)
{
    return h->rank == 2 || (h->rank == 3 && (h->dim[2] == 1 || h->dim[2] == 3));
}

int ctl_npy_open(struct ctl_image *img, char *ret_error, size_t error_bytes)
{
    base_autofree char *text = NULL;
    const char *type, *order;
    size_t row_bytes;
    bool picture;

    if (read_header(img, &text) < 0) {
        return fail(ret_error, error_bytes, "broken header of an array of NumPy");
    }
    type = value_of(text, "descr");
    order = value_of(text, "fortran_order");
    if (!type || !order || !read_shape(value_of(text, "shape"), img)) {
        return fail(ret_error, error_bytes, "broken header of an array of NumPy");
    }
    if (strncmp(order, "True", 4) == 0) {
        return fail(ret_error, error_bytes,
                    "the array is in Fortran's order; save numpy.ascontiguousarray(a)");
    }
    picture = strncmp(type, "'|u1'", 5) == 0;
    img->f16 = strncmp(type, "'<f2'", 5) == 0;
    if (!picture && !img->f16 && strncmp(type, "'<f4'", 5) != 0) {
        return fail(ret_error, error_bytes,
                    "the array's elements are no float32, float16 or uint8; use a.astype()");
    }
    img->bytes = img->data_bytes - img->pixels_at;
    img->kind = CTL_IMAGE_RAW;
    if (picture) {
        if (!is_picture(img)) {
            return fail(ret_error, error_bytes,
                        "an array of uint8 must be a picture: (height, width) or (height, width, "
                        "3)");
        }
        if (!picture_size_fits(img->dim[1], img->dim[0], ret_error, error_bytes)) {
            return -EINVAL;
        }
        img->kind = CTL_IMAGE_PIXELS;
        img->height = (uint32_t)img->dim[0];
        img->width = (uint32_t)img->dim[1];
        img->channels = img->rank == 3 ? (uint32_t)img->dim[2] : 1;
        row_bytes = (size_t)img->width * img->channels;
        if (img->bytes < row_bytes * img->height) {
            picture_cut_short(img->bytes / row_bytes, img->height, ret_error, error_bytes);
            return -EINVAL;
        }
        img->bytes = row_bytes * img->height;
    }
    return 0;
}
