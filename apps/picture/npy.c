/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: arrays that numpy.save() wrote. The header, a Python dict as text, is what NumPy's
 * "NEP 1 - A simple file format for NumPy arrays" describes; only what NumPy writes is read. */

#include "apps/picture/picture.h"
#include "base/shown_text.h"

/* Return: what follows "'KEY': " in the dict; NULL: no such key. */
static const char *value_of(const char *text, const char *key)
{
    char quoted[32];
    const char *at;

    snprintf(quoted, sizeof(quoted), "'%s': ", key);
    at = strstr(text, quoted);
    return at ? at + strlen(quoted) : NULL;
}

static bool read_shape(const char *text, struct picture *ret)
{
    if (!text || *text++ != '(') {
        return false;
    }
    while (*text != ')') {
        char *end;
        unsigned long long v = strtoull(text, &end, 10);

        if (*text < '0' || *text > '9' || ret->rank == PICTURE_DIMS_MAX || v > (size_t)1 << 40) {
            return false;
        }
        ret->dim[ret->rank++] = (size_t)v;
        text = end + strspn(end, ", ");
    }
    return true;
}

/* Finds where the text and the elements begin. @ret_text: owned by the caller. */
static int read_header(struct picture *img, char **ret_text)
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

/* Reads the type of the elements. Return: the bytes of one; 0: it is not read. */
static size_t read_type(const char *type, struct picture *ret)
{
    static const struct {
        const char *name;
        size_t bytes;
        enum picture_kind kind;
    } types[] = {
        {"'|u1'", 1, PICTURE_PIXELS}, {"'<f2'", 2, PICTURE_RAW}, {"'<f4'", 4, PICTURE_RAW}};

    for (size_t i = 0; i < base_array_count(types); i++) {
        if (strncmp(type, types[i].name, 5) == 0) {
            ret->kind = types[i].kind;
            ret->f16 = types[i].bytes == 2;
            return types[i].bytes;
        }
    }
    return 0;
}

/* (height, width), or (height, width, 1 or 3) */
static int read_size(struct picture *img, char ret_error[PICTURE_ERROR_MAX])
{
    if (img->rank != 2 && (img->rank != 3 || (img->dim[2] != 1 && img->dim[2] != 3))) {
        return picture_fail(
            ret_error,
            "an array of uint8 must be a picture: (height, width) or (height, width, 3)");
    }
    if (picture_check_size(img->dim[1], img->dim[0], ret_error) < 0) {
        return -EINVAL;
    }
    img->height = (uint32_t)img->dim[0];
    img->width = (uint32_t)img->dim[1];
    img->channels = img->rank == 3 ? (uint32_t)img->dim[2] : 1;
    return 0;
}

/* So many elements as the shape says must be there; what follows them does not count. */
static int read_bytes(struct picture *img, size_t element, char ret_error[PICTURE_ERROR_MAX])
{
    size_t have = img->data_bytes - img->pixels_at;
    bool good = true;

    img->bytes = element;
    for (size_t i = 0; i < img->rank; i++) {
        good = good && base_mul(img->bytes, img->dim[i], &img->bytes);
    }
    if (!good) {
        return picture_fail(ret_error, "broken header of an array of NumPy");
    }
    if (have >= img->bytes) {
        return 0;
    }
    return img->kind == PICTURE_PIXELS
               ? picture_cut_short(have / (img->bytes / img->height), img->height, ret_error)
               : picture_fail(ret_error, "the file is cut short: %zu of %zu elements are whole",
                              have / element, img->bytes / element);
}

int picture_npy_open(struct picture *img, char ret_error[PICTURE_ERROR_MAX])
{
    base_autofree char *text = NULL;
    const char *type, *order;
    size_t element;

    if (read_header(img, &text) < 0) {
        return picture_fail(ret_error, "broken header of an array of NumPy");
    }
    type = value_of(text, "descr");
    order = value_of(text, "fortran_order");
    if (!type || !order || !read_shape(value_of(text, "shape"), img)) {
        return picture_fail(ret_error, "broken header of an array of NumPy");
    }
    if (strncmp(order, "True", 4) == 0) {
        return picture_fail(ret_error,
                            "the array is in Fortran's order; save numpy.ascontiguousarray(a)");
    }
    element = read_type(type, img);
    if (element == 0) {
        picture_fail(
            ret_error,
            "the array's elements are %.*s; uint8, and float32 and float16 in little-endian "
            "order, are read: save a.astype('float32')",
            (int)base_min(strcspn(type, ",}"), (size_t)20), type);
        shown_clean(ret_error, "");
        return -EINVAL;
    }
    if (img->kind == PICTURE_PIXELS && read_size(img, ret_error) < 0) {
        return -EINVAL;
    }
    return read_bytes(img, element, ret_error);
}
