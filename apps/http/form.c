/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/form.h"

#include <stdio.h>
#include <string.h>

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

const char *web_form_file(const char *body, size_t bytes, const char *type, struct web_span *ret)
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
