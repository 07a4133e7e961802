/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base.h"
#include "daemon/config/config.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

#define OUT_FIRST_BYTES 4096u

void dmn_peer_deinit(struct dmn_peer *p)
{
    free(base_take(p->out));
}

void dmn_peer_settled(struct dmn_peer *p)
{
    if (p->unsettled) {
        p->unsettled = false;
        LIST_REMOVE(p, linked);
    }
}

void dmn_peer_close(struct dmn_peer *p)
{
    p->closed = true;
    dmn_peer_settled(p);
}

bool dmn_peer_over_limit(const struct dmn_peer *p)
{
    size_t limit = (size_t)dmn_config_int(*p->frames->config, DMN_KEY_LIMIT_BACKLOG_KIB) << 10;

    return p->out_used - p->out_pos > limit;
}

/* Makes room for @bytes more to write. */
static bool reserve(struct dmn_peer *p, size_t bytes)
{
    size_t need, size;
    uint8_t *grown;

    if (p->out_pos > 0 && p->out_pos == p->out_used) {
        p->out_pos = p->out_used = 0;
    }
    if (!base_add(p->out_used, bytes, &need)) {
        return false;
    }
    if (need <= p->out_size) {
        return true;
    }
    if (p->out_pos > 0) {
        memmove(p->out, p->out + p->out_pos, p->out_used - p->out_pos);
        p->out_used -= p->out_pos;
        p->out_pos = 0;
        need = p->out_used + bytes;
    }
    size = p->out_size ? p->out_size : OUT_FIRST_BYTES;
    while (size < need) {
        size *= 2;
    }
    if (size > p->out_size) {
        grown = realloc(p->out, size);
        if (!grown) {
            return false;
        }
        p->out = grown;
        p->out_size = size;
    }
    return true;
}

void dmn_peer_send(struct dmn_peer *p, struct ipc_header h, const void *payload, size_t bytes,
                   const void *tail, size_t tail_bytes)
{
    if (p->closed || p->ending) { /* nothing follows an ERROR */
        return;
    }
    if (!reserve(p, IPC_HEADER_BYTES + bytes + tail_bytes)) {
        dmn_log_limited(LOG_ERR, (struct dmn_log_fields){.client = p->client},
                        "out of memory for an answer to client \"%s\"", p->client);
        p->ending = true;
        dmn_peer_mark(p);
        return;
    }
    h.version = IPC_VERSION;
    h.length = (uint32_t)(bytes + tail_bytes);
    ipc_put_header(&h, p->out + p->out_used);
    p->out_used += IPC_HEADER_BYTES;
    if (bytes) {
        memcpy(p->out + p->out_used, payload, bytes);
        p->out_used += bytes;
    }
    if (tail_bytes) {
        memcpy(p->out + p->out_used, tail, tail_bytes);
        p->out_used += tail_bytes;
    }
    dmn_peer_mark(p);
}

void dmn_peer_fail(struct dmn_peer *p, enum ipc_status status, const char *format, ...)
{
    char text[IPC_TEXT_MAX];
    va_list args;

    if (p->ending || p->closed) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dmn_log_limited(LOG_INFO,
                    ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED, .client = p->client}),
                    "closing the connection of client \"%s\" (pid %d, user %u): %s", p->client,
                    (int)p->pid, (unsigned)p->account->uid, text);
    dmn_peer_send(p, (struct ipc_header){.type = IPC_ERROR, .status = (uint16_t)status}, NULL, 0,
                  text, strlen(text));
    p->ending = true;
}

bool dmn_peer_flush(struct dmn_peer *p)
{
    while (p->out_pos < p->out_used) {
        ssize_t n =
            send(p->fd, p->out + p->out_pos, p->out_used - p->out_pos, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (p->stuck_ns == 0) {
                p->stuck_ns = base_now_ns();
            }
            return true;
        }
        if (n < 0) {
            return false;
        }
        p->out_pos += (size_t)n;
        p->stuck_ns = 0;
    }
    p->out_pos = p->out_used = 0;
    if (p->out_size > 16 * OUT_FIRST_BYTES) { /* after a burst: give the memory back */
        free(p->out);
        p->out = NULL;
        p->out_size = 0;
    }
    return true;
}
