/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: answers. */
#include "apps/http/web.h"

#include "base/json_text.h"
#include "base/shown_text.h"
#include "ipc/piped.h"

/* Everything is from this server; nothing may be embedded, guessed or kept. */
static const char *const POLICY =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static bool make_room(struct web_text *t, size_t count)
{
    t->failed = t->failed || !base_room_for(&t->data, 1, t->used + count, &t->size);
    return !t->failed;
}

void web_text_add(struct web_text *t, const void *bytes, size_t count)
{
    if (count > 0 && make_room(t, count)) {
        memcpy(t->data + t->used, bytes, count);
        t->used += count;
    }
}

void web_text_printf(struct web_text *t, const char *format, ...)
{
    va_list args, again;
    int n;

    va_start(args, format);
    va_copy(again, args);
    n = make_room(t, 64) ? vsnprintf(t->data + t->used, t->size - t->used, format, args) : 0;
    if (n > 0 && (size_t)n >= t->size - t->used && make_room(t, (size_t)n + 1)) {
        vsnprintf(t->data + t->used, t->size - t->used, format, again);
    }
    t->used += t->failed || n < 0 ? 0 : (size_t)n;
    va_end(again);
    va_end(args);
}

void web_text_json(struct web_text *t, json_t *value)
{
    base_autofree char *text =
        json_text(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

    json_decref(value);
    t->failed |= !text;
    if (text) {
        web_text_add(t, text, strlen(text));
    }
}

void web_reply_forget(struct web_reply *r)
{
    free(r->body);
    *r = (struct web_reply){0};
}

bool web_fail(struct web_reply *r, unsigned status, const char *format, ...)
{
    base_autofree char *text = NULL;
    char room[1024];
    va_list args;
    json_t *value;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    text = n < 0 ? NULL : text;
    if (text) { /* it may quote what a client sent: cut in the middle, the reason is left */
        shown_clean(text, "\n\t");
    }
    value = text ? json_pack("{s:s}", "error", shown_short(text, room, sizeof(room))) : NULL;
    web_reply_forget(r);
    r->retry_s = status == 429 || status == 503;
    web_reply_json(r, value);
    r->status = status;
    return false;
}

bool web_claim(struct web_request *q, size_t bytes, struct web_reply *r)
{
    bool fits = web_memory_claim(&q->listener->web->memory, q->owner, bytes, NULL);

    q->claimed += fits ? bytes : 0;
    return fits || (r && web_fail_memory(r, q->listener->web));
}

void web_claim_less(struct web_request *q, size_t bytes)
{
    web_memory_give(&q->listener->web->memory, q->owner, bytes);
    q->claimed -= bytes;
}

bool web_fail_memory(struct web_reply *r, const struct web *w)
{
    return web_fail(r, 503, "all requests together take more memory than --memory-mb allows, %g MB",
                    w->o.memory_mb);
}

void web_fail_frame(struct web_reply *r, int status, const char *text)
{
    static const unsigned codes[] = {
        [PIPED_INVALID_ARGUMENT] = 400,
        [PIPED_NOT_FOUND] = 404,
        [PIPED_PERMISSION_DENIED] = 403,
        [PIPED_UNSUPPORTED] = 400,
        [PIPED_RESOURCE_EXHAUSTED] = 429,
        [PIPED_UNAVAILABLE] = 503,
        [PIPED_DEADLINE_EXCEEDED] = 504,
        [PIPED_CANCELLED] = 503,
        [PIPED_DROPPED] = 503,
    };
    unsigned code = status > 0 && (size_t)status < base_array_count(codes) ? codes[status] : 0;

    web_fail(r, code ? code : 500, "%s: %s", piped_status_name(status), text);
}

void web_fail_open(struct web_reply *r, int rc, bool connected, const char *text)
{
    unsigned code = rc == -EBUSY                         ? 429
                    : rc == -ENOMEM || rc == -EPROTO     ? 500
                    : !connected                         ? 503
                    : rc == -ENOENT                      ? 404
                    : rc == -EOPNOTSUPP || rc == -EINVAL ? 400
                    : rc == -EPERM                       ? 403
                    : rc == -ETIMEDOUT                   ? 504
                                                         : 503;

    web_fail(r, code, "%s", text);
}

void web_reply_text(struct web_reply *r, const char *type, struct web_text *t)
{
    if (t->failed) {
        free(t->data);
        web_fail(r, 500, "out of memory");
        return;
    }
    r->status = 200;
    r->type = type;
    r->body = t->data;
    r->bytes = t->used;
}

void web_reply_json(struct web_reply *r, json_t *value)
{
    struct web_text t = {.failed = !value};

    if (value) {
        web_text_json(&t, value);
        web_text_add(&t, "\n", 1);
    }
    if (t.failed) {
        free(t.data);
        *r = (struct web_reply){.status = 500,
                                .type = "application/json",
                                .fixed = "{\"error\":\"out of memory\"}\n",
                                .bytes = 27};
        return;
    }
    web_reply_text(r, "application/json", &t);
}

static void add_headers(const struct web_request *q, const struct web_reply *r,
                        struct MHD_Response *m)
{
    char text[32];

    MHD_add_response_header(m, "Content-Type", r->type);
    MHD_add_response_header(m, "Cache-Control", "no-store");
    MHD_add_response_header(m, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(m, "Cross-Origin-Resource-Policy", "same-origin");
    if (strncmp(r->type, "text/html", 9) == 0) {
        MHD_add_response_header(m, "Content-Security-Policy", POLICY);
        MHD_add_response_header(m, "Referrer-Policy", "no-referrer");
    }
    if (r->json_bytes) {
        snprintf(text, sizeof(text), "%zu", r->json_bytes);
        MHD_add_response_header(m, "Inference-Header-Content-Length", text);
    }
    if (r->retry_s) {
        snprintf(text, sizeof(text), "%u", r->retry_s);
        MHD_add_response_header(m, "Retry-After", text);
    }
    if (*r->timing) {
        MHD_add_response_header(m, "Server-Timing", r->timing);
    }
    if (r->status == 401) {
        MHD_add_response_header(m, "WWW-Authenticate", "Bearer");
    }
    if (r->status == 405) {
        MHD_add_response_header(m, "Allow", web_route_methods(q->route));
    }
    /* libmicrohttpd takes LF alone for the end of lines in a body that comes in chunks, so another
     * server may see the body end elsewhere: nothing behind it is read as a request. */
    if (q->listener->web->draining || r->close ||
        MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Transfer-Encoding")) {
        MHD_add_response_header(m, "Connection", "close");
    }
}

enum MHD_Result web_send(struct web_request *q, struct web_reply *r)
{
    struct web *w = q->listener->web;
    struct MHD_Response *m;
    enum MHD_Result rc;

    m = MHD_create_response_from_buffer(r->bytes,
                                        r->body ? (void *)r->body : (void *)(uintptr_t)r->fixed,
                                        r->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!m) {
        free(r->body);
        return MHD_NO;
    }
    add_headers(q, r, m);
    if (r->status < WEB_CODES) {
        w->count.codes[r->status]++;
    }
    w->count.sent_bytes += r->bytes;
    rc = MHD_queue_response(q->http, r->status, m);
    MHD_destroy_response(m);
    return rc;
}
