/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: connections, requests and their bodies, of libmicrohttpd. */
#include <strings.h>

#include "apps/http/tensors.h"

#define HEAD_BYTES (64u << 10) /* of a connection: its header, and a piece of its body */
#define STACK_BYTES (1u << 20)
#define BODY_LEAST 4096u
#define ENDING_LEAST 32u

static char tls_versions[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static struct web_conn *conn_of(struct MHD_Connection *http)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void on_connection(void *arg, struct MHD_Connection *http, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    const struct web_listener *l = arg;
    struct web *w = l->web;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = info ? web_conn_add(w->watch, l, info->connect_fd) : NULL;
    } else if (*context) {
        web_conn_remove(w->watch, *context);
        *context = NULL;
    }
}

static void on_completed(void *arg, struct MHD_Connection *http, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct web *w = ((struct web_listener *)arg)->web;
    struct web_request *q = *context;

    if (q) {
        web_memory_give(&w->memory, q->owner, q->claimed);
        free(q->body);
        web_conn_works(w->watch, conn_of(http), false);
        web_conn_owes(w->watch, conn_of(http), false);
    }
    free(q);
    *context = NULL;
}

/* "image/jpeg; charset=x" is image/jpeg. */
static bool is_type(const char *given, const char *type)
{
    size_t n = strlen(type);

    return strncasecmp(given, type, n) == 0 && strchr("; \t", given[n]);
}

/* What the body is. Return: false: @r says why not. */
static bool read_type(struct web_request *q, struct web_reply *r)
{
    const char *type = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Content-Type");
    const char *head =
        MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Inference-Header-Content-Length");
    const char *coding = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Content-Encoding");
    uint64_t header = SIZE_MAX;

    if (head && !web_head_number(head, SIZE_MAX - 1, &header)) {
        return web_fail(r, 400, "Inference-Header-Content-Length is not a number of bytes");
    }
    q->header_bytes = (size_t)header;
    if (coding && strcasecmp(coding, "identity") != 0) {
        return web_fail(r, 415, "bodies are not compressed (Content-Encoding)");
    }
    if (type && strncasecmp(type, "image/", 6) == 0) { /* the first bytes tell which */
        q->body_kind = WEB_BODY_PICTURE;
    } else if (type && is_type(type, "multipart/form-data")) {
        q->body_kind = WEB_BODY_FORM;
    } else if (q->header_bytes == 0 ||
               (!head && type && is_type(type, "application/octet-stream"))) {
        q->body_kind = WEB_BODY_RAW;
    } else if (!type || is_type(type, "application/json") ||
               is_type(type, "application/octet-stream") ||
               is_type(type, "application/x-www-form-urlencoded")) { /* as curl -d says */
        q->body_kind = WEB_BODY_JSON;
        q->untyped = !head && (!type || is_type(type, "application/x-www-form-urlencoded"));
    } else {
        return web_fail(
            r, 415,
            "a body is application/json, application/octet-stream, image/jpeg, image/png or "
            "multipart/form-data, not %.64s",
            type);
    }
    return true;
}

/* Whom the request is for, and what it asks for. Return: the path; NULL: @r is the answer. */
static const char *judge_target(struct web_request *q, const char *target, struct web_reply *r)
{
    const char *path = web_head_target(target, q->authority);

    q->host = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Host");
    if (!path) {
        web_fail(r, 400, "the address in the request is not http://HOST:PORT/PATH");
    } else if (*q->authority) { /* Host does not count then */
        q->host = q->authority;
    }
    return path;
}

static size_t body_most(const struct web_request *q)
{
    return q->route->body ? (size_t)(q->listener->web->o.body_mb * 1e6) : BODY_LEAST;
}

static bool fail_large(const struct web_request *q, struct web_reply *r)
{
    return q->route->body
               ? web_fail(r, 413, "the body is larger than --body-mb allows, %g MB",
                          q->listener->web->o.body_mb)
               : web_fail(r, 413, "this path takes no body; it has more than %u bytes", BODY_LEAST);
}

