/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

#define OUT_FIRST_BYTES 4096u

static size_t backlog_limit(const struct dmn_conn *c)
{
    return (size_t)dmn_config_int(c->daemon->config, DMN_KEY_LIMIT_BACKLOG_KIB) << 10;
}

bool dmn_conn_backlogged(const struct dmn_conn *c)
{
    return c->out_used - c->out_pos > backlog_limit(c);
}

struct dmn_stream *dmn_conn_stream(const struct dmn_conn *c, uint32_t id)
{
    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i]->id == id) {
            return c->streams[i];
        }
    }
    return NULL;
}

void dmn_conn_mark(struct dmn_conn *c)
{
    struct dmn_frames *f = &c->daemon->frames;

    if (!c->dirty && !c->closed) {
        c->dirty = true;
        c->next_dirty = f->dirty;
        f->dirty = c;
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct dmn_conn *c = handle->data;

    close(c->fd);
    free(c->out);
    free(c);
}

void dmn_conn_close(struct dmn_conn *c)
{
    struct dmn_frames *f = &c->daemon->frames;

    if (c->closed) {
        return;
    }
    c->closed = true;
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        f->conns = c->next;
    }
    if (c->next) {
        c->next->prev = c->prev;
    }
    f->conn_count--;
    while (c->stream_count > 0) {
        dmn_stream_orphan(c->streams[--c->stream_count]);
    }
    while (c->fd_count > 0) {
        close(c->fds[--c->fd_count]);
    }
    c->account->connections--;
    dmn_account_trim(f);
    if (c->dirty) {
        struct dmn_conn **at = &f->dirty;

        while (*at && *at != c) { /* not there while it is being worked on */
            at = &(*at)->next_dirty;
        }
        if (*at) {
            *at = c->next_dirty;
        }
    }
    uv_close((uv_handle_t *)&c->poll, on_closed);
}

/* Room for @bytes more to write. */
static bool reserve(struct dmn_conn *c, size_t bytes)
{
    size_t need, size;
    uint8_t *grown;

    if (c->out_pos > 0 && c->out_pos == c->out_used) {
        c->out_pos = c->out_used = 0;
    }
    if (!base_add(c->out_used, bytes, &need)) {
        return false;
    }
    if (need <= c->out_size) {
        return true;
    }
    if (c->out_pos > 0) {
        memmove(c->out, c->out + c->out_pos, c->out_used - c->out_pos);
        c->out_used -= c->out_pos;
        c->out_pos = 0;
        need = c->out_used + bytes;
    }
    size = c->out_size ? c->out_size : OUT_FIRST_BYTES;
    while (size < need) {
        size *= 2;
    }
    if (size > c->out_size) {
        grown = realloc(c->out, size);
        if (!grown) {
            return false;
        }
        c->out = grown;
        c->out_size = size;
    }
    return true;
}

void dmn_conn_send(struct dmn_conn *c, struct ipc_header h, const void *payload, size_t bytes,
                   const void *tail, size_t tail_bytes)
{
    if (c->closed || c->ending) { /* nothing follows an ERROR */
        return;
    }
    if (!reserve(c, IPC_HEADER_BYTES + bytes + tail_bytes)) {
        dmn_log_limited(LOG_ERR, (struct dmn_log_fields){.client = c->client},
                        "out of memory for an answer to client \"%s\"", c->client);
        c->ending = true;
        dmn_conn_mark(c);
        return;
    }
    h.version = IPC_VERSION;
    h.length = (uint32_t)(bytes + tail_bytes);
    ipc_put_header(&h, c->out + c->out_used);
    c->out_used += IPC_HEADER_BYTES;
    if (bytes) {
        memcpy(c->out + c->out_used, payload, bytes);
        c->out_used += bytes;
    }
    if (tail_bytes) {
        memcpy(c->out + c->out_used, tail, tail_bytes);
        c->out_used += tail_bytes;
    }
    dmn_conn_mark(c);
}

