/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: messages to other boards, lines to the journal. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "ipc/link/link.h"

void link_log(const char *format, ...)
{
    va_list args;

    fputs("piped-link: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int link_put(struct link *l, size_t peer, enum lnk_lane lane, const struct lnk_message *m,
             const struct lnk_bytes *range, size_t count, void (*released)(void *arg), void *arg)
{
    uint8_t first[LNK_FIRST_MAX];
    uint64_t payload = 0;
    size_t n;

    for (size_t i = 0; i < count; i++) {
        payload += range[i].bytes;
    }
    n = lnk_put(m, payload, first);
    return n ? lnk_send(l->transport, peer, lane, (struct lnk_bytes){first, n}, range, count,
                        released, arg)
             : -EINVAL;
}

int link_put_error(struct link *l, size_t peer, const struct lnk_error *error, const char *text)
{
    struct lnk_message m = {.header.type = LNK_ERROR, .error = *error};

    m.tail = (const uint8_t *)text;
    m.tail_bytes = strnlen(text, LNK_TEXT_MAX);
    return link_put(l, peer, LNK_BULK, &m, NULL, 0, NULL, NULL);
}
