/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/ipc/scripted_daemon.h - a daemon in a thread of the test that runs a script
 *
 * It has one model with one u8[16] input and one u8[8] output: the first 8 bytes, each plus one.
 * All functions but server_start(), server_join() and client_open() are for the script, in the
 * daemon's thread.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/piped.h"
#include "ipc/wire.h"

#define IN_BYTES 16u
#define OUT_BYTES 8u

struct server {
    int listener, sock;
    char path[108];
    pthread_t thread;
    uint8_t *pool; /* the client's memory, owned */
    size_t pool_bytes;
    uint32_t credits; /* credits of its streams */
    void (*script)(struct server *s);
    /* not 0: a second output, an i64 in the same bytes, and what the first says of its rows */
    uint32_t rows_output, rows_dim;
    uint32_t features;      /* of its WELCOME */
    bool half;              /* its input is f16[8] */
    const char *input_name; /* NULL: "in" */
    int bad;                /* the client broke the protocol: line number */
};

#define SERVER_CHECK(s, x)                                                                         \
    do {                                                                                           \
        if (!(x) && !(s)->bad) {                                                                   \
            (s)->bad = __LINE__;                                                                   \
        }                                                                                          \
    } while (0)

struct message {
    struct ipc_header h;
    uint8_t payload[4096];
    int fd;
};

/** server_start() - listens at s->path and runs @script in a thread; pair with server_join(). */
void server_start(struct server *s, uint32_t credits, void (*script)(struct server *s));
/** server_join() - waits for the end of the script and removes its socket. */
void server_join(struct server *s);

/** client_open() - connects, and opens a stream of its only model. Return: of libpiped. */
int client_open(const struct server *s, uint32_t reconnect_ms, uint32_t slots, struct piped **p,
                struct piped_stream **stream);

/** server_accept() - accepts the next client, up to WELCOME. Return: false if none came. */
bool server_accept(struct server *s);
/** server_open_stream() - answers OPEN and POOL, maps the pool. Return: false at the end of the
 * connection. */
bool server_open_stream(struct server *s);
/** server_take_pool() - answers POOL, which follows OPENED, and maps the pool. Return: as above. */
bool server_take_pool(struct server *s);
/** server_take() - both, then receives a message, the first frame. Return: false, with s->bad set:
 * it did not come. */
bool server_take(struct server *s, struct message *ret);
/** server_receive() - receives the next message; the caller owns its descriptor. Return: false at
 * the end of the connection. */
bool server_receive(struct server *s, struct message *m);
/** server_send() - sends a message with two pieces of payload; fills in version and length of
 * @h. */
void server_send(struct server *s, struct ipc_header h, const void *a, size_t a_bytes,
                 const void *b, size_t b_bytes);
/** server_send_opened() - sends OPENED, which claims an output of @out_bytes. */
void server_send_opened(struct server *s, uint32_t stream, uint64_t out_bytes);
/** server_answer() - sends RESULT for the FRAME @m: the output, or "why" if the status is not 0. */
void server_answer(struct server *s, const struct message *m, enum ipc_status status);
void server_hang_up(struct server *s);