void dmn_conn_fail(struct dmn_conn *c, enum ipc_status status, const char *format, ...)
{
    char text[IPC_TEXT_MAX];
    va_list args;

    if (c->ending || c->closed) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dmn_log_limited(LOG_INFO,
                    ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED, .client = c->client}),
                    "closing the connection of client \"%s\" (pid %d, user %u): %s", c->client,
                    (int)c->pid, (unsigned)c->account->uid, text);
    dmn_conn_send(c, (struct ipc_header){.type = IPC_ERROR, .status = (uint16_t)status}, NULL, 0,
                  text, strlen(text));
    c->ending = true;
}

/* Writes what can be written. */
static void flush(struct dmn_conn *c)
{
    while (c->out_pos < c->out_used) {
        ssize_t n =
            send(c->fd, c->out + c->out_pos, c->out_used - c->out_pos, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (c->stuck_ns == 0) {
                c->stuck_ns = base_now_ns();
            }
            return;
        }
        if (n < 0) {
            dmn_conn_close(c);
            return;
        }
        c->out_pos += (size_t)n;
        c->stuck_ns = 0;
    }
    c->out_pos = c->out_used = 0;
    if (c->out_size > 16 * OUT_FIRST_BYTES) { /* a burst is over: give the memory back */
        free(c->out);
        c->out = NULL;
        c->out_size = 0;
    }
}

static void hello(struct dmn_conn *c, const uint8_t *payload)
{
    struct ipc_welcome w = {.version = IPC_VERSION,
                            .payload_max = IPC_PAYLOAD_MAX,
                            .pool_bytes_max = IPC_POOL_BYTES_MAX,
                            .server = "piped " PIPED_VERSION,
                            .instance = c->daemon->frames.instance};
    uint8_t bytes[IPC_WELCOME_BYTES];
    struct ipc_hello m;

    w.streams_max = (uint32_t)dmn_config_int(c->daemon->config, DMN_KEY_LIMIT_STREAMS);
    if (ipc_get_hello(payload, IPC_HELLO_BYTES, &m) != 0) {
        dmn_conn_fail(c, IPC_PROTOCOL, "a field of HELLO is out of range");
        return;
    }
    if (m.version_min > IPC_VERSION || m.version_max < IPC_VERSION) {
        dmn_conn_fail(c, IPC_UNSUPPORTED, "this daemon speaks version %u, the client %u to %u",
                      IPC_VERSION, m.version_min, m.version_max);
        return;
    }
    c->greeted = true;
    snprintf(c->client, sizeof(c->client), "%s", m.client);
    ipc_put_welcome(&w, bytes);
    dmn_conn_send(c, (struct ipc_header){.type = IPC_WELCOME}, bytes, sizeof(bytes), NULL, 0);
}

/* A FRAME or INLINE whose struct is there; what is left of the payload is read or skipped. */
static void frame(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct dmn_stream *s = dmn_conn_stream(c, h->stream);
    struct dmn_record *r;
    size_t wanted = 0;

    if (h->type == IPC_INLINE) {
        c->skip_bytes = h->length - IPC_FRAME_BYTES;
    }
    if (!s || s->closing) {
        struct ipc_result m = {0};
        uint8_t bytes[IPC_RESULT_BYTES];
        static const char text[] = "no such stream";

        ipc_put_result(&m, bytes);
        dmn_conn_send(c,
                      (struct ipc_header){.type = IPC_RESULT,
                                          .stream = h->stream,
                                          .status = IPC_NOT_FOUND,
                                          .frame = h->frame,
                                          .time_ns = h->time_ns},
                      bytes, sizeof(bytes), text, sizeof(text) - 1);
        return;
    }
    r = dmn_record_new(s, h, payload, &wanted);
    if (wanted > 0) {
        c->reading = r;
        c->reading_done = 0;
        c->reading_bytes = wanted;
        c->skip_bytes = 0;
    } else if (r->state == DMN_RECORD_READING) {
        dmn_record_ready(r);
    }
    dmn_conn_mark(c);
}

