/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: JPEG files, by libjpeg-turbo. Pixels are as Pillow and OpenCV have them. */
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

#include "apps/picture/picture.h"
#include "apps/show/canvas.h"

#define MEMORY_MAX (512l << 20)
#define SCANS_MAX 100  /* ordinary progressive files have about ten */
#define ZEROS_READ 64u /* bytes; the decoder reads that far ahead at most */

/* libjpeg calls on_error(), which must not return. Texts are kept, not printed. */
struct failure {
    struct jpeg_error_mgr base;
    jmp_buf leave;
    bool ended;  /* the file has no more bytes; libjpeg was given an end of the picture */
    bool strays; /* bytes before a marker were left out */
    char *text;  /* the caller's: PICTURE_ERROR_MAX */
};

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct failure f;
    struct jpeg_progress_mgr progress;
    struct picture_rows rows;
    uint8_t *held;    /* owned; rows that are not written straight to their places */
    unsigned scanned; /* bit c: component c came in a scan */
    size_t zeros;     /* bytes; that the file ends in */
};

static void fail(j_common_ptr jpeg, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
static void fail(j_common_ptr jpeg, const char *format, ...)
{
    struct failure *f = (struct failure *)jpeg->err;
    va_list args;

    va_start(args, format);
    vsnprintf(f->text, PICTURE_ERROR_MAX, format, args);
    va_end(args);
    longjmp(f->leave, 1);
}

static void on_error(j_common_ptr jpeg)
{
    char text[JMSG_LENGTH_MAX];

    jpeg->err->format_message(jpeg, text);
    if (((struct failure *)jpeg->err)->ended) { /* what follows from a header that is cut */
        fail(jpeg, "the file is cut short before its picture begins");
    }
    switch (jpeg->err->msg_code) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
        fail(jpeg, "%s; convert it: convert FILE FILE.png", text);
    case JERR_NO_BACKING_STORE:
        fail(jpeg, "it needs more than %ld MiB to be decoded; make it smaller, or not progressive",
             MEMORY_MAX >> 20);
    default:
        fail(jpeg, "%s", text);
    }
}

/* Rows before the place where data are missing or damaged. */
static unsigned whole_rows(j_decompress_ptr jpeg)
{
    unsigned rows = jpeg->output_scanline;

    if (jpeg_has_multiple_scans(jpeg)) { /* all scans are read before the first row is made */
        rows = jpeg->input_iMCU_row * (unsigned)jpeg->max_v_samp_factor * DCTSIZE;
    }
    return rows < jpeg->image_height ? rows : jpeg->image_height;
}

/* An answer for half a picture would mislead: data that are missing or damaged refuse it. Stray
 * bytes before a marker, as webcams send them, and odd headers take nothing from the pixels. */
static void on_warning(j_common_ptr any)
{
    struct failure *f = (struct failure *)any->err;
    j_decompress_ptr jpeg = (j_decompress_ptr)any;
    char scan[32] = "", text[JMSG_LENGTH_MAX];
    bool lacks = any->err->msg_code == JWRN_HIT_MARKER || any->err->msg_code == JWRN_MUST_RESYNC;

    switch (any->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
        f->strays = true;
        return;
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
        return;
    case JWRN_JPEG_EOF: /* something may be missing: another warning tells */
        f->ended = true;
        return;
    default:
        break;
    }
    any->err->format_message(any, text);
    if (jpeg_has_multiple_scans(jpeg)) {
        snprintf(scan, sizeof(scan), " of scan %d", jpeg->input_scan_number);
    }
    if (lacks && (f->ended || jpeg->unread_marker == JPEG_EOI)) {
        fail(any, "the file is cut short: %u of %u rows%s are whole", whole_rows(jpeg),
             jpeg->image_height, scan);
    }
    fail(any, "the file is damaged after %u of %u rows%s: %s", whole_rows(jpeg), jpeg->image_height,
         scan, text);
}

static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0 && jpeg->is_decompressor) {
        on_warning(jpeg);
    }
}

/* Return: for jpeg.err, whose caller then does setjmp(f->leave) */
static struct jpeg_error_mgr *told_in(struct failure *f, char ret_error[PICTURE_ERROR_MAX])
{
    struct jpeg_error_mgr *err = jpeg_std_error(&f->base);

    err->error_exit = on_error;
    err->emit_message = on_message;
    f->text = ret_error;
    return err;
}

/* ---- reading ---- */

