/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: PNG files, by libpng. Pixels are as they are stored, as Pillow and OpenCV have them:
 * alpha is dropped, 16 bits lose their low byte, and nothing that describes colours is applied. */
#include <setjmp.h>

#include <png.h>
#include <zlib.h>

#include "apps/picture/picture.h"
#include "apps/show/canvas.h"

#define SIGNATURE_BYTES 8u
#define CHUNK_BYTES 12u /* of a chunk besides its data */
#define PNG_IDAT 0x49444154u
#define STEP_BYTES 256u /* read at once: a file that is cut gives the rows up to its last step */

struct reader {
    png_structp png;
    png_infop info;
    const uint8_t *at; /* of the file, borrowed */
    size_t left;
    struct picture_rows rows;
    uint8_t *buffer; /* owned: stored rows that must be turned */
    uint32_t done;   /* rows */
    bool ended;      /* the file has no more bytes */
    jmp_buf leave;
    char text[PICTURE_ERROR_MAX];
};

static void on_error(png_structp png, png_const_charp text)
{
    struct reader *r = png_get_error_ptr(png);

    snprintf(r->text, sizeof(r->text), "%s", text);
    longjmp(r->leave, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)text; /* about chunks that are not used */
}

static void on_read(png_structp png, png_bytep to, size_t bytes)
{
    struct reader *r = png_get_io_ptr(png);

    if (bytes > r->left) {
        r->ended = true;
        png_error(png, "the file is cut short before its picture begins");
    }
    memcpy(to, r->at, bytes);
    r->at += bytes;
    r->left -= bytes;
}

/* The chunk eXIf may also come after the picture, where libpng finds it too late. */
static uint8_t orientation_of(const uint8_t *data, size_t bytes)
{
    size_t at = SIGNATURE_BYTES;

    while (bytes - at >= CHUNK_BYTES) {
        const uint8_t *p = data + at;
        size_t length = png_get_uint_32(p);

        if (length > bytes - at - CHUNK_BYTES || memcmp(p + 4, "IEND", 4) == 0) {
            break;
        }
        if (memcmp(p + 4, "eXIf", 4) == 0) {
            bool whole = crc32(0, p + 4, (uInt)length + 4) == png_get_uint_32(p + 8 + length);

            return whole ? picture_orientation(p + 8, length) : 1;
        }
        at += CHUNK_BYTES + length;
    }
    return 1;
}

static void read_header(struct reader *r, const struct picture *img)
{
    png_set_option(r->png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON); /* as all others read them */
    png_set_benign_errors(r->png, 1);
    png_set_compression_buffer_size(r->png, STEP_BYTES);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* the limit is named below */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "tRNS", 1);
    png_set_read_fn(r->png, r, on_read);
    png_read_info(r->png, r->info);
    r->rows = (struct picture_rows){
        .width = png_get_image_width(r->png, r->info),
        .height = png_get_image_height(r->png, r->info),
        .channels = png_get_color_type(r->png, r->info) & PNG_COLOR_MASK_COLOR ? 3 : 1,
        .orientation = orientation_of(img->data, img->data_bytes),
    };
    if (picture_check_size(r->rows.width, r->rows.height, r->text) < 0) {
        longjmp(r->leave, 1);
    }
}

/* To 8 bits of grey or RGB. */
static int make_plain(struct reader *r)
{
    int passes = png_set_interlace_handling(r->png);

    png_set_palette_to_rgb(r->png);
    png_set_expand_gray_1_2_4_to_8(r->png);
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    png_read_update_info(r->png, r->info);
    return passes;
}

static void read_rows(struct reader *r, uint8_t *to)
{
    uint32_t height = r->rows.height, held = 0;
    size_t row_bytes = (size_t)r->rows.width * r->rows.channels;
    bool turned = r->rows.orientation > 1;
    int passes = make_plain(r);
    uint32_t at_once = passes > 1 ? height : PICTURE_ROWS_AT_ONCE; /* passes add to all rows */

    if (png_get_rowbytes(r->png, r->info) != row_bytes) {
        png_error(r->png, "its rows have an unexpected size");
    }
    if (turned) {
        r->buffer = malloc(row_bytes * at_once);
        if (!r->buffer) {
            png_error(r->png, "out of memory");
        }
    }
    for (int pass = 1; pass <= passes; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            png_read_row(r->png, (turned ? r->buffer + held * row_bytes : to + y * row_bytes),
                         NULL);
            r->done = pass == passes ? y + 1 : 0;
            held++;
            if (held == at_once || y + 1 == height) {
                if (turned && pass == passes) {
                    picture_put_rows(&r->rows, y + 1 - held, held, r->buffer, to);
                }
                held = 0;
            }
        }
    }
    png_read_end(r->png, NULL); /* checks the last sum */
}

/* Says what is wrong, and where. Return: 0 if nothing is: all rows are there, and only chunks after
 * them are cut or damaged. */
static int told(const struct reader *r, bool rows, char ret_error[PICTURE_ERROR_MAX])
{
    if (!rows) {
        return picture_fail(ret_error, "%s", r->text);
    }
    if (r->done == r->rows.height && (r->ended || png_get_io_chunk_type(r->png) != PNG_IDAT)) {
        return 0;
    }
    return r->ended ? picture_cut_short(r->done, r->rows.height, ret_error)
                    : picture_fail(ret_error, "the file is damaged after %u of %u rows: %s",
                                   r->done, r->rows.height, r->text);
}

/* Rows; of an interlaced picture that must be turned, all of them. */
static size_t work_bytes(const struct reader *r)
{
    bool interlaced = png_get_interlace_type(r->png, r->info) != PNG_INTERLACE_NONE;

    return (size_t)r->rows.width * 16 +
           (interlaced ? (size_t)r->rows.width * r->rows.height * r->rows.channels : 0);
}

int picture_png_read(const struct picture *img, uint8_t *to, struct picture_rows *ret,
                     char ret_error[PICTURE_ERROR_MAX])
{
    struct reader r = {.at = img->data, .left = img->data_bytes};
    int rc;

    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    if (!r.info) {
        picture_fail(ret_error, "out of memory");
        rc = -ENOMEM;
    } else if (setjmp(r.leave)) {
        rc = told(&r, to != NULL, ret_error);
    } else {
        read_header(&r, img);
        r.rows.work_bytes = work_bytes(&r);
        if (to) {
            read_rows(&r, to);
        }
        *ret = r.rows;
        rc = 0;
    }
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.buffer);
    return rc;
}

int picture_png_write(const struct canvas *c, const char *path, char ret_error[PICTURE_ERROR_MAX])
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = c->width,
                     .height = c->height,
                     .format = PNG_FORMAT_RGB};

    if (!png_image_write_to_file(&png, path, 0, c->rgb, 0, NULL)) {
        picture_fail(ret_error, "%s", png.message);
        png_image_free(&png);
        return -EINVAL;
    }
    return 0;
}
