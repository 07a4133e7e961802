/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: JPEG files, by libjpeg-turbo. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "ipc/pipectl/picture.h"
#include "ipc/show/canvas.h"

/* libjpeg calls on_error(), which must not return. Texts are kept, not printed. */
struct failure {
    struct jpeg_error_mgr base;
    jmp_buf leave;
    char text[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr jpeg)
{
    struct failure *f = (struct failure *)jpeg->err;

    f->base.format_message(jpeg, f->text);
    longjmp(f->leave, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    struct failure *f = (struct failure *)jpeg->err;

    if (level < 0) { /* corrupt data: an answer for half a picture would mislead */
        f->base.format_message(jpeg, f->text);
        longjmp(f->leave, 1);
    }
}

/* Return: for jpeg.err, whose caller then does setjmp(f->leave) */
static struct jpeg_error_mgr *told_in(struct failure *f)
{
    struct jpeg_error_mgr *err = jpeg_std_error(&f->base);

    err->error_exit = on_error;
    err->emit_message = on_message;
    return err;
}

/* Reads the header; with @to, also the rows. */
static int run(struct ctl_image *img, uint8_t *to, char *ret_error, size_t error_bytes)
{
    struct jpeg_decompress_struct jpeg;
    struct failure f;

    memset(&jpeg, 0, sizeof(jpeg));
    jpeg.err = told_in(&f);
    if (setjmp(f.leave)) {
        jpeg_destroy_decompress(&jpeg);
        snprintf(ret_error, error_bytes, "%s", f.text);
        return -EINVAL;
    }
    jpeg_create_decompress(&jpeg);
    jpeg.mem->max_memory_to_use = 512l << 20;
    jpeg_mem_src(&jpeg, img->data, img->data_bytes);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (jpeg.image_width > CTL_IMAGE_DIMENSION_MAX || jpeg.image_height > CTL_IMAGE_DIMENSION_MAX) {
        jpeg_destroy_decompress(&jpeg);
        snprintf(ret_error, error_bytes, "impossible picture size");
        return -EINVAL;
    }
    if (!to) {
        img->width = jpeg.image_width;
        img->height = jpeg.image_height;
        img->channels = jpeg.num_components == 1 ? 1 : 3;
    } else {
        jpeg_start_decompress(&jpeg);
        while (jpeg.output_scanline < jpeg.output_height) {
            JSAMPROW row = to + (size_t)jpeg.output_scanline * img->width * img->channels;

            jpeg_read_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_decompress(&jpeg);
    }
    jpeg_destroy_decompress(&jpeg);
    return 0;
}

int ctl_jpeg_size(struct ctl_image *img, char *ret_error, size_t error_bytes)
{
    return run(img, NULL, ret_error, error_bytes);
}

int ctl_jpeg_decode(const struct ctl_image *img, uint8_t *to, char *ret_error, size_t error_bytes)
{
    struct ctl_image copy = *img;

    return run(&copy, to, ret_error, error_bytes);
}

static int write_rows(const struct canvas *c, FILE *file, char *ret_error, size_t error_bytes)
{
    struct jpeg_compress_struct jpeg;
    struct failure f;

    memset(&jpeg, 0, sizeof(jpeg));
    jpeg.err = told_in(&f);
    if (setjmp(f.leave)) {
        jpeg_destroy_compress(&jpeg);
        snprintf(ret_error, error_bytes, "%s", f.text);
        return -EIO;
    }
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = c->width;
    jpeg.image_height = c->height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 92, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = c->rgb + (size_t)jpeg.next_scanline * c->width * 3;

        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return 0;
}

int ctl_jpeg_write(const struct canvas *c, const char *path, char *ret_error, size_t error_bytes)
{
    FILE *file = fopen(path, "we");
    int rc = file ? write_rows(c, file, ret_error, error_bytes) : -errno;

    if (!file || (fclose(file) != 0 && rc == 0)) {
        rc = -errno;
        snprintf(ret_error, error_bytes, "%s", strerror(errno));
    }
    return rc;
}
