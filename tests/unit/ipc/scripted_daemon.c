/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ipc/scripted_daemon.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool read_bytes(struct server *s, void *to, size_t bytes, int *fd)
{
    size_t at = 0;

    while (at < bytes) {
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec iov = {(char *)to + at, bytes - at};
        struct msghdr msg = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
        ssize_t n = recvmsg(s->sock, &msg, MSG_CMSG_CLOEXEC);

        if (n <= 0) {
            return false;
        }
        if (CMSG_FIRSTHDR(&msg)) {
            memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
        }
        at += (size_t)n;
    }
    return true;
}

bool server_receive(struct server *s, struct message *m)
{
    uint8_t b[IPC_HEADER_BYTES];

    m->fd = -1;
    if (!read_bytes(s, b, sizeof(b), &m->fd)) {
        return false;
    }
    SERVER_CHECK(s, ipc_get_header(b, &m->h) == 0 && m->h.length <= sizeof(m->payload));
    SERVER_CHECK(s, m->h.fd_count == (m->fd >= 0));
    return !s->bad && read_bytes(s, m->payload, m->h.length, &m->fd);
}

void server_send(struct server *s, struct ipc_header h, const void *a, size_t a_bytes,
                 const void *b, size_t b_bytes)
{
    uint8_t head[IPC_HEADER_BYTES];

    h.version = h.version ? h.version : IPC_VERSION;
    h.length = (uint32_t)(a_bytes + b_bytes);
    memcpy(head, &h, sizeof(h));
    send(s->sock, head, sizeof(head), MSG_NOSIGNAL);
    if (a_bytes) {
        send(s->sock, a, a_bytes, MSG_NOSIGNAL);
    }
    if (b_bytes) {
        send(s->sock, b, b_bytes, MSG_NOSIGNAL);
    }
}

bool server_accept(struct server *s)
{
    struct ipc_hello hello;
    struct ipc_welcome w = {
        .version = 1, .server = "scripted", .instance = 1, .features = s->features};
    uint8_t b[IPC_WELCOME_BYTES];
    struct message m;

    s->sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (s->sock < 0 || !server_receive(s, &m)) {
        return false;
    }
    SERVER_CHECK(s, m.h.type == IPC_HELLO && ipc_get_hello(m.payload, m.h.length, &hello) == 0);
    memcpy(b, &w, sizeof(w));
    server_send(s, (struct ipc_header){.type = IPC_WELCOME}, b, sizeof(b), NULL, 0);
    return true;
}

void server_send_opened(struct server *s, uint32_t stream, uint64_t out_bytes)
{
    struct ipc_opened o = {.credits = s->credits,
                           .depth = 2,
                           .input_count = 1,
                           .output_count = s->rows_output ? 2 : 1,
                           .input_bytes = IN_BYTES,
                           .output_bytes = out_bytes};
    struct ipc_tensor t[3] = {
        {.name = "in", .dtype = IPC_U8, .rank = 1, .dim = {IN_BYTES}, .bytes = IN_BYTES},
        {.name = "out",
         .dtype = IPC_U8,
         .rank = 1,
         .dim = {OUT_BYTES},
         .bytes = OUT_BYTES,
         .rows_output = s->rows_output,
         .rows_dim = s->rows_dim},
        {.name = "out.rows", .dtype = IPC_I64, .rank = 1, .dim = {1}, .bytes = OUT_BYTES}};
    uint8_t b[IPC_OPENED_BYTES], tensors[3 * IPC_TENSOR_BYTES];

    if (s->half) {
        t[0].dtype = IPC_F16;
        t[0].dim[0] /= 2;
    }
    if (s->input_name) {
        snprintf(t[0].name, sizeof(t[0].name), "%s", s->input_name);
    }
    memcpy(b, &o, sizeof(o));
    memcpy(tensors, &t[0], sizeof(t[0]));
    memcpy(tensors + IPC_TENSOR_BYTES, &t[1], sizeof(t[1]));
    memcpy(tensors + 2 * IPC_TENSOR_BYTES, &t[2], sizeof(t[2]));
    server_send(s, (struct ipc_header){.type = IPC_OPENED, .stream = stream}, b, sizeof(b), tensors,
                (1 + o.output_count) * IPC_TENSOR_BYTES);
}