static bool takes(const struct web_route *route, const char *method)
{
    return route->body ? strcmp(method, "POST") == 0
                       : strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

/* Before the body comes. Return: false: @r is the answer. */
static bool judge_header(struct web_request *q, const char *path, const char *method,
                         struct web_reply *r)
{
    struct web *w = q->listener->web;
    const char *length = MHD_lookup_connection_value(q->http, MHD_HEADER_KIND, "Content-Length");

    path = judge_target(q, path, r);
    if (!path) {
        return false;
    }
    q->route = web_route_find(path, q->model, r);
    if (!web_guard_allows(q, q->route && q->route->open, r) || !q->route) {
        return false;
    }
    if (!takes(q->route, method)) {
        return web_fail(r, 405, "this path takes %s: curl %s", web_route_methods(q->route),
                        q->route->body ? "--data-binary @FILE URL" : "URL");
    }
    if (w->draining) {
        return web_fail(r, 503, "this server is stopping");
    }
    if (length && strtoull(length, NULL, 10) > body_most(q)) {
        return fail_large(q, r);
    }
    return !q->route->body || read_type(q, r);
}

/* The first line is here. Nothing is made yet: libmicrohttpd does not say when it refuses the rest
 * of the head. Return: the context of the request, none. */
static void *on_target(void *arg, const char *text, struct MHD_Connection *http)
{
    struct web_target *t = web_conn_target(conn_of(http));

    if (t) {
        *t = web_head_target_of(text ? text : "");
    }
    return NULL;
}

/* The head is here. Return: owned by on_completed(); NULL: out of memory. */
static struct web_request *request_new(struct web_listener *l, struct MHD_Connection *http)
{
    const struct web_target *t = web_conn_target(conn_of(http));
    struct web_request *q = t ? calloc(1, sizeof(*q)) : NULL;

    if (q) {
        q->listener = l;
        q->http = http;
        q->target = *t;
    }
    return q;
}

static enum MHD_Result begin(struct web_request *q, const char *path, const char *method,
                             const char *version)
{
    struct web_reply r = {0};
    const char *doubt;

    q->owner = web_conn_owner(conn_of(q->http));
    q->begin_ns = base_now_ns();
    web_conn_owes(q->listener->web->watch, conn_of(q->http), true);
    doubt = web_head_doubt(q, method, version);
    if (doubt) {
        web_fail(&r, 400, "this request can be read in two ways: %s", doubt);
        r.close = true;
        return web_send(q, &r);
    }
    return judge_header(q, path, method, &r) ? MHD_YES : web_send(q, &r);
}

/* Makes room for more of the body, within what all may take. Return: 0; a status. */
static unsigned grow(struct web_request *q, size_t needed)
{
    struct web *w = q->listener->web;
    size_t most = (size_t)(w->o.body_mb * 1e6) + 1, room = base_max(q->room, (size_t)BODY_LEAST);
    uint8_t *grown;

    while (room < needed) {
        room = base_min(room * 2, most);
    }
    if (!web_claim(q, room - q->room, NULL)) {
        return 503;
    }
    grown = realloc(q->body, room);
    if (!grown) {
        web_claim_less(q, room - q->room);
        return 503;
    }
    q->body = grown;
    q->room = room;
    return 0;
}

/* A piece of the body. What is refused is read on, but not without end. Return: MHD_NO: close. */
static enum MHD_Result receive(struct web_request *q, const char *data, size_t bytes)
{
    struct web *w = q->listener->web;
    size_t most = body_most(q);

    w->count.received_bytes += bytes;
    q->all_bytes += bytes;
    if (!q->refused && bytes > most - q->bytes) {
        q->refused = 413;
    }
    if (!q->refused && q->bytes + bytes + 1 > q->room) {
        q->refused = grow(q, q->bytes + bytes + 1);
    }
    if (q->refused) {
        return q->all_bytes > 2 * most + BODY_LEAST ? MHD_NO : MHD_YES;
    }
    memcpy(q->body + q->bytes, data, bytes);
    q->bytes += bytes;
    q->body[q->bytes] = 0;
    return MHD_YES;
}

static enum MHD_Result finish(struct web_request *q)
{
    struct web *w = q->listener->web;
    struct web_reply r = {0};

    web_conn_works(w->watch, conn_of(q->http), true);
    if (q->refused == 413) {
        fail_large(q, &r);
    } else if (q->refused) {
        web_fail_memory(&r, w);
    } else if (q->route->body && q->bytes == 0) {
        web_fail(&r, 400, "the body is empty");
    } else if (q->route->text) {
        r = (struct web_reply){.status = 200,
                               .type = q->route->type,
                               .fixed = q->route->text,
                               .bytes = strlen(q->route->text)};
    } else if (!q->route->body || web_picture_settle(q, &r)) {
        q->route->answer(q, &r);
    }
    web_conn_works(w->watch, conn_of(q->http), false);
    return web_send(q, &r);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *http, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *bytes, void **context)
{
    struct web_request *q = *context;
    enum MHD_Result rc;

    if (!q) {
        *context = q = request_new(arg, http);
        return q ? begin(q, path, method, version) : MHD_NO;
    }
    if (*bytes > 0) {
        rc = receive(q, data, *bytes);
        *bytes = 0;
        return rc;
    }
    return finish(q);
}

static void on_log(void *arg, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* What clients do wrong is not logged; they are told. */
static void on_log(void *arg, const char *format, va_list args)
{
    const struct web_listener *l = arg;
    char text[256];

    if (!l->mhd) {
        vsnprintf(text, sizeof(text), format, args);
        text[strcspn(text, "\n")] = '\0';
        web_log("%s: %s", l->text, text);
    }
}

bool web_server_start(struct web_listener *l, const struct web_tls *tls)
{
    const struct web_options *o = &l->web->o;
    struct MHD_OptionItem more[8] = {0};
    /* Who gets a place is decided by watch.c; those that it cut end a little later. */
    unsigned most = o->connections * 2 + ENDING_LEAST;
    size_t n = 0;

    if (l->tls) {
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, tls->cert};
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key};
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, tls_versions};
        if (tls->ca) {
            more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, tls->ca};
        }
    }
    more[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    l->mhd = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC | MHD_USE_ERROR_LOG | (l->tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, l, MHD_OPTION_EXTERNAL_LOGGER, on_log, l,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, l, MHD_OPTION_LISTEN_SOCKET, l->fd,
        MHD_OPTION_CONNECTION_LIMIT, most, MHD_OPTION_UNESCAPE_CALLBACK, web_head_unescape, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, web_head_strictness(),
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        l, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    if (!l->mhd) {
        web_log("%s: cannot serve there", l->text);
    }
    return l->mhd != NULL;
}
