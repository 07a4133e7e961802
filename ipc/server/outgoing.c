/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/outgoing.h"

#include <sys/socket.h>

#define FIRST_BYTES ((size_t)4096)

void ipc_outgoing_deinit(struct ipc_outgoing *o)
{
    free(o->bytes);
    *o = (struct ipc_outgoing){0};
}

/* Makes room for @bytes more to write. */
static bool reserve(struct ipc_outgoing *o, size_t bytes)
{
    size_t need;

    if (o->pos > 0 && o->pos == o->used) {
        o->pos = o->used = 0;
    }
    if (!base_add(o->used, bytes, &need)) {
        return false;
    }
    if (need <= o->size) {
        return true;
    }
    if (o->pos > 0) {
        memmove(o->bytes, o->bytes + o->pos, o->used - o->pos);
        o->used -= o->pos;
        o->pos = 0;
        need = o->used + bytes;
    }
    return base_room_for(&o->bytes, 1, base_max(need, FIRST_BYTES), &o->size);
}

bool ipc_outgoing_add(struct ipc_outgoing *o, struct ipc_header h, const void *payload,
                      size_t bytes, const void *tail, size_t tail_bytes)
{
    if (!reserve(o, IPC_HEADER_BYTES + bytes + tail_bytes)) {
        return false;
    }
    h.version = IPC_VERSION;
    h.length = (uint32_t)(bytes + tail_bytes);
    memcpy(o->bytes + o->used, &h, sizeof(h));
    o->used += IPC_HEADER_BYTES;
    if (bytes) {
        memcpy(o->bytes + o->used, payload, bytes);
        o->used += bytes;
    }
    if (tail_bytes) {
        memcpy(o->bytes + o->used, tail, tail_bytes);
        o->used += tail_bytes;
    }
    return true;
}

bool ipc_outgoing_flush(struct ipc_outgoing *o, int fd)
{
    while (o->pos < o->used) {
        ssize_t n = send(fd, o->bytes + o->pos, o->used - o->pos, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (o->stuck_ns == 0) {
                o->stuck_ns = base_now_ns();
            }
            return true;
        }
        if (n < 0) {
            return false;
        }
        o->pos += (size_t)n;
        o->stuck_ns = 0;
    }
    o->pos = o->used = 0;
    if (o->size > 16 * FIRST_BYTES) { /* after a burst: give the memory back */
        free(o->bytes);
        o->bytes = NULL;
        o->size = 0;
    }
    return true;
}