/* One message whose fixed part is in the buffer; its fds were claimed. */
static void dispatch(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload, int fd)
{
    struct dmn_stream *s;

    if (!c->greeted && h->type != IPC_HELLO) {
        dmn_conn_fail(c, IPC_PROTOCOL, "%s before HELLO", ipc_type_name(h->type));
        return;
    }
    switch (h->type) {
    case IPC_HELLO:
        if (c->greeted) {
            dmn_conn_fail(c, IPC_PROTOCOL, "a second HELLO");
        } else {
            hello(c, payload);
        }
        break;
    case IPC_OPEN:
        dmn_stream_open(c, h, payload);
        break;
    case IPC_POOL:
        dmn_stream_pool(c, h, payload, fd);
        break;
    case IPC_FRAME:
    case IPC_INLINE:
        frame(c, h, payload);
        break;
    case IPC_CANCEL:
        s = dmn_conn_stream(c, h->stream);
        if (s) {
            dmn_record_cancel(s, h->frame);
            dmn_conn_mark(c);
        }
        break;
    case IPC_PING:
        dmn_conn_send(
            c,
            (struct ipc_header){
                .type = IPC_PONG, .stream = h->stream, .frame = h->frame, .time_ns = h->time_ns},
            payload, h->length, NULL, 0);
        break;
    case IPC_CLOSE:
        dmn_stream_close(c, h);
        break;
    default: /* bit 15 is set: for those who know it */
        break;
    }
}

static bool from_client(uint16_t type)
{
    switch (type) {
    case IPC_HELLO:
    case IPC_OPEN:
    case IPC_POOL:
    case IPC_FRAME:
    case IPC_INLINE:
    case IPC_CANCEL:
    case IPC_PING:
    case IPC_PONG:
    case IPC_CLOSE:
        return true;
    default:
        return type & 0x8000;
    }
}

/* How much of the payload must be in the buffer before the message can be handled. */
static size_t needed(const struct ipc_header *h)
{
    if (h->type == IPC_INLINE) {
        return IPC_FRAME_BYTES;
    }
    return h->type & 0x8000 ? 0 : h->length;
}

/* Takes the payload of an inline frame, or what nobody wants, out of the buffer. */
static void take_payload(struct dmn_conn *c)
{
    size_t n = c->in_used - c->in_pos;

    if (c->reading) {
        n = base_min(n, c->reading_bytes - c->reading_done);
        memcpy(c->reading->buffer + c->reading_done, c->in + c->in_pos, n);
        c->reading_done += n;
    } else {
        n = base_min(n, c->skip_bytes);
        c->skip_bytes -= n;
    }
    c->in_pos += n;
}

static void finish_reading(struct dmn_conn *c)
{
    struct dmn_record *r = c->reading;

    if (r && c->reading_done == c->reading_bytes) {
        c->reading = NULL;
        dmn_record_ready(r);
        dmn_conn_mark(c);
    }
}

/* Whether @h may be handled now; a frame needs a record. */
static bool has_room(struct dmn_conn *c, const struct ipc_header *h)
{
    struct dmn_stream *s;

    if (h->type != IPC_FRAME && h->type != IPC_INLINE) {
        return true;
    }
    s = dmn_conn_stream(c, h->stream);
    return !s || s->closing || dmn_record_room(s);
}