bool server_open_stream(struct server *s)
{
    struct message m;

    if (!server_receive(s, &m)) {
        return false;
    }
    SERVER_CHECK(s, m.h.type == IPC_OPEN);
    server_send_opened(s, m.h.stream, OUT_BYTES);
    return server_take_pool(s);
}

bool server_take_pool(struct server *s)
{
    struct message m;
    struct ipc_pool p;

    if (!server_receive(s, &m)) {
        return false;
    }
    SERVER_CHECK(s, m.h.type == IPC_POOL && ipc_get_pool(m.payload, m.h.length, &p) == 0);
    SERVER_CHECK(s, (fcntl(m.fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW)) ==
                        (F_SEAL_SHRINK | F_SEAL_GROW));
    if (s->pool) {
        munmap(s->pool, s->pool_bytes);
    }
    s->pool_bytes = p.bytes;
    s->pool = mmap(NULL, p.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    SERVER_CHECK(s, s->pool != MAP_FAILED);
    close(m.fd);
    server_send(s, (struct ipc_header){.type = IPC_POOLED, .stream = m.h.stream}, NULL, 0, NULL, 0);
    return true;
}

bool server_take(struct server *s, struct message *ret)
{
    SERVER_CHECK(s, server_accept(s) && server_open_stream(s) && server_receive(s, ret));
    return s->bad == 0;
}

void server_answer(struct server *s, const struct message *m, enum ipc_status status)
{
    struct ipc_result r = {.credits = 1, .epoch = 1, .out_bytes = status ? 0 : OUT_BYTES};
    uint8_t b[IPC_RESULT_BYTES];
    struct ipc_frame f;

    SERVER_CHECK(s, m->h.type == IPC_FRAME && ipc_get_frame(m->payload, m->h.length, &f) == 0);
    SERVER_CHECK(s, f.in_offset + f.in_bytes <= s->pool_bytes &&
                        f.out_offset + f.out_bytes <= s->pool_bytes && f.out_offset % 64 == 0);
    if (s->bad) {
        return;
    }
    for (size_t i = 0; i < OUT_BYTES && !status; i++) {
        s->pool[f.out_offset + i] = (uint8_t)(s->pool[f.in_offset + i] + 1);
    }
    memcpy(b, &r, sizeof(r));
    server_send(s,
                (struct ipc_header){.type = IPC_RESULT,
                                    .stream = m->h.stream,
                                    .frame = m->h.frame,
                                    .time_ns = m->h.time_ns,
                                    .status = (uint16_t)status},
                b, sizeof(b), "why \xe2\x82", status ? 6 : 0); /* cut within a character */
}

void server_hang_up(struct server *s)
{
    close(s->sock);
    s->sock = -1;
}

static void *serve(void *arg)
{
    struct server *s = arg;

    s->script(s);
    if (s->sock >= 0) {
        server_hang_up(s);
    }
    close(s->listener);
    return NULL;
}

void server_start(struct server *s, uint32_t credits, void (*script)(struct server *s))
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char folder[] = "/tmp/piped-client-XXXXXX";

    *s = (struct server){.sock = -1, .credits = credits, .script = script};
    if (!mkdtemp(folder)) {
        abort();
    }
    snprintf(s->path, sizeof(s->path), "%s/frames.sock", folder);
    memcpy(at.sun_path, s->path, sizeof(at.sun_path));
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s->listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s->listener, 4) < 0 ||
        pthread_create(&s->thread, NULL, serve, s) != 0) {
        abort();
    }
}

void server_join(struct server *s)
{
    pthread_join(s->thread, NULL);
    unlink(s->path);
    *strrchr(s->path, '/') = 0;
    rmdir(s->path);
    if (s->pool) {
        munmap(s->pool, s->pool_bytes);
    }
}

int client_open(const struct server *s, uint32_t reconnect_ms, uint32_t slots, struct piped **p,
                struct piped_stream **stream)
{
    struct piped_options o = {.size = sizeof(o), .path = s->path, .reconnect_ms = reconnect_ms};
    struct piped_stream_options so = {.size = sizeof(so), .slots = slots};
    int rc = piped_connect(&o, p);

    return rc < 0 ? rc : piped_stream_open(*p, &so, stream);
}
