/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/picture/picture.h"

#include "base/pnm.h"
#include "base/whole_file.h"

#define FILE_BYTES_MAX ((size_t)1 << 30)
#define NPY "\x93NUMPY" /* what an array of NumPy begins with */

static size_t blanks(const struct picture *img, size_t at)
{
    size_t n = 0;

    while (at + n < img->data_bytes && memchr(" \t\r\n", img->data[at + n], 4)) {
        n++;
    }
    return n;
}

/* Reads the header of the picture that begins at @at. */
static int pnm_size(struct picture *img, size_t at, char ret_error[PICTURE_ERROR_MAX])
{
    size_t row_bytes;
    struct pnm p;

    if (!pnm_read(img->data, img->data_bytes, at, &p)) {
        return picture_fail(ret_error, "broken PNM header");
    }
    if (p.most != 255) {
        return picture_fail(
            ret_error,
            "a PNM file with a maxval of %u; only 255 is read: convert FILE -depth 8 FILE.png",
            p.most);
    }
    if (picture_check_size(p.width, p.height, ret_error) < 0) {
        return -EINVAL;
    }
    row_bytes = (size_t)p.width * p.channels;
    if (img->data_bytes - p.pixels_at < row_bytes * p.height) {
        return picture_cut_short((img->data_bytes - p.pixels_at) / row_bytes, p.height, ret_error);
    }
    img->width = p.width;
    img->height = p.height;
    img->channels = p.channels;
    img->pixels_at = p.pixels_at;
    img->bytes = row_bytes * p.height;
    return 0;
}

int picture_next(struct picture *img, char ret_error[PICTURE_ERROR_MAX])
{
    size_t at = img->pixels_at + img->bytes;

    if (img->kind != PICTURE_PNM || at + blanks(img, at) == img->data_bytes) {
        return 0;
    }
    if (!pnm_begins(img->data + at, img->data_bytes - at)) {
        return picture_fail(ret_error, "no PNM header follows the picture");
    }
    return pnm_size(img, at, ret_error) < 0 ? -EINVAL : 1;
}

/* Return: how to go on with a picture of another format; NULL: it is none that is known. */
static const char *foreign(const struct picture *img)
{
    static const struct {
        const char *begins, *why;
        size_t at, bytes;
    } formats[] = {
        {"GIF8", "a GIF file; convert it: convert FILE[0] FILE.png", 0, 4},
        {"BM", "a BMP file; convert it: convert FILE FILE.png", 0, 2},
        {"WEBP", "a WebP file; convert it: dwebp FILE -o FILE.png", 8, 4},
        {"II*\0", "a TIFF file; convert it: convert FILE FILE.png", 0, 4},
        {"MM\0*", "a TIFF file; convert it: convert FILE FILE.png", 0, 4},
        {"ftyp", "a HEIF, AVIF or video file; convert it: ffmpeg -i FILE FILE.png", 4, 4},
        {"P2", "a PGM file in text; convert it: convert FILE FILE.png", 0, 2},
        {"P3", "a PPM file in text; convert it: convert FILE FILE.png", 0, 2},
    };

    for (size_t i = 0; i < base_array_count(formats); i++) {
        if (img->data_bytes > formats[i].at + formats[i].bytes &&
            memcmp(img->data + formats[i].at, formats[i].begins, formats[i].bytes) == 0) {
            return formats[i].why;
        }
    }
    return NULL;
}

/* PICTURE_RAW: another. */
static enum picture_kind compressed(const uint8_t *d, size_t bytes)
{
    return bytes > 2 && d[0] == 0xff && d[1] == 0xd8             ? PICTURE_JPEG
           : bytes > 8 && memcmp(d, "\x89PNG\r\n\x1a\n", 8) == 0 ? PICTURE_PNG
                                                                 : PICTURE_RAW;
}

enum picture_kind picture_known(const uint8_t *data, size_t bytes, const char **ret_foreign)
{
    const struct picture img = {.data = (uint8_t *)(uintptr_t)data, .data_bytes = bytes};
    enum picture_kind kind = compressed(data, bytes);

    *ret_foreign = kind == PICTURE_RAW ? foreign(&img) : NULL;
    return kind;
}

/* Reads the header of a compressed file; with @to, also the rows. */
static int read_rows(const struct picture *img, uint8_t *to, struct picture_rows *ret,
                     char ret_error[PICTURE_ERROR_MAX])
{
    return (img->kind == PICTURE_JPEG ? picture_jpeg_read : picture_png_read)(img, to, ret,
                                                                              ret_error);
}

int picture_measure(struct picture *img, char ret_error[PICTURE_ERROR_MAX])
{
    struct picture_rows rows;
    int rc = read_rows(img, NULL, &rows, ret_error);

    if (rc == 0) {
        bool turned = rows.orientation > 4;

        img->width = turned ? rows.height : rows.width;
        img->height = turned ? rows.width : rows.height;
        img->channels = rows.channels;
        img->work_bytes = rows.work_bytes;
        img->bytes = (size_t)img->width * img->height * img->channels;
    }
    return rc;
}

static int recognise(const char *name, struct picture *img, char ret_error[PICTURE_ERROR_MAX])
{
    img->f16 = base_ends_with(name, ".f16");
    if (img->f16 || base_ends_with(name, ".f32")) {
        img->kind = PICTURE_RAW;
        img->bytes = img->data_bytes;
        return 0;
    }
    if (pnm_begins(img->data, img->data_bytes)) {
        img->kind = PICTURE_PNM;
        return pnm_size(img, 0, ret_error);
    }
    img->kind = compressed(img->data, img->data_bytes);
    if (img->kind != PICTURE_RAW) {
        return picture_measure(img, ret_error);
    }
    if (img->data_bytes > 10 && memcmp(img->data, NPY, strlen(NPY)) == 0) {
        return picture_npy_open(img, ret_error);
    }
    return picture_fail(ret_error, "%s",
                        foreign(img)
                            ? foreign(img)
                            : "not a JPEG, PNG, binary PPM or PGM file or array of NumPy, and its "
                              "name does not end in .f32 or .f16");
}

int picture_take(const char *name, uint8_t *data, size_t bytes, char ret_error[PICTURE_ERROR_MAX],
                 struct picture *ret)
{
    base_cleanup(picture_close) struct picture img = {.data = data, .data_bytes = bytes};
    int rc = recognise(name, &img, ret_error);

    if (rc < 0) {
        return rc;
    }
    *ret = img;
    img = PICTURE_NULL;
    return 0;
}

int picture_open(const char *path, char ret_error[PICTURE_ERROR_MAX], struct picture *ret)
{
    const struct whole_file f = {.folder = AT_FDCWD, .path = path, .bytes_max = FILE_BYTES_MAX};
    base_autofree char *data = NULL;
    size_t bytes = 0;
    int rc = whole_file_read(&f, &data, &bytes);

    if (rc) {
        picture_fail(ret_error, "%s", whole_file_why(rc));
        return rc < 0 ? rc : -EINVAL;
    }
    return picture_take(path, (uint8_t *)base_take(data), bytes, ret_error, ret);
}

void picture_close(struct picture *img)
{
    free(img->data);
    *img = PICTURE_NULL;
}

int picture_decode(const struct picture *img, uint8_t *to, char ret_error[PICTURE_ERROR_MAX])
{
    struct picture_rows rows;

    if (img->kind == PICTURE_JPEG || img->kind == PICTURE_PNG) {
        return read_rows(img, to, &rows, ret_error);
    }
    memcpy(to, img->data + img->pixels_at, img->bytes);
    return 0;
}
