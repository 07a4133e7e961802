/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: the head of a request. */
#include "apps/http/web.h"

#include <strings.h>

/* The version whose way to keep a head in memory is_plain() knows. Later ones refuse by themselves
 * what it looks for. */
#define KEPT_VERSION "0.9.75"

/* Of two, one server takes the first and another the last. */
#define ONCE(name)                                                                                 \
    {                                                                                              \
        name, "it has more than one " name                                                         \
    }
static const struct {
    const char *name, *why;
} once[] = {
    ONCE("Host"),         ONCE("Authorization"),    ONCE("Origin"),
    ONCE("Content-Type"), ONCE("Content-Encoding"), ONCE("Inference-Header-Content-Length")};

struct seen {
    unsigned length, coding;
    bool once[base_array_count(once)];
    const char *coding_text;
    const char *why; /* NULL: nothing is wrong with any header */
};

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_token(const char *s, size_t bytes)
{
    static const char *const other = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < bytes; i++) {
        if (!is_alphanumeric(s[i]) && !(s[i] && strchr(other, s[i]))) {
            return false;
        }
    }
    return bytes > 0;
}

static bool is_text(const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool is(const char *name, size_t bytes, const char *wanted)
{
    return bytes == strlen(wanted) && strncasecmp(name, wanted, bytes) == 0;
}

static void count_once(struct seen *seen, const char *name, size_t bytes)
{
    for (size_t i = 0; i < base_array_count(once); i++) {
        if (is(name, bytes, once[i].name)) {
            seen->why = seen->once[i] ? once[i].why : NULL;
            seen->once[i] = true;
        }
    }
}

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                 size_t name_bytes, const char *value, size_t value_bytes)
{
    struct seen *l = arg;

    if (!is_token(name, name_bytes)) {
        l->why = "the name of a header has characters that are not allowed";
    } else if (value && !is_text(value, value_bytes)) {
        l->why = "a header has control characters";
    } else if (is(name, name_bytes, "Content-Length")) {
        l->length++;
    } else if (is(name, name_bytes, "Transfer-Encoding")) {
        l->coding++;
        l->coding_text = value;
    } else {
        count_once(l, name, name_bytes);
    }
    return l->why ? MHD_NO : MHD_YES;
}

/*
 * Whether each header is a line of its own that ends with CRLF. libmicrohttpd 0.9.75 keeps the head
 * as it came, but for NULs in place of CR, LF and the colons, and says how long it is:
 * METHOD\0PATH\0VERSION\0\0NAME\0VALUE\0\0 and so on. @version points into it.
 */
static bool is_plain(const char *method, const char *version, size_t head_bytes)
{
    const char *at = version, *end = method + head_bytes;

    if (version < method || version >= end) {
        return true; /* it is kept in another way */
    }
    at += strnlen(at, (size_t)(end - at));
    for (;;) {
        if (end - at < 4 || at[0] || at[1]) {
            return false; /* a bare LF */
        }
        at += 2;
        if (!at[0]) {
            return end - at == 2 && !at[1];
        }
        if (at[0] == ' ' || at[0] == '\t') {
            return false; /* goes on with the line before */
        }
        at += strnlen(at, (size_t)(end - at)); /* the name */
        at += at < end;                        /* its colon */
        at += strnlen(at, (size_t)(end - at)); /* the value */
    }
}

static bool is_kept(void)
{
    return strcmp(MHD_get_version(), KEPT_VERSION) == 0;
}

int web_head_strictness(void)
{
    return is_kept() ? 0 : 1;
}

static bool is_one_word(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && is_text(s, n) && !strpbrk(s, " \t");
}

struct web_target web_head_target_of(const char *text)
{
    return (struct web_target){.plain = is_one_word(text), .bytes = strlen(text)};
}

/* Whether METHOD and the target are the whole line before the version, but for one space behind
 * each: libmicrohttpd takes either only up to a NUL, and skips further spaces. */
static bool is_whole(const struct web_request *q, const char *method, const char *version)
{
    return version < method ||
           (size_t)(version - method) == strlen(method) + 1 + q->target.bytes + 1;
}

/* What is wrong with the lines themselves. */
static const char *line_doubt(const struct web_request *q, const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(q->http, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    if (!q->target.plain || !is_one_word(method) || (is_kept() && !is_whole(q, method, version))) {
        return "its first line has control characters, or spaces where none belong";
    }
    if (info && is_kept() && !is_plain(method, version, info->header_size)) {
        return "a header is folded over lines, or a line does not end with CR and LF";
    }
    return NULL;
}

const char *web_head_doubt(const struct web_request *q, const char *method, const char *version)
{
    struct seen l = {0};

    MHD_get_connection_values_n(q->http, MHD_HEADER_KIND, on_header, &l);
    if (l.why) {
        return l.why;
    }
    if (l.length > 1 || l.coding > 1 || (l.length && l.coding)) {
        return "its length is given twice (Content-Length, Transfer-Encoding)";
    }
    if (l.coding && (!l.coding_text || strcasecmp(l.coding_text, "chunked") != 0)) {
        return "Transfer-Encoding can only be chunked";
    }
    if (l.coding && strcmp(version, "HTTP/1.1") != 0) {
        return "Transfer-Encoding needs HTTP/1.1";
    }
    if (!l.once[0] && strcmp(version, "HTTP/1.0") != 0) {
        return "it has no Host";
    }
    return line_doubt(q, method, version);
}

bool web_head_number(const char *text, uint64_t most, uint64_t *ret)
{
    unsigned long long v;
    char *end;

    errno = 0;
    v = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (*text < '0' || *text > '9' || *end || errno || v > most) {
        return false;
    }
    *ret = v;
    return true;
}

bool web_head_host(const char *authority, char *ret)
{
    size_t n = authority[0] == '[' ? strcspn(authority, "]") + 1 : strcspn(authority, ":");
    const char *port = n <= strlen(authority) ? authority + n : "?";

    if (n == 0 || n >= WEB_HOST_BYTES || (*port && *port != ':') ||
        strspn(port + (*port == ':'), "0123456789") != strlen(port + (*port == ':')) ||
        strlen(port) > 6) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        char c = authority[i];

        if (!is_alphanumeric(c) && !strchr(authority[0] == '[' ? ".-_[]:%" : ".-_", c)) {
            return false;
        }
    }
    snprintf(ret, WEB_HOST_BYTES, "%.*s", (int)n, authority);
    return true;
}

const char *web_head_target(const char *target, char *ret_host)
{
    static const char *const schemes[] = {"http://", "https://"};
    char host[WEB_HOST_BYTES];

    *ret_host = '\0';
    for (size_t i = 0; i < base_array_count(schemes); i++) {
        size_t scheme = strlen(schemes[i]), n;

        if (strncasecmp(target, schemes[i], scheme) == 0) {
            n = strcspn(target + scheme, "/");
            if (n == 0 || n >= WEB_HOST_BYTES) {
                return NULL;
            }
            snprintf(ret_host, WEB_HOST_BYTES, "%.*s", (int)n, target + scheme);
            target += scheme + n;
            return web_head_host(ret_host, host) ? *target ? target : "/" : NULL;
        }
    }
    return target;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

size_t web_head_unescape(void *arg, struct MHD_Connection *http, char *text)
{
    char *to = text;

    for (const char *at = text; *at;) {
        int high = at[0] == '%' ? digit(at[1]) : -1, low = high < 0 ? -1 : digit(at[2]);
        int c = high < 0 || low < 0 ? -1 : high * 16 + low;

        if (c > 0 && c != '/') {
            *to++ = (char)c;
            at += 3;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}