/* Called in each scan. A few bytes may ask for thousands of them over a large picture. */
static void on_progress(j_common_ptr any)
{
    j_decompress_ptr jpeg = (j_decompress_ptr)any;
    struct reader *r = any->client_data;

    if (jpeg->input_scan_number > SCANS_MAX) {
        fail(any, "it has more than %d scans; save it again", SCANS_MAX);
    }
    for (int i = 0; i < jpeg->comps_in_scan; i++) {
        r->scanned |= 1u << jpeg->cur_comp_info[i]->component_index;
    }
}

/* The marker APP1: EXIF, or something else. All of the file is in the source's buffer, so nothing
 * is copied. The first EXIF counts. */
static boolean on_app1(j_decompress_ptr jpeg)
{
    struct reader *r = jpeg->client_data;
    struct jpeg_source_mgr *src = jpeg->src;
    const uint8_t *p = src->next_input_byte;
    size_t left = src->bytes_in_buffer;
    size_t bytes = left >= 2 ? (size_t)p[0] << 8 | p[1] : 2; /* these two included */

    bytes = bytes < 2 ? 2 : bytes;
    if (r->rows.orientation == 0 && bytes >= 8 && left >= bytes && memcmp(p + 2, "Exif", 5) == 0) {
        r->rows.orientation = picture_orientation(p + 8, bytes - 8);
    }
    src->skip_input_data(jpeg, (long)bytes);
    return TRUE;
}

static J_COLOR_SPACE colours_of(j_decompress_ptr jpeg)
{
    switch (jpeg->num_components) {
    case 1:
        return JCS_GRAYSCALE;
    case 3:
        return JCS_RGB;
    case 4:
        return JCS_CMYK;
    default:
        fail((j_common_ptr)jpeg,
             "a JPEG file of %d colour components; convert it: convert FILE FILE.png",
             jpeg->num_components);
    }
}

/* Inks to light. As Photoshop writes them, and as all who read them take them, 255 is no ink. */
static void rgb_of_cmyk(uint8_t *row, size_t width)
{
    uint8_t *out = row;

    for (const uint8_t *in = row; in < row + 4 * width; in += 4, out += 3) {
        unsigned black = in[3];

        for (size_t c = 0; c < 3; c++) {
            unsigned taken = (255u - in[c]) * black + 128;

            out[c] = (uint8_t)(black - ((taken + (taken >> 8)) >> 8));
        }
    }
}

/* The rest of a file of several scans may be missing after any of them: then a component did not
 * come, or, of a progressive one that does not end as it should, some bits of coefficients. */
static void check_scans(struct reader *r)
{
    j_decompress_ptr jpeg = &r->jpeg;
    bool lacks = false;

    for (int c = 0; jpeg_has_multiple_scans(jpeg) && c < jpeg->num_components; c++) {
        lacks |= (r->scanned & 1u << c) == 0;
        for (size_t i = 0; (r->f.ended || r->f.strays) && jpeg->coef_bits && i < DCTSIZE2; i++) {
            lacks |= jpeg->coef_bits[c][i] != 0;
        }
    }
    if (lacks) {
        fail((j_common_ptr)jpeg, "the file is cut short: scans after %d are missing",
             jpeg->input_scan_number);
    }
}

/* Where the end of a file was never written, there are zeros, which decode as well. */
static void check_zeros(struct reader *r)
{
    j_decompress_ptr jpeg = &r->jpeg;
    size_t left = r->f.ended ? 0 : jpeg->src->bytes_in_buffer;

    if (r->zeros <= left + ZEROS_READ) {
        return;
    }
    if (jpeg_has_multiple_scans(jpeg)) {
        fail((j_common_ptr)jpeg, "the file is cut short: it ends in %zu zeros", r->zeros);
    }
    fail((j_common_ptr)jpeg, "the file is cut short: %u of %u rows are whole, then zeros follow",
         whole_rows(jpeg), jpeg->image_height);
}

