/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/acceptor.h - accepts the clients of a listening socket
 *
 * Every client that came is taken from the queue, whatever becomes of it, so a failure to serve one
 * never stops the next. They are accepted in the loop's turns (loop_turns.h) as a task of nobody;
 * what each took is charged to its user, too, so whoever connects again and again pays for it.
 * While the process has no descriptors or memory left, clients wait in the queue, and it tries
 * again twice a second.
 *
 * Embedded in its owner; all zeros is one that was not started. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

#include "daemon/service/loop_turns.h"
#include "ipc/listen.h"

struct dmn_acceptor {
    /* set by the owner before dmn_acceptor_start(); borrowed */
    uv_loop_t *loop;
    struct dmn_loop_turns *turns;
    const char *name; /* of the socket, for the log */
    /* A client has come. @fd: non-blocking, close-on-exec, owned by the called one. */
    void (*accepted)(void *ctx, int fd, const struct ucred *peer);
    void *ctx;
    /* written by acceptor.c */
    int fd; /* listening; owned while `open` */
    struct ipc_socket_file file;
    bool open;
    struct dmn_loop_task task;
    uv_poll_t poll;
    uv_timer_t retry;
};

/** dmn_acceptor_start() - accepts on @fd, which listens, and which it owns from now on, even when
 * it fails. @file: of the socket, taken. Return: 0 or -errno. */
int dmn_acceptor_start(struct dmn_acceptor *a, int fd, struct ipc_socket_file *file);
/** dmn_acceptor_again() - makes the socket again whose file is gone, see ipc_listen_again().
 * Return: 0; -errno: nothing has changed. */
int dmn_acceptor_again(struct dmn_acceptor *a, mode_t mode, gid_t group);
/** dmn_acceptor_stop() - removes the file, and closes the socket and the handles in the loop's next
 * turn. May be called again, or without a start. */
void dmn_acceptor_stop(struct dmn_acceptor *a);
