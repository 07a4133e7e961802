/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: infer requests whose body is a JPEG or PNG file. */
#include "apps/http/tensors.h"

/* curl -d @FILE leaves out line ends, and bytes of 0. */
#define STRIPPED_PNG "\x89PNG\x1a"
#define BY_CURL "; curl sends a picture whole by --data-binary @FILE, not by -d"

/* ---- a file in a body of multipart/form-data (RFC 7578), as curl -F sends it ---- */

#define BOUNDARY_MAX 70u /* RFC 2046 */

/* Writes "\r\n--BOUNDARY". Return: its length; 0: there is no boundary. */
static size_t read_boundary(const char *type, char ret[BOUNDARY_MAX + 5])
{
    const char *at = strcasestr(type, "boundary=");
    size_t n;

    if (!at) {
        return 0;
    }
    at += 9;
    at += *at == '"';
    n = strcspn(at, at[-1] == '"' ? "\"" : "; \t");
    if (n == 0 || n > BOUNDARY_MAX) {
        return 0;
    }
    return (size_t)snprintf(ret, BOUNDARY_MAX + 5, "\r\n--%.*s", (int)n, at);
}

/* Finds the only part of @body. @type: its Content-Type, with the boundary. @ret: what the part
 * holds, borrowed from @body. Return: NULL; else what is wrong. */
static const char *form_file(const char *body, size_t bytes, const char *type, struct web_span *ret)
{
    char limit[BOUNDARY_MAX + 5];
    size_t n = read_boundary(type, limit);
    const char *at, *end = body + bytes, *close;

    /* The first boundary may begin the body. */
    if (n == 0 || bytes < n || memcmp(body, limit + 2, n - 2) != 0 ||
        memcmp(body + n - 2, "\r\n", 2) != 0) {
        return "the form in the body cannot be read";
    }
    at = memmem(body + n - 2, bytes - (n - 2), "\r\n\r\n", 4); /* the part's headers end */
    at = at ? at + 4 : end;
    close = memmem(at, (size_t)(end - at), limit, n);
    if (!close || end - close < (ptrdiff_t)n + 2) {
        return "the form in the body is not complete";
    }
    if (memcmp(close + n, "--", 2) != 0) {
        return "the form has more than one part";
    }
    *ret = (struct web_span){at, (size_t)(close - at)};
    return NULL;
}

/* Return: false: it is not a body of which there is one picture. */
static bool take_form(struct web_request *q, struct web_reply *r)
{
    const char *type = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Content-Type");
    struct web_span file;
    const char *why = form_file((const char *)q->body, q->bytes, type ? type : "", &file);

    if (why) {
        return web_fail(
            r, 400,
            "%s; send one picture, or the picture itself as the body: curl --data-binary "
            "@FILE -H 'Content-Type: image/png'",
            why);
    }
    memmove(q->body, file.text, file.bytes);
    q->bytes = file.bytes;
    q->body[q->bytes] = '\0';
    return true;
}

/* ---- pictures ---- */

bool web_picture_settle(struct web_request *q, struct web_reply *r)
{
    const char *foreign = NULL;
    enum picture_kind kind;

    if (q->body_kind == WEB_BODY_FORM && !take_form(q, r)) {
        return false;
    }
    kind = picture_known(q->body, q->bytes, &foreign);
    if (q->body_kind == WEB_BODY_JSON && !q->untyped && kind != PICTURE_RAW) {
        return web_fail(r, 415, "the body is a picture, not JSON: -H 'Content-Type: image/%s'",
                        kind == PICTURE_JPEG ? "jpeg" : "png");
    }
    if (q->body_kind == WEB_BODY_RAW || (q->body_kind == WEB_BODY_JSON && !q->untyped)) {
        return true;
    }
    if (kind == PICTURE_RAW && q->bytes >= 5 && memcmp(q->body, STRIPPED_PNG, 5) == 0) {
        return web_fail(r, 400, "the body is a PNG picture without its line ends" BY_CURL);
    }
    if (kind != PICTURE_RAW) {
        q->body_kind = kind == PICTURE_JPEG ? WEB_BODY_JPEG : WEB_BODY_PNG;
        return true;
    }
    if (foreign) {
        web_fail(r, 415, "the body is %s", foreign);
    } else if (q->body_kind != WEB_BODY_JSON) {
        web_fail(r, 400, "the body is neither a JPEG nor a PNG picture");
    }
    return !foreign && q->body_kind == WEB_BODY_JSON;
}

/* Within what is ever allowed. Return: false: @r is the error. */
static bool judge_cost(const struct web_request *q, const struct picture *img,
                       const struct web_need *need, struct web_reply *r)
{
    const struct web_options *o = &q->listener->web->o;
    double most = o->image_mpixels * 1e6,
           all = (double)(q->claimed + img->bytes + need->work_bytes);

    if ((double)img->width * img->height > most) {
        return web_fail(r, 413,
                        "the picture has %ux%u pixels; --image-mpixels allows %g megapixels",
                        img->width, img->height, most / 1e6);
    }
    if (all > o->memory_mb * 1e6 * 7 / 8) {
        return web_fail(
            r, 413,
            "the picture of %ux%u pixels takes %.0f MB; a request may take %.0f MB, seven "
            "eighths of --memory-mb",
            img->width, img->height, all / 1e6, o->memory_mb * 7 / 8);
    }
    return true;
}

bool web_picture_read(const struct web_request *q, struct picture *ret, struct web_need *ret_need,
                      struct web_reply *r)
{
    struct picture img = {.data = q->body, .data_bytes = q->bytes};
    bool jpeg = q->body_kind == WEB_BODY_JPEG;
    char why[PICTURE_ERROR_MAX];
    int rc;

    img.kind = jpeg ? PICTURE_JPEG : PICTURE_PNG;
    rc = picture_measure(&img, why);
    if (rc < 0) {
        return web_fail(r, 400, "the body is not a whole %s picture: %s%s", jpeg ? "JPEG" : "PNG",
                        why, q->untyped ? BY_CURL : "");
    }
    *ret_need =
        (struct web_need){.width = img.width, .height = img.height, .work_bytes = img.work_bytes};
    *ret = img;
    return judge_cost(q, &img, ret_need, r);
}

bool web_picture_decode(const struct picture *img, struct piped_frame *f, struct web_reply *r)
{
    char why[PICTURE_ERROR_MAX];

    if (picture_decode(img, f->input, why) < 0) {
        return web_fail(r, 400, "the picture cannot be decoded: %s", why);
    }
    f->width = img->width;
    f->height = img->height;
    return true;
}