/* Fds that belong to this message; only POOL has a use for one. Return: false after a failure. */
static bool claim_fds(struct dmn_conn *c, const struct ipc_header *h, int *ret_fd)
{
    *ret_fd = -1;
    if (h->fd_count > c->fd_count) {
        dmn_conn_fail(c, IPC_PROTOCOL, "%s announces %u file descriptors, %zu came",
                      ipc_type_name(h->type), h->fd_count, c->fd_count);
        return false;
    }
    for (size_t i = 0; i < h->fd_count; i++) {
        if (h->fd_count == 1 && h->type == IPC_POOL) {
            *ret_fd = c->fds[0];
        } else {
            close(c->fds[i]);
        }
    }
    c->fd_count -= h->fd_count;
    memmove(c->fds, c->fds + h->fd_count, c->fd_count * sizeof(c->fds[0]));
    return true;
}

/* Handles the next message of the buffer. Return: false when it takes more bytes or room first. */
static bool next_message(struct dmn_conn *c)
{
    struct ipc_header h;
    base_autoclose int fd = -1;
    size_t there;
    int error;

    if (c->reading || c->skip_bytes) {
        take_payload(c);
        finish_reading(c);
        if (c->reading || c->skip_bytes) {
            return false;
        }
    }
    there = c->in_used - c->in_pos;
    if (there < IPC_HEADER_BYTES || c->ending || c->closed || dmn_conn_backlogged(c)) {
        return false;
    }
    error = ipc_get_header(c->in + c->in_pos, &h);
    if (error == IPC_E_VERSION) {
        dmn_conn_fail(c, IPC_UNSUPPORTED, "a header of version %u", h.version);
        return false;
    }
    if (error) {
        dmn_conn_fail(c, IPC_PROTOCOL, "a header that makes no sense: type %u (%s), length %u%s",
                      h.type, ipc_type_name(h.type), h.length,
                      error == IPC_E_TOO_BIG ? " is too much" : "");
        return false;
    }
    if (!from_client(h.type)) {
        dmn_conn_fail(c, IPC_PROTOCOL, "%s is not for a server", ipc_type_name(h.type));
        return false;
    }
    if (there < IPC_HEADER_BYTES + needed(&h) || !has_room(c, &h)) {
        return false;
    }
    if (!claim_fds(c, &h, &fd)) {
        return false;
    }
    c->in_pos += IPC_HEADER_BYTES + needed(&h);
    if (h.type & 0x8000) {
        c->skip_bytes = h.length;
    }
    dispatch(c, &h, c->in + c->in_pos - needed(&h), fd);
    return !c->closed;
}

static void process(struct dmn_conn *c)
{
    while (!c->closed && next_message(c)) {
    }
    if (c->closed) {
        return;
    }
    if (c->fd_count > IPC_FDS_MAX || (c->fd_count > 0 && c->in_pos == c->in_used)) {
        dmn_conn_fail(c, IPC_PROTOCOL, "file descriptors that no header announced");
    }
    if (c->in_pos == c->in_used) {
        c->in_pos = c->in_used = 0;
    } else if (c->in_pos > 0) {
        memmove(c->in, c->in + c->in_pos, c->in_used - c->in_pos);
        c->in_used -= c->in_pos;
        c->in_pos = 0;
    }
}

/* Is there a point in reading: nothing complete waits in the buffer for room. */
static bool wants_input(const struct dmn_conn *c)
{
    return !c->ending && !c->closed && !dmn_conn_backlogged(c) && c->in_used < sizeof(c->in);
}

static void take_fds(struct dmn_conn *c, struct msghdr *m)
{
    for (struct cmsghdr *cm = CMSG_FIRSTHDR(m); cm; cm = CMSG_NXTHDR(m, cm)) {
        size_t count;

        if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        count = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int), sizeof(fd));
            if (c->fd_count < base_array_count(c->fds)) {
                c->fds[c->fd_count++] = fd;
            } else {
                close(fd);
                dmn_conn_fail(c, IPC_PROTOCOL, "too many file descriptors");
            }
        }
    }
    if (m->msg_flags & MSG_CTRUNC) {
        dmn_conn_fail(c, IPC_PROTOCOL, "file descriptors were lost on the way");
    }
}

