/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/http/web_picture.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/http/web_form.h"

/* curl -d @FILE leaves out line ends, and bytes of 0. */
#define STRIPPED_PNG "\x89PNG\x1a"
#define BY_CURL "; curl sends a picture whole by --data-binary @FILE, not by -d"

/* Return: false: it is not a body of which there is one picture. */
static bool take_form(struct web_request *q, struct web_reply *r)
{
    const char *type = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Content-Type");
    struct web_span file;
    const char *why = web_form_file((const char *)q->body, q->bytes, type ? type : "", &file);

    if (why) {
        web_fail(r, 400,
                 "%s; send one picture, or the picture itself as the body: curl --data-binary "
                 "@FILE -H 'Content-Type: image/png'",
                 why);
        return false;
    }
    memmove(q->body, file.text, file.bytes);
    q->bytes = file.bytes;
    q->body[q->bytes] = '\0';
    return true;
}

bool web_picture_settle(struct web_request *q, struct web_reply *r)
{
    const char *foreign = NULL;
    enum ctl_image_kind kind;

    if (q->body_kind == WEB_BODY_FORM && !take_form(q, r)) {
        return false;
    }
    kind = ctl_image_known(q->body, q->bytes, &foreign);
    if (q->body_kind == WEB_BODY_JSON && !q->untyped && kind != CTL_IMAGE_RAW) {
        web_fail(r, 415, "the body is a picture, not JSON: -H 'Content-Type: image/%s'",
                 kind == CTL_IMAGE_JPEG ? "jpeg" : "png");
        return false;
    }
    if (q->body_kind == WEB_BODY_RAW || (q->body_kind == WEB_BODY_JSON && !q->untyped)) {
        return true;
    }
    if (kind == CTL_IMAGE_RAW && q->bytes >= 5 && memcmp(q->body, STRIPPED_PNG, 5) == 0) {
        web_fail(r, 400, "the body is a PNG picture without its line ends" BY_CURL);
        return false;
    }
    if (kind != CTL_IMAGE_RAW) {
        q->body_kind = kind == CTL_IMAGE_JPEG ? WEB_BODY_JPEG : WEB_BODY_PNG;
        return true;
    }
    if (foreign) {
        web_fail(r, 415, "the body is %s", foreign);
    } else if (q->body_kind != WEB_BODY_JSON) {
        web_fail(r, 400, "the body is neither a JPEG nor a PNG picture");
    }
    return !foreign && q->body_kind == WEB_BODY_JSON;
}

/* The coefficients of all its blocks, which a decoder keeps where they come in several scans: those
 * of one component are as many as its samples, of two bytes, in whole blocks. */
static size_t coefficients(const uint8_t *sof, size_t bytes, uint32_t width, uint32_t height)
{
    size_t count = bytes > 9 ? sof[9] : 4, sum = 0, across = 1, down = 1;

    for (size_t i = 0; i < count && 12 + 3 * i < bytes; i++) {
        across = base_max(across, (size_t)(sof[11 + 3 * i] >> 4));
        down = base_max(down, (size_t)(sof[11 + 3 * i] & 15));
    }
    for (size_t i = 0; i < count; i++) {
        bool known = 12 + 3 * i < bytes;
        size_t h = known ? base_max((size_t)(sof[11 + 3 * i] >> 4), (size_t)1) : across;
        size_t v = known ? base_max((size_t)(sof[11 + 3 * i] & 15), (size_t)1) : down;

        sum += (width / (8 * across) + 1) * h * (height / (8 * down) + 1) * v * 64 * 2;
    }
    return sum;
}

/* What decoding a JPEG file takes beside its pixels: some rows; and its coefficients, if it is
 * progressive or has a scan for each component. */
static size_t jpeg_work(const struct ctl_image *img)
{
    const uint8_t *d = img->data, *sof = NULL;
    size_t rows = (size_t)img->width * 3 * 64, at = 2, n = img->data_bytes;
    bool progressive = false, several = true;

    while (at + 4 <= n && d[at] == 0xff) {
        uint8_t m = d[at + 1];

        if (m == 0xff || m == 0x01 || (m >= 0xd0 && m <= 0xd7)) { /* without a length */
            at += m == 0xff ? 1 : 2;
            continue;
        }
        if (m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc) {
            sof = d + at;
            progressive = (m & 3) == 2;
        } else if (m == 0xda) {
            several = !sof || at + 4 >= n || (size_t)(sof - d) + 9 >= n || d[at + 4] < sof[9];
            break;
        }
        at += 2 + (size_t)d[at + 2] * 256 + d[at + 3];
    }
    return rows + (progressive || several
                       ? coefficients(sof ? sof : d, sof ? n - (size_t)(sof - d) : 0, img->width,
                                      img->height)
                       : 0);
}

/* An interlaced PNG file may need all its pixels a second time, to be turned. */
static size_t png_work(const struct ctl_image *img)
{
    bool interlaced = img->data_bytes > 28 && img->data[28] != 0;

    return (size_t)img->width * 16 + (interlaced ? img->bytes : 0);
}

/* Within what is ever allowed. Return: false: @r is the error. */
static bool judge_cost(const struct web_request *q, const struct ctl_image *img,
                       const struct web_need *need, struct web_reply *r)
{
    const struct web_options *o = &q->listener->web->o;
    double most = o->image_mpixels * 1e6,
           all = (double)(q->claimed + img->bytes + need->work_bytes);

    if ((double)img->width * img->height > most) {
        web_fail(r, 413, "the picture has %ux%u pixels; --image-mpixels allows %g megapixels",
                 img->width, img->height, most / 1e6);
        return false;
    }
    if (all > o->memory_mb * 1e6 * 7 / 8) {
        web_fail(r, 413,
                 "the picture of %ux%u pixels takes %.0f MB; a request may take %.0f MB, seven "
                 "eighths of --memory-mb",
                 img->width, img->height, all / 1e6, o->memory_mb * 7 / 8);
        return false;
    }
    return true;
}

bool web_picture_read(const struct web_request *q, struct ctl_image *ret, struct web_need *ret_need,
                      struct web_reply *r)
{
    struct ctl_image img = {.data = q->body, .data_bytes = q->bytes};
    bool jpeg = q->body_kind == WEB_BODY_JPEG;
    char why[512];
    int rc;

    img.kind = jpeg ? CTL_IMAGE_JPEG : CTL_IMAGE_PNG;
    rc = jpeg ? ctl_jpeg_size(&img, why, sizeof(why)) : ctl_png_size(&img, why, sizeof(why));
    if (rc < 0) {
        web_fail(r, 400, "the body is not a whole %s picture: %s%s", jpeg ? "JPEG" : "PNG", why,
                 q->untyped ? BY_CURL : "");
        return false;
    }
    img.bytes = (size_t)img.width * img.height * img.channels;
    *ret_need = (struct web_need){.width = img.width,
                                  .height = img.height,
                                  .work_bytes = jpeg ? jpeg_work(&img) : png_work(&img)};
    *ret = img;
    return judge_cost(q, &img, ret_need, r);
}

bool web_picture_decode(const struct ctl_image *img, struct piped_frame *f, struct web_reply *r)
{
    char why[512];
    int rc = img->kind == CTL_IMAGE_JPEG ? ctl_jpeg_decode(img, f->input, why, sizeof(why))
                                         : ctl_png_decode(img, f->input, why, sizeof(why));

    if (rc < 0) {
        web_fail(r, 400, "the picture cannot be decoded: %s", why);
        return false;
    }
    f->width = img->width;
    f->height = img->height;
    return true;
}