static void read_rows(struct reader *r, uint8_t *to)
{
    j_decompress_ptr jpeg = &r->jpeg;
    bool direct = r->rows.orientation <= 1 && jpeg->out_color_space != JCS_CMYK;
    size_t row_bytes = (size_t)r->rows.width * r->rows.channels, held = 0;

    jpeg_start_decompress(jpeg);
    check_scans(r);
    /* the last one may be of four channels, before it is RGB */
    r->held = direct ? NULL : malloc(PICTURE_ROWS_AT_ONCE * row_bytes + r->rows.width);
    if (!direct && !r->held) {
        fail((j_common_ptr)jpeg, "out of memory");
    }
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = direct ? to + jpeg->output_scanline * row_bytes : r->held + held * row_bytes;

        check_zeros(r);
        jpeg_read_scanlines(jpeg, &row, 1);
        if (jpeg->out_color_space == JCS_CMYK) {
            rgb_of_cmyk(row, r->rows.width);
        }
        if (!direct &&
            (++held == PICTURE_ROWS_AT_ONCE || jpeg->output_scanline == jpeg->output_height)) {
            picture_put_rows(&r->rows, jpeg->output_scanline - (uint32_t)held, held, r->held, to);
            held = 0;
        }
    }
    check_zeros(r);
}

static size_t zeros_at_end(const struct picture *img)
{
    size_t n = 0;

    while (n < img->data_bytes && img->data[img->data_bytes - 1 - n] == 0) {
        n++;
    }
    return n;
}

static void read_header(struct reader *r, const struct picture *img)
{
    j_decompress_ptr jpeg = &r->jpeg;

    jpeg->mem->max_memory_to_use = MEMORY_MAX;
    jpeg->client_data = r;
    r->progress.progress_monitor = on_progress;
    jpeg->progress = &r->progress;
    jpeg_set_marker_processor(jpeg, JPEG_APP0 + 1, on_app1);
    jpeg_mem_src(jpeg, img->data, img->data_bytes);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->arith_code) { /* libjpeg cannot tell such a file from one that is cut */
        fail((j_common_ptr)jpeg,
             "a JPEG file with arithmetic coding; convert it: convert FILE FILE.png");
    }
    if (r->rows.orientation == 0) { /* EXIF between scans is too late */
        r->rows.orientation = 1;
    }
    r->zeros = zeros_at_end(img);
    jpeg->out_color_space = colours_of(jpeg);
    if (picture_check_size(jpeg->image_width, jpeg->image_height, r->f.text) < 0) {
        longjmp(r->f.leave, 1);
    }
    r->rows.width = jpeg->image_width;
    r->rows.height = jpeg->image_height;
    r->rows.channels = jpeg->num_components == 1 ? 1 : 3;
}

/* Some rows; and where a picture comes in several scans, the coefficients of all its blocks, which
 * libjpeg keeps until the last one. */
static size_t work_bytes(j_decompress_ptr jpeg)
{
    size_t sum = (size_t)jpeg->image_width * 3 * 64;

    for (int c = 0; jpeg_has_multiple_scans(jpeg) && c < jpeg->num_components; c++) {
        const jpeg_component_info *comp = &jpeg->comp_info[c];
        size_t h = (size_t)comp->h_samp_factor, v = (size_t)comp->v_samp_factor;

        sum += (comp->width_in_blocks / h + 1) * h * (comp->height_in_blocks / v + 1) * v *
               sizeof(JBLOCK);
    }
    return sum;
}

int picture_jpeg_read(const struct picture *img, uint8_t *to, struct picture_rows *ret,
                      char ret_error[PICTURE_ERROR_MAX])
{
    struct reader r = {.held = NULL};
    int rc;

    r.jpeg.err = told_in(&r.f, ret_error);
    if (setjmp(r.f.leave)) {
        rc = -EINVAL;
    } else {
        jpeg_create_decompress(&r.jpeg);
        read_header(&r, img);
        r.rows.work_bytes = work_bytes(&r.jpeg);
        if (to) {
            read_rows(&r, to);
        }
        *ret = r.rows;
        rc = 0;
    }
    jpeg_destroy_decompress(&r.jpeg);
    free(r.held);
    return rc;
}

/* ---- writing ---- */

static int write_rows(const struct canvas *c, FILE *file, char ret_error[PICTURE_ERROR_MAX])
{
    struct jpeg_compress_struct jpeg;
    struct failure f;

    memset(&jpeg, 0, sizeof(jpeg));
    jpeg.err = told_in(&f, ret_error);
    if (setjmp(f.leave)) {
        jpeg_destroy_compress(&jpeg);
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

int picture_jpeg_write(const struct canvas *c, const char *path, char ret_error[PICTURE_ERROR_MAX])
{
    FILE *file = fopen(path, "we");
    int rc = file ? write_rows(c, file, ret_error) : -errno;

    if (!file || (fclose(file) != 0 && rc == 0)) {
        rc = -errno;
        picture_fail(ret_error, "%s", strerror(errno));
    }
    return rc;
}