/* One recvmsg(), straight into an inline frame's buffer where one is being read. Return: bytes, 0
 * for "nothing now", or -1 when the connection is over. */
static ssize_t receive(struct dmn_conn *c, bool *ret_full)
{
    union {
        char bytes[CMSG_SPACE(2 * IPC_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {c->in + c->in_used, sizeof(c->in) - c->in_used};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    bool direct = c->reading && c->in_used == 0;
    ssize_t n;

    if (direct) {
        iov.iov_base = c->reading->buffer + c->reading_done;
        iov.iov_len = c->reading_bytes - c->reading_done;
    }
    do {
        n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return 0;
    }
    if (n <= 0) {
        return -1;
    }
    *ret_full = (size_t)n == iov.iov_len;
    c->bytes_in += (uint64_t)n;
    if (direct) {
        c->reading_done += (size_t)n;
    } else {
        c->in_used += (size_t)n;
    }
    take_fds(c, &m);
    return n;
}

void dmn_conn_read(struct dmn_conn *c)
{
    /* a bounded number of rounds, so that one busy client does not keep the others waiting */
    for (int round = 0; round < 8 && wants_input(c); round++) {
        bool full = false;
        ssize_t n = receive(c, &full);

        if (n < 0) {
            dmn_conn_close(c);
            return;
        }
        if (n == 0) {
            return;
        }
        finish_reading(c);
        process(c);
        if (!full) {
            return;
        }
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct dmn_conn *c = poll->data;
    struct dmn_daemon *d = c->daemon;

    if (status < 0) {
        dmn_conn_close(c);
    } else {
        if (events & (UV_READABLE | UV_DISCONNECT)) {
            if (wants_input(c)) {
                dmn_conn_read(c);
            } else if (events & UV_DISCONNECT) {
                dmn_conn_close(c);
            }
        }
        if (!c->closed) {
            dmn_conn_mark(c);
        }
    }
    dmn_daemon_settle(d);
}

/* Tells libuv what this connection waits for. */
static void update_poll(struct dmn_conn *c)
{
    int events = UV_DISCONNECT;

    if (wants_input(c)) {
        events |= UV_READABLE;
    }
    if (c->out_pos < c->out_used) {
        events |= UV_WRITABLE;
    }
    if (events != c->events) {
        c->events = events;
        uv_poll_start(&c->poll, events, on_poll);
    }
}

bool dmn_conn_work(struct dmn_conn *c)
{
    bool backlogged = dmn_conn_backlogged(c), answered = false;

    process(c);
    for (size_t i = c->closed ? 0 : c->stream_count; i-- > 0 && !c->closed;) {
        /* a stream that closes leaves the array, its place is taken by one already seen */
        answered |= dmn_stream_pump(c->streams[i]);
    }
    if (!c->closed) {
        flush(c);
    }
    if (c->closed) {
        return false;
    }
    if (c->ending && c->out_pos == c->out_used) {
        dmn_conn_close(c);
        return false;
    }
    update_poll(c);
    /* there is room now for messages still in the buffer, or for answers still in a ring */
    return answered || (backlogged && !dmn_conn_backlogged(c));
}

int dmn_conn_new(struct dmn_daemon *d, int fd, struct dmn_account *account, pid_t pid)
{
    struct dmn_conn *c = calloc(1, sizeof(*c));
    int error;

    if (!c) {
        return -ENOMEM;
    }
    c->daemon = d;
    c->fd = fd;
    c->pid = pid;
    c->account = account;
    snprintf(c->client, sizeof(c->client), "?");
    error = uv_poll_init(&d->loop, &c->poll, fd);
    if (error < 0) {
        free(c);
        return error;
    }
    c->poll.data = c;
    c->next = d->frames.conns;
    if (c->next) {
        c->next->prev = c;
    }
    d->frames.conns = c;
    d->frames.conn_count++;
    account->connections++;
    update_poll(c);
    return 0;
}
